"""The pages of the tasks say what the tasks do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pcpo.tasks.gym import identifier
from pcpo.tasks.registry import make, names, options_of, preset

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("name", names())
def test_a_page_has_the_numbers_of_its_task(name):
    text, task = (DOCS / "tasks" / f"{name}.md").read_text(), make(name)
    assert f"`{name}`" in text
    assert f"`{identifier(name)}`" in text
    assert f"| {task.horizon} steps" in text
    for cost, limit in preset(name).limits.items():
        assert f"`{cost}`" in text
        assert f"at most {limit:g}" in text
    options = next(line for line in text.splitlines() if line.startswith("| options"))
    for option, default in options_of(name).items():
        assert f"`{option}` ({shown(default)})" in options


def shown(default):
    """As a user writes it."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f'"{default}"' if isinstance(default, str) else f"{default:g}"


@pytest.mark.parametrize("name", names())
def test_the_code_of_a_page_runs_and_prints_what_it_says(name):
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "tasks" / f"{name}.md").read_text(), re.DOTALL):
        run = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        promised = [line.rsplit("  # ", 1)[1] for line in block.splitlines() if line.startswith("print")]
        assert promised
        assert run.stdout.splitlines() == promised
