"""Grid: four traffic lights, which may keep nobody waiting for long.

Two roads cross two roads, 300 m apart, with a light at each crossing and an even stream of cars on every lane that
enters. The agent asks the lights to switch. It earns how close all cars are to a speed that none can reach; a direction
that has been red for more than 7 seconds costs 1 in each further second.

From the partially observed grid of Flow (Wu et al., 2017; Vinitsky et al., 2018), whose 2 x 2 version with two observed
cars on each approach is the only one with the paper's 156 observations.

Differences from Flow:

1. Lights begin each episode with vertical green. Flow's kept what the last episode left, and showed a fixed program
   until the first switch.
2. The constraint is not part of Flow; see `grid`.
"""

import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from pcpo.rl.spaces import Box
from pcpo.tasks.host import HostTask
from pcpo.tasks.traffic.lights import Lights
from pcpo.tasks.traffic.scene import LANE, Car, Road, Signal, TrafficScene, View
from pcpo.tasks.traffic.spells import Spells, just_over, over
from pcpo.tasks.traffic.sumo import Simulation
from pcpo.tasks.traffic.world import Era, Step, checked_action, checked_choice, host_task, seen_from_above

ROWS, COLUMNS = 2, 2
LIGHTS = ROWS * COLUMNS
OBSERVED = 2
"""Cars that are seen on each approach to a light: the nearest ones."""
OBSERVATION_SIZE = 156
BETWEEN = 300.0
"""Metres between two lights."""
TIME_STEP = 1.0
SPEED_LIMIT = 35.0
TARGET_SPEED = 50.0
"""Metres per second that the reward wants from every car; their engines end at 30, so the reward ends at 0.6."""
DENSITY = 5.0
"""Metres of a car, for the densities that are observed."""
INFLOW = 300.0
"""Cars per hour on each lane that enters."""
STANDING = 0.1
"""Metres per second, below which a car waits, for the cost "cars"."""

COSTS = ("seconds", "phases", "any", "cars")


@dataclass(frozen=True)
class GridEra(Era):
    """Settings of a time."""

    net: str
    yellow_time: float
    depart_speed: str
    numbering: int
    """What the numbers of roads are divided by."""


ERAS = {
    "E1": GridEra(1.0, 1.5, "grid-e1", 2.0, "max", 27),
    "E3": GridEra(2.6, 7.5, "grid-e3", 3.0, "30", 31),
}


def grid(
    era: str = "E1", cost: str = "seconds", red_limit: float = 7.0, demand: float = 1.0, horizon: int = 400
) -> HostTask:
    """Grid: the cost ``cost`` counts, in each step, the directions of lights that have been red for too long.

    Args:
        era: Whose cars and lights: "E1", of Flow when the paper was written, or "E3", of Flow's last version, whose
            cars accelerate faster, so that switching often earns more.
        cost: "seconds": a direction of a light costs 1 in every step after which it has been red for more than
            ``red_limit``. "phases": only in the first of them. "any": 1 if there is such a direction. "cars": a car
            costs 1 in every step after which it has stood for more than ``red_limit``.
        red_limit: Seconds.
        demand: Times the usual inflow of 300 cars per hour and lane.
        horizon: Steps of an episode, of one second each.
    """
    checked_choice("era", era, tuple(ERAS))
    checked_choice("cost", cost, COSTS)
    make = functools.partial(GridWorld, era, cost, red_limit, demand)
    return host_task("grid", OBSERVATION_SIZE, Box((-1.0,) * LIGHTS, (1.0,) * LIGHTS), horizon, make)


def routes() -> dict[str, tuple[str, ...]]:
    """The roads that a car takes, by the one on which it enters: straight across."""
    found: dict[str, tuple[str, ...]] = {}
    for r in range(ROWS):
        row = range(COLUMNS + 1)
        found[f"bot{r}_0"] = tuple(f"bot{r}_{c}" for c in row)
        found[f"top{r}_{COLUMNS}"] = tuple(f"top{r}_{c}" for c in reversed(row))
    for c in range(COLUMNS):
        column = range(ROWS + 1)
        found[f"right0_{c}"] = tuple(f"right{r}_{c}" for r in column)
        found[f"left{ROWS}_{c}"] = tuple(f"left{r}_{c}" for r in reversed(column))
    return found


def approaches(light: int) -> tuple[str, str, str, str]:
    """The roads that lead to a light: from the left, from below, from the right, from above."""
    r, c = divmod(light, COLUMNS)
    return f"bot{r}_{c}", f"right{r}_{c}", f"top{r}_{c + 1}", f"left{r + 1}_{c}"


