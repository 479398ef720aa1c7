"""Processes that step environments: the same trajectories however many there are, whatever happens to them, and none
is left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from pcpo.tasks.host import WorldError
from pcpo.training.host import fleet as fleets
from pcpo.training.host.episodes import ATTEMPTS, play
from pcpo.training.host.fleet import Hands, Processes, fleet_for
from tests.training.host_worlds import FAULTS, Faulty, Walks, WithChildren, task
from tests.training.test_host_episodes import SEEDS, act, assert_same, plan, played

ROOT = Path(__file__).resolve().parents[2]
GONE_IN = 10.0
"""Seconds in which processes must be gone that nobody needs any more."""


@pytest.fixture(scope="module")
def batch():
    return played().rollout


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def assert_gone(processes) -> None:
    deadline = time.monotonic() + GONE_IN
    while any(map(is_alive, processes)):
        assert time.monotonic() < deadline, f"still there: {[each for each in processes if is_alive(each)]}"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_same_trajectories_however_many_processes(batch, workers):
    assert_same(played(hands=Hands(workers=workers)).rollout, batch)


def test_where_a_process_holds_one_environment_two_play_at_once(batch):
    """SUMO's worlds: as many environments as processes, and the policy's block stays what it was."""
    assert_same(played(task(per_process=1), hands=Hands(workers=2)).rollout, batch)


def test_two_processes_for_each_core_where_one_holds_few_environments(monkeypatch):
    """While one waits for the policy, the other simulates."""
    monkeypatch.setattr("pcpo.training.host.fleet.default_workers", lambda: 1)
    for limited, workers in ((task(per_process=1), 2), (task(), 1)):
        fleet = fleet_for(limited, 4, Hands())
        assert fleet.workers == workers
        fleet.close()


def test_lambdas_and_closures_reach_the_processes(batch):
    scale = 1.0

    class Scaled(Walks):
        def step(self, which, actions):
            return super().step(which, scale * actions)

    made = lambda n: Scaled(n)  # noqa: E731, PLW0108
    assert_same(played(task(made), hands=Hands(workers=2)).rollout, batch)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("is killed", "a process of the environments died of SIGKILL"),
        ("has a segmentation fault", "died of SIGSEGV"),
        ("exits", "died with exit code 7"),
        ("raises", "failed with RuntimeError: the robot fell apart (host_worlds.py, line "),
        ("hangs with the lock", "did not answer (after 3 s of a step)"),
    ],
)
def test_a_process_that_fails_is_replaced_and_the_curve_is_the_same(batch, tmp_path, fault, said):
    """In the middle of an episode, while others are being played in the same process and in another one."""
    file, told = tmp_path / "faults", []
    patience = 3.0 if "hangs" in fault else 60.0
    faulty = task(Faulty(fault, 104, 3, str(file)), patience=patience)
    again = played(faulty, hands=Hands(workers=2), told=told)
    assert_same(again.rollout, batch)
    assert again.failures == 1
    assert len(told) == 1
    assert said in told[0]
    assert told[0].endswith(
        "it has been replaced, and its episodes of update 3, seed 0 were run again from their seeds"
    )
    assert_gone(map(int, file.read_text().split()))


def test_a_reset_may_fail_too(batch, tmp_path):
    again = played(task(Faulty("is killed", 104, 0, str(tmp_path / "faults"), times=2)), hands=Hands(workers=2))
    assert_same(again.rollout, batch)
    assert again.failures == 2


@pytest.mark.parametrize("fault", ["is killed", "raises"])
def test_an_episode_that_always_fails_ends_the_run(tmp_path, fault):
    """With the environment's own error, and the seed to try it with."""
    file = tmp_path / "faults"
    with pytest.raises(WorldError, match=f"{ATTEMPTS} times while it played episode .*seed 104") as caught:
        played(task(Faulty(fault, 104, 2, str(file), times=100)), hands=Hands(workers=2))
    said = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert ("SIGKILL" if fault == "is killed" else 'raise RuntimeError("the robot fell apart")') in said
    assert len(file.read_text().splitlines()) == ATTEMPTS
    assert_gone(map(int, file.read_text().split()))


