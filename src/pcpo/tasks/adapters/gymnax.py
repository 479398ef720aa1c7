"""Environments of gymnax, and others with its API, as tasks for the device.

Both of its APIs are understood: 0.0.x, whose ``done`` is also true at the time limit, and 1.x, which tells
``terminated`` from ``truncated``. Their ``step`` begins the next episode by itself and returns its first observation;
so ``step_env`` is used, which does not, and the last observation of an episode is kept.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from pcpo.rl.rollout import Transition
from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.adapters import _jax
from pcpo.tasks.adapters._jax import Costs, CostSpec, costs_of, their_rules
from pcpo.tasks.api import DeviceTask

NEVER = 2**30
"""A time limit that no episode reaches."""


class GymnaxState(NamedTuple):
    """What is remembered of one environment."""

    inner: Any
    """The environment's own state."""
    observation: Any
    """As the environment gave it."""
    key: Key[Array, ""]
    """Its dynamics may be random, so that every step needs a key."""


def is_gymnax(env: Any) -> bool:
    """Whether an object has the API of gymnax's environments."""
    return all(callable(getattr(env, name, None)) for name in ("reset_env", "step_env", "action_space"))


def from_gymnax(
    env: Any, params: Any = None, cost: CostSpec = None, horizon: int | None = None, name: str | None = None
) -> DeviceTask:
    """A task from an environment of gymnax.

    Args:
        env: The environment, or its name, as ``gymnax.make`` takes it.
        params: Its parameters; its ``default_params`` where not given.
        cost: The names of costs in ``info``, a function ``cost(observation, action, next_observation, info)`` written
            in jax, or a mapping from names to either; ``()`` for none. ``info["cost"]`` where not given.
        horizon: Steps after which an episode is cut off; ``params.max_steps_in_episode`` where not given.
        name: What the task is called; made of the environment's name where not given.

    Raises:
        ValueError: If it is no such environment, is wrapped, or gives no such cost. One line that says what to do.

    Example:
        >>> from_gymnax("Pendulum-v1", cost=lambda obs, action, next_obs, info: abs(next_obs[2]) > 4)  # doctest: +SKIP
    """
    if isinstance(env, str):
        env, default = _made(env)
        params = default if params is None else params
    _check_kind(env)
    params = env.default_params if params is None else params
    name = f"gymnax:{env.name}" if name is None else name
    own = getattr(params, "max_steps_in_episode", None)
    horizon = _jax.horizon_of(name, horizon, own, "max_steps_in_episode among its parameters")
    world = _Gymnax(name, env, _with_limit(params, horizon), _space(name, env.action_space(params)), costs_of(cost))
    size = world.checked_observation_size()
    return DeviceTask(
        name=name,
        observation_size=size,
        action_space=world.space,
        horizon=horizon,
        cost_names=world.costs.names,
        reset=world.reset,
        step=world.step,
        observe=world.observe,
    )


