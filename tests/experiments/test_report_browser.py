"""The page as a browser shows it: silent, alive under pointer and keys, and in place on phones, paper and in the dark.

Without a Chromium these tests are skipped and say so.
"""

import csv
import io
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from pcpo.experiments.report import gather, page
from pcpo.training.config import Constraint
from tests.experiments import browser
from tests.experiments.subjects import config, on_disk, subject

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def chromium():
    """One browser for all."""
    with browser.started() as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """Two runs of four updates, whose numbers are known."""
    place = tmp_path_factory.mktemp("page")
    runs = [on_disk(place / "kl", config(seeds=2)), on_disk(place / "cpo", config(algorithm="cpo"))]
    path = place / "report.html"
    path.write_text(page(*gather(runs)), encoding="utf-8")
    return path


@pytest.fixture
def tab(chromium, file):
    """The page, which nobody has touched. At the end nothing has been complained of, and nothing fetched."""
    opened = chromium.open(file)
    yield opened
    assert opened.complaints() == []
    assert opened.fetched() == [file.as_uri()]
    opened.close()


def plot(tab: browser.Tab, place: int = 0) -> dict[str, float]:
    """Where a chart's axes are, in the window."""
    return tab(f"""(() => {{
        const plot = document.querySelectorAll(".plot")[{place}];
        plot.scrollIntoView({{block: "center", behavior: "instant"}});
        const edges = [...plot.querySelectorAll("line.edge")].pop().getBoundingClientRect();
        const box = plot.getBoundingClientRect();
        return {{left: edges.left, right: edges.right, top: box.top + 20, bottom: edges.bottom}};
    }})()""")


def hover(tab: browser.Tab, share: float, place: int = 0) -> str:
    """What the tooltip says at a share of the horizontal axis; empty if there is none."""
    box = plot(tab, place)
    tab.mouse("Moved", box["left"] + share * (box["right"] - box["left"]), (box["top"] + box["bottom"]) / 2)
    tab.frame()
    return tooltip(tab, place)


def tooltip(tab: browser.Tab, place: int = 0) -> str:
    said = tab(f"""(() => {{
        const tip = document.querySelectorAll(".plot")[{place}].querySelector(".tip");
        return tip.hidden ? "" : tip.innerText;
    }})()""")
    return " ".join(said.split())


def ticks(tab: browser.Tab, place: int = 0) -> list[str]:
    """What stands below the horizontal axis."""
    return tab(f"""[...document.querySelectorAll(".plot")[{place}].querySelectorAll("text.tick")]
        .filter((node) => node.getAttribute("text-anchor") === "middle").map((node) => node.textContent)""")


def lines(tab: browser.Tab) -> list[int]:
    """How many there are in each of the learning curves."""
    return tab("[...document.querySelectorAll('.plot')].slice(0, 4).map((p) => p.querySelectorAll('path.line').length)")


def test_the_page_is_drawn_without_a_complaint(tab):
    assert tab("document.documentElement.classList.contains('drawn')")
    assert lines(tab) == [2, 2, 2, 2]


def test_hovering_shows_every_line_at_that_update_with_the_numbers_of_the_rows(tab):
    said = hover(tab, 1 / 3)
    assert said == "update 1 PCPO (KL) 10.5 ± 0.71 CPO 10"
    said = hover(tab, 2 / 3, place=1)
    assert said == "update 2 PCPO (KL) 7.5 ± 0.71 ▲ CPO 7 ▲"
    tab.mouse("Moved", 2, 2)
    tab.frame()
    assert tooltip(tab, 1) == ""


def test_a_tap_reads_until_something_else_is_touched(tab):
    tab.resize(360, 740, mobile=True)
    tab.send("Emulation.setTouchEmulationEnabled", enabled=True)

    def tap(x, y):
        tab.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        tab.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        tab.frame()

    box = plot(tab)
    tap(box["left"] + (box["right"] - box["left"]) / 3, box["top"])
    tab.until("document.activeElement.className === 'plot'")
    assert tooltip(tab) == "update 1 PCPO (KL) 10.5 ± 0.71 CPO 10"
    assert tab("document.documentElement.scrollWidth") <= 360
    box = plot(tab, 1)
    tap(box["left"], box["top"])
    tab.until("document.activeElement === document.querySelectorAll('.plot')[1]")
    assert tooltip(tab) == ""
    assert tooltip(tab, 1).startswith("update 0 ")


