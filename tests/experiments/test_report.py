"""The page about runs: what is on it, that nothing in it can do harm, and that it stays small."""

import dataclasses
import html
import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from pcpo.experiments.curves import COLORS
from pcpo.experiments.report import Subject, gather, page
from pcpo.experiments.report.charts import palette
from pcpo.experiments.report.markup import embedded, tag
from pcpo.experiments.report.page import DARK
from pcpo.experiments.report.promises import kept, promises, statuses
from pcpo.experiments.report.settings import changes, configuration
from pcpo.experiments.report.thin import kept_rows
from pcpo.training.config import Constraint
from pcpo.training.run import Record
from tests.experiments.subjects import VERSIONS, config, on_disk, subject

NASTY = "</script><script>alert(1)</script>\u2028\u2029&amp;\"'"


def drawn(text: str) -> list[dict]:
    """The JSON in a page."""
    found = re.findall(r'<script id="report-data" type="application/json">(.*?)</script>', text, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def shown(text: str) -> str:
    """What a page says, without its scripts, styles and tags."""
    return re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.S))


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> list[Path]:
    """A run of two seeds, and one of another algorithm, both of four updates."""
    place = tmp_path_factory.mktemp("pair")
    return [on_disk(place / "kl", config(seeds=2)), on_disk(place / "cpo", config(algorithm="cpo", delta=0.1))]


@pytest.fixture(scope="module")
def text(pair) -> str:
    return page(*gather(pair))


# What is on it.


def test_the_curves_are_the_means_of_the_seeds_and_what_is_around_them(text):
    reward, cost, violations, trade_off = drawn(text)[:4]
    assert [chart["title"] for chart in (reward, cost, violations)] == ["reward", "cost", "violations so far"]
    kl, cpo = reward["lines"]
    assert (kl["name"], cpo["name"]) == ("PCPO (KL)", "CPO")
    assert kl["x"]["update"] == [0, 1, 2, 3]
    assert kl["x"]["steps"] == [1000, 2000, 3000, 4000]
    assert kl["x"]["hours"] == [pytest.approx(0.5 * n / 3600, rel=1e-4) for n in (1, 2, 3, 4)]
    assert kl["mean"] == [0.5, 10.5, 20.5, 30.5]
    assert (kl["low"], kl["high"]) == ([0, 10, 20, 30], [1, 11, 21, 31])
    assert kl["std"] == pytest.approx(math.sqrt(0.5), rel=1e-4)
    assert kl["student"] == pytest.approx(12.7062 / math.sqrt(2), rel=1e-4)  # of two values
    assert "std" not in cpo
    assert cost["lines"][0]["mean"] == [9.5, 8.5, 7.5, 6.5]
    assert cost["lines"][0]["limit"] == 5
    assert trade_off["same"] == -3
    assert kl["x"]["violations"] == violations["lines"][0]["mean"] == [4.5, 5.5, 6.5, 7.5]


def test_the_table_says_how_each_run_did(text):
    said = " ".join(shown(text).split())  # the last tenth of four updates is the last one
    assert "kl PCPO (KL) 2 4 30.5 ± 6.4 6.5 ± 6.4 not clear 5 7.5 ± 6.4 too short" in said
    assert "cpo CPO 1 4 30 6 over 5 7 too short" in said


def test_the_middle_of_the_seeds_is_there_where_there_are_seeds():
    five = subject("five", config(updates=40, seeds=5))
    five.series.columns["discounted_return"][36:] = [[1.0, 2.0, 3.0, 4.0, 1000.0]] * 4
    five.series.columns["costs.cost"][:] = [[5.0, 5.4, 5.5, 5.6, 0.0]] * 40  # up to a tenth above 5 is kept
    text = page([five])
    (row,) = re.findall(r"<tr><th scope=\"row\"><bdi>five</bdi></th><td>5</td>.*?</tr>", text)
    cells = [" ".join(shown(cell).split()) for cell in re.findall("<td>.*?</td>", row)]
    assert cells[1].startswith("3 ")  # of 2, 3, 4
    assert cells[2].startswith("5.3 ")
    assert cells[3].startswith("212 ")
    assert cells[5] == "4 of 5"
    assert "The middle of the seeds" not in page([subject("one", config())]).split("<footer>")[0]


