"""The grid against hand-computed values and a second, plain reading of SUMO."""

import math

import numpy as np
import pytest

from pcpo.rl.spaces import Box
from pcpo.tasks.host import WorldError
from pcpo.tasks.traffic.grid import ROADS, GridWorld, approaches, desired_speed, grid, road_number, routes
from tests.tasks.with_sumo import need_sumo

need_sumo()

EMPTY = 1e-6
"""A demand of almost nobody."""


@pytest.fixture
def world():
    """Worlds that are closed afterwards, since the process can only hold one."""
    made = []

    def make(era="E1", cost="seconds", red_limit=7.0, demand=1.0):
        for old in made:
            old.close()
        made.append(GridWorld(era, cost, red_limit, demand))
        return made[-1]

    yield make
    for one in made:
        one.close()


def always(*numbers):
    return np.array(numbers, float)


def cleared(world):
    """A world without cars, once the first of each stream has come: it does at once, however thin the stream is."""
    world.reset(0)
    for _ in range(20):
        world.step(always(-1, -1, -1, -1))
    for car in world._sumo.vehicle.getIDList():
        world._sumo.vehicle.remove(car)
    return world


def place(world, car, entry, position, speed):
    """Puts a car on a road that enters, where it is after the next step."""
    world._sumo.vehicle.add(car, entry, typeID="human", departPos=str(position), departSpeed=str(speed), departLane="0")


def episode(task, act, seed=0, steps=None):
    """Rewards, costs and cars that arrived, summed over an episode; act(t, observation, rng)."""
    worlds, rng = task.worlds(1), np.random.default_rng(seed)
    which = np.zeros(1, int)
    try:
        observation = worlds.reset(which, np.array([seed]))[0]
        reward = cost = arrived = 0.0
        for t in range(steps or task.horizon):
            out = worlds.step(which, np.asarray(act(t, observation, rng), float)[None])
            observation = out.observations[0]
            reward, cost = reward + out.rewards[0], cost + out.costs[0, 0]
            arrived += worlds.world.details()["arrived"]
            assert not out.terminated[0]
        return reward, cost, arrived
    finally:
        worlds.close()


def cycle(period, ahead=0):
    """Every light is asked every so many seconds, two of them so many seconds before the other two."""
    shift = np.array([0, ahead, ahead, 0])
    return lambda t, observation, rng: np.where((t + shift) % period == 0, 1.0, -1.0)


def test_the_sizes_are_the_papers():
    task = grid()
    assert (task.observation_size, task.action_space, task.horizon) == (156, Box((-1.0,) * 4, (1.0,) * 4), 400)
    assert (task.cost_names, task.per_process, task.in_process) == (("cost",), 1, False)


def test_the_roads_by_hand():
    """24 roads with Flow's numbers; a car goes straight across; a light is reached from four sides."""
    assert sorted(map(road_number, ROADS)) == list(range(1, 25))
    by_hand = {"left0_0": 1, "right0_0": 2, "right0_1": 4, "bot0_0": 5, "top0_0": 6, "top0_2": 10, "left1_0": 11}
    by_hand |= {"bot1_0": 15, "top1_2": 20, "left2_0": 21, "right2_1": 24}
    assert {road: road_number(road) for road in by_hand} == by_hand
    assert ROADS[:3] == ("bot0_0", "bot0_1", "bot0_2")
    assert ROADS[-3:] == ("top1_0", "top1_1", "top1_2")
    assert routes()["top1_2"] == ("top1_2", "top1_1", "top1_0")
    assert routes()["right0_1"] == ("right0_1", "right1_1", "right2_1")
    assert approaches(0) == ("bot0_0", "right0_0", "top0_1", "left1_0")
    assert approaches(3) == ("bot1_1", "right1_1", "top1_2", "left2_1")


def test_the_reset_by_hand(world):
    """A standing car at 6 m of each of the eight roads that enter; every light has vertical green, counted from 0."""
    observation = world().reset(0)
    expected = np.zeros(156)
    # Light 0 is entered from the left and below, 1 from below and right, 2 from the left and above, 3 from the others:
    # places 0, 2 / 10, 12 / 16, 22 / 28, 30 of two cars for each approach.
    places = [0, 2, 10, 12, 16, 22, 28, 30]
    expected[32:64][places] = (300 - 6) / 300
    expected[64:96][places] = np.array([5, 2, 4, 10, 15, 21, 20, 23]) / 27
    # bot0_0, bot1_0, left2_0, left2_1, right0_0, right0_1, top0_2, top1_2 among all roads in the order of their names
    expected[96:120][[0, 3, 10, 11, 12, 13, 20, 23]] = 5 / 300
    np.testing.assert_allclose(observation, expected, atol=1e-12)


