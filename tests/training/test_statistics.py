"""Statistics against scipy, and the probability of keeping a limit against what it promises."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pcpo.training import statistics

RANDOM = np.random.default_rng(7)


@given(st.floats(0.05, 2e4), st.floats(0.05, 2e4), st.floats(0.0, 1.0))
def test_incomplete_beta(a, b, x):
    assert statistics.incomplete_beta(a, b, x) == pytest.approx(scipy.special.betainc(a, b, x), rel=1e-8, abs=1e-12)


@given(st.integers(1, 100_000), st.floats(-50.0, 50.0))
def test_student_probability(freedom, t):
    assert statistics.student_probability(t, freedom) == pytest.approx(scipy.stats.t.cdf(t, freedom), abs=1e-10)


@given(st.integers(1, 100_000), st.floats(1e-3, 1.0 - 1e-3))
def test_student_quantile(freedom, probability):
    expected = scipy.stats.t.ppf(probability, freedom)
    assert statistics.student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_no_quantile_of_what_is_no_probability():
    for wrong in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            statistics.student_quantile(wrong, 3)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11, 100])
def test_interquartile_mean(n):
    values = RANDOM.standard_normal(n)
    assert statistics.interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25))


def test_interquartile_mean_ignores_an_outlier():
    assert statistics.interquartile_mean([1.0, 2.0, 3.0, 1e9]) == 2.5


@pytest.mark.parametrize("n", [2, 5, 1000])
def test_mean_interval(n):
    values = RANDOM.exponential(size=n)
    low, high = scipy.stats.t.interval(0.9, n - 1, values.mean(), scipy.stats.sem(values))
    assert statistics.mean_interval(values, 0.9) == pytest.approx((low, high))


def test_mean_interval_of_little():
    assert statistics.mean_interval([3.0]) == (-math.inf, math.inf)
    assert statistics.mean_interval([3.0, 3.0, 3.0]) == (3.0, 3.0)
    assert all(map(math.isnan, statistics.mean_interval([3.0, math.nan])))
    assert math.isnan(statistics.standard_error([3.0]))
    with pytest.raises(ValueError, match="no values"):
        statistics.mean_interval([])


def test_bootstrap_interval():
    values = RANDOM.standard_normal(40)
    expected = scipy.stats.bootstrap(
        (values,), lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis), n_resamples=20_000, method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    assert statistics.bootstrap_interval(values) == pytest.approx((expected.low, expected.high), abs=0.02)
    assert statistics.bootstrap_interval(values) == statistics.bootstrap_interval(values)
    assert statistics.bootstrap_interval([2.0, 2.0], np.mean) == (2.0, 2.0)


def test_bands():
    values = RANDOM.standard_normal((6, 5))
    std = statistics.mean_and_band(values, "std")
    np.testing.assert_allclose(std.mean, values.mean(axis=1))
    np.testing.assert_allclose(std.high - std.mean, values.std(axis=1, ddof=1))
    np.testing.assert_allclose(std.mean - std.low, values.std(axis=1, ddof=1))
    interval = statistics.mean_and_band(values, "interval", 0.95)
    low, high = scipy.stats.t.interval(0.95, 4, values.mean(axis=1), scipy.stats.sem(values, axis=1))
    np.testing.assert_allclose((interval.low, interval.high), (low, high))
    with pytest.raises(ValueError, match="'std' or 'interval'"):
        statistics.mean_and_band(values, "sem")


@pytest.mark.parametrize("kind", ["std", "interval"])
def test_bands_with_gaps(kind):
    values = np.array([[1.0, 3.0, np.nan], [np.nan, 5.0, np.nan], [np.nan, np.inf, np.nan]])
    band = statistics.mean_and_band(values, kind)
    np.testing.assert_array_equal(band.mean, [2.0, 5.0, np.nan])
    expected = statistics.mean_and_band(np.array([[1.0, 3.0]]), kind)
    assert band.low[0] == expected.low[0]
    assert band.low[1] == band.high[1] == 5.0
    assert np.isnan([band.low[2], band.high[2]]).all()


# The probability that a limit is kept.


@given(st.integers(2, 300), st.floats(-2.0, 2.0), st.integers(0, 1000))
def test_costs_with_a_spread_have_a_student_posterior(n, limit, seed):
    costs = np.random.default_rng(seed).standard_normal(n)
    posterior = scipy.stats.t.cdf(limit, n - 1, costs.mean(), scipy.stats.sem(costs))
    expected = np.clip(posterior, 1 / (n + 1), n / (n + 1))
    assert statistics.probability_within(costs, limit) == pytest.approx(expected, abs=1e-9)


@given(st.integers(2, 300), st.floats(0.0, 1.0), st.floats(0.1, 70.0), st.floats(0.0, 2.0))
def test_indicators_have_a_beta_posterior(n, share, size, limit):
    hits = min(max(round(share * n), 1), n - 1)
    costs = size * (np.arange(n) < hits)
    posterior = scipy.stats.beta.cdf(limit, hits + 0.5, n - hits + 0.5)
    expected = np.clip(posterior, 1 / (n + 1), n / (n + 1))
    assert statistics.probability_within(costs, limit * size) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("cost", [0.0, 0.1, 4.0, -3.0])
@pytest.mark.parametrize("n", [2, 10, 1000])
def test_costs_that_are_all_equal_do_not_make_certain(cost, n):
    costs = np.full(n, cost)
    assert statistics.probability_within(costs, cost + 1.0) == n / (n + 1)
    assert statistics.probability_within(costs, cost) == pytest.approx(
        n / (n + 1) if costs.mean() <= cost else 1 / (n + 1)
    )
    assert statistics.probability_within(costs, cost - 1.0) == 1 / (n + 1)


def test_almost_equal_costs_are_like_equal_ones():
    costs = 0.1 + 1e-18 * RANDOM.standard_normal(100)
    assert statistics.probability_within(costs, 0.2) == 100 / 101
    slightly = 4.0 + 1e-3 * RANDOM.standard_normal(100)
    assert statistics.probability_within(slightly, 5.0) == 100 / 101


def test_one_episode_says_nothing_and_a_missing_cost_neither():
    assert statistics.probability_within([4.0], 5.0) == 0.5
    assert statistics.probability_within([400.0], 5.0) == 0.5
    assert math.isnan(statistics.probability_within([4.0, math.nan], 5.0))
    with pytest.raises(ValueError, match="no values"):
        statistics.probability_within([], 5.0)


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda random, n: random.normal(5.0, 2.0, n), 5.0),
        (lambda random, n: random.exponential(5.0, n), 5.0),
        (lambda random, n: random.binomial(65, 0.1, n), 6.5),
        (lambda random, n: (random.random(n) < 0.1).astype(float), 0.1),
        (lambda random, n: 10.0 * (random.random(n) < 0.3), 3.0),
    ],
    ids=["normal", "exponential", "counts", "indicator", "ten times an indicator"],
)
def test_a_policy_exactly_at_its_limit_is_called_safe_as_often_as_promised(draw, mean):
    """Calibration: at the limit, "95 % sure that it is kept" is wrong in 5 % of all samples, within what 200 leave."""
    random = np.random.default_rng(3)
    found = np.array([statistics.probability_within(draw(random, 200), mean) for _ in range(2000)])
    for level in (0.05, 0.5, 0.95):
        assert np.mean(found > level) == pytest.approx(1 - level, abs=0.04)


def test_it_is_about_the_mean_and_not_about_episodes():
    costs = np.where(np.arange(400) % 2 == 0, 0.5, 9.0)  # half of the episodes are above 5, the mean is 4.75
    assert 0.85 < statistics.probability_within(costs, 5.0) < 0.9