def test_updates_are_counted_by_status_and_promises_held_against_what_happened(pair, text):
    (first, _), _ = gather(pair)
    assert statuses(first.series) == {"ok": 4, "projected": 4}
    reward, cost, kl = promises(first.series)
    assert (reward.what, cost.what, kl.what) == ("reward", "cost", "KL")
    assert reward[1:] == (8, 1.0, 0.5, 1.0)
    assert cost[1:] == (8, 1.0, 1.0, 1.0)
    assert kl[1:4] == (8, 1.0, pytest.approx(3.0))
    assert kl.within_two == 0.0
    said = " ".join(shown(text).split())
    assert "kl 8 4 50 % 4 50 %" in said
    assert "reward 8 100 % 0.5 100 % cost 8 100 % 1 100 % KL 8 100 % 3 0 %" in said


def test_promises_worked_by_hand():
    promised = np.array([[1.0, 2.0], [-1.0, 0.0], [4.0, np.nan]])
    happened = np.array([[0.5, -2.0], [-3.0, 1.0], [2.0, 1.0]])  # ratios 0.5, -1, 3, (no promise), 0.5, (unknown)
    assert kept("cost", promised, happened) == ("cost", 4, 0.75, 0.5, 0.5)
    assert kept("cost", promised * np.nan, happened).updates == 0


def test_differences_come_first_and_nothing_is_left_out(pair, text):
    subjects, _ = gather(pair)
    different, shared = configuration(subjects)
    assert different == {"algorithm": ["pcpo-kl", "cpo"], "seeds": ["2", "1"], "delta": ["0.01", "0.1"]}
    assert shared["hidden"] == "64 32"
    assert shared["cost: limit"] == "5"
    assert shared["line_search"] == "yes"
    settings = set(subjects[0].record.config.to_json()) - {"constraints"}
    assert settings <= set(different) | set(shared)
    configured = text[text.index('id="configuration"') : text.index('id="environment"')]
    assert configured.index("What differs") < configured.index("What all runs share")
    environment = text[text.index('id="environment"') :]
    assert all(value in environment for value in VERSIONS.values())


def test_what_was_changed_on_the_way_is_said(tmp_path):
    record = Record(config(), ({"from_update": 2, "limits": {"cost": 2.5}, "updates": 4},), VERSIONS)
    directory = on_disk(tmp_path / "run")
    (directory / "config.json").write_text(json.dumps(record.to_json()))
    (only,), _ = gather([directory])
    assert list(changes(only)) == ["from update 2 on, the limit of cost became 2.5 and 4 updates were wanted"]
    assert "the limit of cost became 2.5" in page([only])


def test_runs_of_different_tasks_stand_task_by_task():
    two = (Constraint("cost", 1.0), Constraint("heat", 2.0))
    runs = [
        subject("a", config(task="grid", updates=3)),
        subject("b", config(updates=3)),
        subject("c", config(task="grid", updates=3)),
        subject("d", config(task="grid", updates=3, constraints=two)),
        subject("e", config(task="free", updates=3, constraints=())),
    ]
    text = page(runs)
    sections = re.findall(r'<section id="task-\d+" class="task">(.*?)</section>', text, re.S)
    assert [re.findall(r"<h2><bdi>(.*?)</bdi>", each) for each in sections] == [
        ["grid"], ["point-circle"], ["grid"], ["free"]
    ]  # fmt: skip
    assert [set(re.findall(r'scope="row"><svg.*?</svg><bdi>(.*?)</bdi>', each)) for each in sections] == [
        {"a", "c"}, {"b"}, {"d"}, {"e"}
    ]  # fmt: skip
    titles = [chart["title"] for chart in drawn(text)]
    assert {"cost: heat", "violations so far: heat"} <= set(titles)


def test_an_update_that_was_refused_and_a_gap_are_there():
    run = subject("run", config(updates=5))
    run.series.columns["discounted_return"][2] = np.nan
    words = (("ok",), ("nonfinite",), ("ok",), ("ok",), ("ok",))
    changed = Subject(dataclasses.replace(run.series, statuses=words), run.record)
    (line,) = drawn(page([changed]))[0]["lines"]
    assert line["mean"][2] is None
    assert line["refused"] == [1]


