"""What the results say, in the terms that claims are made in."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcpo.experiments.claims.verdicts import Judged, NotRunError, agreed, as_large_as, at_most, decided, different
from pcpo.experiments.series import Series
from pcpo.experiments.statistics import (
    Bill,
    Finding,
    Seeds,
    Table,
    excess,
    fluctuation,
    found,
    found_of_means,
    iqm,
    last_tenth,
    ratio,
    relative_fluctuation,
    reward_at_equal_violation,
    summed,
    time_to_safety,
    violation_at_equal_reward,
)
from pcpo.experiments.suite import results
from pcpo.experiments.suite.presets import EXPERIMENTS

SHORT = {
    "point-circle": "PC",
    "point-gather": "PG",
    "ant-circle": "AC",
    "ant-gather": "AG",
    "grid": "Gr",
    "bottleneck": "BN",
}
"""The tasks of the paper, and its own abbreviations."""
ENOUGH = 0.5
"""Part of its updates that an experiment must have for a claim about it to be decided."""
COUNTED = {"summed": "J_C", "excess": "excess"}
"""Both ways of adding violations up: as the sum of J_C, and of what it has above its limit."""
TOLERANCE = 0.1
"""Part of a limit by which a mean cost may exceed it and still keep it: about what the noise of a batch amounts to."""
TOLERANCE_OF_ZERO = 0.05
"""Where the limit is zero, the part of the cost before the first update that may be left."""


class Stratum(NamedTuple):
    """The seeds of one rule on one task: rewards, costs, and both ways of adding violations up."""

    rewards: Table
    costs: Table
    summed: Table
    excess: Table

    def first(self, updates: int) -> "Stratum":
        """The same, of the first updates only."""
        return Stratum(*(table[:updates] for table in self))


class Data:
    """The results of all experiments, read when they are first asked for.

    Args:
        directory: Where a directory for each experiment is.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked: dict[tuple[str, str], tuple[int, int]] = {}
        """Updates and seeds of every run that was asked for since this was last emptied."""
        self._runs: dict[str, dict[str, Series]] = {}
        self._pieces: dict[str, list[results.Piece]] = {}

    def run(self, experiment: str, variant: str) -> Series:
        """The measurements of a variant.

        Raises:
            NotRunError: If there are none that were made with its settings.
        """
        if experiment not in self._runs:
            self._runs[experiment] = self._read(experiment)
        if variant not in self._runs[experiment]:
            raise NotRunError(f"{experiment} ({variant})" if self._runs[experiment] else experiment)
        found_ = self._runs[experiment][variant]
        self.asked[experiment, variant] = len(found_.updates), len(found_.seeds)
        return found_

    def pieces(self, experiment: str) -> list[results.Piece]:
        """The pieces of work that were made with the settings of their variants: no tries."""
        if experiment not in self._pieces:
            variants = {variant.name: variant for variant in EXPERIMENTS[experiment].variants}
            self._pieces[experiment] = [
                piece
                for piece in results.read(self.directory / experiment)
                if piece.variant in variants and results.same(piece, variants[piece.variant].config(piece.seeds, 1))
            ]
        return self._pieces[experiment]

    def _read(self, experiment: str) -> dict[str, Series]:
        pieces = self.pieces(experiment)
        names = dict.fromkeys(piece.variant for piece in pieces)
        return {name: results.series_of([piece for piece in pieces if piece.variant == name]) for name in names}

    def stratum(self, experiment: str, variant: str) -> Stratum:
        """What statistics need of a variant; costs of several constraints are added up."""
        run = self.run(experiment, variant)
        costs = sum((run.column(f"costs.{name}") for name in run.cost_names), np.zeros(()))
        above = [excess(run.column(f"costs.{name}"), float(run.limits[name][0])) for name in run.cost_names]
        return Stratum(run.column("discounted_return"), costs, summed(costs), sum(above, np.zeros(())))

    def pair(self, experiment: str, a: str, b: str) -> tuple[Stratum, Stratum]:
        """Two variants, over as many updates as both have: ends of runs of different lengths are not compared."""
        strata = self.stratum(experiment, a), self.stratum(experiment, b)
        n = min(len(stratum.rewards) for stratum in strata)
        return strata[0].first(n), strata[1].first(n)

    def short(self) -> list[str]:
        """Which experiments that were asked for have less than half of their updates or seeds yet, in words."""
        told: list[str] = []
        for name in dict.fromkeys(experiment for experiment, _ in self.asked):
            amounts = [amount for (experiment, _), amount in self.asked.items() if experiment == name]
            updates, seeds = (min(each) for each in zip(*amounts, strict=True))
            scale = EXPERIMENTS[name].scale
            for count, wanted, word in ((updates, scale.updates, "updates"), (seeds, scale.seeds, "seeds")):
                if count < ENOUGH * wanted:
                    told.append(f"{name} {count:,} of {wanted:,} {word}")
        return told

    def limit(self, experiment: str, variant: str) -> float:
        """The limit of the only cost."""
        run = self.run(experiment, variant)
        return float(run.limits[run.cost_names[0]][0])

    def bound(self, experiment: str, variant: str) -> float:
        """The limit with what is tolerated above it."""
        run, limit = self.run(experiment, variant), self.limit(experiment, variant)
        first = float(run.column(f"costs.{run.cost_names[0]}")[0].mean())
        return limit * (1.0 + TOLERANCE) if limit > 0.0 else TOLERANCE_OF_ZERO * first


