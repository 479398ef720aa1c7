"""The update that is measured: a Gaussian policy with a tanh network, a batch of states, and its local model.

10,000 states of 32 numbers, 8 actions, hidden layers of 64 and 40 units: 5,048 parameters. The states and advantages
are random, their arithmetic is that of training. Everything is float32.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from pcpo.core import LocalModel, Surrogates

STATES = 10_000
OBSERVATION = 32
ACTIONS = 8
HIDDEN = (64, 40)
"""5,048 parameters. The paper's (64, 32) has 4,464."""
EPISODES = 20
"""Episodes in the batch: what surrogates are divided by."""
DAMPING = 1e-5
"""The multiple of the identity in H, CPO's value."""

BLOCK = 2_000
"""States in a block of `gauss_newton_in_blocks`."""

Tree: TypeAlias = Any
States: TypeAlias = Float[Array, "states observation"]


class Params(NamedTuple):
    """Weights and biases of a tanh network for the mean, and the logarithm of the standard deviations."""

    layers: tuple[tuple[Float[Array, "i o"], Float[Array, " o"]], ...]
    log_std: Float[Array, " actions"]


class Gaussian(NamedTuple):
    """The policy's distribution at each state: its parameters, or a tangent to them."""

    mean: Float[Array, "states actions"]
    log_std: Float[Array, " actions"]


class Batch(NamedTuple):
    """What a local model is made of."""

    states: Float[Array, "states observation"]
    actions: Float[Array, "states actions"]
    reward_advantages: Float[Array, " states"]
    cost_advantages: Float[Array, "m states"]
    violations: Float[Array, " m"]


def make_params(key: Array, hidden: tuple[int, ...] = HIDDEN) -> Params:
    """A network with unit-variance pre-activations."""
    sizes = (OBSERVATION, *hidden, ACTIONS)
    keys = jax.random.split(key, len(sizes) - 1)
    layers = tuple(
        (jax.random.normal(k, (i, o)) / i**0.5, jnp.zeros(o))
        for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True)
    )
    return Params(layers, jnp.full(ACTIONS, -0.5))


def make_batch(key: Array, params: Params, m: int = 1, num_states: int = STATES) -> Batch:
    """Random states, actions drawn from the policy, and advantages that partly depend on the actions' noise.

    What earns reward costs, and the limits are exceeded already, so that every constraint is active.
    """
    keys = jax.random.split(key, 4)
    states = jax.random.normal(keys[0], (num_states, OBSERVATION))
    noise = jax.random.normal(keys[1], (num_states, ACTIONS))
    mean, log_std = policy(params, states)
    directions = jax.random.normal(keys[2], (1 + m, OBSERVATION, ACTIONS)) / OBSERVATION**0.5
    advantages = jnp.einsum("so,moa,sa->ms", states, directions, noise)
    advantages += jax.random.normal(keys[3], advantages.shape)
    advantages = advantages.at[1:].add(0.5 * advantages[0])
    advantages -= jnp.mean(advantages, axis=1, keepdims=True)
    actions = mean + jnp.exp(log_std) * noise
    return Batch(states, actions, advantages[0], advantages[1:], jnp.linspace(1.0, 2.0, m))


def policy(params: Params, states: States) -> Gaussian:
    """The distribution of actions at each state."""
    *hidden, (weights, bias) = params.layers
    x = states
    for w, b in hidden:
        x = jnp.tanh(x @ w + b)
    return Gaussian(x @ weights + bias, params.log_std)


def mean_kl(old: Gaussian, new: Gaussian) -> Float[Array, ""]:
    """Mean over the states of KL(old || new)."""
    ratio = jnp.exp(2.0 * (old.log_std - new.log_std))
    shift = (old.mean - new.mean) * jnp.exp(-new.log_std)
    kl = new.log_std - old.log_std + 0.5 * (ratio + shift * shift - 1.0)
    return jnp.mean(jnp.sum(kl, axis=-1))


