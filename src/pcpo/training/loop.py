"""Training: updates one after the other, with a look at the clock now and then.

Between two looks several updates are handed to the device without waiting for them; how many is no part of the
arithmetic. At a look their rows are written, shown and examined; now and then a checkpoint is written.
"""

import contextlib
import importlib.util
import os
import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax

from pcpo.rl.learner import Metrics
from pcpo.rl.options import Hyper
from pcpo.tasks.api import Task, WorldError
from pcpo.training.checkpoint import Checkpoint
from pcpo.training.collect_host import HostProgram
from pcpo.training.config import Config
from pcpo.training.files import RunError
from pcpo.training.host.fleet import Hands
from pcpo.training.metrics import Row, RowMaker, Totals
from pcpo.training.programs import program_for, shape_of_state
from pcpo.training.progress import Display, Silent
from pcpo.training.run import TENSORBOARD, Record, RunWriter, new_run, newest_fitting, old_run
from pcpo.training.watch import Watch

LOOK_EVERY = 0.5
"""Seconds between two looks at the clock, about."""
CHECKPOINT_EVERY = 20.0
"""Seconds between two checkpoints."""
MOST_AT_ONCE = 500
"""Updates between two looks, at most."""

Callback: TypeAlias = Callable[[Row], bool | None]
"""Sees every row, in order. Returning False stops the training after that update; None and True go on."""


@runtime_checkable
class Program(Protocol):
    """What is trained: `pcpo.training.collect_device.DeviceProgram`, or something that behaves like it."""

    def init(self, hyper: Hyper) -> Any:
        """The state before the first update."""
        ...

    def update(self, state: Any, hyper: Hyper) -> tuple[Any, Any]:
        """One update of every seed. Returns at once; the state that is passed is used up."""
        ...


class Handed(NamedTuple):
    """Updates that the device is busy with."""

    first: int
    metrics: list[Metrics]


@dataclass
class Session:
    """A training in memory: all that is needed to go on with it."""

    program: Program
    record: Record
    state: Any
    update: int
    """Updates made, or handed to the device."""
    maker: RowMaker
    watch: Watch
    recorded: int = field(init=False)
    """Updates whose rows are made, and written where there is somewhere to write."""
    failure: WorldError | None = None
    """Why an environment cannot go on, and so neither can the training."""

    def __post_init__(self) -> None:
        """A session begins with all that came before on record."""
        self.recorded = self.update

    @property
    def whole(self) -> bool:
        """Whether state and rows are of the same update, so that a checkpoint may be made."""
        return self.recorded == self.update

    @classmethod
    def begin(cls, program: Program, record: Record) -> "Session":
        """Before the first update."""
        config = record.config
        totals = Totals.nothing(config.seeds, len(config.constraints))
        return cls(program, record, program.init(config.hyper()), 0, RowMaker(config, totals), Watch(config))

    @classmethod
    def restored(cls, program: Program, record: Record, found: Checkpoint) -> "Session":
        """Where a checkpoint left off."""
        config = record.config
        totals, watch = Totals.from_json(found.meta["totals"]), Watch.from_json(config, found.meta["watch"])
        return cls(program, record, found.tree, found.update, RowMaker(config, totals), watch)

    def hand(self, count: int) -> Handed:
        """Gives the device so many updates to compute; fewer, if an environment cannot go on."""
        handed = Handed(self.update, [])
        for _ in range(count):
            try:
                self.state, metrics = self.program.update(self.state, self._hyper())
            except WorldError as failure:
                self.failure = failure
                break
            handed.metrics.append(metrics)
            self.update += 1
        return handed

    def collect(self, handed: Handed, since: float) -> list[Row]:
        """Waits for updates and makes their rows; the time since then is divided among them."""
        fetched = jax.device_get(handed.metrics)
        seconds = round((time.perf_counter() - since) / len(fetched), 6)
        rows: list[Row] = []
        for update, metrics in enumerate(fetched, handed.first):
            rows += self.maker.rows(update, metrics, self.record.at(update).limits, seconds)
        return rows

    def news(self) -> list[str]:
        """What went wrong with environments, and was mended, since this was last asked."""
        if not isinstance(self.program, HostProgram):
            return []
        news = list(self.program.told)
        self.program.told.clear()
        return news

    def close(self) -> None:
        """Ends the processes that step environments; they are started again if they are needed again."""
        if isinstance(self.program, HostProgram):
            self.program.close()

    def meta(self) -> dict[str, Any]:
        """What a checkpoint needs besides the state."""
        return {"totals": self.maker.totals.to_json(), "watch": self.watch.to_json()}

    def _hyper(self) -> Hyper:
        return self.record.at(self.update).hyper()


