"""Trains once, small, as a user does, for all who look at runs."""

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from pcpo import cli
from tests.training.conftest import compilation_cache, compiled_once

__all__ = ["compilation_cache", "compiled_once", "pcpo", "powerless", "run", "trained"]

SMALL = ["--batch-size", "130", "--hidden", "4", "--spectrum-every", "3"]


@pytest.fixture
def pcpo(capsys):
    """``code, out, err = pcpo("plot", directory)``: one command line, run in this process."""

    def run(*args):
        code = cli.main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def train(*args):
    """Exit code and output of a training."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(["train", *map(str, args)])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run of two seeds over twelve updates. Nobody may change it."""
    directory = tmp_path_factory.mktemp("runs") / "kl"
    code, out, err = train("point-circle", *SMALL, "--seeds", 2, "--updates", 12, "--out", directory)
    assert code == 0, err
    (directory / "said.out").write_text(out)
    (directory / "said.err").write_text(err)
    return directory


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(trained, tmp_path / "copy" / "kl"))


@pytest.fixture
def powerless():
    """Somebody who may not write everywhere, even where the tests are run by root; and a place that anybody can reach.

    Within the test, ``directory`` can be made read-only with chmod.
    """
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        place.chmod(0o777)
        if os.geteuid() != 0:
            yield place
            return
        os.seteuid(65534)
        try:
            yield place
        finally:
            os.seteuid(0)
