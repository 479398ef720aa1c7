"""One natural gradient step of a critic against dense algebra, its radius, its scales and its refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from pcpo.rl import critics as critics_
from pcpo.rl.critics import Critics, FitOptions, fit, initial, predict
from pcpo.rl.networks import Network, mlp
from pcpo.rl.signals import Signals, unexplained

T, E, K = 12, 10, 2
NETWORK = mlp([3, 4, 1])
LENGTHS = np.random.default_rng(7).integers(5, T + 1, E)
MASK = np.arange(T)[:, None] < LENGTHS[None, :]
DAMPING, RADIUS = 1e-3, 0.01
EXACT = FitOptions(steps=1, fraction=1.0, cg_iterations=60)


def data(seed=0):
    """Observations, and targets that depend on them; what was not played is zero, as in a rollout."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(T, E, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -1.0]
    targets = np.stack([3.0 * observations[..., 0] + 50.0, np.sin(observations[..., 1]) - observations[..., 2]])
    return jnp.asarray(observations * MASK[..., None]), jnp.asarray(targets * MASK)


def untrained(network=NETWORK):
    return initial(network, jax.random.key(0), K, 3)


compiled: Any = jax.jit(fit, static_argnums=(0, 8))


def fitted(observations, targets, options=EXACT, radius=RADIUS, mask=MASK, network=NETWORK, fit=compiled) -> Critics:
    numbers = (jnp.asarray(mask), jnp.asarray(radius), jnp.asarray(DAMPING), jax.random.key(1))
    return fit(network, untrained(network), observations, targets, *numbers, options)


def rows(x):
    return np.asarray(x)[np.asarray(MASK)]


def kl(old: Critics, new: Critics, observations, network=NETWORK):
    """Half the mean square by which the normalised estimates moved, with the scales of the new critics."""
    same = new._replace(params=old.params)
    flat = jnp.asarray(rows(observations))
    moved = predict(network, new, flat) - predict(network, same, flat)
    return 0.5 * np.mean((moved / new.target_scale[:, None]) ** 2, axis=1)


