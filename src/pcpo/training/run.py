"""A run is a directory: ``config.json``, ``metrics.jsonl``, ``checkpoints/`` and, once drawn, ``plots/``.

Readable with json and numpy alone. `Run` reads it; `RunWriter` is the only one that writes to it.
"""

import contextlib
import json
import operator
import os
import platform
import shutil
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from pcpo import __version__
from pcpo.training import checkpoint
from pcpo.training.checkpoint import Checkpoint, CheckpointError
from pcpo.training.config import Config
from pcpo.training.files import RunError, locked, read_json, write_json

FORMAT = 1
"""Of ``config.json``. Another number means that it cannot be read."""

CONFIG, METRICS, CHECKPOINTS, PLOTS = "config.json", "metrics.jsonl", "checkpoints", "plots"
EVALUATION, TENSORBOARD = "evaluation.json", "tensorboard"
"""What else a run may hold once it was asked for."""


@dataclass(frozen=True)
class Record:
    """What ``config.json`` holds: the settings a run was started with, and what was changed later, from when on."""

    started_with: Config
    changes: tuple[dict[str, Any], ...] = ()
    """Each ``{"from_update": k, "limits": {...}, "updates": n}``, oldest first."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def config(self) -> Config:
        """The settings with all changes."""
        return self.at(None)

    def at(self, update: int | None) -> Config:
        """The settings that hold for an update, or at the end (None). The number of updates is always the last."""
        config = self.started_with
        for change in self.changes:
            if update is None or change["from_update"] <= update:
                config = config.with_limits(change["limits"])
            config = config.replace(updates=change["updates"])
        return config

    def changed(self, update: int, limits: Mapping[str, float], updates: int) -> "Record":
        """The record once these limits hold from an update on, and so many updates are wanted; the same if they do.

        Limits that are not named stay as they are, also those that are to change later on: a run that has gone back
        behind such a change will come to it again.
        """
        later = [self.at(update), *(self.at(c["from_update"]) for c in self.changes if c["from_update"] > update)]
        new = {name: limit for name, limit in limits.items() if any(limit != each.limits[name] for each in later)}
        if not new and updates == self.config.updates:
            return self
        change = {"from_update": update, "limits": new, "updates": updates}
        return Record(self.started_with, (*self.changes, change), self.versions)

    def to_json(self) -> dict[str, Any]:
        """The object in the file."""
        return {
            "format": FORMAT,
            "pcpo": __version__,
            "versions": dict(self.versions),
            "config": self.started_with.to_json(),
            "changes": list(self.changes),
        }

    @classmethod
    def read(cls, path: Path) -> "Record":
        """The record in a file.

        Raises:
            RunError: If the file is damaged, or was written by a version with other settings.
        """
        return cls.from_json(read_json(path), path)

    @classmethod
    def from_json(cls, plain: Any, path: Path) -> "Record":
        """What `to_json` gave; ``path`` is named where something is wrong with it.

        Raises:
            RunError: As `read`.
        """
        plain = plain if isinstance(plain, dict) else {}
        version = str(plain.get("pcpo", "unknown"))
        if plain.get("format") != FORMAT:
            raise RunError(
                f"{path} has format {plain.get('format')!r}, written by pcpo {version}; this is pcpo {__version__}, "
                f"which reads format {FORMAT}: install pcpo {version} to go on from it, or train again"
            )
        try:
            changes, written_with = [_change(each) for each in plain["changes"]], plain["versions"].items()
            record = cls(Config.from_json(plain["config"], version), tuple(changes), dict(written_with))
            _ = record.config
        except (KeyError, TypeError, AttributeError):
            raise RunError(f"{path} is damaged: it is not what pcpo wrote; restore it from a copy") from None
        except ValueError as error:
            raise RunError(f"{path}: {error}") from None
        return record


def _change(plain: Any) -> dict[str, Any]:
    """One change of a record, with nothing but what it needs.

    Raises:
        TypeError, KeyError, AttributeError: If it is none.
    """
    limits = {str(name): float(limit) for name, limit in plain["limits"].items()}
    return {"from_update": operator.index(plain["from_update"]), "limits": limits, "updates": plain["updates"]}


class Run:
    """A run, for reading. It may be one that is still being written.

    Example (in a directory with a run in it)::

        run = Run.open("runs/point-circle-pcpo-kl")
        run.config.limits["cost"]
        run.column("costs", "cost").mean(axis=1)  # over seeds, one number per update
    """

    def __init__(self, directory: Path, record: Record) -> None:
        self.directory = directory
        self.record = record

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> "Run":
        """The run in a directory.

        Raises:
            RunError: If there is none, or it cannot be read.
        """
        path = Path(directory)
        if not path.exists():
            raise RunError(f"{path} does not exist; give the directory of a run, which pcpo train makes")
        if not (path / CONFIG).is_file():
            raise RunError(f"{path} is no run: there is no {CONFIG} in it; give a directory that pcpo train has made")
        return cls(path, Record.read(path / CONFIG))

    @property
    def config(self) -> Config:
        """The settings, with all changes that were made later."""
        return self.record.config

    @property
    def seeds(self) -> tuple[int, ...]:
        """The columns of `column`."""
        return self.config.all_seeds

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """All rows, one per update and seed, of updates that are complete. Read once."""
        path = self.directory / METRICS
        if not path.is_file():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is nothing, or half a row
        rows = [self._parsed(number, line) for number, line in enumerate(lines, 1)]
        return rows[: len(rows) // len(self.seeds) * len(self.seeds)]

    @property
    def updates(self) -> int:
        """How many updates there are rows of."""
        return len(self.rows) // len(self.seeds)

    def column(self, *names: str) -> Float[np.ndarray, "updates seeds"]:
        """One column as an array of updates by seeds; null is not-a-number, a list counts its entries.

        Args:
            *names: The column, and for those of costs the name of the cost: ``("costs", "cost")``.

        Raises:
            RunError: If there is no such column.
        """
        values = [self._value(row, names) for row in self.rows]
        return np.array(values, float).reshape(-1, len(self.seeds))

    def latest_state(self, like: Any) -> Checkpoint:
        """The newest checkpoint that is whole.

        Args:
            like: The shape of the state, as `pcpo.training.programs.shape_of_state` gives it.

        Raises:
            CheckpointError: If there is none, or every one is damaged. The message is about the newest.

        Warns:
            DamagedCheckpointWarning: If the newest one is damaged, and one before it is given.
        """
        found, damaged = newest_whole(self.directory / CHECKPOINTS, like)
        if damaged:
            text = f"{damaged[0]}. Used in its place: the checkpoint after {found.update} updates"
            warnings.warn(text, DamagedCheckpointWarning, stacklevel=2)
        return found

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise RunError(f"{self.directory / METRICS} is damaged in line {number}; pcpo resume repairs what it can")
        return row

    def _value(self, row: Mapping[str, Any], names: Sequence[str]) -> float:
        value: Any = row
        for name in names:
            if not isinstance(value, Mapping) or name not in value:
                raise RunError(f"{self.directory} has no column {'.'.join(names)!r}; a row has {', '.join(row)}")
            value = value[name]
        if isinstance(value, Mapping | str):
            raise RunError(f"{'.'.join(names)!r} of {self.directory} is no number but {value!r}; look into run.rows")
        if isinstance(value, list):
            return float(len(value))
        return float("nan") if value is None else float(value)


class DamagedCheckpointWarning(UserWarning):
    """The newest checkpoint of a run cannot be read, so that what is shown is an older policy."""


def newest_whole(directory: Path, like: Any) -> tuple[Checkpoint, list[CheckpointError]]:
    """The newest checkpoint that can be read, and what is wrong with those after it."""
    damaged: list[CheckpointError] = []
    for update in reversed(checkpoint.updates(directory)):
        try:
            return checkpoint.load(directory, update, like), damaged
        except CheckpointError as error:
            damaged.append(error)
    if damaged:
        raise damaged[0]
    raise CheckpointError(f"{directory} holds no checkpoint; train again with --overwrite")


class RunWriter:
    """Writes a run. Rows are appended; a checkpoint says how many bytes of them belong to it."""

    def __init__(self, directory: Path, record: Record) -> None:
        self.directory = directory
        self.record = record
        self._size = 0

    @property
    def metrics(self) -> Path:
        """The file of the rows."""
        return self.directory / METRICS

    @property
    def checkpoints(self) -> Path:
        """The directory of the checkpoints."""
        return self.directory / CHECKPOINTS

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows. If that fails half-way, on a full disk say, what was written of them is taken back."""
        content = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
        try:
            with self.metrics.open("ab") as file:
                file.write(content)
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(self.metrics, self._size)
            raise
        self._size += len(content)

    def save(self, update: int, state: Any, meta: Mapping[str, Any]) -> None:
        """Writes a checkpoint, after making sure that the rows before it are on the disk."""
        with self.metrics.open("ab") as file:
            os.fsync(file.fileno())
        about = {"metrics_bytes": self._size, "config": identity(self.record.config)}
        checkpoint.save(self.checkpoints, update, state, {**about, **meta})

    def change(self, update: int, limits: Mapping[str, float], updates: int) -> None:
        """Writes down that these limits, and this number of updates, hold from an update on."""
        changed = self.record.changed(update, limits, updates)
        if changed is not self.record:
            write_json(self.directory / CONFIG, changed.to_json())
            self.record = changed

    def go_back(self, to: Checkpoint | None) -> None:
        """Takes back all rows that were written after a checkpoint, or all there are."""
        size = 0 if to is None else to.meta["metrics_bytes"]
        if self.metrics.exists():
            os.truncate(self.metrics, size)
        self._size = size