def test_the_legend_hides_a_line_in_all_charts_and_brings_it_back(tab):
    first = "document.querySelector('.legend button')"
    assert tab(f"{first}.innerText") == "PCPO (KL)"
    tab(f"{first}.click()")
    assert lines(tab) == [1, 1, 1, 1]
    assert tab(f"{first}.getAttribute('aria-pressed')") == "false"
    assert hover(tab, 1 / 3) == "update 1 CPO 10"
    tab(f"{first}.click()")
    assert lines(tab) == [2, 2, 2, 2]
    tab(f"{first}.dispatchEvent(new MouseEvent('click', {{shiftKey: true}}))")
    assert hover(tab, 1 / 3) == "update 1 PCPO (KL) 10.5 ± 0.71"


def test_dragging_zooms_all_charts_of_a_task_and_a_button_undoes_it(tab):
    before = ticks(tab)
    assert before == ["0", "1", "2", "3"]
    box = plot(tab)
    y, width = (box["top"] + box["bottom"]) / 2, box["right"] - box["left"]
    tab.mouse("Moved", box["left"] + 0.1 * width, y)
    tab.mouse("Pressed", box["left"] + 0.1 * width, y, button="left", clickCount=1)
    tab.mouse("Moved", box["left"] + 0.5 * width, y, button="left")
    assert tab("document.querySelectorAll('.brush').length") == 1
    tab.mouse("Released", box["left"] + 0.5 * width, y, button="left", clickCount=1)
    tab.frame()
    assert ticks(tab) == ticks(tab, 1) == ["1"]
    assert hover(tab, 0.6).startswith("update 1 ")
    tab("document.querySelector('.reset').click()")
    assert ticks(tab) == before
    assert tab("document.querySelector('.reset').hidden")


def test_the_wheel_zooms_with_ctrl_or_in_a_chart_that_was_clicked_and_otherwise_scrolls_the_page(tab):
    box = plot(tab)
    x, y = (box["left"] + box["right"]) / 2, (box["top"] + box["bottom"]) / 2
    tab.mouse("Wheel", x, y, deltaX=0, deltaY=-120)
    tab.frame()
    assert ticks(tab) == ["0", "1", "2", "3"]
    box = plot(tab)
    for _ in range(4):
        tab.mouse("Wheel", x, (box["top"] + box["bottom"]) / 2, deltaX=0, deltaY=-120, modifiers=2)
    tab.until("!document.querySelector('.reset').hidden")
    tab.frame()
    assert len(ticks(tab)) < 4
    tab("document.querySelector('.reset').click(); document.querySelector('.plot').focus()")
    tab.mouse("Wheel", x, (box["top"] + box["bottom"]) / 2, deltaX=0, deltaY=-120)
    tab.until("!document.querySelector('.reset').hidden")


def test_everything_can_be_reached_by_keyboard(tab):
    tab("document.querySelector('.plot').focus()")
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    said = "document.querySelector('.plot [aria-live]').textContent"
    assert tab(said).startswith("update 1")
    assert "10.5" in tab(said)
    tab.press("End")
    assert tab(said).startswith("update 3")
    tab.press("+")
    assert not tab("document.querySelector('.reset').hidden")
    tab.press("0")
    assert tab("document.querySelector('.reset').hidden")
    tab.press("Escape")
    assert tooltip(tab) == ""
    reachable = "a[href], button, select, summary, [tabindex='0']"
    assert tab(f'[...document.querySelectorAll("{reachable}")].every((node) => node.tabIndex === 0)')
    names = tab("[...document.querySelectorAll('.plot')].map((node) => node.getAttribute('aria-label'))")
    assert names[0] == "reward: mean of an episode, discounted. PCPO (KL), CPO."
    assert all(names)


