"""The traffic tasks trained, filmed and refused as a user meets them."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pcpo.rl.linear_features import LinearCritics
from pcpo.training.collect_host import HostProgram
from pcpo.training.config import config_for
from pcpo.training.host.fleet import Hands
from pcpo.training.programs import program_for
from tests.tasks.with_sumo import need_sumo
from tests.training.small import assert_same, rows_in

need_sumo()

TINY = ("--updates", "1", "--batch-size", "60", "--task-option", "horizon=30", "--spectrum-every", "0")


def pcpo(*args, **environment):
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "pcpo", *map(str, args)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def test_the_presets_of_the_paper():
    grid, bottleneck = config_for("grid"), config_for("bottleneck")
    for config, batch_size, hidden, cost_lambda in ((grid, 10_000, (16, 16), 0.5), (bottleneck, 25_000, (50, 25), 1.0)):
        (constraint,) = config.constraints
        assert (constraint.limit, constraint.discount, constraint.gae_lambda) == (0.0, 1.0, cost_lambda)
        assert (config.batch_size, config.hidden, config.gamma, config.gae_lambda) == (batch_size, hidden, 0.999, 0.97)
        assert (config.critic, config.bootstrap, config.delta) == ("linear", False, 1e-4)
    # Whole episodes: 25 of the grid, 50 of the bottleneck.
    assert grid.batch_size / 400 == 25
    assert bottleneck.batch_size / 500 == 50


def test_the_number_of_processes_changes_no_bit_of_a_training():
    """Two updates with linear critics, with one process and with two."""
    config = config_for("grid", batch_size=60, task_options={"horizon": 20}, spectrum_every=0, hidden=(4,))

    def train(workers):
        program = program_for(config, hands=Hands(workers))
        assert isinstance(program, HostProgram)
        try:
            state = program.init(config.hyper())
            assert isinstance(state.critics, LinearCritics)
            state, _ = program.update(state, config.hyper())
            return program.update(state, config.hyper())
        finally:
            program.close()

    (one, told), (two, told2) = train(1), train(2)
    assert_same(one, two)
    assert told["status"] == told2["status"]
    assert isinstance(one.critics, LinearCritics)
    assert np.abs(one.critics.weights).max() > 0


def test_trained_and_filmed_from_the_command_line(tmp_path):
    """With an era and thresholds of one's own."""
    run, film = tmp_path / "run", tmp_path / "film.gif"
    options = ("--task-option", "era=E3", "--task-option", "red_limit=3", "--task-option", "cost=phases")
    done = pcpo("train", "grid", *TINY, *options, "-o", run)
    assert done.returncode == 0, done.stderr
    (row,) = rows_in(run)
    assert row["episode_length"] == 30
    assert row["costs"]["cost"] > 0
    done = pcpo("render", run, "-o", film)
    assert done.returncode == 0, done.stderr
    from PIL.GifImagePlugin import GifImageFile

    with GifImageFile(film) as image:
        assert image.size == (832, 928)
        assert image.n_frames == 30 / 2 + 1


def test_without_sumo_one_line_and_no_run(tmp_path):
    """Exit code 2, before anything begins."""
    (tmp_path / "libsumo.py").write_text("raise ModuleNotFoundError(\"No module named 'libsumo'\", name='libsumo')")
    run = tmp_path / "run"
    done = pcpo("train", "bottleneck", "-o", run, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == "pcpo: bottleneck needs SUMO, which is not installed; pip install 'pcpo[traffic]'\n"
    assert not list(run.glob("*"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("era=E2", "era is 'E2'; choose one of E1, E3"),
        ("red_limit=-2", "red_limit of grid is -2; give a finite number above zero, such as 7.0"),
        ("speed=3", "grid has no option 'speed'"),
    ],
)
def test_options_that_there_are_not(tmp_path, option, message):
    done = pcpo("train", "grid", "--task-option", option, "-o", tmp_path / "run")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
