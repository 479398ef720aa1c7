"""Ant-Circle: an ant runs on a circle, counter-clockwise, most of which it is not meant to enter.

Differences to the original's code:
1. The physics are those of today's MuJoCo, whose default solver is another one than twenty versions ago.
2. Actions from -1 to 1 are scaled to the motors' 150 N m and clipped. The code in public applies torques as they are;
   with the 1 N m of an untrained policy the robot does not move.
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
from pcpo.tasks.circle import circle_reward, reaches


def ant_circle(x_limit: float = 3.0, radius: float = 10.0, horizon: int = 500) -> HostTask:
    """Ant-Circle: the cost ``cost`` counts the steps that begin with the centre of mass at abs(x) >= x_limit.

    Args:
        x_limit: Half the width of the safe band, in metres.
        radius: Of the circle to run on, in metres.
        horizon: Steps of an episode, 0.02 seconds each.
    """
    return HostTask(
        name="ant-circle",
        observation_size=robot.OBSERVATION_SIZE,
        action_space=robot.ACTION_SPACE,
        horizon=horizon,
        cost_names=("cost",),
        worlds=_Circles(radius, x_limit),
        check=robot.check,
        in_process=True,
        environments=robot.ENVIRONMENTS,
        paint=paint,
        film_every=robot.FILM_EVERY,
    )


@dataclass(frozen=True)
class _Circles:
    """Makes worlds of one kind; a task is the same as another if this is."""

    radius: float
    x_limit: float

    def __call__(self, n: int, threads: int | None = None) -> "AntCircles":
        return AntCircles(n, self.radius, self.x_limit, threads)


class AntCircles:
    """n worlds of Ant-Circle; a `pcpo.tasks.api.HostWorlds`.

    Args:
        n: How many.
        radius: Of the circle to run on.
        x_limit: Half the width of the safe band.
        threads: How many move the robots; by default one per core.
    """

    def __init__(self, n: int, radius: float = 10.0, x_limit: float = 3.0, threads: int | None = None) -> None:
        self.ants = Ants(n, threads=threads)
        self.radius, self.x_limit = radius, x_limit
        self._x = np.zeros(n)

    def reset(self, which: Int[np.ndarray, " m"], seeds: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m 32"]:
        """Begins episodes; see `HostWorlds`."""
        self.ants.reset(which, robot.generators(seeds))
        return self.look(which)

    def place(
        self, which: Int[np.ndarray, " m"], qpos: Float[np.ndarray, "m 15"], qvel: Float[np.ndarray, "m 14"]
    ) -> Float[np.ndarray, "m 32"]:
        """Puts robots into given states, as at the start of an episode."""
        self.ants.place(which, qpos, qvel)
        return self.look(which)

    def step(self, which: Int[np.ndarray, " m"], actions: npt.NDArray[Any]) -> Outcomes:
        """Costs are those of the states that the actions were chosen in; rewards are those of the states after."""
        costs = np.asarray(reaches(self._x[which], self.x_limit))
        self.ants.move(which, actions)
        qpos, qvel = self.ants.states(which)
        centre = centre_of_mass(qpos, qvel)
        (x, y, _), (dx, dy, _) = centre
        self._x[which] = x
        return Outcomes(
            observations=robot.observe(qpos, qvel, centre),
            rewards=np.asarray(circle_reward(x, y, dx, dy, self.radius)),
            costs=costs[:, None],
            terminated=robot.fallen(qpos[:, 2], centre),
            truncated=np.zeros(len(which), bool),
        )

    def look(self, which: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m 32"]:
        """The observations of some robots as they are."""
        qpos, qvel = self.ants.states(which)
        centre = centre_of_mass(qpos, qvel)
        self._x[which] = centre.place[0]
        return robot.observe(qpos, qvel, centre)

    def scene(self, which: int) -> AntScene:
        """What a picture of one robot shows."""
        qpos, _ = self.ants.states(np.array([which]))
        return AntScene(
            position=(float(qpos[0, 0]), float(qpos[0, 1])),
            heading=float(robot.heading(qpos)[0]),
            arena=4 * self.radius,
            view=1.2 * self.radius,
            circle=self.radius,
            safe_x=self.x_limit,
            qpos=tuple(qpos[0].tolist()),
        )

    def close(self) -> None:
        """Nothing to do: memory is all that they hold."""
