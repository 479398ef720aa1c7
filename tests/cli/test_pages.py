"""The pages name everything that can be typed, and every column that is written."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pcpo.cli.compare import Compare
from pcpo.cli.evaluate import Evaluate
from pcpo.cli.plot import Plot
from pcpo.cli.render import Render
from pcpo.cli.report import Report
from pcpo.cli.resume import Resume
from pcpo.cli.train import SETTINGS, _default, _options
from pcpo.core.types import Status
from pcpo.training.metrics import WALL_CLOCK
from tests.training.small import rows_in

DOCS = Path(__file__).parent.parent.parent / "docs"
COMMANDS = {
    "train": _options(),
    "resume": Resume,
    "plot": Plot,
    "compare": Compare,
    "report": Report,
    "evaluate": Evaluate,
    "render": Render,
}
POSITIONAL = {"task": "train", "run": "", "runs": "", "directories": "", "what": ""}


def section(command: str) -> str:
    """What the page says of one command."""
    found = re.search(rf"^## pcpo {command}\b.*?(?=^## |\Z)", (DOCS / "command-line.md").read_text(), re.M | re.S)
    assert found, command
    return found[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_on_the_page_of_the_command_line(command):
    kind: Any = COMMANDS[command]
    names = [f.name for f in dataclasses.fields(kind) if POSITIONAL.get(f.name) not in {"", command}]
    missing = [name for name in names if f"`--{name.replace('_', '-')}" not in section(command)]
    assert names
    assert not missing


@pytest.mark.parametrize("name", SETTINGS)
def test_the_table_of_settings_says_what_the_settings_say(name):
    about = SETTINGS[name]
    values = ", ".join(about.choices) or ("yes, no" if about.kind is bool else "")
    flag = f"--{name.replace('_', '-')}"
    row = f"| `{flag}` | {about.help} | {about.safe or values} | {_default(name)} |"
    assert row in section("train").splitlines()


def test_every_column_of_a_row_is_on_the_page_of_runs(trained):
    page = (DOCS / "runs.md").read_text()
    table = page[page.index("## A row") : page.index("## Going on")]
    assert not [name for name in (*rows_in(trained)[0], *WALL_CLOCK) if f"`{name}`" not in table]
    named = set(re.findall(r"`(\w+)`", table[table.index("| `status`") :].splitlines()[0])) - {"status"}
    assert named == {status.name.lower() for status in Status}


def test_what_lies_in_a_run_is_on_its_page(trained):
    page = (DOCS / "runs.md").read_text()
    there = {path.name + "/" * path.is_dir() for path in trained.iterdir()} - {".lock", "said.out", "said.err"}
    assert not [name for name in there if f"`{name}`" not in page]


def test_the_page_s_way_to_read_a_run_works(trained):
    code = re.findall(r"```python\n(.*?)```", (DOCS / "runs.md").read_text(), re.S)[0]
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(cost.shape)"], capture_output=True, text=True, cwd=trained, check=True
    )
    assert done.stdout == "(12, 2)\n"
