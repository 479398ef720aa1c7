"""What the updates of a run predicted, what they did, and how well they were computed, in one figure.

Predictions are first-order (reward, costs) and second-order (KL); what happened is measured on the batch that the
update was computed from. Where the two agree, points lie on the diagonal. The bound is an **estimate**: the theorem
takes a maximum over all states, a batch gives the largest value among its samples.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pcpo.core.types import Status
from pcpo.experiments import plots
from pcpo.experiments.curves import LIMIT, View, abscissa, finish, headline, isolated, looks_of, new_grid
from pcpo.experiments.series import Series, Table
from pcpo.training.statistics import mean_and_band

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

REWARD = plots.KL
COSTS = (plots.L2, plots.CPO, "#cc79a7", "#e69f00", "#56b4e9")
"""Of the first cost, the second, and so on, and over again."""


def audit(run: Series, x: str = "updates") -> "matplotlib.figure.Figure":
    """Eight panels on one run. Call it, and save the figure, inside `plots.style`."""
    view = View(looks_of([run]), "std", x)
    panels: list[Callable[[Any, View], None]] = [
        draw_reward_change,
        draw_cost_changes,
        draw_kl,
        draw_bounds,
        draw_residuals,
        draw_condition,
        draw_multipliers,
        draw_statuses,
    ]
    if not run.cost_names:
        panels = [draw_reward_change, draw_kl, draw_residuals, draw_condition, draw_statuses]
    figure = new_grid(2, -(-len(panels) // 2))
    for place, draw in enumerate(panels):
        draw(figure.add_subplot(-(-len(panels) // 2), 2, place + 1), view)
    headline(figure, view, of_curves=False)
    return figure


# What was predicted, and what happened.


def draw_reward_change(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Realised over predicted change of the reward surrogate."""
    run = _run(view)
    _against(axes, {"reward": (run.column("predicted_reward"), run.column("reward_change"))}, [REWARD])
    _title(axes, "change of the reward", "predicted", "on the same batch")


