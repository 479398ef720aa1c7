"""Environments for the tests of collecting on the host: plain numpy, decided by their seeds, faulty when asked to be.

The processes that step environments import this module.
"""

import ctypes
import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from pcpo.rl.spaces import Box
from pcpo.tasks.host import HostTask, Outcomes, WorldError

HORIZON = 9


class Walk:
    """One walker: it goes where its actions say, with a wind that its seed decides, for 1 to 12 steps."""

    def __init__(self, seed):
        self.wind = np.random.default_rng(seed)
        self.length, self.cut = int(self.wind.integers(1, 13)), bool(self.wind.integers(2))
        self.place, self.t = self.wind.normal(size=2), 0

    def observe(self):
        return np.append(self.place, self.t)

    def step(self, action):
        self.t += 1
        self.place = self.place + np.clip(action, -1.0, 1.0) + 0.1 * self.wind.normal(size=2)
        over = self.t == self.length
        costs = [float(abs(self.place[0]) > 1.0), float(self.t)]
        return self.observe(), float(self.place.sum()), costs, over and not self.cut, over and self.cut


class Walks:
    """Several; see `pcpo.tasks.host.HostWorlds`."""

    def __init__(self, n):
        self.walks: list[Any] = [None] * n

    def reset(self, which, seeds):
        for i, seed in zip(which, seeds, strict=True):
            self.walks[i] = Walk(int(seed))
        return np.stack([self.walks[i].observe() for i in which])

    def step(self, which, actions):
        steps = [self.walks[i].step(action) for i, action in zip(which, actions, strict=True)]
        return Outcomes(*(np.array(each) for each in zip(*steps, strict=True)))

    def close(self):
        pass


@dataclasses.dataclass(frozen=True)
class Faulty:
    """Makes walks that do something bad at a step of one seed's episode, until their file has enough lines."""

    fault: str
    seed: int
    at: int
    file: str
    times: int = 1

    def __call__(self, n):
        return _FaultyWalks(self, n)


class _FaultyWalks(Walks):
    def __init__(self, faulty, n):
        super().__init__(n)
        self.faulty, self.playing = faulty, [-1] * n

    def reset(self, which, seeds):
        observations = super().reset(which, seeds)
        for i, seed in zip(which, seeds, strict=True):
            self.playing[i] = int(seed)
        self._perhaps(which)
        return observations

    def step(self, which, actions):
        outcomes = super().step(which, actions)
        self._perhaps(which)
        return outcomes

    def _perhaps(self, which):
        faulty = self.faulty
        if any(self.playing[i] == faulty.seed and self.walks[i].t == faulty.at for i in which):
            path = Path(faulty.file)
            before = len(path.read_text().splitlines()) if path.exists() else 0
            if before < faulty.times:
                with path.open("a") as file:
                    file.write(f"{os.getpid()}\n")
                FAULTS[faulty.fault]()


def _raise():
    raise RuntimeError("the robot fell apart")


class _SpeechlessError(RuntimeError):
    def __str__(self):
        raise ValueError("no words")


def _fail_without_words():
    raise _SpeechlessError


def _refuse():
    raise WorldError("walk: what no environment may do")


def _interrupt():
    raise KeyboardInterrupt


FAULTS = {
    "is interrupted": _interrupt,
    "raises": _raise,
    "fails without words": _fail_without_words,
    "refuses": _refuse,
    "exits": lambda: os._exit(7),
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "has a segmentation fault": lambda: ctypes.string_at(0),
    "hangs": lambda: time.sleep(1000),
    "hangs with the lock": lambda: ctypes.PyDLL(None).sleep(1000),
}


class Forgetful(Walks):
    """Their seeds do not decide everything."""

    def reset(self, which, seeds):
        return super().reset(which, seeds) + os.getpid() % 1000 / 1000.0


class WithChildren(Walks):
    """Each starts a program of its own, as some simulators do, and says its number."""

    def __init__(self, n):
        super().__init__(n)
        self.program = subprocess.Popen(["sleep", "1000"])

    def reset(self, which, seeds):
        observations = super().reset(which, seeds)
        observations[:, 0] = self.program.pid
        return observations


def task(worlds: Any = Walks, **changes: Any) -> HostTask:
    """Walks as a task."""
    made = HostTask(
        name="walk",
        observation_size=3,
        action_space=Box((-1.0, -1.0), (1.0, 1.0)),
        horizon=HORIZON,
        cost_names=("far", "time"),
        worlds=worlds,
        environments=4,
        patience=20.0,
    )
    return dataclasses.replace(made, **changes)
