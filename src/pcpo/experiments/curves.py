"""Learning curves: reward, costs with their limits, and what reward was paid for with violations.

A line is the mean over seeds, its band one standard deviation or a 95 % interval of the mean, and the figure says
which. The side of a limit that violates it is shaded. What was not measured is a gap, and an update that was refused is
marked with a cross.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pcpo.experiments import plots
from pcpo.experiments.comparison import kept_from, summarise
from pcpo.experiments.series import Series, Table
from pcpo.training.statistics import mean_and_band

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

COLORS = {
    "pcpo-kl": plots.KL,
    "pcpo-l2": plots.L2,
    "pcpo-adaptive": "#cc79a7",
    "cpo": plots.CPO,
    "pdo": "#e69f00",
    "fpo": "#56b4e9",
    "trpo": "#4d4d4d",
}
"""One colour for each algorithm, the same in all figures (Okabe and Ito)."""
LIMIT = "#9c4f5e"
"""A limit and what is said of it."""

X_AXES = {"updates": "updates", "steps": "steps of the environment, per seed"}
BANDS = {"std": "band: one standard deviation over seeds", "interval": "band: 95 % interval of the mean over seeds"}
_HALO = 0.16  # opacity of a band


class Look(NamedTuple):
    """How one run is drawn."""

    series: Series
    name: str
    color: str
    dashes: Any


class View(NamedTuple):
    """What all panels of a figure have in common."""

    looks: Sequence[Look]
    band: str
    x: str


def looks_of(runs: Sequence[Series]) -> list[Look]:
    """Colours and names for some runs: those of their algorithms where these differ, otherwise one after another."""
    algorithms = [run.algorithm for run in runs]
    distinct = len(set(algorithms)) == len(algorithms)
    cycle = itertools.cycle(COLORS.values())
    styles = [(None, None), (5, 1.2), (1.2, 1.2), (5, 1.2, 1.2, 1.2)]
    found: list[Look] = []
    for place, run in enumerate(runs):
        color = COLORS.get(run.algorithm, plots.GREY) if distinct else next(cycle)
        dashes = styles[place // len(COLORS) % len(styles)]
        name = run.algorithm_name if distinct else f"{run.algorithm_name}, {run.label}"
        found.append(Look(run, name, color, dashes))
    return found


def learning_curves(
    runs: Sequence[Series], band: str = "std", x: str = "updates", trade_off: bool = True
) -> "matplotlib.figure.Figure":
    """Reward, each cost, and (unless ``trade_off`` is False) reward against cumulative violation.

    Call it, and save the figure, inside `plots.style`.

    Args:
        runs: Of one task; the first one says how many panels there are.
        band: ``"std"`` or ``"interval"``.
        x: ``"updates"`` or ``"steps"``.
        trade_off: Whether to draw the last panel.
    """
    view = View(looks_of(runs), band, x)
    costs = runs[0].cost_names
    panels: list[Callable[[Any], None]] = [lambda axes: draw_reward(axes, view)]
    panels += [lambda axes, name=name: draw_cost(axes, view, name) for name in costs]
    if trade_off and costs:
        panels.append(lambda axes: draw_trade_off(axes, view))
    return _filled(panels, len(panels) if len(panels) <= 3 else 2, view)


def side_by_side(runs: Sequence[Series], band: str = "std", x: str = "updates") -> "matplotlib.figure.Figure":
    """`learning_curves`, and where each run ended: its final reward over its final cost.

    Args:
        runs: Of one task.
        band: ``"std"`` or ``"interval"``.
        x: ``"updates"`` or ``"steps"``.
    """
    view = View(looks_of(runs), band, x)
    costs = runs[0].cost_names
    panels: list[Callable[[Any], None]] = [lambda axes: draw_reward(axes, view)]
    panels += [lambda axes, name=name: draw_cost(axes, view, name) for name in costs]
    panels += [lambda axes: draw_trade_off(axes, view)] if costs else []
    panels += [lambda axes, name=name: draw_ends(axes, view, name) for name in costs]
    return _filled(panels, 2 if len(panels) > 1 else 1, view)


def _filled(panels: Sequence[Callable[[Any], None]], columns: int, view: View) -> "matplotlib.figure.Figure":
    rows = -(-len(panels) // columns)
    figure = new_grid(columns, rows)
    for place, draw in enumerate(panels):
        draw(figure.add_subplot(rows, columns, place + 1))
    headline(figure, view)
    return figure


def new_grid(columns: int, rows: int) -> "matplotlib.figure.Figure":
    """An empty figure for so many panels, with room for a headline."""
    figure = plots.new_figure({1: 5.2, 2: 9.0, 3: 12.6}[columns], 3.3 * rows + 0.6)
    engine = figure.get_layout_engine()
    assert engine is not None  # plots.new_figure sets one
    engine.set(w_pad=0.1, h_pad=0.1, wspace=0.03, hspace=0.05)  # pyright: ignore[reportCallIssue]
    return figure


# Panels.


def draw_reward(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Discounted reward of an episode."""
    for look in view.looks:
        draw_column(axes, look, "discounted_return", view)
    axes.set_title("reward", fontweight="bold")
    finish(axes, view, "discounted, per episode")
    if len(view.looks) > 1:
        axes.legend(frameon=False, loc="best", handlelength=1.6)


