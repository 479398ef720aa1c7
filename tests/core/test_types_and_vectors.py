"""The model as a pytree, the severity of statuses, and vectors of extreme length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from pcpo.core import LocalModel, Status
from pcpo.core.types import most_severe
from pcpo.core.vectors import as_vectors, unit
from tests.problems import multiply


def nested():
    g = {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.array([7.0, 8.0])}
    a = jax.tree.map(lambda x: jnp.stack([x, 2.0 * x, -x]), g)
    return LocalModel(g=g, a=a, b=jnp.array([1.0, 2.0, 3.0]), fvp=lambda t: jax.tree.map(lambda x: 3.0 * x, t))


def test_a_model_passes_through_jit_and_comes_back():
    model = LocalModel(jnp.ones(2), jnp.ones((1, 2)), jnp.ones(1), Partial(multiply, 2.0 * jnp.eye(2)))
    back = jax.jit(lambda x: x)(model)
    assert isinstance(back, LocalModel)
    np.testing.assert_array_equal(back.fvp(jnp.ones(2)), [2.0, 2.0])
    assert back.evaluate is None
    assert jax.tree.structure(back) == jax.tree.structure(model)


def test_a_plain_function_is_wrapped():
    assert isinstance(nested().fvp, Partial)


def test_flattening_keeps_rows_apart_and_products_true():
    flat, unravel = as_vectors(nested())
    np.testing.assert_array_equal(flat.g, [7, 8, 0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(flat.a, jnp.outer(jnp.array([1.0, 2.0, -1.0]), flat.g))
    np.testing.assert_array_equal(flat.fvp(flat.g), 3.0 * flat.g)
    assert jax.tree.all(jax.tree.map(jnp.array_equal, unravel(flat.g), nested().g))


def test_no_constraints_are_legal():
    flat, _ = as_vectors(LocalModel({"x": jnp.ones(3)}, {"x": jnp.zeros((0, 3))}, jnp.zeros(0), lambda t: t))
    assert flat.a.shape == (0, 3)


def test_the_most_severe_status_wins():
    yes, no = jnp.array(True), jnp.array(False)
    assert most_severe((yes, Status.PROJECTED), (no, Status.NONFINITE), (yes, Status.KL_CAPPED)) == Status.KL_CAPPED
    assert most_severe((jnp.array([False, True]), Status.CG_FAILED)) == Status.CG_FAILED
    assert most_severe((no, Status.NONFINITE), (jnp.zeros(0, bool), Status.CG_FAILED)) == Status.OK


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("exponent", [-37, -8, 0, 8, 37])
def test_unit_vectors_of_any_representable_length(dtype, exponent):
    x = jnp.asarray(np.array([3.0, -4.0]) * 10.0**exponent, dtype)
    direction, length = unit(x)
    np.testing.assert_allclose(direction, [0.6, -0.8], rtol=1e-6)
    np.testing.assert_allclose(length, 5.0 * 10.0**exponent, rtol=1e-6)


def test_unit_of_zero_is_zero():
    direction, length = unit(jnp.array([[0.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(direction, [[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(length, [0.0, 2.0])
