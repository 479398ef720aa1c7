"""Running an experiment: piece by piece, each one a run that can be stopped and gone on with.

A directory of an experiment holds ``runs/`` with a run for each piece of work, as `pcpo train` makes them, and beside
it the compact results of each, which are written anew whenever a run has come further.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pcpo.experiments.suite import results
from pcpo.experiments.suite.plan import ALL, Experiment, Share, Unit, seeds_in, seeds_named, units
from pcpo.training import loop
from pcpo.training.files import RunError, read_json
from pcpo.training.progress import Display, Silent
from pcpo.training.run import CONFIG, Run, identity

_log = logging.getLogger(__name__)

RUNS = "runs"


@dataclass(frozen=True)
class Budget:
    """How much of an experiment is run now; what is not given is as the experiment's scale says."""

    seeds: int | None = None
    updates: int | None = None
    hours: float | None = None
    """Of the clock, after which the run in progress is saved and nothing more is begun."""
    batch_size: int | None = None
    """Another batch, for a try: its results are of another experiment, and are never judged."""
    share: Share = ALL
    only: tuple[str, ...] = ()
    """Names of variants; all where none is given."""


class Ran(NamedTuple):
    """What became of an experiment this time."""

    pieces: int
    """Pieces of work that were asked for."""
    complete: int
    """How many of them are done."""
    stopped_by: str | None = None
    """Why it ended before all were: ``"the hours are over"``, or as `pcpo.training.loop.Ended` says."""


def run(
    experiment: Experiment,
    directory: Path,
    budget: Budget = Budget(),
    display: Callable[[], Display] = Silent,
) -> Ran:
    """Runs what is not done yet.

    Args:
        experiment: Which.
        directory: Where runs and results go.
        budget: How much.
        display: Makes what shows the progress of one run.

    Raises:
        ValueError: If that cannot be done as asked.
        WorldError: If an environment cannot go on; what came before is saved.
        OSError: If the file system refuses.
    """
    seeds, updates = budget.seeds or experiment.scale.seeds, budget.updates or experiment.scale.updates
    deadline = None if budget.hours is None else time.monotonic() + 3600.0 * budget.hours
    todo = units(experiment, seeds, budget.share, budget.only)
    _check_groups(todo, experiment.scale.group, directory)
    complete = 0
    for number, unit in enumerate(todo, 1):
        if _has(directory, unit, updates, budget.batch_size):
            complete += 1
            continue
        if deadline is not None and time.monotonic() >= deadline:
            return Ran(len(todo), complete, "the hours are over")
        _log.info("%s of %s: %s, %s updates", number, len(todo), unit.name, updates)
        ended = _run_unit(unit, directory, updates, budget.batch_size, _manner(display(), deadline))
        if ended.updates > _updates_of(directory, unit):
            results.write(directory, results.compact(Run.open(ended.directory), unit.variant.name))
        if ended.stopped_by is not None:
            late = ended.stopped_by == "the callback"
            return Ran(len(todo), complete, "the hours are over" if late else ended.stopped_by)
        complete += 1
    results.read(directory)  # pieces that share a seed are found now rather than when they are judged
    return Ran(len(todo), complete)


def _has(directory: Path, unit: Unit, updates: int, batch_size: int | None) -> bool:
    """Whether the results of a piece of work are there already.

    Raises:
        RunError: If there are results of that name with other settings.
    """
    path = directory / f"{unit.name}.json"
    if not path.is_file():
        return False
    piece = results.read_piece(path)
    if not results.same(piece, unit.variant.config(unit.seeds, updates, batch_size)):
        raise RunError(f"{path} was made with other settings; give another directory with --out")
    return piece.updates >= updates


def _updates_of(directory: Path, unit: Unit) -> int:
    """How far the results have come that are there: those of a run begun anew must not replace longer ones."""
    path = directory / f"{unit.name}.json"
    return results.read_piece(path).updates if path.is_file() else 0


def _check_groups(todo: Sequence[Unit], size: int, directory: Path) -> None:
    """Seeds that are there already as part of another group would count twice, or the training would be lost.

    Raises:
        RunError: If some are, before anything is trained.
    """
    there = [(piece.variant, piece.seeds) for piece in results.read(directory)]
    runs = [path.parent.name for path in (directory / RUNS).glob(f"*/{CONFIG}")]
    for unit in todo:
        names = {f"{unit.variant.name}.{seeds_named(seeds)}" for name, seeds in there if name == unit.variant.name}
        begun = {name for name in runs if name.startswith(f"{unit.variant.name}.seed")}
        for name in sorted(names | begun):
            if name != unit.name and set(seeds_in(name)) & set(unit.seeds):
                raise RunError(
                    f"{directory} has {name}, but {unit.name} is asked for: seeds are trained in groups of {size}, and "
                    "the group is part of what is computed; ask for as many seeds as were made, or give another "
                    "directory with --out"
                )


