"""Safety-Gymnasium end to end, update included, against its simulator alone on as many cores.

The simulator alone: as many processes as there are workers, each stepping one environment of its own with random
actions, resets included, and doing nothing else. It is Safety-Gymnasium's own in all but the textures, which are left
out, and that is what training is compared with. What the textures cost, and what our own faster steps alone do, are
rows of their own.
"""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import _timing
from pcpo.rl.options import Options
from pcpo.tasks.adapters import safety_gymnasium
from pcpo.training.collect_host import HostProgram, host_program
from pcpo.training.config import Config, Constraint
from pcpo.training.host.fleet import Hands, default_workers
from pcpo.training.named import named

TARGET = 0.9
"""Of the simulator's own rate for each core that is used."""
EPISODES = 20
ROUNDS = 5
TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0")

_ALONE = """
import sys, time
from benchmarks import test_safety
name, make, steps = sys.argv[1], getattr(test_safety, sys.argv[2]), int(sys.argv[3])
steps_alone, env = test_safety.steps_alone, make(name)
steps_alone(env, 10)
print("ready", flush=True)
sys.stdin.readline()
start, spent = time.perf_counter(), time.process_time()
steps_alone(env, steps)
print(time.perf_counter() - start, time.process_time() - spent, flush=True)
"""


_ONE = """
import sys, time
import numpy as np
from benchmarks import test_safety
from pcpo.tasks.adapters import safety_gymnasium
name, make = sys.argv[1], getattr(test_safety, sys.argv[2])
env, steps = make(name), 2 * safety_gymnasium.horizon(name)
env.reset(seed=0)
rates, resets = [], []
for _ in range(test_safety.ROUNDS):
    spent = time.process_time()
    test_safety.steps_alone(env, steps)
    rates.append(steps / (time.process_time() - spent))
    spent = time.process_time()
    env.reset(seed=1)
    resets.append(1e3 * (time.process_time() - spent))
print(np.median(rates), np.median(resets))
"""


class Time(NamedTuple):
    """What some steps took."""

    wall: float
    """Seconds on the clock, until the last process was done."""
    cores: float
    """Seconds spent by all cores together."""


def steps_alone(env: Any, steps: int) -> None:
    """Steps with random actions, and a reset at the end of each episode."""
    random = np.random.default_rng(0)
    shape = env.action_space.shape
    env.reset(seed=0)
    for seed in range(1, steps + 1):
        _, _, _, terminated, truncated, _ = env.step(random.uniform(-1, 1, shape))
        if terminated or truncated:
            env.reset(seed=seed)


def as_it_is(name: str) -> Any:
    """An environment as Safety-Gymnasium builds it."""
    safety_gymnasium.load()
    return importlib.import_module("safety_gymnasium.builder").Builder(name, config={"agent_name": "Point"})


def without_textures(name: str) -> Any:
    """The same with less in the XML of all models that this process builds from then on, and nothing else changed."""

    def leave_out(self: Any, xml: str | None) -> None:
        self.__dict__["xml_string"] = None if xml is None else safety_gymnasium.without_pictures(xml)

    env = as_it_is(name)
    world = importlib.import_module("safety_gymnasium.world").World
    world.xml_string = property(lambda self: self.__dict__["xml_string"], leave_out)
    return env


def ours(name: str) -> Any:
    """An environment as training steps it."""
    return safety_gymnasium.environment(name)


class Alone:
    """A simulator alone, in processes that wait for the word."""

    def __init__(self, name: str, make: Callable[[str], Any], workers: int, steps: int) -> None:
        line = [sys.executable, "-W", "ignore", "-c", _ALONE, name, make.__name__, str(steps // workers)]
        self.line, self.workers = line, workers

    def __call__(self) -> Time:
        """All of the steps, once."""
        started = [
            subprocess.Popen(self.line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(self.workers)
        ]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
        begin = time.perf_counter()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate()[0].split() for process in started]
        return Time(time.perf_counter() - begin, sum(float(cores) for _, cores in told))


class Training:
    """Whole updates: episodes, gradients, critics, metrics."""

    def __init__(self, name: str, workers: int) -> None:
        task: Any = named(f"safety:{name}", {}).task
        config = Config(f"safety:{name}", constraints=(Constraint("cost", 25.0),))
        self.hyper = config.hyper()
        self.program: HostProgram = host_program(
            task, Options(spectrum_every=0), batch_size=EPISODES * task.horizon, seeds=(0,),
            environments=EPISODES, hands=Hands(workers=workers),
        )  # fmt: skip
        self.state = self.program.init(self.hyper)
        for _ in range(2):  # compiles
            self()

    def __call__(self) -> Time:
        """One update."""
        begin, spent = time.perf_counter(), self._cores()
        self.state, metrics = self.program.update(self.state, self.hyper)
        np.asarray(metrics["costs"])
        return Time(time.perf_counter() - begin, self._cores() - spent)

    def _cores(self) -> float:
        """Seconds of this process and of those that step its environments."""
        fleet: Any = self.program._fleet
        numbers = () if fleet is None else fleet.processes
        return time.process_time() + sum(_seconds_of(number) for number in numbers)


def _seconds_of(process: int) -> float:
    """What the cores have spent on a process, as Linux tells it."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", TASKS)
def test_end_to_end(name: str) -> None:
    """The target: 90 % of the simulator's own rate for each core, update included."""
    workers = default_workers()
    training = Training(name, workers)
    steps = EPISODES * training.program.task.horizon
    sides = [Alone(name, make, workers, steps) for make in (without_textures, ours)]
    try:
        rounds = [[*(alone() for alone in sides), training()] for _ in range(ROUNDS)]
    finally:
        training.program.close()
    times = {
        "wall": np.array([[t.wall for t in each] for each in rounds]),
        "cores": np.array([[t.cores for t in each] for each in rounds]),
    }
    labels = ("the simulator alone, without textures", "our faster steps alone", "training")
    rows = [
        [label, *(_shown(steps / each[:, i], digits=0) for each in times.values())] for i, label in enumerate(labels)
    ]
    for i, label in enumerate(labels[:2]):
        rows.append([f"training / {label}", *(_shown(each[:, i] / each[:, 2]) for each in times.values())])
    _timing.print_table(
        f"{name}, {steps} steps in an update, {workers} processes ({ROUNDS} rounds, medians with quartiles)",
        ("", "steps per second", "steps per second of a core"),
        rows,
    )
    ratio = float(np.median(times["wall"][:, 0] / times["wall"][:, 2]))
    assert ratio >= TARGET, f"{name} trains at {ratio:.0%} of the simulator's own rate; the target is {TARGET:.0%}"


@pytest.mark.parametrize("name", TASKS)
def test_what_the_sky_and_names_cost(name: str) -> None:
    """Two episodes of random actions on one core: as it is, without textures, and with our own steps."""
    rows: list[list[str]] = []
    for make in (as_it_is, without_textures, ours):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _ONE, name, make.__name__],
            capture_output=True,
            text=True,
            check=True,
        )
        rate, reset = done.stdout.split()
        rows.append([make.__name__.replace("_", " "), f"{float(rate):.0f}", f"{float(reset):.1f}"])
    _timing.print_table(f"{name}, one core", ("", "steps per second of a core, with resets", "ms per reset"), rows)
    assert float(rows[0][1]) < float(rows[1][1]) < float(rows[2][1])


def _shown(values: Any, digits: int = 2) -> str:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


if __name__ == "__main__":
    print(_timing.machine())
    for task_name in TASKS:
        test_what_the_sky_and_names_cost(task_name)
        test_end_to_end(task_name)
