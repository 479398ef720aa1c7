"""Returns and advantages of one episode. Many episodes are had by `jax.vmap`.

Notation: an episode has T steps, of which ``mask`` says which happened; ``values[t]`` estimates what is still to come
at step t. What was not played is zero, and stays zero.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LONGEST_MATRIX = 1024
"""Episodes up to this length are summed by one matrix product, longer ones by a parallel scan."""


def suffix_sums(x: Float[Array, " T"], factor: Float[Array, ""]) -> Float[Array, " T"]:
    r""":math:`y_t = x_t + f\, y_{t+1}`: the discounted sum of what is still to come.

    A loop over time is one kernel launch per step on a GPU and one core on a CPU. For many episodes at once the product
    with the matrix :math:`f^{k-t}` is a few microseconds on both; from a thousand steps on, where the matrix would
    be the cost, the recursion is composed in pairs.
    """
    if x.shape[0] > LONGEST_MATRIX:
        factors = jnp.broadcast_to(factor.astype(x.dtype), x.shape)
        return jax.lax.associative_scan(_compose, (factors, x), reverse=True)[1]
    return _powers(factor.astype(x.dtype), x.shape[0]) @ x


def gae(
    rewards: Float[Array, " T"],
    values: Float[Array, " T"],
    next_values: Float[Array, " T"],
    mask: Bool[Array, " T"],
    discount: Float[Array, ""],
    trace: Float[Array, ""],
) -> Float[Array, " T"]:
    r"""Generalised advantage estimation.

    .. math:: \hat A_t = \delta_t + \gamma\lambda\, \hat A_{t+1}, \qquad
        \delta_t = r_t + \gamma V(s_{t+1}) - V(s_t)

    Schulman et al. (2016), Eq. 16. With lambda = 1 and discount 1 it is the sum still to come minus the value.

    Args:
        rewards: Rewards, or one of the costs.
        values: ``V(s_t)``.
        next_values: ``V(s_{t+1})``, zero where nothing is to come (see `following`).
        mask: Which steps happened.
        discount: gamma.
        trace: lambda.
    """
    errors = jnp.where(mask, rewards + discount * next_values - values, 0.0)
    return suffix_sums(errors, discount * trace)


def following(values: Float[Array, " T"], mask: Bool[Array, " T"], final_value: Float[Array, ""]) -> Float[Array, " T"]:
    """``V(s_{t+1})`` for every t: ``final_value`` after the last step that happened, zero after the end."""
    shifted = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
    goes_on = jnp.concatenate([mask[1:], jnp.zeros_like(mask[:1])])
    return jnp.where(goes_on, shifted, jnp.where(mask, final_value, 0.0))


def powers(factor: Float[Array, ""], length: int) -> Float[Array, " T"]:
    """``1, f, f^2, ...``; with f = 0 the first is 1 all the same."""
    return factor ** jnp.arange(length, dtype=factor.dtype)


def _powers(factor: Float[Array, ""], length: int) -> Float[Array, "T T"]:
    """``f^(k - t)`` above the diagonal, zero below."""
    steps = jnp.arange(length)
    ahead = steps[None, :] - steps[:, None]
    return jnp.where(ahead >= 0, factor ** jnp.maximum(ahead, 0).astype(factor.dtype), 0.0)


def _compose(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
    """The affine maps ``y -> x + f y`` of two stretches of an episode as one."""
    factor, total = later
    return factor * earlier[0], earlier[1] + earlier[0] * total
