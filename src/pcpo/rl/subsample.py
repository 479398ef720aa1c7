"""A random part of a batch, drawn afresh in each update."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key

WHOLE = 128
"""Large samples have a multiple of so many rows."""


class Rows(NamedTuple):
    """Which steps of which episodes."""

    time: Int[Array, " k"]
    episode: Int[Array, " k"]

    def of(self, x: Array) -> Array:
        """The chosen rows of a ``[T, E, ...]`` array, ``[k, ...]``."""
        return x[self.time, self.episode]


def sample_size(fraction: float, steps: int) -> int:
    """Rows in a sample of that part of so many steps; from 1280 on the next multiple of 128, if there are as many.

    A GPU divides a sum over rows among its processors. Where the number of rows is odd for that, XLA copies the whole
    array into a longer one first, in each product with H anew: a twentieth of an update with 64 seeds.

    Example:
        >>> sample_size(0.2, 50_000), sample_size(0.2, 1_000), sample_size(1.0, 50_000)
        (10112, 200, 50000)
    """
    count = max(1, round(fraction * steps))
    whole = -(-count // WHOLE) * WHOLE
    return whole if count >= 10 * WHOLE and whole <= steps else count


def stratified_rows(key: Key[Array, ""], mask: Bool[Array, "T E"], count: int) -> Rows:
    """One step at random out of each of ``count`` stretches of all steps that happened, episode after episode.

    Every step is as likely as any other, each episode and each part of it is represented in proportion, and no step is
    drawn twice while there are as many of them as are asked for. Costs no sorting, unlike a permutation. (The first
    fifth of a flattened ``[T, E]`` batch would be the first time steps of all episodes, which is no sample of it.)

    Stretches are whole steps, some of them one longer than the others; they begin at a random step and close in a
    circle, so that no step is more often than another in a long one. Where more are asked for than there are, all are
    drawn in turn.
    """
    lengths = jnp.sum(mask, axis=0, dtype=jnp.int32)
    ends = jnp.cumsum(lengths)
    total = ends[-1]
    start_key, place_key = jax.random.split(key)
    stretch = jnp.arange(count, dtype=jnp.int32)
    shortest, longer = total // count, total % count
    size = jnp.maximum(shortest + (stretch < longer).astype(jnp.int32), 1)
    first = jax.random.randint(start_key, (), 0, jnp.maximum(total, 1), jnp.int32)
    border = stretch * shortest + jnp.where(shortest > 0, jnp.minimum(stretch, longer), stretch)
    place = first + border + jax.random.randint(place_key, (count,), 0, size, jnp.int32)
    step = place % jnp.maximum(total, 1)
    episode = jnp.minimum(jnp.searchsorted(ends, step, side="right"), mask.shape[1] - 1)
    return Rows(step - (ends[episode] - lengths[episode]), episode)
