"""Every rule against dense float64 linear algebra, and the promises that the contract makes about all of them."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from pcpo import rules
from pcpo.core import LocalModel, Status, Surrogates
from pcpo.core.cpo_dual import DualCase
from pcpo.core.line_search import Reason
from tests.problems import Problem, as_arrays, dense_pcpo, model, natural_step, random_problem, random_problems

DELTA = 0.02
EXACT: dict[str, Any] = {"cg_iterations": 60}
RULES = {
    "trpo": rules.trpo,
    "pcpo-kl": lambda delta, **cg: rules.pcpo(delta, "kl", **cg),
    "pcpo-l2": lambda delta, **cg: rules.pcpo(delta, "l2", **cg),
    "pcpo-adaptive": lambda delta, **cg: rules.pcpo(delta, "adaptive", **cg),
    "cpo": rules.cpo,
    "pdo": lambda delta, **cg: rules.pdo(delta, initial_multiplier=0.5, **cg),
    "fpo": lambda delta, **cg: rules.fpo(delta, 0.5, **cg),
}


def solve_all(rule, problems: Problem, dtype=jnp.float64, surrogates: bool = True):
    """Steps and infos of a rule on a batch of problems, in one compiled call."""
    m = problems.b.shape[1]

    def one(*dense):
        step, _, info = rule.update(model(*dense, surrogates=surrogates), rule.init(m))
        return step, info

    return jax.jit(jax.vmap(one))(*as_arrays(problems, dtype))


def relative_error(found, expected):
    return np.linalg.norm(np.asarray(found) - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("several", ["cyclic", "dykstra"])
@pytest.mark.parametrize("projection", ["kl", "l2"])
@pytest.mark.parametrize("m", [0, 1, 2, 3, 4])
def test_pcpo_is_the_formula(m, projection, several):
    problems = random_problems(seed=10 + m, count=150, n=10, m=m)
    steps, info = solve_all(rules.pcpo(DELTA, projection, several, **EXACT), problems)
    active = 0
    for i, p in enumerate(problems.each()):
        expected = dense_pcpo(p, DELTA, projection, several)
        assert relative_error(steps[i], expected) < 1e-8, i
        projected = not np.allclose(expected, natural_step(p, DELTA), rtol=1e-12)
        assert info.status[i] == (Status.PROJECTED if projected else Status.OK)
        active += projected
    assert m == 0 or 150 > active > 45


@pytest.mark.parametrize("projection", ["kl", "l2"])
@pytest.mark.parametrize("m", [1, 3])
def test_pcpo_reports_the_step_that_it_returns(m, projection):
    problems = random_problems(seed=20 + m, count=100, n=10, m=m)
    steps, info = solve_all(rules.pcpo(DELTA, projection, "dykstra", **EXACT), problems)
    for i, p in enumerate(problems.each()):
        d = np.asarray(steps[i])
        np.testing.assert_allclose(info.predicted_reward[i], p.g @ d, rtol=1e-9)
        np.testing.assert_allclose(info.predicted_costs[i], p.a @ d, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(info.predicted_kl[i], 0.5 * d @ p.H @ d, rtol=1e-8)
        L = p.H if projection == "kl" else np.eye(10)
        rebuilt = info.eta[i] * np.linalg.solve(p.H, p.g) - info.multipliers[i] @ np.linalg.solve(L, p.a.T).T
        assert relative_error(rebuilt, d) < 1e-8
        assert np.all(info.multipliers[i] >= 0.0)


def test_pcpo_takes_a_metric_of_ones_own_on_the_tree_of_the_user():
    scales = {"w": np.array([[1.0, 4.0], [9.0, 2.0]]), "b": np.array([5.0])}
    metric = rules.Metric("diagonal", solve=lambda a: jax.tree.map(lambda x, s: x / s, a, scales))
    p = random_problem(seed=3, n=5, m=1)
    H, flat_g, flat_a, b = as_arrays(Problem(p.H, p.g, p.a, np.array([2.0])))

    def tree(x):
        return {"b": x[..., :1], "w": x[..., 1:].reshape(*x.shape[:-1], 2, 2)}

    def fvp(t):
        return tree(H @ jnp.concatenate([t["b"], t["w"].reshape(-1)]))

    rule = rules.pcpo(DELTA, metric, **EXACT)
    step, _, info = rule.update(LocalModel(tree(flat_g), tree(flat_a), b, fvp), rule.init(1))
    L = np.diag([5.0, 1.0, 4.0, 9.0, 2.0])
    d0 = natural_step(p, DELTA)
    w = np.linalg.solve(L, p.a[0])
    expected = d0 - (p.a[0] @ d0 + 2.0) / (p.a[0] @ w) * w
    assert relative_error(np.concatenate([step["b"], step["w"].reshape(-1)]), expected) < 1e-8
    assert jax.tree.map(jnp.shape, step) == {"b": (1,), "w": (2, 2)}
    np.testing.assert_allclose(info.predicted_kl, 0.5 * expected @ p.H @ expected, rtol=1e-8)


@pytest.mark.parametrize("m", [0, 1, 4])
@pytest.mark.parametrize("name", ["trpo", "pdo", "fpo"])
def test_penalised_rules_are_the_natural_step_on_the_penalised_gradient(name, m):
    problems = random_problems(seed=30 + m, count=150, n=10, m=m)
    steps, info = solve_all(RULES[name](DELTA, **EXACT), problems, surrogates=False)
    multiplier = 0.0 if name == "trpo" else 0.5
    for i, p in enumerate(problems.each()):
        objective = p.g - multiplier * p.a.sum(axis=0)
        expected = natural_step(replace(p, g=objective), DELTA)
        assert relative_error(steps[i], expected) < 1e-8
        np.testing.assert_allclose(info.predicted_kl[i], DELTA, rtol=1e-9)
        np.testing.assert_allclose(info.predicted_reward[i], p.g @ expected, rtol=1e-8)
        np.testing.assert_array_equal(info.multipliers[i], np.full(m, multiplier))


def scipy_cpo(p: Problem, delta: float) -> tuple[np.ndarray, bool]:
    """CPO's problem by SLSQP, in coordinates where the trust region is the unit ball; and whether it is feasible."""
    root = np.linalg.cholesky(p.H).T / np.sqrt(2 * delta)  # u = root d
    g, a = np.linalg.solve(root.T, p.g), np.linalg.solve(root.T, p.a[0])
    scale = np.linalg.norm(a)
    if p.b[0] / scale > 1.0:
        return np.zeros_like(p.g), False
    start = -min(1.0, max(0.0, p.b[0] / scale)) * a / scale
    found = minimize(
        lambda u: -(g @ u) / np.linalg.norm(g),
        start,
        jac=lambda _: -g / np.linalg.norm(g),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda u: 1.0 - u @ u, "jac": lambda u: -2.0 * u},
            {"type": "ineq", "fun": lambda u: -(a @ u + p.b[0]) / scale, "jac": lambda _: -a / scale},
        ],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return np.linalg.solve(root, found.x), True


