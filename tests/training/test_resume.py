"""Going on where a run stopped, bit for bit: whatever it was that stopped it, and whenever."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from pcpo.training import checkpoint, loop
from pcpo.training.files import RunError
from pcpo.training.programs import program_for, shape_of_state
from pcpo.training.run import Run
from tests.training.disk import FULL, READ_ONLY, Disk, Killed
from tests.training.small import assert_same, files_in, rows_in, small, without_clock

UPDATES = 5
OFTEN = loop.Manner(checkpoint_every=0.0)
"""A checkpoint after every look."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A look after every update; and no waiting for the disk, which matters to power cuts alone."""
    monkeypatch.setattr(loop, "LOOK_EVERY", 1e-6)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def config():
    return small(seeds=2, updates=UPDATES)


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    """A run that nothing has ever interrupted."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    loop.train(config, directory)
    assert len(rows_in(directory)) == 2 * UPDATES
    return directory


def state_of(directory: Path):
    run = Run.open(directory)
    return run.latest_state(shape_of_state(program_for(run.config), run.config))


def assert_equal_runs(directory: Path, other: Path):
    """Rows as anybody reads them, none lost, none doubled, and the state that goes on from them."""
    rows = rows_in(directory)
    assert [(row["update"], row["seed"]) for row in rows] == [
        (update, seed) for update in range(rows[-1]["update"] + 1) for seed in (0, 1)
    ]
    assert without_clock(rows) == without_clock(rows_in(other))
    assert_same(state_of(directory).tree, state_of(other).tree)
    assert state_of(directory).meta["totals"] == state_of(other).meta["totals"]
    assert not list(directory.rglob("*.tmp"))


# Killed.


def train_or_resume(config, directory: Path):
    """What a person does after a kill: goes on, or begins where there is nothing to go on with."""
    try:
        Run.open(directory)
    except RunError:
        loop.train(config, directory, OFTEN)
        return
    loop.resume(directory, OFTEN)


def test_killed_at_any_moment_of_writing_a_run_goes_on_to_the_same_rows(config, whole, tmp_path, monkeypatch):
    """At each of all the things that a training does to files, and half-way through each writing."""
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path / "counted")
        loop.train(config, tmp_path / "counted", OFTEN)
    assert disk.count > 8 * UPDATES  # else the test has lost sight of what is written
    for moment in range(1, disk.count + 1):
        directory = tmp_path / str(moment)
        with monkeypatch.context() as patch:
            Disk(patch, directory, moment)
            with pytest.raises(Killed):
                loop.train(config, directory, OFTEN)
        train_or_resume(config, directory)
        assert_equal_runs(directory, whole)


@pytest.fixture
def half(config, tmp_path):
    """A run that was stopped after three updates, and has half a row of the fourth."""
    directory = tmp_path / "half"
    loop.train(config.replace(updates=3), directory, OFTEN)
    with (directory / "metrics.jsonl").open("ab") as file:
        file.write(b'{"update": 3, "seed": 0, "env_st')
    return directory


def test_killed_at_any_moment_of_going_on_it_can_be_gone_on_with(config, whole, half, tmp_path, monkeypatch):
    def go_on(directory):
        return loop.resume(directory, OFTEN, updates=UPDATES)

    shutil.copytree(half, tmp_path / "counted")
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path / "counted")
        go_on(tmp_path / "counted")
    assert disk.count > 8 * (UPDATES - 3)
    for moment in range(1, disk.count + 1, 2):
        directory = tmp_path / str(moment)
        shutil.copytree(half, directory)
        with monkeypatch.context() as patch:
            Disk(patch, directory, moment)
            with pytest.raises(Killed):
                go_on(directory)
        go_on(directory)
        assert_equal_runs(directory, whole)


def test_half_a_row_is_no_row_for_readers(half):
    assert Run.open(half).updates == 3
    assert Run.open(half).column("discounted_return").shape == (3, 2)


def test_rows_of_one_seed_without_the_other_are_no_update(half):
    lines = (half / "metrics.jsonl").read_bytes().split(b"\n")
    (half / "metrics.jsonl").write_bytes(b"\n".join(lines[:5]) + b"\n")
    assert Run.open(half).updates == 2


# What the arithmetic does not depend on.


def test_neither_looks_nor_checkpoints_are_part_of_the_arithmetic(config, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LOOK_EVERY", 100.0)  # all in three chunks
    loop.train(config, tmp_path / "run")
    assert_equal_runs(tmp_path / "run", whole)
    assert checkpoint.updates(tmp_path / "run" / "checkpoints") == [0, UPDATES]


def test_a_run_in_parts_is_the_run_in_one(config, whole, tmp_path):
    directory = tmp_path / "run"
    loop.train(config.replace(updates=1), directory)
    for updates in (2, 5, UPDATES):
        assert loop.resume(directory, updates=updates).updates == updates
    assert_equal_runs(directory, whole)
    again = files_in(directory)
    assert loop.resume(directory).updates == UPDATES  # nothing is left to do
    assert files_in(directory) == again


def test_fewer_updates_than_there_are_is_refused(whole):
    before = files_in(whole)
    with pytest.raises(RunError, match=rf"updates is 2, but .* has {UPDATES} already; give a larger number"):
        loop.resume(whole, updates=2)
    assert files_in(whole) == before


# Another limit.


def count_compilations(monkeypatch) -> list[str]:
    """What is compiled from here on."""
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if "backend_compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return compiled


def test_another_limit_holds_from_there_on_and_compiles_nothing(config, whole, half, monkeypatch):
    compiled = count_compilations(monkeypatch)
    ended = loop.resume(half, updates=UPDATES, limits={"cost": 1.5})
    assert ended.updates == UPDATES
    assert not compiled
    rows, old = rows_in(half), rows_in(whole)
    assert without_clock(rows[:6]) == without_clock(old[:6])
    assert [row["limits"]["cost"] for row in rows] == [5.0] * 6 + [1.5] * 2 * (UPDATES - 3)
    for row in rows[6:]:
        assert row["violations"]["cost"] == pytest.approx(max(0.0, row["costs"]["cost"] - 1.5), abs=1e-5)
    assert without_clock(rows[6:8]) != without_clock(old[6:8])  # the first update that knows of it
    assert json.loads((half / "config.json").read_text())["changes"] == [
        {"from_update": 3, "limits": {"cost": 1.5}, "updates": UPDATES}
    ]
    assert Run.open(half).config.limits == {"cost": 1.5}
    assert Run.open(half).record.started_with.limits == {"cost": 5.0}


def test_another_limit_for_no_update_at_all_is_refused(whole):
    before = files_in(whole)
    with pytest.raises(RunError, match=rf"has made all of its {UPDATES} updates.*such as --updates {2 * UPDATES}"):
        loop.resume(whole, limits={"cost": 1.5})
    assert files_in(whole) == before


def test_a_changed_limit_survives_going_back_behind_it(half, tmp_path):
    """The newest checkpoint is damaged after the change, so that the updates before it are made again."""
    loop.resume(half, OFTEN, updates=5, limits={"cost": 1.5})
    expected = without_clock(rows_in(half))
    shutil.copytree(half, tmp_path / "damaged")
    newest, before = reversed(checkpoint.updates(half / "checkpoints"))
    assert (newest, before) == (5, 4)
    (tmp_path / "damaged" / "checkpoints" / "update-00000005.safetensors").write_bytes(b"")
    said = []
    manner = loop.Manner(Saying(said))
    loop.resume(tmp_path / "damaged", manner)
    assert without_clock(rows_in(tmp_path / "damaged")) == expected
    assert "update-00000005.safetensors is damaged" in said[0]
    assert said[1] == "going on from the checkpoint before, after update 4"


class Saying(loop.Silent):
    """Remembers what it is told to say."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def say(self, text: str) -> None:
        self.said.append(text)


