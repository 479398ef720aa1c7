"""How the time of an update of Point-Circle grows: with the batch, the parameters, the seeds, and what it is made of.

``python -m benchmarks.scaling --json FILE`` measures on whatever jax runs on. On an accelerator programs are compiled
several at a time, since compiling takes far longer than what is measured.
"""

import argparse
import datetime as dt
import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax

from benchmarks import _timing
from pcpo.training.collect_device import DeviceProgram
from pcpo.training.config import Config, config_for
from pcpo.training.programs import program_for

SMALL = 10_000
"""Steps of a batch where something else is varied."""
HIDDEN = {1_000: (34, 17), 10_000: (128, 64), 100_000: (440, 220), 1_000_000: (1400, 700)}
"""Widths of two hidden layers, one half of the other, that make about so many parameters of a policy."""


class Case(NamedTuple):
    """One program to time."""

    axis: str
    """What is varied."""
    value: int
    """To what; everything else is as in the paper's preset, with one seed, and without H's spectrum."""
    config: Config


class Timed(NamedTuple):
    """How long the updates of a case take."""

    axis: str
    value: int
    parameters: int
    """Of the policy; a critic has almost as many."""
    steps: int
    """Of the environment, per update and all seeds together."""
    updates: int
    seconds: float
    """Per update, the median."""


def growth() -> list[Case]:
    """Batch, parameters and seeds, each by itself."""
    batches = [Case("batch", n, _config(batch_size=n)) for n in (1_000, 10_000, 50_000, 100_000, 1_000_000)]
    widths = [Case("parameters", n, _config(hidden=hidden, batch_size=SMALL)) for n, hidden in HIDDEN.items()]
    return [*batches, *widths, *(Case("seeds", n, _config(seeds=n, batch_size=SMALL)) for n in (1, 4, 16, 64))]


def causes(seeds: int = 5) -> list[Case]:
    """What an update's time is made of: steps in sequence (conjugate gradient, the episode) or work (the batch)."""
    return [
        *(Case("cg", n, _config(seeds=seeds, cg_iterations=n)) for n in (1, 5, 10, 20)),
        *(Case("horizon", n, _config(seeds=seeds, task_options={"horizon": n})) for n in (10, 25, 50, 100)),
        *(Case("batch of 5 seeds", n, _config(seeds=seeds, batch_size=n)) for n in (5_000, 25_000, 100_000)),
    ]


def _config(**settings: Any) -> Config:
    return config_for("point-circle", spectrum_every=0, **settings)


def measure(cases: Sequence[Case], seconds: float, at_once: int, show: Callable[[Timed], None]) -> list[Timed]:
    """Compiles all cases, ``at_once`` of them side by side, then times one after the other."""
    with ThreadPoolExecutor(at_once) as pool:
        programs = list(pool.map(_compiled, (case.config for case in cases)))
    found: list[Timed] = []
    for case, program in zip(cases, programs, strict=True):
        found.append(_timed(case, program, seconds))
        show(found[-1])
    return found


def _compiled(config: Config) -> DeviceProgram:
    program, hyper = program_for(config), config.hyper()
    assert isinstance(program, DeviceProgram)
    jax.block_until_ready(program.update(program.init(hyper), hyper))
    return program


def _timed(case: Case, program: DeviceProgram, seconds: float) -> Timed:
    """Updates one by one until so many seconds have passed, three at least."""
    hyper = case.config.hyper()
    state = program.init(hyper)
    parameters = sum(leaf[0].size for leaf in jax.tree.leaves(state.params))
    state, _ = jax.block_until_ready(program.update(state, hyper))
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        start = time.perf_counter()
        state, _ = jax.block_until_ready(program.update(state, hyper))
        times.append(time.perf_counter() - start)
    steps = case.config.seeds * program.episodes * program.task.horizon
    return Timed(case.axis, case.value, parameters, steps, len(times), statistics.median(times))


def main() -> None:
    """Prints the times and keeps them."""
    parser = argparse.ArgumentParser(description="How the time of an update grows.")
    parser.add_argument("--json", type=Path, help="where to keep the numbers")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each case (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=1, help="programs compiled side by side (default: %(default)s)")
    parser.add_argument("--causes", action="store_true", help="vary the parts of an update too")
    options = parser.parse_args()
    print(_timing.machine(), flush=True)
    cases = [*growth(), *(causes() if options.causes else [])]
    found = measure(cases, options.seconds, options.at_once, _show)
    if options.json:
        kept = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": _timing.machine(),
            "rows": [row._asdict() for row in found],
        }
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _show(row: Timed) -> None:
    rate = row.steps / row.seconds / 1e6
    print(f"{row.axis:>18} {row.value:>9,}: {1e3 * row.seconds:9.2f} ms per update, {rate:7.2f} M steps/s", flush=True)


if __name__ == "__main__":
    main()
