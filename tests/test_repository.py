"""What must hold for the repository as a whole: it installs anywhere, and its parts name the same versions."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import pcpo

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+_-]*")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def forbidden() -> dict[str, re.Pattern[str]]:
    """What ties a file to one machine or one registry, put together here so that this file does not hold it."""
    hosts = [("py", "pi.org"), ("python", "hosted.org"), ("npm", "js.org"), ("npm", "js.com"), ("crates", ".io")]
    hosts += [("deb.", "debian.org"), ("unp", "kg.com"), ("js", "delivr.net"), ("conda", ".anaconda.org")]
    folders = [("wo", "rk"), ("ro", "ot"), ("home", "/[a-z]+"), ("Users", "/[A-Za-z]+"), ("op", "t/py")]
    return {
        "a registry's or a CDN's host": re.compile("|".join(re.escape(a + b) for a, b in hosts), re.IGNORECASE),
        "a path of one machine": re.compile(r"(?<![\w.~$}-])/(" + "|".join(a + b for a, b in folders) + r")\b"),
        "a version manager's folder": re.compile("|".join([r"\.py" + "env/", r"\.libr" + "ary/"])),
    }


def text_files() -> list[Path]:
    """The files that git tracks or would add, as far as they are text."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


def complaints(text: str) -> list[str]:
    return [
        f"{number}: {what}: {found.group()}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in forbidden().items()
        for found in pattern.finditer(line)
    ]


def test_no_file_names_a_registry_host_or_a_machine():
    found = [
        f"{path.relative_to(ROOT)}:{complaint}"
        for path in text_files()
        for complaint in complaints(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert not found, "\n".join(found)


def test_such_names_are_found_where_they_are_planted():
    folder, host = "/" + "root", "files." + "python" + "hosted.org"
    assert complaints(f"see {folder}/x") == [f"1: a path of one machine: {folder}"]
    assert complaints(f"\nurl = https://{host}/x") == ["2: a registry's or a CDN's host: " + "python" + "hosted.org"]
    assert complaints("the root of tests/root/home, in $HOME/work and ./work") == []


def test_the_version_is_the_same_everywhere():
    assert pcpo.__version__ == PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(PROJECT['version'])}$", citation, re.MULTILINE)


def test_the_changelog_has_a_place_for_what_is_new():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"Unreleased", PROJECT["version"]} & set(headings)


def test_constraints_pin_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not PIN.fullmatch(line)] == []
    names = [normalised(line.split("==")[0]) for line in pins]
    assert len(names) == len(set(names))


def test_every_direct_dependency_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {normalised(line.split("==")[0]) for line in lines if not line.startswith("#")}
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["dev"], *extras["docs"]]
    names = {normalised(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in wanted}
    assert names - pinned == set()
