"""The page: one file that needs nothing else, now or later. The same runs give the same bytes."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import NamedTuple, TypeAlias

from pcpo import __version__
from pcpo.experiments.comparison import differences
from pcpo.experiments.report import charts, tables
from pcpo.experiments.report.gather import Left, Subject
from pcpo.experiments.report.markup import Html, embedded, own, tag, together
from pcpo.experiments.report.settings import changes, configuration, environment
from pcpo.experiments.series import Series

DARK = {
    "#0072b2": "#4ba3e3",
    "#d55e00": "#ff8b3e",
    "#cc79a7": "#e6a0c8",
    "#009e73": "#2cc79b",
    "#e69f00": "#f2b632",
    "#56b4e9": "#a9dbfb",
    "#4d4d4d": "#c3c8ce",
    "#7f7f7f": "#9aa1a9",
    "#222222": "#e4e7ea",
}
"""What the colours of the figures become on a dark page: as far apart, and as far from the page."""


Charts: TypeAlias = list[tuple[int, charts.Plain]]


class Group(NamedTuple):
    """Runs of one task with the same costs, and their charts with the places that these have on the page."""

    task: str
    subjects: list[Subject]
    curves: Charts
    audits: list[Charts]


def page(subjects: Sequence[Subject], left: Sequence[Left] = (), title: str = "Training report") -> str:
    """The page about some runs.

    Args:
        subjects: The runs, at least one. Those of one task stand together, tasks in the order of their first run.
        left: Directories that could not be shown; the page says so.
        title: Of the page.
    """
    if not subjects:
        raise ValueError("there are no runs; give at least one")
    groups, drawn = _grouped(subjects)
    script, style = _asset("chart.js"), _asset("page.css") + _colors()
    body = together(
        [
            tag("a", "Skip to the runs", href="#content", class_="skip"),
            _header(groups, subjects, left, title),
            tag("main", *_sections(groups, subjects), id="content"),
            _footer(),
            Html('<svg id="sprite" width="0" height="0" aria-hidden="true"></svg>'),
            tag("script", Html(embedded(drawn)), id="report-data", type="application/json"),
            tag("script", Html(script)),
        ],
        "\n",
    )
    head = together(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="generator", content=f"pcpo {__version__}"),
            tag("title", title),
            tag("style", Html(style)),
        ],
        "\n",
    )
    text = f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    return text.encode("utf-8", "backslashreplace").decode()  # names of files need not be Unicode


def _grouped(subjects: Sequence[Subject]) -> tuple[list[Group], list[charts.Plain]]:
    """The runs by task, and everything that is drawn of them."""
    by_task: dict[tuple[str, tuple[str, ...]], list[Subject]] = {}
    for each in subjects:
        by_task.setdefault((each.series.task, each.series.cost_names), []).append(each)
    rows = charts.rows_for([each.series for each in subjects])
    drawn: list[charts.Plain] = []

    def placed(some: Sequence[charts.Plain]) -> Charts:
        drawn.extend(some)
        return list(enumerate(some, len(drawn) - len(some)))

    groups: list[Group] = []
    for (task, _), mine in by_task.items():
        names = {each.series.task_name for each in mine}
        curves = placed(charts.curves([each.series for each in mine], rows.curve))
        audits = [placed(charts.audit(each.series, rows.audit)) for each in mine]
        groups.append(Group(names.pop() if len(names) == 1 else task, mine, curves, audits))
    return groups, drawn


# The parts of the page.


def _header(groups: Sequence[Group], subjects: Sequence[Subject], left: Sequence[Left], title: str) -> Html:
    seeds = sum(len(each.series.seeds) for each in subjects)
    said = [_count(len(subjects), "run"), _count(len(groups), "task"), _count(seeds, "seed")]
    links = [tag("a", own(group.task), href=f"#task-{place}") for place, group in enumerate(groups)]
    links += [tag("a", text, href=f"#{name}") for name, text in _SECTIONS.items()]
    return tag(
        "header",
        tag("h1", title),
        tag("p", " · ".join(said), class_="lead"),
        _notes(subjects, left),
        tag("nav", tag("ul", *(tag("li", link) for link in links)), aria_label="Contents"),
    )


_SECTIONS = {"configuration": "Configuration", "environment": "Environment", "reading": "How to read this page"}


def _notes(subjects: Sequence[Subject], left: Sequence[Left]) -> Html:
    """What is missing, before anything else."""
    said = [tag("li", tag("strong", "Not shown: "), own(each.label), tag("br"), own(each.said)) for each in left]
    said += [
        tag("li", tag("strong", "Not finished: "), own(each.series.label), f": {each.unfinished}.")
        for each in subjects
        if each.unfinished
    ]
    if not said:
        return Html("")
    return tag("div", tag("ul", *said), class_="notes", role="note", aria_label="What is missing")


def _sections(groups: Sequence[Group], subjects: Sequence[Subject]) -> Iterator[Html]:
    for place, group in enumerate(groups):
        yield _of_task(place, group, alone=len(subjects) == 1)
    runs = [each.series for each in subjects]
    yield tag(
        "section",
        tag("h2", _SECTIONS["configuration"]),
        tables.of_settings(configuration(subjects), runs, "configuration"),
        *_changes(subjects),
        id="configuration",
    )
    yield tag(
        "section",
        tag("h2", _SECTIONS["environment"]),
        tables.of_settings(environment(subjects), runs, "environment"),
        id="environment",
    )


def _of_task(place: int, group: Group, alone: bool) -> Html:
    runs = [each.series for each in group.subjects]
    notes = [tag("li", own(text)) for text in differences(runs)]
    return tag(
        "section",
        tag("h2", own(group.task)),
        tables.summary(group.subjects),
        tag("ul", *notes, class_="caveats", aria_label="What to mind in comparing these runs") if notes else "",
        *_over_seeds(runs),
        tag("h3", "Learning curves"),
        _curves(group),
        tag("h3", "Updates"),
        tables.how_updates_ended(runs),
        tables.how_promises_came_true(runs),
        *(_audit(run, mine, alone) for run, mine in zip(runs, group.audits, strict=True)),
        id=f"task-{place}",
        class_="task",
    )


def _over_seeds(runs: Sequence[Series]) -> Iterator[Html]:
    if any(len(run.seeds) > 1 for run in runs):
        yield tag("h3", "The middle of the seeds")
        yield tables.over_seeds(runs)


def _curves(group: Group) -> Html:
    axes = {"update": "updates", "steps": "steps of the environment", "hours": "wall clock"}
    several = any(len(each.series.seeds) > 1 for each in group.subjects)
    bands = {
        "std": "one standard deviation",
        "interval": "95 % interval of the mean",
        "range": "lowest to highest seed",
    }
    controls = [_choice("axis", "over", axes)]
    controls += [_choice("band", "band", {**bands, "none": "none"})] if several else []
    return tag(
        "div",
        tag("div", *controls, class_="controls"),
        tag("div", class_="legend", role="group", aria_label="Lines that are shown"),
        tag("p", _drawn(group, several), class_="drawn-how"),
        tag("div", *(_figure(place, chart) for place, chart in group.curves), class_="charts"),
        data_charts="curves",
    )


def _drawn(group: Group, several: bool) -> str:
    """What the lines are, and whether there is more than is drawn."""
    said = ["Lines are means over seeds." if several else "Each line is one seed."]
    lines = [line for _, chart in group.curves for line in chart["lines"]]
    thinned = [line for line in lines if len(line["x"]["update"]) < line["of"]]
    if thinned:
        fewest = min(len(line["x"]["update"]) for line in thinned)
        most = max(line["of"] for line in thinned)
        said.append(
            f"Thinned: of up to {most:,} updates at least {fewest:,} are drawn, with the lowest and the highest value "
            "of every stretch, so that no peak is lost. Tables are made from all updates."
        )
    return " ".join(said)


def _choice(name: str, label: str, options: dict[str, str]) -> Html:
    chosen = (tag("option", text, value=value) for value, text in options.items())
    return tag("label", f"{label} ", tag("select", *chosen, name=name, autocomplete="off"))


def _audit(run: Series, mine: Charts, opened: bool) -> Html:
    thinned = any(len(line["x"]["update"]) < line["of"] for _, chart in mine for line in chart.get("lines", ()))
    said = "Means over seeds, and the range of the seeds." if len(run.seeds) > 1 else "One seed."
    if thinned:
        said += " Thinned as the curves are: the lowest and the highest value of every stretch of updates are drawn."
    return tag(
        "details",
        tag("summary", "Audit of ", own(run.label), ", update by update"),
        tag("p", said, class_="drawn-how"),
        tag("div", *(_figure(place, chart) for place, chart in mine), class_="charts", data_charts="audit"),
        class_="audit",
        open=opened,
    )


def _figure(place: int, chart: charts.Plain) -> Html:
    caption = tag("figcaption", tag("h4", own(chart["title"])), tag("p", own(chart["about"]), class_="about"))
    return tag("figure", caption, tag("noscript", _NO_SCRIPT), data_chart=place)


_NO_SCRIPT = "This chart is drawn by JavaScript, which is switched off. The tables of this page do without."


def _changes(subjects: Sequence[Subject]) -> Iterator[Html]:
    said = [tag("li", own(each.series.label), f": {text}.") for each in subjects for text in changes(each)]
    if said:
        yield tag("h3", "Changed while training")
        yield tag("ul", *said)


def _footer() -> Html:
    made = f"Made by pcpo {__version__} from the files of these runs. The same files give the same page."
    reading = tag("section", tag("h2", _SECTIONS["reading"]), Html(_asset("reading.html")), id="reading")
    return tag("footer", reading, tag("p", made))


# What the page is made of.


def _asset(name: str) -> str:
    return resources.files("pcpo.experiments.report").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but ours, whatever else gets into the page."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'"]
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])


def _colors() -> str:
    """The classes that lines refer to, for a light and for a dark page."""
    light = charts.palette()
    rules = "".join(f".k{place}{{color:{color}}}" for place, color in enumerate(light))
    dark = "".join(f".k{place}{{color:{DARK.get(color, color)}}}" for place, color in enumerate(light))
    return f"{rules}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
