"""Tasks written in JAX: rollout and update are one compiled program, on the CPU and on a GPU alike."""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from pcpo.rl.distributions import Distribution
from pcpo.rl.learner import Learner, Metrics, TrainState, make_learner
from pcpo.rl.networks import Network, Params, mlp
from pcpo.rl.normalize import Normalizer, seen_by_policy
from pcpo.rl.options import Hyper, Options
from pcpo.rl.policy import Policy, policy_for
from pcpo.rl.rollout import Rollout, play
from pcpo.tasks.api import DeviceTask
from pcpo.training.streams import EVALUATE, INIT, PLAY, UPDATE, arithmetic, stream, typed

_AXES: dict[str, Any] = dict.fromkeys(TrainState._fields, 0) | {"iteration": None}
ALL_SEEDS = TrainState(**_AXES)
"""Where a state has its axis of seeds. All seeds are at the same iteration, so that what is due now and then is due for
all at once, and nobody pays for what is not due."""


@dataclass(frozen=True)
class DeviceProgram:
    """Some seeds of one task, trained side by side.

    ``update`` returns at once, before its results are there: several calls may be made between looks at the clock, and
    how many is no part of the arithmetic. Nothing is compiled again for another delta, limit or seed.
    """

    task: DeviceTask
    policy: Policy
    critic: Network
    learner: Learner
    options: Options
    episodes: int
    """Episodes in a batch, of each seed."""
    seeds: tuple[int, ...]
    precision: str

    def init(self, hyper: Hyper) -> TrainState:
        """The state before the first update; every leaf but the iteration has a leading axis of seeds."""
        with arithmetic(self.precision):
            return self._compiled.init(self._seeds(), typed(hyper))

    def update(self, state: TrainState, hyper: Hyper) -> tuple[TrainState, Metrics]:
        """One update of every seed. The state that is passed is used up."""
        with arithmetic(self.precision):
            return self._compiled.update(state, self._seeds(), typed(hyper))

    def rollout(self, state: TrainState, iteration: int, episodes: int, deterministic: bool = False) -> Rollout:
        """Episodes of the policies in a state, none of them ever seen in training; a leading axis of seeds.

        Args:
            state: Whose policies play.
            iteration: Numbers the batch: another number, other episodes.
            episodes: Episodes of each seed.
            deterministic: Whether each policy plays its likeliest action.
        """
        with arithmetic(self.precision):
            return self._compiled.rollout(state, self._seeds(), jnp.int32(iteration), episodes, deterministic)

    @functools.cached_property
    def _compiled(self) -> "_Compiled":
        like = dataclasses.replace(self, seeds=tuple(range(len(self.seeds))))
        return _compiled(like) if _is_hashable(like) else _Compiled(like)

    def _seeds(self) -> Array:
        return jnp.asarray(self.seeds, jnp.uint32)


@dataclass(frozen=True)
class _Compiled:
    """The functions of a program, each compiled when it is first needed; seeds are among their arguments."""

    program: DeviceProgram

    @functools.cached_property
    def init(self) -> Callable[[Array, Hyper], TrainState]:
        def one(seed: Array, hyper: Hyper) -> TrainState:
            return self.program.learner.init(stream(seed, INIT), hyper)

        return jax.jit(jax.vmap(one, in_axes=(0, None), out_axes=ALL_SEEDS))

    @functools.cached_property
    def update(self) -> Callable[[TrainState, Array, Hyper], tuple[TrainState, Metrics]]:
        program = self.program

        def one(state: TrainState, seed: Array, hyper: Hyper) -> tuple[TrainState, Metrics]:
            play_key = jax.random.fold_in(stream(seed, PLAY), state.iteration)
            update_key = jax.random.fold_in(stream(seed, UPDATE), state.iteration)
            rollout = play_policy(program, state.params, state.normalizer, play_key, program.episodes)
            return program.learner.update(state, rollout, hyper, update_key)

        return jax.jit(_over_seeds(one, len(program.seeds)), donate_argnums=0)

    @functools.cached_property
    def rollout(self) -> Callable[..., Rollout]:
        program = self.program

        def all_seeds(state: TrainState, seeds: Array, iteration: Array, episodes: int, deterministic: bool) -> Rollout:
            def one(state: TrainState, seed: Array) -> Rollout:
                key = jax.random.fold_in(stream(seed, EVALUATE), iteration)
                return play_policy(program, state.params, state.normalizer, key, episodes, deterministic)

            return jax.vmap(one, in_axes=(ALL_SEEDS, 0))(state, seeds)

        return jax.jit(all_seeds, static_argnums=(3, 4))


