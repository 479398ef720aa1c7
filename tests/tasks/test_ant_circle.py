"""Ant-Circle: what is earned, what it costs, which state pays, and how it ends."""

import numpy as np
import pytest

from pcpo.tasks.ant.circle import AntCircles, ant_circle
from tests.tasks.ants import Alone, put, standing

STILL = np.zeros((1, 8))
ONE = np.array([0])


@pytest.fixture(scope="module")
def worlds():
    return AntCircles(3)


def test_running_counter_clockwise_on_the_circle_by_hand(worlds):
    """In the air at (10, 0) with 1 m/s along y: a step later at (10, 0.02), whose distance is 10.00002."""
    put(worlds, standing(10.0, 0.0, velocity=(0.0, 1.0, 0.0)))
    outcome = worlds.step(ONE, STILL)
    expected = 10.0 * 1.0 / (1 + abs(np.hypot(10.0, 0.02) - 10))
    assert outcome.rewards[0] == pytest.approx(expected, rel=1e-12)
    put(worlds, standing(10.0, 0.0, velocity=(0.0, -1.0, 0.0)))
    assert worlds.step(ONE, STILL).rewards[0] == pytest.approx(-expected, rel=1e-12)


def test_far_from_the_circle_less_is_earned_by_hand(worlds):
    """At (0, 3.98) with -2 m/s along x, to (-0.04, 3.98): 3.98 * 2 / (1 + |3.980201 - 10|)."""
    put(worlds, standing(0.0, 3.98, velocity=(-2.0, 0.0, 0.0)))
    expected = 3.98 * 2.0 / (1 + 10 - np.hypot(0.04, 3.98))
    assert worlds.step(ONE, STILL).rewards[0] == pytest.approx(expected, rel=1e-12)


def test_place_and_velocity_are_those_of_the_centre_of_mass():
    """Against MuJoCo, from an ordinary way of moving."""
    worlds, rng = AntCircles(1), np.random.default_rng(4)
    worlds.reset(ONE, ONE)
    alone = Alone(worlds.ants.qpos[0], worlds.ants.qvel[0])
    different = 0
    for _ in range(50):
        action = rng.normal(size=8)
        outcome = worlds.step(ONE, action[None])
        qpos, qvel = alone.step(action)
        (x, y, z), (dx, dy, _) = alone.centre()
        reward = (x * dy - y * dx) / (1 + abs(np.hypot(x, y) - 10))
        assert outcome.rewards[0] == pytest.approx(reward, rel=1e-9, abs=1e-12)
        np.testing.assert_array_equal(outcome.observations[0, :29], np.concatenate([qpos, qvel]))
        np.testing.assert_allclose(outcome.observations[0, 29:], (x, y, z), rtol=1e-12, atol=1e-13)
        different += abs(dx - qvel[0]) > 1e-3
    assert different > 40  # the torso's velocity would have been another one


def test_the_cost_is_that_of_the_state_before_the_action(worlds):
    """From 2.99 with 1 m/s to 3.01: free. From there on: 1, also for the step that leaves."""
    put(worlds, standing(2.99, velocity=(1.0, 0.0, 0.0)), standing(-3.01, velocity=(1.0, 0.0, 0.0)))
    both = np.array([0, 1])
    first, second = (worlds.step(both, np.zeros((2, 8))) for _ in range(2))
    assert first.observations[:, 29] == pytest.approx([3.01, -2.99])
    assert first.costs.tolist() == [[0.0], [1.0]]
    assert second.costs.tolist() == [[1.0], [0.0]]


def test_the_limit_itself_costs(worlds):
    put(worlds, standing(3.0), standing(-3.0), standing(2.9999999))
    assert worlds.step(np.arange(3), np.zeros((3, 8))).costs.tolist() == [[1.0], [1.0], [0.0]]


def test_the_cost_is_judged_by_the_centre_of_mass(worlds):
    """Legs in front stretched, legs behind folded: the centre is ahead of the torso."""
    qpos, qvel = standing(0.0)
    qpos[[8, 14]], qpos[[10, 12]] = 0.55, -1.2
    ahead = Alone(qpos, qvel).centre()[0][0]
    assert ahead > 0.01
    qpos[0] = 3.0 - ahead / 2
    put(worlds, (qpos, qvel))
    assert worlds.step(ONE, STILL).costs.tolist() == [[1.0]]
    qpos[0] = -3.0 - ahead / 2
    put(worlds, (qpos, qvel))
    assert worlds.step(ONE, STILL).costs.tolist() == [[0.0]]


def test_a_fall_ends_the_episode_and_is_not_punished(worlds):
    high, low, good = standing(10.0, z=1.2), standing(10.0, z=0.12, velocity=(0, 1.0, 0.0)), standing(10.0)
    low[0][8::2] = 0.0  # feet level, so that they do not push it up
    put(worlds, high, low, good)
    outcome = worlds.step(np.arange(3), np.zeros((3, 8)))
    assert outcome.observations[0, 2] > 1.0
    assert outcome.observations[1, 2] < 0.2
    assert outcome.terminated.tolist() == [True, True, False]
    assert not outcome.truncated.any()
    assert abs(outcome.rewards[0]) < 1e-9
    assert outcome.rewards[1] > 0  # what it earned on its way down
    assert outcome.costs.tolist() == [[1.0]] * 3  # of the states before


def test_a_reset_knows_the_cost_of_the_first_state():
    """An episode after one that ended outside of the band begins without a cost."""
    worlds = AntCircles(1)
    put(worlds, standing(5.0))
    assert worlds.step(ONE, STILL).costs.tolist() == [[1.0]]
    worlds.reset(ONE, ONE)
    assert worlds.step(ONE, STILL).costs.tolist() == [[0.0]]


def test_one_world_is_as_good_as_many():
    """The same numbers to the bit, whoever else is stepped; also those of the episode's first observation."""
    many, one, rng = AntCircles(9, threads=2), AntCircles(1), np.random.default_rng(0)
    everyone = np.arange(9)
    first = many.reset(everyone, everyone + 100)
    np.testing.assert_array_equal(first[4:5], one.reset(ONE, np.array([104])))
    for _ in range(40):
        actions = rng.normal(size=(9, 8))
        of_many, of_one = many.step(everyone, actions), one.step(ONE, actions[4:5])
        for a, b in zip(of_many, of_one, strict=True):
            np.testing.assert_array_equal(a[4:5], b)


def test_options_reach_the_worlds():
    task = ant_circle(x_limit=1.0, radius=4.0, horizon=9)
    assert task.horizon == 9
    assert task == ant_circle(x_limit=1.0, radius=4.0, horizon=9)
    worlds = task.worlds(1, 1)
    assert isinstance(worlds, AntCircles)
    put(worlds, standing(-1.5, velocity=(0.0, -1.0, 0.0)))
    outcome = worlds.step(ONE, STILL)
    assert outcome.costs.tolist() == [[1.0]]
    assert outcome.rewards[0] == pytest.approx(1.5 / (1 + 4 - np.hypot(1.5, 0.02)))
