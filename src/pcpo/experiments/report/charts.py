"""What the charts of a page draw, as plain values for JavaScript: thinned, rounded, and equal values written once."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from pcpo.experiments.audit import COSTS, REWARD
from pcpo.experiments.curves import COLORS, Look, abscissa, looks_of, total_violations
from pcpo.experiments.plots import GREY, INK
from pcpo.experiments.report.promises import SEVERITY, statuses
from pcpo.experiments.report.thin import kept_rows
from pcpo.experiments.series import Series, Table
from pcpo.training.statistics import Band, mean_and_band

Plain: TypeAlias = dict[str, Any]
"""JSON to be."""

NUMBERS = 330_000
"""About as many numbers as one page holds; each takes some seven bytes."""
MOST_ROWS = 2_000
"""Of one line: more than a screen has columns."""
LEAST_ROWS = 24
STRETCHES = 60
"""Bars of the chart of statuses, at most."""
DIGITS = 5
CURVE, AUDIT = 3, 1
"""How rows are shared out between learning curves and audits."""


class Rows(NamedTuple):
    """How many rows a line may have."""

    curve: int
    audit: int


def rows_for(runs: Sequence[Series]) -> Rows:
    """Shares out what a page has room for."""
    wanted = sum(
        CURVE * (1 + 2 * len(run.cost_names)) * (4 + _spread(run))
        + AUDIT * (5 + 5 * len(run.cost_names)) * (1 + min(_spread(run), 3))
        for run in runs
    )
    unit = NUMBERS / max(wanted, 1)
    curve, audit = (min(max(int(share * unit), LEAST_ROWS), MOST_ROWS) for share in (CURVE, AUDIT))
    return Rows(curve, audit)


def _spread(run: Series) -> int:
    """Numbers for the mean and what is around it."""
    return 1 if len(run.seeds) == 1 else 4


# Learning curves of the runs of one task.


def curves(runs: Sequence[Series], most: int) -> list[Plain]:
    """Reward, each cost with its limit, and the violations of each cost so far."""
    looks = looks_of(runs)
    names = runs[0].cost_names
    found = [
        _chart("reward", "mean of an episode, discounted", [_curve(look, "discounted_return", most) for look in looks])
    ]
    for name in names:
        lines = [_curve(look, f"costs.{name}", most, limit=look.series.limits[name]) for look in looks]
        found.append(_chart(f"cost: {name}" if name != "cost" else "cost", "mean of an episode", lines))
    for name in names:
        title = "violations so far" if len(names) == 1 else f"violations so far: {name}"
        lines = [_curve(look, f"cumulative_violations.{name}", most) for look in looks]
        found.append(_chart(title, "what was above the limit, added up", lines))
    if names:
        found.append(_trade_off(len(found), several=len(names) > 1))
    return found


def _trade_off(place: int, several: bool) -> Plain:
    """Reward over the violations so far: the lines of the first chart, so many places before this one."""
    about = "of all costs, added up" if several else "where lines end, runs do"
    chart = _chart("reward against violations so far", about, [])
    return {**chart, "same": -place, "axis": "violations", "bands": False}


def palette() -> list[str]:
    """The colours that lines refer to by their place; the same as in all figures."""
    return list(dict.fromkeys([*COLORS.values(), GREY, INK, REWARD, *COSTS]))


def color_index(look: Look) -> int:
    """The place of a run's colour in the palette."""
    return palette().index(look.color)


def dashes(look: Look) -> str:
    """As SVG writes them."""
    return " ".join(f"{2 * length:g}" for length in look.dashes if length is not None)