class Stop:
    """Whether somebody asked to stop, and who."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def __call__(self, reason: str) -> None:
        """Asks to stop after the update."""
        self.reason = reason


@contextlib.contextmanager
def listening(stop: Stop, say: Callable[[str], None]) -> Generator[None]:
    """Within, Ctrl-C and SIGTERM ask to stop after the update; a second one stops at once (KeyboardInterrupt).

    Only the main thread may listen to signals; elsewhere nothing changes.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.reason is not None:
            raise KeyboardInterrupt
        stop("interrupted" if number == signal.SIGINT else "terminated")
        with contextlib.suppress(OSError, RuntimeError):  # nobody listens, or the line being written is interrupted
            say("stopping after this update (again: at once)")

    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class Listener:
    """Everything that happens at a look: rows are written, shown, examined and called back; checkpoints are due."""

    session: Session
    writer: RunWriter | None
    display: Display
    stop: Stop
    callback: Callback | None = None
    board: Callable[[Sequence[Row]], None] | None = None
    checkpoint_every: float = CHECKPOINT_EVERY

    def __post_init__(self) -> None:
        """The clock starts."""
        self._saved_at = time.monotonic()
        self._saved: int | None = None

    def hear(self, rows: list[Row]) -> None:
        """Takes the rows of a look."""
        if self.writer is not None:
            self.writer.append(rows)
        self.session.recorded = rows[-1]["update"] + 1
        warnings = self.session.watch.see(rows)
        self.display.show(rows)
        for warning in [*self.session.news(), *warnings]:
            self.display.say(f"warning: {warning}")
        if self.board is not None:
            self.board(rows)
        if self.callback is not None:
            for row in rows:
                answer = self.callback(row)
                if answer is not None and not answer:  # numpy has a False of its own
                    self.stop("the callback")

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.writer is not None and time.monotonic() - self._saved_at >= self.checkpoint_every

    def save(self) -> None:
        """Writes a checkpoint, unless there is one of this update, or rows of updates before it are still missing."""
        if self.writer is not None and self.session.whole and self._saved != self.session.update:
            self.writer.save(self.session.update, self.session.state, self.session.meta())
            self._saved = self.session.update
            self._saved_at = time.monotonic()


def advance(session: Session, until: int, listener: Listener) -> None:
    """Makes updates until there are so many, or somebody asks to stop.

    While updates are short, the device computes the next ones while the rows of the last ones are made. With a
    callback it looks after every update, so that stopping leaves the state that belongs to the row.

    Raises:
        WorldError: If an environment cannot go on. Rows of all updates before that have been heard.
    """
    most = 1 if listener.callback is not None else MOST_AT_ONCE
    count, waiting, since = 1, None, time.perf_counter()
    while session.update < until and listener.stop.reason is None and session.failure is None:
        handed = session.hand(min(count, until - session.update))
        if waiting is not None:
            since = _look(session, waiting, since, listener)
        if not handed.metrics:
            waiting = None
            continue
        if count > 1 and not listener.due:
            waiting = handed
            continue
        waiting, began = None, since
        since = _look(session, handed, since, listener)
        if handed.first > 0 or count > 1:  # the first update has waited for the compiler
            count = max(1, min(most, round(LOOK_EVERY * len(handed.metrics) / max(since - began, 1e-6))))
        if listener.due:
            listener.save()
            since = time.perf_counter()
    if waiting is not None:
        _look(session, waiting, since, listener)
    if session.failure is not None:
        raise session.failure


def _look(session: Session, handed: Handed, since: float, listener: Listener) -> float:
    """Waits for updates, has their rows heard, and returns the time."""
    rows = session.collect(handed, since)
    now = time.perf_counter()
    listener.hear(rows)
    return now


# Runs.


class Ended(NamedTuple):
    """How a run ended, this time."""

    directory: Path
    updates: int
    """Updates made so far."""
    of: int
    """Updates that were asked for."""
    stopped_by: str | None
    """Why it ended before that: ``"interrupted"``, ``"terminated"``, ``"the callback"``."""
    warnings: tuple[str, ...]
    """The warnings of the whole run, counted."""


class Manner(NamedTuple):
    """How a run goes on; nothing of it changes what is computed."""

    display: Display = Silent()
    callback: Callback | None = None
    checkpoint_every: float = CHECKPOINT_EVERY
    tensorboard: bool = False
    hands: Hands = Hands()
    """Who steps the environments of a task on the host."""


def _check_simulator(program: Any) -> None:
    """Finds out that a simulator is missing before there is a run that cannot begin."""
    if isinstance(program, HostProgram) and program.task.check is not None:
        try:
            program.task.check()
        except WorldError as error:
            raise RunError(str(error)) from None


def _try_out(program: Any) -> None:
    """Finds out what is wrong with an environment from its first step on, before there is a run."""
    if isinstance(program, HostProgram):
        try:
            program.try_out()
        except WorldError as error:
            raise RunError(str(error)) from error


