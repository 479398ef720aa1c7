"""Verdicts follow from the data: from other data follow other verdicts, and the page says what the data say."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from pcpo.cli import main
from pcpo.experiments import statistics
from pcpo.experiments.claims import evidence, ours, page, reproduce, verdicts
from pcpo.experiments.claims.evidence import Data
from pcpo.experiments.claims.quotes import PLACES
from pcpo.experiments.claims.verdicts import Judged, Verdict, agreed, all_of, any_of, as_large_as, at_most, decided
from pcpo.experiments.series import Series
from pcpo.experiments.statistics import Finding
from pcpo.experiments.suite import results
from pcpo.experiments.suite.presets import EXPERIMENTS
from pcpo.training import files
from pcpo.training.files import RunError
from pcpo.training.statistics import Interval
from tests.experiments import papers_world

ROOT = Path(__file__).parent.parent.parent
PATHS = "results/optimization-path/optimization-path.json"
YES, NO, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.UNDECIDED


def finding(low, high):
    return Finding((low + high) / 2, Interval(low, high))


# From numbers to verdicts.


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 2.0, YES), (-2.0, -0.1, NO), (-1.0, 1.0, OPEN), (0.0, 1.0, OPEN), (1.0, math.inf, YES)],
)
def test_a_number_is_decided_by_its_whole_interval(low, high, verdict):
    assert decided("", finding(low, high)).verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (5.0, 80.0, YES),  # 66 is among what it may be
        (70.0, 80.0, YES),  # even more
        (2.0, 9.0, NO),
        (0.5, 80.0, OPEN),  # may be 66, or no effect at all
        (0.1, 0.5, NO),
    ],
)
def test_a_ratio_is_held_against_the_papers(low, high, verdict):
    assert as_large_as("", finding(low, high), 66.0).verdict is verdict


@pytest.mark.parametrize(("low", "high", "verdict"), [(4.0, 5.0, YES), (5.1, 6.0, NO), (4.0, 6.0, OPEN)])
def test_a_bound_is_kept_by_the_whole_interval(low, high, verdict):
    assert at_most("", finding(low, high), 5.0).verdict is verdict


def test_without_an_interval_nothing_is_decided():
    for judged in (decided("", Finding(9.0)), at_most("", Finding(1.0), 5.0), as_large_as("", Finding(99.0), 66.0)):
        assert judged.verdict is OPEN
    assert "no answer" in decided("", Finding(math.nan)).evidence


def test_verdicts_are_put_together():
    def of(*names):
        return [Judged(name, "x") for name in names]

    assert all_of(of(YES, YES)).verdict is YES
    assert all_of(of(YES, OPEN)).verdict is OPEN
    assert all_of(of(YES, OPEN, NO)).verdict is NO
    assert all_of([]).verdict is OPEN
    assert any_of(of(NO, OPEN, YES)).verdict is YES
    assert any_of(of(NO, NO)).verdict is NO
    assert any_of(of(NO, OPEN)).verdict is OPEN
    assert agreed(of(YES, NO)).verdict is OPEN
    assert agreed(of(NO, NO)).verdict is NO
    assert [verdicts.opposite(part).verdict for part in of(YES, NO, OPEN)] == [NO, YES, OPEN]
    assert all_of([Judged(OPEN, "not run yet: a"), Judged(YES, "b 1"), Judged(OPEN, "not run yet: a, c")]).evidence == (
        "b 1; not run yet: a, c"
    )


# From results to verdicts.


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Results in which the paper is right about nearly everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, "fsync", lambda _: None)  # nobody will pull the plug
        directory = papers_world.write_all(tmp_path_factory.mktemp("world"))
    (directory / "optimization-path").mkdir()
    path = json.loads((ROOT / PATHS).read_text())
    for point in path["claimed_stationary_points"]:
        point["kl"]["share"] = 0.0
    path["paths"]["kl"] |= {"end": [0.25, -1.25], "last_share": 0.0}
    (directory / "optimization-path" / "optimization-path.json").write_text(json.dumps(path))
    return directory


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


def verdict_of(directory, key):
    return page.JUDGES[key](Data(directory)).verdict


def test_every_claim_has_its_judge():
    keys = [key for place in PLACES for key in place.claims]
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(page.JUDGES)


def test_where_the_paper_is_right_every_judge_says_so(world, monkeypatch):
    monkeypatch.setattr(evidence, "ENOUGH", 0.0)
    found = {each.key: each.judged for each in page.judge(Data(world))}
    wrong = {key: judged for key, judged in found.items() if judged.verdict not in {YES, Verdict.NOT_CHECKABLE}}
    assert not wrong


REVERSED = {
    # a claim, and the variants that change their roles: the last one with all others
    "equal-reward-point-circle": ("point-circle", "pcpo-kl", "pcpo-l2", "cpo"),
    "cpo-violates-more": ("ant-gather", "pcpo-kl", "pcpo-l2", "cpo"),
    "fastest": ("grid", "pcpo-kl", "pcpo-l2", "cpo"),
    "l2-less-in-point-gather": ("point-gather", "pcpo-kl", "pcpo-l2"),
    "l2-more-in-ant-circle": ("ant-circle-small-steps", "pcpo-kl", "pcpo-l2"),
    "kl-steadier": ("bottleneck", "pcpo-kl", "pcpo-l2"),
    "reward-at-equal-violation": ("ant-circle", "pcpo-kl", "pcpo-l2", "cpo"),
    "comparable": ("bottleneck", "pcpo-kl", "pcpo-l2", "cpo"),
    "search-stabilizes": ("line-search", "pg-cpo-0.01", "pg-cpo-without-0.01"),
    "search-faster": ("line-search", "pg-cpo-0.01", "pg-cpo-without-0.01"),
    "harder-better": ("harder", "pc-pcpo-kl", "pc-pcpo-l2", "pc-cpo"),
    "small-better": ("small-batch", "pg-pcpo-kl", "pg-pcpo-l2", "pg-cpo"),
    "small-quick": ("small-batch", "pg-pcpo-kl", "pg-pcpo-l2", "pg-cpo"),
    "cg-reward": ("cg", "pcpo-kl-10", "trpo"),
    "cg-constraint": ("cg", "pcpo-kl-10", "trpo"),
    "pdo-rate": ("multipliers", "pc-pdo-0.01", "pc-pdo-1"),
}


def changed(world, directory, name, curves):
    """The world with other curves of some variants of one experiment, by their names."""
    (directory / name).mkdir()
    for file in (world / name).iterdir():
        (directory / name / file.name).write_bytes(file.read_bytes())
    for variant, each in curves.items():
        papers_world.write(directory, name, EXPERIMENTS[name].variant(variant), lambda *_, each=each: each)
    for rest in world.iterdir():
        if rest.name != name:
            (directory / rest.name).symlink_to(rest)
    return directory


def curves_of(name, variant):
    found = EXPERIMENTS[name].variant(variant)
    return papers_world.rewards(name, found), papers_world.costs(name, found)


@pytest.mark.parametrize("key", REVERSED)
def test_other_data_give_another_verdict(key, world, tmp_path):
    """Variants exchange their curves; the claim about them turns round."""
    name, *ones, other = REVERSED[key]
    curves = {one: curves_of(name, other) for one in ones} | {other: curves_of(name, ones[0])}
    assert verdict_of(world, key) is YES
    assert verdict_of(changed(world, tmp_path, name, curves), key) is NO


def test_what_holds_for_one_projection_only_is_open_and_both_are_told(world, tmp_path):
    """The paper says "PCPO" and draws both."""
    there = changed(world, tmp_path, "grid", {"pcpo-kl": curves_of("grid", "trpo")})
    for key in ("few-updates", "only-one", "fastest", "cumulative-cpo"):
        verdict, evidence = page.JUDGES[key](Data(there))
        assert verdict is OPEN, key
        for projection in ("kl", "l2"):
            assert f"gr {projection}" in evidence.lower().replace("pcpo-", "").replace("cpo over ", "").replace(
                "cpo and ", ""
            ), key
    assert verdict_of(there, "l2-safer") is YES  # and it is told which one


def test_where_no_reward_is_common_the_ratio_of_all_updates_stands_beside(world, tmp_path):
    """PCPO that only loses reward from where it began."""
    losing = -papers_world.rewards("grid", EXPERIMENTS["grid"].variant("cpo"))
    curves = {rule: (losing, curves_of("grid", rule)[1]) for rule in ("pcpo-kl", "pcpo-l2")}
    verdict, evidence = page.JUDGES["equal-reward-grid"](Data(changed(world, tmp_path, "grid", curves)))
    assert verdict is OPEN
    assert evidence.count("has no answer") == 4  # two projections, two ways to count
    assert evidence.count("(in all updates x ") == 4


def test_a_curve_that_jumps_further_only_because_it_is_lower_does_not_fluctuate_more():
    seeds = 1.0 + 0.01 * np.arange(5)
    zigzag = papers_world.WIGGLE[:, None] * seeds
    assert evidence.fluctuates_more(10.0 + 0.6 * zigzag, 10.0 + 0.3 * zigzag, "").verdict is YES
    assert evidence.fluctuates_more(1.0 + 0.1 * zigzag, 10.0 + 0.6 * zigzag, "").verdict is OPEN
    assert evidence.fluctuates_more(10.0 + 0.1 * zigzag, 10.0 + 0.6 * zigzag, "").verdict is NO


def test_a_small_batch_is_judged_by_the_time_to_safety_and_the_other_time_is_told(world, tmp_path):
    """PCPO reaches the limit at once and breaks it again to the end; CPO comes later and stays."""
    curves = {}
    for rule in ("pg-pcpo-kl", "pg-pcpo-l2"):
        rewards, costs = curves_of("small-batch", rule)
        costs[40:] = papers_world.HIGH
        curves[rule] = rewards, costs
    rewards, costs = curves_of("small-batch", "pg-cpo")
    costs[30:] = 0.0
    curves["pg-cpo"] = rewards, costs
    verdict, said = page.JUDGES["small-quick"](Data(changed(world, tmp_path, "small-batch", curves)))
    assert verdict is NO
    assert "PG CPO and KL safe from 30 and never, later by -50" in said
    assert "(within it for ten updates from 30 and from" in said


def test_a_middle_of_seeds_is_not_told_where_some_are_never_safe():
    """Never counts as after the last update in the comparison, but "from 196" would be a lie."""
    assert evidence.since(np.array([190.0, np.inf, 200.0, np.inf, np.inf])) == "never in 3 of 5 seeds"
    assert evidence.since(np.array([np.inf, np.inf])) == "never"
    assert evidence.since(np.array([4.0, 6.0])) == "from 5"
    assert evidence.since(np.array([np.nan])) == "(too short to say)"


def test_what_was_not_run_is_undecided_and_says_so(tmp_path):
    for each in page.judge(Data(tmp_path)):
        assert each.judged.verdict in {OPEN, Verdict.NOT_CHECKABLE}
        assert each.judged.verdict is Verdict.NOT_CHECKABLE or "not run yet" in each.judged.evidence
    assert "not run yet" in page.questions_table(Data(tmp_path))


def test_runs_of_different_lengths_are_compared_over_what_both_have(world, tmp_path):
    """CPO with its first 20 updates only: whatever else PCPO does later, it is PCPO's first 20 that count."""
    for variant, rows in (("pcpo-kl", 80), ("cpo", 20)):
        source = world / "point-gather" / f"{variant}.seeds-0-4.json"
        head, *lines = results.read_table(results.table_of(source)).decode().splitlines()
        record = json.loads(source.read_text()) | {"updates": rows}
        table = "\n".join([head, *lines[: 5 * rows]]) + "\n"
        results.write(tmp_path / "point-gather", results.Unwritten(source.stem, table.encode(), record))
    pair = Data(tmp_path).pair("point-gather", "pcpo-kl", "cpo")
    assert [len(stratum.costs) for stratum in pair] == [20, 20]
    whole = Data(world).stratum("point-gather", "pcpo-kl")
    assert (pair[0].summed == whole.summed[:20]).all()


