"""Whole episodes, one per column, and how to play them in a world that is written in JAX.

What is the same for every step, the passes through networks above all, is done on *rows*. The rows of a `Rollout` are
its steps as they lie there, ``[T, E]``, those included that were never played; the rows of a `Packed` are the steps
that were played, ``[N, 1]``. Both say how to go from one to the other, and all else is the same for both.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

State: TypeAlias = Any
"""What a world remembers of one environment: any pytree of arrays."""


class Rollout(NamedTuple):
    """E whole episodes of at most T steps, one per column. What lies after the end of an episode is zero."""

    observations: Float[Array, "T E o"]
    """As the environment gave them, before any normalisation; ``observations[t]`` is what action t was chosen on."""
    actions: Array
    """``[T, E, k]`` as sampled, before any clipping (Box), or ``[T, E]`` whole numbers (Discrete)."""
    rewards: Float[Array, "T E"]
    costs: Float[Array, "T E m"]
    mask: Bool[Array, "T E"]
    """Whether the step happened."""
    terminated: Bool[Array, " E"]
    """The episode ended by itself: nothing can be earned after it."""
    truncated: Bool[Array, " E"]
    """The episode was cut off at the horizon, where it might have gone on."""
    final_observations: Float[Array, "E o"]
    """The observation after the last step."""

    @property
    def played(self) -> Bool[Array, "T E"]:
        """Which rows are steps that happened."""
        return self.mask

    @property
    def times(self) -> Int[Array, "T E"]:
        """The time step of each row in its episode."""
        return jnp.broadcast_to(jnp.arange(self.mask.shape[0], dtype=jnp.int32)[:, None], self.mask.shape)

    def as_rows(self, x: Shaped[Array, "*k T E"]) -> Shaped[Array, "*k T E"]:
        """What is known of each step of each episode, by rows."""
        return x

    def as_episodes(self, x: Shaped[Array, "*k T E"]) -> Shaped[Array, "*k T E"]:
        """What is known of each row, by steps and episodes."""
        return x


class Packed(NamedTuple):
    """The same, of what was played alone: episode after episode in N rows, and the rest of the rows zero.

    For batches whose episodes end early. N is one of a few numbers, since each is another program.
    """

    observations: Float[Array, "N 1 o"]
    actions: Array
    """``[N, 1, k]`` or ``[N, 1]``."""
    rewards: Float[Array, "T E"]
    costs: Float[Array, "T E m"]
    mask: Bool[Array, "T E"]
    terminated: Bool[Array, " E"]
    truncated: Bool[Array, " E"]
    final_observations: Float[Array, "E o"]

    @property
    def played(self) -> Bool[Array, "N 1"]:
        """Which rows are steps that happened."""
        return (jnp.arange(self.observations.shape[0]) < jnp.sum(self.mask))[:, None]

    @property
    def times(self) -> Int[Array, "N 1"]:
        """The time step of each row in its episode; anything for the rows that are none."""
        return self._steps()[0][:, None]

    def as_rows(self, x: Shaped[Array, "*k T E"]) -> Shaped[Array, "*k N 1"]:
        """What is known of each step of each episode, by rows; zero in those that are none."""
        time, episode = self._steps()
        return jnp.where(self.played, x[..., time, episode][..., None], jnp.zeros((), x.dtype))

    def as_episodes(self, x: Shaped[Array, "*k N 1"]) -> Shaped[Array, "*k T E"]:
        """What is known of each row, by steps and episodes; zero where nothing was played."""
        first = self._ends() - jnp.sum(self.mask, axis=0, dtype=jnp.int32)
        row = first[None, :] + jnp.arange(self.mask.shape[0], dtype=jnp.int32)[:, None]
        return jnp.where(self.mask, x[..., jnp.where(self.mask, row, 0), 0], jnp.zeros((), x.dtype))

    def _steps(self) -> tuple[Int[Array, " N"], Int[Array, " N"]]:
        """Which step of which episode each row is."""
        row, ends = jnp.arange(self.observations.shape[0], dtype=jnp.int32), self._ends()
        episode = jnp.minimum(jnp.searchsorted(ends, row, side="right"), ends.shape[0] - 1)
        before = jnp.where(episode > 0, ends[jnp.maximum(episode - 1, 0)], 0)
        return jnp.minimum(row - before, self.mask.shape[0] - 1), episode

    def _ends(self) -> Int[Array, " E"]:
        """How many steps were played in each episode and those before it."""
        return jnp.cumsum(jnp.sum(self.mask, axis=0, dtype=jnp.int32))


AnyRollout: TypeAlias = Rollout | Packed


class Transition(NamedTuple):
    """What one step of one environment gives, besides its next state."""

    reward: Float[Array, ""]
    costs: Float[Array, " m"]
    terminated: Bool[Array, ""]


@runtime_checkable
class World(Protocol):
    """A task written in JAX, for one environment; many are had by `jax.vmap`."""

    @property
    def horizon(self) -> int:
        """Steps after which an episode is cut off."""
        ...

    @property
    def reset(self) -> Callable[[Key[Array, ""]], State]:
        """The state at the start of an episode."""
        ...

    @property
    def step(self) -> Callable[[State, Array], tuple[State, Transition]]:
        """The state after an action, and what it brought."""
        ...

    @property
    def observe(self) -> Callable[[State], Float[Array, " o"]]:
        """What the policy sees of a state."""
        ...


def play(
    world: World,
    act: Callable[[Float[Array, "E o"], Any], Array],
    keys: Key[Array, " E"],
    noise: Any,
) -> Rollout:
    """Plays one episode for each key.

    Args:
        world: The task.
        act: ``(observations, noise_t) -> actions`` for all episodes at once.
        keys: One for each reset; consumed.
        noise: A pytree of ``[T, E, ...]``: what ``act`` needs of randomness. Drawn beforehand for the whole batch, in
            one large operation in place of T small ones.
    """
    states = jax.vmap(world.reset)(keys)
    alive = jnp.ones(keys.shape, bool)

    def advance(carry: tuple[State, Array], noise_t: Any) -> tuple[tuple[State, Array], tuple[Array, ...]]:
        states, alive = carry
        observations = jax.vmap(world.observe)(states)
        actions = act(observations, noise_t)
        nexts, outcome = jax.vmap(world.step)(states, actions)
        nexts = jax.tree.map(lambda new, old: _where(alive, new, old), nexts, states)
        record = (observations, actions, outcome.reward, outcome.costs)
        ended = alive & outcome.terminated
        return (nexts, alive & ~outcome.terminated), (*(_where(alive, x) for x in record), alive, ended)

    # A GPU is told of ten steps at once: waiting for the next one to be started takes it longer than the step.
    unroll = 1 if jax.default_backend() == "cpu" else 10
    (states, alive), (observations, actions, rewards, costs, mask, ended) = jax.lax.scan(
        advance, (states, alive), noise, length=world.horizon, unroll=unroll
    )
    return Rollout(
        observations=observations,
        actions=actions,
        rewards=rewards,
        costs=costs,
        mask=mask,
        terminated=jnp.any(ended, axis=0),
        truncated=alive,
        final_observations=jax.vmap(world.observe)(states),
    )


def _where(alive: Bool[Array, " E"], new: Array, old: Array | None = None) -> Array:
    """``new`` for episodes that go on; ``old``, or zero, for those that have ended."""
    condition = alive.reshape(alive.shape + (1,) * (new.ndim - 1))
    return jnp.where(condition, new, jnp.zeros_like(new) if old is None else old)
