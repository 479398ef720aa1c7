"""Critics: what is still to come, estimated from the observation. One for the reward, one for each cost."""

from typing import NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from pcpo.core.cg import conjugate_gradient
from pcpo.core.line_search import backtrack, judge
from pcpo.core.rows import over_rows
from pcpo.core.trust_region import natural_step
from pcpo.core.types import Surrogates
from pcpo.core.vectors import unit
from pcpo.rl.networks import Network, Params
from pcpo.rl.subsample import sample_size, stratified_rows


class Critics(NamedTuple):
    """k networks of one shape with their scales. All see the same observations, normalised by the last batch."""

    params: Params
    """Each leaf ``[k, ...]``."""
    input_mean: Float[Array, " o"]
    input_scale: Float[Array, " o"]
    target_mean: Float[Array, " k"]
    target_scale: Float[Array, " k"]


class FitOptions(NamedTuple):
    """Static settings of a fit; the paper's preset is one step on a fifth of the batch."""

    steps: int = 1
    """Natural gradient steps per batch."""
    fraction: float = 0.2
    """Part of the batch on which curvature is measured; gradients use all of it."""
    cg_iterations: int = 10


def initial(network: Network, key: Key[Array, ""], count: int, observation_size: int) -> Critics:
    """Untrained critics, whose scales change nothing."""
    return Critics(
        params=jax.vmap(network.init)(jax.random.split(key, count)),
        input_mean=jnp.zeros(observation_size, float),
        input_scale=jnp.ones(observation_size, float),
        target_mean=jnp.zeros(count, float),
        target_scale=jnp.ones(count, float),
    )


def predict(network: Network, critics: Critics, observations: Float[Array, "N o"]) -> Float[Array, "k N"]:
    """The estimates of all critics for all observations."""
    inputs = (observations - critics.input_mean[None, :]) / critics.input_scale[None, :]
    outputs = over_rows(lambda params: network.apply(params, inputs)[:, 0])(critics.params)
    return outputs * critics.target_scale[:, None] + critics.target_mean[:, None]


def fit(
    network: Network,
    critics: Critics,
    observations: Float[Array, "T E o"],
    targets: Float[Array, "k T E"],
    mask: Bool[Array, "T E"],
    radius: Float[Array, ""],
    damping: Float[Array, ""],
    key: Key[Array, ""],
    options: FitOptions,
) -> Critics:
    r"""Natural gradient steps on the squared error, each within a KL radius, on targets normalised for this batch.

    .. math::
        \min_f \; \tfrac12 \overline{(y - f(x))^2} \;\; \text{s.t.} \;\; \tfrac12 \overline{(f - f_k)^2} \le \delta_V

    The critic is a normal distribution of variance 1 around f, whose KL divergence is the left side of the constraint.
    With a radius of 0.01 no estimate moves by more than 0.14 standard deviations of the targets (root mean
    square) in a step: its level and scale follow the returns at once, its shape slowly. From the code of CPO
    (Achiam et al., 2017).

    Differences from the CPO code:

    1. A target or an input that does not vary gets the scale 0 or 1 in place of 1e-8 (see `_scale`).
    2. The part of the batch that measures curvature is stratified (see `stratified_rows`).
    3. A KL divergence of exactly the radius is accepted there in the search and refused after it; here it is
       accepted.
    4. The scales follow the batch even if no step improves: level and scale are no part of the search.
    5. Several steps may be taken on one batch, each on another part of it; the paper's is one.
    """
    rows = mask.reshape(-1)
    shares = rows.astype(targets.dtype) / jnp.maximum(jnp.sum(rows), 1).astype(targets.dtype)
    inputs = observations.reshape(-1, observations.shape[-1])
    outputs = targets.reshape(targets.shape[0], -1)
    input_mean, input_scale = _scale(inputs.T, shares)
    target_mean, target_scale = _scale(outputs, shares)
    safe = _or_one(input_scale)
    critics = Critics(critics.params, input_mean, safe, target_mean, target_scale)
    x = (inputs - input_mean[None, :]) / safe[None, :]
    y = (outputs - target_mean[:, None]) / _or_one(target_scale)[:, None]
    count = sample_size(options.fraction, rows.shape[0])

    def step(params: Params, key: Key[Array, ""]) -> tuple[Params, None]:
        chosen = stratified_rows(key, mask, count)
        sample = (chosen.of(observations) - input_mean[None, :]) / safe[None, :]
        one = over_rows(lambda p, t: _natural_step(network, p, x, t, shares, sample, radius, damping, options))
        return one(params, y), None

    params, _ = jax.lax.scan(step, critics.params, jax.random.split(key, options.steps))
    return critics._replace(params=params)


def _natural_step(
    network: Network,
    params: Params,
    x: Float[Array, "N o"],
    y: Float[Array, " N"],
    shares: Float[Array, " N"],
    sample: Float[Array, "K o"],
    radius: Float[Array, ""],
    damping: Float[Array, ""],
    options: FitOptions,
) -> Params:
    """One step of one critic: natural gradient, KL radius, backtracking; none if nothing improves."""
    flat, unravel = jax.flatten_util.ravel_pytree(params)

    def outputs(vector: Float[Array, " n"]) -> Float[Array, " N"]:
        return network.apply(unravel(vector), x)[:, 0]

    before, pullback = jax.vjp(outputs, flat)
    residual = y - before
    gradient, _ = unit(pullback(shares * residual)[0])
    _, forward = jax.linearize(lambda vector: network.apply(unravel(vector), sample)[:, 0], flat)
    back = jax.linear_transpose(forward, flat)

    def fvp(v: Float[Array, " n"]) -> Float[Array, " n"]:
        return back(forward(v) / sample.shape[0])[0] + damping * v

    solution = conjugate_gradient(fvp, gradient[None], options.cg_iterations)
    d, _ = natural_step(gradient, solution.x[0], radius)

    def evaluate(d: Float[Array, " n"]) -> Surrogates:
        change = outputs(flat + d) - before
        gain = jnp.sum(shares * change * (residual - 0.5 * change))
        return Surrogates(gain, jnp.zeros((0,), gain.dtype), 0.5 * jnp.sum(shares * change * change))

    room = jnp.zeros((0,), flat.dtype)
    found = backtrack(evaluate, d, lambda trial: judge(trial, trial.reward, radius, room))
    moved = jnp.where(found.reason == 0, flat + found.scale * d, flat)
    return unravel(moved)


def _scale(rows: Float[Array, "k N"], shares: Float[Array, " N"]) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Weighted mean and standard deviation of each row; a deviation that is only rounding of the mean is zero.

    By sums and not by products with ``shares``: a matrix product adds up one by one, and in float32 the mean of a
    million numbers that hardly vary comes out wrong by 2e-3 of itself, which may be many deviations.
    """
    mean = jnp.sum(rows * shares[None, :], axis=1)
    deviation = jnp.sqrt(jnp.sum((rows - mean[:, None]) ** 2 * shares[None, :], axis=1))
    rounding = 32.0 * jnp.finfo(rows.dtype).eps * jnp.abs(mean)
    return mean, jnp.where(deviation <= rounding, 0.0, deviation)


def _or_one(scale: Float[Array, " k"]) -> Float[Array, " k"]:
    return jnp.where(scale == 0.0, 1.0, scale)  # what is not a number stays visible
