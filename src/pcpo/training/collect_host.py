"""Tasks simulated on the host: the simulator steps, a compiled policy decides, the learner is the same as everywhere.

Nothing of a batch is left when the next one begins: episodes are decided by (seed, iteration, episode), so that a run
can go on from a checkpoint although no simulator could be saved in one.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Int

from pcpo.rl.estimators import AnyCritics
from pcpo.rl.learner import Learner, Metrics, TrainState, make_learner
from pcpo.rl.networks import Network, Params, mlp
from pcpo.rl.normalize import Normalizer, seen_by_policy
from pcpo.rl.options import Hyper, Options
from pcpo.rl.policy import Policy, policy_for
from pcpo.rl.rollout import AnyRollout, Rollout
from pcpo.tasks.host import HostTask
from pcpo.training.collect_device import ALL_SEEDS
from pcpo.training.host.episodes import Plan, Played, play
from pcpo.training.host.fleet import Fleet, Hands, fleet_for
from pcpo.training.streams import EVALUATE, INIT, PLAY, UPDATE, arithmetic, episode_seeds, stream, typed

T = TypeVar("T")

FACTORS = (1, 2, 4, 8, 16)
"""A batch has this many times the episodes that would fill it if none ended early."""
ENOUGH = 0.7
"""Part of the wanted steps that a batch should have. Each factor is twice the one before: a batch has between 0.7 and
1.4 times the wanted steps, as far as the factors reach."""


BLOCK = 512
"""Observations on which the policy is evaluated at once, where as many environments play. Up to so many a call takes
hardly longer than one for a few: most of it is the hand-over to a thread of XLA's."""


class HostState(NamedTuple):
    """A `pcpo.rl.learner.TrainState` of several seeds, and how many episodes comes next."""

    params: Params
    critics: AnyCritics
    rule: Any
    normalizer: Normalizer
    iteration: Int[Array, ""]
    episodes: Int[Array | np.ndarray, " seeds"]
    """In the next batch of each seed."""


