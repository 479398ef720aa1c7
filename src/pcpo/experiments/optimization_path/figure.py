"""The paper's two figures of its example, drawn from our measurements."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from pcpo.experiments import plots
from pcpo.experiments.optimization_path.claims import NAMES, share_text
from pcpo.experiments.optimization_path.measurements import CLAIMED, PROJECTIONS, ZERO, Directions, Measurements

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_COLORS = {"kl": plots.KL, "l2": plots.L2}


def draw_directions(found: Measurements) -> "matplotlib.figure.Figure":
    """Both directions over the plane, and along the boundary: the paper's Fig. OptPath(a)."""
    figure = plots.new_figure(9.0, 7.9)
    figure.suptitle(
        "Circled: the paper's three stationary points, with the length of the step there (1 = the reward step)",
        fontsize=9.5,
    )
    grid = figure.add_gridspec(2, 2, height_ratios=(1.55, 1.0))
    for column, projection in enumerate(PROJECTIONS):
        _draw_field(figure.add_subplot(grid[0, column]), found, projection)
    _draw_along_boundary(figure.add_subplot(grid[1, :]), found)
    return figure


def draw_paths(found: Measurements) -> "matplotlib.figure.Figure":
    """Both paths in the plane, and f along them: the paper's Fig. OptPath(b)."""
    figure = plots.new_figure(9.6, 5.0)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.3, 1.0))
    _draw_plane(figure.add_subplot(grid[:, 0]), found)
    early = min(found.steps, 140)
    first = figure.add_subplot(grid[0, 1])
    _draw_objective(first, found, early, f"$f$ during the first {early:,} steps")
    _mark_fall(first, found.walks["l2"].f[: early + 1])
    _draw_objective(figure.add_subplot(grid[1, 1]), found, found.steps, f"$f$ during all {found.steps:,} steps")
    return figure