def draw_cost(axes: "matplotlib.axes.Axes", view: View, name: str) -> None:
    """One cost with its limit, and the violating side of the limit shaded."""
    for look in view.looks:
        draw_column(axes, look, f"costs.{name}", view)
    axes.set_title("cost" if name == "cost" else f"cost: {name}", fontweight="bold")
    finish(axes, view, "$J_C$, per episode")
    _draw_limits(axes, view, name)
    if len(view.looks) == 1:
        _say_from_when(axes, view, name)


def draw_trade_off(axes: "matplotlib.axes.Axes", view: View) -> None:
    """Reward against violations so far: one thin line per seed, the mean, and a dot where the run stands."""
    for look in view.looks:
        spent = total_violations(look.series)
        reward = look.series.column("discounted_return")
        if spent.shape[1] > 1:
            axes.plot(spent, reward, color=look.color, linewidth=0.7, alpha=0.35)
        middle = mean_and_band(spent).mean, mean_and_band(reward).mean
        axes.plot(*middle, color=look.color, linewidth=1.8, dashes=look.dashes)
        there = np.flatnonzero(np.isfinite(middle[0]) & np.isfinite(middle[1]))
        if there.size:
            plots.point(axes, [middle[0][there[-1]], middle[1][there[-1]]], look.color)
    axes.set_title("reward against violations", fontweight="bold")
    several = len(view.looks[0].series.cost_names) > 1
    axes.set_xlabel("violations so far, all costs added" if several else "violations so far, added over updates")
    axes.set_ylabel("reward, discounted, per episode")
    axes.margins(x=0.04)
    quiet_grid(axes)


