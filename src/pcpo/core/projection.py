r"""The projection step of PCPO: onto one half-space, and onto the intersection of several.

With several constraints everything happens on m numbers. A step inside the span of the directions,
:math:`d = d_0 - \sum_j \nu_j w_j` with :math:`w_j = L^{-1} a_j`, has the linearised violations

.. math:: a_i \cdot d + b_i = c_i - \sum_j G_{ij} \nu_j, \qquad c_i = a_i \cdot d_0 + b_i, \quad G_{ij} = a_i \cdot w_j,

so a sweep over the constraints needs the Gram matrix G and the excess c, and nothing of the size of the parameters.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Projection(NamedTuple):
    """The multipliers of a projection onto several half-spaces, and how it went."""

    multipliers: Float[Array, " m"]
    """nu >= 0 in ``d = d_0 - sum_j nu_j w_j``."""
    infeasible: Bool[Array, ""]
    """Whether some half-space is still violated: by over ``tolerance`` times the largest initial violation."""
    asymmetry: Float[Array, ""]
    """Largest ``|G_ij - G_ji| / sqrt(G_ii G_jj)``: zero for exact directions, a measure of CG's error otherwise."""
    sweeps: Int[Array, ""]
    """Sweeps over all constraints."""


class _Sweeps(NamedTuple):
    nu: Float[Array, " m"]
    sweep: Int[Array, ""]
    change: Float[Array, ""]


def halfspace_multiplier(
    a: Float[Array, " n"], b: Float[Array, ""], w: Float[Array, " n"], d: Float[Array, " n"]
) -> Float[Array, ""]:
    r"""The multiplier that moves d onto the nearest point of :math:`\{d : a \cdot d + b \le 0\}`, ``d - nu w``.

    .. math::
        \arg\min_{d'} \; \tfrac12 (d'-d)'L(d'-d) \;\; \text{s.t.} \;\; a \cdot d' + b \le 0
        \quad = \quad d - \nu L^{-1} a, \qquad \nu = \max\Bigl(0, \frac{a \cdot d + b}{a' L^{-1} a}\Bigr)

    PCPO (Yang et al., 2020), Eq. update2 and the second half of Eq. PCPO_final. The denominator is ``a . w`` with
    the w that is used, so that ``a . d' + b = 0`` holds to rounding even where w is a poor ``L^-1 a``.
    A zero a excludes nothing that d could change: its multiplier is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> a, b, d = jnp.array([1.0, 0.0]), jnp.array(-1.0), jnp.array([3.0, 5.0])
        >>> (d - halfspace_multiplier(a, b, a, d) * a).tolist()
        [1.0, 5.0]
    """
    length = a @ w
    usable = length > 0.0
    return jnp.where(usable, jnp.maximum(0.0, (a @ d + b) / jnp.where(usable, length, 1.0)), 0.0)


def project_cyclic(
    gram: Float[Array, "m m"],
    excess: Float[Array, " m"],
    max_sweeps: int = 200,
    tolerance: float | None = None,
) -> Projection:
    r"""Alternating projections: onto each half-space in turn, again and again, until all hold.

    .. math::
        \nu_i \leftarrow \nu_i + \max\Bigl(0, \frac{c_i - \sum_j G_{ij} \nu_j}{G_{ii}}\Bigr),
        \quad i = 1..m, 1..m, \dots

    PCPO (Yang et al., 2020), section "PCPO Updates", *Analysis of PCPO Update Rule*. It ends in the
    intersection, but not in general at the point nearest to where it started; `project_dykstra` does.

    Args:
        gram: ``a_i . w_j``; rows of constraints with a zero gradient are zero and are passed over.
        excess: ``a_i . d_0 + b_i``.
        max_sweeps: Upper limit of sweeps; a sweep costs m^2 multiplications.
        tolerance: Violation, relative to the largest initial one, that counts as none. Default: 1e-9 in float64
            and 1e-4 in float32, and never less than rounding in the multipliers can resolve.
    """
    scaled = _in_units_of_distance(gram, excess)
    nu, sweeps = _sweep(scaled, jnp.zeros_like(excess), max_sweeps, forget=False)
    return _report(scaled, nu, sweeps, tolerance)


def project_dykstra(
    gram: Float[Array, "m m"],
    excess: Float[Array, " m"],
    max_sweeps: int = 200,
    tolerance: float | None = None,
) -> Projection:
    r"""The exact projection onto the intersection: the point nearest to d_0 in the norm of L.

    .. math::
        \arg\min_d \; \tfrac12 (d-d_0)'L(d-d_0) \;\; \text{s.t.} \;\; a_i \cdot d + b_i \le 0 \;\; \forall i, \qquad
        \nu_i \leftarrow \max\Bigl(0, \nu_i + \frac{c_i - \sum_j G_{ij} \nu_j}{G_{ii}}\Bigr)

    Dykstra's algorithm, which for half-spaces is Hildreth's: before projecting onto a half-space again, undo what
    the last projection onto it did. Equivalently, coordinate ascent on the dual :math:`-\tfrac12\nu'G\nu + c\cdot\nu`.

    Differences from the textbook:

    1. CG leaves ``G`` asymmetric where it has not converged. The sweeps use its symmetric part, without which
       there is no dual to ascend; the asymmetry is reported.
    2. The sweeps find the active constraints quickly and the last digits slowly where constraints are nearly
       parallel. So the equations ``c_A = G_AA nu_A`` of the active set are solved at the end, with G as it is, and
       the solution is taken if it satisfies all conditions of optimality.
    3. Where it does not, what is still violated (with G as it is) is mended by alternating projections, so that
       the step returned is feasible whenever they can make it so.
    """
    scaled = _in_units_of_distance(gram, excess)
    symmetric = scaled._replace(gram=0.5 * (scaled.gram + scaled.gram.T))
    nu, sweeps = _sweep(symmetric, jnp.zeros_like(excess), max_sweeps, forget=True)
    nu = _polish(scaled, nu)
    nu, more = _sweep(scaled, nu, max_sweeps, forget=False)
    return _report(scaled, nu, sweeps + more, tolerance)


