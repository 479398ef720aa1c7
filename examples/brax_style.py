"""An environment of your own in jax, with the API of Brax: two functions, reset and step, and the cost in info.

It is compiled together with the policy and the update, so that thousands of episodes are simulated at once.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from pcpo import PCPO

UPDATES = 60
BATCH = 20_000


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    """What a state of Brax's kind carries."""

    pipeline_state: Any
    obs: Any
    reward: Any
    done: Any
    metrics: dict[str, Any]
    info: dict[str, Any]


class Ferry:
    """Cross the river against a current that no one sees; too much thrust costs."""

    action_size = 1
    episode_length = 100

    def reset(self, rng):
        current = jax.random.uniform(rng, minval=-0.5, maxval=0.5)
        return self._state(jnp.array([0.0, 0.0, current]), 0.0, 0.0)

    def step(self, state, action):
        x, speed, current = state.pipeline_state
        speed = 0.9 * speed + 0.1 * action[0]
        x = x + 0.1 * (speed + current)
        return self._state(jnp.array([x, speed, current]), 0.1 * speed, jnp.abs(action[0]) > 0.8)

    def _state(self, ferry, reward, cost):
        across = jnp.where(jnp.abs(ferry[0]) > 5.0, 1.0, 0.0)
        return State(ferry, ferry[:2], reward, across, {}, {"cost": jnp.float32(cost)})


agent = PCPO(Ferry, cost_limit=10.0, batch_size=BATCH, seeds=4)
agent.learn(updates=UPDATES)
for row in agent.rows[-4:]:
    print(
        f"seed {row['seed']}: return {row['return']:.2f}, steps with much thrust {row['costs']['cost']:.1f} (limit 10)"
    )
