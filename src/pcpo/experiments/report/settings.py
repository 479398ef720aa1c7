"""What runs were configured with and ran on: what differs between them, and what they share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pcpo.experiments.report.gather import Subject

MISSING = "\N{EM DASH}"
"""Of a setting that a run does not have."""


class Settings(NamedTuple):
    """All settings of some runs, each exactly once."""

    different: dict[str, list[str]]
    """By name, one value for each run."""
    shared: dict[str, str]


def configuration(subjects: Sequence[Subject]) -> Settings:
    """The settings of the runs, with all later changes."""
    return compared([dict(_flat(subject.record.config.to_json())) for subject in subjects])


def environment(subjects: Sequence[Subject]) -> Settings:
    """Versions, and the machine."""
    return compared([{name: str(value) for name, value in each.record.versions.items()} for each in subjects])


def changes(subject: Subject) -> Iterator[str]:
    """What was changed while a run was trained, oldest first."""
    for change in subject.record.changes:
        limits = [f"the limit of {name} became {limit:g}" for name, limit in change["limits"].items()]
        limits.append(f"{change['updates']:,} updates were wanted")
        yield f"from update {change['from_update']:,} on, {' and '.join(limits)}"


def compared(each: Sequence[Mapping[str, str]]) -> Settings:
    """Which of some settings differ.

    Example:
        >>> compared([{"delta": "0.01", "seed": "0"}, {"delta": "0.1", "seed": "0"}])
        Settings(different={'delta': ['0.01', '0.1']}, shared={'seed': '0'})
    """
    names = list(dict.fromkeys(name for settings in each for name in settings))
    values = {name: [settings.get(name, MISSING) for settings in each] for name in names}
    different = {name: of_runs for name, of_runs in values.items() if len(set(of_runs)) > 1}
    return Settings(different, {name: values[name][0] for name in names if name not in different})


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings by dotted names, constraints by the names of their costs, as texts."""
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if key == "constraints" and isinstance(value, list):
            for constraint in value:
                rest = {part: number for part, number in constraint.items() if part != "name"}
                yield from _flat(rest, f"{constraint['name']}: ")
        elif isinstance(value, Mapping) and value:
            yield from _flat(value, f"{name}.")
        else:
            yield name, _said(key, value)


def _said(key: str, value: Any) -> str:
    if key == "max_kl" and value is None:
        return "inf"
    if isinstance(value, Mapping | list | tuple) and not value:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