@dataclass(frozen=True, eq=False)
class _Gymnax:
    """The functions of the task."""

    name: str
    env: Any
    params: Any
    space: Box | Discrete
    costs: Costs

    def reset(self, key: Key[Array, ""]) -> GymnaxState:
        """Half of the key begins the episode, half of it is for its steps."""
        begin, steps = jax.random.split(key)
        with their_rules():
            observation, inner = self.env.reset_env(begin, self.params)
            state = GymnaxState(inner, observation, steps)
            return _jax.settled(self.name, lambda state: self._advance(state, _jax.an_action(self.space))[0], state)

    def step(self, state: GymnaxState, action: Array) -> tuple[GymnaxState, Transition]:
        """One step, without the reset that would follow the last one."""
        with their_rules():
            after, outcome = self._advance(state, action)
            return _jax.kept(self.name, after, state), outcome

    def observe(self, state: GymnaxState) -> Float[Array, " o"]:
        """All numbers of the observation in one row; a choice of n as n numbers, one of which is 1."""
        with their_rules():
            n = getattr(self.env.observation_space(self.params), "n", None)
            return _jax.flat(state.observation if n is None else jax.nn.one_hot(state.observation.astype(int), n))

    def checked_observation_size(self) -> int:
        """The size of an observation. Traces a reset and a step, so that what is wrong is said now."""

        def episode(key: Key[Array, ""]) -> tuple[Array, Transition]:
            state, outcome = self.step(self.reset(key), _jax.an_action(self.space))
            return self.observe(state), outcome

        return jax.eval_shape(episode, jax.random.key(0))[0].shape[0]

    def _advance(self, state: GymnaxState, action: Array) -> tuple[GymnaxState, Transition]:
        key, later = jax.random.split(state.key)
        sent = self._sent(action)
        observation, inner, reward, done, info = self.env.step_env(key, state.inner, sent, self.params)
        outcome = Transition(
            reward=_jax.single(reward, float, f"the reward of {self.name}"),
            costs=self.costs(self.name, state.observation, sent, observation, info),
            terminated=self._terminated(inner, _jax.single(done, bool, f"the end of {self.name}")),
        )
        return GymnaxState(inner, observation, later), outcome

    def _sent(self, action: Array) -> Array:
        if isinstance(self.space, Discrete):
            return action
        return _jax.to_bounds(self.space, self.env.action_space(self.params).shape, action)

    def _terminated(self, inner: Any, done: Bool[Array, ""]) -> Bool[Array, ""]:
        """Whether the episode ended by itself, in both APIs: in the old one, done may be the time limit's word."""
        if hasattr(self.env, "is_truncated") or not hasattr(inner, "time") or not _has_limit(self.params):
            return done
        cut = inner.time >= self.params.max_steps_in_episode
        for_good = jnp.asarray(self.env.is_terminal(inner, _with_limit(self.params, NEVER)), bool).reshape(())
        return jnp.where(cut, done & for_good, done)


def _made(name: str) -> tuple[Any, Any]:
    """What ``gymnax.make`` makes."""
    try:
        import gymnax  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError(
            f"gymnax:{name} needs gymnax, which cannot be imported ({error}); install it with: pip install gymnax six"
        ) from None
    make: Callable[[str], tuple[Any, Any]] = gymnax.make
    if name not in gymnax.registered_envs:
        raise ValueError(
            f"gymnax has no environment {name!r}; it has {', '.join(gymnax.registered_envs)}. One of your own goes "
            "through a function of yours that makes it: package.module:factory"
        )
    with their_rules():
        return make(name)


def _check_kind(env: Any) -> None:
    if hasattr(env, "_env"):
        raise ValueError(
            f"{type(env).__name__} wraps an environment of gymnax, and what it changes would be lost; give the "
            "environment itself: observations are flattened here, and episodes are never begun by themselves"
        )
    if not is_gymnax(env):
        raise ValueError(
            f"{env!r} is no environment of gymnax: it needs reset_env(key, params), step_env(key, state, action, "
            "params) and action_space(params). (A step that begins the next episode by itself loses the last "
            "observation, so that step alone is not enough.)"
        )
    if not _cuts_at_the_limit_only(env):
        raise ValueError(
            f"{type(env).__name__} has an is_truncated of its own, but a task can only be cut off at its horizon; let "
            "its step_env say that the episode has ended, or leave its end to the horizon"
        )


def _cuts_at_the_limit_only(env: Any) -> bool:
    """In the new API, whether ``is_truncated`` is the one that all have."""
    owner = next((kind for kind in type(env).__mro__ if "is_truncated" in vars(kind)), None)
    return owner is None or owner.__name__ == "Environment"


def _has_limit(params: Any) -> bool:
    return hasattr(params, "max_steps_in_episode")


def _with_limit(params: Any, steps: int) -> Any:
    """The parameters with another time limit, where they have one: what an episode sees of its time is then right."""
    return dataclasses.replace(params, max_steps_in_episode=steps) if _has_limit(params) else params


def _space(name: str, space: Any) -> Box | Discrete:
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if hasattr(space, "low") and hasattr(space, "high"):
        return _jax.box(space.low, space.high, tuple(space.shape))
    raise ValueError(f"the actions of {name} are {space!r}; only Box and Discrete can be learnt")
