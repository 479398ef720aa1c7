"""Values, advantages and targets of reward and costs, worked by hand: early endings, cut-offs, discounts, centring."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.networks import Network
from pcpo.rl.options import Options
from pcpo.rl.performance import episode_sums, measure
from pcpo.rl.rollout import Rollout
from pcpo.rl.signals import advantages, signals_of, targets
from tests.rl.worlds import hyper, random_rollout, silent_critics

NETWORK = Network(lambda key: jnp.zeros(1), lambda params, x: x[:, :1] + params[None])
"""A critic that estimates the observation itself."""
CRITICS = silent_critics(NETWORK, 1, 1)
V = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0], [5.0, 6.0, 0.0]]).T
"""Three episodes: one that is cut off at the horizon, two that end by themselves, after one step and after two."""
MASK = V > 0
GAINS = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).T
FINAL = np.array([10.0, 20.0, 30.0])
PLAYED = Rollout(
    observations=jnp.asarray(V[..., None]),
    actions=jnp.zeros((3, 3, 1)),
    rewards=jnp.asarray(GAINS),
    costs=jnp.asarray(GAINS[..., None]),
    mask=jnp.asarray(MASK),
    terminated=jnp.array([False, True, True]),
    truncated=jnp.array([True, False, False]),
    final_observations=jnp.asarray(FINAL[:, None]),
)


def seen(bootstrap=False, bootstrap_costs=False, **numbers: Any):
    """Raw advantages and targets of reward and cost, and the signals."""
    options = Options(bootstrap=bootstrap, bootstrap_costs=bootstrap_costs)
    h = hyper(1, **({"gamma": 1.0, "gae_lambda": 1.0} | numbers))
    signals = signals_of(PLAYED, NETWORK, CRITICS, h, options)
    return np.asarray(advantages(signals)), np.asarray(targets(signals)), signals


def centred(raw, weights=(1.0, 1.0, 1.0)):
    raw = np.array(raw).T
    return np.where(MASK, raw - raw[MASK].mean(), 0.0) * np.asarray(weights)[:, None]


def test_with_trace_and_discount_1_it_is_the_sum_to_go_less_the_value():
    """Sums to go 3, 2, 2 | 3 | 1, 1 less values 1, 2, 3 | 4 | 5, 6; centred, never scaled; nothing after the end."""
    A, y, _ = seen()
    for row in range(2):
        np.testing.assert_allclose(A[row], centred([[2, 0, -1], [-1, 0, 0], [-4, -5, 0]]), atol=1e-13)
        np.testing.assert_array_equal(y[row] * MASK, np.array([[3, 2, 2], [3, 0, 0], [1, 1, 0]]).T)


def test_the_reward_goes_on_after_a_cut_off_and_not_after_an_end():
    """10 comes after the first episode; the others have ended, whatever their last observation promises."""
    A, y, signals = seen(bootstrap=True)
    np.testing.assert_array_equal(signals.final_values, [[10.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(A[0], centred([[12, 10, 9], [-1, 0, 0], [-4, -5, 0]]), atol=1e-13)
    np.testing.assert_array_equal(y[0] * MASK, np.array([[13, 12, 12], [3, 0, 0], [1, 1, 0]]).T)
    np.testing.assert_allclose(A[1], centred([[2, 0, -1], [-1, 0, 0], [-4, -5, 0]]), atol=1e-13)


def test_a_cut_off_is_worth_its_discounted_value():
    """gamma 0.5, lambda 1: sums 1 + 0.5 0 + 0.25 2 + 0.125 10, ..., with the episode's end at its own length."""
    _, y, _ = seen(bootstrap=True, gamma=0.5)
    np.testing.assert_allclose(y[0] * MASK, np.array([[2.75, 3.5, 7.0], [3, 0, 0], [0.5, 1, 0]]).T)


