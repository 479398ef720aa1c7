"""A JAX environment of gymnax, trained where it is simulated: on the device, several seeds at once.

Swing the pendulum up without ever turning fast: each step above 5 radians per second costs 1.
"""

import jax.numpy as jnp

from pcpo import PCPO

UPDATES = 100
BATCH = 20_000


def too_fast(observation, action, next_observation, info):
    """A cost is a function of one step, written in jax."""
    return jnp.abs(next_observation[2]) > 5.0


agent = PCPO("gymnax:Pendulum-v1", cost_limit=20.0, cost=too_fast, batch_size=BATCH, seeds=2)
agent.learn(updates=UPDATES)

for row in agent.rows[-2:]:
    print(f"seed {row['seed']}: return {row['return']:.0f}, steps too fast {row['costs']['cost']:.1f} (limit 20)")
