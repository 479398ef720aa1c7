"""Draws the curves of docs/experiments/traffic.md: `python docs/figures/traffic_training.py [RUN ...]`.

Without runs it draws those whose numbers lie beside it in traffic-training.json; with runs it keeps their numbers there.
A run is one seed. Some have been gone on with on a second machine: `DIRECTORY:ROWS` says how many updates were made
on the first one, and only those are drawn and counted.
"""

import io
import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from pcpo.experiments import plots

HERE = Path(__file__).parent
NUMBERS, POLICIES = HERE / "traffic-training.json", HERE / "traffic-policies.json"
WINDOW = 5
"""The last updates that the numbers of the page are means over, and the first ones that are left out of others."""
LOOKS = {
    "pcpo-kl": ("PCPO (KL)", plots.KL),
    "pcpo-l2": ("PCPO (L2)", plots.L2),
    "cpo": ("CPO", plots.CPO),
    "trpo": ("TRPO", plots.INK),
}
COLUMNS = {
    "reward": lambda row: row["return"],
    "cost": lambda row: row["costs"]["cost"],
    "cost error": lambda row: row["cost_standard_errors"]["cost"],
    "kl": lambda row: row["kl"],
    "promised": lambda row: row["predicted_costs"]["cost"],
    "same batch": lambda row: row["cost_changes"]["cost"],
    "residual": lambda row: row["cg_residual"],
    "unexplained reward": lambda row: row["unexplained_variance"]["reward"],
    "unexplained cost": lambda row: row["unexplained_variance"]["cost"],
}


def read(directories):
    """What the curves and the page show of runs: by task, era and algorithm one entry for each seed."""
    found = {}
    for directory in directories:
        path, _, count = directory.partition(":")
        config = json.loads((Path(path) / "config.json").read_text())["config"]
        rows = [json.loads(line) for line in (Path(path) / "metrics.jsonl").read_text().splitlines()]
        rows = rows[: int(count)] if count else rows
        name = " ".join([config["task"], config["task_options"].get("era", "E1"), config["algorithm"]])
        name += " network" if config["critic"] == "network" else ""
        columns = {key: [_short(value(row)) for row in rows] for key, value in COLUMNS.items()}
        found.setdefault(name, []).append({"seed": config["seed"]} | columns)
    return {name: sorted(runs, key=lambda run: run["seed"]) for name, runs in sorted(found.items())}


def _short(number):
    """Five digits are more than the noise deserves."""
    return None if number is None else float(f"{number:.5g}")


def column(runs, name, length=None):
    """A row for each seed, as long as the shortest, or that long."""
    length = length or min(len(run[name]) for run in runs)
    return np.array([run[name][:length] for run in runs], float)


def settings(found):
    """The runs that are compared with one another, and how many updates all of them have."""
    together = {}
    for name, runs in found.items():
        task, era, algorithm, *critic = name.split()
        together.setdefault(" ".join([task, era, *critic]), {})[algorithm] = runs
    return {
        setting: (min(len(run["cost"]) for runs in rules.values() for run in runs), rules)
        for setting, rules in together.items()
    }


def draw(found, setting, marks, file):
    """Reward and cost of all algorithms: seeds thin, their mean thick."""
    with plots.style():
        figure = Figure(figsize=(9.5, 3.6), dpi=150, layout="constrained")
        for axes, name in zip(figure.subplots(1, 2), ("reward", "cost"), strict=True):
            length = 0
            for algorithm, (label, colour) in LOOKS.items():
                if f"{setting} {algorithm}" not in found:
                    continue
                values = column(found[f"{setting} {algorithm}"], name)
                length = max(length, values.shape[1])
                axes.plot(values.T, color=colour, lw=0.7, alpha=0.35)
                axes.plot(values.mean(0), color=colour, lw=2.0, label=label)
            for text, height in marks.get(name, {}).items():
                axes.axhline(height, color=plots.GREY, lw=1.0, ls=":", zorder=0)
                axes.annotate(
                    text, (1.0, height), xycoords=("axes fraction", "data"), xytext=(-2, 3), ha="right",
                    textcoords="offset points", color=plots.GREY, fontsize=8.5,
                )  # fmt: skip
            axes.set(title=f"{name} of an episode", xlabel="updates", xlim=(0, length - 1))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
            if name == "cost":
                axes.set_ylim(bottom=0)
                axes.legend(frameon=False, loc="upper right", ncols=2)
        pixels = io.BytesIO()
        figure.savefig(pixels, format="png")
        Image.open(pixels).convert("RGB").quantize(256).save(HERE / file, optimize=True)


def told(found):
    """The numbers of the page."""
    lines = []
    for setting, (length, rules) in settings(found).items():
        lines.append(f"{setting}: {length} updates of each")
        for algorithm, runs in rules.items():
            values = {key: column(runs, key, length) for key in COLUMNS}
            lines += [f"  {algorithm}", *ends(values), *inside(values)]
    return "\n".join(lines) + "\n"


def ends(values):
    """The first batch and the mean over the last ones; what the cost adds up to, as the mean over the seeds."""
    for key in ("reward", "cost"):
        first, last = values[key][:, 0], values[key][:, -WINDOW:].mean(1)
        yield f"    {key}: {first.mean():.4g} -> {last.mean():.4g}; seeds {first.round(2)} -> {last.round(2)}"
    yield f"    cost added up: {values['cost'].sum(1).mean():.5g}; error of a batch {np.mean(values['cost error']):.3g}"


def inside(values):
    """What an update promised and what came of it; what critics do not explain; steps and solves."""
    later = np.diff(values["cost"], axis=1)[:, WINDOW:].mean(1)
    promised, same, kl = (values[key][:, WINDOW:] for key in ("promised", "same batch", "kl"))
    yield (
        f"    cost in an update: {promised.mean():.4g} promised, {same.mean():.4g} on the same batch, in the next one "
        f"{later.mean():.3g}, by seed {later.round(1)}"
    )
    for key in ("unexplained reward", "unexplained cost"):
        low, middle, high = np.quantile(values[key][:, WINDOW:], (0.1, 0.5, 0.9))
        yield f"    {key}: {middle:.2g} ({low:.2g} to {high:.2g})"
    yield (
        f"    kl {values['kl'][:, 0].round(4)} at first, median {np.median(kl):.2g}; "
        f"median residual of cg {np.median(values['residual']):.2g}"
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        NUMBERS.write_text(json.dumps(read(sys.argv[1:]), indent=0).replace(",\n", ", ") + "\n")
    found = json.loads(NUMBERS.read_text())
    policies = json.loads(POLICIES.read_text())
    cycles, later = (policies[era]["grid"]["cycles"] for era in ("E1", "E3"))
    draw(found, "grid E1", {"reward": {"always ask: no cost": cycles["3"]["0"][0]}}, "traffic-grid-e1.png")
    draw(found, "grid E3", {"reward": {"always ask: no cost": later["4"]["0"][0]}}, "traffic-grid-e3.png")
    draw(found, "bottleneck E1", {"reward": {"do nothing: no cost": 406.0}}, "traffic-bottleneck-e1.png")
    sys.stdout.write(told(found))