# What cannot be shown.


@pytest.fixture
def broken(tmp_path) -> dict[str, Path]:
    """Directories that cannot be shown, and why."""
    places = {name: tmp_path / name for name in ("damaged", "strange", "empty", "nothing", "old")}
    for name in ("damaged", "strange", "empty", "old"):
        on_disk(places[name])
    (places["damaged"] / "metrics.jsonl").write_text('{"update": 0\n')
    (places["strange"] / "metrics.jsonl").write_text('{"update": "x"}\n')
    (places["empty"] / "metrics.jsonl").write_text("")
    (places["old"] / "config.json").write_text("[]")
    places["nothing"].mkdir()
    return places


def test_every_directory_that_cannot_be_shown_is_named_with_its_reason(pair, broken):
    subjects, left = gather([*broken.values(), *pair])
    assert len(subjects) == 2
    assert [each.label for each in left] == list(broken)
    reasons = {each.label: each.reason for each in left}
    assert "damaged in line 1" in reasons["damaged"]
    assert "not what pcpo wrote" in reasons["strange"]
    assert "no measurements yet" in reasons["empty"]
    assert "there is no config.json" in reasons["nothing"]
    assert "holds no JSON object" in reasons["old"]
    said = shown(page(subjects, left))
    assert said.count("Not shown:") == 5
    assert all(name in said for name in broken)
    assert "damaged/metrics.jsonl is damaged in line 1" in said
    assert str(broken["damaged"].parent) not in said


def test_a_run_that_is_not_finished_is_shown_and_said_to_be_so(tmp_path):
    directory = on_disk(tmp_path / "short", config(updates=9), updates=3)
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('{"update": 3, "se')  # killed here
    (only,), left = gather([directory])
    assert not left
    said = " ".join(shown(page([only])).split())
    assert "Not finished: short : 3 of 9 updates" in said


def test_a_directory_of_runs_stands_for_all_of_them_and_no_run_comes_twice(tmp_path):
    for name in ("b/kl", "a/kl", "c"):
        on_disk(tmp_path / "runs" / name)
    subjects, left = gather([tmp_path / "runs", tmp_path / "runs" / "c"])
    assert [each.series.label for each in subjects] == ["a/kl", "b/kl", "c"]
    assert not left


def test_a_page_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        page([])


# Harm.


def test_it_asks_nothing_of_any_network(text):
    assert re.findall(r"\w+://", text) == []
    links = re.findall(r"""\b(?:src|srcset|href|action|poster|data)\s*=\s*["']?([^"'> ]*)""", text)
    assert len(links) == 5  # to the content, the task and three sections
    assert all(link.startswith("#") for link in links)
    assert all(target.startswith("#") for target in re.findall(r"""url\(\s*["'`]?([^)]*)""", text))
    assert re.findall(r"""@import|["'`(=]\s*//""", text) == []
    assert "default-src 'none'" in html.unescape(text)


def test_names_and_settings_are_text_whatever_is_in_them(tmp_path):
    """A directory, a cost and an option that try to become a script."""
    named = tmp_path / "<script>alert(1)" / "script>"
    settings = config(
        task_options={NASTY: NASTY}, constraints=(Constraint(NASTY, 5.0),), task="<img src=x onerror=alert(1)>"
    )
    on_disk(named, settings)
    other = on_disk(tmp_path / "<script>alert(1)<" / "script>", settings)
    text = page(*gather([named, other]), title=NASTY)
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == 2  # ours: the data, and the charts
    assert "<img" not in text
    assert "\u2028" not in text[text.index("report-data") :]
    chart = drawn(text)[1]
    assert chart["title"] == f"cost: {NASTY}"
    assert chart["lines"][0]["key"].startswith("<script>alert(1)")
    assert "&lt;script&gt;alert(1)" in text


def test_a_name_that_is_not_unicode_can_be_written(tmp_path):
    odd = subject("k\udcffl", config(updates=2, task_options={"x": "\ud800"}))
    assert "k\\udcffl" in page([odd]).encode().decode()


