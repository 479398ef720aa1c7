"""Draws how the time of an update grows: `python docs/figures/scaling.py`, from what benchmarks.scaling measured."""

import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
MEASURED = HERE.parents[1] / "results" / "scaling" / "cpu.json"
AXES = {
    "batch": ("steps per update", "one seed, 2,800 parameters"),
    "parameters": ("parameters of the policy", "one seed, 10,000 steps"),
    "seeds": ("seeds side by side", "10,000 steps each, 2,800 parameters"),
}


def draw() -> None:
    """One panel for each thing that is varied; the grey line grows in proportion."""
    mpl.use("Agg")
    kept = json.loads(MEASURED.read_text(encoding="utf-8"))
    figure, panels = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
    for panel, (axis, (label, rest)) in zip(panels, AXES.items(), strict=True):
        rows = [row for row in kept["rows"] if row["axis"] == axis]
        x = [row["parameters"] if axis == "parameters" else row["value"] for row in rows]
        y = [row["seconds"] for row in rows]
        panel.loglog([x[0], x[-1]], [y[-1] * x[0] / x[-1], y[-1]], color="0.75", label="in proportion")
        panel.loglog(x, y, marker="o", color="#0072b2", label="measured")
        panel.set(xlabel=label, title=rest)
        panel.title.set_fontsize("medium")
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("seconds per update")
    panels[0].legend(frameon=False)
    figure.suptitle(f"An update of Point-Circle with PCPO-KL, two CPU cores, {kept['date']}")
    figure.savefig(HERE / "scaling.png", dpi=110)


if __name__ == "__main__":
    draw()