def test_an_experiment_that_has_hardly_begun_decides_nothing(world):
    """The world has 80 updates of each; Point-Circle asks for 1,000, Bottleneck for 100."""
    begun = page.judged("equal-reward-point-circle", Data(world))
    assert begun.verdict is OPEN
    assert begun.evidence.startswith("so far reproduced, with point-circle 80 of 1,000 updates: PC CPO over KL J_C x ")
    assert page.judged("equal-reward-bottleneck", Data(world)).verdict is YES


def test_two_of_five_seeds_decide_nothing(world, tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "ENOUGH", 0.05)
    assert page.judged("equal-reward-point-circle", Data(world)).verdict is YES
    monkeypatch.setattr(evidence, "ENOUGH", 0.5)
    for variant in ("pcpo-kl", "pcpo-l2", "cpo"):
        source = world / "point-gather" / f"{variant}.seeds-0-4.json"
        record = json.loads(source.read_text())
        record["config"]["seeds"], record["updates"] = 2, 600
        head, *rows = results.read_table(results.table_of(source)).decode().splitlines()
        cells = [row.split(",") for row in rows]
        kept = [
            ",".join([str(80 * again + int(u)), s, *rest]) for again in range(8) for u, s, *rest in cells if s in "01"
        ]
        table = "\n".join([head, *kept[:1200]]) + "\n"
        results.write(tmp_path / "point-gather", results.Unwritten(f"{variant}.seeds-0-1", table.encode(), record))
    judged = page.judged("equal-reward-point-gather", Data(tmp_path))
    assert judged.verdict is OPEN
    assert "with point-gather 2 of 5 seeds: PG" in judged.evidence