def test_errors_with_a_trace_by_hand():
    """gamma 0.5, lambda 0.5. Errors 1 + 1 - 1, 0 + 1.5 - 2, 2 - 3 | 3 - 4 | 0 + 3 - 5, 1 - 6; traces 0.25."""
    A, _, _ = seen(gamma=0.5, gae_lambda=0.5)
    raw = [[1 + 0.25 * (-0.5 - 0.25), -0.5 - 0.25, -1], [-1, 0, 0], [-2 - 1.25, -5, 0]]
    np.testing.assert_allclose(A[0], centred(raw), atol=1e-13)


def test_a_cost_is_bootstrapped_only_below_a_discount_of_1():
    """And has its own discount and trace, whatever the reward's are."""
    numbers: dict[str, Any] = {"gamma": 0.3, "gae_lambda": 0.2}
    _, _, signals = seen(bootstrap_costs=True, **numbers)
    np.testing.assert_array_equal(signals.final_values, np.zeros((2, 3)))
    A, y, signals = seen(bootstrap_costs=True, cost_discounts=[0.5], **numbers)
    np.testing.assert_array_equal(signals.final_values, [[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])
    np.testing.assert_allclose(y[1] * MASK, np.array([[2.75, 3.5, 7.0], [3, 0, 0], [0.5, 1, 0]]).T)
    raw = [[1.75, 1.5, 4.0], [-1, 0, 0], [-4.5, -5, 0]]
    np.testing.assert_allclose(A[1], centred(raw, [1.0, 0.5, 0.25]), atol=1e-13)


def test_the_reward_has_no_weights_and_a_cost_those_of_its_discount():
    signals = seen(gamma=0.5, cost_discounts=[0.5])[2]
    np.testing.assert_array_equal(signals.weights, [[1, 1, 1], [1, 0.5, 0.25]])


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_advantages_are_centred_and_keep_their_scale(discount):
    """A thousand times the cost has a thousand times the advantages; a mean of zero before the weights."""
    one, many = random_rollout(0), random_rollout(0)
    many = many._replace(costs=1e3 * many.costs)
    network = Network(lambda key: jnp.zeros(1), lambda params, x: 0.0 * x[:, :1])
    h = hyper(1, cost_discounts=[discount])

    def of(rollout):
        return signals_of(rollout, network, silent_critics(network, 1, 3), h, Options())

    A, B = advantages(of(one)), advantages(of(many))
    np.testing.assert_allclose(B[1], 1e3 * A[1], rtol=1e-12, atol=1e-10)
    unweighted = np.asarray(A) / np.asarray(of(one).weights)[:, :, None]
    np.testing.assert_allclose(unweighted.sum(axis=(1, 2)), 0.0, atol=1e-12)


def test_returns_and_costs_by_hand():
    """Discounted by 0.5: 1 + 0.5, 3, 0.5; costs undiscounted 3, 3, 1 and their standard error sqrt(4/3 / 3)."""
    sums = episode_sums(PLAYED, jnp.asarray(0.5), jnp.ones(1))
    np.testing.assert_allclose(sums.discounted_return, [1.5, 3.0, 0.5])
    np.testing.assert_array_equal(sums.undiscounted_return, [3, 3, 1])
    np.testing.assert_array_equal(sums.costs, [[3], [3], [1]])
    np.testing.assert_array_equal(sums.length, [3, 1, 2])
    found = measure(PLAYED, jnp.asarray(0.5), jnp.ones(1))
    assert found.env_steps == 6
    assert found.episode_length == 2.0
    np.testing.assert_allclose(found.discounted_return, 5 / 3)
    np.testing.assert_allclose(found.undiscounted_return, 7 / 3)
    np.testing.assert_allclose(found.costs, [7 / 3])
    np.testing.assert_allclose(found.cost_standard_errors, [np.sqrt(4 / 3 / 3)])
    np.testing.assert_allclose(measure(PLAYED, jnp.asarray(1.0), jnp.array([0.5])).costs, [5 / 3])


def test_one_episode_has_no_spread():
    one = jax.tree.map(lambda x: x[:, :1] if x.ndim > 1 and x.shape[0] == 3 and x.shape[1] == 3 else x[:1], PLAYED)
    assert measure(one, jnp.ones(()), jnp.ones(1)).cost_standard_errors[0] == 0.0
