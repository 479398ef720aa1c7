"""Linear critics: least squares on a few features of the observation and of time. The paper has them for traffic."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

CLIP = 10.0
"""Observations beyond this count as this."""
TIME_UNIT = 100.0
"""Steps."""
REFINEMENTS = 2
"""Of the weights; each divides what rounding and the allowance for it have left of an error by thousands, as a rule."""


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

    1. The normal equations are formed and solved in float64, also in a run in float32. A feature that is 0 or 1 equals
       its square, and only the ridge tells the two apart: squaring F leaves so small a ridge 4 digits of float64, and
       none of float32.
    2. The weights are refined with what is left of the error, row by row, and always finite, so that the ridge is never
       raised.
    """
    if times is None:
        times = jnp.broadcast_to(jnp.arange(mask.shape[0], dtype=jnp.int32)[:, None], mask.shape)
    rows = mask.reshape(-1)[:, None]
    f = jnp.where(rows, features(observations.reshape(mask.size, -1), times.reshape(-1)), 0.0)
    y = jnp.where(rows, targets.reshape(targets.shape[0], -1).T, 0.0)
    with jax.enable_x64(True):
        weights = _least_squares(f.astype(jnp.float64), y.astype(jnp.float64), options.ridge)
        return LinearCritics(weights.T.astype(f.dtype))


def _least_squares(f: Float[Array, "N f"], y: Float[Array, "N k"], ridge: float) -> Float[Array, "f k"]:
    """The weights for targets in columns, by a Cholesky decomposition of the normal equations of scaled features."""
    size = f.shape[1]
    normal = f.T @ f + ridge * jnp.eye(size)
    lengths = jnp.sqrt(jnp.diag(normal))
    scale = 1.0 / jnp.where(lengths > 0.0, lengths, 1.0)[:, None]
    # What rounding may have taken from the eigenvalues: with it, a matrix that is singular has a factor too.
    allowance = size * jnp.finfo(f.dtype).eps * jnp.eye(size)
    factor = jnp.linalg.cholesky(normal * scale * scale.T + allowance)

    def solved(right: Float[Array, "f k"]) -> Float[Array, "f k"]:
        half = solve_triangular(factor, scale * right, lower=True)
        return scale * solve_triangular(factor, half, lower=True, trans=1)

    weights = solved(f.T @ y)
    for _ in range(REFINEMENTS):
        weights += solved(f.T @ (y - f @ weights) - ridge * weights)
    return weights
