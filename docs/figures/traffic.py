"""What hand-written policies earn and cost in traffic: `python docs/figures/traffic.py`.

Draws traffic-policies.png, and writes its numbers to traffic-policies.json. On the grid, cycles have a clock; the
policies that go by the cars in sight see the observation of the moment and nothing else.
"""

import itertools
import json
import math
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
SEEDS = range(5)
MANY = range(40)
"""For costs that differ so much between episodes that five say nothing."""
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


def spread(task: HostTask, act: Act, seeds: range = MANY) -> dict[str, Any]:
    """Over many seeds: means with their standard errors, and how many episodes cost nothing."""
    told = np.array([play(task, act, seed) for seed in seeds])
    means, errors = told.mean(0), told.std(0, ddof=1) / math.sqrt(len(told))
    return {
        "reward": [means[0], errors[0]],
        "cost": [means[1], errors[1]],
        "episodes": len(told),
        "at no cost": int(np.sum(told[:, 1] == 0)),
    }


def cycle(period: int, ahead: int) -> Act:
    """Every light is asked every so many seconds: lower right and upper left so many seconds before the other two.

    A car needs some seconds from light to light, so that lights which all switch together are not the best cycle.
    """
    shift = np.array([0, ahead, ahead, 0])
    return lambda observation, t, rng: np.where((t + shift) % period == 0, 1.0, -1.0)


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
                "cycles": {p: {ahead: mean(grid, cycle(p, ahead)) for ahead in range(p)} for p in PERIODS},
                "hold": {f"{d:g} {v:g}": mean(grid, hold(d, v)) for d, v in itertools.product(NEAR, SLOW)},
                "random": mean(grid, lambda observation, t, rng: rng.normal(size=4)),
            },
            "bottleneck": {
                "brake": {f"{b:g}": mean(bottleneck, brake(b)) for b in BRAKES},
                "nothing": spread(bottleneck, lambda observation, t, rng: np.zeros(20), range(60)),
                "random": spread(bottleneck, lambda observation, t, rng: rng.normal(size=20)),
                "random, normalized": mean(stretched, lambda observation, t, rng: rng.normal(size=20)),
            },
        }
    return found


def draw(found: dict[str, Any]) -> None:
    """The grid: reward over cost, one panel for each era."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, layout="constrained")
    for panel, (era, title) in zip(axes, (("E1", "E1: 2018, 2019"), ("E3", "E3: Flow's last version")), strict=True):
        grid = found[era]["grid"]
        together = np.array([shifts["0"] for shifts in grid["cycles"].values()])
        apart = np.array([row for shifts in grid["cycles"].values() for ahead, row in shifts.items() if ahead != "0"])
        hold_ = np.array(list(grid["hold"].values()))
        panel.scatter(apart[:, 1], apart[:, 0], s=14, color="#56b4e9", label="cycle, two lights ahead", zorder=2)
        panel.scatter(together[:, 1], together[:, 0], s=30, color="#0072b2", label="cycle, all together", zorder=3)
        panel.scatter(hold_[:, 1], hold_[:, 0], s=14, color="#d55e00", label="by cars in sight, no clock", zorder=4)
        panel.scatter(*grid["random"][1::-1], marker="x", color="#222222", label="N(0, 1)", zorder=5)
        name_best(panel, grid["cycles"])
        panel.axvspan(-22, 0, color="#009e73", alpha=0.12, lw=0)
        panel.set(title=title, xlabel="cost of an episode (limit 0)", xlim=(-22, 800))
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("reward of an episode")
    axes[0].set_ylim(top=200)
    axes[0].legend(frameon=False, loc="lower right")
    figure.savefig(HERE / "traffic-policies.png", dpi=150)


def name_best(panel: Any, cycles: dict[str, dict[str, list[float]]]) -> None:
    """Names the cycle that earns most at no cost, and the one that earns most."""
    rows = [(reward, cost, p, ahead) for p, shifts in cycles.items() for ahead, (reward, cost, _) in shifts.items()]
    for reward, cost, period, ahead in (max(row for row in rows if row[1] == 0), max(rows)):
        words = f"{period} s, " + (f"{ahead} s ahead" if ahead != "0" else "together")
        aside, side = ((4, 18), "left") if cost == 0 else ((-6, 5), "right")
        panel.annotate(f"{words}: {reward:.0f}", (cost, reward), aside, textcoords="offset points", ha=side, fontsize=8)
    for period, shifts in cycles.items():
        low, cost = min((reward, cost) for reward, cost, _ in shifts.values())
        if cost > 100:  # the shorter ones are all on the axis
            panel.annotate(f"{period} s", (cost, low), (0, -12), textcoords="offset points", ha="center", fontsize=8)


if __name__ == "__main__":
    numbers = measure()
    (HERE / "traffic-policies.json").write_text(json.dumps(numbers, indent=1) + "\n")
    draw(json.loads((HERE / "traffic-policies.json").read_text()))
