"""Judges of the claims in the paper's appendix, from ``appendix:additionalExperiment`` on."""

import functools
from collections.abc import Mapping
from typing import Any

from pcpo.experiments.claims import evidence as say
from pcpo.experiments.claims.evidence import SHORT, Data, of_seeds
from pcpo.experiments.claims.judges import KL, L2, POINTS, SIX, Judge, not_checkable, of_pcpo, on, together
from pcpo.experiments.claims.main_section import cpo_violates_more
from pcpo.experiments.claims.verdicts import Judged, Verdict, agreed, all_of, any_of, decided, opposite
from pcpo.experiments.statistics import found, iqm, last_tenth, ratio, time_to_reach

_PREFIX = {"point-circle": "pc", "point-gather": "pg"}
_NAMED = {KL: "KL", L2: "L2"}
_ILL = 1e3
"""The condition number from which on we call H ill-conditioned: where float32 CG begins to lose digits it needs."""
_SLIGHT = 0.1
"""The relative difference of final rewards below which an effect is not significant."""


def _variant(task: str, name: str) -> str:
    return f"{_PREFIX[task]}-{name}"


# CPO without line search.


def _search_spread(data: Data, task: str) -> Judged:
    pair = (_variant(task, "cpo-without-0.01"), _variant(task, "cpo-0.01"))
    return say.spread_more(data, "line-search", *pair, f"{SHORT[task]} spread of the reward over seeds", "rewards")


def _search_stabilizes(data: Data, task: str) -> Judged:
    without, with_ = data.pair("line-search", *(_variant(task, name) for name in ("cpo-without-0.01", "cpo-0.01")))
    return say.fluctuates_more(
        without.rewards, with_.rewards, f"{SHORT[task]} fluctuation of the reward, without over with,"
    )


def _search_later(data: Data, task: str) -> Judged:
    pair = (_variant(task, "cpo-0.01"), _variant(task, "cpo-without-0.01"))
    return say.later_safe(data, "line-search", *pair, f"{SHORT[task]} with over without")


def _search_smaller(data: Data, task: str) -> Judged:
    without, with_ = (
        data.run("line-search", _variant(task, name)).column("kl") for name in ("cpo-without-0.01", "cpo-0.01")
    )
    finding = found(lambda x, y: ratio(iqm(x), iqm(y)), without.mean(axis=0), with_.mean(axis=0))
    return decided(f"{SHORT[task]} mean KL without over with x", finding, 1.0)


def _search_insignificant(data: Data, task: str) -> Judged:
    """The interval of the relative difference of final rewards at the small delta lies within a tenth of zero."""
    pair = (_variant(task, "cpo-without-0.0001"), _variant(task, "cpo-0.0001"))

    def relative(x: Any, y: Any) -> Any:
        return x / y - 1.0

    finding = of_seeds(data, "line-search", *pair, lambda s: last_tenth(s.rewards), relative)
    said = f"{SHORT[task]} reward without over with - 1: {finding}"
    if finding.interval is None:
        return Judged(Verdict.UNDECIDED, said)
    low, high = finding.interval
    if -_SLIGHT <= low and high <= _SLIGHT:
        return Judged(Verdict.REPRODUCED, said)
    return Judged(Verdict.NOT_REPRODUCED if low > _SLIGHT or high < -_SLIGHT else Verdict.UNDECIDED, said)


# Harder constraints, smaller batches.


def _better(experiment: str, mine: str, data: Data, task: str) -> Judged:
    """PCPO ends with more reward than CPO, and has violated less."""
    pcpo, cpo = _variant(task, mine), _variant(task, "cpo")
    return all_of(
        [
            say.more_reward(data, experiment, pcpo, cpo, f"{SHORT[task]} {_NAMED[mine]} over CPO"),
            say.more_violation(data, experiment, cpo, pcpo, f"{SHORT[task]} violation, CPO over {_NAMED[mine]},"),
        ]
    )


def _more_recovery(data: Data, task: str) -> Judged:
    """A larger part of CPO's updates are recovery steps than of the same updates of the task as it is."""
    hard = data.run("harder", _variant(task, "cpo"))
    usual = data.run(task, "cpo")
    n = min(len(hard.updates), len(usual.updates))
    shares = [say.share_of(run, ("recovery",), n) for run in (hard, usual)]
    finding = found(lambda x, y: iqm(x) - iqm(y), *shares)
    ends = " against ".join(f"{100.0 * iqm(share):.0f} %" for share in shares)
    return decided(f"{SHORT[task]} recovery steps {ends} of {n} updates, more by", finding)


def _only_kl(data: Data, task: str) -> Judged:
    """KL keeps the limit, and each other rule that considers it breaks it or earns less."""
    names = {rule: _variant(task, rule) for rule in (KL, L2, "cpo")}
    parts = [say.keeps_limit(data, "harder", names[KL], f"{SHORT[task]} KL")]
    for rule in (L2, "cpo"):
        breaks = opposite(say.keeps_limit(data, "harder", names[rule], f"{SHORT[task]} {rule}"))
        less = say.more_reward(data, "harder", names[KL], names[rule], f"{SHORT[task]} KL over {rule}")
        parts.append(any_of([breaks, less]))
    return all_of(parts)


