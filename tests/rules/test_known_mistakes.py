"""Mistakes that other codes make, planted in our own pieces: our checks must reject every one of them.

Sources: a comparison of OmniSafe, SafePO and FSRL with the paper ("peers 1" to "peers 20" are its rows, beside SafePO's
extras and FSRL's), and the traps of formulas and of older code that are easy to copy wrongly ("trap 1" to "trap 20",
"spec 2.6" to "spec 2.8").

Each mistake replaces one function by monkeypatching where the rules look it up. The check must pass before and fail
after, for the reason named: so the patch is known to have been reached, and cannot rot.

=====================  ================================================================================================
peers 1                ``h_applied_twice``
peers 2                ``projection_computed_from_another_reward_step``
peers 3, trap 2        ``cost_gradient_per_step``, ``cost_gradient_over_one_minus_gamma``
peers 4, FSRL (c)      ``cpo_with_a_cost_gradient_per_step``
peers 5                ``line_search_that_scales_reward_and_projection_together``
peers 6                ``cost_test_per_step``
peers 7                ``reward_test_is_dead_code_in_trpo``, ``reward_test_is_dead_code_in_cpo``
peers 8                ``kl_projection_under_the_name_of_l2``
peers 9                ``only_the_first_constraint``
peers 10               ``zero_over_zero``
peers 11               ``epsilon_in_cg``, ``epsilon_under_the_root``, ``epsilon_in_the_projection``,
                       ``cg_stops_at_an_absolute_residual``, ``residual_not_reported``
peers 12               ``hidden_damping``
peers 14, SafePO (a)   ``stale_violation``, ``violation_read_as_a_constant``
peers 15               ``kl_averaged_with_zeros``
peers 16               ``multipliers_logged_as_one``
peers 17               ``nan_guard_with_and_in_pcpo``, ``nan_guard_with_and_in_the_line_search``
peers 18, trap 4       no mistake (a standardised reward advantage cancels): `checks.is_free_of_scale`
FSRL (step)            ``step_divided_by_its_norm``
FSRL (search)          ``failed_search_leaves_its_last_trial_in_trpo``, ``failed_search_leaves_its_last_trial_in_cpo``
FSRL (std), trap 3     ``standardised_cost_advantages``
FSRL (limit)           ``violation_read_as_a_constant``, ``delta_read_as_a_constant``
trap 1                 ``flipped_sign``
trap 7                 ``cpo_recovers_from_b_zero``, ``cpo_divides_by_b_zero``
trap 8                 ``absolute_gate_for_zero_gradients``
trap 9                 ``square_root_of_a_negative_number``, ``other_lambda_taken_unnoticed``
trap 10                ``residual_not_reported``
trap 11                ``cap_ignored``, ``line_search_that_scales_reward_and_projection_together``
trap 12                ``kl_of_exactly_delta_refused``
trap 16, spec 2.7      ``pdo_adds_the_cost``, ``pdo_raises_lambda_before_the_step``, ``pdo_without_clipping``,
                       ``pdo_reports_the_new_lambda``, ``trpo_is_another_code_than_pdo``
spec 2.6               ``cpo_reverts_where_it_should_restore``
spec 2.8               ``projects_feasible_steps``, ``divides_by_the_wrong_length``
=====================  ================================================================================================

Left out, because they are not about the step:

=====================  ================================================================================================
peers 13               which discount the cost's advantages take: an estimator, tests of `rl/`
peers 19               resets and final observations of environments: tests of the collectors
peers 20               documentation
SafePO (b)             normalisation of the final observation: tests of the collectors
SafePO (c)             evaluation stepping the training environment: tests of the loop
SafePO (d)             what is saved: tests of checkpoints
trap 5, 6              lambda and bootstrapping of the cost's advantages: estimators, tests of `rl/`
trap 13, 14, 15, 17    definitions of costs, rewards and episode ends: tests of `tasks/`
trap 18, 19, 20        observations, action noise, episode sets: tests of `tasks/` and the collectors
=====================  ================================================================================================
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcpo.core.cg as cg_module
import pcpo.rules._cpo as cpo_module
import pcpo.rules._pcpo as pcpo_module
import pcpo.rules._penalty as penalty_module
import pcpo.rules._report as report_module
import pcpo.rules._trpo as trpo_module
import pcpo.rules._two_steps as two_steps_module
from pcpo import rules
from pcpo.core.cg import CGSolution, conjugate_gradient
from pcpo.core.cpo_dual import CPOStep, DualCase, solve_cpo_dual
from pcpo.core.line_search import Reason, judge
from pcpo.core.metric import KL, Directions
from pcpo.core.projection import Projection, halfspace_multiplier
from pcpo.core.trust_region import natural_step
from pcpo.core.vectors import Scaled, as_vectors, scaled
from pcpo.experiments import tabular
from tests.problems import Problem, random_problem
from tests.rules import checks
from tests.rules.checks import EXACT

DELTA = 0.02
CAP = 0.1

# The same numbers everywhere, so that what is compiled for one test serves the next.
GENERAL = random_problem(seed=3, n=4, m=1)
INSIDE = replace(GENERAL, b=np.array([-1e6]))
LITTLE_ROOM = replace(GENERAL, b=np.array([-0.01]))
ON_THE_LIMIT = replace(GENERAL, b=np.array([0.0]))
VIOLATED = replace(GENERAL, b=np.array([1.0]))
SEVERAL = replace(random_problem(seed=3, n=4, m=3), b=np.array([0.3, 0.4, 0.5]))
AFTER_ONE_STEP_OF_CG = Problem(  # q = 1, r = 0.9, s = 0.27 for unit g and a: q - r^2 / s = -2
    np.diag([1.0, 15.2]), np.array([1.0, 0.0]), np.array([[0.9, np.sqrt(0.19)]]), np.array([-0.01])
)


def pcpo(projection="kl", delta=DELTA, **options: Any):
    chosen: dict[str, Any] = {"cg_iterations": EXACT, **options}
    return rules.pcpo(delta, projection, **chosen)


def cpo(**options: Any):
    chosen: dict[str, Any] = {"cg_iterations": EXACT, **options}
    return rules.cpo(DELTA, **chosen)


def full_cpo():
    return cpo(line_search=False)


def trpo():
    return rules.trpo(DELTA, cg_iterations=EXACT)


class Patch(NamedTuple):
    """One replaced name."""

    where: object
    name: str
    wrong: object


class Mistake(NamedTuple):
    """How to make it, what notices it, and by which words."""

    patches: list[Patch]
    check: Callable[[], None]
    reason: str


# What the pieces look like with the mistake in them ----------------------------------------------------------------


def plain_gradient_step(g, v, delta):
    """H (H^-1 g) = g, at the length of the natural step."""
    _, eta = natural_step(g, v, delta)
    return eta * g, eta


def built_from_the_plain_gradient(self, fvp, eta, nu):
    """The step itself, with H v in place of v."""
    d = eta * self.hv - nu @ self.w
    return d, fvp(d)


def built_and_normalised(self, fvp, eta, nu):
    d, hd = original_step_and_product(self, fvp, eta, nu)
    length = jnp.linalg.norm(d)
    return d / length, hd / length


original_step_and_product = Directions.step_and_product


def step_with_epsilon(g, v, delta):
    eta = jnp.sqrt(2.0 * delta / (g @ v + 1e-8))
    return eta * v, eta


def report_after_a_line_search(model, unravel, step, residuals, status, extra, *happened):
    """200 tries at 0.8: the whole PCPO step shrinks until its KL and its cost please."""

    def test(trial):
        return judge(trial, trial.reward, jnp.asarray(DELTA), jnp.maximum(-model.b, 0.0), False)

    scale = report_module.backtrack(model.evaluate, step.d, test, max_trials=200).scale
    return report_module.report(model, unravel, step.times(scale), residuals, status, extra, *happened)


def without_denominator_guard(a, b, w, d):
    return jnp.maximum(0.0, (a @ d + b) / (a @ w))


def with_epsilon_in_the_denominator(a, b, w, d):
    return jnp.maximum(0.0, (a @ d + b) / (a @ w + 1e-8))


def with_flipped_sign(a, b, w, d):
    """max(0, eta r + b) with an r built from the gradient of the loss."""
    return halfspace_multiplier(a, b, w, -d)


def without_maximum(a, b, w, d):
    return (a @ d + b) / (a @ w)


def divided_by_a_dot_a(a, b, w, d):
    return halfspace_multiplier(a, b, w, d) * (a @ w) / (a @ a)


def first_constraint_only(gram, excess):
    only = jnp.zeros_like(excess).at[0].set(jnp.maximum(0.0, excess[0] / gram[0, 0]))
    return Projection(only, jnp.zeros((), bool), jnp.zeros(()), jnp.zeros((), jnp.int32))


def cg_with_epsilon(fvp, rhs, iterations, tolerance):
    """As every TRPO code has it: 1e-6 in both denominators, no attention to the scale of H."""
    del tolerance
    x, r, p = jnp.zeros_like(rhs), rhs, rhs
    first = jax.vmap(fvp)(rhs)
    for _ in range(min(iterations, rhs.shape[1])):
        hp = jax.vmap(fvp)(p)
        rr = jnp.sum(r * r, axis=1, keepdims=True)
        alpha = rr / (jnp.sum(p * hp, axis=1, keepdims=True) + 1e-6)
        x, r = x + alpha * p, r - alpha * hp
        p = r + jnp.sum(r * r, axis=1, keepdims=True) / (rr + 1e-6) * p
    zeros = jnp.zeros(len(rhs))
    return CGSolution(x, rhs - r, first, zeros, zeros.astype(jnp.int32), zeros > 0)


def cg_with_absolute_tolerance(fvp, rhs, iterations, tolerance):
    """Stops when the squared residual is below 1e-10, which a small right-hand side is before it starts."""
    del tolerance
    solution = conjugate_gradient(fvp, rhs, iterations)
    small = jnp.sum(rhs * rhs, axis=1) < 1e-10
    return solution._replace(
        x=jnp.where(small[:, None], 0.0, solution.x), hx=jnp.where(small[:, None], 0.0, solution.hx)
    )


def cg_without_residual(*arguments, **options):
    solution = conjugate_gradient(*arguments, **options)
    return solution._replace(residuals=jnp.zeros_like(solution.residuals))


def not_scaled(model):
    return Scaled(model, jnp.ones(()), jnp.ones_like(model.b))


def with_absolute_gate(model):
    """A cost gradient with a'a <= 1e-8 counts as none."""
    visible = jnp.sum(model.a * model.a, axis=1) > 1e-8
    return scaled(replace(model, a=jnp.where(visible[:, None], model.a, 0.0)))


