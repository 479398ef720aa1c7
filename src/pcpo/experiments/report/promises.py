"""How the updates of a run went: what each was called, and how what it promised came true.

A promise is what the linear (for KL, quadratic) picture of an update said would happen at its step; what came of it is
measured on the same batch. Both stand in ``metrics.jsonl``; nothing is estimated here.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from pcpo.core.types import Status
from pcpo.experiments.series import Series, Table

SEVERITY = {status.name.lower(): int(status) for status in Status}


class Kept(NamedTuple):
    """How one kind of promise was kept, over all updates and seeds in which something was promised."""

    what: str
    updates: int
    same_direction: float
    """Share in which the change had the promised sign."""
    median: float
    """Of what happened over what was promised: 1 is as promised."""
    within_two: float
    """Share in which what happened was between half and twice what was promised."""


def statuses(run: Series) -> dict[str, int]:
    """How many updates, of all seeds, ended with which status; mildest first."""
    counts = Counter(status for row in run.statuses for status in row if status)
    return {name: counts[name] for name in sorted(counts, key=lambda name: (SEVERITY.get(name, 99), name))}


def promises(run: Series) -> list[Kept]:
    """Of the reward, each cost, and the divergence from the old policy."""
    return [
        kept("reward", run.column("predicted_reward"), run.column("reward_change")),
        *(
            kept(name, run.column(f"predicted_costs.{name}"), run.column(f"cost_changes.{name}"))
            for name in run.cost_names
        ),
        kept("KL", run.column("predicted_kl"), run.column("kl")),
    ]


def kept(what: str, promised: Table, happened: Table) -> Kept:
    """How promises came true; updates that promised nothing, or were not measured, are left out."""
    there = np.isfinite(promised) & np.isfinite(happened) & (promised != 0.0)
    if not there.any():
        return Kept(what, 0, np.nan, np.nan, np.nan)
    ratio = happened[there] / promised[there]
    return Kept(
        what,
        int(there.sum()),
        float(np.mean(ratio > 0.0)),
        float(np.median(ratio)),
        float(np.mean((ratio >= 0.5) & (ratio <= 2.0))),
    )