@pytest.mark.parametrize("violation", [0.0, 0.02, 0.1, 0.5])
def test_cpo_agrees_with_a_general_solver(violation):
    """From b = 0 exactly, and where the half-space hardly cuts the trust region, cuts it, or may miss it."""
    problems = random_problems(seed=40, count=120, n=6, m=1, violation=violation)
    steps, info = solve_all(rules.cpo(DELTA, line_search=False, **EXACT), problems)
    seen = set()
    for i, p in enumerate(problems.each()):
        d, case = np.asarray(steps[i]), DualCase(int(info.extra["case"][i]))
        expected, feasible = scipy_cpo(p, DELTA)
        w = np.linalg.solve(p.H, p.a[0])
        reach = np.sqrt(2 * DELTA * (p.a[0] @ w))
        seen.add("inside" if p.b[0] <= -reach else (case, np.sign(p.b[0])))
        assert 0.5 * d @ p.H @ d <= DELTA * (1 + 1e-9)
        if feasible:
            assert case != DualCase.INFEASIBLE
            assert p.a[0] @ d + p.b[0] <= 1e-9 * reach
            best = np.sqrt(2 * DELTA * (p.g @ np.linalg.solve(p.H, p.g)))
            assert abs(p.g @ d - p.g @ expected) <= 1e-6 * best
        else:
            assert case == DualCase.INFEASIBLE
            assert relative_error(d, -2 * DELTA / reach * w) < 1e-8
            assert info.status[i] == Status.RECOVERY
        rebuilt = info.eta[i] * np.linalg.solve(p.H, p.g) - info.multipliers[i, 0] * w
        assert relative_error(rebuilt, d) < 1e-7
        assert info.multipliers[i, 0] >= 0.0
    if violation == 0.0:
        assert seen == {(DualCase.INACTIVE, 0.0), (DualCase.ACTIVE, 0.0)}
    if violation == 0.5:
        assert "inside" in seen, "the half-space always cut the trust region"
    if violation == 0.1:
        assert seen - {"inside"} == {
            (DualCase.INACTIVE, -1.0),
            (DualCase.INACTIVE, 1.0),
            (DualCase.ACTIVE, -1.0),
            (DualCase.ACTIVE, 1.0),
            (DualCase.INFEASIBLE, 1.0),
        }


