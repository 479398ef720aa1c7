"""The bottleneck against hand-computed values and a second, plain reading of SUMO."""

from collections import deque

import numpy as np
import pytest

from pcpo.rl.spaces import Box
from pcpo.tasks.host import WorldError
from pcpo.tasks.traffic.bottleneck import LANES, BottleneckWorld, bottleneck
from tests.tasks.with_sumo import need_sumo

need_sumo()

EMPTY = 1e-6
"""A demand of almost nobody."""
NOTHING = np.zeros(20)


@pytest.fixture
def world():
    """Worlds that are closed afterwards, since the process can only hold one."""
    made = []

    def make(
        era="E1", variant="bottleneck0", cost="seconds", slow=3.0, limit=10.0, normalized=False, demand=1.0
    ):  # fmt: skip
        for old in made:
            old.close()
        made.append(BottleneckWorld(era, variant, cost, slow, limit, normalized, demand))
        return made[-1]

    yield make
    for one in made:
        one.close()


def cleared(world):
    """A world without cars."""
    world.reset(0)
    for car in world._sumo.vehicle.getIDList():
        world._sumo.vehicle.remove(car)
    world.robots.clear()
    world.step(NOTHING)
    assert not world._sumo.vehicle.getIDList()
    return world


def place(world, car, edge, lane, position, speed):
    """Puts a car where it is after the next step; its name begins with its type."""
    route = f"from {edge}"
    if route not in world._sumo.route.getIDList():
        world._sumo.route.add(route, [str(e) for e in range(edge, 6)])
    world._sumo.vehicle.add(
        car, route, typeID=car.split("_")[0], departPos=str(position), departSpeed=str(speed), departLane=str(lane)
    )


def episode(task, act, seed=0):
    """Rewards, costs and cars that left, summed over an episode; act(rng)."""
    worlds, rng, which = task.worlds(1), np.random.default_rng(seed), np.zeros(1, int)
    try:
        worlds.reset(which, np.array([seed]))
        reward = cost = arrived = 0.0
        for _ in range(task.horizon):
            out = worlds.step(which, act(rng)[None])
            reward, cost = reward + out.rewards[0], cost + out.costs[0, 0]
            arrived += worlds.world.details()["arrived"]
            assert not out.terminated[0]
        return reward, cost, arrived
    finally:
        worlds.close()


def test_the_sizes_are_the_papers():
    task = bottleneck()
    assert (task.observation_size, task.action_space, task.horizon) == (141, Box((-1.5,) * 20, (1.0,) * 20), 500)
    assert bottleneck(era="E3").action_space == Box((-1.5,) * 20, (1.5,) * 20)
    assert bottleneck(action_mode="normalize").action_space == Box((-1.0,) * 20, (1.0,) * 20)


def test_the_pieces_of_road_by_hand():
    """35 lane-segments are seen, 20 are controlled; edges 1 to 5, segment by segment, lane by lane."""
    assert len(LANES) == 4 + 4 + 4 + 2 + 1
    by_hand = {  # lane, metres from its beginning: what is seen, and what is controlled
        ("1_0", 0.0): (0, None), ("1_3", 99.9): (3, None),
        ("2_0", 5.0): (4, 0), ("2_1", 103.0): (5, 1), ("2_1", 104.0): (9, 1), ("2_3", 154.0): (11, 3),
        ("2_3", 156.0): (11, 7), ("2_0", 310.0): (12, 4),
        ("3_0", 0.0): (16, 8), ("3_2", 47.0): (22, 10), ("3_3", 139.0): (27, 15),
        ("4_0", 0.0): (28, 16), ("4_1", 100.0): (31, 17), ("4_1", 279.0): (33, 19),
        ("5_0", 0.0): (34, None), ("5_0", 155.0): (34, None),
    }  # fmt: skip
    for (lane, place_), (segment, control) in by_hand.items():
        assert (LANES[lane].segment(place_), LANES[lane].control(place_)) == (segment, control), (lane, place_)


