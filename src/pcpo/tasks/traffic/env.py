"""The traffic tasks as Gymnasium environments, with what can be known of each light and each car."""

from typing import Any

from pcpo.tasks.gym import HostTaskEnv, Observation
from pcpo.tasks.traffic.world import TrafficWorlds


class TrafficEnv(HostTaskEnv):
    """Grid or Bottleneck.

    Beyond `HostTaskEnv`, ``info`` of a reset and of a step has the details that the task's page lists: red ages, slow
    spells, speeds, arrivals. One environment may be open in a process at a time.
    """

    worlds: TrafficWorlds

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """As `HostTaskEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        return observation, info | self.worlds.world.details()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """As `HostTaskEnv.step`."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, info | self.worlds.world.details()
