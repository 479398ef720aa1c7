"""Kill -9, for real, at twenty random moments of a training."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pcpo.training import checkpoint
from tests.training.small import rows_in, without_clock

KILLS = 20
ROOT = Path(__file__).parent.parent.parent
SOON = 0.3
"""Seconds of training, at most, that a process is given; it writes thirty rows and one checkpoint in a tenth of it."""


class Nursery:
    """`tests.training.nursery` as a process."""

    def __init__(self, cache: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.nursery", str(cache)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    def start(self, directory: Path, updates: int) -> int:
        """Starts a child, and returns its number."""
        assert self.process.stdin
        print(directory, updates, file=self.process.stdin, flush=True)
        return int(self._line())

    def ended(self) -> int:
        """Waits for the child, and returns how it ended."""
        return int(self._line())

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()


@pytest.fixture(scope="module")
def nursery(compilation_cache):
    started = Nursery(compilation_cache)
    with started.process:  # closes its input, which ends it
        yield started
    assert started.process.returncode == 0


def size(directory: Path) -> int:
    path = directory / "metrics.jsonl"
    return path.stat().st_size if path.exists() else 0


def newest(directory: Path) -> int:
    return max(checkpoint.updates(directory / "checkpoints"), default=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_twenty_kills_at_random_moments_change_nothing(nursery, tmp_path):
    """Every fifth one comes while the process still starts, the others while it trains."""
    directory, moments, chance = tmp_path / "killed", [], random.Random(2020)
    seconds_to_start, endless = 0.0, 1_000_000
    for kill in range(KILLS):
        before, began = size(directory), time.monotonic()
        child = nursery.start(directory, endless)
        if kill % 5 == 4:
            time.sleep(chance.uniform(0.0, seconds_to_start))
        else:
            while size(directory) in {0, before}:  # going on takes back rows before it writes new ones
                time.sleep(0.002)
            seconds_to_start = time.monotonic() - began
            time.sleep(chance.uniform(0.0, SOON))
        os.kill(child, signal.SIGKILL)
        assert nursery.ended() == -signal.SIGKILL
        moments.append((kill, newest(directory), size(directory)))
    updates = newest(directory) + 20
    assert updates > KILLS + 20, moments  # it has got somewhere
    for run in (directory, tmp_path / "whole"):
        nursery.start(run, updates)
        assert nursery.ended() == 0
    rows = rows_in(directory)
    assert [(row["update"], row["seed"]) for row in rows] == [(u, seed) for u in range(updates) for seed in (0, 1)]
    assert without_clock(rows) == without_clock(rows_in(tmp_path / "whole")), moments
    last = f"update-{updates:08d}.safetensors"
    assert (directory / "checkpoints" / last).read_bytes() == (tmp_path / "whole" / "checkpoints" / last).read_bytes()
    assert not list(directory.rglob("*.tmp"))
