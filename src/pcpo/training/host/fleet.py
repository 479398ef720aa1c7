"""Who steps the environments of a task: this process, where the engine has threads of its own, or some others."""

import contextlib
import functools
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import cloudpickle
import numpy as np
from jaxtyping import Int

from pcpo.tasks.host import HostTask, HostWorlds, WorldError
from pcpo.training.host import child
from pcpo.training.host.table import Command, Table, layout_for, private, reserve, shared

START = 120.0
"""Seconds that a process may take to start, at least: it imports whatever its environments need."""

_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}
"""Of the processes: there is one for each core at least, and none may take the learner's GPU."""


CROWD = 2
"""Processes for each core where a process holds few environments: while one of them waits for the policy, another
simulates. (With as many as cores, an update of the grid took 3.1 s on two cores; with twice as many, 2.3.)"""

_BYTES = {command: byte for byte, command in child.COMMANDS.items()}


class Failure(NamedTuple):
    """What went wrong with a worker. Its environments are lost."""

    worker: int
    reason: str
    """Completes "a process of the environments ..."."""
    trace: str = ""
    """The environment's own error in full."""


@runtime_checkable
class Fleet(Protocol):
    """Environments in rows of a table, dealt to workers in turn: row i belongs to worker ``i % workers``.

    Workers work side by side, each on one command at a time.
    """

    table: Table
    workers: int

    def begin(self, worker: int, command: Command, rows: Int[np.ndarray, " n"]) -> None:
        """Has a worker do something with some of its rows, and does not wait for it."""
        ...

    def finished(self, workers: Collection[int]) -> dict[int, Failure | None]:
        """Waits until one of these workers, who have all begun something, is done; those who are, and what went wrong.

        Raises:
            WorldError: If an environment does what none may do.
        """
        ...

    def replace(self, worker: int) -> None:
        """New environments in place of those of a worker that failed.

        Raises:
            WorldError: If there can be none.
        """
        ...

    def close(self) -> None:
        """Ends all that was started."""
        ...

    def run(self, command: Command, rows: Int[np.ndarray, " n"]) -> list[Failure]:
        """Has the environments of some rows do something, and waits until all of them have.

        Raises:
            WorldError: If an environment does what none may do.
        """
        dealt = {worker: rows[rows % self.workers == worker] for worker in range(self.workers)}
        waiting = {worker for worker, its in dealt.items() if its.size}
        for worker in waiting:
            self.begin(worker, command, dealt[worker])
        failures: list[Failure | None] = []
        while waiting:
            done = self.finished(waiting)
            waiting -= done.keys()
            failures += done.values()
        return [failure for failure in failures if failure is not None]


class InProcess(Fleet):
    """All environments in this process, stepped at once: with threads of the engine's own, where it has some.

    Two halves that take turns, one simulated while the policy decides for the other, were tried: with a thread each
    they had three quarters of the speed of one batch with both (`docs/performance.md`).
    """

    workers = 1

    def __init__(self, task: HostTask, environments: int, threads: int = 1) -> None:
        self.table = private(layout_for(task, environments))
        sizes = (environments, threads) if task.in_process else (environments,)
        self._make: Callable[[], HostWorlds] = functools.partial(task.worlds, *sizes)
        self._worlds = self._make()
        self._outcome: Failure | None = None

    def begin(self, worker: int, command: Command, rows: Int[np.ndarray, " n"]) -> None:
        """As `Fleet.begin`, but it does wait."""
        self._outcome = None
        try:
            self.table.obey(command, self._worlds, rows, rows)
        except WorldError:
            raise
        except Exception as error:  # noqa: BLE001 (somebody else's code: it is reported, and tried again)
            told = child.explain(error)
            self._outcome = Failure(worker, f"failed with {told['text']}", told["trace"])

    def finished(self, workers: Collection[int]) -> dict[int, Failure | None]:
        """As `Fleet.finished`."""
        return dict.fromkeys(workers, self._outcome)

    def replace(self, worker: int) -> None:  # noqa: ARG002 (there is one)
        """As `Fleet.replace`."""
        self._worlds.close()
        self._worlds = self._make()

    def close(self) -> None:
        """As `Fleet.close`."""
        self._worlds.close()


