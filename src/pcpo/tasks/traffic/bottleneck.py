"""Bottleneck: four lanes become two, then one, and some of the cars are the agent's.

A straight road. The agent sets how fast its cars, a tenth of all, may drive in each piece of the road, and earns the
cars that leave at the end. A car driven by a human that has been slow for more than 10 seconds costs 1 in each further
step.

From Flow's bottleneck0 and bottleneck1 (Wu et al., 2017; Vinitsky et al., 2018), which have the paper's 141
observations and 20 actions.

Differences from Flow:

1. A place exactly at a border between two pieces of road belongs to the one ahead of it. Flow gave the place 0 of an
   edge to no piece at all, and other borders to the piece behind.
2. The constraint is not part of Flow; see `bottleneck`.
"""

import functools
import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from pcpo.rl.spaces import Box
from pcpo.tasks.host import HostTask
from pcpo.tasks.traffic.scene import LANE, Road, TrafficScene, View
from pcpo.tasks.traffic.spells import Spells, just_over, over
from pcpo.tasks.traffic.sumo import Simulation
from pcpo.tasks.traffic.world import Era, Step, checked_action, checked_choice, host_task, seen_from_above


@dataclass(frozen=True)
class Edge:
    """A stretch of road of constant width."""

    length: float
    lanes: int
    observed: int
    """Pieces in which it is observed."""
    controlled: int
    """Pieces in which speeds can be set; 0 where they cannot."""


EDGES = {
    "1": Edge(100.0, 4, 1, 0),
    "2": Edge(310.0, 4, 3, 2),
    "3": Edge(140.0, 4, 3, 2),
    "4": Edge(280.0, 2, 3, 2),
    "5": Edge(155.0, 1, 1, 0),
}
SEGMENTS = sum(edge.observed * edge.lanes for edge in EDGES.values())
OBSERVATION_SIZE = 4 * SEGMENTS + 1
ACTIONS = sum(edge.controlled * edge.lanes for edge in EDGES.values())

TIME_STEP = 0.5
WARM_UP = 40
"""Steps before an episode begins."""
TOP_SPEED = 23.0
"""Metres per second, on all of the road."""
LEAST_SPEED = 0.01
CARS, SPEED, FLOW = 20.0, 50.0, 2000.0
"""What counts, speeds and cars per hour are divided by."""
OBSERVED_STEPS, REWARDED_STEPS = 20, 10
"""Steps over which the cars that leave are counted."""
DEPART_SPEED = 10.0
NOBODY_CHANGES, HUMANS_CHANGE = 0, 1621
"""SUMO's lane change modes."""

COSTS = ("seconds", "spells", "any")
ACTION_MODES = ("clip", "normalize")


@dataclass(frozen=True)
class BottleneckEra(Era):
    """Settings of a time."""

    inflow: float
    """Cars per hour, on all lanes together."""
    fastest: float
    """The largest increase of speed in a step; the largest decrease is 1.5."""


ERAS = {"E1": BottleneckEra(1.0, 1.5, 1900.0, 1.0), "E3": BottleneckEra(2.6, 4.5, 2500.0, 1.5)}
SLOWEST = -1.5


@dataclass(frozen=True)
class Variant:
    """Which of Flow's benchmarks."""

    robots: float
    """Their part of all cars."""
    human_lane_changes: int


VARIANTS = {"bottleneck0": Variant(0.1, NOBODY_CHANGES), "bottleneck1": Variant(0.25, HUMANS_CHANGE)}


def bottleneck(
    era: str = "E1",
    variant: str = "bottleneck0",
    cost: str = "seconds",
    slow_speed: float = 3.0,
    slow_limit: float = 10.0,
    action_mode: str = "clip",
    demand: float = 1.0,
    horizon: int = 500,
) -> HostTask:
    """Bottleneck: the cost ``cost`` counts, in each step, the humans who have been slow for too long.

    Args:
        era: Whose cars, inflow and actions: "E1", of Flow when the paper was written, or "E3", of Flow's last version.
        variant: "bottleneck0": a tenth of the cars is the agent's and nobody changes lanes. "bottleneck1": a quarter,
            and humans change lanes.
        cost: "seconds": a human costs 1 in every step after which the current spell of being slow is longer than
            ``slow_limit``. "spells": only in the first of them. "any": 1 if there is such a human.
        slow_speed: Metres per second; who is below it is slow.
        slow_limit: Seconds.
        action_mode: "clip" clips actions to their box, "normalize" stretches -1 ... 1 over it, so that zero brakes.
        demand: Times the era's inflow.
        horizon: Steps of an episode, of half a second each.
    """
    checked_choice("era", era, tuple(ERAS))
    checked_choice("variant", variant, tuple(VARIANTS))
    checked_choice("cost", cost, COSTS)
    checked_choice("action_mode", action_mode, ACTION_MODES)
    low, high = (SLOWEST, ERAS[era].fastest) if action_mode == "clip" else (-1.0, 1.0)
    make = functools.partial(
        BottleneckWorld, era, variant, cost, slow_speed, slow_limit, action_mode == "normalize", demand
    )
    return host_task("bottleneck", OBSERVATION_SIZE, Box((low,) * ACTIONS, (high,) * ACTIONS), horizon, make)