_compiled = functools.lru_cache(maxsize=8)(_Compiled)
"""Programs that differ in their seeds alone, or not at all, are compiled once in a process."""


def _is_hashable(value: Any) -> bool:
    """Whether something can be looked up; what users bring, a function that holds arrays say, may not be."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def device_program(
    task: DeviceTask,
    options: Options,
    *,
    batch_size: int,
    seeds: tuple[int, ...],
    hidden: tuple[int, ...] = (64, 32),
    precision: str = "float32",
    policy: Policy | None = None,
    critic: Network | None = None,
) -> DeviceProgram:
    """The program that trains on a task.

    Args:
        task: The task.
        options: The learner's choices.
        batch_size: Steps per update and seed, rounded up to whole episodes.
        seeds: One policy is trained for each.
        hidden: Widths of the hidden layers of policy and critics, unless they are given.
        precision: ``"float32"`` or ``"float64"``.
        policy: A policy of your own.
        critic: A critic's network of your own, with one output.
    """
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision is {precision!r}; pass 'float32' or 'float64'")
    made = (task, options, hidden, policy, critic)
    policy, critic, learner = _parts(*made) if _is_hashable(made) else _parts.__wrapped__(*made)
    episodes = -(-batch_size // task.horizon)
    return DeviceProgram(task, policy, critic, learner, options, episodes, seeds, precision)


@functools.lru_cache(maxsize=8)
def _parts(
    task: DeviceTask, options: Options, hidden: tuple[int, ...], policy: Policy | None, critic: Network | None
) -> tuple[Policy, Network, Learner]:
    """Policy, critic and learner; the same ones for the same choices, so that they are compiled once."""
    policy = policy or policy_for(task.observation_size, task.action_space, hidden)
    critic = critic or mlp([task.observation_size, *hidden, 1])
    return policy, critic, make_learner(policy, critic, task.observation_size, options)


def of_one(state: Any, policy: int) -> Any:
    """The state of one seed, counted from 0."""
    parts = {
        name: jax.tree.map(lambda x: jnp.asarray(x)[policy], part)
        for name, part in state._asdict().items()
        if getattr(ALL_SEEDS, name) is not None
    }
    return state._replace(**parts)


def play_policy(
    program: DeviceProgram,
    params: Params,
    normalizer: Normalizer,
    key: Key[Array, ""],
    episodes: int,
    deterministic: bool = False,
) -> Rollout:
    """Episodes of one policy. Episode i has a key of its own, whatever their number."""
    distribution: Distribution = program.policy.distribution

    def act(observations: Array, noise: Any) -> Array:
        seen = seen_by_policy(normalizer, observations, program.options.normalize_batches)
        p = program.policy.apply(params, seen)
        return distribution.mode(p) if deterministic else distribution.sample(p, noise)

    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(episodes))
    reset_keys, noise_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    noise = jax.vmap(lambda k: distribution.noise(k, (program.task.horizon,)), out_axes=1)(noise_keys)
    return play(program.task, act, reset_keys, noise)


def _over_seeds(one: Callable[..., Any], count: int) -> Callable[..., Any]:
    """One seed's function for all seeds at once. A single seed is not vmapped: its products stay plain ones."""
    if count > 1:
        return jax.vmap(one, in_axes=(ALL_SEEDS, 0, None), out_axes=(ALL_SEEDS, 0))

    def single(state: TrainState, seeds: Array, hyper: Hyper) -> tuple[TrainState, Metrics]:
        squeezed = state._replace(**{k: jax.tree.map(lambda x: x[0], v) for k, v in _batched(state).items()})
        state, metrics = one(squeezed, seeds[0], hyper)
        expanded = {k: jax.tree.map(lambda x: x[None], v) for k, v in _batched(state).items()}
        return state._replace(**expanded), jax.tree.map(lambda x: x[None], metrics)

    return single


def _batched(state: TrainState) -> dict[str, Any]:
    return {name: value for name, value in state._asdict().items() if name != "iteration"}
