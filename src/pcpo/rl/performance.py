"""What a batch of episodes says of the policy that played it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pcpo.rl.advantages import powers
from pcpo.rl.rollout import AnyRollout


class Performance(NamedTuple):
    """Means over episodes."""

    env_steps: Int[Array, ""]
    """Steps in the whole batch."""
    episode_length: Float[Array, ""]
    discounted_return: Float[Array, ""]
    undiscounted_return: Float[Array, ""]
    costs: Float[Array, " m"]
    """J_C of each constraint, with its own discount."""
    cost_standard_errors: Float[Array, " m"]
    """Of the means in ``costs``."""


class EpisodeSums(NamedTuple):
    """The sums over each episode."""

    discounted_return: Float[Array, " E"]
    undiscounted_return: Float[Array, " E"]
    costs: Float[Array, "E m"]
    length: Int[Array, " E"]


def episode_sums(rollout: AnyRollout, gamma: Float[Array, ""], cost_discounts: Float[Array, " m"]) -> EpisodeSums:
    """Sums of reward and costs over each episode."""
    horizon = rollout.rewards.shape[0]
    weights = jax.vmap(lambda discount: powers(discount, horizon))(cost_discounts)
    return EpisodeSums(
        discounted_return=powers(gamma, horizon) @ rollout.rewards,
        undiscounted_return=jnp.sum(rollout.rewards, axis=0),
        costs=jnp.einsum("mt,tem->em", weights, rollout.costs),
        length=jnp.sum(rollout.mask, axis=0, dtype=jnp.int32),
    )


def measure(rollout: AnyRollout, gamma: Float[Array, ""], cost_discounts: Float[Array, " m"]) -> Performance:
    """Means over the episodes of a batch, and how far the mean costs can be trusted."""
    sums = episode_sums(rollout, gamma, cost_discounts)
    episodes = sums.length.shape[0]
    costs = jnp.mean(sums.costs, axis=0)
    variance = jnp.sum((sums.costs - costs[None, :]) ** 2, axis=0) / max(episodes - 1, 1)
    return Performance(
        env_steps=jnp.sum(sums.length),
        episode_length=jnp.mean(sums.length.astype(rollout.rewards.dtype)),
        discounted_return=jnp.mean(sums.discounted_return),
        undiscounted_return=jnp.mean(sums.undiscounted_return),
        costs=costs,
        cost_standard_errors=jnp.sqrt(variance / episodes),
    )
