"""Our own time for a step of an environment in Python: 16 of them that do nothing, in one process.

What is measured is all that lies between the learner and the environments: commands and answers, the table they share,
checks of every number, costs, the recording of whole episodes, and the policy (64 and 32 units, on a block of 16). What
is subtracted is the time of the same number of bare calls of the environments' own ``step``.
"""

import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from benchmarks import _timing
from pcpo.rl.normalize import empty
from pcpo.tasks.adapters.gymnasium import from_gymnasium
from pcpo.training.collect_host import host_program
from pcpo.training.config import Config, Constraint
from pcpo.training.host.fleet import Hands
from pcpo.training.streams import PLAY

LIMIT = 0.03
"""Milliseconds per step of one environment."""
ENVIRONMENTS, HORIZON, EPISODES = 16, 1000, 32


class Nothing(gymnasium.Env[Any, Any]):
    """Does nothing, for ever."""

    observation_space = spaces.Box(-np.inf, np.inf, (8,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    observation, info = np.zeros(8, np.float32), {"cost": 0.0}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """The same as ever."""
        del seed, options
        return self.observation, self.info

    def step(self, action: Any) -> Any:
        """The same as ever."""
        del action
        return self.observation, 0.0, False, False, self.info


def own_milliseconds(hands: Hands, rounds: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Our own time per step of one environment, in each of some batches."""
    task = from_gymnasium(Nothing, max_episode_steps=HORIZON)
    options = Config("nothing", {}, (Constraint("cost", 1.0),)).options()
    program = host_program(task, options, batch_size=EPISODES * HORIZON, seeds=(0,), hands=hands)
    state: Any = SimpleNamespace(params=program.policy.init(jax.random.key(0)), normalizer=empty(8))
    steps, measured = EPISODES * HORIZON, []
    for round_ in range(rounds + 1):  # the first one compiles and starts
        began = clock()
        program._play(state, 0, PLAY, round_, EPISODES)
        took = clock() - began
        measured.append(1e3 * (took - _bare(steps, clock)) / steps)
    program.close()
    return measured[1:]


def _bare(steps: int, clock: Callable[[], float]) -> float:
    """Seconds for so many bare steps."""
    env, action = Nothing(), np.zeros(2, np.float32)
    began = clock()
    for _ in range(steps):
        env.step(action)
    return clock() - began


def test_own_time_of_a_step(seconds: float) -> None:
    """The target: 0.03 ms for each step of each environment, in this process and in one of its own."""
    rounds = max(3, int(seconds))
    rows = []
    ways = {
        "in this process": (Hands(workers=0), time.perf_counter),
        "the same, time of the CPU": (Hands(workers=0), time.process_time),
        "in a process of its own": (Hands(workers=1), time.perf_counter),
    }
    for name, (hands, clock) in ways.items():
        found = own_milliseconds(hands, rounds, clock)
        rows.append((name, statistics.median(found), min(found), max(found)))
    print(f"\nOur own time per step of {ENVIRONMENTS} environments that do nothing ({rounds} batches), milliseconds")
    for name, median, low, high in rows:
        print(f"  {name:<26} {median:8.4f}   ({low:.4f} to {high:.4f})")
    worst = max(median for _, median, *_ in rows)
    assert worst <= LIMIT, f"a step costs {worst:.4f} ms of our own time; the target is {LIMIT}"


if __name__ == "__main__":
    _timing.run_directly("Our own time per step of a Python environment.", test_own_time_of_a_step)
