"""Judges of the claims in the paper's section on experiments (``sec:experiments``), and of those in its abstract."""

import functools
from collections.abc import Mapping
from typing import Any

from pcpo.experiments.claims import evidence as say
from pcpo.experiments.claims.evidence import SHORT, Data, Stratum
from pcpo.experiments.claims.judges import KL, L2, POINTS, SIX, Judge, not_checkable, of_pcpo, on, together
from pcpo.experiments.claims.verdicts import (
    Judged,
    Verdict,
    all_of,
    any_of,
    as_large_as,
    at_most,
    is_missing,
    opposite,
    where_run,
)
from pcpo.experiments.statistics import Seeds, found, iqm, last_tenth, ratio, time_to_safety
from pcpo.experiments.suite.presets import EXPERIMENTS

_PREFIX = {"point-circle": "pc", "point-gather": "pg"}
_FEW, _FEW_MULTIPLIERS, _NEAR = 10.0, 2, 2.0
"""What we take "few policy updates", "significant effort" and, in parts of the limit, "near" to mean."""
_NAMED = {KL: "KL", L2: "L2"}


def others(task: str) -> tuple[str, ...]:
    """The rules beside PCPO that the paper shows on a task."""
    return ("cpo", "trpo", "pdo", "fpo") if task in POINTS else ("cpo", "trpo")


def _improves(mine: str, data: Data, task: str) -> Judged:
    return say.improves(data, task, mine, f"{SHORT[task]} {_NAMED[mine]}")


def _fastest(mine: str, data: Data, task: str) -> Judged:
    return all_of(
        say.later_safe(data, task, rule, mine, f"{SHORT[task]} {rule} and {_NAMED[mine]}") for rule in others(task)
    )


def _keeps(rule: str, data: Data, task: str) -> Judged:
    return say.keeps_limit(data, task, rule, f"{SHORT[task]} {rule}")


def _only_one(data: Data) -> Judged:
    """PCPO keeps all limits, and each other rule breaks one somewhere."""
    mine = all_of(of_pcpo(_keeps)(data, task) for task in SIX)
    parts = [mine]
    for rule in ("cpo", "trpo", "pdo", "fpo"):
        tasks = [task for task in SIX if rule in others(task)]
        breaks = [functools.partial(lambda r, t: opposite(_keeps(r, data, t)), rule, task) for task in tasks]
        parts.append(any_of(where_run(breaks)))
    return all_of(parts)


def cpo_violates_more(mine: str, data: Data, task: str) -> Judged:
    """Whether CPO has violated more in all than PCPO with one projection."""
    return say.more_violation(data, task, "cpo", mine, f"{SHORT[task]} CPO over {_NAMED[mine]}")


def _equal_reward(claimed: float, mine: str, data: Data, task: str) -> Judged:
    return say.dearer_at_equal_reward(data, task, mine, "cpo", f"{SHORT[task]} CPO over {_NAMED[mine]}", claimed)


def _as_cheap(task: str, claimed: float) -> Judge:
    return on((task,), of_pcpo(functools.partial(_equal_reward, claimed)))


def _cheapest(mine: str, data: Data, task: str) -> Judged:
    return all_of(
        say.dearer_at_equal_reward(data, task, mine, rule, f"{SHORT[task]} {rule} over {_NAMED[mine]}")
        for rule in others(task)
    )


def _above_in_traffic(data: Data, task: str) -> Judged:
    return opposite(_keeps(KL, data, task))


def _l2_safer(data: Data, task: str) -> Judged:
    return say.more_cost(data, task, KL, L2, f"{SHORT[task]} KL over L2")


def _l2_fluctuates(data: Data, task: str) -> Judged:
    l2, kl = data.pair(task, L2, KL)
    return say.fluctuates_more(l2.rewards, kl.rewards, f"{SHORT[task]} fluctuation of the reward, L2 over KL,")


def _differ(data: Data, task: str) -> Judged:
    return say.other_reward(data, task, KL, L2, f"{SHORT[task]} KL over L2")


def _few_updates(mine: str, data: Data, task: str) -> Judged:
    times = time_to_safety(data.stratum(task, mine).costs, data.bound(task, mine))
    return at_most(f"{SHORT[task]} {_NAMED[mine]} safe from update", found(iqm, times), _FEW)


def _no_rate(data: Data, task: str) -> Judged:
    """PDO with its largest rate earns less than with the usual one."""
    usual, largest = (f"{_PREFIX[task]}-pdo-{rate}" for rate in ("0.01", "1"))
    return say.more_reward(data, "multipliers", usual, largest, f"{SHORT[task]} rate 0.01 over 1")


def _hard_to_choose(data: Data, task: str) -> Judged:
    """Of the six multipliers that were tried, no more than two keep the limit and earn what PDO does at its default."""
    earned = iqm(last_tenth(data.stratum("multipliers", f"{_PREFIX[task]}-pdo-0.01").rewards))
    tried = [variant.name for variant in EXPERIMENTS["multipliers"].variants]
    tried = [name for name in tried if name.startswith(f"{_PREFIX[task]}-fpo-")]
    good: list[str] = []
    for name in tried:
        stratum = data.stratum("multipliers", name)
        cost, reward = (iqm(last_tenth(table)) for table in (stratum.costs, stratum.rewards))
        if cost <= data.bound("multipliers", name) and reward >= earned:
            good.append(name.rpartition("-")[2])
    few = len(good) <= _FEW_MULTIPLIERS
    said = f"{len(good)} of {len(tried)} multipliers do ({', '.join(good) or 'none'})"
    return Judged(Verdict.REPRODUCED if few else Verdict.NOT_REPRODUCED, f"{SHORT[task]} {said}")


