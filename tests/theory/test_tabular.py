"""The tabular problems are exact: against enumeration, truncated sums, finite differences and automatic derivatives."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo import rules
from pcpo.experiments import tabular
from pcpo.experiments.tabular import CMDP, discounted, episodic

GAMMA, HORIZON = 0.8, 7
WAYS = {"discounted": partial(discounted, gamma=GAMMA), "episodic": partial(episodic, horizon=HORIZON)}
LENGTHS = {"discounted": 1 / (1 - GAMMA), "episodic": HORIZON}


Problem = tuple[CMDP, jax.Array, jax.Array]


def problem(key: jax.Array, states: int = 4, actions: int = 3) -> Problem:
    """A problem, a policy, and another one some way off."""
    keys = jax.random.split(key)
    old, new = jax.random.normal(keys[0], (2, states, actions))
    return tabular.random_cmdp(keys[1], states, actions), old, old + new


@cache
def problems() -> Problem:
    """Five of them, stacked."""
    return jax.jit(jax.vmap(problem))(jax.random.split(jax.random.key(0), 5))


def for_all(function):
    """The function on all problems, compiled anew: a planted fault must not meet an older compilation."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda given: function(*given)))(problems()))


def finite_differences(function, theta: jax.Array, step: float = 1e-5):
    """Central differences of a function of theta, one coordinate after the other."""
    directions = jnp.eye(theta.size).reshape(theta.size, *theta.shape)
    differences = jax.vmap(
        lambda v: jax.tree.map(jnp.subtract, function(theta + step * v), function(theta - step * v))
    )(directions)
    return jax.tree.map(lambda x: x.reshape(theta.shape) / (2 * step), differences)


# The checks are functions of their own, so that the last test can plant faults and see them fail.