def draw_ends(axes: "matplotlib.axes.Axes", view: View, name: str) -> None:
    """Final reward over final cost, with the 95 % intervals over seeds, and the side that violates the limit."""
    limits = sorted({float(look.series.limits[name][-1]) for look in view.looks})
    ends: list[tuple[Look, float, float]] = []
    for look in view.looks:
        summary = summarise(look.series)
        reward, cost = summary.reward, summary.costs[name].final
        for vertical, estimate in ((False, cost), (True, reward)):
            if not np.isfinite(estimate.interval).all():
                continue
            low, high = estimate.interval
            x, y = ([cost.mean] * 2, [low, high]) if vertical else ([low, high], [reward.mean] * 2)
            axes.plot(x, y, color=look.color, linewidth=1.4, alpha=0.6)
        if np.isfinite([cost.mean, reward.mean]).all():
            plots.point(axes, (cost.mean, reward.mean), look.color, size=8.0)
            ends.append((look, cost.mean, reward.mean))
    for limit in limits:  # what is a fifth of a limit away from it shall not look far
        axes.axvspan(limit - 0.2 * abs(limit), limit + 0.2 * abs(limit), alpha=0.0)
    axes.margins(x=0.18, y=0.15)
    left, right = axes.get_xlim()
    if left > 0.0 and left < 0.5 * right:
        left = 0.0
    axes.set_xlim(left, right)
    for side, align in ((-1, "right"), (1, "left")):  # names stand on the side where there is room for them
        mine = [end for end in ends if (end[1] > 0.5 * (left + right)) == (side < 0)]
        heights = [_points_up(axes, y) for _, _, y in mine]
        for (look, x, y), lift in zip(mine, np.subtract(apart(heights, 12.0), heights), strict=True):
            plots.label(axes, (x, y), look.name, look.color, (7.0 * side, 6.0 + float(lift)), align, "bottom", 8.5)
    if len(limits) == 1:
        axes.axvspan(limits[0], right, color=plots.FORBIDDEN, linewidth=0.0, zorder=0)
    for limit in limits:
        axes.axvline(limit, color=LIMIT, linewidth=1.3, dashes=(5, 2.5), zorder=1)
    axes.set_title("where they ended" if name == "cost" else f"where they ended: {name}", fontweight="bold")
    axes.set_xlabel("$J_C$, last tenth of the updates")
    axes.set_ylabel("reward, last tenth of the updates")
    quiet_grid(axes)


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights of which each is at least a gap above the next lower one; none is lowered, and their order stays.

    Example:
        >>> apart([5.0, 0.0, 1.0, 30.0], 10.0)
        [20.0, 0.0, 10.0, 30.0]
    """
    lifted = list(heights)
    lowest = -np.inf
    for i in sorted(range(len(heights)), key=heights.__getitem__):
        lifted[i] = max(heights[i], lowest)
        lowest = lifted[i] + gap
    return lifted


def _points_up(axes: "matplotlib.axes.Axes", y: float) -> float:
    """How far a height is above the lower edge of the axes, in typographic points."""
    bottom, top = axes.get_ylim()
    figure = axes.get_figure(root=True)
    assert figure is not None  # these axes are drawn on one
    return 72.0 / figure.dpi * axes.get_window_extent().height * (y - bottom) / (top - bottom)


def total_violations(run: Series) -> Table:
    """Violations so far, added over the constraints."""
    return sum((run.column(f"cumulative_violations.{name}") for name in run.cost_names), np.zeros(()))


def draw_column(axes: "matplotlib.axes.Axes", look: Look, column: str, view: View) -> None:
    """Mean and band of one number over the updates, with gaps and refused updates."""
    values = look.series.column(column)
    band = mean_and_band(values, view.band)
    places = abscissa(look.series, view.x)
    axes.fill_between(places, band.low, band.high, color=look.color, alpha=_HALO, linewidth=0.0, zorder=2)
    axes.plot(places, band.mean, color=look.color, linewidth=1.8, dashes=look.dashes, label=look.name, zorder=3)
    alone = isolated(band.mean)
    axes.plot(places[alone], band.mean[alone], color=look.color, linestyle="none", marker="o", markersize=3, zorder=3)
    mark_refused(axes, look.series, places, band.mean)


def isolated(values: Float[np.ndarray, " n"]) -> Any:
    """Where a value stands between gaps, so that no line would show it."""
    there = np.concatenate([[False], np.isfinite(values), [False]])
    return there[1:-1] & ~there[:-2] & ~there[2:]


def mark_refused(
    axes: "matplotlib.axes.Axes", run: Series, places: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]
) -> None:
    """A cross where an update of any seed was refused; at the last known height where there is none."""
    refused = np.flatnonzero(run.refused.any(axis=1))
    if not refused.size:
        return
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return
    before = known[np.maximum(np.searchsorted(known, refused, side="right") - 1, 0)]
    axes.plot(
        places[refused], values[before], linestyle="none", marker="X", markersize=7, color=plots.INK,
        markeredgecolor="white", markeredgewidth=0.8, zorder=6, label="update refused", clip_on=False,
    )  # fmt: skip


def abscissa(run: Series, x: str) -> Float[np.ndarray, " n"]:
    """Where the rows of a run stand on the horizontal axis."""
    if x == "updates":
        return run.updates.astype(np.float64)
    steps = mean_and_band(run.column("env_steps")).mean
    return np.maximum.accumulate(np.nan_to_num(steps))


def _draw_limits(axes: "matplotlib.axes.Axes", view: View, name: str) -> None:
    """Dashed limits. Where all runs have the same, the other side is shaded and the limit named once."""
    drawn: list[tuple[Any, Any]] = []
    for look in view.looks:
        places, limit = abscissa(look.series, view.x), look.series.limits[name]
        if not any(limit.shape == other.shape and np.array_equal(limit, other) for _, other in drawn):
            drawn.append((places, limit))
    single = len({float(value) for _, limit in drawn for value in limit}) == 1
    _make_room(axes, [limit for _, limit in drawn])
    if single:
        drawn = [max(drawn, key=lambda each: each[0][-1])]
    left, right = axes.get_xlim()
    top = axes.get_ylim()[1]
    for (places, limit), look in zip(drawn, view.looks, strict=False):
        color = LIMIT if len(drawn) == 1 else look.color
        edges, heights = _steps(places, limit, left, right)
        if len(drawn) == 1:
            axes.fill_between(edges, heights, top, color=plots.FORBIDDEN, linewidth=0.0, zorder=0)
        axes.plot(edges, heights, color=color, linewidth=1.3, dashes=(5, 2.5), zorder=4)
    if single:
        _name_limit(axes, float(drawn[0][1][-1]), right)
    axes.set_xlim(left, right)
    axes.set_ylim(top=top)


def _name_limit(axes: "matplotlib.axes.Axes", limit: float, right: float) -> None:
    bottom, top = axes.get_ylim()
    above = (limit - bottom) < 0.12 * (top - bottom)
    offset = (-2.0, 4.0) if above else (-2.0, -4.0)
    plots.label(
        axes, (right, limit), f"limit {limit:g}", LIMIT, offset, align="right", vertical="bottom" if above else "top"
    )
    axes.annotate(
        "limit violated", xy=(1.0, 1.0), xycoords="axes fraction", xytext=(-4, -4), textcoords="offset points",
        ha="right", va="top", color=LIMIT, fontsize=9,
    )  # fmt: skip


def _say_from_when(axes: "matplotlib.axes.Axes", view: View, name: str) -> None:
    """A note at the first update from which the limit was kept, where it did not change and there is one."""
    run = view.looks[0].series
    first = kept_from(run, name)
    if first is None or len(set(run.limits[name].tolist())) > 1:
        return
    place = int(np.flatnonzero(run.updates == first)[0])
    x, y = float(abscissa(run, view.x)[place]), float(mean_and_band(run.column(f"costs.{name}")).mean[place])
    left, right = axes.get_xlim()
    if not np.isfinite(y) or not left <= x < left + 0.6 * (right - left):
        return
    axes.annotate(
        f"kept from update {first} on", xy=(x, y), xytext=(max(x, left + 0.1 * (right - left)), _height(axes, 0.55)),
        color=plots.INK, fontsize=9, va="center", ha="left", zorder=7,
        arrowprops={"arrowstyle": "-", "color": plots.INK, "linewidth": 0.8, "shrinkA": 2.0, "shrinkB": 3.0},
    )  # fmt: skip
    plots.point(axes, (x, y), view.looks[0].color, size=5.0)


def _height(axes: "matplotlib.axes.Axes", share: float) -> float:
    bottom, top = axes.get_ylim()
    return bottom + share * (top - bottom)


def _make_room(axes: "matplotlib.axes.Axes", limits: Sequence[Any]) -> None:
    """Shows all limits with something on both sides, and zero where it is near."""
    axes.autoscale_view()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    heights = np.concatenate([np.asarray(limit) for limit in limits])
    span = max(top - bottom, float(np.ptp(heights)), 1e-9 + 0.2 * float(np.max(np.abs(heights))))
    top = max(top, float(heights.max()) + 0.25 * span)
    bottom = min(bottom, float(heights.min()) - 0.25 * span)
    if 0.0 <= float(heights.min()) and _lowest(axes) >= 0.0:
        bottom = 0.0
    axes.set_ylim(bottom, top)
    axes.set_xlim(left, right)


def _lowest(axes: "matplotlib.axes.Axes") -> float:
    lows = [np.nanmin(y) for line in axes.lines if np.isfinite(y := np.asarray(line.get_ydata(), dtype=float)).any()]
    return float(min(lows, default=0.0))


def _steps(places: Any, limit: Any, left: float, right: float) -> tuple[list[float], list[float]]:
    """A line that changes in steps, from edge to edge."""
    edges, heights = [left], [float(limit[0])]
    for i in np.flatnonzero(np.diff(limit)):
        edges += [float(places[i + 1])] * 2
        heights += [float(limit[i]), float(limit[i + 1])]
    return [*edges, right], [*heights, float(limit[-1])]


# The frame.


def headline(figure: "matplotlib.figure.Figure", view: View, of_curves: bool = True) -> None:
    """The task, the algorithm if there is only one, and what the lines are; bands of another kind are not named."""
    run = view.looks[0].series
    title = f"{run.task_name}, {run.algorithm_name}" if len(view.looks) == 1 else run.task_name
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=plots.INK)
    height = 1.0 - 0.13 / figure.get_size_inches()[1]
    figure.text(0.988, height, " · ".join(_facts(view, of_curves)), ha="right", va="top", fontsize=9, color=plots.GREY)


def _facts(view: View, of_curves: bool) -> Iterator[str]:
    counts = sorted({len(look.series.seeds) for look in view.looks})
    if counts == [1]:
        yield "one seed"
    else:
        yield f"mean of {' or '.join(map(str, counts))} seeds"
        yield BANDS[view.band] if of_curves else "band: all seeds"
    steps = {int(each) for each in (look.series.settings.get("batch_size") or 0 for look in view.looks)}
    if len(steps) == 1 and 0 not in steps:
        yield f"{steps.pop():,} steps per update"


def finish(axes: "matplotlib.axes.Axes", view: View, y: str) -> None:
    """Labels, a quiet grid, and a horizontal axis from the first to the last row."""
    axes.set_xlabel(X_AXES[view.x])
    axes.set_ylabel(y)
    quiet_grid(axes)
    ends = [abscissa(look.series, view.x) for look in view.looks]
    left, right = min(float(each[0]) for each in ends), max(float(each[-1]) for each in ends)
    if right > left:
        axes.set_xlim(left, right)
    from matplotlib.ticker import EngFormatter, MaxNLocator

    if view.x == "steps":
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    else:  # there is no half an update
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))


def quiet_grid(axes: "matplotlib.axes.Axes") -> None:
    """Few round numbers, and lines that stay behind the data."""
    from matplotlib.ticker import MaxNLocator

    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
