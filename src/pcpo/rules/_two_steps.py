"""PCPO's two steps on vectors: improve the reward, then project onto the constraints."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pcpo.core.metric import Directions
from pcpo.core.projection import Projection, halfspace_multiplier
from pcpo.core.trust_region import natural_step
from pcpo.core.types import LocalModel, Status, most_severe
from pcpo.core.vectors import Scaled, ratio, unit
from pcpo.rules._report import Step

Several: TypeAlias = Callable[[Array, Array], Projection]
"""``(gram, excess) -> Projection``: how to project onto several half-spaces."""


class TwoSteps(NamedTuple):
    """A finished PCPO step in the units of the model, and what happened on the way."""

    step: Step
    residuals: Float[Array, " k"]
    status: Int[Array, ""]
    projection: Projection


def two_steps(
    units: Scaled, found: Directions, delta: Float[Array, ""], several: Several, flipped_sign: bool = False
) -> TwoSteps:
    """Eq. PCPO_final for a model with unit g and a_i, and directions under either metric."""
    model = units.model
    reward_step, eta = natural_step(model.g, found.v, delta)
    projected = _project(model, found, -reward_step if flipped_sign else reward_step, several)
    nu = projected.multipliers
    d, hd = found.step_and_product(model.fvp, eta, nu)
    status = most_severe(
        (nu > 0.0, Status.PROJECTED),
        (units.g_norm == 0.0, Status.ZERO_REWARD_GRADIENT),
        ((units.a_norms == 0.0) & (model.b > 0.0), Status.ZERO_COST_GRADIENT_VIOLATED),
        (projected.infeasible, Status.INFEASIBLE_INTERSECTION),
        (found.failed, Status.CG_FAILED),
    )
    step = Step(d, hd, ratio(eta, units.g_norm), ratio(nu, units.a_norms))
    return TwoSteps(step, found.residuals, status, projected)


def capped(step: Step, max_kl: Float[Array, ""]) -> tuple[Step, Bool[Array, ""]]:
    """The step, shortened along itself until its predicted KL is ``max_kl``, and whether that was needed.

    On the way from theta_k to the full step every predicted violation falls in proportion, so a shortened step
    still leads towards the constraints. Lengths are compared, not squares, so that an enormous step can be capped.
    """
    direction, length = unit(step.d)
    curvature = direction @ (step.hd / jnp.where(length > 0.0, length, 1.0))
    longest = jnp.sqrt(2.0 * max_kl / jnp.where(curvature > 0.0, curvature, 1.0))
    too_long = (curvature > 0.0) & (length > longest)
    return step.times(jnp.where(too_long, longest / jnp.where(too_long, length, 1.0), 1.0)), too_long


def _project(model: LocalModel, found: Directions, d: Float[Array, " n"], several: Several) -> Projection:
    """The projection step: one formula for one constraint, sweeps over the Gram matrix for several."""
    if model.num_constraints > 1:
        return several(model.a @ found.w.T, model.a @ d + model.b)
    multipliers = jax.vmap(halfspace_multiplier, in_axes=(0, 0, 0, None))(model.a, model.b, found.w, d)
    return Projection(multipliers, jnp.zeros((), bool), jnp.zeros_like(d[0]), jnp.zeros((), jnp.int32))