@dataclass(frozen=True)
class Lane:
    """Where the pieces of one lane are among all observations, and among all actions."""

    length: float
    lanes: int
    observed: int
    first_observed: int
    controlled: int
    first_controlled: int

    def segment(self, place: float) -> int:
        """Which lane-segment is observed at so many metres from the beginning of the edge."""
        return self.first_observed + _piece(place, self.length, self.observed) * self.lanes

    def control(self, place: float) -> int | None:
        """Which action is for a robot there; None for none."""
        if not self.controlled:
            return None
        return self.first_controlled + _piece(place, self.length, self.controlled) * self.lanes


def _piece(place: float, length: float, pieces: int) -> int:
    return min(int(place * pieces / length), pieces - 1)


def _lanes() -> dict[str, Lane]:
    found: dict[str, Lane] = {}
    segment = control = 0
    for name, edge in EDGES.items():
        for i in range(edge.lanes):
            found[f"{name}_{i}"] = Lane(
                edge.length, edge.lanes, edge.observed, segment + i, edge.controlled, control + i
            )
        segment += edge.observed * edge.lanes
        control += edge.controlled * edge.lanes
    return found


LANES = _lanes()
"""By SUMO's names; lanes inside junctions are not among them: nothing is seen of those."""


def demand_of(era: BottleneckEra, variant: Variant, factor: float) -> str:
    """Types, routes, the two cars at the start and the two streams, in SUMO's XML."""
    inflow = era.inflow * factor
    streams = {"human": inflow * (1.0 - variant.robots), "robot": inflow * variant.robots}
    rows = [era.vehicle_type(kind) for kind in streams]
    rows += ['<route id="all" edges="1 2 3 4 5"/>', '<route id="start" edges="2 3 4 5"/>']
    rows += [
        f'<vehicle id="{kind}_start" type="{kind}" route="start" depart="0" departLane="{lane}" departPos="5" '
        'departSpeed="0"/>'
        for lane, kind in enumerate(streams)
    ]
    rows += [
        f'<flow id="{kind}" type="{kind}" route="all" begin="1" end="86400" vehsPerHour="{rate:.6f}" '
        f'departLane="random" departSpeed="{DEPART_SPEED}"/>'
        for kind, rate in streams.items()
    ]
    return "<routes>\n" + "\n".join(rows) + "\n</routes>\n"


@dataclass
class Robot:
    """One of the agent's cars, as it stood after the last step."""

    top_speed: float
    """What it may drive, in metres per second."""
    control: int | None = None
    """The action that is for it."""


