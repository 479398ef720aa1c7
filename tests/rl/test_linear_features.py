"""Linear critics against dense algebra in double precision, in both precisions, and in an update."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl import linear_features
from pcpo.rl.critics import FitOptions
from pcpo.rl.linear_features import LinearCritics, LinearOptions, features, fit, predict
from pcpo.rl.networks import mlp
from pcpo.rl.options import Options
from pcpo.rl.signals import signals_of, targets
from tests.rl.worlds import collect, episode_keys, hyper, moving, random_rollout, setup

T, E, SIZE, K = 30, 12, 5, 2
LENGTHS = np.random.default_rng(7).integers(10, T + 1, E)
MASK = np.arange(T)[:, None] < LENGTHS[None, :]
TIMES = np.repeat(np.arange(T, dtype=np.int32), E)
compiled = jax.jit(fit, static_argnums=3)


def data(seed=0):
    """Observations of several sizes, one of them 0 or 1, one beyond the clip; what was not played is zero."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(T, E, SIZE)) * [1.0, 0.01, 3.0, 30.0, 1.0]
    observations[..., 4] = observations[..., 4] > 0
    targets = np.stack([50.0 + 4.0 * observations[..., 0], np.cos(observations[..., 2]) * 1e3]) + rng.normal(
        size=(T, E)
    )
    return observations * MASK[..., None], targets * MASK


def by_hand(observations, targets, ridge=1e-5):
    """The weights by a singular value decomposition, the features of the steps that were played, the targets."""
    o = np.clip(observations.reshape(-1, SIZE), -10, 10)[MASK.ravel()]
    t = (TIMES / 100.0)[MASK.ravel(), None]
    f = np.concatenate([o, o**2, t, t**2, t**3, np.ones_like(t)], axis=1)
    y = targets.reshape(K, -1)[:, MASK.ravel()].T
    size = f.shape[1]
    below = np.sqrt(ridge) * np.eye(size), np.zeros((size, K))
    return np.linalg.lstsq(np.vstack([f, below[0]]), np.vstack([y, below[1]]), rcond=None)[0].T, f, y


def test_the_features_by_hand():
    found = features(jnp.array([[2.0, -30.0]]), jnp.array([50], dtype=jnp.int32))
    np.testing.assert_allclose(found, [[2, -10, 4, 100, 0.5, 0.25, 0.125, 1]])


@pytest.mark.parametrize("ridge", [1e-5, 1e-2, 10.0])
def test_the_weights_are_those_of_dense_algebra(ridge):
    """And where the ridge is large enough for them, those of the normal equations, which rllab solves."""
    observations, targets = data()
    found = compiled(jnp.asarray(observations), jnp.asarray(targets), jnp.asarray(MASK), LinearOptions(ridge))
    expected, f, y = by_hand(observations, targets, ridge)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-6, atol=1e-8)
    normal = np.linalg.solve(f.T @ f + ridge * np.eye(f.shape[1]), f.T @ y).T
    np.testing.assert_allclose(found.weights, normal, rtol=1e-9 / ridge, atol=1e-9)


def test_float32_estimates_what_double_precision_does():
    """Also where a feature equals its square, which only the ridge decides: both get the same weight."""
    observations, y = data()
    arrays = [jnp.asarray(x, jnp.float32) for x in (observations, y)]
    found = compiled(*arrays, jnp.asarray(MASK), LinearOptions())
    assert found.weights.dtype == jnp.float32
    expected, f, _ = by_hand(observations, y)
    scale = y[:, MASK].std(axis=1)
    estimates = np.asarray(found.weights, float) @ f.T
    np.testing.assert_allclose(estimates / scale[:, None], expected @ f.T / scale[:, None], atol=1e-5)
    np.testing.assert_allclose(found.weights[:, 4], found.weights[:, SIZE + 4], rtol=0.05)


def test_float32_weights_are_those_of_double_precision_where_features_are_nearly_the_same():
    """As in traffic: many observations are 0 or 1 or hardly vary, and sizes differ by thousands."""
    rng = np.random.default_rng(2)
    o = rng.normal(size=(T, E, SIZE))
    o[..., 1] = o[..., 0] > 0
    o[..., 2] = o[..., 1] + 1e-3 * o[..., 2]
    o[..., 3] = 9.0 + 1e-2 * o[..., 3]
    o[..., 4] *= 1e-3
    observations = (o * MASK[..., None]).astype(np.float32)
    y = data()[1].astype(np.float32)
    found = compiled(jnp.asarray(observations), jnp.asarray(y), jnp.asarray(MASK), LinearOptions())
    f = np.asarray(features(jnp.asarray(observations.reshape(-1, SIZE)), jnp.asarray(TIMES)), float)[MASK.ravel()]
    size = f.shape[1]
    stacked = np.vstack([f, np.sqrt(1e-5) * np.eye(size)])
    wanted = np.vstack([y.reshape(K, -1)[:, MASK.ravel()].T.astype(float), np.zeros((size, K))])
    expected = np.linalg.lstsq(stacked, wanted, rcond=None)[0].T
    assert np.linalg.cond(stacked) > 1e4
    assert found.weights.dtype == jnp.float32
    np.testing.assert_allclose(found.weights, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("ridge", [0.0, 1e-30])
def test_weights_are_finite_without_a_ridge_that_could_be_felt(ridge):
    """A feature that is always zero, and one that equals its square."""
    observations, y = data()
    observations[..., 0] = 0.0
    found = compiled(jnp.asarray(observations), jnp.asarray(y), jnp.asarray(MASK), LinearOptions(ridge))
    assert np.all(np.isfinite(found.weights))
    shortest, f, wanted = by_hand(observations, y, 0.0)
    estimates, others = np.asarray(found.weights) @ f.T, shortest @ f.T
    np.testing.assert_allclose(estimates, others, atol=1e-7 * np.abs(wanted).max())


def test_seeds_are_fitted_at_once_in_float32():
    observations, y = data()
    pair = [np.stack([each, 2.0 * each]).astype(np.float32) for each in (observations, y)]
    both = jax.jit(jax.vmap(lambda o, t: fit(o, t, jnp.asarray(MASK), LinearOptions())))(*map(jnp.asarray, pair))
    assert both.weights.dtype == jnp.float32
    for i in range(2):
        one = compiled(jnp.asarray(pair[0][i]), jnp.asarray(pair[1][i]), jnp.asarray(MASK), LinearOptions())
        np.testing.assert_allclose(both.weights[i], one.weights, rtol=1e-5, atol=1e-6 * np.abs(one.weights).max())


def test_padding_changes_nothing():
    observations, y = data()
    dirty = np.where(MASK[..., None], observations, 1e3), np.where(MASK[None], y, -1e3)
    one, other = (
        compiled(jnp.asarray(o), jnp.asarray(t), jnp.asarray(MASK), LinearOptions()) for o, t in (data(), dirty)
    )
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)


