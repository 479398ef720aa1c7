r"""What is said of a few seeds: the middle of them, an interval, and comparisons that are made the same way for all.

Arrays have one row per update and one column per seed. Nothing is left out: a seed that is not a number makes the
answer not a number, and one seed has no interval, since it says nothing about others.

**The interval** is a percentile interval of the stratified bootstrap (Agarwal et al., 2021, "Deep reinforcement
learning at the edge of the statistical precipice"): each stratum (the seeds of one rule on one task) is drawn from anew
with replacement, and the whole statistic is computed again. With five seeds such intervals are too narrow rather than
too wide; what an interval leaves open is open.

**Violation at equal reward**, the same for every pair of rules A and B on one task:

1. Reward curves are means over seeds, then means over the ten updates up to and including each one (fewer at first).
2. A and B both begin at some reward and reach some highest reward. The *level* is the lower of the two highest ones, so
   both have reached it: the end of the improvement that they have in common. It has to lie above both beginnings;
   otherwise there is no such improvement, and no answer. (With ``share`` 0.5 it is the middle of that improvement.)
3. The *price* of each is its cumulative violation, a mean over seeds, up to and including the first update whose reward
   curve has reached the level.
4. The answer is the price of B over the price of A: how many times the violation of A it takes B to earn the same.

"66 times less" is such a ratio, and "85.15 % less" is 1 - 1 / ratio. Violation is counted twice over, as the sum of J_C
and as the sum of its excess over the limit, because the paper does not say which it means.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from pcpo.training.statistics import Interval, interquartile_mean

Table: TypeAlias = Float[np.ndarray, "n seeds"]
Seeds: TypeAlias = Float[np.ndarray, " seeds"]
Bill: TypeAlias = tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]
"""Rewards of one rule, and its cumulative violations (`summed` or `excess`), both ``[n, seeds]``."""

WINDOW = 10
"""Updates over which a curve is averaged."""
RESAMPLES = 1000
_MOST_UNDEFINED = 0.025
"""The part of the draws that may have no answer for there still to be an interval."""


class Finding(NamedTuple):
    """A number with its interval, if it has one."""

    value: float
    interval: Interval | None = None

    def __str__(self) -> str:
        """Three digits, and the interval in brackets."""
        if self.interval is None:
            return f"{self.value:.3g}"
        return f"{self.value:.3g} ({self.interval.low:.3g} to {self.interval.high:.3g})"


# The middle and the interval.


def iqm(values: Seeds) -> float:
    """Interquartile mean: the mean of the middle half of the seeds; not-a-number if any of them is.

    Example:
        >>> iqm(np.array([0.0, 1.0, 2.0, 3.0, 100.0]))
        2.0
    """
    sample = np.asarray(values, np.float64)
    if np.isnan(sample).any():
        return math.nan
    return interquartile_mean(sample)


def found(statistic: Callable[..., float], *strata: Any, resamples: int = RESAMPLES, seed: int = 0) -> Finding:
    """A statistic of some strata with its 95 % interval, see the module.

    Args:
        statistic: Of arrays whose last axis is seeds, one for each stratum.
        *strata: The arrays; those of one stratum that belong together, such as rewards and violations of the same runs,
            are given as a tuple and reach the statistic as one.
        resamples: How often seeds are drawn anew.
        seed: Of the draws: the same one gives the same interval.

    Returns:
        Without an interval where a stratum has one seed, or where too many draws have no answer.

    Raises:
        ValueError: If a stratum has no seeds.
    """
    counts = [_seeds_of(stratum) for stratum in strata]
    if not strata or min(counts) == 0:
        raise ValueError("a stratum has no seeds; pass at least one")
    value = float(statistic(*strata))
    if min(counts) < 2 or math.isnan(value):
        return Finding(value)
    random = np.random.default_rng(seed)
    draws = [random.integers(count, size=(resamples, count)) for count in counts]
    answers = np.array(
        [
            statistic(*(_chosen(stratum, draw[i]) for stratum, draw in zip(strata, draws, strict=True)))
            for i in range(resamples)
        ]
    )
    known = answers[~np.isnan(answers)]
    if known.size < (1.0 - _MOST_UNDEFINED) * resamples:
        return Finding(value)
    low, high = np.quantile(known, [0.025, 0.975], method="nearest")  # an infinite answer must not be interpolated
    return Finding(value, Interval(float(low), float(high)))


def _seeds_of(stratum: Any) -> int:
    return stratum[0].shape[-1] if isinstance(stratum, tuple) else stratum.shape[-1]


def _chosen(stratum: Any, seeds: Any) -> Any:
    if isinstance(stratum, tuple):
        return tuple(part[..., seeds] for part in stratum)
    return stratum[..., seeds]


def ratio(above: float, below: float) -> float:
    """A quotient of numbers that are not negative: infinite over zero, and not a number where both are zero.

    Example:
        >>> ratio(6.0, 3.0), ratio(1.0, 0.0), ratio(0.0, 0.0)
        (2.0, inf, nan)
    """
    if below == 0.0:
        return math.nan if above == 0.0 or math.isnan(above) else math.inf
    return above / below


# Curves.


def smoothed(curve: Any) -> Any:
    """The mean over the ten updates up to and including each one; over those there are, at the start.

    Example:
        >>> smoothed(np.array([4.0, 2.0, 0.0])).tolist()
        [4.0, 3.0, 2.0]
    """
    sums = np.cumsum(np.asarray(curve, np.float64), axis=0)
    lagged = np.concatenate([np.zeros_like(sums[:WINDOW]), sums[:-WINDOW]])[: len(sums)]
    counts = np.minimum(np.arange(1, len(sums) + 1), WINDOW)
    return (sums - lagged) / (counts if sums.ndim == 1 else counts[:, None])


def last_tenth(values: Table) -> Seeds:
    """Each seed's mean over the last tenth of its updates."""
    return values[-max(1, math.ceil(0.1 * len(values))) :].mean(axis=0)