def test_other_axes_and_bands_can_be_chosen(tab):
    def choose(name, value):
        tab(f"""(() => {{
            const select = document.querySelector('select[name={name}]');
            select.value = '{value}';
            select.dispatchEvent(new Event('change'));
        }})()""")

    choose("axis", "steps")
    assert hover(tab, 1 / 3) == "2,000 steps PCPO (KL) 10.5 ± 0.71 CPO 10"
    choose("band", "range")
    assert hover(tab, 1 / 3) == "2,000 steps PCPO (KL) 10.5 (10 to 11) CPO 10"
    choose("band", "interval")
    assert "10.5 ± 6.4" in hover(tab, 1 / 3)
    choose("band", "none")
    assert tab("document.querySelectorAll('path.band').length") == 0


def test_every_chart_has_its_numbers_as_a_table_and_as_csv(tab):
    tab("document.querySelector('.numbers').open = true")
    tab.until("document.querySelector('.numbers table') !== null")
    cells = tab(
        "[...document.querySelectorAll('.numbers tbody tr')].map((row) => [...row.children].map((c) => c.innerText))"
    )
    assert cells == [["0", "0.5", "0"], ["1", "10.5", "10"], ["2", "20.5", "20"], ["3", "30.5", "30"]]
    tab("globalThis.saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return 'blob:null/x' }")
    tab("HTMLAnchorElement.prototype.click = () => {}")
    tab("document.querySelectorAll('.tools button:not(.reset)').forEach((button, i) => i < 2 && button.click())")
    text, picture = tab("Promise.all(saved.map((blob) => blob.text()))")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["mean"] for row in rows if row["line"] == "PCPO (KL) [kl]"] == ["0.5", "10.5", "20.5", "30.5"]
    assert picture.startswith("<svg")
    assert "class=" not in picture


def test_an_audit_is_drawn_once_it_is_opened(tab):
    assert tab("document.querySelectorAll('.audit .plot').length") == 0
    tab("document.querySelector('.audit').open = true")
    tab.until("document.querySelectorAll('.audit .plot').length > 6")
    titles = tab("[...document.querySelectorAll('.audit[open] h4')].map((node) => node.innerText)")
    assert titles[:3] == ["change of the reward", "change of the cost", "how far the policy moved"]
    assert hover(tab, 1 / 3, place=4) == "update 1 promised 1 on the same batch 0.5 (0.5 to 0.5)"
    last = 4 + len(titles) - 1
    assert hover(tab, 0.05, place=last) == "update 0 projected 2 of 2"


