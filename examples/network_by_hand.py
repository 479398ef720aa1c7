"""A network by hand: two plain functions. This policy is linear in the observation and its squares."""

import jax
import jax.numpy as jnp

from pcpo import PCPO, Network, Networks

UPDATES = 50
BATCH = 10_000


def init(key):
    """Any pytree of arrays will do."""
    return {"weights": 0.1 * jax.random.normal(key, (18, 2)), "bias": jnp.zeros(2)}


def apply(params, observations):
    """From observations [n, 9] to the means of two actions [n, 2]."""
    scaled = observations / 10.0
    features = jnp.concatenate([scaled, scaled**2], axis=1)
    return features @ params["weights"] + params["bias"]


agent = PCPO("point-circle", cost_limit=5.0, networks=Networks(policy=Network(init, apply)), batch_size=BATCH)
agent.learn(updates=UPDATES)
print(agent.rows[-1]["return"], agent.rows[-1]["costs"])
