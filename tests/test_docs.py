"""The pages are true: their code runs, their links lead somewhere, and the functions they name exist."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)")
NAME = re.compile(r"`((?:pcpo\.)?(?:core|rules|rl|tasks|training|experiments|cli)(?:\.\w+)+)`")


def names_of(page: Path) -> set[str]:
    return {name.removeprefix("pcpo.") for name in NAME.findall(page.read_text())}


def exists(name: str) -> bool:
    """Whether a dotted name under pcpo can be imported, as a module or as something inside one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(["pcpo", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(thing, attribute):
                return False
            thing = getattr(thing, attribute)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(page):
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_functions_that_a_page_names_exist(page):
    missing = [name for name in names_of(page) if not exists(name)]
    assert not missing


def test_a_wrong_name_would_be_found():
    assert exists("core.cg.conjugate_gradient")
    assert not exists("core.cg.conjugate_gradients")
    assert not exists("core.nothing.at_all")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_code_on_a_page_runs_and_prints_what_it_says(page, tmp_path):
    """In a process of its own, with the defaults a reader has; a comment after ``print`` is what it prints."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        run = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        printed = iter(run.stdout.splitlines())
        for line in block.splitlines():
            if line.startswith("print"):
                output = next(printed)
                if "  #" in line:
                    promised = line.rsplit("  # ", 1)[1].split(":")[0].strip()
                    assert output.startswith(promised), (output, promised)


@pytest.mark.parametrize("package", ["pcpo.core", "pcpo.rules"])
def test_every_public_name_is_documented(package):
    module = importlib.import_module(package)
    public = [name for name, thing in vars(module).items() if not name.startswith("_") and hasattr(thing, "__module__")]
    assert len(public) >= 5
    text = "\n".join(page.read_text() for page in PAGES)
    undocumented = [name for name in public if not vars(module)[name].__doc__ or name not in text]
    assert not undocumented


@pytest.mark.parametrize("rule", ["trpo", "pcpo", "cpo", "pdo", "fpo"])
def test_every_rule_has_a_page_with_a_picture_and_a_table_of_functions(rule):
    page = ROOT / "docs" / "algorithms" / f"{rule}.md"
    assert "../figures/geometry-" in page.read_text()
    assert len(names_of(page)) >= 1
    assert "When to use" in page.read_text() or "Which projection" in page.read_text()