# Trouble with the disk.


def test_on_a_full_disk_nothing_that_was_there_is_lost(config, whole, tmp_path, monkeypatch):
    """At each writing in turn the disk is full; once there is room again, the run goes on."""
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path / "counted", error=FULL)
        loop.train(config, tmp_path / "counted", OFTEN)
    for moment in range(1, disk.count + 1, 3):
        directory = tmp_path / str(moment)
        with monkeypatch.context() as patch:
            Disk(patch, directory, moment, FULL)
            with pytest.raises(OSError, match="No space left on device"):
                loop.train(config, directory, OFTEN)
        if directory.exists() and (directory / "metrics.jsonl").exists():
            content = (directory / "metrics.jsonl").read_bytes()
            assert not content or content.endswith(b"\n")  # half a row has been taken back
            rows = rows_in(directory)
            assert without_clock(rows) == without_clock(rows_in(whole)[: len(rows)])
        train_or_resume(config, directory)
        assert_equal_runs(directory, whole)


def test_a_run_that_may_only_be_read_is_left_as_it_is(half, monkeypatch):
    before = files_in(half)
    with monkeypatch.context() as patch:
        Disk(patch, half, 1, READ_ONLY)
        with pytest.raises(OSError, match="Read-only file system"):
            loop.resume(half, updates=UPDATES)
    after = files_in(half)
    assert {name for name in before if before[name] != after[name]} <= {"metrics.jsonl"}  # the half row


# What does not belong together.


def edit(path: Path, change: Any) -> None:
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))


