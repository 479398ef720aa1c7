"""What the traffic tasks cost beside SUMO itself, how fast they are, and what a second process brings."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import _timing
from pcpo.rl.spaces import Box
from pcpo.tasks import registry
from pcpo.tasks.api import HostTask
from pcpo.training.collect_host import HostProgram
from pcpo.training.config import config_for
from pcpo.training.host.fleet import Processes
from pcpo.training.programs import program_for
from tests.tasks.with_sumo import need_sumo

need_sumo()

WHICH = np.zeros(1, np.int64)
OWN_TIME = 1.0
"""Our time in a step may be as long as that of SUMO's own step."""
RATES = {"grid": 5_000, "bottleneck": 2_500}
"""Steps in a second of one core's time, at least."""
RESET = 0.010
"""Seconds of a core's time for a reset, at most."""
TWO = 1.8
"""Times as many steps with two processes as with one, on two cores that nobody else uses."""
SECONDS_PER_UPDATE = 3.0
"""Of a whole update of the grid at the paper's scale, on two such cores."""


class Spent(NamedTuple):
    """Seconds of this core, for one step or one reset."""

    step: float
    simulation: float
    """Those of SUMO's own step."""
    reset: float


@contextmanager
def worlds_of(name: str) -> Generator[Any]:
    """The one environment of this process."""
    task = registry.make(name)
    assert isinstance(task, HostTask)
    worlds = task.worlds(1)
    try:
        yield worlds
    finally:
        worlds.close()


def spent_by(name: str, seed: int) -> Spent:
    """An episode of random actions, and some resets."""
    task, clock, inside = registry.make(name), time.thread_time, 0.0
    assert isinstance(task.action_space, Box)
    with worlds_of(name) as worlds:
        worlds.reset(WHICH, np.array([seed]))
        simulation = worlds.world._simulation
        inner = simulation.step

        def timed() -> None:
            nonlocal inside
            before = clock()
            inner()
            inside += clock() - before

        simulation.step = timed
        actions = np.random.default_rng(seed).normal(size=(task.horizon, 1, task.action_space.size))
        start = clock()
        for action in actions:
            worlds.step(WHICH, action)
        stepping, simulation.step = clock() - start, inner
        start = clock()
        for number in range(5):
            worlds.reset(WHICH, np.array([number]))
        return Spent(stepping / task.horizon, inside / task.horizon, (clock() - start) / 5)


@pytest.mark.parametrize("name", RATES)
def test_our_own_time_per_step(name: str, seconds: float) -> None:
    """The targets: as long as SUMO's own step or less, and fast enough altogether."""
    end, rounds = time.perf_counter() + seconds, []
    while len(rounds) < 5 or time.perf_counter() < end:
        rounds.append(spent_by(name, len(rounds)))
    step, simulation, reset = (np.median(column) for column in zip(*rounds, strict=True))
    own = float(np.median([(r.step - r.simulation) / r.simulation for r in rounds]))
    _timing.print_table(
        f"{name}: one process, random actions, time of the core, medians of {len(rounds)} episodes",
        ("µs for a step", "of which SUMO's", "ours / SUMO's", "steps per s", "ms for a reset"),
        [[f"{1e6 * step:.0f}", f"{1e6 * simulation:.0f}", f"{own:.2f}", f"{1 / step:.0f}", f"{1e3 * reset:.1f}"]],
    )
    assert own <= OWN_TIME
    assert reset <= RESET
    assert 1 / step >= RATES[name]


@pytest.mark.parametrize("name", RATES)
def test_two_processes(name: str, seconds: float) -> None:
    """As many steps of each process, taken in turns, with one process and with two; none waits for the other."""
    task = registry.make(name)
    assert isinstance(task, HostTask)
    assert isinstance(task.action_space, Box)
    rng = np.random.default_rng(0)
    fleets = {workers: Processes(task, workers, workers) for workers in (1, 2)}
    times: dict[int, list[float]] = {1: [], 2: []}
    try:
        end = time.perf_counter() + seconds
        while len(times[2]) < 5 or time.perf_counter() < end:
            for workers, fleet in fleets.items():
                rows = np.arange(workers)
                fleet.table.seeds[:] = rows
                assert not fleet.run("reset", rows)
                start = time.perf_counter()
                _step_all(fleet, rng.normal(size=(task.horizon, workers, task.action_space.size)))
                times[workers].append((time.perf_counter() - start) / (workers * task.horizon))
    finally:
        for fleet in fleets.values():
            fleet.close()
    gain = np.array(times[1]) / np.array(times[2])
    low, median, high = np.percentile(gain, [25, 50, 75])
    _timing.print_table(
        f"{name}: steps of processes, {len(gain)} rounds; {_timing.machine()}",
        ("steps per s with one", "with two", "gain"),
        [[*(f"{1 / np.median(times[w]):.0f}" for w in (1, 2)), f"{median:.2f} ({low:.2f}-{high:.2f})"]],
    )
    assert median >= TWO


def test_an_update_of_the_grid_at_the_papers_scale(seconds: float) -> None:
    """10,000 steps played and learnt from, from state to state."""
    config = config_for("grid", spectrum_every=0)
    program = program_for(config)
    assert isinstance(program, HostProgram)
    try:
        state, rounds = program.init(config.hyper()), []
        end = time.perf_counter() + seconds
        while len(rounds) < 6 or time.perf_counter() < end:
            start = time.perf_counter()
            state, metrics = program.update(state, config.hyper())
            np.asarray(metrics["kl"])
            rounds.append(time.perf_counter() - start)
    finally:
        program.close()
    low, median, high = np.percentile(rounds[1:], [25, 50, 75])  # the first one compiles
    _timing.print_table(
        f"grid: a whole update, {config.batch_size} steps, {len(rounds) - 1} updates; {_timing.machine()}",
        ("seconds", "steps per s"),
        [[f"{median:.2f} ({low:.2f}-{high:.2f})", f"{config.batch_size / median:.0f}"]],
    )
    assert median < SECONDS_PER_UPDATE


def _step_all(fleet: Processes, actions: np.ndarray) -> None:
    """Each process makes its steps, and goes on as soon as it is done with one, as in a batch."""
    made = dict.fromkeys(range(fleet.workers), -1)
    done: dict[int, Any] = dict.fromkeys(made)
    while made:
        for worker, failure in done.items():
            assert failure is None
            made[worker] += 1
            if made[worker] == len(actions):
                del made[worker]
            else:
                fleet.table.actions[worker] = actions[made[worker], worker]
                fleet.begin(worker, "step", np.array([worker]))
        done = fleet.finished(made) if made else {}


if __name__ == "__main__":
    _timing.run_directly(
        "The traffic tasks beside SUMO.",
        *(lambda seconds, n=n: test_our_own_time_per_step(n, seconds) for n in RATES),
        *(lambda seconds, n=n: test_two_processes(n, seconds) for n in RATES),
        test_an_update_of_the_grid_at_the_papers_scale,
    )