def check_gradients(way: str) -> None:
    def one(cmdp, theta, _):

        def returns(t):
            at = WAYS[way](cmdp, t)
            return at.J_R, at.J_C

        closed = tabular.policy_gradients(WAYS[way](cmdp, theta))
        return closed, finite_differences(returns, theta), jax.jacrev(returns)(theta)

    closed, differences, automatic = for_all(one)
    for i in range(2):
        np.testing.assert_allclose(closed[i], differences[i], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(closed[i], automatic[i], rtol=1e-10, atol=1e-12)


def check_fisher(way: str) -> None:
    def one(cmdp, theta, _):
        at, zero, n = WAYS[way](cmdp, theta), jnp.zeros_like(theta), theta.size
        old_new = jax.hessian(lambda d: tabular.surrogates(at, d).kl)(zero)
        new_old = jax.hessian(lambda d: tabular.mean_kl(theta + d, theta, at.occupancy))(zero)
        products = jax.vmap(lambda v: tabular.fisher_product(at, v))(jnp.eye(n).reshape(n, *theta.shape))
        return tuple(x.reshape(n, n) for x in (products, old_new, new_old))

    products, old_new, new_old = for_all(one)
    np.testing.assert_allclose(products, old_new, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(products, new_old, rtol=1e-10, atol=1e-13)


def check_identity(way: str) -> None:
    """Eq. policies_identity: the change of J is the old advantage under new actions *and new states*."""

    def one(cmdp, old_theta, new_theta):
        old, new = WAYS[way](cmdp, old_theta), WAYS[way](cmdp, new_theta)
        visited = new.visits[:, :, None] * new.policy[None]
        sums = jnp.sum(visited * old.A_R), jnp.sum(visited * old.A_C)
        return sums, (new.J_R - old.J_R, new.J_C - old.J_C)

    expected, changes = for_all(one)
    np.testing.assert_allclose(expected, changes, rtol=1e-9)


def check_directions() -> None:
    """`Comparison.kl` is new against old, `kl_old_new` is what `Surrogates.kl` says."""

    def one(cmdp, old_theta, new_theta):
        old, new = discounted(cmdp, old_theta, GAMMA), discounted(cmdp, new_theta, GAMMA)
        it = tabular.compare(old, new)
        evaluated = tabular.surrogates(old, new_theta - old_theta).kl
        return (1 - GAMMA) * old.visits[0], old.policy, new.policy, it.kl, it.kl_old_new, evaluated

    d, p, q, kl, kl_old_new, evaluated = for_all(one)
    np.testing.assert_allclose(kl, np.einsum("ns,nsa->n", d, q * np.log(q / p)), rtol=1e-11)
    np.testing.assert_allclose(kl_old_new, np.einsum("ns,nsa->n", d, p * np.log(p / q)), rtol=1e-11)
    np.testing.assert_allclose(evaluated, kl_old_new, rtol=1e-11)


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_those_of_the_returns(way: str) -> None:
    check_gradients(way)


@pytest.mark.parametrize("way", WAYS)
def test_fisher_is_the_hessian_of_the_kl_in_both_directions(way: str) -> None:
    check_fisher(way)


@pytest.mark.parametrize("way", WAYS)
def test_advantage_identity(way: str) -> None:
    check_identity(way)


def test_directions_of_the_divergences() -> None:
    check_directions()


def test_discounted_return_is_the_truncated_sum() -> None:
    cmdp, theta, _ = jax.tree.map(lambda x: x[0], problems())
    at = discounted(cmdp, theta, GAMMA)
    policy, moves = np.asarray(at.policy), np.asarray(cmdp.transitions)
    state, visits = np.asarray(cmdp.start), np.zeros(4)
    for t in range(250):  # 0.8^250 is 1e-25
        visits += GAMMA**t * state
        state = np.einsum("s,sa,sat->t", state, policy, moves)
    np.testing.assert_allclose(at.visits[0], visits, rtol=1e-13)
    np.testing.assert_allclose(at.J_R, visits @ np.sum(policy * np.asarray(cmdp.reward), axis=1), rtol=1e-12)
    np.testing.assert_allclose(at.J_C, visits @ np.sum(policy * np.asarray(cmdp.cost), axis=1), rtol=1e-12)


def test_episodic_return_is_the_sum_over_all_trajectories() -> None:
    """Two states, two actions, four steps: 2^8 trajectories, each with its probability."""
    cmdp, theta, _ = problem(jax.random.key(9), states=2, actions=2)
    at = episodic(cmdp, theta, 4)
    policy, moves, start = np.asarray(at.policy), np.asarray(cmdp.transitions), np.asarray(cmdp.start)
    reward, cost = np.asarray(cmdp.reward), np.asarray(cmdp.cost)
    J_R = J_C = 0.0
    visits = np.zeros((4, 2))
    for path in itertools.product(range(2), repeat=8):
        states, actions = path[:4], path[4:]
        p = start[states[0]] * np.prod([policy[s, a] for s, a in zip(states, actions, strict=True)])
        p *= np.prod([moves[states[t], actions[t], states[t + 1]] for t in range(3)])
        J_R += p * sum(reward[s, a] for s, a in zip(states, actions, strict=True))
        J_C += p * sum(cost[s, a] for s, a in zip(states, actions, strict=True))
        visits[range(4), states] += p
    np.testing.assert_allclose([at.J_R, at.J_C], [J_R, J_C], rtol=1e-12)
    np.testing.assert_allclose(at.visits, visits, rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_visits_advantages_and_natural_gradients_are_consistent(way: str) -> None:
    def one(cmdp, theta, _):
        at = WAYS[way](cmdp, theta)
        expected = [jnp.sum(at.policy[None] * A, axis=-1) for A in (at.A_R, at.A_C)]
        products = [tabular.fisher_product(at, v) for v in tabular.natural_gradients(at)]
        return jnp.sum(at.visits), jnp.sum(at.occupancy), expected, products, tabular.policy_gradients(at)

    length, total, expected, products, gradients = for_all(one)
    np.testing.assert_allclose(length, LENGTHS[way], rtol=1e-12)
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    np.testing.assert_allclose(expected, np.zeros_like(expected), atol=1e-12)
    np.testing.assert_allclose(products, gradients, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("way", WAYS)
def test_local_model_keeps_its_contract(way: str) -> None:
    def one(cmdp, theta, _):
        at = WAYS[way](cmdp, theta)
        model = tabular.local_model(at, limit=at.J_C - 0.3)
        assert model.evaluate is not None
        zero = jnp.zeros_like(theta)
        return model.b, model.evaluate(zero), (model.g, model.a), jax.jacrev(model.evaluate)(zero)

    b, nothing, gradients, derivative = for_all(one)
    np.testing.assert_allclose(b, 0.3, rtol=1e-12)
    assert all(np.all(x == 0.0) for x in nothing)  # exactly zero, not nearly
    np.testing.assert_allclose(derivative.reward, gradients[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(derivative.costs, gradients[1], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(derivative.kl, np.zeros_like(derivative.kl), atol=1e-15)


def test_the_rule_takes_the_closed_form_step_for_many_problems_at_once() -> None:
    """PCPO, jitted and vmapped over the models themselves, against natural gradients in closed form."""
    delta, b = 1e-3, 0.05

    def one(key):
        cmdp, theta, _ = problem(key)
        at = discounted(cmdp, theta, GAMMA)
        rule = rules.pcpo(delta, cg_iterations=60)
        step, _, _ = rule.update(tabular.local_model(at, limit=at.J_C - b, damping=1e-12), rule.init(1))
        (g, a), (v, w) = tabular.policy_gradients(at), tabular.natural_gradients(at)
        eta = jnp.sqrt(2 * delta / jnp.sum(g * v))
        nu = jnp.maximum(0.0, (eta * jnp.sum(a * v) + b) / jnp.sum(a * w))
        return step, eta * v - nu * w, jnp.sum(a * step) + b, nu

    steps, expected, left, nu = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(13), 50))
    centred = expected - jnp.mean(expected, axis=-1, keepdims=True)  # H does not see a constant for a state
    np.testing.assert_allclose(steps - jnp.mean(steps, axis=-1, keepdims=True), centred, rtol=1e-6, atol=1e-8)
    assert int(jnp.sum(nu > 0)) > 10
    np.testing.assert_allclose(left[nu > 0], 0.0, atol=1e-12)


def test_faults_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check fails when the mistake that it is there for is planted."""
    policy_gradients, mean_kl = tabular.policy_gradients, tabular.mean_kl

    def per_step(at):  # the paper's a: gradient of E[A_C], not of J_C
        return tuple((1 - GAMMA) * x for x in policy_gradients(at))

    def uncentred(at, v, damping=0.0):  # diag(pi) without - pi pi'
        return at.occupancy[:, None] * at.policy * v + damping * v

    def unweighted(at, A):  # advantages of the episode without the time they belong to
        return jnp.sum(at.visits, axis=0)[:, None] * A[0]

    def any_action(cmdp, policy):  # states move as if actions did not matter
        return jnp.mean(cmdp.transitions, axis=1)

    def swapped(p, q, weights):
        return mean_kl(q, p, weights)

    plants = (
        ("policy_gradients", per_step, lambda: check_gradients("discounted")),
        ("fisher_product", uncentred, lambda: check_fisher("discounted")),
        ("_weighted", unweighted, lambda: check_gradients("episodic")),
        ("mean_kl", swapped, check_directions),
        ("_state_to_state", any_action, lambda: check_identity("episodic")),
    )
    for name, fault, check in plants:
        with monkeypatch.context() as patch:
            patch.setattr(tabular, name, fault)
            with pytest.raises(AssertionError):
                check()
