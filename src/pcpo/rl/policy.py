"""A policy: a network, and the distribution over actions that its outputs parametrise."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pcpo.rl.distributions import Distribution, distribution_for
from pcpo.rl.networks import Network, Params, mlp
from pcpo.rl.spaces import Box, Discrete


class Policy(NamedTuple):
    """``params = init(key)``, ``p = apply(params, observations [N, o])``; the distribution does the rest."""

    network: Network
    distribution: Distribution

    def init(self, key: Key[Array, ""]) -> Params:
        """Parameters of the network, and those that the distribution has of its own."""
        return {"network": self.network.init(key), "distribution": self.distribution.init()}

    def apply(self, params: Params, observations: Float[Array, "N o"]) -> Any:
        """The distribution over actions in each state."""
        outputs = self.network.apply(params["network"], observations)
        return self.distribution.parameters(outputs, params["distribution"])


def policy_for(observation_size: int, space: Box | Discrete, hidden: tuple[int, ...] = (64, 32)) -> Policy:
    """The paper's policy: a tanh network with two hidden layers, and the usual distribution for the action space."""
    return Policy(mlp([observation_size, *hidden, space.size]), distribution_for(space))


def environment_actions(space: Box | Discrete, actions: Array) -> Array:
    """Actions as the environment gets them, one or many: those of a Box within its bounds."""
    if isinstance(space, Discrete):
        return actions
    shape = (1,) * (actions.ndim - 1) + (-1,)
    low, high = (jnp.asarray(bound, actions.dtype).reshape(shape) for bound in (space.low, space.high))
    return jnp.clip(actions, low, high)