def with_hidden_damping(model):
    flat, unravel = as_vectors(model)
    return replace(flat, fvp=lambda v: flat.fvp(v) + 0.1 * v), unravel


def with_constant_violation(model):
    flat, unravel = as_vectors(model)
    return replace(flat, b=jnp.full_like(flat.b, -25.0)), unravel


def with_memory():
    """b is read once and kept."""
    memory = []

    def remembering(model):
        flat, unravel = as_vectors(model)
        memory.append(flat.b)
        return replace(flat, b=memory[0]), unravel

    return remembering


def diluted_kl(step):
    """Each Fisher product stored a zero beside the one KL that was measured."""
    return 0.5 * step.d @ step.hd / 35.0


def report_of_ones(model, unravel, step, residuals, status, extra, *happened):
    returned, info = report_module.report(model, unravel, step, residuals, status, extra, *happened)
    return returned, info._replace(multipliers=jnp.ones_like(info.multipliers), eta=jnp.ones_like(info.eta))


def finite_if_any_is(*arrays):
    return jnp.any(jnp.stack([jnp.all(jnp.isfinite(x)) for x in arrays]))


def judge_with_and(trial, objective, delta, cost_room, needs_improvement=True):
    """Refuses a trial only if all surrogates are not finite; NaN passes comparisons written the other way round."""
    refused = (objective <= 0.0) & needs_improvement | jnp.any(trial.costs > cost_room) | (trial.kl > delta)
    finite = jnp.isfinite(trial.reward) | jnp.any(jnp.isfinite(trial.costs)) | jnp.isfinite(trial.kl)
    return (refused | ~finite).astype(jnp.int32)


