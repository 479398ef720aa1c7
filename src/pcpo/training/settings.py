"""What may be said about one setting, in one place: its meaning, its safe range, what is allowed, what to try.

The same words serve the configuration (`ValueError`), the command line (``--help``, and one line for a mistake) and
the documentation. Nothing here imports jax.
"""

import dataclasses
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Setting:
    """One setting of a configuration."""

    kind: type
    """int, float, bool or str."""
    help: str
    """What it does, in one sentence or two."""
    advice: str
    """What to try when a value is wrong; ends an error message."""
    safe: str = ""
    """The range in which nothing surprising is to be expected."""
    low: float | int = -math.inf
    high: float | int = math.inf
    """Both ends are allowed."""
    choices: tuple[str, ...] = ()
    many: bool = False
    """Several values, one at least."""

    def checked(self, label: str, value: Any) -> Any:
        """The value in its own type.

        Args:
            label: What the user calls the setting: ``delta``, or ``--delta``.
            value: A number, a word, or (where many are allowed) a sequence.

        Raises:
            ValueError: The value is not allowed. One line: what was given, why it is wrong, what to try.
        """
        if not self.many:
            return self._one(label, value)
        values = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
        if not values:
            raise ValueError(f"{label} is {value!r}, which is no list of {self._noun()}s; {self.advice}")
        return tuple(self._one(label, each) for each in values)

    def read(self, label: str, texts: Sequence[str]) -> Any:
        """The value that these words on a command line stand for, checked like any other."""
        values = [self._number(label, text) for text in texts]
        return self.checked(label, values if self.many else values[0])

    def described(self) -> str:
        """The help with the ranges."""
        ranges = [f"Safe: {self.safe}."] if self.safe else []
        if self.choices:
            ranges.append(f"One of {', '.join(self.choices)}.")
        elif self.kind in {int, float}:
            ranges.append(f"Allowed: {self._allowed()}.")
        return " ".join([self.help, *ranges])

    def _number(self, label: str, text: str) -> Any:
        if self.kind in {str, bool}:
            return text
        try:
            return self.kind(text)
        except ValueError:
            raise ValueError(f"{label} is {text!r}, which is not {self._article()}; {self.advice}") from None

    def _one(self, label: str, value: Any) -> Any:
        if self.kind is bool or self.kind is str:
            return self._word(label, value)
        number = _as_number(self.kind, value)
        if number is None:
            raise ValueError(f"{label} is {value!r}, which is not {self._article()}; {self.advice}")
        if not self.low <= number <= self.high:  # also refuses NaN
            shown = str(number) if self.kind is int else f"{number:g}"
            raise ValueError(f"{label} is {shown}, but must be {self._allowed()}; {self.advice}")
        return number

    def _word(self, label: str, value: Any) -> Any:
        if not isinstance(value, self.kind):
            noun = "True or False" if self.kind is bool else "a word"
            raise ValueError(f"{label} is {value!r}, but must be {noun}; {self.advice}")
        if self.choices and value not in self.choices:
            raise ValueError(f"{label} is {value!r}, but must be one of {', '.join(self.choices)}; {self.advice}")
        return value

    def _allowed(self) -> str:
        if self.high == math.inf:
            return f"{self.low:g} or more"
        show = str if self.kind is int else "{:g}".format
        return f"between {show(self.low)} and {show(self.high)}"

    def _noun(self) -> str:
        return "whole number" if self.kind is int else "number"

    def _article(self) -> str:
        return f"a {self._noun()}"


def setting(default: Any, kind: type, text: str, *, advice: str = "", **rest: Any) -> Any:
    """A field of a dataclass with its `Setting`; without an advice, the default is what to try."""
    shown = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
    found = Setting(kind, text, advice or f"try {shown}", **rest)
    return dataclasses.field(default=default, metadata={"setting": found})


def settings_of(kind: Any) -> dict[str, Setting]:
    """The settings of a dataclass, by the names of its fields."""
    return {f.name: f.metadata["setting"] for f in dataclasses.fields(kind) if "setting" in f.metadata}


def _as_number(kind: type, value: Any) -> Any:
    """The value as an int or a float, None if it is none. Numbers of numpy count, truth values do not."""
    truth = isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"
    if truth or isinstance(value, str) or getattr(value, "ndim", 0) or not hasattr(value, "__float__"):
        return None
    try:
        return operator.index(value) if kind is int else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
