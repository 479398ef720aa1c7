"""Every statistic by an example that can be followed by hand."""

import itertools
import math

import numpy as np
import pytest

from pcpo.experiments import statistics
from pcpo.experiments.statistics import (
    excess,
    fluctuation,
    found,
    found_of_means,
    iqm,
    last_tenth,
    ratio,
    relative_fluctuation,
    reward_at_equal_violation,
    smoothed,
    summed,
    time_to_reach,
    time_to_safety,
    violation_at_equal_reward,
)


def column(*values):
    return np.array(values, float)[:, None]


# The middle and the interval.


def test_the_middle_half():
    assert iqm(np.array([8.0, 1.0, 2.0, 3.0, -50.0])) == 2.0  # 1, 2, 3 are left
    assert iqm(np.array([1.0, 2.0, 6.0])) == 3.0  # of three nothing is cut
    assert iqm(np.array([7.0])) == 7.0


def test_a_seed_that_is_no_number_is_not_cut_off_with_the_tails():
    assert math.isnan(iqm(np.array([1.0, 2.0, 3.0, 4.0, math.nan])))
    assert iqm(np.array([1.0, 2.0, 3.0, math.inf, -math.inf])) == 2.0


def mean(values):
    return values.mean(axis=-1)


def test_the_bootstrap_of_two_seeds_is_known_exactly():
    """Means of two draws from {0, 1}: 0, 1/2, 1/2, 1, each end a quarter of the time, so the interval is all of it."""
    assert found(mean, np.array([0.0, 1.0])) == (0.5, (0.0, 1.0))
    assert found(mean, np.array([3.0, 3.0])) == (3.0, (3.0, 3.0))


def test_the_bootstrap_agrees_with_every_possible_draw():
    """Of four seeds there are 256 draws; the quantiles of all of their means are what drawing 1000 comes near."""
    values = np.array([0.0, 1.0, 5.0, 20.0])
    means = [np.mean(draw) for draw in itertools.product(values, repeat=4)]
    low, high = np.quantile(means, [0.025, 0.975])
    interval = found(mean, values).interval
    assert interval is not None
    assert interval.low == pytest.approx(low, abs=0.3)
    assert interval.high == pytest.approx(high, abs=0.8)


def test_strata_are_drawn_each_from_its_own_seeds():
    """Ten seeds of 0 and two of 1: a difference of means is always 1. Drawn from one pot it would not be."""
    assert found(lambda a, b: mean(b) - mean(a), np.zeros(10), np.ones(2)) == (1.0, (1.0, 1.0))


def test_curves_are_means_over_the_same_seeds_as_numbers_are():
    """The last row of a table, as a number of each seed and as a mean over seeds, has the same interval."""
    table = np.random.default_rng(1).normal(size=(3, 5))
    finding = found(mean, table[-1])
    of_means = found_of_means(lambda curves: curves[0][-1], (table,))
    assert of_means.value == pytest.approx(finding.value)
    assert of_means.interval == pytest.approx(finding.interval)


def test_what_belongs_to_one_seed_stays_together():
    rewards, costs = np.array([[1.0, 2.0, 3.0]]), np.array([[10.0, 20.0, 30.0]])
    finding = found_of_means(lambda both: both[1][0] / both[0][0], (rewards, costs))
    assert finding.value == pytest.approx(10.0)
    assert finding.interval == pytest.approx((10.0, 10.0))


def test_the_same_data_have_the_same_interval():
    values = np.random.default_rng(3).normal(size=7)
    assert found(iqm, values) == found(iqm, values)


def test_one_seed_has_no_interval_and_none_no_answer():
    assert found(iqm, np.array([4.0])) == (4.0, None)
    assert found(lambda a, b: mean(a) - mean(b), np.array([4.0]), np.array([1.0, 2.0])) == (2.5, None)
    assert found_of_means(lambda curves: curves[0][0], (np.array([[4.0]]),)) == (4.0, None)
    with pytest.raises(ValueError, match="no seeds"):
        found(iqm, np.zeros(0))


def test_an_answer_that_is_often_undefined_has_no_interval():
    assert found(mean, np.array([math.nan, 1.0])).interval is None

    def undefined_without_the_last(values):
        return np.where(values.max(axis=-1) == 3.0, 3.0, math.nan)

    assert found(undefined_without_the_last, np.array([1.0, 2.0, 3.0])) == (3.0, None)