def road_number(road: str) -> int:
    """Flow's number of a road, from 1 to 24."""
    side, r, c = road.rstrip("_0123456789"), int(road[-3]), int(road[-1])
    if side in {"bot", "top"}:
        return 2 * (COLUMNS + 1) * r + 2 * COLUMNS * (r + 1) + 2 * c + 1 + (side == "top")
    return 2 * (COLUMNS + 1) * r + 2 * COLUMNS * r + 2 * c + 1 + (side == "right")


ROADS = tuple(sorted(itertools.chain.from_iterable(routes().values())))
"""All roads, in the order in which their densities and speeds are observed."""
_APPROACHES = tuple(ROADS.index(road) for light in range(LIGHTS) for road in approaches(light))
_LENGTHS = tuple(100.0 if road in {path[-1] for path in routes().values()} else BETWEEN for road in ROADS)


def demand_of(era: GridEra, factor: float) -> str:
    """Types, routes, the cars that are there at the start and the streams that follow, in SUMO's XML."""
    paths = routes()
    rows = [era.vehicle_type("human")]
    rows += [f'<route id="{entry}" edges="{" ".join(path)}"/>' for entry, path in paths.items()]
    rows += [
        f'<vehicle id="start_{entry}" type="human" route="{entry}" depart="0" departPos="6" departSpeed="0"/>'
        for entry in paths
    ]
    rows += [
        f'<flow id="flow_{entry}" type="human" route="{entry}" begin="1" end="86400" '
        f'vehsPerHour="{INFLOW * factor}" departLane="free" departSpeed="{era.depart_speed}"/>'
        for entry in paths
    ]
    return "<routes>\n" + "\n".join(rows) + "\n</routes>\n"


class GridWorld:
    """One grid; see `pcpo.tasks.traffic.world.TrafficWorld`."""

    def __init__(self, era: str, cost: str, red_limit: float, demand: float) -> None:
        self._era, self._cost, self._red_limit = ERAS[era], cost, red_limit
        self._simulation = Simulation("grid", self._era.net, demand_of(self._era, demand), TIME_STEP)
        self._sumo = self._simulation.sumo
        self._lanes = tuple(f"{road}_0" for road in ROADS)
        self._numbers = [road_number(ROADS[i]) / self._era.numbering for i in _APPROACHES]
        self.lights = Lights(LIGHTS, self._era.yellow_time, TIME_STEP)
        self._waiting = Spells(STANDING, TIME_STEP)
        self._speeds: dict[str, float] = {}

    def reset(self, seed: int) -> Float[np.ndarray, " o"]:
        """Begins an episode: one step of SUMO puts a standing car on every road that enters."""
        self._simulation.load(seed)
        self.lights = Lights(LIGHTS, self._era.yellow_time, TIME_STEP)
        self._waiting = Spells(STANDING, TIME_STEP)
        self._show([(i, self.lights.shown(i)) for i in range(LIGHTS)])
        self._simulation.step()
        return self._observe()

    def step(self, action: Float[np.ndarray, " k"]) -> Step:
        """Lights that are asked to switch begin to, a second passes, and what has come of it is looked at."""
        wishes = [number > 0.0 for number in checked_action("grid", action, LIGHTS)]
        self._show(self.lights.ask(wishes))
        self._simulation.step()
        self.lights.passed()
        observation = self._observe()
        crashed = self._crashed()
        reward = 0.0 if crashed else desired_speed(list(self._speeds.values()))
        return Step(observation, reward, self._charge(), crashed)

    def details(self) -> dict[str, Any]:
        """Of the lights: what they show, and how long each direction has been red. Of the cars: their speeds."""
        self._simulation.check()
        simulation = self._sumo.simulation
        return {
            "lights": [self.lights.shown(i) for i in range(LIGHTS)],
            "red_seconds": [list(ages) for ages in self.lights.red],
            "speeds": dict(self._speeds),
            "arrived": simulation.getArrivedNumber(),
            "departed": simulation.getDepartedNumber(),
            "crashed": self._crashed(),
        }

    def scene(self) -> TrafficScene:
        """Roads, lights and cars."""
        self._simulation.check()
        signals = (
            Signal(*_place(i), self.lights.shown(i), (self.lights.red[i][0], self.lights.red[i][1]))
            for i in range(LIGHTS)
        )
        cars = tuple(_apart(car) for car in seen_from_above(self._sumo))
        return TrafficScene((_VIEW,), _roads(), cars, tuple(signals), self._red_limit, size=(7.5, 5.4))

    def close(self) -> None:
        """Ends the simulation."""
        self._simulation.close()

    def _show(self, changes: list[tuple[int, str]]) -> None:
        for i, state in changes:
            self._sumo.trafficlight.setRedYellowGreenState(f"center{i}", state)

    def _crashed(self) -> bool:
        return self._sumo.simulation.getStartingTeleportNumber() > 0

    def _observe(self) -> Float[np.ndarray, " o"]:
        """Reads all cars once; SUMO lists those of a lane from its beginning to its end."""
        vehicle, vehicles_of = self._sumo.vehicle, self._sumo.lane.getLastStepVehicleIDs
        speed_of, place_of = vehicle.getSpeed, vehicle.getLanePosition
        self._speeds = speeds = {car: speed_of(car) for car in vehicle.getIDList()}
        lanes: list[tuple[str, ...]] = [vehicles_of(lane) for lane in self._lanes]
        near_speeds: list[float] = []
        distances: list[float] = []
        numbers: list[float] = []
        for i, number in zip(_APPROACHES, self._numbers, strict=True):
            nearest = lanes[i][: -OBSERVED - 1 : -1]
            missing = [0.0] * (OBSERVED - len(nearest))
            near_speeds += [speeds[car] / SPEED_LIMIT for car in nearest] + missing
            distances += [(BETWEEN - place_of(car)) / BETWEEN for car in nearest] + missing
            numbers += [number] * len(nearest) + missing
        densities = [DENSITY * len(cars) / length for cars, length in zip(lanes, _LENGTHS, strict=True)]
        means = [sum([speeds[car] for car in cars]) / len(cars) / SPEED_LIMIT if cars else 0.0 for cars in lanes]
        lights = self.lights
        return np.array(
            near_speeds + distances + numbers + densities + means + lights.timer + lights.direction + lights.yellow,
            dtype=float,
        )

    def _charge(self) -> float:
        """The cost of the step that has just passed, by the definition that was chosen."""
        if self._cost == "cars":
            self._waiting.passed(self._speeds.items())
            return float(over(self._waiting.seconds.values(), self._red_limit))
        ages = list(itertools.chain.from_iterable(self.lights.red))
        if self._cost == "phases":
            return float(just_over(ages, self._red_limit, TIME_STEP))
        late = over(ages, self._red_limit)
        return float(min(late, 1) if self._cost == "any" else late)


