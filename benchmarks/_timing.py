"""Interleaved, paired timing: what can be said about speed on a machine that others use at the same time.

All contenders of a race run once in every round, in a new random order, so that a slow second hits all of them alike.
They are compared within rounds: the ratio of two contenders is the median over rounds of the ratio of their times,
and its spread the quartiles. Beside the time on the clock stands the time that the cores spent on the contender, which
hardly depends on who else is waiting for them. Compilation is timed apart, once.
"""

import argparse
import inspect
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np


class Contender(NamedTuple):
    """A compiled program with its arguments."""

    name: str
    call: Callable[[], Any]
    trace_seconds: float
    """From Python to StableHLO."""
    compile_seconds: float
    """From StableHLO to a program."""


class Spread(NamedTuple):
    """A median with its quartiles."""

    low: float
    median: float
    high: float

    def show(self, factor: float = 1.0, digits: int = 3) -> str:
        """``median (low-high)``, multiplied by ``factor``."""
        low, median, high = (f"{factor * x:.{digits}f}" for x in self)
        return f"{median} ({low}-{high})"


class Race(NamedTuple):
    """The times of all contenders in all rounds, ``[rounds]`` for each by its name."""

    contenders: dict[str, Contender]
    wall: dict[str, np.ndarray]
    """Seconds on the clock."""
    cpu: dict[str, np.ndarray]
    """Seconds spent by the cores, all threads together."""

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(next(iter(self.wall.values())))

    def time(self, name: str) -> Spread:
        """Seconds on the clock for one call."""
        return _spread(self.wall[name])

    def ratio(self, name: str, to: str) -> Spread:
        """Time of ``name`` over time of ``to`` on the clock, within rounds."""
        return _spread(self.wall[name] / self.wall[to])

    def cpu_ratio(self, name: str, to: str) -> Spread:
        """Time of ``name`` over time of ``to`` by the cores, within rounds."""
        return _spread(self.cpu[name] / self.cpu[to])

    def row(self, name: str, to: str) -> list[str]:
        """What tables show of a contender, under the header `ROW`."""
        contender = self.contenders[name]
        return [
            name,
            self.time(name).show(1e3, digits=2),
            self.ratio(name, to).show(),
            self.cpu_ratio(name, to).show(),
            f"{contender.trace_seconds:.2f} + {contender.compile_seconds:.2f}",
        ]


ROW = ("", "ms", "ratio", "ratio of core time", "trace + compile, s")


def compiled(name: str, function: Callable[..., Any], *args: Any) -> Contender:
    """Compiles a function for its arguments and runs it once, since a first call allocates and tunes."""

    def fresh(*given: Any) -> Any:  # a function that jax has seen before would not be traced again
        return function(*given)

    start = time.perf_counter()
    lowered = jax.jit(fresh).lower(*args)
    traced = time.perf_counter()
    program = lowered.compile()
    done = time.perf_counter()
    call = partial(program, *args)
    jax.block_until_ready(call())
    return Contender(name, call, traced - start, done - traced)


def race(*contenders: Contender, seconds: float, min_rounds: int = 9, max_rounds: int = 400, seed: int = 0) -> Race:
    """Runs rounds until ``seconds`` have passed (and ``min_rounds`` are done), or until there are ``max_rounds``."""
    order = np.random.default_rng(seed)
    wall: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    cpu: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    end = time.perf_counter() + seconds
    for finished in range(max_rounds):
        if finished >= min_rounds and time.perf_counter() > end:
            break
        for i in order.permutation(len(contenders)):
            start, spent = time.perf_counter(), time.process_time()
            jax.block_until_ready(contenders[i].call())
            wall[contenders[i].name].append(time.perf_counter() - start)
            cpu[contenders[i].name].append(time.process_time() - spent)
    return Race(
        {contender.name: contender for contender in contenders},
        {name: np.array(x) for name, x in wall.items()},
        {name: np.array(x) for name, x in cpu.items()},
    )


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a Markdown table, aligned, ready for docs/performance.md."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in (header, *rows)
    ]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    print(f"\n{title}\n")
    print("\n".join([lines[0], rule, *lines[1:]]), flush=True)


def machine() -> str:
    """What the numbers were measured on, and how busy it was."""
    device = jax.devices()[0]
    name = device.device_kind if device.platform != "cpu" else _cpu_name()
    busy = f"load average {os.getloadavg()[0]:.1f}"
    versions = f"Python {platform.python_version()}, jax {jax.__version__}, numpy {np.__version__}"
    return f"{device.platform}: {name}; {os.cpu_count()} CPU cores, {busy}; {versions}"


def run_directly(description: str, *tests: Callable[..., None]) -> None:
    """``python -m benchmarks.<name> [--seconds S]``: the tests of a file without pytest, all of them in any case."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each race (default: %(default)s)")
    seconds = parser.parse_args().seconds
    print(machine())
    missed: list[str] = []
    for test in tests:
        try:
            test(**({"seconds": seconds} if "seconds" in inspect.signature(test).parameters else {}))
        except AssertionError as error:
            missed.append(f"{test.__name__}: {error}")
    print(f"\n{machine()}")
    sys.exit("\n".join(missed) if missed else 0)


def _spread(values: np.ndarray) -> Spread:
    return Spread(*np.percentile(values, [25, 50, 75]).tolist())


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
