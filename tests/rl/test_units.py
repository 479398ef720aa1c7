"""``a . d`` is the change of J_C, and ``g . d`` that of J_R: measured, for short and long episodes.

The one test that catches a wrong scale of a beside b. J is measured by central differences with common random numbers
in a world that is smooth in the policy, so that nearly all of the error is that of g and a. Directions come from the
gradient through the simulation, of other episodes than those that g and a are made of: a direction fitted to the batch
would agree with its noise.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.advantages import powers
from pcpo.rl.signals import advantages, signals_of
from pcpo.rl.surrogate import Batch, surrogate
from tests.rl.worlds import collect, episode_keys, moving, setup

EPISODES = 8_000
STEP = 1e-3
PATHS = 2_000
"""Episodes for directions and for central differences, which are far less noisy than g and a."""


class Case(NamedTuple):
    """A world, and what its costs are discounted with."""

    horizon: int
    ends: bool = False
    discount: float = 1.0


CASES = [Case(5), Case(15), Case(50), Case(15, ends=True), Case(15, True, 0.9)]


class Compared(NamedTuple):
    """Derivatives of J_R and J_C, each along its own gradient: predicted and measured, with standard errors."""

    predicted: np.ndarray
    predicted_error: np.ndarray
    measured: np.ndarray
    measured_error: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """Standard error of the difference."""
        return np.hypot(self.predicted_error, self.measured_error)

    @property
    def distance(self) -> np.ndarray:
        """How many standard errors the prediction is away."""
        return np.abs(self.predicted - self.measured) / self.error


class Experiment(NamedTuple):
    """A batch and all that is compared with what is predicted from it."""

    batch: Batch
    predict: Any
    """From advantages to g . d and a . d, and to what each episode contributes."""
    measured: np.ndarray
    measured_error: np.ndarray


@functools.cache
def experiment(case: Case) -> Experiment:
    world = moving(case.horizon, case.ends)
    s = setup(world, seed=1, gamma=1.0, gae_lambda=1.0, cost_discounts=[case.discount])
    params = s.state.params
    weights = jnp.stack([jnp.ones(case.horizon), powers(jnp.asarray(case.discount), case.horizon)])

    def returns(theta, keys):
        rollout = collect(s.world, s.policy, theta, keys)
        return jnp.stack([weights[0] @ rollout.rewards, weights[1] @ rollout.costs[..., 0]])

    def unit_gradient(row):
        gradient = jax.grad(lambda theta: returns(theta, seeds(1))[row].mean())(params)
        norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(gradient)))
        return jax.tree.map(lambda x: x / norm, gradient)

    def seeds(seed):
        return episode_keys(jax.random.key(seed), PATHS)

    def slopes(direction):
        up, down = (jax.tree.map(lambda x, d, h=h: x + h * d, params, direction) for h in (STEP, -STEP))
        return (returns(up, seeds(2)) - returns(down, seeds(2))) / (2 * STEP)

    @jax.jit
    def play_and_measure():
        directions = [unit_gradient(row) for row in range(2)]
        rollout = collect(s.world, s.policy, params, episode_keys(jax.random.key(3), EPISODES))
        signals = signals_of(rollout, s.critic, s.state.critics, s.hyper, s.options)
        batch = Batch(rollout.observations, rollout.actions, rollout.mask, advantages(signals))
        return batch, directions, jnp.stack([slopes(d)[row] for row, d in enumerate(directions)])

    batch, directions, paths = play_and_measure()

    @jax.jit
    def predict(A):
        model = surrogate(
            s.policy, params, batch._replace(advantages=A), jnp.zeros(1), 1e-4, s.hyper.damping, jax.random.key(4)
        )
        gradients = [model.g, jax.tree.map(lambda x: x[0], model.a)]
        predicted = [
            sum(jnp.vdot(x, y) for x, y in zip(*map(jax.tree.leaves, pair), strict=True))
            for pair in zip(gradients, directions, strict=True)
        ]
        return jnp.stack(predicted), jnp.stack([each_episode(A[row], directions[row]) for row in range(2)])

    def each_episode(A, direction):
        flat = batch.observations.reshape(-1, 2)

        def log_probs(theta):
            p = s.policy.apply(theta, flat)
            return s.policy.distribution.log_prob(p, batch.actions.reshape(-1, 1)).reshape(A.shape)

        return jnp.sum(jax.jvp(log_probs, (params,), (direction,))[1] * A, axis=0)

    return Experiment(batch, predict, *mean_and_error(paths))


def mean_and_error(each: Any) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(each)
    return x.mean(axis=1), x.std(axis=1, ddof=1) / np.sqrt(x.shape[1])


def compare(case: Case, change=None) -> Compared:
    e = experiment(case)
    A = e.batch.advantages if change is None else change(e.batch.advantages, np.asarray(e.batch.mask), case.discount)
    predicted, each = e.predict(A)
    mean, error = mean_and_error(each)
    np.testing.assert_allclose(mean, predicted, rtol=1e-9)  # the error is that of what was predicted
    return Compared(np.asarray(predicted), error, e.measured, e.measured_error)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_predicted_changes_are_the_measured_ones(case):
    found = compare(case)
    assert np.all(found.measured > 0.0)
    assert np.all(found.error < 0.05 * found.measured)
    assert np.all(found.distance < 3.0), found


def per_step(A, mask, discount):
    """The mean over steps."""
    return A * (mask.shape[1] / mask.sum())


def over_one_minus_gamma(A, mask, discount):
    """The mean over steps times 1 / (1 - gamma), with the paper's gamma."""
    return per_step(A, mask, discount) / (1.0 - 0.995)


def standardised(A, mask, discount):
    return A / jnp.asarray(np.asarray(A)[:, mask].std(axis=1))[:, None, None]


def times_horizon(A, mask, discount):
    """The mean over steps times the horizon, as if every episode had the full length."""
    return per_step(A, mask, discount) * mask.shape[0]


def without_weights(A, mask, discount):
    """The discounted cost's advantages without their discount^t."""
    return A / powers(jnp.asarray(discount), mask.shape[0])[None, :, None]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mistake", [per_step, over_one_minus_gamma, standardised])
def test_wrong_scales_are_rejected(case, mistake):
    found = compare(case, mistake)
    assert np.all(found.distance > 10.0), found


@pytest.mark.parametrize("case", [case for case in CASES if case.ends], ids=str)
def test_the_horizon_in_place_of_the_length_is_rejected(case):
    assert np.all(compare(case, times_horizon).distance > 6.0)


@pytest.mark.parametrize("case", [case for case in CASES if case.discount < 1.0], ids=str)
def test_a_discounted_cost_without_its_weights_is_rejected(case):
    assert compare(case, without_weights).distance[1] > 10.0
