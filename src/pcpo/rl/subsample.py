"""A random part of a batch, drawn afresh in each update."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key


class Rows(NamedTuple):
    """Which steps of which episodes."""

    time: Int[Array, " k"]
    episode: Int[Array, " k"]

    def of(self, x: Array) -> Array:
        """The chosen rows of a ``[T, E, ...]`` array, ``[k, ...]``."""
        return x[self.time, self.episode]


def stratified_rows(key: Key[Array, ""], mask: Bool[Array, "T E"], count: int) -> Rows:
    """One step at random out of each of ``count`` equal stretches of all steps that happened, episode after episode.

    Every step is as likely as any other, each episode and each part of it is represented in proportion, and no step is
    drawn twice while there are more of them than are asked for. Costs no sorting, unlike a permutation. (The first
    fifth of a flattened ``[T, E]`` batch would be the first time steps of all episodes, which is no sample of it.)
    """
    lengths = jnp.sum(mask, axis=0, dtype=jnp.int32)
    ends = jnp.cumsum(lengths)
    total = ends[-1]
    stretch = total.astype(float) / count
    place = (jnp.arange(count) + jax.random.uniform(key, (count,))) * stretch
    step = jnp.clip(place.astype(jnp.int32), 0, jnp.maximum(total - 1, 0))
    episode = jnp.minimum(jnp.searchsorted(ends, step, side="right"), mask.shape[1] - 1)
    return Rows(step - (ends[episode] - lengths[episode]), episode)
