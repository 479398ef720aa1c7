"""What the learner's process and those of the environments tell each other at every step: rows of numbers.

The rows lie in memory that all of them see. It has no name in the file system, so nothing is left of it when the
processes are gone, however they went.
"""

import mmap
import os
import tempfile
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from jaxtyping import Int

from pcpo.tasks.host import HostTask, HostWorlds, WorldError

Command: TypeAlias = Literal["reset", "step"]


class Layout(NamedTuple):
    """How large the rows are."""

    environments: int
    observations: int
    actions: int
    """Components of an action, or 0 for the number of a choice."""
    costs: int

    @property
    def columns(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """The dtype and the shape of each array. Eight bytes hold every number of a float32 run exactly."""
        n = self.environments
        return {
            "observations": (np.float64, (n, self.observations)),
            "actions": (np.float64, (n, self.actions)) if self.actions else (np.int64, (n,)),
            "rewards": (np.float64, (n,)),
            "costs": (np.float64, (n, self.costs)),
            "seeds": (np.int64, (n,)),
            "terminated": (np.bool_, (n,)),
            "truncated": (np.bool_, (n,)),
            "wanted": (np.bool_, (n,)),
        }

    @property
    def bytes(self) -> int:
        """Of all arrays."""
        return sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for dtype, shape in self.columns.values())


def layout_for(task: HostTask, environments: int) -> Layout:
    """The rows of a task."""
    components = getattr(task.action_space, "low", ())
    return Layout(environments, task.observation_size, len(components), len(task.cost_names))


class Table:
    """The arrays, one row for each environment."""

    observations: npt.NDArray[np.float64]
    actions: npt.NDArray[Any]
    rewards: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64]
    seeds: npt.NDArray[np.int64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    wanted: npt.NDArray[np.bool_]
    """Whom a command is for."""

    def __init__(self, layout: Layout, memory: Any) -> None:
        """Arrays in some writable memory; the widest types come first, so that each begins where it may."""
        offset = 0
        for name, (dtype, shape) in layout.columns.items():
            size = int(np.prod(shape))
            array = np.frombuffer(memory, dtype, size, offset) if size else np.zeros(0, dtype)
            setattr(self, name, array.reshape(shape))
            offset += array.nbytes

    def obey(
        self, command: Command, worlds: HostWorlds, rows: Int[np.ndarray, " n"], which: Int[np.ndarray, " n"]
    ) -> None:
        """Has environments reset or stepped, and puts what they give into the rows.

        Args:
            command: What they shall do.
            worlds: The environments.
            rows: Their rows.
            which: Their numbers in ``worlds``.

        Raises:
            WorldError: If they give arrays of other shapes than they said.
        """
        if command == "reset":
            self._put("observations", rows, worlds.reset(which, self.seeds[rows]))
            return
        for name, values in worlds.step(which, self.actions[rows])._asdict().items():
            self._put(name, rows, values)

    def _put(self, name: str, rows: npt.NDArray[Any], values: Any) -> None:
        array = getattr(self, name)
        shape = (len(rows), *array.shape[1:])
        if np.shape(values) != shape:
            raise WorldError(f"worlds gave {name} of the shape {np.shape(values)} where {shape} was due")
        array[rows] = values


def private(layout: Layout) -> Table:
    """A table for one process."""
    return Table(layout, bytearray(layout.bytes + 1))


def reserve(layout: Layout) -> int:
    """Memory for a table that several processes see: a file descriptor."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("pcpo")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, layout.bytes + 1)  # memory of no bytes cannot be had
    return handle


def shared(layout: Layout, handle: int) -> Table:
    """The table in reserved memory."""
    return Table(layout, mmap.mmap(handle, layout.bytes + 1))
