"""One environment of traffic, as the grid and the bottleneck share it, and how it becomes a task."""

import functools
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from pcpo.rl.spaces import Box
from pcpo.tasks.host import HostTask, Outcomes, WorldError
from pcpo.tasks.traffic.draw import paint
from pcpo.tasks.traffic.scene import Car, TrafficScene
from pcpo.tasks.traffic.sumo import engine

ENVIRONMENTS = 16


class Step(NamedTuple):
    """What one step gives."""

    observation: Float[np.ndarray, " o"]
    reward: float
    cost: float
    crashed: bool
    """A collision made SUMO take a vehicle off the road, which ends the episode."""


@runtime_checkable
class TrafficWorld(Protocol):
    """One environment. It holds the process's simulation from its first reset until it is closed.

    Whatever reads the simulation raises `WorldError` where there is none, or not the one that it has begun.
    """

    def reset(self, seed: int) -> Float[np.ndarray, " o"]:
        """Begins an episode that the seed decides."""
        ...

    def step(self, action: Float[np.ndarray, " k"]) -> Step:
        """One step; the action is clipped to what is allowed."""
        ...

    def details(self) -> dict[str, Any]:
        """What can be known beyond the observation, by name."""
        ...

    def scene(self) -> TrafficScene:
        """What a picture shows of this moment."""
        ...

    def close(self) -> None:
        """Ends the simulation."""
        ...


@dataclass(frozen=True)
class Era:
    """What Flow's environments had as settings at a time; E1 is the time of the paper's experiments, E3 Flow's last."""

    accel: float
    """Metres per second squared."""
    decel: float

    def vehicle_type(self, name: str) -> str:
        """A vehicle type of that name in SUMO's XML, with Flow's settings: the intelligent driver model.

        That model ignores sigma, so drivers differ by speedDev alone: by the speed that they think is allowed.
        """
        return (
            f'<vType id="{name}" carFollowModel="IDM" accel="{self.accel}" decel="{self.decel}" sigma="0.5" tau="1.0" '
            'minGap="2.5" maxSpeed="30" speedFactor="1.0" speedDev="0.1" impatience="0.5" length="5" '
            'laneChangeModel="LC2013"/>'
        )


class TrafficWorlds:
    """The one environment that a process can hold, as `pcpo.tasks.host.HostWorlds`."""

    def __init__(self, world: TrafficWorld) -> None:
        self.world = world

    def reset(self, which: Int[np.ndarray, " n"], seeds: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n o"]:
        """Begins an episode."""
        (_,) = which
        return self.world.reset(int(seeds[0]))[None]

    def step(self, which: Int[np.ndarray, " n"], actions: npt.NDArray[Any]) -> Outcomes:
        """One step."""
        (_,) = which
        observation, reward, cost, crashed = self.world.step(actions[0])
        return Outcomes(
            observation[None], np.array([reward]), np.array([[cost]]), np.array([crashed]), np.zeros(1, bool)
        )

    def scene(self, which: int) -> TrafficScene:
        """What a picture shows of it."""
        del which
        return self.world.scene()

    def close(self) -> None:
        """Ends the simulation."""
        self.world.close()


def one_world(task: str, make: Callable[[], TrafficWorld], n: int) -> TrafficWorlds:
    """Environments for one process, which must be one.

    Raises:
        WorldError: Another number was asked for.
    """
    if n != 1:
        raise WorldError(f"{task}: {n} environments are wanted in one process, but SUMO can only run once in each")
    return TrafficWorlds(make())


def host_task(name: str, observation_size: int, box: Box, horizon: int, make: Callable[[], TrafficWorld]) -> HostTask:
    """The task whose environments that function makes; it is sent to other processes, so it must be one by name."""
    return HostTask(
        name=name,
        observation_size=observation_size,
        action_space=box,
        horizon=horizon,
        cost_names=("cost",),
        worlds=functools.partial(one_world, name, make),
        environments=ENVIRONMENTS,
        per_process=1,
        check=functools.partial(engine, name),
        paint=paint,
        film_every=2,
    )


def checked_action(task: str, action: npt.NDArray[Any], size: int) -> list[float]:
    """The action as plain numbers.

    Raises:
        WorldError: It has another size, or holds something that is no number.
    """
    if action.shape != (size,):
        raise WorldError(f"{task}: the action has shape {action.shape}; give {size} numbers")
    numbers = action.tolist()
    if not np.isfinite(action).all():
        raise WorldError(f"{task}: the action is {numbers}; give numbers that are finite")
    return numbers


def checked_choice(option: str, given: str, choices: tuple[str, ...]) -> str:
    """The choice.

    Raises:
        ValueError: It is none.
    """
    if given not in choices:
        raise ValueError(f"{option} is {given!r}; choose one of {', '.join(choices)}")
    return given


def seen_from_above(sumo: Any, robots: Collection[str] = (), late: Collection[str] = ()) -> tuple[Car, ...]:
    """All cars where they are."""
    vehicle = sumo.vehicle
    cars: list[Car] = []
    for name in vehicle.getIDList():
        x, y = vehicle.getPosition(name)
        angle = math.radians(90.0 - vehicle.getAngle(name))  # SUMO's is clockwise from north
        cars.append(Car(x, y, angle, vehicle.getSpeed(name), name in robots, name in late))
    return tuple(cars)
