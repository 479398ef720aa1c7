"""Extreme eigenvalues of a symmetric operator, from products with it alone (Lanczos)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pcpo.core.vectors import unit


class Spectrum(NamedTuple):
    """What k products with a symmetric operator say about the ends of its spectrum.

    Ritz values lie inside the spectrum: ``smallest`` is an *upper* bound of the smallest eigenvalue and
    ``largest`` a *lower* bound of the largest. For H the damping is a lower bound of the smallest eigenvalue.
    An eigenvalue lies within ``*_error`` of each (not necessarily the extreme one).
    """

    smallest: Float[Array, ""]
    largest: Float[Array, ""]
    smallest_error: Float[Array, ""]
    largest_error: Float[Array, ""]

    @property
    def condition(self) -> Float[Array, ""]:
        """``largest / smallest``, a lower bound of the condition number; infinite if the smallest is not positive."""
        positive = self.smallest > 0.0
        return jnp.where(positive, self.largest / jnp.where(positive, self.smallest, 1.0), jnp.inf)

    @property
    def magnitude(self) -> Float[Array, ""]:
        """Largest absolute Ritz value: a lower bound of the operator's norm."""
        return jnp.maximum(jnp.abs(self.smallest), jnp.abs(self.largest))


class _Basis(NamedTuple):
    vectors: Float[Array, "k n"]
    diagonal: Float[Array, " k"]
    off_diagonal: Float[Array, " k"]
    current: Float[Array, " n"]


def lanczos(operator: Callable[[Array], Array], start: Float[Array, " n"], iterations: int = 20) -> Spectrum:
    r"""The extreme Ritz values of a symmetric operator after at most ``iterations`` products.

    .. math::
        A Q_k = Q_k T_k + \beta_k q_{k+1} e_k', \qquad
        |A y - \theta y| = \beta_k |e_k' s| \;\; \text{for} \;\; T_k s = \theta s,\; y = Q_k s

    Lanczos with full reorthogonalisation, k vectors of length n in memory. A random start sees every eigenvector;
    a start inside an invariant subspace (the gradient, say) sees the eigenvalues of that subspace.

    Args:
        operator: ``v -> A v``; symmetric, not necessarily positive.
        start: Any nonzero vector.
        iterations: Products to spend; no more than n are used.

    Example:
        >>> import jax.numpy as jnp
        >>> spectrum = lanczos(lambda v: jnp.array([1.0, 2.0, 10.0]) * v, jnp.ones(3))
        >>> round(float(spectrum.smallest), 3), round(float(spectrum.condition), 3)
        (1.0, 10.0)
    """
    k = min(iterations, start.size)
    zeros = jnp.zeros(k, start.dtype)

    def extend(j: Array, basis: _Basis) -> _Basis:
        q = basis.current
        vectors = basis.vectors.at[j].set(q)
        product = operator(q)
        alpha = q @ product
        for _ in range(2):  # "twice is enough" (Parlett): once leaves the rounding of large components behind
            product = product - vectors.T @ (vectors @ product)
        direction, beta = unit(product)
        # Below rounding of what was there before, the next direction is noise: the subspace is invariant.
        scale = jnp.maximum(jnp.abs(alpha), jnp.max(jnp.abs(basis.diagonal)))
        alive = jnp.any(q != 0.0)
        goes_on = alive & (beta > 8.0 * start.size**0.5 * jnp.finfo(start.dtype).eps * scale)
        return _Basis(
            vectors=vectors,
            # Past the end, repeat a value that is inside the spectrum, so that the extremes do not change.
            diagonal=basis.diagonal.at[j].set(jnp.where(alive, alpha, basis.diagonal[0])),
            off_diagonal=basis.off_diagonal.at[j].set(jnp.where(goes_on, beta, 0.0)),
            current=jnp.where(goes_on, direction, 0.0),
        )

    first = _Basis(jnp.zeros((k, start.size), start.dtype), zeros, zeros, unit(start)[0])
    basis = jax.lax.fori_loop(0, k, extend, first)
    between = basis.off_diagonal[:-1]
    tridiagonal = jnp.diag(basis.diagonal) + jnp.diag(between, 1) + jnp.diag(between, -1)
    values, combinations = jnp.linalg.eigh(tridiagonal)
    errors = basis.off_diagonal[-1] * jnp.abs(combinations[-1])
    return Spectrum(values[0], values[-1], errors[0], errors[-1])
