"""Running mean and variance of the observations."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

CLIP = 10.0
"""Normalised observations stay within this many standard deviations."""


class Normalizer(NamedTuple):
    """Statistics of all observations of the first batches; with nothing seen it changes nothing."""

    seen: Float[Array, ""]
    mean: Float[Array, " o"]
    variance: Float[Array, " o"]
    batches: Int[Array, ""]

    def apply(self, observations: Float[Array, "*batch o"]) -> Float[Array, "*batch o"]:
        """Observations with mean 0 and variance 1; unchanged before the first statistics.

        A component that never varied is centred only. Its variance need not be zero: the mean of a million equal
        numbers is not quite that number, and dividing by the difference would make noise of it.
        """
        deviation = jnp.sqrt(self.variance)
        rounding = 32.0 * jnp.finfo(deviation.dtype).eps * jnp.abs(self.mean)
        scale = jnp.where(deviation <= rounding, 1.0, deviation)
        shape = (1,) * (observations.ndim - 1) + (-1,)
        centred = (observations - self.mean.reshape(shape)) / scale.reshape(shape)
        return jnp.where(self.seen > 0.0, jnp.clip(centred, -CLIP, CLIP), observations)


def seen_by_policy(
    normalizer: Normalizer, observations: Float[Array, "*batch o"], batches: int
) -> Float[Array, "*batch o"]:
    """Observations as a policy sees them, wherever it acts or learns; ``batches`` is ``Options.normalize_batches``."""
    return normalizer.apply(observations) if batches else observations


def empty(size: int) -> Normalizer:
    """No statistics yet."""
    return Normalizer(jnp.zeros((), float), jnp.zeros(size, float), jnp.zeros(size, float), jnp.zeros((), jnp.int32))


def include(
    normalizer: Normalizer, observations: Float[Array, "T E o"], mask: Bool[Array, "T E"], until: int
) -> Normalizer:
    """The statistics with one more batch in them, merged as by Chan et al. (1979); frozen after ``until`` batches."""
    weights = mask.astype(observations.dtype)[..., None]
    count = jnp.sum(weights)
    mean = jnp.sum(weights * observations, axis=(0, 1)) / jnp.maximum(count, 1.0)
    spread = jnp.sum(weights * (observations - mean[None, None, :]) ** 2, axis=(0, 1))
    total = normalizer.seen + count
    shift = mean - normalizer.mean
    share = count / jnp.maximum(total, 1.0)
    squares = normalizer.variance * normalizer.seen + spread + shift**2 * normalizer.seen * share
    merged = Normalizer(
        seen=total,
        mean=normalizer.mean + shift * share,
        variance=squares / jnp.maximum(total, 1.0),
        batches=normalizer.batches + 1,
    )
    frozen = normalizer.batches >= until
    return Normalizer(*(jnp.where(frozen, old, new) for old, new in zip(normalizer, merged, strict=True)))
