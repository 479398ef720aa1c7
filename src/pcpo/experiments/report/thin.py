"""Fewer rows than were measured, with no peak or dip lost."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int


def kept_rows(columns: Sequence[Float[np.ndarray, " n"]], most: int) -> Int[np.ndarray, " k"]:
    """Which rows to draw where there is room for so many.

    All of them where they fit. Otherwise the rows are cut into equal stretches, and of each stretch those are kept that
    hold the smallest and the largest value of each column, and the first one with a gap; and the first and the last row
    of all. So whatever stands out in the data stands out in the drawing, and every point drawn was measured.

    Args:
        columns: What is drawn; not-a-number is a gap.
        most: As many rows as are wanted. More may be kept, where there are more columns than that has room for.
    """
    stacked = np.stack(list(columns))
    n = stacked.shape[1]
    if n <= most:
        return np.arange(n)
    stretches = max(most // 2, 1)
    while True:
        rows = _extremes(stacked, stretches)
        if rows.size <= most or stretches == 1:
            return rows
        stretches = max(int(stretches * min(0.9, most / rows.size)), 1)


def _extremes(stacked: Float[np.ndarray, "c n"], stretches: int) -> Int[np.ndarray, " k"]:
    n = stacked.shape[1]
    length = -(-n // stretches)
    short = -n % length
    padded = np.pad(stacked, ((0, 0), (0, short)), constant_values=np.nan).reshape(len(stacked), -1, length)
    known = np.isfinite(padded)
    lowest = np.where(known, padded, np.inf).argmin(axis=2)
    highest = np.where(known, padded, -np.inf).argmax(axis=2)
    gap = (~known).argmax(axis=2)  # 0 where there is none, which is the first row of the stretch
    starts = np.arange(padded.shape[1])[None, :] * length
    rows = np.concatenate([(starts + each).reshape(-1) for each in (lowest, highest, gap)] + [np.array([0, n - 1])])
    return np.unique(rows[rows < n])
