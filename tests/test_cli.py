"""The command line as a user meets it: what it says, where, and with which exit code."""

import inspect
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import pcpo
from pcpo import cli
from pcpo.cli import parsing, reproduce
from pcpo.experiments import bounds, geometry, optimization_path

PATH = "reproduce optimization-path"
BEYOND = [  # what is typed, and what the one line must contain: what was given, and what to try
    ("", "repoduce x", ["'repoduce'", "did you mean reproduce?"]),
    ("", "fly", ["'fly'", "try ", "reproduce"]),
    ("", "--versoin", ["'--versoin'", "did you mean --version?"]),
    ("", "-x", ["'-x'", "try --help or --version"]),
    ("reproduce", "", ["needs the name", "pcpo reproduce --list"]),
    ("reproduce", "optimisation-path", ["'optimisation-path'", "did you mean optimization-path?"]),
    ("reproduce", "path", ["'path'", "did you mean optimization-path?"]),
    ("reproduce", "qqq", ["'qqq'", "pcpo reproduce --list"]),
    ("reproduce", "-o here geometry", ["'-o'", "pcpo reproduce NAME -o DIR"]),
    ("reproduce", "--list all", ["'all'", "pcpo reproduce --list"]),
    (PATH, "--dleta 1", ["'--dleta'", "did you mean --delta?"]),
    (PATH, "--dleta=1", ["'--dleta'", "did you mean --delta?"]),
    (PATH, "--problems 10", ["'--problems'", "--delta, --steps or --start"]),
    (PATH, "-q", ["'-q'", "try --out, --delta, --steps or --start"]),
    (PATH, "more", ["'more'", "pcpo reproduce optimization-path --help"]),
    (PATH, "--delta", ["--delta", "missing value", "pcpo reproduce optimization-path --help"]),
    (PATH, "-o", ["-o", "missing value", "pcpo reproduce optimization-path --help"]),
    (PATH, "--delta small", ["--delta is 'small'", "not a number", "0.001"]),
    (PATH, "--delta 0", ["--delta is 0", "between 1e-12 and 1", "0.001"]),
    (PATH, "--delta -1e-3", ["--delta is -1e-3", "between"]),
    (PATH, "--delta nan", ["--delta is nan", "between"]),
    (PATH, "--delta inf", ["--delta is inf", "between"]),
    (PATH, "--steps 0", ["--steps is 0", "between 1 and 20000", "2000"]),
    (PATH, "--steps 1e9", ["--steps is '1e9'", "not a whole number"]),
    (PATH, "--steps 1.5", ["--steps is '1.5'", "not a whole number"]),
    (PATH, "--steps 99999999", ["--steps is 99999999", "between"]),
    (PATH, "--start 1", ["--start", "missing value", "2"]),
    (PATH, "--start 1 b", ["--start is 'b'", "--start 0.5 -2"]),
    (PATH, "--start 1 -1e9", ["--start is -1e9", "between -100 and 100"]),
    ("reproduce bounds", "--problems 1", ["--problems is 1", "between 10 and 20000"]),
    ("reproduce bounds", "--seed -1", ["--seed is -1", "between 0 and"]),
    ("reproduce geometry", "--delta 1", ["'--delta'", "try --out"]),
]


