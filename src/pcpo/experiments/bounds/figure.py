"""The four pictures of the bounds: the counter-example, where and how often they fail, and how loose they are."""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pcpo.experiments import plots
from pcpo.experiments.bounds.claims import missed
from pcpo.experiments.bounds.measurements import DELTAS, Study, failures, looseness

if TYPE_CHECKING:
    import matplotlib.axes

_PRINTED, _CORRECT, _SHARPER = plots.L2, plots.KL, plots.CPO
"""One colour for each kind of bound in all four pictures."""
_EARLY, _LATE = "#7a2f00", "#f3b98f"
"""Shades of `_PRINTED`: fails already at large steps, fails at tiny ones only."""


def draw(found: Study, directory: Path) -> list[Path]:
    """Draws all four and returns the files written."""
    with plots.style():
        figure = plots.new_figure(11.0, 8.6)
        axes = figure.subplots(2, 2)
        _draw_counter_example(axes[0, 0], found)
        _draw_map(axes[0, 1], found)
        _draw_failures(axes[1, 0], found)
        _draw_looseness(axes[1, 1], found)
        figure.get_layout_engine().set(w_pad=0.14, h_pad=0.12)  # type: ignore[union-attr]
        return plots.save(figure, directory, "bounds")


def _draw_counter_example(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Realised loss and the losses that the bounds allow, as the violation shrinks."""
    it = found.counter_example
    shown = (it["violation"] > 0.9e-4) & (it["violation"] < 11.0)
    b, lost, printed, correct = (
        it[name][shown] * sign
        for name, sign in (("violation", 1), ("reward_change", -1), ("printed_bound", -1), ("correct_bound", -1))
    )
    axes.fill_between(b, printed, lost, where=lost > printed, color=plots.FORBIDDEN, linewidth=0.0, zorder=0)
    axes.loglog(b, printed, color=_PRINTED, linewidth=2.0)
    axes.loglog(b, correct, color=_CORRECT, linewidth=2.4)
    axes.loglog(b, lost, color=plots.INK, linewidth=1.5, linestyle=(0, (4, 2)))
    axes.set_xlim(1e-4, 10.0)
    axes.set_ylim(1e-8, 1e3)
    axes.set_xlabel(r"violation $b$ that the step takes back, with $\delta = b^2 \alpha_{KL}$")
    axes.set_ylabel(r"loss of reward, $J_R(\pi) - J_R(\pi')$")
    axes.set_title("Cost nearly the reward: false at every small step")
    plots.label(axes, (1.4e-3, 1.4e-3), "correct bound allows", _CORRECT, (-2, 12), rotation=17)
    plots.label(axes, (2.2, 1.6), "what happens", plots.INK, (0, -15))
    plots.label(axes, (6e-3, 5e-5), "printed bound allows", _PRINTED, (4, -10), align="left", rotation=33)
    plots.label(axes, (5.5e-4, 1.4e-5), "printed bound\nis false", _EARLY)


def _draw_map(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Every violated case by cosine and violation, coloured by the largest delta at which the printed bound fails."""
    failed = failures(found)["infeasible_reward"]
    largest = np.max(np.where(failed == 1.0, np.asarray(DELTAS), 0.0), axis=1)
    violated = found.beta > 0.0
    classes = (
        (largest == 0.0, "#c9cdd2", r"none $\geq 10^{-6}$", 9.0),
        ((largest > 0.0) & (largest < 0.9e-4), _LATE, r"$< 10^{-4}$", 15.0),
        ((largest > 0.9e-4) & (largest < 0.9e-2), _PRINTED, r"$10^{-4}$ to $10^{-2}$", 15.0),
        (largest > 0.9e-2, _EARLY, r"$\geq 10^{-2}$", 15.0),
    )
    for members, color, text, size in classes:
        chosen = members & violated
        axes.scatter(found.cosine[chosen], found.beta[chosen], s=size, color=color, linewidths=0.0, label=text)
    c = np.linspace((np.sqrt(13.0) - 3.0) / 2.0, 1.0, 200)  # from where the curve leaves the data, beta = 3
    axes.plot(c, (1.0 - c**2) / c, color=plots.INK, linewidth=1.6)
    axes.set_xlim(-1.0, 1.0)
    axes.set_ylim(0.0, 3.75)
    axes.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    axes.set_yticks([0.0, 1.0, 2.0, 3.0])
    axes.set_xlabel(r"cosine $c$ between the natural gradients of reward and cost")
    axes.set_ylabel(r"violation $\beta$, in reach of the trust region")
    axes.set_title(r"The printed reward bound, from $b > 0$: false right of the curve")
    plots.label(axes, (0.5, 1.5), r"$\beta c = 1 - c^2$", plots.INK, (-8, 0), align="right")
    title = r"largest $\delta$ at which it is false:"
    axes.legend(loc="upper center", ncols=4, title=title, frameon=False, handletextpad=0.1, columnspacing=1.4)


def _draw_failures(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Fraction of cases in which each bound fails, over delta."""
    percent = {name: 100.0 * np.nanmean(values, axis=0) for name, values in failures(found).items()}
    percent["feasible"] = np.maximum(percent["feasible_reward"], percent["feasible_cost"])
    percent["correct"] = 100.0 * np.mean(missed(found.judged).any(axis=-1), axis=0)
    violated = found.beta > 0.0
    past = float(100.0 * np.mean((found.beta * found.cosine > 1.0 - found.cosine**2)[violated]))
    lines = (
        ("infeasible_reward", _PRINTED, "o", "printed, reward, from $b > 0$"),
        ("infeasible_cost", _EARLY, "s", "printed, cost, from $b > 0$"),
        ("feasible", plots.GREY, "^", r"printed, reward or cost, from $b \leq 0$"),
        ("correct", _CORRECT, "", "correct, all of them"),
    )
    axes.axhline(past, color=plots.GREY, linewidth=1.0, linestyle=(0, (2, 2)))
    for name, color, marker, text in lines:
        axes.semilogx(DELTAS, percent[name], color=color, marker=marker, markersize=4.5, linewidth=2.0, label=text)
    axes.set_xlim(0.9 * DELTAS[0], 1.1 * DELTAS[-1])
    axes.set_ylim(-0.04 * past, 1.15 * past)
    axes.set_xlabel(r"KL radius $\delta$")
    axes.set_ylabel("cases in which the bound is false, %")
    axes.set_title("How often the bounds are false on random problems")
    plots.label(axes, (1.0, past), "share of cases right of the curve", plots.GREY, (0, 7), align="right", size=8.5)
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.83), frameon=False, fontsize=8.5)


def _draw_looseness(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Penalty over the error it bounds, by effective horizon: median and middle half."""
    ratios = looseness(found.judged)
    effective = 1.0 / (1.0 - found.gamma)
    edges = np.geomspace(1.02, 50.0, 9)
    centres = np.sqrt(edges[:-1] * edges[1:])
    members = [(effective > low) & (effective <= high) for low, high in pairwise(edges)]
    kept = [i for i, chosen in enumerate(members) if np.any(chosen)]
    looks = (
        (_CORRECT, "-", 0.13, r"$\gamma\,\epsilon \sqrt{2\,KL}\, / (1-\gamma)^2$, the paper's"),
        (_SHARPER, "-", 0.0, r"$\gamma\,\epsilon \sqrt{2\,KL}\, / (1-\gamma)^{3/2}$, KL of whole paths"),
        (_SHARPER, (0, (4, 2)), 0.13, r"… with half the range in place of $\epsilon$"),
    )
    for i, (color, line, shade, text) in enumerate(looks):
        low, middle, high = np.array([np.quantile(ratios[members[k]][..., i], [0.25, 0.5, 0.75]) for k in kept]).T
        if shade:
            axes.fill_between(centres[kept], low, high, color=color, alpha=shade, linewidth=0.0)
        axes.loglog(centres[kept], middle, color=color, linewidth=2.0, linestyle=line, label=text)
    axes.set_xlim(1.02, 50.0)
    axes.set_ylim(1.0, None)
    axes.set_xticks([], minor=True)
    axes.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.set_xlabel(r"effective horizon $1 / (1 - \gamma)$")
    axes.set_ylabel("penalty / error that it bounds")
    axes.set_title("How loose the correct bounds are: median, middle half")
    axes.legend(loc="upper left", frameon=False, fontsize=8.5)
