"""Figures of an experiment, drawn from its compact results alone: one for each task, and the numbers beside them."""

import dataclasses
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pcpo.experiments import plots
from pcpo.experiments.curves import (
    COLORS,
    Look,
    View,
    draw_column,
    draw_cost,
    draw_ends,
    draw_reward,
    finish,
    headline,
    isolated,
    new_grid,
    quiet_grid,
)
from pcpo.experiments.series import PRETTY, Series, Table
from pcpo.experiments.suite import results
from pcpo.experiments.suite.plan import Experiment, Variant
from pcpo.training.files import RunError
from pcpo.training.statistics import mean_and_band

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_log = logging.getLogger(__name__)

Panel: TypeAlias = Callable[["matplotlib.axes.Axes", View], None]

_DWARFED = 6.0
MOST_POINTS = 250
"""Points of a line, at most."""
SO_FAR = "so_far"
"""The column with the sum of J_C over the updates so far, of all costs."""
_DASHES: Sequence[Any] = ((None, None), (5, 1.5), (1.5, 1.5), (6, 1.5, 1.5, 1.5))


def draw(experiment: Experiment, directory: Path) -> list[Path]:
    """Draws what there is of an experiment.

    Args:
        experiment: Which.
        directory: With its results; the figures go there too.

    Returns:
        The files written.

    Raises:
        RunError: If there are no results, or damaged ones.
    """
    found = results.read_series(directory)
    variants = [variant for variant in experiment.variants if variant.name in found]
    if not variants:
        raise RunError(f"{directory} has no results of {experiment.name}; run it, or merge some: --merge DIR")
    files: list[Path] = []
    for task in experiment.tasks:
        chosen = [variant for variant in variants if variant.task == task]
        if not chosen:
            continue
        name = experiment.name if len(experiment.tasks) == 1 else f"{experiment.name}-{task}"
        _log.info("drawing %s", name)
        with plots.style():
            figure = _figure(looks_of(chosen, found), PANELS.get(experiment.name, (draw_so_far, draw_price)))
            files += plots.save(figure, directory, name)
    return files


