"""Ant-Gather: where objects lie, when they are taken, what a fall costs, what the sensors see."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.tasks.ant.gather import AntGathers, ant_gather
from pcpo.tasks.gather import Objects, sense
from tests.tasks import plain
from tests.tasks.ants import Alone, put, standing

STILL = np.zeros((1, 8))
ONE = np.array([0])


def world(*places, apples=1, true_yaw=False, state=None):
    """One world with objects at these places and the robot in a state; at rest in the air at the origin by default."""
    worlds = AntGathers(1, apples, len(places) - apples, true_yaw)
    worlds.objects.x[:, 0], worlds.objects.y[:, 0] = np.array(places).T
    worlds.objects.present[:] = True
    put(worlds, state or standing())
    return worlds


def readings(worlds):
    return worlds.look(ONE)[0, 32:]


# --- objects


def test_objects_lie_on_distinct_cells_anew_at_every_reset():
    worlds = AntGathers(40)
    everyone = np.arange(40)
    worlds.reset(everyone, everyone)
    cells = {(x, y) for x in range(-6, 6, 2) for y in range(-6, 6, 2)} - {(0, 0)}
    seen = [tuple(zip(x, y, strict=True)) for x, y in zip(worlds.objects.x.T, worlds.objects.y.T, strict=True)]
    for places in seen:
        assert len(set(places)) == 16
        assert set(places) <= cells
    assert worlds.objects.present.all()
    assert len(set(seen)) == 40


def test_every_cell_is_equally_likely_for_every_object():
    worlds, everyone, n = AntGathers(700), np.arange(700), 7000
    placed = []
    for batch in range(10):
        worlds.reset(everyone, everyone + 700 * batch)
        placed.append(np.stack([worlds.objects.x, worlds.objects.y]).copy())
    placed = np.concatenate(placed, axis=2)
    for i in (0, 7, 8, 15):  # the first and the last apple and bomb
        _, counts = np.unique(placed[:, i], axis=1, return_counts=True)
        assert len(counts) == 35
        assert np.square(counts - n / 35).sum() / (n / 35) < 70  # chi squared of 34; 99.97 %


def test_an_episode_is_decided_by_its_seed():
    many, one = AntGathers(6, threads=2), AntGathers(1)
    everyone, rng = np.arange(6), np.random.default_rng(2)
    first = many.reset(everyone, everyone + 30)
    np.testing.assert_array_equal(first[2:3], one.reset(ONE, np.array([32])))
    for _ in range(60):
        actions = rng.normal(size=(6, 8))
        of_many, of_one = many.step(everyone, actions), one.step(ONE, actions[2:3])
        for a, b in zip(of_many, of_one, strict=True):
            np.testing.assert_array_equal(a[2:3], b)
    assert not np.array_equal(one.reset(ONE, np.array([33])), first[2:3])


def test_more_objects_than_cells_are_refused():
    assert ant_gather(apples=8, bombs=27).observation_size == 52
    with pytest.raises(ValueError, match="9 apples and 27 bombs do not fit into the 35 cells"):
        ant_gather(apples=9, bombs=27)


# --- picking up


@pytest.mark.parametrize(("distance", "taken"), [(0.999, True), (1.001, False)])
def test_within_reach_means_less_than_1_from_the_centre_of_mass(distance, taken):
    worlds = world((distance, 0), (4, 4))
    outcome = worlds.step(ONE, STILL)
    assert outcome.rewards[0] == 10.0 * taken
    assert worlds.objects.present[:, 0].tolist() == [not taken, True]


def test_height_does_not_count_and_the_torso_does_not_either():
    """The centre of mass is ahead of the torso; an apple 1 away from the latter is nearer to the former."""
    qpos, qvel = standing()
    qpos[[8, 14]], qpos[[10, 12]] = 0.55, -1.2
    ahead = Alone(qpos, qvel).centre()[0][0]
    assert ahead > 0.01
    assert world((1.0 + ahead / 2, 0), (4, 4), state=(qpos, qvel)).step(ONE, STILL).rewards[0] == 10.0
    assert world((-1.0 + ahead / 2, 0), (4, 4), state=(qpos, qvel)).step(ONE, STILL).rewards[0] == 0.0


def test_reward_and_cost_are_those_of_the_place_after_the_move():
    """A bomb at (2, 0): from 0.99, with 1 m/s, a step of 0.02 s reaches it."""
    worlds = world((4, 4), (2, 0), state=standing(0.99, velocity=(1.0, 0.0, 0.0)))
    assert np.count_nonzero(readings(worlds)) == 2
    outcome = worlds.step(ONE, STILL)
    assert (outcome.rewards[0], outcome.costs[0, 0]) == (-1.0, 1.0)
    seen = outcome.observations[0, 32:]
    assert np.count_nonzero(seen[:10]) == 1
    assert not seen[10:].any()  # what is taken is not seen
    again = worlds.step(ONE, STILL)
    assert (again.rewards[0], again.costs[0, 0]) == (0.0, 0.0)


def test_each_bomb_takes_1_but_a_step_costs_1_at_most():
    outcome = world((0, -0.5), (0.5, 0), (-0.5, 0), (0, 0.5), (4, 4)).step(ONE, STILL)
    assert outcome.rewards[0] == 10 - 3
    assert outcome.costs[0, 0] == 1.0
    assert not outcome.terminated[0]


def test_it_ends_when_nothing_is_left():
    worlds = world((0.5, 0), (0, 0.5))
    outcome = worlds.step(ONE, STILL)
    assert outcome.rewards[0] == 9.0
    assert outcome.terminated[0]
    assert not outcome.truncated[0]
    assert not outcome.observations[0, 32:].any()


def test_a_fall_takes_10_and_nothing_else():
    """An apple and a bomb within reach stay where they are; the cost is none."""
    worlds = world((0.5, 0), (0.1, 0.5), state=standing(z=1.2))
    outcome = worlds.step(ONE, STILL)
    assert outcome.rewards[0] == -10.0
    assert outcome.costs[0, 0] == 0.0
    assert outcome.terminated[0]
    assert worlds.objects.present.all()
    assert np.count_nonzero(outcome.observations[0, 32:]) == 2


def test_the_walls_hold_and_are_those_of_the_room():
    """Along each side with 4 m/s, 0.3 from the wall: the torso, of radius 0.25, stays inside. Without walls it goes."""
    directions = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    inside = AntGathers(4)
    states = [standing(6.2 * x, 6.2 * y, 0.6, yaw=0.78, velocity=(4.0 * x, 4.0 * y, 0.0)) for x, y in directions]
    put(inside, *states)
    farthest = 0.0
    for _ in range(15):
        inside.step(np.arange(4), np.zeros((4, 8)))
        farthest = max(farthest, np.abs(inside.ants.qpos[:, :2]).max())
    assert farthest < 6.4
    outside = Alone(*states[0])
    for _ in range(15):
        outside.step(np.zeros(8))
    assert outside.data.qpos[0] > 6.8


# --- sensing


@pytest.mark.parametrize(
    ("degrees", "sector"), [(-89, 0), (-73, 0), (-71, 1), (-1, 4), (1, 5), (19, 6), (71, 8), (89, 9)]
)
def test_ten_sectors_from_right_to_left(degrees, sector):
    angle = math.radians(degrees)
    apple = (3 * math.cos(angle), 3 * math.sin(angle))
    expected = np.zeros(20)
    expected[sector] = 0.5
    np.testing.assert_allclose(readings(world(apple, (-4, -4))), expected, atol=1e-12)


def test_the_gaze_is_the_quaternions_z_unless_the_true_yaw_is_asked_for():
    """Turned left by 90 degrees, z is sin 45 = 0.7071, taken for 40.5 degrees: an apple at the left is 49.5 to the left
    of that, in the 8th sector. The true yaw has it straight ahead, where the 6th begins."""
    left, behind = (0.01, 3.0), (-4, -4)
    state = standing(yaw=math.pi / 2)
    assert np.flatnonzero(readings(world(left, behind, state=state))).tolist() == [7]
    # 0.01 to the right of straight ahead
    assert np.flatnonzero(readings(world(left, behind, state=state, true_yaw=True))).tolist() == [4]
    # What is straight behind the robot is seen only by the original's mistake, when it looks backwards: z is 1 radian.
    backwards = standing(yaw=math.pi)
    assert np.flatnonzero(readings(world((3, 0.1), behind, state=backwards))).size == 1
    assert not readings(world((3, 0.1), (4, 4), state=backwards, true_yaw=True)).any()


def test_sensors_equal_both_other_ways_to_compute_them():
    """The compiled ones of the point, and those written from the specification; at places of an ordinary episode."""
    worlds, rng = AntGathers(5), np.random.default_rng(6)
    everyone, compiled = np.arange(5), jax.jit(sense, static_argnums=4)
    worlds.reset(everyone, everyone)
    compared = 0
    for t in range(120):
        outcome = worlds.step(everyone, rng.normal(size=(5, 8)))
        if t % 10:
            continue
        for i in everyone:
            observation, objects = outcome.observations[i], Objects(*(part[:, i] for part in worlds.objects))
            (x, y), gaze = observation[29:31], observation[6]
            found = np.asarray(compiled(Objects(*map(jnp.asarray, objects)), *map(jnp.asarray, (x, y, gaze)), 8))
            np.testing.assert_allclose(observation[32:], found, atol=1e-12)
            robot = SimpleNamespace(heading=gaze, centre=lambda x=x, y=y: (x, y))
            kinds = ["apple"] * 8 + ["bomb"] * 8
            left = [(*o[:2], kind) for *o, there, kind in zip(*objects, kinds, strict=True) if there]
            np.testing.assert_allclose(observation[32:], plain.Gather(robot, left).readings(), atol=1e-12)
            compared += np.count_nonzero(found)
    assert compared > 100


def test_the_nearest_hides_the_others_of_its_kind_only():
    seen = readings(world((4, 0.5), (2, 0.25), (3, 0.3), (1.5, 0.2), (5, 0.6), apples=3))
    assert seen[5] == pytest.approx(1 - math.hypot(2, 0.25) / 6)
    assert seen[15] == pytest.approx(1 - math.hypot(1.5, 0.2) / 6)
    assert np.count_nonzero(seen) == 2


def test_a_picture_shows_where_the_sensors_look():
    worlds = world((0.01, 3.0), (-4, -4), state=standing(yaw=math.pi / 2))
    scene = worlds.scene(0)
    assert scene.heading == pytest.approx(math.pi / 2)
    assert scene.sensor is not None
    assert scene.sensor.heading == pytest.approx(math.sin(math.pi / 4))
    assert scene.apples == ((0.01, 3.0),)
    assert scene.bombs == ((-4.0, -4.0),)
