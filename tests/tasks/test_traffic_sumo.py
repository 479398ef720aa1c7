"""One simulation in a process, the same one for the same seed, nothing left behind, and what is said when it fails."""

import hashlib
import subprocess
import sys
from typing import cast

import gymnasium
import numpy as np
import pytest

from pcpo.tasks import registry
from pcpo.tasks.host import WorldError
from pcpo.tasks.traffic import bottleneck, nets
from pcpo.tasks.traffic.grid import ERAS, demand_of
from pcpo.tasks.traffic.sumo import Simulation
from pcpo.tasks.traffic.world import TrafficWorlds
from pcpo.training.host.fleet import Processes
from tests.tasks.with_sumo import need_sumo

need_sumo()

TASKS = ("grid", "bottleneck")
WHICH = np.zeros(1, int)

TRAJECTORY = '''
import hashlib, sys
import numpy as np
from pcpo.tasks.traffic.bottleneck import bottleneck
from pcpo.tasks.traffic.grid import grid

def trajectory(task, seed, steps=60):
    """Everything that an episode gives, as one number."""
    rng, worlds, which = np.random.default_rng(0), task.worlds(1), np.zeros(1, int)
    seen = [worlds.reset(which, np.array([seed]))]
    for _ in range(steps):
        seen.extend(worlds.step(which, rng.normal(size=(1, task.action_space.size))))
    worlds.close()
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in seen)).hexdigest()
'''
spaces: dict = {}
exec(TRAJECTORY, spaces)  # the same words run in processes of their own below
trajectory = spaces["trajectory"]


def python(code, *args, **options):
    """What a fresh process prints."""
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_and_actions_give_the_same_bits(name):
    """One after another, after a restart of SUMO, and after other episodes; another seed gives others."""
    task = registry.make(name)
    first = trajectory(task, 3)
    assert trajectory(task, 4) != first
    assert trajectory(task, 3) == first
    worlds = task.worlds(1)
    try:  # without a restart between
        runs = []
        for seed in (3, 9, 3):
            rng = np.random.default_rng(0)
            seen = [worlds.reset(WHICH, np.array([seed]))]
            for _ in range(60):
                seen.extend(worlds.step(WHICH, rng.normal(size=(1, task.action_space.size))))
            runs.append(hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in seen)).hexdigest())
    finally:
        worlds.close()
    assert runs[0] == runs[2] == first != runs[1]


def test_another_process_gives_the_same_bits_whatever_the_hash_seed():
    mine = [trajectory(registry.make(name), 3) for name in TASKS]
    code = TRAJECTORY + "for task in (grid(), bottleneck()): print(trajectory(task, 3))"
    other = python(code, env={"PYTHONHASHSEED": "7", "PATH": ""})
    assert other.returncode == 0, other.stderr
    assert other.stdout.split() == mine


@pytest.mark.parametrize("name", TASKS)
def test_the_number_of_processes_changes_no_bit(name):
    """Six episodes with one process and with two, by the very processes that training uses."""
    task = registry.make(name)

    def play(workers):
        fleet = Processes(task, workers, workers)
        try:
            told = []
            for first in range(0, 6, workers):
                rows = np.arange(workers)
                fleet.table.seeds[:] = np.arange(first, first + workers)
                assert not fleet.run("reset", rows)
                begun = fleet.table.observations.copy()
                noise = [np.random.default_rng(first + row) for row in rows]
                steps = []
                for _ in range(20):
                    fleet.table.actions[:] = [rng.normal(size=task.action_space.size) for rng in noise]
                    assert not fleet.run("step", rows)
                    steps.append(np.column_stack([fleet.table.observations, fleet.table.rewards, fleet.table.costs]))
                told += [(begun[row], np.array([step[row] for step in steps])) for row in rows]
            return told
        finally:
            fleet.close()

    for (begun, steps), (begun2, steps2) in zip(play(1), play(2), strict=True):
        np.testing.assert_array_equal(begun, begun2)
        np.testing.assert_array_equal(steps, steps2)


