"""From a batch to the linear-quadratic picture of one update."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from pcpo.core.rows import over_rows
from pcpo.core.types import LocalModel, Surrogates, Tree
from pcpo.rl.fisher import fisher_product
from pcpo.rl.networks import Params
from pcpo.rl.policy import Policy
from pcpo.rl.subsample import sample_size, stratified_rows


class Batch(NamedTuple):
    """What the surrogates need of some episodes, by rows (see `pcpo.rl.rollout`)."""

    observations: Float[Array, "T E o"]
    """As the policy sees them: normalised, if it normalises."""
    actions: Array
    mask: Bool[Array, "T E"]
    """Which rows were played."""
    advantages: Float[Array, "k T E"]
    """Of the reward, then of each cost; zero where nothing was played."""
    episodes: int | None = None
    """How many, where there is not one in each column."""


def surrogate(
    policy: Policy,
    params: Params,
    batch: Batch,
    violations: Float[Array, " m"],
    fisher_fraction: float,
    damping: Float[Array, ""],
    key: Key[Array, ""],
) -> LocalModel:
    r"""Gradients, violations, Fisher products and surrogates of one batch, all **per episode**.

    .. math::
        J(\theta) - J(\theta_k) \approx \frac1E \sum_{e,t}
            \Bigl(\frac{\pi_\theta(a \mid s)}{\pi_{\theta_k}(a \mid s)} - 1\Bigr) \hat A(s, a)

    The sum over the steps of an episode, divided by the number of episodes: so that a is the gradient of J_C, and b
    its distance to the limit in the same unit. (The mean over steps would have to be multiplied by the mean length.)

    One pass forward through the network serves the gradients of reward and costs, which share their passes
    backward, and the old distributions that `evaluate` compares with.

    Args:
        policy: The policy.
        params: theta_k.
        batch: The episodes it played.
        violations: ``J_C - h``.
        fisher_fraction: Part of the rows on which H is measured.
        damping: Multiple of the identity in H.
        key: Chooses that part; consumed.
    """
    episodes = batch.mask.shape[1] if batch.episodes is None else batch.episodes
    observations, actions, mask = (rows_of(x) for x in (batch.observations, batch.actions, batch.mask))
    weights = batch.advantages.reshape(batch.advantages.shape[0], -1) / episodes
    shares = mask.astype(weights.dtype) / jnp.maximum(jnp.sum(mask), 1).astype(weights.dtype)

    log_probs = log_probs_of(policy, observations, actions)
    old_log_probs, pullback, old = jax.vjp(log_probs, params, has_aux=True)
    (gradients,) = over_rows(pullback)(weights)

    def evaluate(step: Tree) -> Surrogates:
        log_ratio, new = log_probs(jax.tree.map(jnp.add, params, step))
        log_ratio = jnp.where(mask, log_ratio - old_log_probs, 0.0)
        changes = weights @ jnp.expm1(log_ratio)
        return Surrogates(changes[0], changes[1:], jnp.sum(shares * policy.distribution.kl(old, new)))

    # Steps that are drawn twice in a short batch count twice; in one that is shorter still, so does every step.
    count = sample_size(fisher_fraction, mask.shape[0])
    rows = stratified_rows(key, batch.mask, count)
    uniform = jnp.full(count, 1.0 / count, weights.dtype)
    return LocalModel(
        g=jax.tree.map(lambda x: x[0], gradients),
        a=jax.tree.map(lambda x: x[1:], gradients),
        b=violations,
        fvp=fisher_product(policy, params, rows.of(batch.observations), uniform, damping),
        evaluate=evaluate,
    )


def log_probs_of(
    policy: Policy, observations: Float[Array, "N o"], actions: Array
) -> Callable[[Params], tuple[Float[Array, " N"], Tree]]:
    """A function of the parameters: the log-probabilities of actions, and the distributions that they are of."""

    def log_probs(theta: Params) -> tuple[Float[Array, " N"], Tree]:
        p = policy.apply(theta, observations)
        return policy.distribution.log_prob(p, actions), p

    return log_probs


def rows_of(x: Array) -> Array:
    """``[T, E, ...]`` as ``[T * E, ...]``."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
