"""The results of a piece of work: a table and a record, small enough to live in a repository.

``VARIANT.seeds-0-4.csv.gz`` has one row per update and seed, its columns named as in a run's metrics. Reward, costs,
KL and status are there for every update. What the audit needs is there for the first 100 updates and for every tenth
one after them, and empty in between. ``VARIANT.seeds-0-4.json`` holds the complete configuration, the versions, and how
long it took on what. A piece of work is always read and written whole, so that results of several machines are put
together by putting files together.
"""

import csv
import dataclasses
import gzip
import io
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcpo.experiments.series import Series, Table
from pcpo.experiments.suite.plan import seeds_named
from pcpo.training.config import Config
from pcpo.training.files import RunError, read_json, write_json, write_whole
from pcpo.training.run import CONFIG, Record, Run, identity

CORE = ("discounted_return", "episode_length", "costs", "kl")
"""What is kept of every update; ``costs`` of each."""
AUDIT = (
    "predicted_kl",
    "predicted_reward",
    "reward_change",
    "predicted_costs",
    "cost_changes",
    "cost_standard_errors",
    "bound_estimate_costs",
    "multipliers",
    "cg_residuals",
    "condition",
)
"""What is kept of some."""
EVERY_UPDATE, THEN_EVERY = 100, 10
"""The audit is kept of so many updates from the first, then of one in so many."""
_PER_COST = ("costs", "predicted_costs", "cost_changes", "cost_standard_errors", "bound_estimate_costs", "multipliers")


class Unwritten(NamedTuple):
    """A piece of work as it goes into its two files."""

    name: str
    table: bytes
    """Not compressed yet."""
    record: dict[str, Any]


class Piece(NamedTuple):
    """A piece of work as it was read."""

    variant: str
    record: Record
    updates: int
    rows: Sequence[Mapping[str, str]]
    path: Path

    @property
    def config(self) -> Config:
        """The settings."""
        return self.record.config

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return self.config.all_seeds


def is_audited(update: int) -> bool:
    """Whether the audit of an update is kept."""
    return update < EVERY_UPDATE or update % THEN_EVERY == 0


# Writing.


def compact(run: Run, variant: str) -> Unwritten:
    """What is kept of a run.

    Raises:
        RunError: If it has no rows, or limits that were changed on the way, which no experiment does.
    """
    if not run.rows:
        raise RunError(f"{run.directory} has no measurements yet; run it first")
    if any(run.record.at(update).limits != run.config.limits for update in range(run.updates)):
        raise RunError(f"the limits of {run.directory} were changed on the way; give a run with one limit")
    names = run.config.cost_names
    columns = _columns(names)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["update", "seed", *columns, "status"])
    for row in run.rows:
        shown = _shown(row, names) | ({} if is_audited(row["update"]) else dict.fromkeys(_columns(names, AUDIT), ""))
        writer.writerow([row["update"], row["seed"], *(shown[name] for name in columns), row["status"]])
    seconds = _seconds_per_update(run)
    record = {
        "variant": variant,
        "updates": run.updates,
        "seconds": float(f"{np.nansum(seconds):.4g}"),
        "seconds_of_the_median_update": float(f"{np.nanmedian(seconds):.4g}"),
        **Record(run.config, (), run.record.versions).to_json(),
    }
    return Unwritten(f"{variant}.{seeds_named(run.seeds)}", text.getvalue().encode(), record)


def write(directory: Path, piece: Unwritten) -> list[Path]:
    """Writes the two files; the record last, so that where it is, the table is too."""
    directory.mkdir(parents=True, exist_ok=True)
    record = directory / f"{piece.name}.json"
    table = table_of(record)
    record.unlink(missing_ok=True)
    write_whole(table, gzip.compress(piece.table, 9, mtime=0))  # without the time, the same rows give the same file
    write_json(record, piece.record)
    return [table, record]


def _columns(costs: Sequence[str], kinds: Sequence[str] = (*CORE, *AUDIT)) -> list[str]:
    found: list[str] = []
    for kind in kinds:
        if kind in _PER_COST:
            found += [f"{kind}.{cost}" for cost in costs]
        elif kind == "cg_residuals":
            found += [f"{kind}.{name}" for name in ("reward", *costs)]
        else:
            found.append(kind)
    return found


def _shown(row: Mapping[str, Any], costs: Sequence[str]) -> dict[str, str]:
    """The numbers of a row as they are written: six digits of what is plotted, four of the audit, nothing for null."""
    found: dict[str, str] = {}
    for kind in (*CORE, *AUDIT):
        digits = 6 if kind in CORE and kind != "kl" else 4
        if kind in _PER_COST:
            found |= {f"{kind}.{cost}": _number(row[kind][cost], digits) for cost in costs}
        elif kind == "cg_residuals":
            named = zip(("reward", *costs), row[kind], strict=False)  # rules that ignore costs have none of theirs
            found |= dict.fromkeys((f"{kind}.{name}" for name in ("reward", *costs)), "")
            found |= {f"{kind}.{name}": _number(value, digits) for name, value in named}
        else:
            found[kind] = _number(row[kind], digits)
    return found