class Processes(Fleet):
    """Environments spread over processes, which end with this one, however it ends."""

    def __init__(self, task: HostTask, environments: int, workers: int) -> None:
        self.workers = min(workers, environments)
        self._task = task
        self._layout = layout_for(task, environments)
        self._memory = reserve(self._layout)
        self.table = shared(self._layout, self._memory)
        self._worlds = _pickled(task)
        self._workers: list[_Worker] = []
        self._asked: dict[int, _Asked] = {}
        self._end = weakref.finalize(self, _end, self._workers, self._memory)
        try:
            for number in range(self.workers):
                self._workers.append(self._started(number))
            for number in range(self.workers):
                self._await_start(number)
        except BaseException:  # also Ctrl-C
            self.close()
            raise

    def begin(self, worker: int, command: Command, rows: Int[np.ndarray, " n"]) -> None:
        """As `Fleet.begin`."""
        self.table.wanted[worker :: self.workers] = False
        self.table.wanted[rows] = True
        self._asked[worker] = _Asked(command, time.monotonic() + self._task.patience)
        self._workers[worker].ask(_BYTES[command])

    def finished(self, workers: Collection[int]) -> dict[int, Failure | None]:
        """As `Fleet.finished`. Who has neither answered nor died when its time is over is taken to hang."""
        until = min(self._asked[worker].deadline for worker in workers)
        lines = {self._workers[worker].line: worker for worker in workers}
        answered = [lines[line] for line in _readable(list(lines), max(until - time.monotonic(), 0.0))]
        now = time.monotonic() if answered else until
        late = [worker for worker in workers if self._asked[worker].deadline <= now]
        return {worker: self._outcome(worker) for worker in {*answered, *late}}

    def _outcome(self, worker: int) -> Failure | None:
        command, deadline = self._asked.pop(worker)
        answer = self._workers[worker].answer(deadline)
        return None if answer is None else self._failure(worker, answer, f"a {command}")

    def replace(self, worker: int) -> None:
        """As `Fleet.replace`."""
        self._workers[worker].kill()
        self._workers[worker] = self._started(worker)
        self._await_start(worker)

    def close(self) -> None:
        """As `Fleet.close`."""
        self._end()

    @property
    def processes(self) -> tuple[int, ...]:
        """The numbers that the system knows the processes by."""
        return tuple(worker.process.pid for worker in self._workers)

    def _started(self, number: int) -> "_Worker":
        order = child.Order(self._layout, number, self.workers, self._worlds)
        return _Worker(order, self._memory)

    def _await_start(self, number: int) -> None:
        answer = self._workers[number].answer(time.monotonic() + max(START, self._task.patience))
        if answer is not None:
            failure = self._failure(number, answer, "its start")
            raise with_trace(WorldError(f"{self._task.name}: a process of the environments {failure.reason}"), failure)

    def _failure(self, number: int, answer: "_Answer", during: str) -> Failure:
        if answer.final:
            raise WorldError(answer.text)
        text = f"{answer.text} (after {self._task.patience:g} s of {during})" if answer.hangs else answer.text
        return Failure(number, text, answer.trace)


class _Asked(NamedTuple):
    """What a worker has been asked for."""

    command: Command
    deadline: float


class Hands(NamedTuple):
    """Who does the work. No part of the arithmetic."""

    workers: int | None = None
    """Processes of a task that is stepped in processes, 0 for none but this one; None for one per core, or two where a
    process holds one environment only."""
    threads: int | None = None
    """Of a task that is stepped by threads; None for one per core."""

    def check(self, task: HostTask) -> None:
        """Whether the task has use for what is given.

        Raises:
            ValueError: If it has not.
        """
        if task.in_process and self.workers is not None:
            raise ValueError(f"workers is {self.workers}, but {task.name} is stepped by threads; give threads instead")
        if not task.in_process and self.threads is not None:
            raise ValueError(
                f"threads is {self.threads}, but {task.name} is stepped by processes; give workers instead"
            )