def summed(costs: Table) -> Table:
    """The sum of J_C over the updates so far: the paper's cumulative constraint value."""
    return np.cumsum(costs, axis=0)


def excess(costs: Table, limit: float) -> Table:
    """The sum over the updates so far of what J_C has above its limit."""
    return np.cumsum(np.maximum(costs - limit, 0.0), axis=0)


def violation_at_equal_reward(a: Bill, b: Bill, share: float = 1.0) -> float:
    """How many times the violation of A it takes B to earn the same; see the module.

    Args:
        a: Of the rule in whose units it is counted.
        b: Of the other one.
        share: Which part of the common improvement is asked for, above 0 and at most 1.

    Returns:
        Not-a-number where there is no common improvement, or where neither has violated anything.
    """
    curves = [smoothed(rewards.mean(axis=1)) for rewards, _ in (a, b)]
    start, top = max(float(curve[0]) for curve in curves), min(float(curve.max()) for curve in curves)
    if not top > start:  # also where one is not a number
        return math.nan
    level = start + share * (top - start)
    prices = [
        float(violations.mean(axis=1)[int(np.argmax(curve >= level))])
        for curve, (_, violations) in zip(curves, (a, b), strict=True)
    ]
    return ratio(prices[1], prices[0])


def reward_at_equal_violation(a: Bill, b: Bill) -> float:
    """How much more reward A has than B for the same violation.

    Both have spent the lower of the two final cumulative violations (means over seeds); what each has earned is the
    highest reward that its curve, as in `violation_at_equal_reward`, had reached before it had spent more.

    Args:
        a: Of one rule.
        b: Of the other one.
    """
    spent = [violations.mean(axis=1) for _, violations in (a, b)]
    common = min(float(each[-1]) for each in spent)
    earned = []
    for (rewards, _), each in zip((a, b), spent, strict=True):
        within = smoothed(rewards.mean(axis=1))[each <= common]
        earned.append(float(within.max()) if within.size else math.nan)
    return earned[0] - earned[1]


def time_to_safety(costs: Table, bound: float) -> Seeds:
    """The update from which on each seed has kept a bound.

    That is the first one whose own cost is at most the bound, and so is each mean over ten updates in a row from there
    to the end. Infinite where there is none; not-a-number for a run of fewer than ten updates, of which nothing can be
    said.

    Args:
        costs: One column per seed.
        bound: A limit with what is tolerated above it.
    """
    if len(costs) < WINDOW:
        return np.full(costs.shape[1], math.nan)
    windows = np.lib.stride_tricks.sliding_window_view(costs, WINDOW, axis=0).mean(axis=-1)
    times = np.full(costs.shape[1], math.inf)
    for seed in range(costs.shape[1]):
        broken = np.flatnonzero(~(windows[:, seed] <= bound))
        after = int(broken[-1]) + 1 if broken.size else 0
        kept = np.flatnonzero(costs[after : len(windows), seed] <= bound)
        if kept.size:
            times[seed] = after + int(kept[0])
    return times


def fluctuation(values: Table) -> Seeds:
    """How much each seed's curve jumps: the standard deviation of its second half around a straight line.

    In parts of the mean size of that half, so that rules of different reward can be compared; the line takes out what
    is improvement and no fluctuation.
    """
    half = values[len(values) // 2 :]
    places = np.arange(len(half), dtype=np.float64)
    centred = places - places.mean()
    slopes = centred @ half / max(float(centred @ centred), 1e-300)
    rest = half - half.mean(axis=0) - centred[:, None] * slopes
    size = np.abs(half).mean(axis=0)
    return np.where(size > 0.0, rest.std(axis=0) / np.where(size > 0.0, size, 1.0), 0.0)
