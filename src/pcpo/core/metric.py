"""What "closest" means in the projection step: the KL divergence, the L2 norm, or a norm of one's own."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pcpo.core.cg import Solver
from pcpo.core.types import LocalModel, Tree
from pcpo.core.vectors import on_vectors


class Metric(NamedTuple):
    """The norm ``|d|_L^2 = d'Ld``, known only through ``solve(a) = L^-1 a`` (a map on trees like g).

    ``solve=None`` means L = H: then ``H^-1 a`` comes from the same conjugate gradient as ``H^-1 g``.
    For a norm of your own, ``L`` must be symmetric positive definite: ``Metric("mine", solve=lambda a: ...)``.
    """

    name: str
    solve: Callable[[Tree], Tree] | None


KL = Metric("kl", solve=None)
"""L = H: nearest in the space of policies (to second order)."""
L2 = Metric("l2", solve=lambda a: a)
"""L = I: nearest in the space of parameters."""


class Directions(NamedTuple):
    """The directions from which both steps of PCPO are made."""

    v: Float[Array, " n"]
    """``H^-1 g``."""
    hv: Float[Array, " n"]
    """``H v``: g, up to CG's residual."""
    w: Float[Array, "m n"]
    """``L^-1 a_i``."""
    hw: Float[Array, "m n"] | None
    """``H w_i`` where it came for free (L = H), else None."""
    ha: Float[Array, "m n"] | None
    """``H a_i`` where it came for free (L = H), else None."""
    residuals: Float[Array, " k"]
    """Relative residuals of CG; zero for what was not solved by CG."""
    failed: Bool[Array, " k"]
    """True where a nonzero right-hand side got no usable direction."""

    def step_and_product(
        self, fvp: Callable[[Array], Array], eta: Float[Array, ""], nu: Float[Array, " m"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """``d = eta v - nu . w`` and ``H d``; the product is made only where CG has not made its parts."""
        d = eta * self.v - nu @ self.w
        return d, fvp(d) if self.hw is None else eta * self.hv - nu @ self.hw


def directions(metric: Metric, model: LocalModel, unravel: Callable[[Array], Tree], solve: Solver) -> Directions:
    """``H^-1 g`` and ``L^-1 a_i`` for a model on vectors; one stacked conjugate gradient for all where L = H."""
    if metric.solve is None:
        solution = solve(model.fvp, jnp.concatenate([model.g[None], model.a]))
        w, hw, ha = solution.x[1:], solution.hx[1:], solution.h_rhs[1:]
        residuals, unsolved = solution.residuals, solution.failed
    else:
        solution = solve(model.fvp, model.g[None])
        w, hw, ha = (
            jax.vmap(on_vectors(metric.solve, unravel, f"solve of the metric {metric.name!r}"))(model.a),
            None,
            None,
        )
        residuals = jnp.concatenate([solution.residuals, jnp.zeros_like(model.b)])
        unsolved = jnp.concatenate([solution.failed, jnp.zeros(model.b.shape, bool)])
    lengths = jnp.concatenate([(model.g @ solution.x[0])[None], jnp.sum(model.a * w, axis=-1)])
    nonzero = jnp.concatenate([jnp.any(model.g != 0.0)[None], jnp.any(model.a != 0.0, axis=-1)])
    failed = unsolved | (nonzero & (lengths <= 0.0))
    return Directions(solution.x[0], solution.hx[0], w, hw, ha, residuals, failed)


def in_l2(found: Directions, a: Float[Array, "m n"]) -> Directions:
    """The directions of the L2 projection from those of the KL projection, without another product with H."""
    residuals = found.residuals.at[1:].set(0.0)
    return found._replace(w=a, hw=found.ha, residuals=residuals, failed=found.failed.at[1:].set(False))
