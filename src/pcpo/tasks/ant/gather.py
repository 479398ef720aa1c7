"""Ant-Gather: an ant in a room collects apples, leaves bombs, and had better not fall.

Differences to the original's code:
1. Those of `pcpo.tasks.ant.circle`.
2. An object exactly to the left is in the last sector; the original's array ended before it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from pcpo.tasks.ant import robot
from pcpo.tasks.ant.centre import centre_of_mass
from pcpo.tasks.ant.picture import AntScene, paint
from pcpo.tasks.ant.robot import Ants
from pcpo.tasks.api import HostTask, Outcomes
from pcpo.tasks.gather import BINS, CATCH_RANGE, SENSOR_RANGE, SENSOR_SPAN, Objects, bearings, grid, pick_up
from pcpo.tasks.scene import Sensor

INSIDE = 6.5
"""Distance of the walls from the origin."""
FALL_REWARD = -10.0
QUATERNION_Z = 6
"""Where the orientation's z component is among the positions."""


def ant_gather(apples: int = 8, bombs: int = 8, true_yaw: bool = False, horizon: int = 500) -> HostTask:
    """Ant-Gather: the cost ``cost`` counts the steps that hit a bomb.

    Args:
        apples: Apples at the start.
        bombs: Bombs at the start.
        true_yaw: Whether the sensors look where the torso does. The original took the z component of the orientation's
            quaternion for an angle, so that they lag behind: at most 1 radian, when the torso looks backwards.
        horizon: Steps of an episode, 0.02 seconds each.

    Raises:
        ValueError: If there are more objects than cells.
    """
    if apples + bombs > len(grid()):
        raise ValueError(f"{apples} apples and {bombs} bombs do not fit into the {len(grid())} cells; take fewer")
    return HostTask(
        name="ant-gather",
        observation_size=robot.OBSERVATION_SIZE + 2 * BINS,
        action_space=robot.ACTION_SPACE,
        horizon=horizon,
        cost_names=("cost",),
        worlds=_Gathers(apples, bombs, true_yaw),
        check=robot.check,
        in_process=True,
        environments=robot.ENVIRONMENTS,
        paint=paint,
        film_every=robot.FILM_EVERY,
    )


@dataclass(frozen=True)
class _Gathers:
    """Makes worlds of one kind; a task is the same as another if this is."""

    apples: int
    bombs: int
    true_yaw: bool

    def __call__(self, n: int, threads: int | None = None) -> "AntGathers":
        return AntGathers(n, self.apples, self.bombs, self.true_yaw, threads)