def test_an_infinite_end_stays_infinite():
    finding = found(lambda values: ratio(np.ones(len(values)), values.min(axis=-1)), np.array([0.0, 1.0]))
    assert finding == (math.inf, (1.0, math.inf))
    assert str(finding) == "inf (1 to inf)"


# Curves.


def test_means_over_ten_updates():
    curve = np.arange(12.0)
    assert smoothed(curve).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.5, 6.5]
    np.testing.assert_allclose(smoothed(np.stack([curve, 2 * curve], 1))[:, 1], 2 * smoothed(curve))


def test_the_last_tenth_is_at_least_one_update():
    assert last_tenth(column(1, 2, 9)).tolist() == [9.0]
    assert last_tenth(np.arange(40.0)[:, None]).tolist() == [37.5]


def test_both_ways_of_counting_violations():
    costs = np.array([[7.0, 1.0], [5.0, 6.0], [4.0, 5.5]])
    assert summed(costs).tolist() == [[7.0, 1.0], [12.0, 7.0], [16.0, 12.5]]
    assert excess(costs, 5.0).tolist() == [[2.0, 0.0], [2.0, 1.0], [2.0, 1.5]]


def held(*levels):
    """A reward curve that stays ten updates at each level, so that its ten-update mean reaches each of them."""
    return np.repeat(np.array(levels, float), 10)[:, None]


def test_violation_at_equal_reward_by_hand():
    """A reaches 2 at update 19 and ends at 3, B reaches 2 at update 29: the level is 2.

    A has paid 1 per update, 20 until then; B 3 per update, 90.
    """
    a = held(0, 2, 3), np.cumsum(np.full((30, 1), 1.0), axis=0)
    b = held(0, 1, 2), np.cumsum(np.full((30, 1), 3.0), axis=0)
    assert violation_at_equal_reward(a, b) == 90.0 / 20.0
    assert violation_at_equal_reward(b, a) == 20.0 / 90.0


def test_half_of_the_common_improvement_by_hand():
    """Half way to 2 is 1. A's ten-update mean is (j + 1) / 5 after j + 1 updates at 2: 1 at update 14. B's: at 19."""
    a = held(0, 2, 3), np.cumsum(np.full((30, 1), 1.0), axis=0)
    b = held(0, 1, 2), np.cumsum(np.full((30, 1), 3.0), axis=0)
    assert violation_at_equal_reward(a, b, share=0.5) == 60.0 / 15.0


def test_the_top_is_reached_whatever_rounding_does():
    """Rewards whose sums and differences do not come out even: the level is the lower top itself, not nearly it."""
    random = np.random.default_rng(0)
    curves = [np.cumsum(random.random((40, 200)), axis=0) / 3.0 + random.random(200) for _ in range(2)]
    spent = np.cumsum(np.ones((40, 200)), axis=0)
    ratios = violation_at_equal_reward((curves[0], spent), (curves[1], spent))
    tops = [smoothed(curve).max(axis=0) for curve in curves]
    lower = np.minimum(*tops)
    times = [np.argmax(smoothed(curve) >= lower, axis=0) + 1 for curve in curves]
    assert ratios.tolist() == (times[1] / times[0]).tolist()
    assert (np.maximum(*times) == 40).all()  # whoever has the lower top reaches it at the end


def test_without_a_common_improvement_there_is_no_answer():
    rising, falling = held(0, 1), held(0, -1)
    spent = np.ones((20, 1))
    assert np.isnan(violation_at_equal_reward((rising, spent), (falling, spent)))
    assert np.isnan(violation_at_equal_reward((rising * math.nan, spent), (rising, spent)))
    late_start = held(5, 6)
    assert np.isnan(violation_at_equal_reward((rising, spent), (late_start, spent)))


def test_nothing_paid_is_infinitely_less_than_something_and_not_comparable_with_nothing():
    reward, nothing, something = held(0, 1), np.zeros((20, 1)), np.ones((20, 1))
    assert violation_at_equal_reward((reward, nothing), (reward, something)) == math.inf
    assert violation_at_equal_reward((reward, something), (reward, nothing)) == 0.0
    assert np.isnan(violation_at_equal_reward((reward, nothing), (reward, nothing)))


