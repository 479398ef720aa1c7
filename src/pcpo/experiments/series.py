"""The metrics of a run as arrays, one row per update and one column per seed, whatever is missing not-a-number."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from pcpo.training.files import RunError
from pcpo.training.run import METRICS, Run

Table: TypeAlias = Float[np.ndarray, "n seeds"]

PRETTY = {
    "pcpo-kl": "PCPO (KL)",
    "pcpo-l2": "PCPO (L2)",
    "pcpo-adaptive": "PCPO (adaptive)",
    "cpo": "CPO",
    "pdo": "PDO",
    "fpo": "FPO",
    "trpo": "TRPO",
    "pcpo-kl-flipped": "PCPO (KL, flipped sign)",
    "pcpo-l2-flipped": "PCPO (L2, flipped sign)",
}
"""The update rules by the names they have in figures."""


@dataclass(frozen=True)
class Series:
    """What one run measured."""

    label: str
    """What the user calls the run: its directory."""
    task: str
    algorithm: str
    seeds: tuple[int, ...]
    updates: Int[np.ndarray, " n"]
    """The updates there are rows of, rising."""
    limits: Mapping[str, Float[np.ndarray, " n"]]
    """The limit of each cost as it was at each update."""
    columns: Mapping[str, Table]
    """Numbers by name; those of each constraint as ``costs.NAME``."""
    statuses: tuple[tuple[str, ...], ...] = ()
    """What each update of each seed was called; empty where it has no name."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Whatever else the configuration says."""

    @property
    def algorithm_name(self) -> str:
        """The algorithm as people write it."""
        return PRETTY.get(self.algorithm, self.algorithm)

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The costs, in the order of the task."""
        return tuple(self.limits)

    @property
    def task_name(self) -> str:
        """The task with those of its options that are not the defaults."""
        options: Mapping[str, Any] = self.settings.get("task_options") or {}
        said = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"{self.task} ({said})" if said else self.task

    def column(self, name: str) -> Table:
        """One number per update and seed; not-a-number where it was never written."""
        empty = np.full((len(self.updates), len(self.seeds)), math.nan)
        return self.columns.get(name, empty)

    @property
    def refused(self) -> Table:
        """1 where an update was not made because something in it was not a number."""
        return np.array([[float(status == "nonfinite") for status in of_seeds] for of_seeds in self.statuses]).reshape(
            len(self.updates), len(self.seeds)
        )


def read_series(run: Run, label: str | None = None) -> Series:
    """The rows of a run as arrays.

    Args:
        run: The run; it may still be training.
        label: What the user calls it; the name of its directory by default.

    Raises:
        RunError: If it has no rows yet, or damaged ones.
    """
    if not run.rows:
        raise RunError(f"{run.directory} has no measurements yet; wait for its first update")
    try:
        return _series(run, label or run.directory.resolve().name)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise RunError(
            f"{run.directory / METRICS} is damaged: its rows are not what pcpo wrote; restore it from a copy"
        ) from None


def _series(run: Run, label: str) -> Series:
    updates = np.array(sorted({int(row["update"]) for row in run.rows}), dtype=np.int64)
    seeds = tuple(sorted({int(row["seed"]) for row in run.rows}))
    places = {int(update): place for place, update in enumerate(updates)}
    columns_of = {seed: place for place, seed in enumerate(seeds)}
    shape = (len(updates), len(seeds))
    columns: dict[str, Table] = {}
    statuses = np.full(shape, "", dtype=object)
    names = run.config.cost_names
    limits = np.full((len(updates), len(names)), math.nan)
    for row in run.rows:
        at = places[int(row["update"])], columns_of[int(row["seed"])]
        for name, number in _numbers(row, names):
            if name not in columns:
                columns[name] = np.full(shape, math.nan)
            columns[name][at] = number
        statuses[at] = str(row["status"])
        limits[at[0]] = [float(row["limits"][name]) for name in names]
    return Series(
        label=label,
        task=run.config.task,
        algorithm=run.config.algorithm,
        seeds=seeds,
        updates=updates,
        limits=dict(zip(names, limits.T, strict=True)),
        columns=columns,
        statuses=tuple(tuple(str(status) for status in of_seeds) for of_seeds in statuses),
        settings=run.config.to_json(),
    )


def _numbers(row: Mapping[str, Any], costs: tuple[str, ...], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in a row by dotted names; lists are about the reward, then each cost. Words and null are left out."""
    for key, value in row.items():
        nested = dict(zip(("reward", *costs), value, strict=False)) if isinstance(value, list) else value
        if isinstance(nested, Mapping):
            yield from _numbers(nested, costs, f"{prefix}{key}.")
        elif isinstance(value, int | float):
            yield f"{prefix}{key}", float(value)