def test_a_traffic_state_by_hand(world):
    """Four humans, two of them in one piece of road, and two of the agent's cars."""
    one = cleared(world(demand=EMPTY))
    place(one, "human_a", 1, 2, 50, 8)
    place(one, "human_b", 2, 0, 20, 4)
    place(one, "human_c", 2, 0, 80, 7)
    place(one, "human_d", 5, 0, 100, 20)
    place(one, "robot_e", 3, 1, 60, 5)
    place(one, "robot_f", 4, 1, 200, 10)
    out = one.step(NOTHING)
    expected = np.zeros(141)
    # Humans: edge 1 lane 2; edge 2 lane 0 in its first third, twice; edge 5. Robots: edge 3 lane 1 in its second
    # third, 16 + 4 + 1; edge 4 lane 1 in its last third, 28 + 4 + 1.
    expected[[2, 4, 34]] = 1 / 20, 2 / 20, 1 / 20
    expected[[35 + 21, 35 + 33]] = 1 / 20
    expected[[70 + 2, 70 + 4, 70 + 34]] = 8 / 50, (4 + 7) / 2 / 50, 20 / 50
    expected[[105 + 21, 105 + 33]] = 5 / 50, 10 / 50
    np.testing.assert_allclose(out.observation, expected, atol=1e-12)
    assert out.reward == 0
    assert one.robots["robot_e"].control == 8 + 1
    assert one.robots["robot_f"].control == 16 + 2 + 1
    assert set(one.robots) == {"robot_e", "robot_f"}


def test_what_the_agents_cars_may_drive_by_hand(world):
    """The action of their piece is added in each step, within 0.01 and 23; elsewhere the road's limit holds."""
    one = cleared(world(demand=EMPTY))
    place(one, "robot_e", 3, 1, 1, 5)
    place(one, "robot_f", 5, 0, 10, 5)
    one.step(NOTHING)
    action = np.zeros(20)
    action[8 + 1] = -1.0
    limits = []
    for k in range(4):
        action[8 + 1] = (-1.0, -7.0, 0.25, 5.0)[k]  # -7 is clipped to -1.5, and 5 to 1
        one.step(action)
        limits.append(one._sumo.vehicle.getMaxSpeed("robot_e"))
        assert one._sumo.vehicle.getMaxSpeed("robot_f") == 23
    assert limits == [23.0, 21.5, 21.75, 22.75]  # the engine's 30 is cut to the road's 23 first
    for _ in range(20):
        one.step(np.full(20, -1.5))
    assert one._sumo.vehicle.getMaxSpeed("robot_e") == 0.01
    assert one.details()["robots"]["robot_e"] == 0.01


def test_normalized_actions_are_stretched_over_the_box(world):
    """-1 is -1.5, 1 is 1.0; so 0 is -0.25, and the cars brake unless they are told not to."""
    one = cleared(world(demand=EMPTY, normalized=True))
    place(one, "robot_e", 3, 1, 1, 5)
    one.step(NOTHING)
    one.step(np.ones(20))
    limits = []
    for number in (0.0, -1.0, 1.0, -9.0):
        one.step(np.full(20, number))
        limits.append(one._sumo.vehicle.getMaxSpeed("robot_e"))
    assert limits == [22.75, 21.25, 22.25, 20.75]


def watched(world):
    """Has what happens in every step of SUMO written down, the steps of a reset included.

    Returns:
        For each step the speeds of humans, and how many cars have left, from SUMO itself.
    """
    sumo, inner, log = world._sumo, world._simulation.step, []

    def step():
        inner()
        speeds = {car: sumo.vehicle.getSpeed(car) for car in sumo.vehicle.getIDList()}
        humans = {car: speed for car, speed in speeds.items() if sumo.vehicle.getTypeID(car) == "human"}
        log.append((humans, len(sumo.simulation.getArrivedIDList())))

    world._simulation.step = step
    return log