@dataclass
class HostProgram:
    """Some seeds of one task, trained one after the other; used like a `pcpo.training.collect_device.DeviceProgram`.

    Nothing is compiled again for another delta, limit or seed. The environments are made when they are first needed;
    `close` ends what was started for them, and they are made again if they are needed after that.
    """

    task: HostTask
    policy: Policy
    critic: Network
    learner: Learner
    options: Options
    batch_size: int
    seeds: tuple[int, ...]
    precision: str
    environments: int
    """How many play at once. Up to `BLOCK`, it is the block on which the policy is evaluated."""
    hands: Hands
    """Who steps them; no part of the arithmetic."""
    told: list[str] = field(default_factory=list[str])
    """What went wrong and was mended, for whoever shows it and empties the list."""
    _fleet: Fleet | None = None

    @property
    def episodes(self) -> int:
        """Episodes in the first batch of each seed."""
        return -(-self.batch_size // self.task.horizon)

    def init(self, hyper: Hyper) -> HostState:
        """The state before the first update; every leaf but the iteration has a leading axis of seeds."""
        with arithmetic(self.precision):
            state = self._init(jnp.asarray(self.seeds, jnp.uint32), typed(hyper))
            return _host_state(state, jnp.full(len(self.seeds), self.episodes, jnp.int32))

    def update(self, state: HostState, hyper: Hyper) -> tuple[HostState, dict[str, Any]]:
        """One update of every seed. Returns once the last batch has been played, before what it gives is there.

        Raises:
            WorldError: If an environment cannot go on. The state that was passed is as it was.
        """
        with arithmetic(self.precision):
            numbers, iteration = typed(hyper), int(state.iteration)
            done: list[tuple[TrainState, Metrics]] = []
            following: list[int] = []
            failures: list[int] = []
            for place, seed in enumerate(self.seeds):
                one = of_one(state, place)
                log, failed = self._play(one, seed, PLAY, iteration, int(state.episodes[place]))
                done.append(self._update(one, log.batch(), numbers, jnp.uint32(seed)))
                length = log.steps / log.line.shape[1]
                following.append(next_episodes(self.batch_size, self.episodes, length))
                failures.append(failed)
            trained, metrics = _stacked(done)
            after = _host_state(trained._replace(iteration=trained.iteration[0]), np.array(following, np.int32))
            return after, {**metrics, "worker_failures": np.array(failures)}

    def rollout(self, state: HostState, iteration: int, episodes: int, deterministic: bool = False) -> Rollout:
        """Episodes of the policies in a state, none of them ever seen in training; a leading axis of seeds.

        Args:
            state: Whose policies play.
            iteration: Numbers the batch: another number, other episodes.
            episodes: Episodes of each seed.
            deterministic: Whether each policy plays its likeliest action.
        """
        with arithmetic(self.precision):
            played = [
                self._play(of_one(state, place), seed, EVALUATE, iteration, episodes, deterministic).rollout
                for place, seed in enumerate(self.seeds)
            ]
            return jax.tree.map(lambda *x: np.stack(x), *played)

    def try_out(self) -> None:
        """Makes one step of one environment, so that what is wrong from the first step on is said before all else.

        Raises:
            WorldError: If the environment does what none may do. Whatever else fails is left to the first batch.
        """

        def one_step(fleet: Fleet) -> bool:
            first = np.zeros(1, np.int64)
            fleet.table.seeds[first], fleet.table.actions[first] = 0, 0
            return not any(fleet.run(command, first) for command in ("reset", "step"))

        if not self._with_fleet(one_step):
            self.close()

    def close(self) -> None:
        """Ends all processes. Another batch would start them again."""
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            fleet.close()

    def _play(
        self, state: TrainState, seed: int, use: int, iteration: int, episodes: int, deterministic: bool = False
    ) -> Played:
        """A batch of one policy, in numpy's arrays."""
        what = "the evaluation" if use == EVALUATE else "update"
        device = _host()
        with jax.default_device(device):
            noise = np.asarray(self._noise(jnp.uint32(seed), jnp.uint32(use), jnp.int32(iteration), episodes))
            params, normalizer = jax.device_put((state.params, state.normalizer), device)
            plan = Plan(
                seeds=episode_seeds(seed, use, iteration, episodes),
                noise=noise,
                block=min(self.environments, BLOCK),
                where=f"{what} {iteration}, seed {seed}",
            )

            def act(observations: npt.NDArray[Any], noise: npt.NDArray[Any]) -> npt.NDArray[Any]:
                return np.asarray(self._act(params, normalizer, observations, noise, deterministic))

            return self._with_fleet(lambda fleet: play(self.task, fleet, act, plan, self.told.append))

    def _with_fleet(self, work: Callable[[Fleet], T]) -> T:
        """Does something with the environments. After an error nobody knows what they are doing: they go."""
        if self._fleet is None:
            self._fleet = fleet_for(self.task, self.environments, self.hands)
        try:
            return work(self._fleet)
        except BaseException:  # also Ctrl-C
            self.close()
            raise

    @functools.cached_property
    def _init(self) -> Callable[[Array, Hyper], TrainState]:
        def one(seed: Array, hyper: Hyper) -> TrainState:
            return self.learner.init(stream(seed, INIT), hyper)

        return jax.jit(jax.vmap(one, in_axes=(0, None), out_axes=ALL_SEEDS))

    @functools.cached_property
    def _update(self) -> Callable[[TrainState, AnyRollout, Hyper, Array], tuple[TrainState, Metrics]]:
        def update(state: TrainState, rollout: AnyRollout, hyper: Hyper, seed: Array) -> tuple[TrainState, Metrics]:
            key = jax.random.fold_in(stream(seed, UPDATE), state.iteration)
            return self.learner.update(state, rollout, hyper, key)

        return jax.jit(update)

    @functools.cached_property
    def _noise(self) -> Callable[[Array, Array, Array, int], Array]:
        def noise(seed: Array, use: Array, iteration: Array, episodes: int) -> Array:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), use), iteration)
            keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(episodes))
            return jax.vmap(lambda k: self.policy.distribution.noise(k, (self.task.horizon,)), out_axes=1)(keys)

        return jax.jit(noise, static_argnums=3)

    @functools.cached_property
    def _act(self) -> Callable[[Params, Normalizer, Any, Any, bool], Array]:
        distribution = self.policy.distribution

        def act(
            params: Params, normalizer: Normalizer, observations: Array, noise: Array, deterministic: bool
        ) -> Array:
            seen = seen_by_policy(normalizer, observations, self.options.normalize_batches)
            p = self.policy.apply(params, seen)
            return distribution.mode(p) if deterministic else distribution.sample(p, noise)

        # Threads of the policy would take cores from the simulator, and such small products gain nothing by them.
        alone = {"xla_cpu_multi_thread_eigen": False} if _host().platform == "cpu" else None
        return jax.jit(act, static_argnums=4, compiler_options=alone)


