"""An environment of your own under a limit: a courier that may not overheat its motor.

The faster it drives, the more it earns, and the hotter its motor becomes. Every step with a motor above 1 costs 1, and
an episode may cost 10.
"""

import gymnasium
import numpy as np

from pcpo import PCPO

UPDATES = 60
BATCH = 8000


class Courier(gymnasium.Env):
    """A cart on a straight road: earn what you drive, keep the motor cool."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.speed, self.heat = 0.0, self.np_random.uniform(0.0, 0.5)
        return np.array([self.speed, self.heat]), {}

    def step(self, action):
        thrust = float(action[0])
        self.speed += 0.2 * (thrust - self.speed)
        self.heat += 0.1 * (2 * thrust**2 - self.heat)
        cost = float(self.heat > 1.0)
        return np.array([self.speed, self.heat]), self.speed, False, False, {"cost": cost}


if __name__ == "__main__":  # the processes that step the environments import this file too
    agent = PCPO(Courier, cost_limit=10.0, max_episode_steps=200, batch_size=BATCH)
    agent.learn(updates=UPDATES)

    first, last = agent.rows[0], agent.rows[-1]
    print(f"return {first['return']:.0f} -> {last['return']:.0f}, cost {last['costs']['cost']:.1f} (limit 10)")

    thrust, _ = agent.predict([0.8, 0.9])
    print("at speed 0.8 with a motor at 0.9 it gives", thrust)
    agent.save("courier.safetensors")
