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

from pcpo.training.statistics import Interval

Table: TypeAlias = Float[np.ndarray, "n seeds"]
Seeds: TypeAlias = Float[np.ndarray, " seeds"]
Numbers: TypeAlias = Float[np.ndarray, "..."]
Bill: TypeAlias = tuple[Numbers, Numbers]
"""A reward curve and a curve of cumulative violations (`summed` or `excess`), both means over seeds: updates first, and
then, if at all, the draws of a bootstrap."""

WINDOW = 10
"""Updates over which a curve is averaged."""
RESAMPLES = 1000
"""How often the seeds are drawn anew."""
_SEED = 0
_MOST_UNDEFINED = 0.025
"""The part of the draws that may have no answer for there still to be an interval."""


class Finding(NamedTuple):
    """A number with its interval, if it has one."""

    value: float
    interval: Interval | None = None

    def __str__(self) -> str:
        """Three digits, and the interval in brackets."""
        if self.interval is None:
            return three_digits(self.value)
        return f"{three_digits(self.value)} ({three_digits(self.interval.low)} to {three_digits(self.interval.high)})"


def three_digits(number: float) -> str:
    """A number rounded to three digits, without powers of ten where it is not very large or small.

    Example:
        >>> [three_digits(number) for number in (0.12345, 12.345, 12345.0, math.inf)]
        ['0.123', '12.3', '12,300', 'inf']
    """
    if 1000.0 <= abs(number) < 1e9:
        return f"{float(f'{number:.3g}'):,.0f}"
    return f"{number:.3g}"


# The middle and the interval. Statistics work on all draws at once.


def iqm(values: Numbers) -> Any:
    """Interquartile mean over the last axis: the mean of the middle half of the seeds; not-a-number if any of them is.

    A quarter of the seeds, rounded down, is left out at each end.

    Example:
        >>> float(iqm(np.array([0.0, 1.0, 2.0, 3.0, 100.0])))
        2.0
    """
    ordered = np.sort(values, axis=-1)
    cut = values.shape[-1] // 4
    middle = ordered[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return np.where(np.isnan(values).any(axis=-1), np.nan, middle)


def found(statistic: Callable[..., Any], *strata: Numbers) -> Finding:
    """A statistic of numbers that each seed has, with its 95 % interval; see the module.

    Args:
        statistic: Takes an array for each stratum, draws by seeds, and gives an answer for each draw.
        *strata: One number per seed.

    Returns:
        Without an interval where a stratum has one seed, or where too many draws have no answer.

    Raises:
        ValueError: If a stratum has no seeds.
    """
    return _found(statistic, [values.shape[-1] for values in strata], lambda i, drawn: strata[i][drawn])


def found_of_means(statistic: Callable[..., Any], *strata: tuple[Numbers, ...]) -> Finding:
    """The same for a statistic of curves that are means over seeds.

    Args:
        statistic: Takes for each stratum a tuple of curves, updates by draws, and gives an answer for each draw.
        *strata: Tables, updates by seeds, of which a seed has one column each: they stay together when it is drawn.

    Raises:
        ValueError: If a stratum has no seeds.
    """

    def means(i: int, drawn: Any) -> tuple[Any, ...]:
        seeds = strata[i][0].shape[1]
        weights = np.stack([np.count_nonzero(drawn == seed, axis=1) for seed in range(seeds)]) / drawn.shape[1]
        return tuple(table @ weights for table in strata[i])

    return _found(statistic, [tables[0].shape[1] for tables in strata], means)


def _found(statistic: Callable[..., Any], counts: list[int], drawn: Callable[[int, Any], Any]) -> Finding:
    """The statistic of all seeds as they are, and its quantiles over draws."""
    if not counts or min(counts) == 0:
        raise ValueError("a stratum has no seeds; pass at least one")
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(*(drawn(i, np.arange(count)[None]) for i, count in enumerate(counts)))[0])
        if min(counts) < 2 or math.isnan(value):
            return Finding(value)
        random = np.random.default_rng(_SEED)
        draws = [random.integers(count, size=(RESAMPLES, count)) for count in counts]
        answers = statistic(*(drawn(i, draw) for i, draw in enumerate(draws)))
    known = answers[~np.isnan(answers)]
    if known.size < (1.0 - _MOST_UNDEFINED) * len(answers):
        return Finding(value)
    low, high = np.quantile(known, [0.025, 0.975], method="nearest")  # an infinite answer must not be interpolated
    return Finding(value, Interval(float(low), float(high)))


