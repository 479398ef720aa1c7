"""The reward improvement step of TRPO and PCPO."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def natural_step(
    g: Float[Array, " n"], v: Float[Array, " n"], delta: Float[Array, ""]
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    r"""The step that gains most reward to first order within a KL radius, and its length eta.

    .. math::
        \arg\max_d \; g \cdot d \;\; \text{s.t.} \;\; \tfrac12 d'Hd \le \delta
        \quad = \quad \eta \, H^{-1} g, \qquad \eta = \sqrt{2 \delta / g'H^{-1}g}

    PCPO (Yang et al., 2020), Eq. update1. With g = 0 there is nothing to gain: the step and eta are zero.

    Args:
        g: Gradient of the reward surrogate. Its length cancels.
        v: ``H^-1 g``.
        delta: KL radius.
    """
    gain = g @ v
    eta = jnp.where(gain > 0.0, jnp.sqrt(2.0 * delta / jnp.where(gain > 0.0, gain, 1.0)), 0.0)
    return eta * v, eta