def host_program(
    task: HostTask,
    options: Options,
    *,
    batch_size: int,
    seeds: tuple[int, ...],
    hidden: tuple[int, ...] = (64, 32),
    precision: str = "float32",
    policy: Policy | None = None,
    critic: Network | None = None,
    environments: int = 0,
    hands: Hands = Hands(),  # noqa: B008 (unchangeable)
) -> HostProgram:
    """The program that trains on a task.

    Args:
        task: The task.
        options: The learner's choices.
        batch_size: Steps per update and seed, about; see `next_episodes`.
        seeds: One policy is trained for each.
        hidden: Widths of the hidden layers of policy and critics, unless they are given.
        precision: ``"float32"`` or ``"float64"``.
        policy: A policy of your own.
        critic: A critic's network of your own, with one output.
        environments: How many play at once; 0 for the task's own number.
        hands: Who steps them: how many processes, or threads. No part of the arithmetic.

    Raises:
        ValueError: If the precision is none, or the task has no use for the hands.
    """
    hands.check(task)
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision is {precision!r}; pass 'float32' or 'float64'")
    policy = policy or policy_for(task.observation_size, task.action_space, hidden)
    critic = critic or mlp([task.observation_size, *hidden, 1])
    learner = make_learner(policy, critic, task.observation_size, options)
    return HostProgram(
        task, policy, critic, learner, options, batch_size, seeds, precision,
        environments or task.environments, hands,
    )  # fmt: skip


def next_episodes(batch_size: int, episodes: int, length: float) -> int:
    """How many episodes a batch has after one whose mean length is known.

    So many that steps are not much fewer than wanted, and one of a few numbers, since each compiles an update of its
    own. It is known before the batch begins, so that no episode's length decides whether it is counted.

    Args:
        batch_size: The steps that are wanted.
        episodes: Enough for them if none ends early.
        length: Mean length of an episode in the last batch.

    Example:
        >>> [next_episodes(1000, 5, length) for length in (200.0, 120.0, 60.0, 1.0)]
        [5, 10, 20, 80]
    """
    counts = [episodes * factor for factor in FACTORS]
    return next((count for count in counts if count * length >= ENOUGH * batch_size), counts[-1])


@jax.jit
def of_one(state: HostState, place: int | Array) -> TrainState:
    """What the learner knows of one seed, by its place."""
    parts = {
        name: part if getattr(ALL_SEEDS, name) is None else jax.tree.map(lambda x: x[place], part)
        for name, part in state._asdict().items()
        if name in TrainState._fields
    }
    return TrainState(**parts)


@jax.jit
def _stacked(trees: list[Any]) -> Any:
    """Trees of single seeds as one tree whose leaves have a leading axis of seeds."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _host_state(state: TrainState, episodes: Array | npt.NDArray[Any]) -> HostState:
    return HostState(**state._asdict(), episodes=episodes)


def _host() -> Any:
    """Where the policy is evaluated: a small network on few observations is done before a GPU has begun."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # jax was told to use nothing but another platform
        return jax.local_devices()[0]
