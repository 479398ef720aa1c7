"""The examples run as they are, only shorter, in processes of their own, with the defaults that a reader has.

And the pages that explain them show the very code that runs here.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [
    ROOT / "docs" / "environments" / f"{name}.md" for name in ("own-robot", "jax-environments", "safety-gymnasium")
]
NEEDS = {"gymnax": "gymnax", "flax.linen": "flax", "equinox": "equinox"}
QUICK = {"UPDATES": 2, "BATCH": 400}
COMPILE_QUICKLY = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "JAX_PLATFORMS": "cpu"}


def shortened(source: str) -> str:
    """The same script with fewer and smaller updates."""
    for name, value in QUICK.items():
        source = re.sub(rf"^{name} = [\d_]+$", f"{name} = {value}", source, flags=re.MULTILINE)
    return source


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    for module in (module for module in NEEDS if module in example.read_text()):
        pytest.importorskip(module)
    script = tmp_path / example.name
    script.write_text(shortened(example.read_text()))
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", script.name], capture_output=True, text=True,
        check=False, cwd=tmp_path, env={**os.environ, **COMPILE_QUICKLY},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "nan" not in done.stdout.lower()


def test_every_example_is_short_says_what_it_is_and_stands_on_a_page():
    pages = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    for example in EXAMPLES:
        source = example.read_text()
        assert source.startswith('"""')
        assert len(source.splitlines()) <= 60
        assert f"examples/{example.name}" in pages, example.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_a_page_is_code_that_runs(page, tmp_path):
    """Each block is a part of an example, word for word, or runs by itself; what needs CRAX is only read."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    examples = "\n".join(example.read_text() for example in EXAMPLES)
    for block in blocks:
        if block.strip("\n") in examples:
            continue
        compile(block, page.name, "exec")
        if "crax" in block:
            continue
        run = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_on_a_page_exist(page):
    """Of `pcpo train`, as its help lists them."""
    from pcpo.cli.train import SETTINGS

    others = {"--limit", "--cost", "--cost-discount", "--cost-gae-lambda", "--max-episode-steps", "--out"}
    known = {f"--{name.replace('_', '-')}" for name in SETTINGS} | others
    for command in re.findall(r"pcpo train ([^`\n]*)", page.read_text()):
        assert set(re.findall(r"--[a-z-]+", command)) <= known, command
