"""Small worlds whose values are known or cheap to measure, and what it takes to play and learn in them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pcpo.rl.critics import Critics
from pcpo.rl.learner import Learner, TrainState, make_learner
from pcpo.rl.networks import Network, mlp
from pcpo.rl.options import Hyper, Options
from pcpo.rl.policy import Policy, policy_for
from pcpo.rl.rollout import Rollout, Transition, play
from pcpo.rl.spaces import Box, Discrete


@dataclass(frozen=True)
class Toy:
    """A `pcpo.rl.rollout.World`."""

    horizon: int
    reset: Callable[[Array], Any]
    step: Callable[[Any, Array], tuple[Any, Transition]]
    observe: Callable[[Any], Array]


NEVER = jnp.zeros((), bool)


def one_step(reward: Callable[[Array], Array], costs: Callable[[Array], Array]) -> Toy:
    """One action, and what it brings: the observation says nothing."""

    def step(state, action):
        return state, Transition(reward(action), costs(action), NEVER)

    return Toy(1, lambda key: jnp.zeros(()), step, lambda state: jnp.ones(1))


class Moving(NamedTuple):
    """State of `moving`."""

    x: Array
    steps: Array
    length: Array


def moving(horizon: int, ends: bool = False, scale: float = 3.0) -> Toy:
    """A linear system of two components whose reward and cost are smooth in state and action.

    With ``ends`` an episode ends by itself after half the horizon or more, by the reset's choice alone, so that J stays
    smooth in the policy.
    """
    drift, push = jnp.array([[0.7, 0.2], [-0.2, 0.6]]), jnp.array([0.6, 0.3])

    def reset(key):
        start, end = jax.random.split(key)
        length = jax.random.randint(end, (), horizon // 2 + 1, horizon + 1) if ends else jnp.asarray(horizon)
        return Moving(jnp.array([0.3, 0.0]) + 0.3 * jax.random.normal(start, (2,), float), jnp.asarray(0), length)

    def step(state, action):
        x = drift @ state.x + push * action[0]
        reward = scale * (x[0] - 0.3 * x[1] ** 2) - 0.2 * action[0] ** 2
        cost = scale * jax.nn.softplus(2.0 * x[0]) + 0.1 * action[0]
        steps = state.steps + 1
        return Moving(x, steps, state.length), Transition(reward, cost[None], steps >= state.length)

    return Toy(horizon, reset, step, lambda state: state.x)


class Walk(NamedTuple):
    """State of `walk`."""

    x: Array
    steps: Array


def walk(horizon: int, edge: float = 1.5) -> Toy:
    """A walk that ends by itself at an edge; earns where it is and pays for its pace and for every step."""

    def reset(key):
        return Walk(jax.random.uniform(key, (), float, -1.0, 1.0), jnp.asarray(0))

    def step(state, action):
        x = state.x + 0.5 * action[0]
        costs = jnp.stack([jnp.abs(action[0]), jnp.ones(())])
        return Walk(x, state.steps + 1), Transition(x, costs, jnp.abs(x) > edge)

    def observe(state):
        return jnp.stack([state.x, 0.1 * state.steps.astype(float), jnp.ones(())])

    return Toy(horizon, reset, step, observe)


def line(size: int = 1) -> Box:
    """Actions without bounds."""
    return Box((-np.inf,) * size, (np.inf,) * size)


def episode_keys(key: Array, episodes: int) -> Array:
    """Episode i has the same key however many there are."""
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(episodes))


def collect(world: Toy, policy: Policy, params: Any, keys: Array, dtype: Any = None) -> Rollout:
    """Plays a policy without normalisation; key i decides over the whole of episode i."""
    both = jax.vmap(jax.random.split)(keys)
    noise = jax.vmap(lambda key: policy.distribution.noise(key, (world.horizon,)), out_axes=1)(both[:, 1])

    def act(observations, noise_t):
        return policy.distribution.sample(policy.apply(params, observations), noise_t)

    if dtype is not None:
        params, noise = floats_as(params, dtype), floats_as(noise, dtype)
    return play(world, act, both[:, 0], noise)


def floats_as(tree: Any, dtype: Any) -> Any:
    """Floating-point leaves in another precision; everything else as it is."""
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def hyper(m: int = 1, **changes: Any) -> Hyper:
    """The paper's numbers, with limits of 1."""
    numbers: dict[str, Any] = {
        "delta": 1e-2,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "limits": np.ones(m),
        "cost_discounts": np.ones(m),
        "cost_gae_lambdas": np.ones(m),
        "max_kl": np.inf,
        "damping": 1e-5,
        "critic_radius": 1e-2,
        "learning_rate": 0.01,
        "multiplier": 0.0,
    }
    assert not changes.keys() - numbers.keys()
    return Hyper(**{name: jnp.asarray(value, float) for name, value in (numbers | changes).items()})


