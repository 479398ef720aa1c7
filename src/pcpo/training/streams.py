"""What all programs of a run share: streams of random numbers, types of numbers, precision."""

import contextlib
from collections.abc import Generator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from pcpo.rl.options import Hyper

INIT, PLAY, UPDATE, EVALUATE = range(4)
"""What the randomness of a seed is for; each use has a stream of its own."""


def stream(seed: Array | int, use: int) -> Key[Array, ""]:
    """The key of one use of a seed."""
    return jax.random.fold_in(jax.random.key(seed), use)


def episode_seeds(seed: int, use: int, iteration: int, episodes: int) -> Int[np.ndarray, " E"]:
    """What episodes on the host are reset with: 31 bits each, since some simulators take no more.

    Episode i has the same one however many there are.
    """
    words = [np.random.SeedSequence((seed, use, iteration, i)).generate_state(1)[0] for i in range(episodes)]
    return np.array(words, np.int64) >> 1


def typed(hyper: Hyper) -> Hyper:
    """Numbers as arrays of one type, so that 5 and 5.0 and an array of 5 are the same program."""
    return Hyper(*(jnp.asarray(x, float) for x in hyper))


@contextlib.contextmanager
def arithmetic(precision: str) -> Generator[None]:
    """The run's own precision, whatever the process is set to. A GPU would otherwise round factors to 10 bits."""
    with jax.enable_x64(precision == "float64"), jax.default_matmul_precision("highest"):
        yield
