"""What was never played is left out of a batch before the learner computes on it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pcpo.rl.rollout import AnyRollout, Packed, Rollout
from pcpo.rl.subsample import WHOLE

WORTH = 4096
"""Batches that could have no more steps than this stay as they are: nothing is gained that a compilation is worth."""
PER_HALF = 4
"""Sizes from a number of rows to its half. Each compiles an update of its own; with four, a batch has a tenth more rows
than steps on average, and never a fifth."""


def rows_for(steps: int, possible: int) -> int:
    """In how many rows so many steps are put: the least of a few numbers that follow from those possible alone.

    Args:
        steps: That were played.
        possible: That could have been.

    Example:
        >>> [rows_for(steps, 400_000) for steps in (400_000, 350_000, 120_000, 100_000, 7)]
        [400000, 400000, 141440, 100096, 4480]
    """
    rows = possible
    for quarter in range(1, 16 * PER_HALF):
        smaller = -(-int(possible * 2 ** (-quarter / PER_HALF)) // WHOLE) * WHOLE
        if smaller < max(steps, WORTH):
            break
        rows = smaller
    return rows


def pack(rollout: Rollout, rows: int | None = None) -> AnyRollout:
    """A batch in numpy's arrays without what was not played.

    Args:
        rollout: The batch.
        rows: How many to have, at least as many as steps were played; None for the usual number, or for the batch as it
            is where that is all.
    """
    played = np.asarray(rollout.mask).T
    rows = rows or rows_for(int(played.sum()), played.size)
    if rows == played.size:
        return rollout

    def column(x: npt.NDArray[Any]) -> Any:
        steps = x.swapaxes(0, 1)[played]
        packed = np.zeros((rows, 1, *x.shape[2:]), x.dtype)
        packed[: len(steps), 0] = steps
        return packed

    parts: dict[str, Any] = rollout._asdict()
    observations, actions = (column(parts.pop(name)) for name in ("observations", "actions"))
    return Packed(observations=observations, actions=actions, **parts)
