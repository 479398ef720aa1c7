"""An episode of a policy as pictures, for a film."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float, Key

from pcpo.tasks.draw import film
from pcpo.tasks.episode import play_one
from pcpo.training.collect_device import DeviceProgram, of_one

Picture = npt.NDArray[np.uint8]
"""``[height, width, 3]``."""


def film_episodes(
    program: DeviceProgram, state: Any, policy: int = 0, episodes: int = 1, seed: int = 0, deterministic: bool = False
) -> Iterator[Picture]:
    """The pictures of some episodes, one episode after the other.

    Args:
        program: What trained the policies.
        state: Where their training stands, as `DeviceProgram.init` or a checkpoint gives it.
        policy: Which of the program's seeds, counted from 0.
        episodes: How many.
        seed: Of the first episode; the next one has the next. The same seed gives the same episode.
        deterministic: Whether to play the likeliest action rather than to draw one as in training.
    """
    for number in range(seed, seed + episodes):
        with jax.enable_x64(program.precision == "float64"):
            reset_key, act_key = jax.random.split(jax.random.key(number))
            act = _player(program, of_one(state, policy), act_key, deterministic)
            episode = play_one(program.task, act, reset_key)
        yield from film(program.task, episode.states, episode.rewards, episode.costs)


def _player(
    program: DeviceProgram, state: Any, key: Key[Array, ""], deterministic: bool
) -> Callable[[Float[Array, " o"], int], Any]:
    """``act(observation, t)`` of one policy."""
    distribution = program.policy.distribution
    noise = distribution.noise(key, (program.task.horizon,))

    @jax.jit
    def choose(observation: Array, noise_t: Any) -> Array:
        seen = state.normalizer.apply(observation) if program.options.normalize_batches else observation
        p = program.policy.apply(state.params, seen[None])
        return (distribution.mode(p) if deterministic else distribution.sample(p, noise_t))[0]

    return lambda observation, t: choose(observation, jax.tree.map(lambda x: x[t][None], noise))