def looks_of(variants: Sequence[Variant], found: Mapping[str, Series]) -> list[Look]:
    """Colours and names: a rule has its own colour; where it occurs more than once, its lines have other dashes."""
    several = len({variant.algorithm for variant in variants}) == 1 and len(variants) > len(_DASHES)
    cycle, times = itertools.cycle(COLORS.values()), dict[str, int]()
    looks: list[Look] = []
    for variant in variants:
        run, rule = found[variant.name], variant.algorithm
        before = times.get(rule, 0)
        times[rule] = before + 1
        color = next(cycle) if several else COLORS.get(rule, COLORS.get(rule.removesuffix("-flipped"), plots.GREY))
        if rule.endswith("-flipped"):
            before += 1
        shade = _lighter(color, 0.22 * (before // len(_DASHES)))
        label = variant.label or PRETTY.get(rule, rule)
        looks.append(Look(drawable(run), label, shade, _DASHES[before % len(_DASHES)]))
    return looks


def _lighter(color: str, share: float) -> str:
    """A colour moved towards white."""
    channels = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(each + share * (255 - each)):02x}" for each in channels)


def drawable(run: Series) -> Series:
    """A run with the sum of J_C so far, and not too many updates for a picture: means of so many in a row."""
    costs = sum((run.column(f"costs.{name}") for name in run.cost_names), np.zeros(()))
    columns = {**run.columns, SO_FAR: np.cumsum(np.nan_to_num(costs), axis=0)}
    width = in_a_row(len(run.updates))
    if width == 1:
        return dataclasses.replace(run, columns=columns)
    starts = np.arange(0, len(run.updates), width)

    def blocks(values: Table) -> Any:
        """Of numbers that are not there for every update, the mean of those that are."""
        known = np.isfinite(values)
        counts = np.add.reduceat(known, starts, axis=0)
        sums = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    return dataclasses.replace(
        run,
        updates=run.updates[starts],
        limits={name: limit[starts] for name, limit in run.limits.items()},
        columns={name: blocks(values) for name, values in columns.items()},
        statuses=tuple(run.statuses[start] for start in starts),
    )


def in_a_row(updates: int) -> int:
    """How many updates are drawn as one point, their mean."""
    return -(-updates // MOST_POINTS)


def _figure(looks: Sequence[Look], more: Sequence[Panel]) -> "matplotlib.figure.Figure":
    view = View(looks, "std", "updates")
    costs = looks[0].series.cost_names
    panels: list[Panel] = [draw_reward]
    panels += [lambda axes, view, name=name: draw_cost(axes, view, name) for name in costs]
    panels += more
    rows = -(-len(panels) // 2)
    figure = new_grid(2, rows)
    for place, panel in enumerate(panels):
        axes = figure.add_subplot(rows, 2, place + 1)
        panel(axes, view)
        if panel in (draw_reward, draw_price):
            _show_the_smaller(axes, view)
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
    headline(figure, view)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    widths = {int(np.diff(look.series.updates)[0]) for look in looks if len(look.series.updates) > 1}
    words = "the mean of" if len(widths) == 1 else "the mean of up to"
    title = f"each point is {words} {max(widths)} updates" if widths and max(widths) > 1 else None
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, fontsize=8.5,
        title=title, title_fontsize=8.5,
    )  # fmt: skip
    return figure


# Panels.


def draw_so_far(axes: "matplotlib.axes.Axes", view: View) -> None:
    """The sum of J_C over the updates so far."""
    for look in view.looks:
        draw_column(axes, look, SO_FAR, view)
    axes.set_title("cumulative constraint value", fontweight="bold")
    finish(axes, view, "$J_C$, added over updates")
    _log_scale(axes)


def draw_price(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Reward over the sum of J_C so far: what reward was paid for with."""
    for look in view.looks:
        spent, reward = (mean_and_band(look.series.column(name)).mean for name in (SO_FAR, "discounted_return"))
        there = np.isfinite(spent) & np.isfinite(reward) & (spent > 0.0)
        axes.plot(spent[there], reward[there], color=look.color, linewidth=1.6, dashes=look.dashes)
        if there.any():
            plots.point(axes, (spent[there][-1], reward[there][-1]), look.color, size=5.0)
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis)
    axes.set_title("reward against cumulative constraint value", fontweight="bold")
    axes.set_xlabel("$J_C$, added over updates")
    axes.set_ylabel("reward, discounted, per episode")
    quiet_grid(axes)


def draw_condition(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Condition number of H, where it was measured."""
    _draw_measured(axes, view, "condition")
    axes.set_title("condition number of H", fontweight="bold")
    finish(axes, view, "largest over smallest eigenvalue")


def draw_residual(axes: "matplotlib.axes.Axes", view: View) -> None:
    """The relative residual of H x = a, where it was kept."""
    _draw_measured(axes, view, f"cg_residuals.{view.looks[0].series.cost_names[0]}")
    axes.set_title("error of the constraint's direction", fontweight="bold")
    finish(axes, view, "|H x - a| / |a|")


def _draw_measured(axes: "matplotlib.axes.Axes", view: View, column: str) -> None:
    """A number that is not there for every update: its mean over seeds, with a point where it stands alone."""
    for look in view.looks:
        mean = mean_and_band(look.series.column(column)).mean
        there = np.isfinite(mean)
        axes.plot(
            look.series.updates[there], mean[there], color=look.color, linewidth=1.4, dashes=look.dashes,
            label=look.name, marker="o" if isolated(mean).any() else None, markersize=2.5,
        )  # fmt: skip
    _log_scale(axes)


def draw_promises(axes: "matplotlib.axes.Axes", view: View) -> None:
    """The change of the cost that each update promised, and the one that the next batch measured."""
    from pcpo.experiments.suite.measures import promises

    for look in view.looks:
        kept = promises(look.series)
        axes.plot(
            kept.promised, kept.next_batch, linestyle="none", marker="o", markersize=2.6, color=look.color, alpha=0.35,
            markeredgewidth=0,
        )  # fmt: skip
    both = [np.asarray(data, dtype=float) for line in axes.lines for data in line.get_data()]
    values = np.concatenate(both)
    if values.size:
        low, high = float(values.min()), float(values.max())
        axes.plot([low, high], [low, high], color=plots.GREY, linewidth=1.0, zorder=1)
    axes.set_title("what updates promise of the cost", fontweight="bold")
    axes.set_xlabel("predicted change of $J_C$")
    axes.set_ylabel("change to the next batch")
    quiet_grid(axes)


def draw_bounds(axes: "matplotlib.axes.Axes", view: View) -> None:
    """The estimated worst case of the next J_C, and what the next batch measured."""
    name = view.looks[0].series.cost_names[0]
    for look in view.looks:
        run = look.series
        worst = mean_and_band(run.column(f"bound_estimate_costs.{name}")).mean
        axes.plot(run.updates, worst, color=look.color, linewidth=1.4, dashes=look.dashes)
        axes.plot(run.updates, mean_and_band(run.column(f"costs.{name}")).mean, color=look.color, linewidth=0.6)
    axes.set_title("bound_estimate (thin: what was measured)", fontweight="bold")
    finish(axes, view, "$J_C$")
    _log_scale(axes)


def draw_cost_ends(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Where each line ended."""
    draw_ends(axes, view, view.looks[0].series.cost_names[0])


def _show_the_smaller(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Where one rule's reward dwarfs those of most others, an axis that is linear for theirs and logarithmic beyond."""
    curves = [mean_and_band(look.series.column("discounted_return")).mean for look in view.looks]
    largest = [np.nanmax(np.abs(curve), initial=0.0) for curve in curves]
    usual, most = float(np.median(largest)), float(np.max(largest))
    if usual <= 0.0 or most < _DWARFED * usual:
        return
    low = min(float(np.nanmin(curve, initial=0.0)) for curve in curves) - 0.12 * usual
    high = axes.get_ylim()[1]
    axes.set_yscale("asinh", linear_width=usual)
    axes.set_ylim(low, high)
    unit = 10.0 ** np.floor(np.log10(usual))
    steps = np.outer(10.0 ** np.arange(0, np.ceil(np.log10(most / unit)) + 1), [1.0, 2.0, 5.0]).ravel() * unit
    ticks = [float(tick) for tick in (*-steps[::-1], 0.0, *steps) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    axes.set_yticks([], minor=True)


def _log_scale(axes: "matplotlib.axes.Axes") -> None:
    """Logarithmic, where something is above zero."""
    values = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
    if any((value > 0.0).any() for value in values):
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)


def _plain_ticks(axis: Any) -> None:
    """Plain numbers on a logarithmic axis: powers of ten, and where there are few of them 2 and 5 times those, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = low > 0.0 and np.log10(high / low) < 2.5
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


PANELS: Mapping[str, tuple[Panel, ...]] = {
    "cg": (draw_condition, draw_residual),
    "predictions": (draw_promises, draw_bounds),
    "multipliers": (draw_price, draw_cost_ends),
}
"""What is drawn below reward and costs, where it is not the cumulative constraint value and the reward against it."""