def _hard_spread(data: Data, task: str) -> Judged:
    where = f"{SHORT[task]} spread of the cost over seeds, L2 over KL"
    return say.spread_more(data, "harder", _variant(task, L2), _variant(task, KL), where, "costs")


def _fluctuates_more(data: Data, task: str) -> Judged:
    """The small batch against the whole one, for PCPO-KL, over as many updates as both have."""
    small, usual = data.stratum("small-batch", _variant(task, KL)), data.stratum(task, KL)
    n = min(len(small.rewards), len(usual.rewards))
    parts = []
    for column in ("rewards", "costs"):
        mine, others = (getattr(stratum, column)[:n] for stratum in (small, usual))
        parts.append(say.fluctuates_more(mine, others, f"{SHORT[task]} fluctuation of {column}"))
    return all_of(parts)


def _small_quick(mine: str, data: Data, task: str) -> Judged:
    """Judged by the time to safety, as "fastest" is; the first ten updates within the limit are told beside it."""
    pair = (_variant(task, "cpo"), _variant(task, mine))
    where = f"{SHORT[task]} CPO and {_NAMED[mine]}"
    verdict, said = say.later_safe(data, "small-batch", *pair, where)
    reached = say.later_safe(data, "small-batch", *pair, "within it", time_to_reach, "for ten updates")
    return Judged(verdict, f"{said} ({reached.evidence})")


# Conjugate gradient on Grid.


def _grid_cost(data: Data, a: str, b: str) -> Judged:
    """Whether A ends with more cost than B, and has violated more in all."""
    return agreed([say.more_cost(data, "cg", a, b, "Gr"), say.more_violation(data, "cg", a, b, "Gr in all")])


def _ill_conditioned(data: Data) -> Judged:
    condition = data.run("cg", "pcpo-kl-10").column("condition")
    medians = say.median_of_known(condition)
    return decided(f"median condition number, {_ILL:g} is asked;", found(iqm, medians), _ILL)


def _less_error(data: Data) -> Judged:
    name = "cg_residuals.cost"
    values = [say.median_of_known(data.run("cg", f"pcpo-kl-{n}").column(name)) for n in (10, 20)]
    finding = found(lambda x, y: iqm(x) - iqm(y), *values)
    said = "median relative residual of H x = a (the error of H^-1 a itself is not recorded), 10 over 20 iterations by"
    return decided(said, finding)


# Over all tasks.


def _kl_in_all(data: Data, task: str) -> Judged:
    return say.more_violation(data, task, KL, L2, f"{SHORT[task]} KL over L2")


def _l2_in_all(data: Data, task: str) -> Judged:
    return say.more_violation(data, task, L2, KL, f"{SHORT[task]} L2 over KL")


def _richer(mine: str, data: Data, task: str) -> Judged:
    return say.richer_at_equal_violation(data, task, mine, "cpo", f"{SHORT[task]} {_NAMED[mine]} over CPO")


def _hard_optimum(data: Data, task: str) -> Judged:
    return say.more_reward(data, "harder", _variant(task, KL), _variant(task, L2), f"{SHORT[task]} KL over L2")


def _trpo_earns_more(data: Data) -> Judged:
    return say.more_reward(data, "cg", "trpo", "pcpo-kl-10", "Gr TRPO over KL")


JUDGES: Mapping[str, Judge] = {
    "cumulative-cpo": on(SIX, of_pcpo(cpo_violates_more)),
    "cumulative-l2": together(on(SIX[2:], _kl_in_all), on(POINTS, _l2_in_all)),
    "not-well-estimated": not_checkable("a suggested cause; the claims cg-* judge what can be measured of it"),
    "reward-at-equal-violation": on(tuple(task for task in SIX if task != "grid"), of_pcpo(_richer)),
    "search-spread": on(POINTS, _search_spread),
    "search-stabilizes": on(POINTS, _search_stabilizes),
    "search-faster": on(POINTS, _search_later),
    "search-smaller": on(POINTS, _search_smaller),
    "search-insignificant": on(POINTS, _search_insignificant),
    "harder-better": on(POINTS, of_pcpo(functools.partial(_better, "harder"))),
    "harder-recovery": on(POINTS, _more_recovery),
    "harder-only-kl": on(POINTS, _only_kl),
    "harder-l2-spread": on(POINTS[:1], _hard_spread),
    "harder-l2-optimum": on(POINTS[1:], _hard_optimum),
    "small-fluctuates": on(POINTS, _fluctuates_more),
    "small-better": on(POINTS, of_pcpo(functools.partial(_better, "small-batch"))),
    "small-quick": on(POINTS, of_pcpo(_small_quick)),
    "cg-reward": together(_trpo_earns_more),
    "cg-constraint": together(lambda data: _grid_cost(data, "pcpo-kl-10", "trpo")),
    "cg-condition": together(_ill_conditioned),
    "cg-cause": not_checkable("a cause; the claims around it judge what can be measured of it"),
    "cg-error": together(_less_error),
    "cg-satisfaction": together(lambda data: _grid_cost(data, "pcpo-kl-10", "pcpo-kl-20")),
}
"""What judges each claim."""
