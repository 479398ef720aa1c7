"""Gather: collect the apples, leave the bombs.

The arena, the objects and the sensors know only where the robot is and which way it looks, so robots of any kind can
share them: `pick_up` and `bearings` serve one environment in JAX and many at once in numpy. Objects come along the
first axis, environments, if there are many, along the second.
"""

import functools
import math
import operator
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from pcpo.rl.rollout import Transition
from pcpo.tasks import point
from pcpo.tasks.api import DeviceTask, Numbers
from pcpo.tasks.point import PointState
from pcpo.tasks.scene import Scene, Sensor

SIZE = 6.0
"""Half the side of the arena."""
APPLE_REWARD = 10.0
BOMB_REWARD = -1.0
"""Bombs are punished twice: in the reward, each by itself, and in the cost, once per step."""
CATCH_RANGE = 1.0
CLEARANCE = 2.0
"""No object lies nearer to the origin, where the robot starts."""

BINS = 10
SENSOR_RANGE = 6.0
SENSOR_SPAN = math.pi
"""The half plane in front of the robot."""


class Objects(NamedTuple):
    """Apples first, then bombs."""

    x: Float[Numbers, "k *n"]
    y: Float[Numbers, "k *n"]
    present: Bool[Numbers, "k *n"]
    """Whether it still lies there."""


class GatherState(NamedTuple):
    """The robot, and what lies around it."""

    robot: PointState
    objects: Objects


def grid() -> Float[np.ndarray, "35 2"]:
    """The cells on which objects may lie: every second unit from -6 to 4, but not the origin. There is none at +6."""
    sides = np.arange(-SIZE, SIZE, 2.0)
    cells = np.stack(np.meshgrid(sides, sides, indexing="ij"), axis=-1).reshape(-1, 2)
    return cells[np.square(cells).sum(1) >= CLEARANCE**2]


def place_objects(key: Key[Array, ""], count: int) -> Objects:
    """Objects on distinct cells of the grid, every choice equally likely; the key is consumed."""
    cells = grid()
    _, chosen = jax.lax.top_k(jax.random.uniform(key, (len(cells),)), count)
    x, y = (jnp.asarray(cells[:, i], float)[chosen] for i in range(2))
    return Objects(x, y, present=jnp.ones(count, bool))


def pick_up(
    objects: Objects, x: Float[Numbers, "*n"], y: Float[Numbers, "*n"], apples: int
) -> tuple[Objects, Float[Numbers, "*n"], Float[Numbers, "*n"]]:
    """Takes away all objects within reach.

    Args:
        objects: Before the step.
        x: Centre of mass of the robot after the step.
        y: The same.
        apples: How many of the objects are apples.

    Returns:
        The objects that are left, the reward, and the cost: 1 if there was a bomb among what was taken, however many.
    """
    xp = x.__array_namespace__()
    dx, dy = objects.x - x, objects.y - y
    caught = objects.present & (dx * dx + dy * dy < CATCH_RANGE**2)
    values = np.full((len(caught), *(1,) * x.ndim), BOMB_REWARD)
    values[:apples] = APPLE_REWARD
    reward = xp.sum(xp.where(caught, xp.asarray(values, dtype=x.dtype), 0), axis=0)
    cost = xp.any(caught[apples:], axis=0).astype(x.dtype)
    return objects._replace(present=objects.present & ~caught), reward, cost


def sense(
    objects: Objects, x: Float[Array, ""], y: Float[Array, ""], heading: Float[Array, ""], apples: int
) -> Float[Array, " bins"]:
    """What the robot sees: for each sector, from right to left, 1 - distance / range of the nearest object in it.

    The sectors for apples come first, then those for bombs; neither hides the other. The nearest object of a sector
    has the largest reading, so a maximum does what writing from the farthest to the nearest would do.

    Args:
        objects: What is left of them.
        x: Centre of mass of the robot.
        y: The same.
        heading: In radians; need not be wrapped.
        apples: How many of the objects are apples.
    """
    sector, strength = map(jnp.asarray, bearings(objects, x, y, heading))
    return jnp.concatenate([_fan(sector[kind], strength[kind]) for kind in (slice(apples), slice(apples, None))])


def bearings(
    objects: Objects, x: Float[Numbers, "*n"], y: Float[Numbers, "*n"], heading: Float[Numbers, "*n"]
) -> tuple[Int[Numbers, "k *n"], Float[Numbers, "k *n"]]:
    """The sector that each object is in, and how strongly it is seen there: 0 if it is not seen; see `sense`."""
    xp = x.__array_namespace__()
    dx, dy, cos, sin = objects.x - x, objects.y - y, xp.cos(heading), xp.sin(heading)
    ahead, left = cos * dx + sin * dy, cos * dy - sin * dx
    distance = xp.sqrt(dx * dx + dy * dy)
    seen = objects.present & (distance <= SENSOR_RANGE) & (ahead >= 0)
    return _sector(ahead, left), xp.where(seen, 1 - distance / SENSOR_RANGE, 0)