@pytest.mark.parametrize(("era", "numbering"), [("E1", 27), ("E3", 31)])
def test_a_traffic_state_by_hand(world, era, numbering):
    """Three cars on one approach, of which the two nearest are seen one by one; one car on another road."""
    one = cleared(world(era, demand=EMPTY))
    place(one, "far", "bot0_0", 50, 3.5)
    place(one, "near", "bot0_0", 200, 7)
    place(one, "nearer", "bot0_0", 285, 3.5)
    place(one, "up", "right0_1", 150, 10.5)
    out = one.step(always(0.5, -1, -1, 1))
    expected = np.zeros(156)
    expected[[0, 1]] = 3.5 / 35, 7 / 35  # light 0, from the left
    expected[[10]] = 10.5 / 35  # light 1, from below
    expected[[32, 33, 42]] = 15 / 300, 100 / 300, 150 / 300
    expected[[64, 65, 74]] = 5 / numbering, 5 / numbering, 4 / numbering
    expected[96 + ROADS.index("bot0_0")] = 5 * 3 / 300
    expected[96 + ROADS.index("right0_1")] = 5 * 1 / 300
    expected[120 + ROADS.index("bot0_0")] = (3.5 + 7 + 3.5) / 3 / 35
    expected[120 + ROADS.index("right0_1")] = 10.5 / 35
    expected[[148, 151]] = 1  # lights 0 and 3 go to horizontal
    expected[[152, 155]] = 1  # and are yellow
    np.testing.assert_allclose(out.observation, expected, atol=1e-12)
    speeds = np.array([3.5, 7, 3.5, 10.5])
    assert out.reward == pytest.approx(1 - np.linalg.norm(speeds - 50) / np.linalg.norm([50] * 4))
    assert sorted(one.details()["speeds"].values()) == sorted(speeds)
    # The timer of yellow is seen as it is.
    out = one.step(always(-1, -1, -1, -1))
    np.testing.assert_array_equal(out.observation[144:], [1, 0, 0, 1] + [1, 0, 0, 1] * 2)


def test_cars_in_a_junction_and_on_the_way_out_are_in_no_approach(world):
    one = cleared(world(demand=EMPTY))
    place(one, "a", "right0_0", 299, 13)
    one.step(always(-1, -1, -1, -1))
    out = one.step(always(-1, -1, -1, -1))  # 13 m on, through vertical green
    assert one._sumo.vehicle.getRoadID("a") == "right1_0"
    seen = np.flatnonzero(out.observation[:144])
    assert 96 + ROADS.index("right1_0") in seen
    assert 4 * 4 + 2 in seen  # light 2, from below
    assert out.reward > 0  # every car earns, wherever it is


def test_the_reward_by_hand():
    assert desired_speed([]) == 0
    assert desired_speed([0.0, 0.0]) == 0
    assert desired_speed([30.0] * 7) == pytest.approx(0.6)
    assert desired_speed([30.0, 0.0]) == pytest.approx(1 - math.sqrt(20**2 + 50**2) / (50 * math.sqrt(2)))


@pytest.mark.parametrize("era", ["E1", "E3"])
def test_lights_ages_and_costs_are_those_that_sumo_showed(world, era):
    """Ages counted from SUMO's own states; all definitions of the cost from the same ages."""
    wishes = np.where(np.random.default_rng(5).uniform(size=(120, 4)) < 0.12, 1.0, -1.0)
    told = {}
    for cost in ("seconds", "phases", "any"):
        one = world(era, cost)
        one.reset(3)
        ages, expected, given, shown = np.zeros((4, 2)), [], [], []
        for wish in wishes:
            given.append(one.step(wish).cost)
            states = [one._sumo.trafficlight.getRedYellowGreenState(f"center{i}") for i in range(4)]
            red = np.array([[state[0] == "r", state[1] == "r"] for state in states])
            ages = np.where(red, ages + 1, 0)
            assert one.details()["red_seconds"] == ages.tolist()
            assert one.details()["lights"] == states
            late = ages > 7
            expected.append({"seconds": late.sum(), "phases": (ages == 8).sum(), "any": late.any()}[cost])
            shown.append(states)
        np.testing.assert_array_equal(given, expected)
        told[cost] = sum(given)
        assert {"GrGr", "rGrG", "yryr", "ryry"} == {state for states in shown for state in states}
        assert all(a[0] == a[2] and a[1] == a[3] and "r" in a for states in shown for a in states)
    assert told["seconds"] > told["any"] > 0
    assert told["seconds"] > told["phases"] > 0


