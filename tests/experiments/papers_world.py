"""Made-up results in which the paper is right about nearly everything, to show that every judge can say so.

Costs are violated before the first update, and from then on by whoever the paper says violates them. PCPO earns at
once what the others earn only in the end.
"""

from pathlib import Path
from typing import Any

import numpy as np

from pcpo.experiments.suite import results
from pcpo.experiments.suite.plan import Variant, seeds_named
from pcpo.experiments.suite.presets import EXPERIMENTS
from pcpo.training.run import Record

UPDATES, SEEDS = 80, (0, 1, 2, 3, 4)
HIGH = 60.0
"""The cost before the first update."""
WIGGLE = np.where(np.arange(UPDATES) % 2, 1.0, -1.0)


def rule_of(variant: Variant) -> str:
    return variant.algorithm.removeprefix("pcpo-")


def rewards(experiment: str, variant: Variant) -> Any:
    """What each rule earns in the end; PCPO has it after one update, the others only then."""
    rule = rule_of(variant)
    final = {"kl": 10.0, "l2": 9.0, "adaptive": 10.5, "cpo": 8.0, "trpo": 20.0, "pdo": 5.0, "fpo": 6.0}[
        rule.removesuffix("-flipped")
    ]
    if experiment == "ant-circle-small-steps" and rule == "l2":
        final = 12.0
    if variant.name.endswith("pdo-1"):
        final = 1.0
    if "fpo-" in variant.name and not variant.name.endswith("fpo-3"):
        final = 1.0
    curve = np.full(UPDATES, final) if rule in {"kl", "l2", "adaptive"} else np.linspace(0.0, final, UPDATES)
    curve[0] = 0.0
    if rule == "l2":
        curve[1:] += 0.3 * WIGGLE[1:]
    if variant.name.endswith("cpo-without-0.01"):
        curve[1:] += 0.3 * WIGGLE[1:]
    if experiment == "small-batch":
        curve[1:] += 0.2 * WIGGLE[1:]
    return curve


def costs(experiment: str, variant: Variant) -> Any:
    """Who violates, and how long."""
    rule, limit = rule_of(variant), next(iter(variant.config((0,), 1).limits.values()))
    curve = np.full(UPDATES, HIGH)
    kept = 0.5 * limit
    points = variant.task in {"point-circle", "point-gather"}
    if rule in {"kl", "adaptive", "kl-flipped"}:
        curve[1 if points else 2 :] = kept
        if variant.task in {"grid", "bottleneck"}:
            curve[2:4], curve[4:] = HIGH, 0.5
    elif rule in {"l2", "l2-flipped"}:
        curve[1:] = 0.9 * kept
        if variant.task in {"grid", "bottleneck"}:
            curve[1:3] = HIGH
        if points:
            curve[1], curve[2:20], curve[20:60] = limit + 0.5, 0.2 * kept, 1.8 * kept  # later than KL, more in all
        if experiment == "harder":
            curve[1:] = 0.2 * HIGH
    elif rule == "cpo" and experiment == "line-search":
        curve[30 if variant.settings["line_search"] else 20 :] = kept
    elif rule == "pdo":
        curve = HIGH * (1.0 + 0.5 * WIGGLE)
    elif rule == "fpo":
        curve[60:] = 1.5 * limit
    if experiment == "cg":
        curve[1:] = {"pcpo-kl-10": 9.0, "pcpo-kl-20": 5.0, "trpo": 3.0}[variant.name]
    if experiment == "small-batch":
        curve = curve + 0.02 * WIGGLE
    return curve


def spread(experiment: str, variant: Variant, of: str) -> float:
    """How much seeds differ, relative to each other."""
    if of == "rewards" and variant.name.endswith("cpo-without-0.01"):
        return 0.1
    if of == "costs" and experiment == "harder" and rule_of(variant) == "l2":
        return 0.1
    return 0.002


def write(
    directory: Path, experiment: str, variant: Variant, change: Any = lambda rewards, costs: (rewards, costs)
) -> None:
    """The results of one variant; ``change`` may alter what its rewards and costs are."""
    config = variant.config(SEEDS, UPDATES)
    curves = change(rewards(experiment, variant), costs(experiment, variant))
    names = config.cost_names
    lines = [",".join(["update", "seed", *results._columns(names), "status"])]
    hard = experiment == "harder" and variant.algorithm == "cpo"
    for update in range(UPDATES):
        for seed in SEEDS:
            reward, cost = (
                float(curve[update]) * (1.0 + spread(experiment, variant, of) * (seed - 2))
                for curve, of in zip(curves, ("rewards", "costs"), strict=True)
            )
            row: dict[str, float] = {
                "discounted_return": reward,
                "episode_length": 50.0,
                "kl": 0.02 if "without" in variant.name else 0.01,
                "condition": 1e5 + seed,
                "cg_residuals.cost": 0.1 if variant.name == "pcpo-kl-20" else 0.5 + 0.01 * seed,
            }
            row |= {f"costs.{name}": cost for name in names}
            cells = [repr(row[name]) if name in row else "" for name in results._columns(names)]
            status = "recovery" if hard and update < 60 + seed else "ok"
            lines.append(",".join([str(update), str(seed), *cells, status]))
    record = {"variant": variant.name, "updates": UPDATES, "seconds": 1.0, "seconds_of_the_median_update": 0.01}
    record |= Record(config).to_json()
    table = ("\n".join(lines) + "\n").encode()
    results.write(directory / experiment, results.Unwritten(f"{variant.name}.{seeds_named(SEEDS)}", table, record))


def write_all(directory: Path) -> Path:
    """The results of everything."""
    for name, experiment in EXPERIMENTS.items():
        for variant in experiment.variants:
            write(directory, name, variant)
    return directory
