"""Judges of the claims in the paper's section on experiments (``sec:experiments``), and of those in its abstract."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pcpo.experiments.claims import evidence as say
from pcpo.experiments.claims.evidence import SHORT, Data, Stratum
from pcpo.experiments.claims.judges import KL, L2, POINTS, SIX, Judge, not_checkable, of_pcpo, on, together
from pcpo.experiments.claims.verdicts import (
    Judged,
    Verdict,
    agreed,
    alike,
    all_of,
    any_of,
    as_large_as,
    at_most,
    decided,
    is_missing,
    opposite,
    where_run,
)
from pcpo.experiments.statistics import Finding, Seeds, found, iqm, last_tenth, ratio, time_to_safety
from pcpo.experiments.suite.presets import EXPERIMENTS
from pcpo.training.statistics import Interval

_PREFIX = {"point-circle": "pc", "point-gather": "pg"}
_FEW, _FEW_MULTIPLIERS, _NEAR = 10.0, 2.0, 2.0
"""What we take "few policy updates", "significant effort" and, in parts of the limit, "near" to mean."""
_TENTH = 0.1
"""The part by which a number may be worse and still be "comparable"."""
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


def _more_above_in_traffic(mine: str, data: Data, task: str) -> Judged:
    """Compared with each point task over as many updates as both have: a part of them is above the limit."""
    parts: list[Judged] = []
    for point in POINTS:
        n = min(len(data.stratum(each, mine).costs) for each in (task, point))
        shares = [say.share_above(data, each, mine, n) for each in (task, point)]
        ends = " against ".join(f"{100.0 * float(iqm(share)):.0f} %" for share in shares)
        finding = found(lambda x, y: iqm(x) - iqm(y), *shares)
        where = f"{SHORT[task]} and {SHORT[point]} {_NAMED[mine]} above the limit in {ends} of {n} updates, more by"
        parts.append(decided(where, finding))
    return all_of(parts)


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
    usual = f"{_PREFIX[task]}-pdo-0.01"
    tried = [variant.name for variant in EXPERIMENTS["multipliers"].variants]
    tried = [name for name in tried if name.startswith(f"{_PREFIX[task]}-fpo-")]
    verdicts: dict[str, Verdict] = {}
    for name in tried:
        keeps = say.keeps_limit(data, "multipliers", name, "")
        earns = opposite(say.more_reward(data, "multipliers", usual, name, ""))
        verdicts[name.rpartition("-")[2]] = all_of([keeps, earns]).verdict
    good, unsure = (
        [value for value, verdict in verdicts.items() if verdict is wanted]
        for wanted in (Verdict.REPRODUCED, Verdict.UNDECIDED)
    )
    few = at_most(
        "", Finding(math.nan, Interval(float(len(good)), float(len(good) + len(unsure)))), _FEW_MULTIPLIERS
    ).verdict
    said = f"{len(good)} of {len(tried)} multipliers do ({', '.join(good) or 'none'})"
    return Judged(few, f"{SHORT[task]} {said}" + (f", and {', '.join(unsure)} may" if unsure else ""))


def _on_average(judge: Callable[[str, Data], Judged]) -> Judge:
    """A claim about the mean over the six tasks, for either projection, once all of them were run."""

    def of_all(data: Data) -> Judged:
        runs = [functools.partial(cpo_violates_more, mine, data, task) for mine in (KL, L2) for task in SIX]
        missing = [part for part in where_run(runs) if is_missing(part)]
        return missing[0] if missing else alike(judge(mine, data) for mine in (KL, L2))

    return of_all


def _less_violation(claimed: float, mine: str, data: Data) -> Judged:
    """CPO's violation over PCPO's, however violations are counted."""
    return agreed(
        as_large_as(
            f"CPO over {_NAMED[mine]} {word}, mean over six tasks x", _mean_ratio(data, "cpo", mine, kind), claimed
        )
        for kind, word in say.COUNTED.items()
    )


def _higher_reward(claimed: float, mine: str, data: Data) -> Judged:
    """A ratio of rewards means nothing where one of them is not above zero: then there is no answer."""
    finding = _mean_ratio(data, mine, "cpo", "rewards")
    return as_large_as(f"reward of {_NAMED[mine]} over CPO, mean over six tasks x", finding, claimed)


def _mean_ratio(data: Data, above: str, below: str, column: str) -> Finding:
    """The mean over the six tasks of a ratio of two rules' means over seeds, of the last numbers of a column."""
    ends = [_ends(stratum, column) for task in SIX for stratum in data.pair(task, above, below)]

    def positive_ratio(x: Any, y: Any) -> Any:
        known = np.minimum(x, y) > 0.0 if column == "rewards" else np.minimum(x, y) >= 0.0
        return np.where(known, ratio(x, y), np.nan)

    def mean_ratio(*values: Any) -> Any:
        pairs = zip(values[::2], values[1::2], strict=True)
        return sum(positive_ratio(x.mean(axis=-1), y.mean(axis=-1)) for x, y in pairs) / len(SIX)

    return found(mean_ratio, *ends)


def _ends(stratum: Stratum, column: str) -> Seeds:
    """What each seed ends with: the last of what was added up, the mean of the last tenth of rewards."""
    return last_tenth(stratum.rewards) if column == "rewards" else getattr(stratum, column)[-1]


def _comparable(mine: str, data: Data, task: str) -> Judged:
    """Neither reward nor violation is worse than CPO's by more than a tenth."""
    where = f"{SHORT[task]} {_NAMED[mine]} over CPO"
    reward = say.of_seeds(data, task, mine, "cpo", lambda s: last_tenth(s.rewards), lambda x, y: (x - y) / np.abs(y))
    violation = [
        decided(
            f"{SHORT[task]} CPO over {_NAMED[mine]} {word} x",
            say.times_in_all(data, task, "cpo", mine, kind),
            1.0 - _TENTH,
        )
        for kind, word in say.COUNTED.items()
    ]
    return all_of([decided(f"{where} relative reward", reward, -_TENTH), agreed(violation)])


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
    "traffic-is-harder": on(("grid", "bottleneck"), of_pcpo(_more_above_in_traffic)),
    "equal-reward-grid": _as_cheap("grid", 1.0 / (1.0 - 0.8515)),
    "equal-reward-bottleneck": _as_cheap("bottleneck", 5.42),
    "traffic-why": not_checkable("a cause; whether there is more violation is judged by traffic-is-harder"),
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
    "comparable": on(SIX, of_pcpo(_comparable)),
    "three-and-a-half": _on_average(functools.partial(_less_violation, 3.5)),
    "fifteen-percent": _on_average(functools.partial(_higher_reward, 1.15)),
}
"""What judges each claim."""