def judge_per_step(trial, objective, delta, cost_room, needs_improvement=True):
    return judge(trial._replace(costs=trial.costs / checks.HORIZON), objective, delta, cost_room, needs_improvement)


def judge_without_reward(trial, objective, delta, cost_room, needs_improvement=True):
    return judge(trial, objective, delta, cost_room, False)


def judge_strictly(trial, objective, delta, cost_room, needs_improvement=True):
    """KL < delta instead of KL <= delta."""
    verdict = judge(trial, objective, delta, cost_room, needs_improvement)
    return jnp.where(trial.kl >= delta, jnp.maximum(verdict, int(Reason.KL_TOO_LARGE)), verdict)


def search_without_refusal(*arguments):
    found = report_module.search(*arguments)
    return found._replace(refused=jnp.zeros_like(found.refused))


def search_that_reverts(*arguments):
    """A refused trial is always taken back."""
    found = report_module.search(*arguments)
    return found._replace(step=found.step.times(jnp.where(found.refused, 0.0, 1.0)))


def dual_that_recovers_at_zero(q, r, s, b, delta, remainder=None):
    """The CPO code's cases: everything that is neither c < 0 nor (c > 0 and B > 0) is recovery."""
    step = solve_cpo_dual(q, r, s, b, delta, remainder)
    recovers = b == 0.0
    return CPOStep(
        jnp.where(recovers, 0.0, step.eta),
        jnp.where(recovers, jnp.sqrt(2 * delta / s), step.multiplier),
        jnp.where(recovers, int(DualCase.INFEASIBLE), step.case),
    )


