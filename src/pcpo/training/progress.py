"""What a person sees while a run goes on: a bar on a terminal, lines of text elsewhere."""

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from pcpo.training.config import Config

SECONDS_BETWEEN_LINES = 10.0
"""At most one line in this time where there is no terminal."""


@runtime_checkable
class Stream(Protocol):
    """Where text goes: a file, a terminal."""

    def write(self, text: str, /) -> Any:
        """Takes some text."""
        ...

    def flush(self) -> Any:
        """Passes it on."""
        ...


@runtime_checkable
class Display(Protocol):
    """Shows how a run goes on. A context: it begins with the first line and leaves the terminal in order."""

    def __enter__(self) -> "Display":
        """Begins."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends, whatever happened."""
        ...

    def start(self, config: Config, done: int) -> None:
        """Says what will be trained, and that it is being compiled."""
        ...

    def show(self, rows: Sequence[dict[str, Any]]) -> None:
        """Takes the rows of one or more updates."""
        ...

    def say(self, text: str) -> None:
        """Shows a line that stays."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> "Silent":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def start(self, config: Config, done: int) -> None:
        """Nothing."""

    def show(self, rows: Sequence[dict[str, Any]]) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


class Lines:
    """One line now and then, for a log file."""

    def __init__(self, stream: Stream, between: float = SECONDS_BETWEEN_LINES) -> None:
        self._stream, self._between = stream, between
        self._pace: Pace | None = None
        self._last = -float("inf")
        self._total = 0

    def __enter__(self) -> "Lines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def start(self, config: Config, done: int) -> None:
        """One line about what comes."""
        self._pace, self._total = Pace(config.updates), config.updates
        self.say(f"{title(config)}: compiling" + (f", going on after update {done}" if done else ""))

    def show(self, rows: Sequence[dict[str, Any]]) -> None:
        """A line for the newest update, unless there was one a moment ago."""
        assert self._pace is not None
        self._pace.see(rows)
        now, last = time.monotonic(), rows[-1]["update"] + 1
        if now - self._last >= self._between or last == self._total:
            self._last = now
            self.say(f"update {last}/{self._total}  {numbers(rows)}{self._pace.described()}")

    def say(self, text: str) -> None:
        """A line."""
        print(text, file=self._stream, flush=True)


class Bar:
    """A progress bar, with lines above it for what stays."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = [
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}", markup=False),
        ]
        self._progress = Progress(*columns, console=Console(stderr=True), expand=True, refresh_per_second=4)
        self._task = self._progress.add_task("starting", total=None, numbers="")
        self._pace: Pace | None = None
        self._total = 0

    def __enter__(self) -> "Bar":
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def start(self, config: Config, done: int) -> None:
        """The bar begins; until the first update it says that it is compiling."""
        self._pace, self._total = Pace(config.updates), config.updates
        self.say(title(config))
        self._progress.update(self._task, description=f"{done}/{self._total}", numbers="compiling")

    def show(self, rows: Sequence[dict[str, Any]]) -> None:
        """The bar moves on."""
        assert self._pace is not None
        self._pace.see(rows)
        done = rows[-1]["update"] + 1
        self._progress.update(
            self._task,
            total=self._total,
            completed=done,
            description=f"{done}/{self._total}",
            numbers=f"{numbers(rows)}{self._pace.described()}",
        )

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)


class Pace:
    """Steps per second, and how long it will take."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._steps: int | None = None
        self._described = ""

    def see(self, rows: Sequence[dict[str, Any]]) -> None:
        """Takes the rows since the last time; the first ones, which waited for the compiler, give no pace."""
        done = rows[-1]["update"] + 1
        steps = sum(row["env_steps"] for row in rows if row["update"] == rows[-1]["update"])
        took = {row["update"]: row["seconds"] for row in rows}
        if self._steps is not None:
            seconds = max(sum(took.values()), 1e-9)
            left = (self._total - done) * seconds / len(took)
            self._described = f"  {short((steps - self._steps) / seconds)} steps/s  {clock(left)} left"
        self._steps = steps

    def described(self) -> str:
        """For example ``  412k steps/s  1:05 left``; nothing before there is a pace."""
        return self._described


def display_for(stream: Stream | None = None) -> Display:
    """A bar where there is a terminal to draw it on, lines elsewhere."""
    if stream is None:
        return Bar() if sys.stderr.isatty() else Lines(sys.stderr)
    return Lines(stream)


def title(config: Config) -> str:
    """What is trained, in one line."""
    limits = ", ".join(f"{name} <= {limit:g}" for name, limit in config.limits.items())
    seeds = f"seed {config.seed}" if config.seeds == 1 else f"seeds {config.seed} to {config.seed + config.seeds - 1}"
    return f"{config.task} with {config.algorithm}, {limits or 'no costs'}, {seeds}"


def numbers(rows: Sequence[dict[str, Any]]) -> str:
    """Reward, costs against their limits and violations so far, as means over the seeds of the newest update."""
    newest = [row for row in rows if row["update"] == rows[-1]["update"]]
    parts = [f"reward {_mean(row['discounted_return'] for row in newest)}"]
    for name, limit in newest[0]["limits"].items():
        cost = _mean(row["costs"][name] for row in newest)
        so_far = _mean(row["cumulative_violations"][name] for row in newest)
        parts.append(f"{name} {cost} of {limit:g} (violations so far {so_far})")
    return "  ".join(parts)


def short(number: float) -> str:
    """For example 950, 1.3k, 41M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def clock(seconds: float) -> str:
    """For example 0:07 or 2:13:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _mean(values: Any) -> str:
    """The mean of those that are numbers."""
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.3g}" if known else "not finite"
