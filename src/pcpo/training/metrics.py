"""From the arrays of an update to the rows of ``metrics.jsonl``: one row per update and seed.

A row describes policy k as it played, before update k, and the update that followed. Costs and all that belongs to one
cost stand under its name. A number that is not finite is null, and ``nonfinite`` lists where.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from pcpo.core.types import Status
from pcpo.rl.audit import NONFINITE_NAMES
from pcpo.training.config import Config

Row: TypeAlias = dict[str, Any]
"""One update of one seed."""

WALL_CLOCK = ("seconds", "worker_failures")
"""The columns in which two equal runs differ."""

# What the rows call the metrics of the learner, where it is not the same.
_NUMBERS = {
    "discounted_return": "discounted_return",
    "return": "undiscounted_return",
    "episode_length": "episode_length",
    "eta": "eta",
    "predicted_reward": "predicted_reward",
    "reward_change": "reward_change",
    "predicted_kl": "predicted_kl",
    "kl": "kl",
    "bound_estimate_reward": "bound_estimate_reward",
    "entropy": "entropy",
}
_PER_COST = {
    "costs": "costs",
    "cost_standard_errors": "cost_standard_errors",
    "violations": "violations",
    "multipliers": "multipliers",
    "predicted_costs": "predicted_costs",
    "cost_changes": "cost_changes",
    "bound_estimate_costs": "bound_estimate_costs",
}
_ON_HOST = ("worker_failures",)
"""Of tasks simulated on the host only: how often processes of the environments died, hung or failed in the batch, and
were replaced."""
_NOW_AND_THEN = ("spectrum_min", "spectrum_max", "condition")
"""Measured at intervals, as ``confirmed`` is; null in between without being listed in ``nonfinite``."""


@dataclass
class Totals:
    """What is added up over a run, per seed, in double precision on the host."""

    env_steps: list[int]
    violations: list[list[float]]
    """Of each cost."""
    refused: list[int]
    """Updates that were not made."""

    @classmethod
    def nothing(cls, seeds: int, costs: int) -> "Totals":
        """Before the first update."""
        return cls([0] * seeds, [[0.0] * costs for _ in range(seeds)], [0] * seeds)

    def to_json(self) -> dict[str, Any]:
        """Plain values; Python writes and reads doubles exactly."""
        return {"env_steps": self.env_steps, "violations": self.violations, "refused": self.refused}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Totals":
        """What `to_json` gave."""
        return cls(list(plain["env_steps"]), [list(each) for each in plain["violations"]], list(plain["refused"]))


@dataclass(frozen=True)
class RowMaker:
    """Makes rows, and adds up what is added up."""

    config: Config
    totals: Totals
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Looks the names up once."""
        object.__setattr__(self, "names", self.config.cost_names)

    def rows(self, update: int, metrics: Mapping[str, Any], limits: Mapping[str, float], seconds: float) -> list[Row]:
        """The rows of one update, one for each seed.

        Args:
            update: Its number; the first is 0.
            metrics: What the learner gave, as numpy arrays with a leading axis of seeds.
            limits: Those in force.
            seconds: Of the wall clock.
        """
        return [
            self._row(update, index, seed, {name: value[index] for name, value in metrics.items()}, limits, seconds)
            for index, seed in enumerate(self.config.all_seeds)
        ]

    def _row(
        self,
        update: int,
        index: int,
        seed: int,
        metrics: Mapping[str, Any],
        limits: Mapping[str, float],
        seconds: float,
    ) -> Row:
        strange: list[str] = []

        def number(name: str, value: Any) -> float | int | None:
            if np.isfinite(value):
                return plain(value)
            strange.append(name)
            return None

        def per_cost(name: str, values: Iterable[Any]) -> dict[str, float | int | None]:
            return {cost: number(f"{name}.{cost}", x) for cost, x in zip(self.names, values, strict=True)}

        def listed(name: str, values: Any) -> Any:
            """A number, or numbers as a list."""
            if np.ndim(values) == 0:
                return number(name, values)
            return [listed(f"{name}.{i}", x) for i, x in enumerate(values)]

        self._add(index, metrics)
        residuals = metrics["cg_residuals"]
        row: Row = {
            "update": update,
            "seed": seed,
            "env_steps": self.totals.env_steps[index],
            **{name: number(name, metrics[key]) for name, key in _NUMBERS.items()},
            **{name: per_cost(name, metrics[key]) for name, key in _PER_COST.items()},
            "limits": dict(limits),
            "cumulative_violations": dict(zip(self.names, self.totals.violations[index], strict=True)),
            "cg_residual": number("cg_residual", np.max(residuals)),
            "cg_residuals": listed("cg_residuals", residuals),
            "unexplained_variance": {
                name: number(f"unexplained_variance.{name}", x)
                for name, x in zip(("reward", *self.names), metrics["unexplained_variance"], strict=True)
            },
            **{name: plain(metrics[name]) for name in _NOW_AND_THEN},
            "confirmed": dict(zip(("reward", *self.names), map(plain, metrics["confirmed"]), strict=True)),
            "rule": {name[5:]: listed(f"rule.{name[5:]}", x) for name, x in metrics.items() if name[:5] == "rule_"},
            "status": Status(int(metrics["status"])).name.lower(),
            "refused": [name for name, found in zip(NONFINITE_NAMES, metrics["nonfinite"], strict=True) if found],
            "seconds": seconds,
            **{name: int(metrics[name]) for name in _ON_HOST if name in metrics},
        }
        row["nonfinite"] = strange
        return row

    def _add(self, index: int, metrics: Mapping[str, Any]) -> None:
        """A violation that is not a number adds nothing; its row says that it was none. Sums stay finite."""
        self.totals.env_steps[index] += int(metrics["env_steps"])
        self.totals.refused[index] += bool(metrics["refused"])
        for i, violation in enumerate(metrics["violations"]):
            total = self.totals.violations[index][i] + (float(violation) if np.isfinite(violation) else 0.0)
            self.totals.violations[index][i] = min(total, sys.float_info.max)


def plain(value: Any) -> float | int | None:
    """A number of numpy as one of Python: the shortest decimal that stands for it, None if it is not finite."""
    if np.issubdtype(value.dtype, np.integer) or value.dtype == np.bool_:
        return int(value)
    shortest = float(str(value[()] if isinstance(value, np.ndarray) else value))
    return shortest if math.isfinite(shortest) else None
