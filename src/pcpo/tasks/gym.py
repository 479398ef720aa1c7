"""The tasks as Gymnasium environments, so that any other library can train on them.

Importing this module registers them; ``gymnasium.make("pcpo.tasks.gym:pcpo/PointCircle-v0")`` does both at once.
Until version 1.0 removed its plug-ins, Gymnasium looked for the entry point ``gymnasium.envs`` by itself. The entry
point is still declared, for whoever reads it; with Gymnasium 1.x something has to name the module.
"""

import functools
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from pcpo.rl.rollout import State
from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks import registry
from pcpo.tasks.api import DeviceTask
from pcpo.tasks.scene import Scene

Observation = npt.NDArray[np.floating[Any]]


def register() -> None:
    """Makes all tasks known to Gymnasium, each under the name `identifier` gives it."""
    for name in registry.names():
        if identifier(name) not in gymnasium.registry:
            gymnasium.register(
                id=identifier(name),
                entry_point=f"{__name__}:TaskEnv",
                max_episode_steps=registry.make(name).horizon,
                kwargs={"task": name},
            )


def identifier(name: str) -> str:
    """Gymnasium's name of a task.

    Example:
        >>> identifier("point-circle")
        'pcpo/PointCircle-v0'
    """
    return "pcpo/" + "".join(word.capitalize() for word in name.split("-")) + "-v0"


class TaskEnv(gymnasium.Env[Observation, Any]):
    """One environment of a task.

    ``info["cost"]`` of a step is the sum of its costs, and each cost is there under its own name too. It is cut off at
    the horizon by Gymnasium's TimeLimit, which ``gymnasium.make`` puts around it.

    Args:
        task: Name of a task, or a task.
        render_mode: "rgb_array" draws pictures from above.
        **options: Of a named task. Its horizon is ``max_episode_steps`` here.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, task: str | DeviceTask, render_mode: str | None = None, **options: Any) -> None:
        self.task = _named(task, options) if isinstance(task, str) else task
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is {render_mode!r}; there is 'rgb_array', or None for no pictures")
        if render_mode is not None and self.task.scene is None:
            raise ValueError(f"render_mode is {render_mode!r}, but {self.task.name} has no scene to draw; leave it out")
        self.render_mode = render_mode
        self._dtype = np.dtype(jnp.zeros(()).dtype)
        self.action_space = _space(self.task.action_space, self._dtype)
        # Nothing in an observation is unbounded in fact, but little is bounded by the rules.
        largest = float(np.finfo(self._dtype).max)
        self.observation_space = spaces.Box(-largest, largest, (self.task.observation_size,), self._dtype.type)
        self._state: State = None
        self._scenes: list[Scene] = []
        self._rewards: list[float] = []
        self._costs: list[list[float]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: Of this and all later episodes.
            options: ``{"key": key}`` begins with exactly the state that the task's ``reset(key)`` gives.
        """
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31))
        key = (options or {}).get("key")
        self._state, observation = _begin(self.task, jax.random.key(number) if key is None else key)
        self._scenes, self._rewards, self._costs = [], [], []
        self._remember()
        return np.array(observation), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Takes one step; see the class for ``info``."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before the first step()")
        whole = isinstance(self.task.action_space, Discrete)
        self._state, packed = _follow(self.task, self._state, np.asarray(action, np.int32 if whole else self._dtype))
        numbers, first = np.asarray(packed), 2 + len(self.task.cost_names)
        reward, terminated, *costs = numbers[:first].tolist()
        info = {"cost": sum(costs)} | dict(zip(self.task.cost_names, costs, strict=True))
        self._rewards.append(reward)
        self._costs.append(costs)
        self._remember()
        return numbers[first:].copy(), reward, bool(terminated), False, info

    def render(self) -> npt.NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The episode so far, seen from above: ``[height, width, 3]``."""
        if self.render_mode is None:
            return None
        if not self._scenes:
            raise gymnasium.error.ResetNeeded("call reset() before the first render()")
        from pcpo.tasks.draw import paint

        return paint(self.task, self._scenes, self._rewards, self._costs)

    def _remember(self) -> None:
        """Keeps what pictures show, if there will be any."""
        if self.render_mode is not None and self.task.scene is not None:
            self._scenes.append(self.task.scene(self._state))


# Compiled once for a task, however many environments there are of it.
@functools.partial(jax.jit, static_argnums=0)
def _begin(task: DeviceTask, key: Any) -> tuple[State, jax.Array]:
    state = task.reset(key)
    return state, task.observe(state)


@functools.partial(jax.jit, static_argnums=0)
def _follow(task: DeviceTask, state: State, action: Any) -> tuple[State, jax.Array]:
    """The next state, and everything else in one array: each array that leaves jax takes its time."""
    state, outcome = task.step(state, action)
    ahead = jnp.stack([outcome.reward, outcome.terminated.astype(outcome.reward.dtype)])
    return state, jnp.concatenate([ahead, outcome.costs, task.observe(state)])


def _named(name: str, options: dict[str, Any]) -> DeviceTask:
    if "horizon" in options:
        raise ValueError(
            "the horizon of a Gymnasium environment is max_episode_steps; give gymnasium.make that instead"
        )
    return registry.make(name, **options)


def _space(space: Box | Discrete, dtype: np.dtype[Any]) -> spaces.Space[Any]:
    if isinstance(space, Discrete):
        return spaces.Discrete(space.n)
    return spaces.Box(np.asarray(space.low, dtype), np.asarray(space.high, dtype), dtype=dtype.type)


register()