def _curve(look: Look, column: str, most: int, limit: Float[np.ndarray, " n"] | None = None) -> Plain:
    run = look.series
    values = run.column(column)
    refused: Bool[np.ndarray, " n"] = np.any(run.refused, axis=1)
    rows = kept_rows([*_outline(values), refused.astype(float), *([] if limit is None else [limit])], most)
    seconds = np.nan_to_num(mean_and_band(run.column("seconds")).mean)
    x: dict[str, Any] = {"steps": abscissa(run, "steps"), "hours": np.cumsum(seconds) / 3600.0}
    if run.cost_names:
        x["violations"] = mean_and_band(total_violations(run)).mean
    return {
        "key": run.label,
        "name": look.name,
        "color": color_index(look),
        "dash": dashes(look),
        "x": {"update": run.updates[rows].tolist(), **{name: _packed(each[rows]) for name, each in x.items()}},
        **_summary(values, rows, whole=True),
        **({} if limit is None else {"limit": _packed(limit[rows])}),
        "refused": np.flatnonzero(refused[rows]).tolist(),
        "of": len(run.updates),
    }


# The audit of one run, update by update.


def audit(run: Series, most: int) -> list[Plain]:
    """What updates promised and what came of it, how well they were computed, and what they were called."""
    return [chart for chart in _audit(run, most) if chart["kind"] == "status" or chart["lines"]]


def _audit(run: Series, most: int) -> Iterator[Plain]:
    several = len(run.cost_names) > 1
    yield _chart(
        "change of the reward",
        "by one update",
        [
            _line(run, "promised", run.column("predicted_reward"), INK, most, dotted=True),
            _line(run, "on the same batch", run.column("reward_change"), REWARD, most),
        ],
    )
    for name in run.cost_names:
        yield _chart(
            f"change of the cost: {name}" if several else "change of the cost",
            "by one update",
            [
                _line(run, "promised", run.column(f"predicted_costs.{name}"), INK, most, dotted=True),
                _line(run, "on the same batch", run.column(f"cost_changes.{name}"), _cost_color(run, name), most),
            ],
        )
    delta = run.settings.get("delta")
    yield _chart(
        "how far the policy moved",
        "KL from the old policy, nats",
        [
            _line(run, "promised", run.column("predicted_kl"), INK, most, dotted=True),
            _line(run, "on the same batch", run.column("kl"), REWARD, most),
        ],
        log=True,
        marks=[{"value": delta, "name": f"δ = {delta:g}"}] if delta else [],
    )
    for name in run.cost_names:
        measured = run.column(f"costs.{name}")
        after = np.concatenate([measured[1:], np.full((1, measured.shape[1]), np.nan)])
        yield _chart(
            f"worst case, an estimate: {name}" if several else "worst case, an estimate",
            "mean of an episode after the update",
            [
                _line(run, "worst case", run.column(f"bound_estimate_costs.{name}"), INK, most, dotted=True),
                _line(run, "next batch", after, _cost_color(run, name), most),
            ],
            log=True,
        )
    yield _chart(
        "residuals of conjugate gradient",
        "what is left of a right-hand side",
        [
            _line(run, name, run.column(f"cg_residuals.{name}"), _cost_color(run, name), most)
            for name in ("reward", *run.cost_names)
        ],
        log=True,
    )
    if run.cost_names:
        yield _chart(
            "multipliers",
            "of each constraint",
            [
                _line(run, name, run.column(f"multipliers.{name}"), _cost_color(run, name), most)
                for name in run.cost_names
            ],
        )
    yield _chart("condition of H", "condition number", [_measured_now_and_then(run, "condition", most)], log=True)
    yield status_chart(run)


def _cost_color(run: Series, name: str) -> str:
    """As in the picture that `pcpo plot --audit` draws."""
    return COSTS[run.cost_names.index(name) % len(COSTS)] if name in run.cost_names else REWARD


def _line(run: Series, name: str, values: Table, color: str, most: int, dotted: bool = False) -> Plain | None:
    """The mean over seeds and, of a line that is not dotted, their range; None where nothing was measured."""
    if not np.isfinite(values).any():
        return None
    rows = kept_rows(_outline(values)[: 1 if dotted else 3], most)
    return {
        "key": name,
        "name": name,
        "color": palette().index(color),
        "dash": "1.5 4" if dotted else "",
        "x": {"update": run.updates[rows].tolist()},
        **({"mean": _packed(mean_and_band(values).mean[rows])} if dotted else _summary(values, rows, whole=False)),
        "of": len(run.updates),
    }


