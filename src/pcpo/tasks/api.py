"""What a task is: a few pure functions for one environment, and what there is to know of them beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Bool, Float, Int, Key

from pcpo.rl.rollout import State, Transition
from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.scene import Scene

Numbers: TypeAlias = Array | npt.NDArray[Any]
"""An array of jax or of numpy. What is written with operators and the array's own namespace serves both: the tasks
that are compiled, and those that are simulated on the host."""


@dataclass(frozen=True)
class DeviceTask:
    """A task written in JAX: pure functions for ONE environment, to be vmapped over many and compiled.

    Satisfies `pcpo.rl.rollout.World`. States are NamedTuples of arrays in jax's default float type. Nothing is random
    after the reset. Numbers that are not finite are passed on, never hidden: a NaN among the actions shows in the
    reward or in the next observation.
    """

    name: str
    observation_size: int
    action_space: Box | Discrete
    """What a policy may send. Bounds that are infinite mean that nothing is clipped."""
    horizon: int
    """Steps after which an episode is cut off, which is the caller's work; the task itself does not count."""
    cost_names: tuple[str, ...]
    """One name for each entry of ``Transition.costs``, in their order."""
    reset: Callable[[Key[Array, ""]], State]
    """The state at the start of an episode; the key is consumed."""
    step: Callable[[State, Array], tuple[State, Transition]]
    """The state after an action, with the reward, the costs and whether the episode has ended by itself."""
    observe: Callable[[State], Float[Array, " o"]]
    """What the policy sees of a state."""
    scene: Callable[[State], Scene] | None = None
    """What a picture of a state shows. Not for use inside ``jit``. Without it, everything works but pictures."""


class Outcomes(NamedTuple):
    """What one step of n environments on the host gives."""

    observations: Float[np.ndarray, "n o"]
    """After the step; of an episode that has ended, its last one."""
    rewards: Float[np.ndarray, " n"]
    costs: Float[np.ndarray, "n m"]
    terminated: Bool[np.ndarray, " n"]
    """The episode ended by itself."""
    truncated: Bool[np.ndarray, " n"]
    """The environment cut the episode off by itself; what is cut off at the horizon is the caller's to say."""


class HostWorlds(Protocol):
    """Environments on the host, numbered from 0. Nothing is ever reset unless `reset` is called."""

    def reset(self, which: Int[np.ndarray, " n"], seeds: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n o"]:
        """Begins episodes in some environments, each decided by its seed alone; their first observations."""
        ...

    def step(self, which: Int[np.ndarray, " n"], actions: npt.NDArray[Any]) -> Outcomes:
        """One step of some environments, in the order of ``which``; actions as sampled, before any clipping."""
        ...

    def close(self) -> None:
        """Frees what they hold."""
        ...


@dataclass(frozen=True)
class HostTask:
    """A task simulated on the host: MuJoCo, SUMO, any Gymnasium environment."""

    name: str
    observation_size: int
    action_space: Box | Discrete
    """What a policy may send; `HostWorlds.step` gets actions as sampled and clips what it must."""
    horizon: int
    """Steps after which an episode is cut off, which is the collector's work."""
    cost_names: tuple[str, ...]
    """One name for each column of ``Outcomes.costs``."""
    worlds: Callable[[int], HostWorlds]
    """``worlds(n)`` makes n environments."""
    in_process: bool = False
    """True where one object steps all environments at once with threads of its own (the engine releases Python's lock);
    otherwise they are spread over processes, in each of which ``worlds`` is called."""
    environments: int = 16
    """How many are stepped in lock step unless the user says otherwise: the block on which the policy is evaluated, and
    so a part of the arithmetic. The number of processes or threads is none."""
