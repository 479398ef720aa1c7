"""Lanczos against dense eigenvalues."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.core.spectrum import lanczos
from tests.problems import random_problem


def start(n, seed=0):
    return jax.random.normal(jax.random.key(seed), (n,))


def test_with_as_many_products_as_dimensions_it_is_exact():
    H = jnp.asarray(random_problem(seed=0, n=15, m=0).H)
    spectrum = lanczos(lambda v: H @ v, start(15), 15)
    values = np.linalg.eigvalsh(H)
    np.testing.assert_allclose([spectrum.smallest, spectrum.largest], values[[0, -1]], rtol=1e-9)
    np.testing.assert_allclose(spectrum.condition, 50.0, rtol=1e-9)


@pytest.mark.parametrize("iterations", [1, 3, 8, 20])
def test_ritz_values_bound_from_inside_and_errors_are_honest(iterations):
    rng = np.random.default_rng(1)
    values = np.exp(rng.uniform(np.log(1e-8), np.log(20.0), size=60))
    basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    H = jnp.asarray((basis * values) @ basis.T)
    spectrum = lanczos(lambda v: H @ v, start(60), iterations)
    assert values.min() * (1 - 1e-6) <= spectrum.smallest <= spectrum.largest <= values.max() * (1 + 1e-12)
    assert np.min(np.abs(values - spectrum.smallest)) <= spectrum.smallest_error + 1e-12
    assert np.min(np.abs(values - spectrum.largest)) <= spectrum.largest_error + 1e-12
    assert spectrum.condition <= values.max() / values.min() * (1 + 1e-6)


def test_indefinite_operators_have_a_magnitude_and_an_infinite_condition():
    H = jnp.diag(jnp.array([-7.0, 1.0, 3.0]))
    spectrum = lanczos(lambda v: H @ v, jnp.ones(3))
    np.testing.assert_allclose([spectrum.smallest, spectrum.largest, spectrum.magnitude], [-7.0, 3.0, 7.0])
    assert spectrum.condition == jnp.inf


def test_an_invariant_subspace_ends_it_without_inventing_eigenvalues():
    H = jnp.diag(jnp.array([2.0, 3.0, 5.0, 7.0]))
    spectrum = lanczos(lambda v: H @ v, jnp.array([0.0, 1.0, 1.0, 0.0]), 4)
    np.testing.assert_allclose([spectrum.smallest, spectrum.largest], [3.0, 5.0], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scale_free(scale):
    H = jnp.asarray(random_problem(seed=2, n=10, m=0).H)
    plain, scaled = lanczos(lambda v: H @ v, start(10)), lanczos(lambda v: scale * (H @ v), start(10))
    np.testing.assert_allclose(scaled.largest / scale, plain.largest, rtol=1e-9)
    np.testing.assert_allclose(scaled.condition, plain.condition, rtol=1e-6)


def test_float32_keeps_the_extremes():
    H = jnp.asarray(random_problem(seed=3, n=40, m=0).H, jnp.float32)
    spectrum = lanczos(lambda v: H @ v, start(40).astype(jnp.float32), 40)
    np.testing.assert_allclose([spectrum.smallest, spectrum.largest], [1.0, 50.0], rtol=1e-3)
    assert spectrum.largest.dtype == jnp.float32