def ratio(above: Any, below: Any) -> Any:
    """A quotient of numbers that are not negative: infinite over zero, and not a number where both are zero.

    Example:
        >>> [float(ratio(x, y)) for x, y in ((6.0, 3.0), (1.0, 0.0), (0.0, 0.0))]
        [2.0, inf, nan]
    """
    above, below = np.asarray(above, np.float64), np.asarray(below, np.float64)
    safe = np.where(below == 0.0, 1.0, below)
    nothing = np.where(above > 0.0, np.inf, np.nan)
    return np.where(below == 0.0, nothing, above / safe)


# Curves.


def smoothed(curve: Numbers) -> Numbers:
    """The mean over the ten updates up to and including each one; over those there are, at the start.

    Example:
        >>> smoothed(np.array([4.0, 2.0, 0.0])).tolist()
        [4.0, 3.0, 2.0]
    """
    sums = np.cumsum(curve, axis=0)
    lagged = np.concatenate([np.zeros_like(sums[:WINDOW]), sums[:-WINDOW]])[: len(sums)]
    counts = np.minimum(np.arange(1, len(sums) + 1), WINDOW)
    return (sums - lagged) / counts.reshape(-1, *[1] * (sums.ndim - 1))


def last_tenth(values: Table) -> Seeds:
    """Each seed's mean over the last tenth of its updates."""
    return values[-max(1, math.ceil(0.1 * len(values))) :].mean(axis=0)


def summed(costs: Table) -> Table:
    """The sum of J_C over the updates so far: the paper's cumulative constraint value."""
    return np.cumsum(costs, axis=0)


def excess(costs: Table, limit: float) -> Table:
    """The sum over the updates so far of what J_C has above its limit."""
    return np.cumsum(np.maximum(costs - limit, 0.0), axis=0)


def violation_at_equal_reward(a: Bill, b: Bill, share: float = 1.0) -> Any:
    """How many times the violation of A it takes B to earn the same; see the module.

    Args:
        a: Of the rule in whose units it is counted.
        b: Of the other one.
        share: Which part of the common improvement is asked for, above 0 and at most 1.

    Returns:
        Not-a-number where there is no common improvement, or where neither has violated anything.
    """
    curves = [smoothed(rewards) for rewards, _ in (a, b)]
    start = np.maximum(*(curve[0] for curve in curves))
    top = np.minimum(*(curve.max(axis=0) for curve in curves))
    level = top - (1.0 - share) * (top - start)  # exactly the top where all of it is asked for, so that it is reached
    prices = [
        np.take_along_axis(violations, np.argmax(curve >= level, axis=0)[None], axis=0)[0]
        for curve, (_, violations) in zip(curves, (a, b), strict=True)
    ]
    return np.where(top > start, ratio(prices[1], prices[0]), np.nan)


def reward_at_equal_violation(a: Bill, b: Bill) -> Any:
    """How much more reward A has than B for the same violation.

    Both have spent the lower of the two final cumulative violations; what each has earned is the highest reward that
    its curve, as in `violation_at_equal_reward`, had reached before it had spent more, and at least what it began with.

    Args:
        a: Of one rule.
        b: Of the other one.
    """
    common = np.minimum(a[1][-1], b[1][-1])
    earned: list[Any] = []
    for rewards, violations in (a, b):
        within = violations <= common
        within[0] = True
        earned.append(np.where(within, smoothed(rewards), -np.inf).max(axis=0))
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


def time_to_reach(costs: Table, bound: float) -> Seeds:
    """The first update from which on each seed's mean over ten updates keeps a bound once, whatever comes later.

    Where batches are small, noise alone breaks a bound again and again, and `time_to_safety` says little.

    Args:
        costs: One column per seed.
        bound: A limit with what is tolerated above it.
    """
    if len(costs) < WINDOW:
        return np.full(costs.shape[1], math.nan)
    kept = np.lib.stride_tricks.sliding_window_view(costs, WINDOW, axis=0).mean(axis=-1) <= bound
    return np.where(kept.any(axis=0), kept.argmax(axis=0), math.inf)


def fluctuation(values: Table) -> Seeds:
    """How much each seed's curve jumps: the standard deviation of its second half around a straight line.

    The line takes out what is improvement and no fluctuation.
    """
    half = values[len(values) // 2 :]
    places = np.arange(len(half), dtype=np.float64)
    centred = places - places.mean()
    slopes = centred @ half / max(float(centred @ centred), 1e-300)
    rest = half - half.mean(axis=0) - centred[:, None] * slopes
    return rest.std(axis=0)


def relative_fluctuation(values: Table) -> Seeds:
    """The same in parts of the mean size of that half.

    A rule that earns less fluctuates more in these parts without jumping further: neither way alone says which of two
    rules is steadier.
    """
    size = np.abs(values[len(values) // 2 :]).mean(axis=0)
    return np.where(size > 0.0, fluctuation(values) / np.where(size > 0.0, size, 1.0), 0.0)
