"""A training so small that it takes no time once it is compiled; all tests share its program."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pcpo.training.config import Config, config_for
from pcpo.training.metrics import WALL_CLOCK

SMALL: dict[str, Any] = {"batch_size": 130, "hidden": (4,), "spectrum_every": 3}
"""Two episodes of Point-Circle per update."""


def small(**settings: Any) -> Config:
    """Point-Circle, small."""
    return config_for("point-circle", **dict[str, Any]({**SMALL, "updates": 6, **settings}))


def without_clock(rows):
    """What must be equal in two equal trainings."""
    return [{name: value for name, value in row.items() if name not in WALL_CLOCK} for row in rows]


def rows_in(directory: Path):
    """The rows of a run, as anybody would read them."""
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def assert_same(tree, other):
    """Two trees of arrays, to the bit."""
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype


def files_in(directory: Path) -> dict[str, bytes]:
    """All files below a directory, for showing that nothing has been changed. The lock may be touched."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }
