"""Conjugate gradient for ``H x = r``, several right-hand sides in lock step, with what it learnt on the way."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pcpo.core.rows import over_rows


class CGSolution(NamedTuple):
    """The solutions, one row per right-hand side, and by-products that cost no further product with H."""

    x: Float[Array, "k n"]
    """Approximately ``H^-1 r``: the best point of the Krylov space in the norm of H."""
    hx: Float[Array, "k n"]
    """``H x``, summed from the products that CG made; ``r - hx`` is the residual."""
    h_rhs: Float[Array, "k n"]
    """``H r``, CG's first product."""
    residuals: Float[Array, " k"]
    """``|H x - r| / |r|``; zero for a zero right-hand side."""
    iterations: Int[Array, " k"]
    """Steps taken for each right-hand side."""
    failed: Bool[Array, " k"]
    """True where H showed no positive curvature along r itself, so that x is zero although r is not."""


Solver: TypeAlias = Callable[[Callable[[Array], Array], Array], CGSolution]
"""``(fvp, rhs) -> CGSolution``: `conjugate_gradient` with its limits already chosen."""


class _Loop(NamedTuple):
    step: Int[Array, ""]
    x: Float[Array, "k n"]
    residual: Float[Array, "k n"]
    direction: Float[Array, "k n"]
    h_rhs: Float[Array, "k n"]
    squared: Float[Array, " k"]
    iterations: Int[Array, " k"]
    active: Bool[Array, " k"]


def default_tolerance(dtype: jnp.dtype) -> float:
    """The relative residual at which CG stops unless told otherwise: what the dtype can resolve."""
    return 1e-12 if dtype == jnp.float64 else 1e-6


def conjugate_gradient(
    fvp: Callable[[Array], Array],
    rhs: Float[Array, "k n"],
    iterations: int = 10,
    tolerance: float | None = None,
) -> CGSolution:
    r"""Solves :math:`H x_i = r_i` for all rows at once; ``fvp`` is mapped over them.

    .. math:: x_{j+1} = x_j + \alpha_j p_j, \quad \alpha_j = |r_j|^2 / p_j' H p_j, \quad p_{j+1} = r_{j+1} + \beta_j p_j

    The rows should be unit vectors (see `pcpo.core.vectors.unit`); the tolerance is relative to ``|r_i|``.
    A row that has converged, or that meets a direction without curvature, keeps its x while others go on.

    Differences from ``jax.scipy.sparse.linalg.cg`` and from the CG of the TRPO codes:

    1. The residual, ``H x`` and ``H r`` are returned. All three come from products that are made anyway.
    2. No small number is added to a denominator. Curvature counts as absent when
       ``p'Hp <= eps |p| |Hp|``: for a positive definite H the cosine between p and Hp is at least
       ``2 sqrt(cond) / (cond + 1)``, so this never stops a system with cond(H) < 1 / eps^2, and it is free of scale.
    3. A product that is not finite makes x not finite, instead of ending the loop unnoticed.

    Args:
        fvp: ``v -> H v`` for one vector.
        rhs: The right-hand sides.
        iterations: Upper limit of steps; one product for each right-hand side in each.
        tolerance: Relative residual to stop at; default 1e-12 in float64 and 1e-6 in float32.

    Example:
        >>> import jax.numpy as jnp
        >>> H = jnp.array([[4.0, 1.0], [1.0, 3.0]])
        >>> solution = conjugate_gradient(lambda v: H @ v, jnp.array([[1.0, 2.0]]))
        >>> [round(float(x), 4) for x in solution.x[0]]
        [0.0909, 0.6364]
    """
    eps = jnp.finfo(rhs.dtype).eps
    target = default_tolerance(rhs.dtype) if tolerance is None else tolerance
    multiply = over_rows(fvp)
    squared_rhs = _dots(rhs, rhs)

    def go_on(loop: _Loop) -> Bool[Array, ""]:
        return (loop.step < iterations) & jnp.any(loop.active)

    def iterate(loop: _Loop) -> _Loop:
        hp = multiply(loop.direction)
        curvature = _dots(loop.direction, hp)
        curved = curvature > eps * jnp.sqrt(_dots(loop.direction, loop.direction) * _dots(hp, hp))
        moves = loop.active & (curved | ~jnp.isfinite(curvature))
        alpha = jnp.where(moves, loop.squared / jnp.where(moves, curvature, 1.0), 0.0)[:, None]
        residual = loop.residual - alpha * hp
        squared = _dots(residual, residual)
        beta = squared / jnp.where(loop.active, loop.squared, 1.0)
        return _Loop(
            step=loop.step + 1,
            x=loop.x + alpha * loop.direction,
            residual=residual,
            direction=jnp.where(moves[:, None], residual + beta[:, None] * loop.direction, loop.direction),
            h_rhs=jnp.where(loop.step == 0, hp, loop.h_rhs),
            squared=squared,
            iterations=loop.iterations + moves.astype(jnp.int32),
            active=moves & (squared > target**2 * squared_rhs),
        )

    zeros = jnp.zeros_like(rhs)
    start = _Loop(
        step=jnp.zeros((), jnp.int32),
        x=zeros,
        residual=rhs,
        direction=rhs,
        h_rhs=zeros,
        squared=squared_rhs,
        iterations=jnp.zeros(rhs.shape[0], jnp.int32),
        active=squared_rhs > 0.0,
    )
    # A GPU would wait for the answer to every question whether to go on; steps without an active row change nothing.
    end = jax.lax.platform_dependent(
        start,
        cpu=lambda loop: jax.lax.while_loop(go_on, iterate, loop),
        default=lambda loop: jax.lax.fori_loop(0, iterations, lambda _, x: iterate(x), loop),
    )
    nonzero = squared_rhs > 0.0
    return CGSolution(
        x=end.x,
        hx=rhs - end.residual,
        h_rhs=end.h_rhs,
        residuals=jnp.sqrt(jnp.where(nonzero, end.squared / jnp.where(nonzero, squared_rhs, 1.0), 0.0)),
        iterations=end.iterations,
        failed=nonzero & (end.iterations == 0),
    )


def _dots(x: Float[Array, "k n"], y: Float[Array, "k n"]) -> Float[Array, " k"]:
    return jnp.sum(x * y, axis=-1)
