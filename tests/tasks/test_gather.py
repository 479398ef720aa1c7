"""Point-Gather: where objects lie, when they are taken, what the sensors see."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.rollout import play
from pcpo.tasks.gather import GatherState, Objects, grid, pick_up, place_objects, point_gather, sense
from pcpo.tasks.point import CENTRE_AHEAD, PointState

PLACE = jax.jit(jax.vmap(lambda key: place_objects(key, 10)))
ZERO = jnp.zeros(())


def objects(*places) -> Objects:
    x, y = jnp.asarray(places, float).T
    return Objects(x, y, jnp.ones(len(places), bool))


def robot(x=0.0, y=0.0, heading=0.0) -> PointState:
    """With its centre of mass at (x, y)."""
    jx, jy = x - CENTRE_AHEAD * math.cos(heading), y - CENTRE_AHEAD * math.sin(heading)
    jx, jy, angle, x, y = (jnp.asarray(float(v)) for v in (jx, jy, heading, x, y))
    return PointState(jx, jy, angle, jnp.zeros(3), x, y)


def at(polar, degrees, heading=0.0):
    """A place at that distance and bearing (from the heading) of the origin."""
    angle = math.radians(degrees) + heading
    return polar * math.cos(angle), polar * math.sin(angle)


def readings(*places, apples=1, heading=0.0, x=0.0, y=0.0):
    x, y, heading = (jnp.asarray(float(v)) for v in (x, y, heading))
    return np.asarray(sense(objects(*places), x, y, heading, apples))


# --- placement


def test_there_are_35_cells_without_the_origin():
    cells = {tuple(cell) for cell in grid().tolist()}
    expected = {(x, y) for x in range(-6, 6, 2) for y in range(-6, 6, 2)} - {(0, 0)}
    assert cells == expected
    assert len(cells) == 35
    assert (2, 0) in cells  # a distance of exactly 2 is allowed
    assert max(max(cell) for cell in cells) == 4  # never +6


def test_objects_lie_on_ten_distinct_cells():
    placed = PLACE(jax.random.split(jax.random.key(0), 500))
    for x, y in zip(np.asarray(placed.x), np.asarray(placed.y), strict=True):
        places = set(zip(x.tolist(), y.tolist(), strict=True))
        assert len(places) == 10
        assert places <= {tuple(cell) for cell in grid().tolist()}
    assert placed.present.all()


def test_every_cell_is_equally_likely_for_every_object():
    n = 35_000
    placed = PLACE(jax.random.split(jax.random.key(1), n))
    for i in (0, 1, 9):  # either apple, and the last bomb
        _, counts = np.unique(np.stack([placed.x[:, i], placed.y[:, i]]), axis=1, return_counts=True)
        assert len(counts) == 35
        assert np.square(counts - n / 35).sum() / (n / 35) < 70  # chi squared of 34; 99.97 %


def test_there_are_2_apples_and_8_bombs_anew_at_every_reset():
    task = point_gather()
    assert task.scene is not None
    scenes = [task.scene(task.reset(jax.random.key(seed))) for seed in (0, 1)]
    assert [len(scene.apples) for scene in scenes] == [2, 2]
    assert [len(scene.bombs) for scene in scenes] == [8, 8]
    assert scenes[0].apples != scenes[1].apples


# --- picking up


def test_within_reach_means_less_than_1_from_the_centre_of_mass():
    for distance, taken in [(0.999, True), (1.0, False), (1.001, False)]:
        left, reward, _ = pick_up(objects((distance, 0), (4, 4)), ZERO, ZERO, apples=1)
        assert left.present.tolist() == [not taken, True]
        assert reward == 10.0 * taken


def test_the_reach_is_that_of_the_centre_and_not_of_the_joint():
    """The joint is 1.01 from the apple, the centre of mass 0.04258 nearer."""
    task = point_gather()
    state = GatherState(robot(2 - 1.01 + CENTRE_AHEAD, 0), objects((2, 0), *[(-4, -4)] * 9))
    _, outcome = task.step(state, jnp.zeros(2))
    assert outcome.reward == 10.0


def test_each_bomb_takes_1_but_a_step_costs_1_at_most():
    near = [(0.5, 0), (-0.5, 0), (0, 0.5)]
    _, reward, cost = pick_up(objects((0, -0.5), *near), ZERO, ZERO, apples=1)
    assert reward == 10 - 3
    assert cost == 1.0
    _, reward, cost = pick_up(objects((0, -0.5), (4, 4)), ZERO, ZERO, apples=1)
    assert (reward, cost) == (10.0, 0.0)


def test_what_is_taken_cannot_be_taken_again():
    left, _, _ = pick_up(objects((0, 0.5), (0.5, 0)), ZERO, ZERO, apples=1)
    _, reward, cost = pick_up(left, ZERO, ZERO, apples=1)
    assert (reward, cost) == (0.0, 0.0)


def test_reward_and_cost_are_those_of_the_place_after_the_move():
    """A bomb at (2, 0): from 0.9 a step of 1 reaches it; the state before it was out of reach."""
    task = point_gather()
    state = GatherState(robot(0.9, 0), objects((-6, -6), (-6, 4), (2, 0), *[(-4, -4)] * 7))
    after, outcome = task.step(state, jnp.asarray([1.0, 0.0]))
    assert outcome.reward == -1.0
    assert outcome.costs.tolist() == [1.0]
    assert not outcome.terminated
    assert after.objects.present.sum() == 9


def test_it_ends_when_nothing_is_left():
    task = point_gather(apples=1, bombs=1)
    state = GatherState(robot(), Objects(jnp.zeros(2), jnp.zeros(2), jnp.asarray([True, False])))
    after, outcome = task.step(state, jnp.zeros(2))
    assert outcome.reward == 10.0
    assert outcome.terminated
    assert task.observe(after)[9:].tolist() == [0.0] * 20


def test_the_arena_ends_at_6():
    task = point_gather("raw")
    after, _ = task.step(task.reset(jax.random.key(0)), jnp.asarray([50.0, math.pi / 4]))
    assert after.robot.x == 6.0
    assert after.robot.y == 6.0


# --- sensing


@pytest.mark.parametrize(
    ("degrees", "sector"),
    [(-89, 0), (-73, 0), (-71, 1), (-1, 4), (1, 5), (17, 5), (19, 6), (71, 8), (73, 9), (89, 9)],
)
def test_ten_sectors_of_18_degrees_from_right_to_left(degrees, sector):
    expected = np.zeros(20)
    expected[sector] = 0.5
    np.testing.assert_allclose(readings(at(3, degrees), (-4, -4)), expected, atol=1e-12)


def test_exactly_left_is_in_the_last_sector_and_exactly_right_in_the_first():
    assert readings((0, 3), (-4, -4))[9] == 0.5
    assert readings((0, -3), (-4, -4))[0] == 0.5


@pytest.mark.parametrize("degrees", [91, 135, 180, -135, -91])
def test_nothing_is_seen_behind(degrees):
    assert not readings(at(3, degrees), at(3, degrees)).any()


@pytest.mark.parametrize("heading", [0.0, 3.0, -3.1, 2 * math.pi, 7 * math.pi + 0.3, -40.0])
@pytest.mark.parametrize("degrees", [-80, 5, 80])
def test_bearings_are_wrapped(degrees, heading):
    turned = readings(at(3, degrees, heading), at(2, -degrees, heading), heading=heading)
    np.testing.assert_allclose(turned, readings(at(3, degrees), at(2, -degrees)), atol=1e-12)


def test_the_reading_falls_from_1_to_0_at_a_distance_of_6():
    assert readings((1.5, 0.1), (-4, -4))[5] == pytest.approx(1 - math.hypot(1.5, 0.1) / 6)
    assert readings((5.999, 0.001), (-4, -4))[5] == pytest.approx(0.001 / 6, rel=1e-3)
    assert readings((6.0, 0.0), (-4, -4))[5] == 0.0
    assert not readings((6.001, 0.0), (6.0, 6.0)).any()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_nearest_hides_the_others_of_its_kind(order):
    apples = [[(4, 0.5), (2, 0.25), (3, 0.3)][i] for i in order]
    seen = readings(*apples, (1.5, 0.2), (5, 0.6), apples=3)
    assert seen[5] == pytest.approx(1 - math.hypot(2, 0.25) / 6)
    assert seen[15] == pytest.approx(1 - math.hypot(1.5, 0.2) / 6)
    assert np.count_nonzero(seen) == 2


def test_what_is_taken_is_not_seen():
    task = point_gather(apples=1, bombs=1)
    state = GatherState(robot(), objects((1.5, 0.1), (1.9, 0.1)))
    assert np.count_nonzero(task.observe(state)[9:]) == 2
    after, _ = task.step(state, jnp.asarray([0.7, 0.0]))
    seen = np.asarray(task.observe(after)[9:])
    assert not seen[:10].any()
    assert np.count_nonzero(seen[10:]) == 1


def test_distances_are_those_of_the_centre_of_mass():
    state = GatherState(robot(0.0, 0.0), objects((3, 0.001), (-4, -4)))
    assert point_gather(apples=1, bombs=1).observe(state)[9 + 5] == pytest.approx(0.5, abs=1e-6)


# --- the whole


@pytest.mark.parametrize(
    ("mode", "reward", "cost"), [("clip", (0.627, 0.022), (0.433, 0.004)), ("raw", (1.040, 0.028), (0.728, 0.005))]
)
def test_a_zero_mean_policy_with_std_1_earns_and_costs_what_was_measured(mode, reward, cost):
    """Numbers and standard errors: tests/tasks/plain.py, 20,000 episodes. The specification has .60, .43; .99, .74."""
    task, episodes = point_gather(mode), 4000
    keys = jax.random.split(jax.random.key(0), episodes)
    noise = jax.random.normal(jax.random.key(1), (15, episodes, 2))
    rollout = jax.jit(lambda keys, noise: play(task, lambda _, noise: noise, keys, noise))(keys, noise)
    gammas = 0.995 ** np.arange(15)[:, None]
    rewards, costs = np.asarray((gammas * rollout.rewards).sum(0)), np.asarray(rollout.costs.sum(0))
    for measured, (expected, error) in ((rewards, reward), (costs, cost)):
        both = math.hypot(measured.std() / math.sqrt(episodes), error)
        assert measured.mean() == pytest.approx(expected, abs=4 * both)


def test_not_a_number_shows_and_stops_nothing():
    task = point_gather()
    after, outcome = task.step(task.reset(jax.random.key(0)), jnp.asarray([jnp.nan, 0.0]))
    assert np.isnan(task.observe(after)).any()
    assert not outcome.terminated
    assert np.isfinite(task.observe(after)[9:]).all()


def test_more_objects_than_cells_are_refused():
    assert point_gather(apples=8, bombs=27).observation_size == 29
    with pytest.raises(ValueError, match="9 apples and 27 bombs do not fit into the 35 cells"):
        point_gather(apples=9, bombs=27)
