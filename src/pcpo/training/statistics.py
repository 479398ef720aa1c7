"""What a few seeds and a few hundred episodes allow to be said: means, bands, intervals, and whether a limit is kept.

numpy alone, so that a run can be judged with the base install. Not-a-number means "not measured": it is left out where
a mean is taken over seeds, and gives not-a-number where a statement is asked of it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

Numbers: TypeAlias = Float[np.ndarray, "..."]


class Interval(NamedTuple):
    """From ``low`` to ``high``."""

    low: float
    high: float


class Band(NamedTuple):
    """A mean over seeds at each of n places, and how far to shade above and below it."""

    mean: Float[np.ndarray, " n"]
    low: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]


# Over seeds.


def mean_and_band(values: Float[np.ndarray, "n seeds"], kind: str = "std", confidence: float = 0.95) -> Band:
    """Mean over seeds, with one standard deviation of the seeds or with an interval of the mean around it.

    Values that are not finite are left out; where none is left, all three numbers are not-a-number. Where only one
    is left, the band has no width: one seed says nothing about others.

    Args:
        values: One row per place, one column per seed.
        kind: ``"std"`` for the mean plus and minus the standard deviation of the seeds (with n - 1), ``"interval"`` for
            Student's interval of the mean.
        confidence: Of the interval.
    """
    if kind not in {"std", "interval"}:
        raise ValueError(f"kind is {kind!r}; pass 'std' or 'interval'")
    finite = np.isfinite(values)
    counts = finite.sum(axis=1)
    kept = np.where(finite, values, 0.0)
    mean = np.where(counts > 0, kept.sum(axis=1) / np.maximum(counts, 1), np.nan)
    squares = np.where(finite, (kept - np.where(counts > 0, mean, 0.0)[:, None]) ** 2, 0.0).sum(axis=1)
    width = np.sqrt(squares / np.maximum(counts - 1, 1))
    if kind == "interval":
        quantiles = {int(n): student_quantile(0.5 + confidence / 2, int(n) - 1) for n in set(counts.tolist()) if n > 1}
        width = width * np.array([quantiles.get(int(n), 0.0) / math.sqrt(max(n, 1)) for n in counts])
    return Band(mean, mean - width, mean + width)


def interquartile_mean(values: Any) -> float:
    """Mean of the middle half: a quarter of the values, rounded down, is left out at each end."""
    ordered = np.sort(_vector(values))
    cut = ordered.size // 4
    return float(ordered[cut : ordered.size - cut].mean())


def bootstrap_interval(
    values: Any,
    statistic: Callable[[Any], float] = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a statistic by drawing as many values again, with replacement.

    The intervals of fewer than about ten values are too narrow; prefer `mean_interval` there.
    """
    sample = _vector(values)
    random = np.random.default_rng(seed)
    drawn = sample[random.integers(sample.size, size=(resamples, sample.size))]
    found = np.apply_along_axis(statistic, 1, drawn)
    low, high = np.quantile(found, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Interval(float(low), float(high))


# Over episodes.


def mean_interval(values: Any, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean; endless for a single value, without width where all values are equal."""
    sample = _vector(values)
    mean, error = float(sample.mean()), standard_error(sample)
    if sample.size == 1 or not math.isfinite(mean):
        return Interval(-math.inf, math.inf) if math.isfinite(mean) else Interval(math.nan, math.nan)
    reach = student_quantile(0.5 + confidence / 2, sample.size - 1) * error
    return Interval(mean - reach, mean + reach)


def standard_error(values: Any) -> float:
    """Of the mean of independent values; not-a-number for fewer than two."""
    sample = _vector(values)
    if sample.size < 2:
        return math.nan
    return float(sample.std(ddof=1)) / math.sqrt(sample.size)


def probability_within(costs: Any, limit: float | int) -> float:
    """The probability that the **mean** cost of a policy is at most ``limit``, given the costs of n episodes.

    A posterior probability, with the usual priors that know nothing, about the mean over all episodes that the policy
    could play; not the share of episodes that stay below the limit.

    * Costs that are either 0 or one other value c (an indicator): the chance p of the other value has a
      Beta(k + 1/2, n - k + 1/2) posterior after k of n episodes (Jeffreys' prior), and p <= limit / c is asked.
    * All other costs: the mean has a Student posterior with n - 1 degrees of freedom around the sample's mean, with its
      standard error as the scale. By the central limit theorem the costs need not be normal.

    n episodes never support more than n / (n + 1), nor less than 1 / (n + 1): that is how probable it is that the next
    episode costs no more than the most expensive of n (whatever the distribution). So a single episode gives 1/2, and
    costs that were all equal, whose spread is unknown rather than zero, give n / (n + 1) or 1 / (n + 1).

    Args:
        costs: One number per episode, all played by the same policy.
        limit: The largest allowed mean.

    Returns:
        A probability; not-a-number where a cost is not finite.
    """
    sample = _vector(costs)
    n = sample.size
    if not np.all(np.isfinite(sample)):
        return math.nan
    if n == 1:
        return 0.5
    dearest, spread = float(sample.max()), float(sample.std(ddof=1))
    if spread <= 1e-12 * max(abs(dearest), abs(float(sample.min()))):
        posterior = float(float(sample.mean()) <= limit)
    elif np.all((sample == 0.0) | (sample == dearest)):
        hits = int(np.sum(sample == dearest))
        posterior = incomplete_beta(hits + 0.5, n - hits + 0.5, min(max(limit / dearest, 0.0), 1.0))
    else:
        posterior = student_probability((limit - float(sample.mean())) * math.sqrt(n) / spread, n - 1)
    return min(max(posterior, 1.0 / (n + 1)), n / (n + 1))


# Distributions.


def student_probability(t: float, freedom: int) -> float:
    """P(T <= t) for Student's distribution."""
    if math.isinf(t):
        return float(t > 0)
    tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return 1.0 - tail if t > 0 else tail


def student_quantile(probability: float, freedom: int) -> float:
    """The t with P(T <= t) = ``probability``, by bisection."""
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability is {probability}; pass a number between 0 and 1, both excluded")
    if probability < 0.5:
        return -student_quantile(1.0 - probability, freedom)
    low, high = 0.0, 1.0
    while student_probability(high, freedom) < probability:
        low, high = high, 2.0 * high
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if middle in {low, high}:
            break
        low, high = (middle, high) if student_probability(middle, freedom) < probability else (low, middle)
    return 0.5 * (low + high)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), the probability that a Beta(a, b) variable is at most x.

    By its continued fraction (Lentz's method), on the side of the mean where it converges fast.
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _beta_fraction(a, b, x))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """1 + d_1/(1 + d_2/(1 + ...)), whose terms d_1, d_2, ... alternate between two formulas."""
    fraction = upper = 1.0
    lower = 0.0
    for i in range(1, 100_000):
        m = i // 2
        if i % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1.0 / (1.0 + term * lower)
        upper = 1.0 + term / upper
        fraction *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return fraction


def _vector(values: Any) -> Float[np.ndarray, " n"]:
    sample = np.asarray(values, dtype=np.float64).reshape(-1)
    if not sample.size:
        raise ValueError("there are no values; pass at least one")
    return sample
