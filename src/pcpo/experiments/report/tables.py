"""The tables of a page: how runs did, how their updates went, what they were configured with and ran on."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from pcpo.experiments.comparison import TOLERANCE, WINDOW, Estimate, OfCost, Summary, summarise
from pcpo.experiments.curves import Look, looks_of
from pcpo.experiments.report.charts import color_index, dashes
from pcpo.experiments.report.gather import Subject
from pcpo.experiments.report.markup import Html, own, tag, together
from pcpo.experiments.report.numbers import duration, estimate, share, short
from pcpo.experiments.report.promises import SEVERITY, Kept, promises, statuses
from pcpo.experiments.report.settings import Settings
from pcpo.experiments.series import Series
from pcpo.experiments.statistics import found, iqm, last_tenth, summed, time_to_safety

FINE, ODD, FAILED = 0, 1, 2
FEW = 6
"""Runs that have a column each."""


# How runs did.


def summary(subjects: Sequence[Subject]) -> Html:
    """Runs of one task, one row each."""
    names = subjects[0].series.cost_names
    above = [tag("td", colspan=5)]
    head = [_heading(text) for text in ("run", "algorithm", "seeds", "updates", "reward")]
    for name in names:
        above.append(tag("th", own(name), colspan=4, scope="colgroup"))
        head += [_heading(text) for text in ("at the end", "limit", "violations", "kept from")]
    above.append(tag("td", colspan=2))
    head += [_heading("steps/s"), _heading("time")]
    rows = [
        _summary_row(each, look) for each, look in zip(subjects, looks_of([s.series for s in subjects]), strict=True)
    ]
    return scrolled(
        "summary",
        tag("table", tag("thead", tag("tr", *above), tag("tr", *head)), tag("tbody", *rows), class_="summary"),
    )


def _summary_row(subject: Subject, look: Look) -> Html:
    run = summarise(subject.series)
    updates = f"{run.updates:,}"
    if subject.unfinished:
        updates += f" of {subject.record.config.updates:,}"
    cells = [
        tag("th", key(look), own(run.label), scope="row"),
        tag("td", subject.series.algorithm_name, class_="word"),
        tag("td", str(run.seeds)),
        tag("td", updates),
        _estimate(run.reward),
    ]
    for of_cost in run.costs.values():
        cells += _of_cost(of_cost, run)
    return tag("tr", *cells, tag("td", short(run.steps_per_second, 3)), tag("td", duration(_seconds(subject.series))))


def _of_cost(cost: OfCost, run: Summary) -> list[Html]:
    verdict, severity = against_limit(cost)
    kept = (
        ("never" if run.updates >= WINDOW else "too short") if cost.kept_from is None else f"update {cost.kept_from:,}"
    )
    return [
        tag("td", estimate(cost.final), tag("span", verdict, class_=f"verdict v{severity}"), title=_ends(cost.final)),
        tag("td", short(cost.limit)),
        _estimate(cost.cumulative_violation),
        tag("td", kept),
    ]


def against_limit(cost: OfCost) -> tuple[str, int]:
    """Whether a final cost is under its limit, in a word: by its interval over seeds, where there are several."""
    low, high = cost.final.interval
    if not math.isfinite(cost.final.mean):
        return "not known", ODD
    if not math.isfinite(high - low):
        low = high = cost.final.mean
    if high <= cost.limit:
        return "under", FINE
    return ("over", FAILED) if low > cost.limit else ("not clear", ODD)


def over_seeds(runs: Sequence[Series]) -> Html:
    """The middle half of the seeds, with intervals that trust no distribution, and how many seeds kept each limit."""
    names = runs[0].cost_names
    above = [tag("td", colspan=3)]
    head = [_heading(text) for text in ("run", "seeds", "reward")]
    for name in names:
        above.append(tag("th", own(name), colspan=4, scope="colgroup"))
        head += [_heading(text) for text in ("at the end", "sum of costs", "violations", "limit kept by")]
    rows = [
        tag(
            "tr",
            _named(run),
            tag("td", f"{len(run.seeds)}"),
            _middle(last_tenth(run.column("discounted_return"))),
            *(cell for name in names for cell in _middles(run, name)),
        )
        for run in runs
    ]
    return scrolled(
        "interquartile means over seeds",
        tag("table", tag("thead", tag("tr", *above) if names else "", tag("tr", *head)), tag("tbody", *rows)),
    )


def _middles(run: Series, name: str) -> list[Html]:
    costs, limit = run.column(f"costs.{name}"), float(run.limits[name][-1])
    times = time_to_safety(costs, limit + TOLERANCE * abs(limit))
    kept = "too short" if np.isnan(times).all() else f"{int(np.isfinite(times).sum())} of {times.size}"
    return [
        _middle(last_tenth(costs)),
        _middle(summed(costs)[-1]),
        _middle(run.column(f"cumulative_violations.{name}")[-1]),
        tag("td", kept),
    ]


def _middle(values: Float[np.ndarray, " seeds"]) -> Html:
    value, interval = found(iqm, values)
    ends = f"{short(interval.low, 3)} to {short(interval.high, 3)}" if interval else ""
    return tag("td", short(value), tag("small", ends) if ends else "")


def _estimate(value: Estimate) -> Html:
    return tag("td", estimate(value), title=_ends(value))


def _ends(value: Estimate) -> str | None:
    low, high = value.interval
    return f"95 % interval over seeds: {short(low)} to {short(high)}" if math.isfinite(high - low) else None


def _seconds(run: Series) -> float:
    """Of the wall clock, over all updates; seeds are trained side by side."""
    seconds = run.column("seconds")
    known = np.isfinite(seconds)
    if not known.any():
        return math.nan
    counts = known.sum(axis=1)
    return float((np.where(known, seconds, 0.0).sum(axis=1) / np.maximum(counts, 1)).sum())


def key(look: Look) -> Html:
    """How a run is drawn: a piece of its line."""
    line = tag(
        "line", x1=1, x2=25, y1=4, y2=4, stroke="currentColor", stroke_width=3, stroke_dasharray=dashes(look) or None
    )
    return tag("svg", line, class_=f"key k{color_index(look)}", viewBox="0 0 26 8", aria_hidden="true")


# How updates went.


def how_updates_ended(runs: Sequence[Series]) -> Html:
    """Runs by statuses."""
    counts = [statuses(run) for run in runs]
    names = sorted({name for each in counts for name in each}, key=lambda name: (SEVERITY.get(name, 99), name))
    head = [_heading("run"), _heading("updates"), *(_heading(name.replace("_", " ")) for name in names)]
    rows = [
        tag("tr", _named(run), tag("td", f"{sum(each.values()):,}"), *(_count(each, name) for name in names))
        for run, each in zip(runs, counts, strict=True)
    ]
    return _table("how updates ended", head, rows)


def _count(counts: Mapping[str, int], name: str) -> Html:
    if name not in counts:
        return tag("td", "0", class_="none")
    part = counts[name] / sum(counts.values())
    bar = tag("span", class_=f"bar s{severity(name)}", style=f"width:{max(2.0, 100 * part):.1f}%")
    return tag(
        "td", f"{counts[name]:,}", tag("small", share(part)), tag("span", bar, class_="track", aria_hidden="true")
    )


def severity(status: str) -> int:
    """Whether a status is what one hopes for, worth a look, or a failure."""
    place = SEVERITY.get(status, 99)
    return FINE if place <= SEVERITY["projected"] else ODD if place < SEVERITY["cg_failed"] else FAILED


def how_promises_came_true(runs: Sequence[Series]) -> Html:
    """Runs by promises: of the reward, of each cost, of the divergence."""
    head = [
        _heading(text)
        for text in (
            "run",
            "promise",
            "updates",
            "same direction",
            "median of happened / promised",
            "within a factor of 2",
        )
    ]
    bodies: list[Html] = []
    for run in runs:
        made = promises(run)
        rows = [
            tag(
                "tr",
                *([tag("th", own(run.label), scope="rowgroup", rowspan=len(made))] if place == 0 else []),
                tag("td", own(each.what), class_="text"),
                *(tag("td", text) for text in _kept(each)),
            )
            for place, each in enumerate(made)
        ]
        bodies.append(tag("tbody", *rows))
    return scrolled("how promises came true", tag("table", tag("thead", tag("tr", *head)), *bodies, class_="promises"))


def _kept(promise: Kept) -> list[str]:
    if not promise.updates:
        return ["0", "", "", ""]
    return [
        f"{promise.updates:,}",
        share(promise.same_direction),
        short(promise.median, 3),
        share(promise.within_two),
    ]


# What they were.


def of_settings(settings: Settings, runs: Sequence[Series], what: str) -> Html:
    """What differs between runs, and then what they share."""
    parts: list[Html] = []
    if settings.different:
        parts += [tag("h3", "What differs"), _differences(settings, runs, f"{what} that differs between runs")]
    elif len(runs) > 1:
        parts.append(tag("p", f"The {what} of all runs is the same."))
    if settings.shared:
        title = "What all runs share" if len(runs) > 1 else "All of it"
        pairs = (tag("div", tag("dt", own(name)), tag("dd", own(value))) for name, value in settings.shared.items())
        parts += [tag("h3", title), tag("dl", *pairs, class_="settings")]
    return together(parts)


def _differences(settings: Settings, runs: Sequence[Series], label: str) -> Html:
    """One row for each setting where runs are few, otherwise one row for each run."""
    if len(runs) <= FEW:
        head = [_heading("setting"), *(_heading(run.label) for run in runs)]
        rows = [
            tag("tr", tag("th", own(name), scope="row"), *(tag("td", own(value)) for value in values))
            for name, values in settings.different.items()
        ]
        return _table(label, head, rows)
    head = [_heading("run"), *(_heading(name) for name in settings.different)]
    rows = [
        tag("tr", _named(run), *(tag("td", own(values[place])) for values in settings.different.values()))
        for place, run in enumerate(runs)
    ]
    return _table(label, head, rows)


# Pieces.


def scrolled(label: str, table: Html) -> Html:
    """A table that scrolls by itself where the page is narrower, also by keyboard."""
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)


def _table(label: str, head: Iterable[Html], rows: Iterable[Html]) -> Html:
    return scrolled(label, tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows)))


def _heading(text: str) -> Html:
    return tag("th", own(text), scope="col")


def _named(run: Series) -> Html:
    return tag("th", own(run.label), scope="row")
