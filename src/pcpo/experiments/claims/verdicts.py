"""How a verdict follows from numbers. Nothing here knows the paper.

A statement about one number is reproduced where the whole interval is on the side that it claims, not reproduced where
the whole interval is on the other side, and undecided in between. A number without an interval (one seed) decides
nothing. A size that the paper names ("66 times") is reproduced where our interval holds it or lies above it, and all of
it is above 1.

A statement about several tasks is reproduced if it is on each of them, not reproduced if it is not on one.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pcpo.experiments.statistics import Finding


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNDECIDED = "undecided"
    NOT_CHECKABLE = "not checkable"


class Judged(NamedTuple):
    """A verdict and why."""

    verdict: Verdict
    evidence: str


_BETWEEN, _MISSING = "; ", "not run yet: "


class NotRunError(Exception):
    """The data that a claim is about are not there."""


def decided(where: str, finding: Finding, neutral: float = 0.0) -> Judged:
    """Whether a number is larger than a neutral one.

    Example:
        >>> from pcpo.training.statistics import Interval
        >>> decided("here", Finding(2.0, Interval(1.5, 3.0)), 1.0).verdict.value
        'reproduced'
    """
    if finding.interval is None:
        return Judged(Verdict.UNDECIDED, f"{where} {_without_interval(finding)}")
    low, high = finding.interval
    verdict = Verdict.REPRODUCED if low > neutral else Verdict.NOT_REPRODUCED if high < neutral else Verdict.UNDECIDED
    return Judged(verdict, f"{where} {finding}")


def at_most(where: str, finding: Finding, bound: float) -> Judged:
    """Whether a number is at most a bound."""
    said = f"{where} {finding}, at most {bound:.3g} is asked"
    if finding.interval is None:
        return Judged(Verdict.UNDECIDED, f"{said}; no interval")
    low, high = finding.interval
    if high <= bound:
        return Judged(Verdict.REPRODUCED, said)
    return Judged(Verdict.NOT_REPRODUCED if low > bound else Verdict.UNDECIDED, said)


def as_large_as(where: str, finding: Finding, claimed: float) -> Judged:
    """Whether a ratio is as large as one that the paper names.

    Reproduced where our interval holds it or lies above it, and is above 1; not reproduced where it lies below it. An
    interval so wide that it holds both the claim and 1, no effect at all, decides nothing.
    """
    said = f"{where} {finding}, claimed {claimed:.3g}"
    if finding.interval is None:
        return Judged(Verdict.UNDECIDED, f"{where} {_without_interval(finding)}, claimed {claimed:.3g}")
    low, high = finding.interval
    if high < claimed:
        return Judged(Verdict.NOT_REPRODUCED, said)
    return Judged(Verdict.REPRODUCED if low > 1.0 else Verdict.UNDECIDED, said)


def different(where: str, finding: Finding) -> Judged:
    """Whether a difference is not zero. That it is zero cannot be shown: where its interval holds zero, it is open."""
    if finding.interval is None:
        return Judged(Verdict.UNDECIDED, f"{where} {_without_interval(finding)}")
    low, high = finding.interval
    return Judged(Verdict.REPRODUCED if low > 0.0 or high < 0.0 else Verdict.UNDECIDED, f"{where} {finding}")


def is_missing(part: Judged) -> bool:
    """Whether a part only says that data are not there."""
    return part.evidence.startswith(_MISSING)


def all_of(parts: Iterable[Judged]) -> Judged:
    """A statement that holds if all of its parts do, and does not if one does not."""
    return _joined(list(parts), one=Verdict.NOT_REPRODUCED, every=Verdict.REPRODUCED)


def any_of(parts: Iterable[Judged]) -> Judged:
    """A statement that holds if one of its parts does, and does not if none does."""
    return _joined(list(parts), one=Verdict.REPRODUCED, every=Verdict.NOT_REPRODUCED)


def _joined(parts: list[Judged], one: Verdict, every: Verdict) -> Judged:
    """The one verdict as soon as one part has it, the other if every part has that."""
    verdicts = {part.verdict for part in parts}
    decided = one if one in verdicts else every if verdicts == {every} else Verdict.UNDECIDED
    return Judged(decided, _told(parts))


def agreed(parts: Iterable[Judged]) -> Judged:
    """One statement measured in several ways: decided where all of them say the same."""
    parts = list(parts)
    verdicts = {part.verdict for part in parts}
    return Judged(verdicts.pop() if len(verdicts) == 1 else Verdict.UNDECIDED, ", ".join(p.evidence for p in parts))


def alike(parts: Iterable[Judged]) -> Judged:
    """One statement about several rules that go by one name: decided where it is so, or is not so, for all of them."""
    parts = list(parts)
    verdicts = {part.verdict for part in parts}
    return Judged(verdicts.pop() if len(verdicts) == 1 else Verdict.UNDECIDED, _told(parts))


def opposite(part: Judged) -> Judged:
    """The statement that something is not so."""
    swapped = {
        Verdict.REPRODUCED: Verdict.NOT_REPRODUCED,
        Verdict.NOT_REPRODUCED: Verdict.REPRODUCED,
    }
    return Judged(swapped.get(part.verdict, part.verdict), part.evidence)


def where_run(parts: Sequence[Callable[[], Judged]]) -> list[Judged]:
    """Each part, undecided where its data are missing; those that were not run are told together, at the end."""
    done: list[Judged] = []
    missing: list[str] = []
    for part in parts:
        try:
            done.append(part())
        except NotRunError as error:
            missing += [str(error)] if str(error) not in missing else []
    if missing:
        done.append(Judged(Verdict.UNDECIDED, _MISSING + ", ".join(missing)))
    return done


def _told(parts: Sequence[Judged]) -> str:
    """All that was said, each thing once, and what is missing in the end."""
    said = list(dict.fromkeys(one for part in parts for one in part.evidence.split(_BETWEEN)))
    missing = [name for one in said if one.startswith(_MISSING) for name in one[len(_MISSING) :].split(", ")]
    said = [one for one in said if not one.startswith(_MISSING)]
    return _BETWEEN.join(said + ([_MISSING + ", ".join(dict.fromkeys(missing))] if missing else []))


def _without_interval(finding: Finding) -> str:
    if math.isnan(finding.value):
        return "has no answer (no common improvement, nothing violated, or not a number)"
    return f"{finding.value:.3g} without an interval"