def _run_unit(unit: Unit, directory: Path, updates: int, batch_size: int | None, manner: loop.Manner) -> loop.Ended:
    """Begins a run, or goes on with it."""
    where = directory / RUNS / unit.name
    config = unit.variant.config(unit.seeds, updates, batch_size)
    if not (where / CONFIG).is_file():
        where.mkdir(parents=True, exist_ok=True)
        return loop.train(config, where, manner)
    found = Run.open(where)
    if identity(found.config) != identity(config) or found.config.limits != config.limits:
        raise RunError(f"{where} was begun with other settings; give another directory with --out")
    if found.updates >= updates:
        return loop.Ended(where, found.updates, updates, None, ())
    return loop.resume(where, manner, updates=updates)


def _manner(display: Display, deadline: float | None) -> loop.Manner:
    """Ends a run at the deadline, if there is one. Looking at the clock after every update changes no number."""

    def on_time(row: Any) -> bool:
        del row
        return deadline is None or time.monotonic() < deadline

    return loop.Manner(display, None if deadline is None else on_time)


# Results from elsewhere.


def merge(experiment: Experiment, sources: Sequence[Path], directory: Path, updates: int | None = None) -> list[str]:
    """Puts results of other directories among those of an experiment. What is of another experiment is left out.

    Args:
        experiment: Which.
        sources: Directories with results, or with runs of `pcpo train`, at any depth.
        directory: Where the results of all go; what is there already stays, unless a source has come further.
        updates: How many are taken of each piece, at most; all of them by default.

    Returns:
        The names of the pieces that were written.

    Raises:
        RunError: If nothing fits, a file is damaged, two sources disagree, or a seed would be there twice.
    """
    chosen = {piece.path.stem: (piece.updates, _as_written(piece)) for piece in results.read(directory)}
    there = {name: count for name, (count, _) in chosen.items()}
    found = 0
    for source in sources:
        if not source.is_dir():
            raise RunError(f"{source} is no directory; give one with results or with runs")
        for offered in _offers(experiment, source):
            found += 1
            piece = offered if updates is None else results.first_updates(offered, updates)
            count, before = piece.record["updates"], chosen.get(piece.name)
            if before is not None and before[0] == count and before[1].table != piece.table:
                raise RunError(f"{piece.name} in {source} differs from what another source has; merge only one of them")
            if before is None or before[0] < count:
                chosen[piece.name] = count, piece
    if not found:
        where = ", ".join(map(str, sources))
        raise RunError(f"there is nothing of {experiment.name} in {where}; its settings must be those of its variants")
    _check_seeds({name: piece for name, (_, piece) in chosen.items()})
    new = [name for name, (count, _) in chosen.items() if there.get(name) != count]
    for name in new:
        results.write(directory, chosen[name][1])
    return new


def _offers(experiment: Experiment, source: Path) -> list[results.Unwritten]:
    """What a source has of an experiment, by its settings and not by its name."""
    found: list[results.Unwritten] = []
    for path in sorted(source.rglob("*.seed*-*.json")):
        piece = results.read_piece(path)
        found += [
            _as_written(piece, variant.name)
            for variant in experiment.variants
            if results.same(piece, variant.config(piece.seeds, 1))
        ]
    for path in sorted(source.rglob(CONFIG)):
        if not (path.parent / "metrics.jsonl").is_file():
            continue  # no run
        run = results.open_run(path.parent)
        if run.updates <= _compact_beside(path.parent):
            continue  # its results are among those above
        for variant in experiment.variants:
            config = variant.config(run.seeds, run.config.updates)
            if identity(run.config) == identity(config) and run.config.limits == config.limits and run.updates:
                found.append(results.compact(run, variant.name))
    return found


def _compact_beside(run: Path) -> int:
    """Updates of the compact results that were written of a run in ``runs/``; 0 where there are none."""
    record = run.parent.parent / f"{run.name}.json"
    return results.read_piece(record).updates if run.parent.name == RUNS and record.is_file() else 0


def _as_written(piece: results.Piece, variant: str | None = None) -> results.Unwritten:
    """A piece as it stands in its files, under the name of another variant where one is given."""
    name = variant or piece.variant
    record, table = read_json(piece.path) | {"variant": name}, results.read_table(results.table_of(piece.path))
    return results.Unwritten(f"{name}.{seeds_named(piece.seeds)}", table, record)  # whatever its file is called


def _check_seeds(pieces: dict[str, results.Unwritten]) -> None:
    """No seed may be there twice."""
    seen: dict[tuple[str, int], str] = {}
    for name, piece in pieces.items():
        config = piece.record["config"]
        for seed in range(config["seed"], config["seed"] + config["seeds"]):
            other = seen.setdefault((piece.record["variant"], seed), name)
            if other != name:
                raise RunError(f"seed {seed} would be there twice, in {other} and in {name}; merge only one of them")