@pytest.mark.parametrize("several", ["cyclic", "dykstra"])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("projection", ["kl", "l2"])
def test_the_constraint_holds_after_three_steps_of_cg(projection, m, several):
    """Denominators are made with the directions that are used, so a poor H^-1 a still ends on the half-space."""
    problems = random_problems(seed=50 + m, count=100, n=40, m=m, condition=1e4, violation=3.0)
    steps, info = solve_all(rules.pcpo(DELTA, projection, several, cg_iterations=3), problems)
    assert np.median(info.cg_residuals[:, 0]) > 0.1, "CG has converged: this tests nothing"
    left = np.einsum("kmn,kn->km", problems.a, steps) + problems.b
    scale = np.maximum(1.0, np.abs(problems.b).max(axis=1, keepdims=True))
    assert np.all(left <= 1e-8 * scale)
    active = np.asarray(info.multipliers) > 0.0
    if m == 1:
        assert active.sum() > 40
        assert np.all(np.abs(left[active]) <= 1e-12 * np.broadcast_to(scale, left.shape)[active])


def test_cpo_ends_on_the_half_space_after_three_steps_of_cg():
    problems = random_problems(seed=55, count=100, n=40, m=1, condition=1e4, violation=0.05)
    steps, info = solve_all(rules.cpo(DELTA, line_search=False, cg_iterations=3), problems)
    active = np.asarray(info.extra["case"]) == DualCase.ACTIVE
    left = np.einsum("kmn,kn->km", problems.a, steps) + problems.b
    assert active.sum() > 20
    assert np.all(np.abs(left[active]) <= 1e-12)


def test_cpo_never_leaves_a_half_space_unnoticed_after_one_step_of_cg():
    """H^-1 g and H^-1 a are so poor that a . H^-1 g may exceed what Cauchy and Schwarz allow; b < 0."""
    problems = random_problems(seed=55, count=400, n=40, m=1, condition=1e8)
    rule = rules.cpo(DELTA, line_search=False, cg_iterations=1)
    _, free = solve_all(rule, replace(problems, b=np.full_like(problems.b, -1e9)))
    share = np.random.default_rng(0).uniform(0.3, 1.0, size=problems.b.shape)
    b = -share * np.abs(np.asarray(free.predicted_costs))
    _, info = solve_all(rule, replace(problems, b=b))
    assert np.all(np.asarray(info.predicted_costs) + b <= 1e-12 * np.abs(b))
    assert np.all(np.asarray(info.multipliers) >= 0.0)
    assert np.mean(np.asarray(info.extra["case"]) == DualCase.ACTIVE) > 0.9


@pytest.mark.parametrize("name", RULES)
def test_three_deltas_and_limits_trace_once(name):
    traces = []

    @jax.jit
    def update(delta, limit, *dense):
        traces.append(name)
        H, g, a, cost = dense
        rule = RULES[name](delta)
        return rule.update(model(H, g, a, cost - limit), rule.init(1))[0]

    dense = as_arrays(random_problem(seed=5, n=10, m=1))
    steps = [
        update(jnp.asarray(delta), jnp.asarray(limit), *dense)
        for delta, limit in [(1e-4, 0.0), (1e-3, 1.0), (1e-2, -1.0)]
    ]
    assert len(traces) == 1
    assert len({float(jnp.linalg.norm(step)) for step in steps}) == 3
    deltas = jnp.array([1e-4, 1e-3, 1e-2])
    jax.vmap(update, in_axes=(0, None, None, None, None, None))(deltas, jnp.asarray(0.0), *dense)