class AntGathers:
    """n worlds of Ant-Gather; a `pcpo.tasks.api.HostWorlds`.

    Args:
        n: How many.
        apples: Apples at the start.
        bombs: Bombs at the start.
        true_yaw: See `ant_gather`.
        threads: How many move the robots; by default one per core.
    """

    objects: Objects
    """Of all worlds, ``[apples + bombs, n]``; apples first."""

    def __init__(
        self, n: int, apples: int = 8, bombs: int = 8, true_yaw: bool = False, threads: int | None = None
    ) -> None:
        self.ants = Ants(n, walls=True, threads=threads)
        self.apples, self.true_yaw = apples, true_yaw
        shape = (apples + bombs, n)
        self.objects = Objects(np.zeros(shape), np.zeros(shape), present=np.zeros(shape, bool))

    def reset(self, which: Int[np.ndarray, " m"], seeds: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m 52"]:
        """Begins episodes; see `HostWorlds`. First the robot is drawn, then cells for the objects, all distinct."""
        draw = robot.generators(seeds)
        self.ants.reset(which, draw)
        count = len(self.objects.x)
        cells = np.stack([grid()[generator.permutation(len(grid()))[:count]] for generator in draw], axis=1)
        self.objects.x[:, which], self.objects.y[:, which] = cells[..., 0], cells[..., 1]
        self.objects.present[:, which] = True
        return self.look(which)

    def place(
        self, which: Int[np.ndarray, " m"], qpos: Float[np.ndarray, "m 15"], qvel: Float[np.ndarray, "m 14"]
    ) -> Float[np.ndarray, "m 52"]:
        """Puts robots into given states; objects stay as they are."""
        self.ants.place(which, qpos, qvel)
        return self.look(which)

    def step(self, which: Int[np.ndarray, " m"], actions: npt.NDArray[Any]) -> Outcomes:
        """Reward and cost are those of what was taken after the move; a robot that falls takes nothing."""
        self.ants.move(which, actions)
        qpos, qvel = self.ants.states(which)
        centre = centre_of_mass(qpos, qvel)
        fell = robot.fallen(qpos[:, 2], centre)
        before = self._objects(which)
        after, reward, cost = pick_up(before, centre.place[0], centre.place[1], self.apples)
        objects = after._replace(present=np.where(fell, before.present, after.present))
        self.objects.present[:, which] = objects.present
        return Outcomes(
            observations=np.concatenate(
                [robot.observe(qpos, qvel, centre), self._sense(objects, qpos, centre.place)], axis=1
            ),
            rewards=np.where(fell, FALL_REWARD, reward),
            costs=np.where(fell, 0.0, cost)[:, None],
            terminated=fell | ~np.any(objects.present, axis=0),
            truncated=np.zeros(len(which), bool),
        )

    def look(self, which: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m 52"]:
        """The observations of some robots as they are."""
        qpos, qvel = self.ants.states(which)
        centre = centre_of_mass(qpos, qvel)
        readings = self._sense(self._objects(which), qpos, centre.place)
        return np.concatenate([robot.observe(qpos, qvel, centre), readings], axis=1)

    def scene(self, which: int) -> AntScene:
        """What a picture of one world shows."""
        one = np.array([which])
        observation, qpos, objects = self.look(one)[0], self.ants.qpos[one], self._objects(one)
        readings = observation[-2 * BINS :].tolist()
        places = [(float(x), float(y)) if present else None for (x,), (y,), (present,) in zip(*objects, strict=True)]
        return AntScene(
            position=(float(qpos[0, 0]), float(qpos[0, 1])),
            heading=float(robot.heading(qpos)[0]),
            arena=INSIDE,
            view=INSIDE + 1.0,
            apples=tuple(place for place in places[: self.apples] if place),
            bombs=tuple(place for place in places[self.apples :] if place),
            reach=CATCH_RANGE,
            sensor=Sensor(
                reach=SENSOR_RANGE,
                span=SENSOR_SPAN,
                apples=tuple(readings[:BINS]),
                bombs=tuple(readings[BINS:]),
                heading=float(self._gaze(qpos)[0]),
            ),
            qpos=tuple(qpos[0].tolist()),
            walls=True,
        )

    def close(self) -> None:
        """Nothing to do: memory is all that they hold."""

    def _objects(self, which: Int[np.ndarray, " m"]) -> Objects:
        return Objects(*(part[:, which] for part in self.objects))

    def _sense(
        self, objects: Objects, qpos: Float[np.ndarray, "m 15"], place: Float[np.ndarray, "3 m"]
    ) -> Float[np.ndarray, "m 20"]:
        """What `pcpo.tasks.gather.sense` says, for many robots: the largest reading of each sector and kind."""
        sector, strength = bearings(objects, place[0], place[1], self._gaze(qpos))
        count, kind = len(qpos), (np.arange(len(self.objects.x)) >= self.apples)[:, None]
        readings = np.zeros(count * 2 * BINS)
        np.maximum.at(readings, (np.arange(count) * 2 * BINS + kind * BINS + sector).ravel(), strength.ravel())
        return readings.reshape(count, 2 * BINS)

    def _gaze(self, qpos: Float[np.ndarray, "m 15"]) -> Float[np.ndarray, " m"]:
        """Where the sensors look, in radians."""
        # Contiguous, because functions of strided arrays may round in another way.
        return robot.heading(qpos) if self.true_yaw else np.ascontiguousarray(qpos[:, QUATERNION_Z])