def _measured_now_and_then(run: Series, name: str, most: int) -> Plain | None:
    """Only the updates in which it was measured, as points."""
    there = np.isfinite(run.column(name)).any(axis=1)
    if not there.any():
        return None
    part = Series(
        label=run.label,
        task=run.task,
        algorithm=run.algorithm,
        seeds=run.seeds,
        updates=run.updates[there],
        limits={},
        columns={name: run.column(name)[there]},
    )
    line = _line(part, "condition number", part.column(name), REWARD, most)
    return None if line is None else {**line, "points": True}


def status_chart(run: Series) -> Plain:
    """How often each status came up in each stretch of updates, seeds together."""
    names = list(statuses(run))
    stretches = np.array_split(np.arange(len(run.updates)), min(len(run.updates), STRETCHES))
    counts = [[sum(run.statuses[row].count(name) for row in stretch) for stretch in stretches] for name in names]
    return {
        "kind": "status",
        "title": "status of the updates",
        "about": "share of the updates of all seeds",
        "names": [name.replace("_", " ") for name in names],
        "severity": [0 if SEVERITY.get(name, 99) <= 1 else 1 if SEVERITY.get(name, 99) < 8 else 2 for name in names],
        "from": [int(run.updates[stretch[0]]) for stretch in stretches],
        "to": [int(run.updates[stretch[-1]]) for stretch in stretches],
        "counts": counts,
        "seeds": len(run.seeds),
    }


# Pieces.


def _chart(
    title: str, about: str, lines: Sequence[Plain | None], log: bool = False, marks: Sequence[Plain] = ()
) -> Plain:
    there = [line for line in lines if line is not None]
    return {"kind": "lines", "title": title, "about": about, "log": log, "lines": there, "marks": list(marks)}


def _outline(values: Table) -> list[Float[np.ndarray, " n"]]:
    """What a reader sees of a line: the mean, and the lowest and highest seed."""
    low, high = _range(values)
    return [mean_and_band(values).mean, *([low, high] if values.shape[1] > 1 else [])]


def _range(values: Table) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    known = np.isfinite(values)
    some = known.any(axis=1)
    low = np.where(some, np.where(known, values, np.inf).min(axis=1), np.nan)
    high = np.where(some, np.where(known, values, -np.inf).max(axis=1), np.nan)
    return low, high


def _summary(values: Table, rows: Int[np.ndarray, " k"], whole: bool) -> Mapping[str, Any]:
    """The mean, and around it the range of the seeds; where ``whole``, also both bands of `mean_and_band`."""
    deviation = mean_and_band(values)
    found = {"mean": deviation.mean}
    if values.shape[1] > 1:
        found["low"], found["high"] = _range(values)
        if whole:
            found["std"] = deviation.high - deviation.mean
            found["student"] = _student(found["std"], mean_and_band(values, "interval"))
    return {name: _packed(each[rows]) for name, each in found.items()}


def _student(deviation: Float[np.ndarray, " n"], interval: Band) -> Float[np.ndarray, " n"]:
    """By what a deviation of seeds is multiplied for an interval of their mean; the same number nearly always."""
    reach, spread = interval.high - interval.mean, deviation > 0.0
    factor = reach / np.where(spread, deviation, 1.0)
    return np.where(spread, factor, factor.max(initial=0.0, where=spread))


def _packed(values: Any) -> Any:
    """A list of numbers, or one number where all are equal; null is not-a-number."""
    plain = [rounded(float(value)) for value in values]
    return plain[0] if len(plain) > 1 and len(set(plain)) == 1 else plain


def rounded(value: float) -> float | int | None:
    """Few digits, in as few characters as JSON allows.

    Example:
        >>> [rounded(x) for x in (0.12345678, 3.0, math.inf)]
        [0.12346, 3, None]
    """
    if not math.isfinite(value):
        return None
    if value.is_integer() and abs(value) < 1e15:
        return int(value) if abs(value) < 1e6 else int(float(f"{value:.{DIGITS}g}"))
    return float(f"{value:.{DIGITS}g}")
