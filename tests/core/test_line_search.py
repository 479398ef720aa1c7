"""Backtracking and its reasons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.core import Surrogates
from pcpo.core.line_search import Reason, backtrack, judge

GOOD = Surrogates(jnp.array(1.0), jnp.array([0.0, -1.0]), jnp.array(0.5))
ROOM = jnp.array([0.0, 0.0])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, Reason.ACCEPTED),
        ({"kl": jnp.array(1.0)}, Reason.ACCEPTED),
        ({"kl": jnp.array(1.0 + 1e-8)}, Reason.ACCEPTED),
        ({"kl": jnp.array(1.0 + 2e-8)}, Reason.KL_TOO_LARGE),
        ({"reward": jnp.array(0.0)}, Reason.REWARD_NOT_IMPROVED),
        ({"costs": jnp.array([0.0, 1e-9])}, Reason.COST_TOO_HIGH),
        ({"reward": jnp.array(jnp.nan)}, Reason.NOT_FINITE),
        ({"costs": jnp.array([0.0, jnp.nan])}, Reason.NOT_FINITE),
        ({"kl": jnp.array(jnp.inf)}, Reason.NOT_FINITE),
    ],
)
def test_reasons(changes, reason):
    trial = GOOD._replace(**changes)
    assert judge(trial, trial.reward, jnp.array(1.0), ROOM) == reason


def test_the_reward_test_can_be_switched_off():
    trial = GOOD._replace(reward=jnp.array(-1.0))
    assert judge(trial, trial.reward, jnp.array(1.0), ROOM, needs_improvement=False) == Reason.ACCEPTED


def search(limit, max_trials=15):
    """Trials are accepted once the step is at most ``limit`` long."""

    def evaluate(d):
        return Surrogates(d[0], jnp.zeros(0), d[0])

    return jax.jit(
        lambda: backtrack(
            evaluate,
            jnp.ones(1),
            lambda s: jnp.where(s.kl <= limit, 0, int(Reason.KL_TOO_LARGE)),
            max_trials=max_trials,
        )
    )()


@pytest.mark.parametrize(("limit", "backtracks"), [(1.0, 0), (0.8 + 1e-12, 1), (0.5, 4), (0.8**14 + 1e-12, 14)])
def test_takes_the_first_trial_that_passes(limit, backtracks):
    found = search(limit)
    assert found.reason == Reason.ACCEPTED
    assert found.backtracks == backtracks
    np.testing.assert_allclose(found.scale, 0.8**backtracks)
    np.testing.assert_allclose(found.surrogates.reward, 0.8**backtracks)


def test_after_the_last_trial_it_says_why():
    found = search(0.0)
    assert found.reason == Reason.KL_TOO_LARGE
    assert found.backtracks == 14
    np.testing.assert_allclose(found.scale, 0.8**14)