@pytest.mark.parametrize("slow", [1.0, 3.0, 5.0])
def test_slow_spells_outflow_and_costs_are_those_of_sumos_own_words(world, slow):
    """In a traffic jam, step by step, for every definition of the cost."""
    told = {}
    for cost in ("seconds", "spells", "any"):
        rng, one = np.random.default_rng(2), world(cost=cost, slow=slow, normalized=True)
        log = watched(one)
        one.reset(2)
        assert len(log) == 1 + 40
        spells, left, total = {}, deque([0] * 20, 20), 0
        for humans, arrived in log:
            spells = {car: spells.get(car, 0) + 1 for car, speed in humans.items() if speed < slow}
            left.append(arrived)
        for t in range(260):
            out = one.step(rng.normal(size=20))
            humans, arrived = log[-1]
            spells = {car: spells.get(car, 0) + 1 for car, speed in humans.items() if speed < slow}
            left.append(arrived)
            late = [steps for steps in spells.values() if steps > 20]
            expected = {"seconds": len(late), "spells": late.count(21), "any": min(len(late), 1)}[cost]
            assert out.cost == expected, t
            assert out.reward == pytest.approx(sum(list(left)[-10:]) * 3600 / 5 / 2000)
            assert out.observation[140] == pytest.approx(sum(left) * 3600 / 10 / 2000)
            assert one.details()["slow_seconds"] == {car: steps / 2 for car, steps in spells.items()}
            total += out.cost
        told[cost] = total
    assert told["seconds"] > told["any"] > 0
    assert told["seconds"] > told["spells"] > 0


def test_cars_keep_their_lanes_unless_humans_may_change_them(world):
    """Flow's bottleneck0, in which nobody does, and bottleneck1."""

    def changes(variant):
        one = world(variant=variant)
        one.reset(0)
        seen, changed, kinds = {}, 0, {"human": 0, "robot": 0}
        for _ in range(200):
            one.step(NOTHING)
            vehicle = one._sumo.vehicle
            for car in vehicle.getIDList():
                edge, lane = vehicle.getRoadID(car), vehicle.getLaneIndex(car)
                changed += seen.get(car, (edge, lane))[0] == edge and seen.get(car, (edge, lane))[1] != lane
                seen[car] = edge, lane
        for car in seen:
            kinds[car.partition(".")[0].partition("_")[0]] += 1
        return changed, kinds["robot"] / len(seen)

    changed, robots = changes("bottleneck0")
    assert changed == 0
    assert 0.05 < robots < 0.15
    changed, robots = changes("bottleneck1")
    assert changed > 0
    assert 0.2 < robots < 0.3


def test_a_collision_ends_the_episode(world):
    one = cleared(world(demand=EMPTY))
    place(one, "human_a", 2, 0, 100, 0)
    place(one, "human_b", 2, 0, 150, 0)
    for car in ("human_a", "human_b"):
        one._sumo.vehicle.setSpeed(car, 0)
    assert not one.step(NOTHING).crashed
    one._sumo.vehicle.moveTo("human_b", "2_0", 101)
    assert one.step(NOTHING).crashed


def test_no_control_is_free_and_passes_what_the_specification_measured():
    """About 1,620 cars an hour and no cost, on four seeds."""
    numbers = np.array([episode(bottleneck(), lambda rng: NOTHING, seed) for seed in range(4)])
    reward, cost, arrived = numbers.T
    np.testing.assert_array_equal(cost, 0)
    assert arrived.mean() * 3600 / 250 == pytest.approx(1620, rel=0.03)
    assert reward.mean() == pytest.approx(401, rel=0.03)


def test_random_speeds_cost_and_pass_fewer():
    """The agent's cars brake at random, and those behind them stand."""
    reward, cost, _ = episode(bottleneck(action_mode="normalize"), lambda rng: rng.normal(size=20))
    assert cost > 1000
    assert reward < 350


def test_the_later_inflow_is_more_than_the_road_can_take():
    """Capacity drops to about 1,440 cars an hour, and there is a cost that nobody has caused."""
    _, cost, arrived = episode(bottleneck(era="E3"), lambda rng: NOTHING)
    assert arrived * 3600 / 250 == pytest.approx(1440, rel=0.05)
    assert cost > 1000


@pytest.mark.parametrize(
    ("action", "message"),
    [(np.zeros(4), r"bottleneck: the action has shape \(4,\); give 20 numbers"), (np.full(20, np.inf), "are finite")],
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
        ({"variant": "bottleneck2"}, "variant is 'bottleneck2'; choose one of bottleneck0, bottleneck1"),
        ({"cost": "cars"}, "cost is 'cars'; choose one of seconds, spells, any"),
        ({"action_mode": "raw"}, "action_mode is 'raw'; choose one of clip, normalize"),
    ],
)
def test_options_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        bottleneck(**options)
