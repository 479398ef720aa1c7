"""Runs made up for tests of the report: on a disk, or only in memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from pcpo.experiments.report import Subject
from pcpo.experiments.series import Series
from pcpo.training.config import Config, Constraint
from pcpo.training.run import Record

VERSIONS = {"pcpo": "0.1.0", "python": "3.12.1", "jax": "0.9", "machine": "x86_64", "device": "cpu cpu", "cores": "2"}


def config(**changes: Any) -> Config:
    """Settings, of a task with one cost unless told otherwise."""
    usual: dict[str, Any] = {"task": "point-circle", "constraints": (Constraint("cost", 5.0),), "updates": 4}
    return Config(**{**usual, **changes})


def rows(settings: Config, updates: int | None = None) -> list[dict[str, Any]]:
    """Rows as a training writes them, of numbers that can be told apart: seed s has s more than seed 0."""
    found: list[dict[str, Any]] = []
    names = settings.cost_names
    for update in range(settings.updates if updates is None else updates):
        for place, seed in enumerate(settings.all_seeds):
            cost = 9.0 - update + place
            each = dict.fromkeys(names, cost)
            found.append(
                {
                    "update": update,
                    "seed": seed,
                    "env_steps": 1000 * (update + 1),
                    "discounted_return": 10.0 * update + place,
                    "predicted_reward": 1.0,
                    "reward_change": 0.5,
                    "predicted_kl": 0.01,
                    "kl": 0.03,
                    "costs": each,
                    "limits": dict(settings.limits),
                    "cumulative_violations": dict.fromkeys(names, 4.0 + update + place),
                    "multipliers": dict.fromkeys(names, 0.2),
                    "predicted_costs": dict.fromkeys(names, -1.0),
                    "cost_changes": dict.fromkeys(names, -1.0),
                    "bound_estimate_costs": dict.fromkeys(names, 50.0),
                    "cg_residuals": [0.1, *([0.2] * len(names))],
                    "condition": 100.0 if update % 2 == 0 else None,
                    "status": "projected" if update % 2 == 0 else "ok",
                    "seconds": 0.5,
                    "nonfinite": [],
                }
            )
    return found


def on_disk(directory: Path, settings: Config | None = None, updates: int | None = None) -> Path:
    """The directory of a run."""
    settings = settings or config()
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(Record(settings, (), VERSIONS).to_json()))
    lines = [json.dumps(row) + "\n" for row in rows(settings, updates)]
    (directory / "metrics.jsonl").write_text("".join(lines))
    return directory


def subject(label: str, settings: Config, seed: int = 0) -> Subject:
    """A run that is as ragged as real ones are, without a file."""
    random = np.random.default_rng(seed)
    n, seeds, names = settings.updates, settings.seeds, settings.cost_names
    time = np.arange(n)[:, None]

    def noise(scale: float) -> Any:
        return scale * random.standard_normal((n, seeds))

    columns = {
        "env_steps": np.cumsum(50_000 + random.integers(0, 300, (n, seeds)), axis=0).astype(float),
        "discounted_return": 30.0 * (1.0 - np.exp(-time / 300.0)) + noise(1.5),
        "predicted_reward": 0.1 + noise(0.05),
        "reward_change": 0.1 + noise(0.05),
        "predicted_kl": np.exp(-9.2 + noise(0.2)),
        "kl": np.exp(-9.2 + noise(0.3)),
        "seconds": np.broadcast_to(0.2 + 0.01 * random.random((n, 1)), (n, seeds)),
        "condition": np.where(time % 10 == 0, np.exp(12.0 + noise(0.5)), np.nan),
        "cg_residuals.reward": np.exp(-3.0 + noise(0.5)),
    }
    for name in names:
        cost = np.abs(5.0 + 20.0 * np.exp(-time / 50.0) + noise(1.0))
        columns |= {
            f"costs.{name}": cost,
            f"cumulative_violations.{name}": np.cumsum(np.maximum(cost - 5.0, 0.0), axis=0),
            f"predicted_costs.{name}": noise(0.3),
            f"cost_changes.{name}": noise(0.3),
            f"bound_estimate_costs.{name}": np.exp(4.0 + noise(0.3)),
            f"cg_residuals.{name}": np.exp(-3.0 + noise(0.5)),
            f"multipliers.{name}": np.abs(noise(0.1)),
        }
    words = np.array(["ok", "projected", "projected", "kl_capped"])[random.integers(0, 4, (n, seeds))]
    series = Series(
        label=label,
        task=settings.task,
        algorithm=settings.algorithm,
        seeds=settings.all_seeds,
        updates=np.arange(n),
        limits={name: np.full(n, limit) for name, limit in settings.limits.items()},
        columns=columns,
        statuses=tuple(tuple(str(word) for word in row) for row in words),
        settings=settings.to_json(),
    )
    return Subject(series, Record(settings, (), VERSIONS))