@contextlib.contextmanager
def new_run(directory: Path, config: Config, overwrite: bool = False) -> Generator[RunWriter]:
    """Makes the directory of a run, and keeps others from writing to it for as long as the context lasts.

    Raises:
        RunError: If there is a run already and it may not be overwritten, if another process writes to it, or if the
            directory is a file. Nothing has been changed then.
        OSError: If the file system refuses.
    """
    if directory.exists() and not directory.is_dir():
        raise RunError(f"--out is {directory}, which is a file; give a directory")
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        taken = [name for name in (CONFIG, METRICS, CHECKPOINTS) if (directory / name).exists()]
        if taken and not overwrite:
            raise RunError(
                f"{directory} holds a run already; go on with it (pcpo resume {directory}), choose another --out, or "
                "replace it with --overwrite"
            )
        writer = RunWriter(directory, Record(config, (), versions()))
        if taken and not _looks_like_a_run(directory):
            raise RunError(f"{directory} holds a {CONFIG} that is not a run's; choose another --out")
        if taken:  # without a run in it, what there is has nothing to do with us
            for name in (PLOTS, TENSORBOARD, EVALUATION, CHECKPOINTS, METRICS):
                _remove(directory / name)
        # The configuration comes first: with nothing but it, a run can be resumed; without it, it was never begun.
        write_json(directory / CONFIG, writer.record.to_json())
        yield writer