def test_gymnasiums_processes_hold_one_each():
    """As the error message of a second simulation promises."""
    names = ["pcpo.tasks.gym:pcpo/Grid-v0", "pcpo.tasks.gym:pcpo/Bottleneck-v0"]
    grids = gymnasium.vector.AsyncVectorEnv(
        [lambda: gymnasium.make(names[0]), lambda: gymnasium.make(names[0])], context="spawn"
    )
    try:
        observations, _ = grids.reset(seed=[1, 2])
        assert observations.shape == (2, 156)
        observations, rewards, *_ = grids.step(grids.action_space.sample())
        assert np.all(rewards > 0)
    finally:
        grids.close()


def test_info_has_what_the_page_says():
    env = gymnasium.make("pcpo.tasks.gym:pcpo/Grid-v0")
    _, info = env.reset(seed=0)
    assert info["red_seconds"] == [[0.0, 0.0]] * 4
    *_, info = env.step(np.full(4, -1.0))
    assert set(info) == {"cost", "lights", "red_seconds", "speeds", "arrived", "departed", "crashed"}
    env.close()
    env = gymnasium.make("pcpo.tasks.gym:pcpo/Bottleneck-v0")
    env.reset(seed=0)
    *_, info = env.step(np.zeros(20))
    assert set(info) == {"cost", "slow_seconds", "speeds", "robots", "arrived", "outflow", "crashed"}
    env.close()


def test_a_second_simulation_in_a_process_is_an_error_that_says_why_and_what_to_do():
    first, second = (registry.make(name).worlds(1) for name in TASKS)
    begun = first.reset(WHICH, WHICH)
    with pytest.raises(WorldError, match=r"bottleneck: this process simulates grid already, .* close that environment"):
        second.reset(WHICH, WHICH)
    # The first one has not noticed.
    np.testing.assert_array_equal(first.reset(WHICH, WHICH), begun)
    first.close()
    second.reset(WHICH, WHICH)
    with pytest.raises(WorldError, match="grid: nothing has been simulated yet, or it has been closed; reset it first"):
        first.step(WHICH, np.zeros((1, 4)))
    second.close()


def test_a_task_for_one_process_is_one_environment():
    with pytest.raises(WorldError, match="grid: 3 environments are wanted in one process"):
        registry.make("grid").worlds(3)


def test_a_simulation_that_nobody_holds_any_more_is_ended():
    worlds = registry.make("grid").worlds(1)
    worlds.reset(WHICH, WHICH)
    del worlds
    other = registry.make("bottleneck").worlds(1)
    other.reset(WHICH, WHICH)
    other.close()


def test_a_simulation_that_something_else_has_started_is_left_alone():
    import libsumo

    libsumo.start(["sumo", "-n", str(nets.path("grid-e1")), "--no-step-log", "true", "--no-warnings", "true"])
    try:
        with pytest.raises(WorldError, match="has a simulation already that something else has started"):
            registry.make("grid").worlds(1).reset(WHICH, WHICH)
        assert libsumo.isLoaded()
    finally:
        libsumo.close()


def test_a_simulation_that_something_else_replaces_is_not_taken_for_our_own():
    """Neither moved, nor read, nor begun anew, nor closed; once it is gone, ours begins again as it did."""
    import libsumo

    gone = "grid: its simulation is gone"
    worlds = cast("TrafficWorlds", registry.make("grid").worlds(1))
    begun = worlds.reset(WHICH, WHICH)
    uses = (worlds.world.details, worlds.world.scene, lambda: worlds.step(WHICH, np.zeros((1, 4))))
    libsumo.close()
    for use in uses:
        with pytest.raises(WorldError, match=gone):
            use()
    libsumo.start(["sumo", "-n", str(nets.path("grid-e1")), "--no-step-log", "true", "--no-warnings", "true"])
    try:
        for use in uses:
            with pytest.raises(WorldError, match=gone):
                use()
        with pytest.raises(WorldError, match="grid: this process has a simulation already that something else has"):
            worlds.reset(WHICH, WHICH)
        assert libsumo.simulation.getTime() == 0
        worlds.close()
        assert libsumo.isLoaded()
    finally:
        libsumo.close()
    np.testing.assert_array_equal(worlds.reset(WHICH, WHICH), begun)
    worlds.close()
    with pytest.raises(WorldError, match="grid: nothing has been simulated yet, or it has been closed"):
        worlds.world.details()


