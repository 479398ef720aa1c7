"""The ant itself: many robots moved by MuJoCo at once, on as many threads as there are cores.

A robot's numbers depend on its own seed and actions alone: not on how many robots there are, which of them are moved
together, or how many threads move them. Every transition is the one of MuJoCo's ``mj_step``, to the bit.
"""

import functools
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float, Int

from pcpo.rl.spaces import Box
from pcpo.tasks.ant.centre import Centre
from pcpo.tasks.host import WorldError

ACTIONS = 8
ACTION_SPACE = Box((-1.0,) * ACTIONS, (1.0,) * ACTIONS)
"""One per motor: hip and ankle of legs 4, 1, 2 and 3. Actions are clipped, then scaled."""
TORQUE = 150.0
"""Of a motor at full action, in newton metres."""

POSITIONS, VELOCITIES = 15, 14
OBSERVATION_SIZE = POSITIONS + VELOCITIES + 3
POSITION_NOISE = 0.01
VELOCITY_NOISE = 0.1
LOWEST, HIGHEST = 0.2, 1.0
"""A robot has fallen when the middle of its torso is not between these heights."""

TIME_STEP = 0.02
"""Seconds of a step."""
ENVIRONMENTS = 1024
"""Robots that play at once unless the user says otherwise: so many that what is done once for all of them weighs
little, and that all episodes of a batch begin together. Those that begin late keep few robots busy at the end."""

FILM_EVERY = 5
"""Steps from one picture of a film to the next: ten pictures in a second of the robot's time."""

_ASSETS = Path(__file__).parent.parent / "assets"


class Ants:
    """n robots, numbered from 0, each alone in its world.

    Args:
        n: How many.
        walls: Whether they are in a room.
        threads: How many move them; by default as many as there are cores for this process. No part of the arithmetic.
    """

    qpos: Float[np.ndarray, "n 15"]
    """Place (3) and orientation (4) of the torso, then hip and ankle of legs 1 to 4. Live: `move` changes it."""
    qvel: Float[np.ndarray, "n 14"]
    """Velocity of the torso (3), its angular velocity in its own frame (3), then those of the joints. Live too."""

    def __init__(self, n: int, walls: bool = False, threads: int | None = None) -> None:
        self.model = model(walls)
        self._batch = engine("mujoco.batch").Batch(self.model, n, min(threads or _cores(), n))
        self._start = np.array(self.model.key("start").qpos)
        self.qpos, self.qvel, self._torques = (self._batch.bind(field) for field in ("qpos", "qvel", "ctrl"))

    def reset(self, which: Int[np.ndarray, " m"], draw: Sequence[np.random.Generator]) -> None:
        """Puts robots at the origin, feet down: positions ~ N(start, 0.01^2), velocities ~ N(0, 0.1^2), each alone.

        The orientation gets its noise as a quaternion like the other numbers, so that its length is not quite 1.
        """
        noise = np.stack([generator.standard_normal(POSITIONS + VELOCITIES) for generator in draw])
        qpos = self._start + POSITION_NOISE * noise[:, :POSITIONS]
        self.place(which, qpos, VELOCITY_NOISE * noise[:, POSITIONS:])

    def place(
        self, which: Int[np.ndarray, " m"], qpos: Float[np.ndarray, "m 15"], qvel: Float[np.ndarray, "m 14"]
    ) -> None:
        """Puts robots into given states. Nothing is left of what they did before: MuJoCo's solver begins anew too."""
        self._batch.reset(_ids(which), stage=0)
        self.qpos[which], self.qvel[which] = qpos, qvel

    def move(self, which: Int[np.ndarray, " m"], actions: npt.NDArray[np.floating[Any]]) -> None:
        """One step of some robots. After an action that is not a number, the robot's position is none either."""
        torques = TORQUE * np.clip(actions, -1.0, 1.0)
        lost = np.isnan(torques).any(axis=1)
        torques[lost] = 0.0
        self._torques[which] = torques
        self._batch.step(_ids(which))
        self.qpos[which[lost]] = np.nan

    def states(self, which: Int[np.ndarray, " m"]) -> tuple[Float[np.ndarray, "m 15"], Float[np.ndarray, "m 14"]]:
        """Copies of ``qpos`` and ``qvel`` of some robots."""
        return self.qpos[which], self.qvel[which]


def fallen(height: Float[np.ndarray, " m"], centre: Centre) -> Bool[np.ndarray, " m"]:
    """Whether the torso is too low or too high, or a number of the state is not finite.

    Every number of the state has its part in the centre of mass, which is quicker to ask.
    """
    finite = np.isfinite(centre.place.sum(axis=0) + centre.velocity.sum(axis=0))
    return ~(finite & (height >= LOWEST) & (height <= HIGHEST))


def observe(
    qpos: Float[np.ndarray, "m 15"], qvel: Float[np.ndarray, "m 14"], centre: Centre
) -> Float[np.ndarray, "m 32"]:
    """Positions (15), velocities (14), centre of mass (3)."""
    return np.concatenate([qpos, qvel, centre.place.T], axis=1)


def heading(qpos: Float[np.ndarray, "m 15"]) -> Float[np.ndarray, " m"]:
    """Direction in which the torso's x axis points, seen from above, in radians."""
    w, x, y, z = qpos[:, 3:7].T
    return np.arctan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z)


@functools.cache
def model(walls: bool = False) -> Any:
    """MuJoCo's ``MjModel`` of the robot and its ground, with the walls of a room or without. Not to be changed."""
    return engine().MjModel.from_xml_path(str(_ASSETS / ("ant_in_walls.xml" if walls else "ant.xml")))


def generators(seeds: Int[np.ndarray, " m"]) -> list[np.random.Generator]:
    """One source of random numbers for each seed, which is not negative."""
    return [np.random.default_rng(seed) for seed in seeds.tolist()]


def _ids(which: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """As MuJoCo wants them, which complains of duplicates by itself."""
    return np.sort(which).astype(np.int32)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def engine(module: str = "mujoco") -> Any:
    """MuJoCo, which only those who use the ant need to have.

    Raises:
        WorldError: If it is not installed, or too old for what the ant needs of it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise WorldError(
            f"the ant needs MuJoCo 3.17 or newer, and there is no module {error.name!r}; "
            "try: pip install --upgrade 'pcpo[mujoco]'"
        ) from None


def check() -> None:
    """Makes sure that there is a MuJoCo that can move ants.

    Raises:
        WorldError: See `engine`.
    """
    engine("mujoco.batch")