class _Scaled(NamedTuple):
    """The problem in units of distance: unit diagonal, excess in lengths of |.|_L. Scale-free tolerances need it."""

    gram: Float[Array, "m m"]
    excess: Float[Array, " m"]
    scale: Float[Array, " m"]
    """``1 / sqrt(G_ii)``, zero for a constraint that is passed over: ``nu = scale * nu_scaled``."""


def _in_units_of_distance(gram: Float[Array, "m m"], excess: Float[Array, " m"]) -> _Scaled:
    squared = jnp.diagonal(gram)
    usable = squared > 0.0
    scale = jnp.where(usable, 1.0 / jnp.sqrt(jnp.where(usable, squared, 1.0)), 0.0)
    return _Scaled(scale[:, None] * gram * scale[None, :], scale * excess, scale)


def _largest_violation(problem: _Scaled) -> Float[Array, ""]:
    """What rounding and tolerances are measured by. How far inside other half-spaces lie says nothing about it."""
    return jnp.maximum(0.0, jnp.max(problem.excess))


def _sweep(
    problem: _Scaled, start: Float[Array, " m"], max_sweeps: int, forget: bool
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Projects onto each half-space in turn until nothing moves; ``forget`` undoes what it did before (Dykstra)."""
    resolution, scale = 4.0 * jnp.finfo(start.dtype).eps, _largest_violation(problem)

    def onto(i: Array, nu: Float[Array, " m"]) -> Float[Array, " m"]:
        left = problem.excess[i] - problem.gram[i] @ nu
        moved = jnp.maximum(0.0, nu[i] + left) if forget else nu[i] + jnp.maximum(0.0, left)
        return nu.at[i].set(jnp.where(problem.scale[i] > 0.0, moved, 0.0))

    def sweep(state: _Sweeps) -> _Sweeps:
        nu = jax.lax.fori_loop(0, start.shape[0], onto, state.nu)
        return _Sweeps(nu, state.sweep + 1, jnp.max(jnp.abs(nu - state.nu)))

    def go_on(state: _Sweeps) -> Bool[Array, ""]:
        moving = state.change > resolution * jnp.maximum(scale, jnp.max(jnp.abs(state.nu)))
        return (state.sweep < max_sweeps) & moving

    first = _Sweeps(start, jnp.zeros((), jnp.int32), jnp.array(jnp.inf, start.dtype))
    end = jax.lax.while_loop(go_on, sweep, first)
    return end.nu, end.sweep


def _polish(problem: _Scaled, nu: Float[Array, " m"]) -> Float[Array, " m"]:
    """The multipliers that solve the active constraints exactly, if they are optimal; else nu as it was."""
    active = nu > 0.0
    identity = jnp.eye(nu.shape[0], dtype=nu.dtype)
    equations = jnp.where(active[:, None] & active[None, :], problem.gram, identity)
    exact = jnp.linalg.solve(equations, jnp.where(active, problem.excess, 0.0))
    left = problem.excess - problem.gram @ exact
    eps, scale = jnp.finfo(nu.dtype).eps, _largest_violation(problem)
    rounding = 32.0 * eps * jnp.maximum(scale, jnp.max(jnp.abs(exact)))
    # Of an empty intersection the equations are singular: multipliers that drown the excess in their own rounding
    # (or that are not finite) solve nothing.
    resolved = rounding <= jnp.sqrt(eps) * scale
    optimal = resolved & jnp.all(exact >= 0.0) & jnp.all(left <= rounding)
    return jnp.where(optimal, exact, nu)


def _report(problem: _Scaled, nu: Float[Array, " m"], sweeps: Int[Array, ""], tolerance: float | None) -> Projection:
    dtype = nu.dtype
    relative = (1e-9 if dtype == jnp.float64 else 1e-4) if tolerance is None else tolerance
    left = jnp.where(problem.scale > 0.0, problem.excess - problem.gram @ nu, 0.0)
    rounding = 32.0 * jnp.finfo(dtype).eps * jnp.max(jnp.abs(nu))
    allowed = jnp.maximum(relative * _largest_violation(problem), rounding)
    asymmetry = jnp.max(jnp.abs(problem.gram - problem.gram.T))
    return Projection(
        multipliers=problem.scale * nu,
        infeasible=jnp.max(left) > allowed,
        asymmetry=jnp.nan_to_num(asymmetry, nan=jnp.finfo(dtype).max),  # the worst number there is, never NaN
        sweeps=sweeps,
    )
