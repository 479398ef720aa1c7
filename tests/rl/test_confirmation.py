"""What one half of a batch says of the other: against dense matrices, and where the truth is known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from pcpo.core.types import LocalModel
from pcpo.core.vectors import as_vectors
from pcpo.rl.confirmation import confirmed
from pcpo.rl.policy import policy_for
from pcpo.rl.rollout import Rollout
from pcpo.rl.surrogate import Batch, surrogate
from tests.rl.worlds import line

T, M = 4, 2
POLICY = policy_for(3, line(1), hidden=(2,))
PARAMS = POLICY.init(jax.random.key(1))


def played(seed, episodes, share=0.0):
    """Episodes whose advantages are noise, and for some share what the policy's own score says."""
    rng = np.random.default_rng(seed)
    observations, noise = rng.normal(size=(T, episodes, 3)), rng.normal(size=(T, episodes, 1))
    means = POLICY.apply(PARAMS, jnp.asarray(observations.reshape(-1, 3)))
    actions = np.asarray(POLICY.distribution.mode(means)).reshape(T, episodes, 1) + noise
    mask = np.arange(T)[:, None] < rng.integers(1, T + 1, episodes)[None]
    advantages = rng.normal(size=(1 + M, T, episodes)) + share * 10.0 * noise[None, ..., 0]
    arrays = (observations, actions, mask, advantages * mask)
    return Batch(*[jnp.asarray(x) for x in arrays], episodes=None)


def rollout_of(batch):
    zeros = jnp.zeros(batch.mask.shape)
    ends = jnp.zeros(batch.mask.shape[1], bool)
    last = batch.observations[-1]
    return Rollout(
        batch.observations, batch.actions, zeros, jnp.zeros((*zeros.shape, M)), batch.mask, ends, ~ends, last
    )


@functools.partial(jax.jit, static_argnums=1)
def look(batch, in_l2=False):
    """What is confirmed, all gradients, and H."""
    model = surrogate(POLICY, PARAMS, batch, -jnp.ones(M), 1.0, jnp.asarray(1e-3), jax.random.key(2))
    found = confirmed(POLICY, PARAMS, rollout_of(batch), batch, batch.advantages, model, 40, in_l2)
    flat, _ = as_vectors(model)
    return found, jnp.concatenate([flat.g[None], flat.a]), jax.vmap(flat.fvp)(jnp.eye(flat.g.size))


def mean_gradient(batch, row, episodes):
    """Of the surrogate over some episodes, one after the other."""

    def value(theta):
        total = jnp.zeros(())
        for e in episodes:
            log_probs = POLICY.distribution.log_prob(POLICY.apply(theta, batch.observations[:, e]), batch.actions[:, e])
            total += jnp.sum(log_probs * batch.advantages[row, :, e])
        return total / len(episodes)

    return np.asarray(ravel_pytree(jax.grad(value)(PARAMS))[0])


@pytest.mark.parametrize("in_l2", [False, True])
def test_equals_the_formula_with_dense_matrices(in_l2):
    """Of an odd number of episodes, so that the halves are not equal."""
    batch = played(0, 5, 0.1)
    found, _, matrix = look(batch, in_l2)
    for row in range(1 + M):
        first, second = (mean_gradient(batch, row, range(start, 5, 2)) for start in (0, 1))
        w = first if in_l2 and row else np.linalg.solve(np.asarray(matrix), first)
        np.testing.assert_allclose(found[row], second @ w / (first @ w), rtol=1e-6)


def test_noise_confirms_nothing():
    found = np.array([look(played(seed, 50))[0] for seed in range(40)]).ravel()
    assert abs(found.mean()) < 3.0 * found.std() / np.sqrt(found.size)


def test_what_the_halves_say_of_the_whole_is_what_fresh_episodes_show():
    """2c / (1 + c) with the mean c of forty batches, beside the same steps judged by two thousand other episodes."""
    fresh = np.mean([look(played(seed, 50, 0.03))[1] for seed in range(1000, 1040)], axis=0)
    shares, shown = [], []
    for seed in range(40):
        found, gradients, matrix = look(played(seed, 50, 0.03))
        w = np.linalg.solve(np.asarray(matrix), np.asarray(gradients).T).T
        shares.append(found)
        shown.append(np.sum(fresh * w, axis=1) / np.sum(np.asarray(gradients) * w, axis=1))
    shares, shown = np.array(shares), np.array(shown)
    assert 0.2 < shown.mean() < 0.8  # else the test would say little
    c = shares.mean()
    error = 2.0 * shares.std() / np.sqrt(shares.size)  # of 2c / (1 + c), whose slope is 2 or less
    assert abs(2.0 * c / (1.0 + c) - shown.mean()) < 3.0 * error


def test_one_episode_confirms_nothing():
    batch = played(0, 1)
    model = LocalModel(g=jnp.ones(1), a=jnp.ones((M, 1)), b=jnp.ones(M), fvp=lambda v: v)
    assert np.isnan(confirmed(POLICY, PARAMS, rollout_of(batch), batch, batch.advantages, model, 40)).all()