def spoil(run: Path) -> dict[str, Any]:
    """All that can be wrong with a run's files, and what is said then."""
    config, metrics = run / "config.json", run / "metrics.jsonl"
    newest, arrays = run / "checkpoints" / "update-00000003.json", run / "checkpoints" / "update-00000003.safetensors"

    def all_records(change: Any) -> None:
        for path in (run / "checkpoints").glob("*.json"):
            edit(path, change)

    def flip() -> None:
        for path in (run / "checkpoints").glob("*.safetensors"):
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)

    def cut() -> None:
        for path in (run / "checkpoints").glob("*.safetensors"):
            path.write_bytes(path.read_bytes()[:-7])

    def remove(pattern: str) -> None:
        for path in list((run / "checkpoints").glob(pattern)):
            path.unlink()

    return {
        "config.json is damaged: it is not JSON": lambda: config.write_text("{"),
        "config.json is damaged: it holds no JSON object": lambda: config.write_text("[1]"),
        "config.json has format 2, written by pcpo 0.1.0": lambda: edit(config, lambda c: c.update(format=2)),
        "config.json has format None": lambda: config.write_text("{}"),
        "config.json is damaged: it is not what pcpo wrote": lambda: edit(config, lambda c: c.pop("changes")),
        "has no setting delta": lambda: edit(config, lambda c: c["config"].pop("delta")),
        "delta is 99, but must be between 1e-12 and 10": lambda: edit(config, lambda c: c["config"].update(delta=99)),
        "has a setting eta that this version does not know; this is pcpo 0.1.0: install pcpo 99.0 or newer": lambda: (
            edit(config, lambda c: (c.update(pcpo="99.0"), c["config"].update(eta=1)))
        ),
        "written by pcpo 0.0.1 and has no setting delta; this is pcpo 0.1.0: install pcpo 0.0.1 to go on": lambda: edit(
            config, lambda c: (c.update(pcpo="0.0.1"), c["config"].pop("delta"))
        ),
        "belongs to another configuration than": lambda: edit(config, lambda c: c["config"].update(delta=0.5)),
        "checkpoints holds no checkpoint; train again with --overwrite": lambda: remove("*"),
        "update-00000003.safetensors is missing": lambda: remove("*.safetensors"),
        "update-00000003.safetensors is damaged: its hash is not": flip,
        "safetensors is damaged: its hash is not the one in update-00000003.json": cut,
        "update-00000003.json has been changed since it was written": lambda: all_records(
            lambda c: c["totals"].update(env_steps=[0, 0])
        ),
        "update-00000003.json has format 7, written by pcpo 0.1.0": lambda: all_records(lambda c: c.update(format=7)),
        "bytes, but": lambda: metrics.write_bytes(b""),
    } | {"no other name": lambda: (newest, arrays)}


COMPLAINTS = [message for message in spoil(Path()) if message != "no other name"]


@pytest.mark.parametrize("message", COMPLAINTS)
def test_files_that_are_damaged_or_changed_are_refused_and_left_alone(message, half):
    spoil(half)[message]()
    before = files_in(half)
    with pytest.raises(RunError) as refused:
        loop.resume(half, updates=UPDATES)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert files_in(half) == before


def test_a_damaged_row_is_named_and_repaired_by_going_on(config, whole, half):
    """Behind the newest checkpoint, where going on writes them again; not before, where nothing could."""
    with (half / "metrics.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(RunError, match=r"metrics.jsonl is damaged in line 7; pcpo resume repairs what it can"):
        _ = Run.open(half).rows
    loop.resume(half, updates=UPDATES)
    assert_equal_runs(half, whole)


def test_two_processes_do_not_write_to_one_run(half):
    from pcpo.training.run import old_run

    with old_run(half), pytest.raises(RunError, match=r"is being written by process \d+; wait for it or stop it"):
        loop.resume(half, updates=UPDATES)


# Beginning where something is.


def test_a_run_is_overwritten_only_when_asked_and_then_nothing_of_it_stays(config, whole, half):
    (half / "mine.txt").write_text("mine")
    (half / "plots").mkdir()
    (half / "plots" / "curves.png").write_bytes(b"old")
    before = files_in(half)
    with pytest.raises(RunError, match=r"holds a run already; go on with it \(pcpo resume .*--overwrite"):
        loop.train(config, half)
    assert files_in(half) == before
    loop.train(config, half, overwrite=True)
    assert_equal_runs(half, whole)
    assert (half / "mine.txt").read_text() == "mine"
    assert not (half / "plots" / "curves.png").exists()


def test_a_directory_with_somebody_elses_config_is_not_overwritten(config, tmp_path):
    (tmp_path / "config.json").write_text('{"theirs": 1}')
    with pytest.raises(RunError, match=r"holds a config.json that is not a run's; choose another --out"):
        loop.train(config, tmp_path, overwrite=True)
    assert json.loads((tmp_path / "config.json").read_text()) == {"theirs": 1}


def test_a_file_is_no_directory(config, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"--out is .*file, which is a file; give a directory"):
        loop.train(config, tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_run_is_read_with_json_and_numpy_alone(whole):
    """As docs say; nothing of pcpo is needed."""
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    cost = np.array([row["costs"]["cost"] for row in rows]).reshape(-1, 2)
    np.testing.assert_array_equal(cost, Run.open(whole).column("costs", "cost"))
    plain = json.loads((whole / "config.json").read_text())
    assert plain["config"]["task"] == "point-circle"
    assert {"pcpo", "python", "jax", "numpy", "device", "cores"} <= set(plain["versions"])