def _sector(ahead: Float[Numbers, "k *n"], left: Float[Numbers, "k *n"]) -> Int[Numbers, "k *n"]:
    """Which sector a place in front of the robot is in: the number of inner edges that it is on or to the left of.

    The same as the whole part of (angle + pi / 2) / (pi / 10), at most 9, but six times faster without arctangents,
    and no angle has to be wrapped. The sign of a cross product says on which side of an edge a place is.
    """
    edges = [SENSOR_SPAN * (i / BINS - 1 / 2) for i in range(1, BINS)]
    passed = [math.cos(edge) * left >= math.sin(edge) * ahead for edge in edges]
    return functools.reduce(operator.add, [edge.astype(np.int32) for edge in passed])


def _fan(sector: Int[Array, " n"], strength: Float[Array, " n"]) -> Float[Array, " bins"]:
    """The largest strength in each sector, 0 where there is none. A loop, which fuses; a reduction would not."""
    sectors, readings = jnp.arange(BINS, dtype=sector.dtype), jnp.zeros(BINS, strength.dtype)
    for i in range(len(sector)):
        readings = jnp.maximum(readings, jnp.where(sectors == sector[i], strength[i], 0))
    return readings


def point_gather(action_mode: str = "clip", apples: int = 2, bombs: int = 8, horizon: int = 15) -> DeviceTask:
    """Point-Gather: the cost ``cost`` counts the steps that hit a bomb.

    Args:
        action_mode: "clip" clips actions to the robot's ranges, "raw" takes them as they are.
        apples: Apples at the start.
        bombs: Bombs at the start.
        horizon: Steps of an episode.

    Raises:
        ValueError: If there are more objects than cells, or there is no such mode.
    """
    cells = len(grid())
    if apples + bombs > cells:
        raise ValueError(f"{apples} apples and {bombs} bombs do not fit into the {cells} cells; take fewer")
    gather = _Gather(action_mode, apples, bombs)
    return DeviceTask(
        name="point-gather",
        observation_size=point.OBSERVATION_SIZE + 2 * BINS,
        action_space=point.action_space(action_mode),
        horizon=horizon,
        cost_names=("cost",),
        reset=gather.reset,
        step=gather.step,
        observe=gather.observe,
        scene=gather.scene,
    )


@dataclass(frozen=True)
class _Gather:
    """The functions of a gather task, and the numbers that they share."""

    action_mode: str
    apples: int
    bombs: int

    def reset(self, key: Key[Array, ""]) -> GatherState:
        """The robot at the origin, the objects anew."""
        of_robot, of_objects = jax.random.split(key)
        return GatherState(point.reset(of_robot), place_objects(of_objects, self.apples + self.bombs))

    def step(self, state: GatherState, action: Float[Array, " 2"]) -> tuple[GatherState, Transition]:
        """Reward and cost are those of what was taken after the move. The episode ends when nothing is left."""
        robot, _ = point.move(state.robot, action, point.action_space(self.action_mode), SIZE)
        objects, reward, cost = pick_up(state.objects, robot.centre_x, robot.centre_y, self.apples)
        reward, costs, present = jnp.asarray(reward), jnp.asarray(cost)[None], objects.present
        return GatherState(robot, objects), Transition(reward, costs, terminated=~jnp.any(present))

    def observe(self, state: GatherState) -> Float[Array, " 29"]:
        """The robot (9), the apples (10), the bombs (10)."""
        robot = state.robot
        readings = sense(state.objects, robot.centre_x, robot.centre_y, robot.heading, self.apples)
        return jnp.concatenate([point.observe(robot), readings])

    def scene(self, state: GatherState) -> Scene:
        """Objects, and the sensors' readings."""
        robot, objects = state
        readings = np.asarray(_sense(objects, robot.centre_x, robot.centre_y, robot.heading, self.apples)).tolist()
        x, y, present = (np.asarray(part).tolist() for part in objects)
        places = [(px, py) if there else None for px, py, there in zip(x, y, present, strict=True)]
        return Scene(
            position=(float(robot.x), float(robot.y)),
            heading=float(robot.heading),
            arena=SIZE,
            view=SIZE + 1.0,
            apples=tuple(place for place in places[: self.apples] if place),
            bombs=tuple(place for place in places[self.apples :] if place),
            reach=CATCH_RANGE,
            sensor=Sensor(SENSOR_RANGE, SENSOR_SPAN, tuple(readings[:BINS]), tuple(readings[BINS:])),
        )


_sense = functools.partial(jax.jit, static_argnums=4)(sense)