# Comparisons of two variants of one experiment. All are made so that "larger than neutral" is what is claimed.


def of_seeds(
    data: Data, experiment: str, a: str, b: str, measure: Callable[[Stratum], Seeds], compare: Callable[[Any, Any], Any]
) -> Finding:
    """Two variants compared by the interquartile means of a number that each seed has."""
    mine, others = (measure(stratum) for stratum in data.pair(experiment, a, b))
    return found(lambda x, y: compare(iqm(x), iqm(y)), mine, others)


def of_bills(data: Data, experiment: str, a: str, b: str, kind: str, statistic: Callable[[Bill, Bill], Any]) -> Finding:
    """A statistic of the mean rewards and the mean cumulative violations of two variants."""
    strata = data.pair(experiment, a, b)
    return found_of_means(statistic, *((stratum.rewards, getattr(stratum, kind)) for stratum in strata))


def times_in_all(data: Data, experiment: str, a: str, b: str, kind: str) -> Finding:
    """How many times the violation of B A has gathered in all: a ratio of means over seeds."""
    mine, others = (getattr(stratum, kind)[-1] for stratum in data.pair(experiment, a, b))
    return found(lambda x, y: ratio(x.mean(axis=-1), y.mean(axis=-1)), mine, others)


def more_violation(data: Data, experiment: str, a: str, b: str, where: str) -> Judged:
    """Whether A has violated more than B in all, however violations are counted: a ratio of means above 1."""
    return agreed(
        decided(f"{where} {word} x", times_in_all(data, experiment, a, b, kind), 1.0) for kind, word in COUNTED.items()
    )


def dearer_at_equal_reward(
    data: Data, experiment: str, a: str, b: str, where: str, claimed: float | None = None
) -> Judged:
    """Whether B takes more violation than A for the same reward; with ``claimed``, whether it takes as much as that.

    Two ratios that decide nothing are told beside it: half way to that reward, where the paper names a number, and of
    all updates, where the two have no reward in common.
    """
    parts: list[Judged] = []
    for kind, word in COUNTED.items():
        finding, name = of_bills(data, experiment, a, b, kind, violation_at_equal_reward), f"{where} {word} x"
        verdict, said = decided(name, finding, 1.0) if claimed is None else as_large_as(name, finding, claimed)
        half = of_bills(data, experiment, a, b, kind, functools.partial(violation_at_equal_reward, share=0.5))
        if math.isnan(finding.value):
            said += f" (in all updates x {times_in_all(data, experiment, b, a, kind)})"
        elif claimed is not None and not math.isnan(half.value):
            said += f" (half way to that reward x {half})"
        parts.append(Judged(verdict, said))
    return agreed(parts)


def richer_at_equal_violation(data: Data, experiment: str, a: str, b: str, where: str) -> Judged:
    """Whether A has more reward than B for the same violation."""
    return agreed(
        decided(f"{where} at equal {word} by", of_bills(data, experiment, a, b, kind, reward_at_equal_violation))
        for kind, word in COUNTED.items()
    )


def more_reward(data: Data, experiment: str, a: str, b: str, where: str) -> Judged:
    """Whether A ends with more reward than B."""
    finding = of_seeds(data, experiment, a, b, lambda s: last_tenth(s.rewards), lambda x, y: x - y)
    return decided(f"{where} final reward by", finding)


def more_cost(data: Data, experiment: str, a: str, b: str, where: str) -> Judged:
    """Whether A ends with more cost than B."""
    finding = of_seeds(data, experiment, a, b, lambda s: last_tenth(s.costs), lambda x, y: x - y)
    return decided(f"{where} final cost by", finding)


