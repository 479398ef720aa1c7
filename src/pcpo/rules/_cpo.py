"""CPO: reward step and constraint in one problem, with its recovery step and its line search."""

from dataclasses import replace

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from pcpo.core.cpo_dual import DualCase, solve_cpo_dual
from pcpo.core.line_search import judge
from pcpo.core.metric import KL, Directions, directions
from pcpo.core.types import LocalModel, Status, StepInfo, Surrogates, Tree, UpdateRule, most_severe
from pcpo.core.vectors import as_vectors, ratio, scaled
from pcpo.rules._report import Step, check_delta, report, search, solver, stateless


def cpo(
    delta: ArrayLike, line_search: bool = True, *, cg_iterations: int = 10, cg_tolerance: float | None = None
) -> UpdateRule:
    r"""Constrained policy optimisation for one constraint.

    .. math:: \max_d \; g \cdot d \;\; \text{s.t.} \;\; \tfrac12 d'Hd \le \delta, \;\; a \cdot d + b \le 0;
        \qquad d = -\sqrt{2\delta / a'H^{-1}a}\; H^{-1}a \;\; \text{if there is no such d}

    CPO (Achiam et al., 2017); PCPO (Yang et al., 2020), Eq. CPO_update and baseline (1). The line search takes the
    first trial within delta whose cost surrogate rises by no more than ``max(0, -b)`` and whose reward surrogate
    rises (from b > 0 it may fall). If none passes the step is zero; from b > 0 it is the shortest trial, as in the
    CPO code. ``line_search=False`` takes the full step: the paper's "CPO without line search".

    Differences from the CPO code:

    1. b = 0 is a feasible point and not a reason to recover; see `pcpo.core.cpo_dual` for all ties.
    2. A cost gradient counts as zero when it is zero, not when its square is below 1e-8.
    3. A KL divergence of exactly delta is accepted there in the search and refused after it; here it is accepted.

    Args:
        delta: KL radius.
        line_search: Whether to backtrack; needs ``evaluate``.
        cg_iterations: Upper limit of CG steps.
        cg_tolerance: Relative residual at which CG stops; default by dtype.

    `StepInfo.extra`: ``case`` (a `pcpo.core.cpo_dual.DualCase`), ``backtracks`` and ``line_search``.
    """
    check_delta(delta)
    solve = solver(cg_iterations, cg_tolerance)

    def update(model: LocalModel, state: tuple[()]) -> tuple[Tree, tuple[()], StepInfo]:
        _check(model, line_search)
        flat, unravel = as_vectors(model if line_search else replace(model, evaluate=None))
        problem, g_norm, a_norms = scaled(flat)
        radius = jnp.asarray(delta, flat.b.dtype)
        found = directions(KL, problem, unravel, solve)
        step, case = _optimum(problem, found, radius)
        step = step._replace(eta=ratio(step.eta, g_norm), multipliers=ratio(step.multipliers, a_norms))

        restoring = jnp.any(flat.b > 0.0) & (case != DualCase.NO_GRADIENT)
        # An active step has a.d = -b to rounding, which must not decide whether it is shortened.
        rounding = 64.0 * jnp.finfo(flat.b.dtype).eps * (jnp.abs(flat.a) @ jnp.abs(step.d))

        def test(trial: Surrogates) -> Array:
            return judge(trial, trial.reward, radius, jnp.maximum(-flat.b, 0.0) + rounding, ~restoring)

        searched = search(flat, step, test)
        taken = searched.unless(searched.refused & ~restoring)
        returned, info = report(
            flat,
            unravel,
            taken.step,
            found.residuals,
            most_severe(
                (case == DualCase.ACTIVE, Status.PROJECTED),
                (case == DualCase.INFEASIBLE, Status.RECOVERY),
                (g_norm == 0.0, Status.ZERO_REWARD_GRADIENT),
                ((a_norms == 0.0) & (flat.b > 0.0), Status.ZERO_COST_GRADIENT_VIOLATED),
                (searched.refused, Status.LINE_SEARCH_FAILED),
                (found.failed, Status.CG_FAILED),
                # Of a traced delta only now the value is known; the dual compares with it and would not notice.
                (~(jnp.isfinite(radius) & (radius >= 0.0)), Status.NONFINITE),
            ),
            {"case": case, **searched.extra},
            taken.surrogates,
        )
        return returned, state, info

    return UpdateRule(stateless, update)


def _optimum(problem: LocalModel, found: Directions, delta: Array) -> tuple[Step, Array]:
    """The optimum for a model with unit g and a, and the `DualCase` it belongs to.

    Without a constraint (m = 0) the sums below are zero, which is the case of a zero cost gradient.
    """
    g, v, w = problem.g, found.v, found.w
    q, r, s = g @ v, jnp.sum(problem.a @ v), jnp.sum(problem.a * w)
    along_boundary = v - ratio(r, s) * jnp.sum(w, axis=0)
    dual = solve_cpo_dual(q, r, s, jnp.sum(problem.b), delta, remainder=g @ along_boundary)
    multipliers = jnp.broadcast_to(dual.multiplier, problem.b.shape)
    d, hd = found.step_and_product(problem.fvp, dual.eta, multipliers)
    return Step(d, hd, dual.eta, multipliers), dual.case


def _check(model: LocalModel, line_search: bool) -> None:
    if model.num_constraints > 1:
        raise ValueError(
            f"cpo solves its dual for one constraint, but b has shape {model.b.shape}; use pcpo, which projects onto "
            "several, or add the costs up into one before taking gradients"
        )
    if line_search and model.evaluate is None:
        raise ValueError(
            "cpo(line_search=True) needs LocalModel.evaluate to search on, but it is None; give the model its "
            "surrogates, or pass line_search=False"
        )