def _on_average(column: str, above: str, below: str, claimed: float, data: Data) -> Judged:
    """The mean over the six tasks of a ratio of two rules' means over seeds, of the last numbers of a column."""
    missing = [
        part for part in where_run([lambda t=task: cpo_violates_more(KL, data, t) for task in SIX]) if is_missing(part)
    ]
    if missing:
        return missing[0]
    ends = [_ends(stratum, column) for task in SIX for stratum in data.pair(task, above, below)]

    def mean_ratio(*values: Any) -> Any:
        pairs = zip(values[::2], values[1::2], strict=True)
        return sum(ratio(x.mean(axis=-1), y.mean(axis=-1)) for x, y in pairs) / len(SIX)

    return as_large_as("mean over six tasks x", found(mean_ratio, *ends), claimed)


def _ends(stratum: Stratum, column: str) -> Seeds:
    """What each seed ends with: the last of what was added up, the mean of the last tenth of rewards."""
    return last_tenth(stratum.rewards) if column == "rewards" else getattr(stratum, column)[-1]


def _over(rule: str, data: Data, task: str) -> Judged:
    """Whether KL earns more than another rule."""
    return say.more_reward(data, task, KL, rule, f"{SHORT[task]} KL over {rule}")


def _trpo_over(data: Data, task: str) -> Judged:
    return all_of(
        say.more_reward(data, task, "trpo", rule, f"{SHORT[task]} TRPO over {rule}") for rule in (KL, L2, "cpo")
    )


def _l2_over_in_ant_circle(data: Data) -> Judged:
    return say.more_reward(data, "ant-circle-small-steps", L2, KL, "AC with delta 1e-4, L2 over KL")


def _pdo_fluctuates(data: Data, task: str) -> Judged:
    pairs = [(rule, data.pair(task, "pdo", rule)) for rule in (KL, "cpo")]
    return all_of(
        say.fluctuates_more(pdo.costs, other.costs, f"{SHORT[task]} fluctuation of the cost, PDO over {rule},")
        for rule, (pdo, other) in pairs
    )


def _pdo_slow(data: Data, task: str) -> Judged:
    return say.later_safe(data, task, "pdo", KL, f"{SHORT[task]} PDO and KL")


def _fpo_over_pdo(data: Data, task: str) -> Judged:
    more = say.more_reward(data, task, "fpo", "pdo", f"{SHORT[task]} FPO over PDO")
    cost = found(iqm, last_tenth(data.stratum(task, "fpo").costs))
    near = at_most(f"{SHORT[task]} FPO final cost", cost, _NEAR * data.limit(task, "fpo"))
    return all_of([near, more])


JUDGES: Mapping[str, Judge] = {
    "improves": on(SIX, of_pcpo(_improves)),
    "fastest": on(SIX, of_pcpo(_fastest)),
    "only-one": _only_one,
    "cpo-violates-more": on(SIX, of_pcpo(cpo_violates_more)),
    "pdo-conservative": on(POINTS, functools.partial(_over, "pdo")),
    "fpo-effort": on(POINTS, _hard_to_choose),
    "traffic-is-harder": together(
        on(("grid", "bottleneck"), _above_in_traffic), on(POINTS, functools.partial(_keeps, KL))
    ),
    "equal-reward-grid": _as_cheap("grid", 1.0 / (1.0 - 0.8515)),
    "equal-reward-bottleneck": _as_cheap("bottleneck", 5.42),
    "few-updates": on(SIX, of_pcpo(_few_updates)),
    "trpo-upper-bound": on(SIX, _trpo_over),
    "equal-reward-point-circle": _as_cheap("point-circle", 66.0),
    "equal-reward-point-gather": _as_cheap("point-gather", 15.0),
    "cheapest": on(POINTS, of_pcpo(_cheapest)),
    "l2-safer": on(SIX, _l2_safer),
    "l2-fluctuates": on(("point-circle", "ant-circle", "ant-gather"), _l2_fluctuates),
    "kl-steadier": on(SIX, _l2_fluctuates),
    "not-aligned": not_checkable("an explanation; whether L2 earns less is judged by l2-less-in-point-gather"),
    "ill-conditioned": not_checkable("a cause that may act; the claims cg-* judge it where the paper measured it"),
    "different-reward": on(SIX, _differ),
    "l2-more-in-ant-circle": together(_l2_over_in_ant_circle),
    "l2-less-in-point-gather": on(("point-gather",), functools.partial(_over, L2)),
    "pdo-fluctuates": on(("point-circle",), _pdo_fluctuates),
    "pdo-slow": on(POINTS, _pdo_slow),
    "pdo-rate": on(POINTS, _no_rate),
    "fpo-over-pdo": on(POINTS, _fpo_over_pdo),
    "no-tuning": not_checkable("the paper does not say how its own settings were found; ours are the paper's"),
    "three-and-a-half": functools.partial(_on_average, "summed", "cpo", KL, 3.5),
    "fifteen-percent": functools.partial(_on_average, "rewards", KL, "cpo", 1.15),
}
"""What judges each claim."""