@contextlib.contextmanager
def old_run(directory: Path) -> Generator[RunWriter]:
    """A run that is there already, to go on with.

    Raises:
        RunError: If there is none, if it cannot be read, or if another process writes to it.
    """
    run = Run.open(directory)
    with locked(directory):
        yield RunWriter(directory, Record.read(run.directory / CONFIG))


def newest_fitting(writer: RunWriter, like: Any) -> tuple[Checkpoint | None, list[str]]:
    """The checkpoint to go on from, and what is wrong with those that had to be passed over. Nothing is changed.

    A run that was stopped before its first checkpoint has nothing to go on from: None.

    Raises:
        CheckpointError: If checkpoints are damaged and none is whole, belong to another configuration, or do not fit
            to the rows.
    """
    size = writer.metrics.stat().st_size if writer.metrics.exists() else 0
    if not checkpoint.updates(writer.checkpoints):
        if size:
            raise CheckpointError(f"{writer.checkpoints} holds no checkpoint; train again with --overwrite")
        return None, []
    complaints: list[str] = []
    for update in reversed(checkpoint.updates(writer.checkpoints)):
        try:
            found = _fitting(writer, update, like, size)
        except CheckpointError as error:
            complaints.append(str(error))
            continue
        return found, complaints
    raise CheckpointError(complaints[0])


def _fitting(writer: RunWriter, update: int, like: Any, size: int) -> Checkpoint:
    """A checkpoint that is whole and belongs to this run's configuration and rows."""
    found = checkpoint.load(writer.checkpoints, update, like)
    record = writer.checkpoints / f"update-{update:08d}.json"
    if found.meta.get("config") != identity(writer.record.config):
        raise CheckpointError(
            f"{record} belongs to another configuration than {writer.directory / CONFIG}; restore that file as it was"
        )
    wanted = found.meta.get("metrics_bytes")
    if not isinstance(wanted, int) or wanted > size:
        raise CheckpointError(
            f"{writer.metrics} has {size} bytes, but {record} was written after {wanted}; restore it from a copy"
        )
    return found


def identity(config: Config) -> str:
    """What must not change while a run goes on: all but the limits and the number of updates."""
    fixed = config.replace(updates=1).with_limits(dict.fromkeys(config.limits, 0.0))
    return checkpoint.fingerprint(fixed.to_json())


def free_directory(config: Config, parent: Path = Path("runs")) -> Path:
    """A directory below ``runs/`` that holds no run: the task and the algorithm, with a number from the second on."""
    base = f"{config.task}-{config.algorithm}".replace("/", "-").replace(":", "-")
    names = (base if number == 1 else f"{base}-{number}" for number in range(1, 1_000_000))
    return next(parent / name for name in names if not (parent / name / CONFIG).exists())


def versions() -> dict[str, str]:
    """What the numbers of a run may depend on besides its settings."""
    import jax

    packages = {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")}
    device = jax.devices()[0]
    return {
        "pcpo": __version__,
        "python": platform.python_version(),
        **packages,
        "machine": platform.machine(),
        "device": f"{device.platform} {device.device_kind}",
        "cores": str(os.cpu_count()),
    }


def _looks_like_a_run(directory: Path) -> bool:
    """Whether the configuration in a directory is ours; where it cannot be read, whether something else of a run is."""
    try:
        return "pcpo" in read_json(directory / CONFIG)
    except (OSError, RunError):
        return (directory / METRICS).exists() or (directory / CHECKPOINTS).is_dir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
