"""What hand-written policies earn and cost in traffic: `python docs/figures/traffic.py`.

Draws traffic-policies.png, and writes its numbers to traffic-policies.json. The policies of the grid see no clock but
that of those which switch in fixed cycles.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

from pcpo.tasks.host import HostTask
from pcpo.tasks.registry import make

HERE = Path(__file__).parent
PERIODS = range(3, 13)
NEAR, SLOW = (1.5, 3.0, 5.0, 6.0, 10.0, 20.0), (1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
SEEDS = (0, 1, 2)
BRAKES = (0.0, 0.1, 0.2, 0.3, 0.5)

Act = Callable[[np.ndarray, int, np.random.Generator], Any]


def play(task: HostTask, act: Act, seed: int) -> tuple[float, float]:
    """Reward and cost of an episode."""
    worlds, which, rng = task.worlds(1), np.zeros(1, np.int64), np.random.default_rng(seed)
    try:
        observation, total = worlds.reset(which, np.array([seed]))[0], np.zeros(2)
        for t in range(task.horizon):
            out = worlds.step(which, np.asarray(act(observation, t, rng), float)[None])
            observation = out.observations[0]
            total += out.rewards[0], out.costs[0, 0]
        return float(total[0]), float(total[1])
    finally:
        worlds.close()


def mean(task: HostTask, act: Act) -> list[float]:
    """Over the seeds: reward, cost, and the largest cost of an episode."""
    rewards, costs = zip(*(play(task, act, seed) for seed in SEEDS), strict=True)
    return [float(np.mean(rewards)), float(np.mean(costs)), max(costs)]


def cycle(period: int) -> Act:
    """All lights are asked together, every so many seconds."""
    return lambda observation, t, rng: np.full(4, 1.0 if t % period == 0 else -1.0)


def hold(near: float, slow: float) -> Act:
    """A light is asked to switch, unless a car so near to it has green (or will have) and is still so slow."""

    def act(observation: np.ndarray, t: int, rng: np.random.Generator) -> list[float]:
        speeds, distances = 35 * observation[:32].reshape(4, 4, 2), 300 * observation[32:64].reshape(4, 4, 2)
        there = observation[64:96].reshape(4, 4, 2)[:, :, 0] > 0
        wanted = there & (distances[:, :, 0] < near) & (speeds[:, :, 0] < slow)
        # Approaches from the left, below, right, above: vertical green is for the second and the last.
        green = [(1, 3) if direction < 0.5 else (0, 2) for direction in observation[148:152]]
        return [-1.0 if wanted[i, list(green[i])].any() else 1.0 for i in range(4)]

    return act


def brake(strength: float) -> Act:
    """The agent's cars brake on edge 3 and drive as fast as they may elsewhere."""
    action = np.ones(20)
    action[8:16] = -strength if strength else 1.0
    return lambda observation, t, rng: action


def measure() -> dict[str, Any]:
    """All numbers."""
    found: dict[str, Any] = {}
    for era in ("E1", "E3"):
        grid, bottleneck = make("grid", era=era), make("bottleneck", era=era)
        stretched = make("bottleneck", era=era, action_mode="normalize")
        assert isinstance(grid, HostTask)
        assert isinstance(bottleneck, HostTask)
        assert isinstance(stretched, HostTask)
        found[era] = {
            "grid": {
                "cycles": {period: mean(grid, cycle(period)) for period in PERIODS},
                "hold": {f"{d:g} {v:g}": mean(grid, hold(d, v)) for d, v in itertools.product(NEAR, SLOW)},
                "random": mean(grid, lambda observation, t, rng: rng.normal(size=4)),
            },
            "bottleneck": {
                "brake": {f"{b:g}": mean(bottleneck, brake(b)) for b in BRAKES},
                "random": mean(bottleneck, lambda observation, t, rng: rng.normal(size=20)),
                "random, normalized": mean(stretched, lambda observation, t, rng: rng.normal(size=20)),
            },
        }
    return found


def draw(found: dict[str, Any]) -> None:
    """The grid: reward over cost, one panel for each era."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for panel, (era, title) in zip(axes, (("E1", "E1: 2018, 2019"), ("E3", "E3: Flow's last version")), strict=True):
        grid = found[era]["grid"]
        cycles = np.array(list(grid["cycles"].values()))
        panel.plot(cycles[:, 1], cycles[:, 0], color="#9a9a9a", lw=1, zorder=1)
        panel.scatter(cycles[:, 1], cycles[:, 0], s=30, color="#0072b2", label="all lights in a fixed cycle", zorder=3)
        for period, (reward, cost, _) in grid["cycles"].items():
            aside = 22 if cost == 0 and int(period) % 2 else 5
            panel.annotate(f"{period} s", (cost, reward), (aside, 4), textcoords="offset points", fontsize=8)
        hold_ = np.array(list(grid["hold"].values()))
        panel.scatter(
            hold_[:, 1], hold_[:, 0], s=14, color="#d55e00", alpha=0.7, label="by cars in sight, without a clock", zorder=2
        )  # fmt: skip
        panel.scatter(*grid["random"][1::-1], marker="x", color="#222222", label="N(0, 1)", zorder=3)
        panel.axvspan(-14, 0, color="#009e73", alpha=0.12, lw=0)
        panel.set(title=title, xlabel="cost of an episode (limit 0)", xlim=(-14, None))
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("reward of an episode")
    axes[1].legend(frameon=False, loc="lower right")
    figure.savefig(HERE / "traffic-policies.png", dpi=150)


if __name__ == "__main__":
    numbers = measure()
    (HERE / "traffic-policies.json").write_text(json.dumps(numbers, indent=1) + "\n")
    draw(json.loads((HERE / "traffic-policies.json").read_text()))
