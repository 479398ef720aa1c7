"""What an experiment is, and which pieces of work it consists of. Nothing here needs jax or numpy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pcpo.training.config import Config


class Scale(NamedTuple):
    """How much of an experiment is run."""

    seeds: int
    """Seeds 0, 1, ... of each variant."""
    group: int
    """Seeds that are trained side by side: fixed, since in float32 they are part of what is computed."""
    updates: int


@dataclass(frozen=True)
class Variant:
    """One line of a figure: a task and the settings that differ from the paper's for it."""

    name: str
    """Names files, so letters, digits, dots and dashes."""
    task: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of `pcpo.training.config.Config`."""
    task_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limit: float | None = None
    """In place of the paper's, for all costs."""
    label: str = ""
    """For people; that of its update rule by default."""

    def __post_init__(self) -> None:
        """Makes what was given unchangeable."""
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "task_options", MappingProxyType(dict(self.task_options)))

    @property
    def algorithm(self) -> str:
        """The update rule."""
        return self.settings.get("algorithm", "pcpo-kl")

    def config(self, seeds: Sequence[int], updates: int, batch_size: int | None = None) -> "Config":
        """The settings of a run of this variant.

        Args:
            seeds: Some that follow one another.
            updates: How many.
            batch_size: Steps per update where it is to be another than the variant's, for a try.

        Raises:
            ValueError: If a value is not allowed.
        """
        from pcpo.training.config import config_for

        settings: dict[str, Any] = dict(self.settings) | ({} if batch_size is None else {"batch_size": batch_size})
        config = config_for(
            self.task, task_options=self.task_options, seed=seeds[0], seeds=len(seeds), updates=updates, **settings
        )
        return config if self.limit is None else config.with_limits(dict.fromkeys(config.limits, self.limit))


@dataclass(frozen=True)
class Experiment:
    """A named list of variants, and the scale at which its results were, or should be, made."""

    name: str
    summary: str
    """One line for people."""
    place: str
    """Where in the paper: a label of its source, or "ours"."""
    variants: tuple[Variant, ...]
    scale: Scale

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order in which they first occur."""
        return tuple(dict.fromkeys(variant.task for variant in self.variants))

    def variant(self, name: str) -> Variant:
        """The variant of that name.

        Raises:
            KeyError: If there is none.
        """
        return {each.name: each for each in self.variants}[name]


class Unit(NamedTuple):
    """One piece of work: a variant with one group of seeds."""

    experiment: str
    variant: Variant
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.variant.name}.{seeds_named(self.seeds)}"


class Share(NamedTuple):
    """The part of the work that one of several machines does: every ``of``-th unit, from number ``this`` on."""

    this: int = 1
    of: int = 1


ALL = Share()
"""One machine does everything."""


def seeds_named(seeds: Sequence[int]) -> str:
    """Seeds that follow one another, as they stand in names of files.

    Example:
        >>> seeds_named([0, 1, 2]), seeds_named([7])
        ('seeds-0-2', 'seed-7')
    """
    return f"seed-{seeds[0]}" if len(seeds) == 1 else f"seeds-{seeds[0]}-{seeds[-1]}"


def seeds_in(name: str) -> tuple[int, ...]:
    """The seeds in the name of a piece of work; none in another name.

    Example:
        >>> seeds_in("pcpo-kl.seeds-0-2"), seeds_in("fpo-0.1.seed-7"), seeds_in("notes")
        ((0, 1, 2), (7,), ())
    """
    found = re.fullmatch(r".*\.seeds?-(\d+)(?:-(\d+))?", name)
    return tuple(range(int(found[1]), int(found[2] or found[1]) + 1)) if found else ()


def groups(seeds: int, size: int) -> list[tuple[int, ...]]:
    """The seeds 0, 1, ... in groups that never change; only the last one may be smaller.

    Example:
        >>> groups(5, 2)
        [(0, 1), (2, 3), (4,)]
    """
    return [tuple(range(first, min(first + size, seeds))) for first in range(0, seeds, size)]


def units(experiment: Experiment, seeds: int, share: Share = ALL, only: Sequence[str] = ()) -> list[Unit]:
    """The pieces of work, all variants of the first group first, so that whoever stops early has all of them.

    Args:
        experiment: Which.
        seeds: How many.
        share: Of the pieces, which ones.
        only: Names of variants; all where none is given.
    """
    wanted = [variant for variant in experiment.variants if not only or variant.name in only]
    everything = [
        Unit(experiment.name, variant, group) for group in groups(seeds, experiment.scale.group) for variant in wanted
    ]
    return everything[share.this - 1 :: share.of]