def fisher_of_gaussian(log_std: Float[Array, " actions"], tangent: Gaussian) -> Gaussian:
    """The Hessian of `mean_kl` in the parameters of the Gaussian, at equality, times a tangent."""
    weight = jnp.exp(-2.0 * log_std) / tangent.mean.shape[0]
    return Gaussian(tangent.mean * weight, 2.0 * tangent.log_std)


def gauss_newton(params: Params, states: States) -> Partial:
    """``v -> H v`` through one linearisation of the distribution's parameters, damping included."""
    return Partial(_gauss_newton_product, _push_forward(params, states), params.log_std)


def gauss_newton_in_blocks(params: Params, states: States) -> Partial:
    """The same, summed over blocks of states one after the other, so that a block's intermediates stay in a cache."""
    blocks = states.reshape(-1, min(BLOCK, states.shape[0]), states.shape[1])
    pushes = jax.vmap(partial(_push_forward, params))(blocks)
    return Partial(_product_in_blocks, pushes, params.log_std)


def _push_forward(params: Params, states: States) -> Partial:
    """From a change of the parameters to that of the distribution, linearised."""
    return cast(Partial, jax.linearize(partial(policy, states=states), params)[1])


def _gauss_newton_product(push: Partial, log_std: Float[Array, " actions"], v: Params) -> Params:
    return damped(_undamped_product(push, log_std, v), v)


def _product_in_blocks(pushes: Partial, log_std: Float[Array, " actions"], v: Params) -> Params:
    def add(total: Params, push: Partial) -> tuple[Params, None]:
        return jax.tree.map(jnp.add, total, _undamped_product(push, log_std, v)), None

    total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, v), pushes)
    blocks = jax.tree.leaves(pushes)[0].shape[0]
    return damped(jax.tree.map(lambda x: x / blocks, total), v)


def _undamped_product(push: Partial, log_std: Float[Array, " actions"], v: Params) -> Params:
    pull = jax.linear_transpose(push, v)
    return pull(fisher_of_gaussian(log_std, push(v)))[0]


def damped(product: Tree, v: Tree) -> Tree:
    """``H v`` from an undamped product."""
    return jax.tree.map(lambda hv, x: hv + DAMPING * x, product, v)


def surrogates(params: Params, old: Gaussian, batch: Batch, step: Params) -> Surrogates:
    """Changes of the surrogates at a step, one forward pass; ``old`` is the policy's distribution at no step."""
    new = policy(jax.tree.map(jnp.add, params, step), batch.states)
    change = jnp.expm1(log_density(new, batch.actions) - log_density(old, batch.actions))
    return Surrogates(
        reward=batch.reward_advantages @ change / EPISODES,
        costs=batch.cost_advantages @ change / EPISODES,
        kl=mean_kl(old, new),
    )


def log_density(gaussian: Gaussian, actions: Float[Array, "states actions"]) -> Float[Array, " states"]:
    """Logarithm of the density at the actions, up to a constant."""
    standardised = (actions - gaussian.mean) * jnp.exp(-gaussian.log_std)
    return jnp.sum(-0.5 * standardised**2 - gaussian.log_std, axis=-1)


def gradients(evaluate: Callable[[Params], Surrogates], params: Params) -> tuple[Params, Params]:
    """g and a: the gradients of the reward surrogate and of the cost surrogates at no step."""
    stay = jax.tree.map(jnp.zeros_like, params)
    return jax.grad(lambda d: evaluate(d).reward)(stay), jax.jacrev(lambda d: evaluate(d).costs)(stay)


def local_model(
    params: Params,
    batch: Batch,
    with_evaluate: bool = True,
    way: Callable[[Params, States], Partial] = gauss_newton,
) -> LocalModel:
    """The model of one update, with a ``way`` to form its Fisher products."""
    evaluate = Partial(surrogates, params, policy(params, batch.states), batch)
    g, a = gradients(evaluate, params)
    return LocalModel(g, a, batch.violations, way(params, batch.states), evaluate if with_evaluate else None)
