"""The verbs on runs as a user types them: train, resume, plot, compare, evaluate, render, tasks."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from typing import Any

import pytest
from PIL import Image

from pcpo import cli
from pcpo.training import checkpoint, loop
from pcpo.training.config import Constraint
from pcpo.training.run import Run
from tests.cli.conftest import SMALL, train
from tests.training.small import files_in, rows_in, without_clock

# Training.


def test_a_training_says_what_it_does_and_what_comes_next(trained):
    out, err = (trained / "said.out").read_text(), (trained / "said.err").read_text()
    assert err.startswith("point-circle with pcpo-kl, cost <= 5, seeds 0 to 1: compiling\nupdate 1/12  reward ")
    assert "cost " in err
    assert " of 5 (violations so far " in err
    assert "update 12/12" in err
    assert "steps/s" in err
    assert "0:00 left" in err
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if not line.startswith("warning"))
    assert "(discounted, mean of the last 10 updates)" in lines["reward"]
    assert ", limit 5 (mean of the last 10 updates); violations in all " in lines["cost"]
    assert lines["figure"] == f"{trained / 'plots' / 'curves.png'} (and curves.svg)"
    assert lines["run"] == f"{trained}: 12 updates"
    assert lines["next"] == f"pcpo evaluate {trained}, or pcpo resume {trained} --updates 24"
    assert {"config.json", "metrics.jsonl", "checkpoints", "plots"} <= {path.name for path in trained.iterdir()}


def test_a_picture_that_cannot_be_written_is_no_reason_to_fail(pcpo, run):
    shutil.rmtree(run / "plots")
    (run / "plots").write_text("mine")
    code, out, err = pcpo("resume", run, "--updates", 13)
    assert code == 0
    assert "pcpo: note: no picture was drawn: " in err
    assert f"run      {run}: 13 updates" in out
    assert (run / "plots").read_text() == "mine"


def test_without_a_directory_the_run_goes_below_runs_and_never_onto_another(pcpo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("point-circle-pcpo-kl", "point-circle-pcpo-kl-2"):
        code, out, _ = pcpo("train", "point-circle", *SMALL, "--seeds", 2, "--updates", 1, "--cost-gae-lambda", 0.5)
        assert code == 0
        assert f"run      runs/{name}: 1 updates" in out
        run = Run.open(tmp_path / "runs" / name)
        assert run.updates == 1
        assert run.config.constraints == (Constraint("cost", 5.0, gae_lambda=0.5),)


def test_every_setting_can_be_given_and_is_written_down(pcpo, trained):
    plain = json.loads((trained / "config.json").read_text())["config"]
    assert (plain["seeds"], plain["updates"], plain["batch_size"], plain["hidden"]) == (2, 12, 130, [4])
    assert (plain["delta"], plain["gamma"]) == (1e-4, 0.995)  # the paper's


def test_ctrl_c_finishes_the_update_saves_and_says_how_to_go_on(pcpo, trained, tmp_path, monkeypatch):
    """As signals come: in the middle of an update."""
    update = loop.Session.hand

    def interrupted(session, count):
        if session.update == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return update(session, 1)

    directory = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        patch.setattr(loop.Session, "hand", interrupted)
        code, out, err = train("point-circle", *SMALL, "--seeds", 2, "--updates", 12, "--out", directory)
    assert code == 128 + signal.SIGINT
    assert "stopping after this update (again: at once)" in err
    updates = len(rows_in(directory)) // 2
    assert 4 < updates < 12
    assert f"run      {directory}: {updates} of 12 updates, stopped (interrupted)\n" in out
    assert out.endswith(f"next     pcpo resume {directory}\n")
    code, out, err = pcpo("resume", directory)
    assert code == 0
    assert f"compiling, going on after update {updates}" in err
    assert without_clock(rows_in(directory)) == without_clock(rows_in(trained))


def test_resume_with_another_limit_says_so_everywhere(pcpo, run):
    code, out, _ = pcpo("resume", run, "--limit", "cost=2.5", "--updates", 14)
    assert code == 0
    assert "limit 2.5" in out
    rows = rows_in(run)
    assert [row["limits"]["cost"] for row in rows] == [5.0] * 24 + [2.5] * 4
    assert json.loads((run / "config.json").read_text())["changes"][0]["from_update"] == 12
    code, out, err = pcpo("compare", run)
    assert code == 0
    assert "pcpo: note: the limit of cost was changed during kl" in err


def test_resume_takes_the_limit_of_the_only_cost_without_its_name(pcpo, run):
    assert pcpo("resume", run, "--limit", 3, "--updates", 13)[0] == 0
    assert Run.open(run).config.limits == {"cost": 3.0}


def test_overwrite_replaces_a_run_and_nothing_else(pcpo, run):
    (run / "mine.txt").write_text("mine")
    code, _, _ = pcpo("train", "point-circle", *SMALL, "--seeds", 2, "--updates", 2, "--out", run, "--overwrite")
    assert code == 0
    assert len(rows_in(run)) == 4
    assert (run / "mine.txt").read_text() == "mine"


def scalars(folder):
    """What is in the event files of a directory: length, checksum, event, checksum, and over again."""
    from tensorboardX.proto import event_pb2

    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event: Any = vars(event_pb2)["Event"].FromString(content[12 : 12 + length])
            for value in event.summary.value:
                yield value.tag, event.step, value.simple_value
            content = content[16 + length :]


def test_tensorboard_gets_the_numbers_of_every_row(pcpo, tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    directory = tmp_path / "run"
    line = ["train", "point-circle", *SMALL, "--seeds", 2, "--updates", 3, "--out", directory, "--tensorboard"]
    assert pcpo(*line)[0] == 0
    for seed in (0, 1):
        found = [
            (step, round(value, 4))
            for name, step, value in scalars(directory / "tensorboard" / f"seed-{seed}")
            if name == "costs/cost"
        ]
        rows = [row for row in rows_in(directory) if row["seed"] == seed]
        assert found == [(row["update"], round(row["costs"]["cost"], 4)) for row in rows]


def test_without_tensorboardx_the_remedy_is_named_before_anything_is_done(pcpo, tmp_path, monkeypatch):
    monkeypatch.setattr(loop.importlib.util, "find_spec", lambda name: None)
    code, _, err = pcpo("train", "point-circle", *SMALL, "--tensorboard", "--out", tmp_path / "run")
    assert code == 2
    assert err == "pcpo: TensorBoard needs tensorboardX; install it with: pip install 'pcpo[tensorboard]'\n"


# Looking.


def test_plot_draws_into_the_run_or_where_it_is_told(pcpo, run, tmp_path):
    shutil.rmtree(run / "plots")
    code, out, err = pcpo("plot", run)
    assert (code, err) == (0, "")
    assert out == f"figure   {run / 'plots' / 'curves.png'} (and curves.svg)\n"
    with Image.open(run / "plots" / "curves.png") as picture:
        assert min(picture.size) > 300
    code, out, _ = pcpo("plot", run, "--audit", "-o", tmp_path / "new" / "audit.png", "--x", "steps")
    assert (code, out) == (0, f"figure   {tmp_path / 'new' / 'audit.png'}\n")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["audit.png"]


def test_a_run_that_still_trains_can_be_drawn(pcpo, run, tmp_path):
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"update": 12, "se')
    assert pcpo("plot", run, "-o", tmp_path / "now.svg")[0] == 0
    assert (tmp_path / "now.svg").read_text().startswith("<?xml")


def test_compare_is_a_table_and_a_picture(pcpo, trained, run, tmp_path):
    other = run.rename(run.with_name("other"))
    table, picture = tmp_path / "table.csv", tmp_path / "both.png"
    code, out, err = pcpo("compare", trained, other, "-o", picture, "--table", table)
    assert (code, err) == (0, "")
    assert picture.exists()
    head, *rows = table.read_text().splitlines()
    assert head.startswith("run,algorithm,seeds,updates,reward,")
    assert [row.split(",")[:4] for row in rows] == [["kl", "pcpo-kl", "2", "12"], ["other", "pcpo-kl", "2", "12"]]
    assert all(word in out for word in ("point-circle", "kept from", "limit", "violation", "steps/s", "other"))
    assert pcpo("compare", trained, other, "--table", tmp_path / "table.md")[0] == 0
    assert (tmp_path / "table.md").read_text().startswith("| run | algorithm |")


def test_evaluate_says_how_sure_one_can_be(pcpo, run):
    code, out, _ = pcpo("evaluate", run, "--episodes", 40)
    assert code == 0
    assert all(word in out for word in ("P(J <= limit)", "discounted return", "limit", "all"))
    plain = json.loads((run / "evaluation.json").read_text())
    assert plain["update"] == 12
    cost = plain["pooled"]["costs"]["cost"]
    assert cost["low"] <= cost["mean"] <= cost["high"]
    assert 0.0 <= cost["probability_within"] <= 1.0
    assert plain["pooled"]["episodes"] == 80
    again = pcpo("evaluate", run, "--episodes", 40, "-o", run / "again.json")
    assert again[0] == 0
    assert json.loads((run / "again.json").read_text()) == plain


def test_render_makes_a_film_of_a_run_and_of_a_task(pcpo, trained, tmp_path):
    for what, name in ((trained, "run.gif"), ("point-circle", "task.gif")):
        code, out, _ = pcpo("render", what, "-o", tmp_path / name)
        assert (code, out) == (0, f"film     {tmp_path / name}\n")
        with Image.open(tmp_path / name) as film:
            assert getattr(film, "n_frames", 1) > 50


def test_tasks_lists_and_describes(pcpo):
    code, out, _ = pcpo("tasks")
    assert code == 0
    assert {"point-circle", "point-gather", "point-square"} <= set(out.splitlines())
    code, out, _ = pcpo("tasks", "point-circle")
    assert code == 0
    assert "x_limit" in out


# What cannot be done.


def assert_refused(result, *parts):
    """Exit code 2 and, at the end of stderr, one line that says what was given, why it is wrong and what to try."""
    code, out, err = result
    assert code == 2, (out, err)
    assert out == ""
    *progress, line = err.splitlines()
    assert line.startswith("pcpo: ")
    assert not [part for part in parts if str(part) not in line], line
    assert not any("Traceback" in each for each in progress)
    assert len(line) < 400


NOTHING = "nothing-there"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (f"resume {NOTHING}", [f"{NOTHING} does not exist", "pcpo train"]),
        (f"plot {NOTHING}", [f"{NOTHING} does not exist"]),
        (f"compare {NOTHING}", [f"{NOTHING} does not exist"]),
        (f"evaluate {NOTHING}", [f"{NOTHING} does not exist"]),
        (f"render {NOTHING} -o x.gif", [f"'{NOTHING}' is neither a directory nor a task; "]),
        ("render point-cirle -o x.gif", ["did you mean point-circle?"]),
        ("resume .", [". is no run: there is no config.json in it"]),
        ("plot .", [". is no run"]),
        ("evaluate .", [". is no run"]),
        ("render . -o x.gif", [". is no run"]),
        ("plot", ["needs the directory of a run", "pcpo plot runs/NAME"]),
        ("compare", ["needs the directory of a run"]),
        ("resume", ["DIR"]),
        ("train", ["TASK"]),
        ("train point-cirle", ["no task 'point-cirle'; did you mean 'point-circle'?"]),
        ("train x", ["'x'", "point-circle"]),
        ("train point-circle --dleta 1", ["'--dleta'", "did you mean --delta?"]),
        ("train point-circle more", ["'more'", "pcpo train --help"]),
        ("train point-circle --delta", ["--delta", "missing value"]),
        ("train point-circle --limit five", ["--limit", "'five' is not a number"]),
        ("train point-circle --limit heat=5", ["no cost 'heat'", "there are: cost"]),
        ("train point-circle --limit 1 --limit 2", ["--limit is given twice for cost"]),
        ("train point-circle --cost-discount 1.5", ["discount of 'cost' is 1.5", "try 1"]),
        ("train point-circle --cost-gae-lambda heat=1", ["no cost 'heat'", "there are: cost"]),
        ("train point-square --cost-gae-lambda some", ["--cost-gae-lambda is 'some', but there are 2 costs"]),
        ("train point-square --cost-gae-lambda cost_x=some", ["--cost-gae-lambda", "'some' is not a number"]),
        ("train point-circle --limit nan", ["limit of 'cost' is nan"]),
        ("train point-square --limit 5", ["--limit is '5', but there are 2 costs", "--limit cost_x=5"]),
        ("train point-square --algorithm cpo", ["'cpo', which handles one constraint", "try pcpo-kl"]),
        ("train point-circle --task-option x_limit", ["--task-option", "NAME=VALUE"]),
        ("train point-circle --task-option wall=3", ["point-circle has no option 'wall'"]),
        ("train point-circle --task-option action_mode=fly", ["action_mode", "'fly'"]),
        ("train point-circle --seed 2147483647 --seeds 2", ["the last seed would be", "try a smaller seed"]),
        ("train point-circle --bootstrap-costs", ["bootstrap_costs is True, but no cost has a discount below 1"]),
        ("train point-circle --bootstrap maybe", ["'maybe'", "pcpo train --help"]),
        ("train point-circle --workers 2", ["point-circle is written in jax", "no use for them"]),
        ("train point-circle --threads 2 --out a/b", ["point-circle is written in jax", "no use for them"]),
        ("train point-circle --hidden", ["--hidden", "try 64 32"]),
        ("train point-circle --hidden 4 no", ["--hidden is 'no'", "whole number"]),
        ("tasks point-cirle", ["no task 'point-cirle'; did you mean 'point-circle'?"]),
        ("render point-circle", ["render needs a file", "-o episode.gif"]),
        ("render point-circle -o x.avi", ["ends in '.avi'", ".gif or .mp4"]),
        ("render point-circle -o x", ["has no ending", ".gif or .mp4"]),
        ("render point-circle -o x.gif --policy 1", ["nothing has been trained on it"]),
        ("render point-circle -o x.gif --fps 0", ["--fps is 0", "between 1 and 60"]),
        ("render point-circle -o x.gif --episodes 0", ["--episodes is 0", "between 1 and 100"]),
        ("render point-circle -o x.gif --seed -1", ["--seed is -1"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(line, parts, pcpo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(pcpo(*line.split()), *parts)
    assert not list(tmp_path.iterdir())


def wrong_values():
    """For every setting of a run: no number, none at all, too small, too large, another word."""
    from pcpo.training.config import Config
    from pcpo.training.settings import settings_of

    for name, about in settings_of(Config).items():
        wrong = ["maybe"] if about.kind is bool else ["sideways"]
        if about.kind in {int, float}:
            wrong += ["nan"] + [str(about.low - 1)] * (about.low > -1e300) + ["1e400"] * (about.high < 1e300)
        if about.kind is int:
            wrong += ["1.5", str(about.high + 1)]
        for value in wrong:
            yield f"--{name.replace('_', '-')}", value


@pytest.mark.parametrize(("flag", "value"), list(wrong_values()))
def test_every_setting_refuses_wrong_values_with_its_name_and_what_to_try(flag, value, pcpo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(pcpo("train", "point-circle", f"{flag}={value}"), f"{flag} is ", "; ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("resume RUN --updates 5", ["updates is 5, but", "has 12 already; give a larger number"]),
        ("resume RUN --updates 0", ["--updates is 0", "between 1 and 10000000"]),
        ("resume RUN --updates many", ["--updates is 'many'", "whole number"]),
        ("resume RUN --limit heat=1", ["no cost 'heat'", "there are: cost"]),
        ("resume RUN --limit cost=inf", ["limit of 'cost' is inf"]),
        ("resume RUN --delta 1", ["no option '--delta'; try --"]),
        ("train point-circle --out RUN", ["holds a run already", "pcpo resume", "--overwrite"]),
        ("plot RUN RUN -o x.png", ["is given twice"]),
        ("plot RUN --x time", ["--x", "updates", "steps"]),
        ("plot RUN --band wide", ["--band", "std", "interval"]),
        ("plot RUN -o RUN", ["is a directory; give a file"]),
        ("plot RUN -o x.pdf", ["ends in '.pdf'", ".png or .svg"]),
        ("plot RUN OTHER", ["say where with -o FILE.png"]),
        ("plot RUN OTHER --audit", ["--audit is about one run, but 2 are given"]),
        ("compare RUN --table x.txt", ["ends in '.txt'", ".md or .csv"]),
        ("compare RUN OTHER", ["kl is a run of point-circle and OTHER one of point-gather; give runs of one task"]),
        ("evaluate RUN --episodes 1", ["--episodes is 1", "between 2 and 1000000"]),
        ("evaluate RUN --checkpoint 5", ["has no checkpoint after 5 updates; there are: "]),
        ("evaluate RUN --checkpoint new", ["--checkpoint is 'new'", "whole number", "the default is the newest"]),
        ("evaluate RUN -o x.txt", ["ends in '.txt'", ".json"]),
        ("evaluate RUN -o RUN/config.json", ["which the run needs to go on", "give another file"]),
        ("evaluate RUN -o RUN/checkpoints/mine.json", ["which the run needs to go on"]),
        ("render RUN -o x.gif --policy 7", ["--policy is 7, but the seeds of", "are 0 or 1"]),
        ("render RUN -o x.gif --policy first", ["--policy is 'first'", "give one of the run's seeds"]),
        ("render RUN -o x.gif --checkpoint 5", ["has no checkpoint after 5 updates"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_with_a_run_leaves_it_as_it_is(line, parts, pcpo, run, monkeypatch):
    monkeypatch.chdir(run.parent)
    other = shutil.copytree(run, run.parent / "OTHER")
    config = other / "config.json"
    config.write_text(config.read_text().replace('"point-circle"', '"point-gather"'))
    before = files_in(run.parent)
    assert_refused(pcpo(*line.replace("RUN", "kl").split()), *parts)
    assert files_in(run.parent) == before


@pytest.mark.parametrize("verb", ["resume", "evaluate", "render"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "tampered", "newer", "older"])
def test_damaged_runs_are_refused_by_every_verb_and_left_alone(verb, damage, pcpo, run, tmp_path):
    spoil(run, damage)
    before = files_in(run)
    line = [verb, run, *(["-o", tmp_path / "x.gif"] if verb == "render" else [])]
    expected = {
        "truncated": "is damaged: its hash is not the one in",
        "flipped": "is damaged: its hash is not the one in",
        "tampered": "has been changed since it was written",
        "newer": "written by pcpo 99.0",
        "older": "written by pcpo 0.0.1",
    }
    assert_refused(pcpo(*line), expected[damage])
    assert files_in(run) == before


@pytest.mark.filterwarnings("default::pcpo.training.run.DamagedCheckpointWarning")
@pytest.mark.parametrize("verb", ["evaluate", "render"])
def test_an_older_policy_is_never_shown_for_the_newest_without_a_word(verb, pcpo, run, tmp_path):
    older, newest = checkpoint.updates(run / "checkpoints")
    (run / "checkpoints" / f"update-{newest:08d}.safetensors").write_bytes(b"")
    rest = {"evaluate": ["--episodes", 2], "render": ["-o", tmp_path / "x.gif"]}[verb]
    code, _, err = pcpo(verb, run, *rest)
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith("pcpo: note: ")
    assert f"update-{newest:08d}.safetensors is damaged" in line
    assert line.endswith(f"Used in its place: the checkpoint after {older} updates")


def spoil(run, damage):
    for path in (run / "checkpoints").iterdir():
        content = bytearray(path.read_bytes())
        if path.suffix == ".safetensors" and damage == "truncated":
            path.write_bytes(content[: len(content) // 2])
        if path.suffix == ".safetensors" and damage == "flipped":
            content[-1] ^= 1
            path.write_bytes(content)
        if path.suffix == ".json" and damage == "tampered":
            plain = json.loads(content)
            plain["totals"]["env_steps"] = [1, 1]
            path.write_text(json.dumps(plain))
    if damage in {"newer", "older"}:
        plain = json.loads((run / "config.json").read_text())
        plain["pcpo"] = {"newer": "99.0", "older": "0.0.1"}[damage]
        plain["config"]["wings"] = 2
        (run / "config.json").write_text(json.dumps(plain))


def test_a_run_without_rows_cannot_be_drawn_yet(pcpo, run):
    (run / "metrics.jsonl").write_text("")
    assert_refused(pcpo("plot", run), "has no measurements yet; wait for its first update")


def test_an_output_path_that_is_a_file_is_refused(pcpo, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert_refused(pcpo("train", "point-circle", "--out", tmp_path / "file"), "is a file; give a directory")
    assert_refused(
        pcpo("train", "point-circle", "--out", tmp_path / "file", "--overwrite"), "is a file; give a directory"
    )
    assert_refused(pcpo("train", "point-circle", "--out", tmp_path / "file" / "x"), "cannot be written", "--out")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="no rights of this kind")
def test_a_read_only_directory_is_refused(pcpo, trained, powerless):
    closed = powerless / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    try:
        for target in (closed, closed / "run"):
            assert_refused(
                pcpo("train", "point-circle", *SMALL, "--out", target), "cannot be written (permission denied)", "--out"
            )
        assert_refused(
            pcpo("render", "point-circle", "-o", closed / "x.gif"), "cannot be written (permission denied)", "--out"
        )
        assert not list(closed.iterdir())
    finally:
        closed.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="no rights of this kind")
def test_a_run_that_may_only_be_read_can_be_looked_at_but_not_gone_on_with(pcpo, trained, powerless):
    os.seteuid(os.getuid())
    read_only = shutil.copytree(trained, powerless / "run")
    for path in [read_only, *read_only.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.getuid() == 0:
        os.seteuid(65534)
    before = files_in(read_only)
    assert_refused(pcpo("resume", read_only, "--updates", 20), "cannot be written (permission denied)")
    assert_refused(pcpo("plot", read_only), "cannot be written (permission denied)", "--out")
    assert pcpo("plot", read_only, "-o", powerless / "x.png")[0] == 0
    assert files_in(read_only) == before


# In a process of its own.


@pytest.mark.skipif(os.name != "posix", reason="no such limit")
def test_a_disk_that_refuses_ends_with_one_line_and_a_run_to_go_on_with(pcpo, trained, tmp_path, compilation_cache):
    """The operating system refuses files larger than 12 kB: some updates' rows."""
    directory = tmp_path / "run"
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, resource.RLIM_INFINITY))\n"
        "from pcpo import cli\n"
        "sys.exit(cli.main())\n"
    )
    line = ["train", "point-circle", *SMALL, "--seeds", "2", "--updates", "12", "--out", str(directory)]
    reading = {"JAX_COMPILATION_CACHE_DIR": str(compilation_cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1e9"}
    environment = {**os.environ, **reading}
    done = subprocess.run(
        [sys.executable, "-c", code, *line], capture_output=True, text=True, env=environment, check=False, timeout=300
    )
    assert_refused((done.returncode, done.stdout, done.stderr), "cannot be written (file too large)")
    kept = rows_in(directory)
    assert 0 < len(kept) < 24
    assert without_clock(kept) == without_clock(rows_in(trained)[: len(kept)])
    code, _, err = pcpo("resume", directory)
    assert code == 0, err
    assert without_clock(rows_in(directory)) == without_clock(rows_in(trained))


def test_what_was_compiled_is_kept_unless_the_user_decides(monkeypatch, tmp_path):
    from pcpo.cli import cache

    monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path)})
    cache.keep_compiled()
    assert os.environ[cache.SWITCH] == str(tmp_path / "pcpo" / "compiled")
    assert (tmp_path / "pcpo" / "compiled").is_dir()
    for decided in ({cache.SWITCH: ""}, {cache.SWITCH: "/mine"}):
        monkeypatch.setattr(os, "environ", dict(decided))
        cache.keep_compiled()
        assert os.environ == decided
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path / "file")})
    cache.keep_compiled()
    assert cache.SWITCH not in os.environ


def test_the_command_keeps_what_it_compiles_and_a_caller_of_main_does_not(monkeypatch, capsys):
    kept = []
    monkeypatch.setattr(cli, "keep_compiled", lambda: kept.append(1))
    assert cli.main(["--version"]) == 0
    assert not kept
    monkeypatch.setattr(sys, "argv", ["pcpo", "--version"])
    assert cli.main() == 0
    assert kept
