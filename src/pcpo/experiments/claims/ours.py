"""What the paper does not ask, answered from the results in the same way: a number, its interval, or "not run yet"."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pcpo.experiments.claims import evidence as say
from pcpo.experiments.claims.evidence import SHORT, Data, of_seeds
from pcpo.experiments.claims.judges import POINTS, SIX
from pcpo.experiments.claims.verdicts import NotRunError
from pcpo.experiments.series import Series
from pcpo.experiments.statistics import found, found_of_means, iqm, last_tenth
from pcpo.experiments.suite.measures import Promises, promises
from pcpo.training.files import read_json

_PREFIX = {"point-circle": "pc", "point-gather": "pg"}


def _each(tasks: Sequence[str], part: Callable[[Data, str], str], data: Data) -> str:
    """The answer on each task, and which were not run."""
    told: list[str] = []
    missing: list[str] = []
    for task in tasks:
        try:
            told.append(part(data, task))
        except NotRunError as error:
            missing.append(str(error))
    if missing:
        told.append("not run yet: " + ", ".join(dict.fromkeys(missing)))
    return "; ".join(told)


def _adaptive(data: Data, task: str) -> str:
    """Reward of the adaptive projection minus that of each fixed one, and its cost."""
    over = [
        of_seeds(data, task, "pcpo-adaptive", rule, lambda s: last_tenth(s.rewards), lambda x, y: x - y)
        for rule in ("pcpo-kl", "pcpo-l2")
    ]
    cost = found(iqm, last_tenth(data.stratum(task, "pcpo-adaptive").costs))
    return f"{SHORT[task]} reward {over[0]} over KL, {over[1]} over L2, final cost {cost}"


def _ends(data: Data, experiment: str, variant: str) -> str:
    """Final reward and cost."""
    stratum = data.stratum(experiment, variant)
    reward, cost = (found(iqm, last_tenth(table)) for table in (stratum.rewards, stratum.costs))
    return f"reward {reward}, cost {cost}"


def _pair(experiment: str, first: str, second: str, data: Data, task: str) -> str:
    names = [f"{_PREFIX[task]}-{name}" for name in (first, second)]
    ends = [f"{name} {_ends(data, experiment, variant)}" for name, variant in zip((first, second), names, strict=True)]
    return f"{SHORT[task]} " + " / ".join(ends)


def _tuned(data: Data, task: str) -> str:
    """For each rule, the value with the most reward among those that keep the limit."""
    told: list[str] = []
    for rule, word in (("fpo", "multiplier"), ("pdo", "rate")):
        best: tuple[float, str] | None = None
        values = [
            v.name for v in say.EXPERIMENTS["multipliers"].variants if v.name.startswith(f"{_PREFIX[task]}-{rule}")
        ]
        for name in values:
            stratum = data.stratum("multipliers", name)
            reward, cost = iqm(last_tenth(stratum.rewards)), iqm(last_tenth(stratum.costs))
            if cost <= data.bound("multipliers", name) and (best is None or reward > best[0]):
                best = reward, name.rpartition("-")[2]
        said = "no value keeps the limit" if best is None else f"{word} {best[1]}, reward {best[0]:.3g}"
        told.append(f"{rule.upper()} {said}")
    return f"{SHORT[task]} " + ", ".join(told)


def _square(data: Data) -> str:
    told: list[str] = []
    for variant in ("pcpo-kl", "pcpo-kl-dykstra", "pcpo-l2"):
        run = data.run("point-square", variant)
        costs = [found(iqm, last_tenth(run.column(f"costs.{name}"))) for name in run.cost_names]
        reward = found(iqm, last_tenth(run.column("discounted_return")))
        told.append(f"{variant} reward {reward}, costs {costs[0]} and {costs[1]} of 5")
    return "; ".join(told)


def _kept(data: Data, task: str, rule: str) -> tuple[Series, Promises]:
    run = data.run("predictions", f"{_PREFIX[task]}-{rule}")
    return run, promises(run)


def _came_true(data: Data, task: str) -> str:
    """Of the changes of the cost that updates promised, which part came on each batch: above the limit, and within it.

    Signed sums would be those of the first updates, whose promises are the largest, and cancel at the limit; so it is
    the slope through zero, in which every promise counts with its size.
    """
    told: list[str] = []
    for rule in ("pcpo-kl", "pcpo-l2", "cpo"):
        run, bound = (
            data.run("predictions", f"{_PREFIX[task]}-{rule}"),
            data.bound("predictions", f"{_PREFIX[task]}-{rule}"),
        )
        parts = [f"{word}: {slopes(run, side, bound)}" for word, side in (("above", True), ("within", False))]
        told.append(f"{rule} " + ", ".join(parts))
    return f"{SHORT[task]} " + "; ".join(told)


def slopes(run: Series, above: bool, bound: float) -> str:
    """The part of the promises that came on the same batch and on the next, of updates from above a bound or within."""
    name = run.cost_names[0]
    before = run.column(f"costs.{name}")
    after = np.concatenate([before[1:] - before[:-1], np.full((1, before.shape[1]), np.nan)])
    promised, same = run.column(f"predicted_costs.{name}"), run.column(f"cost_changes.{name}")
    counts = np.isfinite(promised + same + after) & ((before > bound) == above)
    weights = np.where(counts, promised, 0.0)
    below = (weights**2).sum(axis=0)[None]

    def part(curves: tuple[Any, ...]) -> Any:
        came, asked = (curve[0] for curve in curves)
        return np.where(asked > 0.0, came / np.where(asked > 0.0, asked, 1.0), np.nan)

    said = [
        found_of_means(part, ((weights * np.where(counts, came, 0.0)).sum(axis=0)[None], below))
        for came in (same, after)
    ]
    return f"{said[0]} on the same batch, {said[1]} on the next, {int(counts.sum()):,} updates"


def _bounds(data: Data, task: str) -> str:
    """How often the next batch was above the estimated worst case, and how far above what happened that lies."""
    told: list[str] = []
    for rule in ("pcpo-kl", "pcpo-l2", "cpo"):
        _, kept = _kept(data, task, rule)
        above = float(np.mean(kept.next_batch > kept.bound))
        slack = float(np.median(kept.bound - kept.next_batch))
        told.append(f"{rule} {100 * above:.1f} % above it, median distance {slack:.3g}")
    return f"{SHORT[task]} " + ", ".join(told)


def _theorems(data: Data) -> str:
    """What `pcpo reproduce bounds` found of the worst-case bounds, where every expectation is exact."""
    path = data.directory / "bounds" / "bounds.json"
    if not path.is_file():
        return "not run yet: bounds"
    found_ = read_json(path).get("verdicts", [])
    return "; ".join(f"{each['claim']} ({each['place']}) **{each['verdict']}**: {each['evidence']}" for each in found_)


def _sign(rule: str, data: Data, task: str) -> str:
    return _pair("sign", rule, f"{rule}-flipped", data, task)


QUESTIONS: Mapping[str, Callable[[Data], str]] = {
    "Is the adaptive projection better than both fixed ones?": functools.partial(_each, SIX, _adaptive),
    "What does the sign of public copies of the authors' optimizer do (KL)?": functools.partial(
        _each, POINTS, functools.partial(_sign, "pcpo-kl")
    ),
    "The same with L2?": functools.partial(_each, POINTS, functools.partial(_sign, "pcpo-l2")),
    "What do raw actions change for PCPO-KL?": functools.partial(
        _each, POINTS, functools.partial(_pair, "actions", "pcpo-kl-clip", "pcpo-kl-raw")
    ),
    "And for CPO?": functools.partial(_each, POINTS, functools.partial(_pair, "actions", "cpo-clip", "cpo-raw")),
    "Which multiplier of FPO and which rate of PDO earn most within the limit?": functools.partial(
        _each, POINTS, _tuned
    ),
    "Do two constraints hold at once?": lambda data: _each(("point-square",), lambda d, _: _square(d), data),
    "Which part of what updates promise of the cost comes true, above the limit and within it?": functools.partial(
        _each, POINTS, _came_true
    ),
    "What does bound_estimate say in practice?": functools.partial(_each, POINTS, _bounds),
    "Do the theorems' worst-case bounds hold where everything is exact?": _theorems,
}
"""Each question and what answers it."""
