"""Gradients, surrogates and Fisher products of a batch against the plain formulas."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.core.types import LocalModel, Surrogates
from pcpo.rl.policy import Policy, policy_for
from pcpo.rl.spaces import Box, Discrete
from pcpo.rl.surrogate import Batch, surrogate
from tests.rl.worlds import line

T, E = 6, 5
LENGTHS = np.array([6, 3, 1, 5, 6])
DAMPING = 1e-3
SPACES = pytest.mark.parametrize("space", [line(2), Discrete(3)], ids=["box", "discrete"])


def batch(m, space, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(T)[:, None] < LENGTHS[None, :]
    actions = rng.integers(0, 3, (T, E)) if isinstance(space, Discrete) else rng.normal(size=(T, E, 2))
    advantages = rng.normal(size=(1 + m, T, E)) * mask
    return Batch(*[jnp.asarray(x) for x in (rng.normal(size=(T, E, 3)), actions, mask, advantages)], episodes=None)


def full(b):
    return b._replace(mask=jnp.ones_like(b.mask))


def padded(b):
    """What lies after the end of an episode may be anything but an advantage."""
    wide = b.mask[..., None]
    discrete = b.actions.ndim == 2
    actions = jnp.where(b.mask, b.actions, 2) if discrete else jnp.where(wide, b.actions, 1e3)
    return b._replace(observations=jnp.where(wide, b.observations, 1e3), actions=actions)


def with_empty_episodes(b):
    def pad(x, axis):
        return jnp.concatenate([x, jnp.zeros_like(x)], axis=axis)

    return Batch(pad(b.observations, 1), pad(b.actions, 1), pad(b.mask, 1), pad(b.advantages, 2))


def there(params):
    """A step that no surrogate calls small."""
    return jax.tree.map(lambda x: 0.1 * jnp.ones_like(x), params)


class Looked(NamedTuple):
    """What a model says: computed by one program, since eager operations compile one by one."""

    g: Any
    a: Any
    b: Any
    hv: Any
    """``H v`` for v of ones."""
    changes: Surrogates
    """At `there`."""
    slopes: Surrogates
    """Derivatives of the changes at zero."""
    curved: Any
    """The Hessian of the KL divergence of the whole batch at zero, times v."""


class Case(NamedTuple):
    """A batch, and what the model made of it says."""

    policy: Policy
    params: Any
    batch: Batch
    found: Looked


def parameters(policy, space):
    params = policy.init(jax.random.key(1))
    return params if isinstance(space, Discrete) else params | {"distribution": jnp.array([0.3, -0.4])}


@functools.cache
def case(m: int, space: Box | Discrete, change: Any = None, fraction: float = 0.5, damping: float = DAMPING) -> Case:
    policy = policy_for(3, space, hidden=(4,))
    params = parameters(policy, space)
    b = batch(m, space) if change is None else change(batch(m, space))

    def look(params):
        model = surrogate(policy, params, b, -jnp.ones(m), fraction, jnp.asarray(damping), jax.random.key(2))
        evaluate = evaluate_of(model)
        zero, v = (jax.tree.map(make, params) for make in (jnp.zeros_like, jnp.ones_like))
        curved = jax.jvp(jax.grad(lambda d: evaluate(d).kl), (zero,), (v,))[1]
        slopes = jax.jacrev(evaluate)(zero)
        return Looked(model.g, model.a, model.b, model.fvp(v), evaluate(there(params)), slopes, curved)

    return Case(policy, params, b, jax.jit(look)(params))


def evaluate_of(model: LocalModel):
    assert model.evaluate is not None
    return model.evaluate


def plain(policy, b, row):
    """The surrogate episode by episode: sum over the steps that were played, mean over episodes."""

    def value(theta, old):
        total = jnp.zeros(())
        for e, length in enumerate(LENGTHS):
            s, a, A = b.observations[:length, e], b.actions[:length, e], b.advantages[row, :length, e]
            now, then = (policy.distribution.log_prob(policy.apply(x, s), a) for x in (theta, old))
            total += jnp.sum((jnp.exp(now - then) - 1.0) * A)
        return total / E

    return value


def close(x, y, atol=1e-13):
    assert jax.tree.structure(x) == jax.tree.structure(y)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=atol), x, y)


@SPACES
def test_gradients_and_changes_are_those_of_the_plain_surrogates(space):
    policy, params, b, found = case(2, space)

    def both(row):
        value = plain(policy, b, row)
        moved = jax.tree.map(jnp.add, params, there(params))
        return jax.grad(value)(params, params), value(moved, params)

    gradients, changes = zip(*jax.jit(lambda: [both(row) for row in range(3)])(), strict=True)
    close(found.g, gradients[0])
    for i in range(2):
        close(jax.tree.map(lambda x, i=i: x[i], found.a), gradients[1 + i])
    np.testing.assert_allclose([found.changes.reward, *found.changes.costs], changes, rtol=1e-11)


@SPACES
def test_the_divergence_is_the_mean_over_the_steps_that_were_played(space):
    policy, params, b, found = case(2, space)
    played = np.asarray(b.mask).ravel()
    observations = b.observations.reshape(-1, 3)[played]

    def kl(theta):
        return policy.distribution.kl(policy.apply(params, observations), policy.apply(theta, observations))

    each = jax.jit(kl)(jax.tree.map(jnp.add, params, there(params)))
    assert len(each) == LENGTHS.sum()
    assert found.changes.kl == pytest.approx(float(np.mean(each)), rel=1e-12)


@SPACES
@pytest.mark.parametrize(("compiled", "dtype"), [(True, jnp.float32), (True, jnp.float64), (False, jnp.float64)])
def test_evaluate_is_exactly_zero_at_zero(space, compiled, dtype):
    policy = policy_for(3, space)
    params, b = (
        jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)
        for tree in (policy.init(jax.random.key(1)), batch(1, space))
    )

    def at_zero(params, b):
        damping = jnp.asarray(DAMPING, dtype)
        model = surrogate(policy, params, b, -jnp.ones(1, dtype), 0.5, damping, jax.random.key(2))
        return evaluate_of(model)(jax.tree.map(jnp.zeros_like, params))

    found = (jax.jit(at_zero) if compiled else at_zero)(params, b)
    assert found.reward == 0.0
    assert found.kl == 0.0
    np.testing.assert_array_equal(found.costs, [0.0])


@SPACES
@pytest.mark.parametrize("m", [0, 2])
def test_the_gradient_of_evaluate_at_zero_is_g_and_a(space, m):
    _, params, _, found = case(m, space)
    close(found.slopes.reward, found.g)
    close(found.slopes.costs, found.a)
    close(found.slopes.kl, jax.tree.map(jnp.zeros_like, params))
    assert all(x.shape[0] == m for x in jax.tree.leaves(found.a))


@SPACES
def test_the_curvature_of_evaluate_is_h_on_the_whole_batch(space):
    """With every step in the sample, H less its damping is the Hessian of ``evaluate(d).kl``.

    Of a batch with padding more steps would be asked for than there are, and some drawn twice; hence a full mask.
    """
    found = case(0, space, full, 1.0, 0.0).found
    close(found.hv, found.curved)


def test_half_of_the_batch_is_not_all_of_it():
    found = case(0, line(2), full, 0.5, 0.0).found
    gaps = jax.tree.map(lambda x, y: np.max(np.abs(x - y)), found.hv, found.curved)
    assert max(jax.tree.leaves(gaps)) > 1e-3


def test_damping_is_added_once():
    damped, without = case(2, line(2)).found, case(2, line(2), damping=0.0).found
    close(damped.hv, jax.tree.map(lambda x: x + DAMPING, without.hv))


def test_violations_are_passed_on():
    np.testing.assert_array_equal(case(2, line(2)).found.b, -np.ones(2))


@SPACES
def test_padding_contributes_nothing(space):
    clean, dirty = case(2, space).found, case(2, space, padded).found
    close(dirty, clean)


def test_an_empty_episode_counts_as_an_episode():
    """Everything divides by the number of episodes, not of steps: episodes without advantages dilute all."""
    one, two = case(2, line(2)).found, case(2, line(2), with_empty_episodes).found
    close(two.g, jax.tree.map(lambda x: 0.5 * x, one.g))
    close(two.a, jax.tree.map(lambda x: 0.5 * x, one.a))
