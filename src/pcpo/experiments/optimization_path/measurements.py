"""PCPO on the paper's example: its directions over the plane and along the boundary, and where its paths go."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pcpo import rules
from pcpo.core import LocalModel

PROJECTIONS = ("kl", "l2")
CLAIMED = ((0.75, -1.75), (0.25, -1.25), (-0.25, -0.75))
"""Where the paper says that the KL direction is zero."""
START = (0.5, -2.0)
"""Where the paper's paths start."""
REACH = 8.0
"""How far along the boundary directions are examined: x1 in [-8, 8]."""
ZERO = 1e-6
"""A direction counts as zero when it is shorter than this fraction of the reward step, in the norm of H."""

_BLOCK = 1025  # points whose directions are computed at once


class Directions(NamedTuple):
    """One update of PCPO from each of n points."""

    points: Float[np.ndarray, "n 2"]
    steps: Float[np.ndarray, "n 2"]
    shares: Float[np.ndarray, " n"]
    """``|step|_H / sqrt(2 delta)``: 1 for the untouched reward step, 0 at a stationary point."""


class Walk(NamedTuple):
    """The points that repeated updates visit, and f there."""

    points: Float[np.ndarray, "visited 2"]
    f: Float[np.ndarray, " visited"]
    last_share: float
    """Share of the update from the last point."""


class Ends(NamedTuple):
    """Where paths from a grid of feasible points end."""

    starts: Float[np.ndarray, "n 2"]
    ends: Float[np.ndarray, "n 2"]
    last_shares: Float[np.ndarray, " n"]


class Measurements(NamedTuple):
    """All numbers of the experiment, by projection where they depend on it."""

    delta: float
    steps: int
    start: tuple[float, float]
    claimed: dict[str, Directions]
    """At the paper's three points."""
    boundary: dict[str, Directions]
    """Along x1 + x2 = -1."""
    field: dict[str, Directions]
    """Over the plane."""
    zeros: dict[str, Float[np.ndarray, "k 2"]]
    """Where the directions vanish on the boundary."""
    curvature_along_boundary: float
    """t'(Hessian of f)t for the unit vector t along the boundary; positive: f has no maximum there."""
    walks: dict[str, Walk]
    """From the start."""
    others: dict[str, Ends]
    """From a grid of feasible points."""


# The problem, and PCPO on it.


def objective(x: Float[Array, "2"]) -> Float[Array, ""]:
    """``x' diag(5, -1) x``, to be maximised."""
    return x @ (jnp.array([5.0, -1.0], x.dtype) * x)


def local_model(x: Float[Array, "2"]) -> LocalModel:
    """What PCPO sees at x: the exact gradient, the constraint, and H = |Hessian of f| (which is diagonal)."""
    H = jnp.abs(jax.hessian(objective)(x))
    return LocalModel(g=jax.grad(objective)(x), a=jnp.ones((1, 2), x.dtype), b=jnp.sum(x)[None] + 1.0, fvp=H.__matmul__)


def update(x: Float[Array, "2"], delta: ArrayLike, projection: str) -> tuple[Float[Array, "2"], Float[Array, ""]]:
    """PCPO's step from x, and its length as a share of the reward step's, in the norm of H."""
    rule = rules.pcpo(delta, projection)
    step, _, info = rule.update(local_model(x), rule.init(1))
    return step, jnp.sqrt(info.predicted_kl / delta)


@partial(jax.jit, static_argnames="projection")
def directions(
    points: Float[Array, "n 2"], delta: ArrayLike, projection: str
) -> tuple[Float[Array, "n 2"], Float[Array, " n"]]:
    """`update` from many points."""
    return jax.vmap(lambda x: update(x, delta, projection))(points)


@partial(jax.jit, static_argnames=("steps", "projection"))
def walk(starts: Float[Array, "n 2"], delta: ArrayLike, steps: int, projection: str) -> Float[Array, "visited n 2"]:
    """The points that ``steps`` updates visit from each start, the start included."""

    def advance(points: Float[Array, "n 2"], _: None) -> tuple[Float[Array, "n 2"], Float[Array, "n 2"]]:
        moved = points + directions(points, delta, projection)[0]
        return moved, moved

    return jnp.concatenate([starts[None], jax.lax.scan(advance, starts, length=steps)[1]])


# Measuring.


