"""Densities, divergences and their curvature, against scipy, quadrature and automatic differentiation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp, rel_entr, softmax

from pcpo.rl.distributions import LOG_STD_FLOOR, Categorical, Choice, Gaussian, Normal, distribution_for
from pcpo.rl.spaces import Box, Discrete

RNG = np.random.default_rng(0)
MEAN, LOG_STD = RNG.normal(size=(6, 3)), RNG.normal(size=3)
P = Normal(jnp.asarray(MEAN), jnp.asarray(LOG_STD))
Q = Normal(jnp.asarray(MEAN + 0.3 * RNG.normal(size=(6, 3))), jnp.asarray(LOG_STD + 0.2))
LOGITS = 2.0 * RNG.normal(size=(6, 4))
C = Choice(jnp.asarray(LOGITS))
D = Choice(jnp.asarray(LOGITS + 0.5 * RNG.normal(size=(6, 4))))
gaussian, categorical = Gaussian(3), Categorical(4)


def test_gaussian_log_prob_is_scipys():
    actions = RNG.normal(size=(6, 3)) * 3
    expected = np.sum(stats.norm.logpdf(actions, MEAN, np.exp(LOG_STD)), axis=1)
    np.testing.assert_allclose(gaussian.log_prob(P, jnp.asarray(actions)), expected, rtol=1e-13)


def test_categorical_log_prob_is_the_normalised_logit():
    actions = np.array([0, 1, 2, 3, 3, 0])
    expected = (LOGITS - np.asarray(logsumexp(LOGITS, axis=1, keepdims=True)))[np.arange(6), actions]
    np.testing.assert_allclose(categorical.log_prob(C, jnp.asarray(actions)), expected, rtol=1e-13)


@pytest.mark.parametrize(("family", "p"), [(gaussian, P), (categorical, C)])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_kl_is_exactly_zero_at_equality(family, p, dtype):
    p = jax.tree.map(lambda x: x.astype(dtype), p)
    np.testing.assert_array_equal(jax.jit(family.kl)(p, p), np.zeros(6))


def test_gaussian_kl_is_that_of_quadrature():
    """KL(old || new): the other direction differs by far more than the tolerance."""
    one = Gaussian(1)
    old, new = Normal(jnp.array([[0.3]]), jnp.array([0.1])), Normal(jnp.array([[-0.5]]), jnp.array([0.6]))

    def density(x):
        log_p = stats.norm.logpdf(x, 0.3, math.exp(0.1))
        return np.exp(log_p) * (log_p - stats.norm.logpdf(x, -0.5, math.exp(0.6)))

    expected, _ = integrate.quad(density, -15, 15, epsabs=1e-13)
    assert one.kl(old, new)[0] == pytest.approx(expected, rel=1e-10)
    assert one.kl(new, old)[0] != pytest.approx(expected, rel=0.1)


def test_gaussian_kl_is_the_textbook_form():
    s, t = np.exp(LOG_STD), np.exp(np.asarray(Q.log_std))
    expected = (np.log(t / s) + (s**2 + (MEAN - np.asarray(Q.mean)) ** 2) / (2 * t**2) - 0.5).sum(axis=1)
    np.testing.assert_allclose(gaussian.kl(P, Q), expected, rtol=1e-12)


def test_categorical_kl_is_scipys_relative_entropy():
    expected = rel_entr(softmax(LOGITS, axis=1), softmax(np.asarray(D.logits), axis=1)).sum(axis=1)
    np.testing.assert_allclose(categorical.kl(C, D), expected, rtol=1e-12)
    assert np.max(np.abs(categorical.kl(D, C) - expected)) > 1e-3


def test_categorical_kl_ignores_a_constant_in_the_logits():
    np.testing.assert_allclose(categorical.kl(C, Choice(C.logits + 7.0)), 0.0, atol=1e-15)


@pytest.mark.parametrize("distance", [1e-2, 1e-3, 1e-4])
def test_tiny_divergences_keep_their_digits_in_float32(distance):
    """A paper-sized KL of 1e-4 and far less: to five digits, and never below zero.

    The parameters are rounded to float32 first: what is tested is the arithmetic after that.
    """
    low = jnp.float32

    def both(family, p, tangent):
        p = jax.tree.map(lambda x: x.astype(low), p)
        q = jax.tree.map(lambda x, t: x + jnp.asarray(distance * t, low), p, tangent)
        exact = family.kl(*(jax.tree.map(lambda x: x.astype(float), x) for x in (p, q)))
        return np.asarray(family.kl(p, q), float), np.asarray(exact)

    tangents = (
        Normal(*map(jnp.asarray, (RNG.normal(size=(6, 3)), RNG.normal(size=3)))),
        Choice(jnp.asarray(RNG.normal(size=(6, 4)))),
    )
    for family, p, tangent in ((gaussian, P, tangents[0]), (categorical, C, tangents[1])):
        found, exact = both(family, p, tangent)
        assert np.all(found >= 0.0)
        np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_categorical_kl_stays_finite_where_a_probability_was_nothing():
    """Choice 1 had a probability that underflows, and gets almost all of it."""
    old, new = Choice(jnp.array([[0.0, -2000.0]])), Choice(jnp.array([[-2000.0, 0.0]]))
    assert categorical.kl(old, new)[0] == pytest.approx(2000.0)
    slope = jax.grad(lambda logits: categorical.kl(old, Choice(logits))[0])(new.logits)
    np.testing.assert_allclose(slope, [[-1.0, 1.0]])


@pytest.mark.parametrize(
    ("family", "p", "tangent"),
    [
        (gaussian, P, Normal(jnp.asarray(RNG.normal(size=(6, 3))), jnp.asarray(RNG.normal(size=3)))),
        (categorical, C, Choice(jnp.asarray(RNG.normal(size=(6, 4))))),
    ],
)
def test_fisher_is_the_hessian_of_the_weighted_kl(family, p, tangent):
    weights = jnp.asarray(RNG.uniform(0.1, 1.0, 6))

    def mean_kl(q):
        return weights @ family.kl(p, q)

    expected = jax.jvp(jax.grad(mean_kl), (p,), (tangent,))[1]
    for found, wanted in zip(family.fisher(p, tangent, weights), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    dense = jax.hessian(lambda x: mean_kl(type(p)(x, *p[1:])))(p[0]).reshape(p[0].size, -1)
    alone = type(p)(tangent[0], *(jnp.zeros_like(x) for x in p[1:]))
    np.testing.assert_allclose(
        np.ravel(family.fisher(p, alone, weights)[0]), dense @ np.ravel(tangent[0]), rtol=1e-10, atol=1e-12
    )


def test_entropy():
    expected = stats.norm.entropy(0.0, np.exp(LOG_STD)).sum()
    np.testing.assert_allclose(gaussian.entropy(P), np.full(6, expected), rtol=1e-13)
    np.testing.assert_allclose(categorical.entropy(C), stats.entropy(softmax(LOGITS, axis=1), axis=1), rtol=1e-12)


def test_gaussian_samples_have_mean_and_deviation():
    N = 40_000
    p = Normal(jnp.tile(jnp.array([[2.0, -1.0]]), (N, 1)), jnp.log(jnp.array([0.5, 3.0])))
    x = np.asarray(Gaussian(2).sample(p, Gaussian(2).noise(jax.random.key(0), (N,))))
    np.testing.assert_allclose(x.mean(axis=0), [2.0, -1.0], atol=4 * 3.0 / math.sqrt(N))
    np.testing.assert_allclose(x.std(axis=0), [0.5, 3.0], rtol=4 / math.sqrt(2 * N))
    assert abs(np.corrcoef(x.T)[0, 1]) < 4 / math.sqrt(N)


def test_categorical_samples_have_their_frequencies():
    N = 40_000
    logits = np.log([0.5, 0.3, 0.15, 0.05]) + 3.0
    p = Choice(jnp.tile(jnp.asarray(logits)[None], (N, 1)))
    x = np.asarray(categorical.sample(p, categorical.noise(jax.random.key(0), (N,))))
    found = np.bincount(x, minlength=4) / N
    np.testing.assert_allclose(found, [0.5, 0.3, 0.15, 0.05], atol=4 * 0.5 / math.sqrt(N))


def test_modes():
    np.testing.assert_array_equal(gaussian.mode(P), MEAN)
    np.testing.assert_array_equal(categorical.mode(C), LOGITS.argmax(axis=1))


def test_noise_has_one_entry_per_component():
    assert gaussian.noise(jax.random.key(0), (5, 2)).shape == (5, 2, 3)
    assert categorical.noise(jax.random.key(0), (5,)).shape == (5, 4)


def test_the_deviation_has_a_floor_and_no_gradient_below_it():
    own = jnp.array([-100.0, LOG_STD_FLOOR + 1.0, 0.0])
    p = gaussian.parameters(jnp.zeros((2, 3)), own)
    np.testing.assert_allclose(jnp.exp(p.log_std), [1e-6, math.e * 1e-6, 1.0])
    slope = jax.grad(lambda x: jnp.sum(gaussian.parameters(jnp.zeros((2, 3)), x).log_std))(own)
    np.testing.assert_array_equal(slope, [0.0, 1.0, 1.0])


def test_own_parameters_start_as_in_the_paper():
    np.testing.assert_array_equal(gaussian.init(), np.zeros(3))
    assert categorical.init() == ()


def test_the_distribution_for_a_space():
    assert distribution_for(Box((-1.0, -1.0), (1.0, 1.0))) == Gaussian(2)
    assert distribution_for(Discrete(5)) == Categorical(5)
