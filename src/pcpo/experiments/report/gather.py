"""From the directories that somebody names to the runs in them, and the reasons why others cannot be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pcpo.experiments.series import Series, read_series
from pcpo.training.files import RunError
from pcpo.training.run import CHECKPOINTS, CONFIG, METRICS, Record, Run


@dataclass(frozen=True)
class Subject:
    """A run that can be shown."""

    series: Series
    record: Record

    @property
    def unfinished(self) -> str | None:
        """What there is of it, where that is not all that was asked for."""
        there, wanted = len(self.series.updates), self.record.config.updates
        return None if there >= wanted else f"{there:,} of {wanted:,} updates; it was stopped, or is still training"


class Left(NamedTuple):
    """A directory that cannot be shown."""

    label: str
    reason: str
    place: Path

    @property
    def said(self) -> str:
        """The reason, with no more of the path in it than the label."""
        return self.reason.replace(str(self.place), self.label)


def gather(directories: Sequence[Path]) -> tuple[list[Subject], list[Left]]:
    """The runs in these directories, in this order; of a directory that is no run, all runs below it by name.

    Nothing is dropped without a word: what is damaged, empty or no run is in the second list.
    """
    places = _places(directories)
    found: list[Subject] = []
    left: list[Left] = []
    for place, label in zip(places, labels(places), strict=True):
        try:
            run = Run.open(place)
            found.append(Subject(read_series(run, label), run.record))
        except RunError as error:
            left.append(Left(label, str(error), place))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            left.append(Left(label, f"{error.filename} cannot be read ({why}); check its permissions", place))
    return found, left


def labels(places: Sequence[Path]) -> list[str]:
    """The shortest ends of paths that tell them apart: no more of a machine than is needed.

    Example:
        >>> labels([Path("/a/x/kl"), Path("/a/y/kl"), Path("/a/cpo")])
        ['x/kl', 'y/kl', 'cpo']
    """
    parts = [place.resolve().parts for place in places]

    def end(mine: tuple[str, ...]) -> str:
        lengths = range(1, len(mine) + 1)
        alone = (n for n in lengths if sum(other[-n:] == mine[-n:] for other in parts) == 1)
        return "/".join(mine[-next(alone, len(mine)) :])

    return [end(mine) for mine in parts]


def _places(directories: Sequence[Path]) -> list[Path]:
    """Each run once, however many of the given directories hold it."""
    places = [place for given in directories for place in _below(given)]
    return list({place.resolve(): place for place in reversed(places)}.values())[::-1]


def _below(directory: Path) -> list[Path]:
    if any((directory / name).exists() for name in (CONFIG, METRICS, CHECKPOINTS)):
        return [directory]
    inner = sorted(path.parent for path in directory.rglob(CONFIG)) if directory.is_dir() else []
    return inner or [directory]
