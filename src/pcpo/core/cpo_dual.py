"""CPO's subproblem for one constraint, solved through its two-multiplier dual: scalars in, scalars out."""

from enum import IntEnum
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class DualCase(IntEnum):
    """Where the half-space lies, seen from the trust region."""

    NO_GRADIENT = 0
    """The cost gradient is zero: the constraint cannot be influenced and is left out."""
    INACTIVE = 1
    """The TRPO step satisfies the constraint (the half-space may or may not cut the trust region)."""
    ACTIVE = 2
    """The optimum lies on the boundary of the half-space."""
    INFEASIBLE = 3
    """The half-space misses the trust region: the step goes straight towards it (recovery)."""


class CPOStep(NamedTuple):
    """The coefficients of the optimum, ``d = eta H^-1 g - multiplier H^-1 a``."""

    eta: Float[Array, ""]
    """1 / lambda; zero in recovery."""
    multiplier: Float[Array, ""]
    """nu / lambda."""
    case: Int[Array, ""]
    """A `DualCase`."""


def solve_cpo_dual(
    q: Float[Array, ""],
    r: Float[Array, ""],
    s: Float[Array, ""],
    b: Float[Array, ""],
    delta: Float[Array, ""],
    remainder: Float[Array, ""] | None = None,
) -> CPOStep:
    r"""Solves CPO's linear-quadratic program with one constraint.

    .. math::
        \max_d \; g \cdot d \;\; \text{s.t.} \;\; \tfrac12 d'Hd \le \delta, \;\; a \cdot d + b \le 0

    With :math:`q = g'H^{-1}g`, :math:`r = a'H^{-1}g`, :math:`s = a'H^{-1}a`, :math:`A = q - r^2/s` and
    :math:`B = 2\delta - b^2/s` the optimum is :math:`(H^{-1}g - \nu H^{-1}a)/\lambda` with

    * inactive constraint: :math:`\lambda = \sqrt{q / 2\delta}`, :math:`\nu = 0`;
    * active constraint: :math:`\lambda = \sqrt{A / B}`, :math:`\nu = (\lambda b + r)/s`;
    * b > 0 and B < 0, no feasible step: :math:`-\sqrt{2\delta/s}\,H^{-1}a`, the recovery step.

    CPO (Achiam et al., 2017), Theorem 2; PCPO (Yang et al., 2020), Eq. CPO_update and the recovery below it.

    Differences from the CPO code:

    1. Instead of projecting two candidate lambdas onto their domains and comparing the dual at both, ask whether
       the TRPO step is feasible. If not, the constraint is active and lambda follows. Same optimum, no division by b.
    2. The ties are what the limits of the problem say: b = 0 is a feasible point like any other (the code goes into
       recovery), and on B = 0 the formulas of both neighbours agree.
    3. ``H^-1 g`` and ``H^-1 a`` of a CG that has not converged may make nu negative, or a half-space that the step
       leaves look as if it held the whole trust region. Then the reward step is cut off at the boundary.
    4. No absolute epsilon. A below rounding of q means that g and a are parallel: then every point of the
       boundary has the same reward, and the one nearest to theta_k is taken instead of one in a direction that
       consists of rounding errors.

    Args:
        q: ``g . H^-1 g``, >= 0.
        r: ``a . H^-1 g``.
        s: ``a . H^-1 a``, >= 0; zero stands for a zero cost gradient.
        b: Violation.
        delta: KL radius.
        remainder: A, where the caller can compute it without the cancellation in ``q - r^2 / s``.

    Example:
        >>> import jax.numpy as jnp
        >>> q, r, s, b, delta = (jnp.array(x) for x in (1.0, 0.6, 1.0, 0.0, 0.5))
        >>> step = solve_cpo_dual(q, r, s, b, delta)  # H = I, g = (1, 0), a = (0.6, 0.8)
        >>> [round(float(x), 4) for x in (step.eta, step.multiplier)], DualCase(int(step.case)).name
        ([1.25, 0.75], 'ACTIVE')
    """
    eps = jnp.finfo(q.dtype).eps
    has_gradient = s > 0.0
    safe_s = jnp.where(has_gradient, s, 1.0)
    reach = jnp.sqrt(2.0 * delta * safe_s)  # how far a . d can go inside the trust region

    eta_free = jnp.where(q > 0.0, jnp.sqrt(2.0 * delta / jnp.where(q > 0.0, q, 1.0)), 0.0)
    inactive = eta_free * r + b <= 0.0
    infeasible = b > reach

    A = jnp.maximum(q - r * r / safe_s if remainder is None else remainder, 0.0)
    B = jnp.maximum((reach - b) * (reach + b) / safe_s, 0.0)
    parallel = A <= q * (16.0 * eps)
    eta_parallel = jnp.maximum(-b, 0.0) / jnp.where(r > 0.0, r, 1.0)
    eta_active = jnp.where(parallel, eta_parallel, jnp.sqrt(B / jnp.where(parallel, 1.0, A)))
    # A negative nu. The boundary is then passed between eta_active and eta_free, so that r is not zero.
    cut_off = ~inactive & (b + eta_active * r < 0.0)
    eta_active = jnp.where(cut_off, -b / jnp.where(cut_off, r, 1.0), eta_active)

    case = jnp.where(infeasible, DualCase.INFEASIBLE, jnp.where(inactive, DualCase.INACTIVE, DualCase.ACTIVE))
    case = jnp.where(has_gradient, case, DualCase.NO_GRADIENT)
    ignored = (case == DualCase.NO_GRADIENT) | (case == DualCase.INACTIVE)
    eta = jnp.where(ignored, eta_free, jnp.where(case == DualCase.ACTIVE, eta_active, 0.0))
    on_boundary = jnp.where(cut_off, 0.0, (b + eta_active * r) / safe_s)
    multiplier = jnp.where(case == DualCase.ACTIVE, on_boundary, reach / safe_s)
    return CPOStep(eta, jnp.where(ignored, 0.0, multiplier), case.astype(jnp.int32))
