"""Fewer rows than were measured, with no peak or dip lost."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int


def kept_rows(columns: Sequence[Float[np.ndarray, " n"]], most: int) -> Int[np.ndarray, " k"]:
    """Which rows to draw where there is room for so many.

    All of them where they fit. Otherwise the rows are cut into equal stretches, and of each stretch those are kept that
    hold the smallest and the largest value of each column, the first one with a gap, and the very first; and the last
    row of all. So whatever stands out in the data stands out in the drawing, and every point drawn was measured.

    Args:
        columns: What is drawn; not-a-number is a gap.
        most: As many rows as are wanted. More may be kept, where there are more columns than that has room for.
    """
    stacked = np.stack(list(columns))
    n = stacked.shape[1]
    if n <= most:
        return np.arange(n)
    for length in _lengths(n):
        rows = _extremes(stacked, length)
        if rows.size <= most:
            return rows
    return _extremes(stacked, n)


def _lengths(n: int) -> Iterator[int]:
    """Round numbers, so that runs that are thinned alike keep many of the same updates."""
    for power in itertools.count():
        for round_number in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80):
            length = round_number * 10**power // 10
            if length >= n:
                return
            if length > 1 and (power > 1 or round_number * 10**power % 10 == 0):
                yield length


def _extremes(stacked: Float[np.ndarray, "c n"], length: int) -> Int[np.ndarray, " k"]:
    """The first row of every stretch of so many, and all those that matter in it."""
    n = stacked.shape[1]
    short = -n % length
    padded = np.pad(stacked, ((0, 0), (0, short)), constant_values=np.nan).reshape(len(stacked), -1, length)
    known = np.isfinite(padded)
    lowest = np.where(known, padded, np.inf).argmin(axis=2)
    highest = np.where(known, padded, -np.inf).argmax(axis=2)
    gap = (~known).argmax(axis=2)  # 0 where there is none
    starts = np.arange(padded.shape[1])[None, :] * length
    found = [(starts + each).reshape(-1) for each in (lowest, highest, gap)]
    rows = np.concatenate([*found, starts[0], np.array([n - 1])])
    return np.unique(rows[rows < n])