class Setup(NamedTuple):
    """A world with all that learns in it."""

    world: Toy
    policy: Policy
    critic: Network
    learner: Learner
    options: Options
    hyper: Hyper
    state: TrainState

    def batch(self, params: Any, seed: int, episodes: int) -> Rollout:
        """Episodes of a policy."""
        return collect(self.world, self.policy, params, episode_keys(jax.random.key(seed), episodes))

    def train(self, updates: int, episodes: int, seed: int = 0, **changes: Any) -> tuple[TrainState, Any]:
        """The state after some updates, and the metrics of all of them."""
        numbers = self.hyper._replace(**{name: jnp.asarray(x, float) for name, x in changes.items()})

        def one(state, key):
            play_key, update_key = jax.random.split(key)
            rollout = collect(self.world, self.policy, state.params, episode_keys(play_key, episodes))
            return self.learner.update(state, rollout, numbers, update_key)

        keys = jax.random.split(jax.random.key(seed), updates)
        return jax.jit(lambda state: jax.lax.scan(one, state, keys))(self.state)


def setup(
    world: Toy,
    m: int = 1,
    space: Box | Discrete | None = None,
    hidden: tuple[int, ...] = (4,),
    seed: int = 0,
    options: Options | None = None,
    **numbers: Any,
) -> Setup:
    """A learner with small networks for a world."""
    size = jax.eval_shape(lambda key: world.observe(world.reset(key)), jax.random.key(0)).shape[0]
    policy = policy_for(size, space or line(), hidden)
    critic = mlp([size, *hidden, 1])
    options = options or Options(spectrum_every=0)
    learner = make_learner(policy, critic, size, options)
    h = hyper(m, **numbers)
    return Setup(world, policy, critic, learner, options, h, learner.init(jax.random.key(seed), h))


def silent_critics(network: Network, m: int, observation_size: int) -> Critics:
    """Critics that estimate zero everywhere."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    return Critics(
        params=jax.tree.map(lambda x: jnp.zeros((1 + m, *x.shape)), shapes),
        input_mean=jnp.zeros(observation_size),
        input_scale=jnp.ones(observation_size),
        target_mean=jnp.zeros(1 + m),
        target_scale=jnp.ones(1 + m),
    )


def random_rollout(seed: int, T: int = 6, E: int = 5, m: int = 1, o: int = 3, full: bool = False) -> Rollout:
    """Random numbers in the form of a rollout, of random lengths unless ``full``; some terminated, some cut off."""
    rng = np.random.default_rng(seed)
    lengths = np.full(E, T) if full else rng.integers(1, T + 1, E)
    mask = np.arange(T)[:, None] < lengths[None, :]
    terminated = lengths < T
    if E > 1:
        terminated[np.argmax(lengths)] = False
    return Rollout(
        observations=jnp.asarray(rng.normal(size=(T, E, o)) * mask[..., None]),
        actions=jnp.asarray(rng.normal(size=(T, E, 1)) * mask[..., None]),
        rewards=jnp.asarray(rng.normal(size=(T, E)) * mask),
        costs=jnp.asarray(rng.uniform(0, 2, size=(T, E, m)) * mask[..., None]),
        mask=jnp.asarray(mask),
        terminated=jnp.asarray(terminated),
        truncated=jnp.asarray(~terminated),
        final_observations=jnp.asarray(rng.normal(size=(E, o))),
    )