def test_means_over_seeds_come_before_levels():
    """Two seeds, of which one alone would have another level: their mean rises from 0 to 1, as the other rule does."""
    mixed = np.concatenate([held(0, 2), held(0, 0)], axis=1)
    paid = np.cumsum(np.broadcast_to([2.0, 4.0], (20, 2)), axis=0)
    other = held(0, 1), np.cumsum(np.full((20, 1), 6.0), axis=0)
    assert found_of_means(violation_at_equal_reward, (mixed, paid), other) == (2.0, None)


def test_all_draws_are_answered_at_once():
    """Two draws side by side, the second one with twice the violation of B."""
    a = np.repeat(held(0, 2, 3), 2, axis=1), np.cumsum(np.full((30, 2), 1.0), axis=0)
    b = np.repeat(held(0, 1, 2), 2, axis=1), np.cumsum(np.broadcast_to([3.0, 6.0], (30, 2)), axis=0)
    assert violation_at_equal_reward(a, b).tolist() == [4.5, 9.0]
    assert reward_at_equal_violation(a, b).tolist() == [3.0, 3.0]


def test_reward_at_equal_violation_by_hand():
    """A spends 1 an update and ends with 30, B 3 and ends with 90: 30 were spent by A at the end, by B at update 9."""
    a = held(0, 2, 3), np.cumsum(np.full((30, 1), 1.0), axis=0)
    b = held(1, 5, 9), np.cumsum(np.full((30, 1), 3.0), axis=0)
    assert reward_at_equal_violation(a, b) == 3.0 - 1.0
    assert reward_at_equal_violation(b, a) == 1.0 - 3.0


def test_what_a_rule_begins_with_is_its_own():
    """B has spent more than A ever does when it begins: it has earned what it began with."""
    a = held(0, 2), np.ones((20, 1))
    b = held(1, 5), np.full((20, 1), 9.0)
    assert reward_at_equal_violation(a, b) == 2.0 - 1.0


@pytest.mark.parametrize(
    ("costs", "first"),
    [
        ([9.0, 5.5] + [5.0] * 12, 1),
        ([9.0, 5.51] + [5.0] * 12, 2),
        ([5.0] * 12 + [20.0] + [5.0] * 3, math.inf),  # the last ten contain 20
        ([9.0] * 5 + [0.0] * 20 + [5.4] * 10, 5),
        ([5.0] * 9 + [math.nan] + [5.0] * 30, 10),  # what was not measured was not kept
        ([9.0] * 30, math.inf),
    ],
)
def test_from_when_on_a_bound_was_kept(costs, first):
    assert time_to_safety(column(*costs), 5.5).tolist() == [first]


def test_each_seed_has_its_own_time_and_a_short_run_has_none():
    costs = np.stack([np.full(20, 1.0), np.r_[np.full(5, 9.0), np.full(15, 0.0)], np.full(20, 9.0)], axis=1)
    assert time_to_safety(costs, 2.0).tolist() == [0.0, 5.0, math.inf]
    assert np.isnan(time_to_safety(costs[:9], 2.0)).all()


def test_a_bound_can_be_reached_long_before_it_is_kept():
    costs = np.stack([np.r_[np.full(5, 9.0), np.full(10, 0.0), np.full(5, 9.0)], np.full(20, 9.0)], axis=1)
    assert time_to_reach(costs, 1.0).tolist() == [4.0, math.inf]  # nine zeros and one nine: 0.9
    assert time_to_safety(costs, 1.0).tolist() == [math.inf, math.inf]
    assert np.isnan(time_to_reach(costs[:9], 1.0)).all()


def test_a_straight_rise_does_not_fluctuate_and_a_zigzag_does():
    """The second half of 100, 101, 99, 101, 99 ... has mean 100 and deviates by 1 from it: one percent."""
    assert fluctuation(np.arange(20.0)[:, None])[0] == pytest.approx(0.0, abs=1e-12)
    zigzag = 100.0 + np.where(np.arange(400) % 2, -1.0, 1.0)
    for times in (1.0, 3.0):
        assert fluctuation(times * zigzag[:, None])[0] == pytest.approx(times, rel=1e-3)
        assert relative_fluctuation(times * zigzag[:, None])[0] == pytest.approx(0.01, rel=1e-3)
    assert relative_fluctuation(np.zeros((20, 1))).tolist() == [0.0]


def test_the_papers_ways_of_saying_it_are_one():
    """85.15 % less is a ratio of 6.73."""
    assert ratio(1.0, 1.0 - 0.8515) == pytest.approx(6.734, abs=1e-3)
    assert statistics.WINDOW == 10
