"""Products with the Fisher matrix of a policy."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

from pcpo.core.types import Tree
from pcpo.rl.networks import Params
from pcpo.rl.policy import Policy


def fisher_product(
    policy: Policy, params: Params, observations: Float[Array, "K o"], weights: Float[Array, " K"], damping: Array
) -> Callable[[Tree], Tree]:
    r"""``v -> H v`` for the Hessian of the mean KL divergence at ``params``, plus damping.

    .. math:: H = \sum_i w_i\, J_i' F_i J_i + c I, \qquad J_i = \partial p_i / \partial\theta

    with F the Fisher matrix in the parameters p of the distribution. At theta itself this Gauss-Newton form **is** the
    Hessian of KL: what is missing is multiplied by the gradient of KL, which is zero there. The network is linearised
    once; every product is one pass forward and one back through the linear map.
    """
    p, forward = jax.linearize(lambda theta: policy.apply(theta, observations), params)
    back = jax.linear_transpose(forward, params)

    def product(v: Tree) -> Tree:
        (pulled,) = back(policy.distribution.fisher(p, forward(v), weights))
        return jax.tree.map(lambda hv, x: hv + damping * x, pulled, v)

    return product
