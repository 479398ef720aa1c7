"""Draws the curves of docs/experiments/ant-circle.md: `python docs/figures/ant_circle.py RUN [RUN ...]`.

Without a run it draws those whose numbers lie beside it in ant-circle.json. With runs it keeps their numbers there, and
takes a frame of a film of the first one's newest policy.
"""

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from pcpo.experiments import plots
from pcpo.training.evaluate import trained
from pcpo.training.render import film_episodes
from pcpo.training.run import Run

HERE = Path(__file__).parent
NUMBERS = HERE / "ant-circle.json"
WINDOW = 10
"""Updates that the thick lines are means over."""
COLOURS = ("#0072b2", "#e69f00", "#009e73")
PANELS = {"discounted_return": "reward, discounted", "cost": "cost", "episode_length": "steps of an episode"}


def read(directory):
    """What the curves show of a run."""
    run = Run.open(directory)
    columns = {
        name: run.column("costs", name) if name == "cost" else run.column(name)
        for name in ("discounted_return", "cost", "episode_length", "env_steps", "kl")
    }
    return {"delta": run.config.delta, "seed": run.config.seed, "limit": run.config.limits["cost"]} | {
        name: [round(float(x), 5) for x in np.asarray(column)[:, 0]] for name, column in columns.items()
    }


def draw(runs):
    """Thin lines are batches, thick lines means over the last updates."""
    with plots.style():
        figure = Figure(figsize=(11, 3.4), dpi=150, layout="constrained")
        for axes, (name, title) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
            for run, colour in zip(runs, COLOURS, strict=False):
                values = np.array(run[name])
                axes.plot(values, color=colour, lw=0.8, alpha=0.4)
                if len(values) >= WINDOW:
                    means = np.convolve(values, np.ones(WINDOW) / WINDOW, "valid")
                    axes.plot(np.arange(WINDOW - 1, len(values)), means, color=colour, label=f"δ = {run['delta']:g}")
            if name == "cost":
                axes.axhline(runs[0]["limit"], color="#a23b52", ls="--")
                axes.set_ylim(0, max(1.25 * runs[0]["limit"], 1.05 * max(max(run[name]) for run in runs)))
            axes.set(title=title, xlabel="updates")
            axes.set_xlim(left=0)
        if len(runs) > 1:
            axes.legend(frameon=False)
        figure.savefig(HERE / "ant-circle.png")


def film_frame(directory, share=0.6):
    """One picture of an episode that the newest policy plays."""
    program, found = trained(Run.open(directory))
    pictures = list(film_episodes(program, found.tree, seed=1))
    image = Image.fromarray(pictures[int(share * len(pictures))]).quantize(256, dither=Image.Dither.NONE)
    image.save(HERE / "ant-circle-frame.png", optimize=True)


def tell(run):
    """The numbers of the page."""
    first, last = slice(0, WINDOW), slice(-WINDOW, None)
    for name in PANELS:
        values = np.array(run[name])
        print(f"{name}: {values[first].mean():.3f} -> {values[last].mean():.3f}, from {values.min()} to {values.max()}")
    steps = np.array(run["env_steps"])
    print(f"delta {run['delta']}: {len(steps)} updates, {np.diff(steps).mean():,.0f} steps per update")


if __name__ == "__main__":
    if sys.argv[1:]:
        NUMBERS.write_text(json.dumps([read(directory) for directory in sys.argv[1:]]) + "\n")
        film_frame(sys.argv[1])
    runs = json.loads(NUMBERS.read_text())
    draw(runs)
    for run in runs:
        tell(run)