class BottleneckWorld:
    """One bottleneck; see `pcpo.tasks.traffic.world.TrafficWorld`."""

    def __init__(
        self,
        era: str,
        variant: str,
        cost: str,
        slow_speed: float,
        slow_limit: float,
        normalized: bool,
        demand: float,
    ) -> None:
        self._era, self._variant, self._cost = ERAS[era], VARIANTS[variant], cost
        self._slow_speed, self._slow_limit, self._normalized = slow_speed, slow_limit, normalized
        text = demand_of(self._era, self._variant, demand)
        self._simulation = Simulation("bottleneck", "bottleneck", text, TIME_STEP)
        self._sumo = self._simulation.sumo
        self._forget()

    def reset(self, seed: int) -> Float[np.ndarray, " o"]:
        """Begins an episode: one step of SUMO puts a car of each kind on the road, then nobody acts for a while."""
        self._simulation.load(seed)
        self._forget()
        observation = self._pass()
        for _ in range(WARM_UP):
            observation = self._pass()
        return observation

    def step(self, action: Float[np.ndarray, " k"]) -> Step:
        """The agent's cars get their speeds, half a second passes, and what has come of it is looked at."""
        self._drive(self._increments(action))
        observation = self._pass()
        return Step(observation, self._outflow(REWARDED_STEPS) / FLOW, self._charge(), self._crashed())

    def details(self) -> dict[str, Any]:
        """Of all cars: their speeds. Of humans who are slow: for how long. Of the agent's: what they may drive."""
        self._simulation.check()
        return {
            "slow_seconds": dict(self.spells.seconds),
            "speeds": dict(self._speeds),
            "robots": {name: robot.top_speed for name, robot in self.robots.items()},
            "arrived": self._arrivals[-1] if self._arrivals else 0,
            "outflow": self._outflow(OBSERVED_STEPS),
            "crashed": self._crashed(),
        }

    def scene(self) -> TrafficScene:
        """The road and the cars."""
        self._simulation.check()
        late = {name for name, seconds in self.spells.seconds.items() if seconds > self._slow_limit}
        cars = seen_from_above(self._sumo, self.robots, late)
        return TrafficScene(_VIEWS, _roads(), cars, limit=self._slow_limit, top_speed=TOP_SPEED)

    def close(self) -> None:
        """Ends the simulation."""
        self._simulation.close()

    def _forget(self) -> None:
        self.spells = Spells(self._slow_speed, TIME_STEP)
        self.robots: dict[str, Robot] = {}
        self._arrivals: deque[int] = deque(maxlen=OBSERVED_STEPS)
        self._speeds: dict[str, float] = {}

    def _increments(self, action: Float[np.ndarray, " k"]) -> list[float]:
        """What each action adds to the speed of the robots that it is for."""
        low, high = SLOWEST, self._era.fastest
        numbers = checked_action("bottleneck", action, ACTIONS)
        if self._normalized:
            numbers = [low + (number + 1.0) / 2.0 * (high - low) for number in numbers]
        return [min(max(number, low), high) for number in numbers]

    def _drive(self, increments: list[float]) -> None:
        """Sets what each robot may drive: changed where the agent has a say, the speed limit everywhere else."""
        for name, robot in self.robots.items():
            wanted = TOP_SPEED
            if robot.control is not None:
                wanted = min(max(robot.top_speed + increments[robot.control], LEAST_SPEED), TOP_SPEED)
            if wanted != robot.top_speed:
                robot.top_speed = wanted
                self._sumo.vehicle.setMaxSpeed(name, wanted)

    def _pass(self) -> Float[np.ndarray, " o"]:
        """Half a second. Whoever came is told how to change lanes; whoever left is counted; what is there is seen."""
        self._simulation.step()
        simulation, vehicle = self._sumo.simulation, self._sumo.vehicle
        for name in simulation.getDepartedIDList():
            human = name.startswith("human")
            vehicle.setLaneChangeMode(name, self._variant.human_lane_changes if human else NOBODY_CHANGES)
            if not human:
                self.robots[name] = Robot(vehicle.getMaxSpeed(name))
        for name in simulation.getArrivedIDList():
            self.robots.pop(name, None)
        self._arrivals.append(simulation.getArrivedNumber())
        return self._observe()

    def _crashed(self) -> bool:
        return self._sumo.simulation.getStartingTeleportNumber() > 0

    def _observe(self) -> Float[np.ndarray, " o"]:
        """Reads all cars once: who is where, and how fast."""
        vehicle, robots = self._sumo.vehicle, self.robots
        lane_of, place_of, speed_of = vehicle.getLaneID, vehicle.getLanePosition, vehicle.getSpeed
        humans, machines, human_speeds, machine_speeds = ([0.0] * SEGMENTS for _ in range(4))
        self._speeds = {name: speed_of(name) for name in vehicle.getIDList()}
        for name, speed in self._speeds.items():
            lane, robot = LANES.get(lane_of(name)), robots.get(name)
            if robot is not None:
                robot.control = None
            if lane is None:
                continue
            place = place_of(name)
            segment = lane.segment(place)
            if robot is None:
                humans[segment] += 1.0
                human_speeds[segment] += speed
            else:
                machines[segment] += 1.0
                machine_speeds[segment] += speed
                robot.control = lane.control(place)
        self.spells.passed((name, speed) for name, speed in self._speeds.items() if name not in robots)
        counts = np.array(humans + machines)
        sums = np.array(human_speeds + machine_speeds)
        means = sums / np.maximum(counts, 1.0)
        return np.concatenate([counts / CARS, means / SPEED, [self._outflow(OBSERVED_STEPS) / FLOW]])

    def _outflow(self, steps: int) -> float:
        """Cars per hour that have left within the last steps, or since the start where that was later."""
        steps = min(steps, len(self._arrivals))
        left = sum(itertools.islice(reversed(self._arrivals), steps))
        return 3600.0 * left / (max(steps, 1) * TIME_STEP)

    def _charge(self) -> float:
        """The cost of the step that has just passed, by the definition that was chosen."""
        seconds = self.spells.seconds.values()
        if self._cost == "spells":
            return float(just_over(seconds, self._slow_limit, TIME_STEP))
        late = over(seconds, self._slow_limit)
        return float(min(late, 1) if self._cost == "any" else late)


@functools.cache
def _roads() -> tuple[Road, ...]:
    """The stretches between the zippers, and in these the lanes as they come together."""
    corners = ((0.0, 530.0, 4), (570.0, 810.0, 2), (850.0, 985.0, 1))
    stretches = [Road(((x0, 0.0), (x1, 0.0)), LANE * lanes, lanes) for x0, x1, lanes in corners]
    zippers = [Road(((a[1], 0.0), (b[0], 0.0)), LANE * a[2], 0, LANE * b[2]) for a, b in itertools.pairwise(corners)]
    return (*stretches, *zippers)


_VIEWS = tuple(View((x, x + 330.0), (-3.0 * LANE, 3.0 * LANE)) for x in (-2.0, 328.0, 657.0))
"""The road in three pieces, from its beginning to its end."""
