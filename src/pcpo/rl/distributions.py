"""Distributions over actions: what a policy's network parametrises.

Each is a family of pure functions on ``[N]`` states at once. Its parameters are a NamedTuple, in which only what
differs from state to state has the leading axis N.
"""

import math
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pcpo.rl.spaces import Box, Discrete

LOG_STD_FLOOR = math.log(1e-6)
"""Standard deviations never go below 1e-6, as in the paper's code."""


class Distribution(Protocol):
    """A family of distributions over the actions of one space."""

    def init(self) -> Any:
        """Parameters that do not come from the network; any pytree."""
        ...

    def parameters(self, outputs: Float[Array, "N o"], own: Any) -> Any:
        """The distribution in each state, from the network's outputs and the own parameters."""
        ...

    def noise(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Array:
        """The randomness of ``shape`` many actions, drawn before their distributions are known."""
        ...

    def sample(self, p: Any, noise: Array) -> Array:
        """One action per state, from such randomness."""
        ...

    def mode(self, p: Any) -> Array:
        """The likeliest action per state."""
        ...

    def log_prob(self, p: Any, actions: Array) -> Float[Array, " N"]:
        """Logarithm of the density or probability of one action per state."""
        ...

    def kl(self, old: Any, new: Any) -> Float[Array, " N"]:
        """KL(old || new) in each state; exactly zero for equal parameters."""
        ...

    def entropy(self, p: Any) -> Float[Array, " N"]:
        """Entropy in each state."""
        ...

    def fisher(self, p: Any, tangent: Any, weights: Float[Array, " N"]) -> Any:
        """Hessian of ``sum_i weights_i KL(p_i || q_i)`` in q at q = p, times a tangent of p."""
        ...


class Normal(NamedTuple):
    """Independent normal distributions; the deviations are the same in every state."""

    mean: Float[Array, "N k"]
    log_std: Float[Array, " k"]


class Gaussian(NamedTuple):
    """Diagonal normal distributions with a free log standard deviation, which starts at 0.

    The density is that of the action as sampled: what an environment clips is its own affair.
    """

    size: int

    def init(self) -> Float[Array, " k"]:
        """The log standard deviations."""
        return jnp.zeros(self.size, float)

    def parameters(self, outputs: Float[Array, "N k"], own: Float[Array, " k"]) -> Normal:
        """Means from the network, deviations of its own."""
        return Normal(outputs, jnp.maximum(own, LOG_STD_FLOOR))

    def noise(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Array:
        """Standard normal numbers, one per component."""
        return jax.random.normal(key, (*shape, self.size), float)

    def sample(self, p: Normal, noise: Float[Array, "N k"]) -> Float[Array, "N k"]:
        """Mean plus deviation times noise."""
        return p.mean + jnp.exp(p.log_std)[None, :] * noise

    def mode(self, p: Normal) -> Float[Array, "N k"]:
        """The mean."""
        return p.mean

    def log_prob(self, p: Normal, actions: Float[Array, "N k"]) -> Float[Array, " N"]:
        r""":math:`-\sum_j \tfrac12 z_j^2 + \log\sigma_j + \tfrac12 \log 2\pi` with :math:`z = (a - \mu) / \sigma`."""
        z = (actions - p.mean) * jnp.exp(-p.log_std)[None, :]
        constant = jnp.sum(p.log_std) + 0.5 * self.size * math.log(2.0 * math.pi)
        return -0.5 * jnp.sum(z * z, axis=-1) - constant

    def kl(self, old: Normal, new: Normal) -> Float[Array, " N"]:
        r""":math:`\sum_j \tfrac12 (e^{2s_j} - 1) - s_j + \tfrac12 (\mu_j - \mu'_j)^2 / \sigma_j'^2`.

        Here :math:`s = \log(\sigma / \sigma')`. In this form nothing of order one cancels, so that a divergence of
        1e-6 keeps its digits in float32.
        """
        s = old.log_std - new.log_std
        moved = (old.mean - new.mean) * jnp.exp(-new.log_std)[None, :]
        return jnp.sum(0.5 * _exp_remainder(2.0 * s)) + 0.5 * jnp.sum(moved * moved, axis=-1)

    def entropy(self, p: Normal) -> Float[Array, " N"]:
        r""":math:`\sum_j \log\sigma_j + \tfrac12 \log 2\pi e`."""
        each = jnp.sum(p.log_std) + 0.5 * self.size * math.log(2.0 * math.pi * math.e)
        return jnp.broadcast_to(each, p.mean.shape[:1])

    def fisher(self, p: Normal, tangent: Normal, weights: Float[Array, " N"]) -> Normal:
        r""":math:`1/\sigma^2` for the mean, 2 for the log standard deviation."""
        mean = weights[:, None] * tangent.mean * jnp.exp(-2.0 * p.log_std)[None, :]
        return Normal(mean, 2.0 * jnp.sum(weights) * tangent.log_std)


class Choice(NamedTuple):
    """Logarithms of probabilities, up to a constant in each state."""

    logits: Float[Array, "N n"]


class Categorical(NamedTuple):
    """One of n choices; the network gives the logits."""

    size: int

    def init(self) -> tuple[()]:
        """Nothing but the network's outputs."""
        return ()

    def parameters(self, outputs: Float[Array, "N n"], own: tuple[()]) -> Choice:
        """The logits."""
        del own
        return Choice(outputs)

    def noise(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Array:
        """Gumbel numbers: the largest of logit plus Gumbel is a sample."""
        return jax.random.gumbel(key, (*shape, self.size), float)

    def sample(self, p: Choice, noise: Float[Array, "N n"]) -> Int[Array, " N"]:
        """The Gumbel-max trick."""
        return jnp.argmax(p.logits + noise, axis=-1)

    def mode(self, p: Choice) -> Int[Array, " N"]:
        """The largest logit."""
        return jnp.argmax(p.logits, axis=-1)

    def log_prob(self, p: Choice, actions: Int[Array, " N"]) -> Float[Array, " N"]:
        """The normalised logit of the action, picked by a sum so that its gradient is a product and no scatter."""
        chosen = jax.nn.one_hot(actions, self.size, dtype=p.logits.dtype)
        return jnp.sum(chosen * jax.nn.log_softmax(p.logits), axis=-1)

    def kl(self, old: Choice, new: Choice) -> Float[Array, " N"]:
        r""":math:`\sum_j p_j \log (p_j / p'_j)`.

        Those terms are of first order and cancel to second: in float32 a divergence of 1e-6 would be noise, of either
        sign. With z the difference of the logits less its mean under p it is
        :math:`\log(1 + \sum_j p_j (e^{z_j} - 1 - z_j))`, where nothing cancels. Large z, whose exponential may not be
        finite, take the first form.
        """
        before, after = jax.nn.log_softmax(old.logits), jax.nn.log_softmax(new.logits)
        p, z = jnp.exp(before), new.logits - old.logits
        z = z - jnp.sum(p * z, axis=-1, keepdims=True)
        near = jnp.max(jnp.abs(z), axis=-1) < 1.0
        remainders = _exp_remainder(jnp.where(near[:, None], z, 0.0))
        return jnp.where(near, jnp.log1p(jnp.sum(p * remainders, axis=-1)), jnp.sum(p * (before - after), axis=-1))

    def entropy(self, p: Choice) -> Float[Array, " N"]:
        r""":math:`-\sum_j p_j \log p_j`."""
        logs = jax.nn.log_softmax(p.logits)
        return -jnp.sum(jnp.exp(logs) * logs, axis=-1)

    def fisher(self, p: Choice, tangent: Choice, weights: Float[Array, " N"]) -> Choice:
        r""":math:`(\mathrm{diag}(p) - p p')` times the tangent of the logits."""
        q = jax.nn.softmax(p.logits)
        centred = tangent.logits - jnp.sum(q * tangent.logits, axis=-1, keepdims=True)
        return Choice(weights[:, None] * q * centred)


def distribution_for(space: Box | Discrete) -> Gaussian | Categorical:
    """The usual distribution over the actions of a space."""
    return Gaussian(space.size) if isinstance(space, Box) else Categorical(space.size)


def _exp_remainder(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``exp(x) - 1 - x`` to rounding: by its series near zero, where the difference would lose digits."""
    near = jnp.abs(x) < 0.1
    small = jnp.where(near, x, 0.0)
    series = jnp.zeros_like(x)
    for k in range(9, 1, -1):
        series = series * small + 1.0 / math.factorial(k)
    return jnp.where(near, small * small * series, jnp.expm1(x) - x)
