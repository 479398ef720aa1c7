"""Reward and costs of a batch as k = 1 + m signals of one kind: their values, advantages and targets."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pcpo.core.vectors import ratio
from pcpo.rl.advantages import following, gae, powers, suffix_sums
from pcpo.rl.estimators import AnyCritics, predict
from pcpo.rl.networks import Network
from pcpo.rl.options import Hyper, Options
from pcpo.rl.rollout import AnyRollout


class Signals(NamedTuple):
    """The reward first, then each cost."""

    gains: Float[Array, "k T E"]
    discounts: Float[Array, " k"]
    traces: Float[Array, " k"]
    """lambda of generalised advantage estimation."""
    values: Float[Array, "k T E"]
    """Estimates of what is still to come."""
    final_values: Float[Array, "k E"]
    """What is to come after the last step: zero unless the episode was cut off and bootstrapping is wanted."""
    weights: Float[Array, "k T"]
    """Weight of step t in the gradient: discount^t for costs, so that a is the gradient of J_C for every discount, and
    1 for the reward, as everybody does."""
    mask: Bool[Array, "T E"]


def signals_of(rollout: AnyRollout, network: Network, critics: AnyCritics, hyper: Hyper, options: Options) -> Signals:
    """Reward and costs of a batch with the critics' opinion of it, from before they see it."""
    horizon, rows = rollout.mask.shape[0], rollout.played.shape
    flat = rollout.observations.reshape(rows[0] * rows[1], -1)
    values = predict(network, critics, flat, rollout.times.reshape(-1))
    values = rollout.as_episodes(values.reshape(-1, *rows))
    weights = jax.vmap(lambda discount: powers(discount, horizon))(hyper.cost_discounts)
    return Signals(
        gains=jnp.concatenate([rollout.rewards[None], jnp.moveaxis(rollout.costs, -1, 0)]),
        discounts=jnp.concatenate([hyper.gamma[None], hyper.cost_discounts]),
        traces=jnp.concatenate([hyper.gae_lambda[None], hyper.cost_gae_lambdas]),
        values=jnp.where(rollout.mask[None], values, 0.0),
        final_values=_final_values(rollout, network, critics, hyper, options, values.dtype),
        weights=jnp.concatenate([jnp.ones_like(rollout.rewards[None, :, 0]), weights]),
        mask=rollout.mask,
    )


def advantages(signals: Signals) -> Float[Array, "k T E"]:
    """Advantages of every step, centred over the batch, never standardised: their scale is that of the constraint."""
    over_episodes = jax.vmap(gae, in_axes=(1, 1, 1, 1, None, None), out_axes=1)

    def of_one(gains: Array, values: Array, final: Array, discount: Array, trace: Array, weights: Array) -> Array:
        nexts = jax.vmap(following, in_axes=(1, 1, 0), out_axes=1)(values, signals.mask, final)
        raw = over_episodes(gains, values, nexts, signals.mask, discount, trace)
        mean = jnp.sum(raw) / jnp.maximum(jnp.sum(signals.mask), 1).astype(raw.dtype)
        return jnp.where(signals.mask, raw - mean, 0.0) * weights[:, None]

    s = signals
    return jax.vmap(of_one)(s.gains, s.values, s.final_values, s.discounts, s.traces, s.weights)


def targets(signals: Signals) -> Float[Array, "k T E"]:
    """What the critics are fitted to: the discounted sum that was still to come, and what is worth the end."""
    last = signals.mask & ~jnp.concatenate([signals.mask[1:], jnp.zeros_like(signals.mask[:1])])

    def of_one(gains: Array, final: Array, discount: Array) -> Array:
        with_end = gains + jnp.where(last, discount * final[None, :], 0.0)
        return jax.vmap(suffix_sums, in_axes=(1, None), out_axes=1)(with_end, discount)

    return jax.vmap(of_one)(signals.gains, signals.final_values, signals.discounts)


def unexplained(signals: Signals, wanted: Float[Array, "k T E"]) -> Float[Array, " k"]:
    r"""What part of the variance of the targets the critics leave: :math:`\mathrm{Var}(y - V) / \mathrm{Var}(y)`.

    With the estimates that the advantages were made of, from before the critics saw the batch. 0 is perfect, 1 as good
    as a constant, and more than 1 worse; of targets that do not vary there is nothing to explain, 0.
    """
    played = jnp.maximum(jnp.sum(signals.mask), 1).astype(wanted.dtype)

    def variance(x: Float[Array, "k T E"]) -> Float[Array, " k"]:
        x = jnp.where(signals.mask[None], x, 0.0)
        mean = jnp.sum(x, axis=(1, 2), keepdims=True) / played
        return jnp.sum(jnp.where(signals.mask[None], x - mean, 0.0) ** 2, axis=(1, 2)) / played

    return ratio(variance(wanted - signals.values), variance(wanted))


def _final_values(
    rollout: AnyRollout, network: Network, critics: AnyCritics, hyper: Hyper, options: Options, dtype: jnp.dtype
) -> Float[Array, "k E"]:
    """Estimates for the last observations. A cost without a discount is never bootstrapped: its sum has no tail."""
    shape = (1 + hyper.limits.shape[0], rollout.truncated.shape[0])
    if not (options.bootstrap or options.bootstrap_costs):
        return jnp.zeros(shape, dtype)
    wanted = jnp.concatenate(
        [jnp.full((1,), options.bootstrap), (hyper.cost_discounts < 1.0) & options.bootstrap_costs]
    )
    values = predict(network, critics, rollout.final_observations, jnp.sum(rollout.mask, axis=0, dtype=jnp.int32))
    return jnp.where(wanted[:, None] & rollout.truncated[None, :], values, 0.0)