def other_reward(data: Data, experiment: str, a: str, b: str, where: str) -> Judged:
    """Whether A and B end with different rewards."""
    finding = of_seeds(data, experiment, a, b, lambda s: last_tenth(s.rewards), lambda x, y: x - y)
    return different(f"{where} final reward by", finding)


def later_safe(
    data: Data,
    experiment: str,
    a: str,
    b: str,
    where: str,
    measure: Callable[[Table, float], Seeds] = time_to_safety,
    word: str = "safe",
) -> Judged:
    """Whether A keeps the limit only later than B; a seed that never does is counted as if after the last update."""
    bound = data.bound(experiment, b)

    def times(stratum: Stratum) -> Seeds:
        return np.minimum(measure(stratum.costs, bound), float(len(stratum.costs)))

    finding = of_seeds(data, experiment, a, b, times, lambda x, y: x - y)
    said = " and ".join(since(measure(stratum.costs, bound)) for stratum in data.pair(experiment, a, b))
    return decided(f"{where} {word} {said}, later by", finding)


def since(times: Seeds) -> str:
    """From which update on, in the middle of the seeds; where some are never there, how many, for a middle would lie.

    Example:
        >>> since(np.array([2.0, 3.0, np.inf])), since(np.array([2.0, 4.0]))
        ('never in 1 of 3 seeds', 'from 3')
    """
    never = int(np.isinf(times).sum())
    if never:
        return "never" if never == len(times) else f"never in {never} of {len(times)} seeds"
    middle = float(iqm(times))
    return "(too short to say)" if math.isnan(middle) else f"from {middle:.3g}"


def keeps_limit(data: Data, experiment: str, variant: str, where: str) -> Judged:
    """Whether a variant ends within what is tolerated of its limit."""
    finding = found(iqm, last_tenth(data.stratum(experiment, variant).costs))
    return at_most(f"{where} final cost", finding, data.bound(experiment, variant))


def improves(data: Data, experiment: str, variant: str, where: str) -> Judged:
    """Whether a variant ends with more reward than it began with."""
    rewards = data.stratum(experiment, variant).rewards
    return decided(f"{where} reward gained", found(iqm, last_tenth(rewards) - rewards[0]))


def fluctuates_more(mine: Table, others: Table, where: str) -> Judged:
    """Whether some curves jump more than others, in themselves and in parts of their size: ratios above 1."""
    parts: list[Judged] = []
    for measure, word in ((fluctuation, ""), (relative_fluctuation, "relative to its size ")):
        finding = found(lambda x, y: ratio(iqm(x), iqm(y)), measure(mine), measure(others))
        parts.append(decided(f"{where} {word}x", finding, 1.0))
    return agreed(parts)


def spread_more(data: Data, experiment: str, a: str, b: str, where: str, column: str) -> Judged:
    """Whether seeds of A differ more than those of B, over all updates: a ratio of standard deviations above 1."""

    def moments(stratum: Stratum) -> tuple[Table, Table]:
        """Of the differences from the mean over all seeds, since squares of large numbers would swallow them."""
        table = getattr(stratum, column)
        centred = table - table.mean(axis=1, keepdims=True)
        return centred, centred**2

    def deviation(curves: tuple[Any, Any]) -> Any:
        first, second = curves
        return np.sqrt(np.maximum(second - first**2, 0.0)).mean(axis=0)

    def times(x: tuple[Any, Any], y: tuple[Any, Any]) -> Any:
        above, below = deviation(x), deviation(y)
        tiny = 1e-6 * np.maximum(above.max(), below.max())  # draws of one seed only: nothing differs but by rounding
        return np.where(np.minimum(above, below) > tiny, ratio(above, below), np.nan)

    return decided(
        f"{where} x", found_of_means(times, *(moments(stratum) for stratum in data.pair(experiment, a, b))), 1.0
    )


def share_above(data: Data, experiment: str, variant: str, updates: int) -> Seeds:
    """Which part of each seed's first updates had more cost than is tolerated."""
    above = data.stratum(experiment, variant).costs[:updates] > data.bound(experiment, variant)
    return above.mean(axis=0)


def share_of(run: Series, statuses: tuple[str, ...], updates: int) -> Seeds:
    """Which part of each seed's first updates ended with one of some statuses."""
    told = run.statuses[:updates]
    return np.array([[status in statuses for status in of_update] for of_update in told], float).mean(axis=0)


def median_of_known(values: Table) -> Seeds:
    """Each seed's median of a number that is not there for every update; not-a-number where it never is."""
    return np.array([np.median(kept) if (kept := row[np.isfinite(row)]).size else np.nan for row in values.T])
