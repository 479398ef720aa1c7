"""`make setup-browser` says what it did, or that it could not; with stand-ins for the programs of the system."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MAKE = shutil.which("make") or ""
pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")


@pytest.fixture
def make(tmp_path):
    """``code, out, err, called = make(id="echo 0")``: only these programs can be found, as lines of shell."""

    def run(**programs: str):
        path = tmp_path / "bin"
        path.mkdir()
        for name, line in programs.items():
            file = path / name.replace("_", "-")
            file.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/called\n{line}\n')
            file.chmod(0o755)
        done = subprocess.run(
            [MAKE, "-f", ROOT / "Makefile", "setup-browser"],
            env={"PATH": str(path)}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        called = (tmp_path / "called").read_text() if (tmp_path / "called").exists() else ""
        return done.returncode, done.stdout, done.stderr, called

    return run


def test_a_browser_that_is_there_is_left_alone(make, tmp_path):
    code, out, _, called = make(chromium="", apt_get="")
    assert code == 0
    assert out == f"nothing to do: there is {tmp_path}/bin/chromium\n"
    assert "apt-get" not in called


@pytest.mark.parametrize(
    ("programs", "reason"),
    [
        ({}, "there is no apt-get here"),
        ({"apt_get": "", "id": "echo 1000"}, "needs root; try sudo make setup-browser"),
        ({"apt_get": "exit 100", "id": "echo 0"}, "apt-get failed"),
        ({"apt_get": "", "id": "echo 0"}, "brought no program called chromium"),
    ],
)
def test_where_it_cannot_it_says_so_and_what_follows(make, programs, reason):
    code, out, err, _ = make(**programs)
    assert code != 0
    assert out == ""
    assert reason in err
    assert "the report page was not opened in a browser" in err


def test_it_installs_and_says_what(make, tmp_path):
    install = f"""
case "$1" in install)
  echo '#!/bin/sh' > {tmp_path}/bin/chromium
  echo 'echo Chromium 1.2' >> {tmp_path}/bin/chromium
  /bin/chmod +x {tmp_path}/bin/chromium
esac"""
    code, out, err, called = make(apt_get=install, id="echo 0")
    assert (code, err) == (0, "")
    assert out == f"installed: {tmp_path}/bin/chromium, Chromium 1.2\n"
    assert [line.split()[1] for line in called.splitlines() if "apt-get" in line] == ["update", "install"]