def fleet_for(task: HostTask, environments: int, hands: Hands) -> Fleet:
    """Environments where the task wants them.

    Args:
        task: The task.
        environments: How many; fewer where the task limits what one process may hold.
        hands: Who steps them.
    """
    here = task.in_process or hands.workers == 0
    processes = 1 if here else hands.workers or default_workers() * (1 if task.per_process is None else CROWD)
    if task.per_process is not None:
        environments = min(environments, processes * task.per_process)
    if here:
        return InProcess(task, environments, hands.threads or default_workers())
    return Processes(task, environments, processes)


def with_trace(error: WorldError, failure: Failure) -> WorldError:
    """The error with the environment's own one below it, for whoever reads tracebacks."""
    if failure.trace:
        error.add_note(failure.trace)
    return error


class _Answer(NamedTuple):
    """An answer that is not the right one."""

    text: str
    final: bool = False
    hangs: bool = False
    trace: str = ""


class _Worker:
    """One process, the line to it, and a pipe that is open as long as this process lives.

    Each has a pipe of its own: who is told that it is closed belongs to the pipe, not to who reads it.
    """

    def __init__(self, order: child.Order, memory: int) -> None:
        self.line, theirs = socket.socketpair()
        life, self._life = os.pipe()
        numbers = (theirs.fileno(), life, memory)
        code = (
            "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
            f"from pcpo.training.host.child import main; main{numbers}"
        )
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", code, json.dumps(sys.path)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=numbers,
                    start_new_session=True,  # Ctrl-C is ours to hear, and it can be ended with all that it has started
                    env={**_SETTINGS, **os.environ, "JAX_PLATFORMS": "cpu"},
                )
            finally:
                os.close(life)
        content = pickle.dumps(order)
        with contextlib.suppress(ConnectionError):  # whoever asks for its answer will know
            self.line.sendall(len(content).to_bytes(8, "little") + content)

    def ask(self, byte: bytes) -> None:
        """Sends a command."""
        with contextlib.suppress(ConnectionError):
            self.line.sendall(byte)

    def answer(self, deadline: float) -> _Answer | None:
        """Waits for the answer; None if the command has been obeyed."""
        try:
            self.line.settimeout(max(deadline - time.monotonic(), 1e-3))
            byte = self.line.recv(1)
            if byte == child.DONE:
                return None
            told = json.loads(child.receive(self.line)) if byte == child.FAILED else None
        except TimeoutError:
            return _Answer("did not answer", hangs=True)
        except (ConnectionError, EOFError):
            told = None
        if told is None:
            return _Answer(f"died {self._how()}")
        return _Answer(
            told["text"] if told["final"] else f"failed with {told['text']}", told["final"], trace=told["trace"]
        )

    def kill(self) -> None:
        """Ends the process and all that it has started."""
        self.line.close()
        if self._life is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # they are gone already
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._life)
        self._life = None

    def _how(self) -> str:
        """How it died, once it has."""
        try:
            code = self.process.wait(10.0)
        except subprocess.TimeoutExpired:
            return "without ending: it has closed its line to this one"
        return f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _end(workers: Sequence[_Worker], memory: int) -> None:
    """Closes what processes hold, waits for them a little, and kills those that are left."""
    for worker in workers:
        worker.line.close()
    deadline = time.monotonic() + 2.0
    for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(max(deadline - time.monotonic(), 1e-3))
        worker.kill()
    os.close(memory)


def _pickled(task: HostTask) -> bytes:
    """What makes the environments, lambdas and closures included.

    Raises:
        WorldError: If it holds something that cannot be sent to another process.
    """
    try:
        return cloudpickle.dumps(task.worlds)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise WorldError(
            f"{task.name} cannot be sent to the processes that step it ({error}); let the function that makes the "
            "environment open files, connections and the like itself, rather than use some that are open already"
        ) from None


def _readable(lines: list[socket.socket], seconds: float) -> list[Any]:
    """Which of some lines have something to read, or are closed; waits for one of them."""
    if not hasattr(select, "poll"):
        return select.select(lines, [], [], seconds)[0]
    poll, numbers = select.poll(), {line.fileno(): line for line in lines}
    for number in numbers:
        poll.register(number, select.POLLIN)
    return [numbers[number] for number, _ in poll.poll(1000 * seconds)]


def default_workers() -> int:
    """One process for each core that this one may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