def train(
    config: Config,
    directory: Path,
    manner: Manner = Manner(),  # noqa: B008 (unchangeable)
    *,
    task: Task | None = None,
    overwrite: bool = False,
) -> Ended:
    """Trains, from the beginning, and leaves a run.

    Args:
        config: The settings.
        directory: Where the run goes.
        manner: How it is shown and saved.
        task: The task itself, where it is not one that `pcpo.training.named` can make again.
        overwrite: Whether a run that is there already may be replaced.

    Raises:
        ValueError: If that cannot be done as asked. Nothing has been changed then.
        WorldError: If an environment cannot go on; the updates before that are saved.
        OSError: If the file system refuses, then or later.
    """
    program = program_for(config, task, hands=manner.hands)
    _check_board(manner.tensorboard)
    _check_simulator(program)
    _try_out(program)
    with new_run(directory, config, overwrite) as writer, manner.display as display:
        display.start(config, 0)
        session = Session.begin(program, writer.record)
        return _go_on(session, writer, manner)


def resume(
    directory: Path,
    manner: Manner = Manner(),  # noqa: B008 (unchangeable)
    *,
    updates: int | None = None,
    limits: Mapping[str, float] | None = None,
    task: Task | None = None,
) -> Ended:
    """Goes on with a run, bit for bit where it stopped.

    Args:
        directory: The run's.
        manner: How it is shown and saved.
        updates: How many updates there shall be in all; as many as before where not given.
        limits: Other limits for the updates to come.
        task: The task itself, where the run was started with one that `pcpo.training.named` cannot make again.

    Raises:
        ValueError: If that cannot be done as asked. Nothing has been changed then.
        WorldError: If an environment cannot go on; the updates before that are saved.
        OSError: If the file system refuses, then or later.
    """
    _check_board(manner.tensorboard)
    with old_run(directory) as writer:
        config = writer.record.config.with_limits(limits or {})
        config = config if updates is None else config.replace(updates=updates)
        program = program_for(config, task, hands=manner.hands)
        found, complaints = newest_fitting(writer, shape_of_state(program, config))
        done = 0 if found is None else found.update
        if config.updates < done:
            raise RunError(f"updates is {config.updates}, but {directory} has {done} already; give a larger number")
        if limits and config.updates == done:
            raise RunError(
                f"limits are given, but {directory} has made all of its {done} updates, so none would know of them; "
                f"give a larger number of updates too, such as --updates {2 * done}"
            )
        writer.go_back(found)
        writer.change(done, limits or {}, config.updates)
        with manner.display as display:
            for complaint in complaints:
                display.say(f"warning: {complaint}")
            if complaints:
                display.say(f"going on from the checkpoint before, after update {done}")
            display.start(config, done)
            if found is None:
                session = Session.begin(program, writer.record)
            else:
                session = Session.restored(program, writer.record, found)
            return _go_on(session, writer, manner)


def _go_on(session: Session, writer: RunWriter, manner: Manner) -> Ended:
    """Updates until the run is complete or stopped, and a checkpoint at the end."""
    until, stop = session.record.config.updates, Stop()
    with _board(writer.directory, session.update, manner.tensorboard) as board:
        listener = Listener(session, writer, manner.display, stop, manner.callback, board, manner.checkpoint_every)
        with contextlib.closing(session), listening(stop, manner.display.say):
            listener.save()
            try:
                advance(session, until, listener)
            except WorldError:
                listener.save()
                raise
            listener.save()
    stopped_by = stop.reason if session.update < until else None
    return Ended(writer.directory, session.update, until, stopped_by, tuple(session.watch.summary(session.update)))


def _check_board(wanted: bool) -> None:
    """What TensorBoard needs, before anything else is done."""
    if wanted and importlib.util.find_spec("tensorboardX") is None:
        raise RunError("TensorBoard needs tensorboardX; install it with: pip install 'pcpo[tensorboard]'")


@contextlib.contextmanager
def _board(directory: Path, update: int, wanted: bool) -> Generator[Callable[[Sequence[Row]], None] | None]:
    """Writes rows for TensorBoard, one series for each seed."""
    if not wanted:
        yield None
        return
    from tensorboardX import SummaryWriter  # pyright: ignore[reportMissingImports]

    writers: dict[int, Any] = {}

    def write(rows: Sequence[Row]) -> None:
        for row in rows:
            seed = row["seed"]
            if seed not in writers:
                folder = os.fspath(directory / TENSORBOARD / f"seed-{seed}")
                writers[seed] = SummaryWriter(folder, purge_step=update)
            for name, value in _flat(row):
                writers[seed].add_scalar(name, value, row["update"])

    try:
        yield write
    finally:
        for writer in writers.values():
            writer.close()


def _flat(row: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """The numbers in a row, with names such as ``costs/cost``."""
    found: list[tuple[str, float]] = []
    for name, value in row.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and name not in {"update", "seed"}:
            found.append((f"{prefix}{name}", float(value)))
    return found