def _number(value: float | int | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _seconds_per_update(run: Run) -> np.ndarray:
    return run.column("seconds")[:, 0]


# Reading.


def read(directory: Path) -> list[Piece]:
    """All pieces of work in a directory, by variant and seeds; none where there is no such directory.

    Raises:
        RunError: If a file is damaged, or two pieces of one variant share a seed.
    """
    records = sorted(directory.glob("*.seed*-*.json")) if directory.is_dir() else []
    pieces = [read_piece(path) for path in records]
    check_disjoint(pieces)
    return sorted(pieces, key=lambda piece: (piece.variant, piece.seeds))


def read_piece(path: Path) -> Piece:
    """The piece of work with that record.

    Raises:
        RunError: If a file is damaged or missing.
    """
    plain, table = read_json(path), table_of(path)
    record = Record.from_json(_with_newer_settings(plain), path)
    if not table.is_file():
        raise RunError(f"{table} is missing, but {path} is there; restore it from a copy")
    try:
        rows = list(csv.DictReader(io.StringIO(read_table(table).decode())))
    except UnicodeDecodeError:
        raise RunError(f"{table} is damaged: it is no text; restore it from a copy") from None
    updates, seeds = plain.get("updates"), record.config.seeds
    if (
        not isinstance(updates, int)
        or updates < 1
        or len(rows) != updates * seeds
        or not isinstance(plain.get("variant"), str)
    ):
        raise RunError(f"{table} has {len(rows)} rows, but {path} says otherwise; restore both from a copy")
    return Piece(plain["variant"], record, updates, rows, path)


def open_run(directory: Path) -> Run:
    """The run in a directory, also if it was made before some of today's settings existed.

    Raises:
        RunError: If it cannot be read.
    """
    path = directory / CONFIG
    return Run(directory, Record.from_json(_with_newer_settings(read_json(path)), path))


def first_updates(piece: Unwritten, updates: int) -> Unwritten:
    """The beginning of a piece of work; all of it where it has no more updates."""
    if piece.record["updates"] <= updates:
        return piece
    lines = piece.table.splitlines(keepends=True)[: 1 + updates * piece.record["config"]["seeds"]]
    seconds = piece.record.get("seconds")  # of all updates; which of them took longer is not kept
    part = None if seconds is None else float(f"{seconds * updates / piece.record['updates']:.4g}")
    return Unwritten(piece.name, b"".join(lines), piece.record | {"updates": updates, "seconds": part})


def table_of(record: Path) -> Path:
    """The table that belongs to a record."""
    return record.with_suffix(".csv.gz")


def read_table(path: Path) -> bytes:
    """The text of a table.

    Raises:
        RunError: If it is damaged.
    """
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise RunError(f"{path} is damaged: it is not gzip; restore it from a copy") from None


def _with_newer_settings(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the settings that were added to pcpo after it was written: they were as their defaults are."""
    config = plain.get("config")
    known = {each.name: each.default for each in dataclasses.fields(Config) if each.default is not dataclasses.MISSING}
    return {**plain, "config": {**known, **config}} if isinstance(config, dict) else dict(plain)


def check_disjoint(pieces: Iterable[Piece]) -> None:
    """No seed of a variant may be there twice: a mean over seeds would count it twice.

    Raises:
        RunError: If one is.
    """
    seen: dict[tuple[str, int], Path] = {}
    for piece in pieces:
        for seed in piece.seeds:
            other = seen.setdefault((piece.variant, seed), piece.path)
            if other != piece.path:
                raise RunError(f"seed {seed} of {piece.variant} is in {other} and in {piece.path}; remove one of them")


def same(piece: Piece, config: Config) -> bool:
    """Whether a piece was made with these settings, but for the number of updates."""
    mine, asked = (
        identity(each.replace(seed=0, seeds=1)) + str(sorted(each.limits.items())) for each in (piece.config, config)
    )
    return mine == asked


def series_of(pieces: Sequence[Piece]) -> Series:
    """All seeds of one variant side by side, as far as all of its groups have come.

    Raises:
        RunError: If a table is damaged.
    """
    first, updates = pieces[0], min(piece.updates for piece in pieces)
    parts = [_parts(piece, updates) for piece in pieces]
    names = [name for name in parts[0][0] if all(name in columns for columns, _ in parts)]
    columns = {name: np.concatenate([columns[name] for columns, _ in parts], axis=1) for name in names}
    limits = {name: np.full(updates, limit) for name, limit in first.config.limits.items()}
    for name, limit in first.config.limits.items():
        excess = np.maximum(np.nan_to_num(columns[f"costs.{name}"] - limit), 0.0)
        columns[f"violations.{name}"] = excess
        columns[f"cumulative_violations.{name}"] = np.cumsum(excess, axis=0)
    return Series(
        label=first.variant,
        task=first.config.task,
        algorithm=first.config.algorithm,
        seeds=tuple(seed for piece in pieces for seed in piece.seeds),
        updates=np.arange(updates),
        limits=limits,
        columns=columns,
        statuses=tuple(
            tuple(status for _, statuses in parts for status in statuses[update]) for update in range(updates)
        ),
        settings=first.config.to_json(),
    )


def _parts(piece: Piece, updates: int) -> tuple[dict[str, Table], list[list[str]]]:
    """The columns of a piece, one column per seed, and the statuses of each update."""
    seeds = len(piece.seeds)
    rows = piece.rows[: updates * seeds]
    try:
        columns = {
            name: np.array([float(row[name]) if row[name] else math.nan for row in rows]).reshape(updates, seeds)
            for name in rows[0]
            if name not in {"update", "seed", "status"}
        }
        statuses = [[row["status"] for row in rows[at : at + seeds]] for at in range(0, len(rows), seeds)]
        places = [(int(row["update"]), int(row["seed"])) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{table_of(piece.path)} is damaged; restore it from a copy") from None
    if places != [(update, seed) for update in range(updates) for seed in piece.seeds]:
        raise RunError(f"{table_of(piece.path)} is damaged: its rows are not in order; restore it")
    return columns, statuses


def read_series(directory: Path) -> dict[str, Series]:
    """Every variant in a directory by its name.

    Raises:
        RunError: If a file is damaged.
    """
    pieces = read(directory)
    names = dict.fromkeys(piece.variant for piece in pieces)
    return {name: series_of([piece for piece in pieces if piece.variant == name]) for name in names}