def dual_of_the_theorem(q, r, s, b, delta, remainder=None):
    """lambda = sqrt(A / B) as it stands, with A by subtraction."""
    step = solve_cpo_dual(q, r, s, b, delta, remainder)
    active = step.case == DualCase.ACTIVE
    eta = jnp.where(active, jnp.sqrt((2 * delta - b**2 / s) / (q - r**2 / s)), step.eta)
    return step._replace(eta=eta, multiplier=jnp.where(active, (b + eta * r) / s, step.multiplier))


def dual_of_the_text_books(q, r, s, b, delta, remainder=None):
    """CPO's two candidate lambdas on both sides of r / b, A without a clamp, division by b.

    The root of a negative A is not a number, compares as false, and so the other lambda is taken unnoticed.
    """
    del remainder
    A, B = q - r**2 / s, 2 * delta - b**2 / s
    middle, lambda_a, lambda_b = r / b, jnp.sqrt(A / B), jnp.sqrt(q / (2 * delta))
    on_a = jnp.where(b < 0, jnp.clip(lambda_a, 0.0, -middle), jnp.maximum(lambda_a, -middle))
    on_b = jnp.where(b < 0, jnp.maximum(lambda_b, -middle), jnp.clip(lambda_b, 0.0, -middle))
    value_a, value_b = -0.5 * (A / on_a + B * on_a) + r * b / s, -0.5 * (q / on_b + 2 * delta * on_b)
    best = jnp.where(value_a >= value_b, on_a, on_b)
    nu = jnp.maximum(0.0, best * b + r) / s
    return CPOStep(1 / best, nu / best, jnp.asarray(int(DualCase.ACTIVE), jnp.int32))


def penalised(used_instead=lambda multipliers, b: multipliers, report=lambda info, multipliers, b: info.multipliers):
    """`penalised_step` with other multipliers than PDO's, or reporting others than those used."""
    original = penalty_module.penalised_step

    def wrong(model, multipliers, delta, solve):
        step, info = original(model, used_instead(multipliers, model.b), delta, solve)
        return step, info._replace(multipliers=report(info, multipliers, model.b))

    return wrong


def raised(multipliers, b):
    """The update of lambda, with the rate that the check uses."""
    return jnp.maximum(0.0, multipliers + 0.4 * b)


def damped_penalised_step(model, multipliers, delta, solve):
    damped = replace(model, fvp=lambda v: model.fvp(v) + 1e-13 * v)
    return penalty_module.penalised_step(damped, multipliers, delta, solve)


