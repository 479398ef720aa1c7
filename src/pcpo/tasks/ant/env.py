"""The ant's tasks as Gymnasium environments, with what people know from Gymnasium's own robots."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from pcpo.tasks.ant import robot
from pcpo.tasks.ant.circle import AntCircles
from pcpo.tasks.ant.gather import AntGathers
from pcpo.tasks.gym import HostTaskEnv, Observation


class AntEnv(HostTaskEnv):
    """Ant-Circle or Ant-Gather.

    Beyond `HostTaskEnv` there are ``set_state``, ``qpos`` and ``qvel``, ``model`` and ``dt``, as in Gymnasium's own
    MuJoCo environments. What they have and this has not is ``data``: the robot lives in a batch of one.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "render_fps": round(1 / robot.TIME_STEP),
    }

    worlds: AntCircles | AntGathers

    def set_state(self, qpos: npt.ArrayLike, qvel: npt.ArrayLike) -> Observation:
        """Puts the robot into a state, from which it goes on as ``mj_step`` goes on from a fresh ``MjData``.

        In Ant-Gather, objects stay as they are. Unlike Gymnasium's, it gives the observation there.

        Args:
            qpos: Place (3) and orientation (4) of the torso, then hip and ankle of legs 1 to 4.
            qvel: Velocity (3) and angular velocity (3) of the torso, then those of the joints.

        Raises:
            ValueError: If they have other shapes.
        """
        places, rates = (np.asarray(given, np.float64) for given in (qpos, qvel))
        for name, given, size in (("qpos", places, robot.POSITIONS), ("qvel", rates, robot.VELOCITIES)):
            if given.shape != (size,):
                raise ValueError(f"{name} has the shape {given.shape}; give {size} numbers")
        self._require_reset()
        return self.worlds.place(np.zeros(1, np.int64), places[None], rates[None])[0]

    @property
    def qpos(self) -> Float[np.ndarray, " 15"]:
        """Positions of the robot as it is; a copy."""
        return self.worlds.ants.qpos[0].copy()

    @property
    def qvel(self) -> Float[np.ndarray, " 14"]:
        """Velocities of the robot as it is; a copy."""
        return self.worlds.ants.qvel[0].copy()

    @property
    def model(self) -> Any:
        """MuJoCo's model. It is the one that all robots have: not to be changed."""
        return self.worlds.ants.model

    @property
    def dt(self) -> float:
        """Seconds of a step."""
        return robot.TIME_STEP