def test_a_demand_that_sumo_refuses_is_named():
    worlds = registry.make("grid", demand=1e9).worlds(1)
    with pytest.raises(WorldError, match=r"could not start \(.*flow.*the cars that the option demand asks for"):
        worlds.reset(WHICH, WHICH)
    worlds.close()


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("era", ["E1", "E3"])
def test_cars_have_flows_constants(name, era):
    """As SUMO has understood them."""
    import libsumo

    worlds = registry.make(name, era=era).worlds(1)
    worlds.reset(WHICH, WHICH)
    read = libsumo.vehicletype
    by_hand = {("grid", "E3"): (2.6, 7.5), ("bottleneck", "E3"): (2.6, 4.5)}
    for kind in {"grid": ["human"], "bottleneck": ["human", "robot"]}[name]:
        assert (read.getAccel(kind), read.getDecel(kind)) == by_hand.get((name, era), (1.0, 1.5))
        assert (read.getTau(kind), read.getMinGap(kind), read.getLength(kind)) == (1.0, 2.5, 5.0)
        assert (read.getMaxSpeed(kind), read.getSpeedFactor(kind), read.getSpeedDeviation(kind)) == (30.0, 1.0, 0.1)
        assert read.getImperfection(kind) == -1  # it has none: the driver model does not know sigma
    worlds.close()


def test_a_copy_made_by_fork_is_told_apart():
    code = """
import os, numpy as np
from pcpo.tasks.host import WorldError
from pcpo.tasks.traffic.grid import grid
worlds, which = grid().worlds(1), np.zeros(1, int)
first = worlds.reset(which, which)
if os.fork() == 0:
    try:
        grid().worlds(1).reset(which, which)
    except WorldError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(np.array_equal(worlds.reset(which, which), first))
"""
    done = python(code)
    assert "this process was forked from one that simulates grid" in done.stdout, done.stderr
    assert done.stdout.split()[-1] == "True"


def test_three_hundred_resets_leak_nothing():
    """Neither memory nor handles nor threads nor processes nor files; each reset begins an episode."""
    code = """
import os, sys, tempfile, threading
import numpy as np
from pathlib import Path
from pcpo.tasks.traffic.bottleneck import bottleneck
from pcpo.tasks.traffic.grid import grid

def held():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    threads, children = len(os.listdir("/proc/self/task")), Path("/proc/thread-self/children").read_text().split()
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir("/proc/self/fd")), threads, len(children)

which = np.zeros(1, int)
for task in (grid(), bottleneck()):
    worlds, told = task.worlds(1), []
    for seed in range(300):
        worlds.reset(which, np.array([seed]))
        for _ in range(3):
            worlds.step(which, np.zeros((1, task.action_space.size)))
        if seed in (99, 299):
            told.append(held())
    (before, *handles), (after, *others) = told
    print(after - before, handles == others, others[-1])
    worlds.close()
print(list(Path(tempfile.gettempdir()).glob("pcpo-traffic-*")))
"""
    with_own_folder = {"PATH": ""}
    done = python(f"import tempfile; tempfile.tempdir = tempfile.mkdtemp()\n{code}", env=with_own_folder)
    assert done.returncode == 0, done.stderr
    *lines, files = done.stdout.splitlines()
    for line in lines:
        megabytes, same, children = line.split()
        assert float(megabytes) < 4
        assert (same, children) == ("True", "0")
    assert files == "[]"


def test_without_sumo_one_line_says_what_to_install_and_all_else_works():
    code = """
import sys
sys.modules["libsumo"] = None
import numpy as np
from pcpo.tasks import registry
from pcpo.tasks.host import WorldError
import pcpo.tasks.gym
for name in registry.names():
    registry.make(name), registry.describe(name)
for name in ("grid", "bottleneck"):
    try:
        registry.make(name).worlds(1)
    except WorldError as error:
        print(error)
"""
    done = python(code)
    assert done.stdout.splitlines() == [
        f"{name} needs SUMO, which is not installed; pip install 'pcpo[traffic]'" for name in TASKS
    ], done.stderr


