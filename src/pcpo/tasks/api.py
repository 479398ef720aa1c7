"""What a task is: a few pure functions for one environment, and what there is to know of them beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Array, Float, Key

from pcpo.rl.rollout import State, Transition
from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.host import HostTask, HostWorlds, Outcomes, WorldError
from pcpo.tasks.scene import Scene

__all__ = ["DeviceTask", "HostTask", "HostWorlds", "Numbers", "Outcomes", "Task", "WorldError"]

Numbers: TypeAlias = Array | np.ndarray
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


Task: TypeAlias = DeviceTask | HostTask
"""Whatever can be trained on."""