@pytest.mark.parametrize("name", RULES)
def test_float32_stays_float32_and_is_right(name):
    problems = random_problems(seed=60, count=100, n=10, m=1, condition=10.0)
    rule = RULES[name](DELTA, cg_iterations=30)
    exact, _ = solve_all(rule, problems)
    steps, info = solve_all(rule, problems, jnp.float32)
    assert steps.dtype == jnp.float32
    assert info.predicted_kl.dtype == jnp.float32
    errors = np.linalg.norm(np.asarray(steps, float) - np.asarray(exact), axis=1) / np.linalg.norm(exact, axis=1)
    # A rule with a line search, or with a choice, may decide a tie otherwise in float32: nearly all must agree.
    assert np.mean(errors < 2e-4) >= 0.97, np.sort(errors)[-5:]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_does_not_see_how_the_parameters_are_shaped(name):
    p = random_problem(seed=61, n=7, m=1)
    H, g, a, b = as_arrays(p)
    rule = RULES[name](DELTA, **EXACT)
    flat, _, _ = rule.update(model(H, g, a, b), rule.init(1))

    def tree(x):
        return [x[..., 0], {"kernel": x[..., 1:].reshape(*x.shape[:-1], 3, 2)}]

    def vector(t):
        return jnp.concatenate([t[0][None], t[1]["kernel"].reshape(-1)])

    nested = LocalModel(
        tree(g),
        tree(a),
        b,
        lambda t: tree(H @ vector(t)),
        lambda t: Surrogates(g @ vector(t), a @ vector(t), 0.5 * vector(t) @ (H @ vector(t))),
    )
    step, _, _ = rule.update(nested, rule.init(1))
    np.testing.assert_allclose(vector(step), flat, rtol=1e-9)


@pytest.mark.parametrize("name", ["pcpo-kl", "pcpo-l2"])
def test_max_kl_shortens_the_step_along_itself(name):
    p = replace(random_problem(seed=62, n=10, m=1), b=np.array([30.0]))
    dense = as_arrays(p)
    projection = name[5:]
    free = rules.pcpo(DELTA, projection, **EXACT)
    step, _, info = free.update(model(*dense), free.init(1))
    assert info.predicted_kl > 10.0
    capped = rules.pcpo(DELTA, projection, max_kl=0.5, **EXACT)
    short, _, short_info = capped.update(model(*dense), capped.init(1))
    assert short_info.status == Status.KL_CAPPED
    np.testing.assert_allclose(short_info.predicted_kl, 0.5, rtol=1e-9)
    factor = math.sqrt(0.5 / float(info.predicted_kl))
    np.testing.assert_allclose(short, factor * step, rtol=1e-9)
    np.testing.assert_allclose(short_info.multipliers, factor * info.multipliers, rtol=1e-9)
    np.testing.assert_allclose(short_info.predicted_costs, factor * info.predicted_costs, rtol=1e-9)


def test_line_search_accepts_the_first_trial_that_holds():
    """g = 1, H = 1: step sqrt(2 delta) = 0.2; the reward surrogate d - 6 d^2 is positive below d = 1/6."""
    one = jnp.ones(1)
    local = LocalModel(
        one,
        jnp.zeros((0, 1)),
        jnp.zeros(0),
        lambda v: v,
        lambda d: Surrogates(d[0] - 6.0 * d[0] ** 2, jnp.zeros(0), 0.5 * d[0] ** 2),
    )
    rule = rules.trpo(0.02)
    step, _, info = rule.update(local, rule.init(0))
    np.testing.assert_allclose(step, 0.2 * 0.8)
    assert info.extra["backtracks"] == 1
    assert info.extra["line_search"] == Reason.ACCEPTED
    np.testing.assert_allclose(info.predicted_kl, 0.02 * 0.64)
    np.testing.assert_allclose(info.eta, 0.16)