def run(capsys, line):
    """Exit code, stdout and stderr of one command line, run in this process."""
    code = cli.main(line.split() if isinstance(line, str) else line)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def assert_refused(result, *parts):
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("pcpo: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert len(err) < 240
    assert not [part for part in parts if part not in err], err
    assert not set("╭│╰\x1b") & set(err)


@pytest.fixture
def fake(monkeypatch):
    """An experiment ``fake`` that writes what it is told to."""

    @dataclass(frozen=True)
    class Fake:
        """Does nothing, quickly."""

        out: reproduce.Out = Path("runs/fake")
        text: str = "{}"
        """Contents of the file with the numbers. Safe: JSON."""

        def run(self):
            reproduce.logging.getLogger("pcpo.experiments.fake").info("working")
            files = [self.out / name for name in ("a.png", "a.svg", "numbers.json")]
            for file in files:
                file.write_text(self.text)
            return files

    monkeypatch.setitem(reproduce.EXPERIMENTS, "fake", Fake)
    return Fake


# What cannot be done.


@pytest.mark.parametrize(("command", "rest", "parts"), BEYOND, ids=[f"{c} {r}".strip() for c, r, _ in BEYOND])
def test_a_mistake_ends_with_code_2_and_one_line_that_helps(command, rest, parts, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(run(capsys, f"{command} {rest}"), *parts)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", ["20", "200"])
def test_mistakes_that_tyro_finds_are_one_line_on_any_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert_refused(run(capsys, f"{PATH} --start 1"), "--start", "pcpo reproduce optimization-path --help")


def test_on_a_terminal_without_boxes_it_is_one_line_as_well(tmp_path):
    for encoding in ("ascii", "utf-8"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = python("-m", "pcpo", *f"{PATH} --delta".split(), cwd=tmp_path, env=environment)
        assert_refused((done.returncode, done.stdout, done.stderr), "pcpo: missing value for argument '--delta'.")


def test_a_mistake_of_an_unforeseen_kind_is_still_one_line(capsys, monkeypatch):
    def refuse(*_, **__):
        sys.exit(2)

    monkeypatch.setattr(parsing.tyro, "cli", refuse)
    assert_refused(run(capsys, f"{PATH} --delta 1"), "--delta 1", "pcpo reproduce optimization-path --help")


def test_a_file_is_no_directory(fake, capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    assert_refused(run(capsys, ["reproduce", "fake", "-o", str(file)]), "file", "is a file", "give a directory")
    assert_refused(
        run(capsys, ["reproduce", "fake", "-o", str(file / "x")]),
        "cannot be written",
        "give another directory with --out",
    )
    assert file.read_text() == "mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user may write anywhere")
def test_a_directory_that_may_not_be_written(fake, capsys, tmp_path):
    tmp_path.chmod(0o500)
    assert_refused(
        run(capsys, ["reproduce", "fake", "-o", str(tmp_path)]),
        "permission denied",
        "give another directory with --out",
    )
    assert_refused(
        run(capsys, ["reproduce", "fake", "-o", str(tmp_path / "x")]),
        "permission denied",
        "give another directory with --out",
    )


def test_a_file_of_an_earlier_run_that_cannot_be_replaced(fake, capsys, tmp_path):
    (tmp_path / "a.svg").mkdir()
    code, out, err = run(capsys, ["reproduce", "fake", "-o", str(tmp_path)])
    progress, line = err.splitlines(keepends=True)
    assert progress == "working\n"
    assert_refused((code, out, line), "a.svg cannot be written", "is a directory", "give another directory with --out")


def test_trouble_with_files_elsewhere_is_not_blamed_on_the_user(fake, monkeypatch, tmp_path):
    monkeypatch.setattr(fake, "run", lambda _: (tmp_path / "missing" / "font.ttf").read_bytes())
    with pytest.raises(FileNotFoundError):
        cli.main(["reproduce", "fake", "-o", str(tmp_path / "out")])


def test_an_interruption_is_one_line_too(fake, capsys, monkeypatch, tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fake, "run", interrupt)
    assert run(capsys, ["reproduce", "fake", "-o", str(tmp_path)]) == (130, "", "pcpo: interrupted\n")


# What it says of itself.


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"pcpo {pcpo.__version__}\n", "")


@pytest.mark.parametrize("line", ["", "-h", "--help"])
def test_the_first_help_names_every_command(line, capsys):
    code, out, err = run(capsys, line)
    assert (code, err) == (0, "")
    assert all(f"\n  {command} " in out for command in cli.COMMANDS)


@pytest.mark.parametrize("line", ["reproduce --list", "reproduce --help", "reproduce -h"])
def test_experiments_are_listed_with_what_they_are(line, capsys):
    code, out, err = run(capsys, line)
    assert (code, err) == (0, "")
    for name, options in reproduce.EXPERIMENTS.items():
        assert f"  {name}  " in out
        assert (options.__doc__ or "").split()[0] in out
    in_one_line = " ".join(out.split())
    assert ("hours on two cores" in in_one_line) == ("--list" in line)


@pytest.mark.parametrize("name", reproduce.EXPERIMENTS)
def test_help_explains_every_option_and_its_safe_range(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as ended:
        cli.main(["reproduce", name, "--help"])
    assert ended.value.code in {None, 0}
    out = capsys.readouterr().out
    options = inspect.signature(reproduce.EXPERIMENTS[name]).parameters
    explanations = out[out.index("-o DIR, --out DIR") :].split("--")[1:]
    assert [text.split()[0].replace("-", "_") for text in explanations] == list(options)
    assert all("Safe" in text and ("(default:" in text or "(repeatable)" in text) for text in explanations)


@pytest.mark.parametrize(
    ("name", "module"), [("optimization-path", optimization_path), ("geometry", geometry), ("bounds", bounds)]
)
def test_options_reach_the_experiment_and_have_its_defaults(name, module, monkeypatch, tmp_path):
    asked = {"delta": 0.01, "steps": 7, "start": (1.0, -3.0), "problems": 12, "seed": 5}
    parameters = inspect.signature(module.reproduce).parameters
    options = reproduce.EXPERIMENTS[name]()
    defaults = {key: value for key, value in vars(options).items() if key != "out"}
    assert defaults == {key: parameters[key].default for key in defaults}

    received = {}
    monkeypatch.setattr(module, "reproduce", lambda directory, **rest: received.update(out=directory, **rest) or [])
    line = ["reproduce", name, "-o", str(tmp_path)]
    for key in defaults:
        line += [f"--{key}", *str(asked[key]).strip("()").replace(",", "").split()]
    assert cli.main(line) == 0
    assert received == {"out": tmp_path, **{key: asked[key] for key in defaults}}


def test_results_are_named_and_judged(fake, capsys, tmp_path):
    long = "because " * 30
    numbers = {"verdicts": [{"claim": "It flies.", "place": "p. 1", "verdict": "fails", "evidence": long}]}
    line = ["reproduce", "fake", "--out", str(tmp_path / "new" / "x"), "--text", json.dumps(numbers)]
    code, out, err = run(capsys, line)
    assert (code, err) == (0, "working\n")
    assert f"figure   {tmp_path / 'new' / 'x' / 'a.png'} (and a.svg)\n" in out
    assert f"numbers  {tmp_path / 'new' / 'x' / 'numbers.json'}\n" in out
    assert "FAILS    It flies.\n         because because" in out
    assert all(len(row) < 120 for row in out.splitlines() if "because" in row)


def test_a_directory_can_be_used_again(fake, capsys, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    results = [run(capsys, ["reproduce", "fake", "-o", str(tmp_path)]) for _ in range(2)]
    assert results[0] == results[1]
    assert results[0][0] == 0
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_without_a_directory_results_go_below_runs(fake, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "reproduce fake")[0] == 0
    assert (tmp_path / "runs" / "fake" / "a.png").exists()
    assert all(options().out == Path("runs") / name for name, options in reproduce.EXPERIMENTS.items())


# In a process of its own, as a user starts it.


def test_a_module_beside_the_user_is_found_by_the_installed_command(tmp_path):
    """A script's own directory is where Python looks, not the one that it is called from."""
    (tmp_path / "mine.py").write_text("thing = 3\n")
    script = Path(sys.executable).with_name("pcpo")
    line = [str(script), "train", "mine:thing", "--limit", "1"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120)
    assert done.returncode == 2
    assert "'mine:thing' names a int; give a function that makes an environment" in done.stderr


def python(*args, cwd, env=None):
    line = [sys.executable, *args]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, env=env, check=False, timeout=120)


def test_python_m_pcpo_is_the_command(tmp_path):
    done = python("-m", "pcpo", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"pcpo {pcpo.__version__}\n", "")
    refused = python("-m", "pcpo", "reproduce", "geometrie", cwd=tmp_path)
    assert_refused((refused.returncode, refused.stdout, refused.stderr), "did you mean geometry?")


@pytest.mark.parametrize(
    "line", ["--help", "reproduce --list", "reproduce optimization-path --help", f"{PATH} --delta 0"]
)
def test_nothing_heavy_is_imported_before_there_is_work(line, tmp_path):
    done = python("-X", "importtime", "-m", "pcpo", *line.split(), cwd=tmp_path)
    imported = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines() if row.startswith("import time:")}
    assert "pcpo.cli" in imported
    assert not imported & {"jax", "numpy", "matplotlib"}


def test_the_papers_example_from_the_command_line(tmp_path):
    """Outside of pytest's settings: float32 by default, no type checks. This is `make train`, with fewer steps."""
    done = python("-W", "error", "-m", "pcpo", *f"{PATH} --steps 600 -o out".split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "out/optimization-path-directions.png (and optimization-path-directions.svg)" in done.stdout
    assert "out/optimization-path-paths.png (and optimization-path-paths.svg)" in done.stdout
    assert "FAILS    Starting at (0.5, -2), PCPO with KL projection converges to a local optimum." in done.stdout
    assert "its length there is 0.337, 0, 0.873 of a reward step" in " ".join(done.stdout.split())
    assert done.stderr == "computing directions, and 600 steps along each path\ndrawing\n"
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".json", ".png", ".png", ".svg", ".svg"]
