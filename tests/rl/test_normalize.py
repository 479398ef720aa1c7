"""Running statistics of observations: merged exactly, of what was played, harmless where nothing varies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl import normalize
from pcpo.rl.normalize import CLIP, Normalizer

RNG = np.random.default_rng(0)
include = jax.jit(normalize.include, static_argnums=3)


def batch(T=7, E=5, offset=0.0):
    mask = np.arange(T)[:, None] < RNG.integers(1, T + 1, E)[None, :]
    return offset + RNG.normal(size=(T, E, 2)) * [1.0, 30.0], mask


def test_batches_merge_to_the_statistics_of_all_of_them():
    state, rows = normalize.empty(2), []
    for k in range(3):
        x, mask = batch(offset=100.0 * k)
        state = include(state, jnp.asarray(np.where(mask[..., None], x, 1e6)), jnp.asarray(mask), 10)
        rows.append(x[mask])
        known = np.concatenate(rows)
        assert state.seen == len(known)
        np.testing.assert_allclose(state.mean, known.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(state.variance, known.var(axis=0), rtol=1e-12)


def test_it_is_frozen_after_its_batches():
    state = normalize.empty(2)
    for _ in range(2):
        state = include(state, *map(jnp.asarray, batch()), 2)
    later = include(state, *map(jnp.asarray, batch(offset=50.0)), 2)
    jax.tree.map(np.testing.assert_array_equal, later, state)
    assert later.batches == 2


def test_with_nothing_seen_it_changes_nothing():
    x = jnp.asarray(RNG.normal(size=(3, 4, 2)) * 1e3)
    np.testing.assert_array_equal(normalize.empty(2).apply(x), x)


@pytest.mark.parametrize("shape", [(4, 2), (3, 4, 2), (2,)])
def test_it_centres_scales_and_clips(shape):
    state = Normalizer(jnp.asarray(10.0), jnp.array([1.0, -2.0]), jnp.array([4.0, 9.0]), jnp.asarray(1, jnp.int32))
    x = RNG.normal(size=shape) * 20
    expected = np.clip((x - [1.0, -2.0]) / [2.0, 3.0], -CLIP, CLIP)
    np.testing.assert_allclose(state.apply(jnp.asarray(x)), expected, rtol=1e-14)
    assert np.abs(state.apply(jnp.full(shape, 1e9))).max() == CLIP


@pytest.mark.parametrize("value", [0.0, 7.3, 1e6, -1e-9])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_what_never_varies_is_centred_only(value, dtype):
    """In float32 the variance of 7.3, 7.3, ... is not zero; divided by its root the next batch would be noise."""
    state = jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float64 else x, normalize.empty(1))
    for episodes in (1_000, 999):
        x = jnp.full((50, episodes, 1), value, dtype)
        state = include(state, x, jnp.ones((50, episodes), bool), 10)
    assert state.mean.dtype == dtype
    np.testing.assert_allclose(state.apply(x), 0.0, atol=1e-5 * abs(value))
    np.testing.assert_allclose(state.apply(x + jnp.asarray(0.5, dtype)), 0.5, rtol=0, atol=1e-5 * abs(value) + 1e-7)
