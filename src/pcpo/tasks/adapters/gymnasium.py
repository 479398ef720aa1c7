"""Any Gymnasium environment as a task for the host, with the costs that it reports or that are computed from its steps.

An environment is made in this process once, to read its spaces, and closed again; those that are stepped are made in
processes of their own (`pcpo.training.host`).
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import load_env_creator

from pcpo.tasks.adapters.gymnasium_costs import CostSpec, costs_of
from pcpo.tasks.adapters.gymnasium_spaces import Observations, actions_of, observations_of
from pcpo.tasks.adapters.gymnasium_worlds import GymnasiumWorlds, Kind, Maker, close_quietly, made
from pcpo.tasks.host import HostTask

ENVIRONMENTS = 16
"""Of one batch, unless the command says otherwise."""


def from_gymnasium(
    make: Maker,
    cost: CostSpec = None,
    max_episode_steps: int | None = None,
    name: str | None = None,
    draw: Maker | None = None,
) -> HostTask:
    """A task from a function that makes a Gymnasium environment.

    Args:
        make: Makes one environment, a new one each time; a lambda or a closure will do.
        cost: Where costs come from, see `pcpo.tasks.adapters.gymnasium_costs.costs_of`: a key of ``info`` or several, a
            function ``cost(observation, action, next_observation, info)``, a mapping from names to these, ``()`` for
            none. Where not given: ``info["cost"]``, or the third value of a step that gives six.
        max_episode_steps: Steps after which an episode is cut off; the environment's own limit where not given.
        name: What the task is called in files and messages.
        draw: Makes one that renders as ``"rgb_array"``, where ``make`` does not; without either there are no films.

    Raises:
        ValueError: If the environment cannot be made or learnt, or nothing says when its episodes end.

    Example:
        >>> task = from_gymnasium(lambda: gymnasium.make("CartPole-v1"), cost=lambda obs, action, after, info: 0.0)
        >>> task.observation_size, task.action_space, task.horizon, task.cost_names
        (4, Discrete(n=2), 500, ('cost',))
    """
    costs = costs_of(cost)
    env = _looked_at(make, name)
    try:
        name = _name(env, make) if name is None else name
        observations, actions = _spaces(env, name)
        horizon = _horizon(env, name, max_episode_steps)
        draw = make if draw is None and getattr(env, "render_mode", None) == "rgb_array" else draw
    finally:
        close_quietly(env)
    kind = Kind(name, make, observations, actions, costs)
    return HostTask(
        name=name,
        observation_size=observations.size,
        action_space=actions.ours,
        horizon=horizon,
        cost_names=costs.names,
        worlds=kind,
        environments=ENVIRONMENTS,
        encode=None if observations.vectors else functools.partial(_encode, observations),
        decode=actions.decode,
        paint=None if draw is None else _picture,
        visible=None if draw is None else dataclasses.replace(kind, make=draw),
    )


def named_environment(
    identifier: str, options: Mapping[str, Any], cost: CostSpec = None, max_episode_steps: int | None = None
) -> HostTask:
    """A task from the name that Gymnasium knows an environment by.

    Args:
        identifier: As ``gymnasium.make`` takes it.
        options: Arguments of the environment.
        cost: As for `from_gymnasium`.
        max_episode_steps: In place of the registered limit.

    Raises:
        ValueError: As for `from_gymnasium`; also if there is no such environment.
    """
    make = functools.partial(
        gymnasium.make, identifier, max_episode_steps=max_episode_steps, disable_env_checker=True, **options
    )
    draws = "rgb_array" in _render_modes(identifier) and "render_mode" not in options
    draw = functools.partial(make, render_mode="rgb_array") if draws else None
    return from_gymnasium(make, cost, max_episode_steps, f"gym:{identifier}", draw)


def is_environment(thing: Any) -> bool:
    """Whether something is an environment of Gymnasium's kind."""
    methods = all(callable(getattr(thing, name, None)) for name in ("reset", "step", "close"))
    return methods and hasattr(thing, "action_space") and hasattr(thing, "observation_space")


def _looked_at(make: Maker, name: str | None) -> Any:
    called = name or getattr(make, "__name__", "the function that makes the environment")
    try:
        return made(called, make)
    except ValueError:  # a WorldError says it all
        raise
    except Exception as error:
        raise ValueError(f"{called}: no environment could be made ({type(error).__name__}: {error})") from error


def _name(env: Any, make: Maker) -> str:
    """The registered name, or that of the function or class."""
    spec = getattr(env, "spec", None)
    if spec is not None:
        return spec.id
    name = getattr(make, "__name__", "")
    return name if name.isidentifier() else type(getattr(env, "unwrapped", env)).__name__


def _spaces(env: Any, name: str) -> tuple[Observations, Any]:
    missing = [each for each in ("observation_space", "action_space") if not hasattr(env, each)]
    if missing:
        raise ValueError(f"{name} has no {missing[0]}; an environment sets both of its spaces in __init__")
    try:
        return observations_of(env.observation_space), actions_of(env.action_space)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def _horizon(env: Any, name: str, given: int | None) -> int:
    if given is not None and (isinstance(given, bool) or int(given) != given or given < 1):
        raise ValueError(f"max_episode_steps is {given!r}; give a whole number of steps, such as 500")
    limits = [limit for limit in (given, _own_limit(env)) if limit is not None]
    if not limits:
        raise ValueError(
            f"{name} has no time limit, so an episode might never end; give max_episode_steps=500 (--max-episode-steps "
            "500), or however many steps an episode shall have at most"
        )
    return int(min(limits))


def _own_limit(env: Any) -> int | None:
    """The shortest limit that a wrapper or the registration sets."""
    found: list[int] = []
    while env is not None:
        limit = getattr(env, "_max_episode_steps", None) if isinstance(env, gymnasium.wrappers.TimeLimit) else None
        registered = getattr(env.__dict__.get("spec"), "max_episode_steps", None) if hasattr(env, "__dict__") else None
        found += [each for each in (limit, registered) if isinstance(each, int)]
        env = env.env if isinstance(env, gymnasium.Wrapper) else None
    return min(found, default=None)


def _render_modes(identifier: str) -> list[str]:
    """How a registered environment can draw itself."""
    try:
        entry_point: Any = gymnasium.spec(identifier).entry_point
        creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    except Exception:  # noqa: BLE001 (whatever is wrong is said when it is made)
        return []
    return list(getattr(creator, "metadata", {}).get("render_modes", ()))


def _encode(observations: Observations, observation: Any) -> npt.NDArray[np.float64]:
    """Of one observation, as a policy outside of training gets it."""
    return np.asarray(observations.encode(observation), np.float64)


def _picture(task: Any, scenes: Any, rewards: Any, costs: Any) -> npt.NDArray[np.uint8]:
    """What the environment drew last."""
    del task, rewards, costs
    return scenes[-1]


__all__ = ["GymnasiumWorlds", "from_gymnasium", "is_environment", "named_environment"]
