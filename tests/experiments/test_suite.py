"""Experiments that train: what was stopped goes on as if it had not been, and two machines make what one would make."""

import dataclasses
import gzip
import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from pcpo.cli import main
from pcpo.experiments.suite import figures, listing, presets, results, runner
from pcpo.experiments.suite.plan import Experiment, Scale, Share, Unit, Variant, groups, units
from pcpo.experiments.suite.runner import Budget
from pcpo.tasks.api import DeviceTask
from pcpo.training.config import config_for
from pcpo.training.files import RunError
from pcpo.training.programs import task_for

SMALL = {"batch_size": 100, "hidden": (4,), "spectrum_every": 2}
TINY = Experiment(
    "tiny",
    "Two deltas, which one program serves.",
    "ours",
    (Variant("wide", "point-circle", {"delta": 0.01, **SMALL}), Variant("narrow", "point-circle", SMALL)),
    Scale(seeds=2, group=1, updates=4),
)


def contents(directory, kind="csv.gz"):
    return {path.name: path.read_bytes() for path in sorted(directory.glob(f"*.{kind}"))}


@pytest.fixture(scope="module", autouse=True)
def _quickly_compiled():
    """These tests compare results with results: how fast the programs are is nothing to them."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The tiny experiment, run in one go."""
    directory = tmp_path_factory.mktemp("whole")
    assert runner.run(TINY, directory) == (4, 4, None)
    return directory


# What there is to do.


def test_seeds_come_in_groups_that_never_change():
    assert groups(7, 3) == [(0, 1, 2), (3, 4, 5), (6,)]
    assert groups(9, 3)[:2] == groups(7, 3)[:2]


def test_shares_are_all_of_the_work_and_nothing_twice():
    everything = [unit.name for unit in units(TINY, 5)]
    assert everything[:3] == ["wide.seed-0", "narrow.seed-0", "wide.seed-1"]
    for of in (1, 2, 3, 20):
        shares = [unit.name for this in range(1, of + 1) for unit in units(TINY, 5, Share(this, of))]
        assert sorted(shares) == sorted(everything)


@pytest.mark.parametrize("name", presets.EXPERIMENTS)
def test_every_variant_can_be_trained_and_differs_from_the_others(name):
    experiment = presets.EXPERIMENTS[name]
    assert experiment.name == name
    configs = [variant.config((0,), 1) for variant in experiment.variants]
    identities = {str(sorted(config.to_json().items(), key=str)) for config in configs}
    assert len(identities) == len({variant.name for variant in experiment.variants}) == len(configs)
    assert [config.algorithm for config in configs] == [variant.algorithm for variant in experiment.variants]
    assert experiment.scale.seeds % experiment.scale.group == 0