@pytest.mark.parametrize(
    ("key", "change", "verdict"),
    [
        ("path-infinity", {"curvature_of_f_along_boundary": -4.0}, NO),
        (
            "path-different-points",
            {"directions_vanish_on_boundary_at": {"kl": [[0.25, -1.25]], "l2": [[0.25, -1.25]]}},
            NO,
        ),
        ("path-kl-points", {"directions_vanish_on_boundary_at": {"kl": [], "l2": []}}, NO),
        ("path-no-l2-points", {"directions_vanish_on_boundary_at": {"kl": [], "l2": [[0.25, -1.25]]}}, NO),
        ("path-three-points", {"claimed_stationary_points": [{"kl": {"share": 0.5}}] * 3}, NO),
        ("path-different-solutions", {"start": [1.0, -3.0]}, OPEN),
        ("path-kl", {"start": [1.0, -3.0]}, OPEN),
        ("path-l2", {"start": [1.0, -3.0]}, OPEN),
    ],
)
def test_the_paths_are_judged_by_numbers_and_not_by_words(key, change, verdict, world, tmp_path):
    plain = json.loads((world / "optimization-path/optimization-path.json").read_text())
    assert verdict_of(world, key) is YES
    (tmp_path / "optimization-path").mkdir()
    (tmp_path / "optimization-path/optimization-path.json").write_text(json.dumps(plain | change))
    assert verdict_of(tmp_path, key) is verdict


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"paths": 3, "curvature_of_f_along_boundary": "x"}'])
def test_damaged_numbers_of_the_paths_end_with_code_2(text, capsys, tmp_path):
    path = tmp_path / "optimization-path" / "optimization-path.json"
    path.parent.mkdir()
    path.write_text(text)
    assert main(["reproduce", "claims", "--results", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_traffic_is_harder_where_more_updates_are_above_the_limit(world, tmp_path):
    curves = {rule: curves_of("grid", "trpo") for rule in ("pcpo-kl", "pcpo-l2")}
    safe = {rule: (each[0], 0.0 * each[1]) for rule, each in curves.items()}
    assert verdict_of(world, "traffic-is-harder") is YES
    assert verdict_of(world, "only-one") is YES  # both can be true
    assert verdict_of(changed(world, tmp_path, "grid", safe), "traffic-is-harder") is NO


def test_of_those_that_keep_a_harder_limit_kl_must_earn_most_only(world, tmp_path):
    """L2 keeps the limit, too, and earns less: KL still is the only one that keeps it with the highest reward."""
    rewards, _ = curves_of("harder", "pc-pcpo-l2")
    for name, gain, verdict in (("less", 0.0, YES), ("more", 20.0, NO)):
        curves = {"pc-pcpo-l2": (rewards + gain, curves_of("harder", "pc-pcpo-kl")[1])}
        (tmp_path / name).mkdir()
        assert verdict_of(changed(world, tmp_path / name, "harder", curves), "harder-only-kl") is verdict


def test_a_mean_ratio_of_rewards_has_no_answer_where_one_is_not_above_zero(world, tmp_path):
    rewards, costs = curves_of("grid", "cpo")
    there = changed(world, tmp_path, "grid", {"cpo": (-rewards, costs)})
    verdict, said = page.JUDGES["fifteen-percent"](Data(there))
    assert verdict is OPEN
    assert "has no answer" in said
    assert page.JUDGES["three-and-a-half"](Data(there)).evidence.count("mean over six tasks") == 4


def test_what_came_true_is_told_apart_above_the_limit_and_within_it():
    """Above it half of each promise comes on the next batch; within it nothing does, whatever its sign."""
    before = np.array([20.0, 15.0, 12.5, 4.0, 4.0, 4.0])[:, None] * np.ones((1, 3))
    promised = np.array([-10.0, -5.0, -17.0, 1.0, -1.0, 1.0])[:, None] * np.ones((1, 3))
    columns = {"costs.cost": before, "predicted_costs.cost": promised, "cost_changes.cost": 0.9 * promised}
    run = Series("", "", "pcpo-kl", (0, 1, 2), np.arange(6), {"cost": np.full(6, 5.0)}, columns, (), {})
    assert ours.slopes(run, True, 5.0) == "0.9 (0.9 to 0.9) on the same batch, 0.5 (0.5 to 0.5) on the next, 9 updates"
    assert ours.slopes(run, False, 5.0) == "0.9 (0.9 to 0.9) on the same batch, 0 (0 to 0) on the next, 6 updates"


def test_a_try_with_another_batch_is_not_judged(world, tmp_path):
    for variant in ("pcpo-kl", "cpo"):
        piece = results.read_piece(world / "point-circle" / f"{variant}.seeds-0-4.json")
        record = json.loads(piece.path.read_text())
        record["config"]["batch_size"] = 100
        table = results.read_table(results.table_of(piece.path))
        results.write(tmp_path / "point-circle", results.Unwritten(piece.path.stem, table, record))
    judged = page.JUDGES["equal-reward-point-circle"](Data(tmp_path))
    assert judged == (OPEN, "not run yet: point-circle")
    line = next(line for line in page.runs_table(Data(tmp_path)).splitlines() if line.startswith("| `point-circle`"))
    assert "nothing yet" in line


def test_one_seed_decides_nothing(world, tmp_path):
    for variant in ("pcpo-kl", "cpo"):
        source = world / "point-circle" / f"{variant}.seeds-0-4.json"
        record = json.loads(source.read_text())
        record["config"]["seeds"] = 1
        head, *rows = results.read_table(results.table_of(source)).decode().splitlines()
        table = "\n".join([head, *rows[::5]]) + "\n"
        piece = results.Unwritten(f"{variant}.seed-0", table.encode(), record)
        results.write(tmp_path / "point-circle", piece)
    judged = page.JUDGES["equal-reward-point-circle"](Data(tmp_path))
    assert judged.verdict is OPEN
    assert "without an interval" in judged.evidence


@pytest.mark.parametrize("name", ["optimization-path", "bounds"])
def test_numbers_that_are_kept_twice_are_the_same(name):
    assert (ROOT / f"results/{name}/{name}.json").read_bytes() == (ROOT / f"docs/figures/{name}.json").read_bytes()


# The page.


def test_the_page_says_what_the_results_say(monkeypatch):
    """`pcpo reproduce claims --page docs/results.md` makes it anew after results were added."""
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    text = (ROOT / "docs" / "results.md").read_text()
    assert page.filled(text, page.tables(ROOT / "results")) == text


def test_only_what_is_between_the_markers_changes(tmp_path):
    begin, end = page.BEGIN.format("count"), page.END.format("count")
    text = f"before {begin} old {end} after"
    assert page.filled(text, {"count": "new\n"}) == f"before {begin}\n\nnew\n\n{end} after"
    for broken in ("nothing", f"{end} {begin}", text + text):
        with pytest.raises(RunError, match="no place for count"):
            page.filled(broken, {"count": "new"})
    with pytest.raises(RunError, match="no directory"):
        reproduce(tmp_path, results=tmp_path / "missing")


def test_the_command_prints_every_verdict_and_leaves_its_numbers(capsys, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "results").mkdir()
    assert main(["reproduce", "claims", "--results", str(tmp_path / "results"), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    plain = json.loads((out / "claims.json").read_text())
    assert len(plain["verdicts"]) == len(page.JUDGES)
    assert printed.count("UNDECIDED") + printed.count("NOT CHECKABLE") == len(page.JUDGES)
    assert main(["reproduce", "claims", "--results", str(tmp_path / "no"), "-o", str(out)]) == 2
    assert "--results DIR" in capsys.readouterr().err
