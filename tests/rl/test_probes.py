"""Worlds of one step whose best policy is known: the learner must find it, with and without a limit in the way.

A choice among actions that earn r and cost c each is best, under a limit h that binds, when it costs h exactly.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.learner import TrainState
from pcpo.rl.options import Options
from pcpo.rl.spaces import Discrete
from tests.rl.worlds import Setup, collect, episode_keys, hyper, line, one_step, setup

EPISODES, UPDATES = 400, 60


class Trained(NamedTuple):
    """A learner whose whole training is one compiled program; limits are among its arguments."""

    s: Setup
    run: Any

    def to(self, *limits: float, **numbers: Any) -> tuple[TrainState, Any]:
        """The state after training under these limits, and the metrics of all updates."""
        return self.run(hyper(len(limits), limits=list(limits), **({"delta": 0.02} | numbers)))

    def deterministic(self, state: TrainState) -> Any:
        """The distribution over actions that was learnt."""
        return self.s.policy.apply(state.params, jnp.ones((1, 1)))


def trained(algorithm: str, world: Any, space: Any, m: int) -> Trained:
    s = setup(world, m=m, space=space, hidden=(2,), options=Options(algorithm, spectrum_every=0, fisher_fraction=1.0))

    def run(numbers):
        def one(state, key):
            play, update = jax.random.split(key)
            rollout = collect(s.world, s.policy, state.params, episode_keys(play, EPISODES))
            return s.learner.update(state, rollout, numbers, update)

        return jax.lax.scan(one, s.state, jax.random.split(jax.random.key(0), UPDATES))

    # What is learnt does not depend on how well the code is optimised, and that is most of the time.
    return Trained(s, jax.jit(run, compiler_options={"xla_backend_optimization_level": 0}))


SQUARE = one_step(lambda a: -((a[0] - 2.0) ** 2), lambda a: a[:1])
"""Best at 2, at the price of the action itself."""
LOOSE, TIGHT = 100.0, 0.5


@pytest.mark.parametrize("algorithm", ["pcpo-kl", "cpo"])
def test_a_real_action_stops_at_its_limit(algorithm):
    """Without a limit the mean goes to 2; with one of 0.5 on the mean action, to 0.5, for ten updates in a row.

    The mean cost of 400 actions of deviation 1 at most has a standard error of 0.05 at most.
    """
    learner = trained(algorithm, SQUARE, line(1), 1)
    state, metrics = learner.to(LOOSE)
    assert learner.deterministic(state).mean[0, 0] == pytest.approx(2.0, abs=0.1)
    assert not np.any(metrics["refused"])
    state, metrics = learner.to(TIGHT)
    mean = float(learner.deterministic(state).mean[0, 0])
    assert mean == pytest.approx(TIGHT, abs=0.1)
    assert np.mean(metrics["costs"][-10:, 0]) == pytest.approx(TIGHT, abs=0.05)
    assert np.mean(metrics["undiscounted_return"][-10:]) < -1.0


ARMS = jnp.array([[0.0, 0.0], [1.0, 1.0], [0.2, 0.9]])
"""What each of three choices earns and costs. Best under a limit h: the second with probability h, else the first."""
CHOICE = one_step(lambda a: ARMS[a, 0], lambda a: ARMS[a, 1][None])


@pytest.mark.parametrize("algorithm", ["pcpo-kl", "pcpo-l2"])
def test_a_choice_is_made_as_often_as_the_limit_allows(algorithm):
    learner = trained(algorithm, CHOICE, Discrete(3), 1)
    state, _ = learner.to(LOOSE)
    assert np.asarray(jax.nn.softmax(learner.deterministic(state).logits))[0, 1] > 0.9
    state, metrics = learner.to(0.3)
    p = np.asarray(jax.nn.softmax(learner.deterministic(state).logits))[0]
    assert np.mean(metrics["costs"][-10:, 0]) == pytest.approx(0.3, abs=0.05)
    assert p[1] == pytest.approx(0.3, abs=0.1)
    assert p[2] < 0.1
    assert np.mean(metrics["undiscounted_return"][-10:]) > 0.25


def test_with_two_constraints_both_hold():
    """Each component of the action has its own limit; without limits (1, 1) is best. Then one of them does not bind."""
    world = one_step(lambda a: -jnp.sum((a - 1.0) ** 2), lambda a: a)
    learner = trained("pcpo-kl", world, line(2), 2)
    state, metrics = learner.to(0.3, -0.4)
    np.testing.assert_allclose(learner.deterministic(state).mean[0], [0.3, -0.4], atol=0.1)
    np.testing.assert_allclose(np.mean(metrics["costs"][-10:], axis=0), [0.3, -0.4], atol=0.05)
    state, _ = learner.to(3.0, -0.4)
    np.testing.assert_allclose(learner.deterministic(state).mean[0], [1.0, -0.4], atol=0.1)


def test_a_fixed_price_is_paid_where_it_is_worth_it():
    """The best of -(a - 2)^2 - lambda a is 2 - lambda / 2; limits play no part."""
    learner = trained("fpo", SQUARE, line(1), 1)
    for price, best in ((0.0, 2.0), (3.0, 0.5)):
        state, metrics = learner.to(TIGHT, multiplier=price)
        assert learner.deterministic(state).mean[0, 0] == pytest.approx(best, abs=0.1)
        np.testing.assert_array_equal(metrics["multipliers"], price)
