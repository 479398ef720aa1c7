"""The tasks as Gymnasium environments, so that any other library can train on them.

Those written in JAX are `TaskEnv`, those on the host are `HostTaskEnv`.

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
from pcpo.tasks.api import DeviceTask, HostTask, Task
from pcpo.tasks.host import VisibleWorlds
from pcpo.tasks.scene import Scene

Observation = npt.NDArray[np.floating[Any]]


ENTRY_POINTS = {
    "ant-circle": "pcpo.tasks.ant.env:AntEnv",
    "ant-gather": "pcpo.tasks.ant.env:AntEnv",
    "grid": "pcpo.tasks.traffic.env:TrafficEnv",
    "bottleneck": "pcpo.tasks.traffic.env:TrafficEnv",
}
"""Of tasks whose environments can do more than `TaskEnv` and `HostTaskEnv`."""


def register() -> None:
    """Makes all tasks known to Gymnasium, each under the name `identifier` gives it."""
    for name in registry.names():
        if identifier(name) not in gymnasium.registry:
            task = registry.make(name)
            usual = TaskEnv if isinstance(task, DeviceTask) else HostTaskEnv
            gymnasium.register(
                id=identifier(name),
                entry_point=ENTRY_POINTS.get(name, f"{__name__}:{usual.__name__}"),
                max_episode_steps=task.horizon,
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
        made = _named(task, options) if isinstance(task, str) else task
        if not isinstance(made, DeviceTask):
            raise TypeError(f"{made.name} is a task on the host; use HostTaskEnv for it")
        self.task = made
        _check_render_mode(made, render_mode, self.metadata["render_modes"], made.scene is not None)
        self.render_mode = render_mode
        self._dtype = np.dtype(jnp.zeros(()).dtype)
        self.action_space = _space(self.task.action_space, self._dtype)
        self.observation_space = _observations(self.task, self._dtype)
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


class HostTaskEnv(gymnasium.Env[Observation, Any]):
    """One environment of a task on the host; otherwise like `TaskEnv`.

    Args:
        task: Name of a task on the host, or such a task.
        render_mode: "rgb_array" draws pictures.
        **options: Of a named task. Its horizon is ``max_episode_steps`` here.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, task: str | HostTask, render_mode: str | None = None, **options: Any) -> None:
        made = _named(task, options) if isinstance(task, str) else task
        if not isinstance(made, HostTask):
            raise TypeError(f"{made.name} is no task on the host; use TaskEnv for it")
        self.task = made
        _check_render_mode(made, render_mode, self.metadata["render_modes"], made.paint is not None)
        self.render_mode = render_mode
        self.action_space = _space(made.action_space, np.dtype(np.float64))
        self.observation_space = _observations(made, np.dtype(np.float64))
        self.worlds = (made.worlds if render_mode is None else made.visible or made.worlds)(1)
        self._playing = False
        self._scenes: list[Any] = []
        self._rewards: list[float] = []
        self._costs: list[list[float]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: Of this and all later episodes.
            options: ``{"episode": number}`` begins the very episode that the task's worlds give for that seed.
        """
        super().reset(seed=seed)
        number = int((options or {}).get("episode", self.np_random.integers(2**31)))
        observation = self.worlds.reset(_ONLY, np.array([number]))[0]
        self._playing = True
        self._scenes, self._rewards, self._costs = [], [], []
        self._remember()
        return observation, {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Takes one step; see `TaskEnv` for ``info``."""
        self._require_reset()
        given = np.asarray(action, self.action_space.dtype)
        if given.shape != self.action_space.shape:
            raise ValueError(f"the action has the shape {given.shape}; {self.task.name} takes {self.action_space}")
        outcome = self.worlds.step(_ONLY, given[None])
        reward, costs = float(outcome.rewards[0]), outcome.costs[0].tolist()
        info = {"cost": sum(costs)} | dict(zip(self.task.cost_names, costs, strict=True))
        self._rewards.append(reward)
        self._costs.append(costs)
        self._remember()
        return outcome.observations[0], reward, bool(outcome.terminated[0]), bool(outcome.truncated[0]), info

    def render(self) -> npt.NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The episode so far: ``[height, width, 3]``."""
        if self.render_mode is None or self.task.paint is None:
            return None
        if not self._scenes:
            raise gymnasium.error.ResetNeeded("call reset() before the first render()")
        return self.task.paint(self.task, self._scenes, self._rewards, self._costs)

    def close(self) -> None:
        """Frees what the simulator holds."""
        self.worlds.close()

    def _require_reset(self) -> None:
        if not self._playing:
            raise gymnasium.error.ResetNeeded("call reset() before the first step()")

    def _remember(self) -> None:
        """Keeps what pictures show, if there will be any."""
        if self.render_mode is not None and isinstance(self.worlds, VisibleWorlds):
            self._scenes.append(self.worlds.scene(0))


_ONLY = np.zeros(1, np.int64)
"""The number of the only environment."""


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


def _check_render_mode(task: Task, mode: str | None, modes: list[str], visible: bool) -> None:
    """Refuses a mode that there is not, or one for a task of which there are no pictures."""
    if mode not in (None, *modes):
        raise ValueError(f"render_mode is {mode!r}; there is 'rgb_array', or None for no pictures")
    if mode is not None and not visible:
        raise ValueError(f"render_mode is {mode!r}, but {task.name} has no scene to draw; leave it out")


def _observations(task: Task, dtype: np.dtype[Any]) -> spaces.Space[Any]:
    """Nothing in an observation is unbounded in fact, but little is bounded by the rules."""
    largest = float(np.finfo(dtype).max)
    return spaces.Box(-largest, largest, (task.observation_size,), dtype.type)


def _named(name: str, options: dict[str, Any]) -> Task:
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