@pytest.mark.parametrize("opened", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(chromium, tmp_path, opened):
    long = "a-very-long-name-of-a-run-" * 4
    two = (Constraint("cost", 5.0), Constraint("another_cost_with_a_long_name", 2.0))
    path = tmp_path / "phone.html"
    path.write_text(page([subject(long, config(updates=30, seeds=2, constraints=two), 1), subject("b", config())]))
    tab = chromium.open(path, width=360, height=740)
    tab(f"document.querySelectorAll('details').forEach((node) => {{ node.open = {str(opened).lower()} }})")
    tab.frame()
    tab.frame()
    assert tab("document.documentElement.scrollWidth") <= 360
    parts = "[...document.querySelectorAll('figure, .plot, h1, p, .scroll')]"
    assert tab(f"Math.max(...{parts}.map((node) => node.getBoundingClientRect().right))") <= 360
    assert tab.complaints() == []
    tab.close()


def test_it_is_dark_where_the_reader_wants_it_dark_and_light_on_paper(tab):
    def colors():
        return tab(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.line')).color]"
        )

    assert colors() == ["rgb(255, 255, 255)", "rgb(0, 114, 178)"]
    tab.emulate(prefers_color_scheme="dark")
    assert colors() == ["rgb(20, 23, 26)", "rgb(75, 163, 227)"]
    tab.emulate("print", prefers_color_scheme="dark")
    assert colors()[1] == "rgb(0, 114, 178)"
    assert tab("getComputedStyle(document.querySelector('.controls')).display") == "none"
    tab.emulate(prefers_reduced_motion="reduce")
    assert tab("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    tab.emulate()


def test_it_can_be_printed(tab, tmp_path):
    assert tab.pdf(tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_names_that_are_code_are_never_run(chromium, tmp_path):
    settings = config(
        task_options={NASTY: "</script><img src=x onerror=alert(1)>"}, constraints=(Constraint(NASTY, 5.0),)
    )
    path = tmp_path / "nasty.html"
    path.write_text(page([subject(NASTY, settings), subject(f"{NASTY}\u2028b", settings)], title=NASTY))
    tab = chromium.open(path)
    tab("globalThis.ran = 0; globalThis.alert = () => { ran += 1 }")
    tab("document.querySelectorAll('details').forEach((node) => { node.open = true })")
    assert NASTY in hover(tab, 0.5)
    assert tab("document.title") == NASTY
    assert tab("[ran, document.images.length, document.scripts.length]") == [0, 0, 2]
    assert tab.complaints() == []
    assert tab.fetched() == [path.as_uri()]
    tab.close()


def test_runs_with_strange_numbers_are_drawn_without_a_complaint(chromium, tmp_path):
    def run(task, change, **settings):
        found = subject(task, config(**{"task": task, "updates": 6, "seeds": 2, **settings}))
        for name, column in found.series.columns.items():
            cast(dict, found.series.columns)[name] = change(np.array(column))
        return found

    holes = np.array([False, True, False, False, True, False])[:, None]
    runs = [
        run("short", lambda x: x, updates=1),
        run("unknown", lambda x: x * np.nan),
        run("huge", lambda x: x * 1e30),
        run("tiny", lambda x: x * 1e-30),
        run("zero", lambda x: 0.0 * x),
        run("below", lambda x: -np.abs(x)),
        run("holes", lambda x: np.where(holes, np.nan, x)),
        run("free", lambda x: x, constraints=()),
    ]
    runs[4].series.limits["cost"][3:] = 2.0
    path = tmp_path / "strange.html"
    path.write_text(page(runs), encoding="utf-8")
    tab = chromium.open(path)
    tab("document.querySelectorAll('.audit').forEach((node) => { node.open = true })")
    tab.until("[...document.querySelectorAll('figure')].every((figure) => figure.querySelector('.plot'))")
    tab.frame()
    assert tab("[...document.querySelectorAll('svg *')].some((node) => /NaN|Infinity/.test(node.outerHTML))") is False
    nothing = (
        "[...document.querySelectorAll('figure text.name')].filter((node) => node.textContent === 'not measured here')"
    )
    assert tab(f"{nothing}.length") >= 3
    unknown = "[...document.querySelectorAll('.plot')].indexOf(document.querySelector('#task-1 .plot'))"
    assert "not measured" in hover(tab, 0.5, place=tab(unknown))
    assert tab.complaints() == []
    tab.close()


def test_of_more_lines_than_a_reader_can_list_those_next_to_the_pointer_are_read(chromium, tmp_path):
    path = tmp_path / "many.html"
    runs = [subject(f"run-{i}", config(updates=3), i) for i in range(20)]
    for i, run in enumerate(runs):
        cast(dict, run.series.columns)["discounted_return"] = np.full((3, 1), float(i))
    path.write_text(page(runs), encoding="utf-8")
    tab = chromium.open(path)
    box = plot(tab)
    tab.mouse("Moved", (box["left"] + box["right"]) / 2, box["bottom"] - 2)
    tab.frame()
    said = tooltip(tab)
    assert said.startswith("update 1 ")
    assert [f"run-{i} {i}" in said for i in range(20)] == [True] * 16 + [False] * 4
    assert said.endswith("nearest 16 lines; 4 more: hide some in the legend to read them")
    tab("[...document.querySelectorAll('.legend button')].find((node) => node.innerText === 'none').click()")
    tab("document.querySelector('.legend button').click()")
    assert hover(tab, 0.5) == "update 1 PCPO (KL), run-0 0"
    assert tab.complaints() == []
    tab.close()


def test_a_complaint_would_be_heard(chromium, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<script>console.error('one'); setTimeout(() => { throw new Error('two') })</script>")
    tab = chromium.open(path)
    tab.until("true")
    said = " ".join(tab.complaints())
    assert "one" in said
    assert "two" in said
    tab.close()