def draw_cost_changes(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Realised over predicted changes of the cost surrogates."""
    run = _run(view)
    pairs = {name: (run.column(f"predicted_costs.{name}"), run.column(f"cost_changes.{name}")) for name in _costs(view)}
    _against(axes, pairs, [_color(view, name) for name in pairs])
    _title(axes, "change of the cost" if len(pairs) == 1 else "changes of the costs", "predicted", "on the same batch")


def draw_kl(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Predicted and realised divergence from the old policy, and delta."""
    run = _run(view)
    _line(axes, view, run.column("kl"), "on the same batch", REWARD)
    _line(axes, view, run.column("predicted_kl"), "predicted", plots.INK, dashes=(1.5, 1.5))
    delta = run.settings.get("delta")
    _positive(axes, also=[delta] if delta else [])
    finish(axes, view, "KL, nats")
    if delta:
        axes.axhline(float(delta), color=LIMIT, linewidth=1.0, dashes=(1.5, 1.5))
        plots.label(axes, (axes.get_xlim()[1], delta), f"$\\delta$ = {delta:g}", LIMIT, (-2, 3), "right", "bottom", 8.5)
    axes.set_title("how far the policy moved", fontweight="bold")
    _legend(axes)


def draw_bounds(axes: "matplotlib.axes.Axes", view: View) -> None:
    """The estimated worst case of each cost after an update, and what the next batch measured."""
    run = _run(view)
    for name in _costs(view):
        measured = run.column(f"costs.{name}")
        after = np.concatenate([measured[1:], np.full((1, measured.shape[1]), np.nan)])
        who = f" {name}" if len(_costs(view)) > 1 else ""
        _line(axes, view, run.column(f"bound_estimate_costs.{name}"), f"worst case{who}", _color(view, name), (3, 1.5))
        _line(axes, view, after, f"next batch{who}", _color(view, name))
    finish(axes, view, "$J_C$ after the update")
    _positive(axes)
    axes.set_title("worst case, an estimate", fontweight="bold")
    _legend(axes)


# How well it was computed.


def draw_residuals(axes: "matplotlib.axes.Axes", view: View) -> None:
    """What conjugate gradient left over of each right-hand side."""
    run = _run(view)
    for name in ("reward", *_costs(view)):
        _line(axes, view, run.column(f"cg_residuals.{name}"), name, _color(view, name))
    _positive(axes)
    finish(axes, view, "|H x - r| / |r|")
    axes.set_title("residuals of conjugate gradient", fontweight="bold")
    _legend(axes)


def draw_condition(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Largest over smallest eigenvalue of H, where it was measured."""
    run = _run(view)
    condition = run.column("condition")
    places = np.broadcast_to(abscissa(run, view.x)[:, None], condition.shape)
    axes.plot(
        places, condition, linestyle="none", marker="o", markersize=5, color=REWARD, alpha=0.6, markeredgewidth=0,
        clip_on=False,
    )  # fmt: skip
    _positive(axes)
    if axes.get_yscale() == "log":
        low, high = axes.get_ylim()
        axes.set_ylim(10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high)))
    finish(axes, view, "condition number")
    axes.set_title("condition of H", fontweight="bold")
    if not np.isfinite(condition).any():
        _say(axes, "not measured in these updates")


def draw_multipliers(axes: "matplotlib.axes.Axes", view: View) -> None:
    """The multiplier of each constraint; zero where it did not act."""
    run = _run(view)
    for name in _costs(view):
        _line(axes, view, run.column(f"multipliers.{name}"), name, _color(view, name))
    finish(axes, view, "multiplier")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_title("multipliers", fontweight="bold")
    _legend(axes)


def draw_statuses(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Which share of the seeds ended each update with which status: the taller a bar, the more seeds."""
    run = _run(view)
    places = abscissa(run, view.x)
    severity = {status.name.lower(): int(status) for status in Status}
    width = min(max(240.0 / len(places), 0.6), 6.0)
    present = sorted({status for row in run.statuses for status in row if status}, key=lambda s: severity.get(s, -1))
    for height, status in enumerate(present):
        share = np.array([row.count(status) / max(len(row), 1) for row in run.statuses])
        shown = share > 0
        color = plots.CPO if severity.get(status, 99) <= int(Status.PROJECTED) else plots.L2
        color = LIMIT if severity.get(status, 99) >= int(Status.CG_FAILED) else color
        middle = np.full(shown.sum(), float(height))
        reach = 0.38 * share[shown]
        axes.vlines(places[shown], middle - reach, middle + reach, color=color, linewidth=width)
    finish(axes, view, "")
    axes.grid(visible=False)
    axes.set_yticks(range(len(present)), [status.replace("_", " ") for status in present])
    axes.set_ylim(-0.6, max(len(present), 1) - 0.4)
    axes.set_title("status of the update", fontweight="bold")


# Pieces.


def _run(view: View) -> Series:
    return view.looks[0].series


def _costs(view: View) -> tuple[str, ...]:
    return _run(view).cost_names


def _color(view: View, name: str) -> str:
    names = _costs(view)
    return COSTS[names.index(name) % len(COSTS)] if name in names else REWARD


def _line(
    axes: "matplotlib.axes.Axes", view: View, values: Table, name: str, color: str, dashes: Any = (None, None)
) -> None:
    """The mean over seeds, with the range of the seeds."""
    places = abscissa(_run(view), view.x)
    mean = mean_and_band(values).mean
    known = np.isfinite(values).any(axis=1)
    if values.shape[1] > 1 and known.any():
        low = np.where(known, np.nanmin(np.where(np.isnan(values), np.inf, values), axis=1), np.nan)
        high = np.where(known, np.nanmax(np.where(np.isnan(values), -np.inf, values), axis=1), np.nan)
        axes.fill_between(places, low, high, color=color, alpha=0.15, linewidth=0.0)
    axes.plot(places, mean, color=color, linewidth=1.4, dashes=dashes, label=name)
    alone = isolated(mean)
    axes.plot(places[alone], mean[alone], color=color, linestyle="none", marker="o", markersize=3)


def _against(axes: "matplotlib.axes.Axes", pairs: Mapping[str, tuple[Table, Table]], colors: list[str]) -> None:
    """Points for all updates and seeds, with the diagonal on which they should lie."""
    for (name, (predicted, realised)), color in zip(pairs.items(), colors, strict=True):
        axes.plot(
            predicted.reshape(-1), realised.reshape(-1), linestyle="none", marker="o", markersize=3.4, color=color,
            alpha=0.55, markeredgewidth=0, label=name,
        )  # fmt: skip
    both = np.concatenate([np.concatenate([p[np.isfinite(p + r)], r[np.isfinite(p + r)]]) for p, r in pairs.values()])
    if both.size:
        low, high = float(both.min()), float(both.max())
        margin = 0.06 * (high - low) or 1.0
        ends = [low - margin, high + margin]
        axes.plot(ends, ends, color=plots.GREY, linewidth=1.0, zorder=1)
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_title("line: as predicted", loc="right", color=plots.GREY, fontsize=8.5)
        usual = float(np.quantile(np.abs(both), 0.9))
        if usual > 0.0 and max(-low, high) > 8.0 * usual:  # the first updates dwarf the rest
            _compress(axes, usual, max(-low, high))
    if len(pairs) > 1:
        _legend(axes)


def _compress(axes: "matplotlib.axes.Axes", usual: float, largest: float) -> None:
    """Both axes linear up to what is usual and logarithmic beyond, with plain numbers on them."""
    powers = 10.0 ** np.arange(np.ceil(np.log10(usual)), np.floor(np.log10(largest)) + 1)
    for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        low, high = axis.get_view_interval()
        set_scale("asinh", linear_width=usual)
        ticks = [float(tick) for tick in (*-powers[::-1], 0.0, *powers) if low <= tick <= high]
        axis.set_ticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
        axis.set_ticks([], minor=True)


def _title(axes: "matplotlib.axes.Axes", title: str, x: str, y: str) -> None:
    from pcpo.experiments.curves import quiet_grid

    quiet_grid(axes)
    axes.set_title(title, fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _positive(axes: "matplotlib.axes.Axes", also: Any = ()) -> None:
    """A logarithmic axis, if there is anything above zero to show on it."""
    values = [np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines]
    shown = np.concatenate([*values, np.asarray(also, dtype=np.float64)]) if values else np.zeros(0)
    shown = shown[np.isfinite(shown) & (shown > 0.0)]
    if shown.size:
        axes.set_yscale("log")
        low, high = float(shown.min()), float(shown.max())
        axes.set_ylim(low / 1.5, max(high, 10.0 * low) * 1.8)


def _legend(axes: "matplotlib.axes.Axes") -> None:
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False, fontsize=8.5, loc="best", handlelength=1.6)


def _say(axes: "matplotlib.axes.Axes", text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=plots.GREY)