def measure(delta: float = 1e-3, steps: int = 2000, start: tuple[float, float] = START) -> Measurements:
    """All numbers of the experiment, in float64 whatever jax is set to."""
    with jax.enable_x64(True):
        tangent = jnp.array([1.0, -1.0]) / jnp.sqrt(2.0)
        along = np.linspace(-REACH, REACH, 1025)
        walks = {p: _walks(start, delta, steps, p) for p in PROJECTIONS}
        return Measurements(
            delta=delta,
            steps=steps,
            start=start,
            claimed={p: _directions(np.array(CLAIMED), delta, p) for p in PROJECTIONS},
            boundary={p: _directions(on_boundary(along), delta, p) for p in PROJECTIONS},
            field={p: _directions(_field_points(), delta, p) for p in PROJECTIONS},
            zeros={p: zeros_on_boundary(along, delta, p) for p in PROJECTIONS},
            curvature_along_boundary=float(tangent @ jax.hessian(objective)(tangent) @ tangent),
            walks={p: walks[p][0] for p in PROJECTIONS},
            others={p: walks[p][1] for p in PROJECTIONS},
        )


def on_boundary(x1: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
    """The points of ``x1 + x2 = -1`` with these first coordinates."""
    return np.stack([x1, -1.0 - x1], axis=1)


def zeros_on_boundary(along: Float[np.ndarray, " n"], delta: float, projection: str) -> Float[np.ndarray, "k 2"]:
    """The points between the first and last of ``along`` at which the direction vanishes.

    Every local minimum of the share that is small on the grid is looked at through ever smaller grids, so that
    zeros are found whether or not the direction changes sign there.
    """
    shares = _directions(on_boundary(along), delta, projection).shares
    inner = shares[1:-1]
    candidates = np.flatnonzero((inner < 0.1) & (inner <= shares[:-2]) & (inner <= shares[2:])) + 1
    found: list[float] = []
    for candidate in along[candidates]:
        x1, share = _smallest_near(float(candidate), along, delta, projection)
        if share < ZERO and not any(abs(x1 - other) < 1e-6 for other in found):
            found.append(x1)
    return on_boundary(np.array(found, dtype=float))


def _smallest_near(x1: float, along: Float[np.ndarray, " n"], delta: float, projection: str) -> tuple[float, float]:
    """The place and the value of the smallest share within one spacing of ``along`` around x1."""
    width, smallest = float(along[1] - along[0]), np.inf
    for _ in range(4):
        closer = np.linspace(x1 - width, x1 + width, len(along))
        shares = _directions(on_boundary(closer), delta, projection).shares
        x1, smallest, width = float(closer[np.argmin(shares)]), float(shares.min()), float(closer[1] - closer[0])
    return x1, smallest


def _directions(points: Float[np.ndarray, "n 2"], delta: float, projection: str) -> Directions:
    """`directions` in blocks of one shape, so that it is compiled once for all uses."""
    n = len(points)
    blocks = np.resize(points, (-(-n // _BLOCK), _BLOCK, 2))
    done = [directions(jnp.asarray(block, float), delta, projection) for block in blocks]
    steps, shares = (np.concatenate([np.asarray(part) for part in parts])[:n] for parts in zip(*done, strict=True))
    return Directions(points, steps, shares)


def _walks(start: tuple[float, float], delta: float, steps: int, projection: str) -> tuple[Walk, Ends]:
    """The path from the start, and the ends of the paths from a grid of feasible points, in one go."""
    others = _feasible(_grid((-2.125, 2.125), (-3.125, 1.125), 0.25))
    starts = np.concatenate([np.array([start], dtype=float), others])
    visited = walk(jnp.asarray(starts, float), delta, steps, projection)
    f = jax.vmap(objective)(visited[:, 0])
    last = _directions(np.asarray(visited[-1]), delta, projection)
    first = Walk(np.asarray(visited[:, 0]), np.asarray(f), float(last.shares[0]))
    return first, Ends(others, last.points[1:], last.shares[1:])


def _field_points() -> Float[np.ndarray, "n 2"]:
    """A grid with spacing 1/4: it meets the boundary exactly, at the paper's three points among others."""
    return _grid((-2.0, 2.0), (-2.5, 1.0), 0.25)


def _grid(x1: tuple[float, float], x2: tuple[float, float], spacing: float) -> Float[np.ndarray, "n 2"]:
    columns = np.arange(x1[0], x1[1] + spacing / 2, spacing)
    rows = np.arange(x2[0], x2[1] + spacing / 2, spacing)
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)


def _feasible(points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "k 2"]:
    return points[points.sum(axis=1) <= -1.0]