def _draw_field(axes: "matplotlib.axes.Axes", found: Measurements, projection: str) -> None:
    color, field, claimed = _COLORS[projection], found.field[projection], found.claimed[projection]
    axes.set(xlim=(-2.2, 2.2), ylim=(-2.7, 1.2), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axes.set_title(f"{NAMES[projection]} projection", color=color, fontweight="bold")
    _draw_landscape(axes)
    units = field.steps / np.maximum(np.linalg.norm(field.steps, axis=1, keepdims=True), 1e-300)
    excess = field.points.sum(axis=1) + 1.0
    for part, shade in ((excess < 0.0, "#4d4d4d"), (excess > 0.0, "#c09aa2")):
        axes.quiver(
            *field.points[part].T,
            *(0.17 * units[part].T),
            angles="xy",
            scale_units="xy",
            scale=1.0,
            pivot="mid",
            color=shade,
            width=0.0032,
            headwidth=4.2,
            zorder=3,
        )
    for x, share, unit in zip(field.points, field.shares, units, strict=True):
        if x.sum() == -1.0 and -2.0 < x[0] < 1.7:
            axes.plot(*x, "o", color=color, markersize=3.2, zorder=6)
            if share > ZERO:
                plots.arrow(axes, x, x + 0.27 * share * unit, color, width=2.2, head=9.0, zorder=5)
    for x, share in zip(claimed.points, claimed.shares, strict=True):
        axes.plot(*x, "o", color="none", markeredgecolor=plots.INK, markeredgewidth=1.2, markersize=11, zorder=6)
        plots.label(axes, x, share_text(share), offset=(9.0, 10.0), align="left")
    plots.label(axes, (2.1, 1.0), "$x_1 + x_2 > -1$", "#9c4f5e", align="right")


def _draw_along_boundary(axes: "matplotlib.axes.Axes", found: Measurements) -> None:
    axes.set(xlim=(-1.5, 3.0), ylim=(-1.6, 1.05), xlabel="$x_1$ on the boundary ($x_2 = -1 - x_1$)")
    axes.set_ylabel("step along the boundary\n(1 = the reward step)")
    axes.set_title("Along the boundary", fontweight="bold")
    axes.axhline(0.0, color=plots.GREY, linewidth=0.8, zorder=1)
    for x, _ in CLAIMED:
        axes.axvline(x, color=plots.GREY, linewidth=0.8, linestyle=(0, (3, 3)), zorder=1)
    for projection in PROJECTIONS:
        along, claimed, color = found.boundary[projection], found.claimed[projection], _COLORS[projection]
        axes.plot(along.points[:, 0], _signed(along), color=color, linewidth=2.2, zorder=3)
        heights = _signed(claimed)
        axes.plot(*(claimed.points[:, 0], heights), "o", color=color, markeredgecolor="white", markersize=7, zorder=5)
    plots.label(axes, (2.2, 0.54), "KL projection", plots.KL, offset=(0, 11))
    plots.label(axes, (2.2, -0.21), "L2 projection: never zero", plots.L2, offset=(0, -11))
    plots.label(axes, (-1.45, -1.0), "constraint inactive:\nboth take the reward step", offset=(0, 18), align="left")
    for zero in found.zeros["kl"]:
        for sign in (-1.0, 1.0):
            plots.arrow(axes, (zero[0] + 0.04 * sign, 0.0), (zero[0] + 0.24 * sign, 0.0), plots.KL, 2.2, head=11.0)
    if len(found.zeros["kl"]) == 1 and found.curvature_along_boundary > 0.0:
        zero = found.zeros["kl"][0]
        text = f"the only zero, {_shown(zero)}:\na minimum of $f$ along the boundary,\nso it repels"
        plots.label(axes, (zero[0], 0.0), text, plots.KL, offset=(-10.0, 34.0), align="right")


def _signed(found: Directions) -> Float[np.ndarray, " n"]:
    """Shares, positive where x1 grows along the boundary."""
    return found.shares * np.sign(found.steps[:, 0] - found.steps[:, 1])


def _draw_plane(axes: "matplotlib.axes.Axes", found: Measurements) -> None:
    (x1, x2), margin = found.start, 0.5
    axes.set(
        xlim=(min(-2.2, x1 - margin), max(2.2, x1 + margin)),
        ylim=(min(-2.9, x2 - margin), max(1.2, x2 + margin)),
        aspect="equal",
        xlabel="$x_1$",
        ylabel="$x_2$",
    )
    _draw_landscape(axes)
    kl, l2 = (found.walks[p].points for p in PROJECTIONS)
    together = np.linalg.norm(kl - l2, axis=1) < 1e-9
    parting = int(np.argmin(together)) if not together.all() else found.steps
    for points, color in ((kl[max(parting - 1, 0) :], plots.KL), (l2[max(parting - 1, 0) :], plots.L2)):
        _draw_trail(axes, points, color, ahead=0.9)
    _draw_trail(axes, kl[: parting + 1], plots.INK, ahead=0.35)
    axes.plot(*found.start, "*", color="#c1121f", markeredgecolor="white", markersize=15, zorder=8)
    plots.label(axes, found.start, f"start {_shown(found.start)}", offset=(-9.0, -3.0), align="right")
    for zero in found.zeros["kl"]:
        axes.plot(*zero, "o", color="white", markeredgecolor=plots.INK, markeredgewidth=1.3, markersize=8, zorder=8)
        text = f"{_shown(zero)}:\nthe KL direction is zero,\nbut $f$ is at its lowest\non the boundary"
        plots.label(axes, zero, text, offset=(11.0, 24.0), align="left")
    for projection, corner, align in (("kl", (2.1, -0.1), "right"), ("l2", (-2.1, -2.5), "left")):
        walked = found.walks[projection]
        end = f"{_shown(walked.points[-1])},\n$f$ = {walked.f[-1]:,.0f}"
        text = f"{NAMES[projection]} after {found.steps:,} steps:\n{end}"
        plots.label(axes, corner, text, _COLORS[projection], align=align)


def _draw_trail(axes: "matplotlib.axes.Axes", points: Float[np.ndarray, "n 2"], color: str, ahead: float) -> None:
    """A path with an arrowhead every ``ahead`` units of length, as far as the axes show it."""
    axes.plot(*points.T, color=color, linewidth=2.4, zorder=4, solid_capstyle="butt")
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    for distance in np.arange(ahead, min(travelled[-1], 12.0) + 1e-9, ahead):
        i = int(np.searchsorted(travelled, distance - 1e-9))
        if left < points[i, 0] < right and bottom < points[i, 1] < top:
            plots.arrow(axes, points[i - 1], points[i], color, width=1.0, head=15.0, zorder=5)


def _draw_objective(axes: "matplotlib.axes.Axes", found: Measurements, last: int, title: str) -> None:
    axes.set_title(title)
    axes.set(xlabel="step", xlim=(0, last))
    axes.locator_params(nbins=5)
    for projection in PROJECTIONS:
        f = found.walks[projection].f[: last + 1]
        axes.plot(np.arange(len(f)), f, color=_COLORS[projection], linewidth=2.0)
        plots.label(axes, (last, f[-1]), NAMES[projection], _COLORS[projection], offset=(5, 0), align="left")


def _mark_fall(axes: "matplotlib.axes.Axes", f: Float[np.ndarray, " n"]) -> None:
    """Says where the L2 path loses reward, if it does."""
    lost = np.maximum.accumulate(f) - f
    lowest = int(np.argmax(lost))
    if lost[lowest] > 0.05:
        plots.label(axes, (lowest, f[lowest]), "L2 loses reward at first", plots.L2, offset=(6, -11))


def _draw_landscape(axes: "matplotlib.axes.Axes") -> None:
    """Level lines of f and the constraint, within the limits of the axes."""
    x1, x2 = np.meshgrid(np.linspace(*axes.get_xlim(), 81), np.linspace(*axes.get_ylim(), 81))
    f = 5.0 * x1**2 - x2**2
    axes.contour(x1, x2, f, levels=np.arange(-8.0, 60.0, 2.0), colors="#dcdcdc", linewidths=0.7, zorder=0.5)
    plots.forbid(axes, (1.0, 1.0), 1.0)


def _shown(x: Any) -> str:
    """For figures: two decimals at most, and a true minus sign."""
    texts = [f"{float(v):.2f}".rstrip("0").rstrip(".") for v in x]
    return f"({texts[0]}, {texts[1]})".replace("-", "\u2212")