class WithoutClipping:
    """jax.numpy, in which maximum(0, x) is x."""

    def __getattr__(self, name):
        return getattr(jnp, name)

    @staticmethod
    def maximum(floor, x):
        del floor
        return x


def rescaled_cost_gradient(factor):
    original = tabular.policy_gradients

    def wrong(at):
        g, a = original(at)
        return g, factor(at) * a

    return wrong


# The table ---------------------------------------------------------------------------------------------------------


def outcome_of(rule: Callable, p: Problem, *properties: Callable) -> Callable[[], None]:
    """A check of one outcome, the rule being made anew each time."""

    def check():
        out = checks.run(rule(), p)
        for holds in properties:
            holds(p, out)

    return check


def natural(p, out):
    checks.reward_step_is_natural(p, DELTA, out)


def on_the_boundary(p, out):
    checks.stops_at_the_boundary(p, DELTA, out)


def nearest_in_kl(p, out):
    checks.is_the_nearest_point(p, DELTA, p.H, out)


def nearest_in_l2(p, out):
    checks.is_the_nearest_point(p, DELTA, np.eye(len(p.g)), out)


def spends_delta(p, out):
    checks.spends_the_trust_region(p, DELTA, out)


def rebuilt(p, out):
    checks.is_made_of_its_parts(p, p.H, out)


def optimal(p, out):
    checks.is_the_optimum_of_cpo(p, DELTA, out)


def capped(p, out):
    checks.respects_the_cap(p, CAP, out)


def whole_step():
    rule = pcpo()
    refused = checks.run(rule, VIOLATED, lambda d: checks.Surrogates(-jnp.sum(d * d), jnp.ones(1), jnp.sum(d * d)))
    checks.takes_the_whole_step(VIOLATED, checks.run(rule, VIOLATED), refused)


