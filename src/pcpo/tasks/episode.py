"""One episode, step by step, for those who want to look at it. Training plays thousands at once instead."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pcpo.rl.rollout import State
from pcpo.rl.spaces import Discrete
from pcpo.tasks.api import DeviceTask, HostTask
from pcpo.tasks.host import VisibleWorlds


class Episode(NamedTuple):
    """What happened, from the reset to the end."""

    states: list[State]
    """One more than there are steps."""
    rewards: list[float]
    costs: list[list[float]]
    """``costs[t][i]``: of step t, in the order of the task's ``cost_names``."""


def play_one(task: DeviceTask, act: Callable[[Float[Array, " o"], int], Any], key: Key[Array, ""]) -> Episode:
    """Plays until the task ends or the horizon is reached.

    Args:
        task: The task.
        act: ``(observation, t) -> action``.
        key: For the reset; consumed.

    Example:
        >>> from pcpo.tasks.registry import make
        >>> episode = play_one(make("point-circle"), lambda observation, t: (1.0, 0.0), jax.random.key(0))
        >>> len(episode.rewards), sum(cost for (cost,) in episode.costs)
        (50, 47.0)
    """
    step, observe = compiled(task)
    state = task.reset(key)
    episode = Episode([state], [], [])
    for t in range(task.horizon):
        state, outcome = step(state, jnp.asarray(act(observe(state), t), _real(task)))
        episode.states.append(state)
        episode.rewards.append(float(outcome.reward))
        episode.costs.append(np.asarray(outcome.costs).tolist())
        if outcome.terminated:
            break
    return episode


class HostEpisode(NamedTuple):
    """What happened in a task on the host."""

    scenes: list[Any]
    """One more than there are steps; none where the task has nothing to draw."""
    rewards: list[float]
    costs: list[list[float]]
    """``costs[t][i]``: of step t, in the order of the task's ``cost_names``."""


def play_on_host(task: HostTask, act: Callable[[Float[np.ndarray, " o"], int], Any], seed: int) -> HostEpisode:
    """What `play_one` does, for tasks on the host.

    Args:
        task: The task.
        act: ``(observation, t) -> action``.
        seed: Decides the episode.
    """
    which, worlds = np.zeros(1, np.int64), (task.visible or task.worlds)(1)
    episode = HostEpisode([], [], [])
    try:
        observation = worlds.reset(which, np.array([seed]))[0]
        _look(task, worlds, episode)
        for t in range(task.horizon):
            outcome = worlds.step(which, np.asarray(act(observation, t))[None])
            observation = outcome.observations[0]
            episode.rewards.append(float(outcome.rewards[0]))
            episode.costs.append(outcome.costs[0].tolist())
            _look(task, worlds, episode)
            if outcome.terminated[0] or outcome.truncated[0]:
                break
    finally:
        worlds.close()
    return episode


def _look(task: HostTask, worlds: Any, episode: HostEpisode) -> None:
    """Remembers what a picture would show, if there can be one."""
    if task.paint is not None and isinstance(worlds, VisibleWorlds):
        episode.scenes.append(worlds.scene(0))


@functools.lru_cache(maxsize=32)
def compiled(task: DeviceTask) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``step`` and ``observe`` of the task, compiled once."""
    return jax.jit(task.step), jax.jit(task.observe)


def _real(task: DeviceTask) -> Any:
    """What actions are made of."""
    return int if isinstance(task.action_space, Discrete) else float
