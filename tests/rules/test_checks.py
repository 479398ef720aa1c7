"""The library passes every check of `tests.rules.checks`, on many random problems where the check is of an outcome."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from pcpo import rules
from pcpo.core import Status
from tests.problems import random_problem, random_problems
from tests.rules import checks
from tests.rules.checks import EXACT

DELTA = 0.02
SEEDS = range(1)
METRICS = {"kl": lambda p: p.H, "l2": lambda p: np.eye(len(p.g))}
exact: dict[str, Any] = {"cg_iterations": EXACT}


def far_inside(p):
    """The same problem with its constraints out of sight."""
    return replace(p, b=np.full_like(p.b, -1e6))


def just_inside(p):
    """b a little below zero: a safe start with little left under the limit."""
    return replace(p, b=np.full_like(p.b, -0.01))


@pytest.mark.parametrize("projection", ["kl", "l2", "adaptive"])
@pytest.mark.parametrize("m", [1, 3])
def test_pcpo_with_an_inactive_constraint_is_the_natural_step(projection, m):
    problems = far_inside(random_problems(seed=1, count=60, n=6, m=m))
    for p, out in zip(problems.each(), checks.run_all(rules.pcpo(DELTA, projection, **exact), problems), strict=True):
        checks.is_sound((p.g, p.a, p.b), out)
        checks.reward_step_is_natural(p, DELTA, out)
        checks.spends_the_trust_region(p, DELTA, out)
        assert out.status == Status.OK


@pytest.mark.parametrize("projection", ["kl", "l2"])
def test_pcpo_with_one_constraint(projection):
    problems = random_problems(seed=2, count=100, n=6, m=1)
    outcomes = checks.run_all(rules.pcpo(DELTA, projection, **exact), problems)
    for p, out in zip(problems.each(), outcomes, strict=True):
        L = METRICS[projection](p)
        checks.is_sound((p.g, p.a, p.b), out)
        checks.needs_no_excuse(out)
        checks.stays_in_the_half_spaces(p, out)
        checks.stops_at_the_boundary(p, DELTA, out)
        checks.is_the_nearest_point(p, DELTA, L, out)
        checks.predicts_its_own_step(p, out)
        checks.is_made_of_its_parts(p, L, out)
    assert 20 < sum(out.status == Status.PROJECTED for out in outcomes) < 80


@pytest.mark.parametrize("several", ["cyclic", "dykstra"])
@pytest.mark.parametrize("projection", ["kl", "l2"])
def test_pcpo_with_three_constraints(projection, several):
    problems = random_problems(seed=3, count=100, n=6, m=3)
    outcomes = checks.run_all(rules.pcpo(DELTA, projection, several, **exact), problems)
    for p, out in zip(problems.each(), outcomes, strict=True):
        L = METRICS[projection](p)
        checks.is_sound((p.g, p.a, p.b), out)
        checks.stays_in_the_half_spaces(p, out, tol=1e-8)
        checks.predicts_its_own_step(p, out)
        checks.is_made_of_its_parts(p, L, out)
        if several == "dykstra":
            checks.is_the_nearest_point(p, DELTA, L, out)


@pytest.mark.parametrize("rule", [rules.pcpo(DELTA, cg_iterations=3), rules.pcpo(DELTA, "l2", cg_iterations=3)])
def test_unconverged_cg_still_ends_on_the_boundary_and_says_so(rule):
    problems = random_problems(seed=4, count=60, n=8, m=1, condition=1e4)
    for p, out in zip(problems.each(), checks.run_all(rule, problems), strict=True):
        checks.stays_in_the_half_spaces(p, out)
        checks.predicts_its_own_step(p, out, rtol=1e-7)
        assert out.cg_residuals[0] > 1e-4


@pytest.mark.parametrize("iterations", [1, 3, 5])
def test_residuals_are_those_of_conjugate_gradient(iterations):
    problems = random_problems(seed=5, count=30, n=8, m=2)
    rule = rules.pcpo(DELTA, cg_iterations=iterations)
    for p, out in zip(problems.each(), checks.run_all(rule, problems), strict=True):
        checks.reports_cg_as_it_was(p, iterations, out)


@pytest.mark.parametrize("projection", ["kl", "l2", "adaptive"])
def test_the_cap_holds(projection):
    problems = replace_violation(random_problems(seed=6, count=60, n=6, m=1), 2.0)
    outcomes = checks.run_all(rules.pcpo(DELTA, projection, max_kl=0.1, **exact), problems)
    for p, out in zip(problems.each(), outcomes, strict=True):
        checks.respects_the_cap(p, 0.1, out)
        checks.predicts_its_own_step(p, out)
    assert sum(out.status == Status.KL_CAPPED for out in outcomes) > 30


def replace_violation(problems, b):
    return replace(problems, b=np.full_like(problems.b, b))


@pytest.mark.parametrize("b", [-0.3, -0.05, 0.0, 0.05, 0.3, 3.0])
def test_cpo_is_optimal(b):
    problems = replace_violation(random_problems(seed=7, count=40, n=6, m=1), b)
    outcomes = checks.run_all(rules.cpo(DELTA, line_search=False, **exact), problems)
    for p, out in zip(problems.each(), outcomes, strict=True):
        checks.is_sound((p.g, p.a, p.b), out)
        checks.is_the_optimum_of_cpo(p, DELTA, out)
        checks.predicts_its_own_step(p, out)


@pytest.mark.parametrize("seed", SEEDS)
def test_behaviour_of_pcpo(seed):
    p = random_problem(seed, n=4, m=1)
    for projection in ("kl", "l2"):
        rule = rules.pcpo(DELTA, projection, **exact)
        checks.survives_a_zero_cost_gradient(rule, p, DELTA)
        checks.is_free_of_scale(rule, p)
        checks.the_limit_matters(rule, p)
        checks.refuses_a_nan_in_any_surrogate(rule, p)
    checks.delta_matters(lambda delta: rules.pcpo(delta, **exact), far_inside(p))
    checks.forgets_the_last_violation(rules.pcpo(DELTA, **exact), p, DELTA)
    checks.takes_the_whole_step(p, checks.run(rule, p), checks.run(rule, p, refuse_all))


def refuse_all(d):
    """Surrogates that no line search would accept."""
    return checks.Surrogates(-jnp.sum(d * d), 1e6 * jnp.sum(d * d, keepdims=True), 1e6 * jnp.sum(d * d))


@pytest.mark.parametrize("seed", SEEDS)
def test_behaviour_of_the_searching_rules(seed):
    p = random_problem(seed, n=4, m=1)
    cpo = rules.cpo(DELTA, **exact)
    for rule in (rules.trpo(DELTA, **exact), rules.pdo(DELTA, **exact), cpo):
        checks.only_takes_what_improves(rule, just_inside(p))
        checks.stays_where_the_search_fails(rule, just_inside(p))
        checks.refuses_a_nan_in_any_surrogate(rule, just_inside(p))
    checks.refuses_a_nan_in_any_surrogate(cpo, replace(p, b=np.ones(1)))
    checks.keeps_the_cost_allowance(just_inside(p), DELTA)
    checks.keeps_the_shortest_trial_when_restoring(replace(p, b=np.ones(1)), DELTA)
    checks.pdo_follows_its_equations(p)
    checks.trpo_is_the_penalised_step_without_penalty(p)


def test_a_kl_of_exactly_delta():
    checks.accepts_a_kl_of_exactly_delta()


def test_cpo_after_one_step_of_cg():
    checks.works_with_unconverged_cg(unconverged(), DELTA)


def unconverged():
    """After one CG step q = 1, r = 0.9, s = 0.27 for unit g and a: q - r^2 / s = -2."""
    H = np.array([[1.0, 0.0], [0.0, 15.2]])
    return checks.Problem(H, np.array([1.0, 0.0]), np.array([[0.9, np.sqrt(0.19)]]), np.array([-0.01]))


@pytest.mark.parametrize(
    "rule", [rules.pcpo(1e-6, cg_iterations=30), rules.cpo(1e-6, line_search=False, cg_iterations=30)]
)
def test_units(rule):
    checks.prediction_is_in_the_units_of_b(rule)
    checks.step_ends_at_the_limit(rule, 1e-6)
