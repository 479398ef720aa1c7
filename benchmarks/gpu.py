"""Training on one accelerator: how fast it is, and what it does in the time of an update.

``python -m benchmarks.gpu`` prints both for five seeds and for sixty-four; ``--json FILE`` keeps the numbers.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax

from benchmarks import _timing
from pcpo.training.collect_device import DeviceProgram
from pcpo.training.config import Config, config_for
from pcpo.training.programs import program_for

LOOK_EVERY = 50
"""Updates between two looks at their metrics, as training has it."""
TRACED = 10
"""Updates in a trace: with one measurement of H's spectrum, which is due every tenth."""


class Speed(NamedTuple):
    """How fast some seeds are trained."""

    seeds: int
    updates: int
    compile_seconds: float
    """Until the first update was there."""
    seconds: float
    """For all updates after it, their metrics fetched."""
    steps_per_second: float
    """Steps of the environment, all seeds together."""


class Busy(NamedTuple):
    """What the accelerator did in an update, from a trace."""

    seeds: int
    kernels: float
    """Launched per update."""
    busy_milliseconds: float
    """Time in kernels and copies per update; the rest of the time it waited for the next one."""
    longest: list[tuple[str, float, float]]
    """Names with milliseconds and launches per update, the longest first."""


def speed(config: Config, updates: int) -> tuple[Speed, DeviceProgram, Any]:
    """Trains, and takes the time; the program and its last state too."""
    program, hyper = program_for(config), config.hyper()
    assert isinstance(program, DeviceProgram)
    start = time.perf_counter()
    state, metrics = program.update(program.init(hyper), hyper)
    jax.block_until_ready(metrics)
    compiled = time.perf_counter()
    pending: list[Any] = []
    for _ in range(updates):
        state, metrics = program.update(state, hyper)
        pending.append(metrics)
        if len(pending) == LOOK_EVERY:
            jax.device_get(pending)
            pending.clear()
    jax.device_get(pending)
    jax.block_until_ready(state)
    seconds = time.perf_counter() - compiled
    steps = updates * config.seeds * program.episodes * program.task.horizon
    return Speed(config.seeds, updates, compiled - start, seconds, steps / seconds), program, state


def busy(config: Config, program: DeviceProgram, state: Any, show: int = 12) -> Busy | None:
    """Traces some updates; None where the trace does not show a device."""
    hyper = config.hyper()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(TRACED):
                state, _ = program.update(state, hyper)
            jax.block_until_ready(state)
        spent, launched = Counter[str](), Counter[str]()
        for name, nanoseconds in _device_events(Path(folder)):
            spent[name] += round(nanoseconds)
            launched[name] += 1
    if not launched:
        return None
    per_update = 1e-6 / TRACED
    longest = [(name, t * per_update, launched[name] / TRACED) for name, t in spent.most_common(show)]
    return Busy(config.seeds, launched.total() / TRACED, spent.total() * per_update, longest)


def _device_events(folder: Path) -> Iterator[tuple[str, float]]:
    """Names and nanoseconds of what ran on the device's streams."""
    for path in folder.rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
            if not plane.name.startswith("/device:"):
                continue
            for line in plane.lines:
                if line.name.startswith("Stream"):
                    yield from ((event.name, event.duration_ns) for event in line.events)


def main() -> None:
    """Prints speeds, then what the device was busy with."""
    parser = argparse.ArgumentParser(description="Training on one accelerator.")
    parser.add_argument("--task", default="point-circle")
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 64])
    parser.add_argument("--updates", type=int, nargs="+", default=[1000, 100], help="one number for each of --seeds")
    parser.add_argument("--no-trace", action="store_true", help="only the speeds")
    parser.add_argument("--json", type=Path, help="where to keep the numbers")
    options = parser.parse_args()
    print(_timing.machine(), flush=True)
    found: dict[str, Any] = {"machine": _timing.machine(), "task": options.task, "speed": [], "busy": []}
    for seeds, updates in zip(options.seeds, options.updates, strict=True):
        config = config_for(options.task, seeds=seeds)
        measured, program, state = speed(config, updates)
        found["speed"].append(measured._asdict())
        traced = None if options.no_trace else busy(config, program, state)
        if traced is not None:
            found["busy"].append(traced._asdict())
        _show(measured, traced)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _show(measured: Speed, traced: Busy | None) -> None:
    per_update = 1e3 * measured.seconds / measured.updates
    print(
        f"\n{measured.seeds} seeds x {measured.updates} updates: {measured.seconds:.2f} s after "
        f"{measured.compile_seconds:.1f} s of compiling; {per_update:.2f} ms per update, "
        f"{measured.steps_per_second / 1e6:.1f} million steps per second",
        flush=True,
    )
    if traced is not None:
        print(f"per update {traced.kernels:.0f} kernels, {traced.busy_milliseconds:.2f} ms in them")
        rows = [[name[:70], f"{time:.3f}", f"{count:.1f}"] for name, time, count in traced.longest]
        _timing.print_table("Longest kernels", ("kernel", "ms per update", "launches per update"), rows)


if __name__ == "__main__":
    main()