def test_seeds_that_do_not_decide_everything_are_found_out(tmp_path):
    """Only by a process that was lost: the numbers of the new one are others."""

    make = Faulty("is killed", 104, 3, str(tmp_path / "faults"))

    def worlds(n):
        walks = make(n)
        walks.reset = lambda which, seeds, reset=walks.reset: reset(which, seeds) + os.getpid() / 1e6
        return walks

    with pytest.raises(WorldError, match=r"walk is not decided by its seed.*another observation after \d+ steps"):
        played(task(worlds), hands=Hands(workers=2))


def test_what_cannot_start_says_why():
    def worlds(n):
        raise FileNotFoundError(f"no robot for {n} environments")

    with pytest.raises(WorldError, match="walk: a process of the environments failed with FileNotFoundError: no robot"):
        Processes(task(worlds), 4, 2)


def test_what_dies_while_it_starts(monkeypatch):
    with pytest.raises(WorldError, match="walk: a process of the environments died of SIGKILL"):
        Processes(task(lambda n: FAULTS["is killed"]()), 4, 2)


def test_what_hangs_while_it_starts(monkeypatch):
    monkeypatch.setattr(fleets, "START", 0.1)
    with pytest.raises(WorldError, match=r"did not answer \(after 0.2 s of its start\)"):
        Processes(task(lambda n: time.sleep(1000), patience=0.2), 4, 1)


def test_what_cannot_be_sent_says_so():
    import threading

    lock = threading.Lock()
    with pytest.raises(WorldError, match="walk cannot be sent to the processes that step it"):
        Processes(task(lambda n: lock), 4, 2)


def test_a_prints_of_an_environment_do_not_disturb(batch):
    """What it writes to the terminal goes there, not into the line between the processes."""

    class Loud(Walks):
        def step(self, which, actions):
            os.write(1, b"")
            print("", end="", flush=True)
            return super().step(which, actions)

    assert_same(played(task(Loud), hands=Hands(workers=1)).rollout, batch)


def test_closing_ends_all_processes_and_what_they_have_started():
    fleet = fleet_for(task(WithChildren), 4, Hands(workers=2))
    assert isinstance(fleet, Processes)
    fleet.table.seeds[:] = SEEDS[:4]
    assert fleet.run("reset", np.arange(4)) == []
    processes = {*fleet.processes, *(int(x) for x in fleet.table.observations[:, 0])}
    assert len(processes) == 4
    assert all(map(is_alive, processes))
    fleet.close()
    fleet.close()  # a second time does no harm
    assert_gone(processes)


def test_a_fleet_that_nobody_remembers_ends():
    fleet = fleet_for(task(), 4, Hands(workers=1))
    assert isinstance(fleet, Processes)
    processes = fleet.processes
    del fleet
    assert_gone(processes)


SCRIPT = """
    import sys
    import numpy as np
    from pcpo.training.host.fleet import Hands, fleet_for
    from tests.training.host_worlds import FAULTS, WithChildren, task

    class Stuck(WithChildren):
        def step(self, which, actions):
            FAULTS["hangs with the lock"]()

    fleet = fleet_for(task(Stuck, patience=1000.0), 4, Hands(workers=2))
    fleet.run("reset", np.arange(4))
    print(*fleet.processes, *(int(x) for x in fleet.table.observations[:, 0]), flush=True)
    fleet.run("step", np.arange(4))
"""


@pytest.fixture
def parent():
    """A process with two others, each in the middle of a step that never ends, and the numbers of all below it."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    assert process.stdout is not None
    below = sorted(set(map(int, process.stdout.readline().split())))
    assert len(below) == 4, process.stderr.read() if process.stderr else ""
    time.sleep(0.2)
    yield process, below
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process notices its parent's end in a thread")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_however_the_parent_ends(parent, number):
    """Not even of a process that holds Python's lock for ever, nor of what it has started."""
    process, below = parent
    assert all(map(is_alive, below))
    process.send_signal(number)
    process.wait(GONE_IN)
    assert_gone(below)


def test_a_batch_after_a_batch_uses_the_same_processes(batch):
    fleet = fleet_for(task(), 4, Hands(workers=2))
    assert isinstance(fleet, Processes)
    processes = fleet.processes
    both = [play(task(), fleet, act, plan(), [].append).rollout for _ in range(2)]
    assert fleet.processes == processes
    fleet.close()
    for each in both:
        assert_same(each, batch)