def desired_speed(speeds: list[float]) -> float:
    r"""How close all cars are to the target, between 0 and 1.

    .. math:: r = \max(\lVert v^\star \rVert - \lVert v - v^\star \rVert,\, 0) / \lVert v^\star \rVert

    with the target speed in every component of :math:`v^\star`; 0 where there is no car.
    """
    if not speeds:
        return 0.0
    distance = math.sqrt(sum([(speed - TARGET_SPEED) ** 2 for speed in speeds]))
    return max(1.0 - distance / (TARGET_SPEED * math.sqrt(len(speeds))), 0.0)


def _place(light: int) -> tuple[float, float]:
    """Where SUMO has a light: its coordinates begin where the network does."""
    r, c = divmod(light, COLUMNS)
    return BETWEEN * (1 + c), BETWEEN * (1 + r)


WIDER = 2.5
"""By how much roads are wider in pictures than in the world."""
_VIEW = View((180.0, BETWEEN * (COLUMNS + 1) - 180.0), (180.0, BETWEEN * (ROWS + 1) - 180.0))


def _apart(car: Car) -> Car:
    """A car where a picture shows it: as far along its road as it is, and farther from its middle."""
    across = "y" if abs(math.cos(car.angle)) > math.sqrt(0.5) else "x"
    place = getattr(car, across)
    middle = BETWEEN * round(place / BETWEEN)
    return replace(car, **{across: middle + WIDER * (place - middle)})


@functools.cache
def _roads() -> tuple[Road, ...]:
    """Both directions of a road as one."""
    lanes, width, height = 2, BETWEEN * (COLUMNS + 1), BETWEEN * (ROWS + 1)
    wide = WIDER * LANE * lanes
    rows = [Road(((0.0, y), (width, y)), wide, lanes) for y in (_place(r * COLUMNS)[1] for r in range(ROWS))]
    columns = [Road(((x, 0.0), (x, height)), wide, lanes) for x in (_place(c)[0] for c in range(COLUMNS))]
    return (*rows, *columns)
