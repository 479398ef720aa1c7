"""What a task on the host is. Nothing here needs jax, so that a process that only simulates starts quickly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float, Int

from pcpo.rl.spaces import Box, Discrete


class WorldError(ValueError):
    """An environment does what none may do: the message names it, says what it did at which step, and what to try.

    Doing it all again would give the same, so whoever gets this stops.
    """


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


@runtime_checkable
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


@runtime_checkable
class VisibleWorlds(HostWorlds, Protocol):
    """Environments that can be drawn."""

    def scene(self, which: int) -> Any:
        """What a picture shows of one environment as it is now, in plain numbers: whatever ``HostTask.paint`` takes."""
        ...


Painter: TypeAlias = Callable[[Any, Sequence[Any], Sequence[float], Sequence[Sequence[float]]], npt.NDArray[np.uint8]]
"""``(task, scenes, rewards, costs) -> [height, width, 3]``: the last scene, and how it came to it. There is one scene
more than there are steps; the costs of a step are in the order of the task's ``cost_names``."""


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
    worlds: Callable[..., HostWorlds]
    """``worlds(n)`` makes n environments; ``worlds(n, threads)`` where the task is stepped ``in_process``."""
    check: Callable[[], Any] | None = None
    """Raises a `WorldError` where this machine lacks something that the environments need, before anything begins."""
    in_process: bool = False
    """True where one object steps many environments at once with threads of its own (the engine releases Python's
    lock), as many as it is told, or one for each core where that is None. Otherwise environments are spread over
    processes, in each of which ``worlds`` is called."""
    environments: int = 16
    """How many play at once unless the user says otherwise. Up to 512 it is also the block on which the policy is
    evaluated, and so a part of the arithmetic. The number of processes or threads is none."""
    per_process: int | None = None
    """The largest n that ``worlds`` can be asked for, and the most that one process may hold at a time; None for any.
    SUMO's is 1: it keeps its simulation in global variables. With w processes at most w * per_process are stepped at
    once, in blocks that still have the shape of ``environments``."""
    patience: float = 120.0
    """Seconds after which a process that has not answered (a start, a reset, a step) is taken to hang."""
    encode: Callable[[Any], npt.NDArray[Any]] | None = None
    """From what the environment gives as an observation to the numbers of ours; None where that is the same."""
    decode: Callable[[npt.NDArray[Any]], Any] | None = None
    """From an action as sampled to what the environment takes; None where clipping to the bounds is all."""
    paint: Painter | None = None
    """Draws what the worlds' `VisibleWorlds.scene` says. Without it, everything works but pictures."""
    visible: Callable[[int], HostWorlds] | None = None
    """Makes environments whose scenes can be seen, where those that ``worlds`` makes draw nothing, for speed."""
    film_every: int = 1
    """A film shows every so-manieth state, and always the last."""
