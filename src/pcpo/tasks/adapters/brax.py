"""Environments of Brax, and others with its API, as tasks for the device: MuJoCo Playground's and CRAX's among them.

Such an environment is two functions, ``reset(key) -> state`` and ``step(state, action) -> state``, whose states carry
``obs``, ``reward``, ``done``, ``metrics`` and ``info``. Nothing of Brax is needed to run one.

What they all leave unsaid: actions are between -1 and 1 in each component, and are clipped to that here. Where an
observation is a mapping that holds ``"state"``, as in Playground, that part is for the policy, and the rest (such as
``"privileged_state"``) is what it must do without; of any other mapping the policy sees all parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from pcpo.rl.rollout import Transition
from pcpo.rl.spaces import Box
from pcpo.tasks.adapters import _jax
from pcpo.tasks.adapters._jax import Costs, CostSpec, costs_of, their_rules
from pcpo.tasks.api import DeviceTask

TRUNCATION = "truncation"
"""What Brax's EpisodeWrapper calls a time limit's word in ``info``."""
FIRST = "first_"
"""How the entries of ``info`` begin with which Brax's AutoResetWrapper begins the next episode by itself."""


class BraxState(NamedTuple):
    """What is remembered of one environment."""

    inner: Any
    """The environment's own state."""


def is_brax(env: Any) -> bool:
    """Whether an object has the API of Brax's environments."""
    return all(callable(getattr(env, name, None)) for name in ("reset", "step")) and hasattr(env, "action_size")


def from_brax(env: Any, cost: CostSpec = None, horizon: int | None = None, name: str | None = None) -> DeviceTask:
    """A task from an environment with the API of Brax.

    Args:
        env: The environment, without the wrappers that Brax's own training puts around it: episodes are cut off, begun
            and vmapped here.
        cost: The names of costs in ``info`` or ``metrics``, a function ``cost(observation, action, next_observation,
            info)`` written in jax, whose ``info`` holds both, or a mapping from names to either; ``()`` for none.
            ``"cost"`` where not given.
        horizon: Steps after which an episode is cut off; the environment's ``episode_length`` where it has one.
        name: What the task is called; the name of the class where not given.

    Raises:
        ValueError: If it is no such environment, begins episodes by itself, or gives no such cost. One line that says
            what to do.

    Example:
        >>> from brax import envs  # doctest: +SKIP
        >>> from_brax(envs.get_environment("ant"), cost=(), horizon=1000)  # doctest: +SKIP
    """
    if not is_brax(env):
        raise ValueError(
            f"{env!r} is no environment of Brax's kind: it needs reset(key), step(state, action) and action_size"
        )
    name = type(env).__name__ if name is None else name
    size = env.action_size
    world = _Brax(name, env, Box((-1.0,) * size, (1.0,) * size), costs_of(cost))
    return DeviceTask(
        name=name,
        observation_size=world.checked_observation_size(),
        action_space=world.space,
        horizon=_jax.horizon_of(name, horizon, _own_limit(env), "an episode_length"),
        cost_names=world.costs.names,
        reset=world.reset,
        step=world.step,
        observe=world.observe,
    )


@dataclass(frozen=True, eq=False)
class _Brax:
    """The functions of the task."""

    name: str
    env: Any
    space: Box
    costs: Costs

    def reset(self, key: Key[Array, ""]) -> BraxState:
        """Their keys are of the old kind, two whole numbers, since many keep them among other arrays."""
        with their_rules():
            state = BraxState(self.env.reset(jax.random.key_data(key)))
            self._check(state.inner)
            return _jax.settled(self.name, lambda state: self._advance(state, _jax.an_action(self.space)), state)

    def step(self, state: BraxState, action: Array) -> tuple[BraxState, Transition]:
        """One step; what it brought is a part of the next state."""
        with their_rules():
            after = _jax.kept(self.name, self._advance(state, action), state)
            return after, self._outcome(state, action, after)

    def observe(self, state: BraxState) -> Float[Array, " o"]:
        """All numbers of what the policy may see, in one row."""
        with their_rules():
            return _jax.flat(_seen(state.inner.obs))

    def checked_observation_size(self) -> int:
        """The size of an observation. Traces a reset and a step, so that what is wrong is said now."""

        def episode(key: Key[Array, ""]) -> tuple[Array, Transition]:
            state, outcome = self.step(self.reset(key), _jax.an_action(self.space))
            return self.observe(state), outcome

        return jax.eval_shape(episode, jax.random.key(0))[0].shape[0]

    def _advance(self, state: BraxState, action: Array) -> BraxState:
        return BraxState(self.env.step(state.inner, self._sent(action)))

    def _sent(self, action: Array) -> Array:
        return _jax.to_bounds(self.space, (self.space.size,), action)

    def _outcome(self, before: BraxState, action: Array, after: BraxState) -> Transition:
        inner = after.inner
        reported = {**inner.metrics, **inner.info}
        return Transition(
            reward=_jax.single(inner.reward, float, f"the reward of {self.name}"),
            costs=self.costs(self.name, _seen(before.inner.obs), self._sent(action), _seen(inner.obs), reported),
            terminated=self._terminated(inner),
        )

    def _terminated(self, inner: Any) -> Bool[Array, ""]:
        """Whether the episode ended by itself: not where Brax's EpisodeWrapper has cut it off."""
        done = _jax.single(inner.done, bool, f"the end of {self.name}")
        cut = inner.info.get(TRUNCATION)
        return done if cut is None else done & ~_jax.single(cut, bool, f"the {TRUNCATION} of {self.name}")

    def _check(self, inner: Any) -> None:
        """Whether a state is what a state of Brax is, of one environment that does not begin episodes by itself."""
        missing = [part for part in ("obs", "reward", "done", "metrics", "info") if not hasattr(inner, part)]
        if missing:
            raise ValueError(
                f"the state of {self.name} has no {missing[0]}; a state of Brax's kind has obs, reward, done, metrics "
                "and info"
            )
        if any(str(part).startswith(FIRST) for part in inner.info):
            raise ValueError(
                f"{self.name} begins the next episode by itself, which loses the last observation of each; give the "
                "environment without its AutoResetWrapper (or with wrap=False)"
            )
        if jnp.ndim(inner.done):
            raise ValueError(
                f"{self.name} steps several environments at once (its done has the shape {jnp.shape(inner.done)}); "
                "give the environment without its VmapWrapper"
            )


def _seen(observation: Any) -> Any:
    """What the policy may see of an observation."""
    if isinstance(observation, Mapping) and "state" in observation:
        return observation["state"]
    return observation


def _own_limit(env: Any) -> int | None:
    """What the environment or a wrapper around it says of the length of its episodes."""
    limit = getattr(env, "episode_length", None)
    return limit if isinstance(limit, int) else None
