"""An episode of a policy as pictures, for a film."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float, Key

from pcpo.tasks.draw import film, host_film
from pcpo.tasks.episode import play_on_host, play_one
from pcpo.training import collect_host
from pcpo.training.collect_device import of_one
from pcpo.training.collect_host import HostProgram
from pcpo.training.programs import AnyProgram
from pcpo.training.streams import arithmetic

Picture = npt.NDArray[np.uint8]
"""``[height, width, 3]``."""


def film_episodes(
    program: AnyProgram, state: Any, policy: int = 0, episodes: int = 1, seed: int = 0, deterministic: bool = False
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
        with arithmetic(program.precision):
            reset_key, act_key = jax.random.split(jax.random.key(number))
            if isinstance(program, HostProgram):
                act = _player(program, collect_host.of_one(state, policy), act_key, deterministic)
                played = play_on_host(program.task, act, number)
                pictures = host_film(program.task, played.scenes, played.rewards, played.costs)
            else:
                act = _player(program, of_one(state, policy), act_key, deterministic)
                episode = play_one(program.task, act, reset_key)
                pictures = film(program.task, episode.states, episode.rewards, episode.costs)
        yield from pictures


def _player(program: AnyProgram, state: Any, key: Key[Array, ""], deterministic: bool) -> Callable[[Any, int], Any]:
    """``act(observation, t)`` of one policy."""
    distribution = program.policy.distribution
    noise = distribution.noise(key, (program.task.horizon,))

    @jax.jit
    def choose(observation: Float[Array, " o"], noise_t: Any) -> Array:
        seen = state.normalizer.apply(observation) if program.options.normalize_batches else observation
        p = program.policy.apply(state.params, seen[None])
        return (distribution.mode(p) if deterministic else distribution.sample(p, noise_t))[0]

    return lambda observation, t: choose(jnp.asarray(observation, float), jax.tree.map(lambda x: x[t][None], noise))
