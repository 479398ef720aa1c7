"""The experiments, as data: what is varied, and at which scale.

Settings that are not named are those that the paper trains the task with. Where the paper does not say what it did, the
summary says what we do.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pcpo.experiments.suite.plan import Experiment, Scale, Variant

BATCHES = {
    "point-circle": 50_000,
    "point-gather": 50_010,
    "point-square": 50_000,
    "ant-circle": 100_000,
    "ant-gather": 100_000,
    "grid": 10_000,
    "bottleneck": 25_000,
}
"""Steps of the environment in an update of one seed, in whole episodes; a test compares them with the tasks."""
RATES = {
    "point-circle": 450_000,
    "point-gather": 450_000,
    "point-square": 450_000,
    "ant-circle": 26_000,
    "ant-gather": 26_000,
    "grid": 3_400,
    "bottleneck": 3_400,
}
"""Steps of training per second that two cores do, rounded: measured for Point-Circle, Ant-Circle and Grid (see
docs/performance.md); the others are taken to be like the one that they resemble."""

_PAPER = ("pcpo-kl", "pcpo-l2", "cpo", "trpo")
_PENALTIES = ("pdo", "fpo")
_ADAPTIVE = ("pcpo-adaptive",)


def _rules(task: str, names: Iterable[str], prefix: str = "", **rest: Any) -> tuple[Variant, ...]:
    """One variant for each update rule."""
    settings: Mapping[str, Any] = rest.pop("settings", {})
    return tuple(Variant(prefix + name, task, {"algorithm": name, **settings}, **rest) for name in names)


_SHORTER = {"point-circle": "pc", "point-gather": "pg"}
"""How the point tasks are called in names of variants, where an experiment has both."""


def _points(name: str, settings: Mapping[str, Any], label: str = "", **rest: Any) -> list[Variant]:
    """The same variant on both point tasks."""
    return [Variant(f"{short}-{name}", task, settings, label=label, **rest) for task, short in _SHORTER.items()]


def _curves(task: str, rules: Iterable[str], scale: Scale, **rest: Any) -> Experiment:
    title = f"Learning curves on {task}, and reward against violations: {', '.join(rules)}"
    place = "fig:performance, fig:performance_for_rewardvsCost, fig:performance_appendix"
    return Experiment(task, f"{title}.", place, _rules(task, rules, **rest), scale)


_LEARNING = (
    _curves("point-circle", (*_PAPER, *_PENALTIES, *_ADAPTIVE), Scale(5, 5, 1000)),
    _curves("point-gather", (*_PAPER, *_PENALTIES, *_ADAPTIVE), Scale(5, 5, 1000)),
    _curves("ant-circle", (*_PAPER, *_ADAPTIVE), Scale(3, 1, 300), settings={"delta": 0.01}),
    _curves("ant-gather", (*_PAPER, *_ADAPTIVE), Scale(3, 1, 300), settings={"delta": 0.01}),
    _curves("grid", (*_PAPER, *_ADAPTIVE), Scale(3, 1, 200)),
    _curves("bottleneck", (*_PAPER, *_ADAPTIVE), Scale(3, 1, 100)),
    Experiment(
        "ant-circle-small-steps",
        "Ant-Circle with the paper's delta of 1e-4, one seed of each rule, for long.",
        "fig:performance",
        _rules("ant-circle", _PAPER),
        Scale(1, 1, 1500),
    ),
)

_STUDIES = (
    Experiment(
        "line-search",
        "CPO with and without its line search, with delta 0.01 as in the paper and with the 1e-4 of its conjecture.",
        "fig:performance_compareToLineSearch",
        tuple(
            variant
            for delta in (0.01, 1e-4)
            for search, name, label in (
                (True, f"cpo-{delta:g}", f"CPO, delta {delta:g}"),
                (False, f"cpo-without-{delta:g}", f"without line search, delta {delta:g}"),
            )
            for variant in _points(name, {"algorithm": "cpo", "delta": delta, "line_search": search}, label)
        ),
        Scale(5, 5, 200),
    ),
    Experiment(
        "harder",
        "Harder constraints: a limit of zero, and on Point-Circle half the band (1.25; the paper names no number).",
        "fig:performance_threholds (of the harder constraints)",
        (
            *_rules("point-circle", _PAPER, "pc-", limit=0.0, task_options={"x_limit": 1.25}),
            *_rules("point-gather", _PAPER, "pg-", limit=0.0),
        ),
        Scale(5, 5, 500),
    ),
    Experiment(
        "small-batch",
        "One percent of the batch: 500 steps per update.",
        "fig:performance_smallerBatchSample",
        (
            *_rules("point-circle", _PAPER, "pc-", settings={"batch_size": 500}),
            *_rules("point-gather", _PAPER, "pg-", settings={"batch_size": 500}),
        ),
        Scale(5, 5, 1000),
    ),
    Experiment(
        "cg",
        "PCPO-KL on Grid with 10 and with 20 iterations of conjugate gradient, and TRPO beside them.",
        "fig:performance_Additiona_Analysis_for_Grid_Task",
        (
            Variant("pcpo-kl-10", "grid", {"cg_iterations": 10}, label="PCPO (KL), 10 iterations"),
            Variant("pcpo-kl-20", "grid", {"cg_iterations": 20}, label="PCPO (KL), 20 iterations"),
            Variant("trpo", "grid", {"algorithm": "trpo"}),
        ),
        Scale(3, 1, 200),
    ),
)

_OURS = (
    Experiment(
        "sign",
        "The sign found in public copies of the authors' optimizer against the paper's formula.",
        "ours",
        tuple(
            variant
            for name in ("pcpo-kl", "pcpo-kl-flipped", "pcpo-l2", "pcpo-l2-flipped")
            for variant in _points(name, {"algorithm": name})
        ),
        Scale(5, 5, 200),
    ),
    Experiment(
        "actions",
        "Actions clipped to the robot's ranges, as everywhere else here, against raw ones, as in CPO's code.",
        "ours",
        tuple(
            variant
            for name, rule in (("pcpo-kl", "PCPO (KL)"), ("cpo", "CPO"))
            for mode, word in (("clip", "clipped"), ("raw", "raw"))
            for variant in _points(
                f"{name}-{mode}", {"algorithm": name}, f"{rule}, {word} actions", task_options={"action_mode": mode}
            )
        ),
        Scale(5, 5, 200),
    ),
    Experiment(
        "multipliers",
        "FPO over its multiplier and PDO over its learning rate.",
        "sec:experiments, Discussion of PDO and FPO",
        tuple(
            variant
            for value in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
            for variant in _points(
                f"fpo-{value:g}", {"algorithm": "fpo", "multiplier": value}, f"FPO, multiplier {value:g}"
            )
        )
        + tuple(
            variant
            for value in (0.001, 0.01, 0.1, 1.0)
            for variant in _points(
                f"pdo-{value:g}", {"algorithm": "pdo", "learning_rate": value}, f"PDO, rate {value:g}"
            )
        ),
        Scale(5, 5, 300),
    ),
    Experiment(
        "point-square",
        "Several constraints: two costs at once, projected onto in turn or at once, with KL and L2.",
        "sec:implementation",
        (
            Variant("pcpo-kl", "point-square"),
            Variant("pcpo-kl-dykstra", "point-square", {"several": "dykstra"}, label="PCPO (KL), Dykstra"),
            Variant("pcpo-l2", "point-square", {"algorithm": "pcpo-l2"}),
        ),
        Scale(5, 5, 200),
    ),
    Experiment(
        "predictions",
        "How well each update's prediction came true, and what bound_estimate says in practice.",
        "ours; Theorems feasibleCase and infeasibleCase",
        (
            *_points("pcpo-kl", {}),
            *_points("pcpo-l2", {"algorithm": "pcpo-l2"}),
            *_points("cpo", {"algorithm": "cpo"}),
        ),
        Scale(5, 5, 100),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {each.name: each for each in (*_LEARNING, *_STUDIES, *_OURS)}
"""Every experiment that trains, by name."""


def steps(variant: Variant, seeds: int, updates: int) -> int:
    """Steps of the environment that a variant takes, with episodes of full length."""
    return seeds * updates * int(variant.settings.get("batch_size", BATCHES[variant.task]))


def hours(experiment: Experiment) -> float:
    """How long the whole experiment takes on two cores, by `RATES`."""
    seeds, _, updates = experiment.scale
    return sum(steps(each, seeds, updates) / RATES[each.task] for each in experiment.variants) / 3600.0
