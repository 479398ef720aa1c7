"""Products with the Fisher matrix against the dense Hessian of the mean KL divergence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from pcpo.rl.fisher import fisher_product
from pcpo.rl.policy import policy_for
from pcpo.rl.spaces import Discrete
from tests.rl.worlds import line


def dense(policy, params, observations, weights):
    """Hessian of the weighted KL in all parameters, by differentiating it twice."""
    flat, unravel = ravel_pytree(params)
    old = policy.apply(params, observations)

    def mean_kl(theta):
        return weights @ policy.distribution.kl(old, policy.apply(unravel(theta), observations))

    return np.asarray(jax.hessian(mean_kl)(flat))


@pytest.mark.parametrize("space", [line(2), Discrete(3)])
@pytest.mark.parametrize("damping", [0.0, 1e-5, 0.3])
def test_products_are_those_of_the_dense_hessian(space, damping):
    rng = np.random.default_rng(1)
    policy = policy_for(3, space, hidden=(4,))
    params = policy.init(jax.random.key(0))
    if not isinstance(space, Discrete):
        params["distribution"] = jnp.array([0.4, -0.7])
    observations, weights = jnp.asarray(rng.normal(size=(8, 3))), jnp.asarray(rng.uniform(0.1, 1, 8))
    H = dense(policy, params, observations, weights)
    H = H + damping * np.eye(len(H))
    product = jax.jit(fisher_product(policy, params, observations, weights, jnp.asarray(damping)))
    _, unravel = ravel_pytree(params)
    columns = [ravel_pytree(product(unravel(e)))[0] for e in jnp.eye(len(H))]
    np.testing.assert_allclose(np.stack(columns, axis=1), H, rtol=0, atol=1e-12)