def test_what_is_put_into_markup_is_escaped_unless_it_is_markup():
    assert tag("p", tag("b", "<"), "<", title='"') == '<p title="&quot;"><b>&lt;</b>&lt;</p>'
    assert "<" not in embedded({NASTY: [NASTY]})
    assert json.loads(embedded({NASTY: [NASTY]})) == {NASTY: [NASTY]}


def test_no_more_of_the_machine_is_on_the_page_than_the_names_of_runs(pair, text):
    assert str(pair[0].parent) not in text


# Size.


@pytest.mark.parametrize("n", [1, 7, 100, 1000, 12_345])
def test_thinning_loses_no_extreme_of_any_stretch(n):
    random = np.random.default_rng(0)
    columns = [random.standard_normal(n), np.where(np.arange(n) == n // 3, 50.0, 0.0), np.arange(n) * 1.0]
    columns[0][n // 2 : n // 2 + 2] = np.nan
    rows = kept_rows(columns, 90)
    assert rows.size <= 90
    assert np.all(np.diff(rows) > 0)
    assert {0, n - 1, n // 3, n // 2} <= set(rows.tolist())
    for column in columns:
        if np.isfinite(column).any():
            assert np.nanmax(column[rows]) == np.nanmax(column)
            assert np.nanmin(column[rows]) == np.nanmin(column)
    if n <= 90:
        assert rows.size == n
    else:
        assert np.diff(rows).max() < n / 5  # and none is left empty


def test_lines_that_are_thinned_alike_keep_many_of_the_same_updates():
    random = np.random.default_rng(0)
    first, second = (set(kept_rows([random.standard_normal(1000)], 150).tolist()) for _ in range(2))
    assert first != second
    assert set(range(0, 1000, 20)) <= first & second


def test_sixty_runs_of_a_thousand_updates_and_five_seeds_weigh_less_than_three_megabytes():
    algorithms = ["pcpo-kl", "pcpo-l2", "cpo", "trpo", "pdo", "fpo"]
    tasks = [f"task-{i}" for i in range(6)]
    runs = [
        subject(f"{task}-{algorithm}-{i}", config(task=task, algorithm=algorithm, updates=1000, seeds=5), 10 * j + i)
        for j, task in enumerate(tasks)
        for i, algorithm in enumerate([*algorithms, *algorithms[:4]])
    ]
    text = page(runs)
    assert len(text.encode()) < 3_000_000
    assert text.count("Thinned: of up to 1,000 updates at least") == 6
    lines = [line for chart in drawn(text) if chart["title"] == "cost" for line in chart["lines"]]
    assert len(lines) == 60
    for run, line in zip(runs, lines, strict=True):
        mean = run.series.column("costs.cost").mean(axis=1)
        assert max(line["mean"]) == pytest.approx(mean.max(), rel=1e-4)
        assert min(line["mean"]) == pytest.approx(mean.min(), rel=1e-4)
        assert len(line["mean"]) >= 100


def test_a_page_of_few_updates_is_not_thinned_and_does_not_say_so(text):
    assert "hinned" not in shown(text)


def test_the_same_runs_give_the_same_bytes(pair, text, tmp_path):
    copies = [shutil.copytree(each, tmp_path / each.name) for each in pair]
    assert page(*gather(copies)) == text


# The look.


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_lines_have_the_colours_of_all_other_figures_and_are_seen_on_a_dark_page():
    assert set(COLORS.values()) <= set(palette())
    assert set(palette()) <= set(DARK)
    assert all(contrast(DARK[color], "#191d21") > 4.5 for color in palette())


def test_words_can_be_read_on_both_pages(text):
    def variables(block: str) -> dict[str, str]:
        return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))

    light = variables(text[text.index(":root") : text.index("@media")])
    dark = variables(text[text.index("prefers-color-scheme: dark") : text.index("* { box-sizing")])
    assert set(light) == set(dark)
    for colors in (light, dark):
        for word, back in (
            [(word, back) for word in ("ink", "quiet", "link", "limit") for back in ("page", "card", "soft")]
            + [(each, f"{each}-back") for each in ("good", "odd", "bad")]
            + [("ink", "odd-back")]
        ):
            assert contrast(colors[word], colors[back]) >= 4.5, (word, back)