@pytest.mark.parametrize("task", presets.BATCHES)
def test_the_costs_that_are_listed_are_those_of_the_tasks(task):
    config = config_for(task)
    horizon = task_for(config).horizon
    assert presets.BATCHES[task] == -(-config.batch_size // horizon) * horizon
    assert task in presets.RATES


def test_the_paper_is_followed_where_it_says_what_it_did():
    def config(experiment, variant):
        return presets.EXPERIMENTS[experiment].variant(variant).config((0,), 1)

    assert config("point-circle", "pcpo-kl").delta == 1e-4
    assert config("line-search", "pc-cpo-without-0.01").line_search is False
    assert config("line-search", "pg-cpo-0.01").delta == 0.01
    assert config("harder", "pc-cpo").limits == {"cost": 0.0}
    assert config("small-batch", "pg-cpo").batch_size == 500
    assert [config("cg", name).cg_iterations for name in ("pcpo-kl-10", "pcpo-kl-20")] == [10, 20]
    assert config("ant-circle", "cpo").delta == 0.01
    assert config("ant-circle-small-steps", "cpo").delta == 1e-4


# Running it.


def test_results_hold_what_the_runs_measured(whole):
    found = results.read_series(whole)["wide"]
    rows = [json.loads(line) for line in (whole / "runs/wide.seed-1/metrics.jsonl").read_text().splitlines()]
    assert found.seeds == (0, 1)
    assert found.updates.tolist() == [0, 1, 2, 3]
    assert found.limits["cost"].tolist() == [5.0] * 4
    for name, path in {
        "discounted_return": ("discounted_return",),
        "costs.cost": ("costs", "cost"),
        "predicted_costs.cost": ("predicted_costs", "cost"),
        "cumulative_violations.cost": ("cumulative_violations", "cost"),
    }.items():
        for update, row in enumerate(rows):
            value = row
            for part in path:
                value = value[part]
            assert found.columns[name][update, 1] == pytest.approx(value, rel=1e-3)
    assert [statuses[1] for statuses in found.statuses] == [row["status"] for row in rows]
    record = json.loads((whole / "wide.seed-1.json").read_text())
    assert record["seconds"] > 0
    assert record["config"]["delta"] == 0.01
    assert record["versions"]["jax"]


def test_the_audit_is_thinned_as_it_is_said_to_be():
    assert [update for update in range(95, 125) if results.is_audited(update)] == [*range(95, 100), 100, 110, 120]


def test_what_was_stopped_and_goes_on_gives_the_same_results(whole, tmp_path, monkeypatch):
    ticks = iter(range(10_000))
    clock = SimpleNamespace(monotonic=lambda: float(next(ticks)))
    monkeypatch.setattr(runner, "time", clock)
    asked = 0
    while runner.run(TINY, tmp_path, Budget(hours=3.0 / 3600)).stopped_by == "the hours are over":
        asked += 1
        assert asked < 50
    assert asked > 4  # so that runs were stopped in the middle, too
    assert contents(tmp_path) == contents(whole)


def test_more_updates_later_give_the_same_results(whole, tmp_path):
    first = runner.run(TINY, tmp_path, Budget(seeds=1, updates=2, only=("narrow",)))
    assert first == (1, 1, None)
    assert results.read_series(tmp_path)["narrow"].updates.tolist() == [0, 1]
    assert runner.run(TINY, tmp_path) == (4, 4, None)
    assert contents(tmp_path) == contents(whole)


def test_what_is_done_is_not_done_again(whole, monkeypatch):
    monkeypatch.setattr(runner.loop, "train", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(runner.loop, "resume", lambda *_: pytest.fail("went on"))
    assert runner.run(TINY, whole) == (4, 4, None)
    assert runner.run(TINY, whole, Budget(updates=2)) == (4, 4, None)


def test_other_settings_in_the_same_directory_are_refused(whole):
    before = contents(whole)
    with pytest.raises(RunError, match="other settings; give another directory"):
        runner.run(TINY, whole, Budget(batch_size=150))
    assert contents(whole) == before


GROUPED = dataclasses.replace(TINY, scale=Scale(seeds=3, group=3, updates=1))


def test_a_part_of_a_group_is_refused_before_anything_is_trained(tmp_path, monkeypatch):
    """Two seeds of a group of three, then all three: seeds 0 and 1 would be there twice."""
    runner.run(GROUPED, tmp_path, Budget(seeds=2, only=("wide",)))
    before = contents(tmp_path)
    assert list(before) == ["wide.seeds-0-1.csv.gz"]
    monkeypatch.setattr(runner.loop, "train", lambda *_: pytest.fail("trained"))
    refusal = r"wide\.seeds-0-1, but wide\.seeds-0-2 is asked for: seeds are trained in groups of 3"
    with pytest.raises(RunError, match=refusal):
        runner.run(GROUPED, tmp_path)
    for path in tmp_path.glob("wide.*"):
        path.unlink()  # the run was begun, and its results are not written yet
    with pytest.raises(RunError, match=refusal):
        runner.run(GROUPED, tmp_path)


def test_longer_results_are_not_replaced_by_those_of_a_run_begun_anew(whole, tmp_path):
    """The results came from elsewhere and the run is not there: it begins at 0 and is stopped after an update."""
    runner.merge(TINY, [whole], tmp_path)
    before = contents(tmp_path), contents(tmp_path, "json")
    clock = iter([0.0, 0.0, *[9.0] * 99])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        ran = runner.run(TINY, tmp_path, Budget(updates=6, hours=1.0 / 3600, only=("wide",), seeds=1))
    assert ran.stopped_by == "the hours are over"
    assert len((tmp_path / "runs/wide.seed-0/metrics.jsonl").read_text().splitlines()) < 4
    assert (contents(tmp_path), contents(tmp_path, "json")) == before


# Several machines.


def test_two_machines_make_what_one_would_make(whole, tmp_path):
    machines = [tmp_path / "a", tmp_path / "b"]
    for this, directory in enumerate(machines, 1):
        runner.run(TINY, directory, Budget(share=Share(this, 2)))
        assert len(contents(directory)) == 2
    new = runner.merge(TINY, machines, tmp_path / "both")
    assert sorted(new) == sorted(unit.name for unit in units(TINY, 2))
    assert contents(tmp_path / "both") == contents(whole)
    assert runner.merge(TINY, machines, tmp_path / "both") == []


def test_runs_are_merged_by_their_settings_whatever_they_are_called(whole, tmp_path):
    elsewhere = tmp_path / "mine"
    (whole / "runs" / "wide.seed-1").rename(elsewhere)
    try:
        assert runner.merge(TINY, [tmp_path], tmp_path / "out") == ["wide.seed-1"]
        assert contents(tmp_path / "out")["wide.seed-1.csv.gz"] == contents(whole)["wide.seed-1.csv.gz"]
    finally:
        elsewhere.rename(whole / "runs" / "wide.seed-1")


def test_results_are_merged_whatever_their_files_are_called(whole, tmp_path):
    """A run that someone called after another variant of the same length: its name says nothing."""
    source = tmp_path / "mine"
    source.mkdir()
    for kind in ("json", "csv.gz"):
        (source / f"w.seed-1.{kind}").write_bytes((whole / f"wide.seed-1.{kind}").read_bytes())
    assert runner.merge(TINY, [source], tmp_path / "out") == ["wide.seed-1"]
    assert results.read_series(tmp_path / "out")["wide"].seeds == (1,)
    assert runner.merge(TINY, [source], tmp_path / "out") == []


@pytest.mark.parametrize("has_results", [False, True])
def test_runs_beside_results_are_merged_where_they_have_more(whole, tmp_path, has_results):
    """Killed before their results were written anew, or before there were any; those of another piece are there."""
    source = tmp_path / "killed"
    runs = source / "runs" / "wide.seed-1"
    runs.mkdir(parents=True)
    for name in ("config.json", "metrics.jsonl"):
        (runs / name).write_bytes((whole / "runs/wide.seed-1" / name).read_bytes())
    runner.merge(TINY, [whole], tmp_path / "two", updates=2)
    for path in (tmp_path / "two").glob("*" if has_results else "narrow.*"):
        (source / path.name).write_bytes(path.read_bytes())
    runner.merge(TINY, [source], tmp_path / "out")
    assert contents(tmp_path / "out")["wide.seed-1.csv.gz"] == contents(whole)["wide.seed-1.csv.gz"]


def test_the_first_updates_can_be_taken_alone(whole, tmp_path):
    assert len(runner.merge(TINY, [whole], tmp_path / "two", updates=2)) == 4
    runner.run(TINY, tmp_path / "short", Budget(updates=2, seeds=1, only=("wide",)))
    name = "wide.seed-0.csv.gz"
    assert contents(tmp_path / "two")[name] == contents(tmp_path / "short")[name]
    assert results.read_series(tmp_path / "two")["narrow"].updates.tolist() == [0, 1]
    records = [json.loads((place / "wide.seed-0.json").read_text()) for place in (tmp_path / "two", whole)]
    assert records[0]["seconds"] == pytest.approx(records[1]["seconds"] / 2, rel=1e-3)


def test_a_run_from_before_a_setting_existed_is_understood(whole, tmp_path):
    """It was as its default is."""
    old = tmp_path / "old"
    old.mkdir()
    record = json.loads((whole / "runs/wide.seed-1/config.json").read_text())
    del record["config"]["environments"]
    (old / "config.json").write_text(json.dumps(record))
    (old / "metrics.jsonl").write_bytes((whole / "runs/wide.seed-1/metrics.jsonl").read_bytes())
    assert runner.merge(TINY, [old], tmp_path / "out") == ["wide.seed-1"]
    assert contents(tmp_path / "out")["wide.seed-1.csv.gz"] == contents(whole)["wide.seed-1.csv.gz"]


def test_whoever_has_come_further_wins(whole, tmp_path):
    runner.run(TINY, tmp_path, Budget(seeds=1, updates=3, only=("wide",)))
    assert "wide.seed-0" in runner.merge(TINY, [whole], tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_what_cannot_be_merged_is_refused_and_changes_nothing(whole, tmp_path):
    other = Experiment("other", "", "", (Variant("far", "point-circle", {"delta": 0.5, **SMALL}),), Scale(1, 1, 4))
    with pytest.raises(RunError, match="nothing of other"):
        runner.merge(other, [whole], tmp_path / "out")
    with pytest.raises(RunError, match="no directory"):
        runner.merge(TINY, [tmp_path / "missing"], tmp_path / "out")

    def spoiled(directory, change):
        """The results of one piece of work, with another table."""
        directory.mkdir()
        (directory / "wide.seed-0.json").write_bytes((whole / "wide.seed-0.json").read_bytes())
        table = gzip.decompress((whole / "wide.seed-0.csv.gz").read_bytes()).decode()
        (directory / "wide.seed-0.csv.gz").write_bytes(gzip.compress(change(table).encode()))
        return directory

    another_number = spoiled(tmp_path / "number", lambda table: table.replace("0,0,", "0,0,1", 1))
    with pytest.raises(RunError, match="differs"):
        runner.merge(TINY, [whole, another_number], tmp_path / "out")
    fewer_rows = spoiled(tmp_path / "rows", lambda table: "".join(table.splitlines(keepends=True)[:-1]))
    with pytest.raises(RunError, match="restore both"):
        runner.merge(TINY, [fewer_rows], tmp_path / "out")
    (fewer_rows / "wide.seed-0.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(RunError, match="it is not gzip"):
        runner.merge(TINY, [fewer_rows], tmp_path / "out")
    (fewer_rows / "wide.seed-0.csv.gz").write_bytes(gzip.compress(b"\xff\xfe"))
    with pytest.raises(RunError, match="it is no text"):
        runner.merge(TINY, [fewer_rows], tmp_path / "out")
    nothing = spoiled(tmp_path / "nothing", lambda table: table.splitlines(keepends=True)[0])
    record = json.loads((nothing / "wide.seed-0.json").read_text())
    (nothing / "wide.seed-0.json").write_text(json.dumps(record | {"updates": 0}))
    with pytest.raises(RunError, match="restore both"):
        runner.merge(TINY, [nothing], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_seed_that_would_count_twice_is_found(whole, tmp_path):
    """The two seeds of one variant once more, as a group of two."""
    source, pair = whole / "wide.seed-0.json", tmp_path / "wide.seeds-0-1.json"
    record = json.loads(source.read_text())
    pair.write_text(json.dumps(record | {"config": record["config"] | {"seeds": 2}}))
    head, *rows = gzip.decompress(results.table_of(source).read_bytes()).decode().splitlines()
    twice = [row for first in rows for row in (first, first.replace(",0,", ",1,", 1))]
    results.table_of(pair).write_bytes(gzip.compress("\n".join([head, *twice]).encode()))
    assert results.read_series(tmp_path)["wide"].seeds == (0, 1)
    with pytest.raises(RunError, match=r"seed 0 would be there twice, in wide\.seed"):
        runner.merge(TINY, [whole, tmp_path], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for each in (source, results.table_of(source)):
        (tmp_path / each.name).write_bytes(each.read_bytes())
    with pytest.raises(RunError, match="remove one of them"):
        results.read(tmp_path)


# What is said of it.


def test_the_list_says_what_is_done(whole, tmp_path):
    assert listing.state(TINY, [tmp_path]) == "not run"
    assert listing.state(TINY, [tmp_path, whole]) == "done"
    for name in ("wide.seed-0", "narrow.seed-0"):
        (tmp_path / f"{name}.json").write_bytes((whole / f"{name}.json").read_bytes())
    record = json.loads((tmp_path / "narrow.seed-0.json").read_text()) | {"updates": 1}
    (tmp_path / "narrow.seed-0.json").write_text(json.dumps(record))
    assert listing.state(TINY, [tmp_path]) == "1 of 4 pieces done, 1 begun"


def test_costs_are_those_of_the_records_where_two_cores_made_them(tmp_path):
    """100 seconds for 10 updates of 2 seeds with 100 steps: 0.05 a step; 2 variants x 2 seeds x 4 updates of 100."""
    record = {"updates": 10, "seconds": 100.0, "config": {"seeds": 2, "batch_size": 100}}
    machines = {"two": {"device": "cpu cpu", "cores": "2"}, "many": {"device": "cpu cpu", "cores": "16"}}
    for name, versions in machines.items():
        (tmp_path / f"{name}.seeds-0-1.json").write_text(json.dumps(record | {"versions": versions}))
    (tmp_path / "broken.seed-0.json").write_text("{")
    assert listing.cost(TINY, [tmp_path]).endswith("about 1 minutes on two cores, by what is recorded of it")
    assert listing.cost(TINY, [tmp_path / "missing"]).endswith("about 0 minutes on two cores")


def test_the_tasks_are_simulated_where_the_costs_assume():
    """Rates of the point tasks are of compiled simulations."""
    kinds = {task: isinstance(task_for(config_for(task)), DeviceTask) for task in presets.BATCHES}
    assert {task for task, device in kinds.items() if device} == {"point-circle", "point-gather", "point-square"}


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("--share 3/2", ["--share is '3/2'", "try --share 1/2"]),
        ("--share all", ["--share is 'all'"]),
        ("--only pcpo-lk", ["no variant 'pcpo-lk'", "did you mean pcpo-"]),
        ("--seeds 0", ["--seeds is 0"]),
        ("--hours -1", ["--hours is -1"]),
        ("--merge nowhere --draw", ["leave out --draw"]),
        ("--merge nowhere", ["nowhere is no directory"]),
        ("--draw", ["has no results of point-circle"]),
    ],
)
def test_a_mistake_ends_with_code_2_and_one_line_that_helps(line, parts, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "point-circle", *line.split()]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("pcpo: ")
    assert not [part for part in parts if part not in err], err


def test_an_interrupted_experiment_has_drawn_what_there_is_and_ends_as_interrupted(capsys, monkeypatch, tmp_path):
    drawn: list[str] = []
    monkeypatch.setattr(runner, "run", lambda *_: runner.Ran(7, 2, "interrupted"))
    monkeypatch.setattr(figures, "draw", lambda experiment, _: drawn.append(experiment.name) or [])
    assert main(["reproduce", "point-circle", "-o", str(tmp_path)]) == 130
    out, err = capsys.readouterr()
    assert drawn == ["point-circle"]
    assert f"done     2 of 7 pieces of work in {tmp_path}" in out
    assert "stopped  interrupted; the same command goes on" in out
    assert err == "pcpo: interrupted\n"


def test_long_lines_are_drawn_as_means_and_short_ones_as_they_are(whole):
    """Of 600 updates three are one point: 250 points at most."""
    run = results.read_series(whole)["wide"]
    assert figures.drawable(run).updates.tolist() == run.updates.tolist()
    n = 600
    costs = np.arange(n, dtype=float)[:, None] * np.ones((1, 2))
    gaps = np.where(np.arange(n) % 10, np.nan, 7.0)[:, None] * np.ones((1, 2))
    long = dataclasses.replace(
        run,
        updates=np.arange(n),
        limits={"cost": np.full(n, 5.0)},
        columns={"costs.cost": costs, "condition": gaps},
        statuses=(("ok", "ok"),) * n,
    )
    drawn = figures.drawable(long)
    assert drawn.updates[:3].tolist() == [0, 3, 6]
    assert drawn.columns["costs.cost"][:3, 0].tolist() == [1.0, 4.0, 7.0]
    assert drawn.columns[figures.SO_FAR][1, 0] == pytest.approx((6 + 10 + 15) / 3)
    assert drawn.columns["condition"][0, 0] == 7.0
    assert np.isnan(drawn.columns["condition"][1, 0])


def test_a_piece_of_work_says_its_seeds():
    assert Unit("tiny", TINY.variants[0], (3, 4)).name == "wide.seeds-3-4"
