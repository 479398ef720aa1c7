"""PDO and FPO: a trust-region step on reward minus lambda times cost."""

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pcpo.core.cg import Solver
from pcpo.core.line_search import judge
from pcpo.core.trust_region import natural_step
from pcpo.core.types import LocalModel, Status, StepInfo, Surrogates, Tree, UpdateRule, most_severe
from pcpo.core.vectors import as_vectors, ratio, unit
from pcpo.rules._report import Step, check_delta, check_number, report, search, solver, stateless


def pdo(
    delta: ArrayLike,
    learning_rate: ArrayLike = 0.01,
    initial_multiplier: ArrayLike = 0.0,
    *,
    cg_iterations: int = 10,
    cg_tolerance: float | None = None,
) -> UpdateRule:
    r"""Primal-dual optimisation: the price of a cost rises while its limit is violated and falls while it is not.

    .. math:: \max_d \; (g - \lambda_k \cdot a) \cdot d \;\; \text{s.t.} \;\; \tfrac12 d'Hd \le \delta,
        \qquad \lambda_{k+1} = \max(0, \lambda_k + \beta b)

    PCPO (Yang et al., 2020), Eq. PDO; Chow et al. (2017). The state is lambda, shape [m]; `StepInfo.multipliers`
    is the lambda that was used, before it is updated.

    Differences:

    1. The CPO code fits one critic to reward - lambda cost, which discounts the cost like the reward. Here g and a
       come from their own critics and are mixed here.
    2. The paper prints ``g + lambda a`` for a maximisation; we subtract, as its code does.
    3. A violation that is not finite leaves lambda as it was.

    Args:
        delta: KL radius.
        learning_rate: beta, per unit of violation.
        initial_multiplier: lambda before the first update, the same for all constraints.
        cg_iterations: Upper limit of CG steps.
        cg_tolerance: Relative residual at which CG stops; default by dtype.
    """
    check_delta(delta)
    check_number("learning_rate", learning_rate, at_least=0.0, advice="0.01 is CPO's value")
    check_number("initial_multiplier", initial_multiplier, at_least=0.0, advice="0 is CPO's value")
    solve = solver(cg_iterations, cg_tolerance)

    def init(num_constraints: int) -> Float[Array, " m"]:
        return jnp.full((num_constraints,), initial_multiplier, dtype=float)

    def update(model: LocalModel, state: Float[Array, " m"]) -> tuple[Tree, Float[Array, " m"], StepInfo]:
        if state.shape != model.b.shape:
            raise ValueError(
                f"state has shape {state.shape}, but the model has {model.num_constraints} constraint(s); start from "
                f"rule.init({model.num_constraints}) and pass on the state that update returns"
            )
        step, info = penalised_step(model, state, delta, solve)
        raised = jnp.maximum(0.0, state + jnp.asarray(learning_rate, state.dtype) * model.b.astype(state.dtype))
        return step, jnp.where(jnp.isfinite(raised), raised, state), info

    return UpdateRule(init, update)


def fpo(
    delta: ArrayLike, multiplier: ArrayLike, *, cg_iterations: int = 10, cg_tolerance: float | None = None
) -> UpdateRule:
    r"""Fixed-point (fixed penalty) optimisation: `pdo` with a lambda that never changes.

    .. math:: \max_d \; (g - \lambda \cdot a) \cdot d \;\; \text{s.t.} \;\; \tfrac12 d'Hd \le \delta

    PCPO (Yang et al., 2020), section "Experiments", baseline (3). The paper tunes lambda by hand and does not
    print it.

    Args:
        delta: KL radius.
        multiplier: lambda: one number, or one for each constraint.
        cg_iterations: Upper limit of CG steps.
        cg_tolerance: Relative residual at which CG stops; default by dtype.
    """
    check_delta(delta)
    if not isinstance(multiplier, Tracer):
        lowest = np.min(np.asarray(multiplier, float), initial=0.0)
        check_number("multiplier", lowest, at_least=0.0, advice="it is the price of a unit of cost in reward")
    solve = solver(cg_iterations, cg_tolerance)

    def update(model: LocalModel, state: tuple[()]) -> tuple[Tree, tuple[()], StepInfo]:
        if jnp.shape(multiplier) not in ((), model.b.shape):
            raise ValueError(
                f"multiplier has shape {jnp.shape(multiplier)}, but the model has {model.num_constraints} "
                "constraint(s); pass one number, or one for each constraint"
            )
        multipliers = jnp.broadcast_to(jnp.asarray(multiplier, model.b.dtype), model.b.shape)
        step, info = penalised_step(model, multipliers, delta, solve)
        return step, state, info

    return UpdateRule(stateless, update)


def penalised_step(
    model: LocalModel, multipliers: Float[Array, " m"], delta: ArrayLike, solve: Solver
) -> tuple[Tree, StepInfo]:
    """The natural step on ``g - lambda . a``, with a line search where the model can be evaluated.

    The first trial is taken at which the penalised surrogate has risen and the KL divergence is within delta;
    if there is none, the step is zero. With lambda = 0 this is TRPO, to the bit. `StepInfo.extra` has
    ``backtracks`` and ``line_search`` (a `pcpo.core.line_search.Reason`).
    """
    flat, unravel = as_vectors(model)
    multipliers = multipliers.astype(flat.b.dtype)
    delta = jnp.asarray(delta, flat.b.dtype)
    objective = flat.g - multipliers @ flat.a
    g, g_norm = unit(objective)
    solution = solve(flat.fvp, g[None])
    d, eta = natural_step(g, solution.x[0], delta)
    step = Step(d, eta * solution.hx[0], ratio(eta, g_norm), multipliers)

    def test(trial: Surrogates) -> Array:
        gain = trial.reward - multipliers @ trial.costs
        return judge(trial, gain, delta, jnp.full_like(flat.b, jnp.inf))

    searched = search(flat, step, test)
    taken = searched.unless(searched.refused)
    return report(
        flat,
        unravel,
        taken.step._replace(multipliers=multipliers),
        jnp.concatenate([solution.residuals, jnp.zeros_like(flat.b)]),
        most_severe(
            (g_norm == 0.0, Status.ZERO_REWARD_GRADIENT),
            (searched.refused, Status.LINE_SEARCH_FAILED),
            ((g_norm > 0.0) & (eta <= 0.0), Status.CG_FAILED),
        ),
        searched.extra,
        taken.surrogates,
    )
