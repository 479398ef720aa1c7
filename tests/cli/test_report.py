"""`pcpo report` as a user types it."""

import re
import subprocess
import sys

import pytest

from tests.experiments.subjects import config, on_disk


@pytest.fixture
def runs(tmp_path):
    """Three runs below one directory."""
    for name, settings in (("a", config()), ("b", config(algorithm="cpo")), ("c", config(task="grid"))):
        on_disk(tmp_path / "runs" / name, settings)
    return tmp_path / "runs"


def refused(answer, *parts):
    code, out, err = answer
    assert code == 2
    assert out == ""
    assert err.startswith("pcpo: ")
    assert err.count("\n") == 1
    assert not [part for part in parts if part not in err], err


def test_a_page_about_some_runs(pcpo, runs, tmp_path):
    out = tmp_path / "new" / "page.html"
    code, said, err = pcpo("report", runs / "a", runs / "b", "-o", out, "--title", "Two <runs>")
    assert (code, said, err) == (0, f"report   {out}: 2 runs\n", "")
    assert "<title>Two &lt;runs&gt;</title>" in out.read_text()


def test_without_a_name_the_page_is_here(pcpo, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, said, _ = pcpo("report", "runs")
    assert (code, said) == (0, "report   report.html: 3 runs\n")
    assert (tmp_path / "report.html").exists()


def test_a_real_run(pcpo, trained, tmp_path):
    code, _, err = pcpo("report", trained, "-o", tmp_path / "page.html")
    assert (code, err) == (0, "")
    text = (tmp_path / "page.html").read_text()
    titles = re.findall(r"<h4><bdi>(.*?)</bdi>", text)
    assert len(titles) == 4 + 8  # the curves, and everything that can be audited


def test_what_cannot_be_shown_is_told_here_and_on_the_page(pcpo, runs, tmp_path):
    (runs / "a" / "metrics.jsonl").write_text("{\n")
    on_disk(runs / "d", config(updates=7), updates=2)
    out = tmp_path / "page.html"
    code, said, err = pcpo("report", runs, "-o", out)
    assert code == 0
    assert said == f"report   {out}: 3 runs\n"
    first, second = err.splitlines()
    assert first.startswith("pcpo: note: a is not shown: ")
    assert "damaged in line 1" in first
    assert second == "pcpo: note: d is not finished: 2 of 7 updates; it was stopped, or is still training"
    page = out.read_text()
    assert "Not shown: </strong><bdi>a</bdi>" in page
    assert "2 of 7 updates" in page


def test_what_cannot_be_done_is_one_line_and_nothing_is_written(pcpo, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing").mkdir()
    before = sorted(tmp_path.rglob("*"))
    refused(pcpo("report"), "needs the directory of a run")
    refused(pcpo("report", "runs/a", "nowhere"), "nowhere does not exist")
    refused(pcpo("report", "nothing"), "nothing is no run")
    refused(pcpo("report", "runs/a", tmp_path / "runs" / "a"), "is given twice")
    refused(pcpo("report", "runs", "-o", "page.pdf"), "ends in '.pdf'", ".html")
    refused(pcpo("report", "runs", "-o", "nothing"), "is a directory")
    for name in ("a", "b", "c"):
        (runs / name / "metrics.jsonl").write_text("")
    refused(pcpo("report", "runs", "-o", "new/page.html"), "no measurements yet", "and 2 more")
    assert sorted(tmp_path.rglob("*")) == before


def test_it_does_without_matplotlib(runs, tmp_path):
    """Runs in a process of its own, where matplotlib cannot be imported."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pcpo import cli\n"
        f"sys.exit(cli.main(['report', {str(runs)!r}, '-o', {str(tmp_path / 'page.html')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").exists()