def test_the_scales_are_those_of_the_steps_that_were_played():
    observations, targets = data()
    new = fitted(observations, targets)
    np.testing.assert_allclose(new.input_mean, rows(observations).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(new.input_scale, rows(observations).std(axis=0), rtol=1e-12)
    for i in range(K):
        assert new.target_mean[i] == pytest.approx(rows(targets[i]).mean(), rel=1e-12)
        assert new.target_scale[i] == pytest.approx(rows(targets[i]).std(), rel=1e-12)


def test_a_step_is_the_natural_gradient_of_dense_algebra():
    """With every step in the sample and CG run to its end: ``sqrt(2 delta / g'H^-1 g) H^-1 g``, H = J'J/N + c I.

    A mask that is full, since a sample of all steps that could be would count some of fewer twice.
    """
    rng = np.random.default_rng(3)
    mask = np.ones((T, E), bool)
    observations, targets = jnp.asarray(rng.normal(size=(T, E, 3))), jnp.asarray(rng.normal(size=(K, T, E)))
    old, new = untrained(), fitted(observations, targets, mask=mask)
    x = np.asarray(observations).reshape(-1, 3)
    x = jnp.asarray((x - x.mean(axis=0)) / x.std(axis=0))
    for i in range(K):
        y = np.asarray(targets[i]).ravel()
        y = (y - y.mean()) / y.std()
        before, unravel = ravel_pytree(jax.tree.map(lambda leaf, i=i: leaf[i], old.params))
        after, _ = ravel_pytree(jax.tree.map(lambda leaf, i=i: leaf[i], new.params))
        outputs = jax.jit(lambda v, unravel=unravel: NETWORK.apply(unravel(v), x)[:, 0])
        J = np.asarray(jax.jacobian(outputs)(before))
        g = J.T @ (y - np.asarray(outputs(before))) / len(y)
        v = np.linalg.solve(J.T @ J / len(y) + DAMPING * np.eye(len(g)), g)
        d = np.sqrt(2 * RADIUS / (g @ v)) * v
        scale = np.linalg.norm(after - before) / np.linalg.norm(d)
        backtracks = np.log(scale) / np.log(0.8)
        assert abs(backtracks - round(backtracks)) < 1e-6
        assert 0 <= round(backtracks) <= 3
        np.testing.assert_allclose(after - before, scale * d, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("radius", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("options", [FitOptions(1, 0.2, 10), EXACT])
def test_no_step_moves_the_estimates_beyond_the_radius(radius, options):
    observations, targets = data()
    new = fitted(observations, targets, options=options, radius=radius)
    found = kl(untrained(), new, observations)
    assert np.all(found <= radius * (1 + 1e-7))
    if radius < 1.0:  # as far as the variance of the targets: the search may end before anything improves
        assert np.all(found > 0.0)
    if radius < 1e-3:
        assert np.all(found > 0.3 * radius)  # and goes nearly that far


def test_the_radius_is_in_deviations_of_the_targets():
    """Targets a thousand times as large move the estimates a thousand times as far: the scale is no part of the fit."""
    observations, targets = data()
    one, large = fitted(observations, targets), fitted(observations, 1e3 * targets)
    flat = jnp.asarray(rows(observations))
    np.testing.assert_allclose(predict(NETWORK, large, flat), 1e3 * predict(NETWORK, one, flat), rtol=1e-6)


def test_level_and_scale_follow_the_batch_at_once():
    observations, targets = data()
    level = np.asarray(predict(NETWORK, fitted(observations, targets), jnp.asarray(rows(observations))))
    assert abs(level[0].mean() - 50.0) < 10.0
    moved = fitted(observations, targets + jnp.where(MASK, 1e6, 0.0)[None])
    later = np.asarray(predict(NETWORK, moved, jnp.asarray(rows(observations))))
    assert abs(later[0].mean() - 1e6) < 100.0


def test_many_steps_fit_the_targets():
    """Better than any linear function does; and one step does not, since 0.14 deviations is as far as it goes."""
    observations, targets = data()
    flat, wanted = rows(observations), np.stack([rows(t) for t in targets])
    design = np.column_stack([flat, np.ones(len(flat))])
    linear = wanted.T - design @ np.linalg.lstsq(design, wanted.T, rcond=None)[0]

    def left(options):
        values = predict(NETWORK, fitted(observations, targets, options=options), jnp.asarray(flat))
        return np.var(wanted - np.asarray(values), axis=1) / np.var(wanted, axis=1)

    assert np.all(left(FitOptions(60, 1.0, 10)) < np.maximum(np.var(linear, axis=0) / np.var(wanted, axis=1), 1e-3))
    assert np.all(left(EXACT) > 0.6)


def test_a_step_that_improves_nothing_is_not_taken(monkeypatch):
    """The natural step, planted backwards: all trials make it worse."""
    observations, targets = data()
    right = critics_.natural_step
    monkeypatch.setattr(critics_, "natural_step", lambda g, v, delta: (-right(g, v, delta)[0], delta))
    new = fitted(observations, targets, fit=fit)  # the compiled one knows nothing of the plant
    jax.tree.map(np.testing.assert_array_equal, new.params, untrained().params)
    assert new.target_mean[0] == pytest.approx(rows(targets[0]).mean())  # the scales follow all the same


def test_targets_that_do_not_vary_are_estimated_exactly():
    """All costs of a clean batch are zero, and so must be its values: no network's opinion times a tiny scale."""
    observations, targets = data()
    flat = jnp.asarray(rows(observations))
    new = fitted(observations, targets.at[1].set(jnp.where(MASK, 7.3, 0.0)))
    np.testing.assert_allclose(predict(NETWORK, new, flat)[1], 7.3, rtol=1e-14)
    zero = fitted(observations, targets.at[1].set(0.0))
    np.testing.assert_array_equal(predict(NETWORK, zero, flat)[1], 0.0)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(new))


def test_inputs_that_do_not_vary_are_centred_and_no_more():
    observations, targets = data()
    new = fitted(jnp.where(MASK[..., None], observations.at[..., 2].set(4.0), 0.0), targets)
    assert new.input_scale[2] == 1.0
    assert new.input_mean[2] == pytest.approx(4.0)


@pytest.mark.parametrize("count", [1_000, 1_000_000])
def test_scales_in_float32_are_right_for_a_million_steps(count):
    """A mean as the product with shares was wrong by 0.47 here, five deviations, and constants seemed to vary."""
    noise = np.random.default_rng(0).normal(size=count)
    x = np.stack([np.full(count, 7.3), 1000.0 + 0.1 * noise]).astype(np.float32)
    shares = jnp.full(count, 1.0 / count, jnp.float32)
    mean, scale = jax.jit(critics_._scale)(jnp.asarray(x), shares)
    np.testing.assert_allclose(mean, x.astype(float).mean(axis=1), rtol=1e-6)
    assert scale[0] == 0.0
    assert scale[1] == pytest.approx(x[1].astype(float).std(), rel=2e-2)


def test_padding_changes_nothing():
    observations, targets = data()
    one = fitted(observations, targets)
    dirty = fitted(jnp.where(MASK[..., None], observations, 1e3), jnp.where(MASK[None], targets, -1e3))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-12), one, dirty)


def test_untrained_critics_change_no_scale():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    critics = untrained()
    expected = jnp.stack([NETWORK.apply(jax.tree.map(lambda p, i=i: p[i], critics.params), x)[:, 0] for i in range(K)])
    np.testing.assert_allclose(predict(NETWORK, critics, x), expected, rtol=1e-13)


def test_a_network_of_ones_own():
    """Any pair of functions of any pytree."""

    def linear(params, inputs):
        return inputs @ params["slope"][:, None] + params["level"]

    network = Network(lambda key: {"slope": jax.random.normal(key, (3,)), "level": jnp.zeros(())}, linear)
    observations, targets = data()
    new = fitted(observations, targets, options=FitOptions(40, 1.0, 10), network=network)
    flat = jnp.asarray(rows(observations))
    np.testing.assert_allclose(predict(network, new, flat)[0], rows(targets[0]), atol=0.1)


def test_unexplained_variance_by_hand():
    """Values 1, 2 of targets 2, 5: errors 1, 3, variance 1 beside 2.25. A constant target has nothing to explain."""
    values, wanted = jnp.array([[[1.0], [2.0], [9.0]], [[5.0], [7.0], [0.0]]]), jnp.array([[[2.0], [5.0], [0.0]]] * 2)
    wanted = wanted.at[1].set(jnp.array([[3.0], [3.0], [0.0]]))
    mask = jnp.array([[True], [True], [False]])
    two, final = jnp.ones(2), jnp.zeros((2, 1))
    signals = Signals(jnp.zeros((2, 3, 1)), two, two, values, final, jnp.ones((2, 3)), mask)
    np.testing.assert_allclose(unexplained(signals, wanted), [1 / 2.25, 0.0])
