"""Draws the curves of docs/experiments/safety-point-goal.md: `python docs/figures/safety_point_goal.py [RUN]`.

The numbers of the runs lie beside it in safety-point-goal.json; a run that is given takes the place of the last.
"""

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pcpo.experiments import plots

HERE = Path(__file__).parent
NUMBERS = HERE / "safety-point-goal.json"
WINDOW = 5
"""Updates that the thick lines are means over."""
LIMIT = 25.0
COLOURS = (plots.GREY, plots.KL, plots.CPO)
LABELS = ("30 episodes a batch", "20, linear critics", "150, linear critics, small network")
COLUMNS = ("return", "kl", "predicted_kl")
COST_COLUMNS = ("costs", "cost_standard_errors", "predicted_costs", "cost_changes")


def read(directory):
    """What the curves and the page show of a run. Reads its metrics alone."""
    rows = [json.loads(line) for line in (Path(directory) / "metrics.jsonl").read_text().splitlines()]
    found = {name: [round(row[name], 4) for row in rows] for name in COLUMNS}
    found |= {name: [round(row[name]["cost"], 3) for row in rows] for name in COST_COLUMNS}
    limits = [row["limits"]["cost"] for row in rows]
    return {"steps": [row["env_steps"] for row in rows], "limits": limits} | found


def draw(runs):
    """Thin lines are batches, thick lines means over the last updates."""
    with plots.style():
        figure = Figure(figsize=(9.5, 3.5), dpi=150, layout="constrained")
        left, right = figure.subplots(1, 2)
        for run, colour, label in zip(runs, COLOURS, LABELS, strict=False):
            millions = np.array(run["steps"]) / 1e6
            for axes, name in ((left, "return"), (right, "costs")):
                values = np.array(run[name])
                axes.plot(millions, values, color=colour, lw=0.8, alpha=0.45)
                if len(values) < WINDOW:
                    continue
                means = np.convolve(values, np.ones(WINDOW) / WINDOW, "valid")
                axes.plot(millions[WINDOW - 1 :], means, color=colour, lw=2.0, label=label)
            draw_other_limit(right, run, millions)
        right.axhline(LIMIT, color="#a23b52", ls="--", lw=1.2)
        right.annotate("limit", (0.0, LIMIT), xytext=(2, 3), textcoords="offset points", color="#a23b52")
        left.set(title="reward of an episode", xlabel="million steps")
        right.set(title="cost of an episode", xlabel="million steps", ylim=(0, None))
        left.set_xlim(left=0)
        right.set_xlim(left=0)
        right.legend(frameon=False)
        figure.savefig(HERE / "safety-point-goal.png")


def draw_other_limit(axes, run, millions):
    """Where the projection was asked for less than the limit of the task."""
    limits = np.array(run.get("limits", LIMIT))
    if np.all(limits == LIMIT):
        return
    first = int(np.argmax(limits != LIMIT))
    axes.plot(millions[first:], limits[first:], color="#a23b52", ls=":", lw=1.2)
    axes.annotate(
        f"asked for {limits[first]:g}", (millions[-1], limits[first]), xytext=(0, -3), textcoords="offset points",
        color="#a23b52", ha="right", va="top",
    )  # fmt: skip


def told(run):
    """The numbers of the page."""
    means = {name: np.array(run[name]) for name in ("return", "costs", "cost_standard_errors")}
    lines = [f"{name}: first {x[:WINDOW].mean():.2f}, last ten {x[-10:].mean():.2f}" for name, x in means.items()]
    promised, measured = np.mean(run["predicted_costs"]), np.mean(run["cost_changes"])
    lines.append(
        f"{len(run['steps'])} updates, {run['steps'][-1]:,} steps; the cost in an update: {promised:.1f} promised, "
        f"{measured:.1f} on the same batch, {np.diff(run['costs']).mean():.2f} from one batch to the next"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    found = json.loads(NUMBERS.read_text())
    if sys.argv[1:]:
        found[-1] = read(sys.argv[1])
        NUMBERS.write_text(json.dumps(found) + "\n")
    draw(found)
    for each in found:
        sys.stdout.write(told(each))
