"""How well each update's prediction came true."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pcpo.experiments.series import Series


class Promises(NamedTuple):
    """Changes of a cost, one number for each update and seed for which all of them are known."""

    promised: Float[np.ndarray, " n"]
    """By the linear picture that the update was computed from."""
    same_batch: Float[np.ndarray, " n"]
    """By the surrogate, on the batch that the update was computed from."""
    next_batch: Float[np.ndarray, " n"]
    """From one batch to the next."""
    bound: Float[np.ndarray, " n"]
    """The estimated worst case of J_C after the update, minus J_C before it."""


def promises(run: Series, cost: str | None = None) -> Promises:
    """What a run's updates promised of a cost, and what became of it.

    Args:
        run: Its measurements; an update whose audit was not kept is left out.
        cost: Its name; the first by default.
    """
    name = cost or run.cost_names[0]
    before = run.column(f"costs.{name}")
    after = np.concatenate([before[1:], np.full((1, before.shape[1]), np.nan)])
    columns = np.stack(
        [
            run.column(f"predicted_costs.{name}"),
            run.column(f"cost_changes.{name}"),
            after - before,
            run.column(f"bound_estimate_costs.{name}") - before,
        ]
    ).reshape(4, -1)
    return Promises(*columns[:, np.isfinite(columns).all(axis=0)])
