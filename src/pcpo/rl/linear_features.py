"""Linear critics: least squares on a few features of the observation and of time. The paper has them for traffic."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

CLIP = 10.0
"""Observations beyond this count as this."""
TIME_UNIT = 100.0
"""Steps."""


class LinearCritics(NamedTuple):
    """k linear functions of the same features."""

    weights: Float[Array, "k f"]


class LinearOptions(NamedTuple):
    """Static settings of a fit."""

    ridge: float = 1e-5
    """Multiple of the squared weights in what is minimised."""


def initial(count: int, observation_size: int) -> LinearCritics:
    """Critics that estimate zero everywhere."""
    return LinearCritics(jnp.zeros((count, 2 * observation_size + 4), float))


def features(observations: Float[Array, "N o"], times: Int[Array, " N"]) -> Float[Array, "N f"]:
    r""":math:`(o,\; o^2,\; t,\; t^2,\; t^3,\; 1)` with observations clipped and time in hundreds of steps."""
    clipped = jnp.clip(observations, -CLIP, CLIP)
    t = times.astype(observations.dtype)[:, None] / TIME_UNIT
    return jnp.concatenate([clipped, clipped**2, t, t**2, t**3, jnp.ones_like(t)], axis=1)


def predict(critics: LinearCritics, observations: Float[Array, "N o"], times: Int[Array, " N"]) -> Float[Array, "k N"]:
    """The estimates of all critics for all observations, each made at its time step."""
    return critics.weights @ features(observations, times).T


def fit(
    observations: Float[Array, "T E o"],
    targets: Float[Array, "k T E"],
    mask: Bool[Array, "T E"],
    options: LinearOptions,
    times: Int[Array, "T E"] | None = None,
) -> LinearCritics:
    r"""The weights that minimise the squared error of a batch, with a ridge; what was before is forgotten.

    .. math:: \min_w \; \lVert F w - y \rVert^2 + c \lVert w \rVert^2

    From rllab's linear feature baseline (Duan et al., 2016), which the paper uses for traffic.

    Differences from rllab:

    1. The problem is solved by a QR decomposition of F with :math:`\sqrt c\, I` below it, not by the normal equations:
       squaring F would lose so small a ridge in float32, and a feature that is 0 or 1 equals its square. The weights
       are the same up to rounding, and always finite, so that the ridge is never raised. One step of refinement
       keeps rounding of targets that are large beside what is left of them out of the weights.
    """
    if times is None:
        times = jnp.broadcast_to(jnp.arange(mask.shape[0], dtype=jnp.int32)[:, None], mask.shape)
    rows = mask.reshape(-1)[:, None]
    f = jnp.where(rows, features(observations.reshape(mask.size, -1), times.reshape(-1)), 0.0)
    y = jnp.where(rows, targets.reshape(targets.shape[0], -1).T, 0.0)
    size, count = f.shape[1], y.shape[1]
    ridge = jnp.sqrt(jnp.asarray(options.ridge, f.dtype)) * jnp.eye(size, dtype=f.dtype)
    stacked = jnp.block([[f, y], [ridge, jnp.zeros((size, count), f.dtype)]])
    # R of the problem, and the right-hand sides as they are seen through Q, in one triangle.
    triangle = jnp.linalg.qr(stacked, mode="r")
    r = triangle[:size, :size]
    weights = solve_triangular(r, triangle[:size, size:])
    # What is left of the error is a small problem of its own, whose rounding is small (corrected seminormal equations).
    slope = f.T @ (y - f @ weights) - options.ridge * weights
    return LinearCritics((weights + solve_triangular(r, solve_triangular(r, slope, trans=1))).T)