def test_a_library_that_the_system_lacks_is_named_with_its_package(tmp_path):
    (tmp_path / "libsumo.py").write_text(
        "raise ImportError('libGL.so.1: cannot open shared object file: No such file or directory')"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom pcpo.tasks.traffic.sumo import engine; engine('grid')"
    )
    done = python(code)
    last = done.stderr.splitlines()[-1]
    assert "grid needs SUMO, which is installed but cannot be loaded (libGL.so.1: cannot open" in last
    assert "apt install libgl1 " in last


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<net><edge id='a'", r"grid: .*bad\.net\.xml is no network \(unclosed token"),
        ("<net/>", r"grid: .*bad\.net\.xml is no network \(it holds no network\); install pcpo again"),
        (
            "<net version='1.20'><edge id='a' from='x' to='y'><lane id='a_0' index='0' speed='5'/></edge></net>",
            r"grid: SUMO could not start .*the network .*bad\.net\.xml and the cars",
        ),
    ],
)
def test_a_network_that_is_none_is_named(monkeypatch, tmp_path, content, message):
    """The first two would end the process in SUMO's own code."""
    (tmp_path / "bad.net.xml").write_text(content)
    monkeypatch.setattr(nets, "path", lambda name: tmp_path / "bad.net.xml")
    worlds = registry.make("grid").worlds(1)
    with pytest.raises(WorldError, match=message):
        worlds.reset(WHICH, WHICH)
    worlds.close()
    monkeypatch.undo()
    good = registry.make("grid").worlds(1)
    assert good.reset(WHICH, WHICH).shape == (1, 156)
    good.close()


def test_a_simulation_that_fails_in_a_step_says_so():
    """A car of a type that there is not, in the part of the demand that SUMO reads later."""
    demand = demand_of(ERAS["E1"], 1.0).replace(
        "</routes>", '<vehicle id="late" type="nobody" route="bot0_0" depart="300"/></routes>'
    )
    simulation = Simulation("grid", "grid-e1", demand, 1.0)
    simulation.load(0)
    with pytest.raises(WorldError, match="grid: SUMO failed in a step of the simulation"):  # noqa: PT012
        for _ in range(400):
            simulation.step()
    simulation.close()


def test_a_killed_process_is_named_and_replaced(monkeypatch, tmp_path):
    """As training sees it: the process died of a signal and left no file, and another takes its place."""
    import os
    import signal

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fleet = Processes(registry.make("grid"), 1, 1)
    try:
        rows = np.arange(1)
        fleet.table.seeds[:] = 3
        assert not fleet.run("reset", rows)
        before = fleet.table.observations.copy()
        os.kill(fleet.processes[0], signal.SIGKILL)
        (failure,) = fleet.run("step", rows)
        assert "SIGKILL" in failure.reason
        assert not list(tmp_path.glob("**/*demand*"))
        fleet.replace(failure.worker)
        assert not fleet.run("reset", rows)
        np.testing.assert_array_equal(fleet.table.observations, before)
    finally:
        fleet.close()


def test_sumo_has_nothing_to_warn_of_but_drivers_slower_than_they_enter(capfd):
    """The warnings that are off in training, on."""
    variants = bottleneck.VARIANTS["bottleneck0"], bottleneck.VARIANTS["bottleneck1"]
    for task, net, demand, time_step in (
        ("grid", "grid-e1", demand_of(ERAS["E1"], 1.0), 1.0),
        ("grid", "grid-e3", demand_of(ERAS["E3"], 1.0), 1.0),
        *(("bottleneck", "bottleneck", bottleneck.demand_of(bottleneck.ERAS["E1"], one, 1.0), 0.5) for one in variants),
    ):
        simulation = Simulation(task, net, demand, time_step, warnings=True)
        simulation.load(0)
        for _ in range(100):
            simulation.step()
        simulation.close()
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith(("Warning", "Error"))]
    assert all("speed factor" in line for line in said), said


@pytest.mark.parametrize("name", nets.JUNCTION_RADII)
def test_the_networks_are_what_netconvert_makes_of_our_plain_files(name):
    try:
        built = nets.build(name)
    except FileNotFoundError as error:
        pytest.skip(f"netconvert is not installed: {error}")
    assert built == nets.path(name).read_text()
