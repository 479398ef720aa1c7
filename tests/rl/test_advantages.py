"""Sums over what is still to come, against plain loops and numbers worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl import advantages
from pcpo.rl.advantages import following, gae, powers, suffix_sums


def plain_sums(x, factor):
    y, total = np.zeros_like(x), 0.0
    for t in reversed(range(len(x))):
        total = x[t] + factor * total
        y[t] = total
    return y


def plain_gae(rewards, values, length, final_value, discount, trace):
    """One episode of ``length`` steps, padded; the definition, written as a double sum."""
    A = np.zeros_like(rewards)
    errors = np.zeros(length)
    for t in range(length):
        following_value = values[t + 1] if t + 1 < length else final_value
        errors[t] = rewards[t] + discount * following_value - values[t]
    for t in range(length):
        A[t] = sum((discount * trace) ** (s - t) * errors[s] for s in range(t, length))
    return A


@pytest.fixture(params=["matrix", "scan"])
def form(request, monkeypatch):
    """Both ways to sum, for every length."""
    monkeypatch.setattr(advantages, "LONGEST_MATRIX", 10**6 if request.param == "matrix" else 0)
    return request.param


@pytest.mark.parametrize("length", [1, 2, 50, 1500])
@pytest.mark.parametrize("factor", [0.0, 0.95, 1.0])
def test_suffix_sums_equal_a_loop(form, length, factor):
    x = np.random.default_rng(length).normal(size=length)
    summed = suffix_sums(jnp.asarray(x), jnp.asarray(factor))
    np.testing.assert_allclose(summed, plain_sums(x, factor), rtol=0, atol=1e-12 * length)


def test_long_episodes_are_summed_by_the_scan_and_short_ones_by_the_matrix():
    def program(length):
        return str(jax.make_jaxpr(suffix_sums)(jnp.zeros(length), jnp.ones(())))

    assert "dot_general" in program(1024)
    assert "dot_general" not in program(1025)


def test_a_sum_in_float32_keeps_its_digits(form):
    x = np.random.default_rng(0).normal(size=1500).astype(np.float32)
    summed = suffix_sums(jnp.asarray(x), jnp.asarray(0.99, jnp.float32))
    assert summed.dtype == jnp.float32
    np.testing.assert_allclose(summed, plain_sums(x.astype(float), 0.99), rtol=0, atol=1e-4)


def test_powers():
    np.testing.assert_allclose(powers(jnp.asarray(0.5), 4), [1, 0.5, 0.25, 0.125])
    np.testing.assert_array_equal(powers(jnp.asarray(0.0), 3), [1, 0, 0])
    np.testing.assert_array_equal(powers(jnp.asarray(1.0), 3), [1, 1, 1])


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("trace", [1.0, 0.7, 0.0])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_gae_equals_its_definition_on_random_episodes(form, discount, trace, bootstrap):
    rng = np.random.default_rng(3)
    T = 7
    for length in (1, 2, 4, 7):
        mask = np.arange(T) < length
        rewards, values = rng.normal(size=T) * mask, rng.normal(size=T)
        final = rng.normal() if bootstrap else 0.0
        nexts = following(jnp.asarray(values), jnp.asarray(mask), jnp.asarray(final))
        arrays = [jnp.asarray(x) for x in (rewards, values, nexts, mask, discount, trace)]
        A = gae(*arrays)
        expected = plain_gae(rewards, values, length, final, discount, trace)
        np.testing.assert_allclose(A, expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(A[length:], 0.0)


@pytest.mark.parametrize("length", [1, 4, 9])
def test_with_trace_and_discount_1_it_is_cost_to_go_minus_value(form, length):
    """The acceptance check of the specification: lambda = 1, gamma_C = 1, no bootstrap."""
    rng = np.random.default_rng(4)
    mask = np.arange(9) < length
    costs, values = rng.integers(0, 2, 9) * mask, rng.normal(size=9)
    one = jnp.ones(())
    nexts = following(jnp.asarray(values), jnp.asarray(mask), jnp.zeros(()))
    A = gae(jnp.asarray(costs, float), jnp.asarray(values), nexts, jnp.asarray(mask), one, one)
    to_go = np.cumsum(costs[::-1])[::-1]
    np.testing.assert_allclose(A, np.where(mask, to_go - values, 0.0), atol=1e-13)


def test_gae_by_hand():
    """Errors 1 + 0.5*4 - 2 = 1, 2 + 0.5*6 - 4 = 1, 3 + 0.5*8 - 6 = 1, so with 0.5*0.5: 1.3125, 1.25, 1."""
    rewards, values = jnp.array([1.0, 2.0, 3.0, 0.0]), jnp.array([2.0, 4.0, 6.0, 100.0])
    mask = jnp.array([True, True, True, False])
    half = jnp.asarray(0.5)
    nexts = following(values, mask, jnp.asarray(8.0))
    np.testing.assert_array_equal(nexts, [4, 6, 8, 0])
    np.testing.assert_allclose(gae(rewards, values, nexts, mask, half, half), [1.3125, 1.25, 1.0, 0.0])


def test_following_at_the_full_length_and_after_one_step():
    values = jnp.array([5.0, 6.0, 7.0])
    np.testing.assert_array_equal(following(values, jnp.ones(3, bool), jnp.asarray(9.0)), [6, 7, 9])
    np.testing.assert_array_equal(following(values, jnp.array([True, False, False]), jnp.asarray(9.0)), [9, 0, 0])
    np.testing.assert_array_equal(following(values[:1], jnp.ones(1, bool), jnp.zeros(())), [0])


def test_a_value_after_the_end_changes_nothing():
    """Plants what a wrong mask would let through: the estimate of the step after the end."""
    mask = jnp.array([True, True, False, False])
    half = jnp.asarray(0.5)

    def of(values):
        nexts = following(values, mask, jnp.zeros(()))
        return gae(jnp.ones(4), values, nexts, mask, half, half)

    values = jnp.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(of(values), of(values.at[2:].set(1e9)))