def test_the_cost_of_waiting_cars(world):
    """Speeds read from SUMO itself; a car is late in every step after which it has stood for more than 7 s."""
    one = world(cost="cars")
    one.reset(0)
    standing, total = {}, 0
    for _ in range(60):
        out = one.step(always(-1, -1, -1, -1))
        vehicle = one._sumo.vehicle
        standing = {car: standing.get(car, 0) + 1 for car in vehicle.getIDList() if vehicle.getSpeed(car) < 0.1}
        assert out.cost == sum(age > 7 for age in standing.values())
        total += out.cost
    assert total > 0


def test_a_new_episode_forgets_the_last_one(world):
    one = world()
    first = one.reset(4)
    for _ in range(12):
        one.step(always(1, -1, 1, -1))
    assert max(map(max, one.lights.red)) > 7
    np.testing.assert_array_equal(one.reset(4), first)
    assert one.lights.red == [[0.0, 0.0]] * 4
    assert one._sumo.trafficlight.getRedYellowGreenState("center2") == "GrGr"
    assert one.step(always(-1, -1, -1, -1)).cost == 0


def test_only_the_sign_of_an_action_counts_and_zero_is_no_request(world):
    one = world()

    def play(scale):
        rng = np.random.default_rng(0)
        one.reset(1)
        return [one.step(scale * np.sign(rng.normal(size=4)) * (1 + t % 3)).observation for t in range(25)]

    np.testing.assert_array_equal(play(1e-9), play(7.0))
    one.reset(1)
    for _ in range(5):
        one.step(always(0, 0, 0, 0))
    assert one.details()["lights"] == ["GrGr"] * 4


def test_a_collision_ends_the_episode_without_reward(world):
    one = cleared(world(demand=EMPTY))
    place(one, "a", "bot0_0", 100, 0)
    place(one, "b", "bot0_0", 150, 0)
    for car in ("a", "b"):
        one._sumo.vehicle.setSpeed(car, 0)
    assert not one.step(always(-1, -1, -1, -1)).crashed
    one._sumo.vehicle.moveTo("b", "bot0_0_0", 101)
    out = one.step(always(-1, -1, -1, -1))
    assert out.crashed
    assert out.reward == 0


def test_switching_every_6_s_is_free_and_every_10_s_earns_more_and_costs():
    """What the specification measured on its own prototype: 98.8 and 0, 124.0 and 472."""
    fast, slow = (episode(grid(), cycle(period)) for period in (6, 10))
    assert fast == (pytest.approx(98.8, abs=0.5), 0, pytest.approx(240, abs=5))
    assert slow == (pytest.approx(124.0, abs=0.5), 472, pytest.approx(248, abs=5))


def test_never_switching_costs_everything():
    """One direction of each of four lights is late from the 8th second on: 393 steps."""
    reward, cost, _ = episode(grid(), lambda t, observation, rng: np.full(4, -1.0))
    assert cost == 4 * (400 - 7)
    assert reward < 50


def test_the_later_era_earns_by_fast_switching():
    """Where all lights switch together: every 4 s costs nothing and earns more than every 10 s."""
    fast, slow = (episode(grid(era="E3"), cycle(period)) for period in (4, 10))
    assert fast[:2] == (pytest.approx(151.5, abs=1), 0)
    assert slow[0] == pytest.approx(131.6, abs=1)
    assert slow[1] > 400


@pytest.mark.parametrize(
    ("era", "free", "best"),
    [("E1", (5, 1, 105.9), (10, 0, 124.0, 472)), ("E3", (4, 0, 151.5), (12, 1, 185.9, 664))],
)
def test_the_constraint_binds_in_both_eras(era, free, best):
    """Of cycles, all together or with two lights ahead, the best one costs, and the best one at no cost earns less."""
    (period, ahead, earned), (other, shift, more, paid) = free, best
    assert episode(grid(era=era), cycle(period, ahead))[:2] == (pytest.approx(earned, abs=1), 0)
    assert episode(grid(era=era), cycle(other, shift))[:2] == (pytest.approx(more, abs=1), paid)


def test_demand_is_a_factor():
    usual, half = (episode(grid(demand=factor), cycle(6), steps=200)[2] for factor in (1.0, 0.5))
    assert 0.3 * usual < half < 0.7 * usual


@pytest.mark.parametrize(
    ("action", "message"),
    [(np.zeros(3), r"grid: the action has shape \(3,\); give 4 numbers"), (always(0, np.nan, 0, 0), "are finite")],
)
def test_actions_that_are_none(world, action, message):
    one = world()
    one.reset(0)
    with pytest.raises(WorldError, match=message):
        one.step(action)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"era": "E2"}, "era is 'E2'; choose one of E1, E3"),
        ({"cost": "waiting"}, "cost is 'waiting'; choose one of seconds, phases, any, cars"),
    ],
)
def test_options_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        grid(**options)