MISTAKES = {
    "h_applied_twice": Mistake(
        [
            Patch(two_steps_module, "natural_step", plain_gradient_step),
            Patch(Directions, "step_and_product", built_from_the_plain_gradient),
        ],
        outcome_of(pcpo, INSIDE, natural),
        r"the reward step is not the natural one: .* cosine with g 1\.0000",
    ),
    "projection_computed_from_another_reward_step": Mistake(
        [Patch(Directions, "step_and_product", built_from_the_plain_gradient)],  # nu is that of the natural step
        outcome_of(pcpo, VIOLATED, on_the_boundary),
        r"a\.d \+ b is .*, not 0",
    ),
    "cost_gradient_per_step": Mistake(
        [Patch(tabular, "policy_gradients", rescaled_cost_gradient(lambda at: 1 / checks.HORIZON))],
        lambda: checks.prediction_is_in_the_units_of_b(pcpo(delta=1e-6)),
        r"units: along the step J_C changes .* factors \[0\.083",
    ),
    "cost_gradient_over_one_minus_gamma": Mistake(
        [
            Patch(
                tabular, "policy_gradients", rescaled_cost_gradient(lambda at: 1 / (1 - checks.GAMMA) / checks.HORIZON)
            )
        ],
        lambda: checks.step_ends_at_the_limit(pcpo(delta=1e-6), 1e-6),
        r"units: J_C was .* above the limit and is .*PROJECTED",
    ),
    "cpo_with_a_cost_gradient_per_step": Mistake(
        [Patch(tabular, "policy_gradients", rescaled_cost_gradient(lambda at: 1 / checks.HORIZON))],
        lambda: checks.step_ends_at_the_limit(rules.cpo(1e-6, line_search=False, cg_iterations=EXACT), 1e-6),
        r"units: J_C was .* above the limit and is .*RECOVERY",
    ),
    "standardised_cost_advantages": Mistake(
        [Patch(tabular, "policy_gradients", rescaled_cost_gradient(lambda at: 1 / jnp.std(at.A_C)))],
        lambda: checks.prediction_is_in_the_units_of_b(pcpo(delta=1e-6)),
        r"units: along the step J_C changes",
    ),
    "line_search_that_scales_reward_and_projection_together": Mistake(
        [Patch(pcpo_module, "report", report_after_a_line_search)], whole_step, r"the step depends on a search"
    ),
    "cost_test_per_step": Mistake(
        [Patch(cpo_module, "judge", judge_per_step)],
        lambda: checks.keeps_the_cost_allowance(LITTLE_ROOM, DELTA),
        r"the cost surrogate rises by .* is left under the limit",
    ),
    "reward_test_is_dead_code_in_trpo": Mistake(
        [Patch(penalty_module, "judge", judge_without_reward)],
        lambda: checks.only_takes_what_improves(trpo(), LITTLE_ROOM),
        r"the step taken loses reward",
    ),
    "reward_test_is_dead_code_in_cpo": Mistake(
        [Patch(cpo_module, "judge", judge_without_reward)],
        lambda: checks.only_takes_what_improves(cpo(), LITTLE_ROOM),
        r"the step taken loses reward",
    ),
    "kl_projection_under_the_name_of_l2": Mistake(
        [Patch(pcpo_module.METRICS, "l2", KL)],
        outcome_of(partial(pcpo, "l2"), VIOLATED, nearest_in_l2),
        r"not the nearest point in the norm of L",
    ),
    "only_the_first_constraint": Mistake(
        [Patch(pcpo_module.SEVERAL, "cyclic", first_constraint_only)],
        outcome_of(pcpo, SEVERAL, partial(checks.stays_in_the_half_spaces, tol=1e-8)),
        r"the step is outside a half-space",
    ),
    "zero_over_zero": Mistake(
        [Patch(two_steps_module, "halfspace_multiplier", without_denominator_guard)],
        lambda: checks.survives_a_zero_cost_gradient(pcpo(), GENERAL, DELTA),
        r"zero cost gradient, b = 0\.0: status NONFINITE",
    ),
    "epsilon_in_cg": Mistake(
        [Patch(cg_module, "conjugate_gradient", cg_with_epsilon)],
        lambda: checks.is_free_of_scale(pcpo(), VIOLATED),
        r"the scale of H, times 1e-08, matters",
    ),
    "epsilon_under_the_root": Mistake(
        [Patch(two_steps_module, "natural_step", step_with_epsilon)],
        lambda: checks.is_free_of_scale(pcpo(), VIOLATED),
        r"the scale of H, times 1e\+08, matters",
    ),
    "epsilon_in_the_projection": Mistake(
        [Patch(two_steps_module, "halfspace_multiplier", with_epsilon_in_the_denominator)],
        lambda: checks.is_free_of_scale(pcpo(), VIOLATED),
        r"the scale of H, times 1e\+08, matters",
    ),
    "cg_stops_at_an_absolute_residual": Mistake(
        [
            Patch(cg_module, "conjugate_gradient", cg_with_absolute_tolerance),
            Patch(pcpo_module, "scaled", not_scaled),
        ],
        lambda: checks.is_free_of_scale(pcpo(), VIOLATED),
        r"the scale of reward, times 1e-08, matters",
    ),
    "residual_not_reported": Mistake(
        [Patch(cg_module, "conjugate_gradient", cg_without_residual)],
        outcome_of(partial(pcpo, cg_iterations=2), VIOLATED, lambda p, out: checks.reports_cg_as_it_was(p, 2, out)),
        r"CG residuals \[0\. 0\.\], in truth",
    ),
    "hidden_damping": Mistake(
        [Patch(pcpo_module, "as_vectors", with_hidden_damping)],
        outcome_of(pcpo, INSIDE, spends_delta),
        r"the KL of the reward step is",
    ),
    "stale_violation": Mistake(
        [Patch(pcpo_module, "as_vectors", with_memory())],
        lambda: checks.forgets_the_last_violation(pcpo(), VIOLATED, DELTA),
        r"a stale violation",
    ),
    "violation_read_as_a_constant": Mistake(
        [Patch(pcpo_module, "as_vectors", with_constant_violation)],
        lambda: checks.the_limit_matters(pcpo(), GENERAL),
        r"the limit is ignored",
    ),
    "delta_read_as_a_constant": Mistake(
        [Patch(two_steps_module, "natural_step", lambda g, v, delta: natural_step(g, v, jnp.full_like(delta, 0.01)))],
        lambda: checks.delta_matters(lambda delta: pcpo(delta=delta), INSIDE),
        r"delta is ignored: 0\.0001 given, 0\.01 spent",
    ),
    "kl_averaged_with_zeros": Mistake(
        [Patch(report_module.Step, "kl", property(diluted_kl))],
        outcome_of(pcpo, VIOLATED, checks.predicts_its_own_step),
        r"predicted_kl is .*, that of the step is",
    ),
    "multipliers_logged_as_one": Mistake(
        [Patch(pcpo_module, "report", report_of_ones)],
        outcome_of(pcpo, VIOLATED, rebuilt),
        r"eta = 1 and multipliers \[1\.\] do not rebuild the step",
    ),
    "nan_guard_with_and_in_pcpo": Mistake(
        [Patch(report_module, "all_finite", finite_if_any_is)],
        lambda: checks.refuses_a_nan_in_any_surrogate(pcpo(), VIOLATED),
        r"reward is nan at the step, but the status is PROJECTED",
    ),
    "nan_guard_with_and_in_the_line_search": Mistake(
        [  # and in the report behind it, which would refuse the step a second time
            Patch(penalty_module, "judge", judge_with_and),
            Patch(report_module, "all_finite", finite_if_any_is),
        ],
        lambda: checks.refuses_a_nan_in_any_surrogate(trpo(), GENERAL),
        r"reward is nan at the step, but the status is OK",
    ),
    "step_divided_by_its_norm": Mistake(
        [Patch(Directions, "step_and_product", built_and_normalised)],
        outcome_of(pcpo, INSIDE, spends_delta),
        r"the KL of the reward step is",
    ),
    "failed_search_leaves_its_last_trial_in_trpo": Mistake(
        [Patch(penalty_module, "search", search_without_refusal)],
        lambda: checks.stays_where_the_search_fails(trpo(), LITTLE_ROOM),
        r"no trial can pass, but the status is OK",
    ),
    "failed_search_leaves_its_last_trial_in_cpo": Mistake(
        [Patch(cpo_module, "search", search_without_refusal)],
        lambda: checks.stays_where_the_search_fails(cpo(), LITTLE_ROOM),
        r"no trial can pass, but the status is (OK|PROJECTED)",
    ),
    "flipped_sign": Mistake(
        [Patch(two_steps_module, "halfspace_multiplier", with_flipped_sign)],
        outcome_of(pcpo, VIOLATED, on_the_boundary),
        r"a\.d \+ b is .*, not 0",
    ),
    "cpo_recovers_from_b_zero": Mistake(
        [Patch(cpo_module, "solve_cpo_dual", dual_that_recovers_at_zero)],
        outcome_of(full_cpo, ON_THE_LIMIT, optimal),
        r"not CPO's optimum: lambda, nu|not CPO's optimum: g is not",
    ),
    "cpo_divides_by_b_zero": Mistake(
        [Patch(cpo_module, "solve_cpo_dual", dual_of_the_text_books)],
        outcome_of(full_cpo, ON_THE_LIMIT, lambda p, out: checks.needs_no_excuse(out), optimal),
        r"status NONFINITE although the model is finite",
    ),
    "absolute_gate_for_zero_gradients": Mistake(
        [Patch(pcpo_module, "scaled", with_absolute_gate)],
        lambda: checks.is_free_of_scale(pcpo("l2"), VIOLATED),
        r"the scale of cost, times 1e-08, matters",
    ),
    "square_root_of_a_negative_number": Mistake(
        [Patch(cpo_module, "solve_cpo_dual", dual_of_the_theorem)],
        lambda: checks.works_with_unconverged_cg(AFTER_ONE_STEP_OF_CG, DELTA),
        r"status NONFINITE although the model is finite",
    ),
    "other_lambda_taken_unnoticed": Mistake(
        [Patch(cpo_module, "solve_cpo_dual", dual_of_the_text_books)],
        lambda: checks.works_with_unconverged_cg(AFTER_ONE_STEP_OF_CG, DELTA),
        r"gains 0\.0111, the reward step cut off at the boundary gains 0\.0111",
    ),
    "cap_ignored": Mistake(
        [Patch(pcpo_module, "capped", lambda step, max_kl: (step, jnp.zeros((), bool)))],
        outcome_of(partial(pcpo, max_kl=CAP), VIOLATED, capped),
        r"the KL of the step is .*, its cap is 0\.1",
    ),
    "kl_of_exactly_delta_refused": Mistake(
        [Patch(penalty_module, "judge", judge_strictly)],
        checks.accepts_a_kl_of_exactly_delta,
        r"a KL of exactly delta was refused",
    ),
    "pdo_adds_the_cost": Mistake(
        [Patch(penalty_module, "penalised_step", penalised(lambda used, b: -used, lambda info, used, b: used))],
        lambda: checks.pdo_follows_its_equations(GENERAL),
        r"PDO's step is not natural on g - lambda a",
    ),
    "pdo_raises_lambda_before_the_step": Mistake(
        [Patch(penalty_module, "penalised_step", penalised(raised))],
        lambda: checks.pdo_follows_its_equations(GENERAL),
        r"lambda reported: \[0\.4\], used: 0\.2",
    ),
    "pdo_without_clipping": Mistake(
        [Patch(penalty_module, "jnp", WithoutClipping())],
        lambda: checks.pdo_follows_its_equations(GENERAL),
        r"lambda is negative",
    ),
    "pdo_reports_the_new_lambda": Mistake(
        [Patch(penalty_module, "penalised_step", penalised(report=lambda info, used, b: raised(used, b)))],
        lambda: checks.pdo_follows_its_equations(GENERAL),
        r"lambda reported: \[0\.4\], used: 0\.2",
    ),
    "trpo_is_another_code_than_pdo": Mistake(
        [Patch(trpo_module, "penalised_step", damped_penalised_step)],
        lambda: checks.trpo_is_the_penalised_step_without_penalty(GENERAL),
        r"TRPO is not FPO with lambda 0: they differ by",
    ),
    "cpo_reverts_where_it_should_restore": Mistake(
        [Patch(cpo_module, "search", search_that_reverts)],
        lambda: checks.keeps_the_shortest_trial_when_restoring(VIOLATED, DELTA),
        r"not the shortest trial",
    ),
    "projects_feasible_steps": Mistake(
        [Patch(two_steps_module, "halfspace_multiplier", without_maximum)],
        outcome_of(pcpo, replace(GENERAL, b=np.array([-3.0])), on_the_boundary),
        r"the reward step was feasible, .* but was moved",
    ),
    "divides_by_the_wrong_length": Mistake(
        [Patch(two_steps_module, "halfspace_multiplier", divided_by_a_dot_a)],
        outcome_of(pcpo, VIOLATED, on_the_boundary, nearest_in_kl),
        r"a\.d \+ b is .*, not 0",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_rejected(name, monkeypatch):
    mistake = MISTAKES[name]
    mistake.check()
    for where, attribute, wrong in mistake.patches:
        (monkeypatch.setitem if isinstance(where, dict) else monkeypatch.setattr)(where, attribute, wrong)
    with pytest.raises(AssertionError, match=f"(?s){mistake.reason}"):
        mistake.check()


def test_every_row_of_the_sources_is_in_the_table():
    rows = " ".join(line[:22] for line in (__doc__ or "").splitlines())
    expanded = re.sub(r"(\w+) (\d+), (\d+), (\d+), (\d+)", r"\1 \2 \1 \3 \1 \4 \1 \5", rows)
    expanded = re.sub(r"(\w+) (\d+), (\d+), (\d+)", r"\1 \2 \1 \3 \1 \4", expanded)
    expanded = re.sub(r"(\w+) (\d+), (\d+)", r"\1 \2 \1 \3", expanded)
    for source, count in (("peers", 20), ("trap", 20)):
        found = {int(x) for x in re.findall(rf"{source} (\d+)", expanded)}
        assert found == set(range(1, count + 1)), f"{source}: {sorted(set(range(1, count + 1)) - found)} missing"


def test_every_mistake_is_in_the_table_and_the_other_way_round():
    assert set(re.findall(r"``(\w+)``", __doc__ or "")) == set(MISTAKES)