def test_what_is_linear_in_the_features_is_estimated_exactly_and_constants_too():
    observations, _ = data()
    flat = jnp.asarray(observations.reshape(-1, SIZE))
    weights = np.random.default_rng(1).normal(size=(K, 2 * SIZE + 4))
    exact = np.where(MASK, np.asarray(weights @ features(flat, jnp.asarray(TIMES)).T).reshape(K, T, E), 0.0)
    exact[1] = np.where(MASK, 7.3, 0.0)
    found = compiled(jnp.asarray(observations), jnp.asarray(exact), jnp.asarray(MASK), LinearOptions(1e-14))
    estimates = np.asarray(predict(found, flat, jnp.asarray(TIMES))).reshape(K, T, E)
    np.testing.assert_allclose(estimates[:, MASK], exact[:, MASK], rtol=1e-7)
    zero = compiled(jnp.asarray(observations), jnp.zeros((K, T, E)), jnp.asarray(MASK), LinearOptions())
    np.testing.assert_array_equal(zero.weights, 0.0)


def test_untrained_critics_estimate_zero():
    critics = linear_features.initial(K, SIZE)
    observations, _ = data()
    flat = jnp.asarray(observations.reshape(-1, SIZE))
    np.testing.assert_array_equal(predict(critics, flat, jnp.asarray(TIMES)), np.zeros((K, T * E)))


def test_an_update_fits_linear_critics_to_its_batch():
    """In a world whose episodes end early."""
    options = Options("trpo", critic=LinearOptions(), spectrum_every=0)
    s = setup(moving(8, ends=True), seed=0, gamma=0.9, gae_lambda=0.9, cost_discounts=[1.0], options=options)
    assert isinstance(s.state.critics, LinearCritics)
    rollout = collect(s.world, s.policy, s.state.params, episode_keys(jax.random.key(3), 40))
    update = jax.jit(s.learner.update)
    state, metrics = update(s.state, rollout, s.hyper, jax.random.key(0))
    assert not metrics["refused"]
    wanted = targets(signals_of(rollout, s.critic, s.state.critics, s.hyper, s.options))
    expected = fit(rollout.observations, wanted, rollout.mask, LinearOptions())
    np.testing.assert_allclose(state.critics.weights, expected.weights, rtol=1e-6, atol=1e-9)
    # Untrained critics explain nothing of what was still to come; these do.
    np.testing.assert_allclose(metrics["unexplained_variance"], 1.0)
    again = update(state, rollout, s.hyper, jax.random.key(0))[1]
    assert np.all(again["unexplained_variance"] < 0.9)


def test_the_end_of_an_episode_is_estimated_at_the_time_at_which_it_came():
    """Only of the reward, which is bootstrapped: nothing is left of a cost that is not discounted."""
    rollout, options = random_rollout(0), Options(critic=LinearOptions(), bootstrap=True)
    critics = LinearCritics(jnp.asarray(np.random.default_rng(0).normal(size=(2, 2 * 3 + 4))))
    signals = signals_of(rollout, mlp([3, 1]), critics, hyper(1, cost_discounts=[1.0]), options)
    lengths = np.asarray(rollout.mask).sum(axis=0, dtype=np.int32)
    cut = np.asarray(rollout.truncated)
    assert len(set(lengths[cut])) < len(set(lengths))
    ends = predict(critics, rollout.final_observations, jnp.asarray(lengths))
    np.testing.assert_allclose(signals.final_values[0], np.where(cut, ends[0], 0.0), rtol=1e-12)
    np.testing.assert_array_equal(signals.final_values[1], 0.0)
    first = predict(critics, rollout.observations[0], jnp.zeros(len(cut), jnp.int32))
    np.testing.assert_allclose(signals.values[:, 0], first, rtol=1e-12)
    third = predict(critics, rollout.observations[2], jnp.full(len(cut), 2, jnp.int32))
    np.testing.assert_allclose(signals.values[:, 2], np.where(rollout.mask[2], third, 0.0), rtol=1e-12)


def test_the_settings_of_networks_are_not_asked_of_linear_critics():
    assert Options(critic=LinearOptions()).critic == LinearOptions()
    with pytest.raises(ValueError, match=r"critic\.steps is 0"):
        Options(critic=FitOptions(steps=0))
