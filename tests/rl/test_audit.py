"""What is named when numbers are not finite, and what the estimates of the bounds are made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.core.line_search import Reason
from pcpo.core.types import LocalModel, Status, StepInfo, Surrogates
from pcpo.rl import normalize
from pcpo.rl.audit import NONFINITE_NAMES, estimated_bounds, find_nonfinite, now_and_then, spectrum
from tests.rl.worlds import random_rollout

NOTHING = jnp.zeros(())
MODEL = LocalModel(jnp.ones(3), jnp.ones((1, 3)), jnp.ones(1), lambda v: v)
INFO = StepInfo(jnp.asarray(1, jnp.int32), NOTHING, jnp.zeros(1), NOTHING, jnp.zeros(1), NOTHING, jnp.zeros(2), {})
ROLLOUT = random_rollout(1, T=6, E=4, full=True)
NAN = jnp.nan


def named(rollout=ROLLOUT, model=MODEL, info=INFO, critics=NOTHING, values=None, normalizer=None):
    values = jnp.zeros((2, 6, 4)) if values is None else values
    found = find_nonfinite(rollout, model, info, critics, values, normalizer or normalize.empty(3))
    return {name for name, is_it in zip(NONFINITE_NAMES, np.asarray(found), strict=True) if is_it}


def test_nothing_is_named_where_all_is_finite():
    assert named() == set()


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf, -jnp.inf])
def test_each_quantity_by_its_own_name(bad):
    def at(x, *where):
        return x.at[where].set(bad)

    assert named(ROLLOUT._replace(observations=at(ROLLOUT.observations, 2, 1, 0))) == {"observation"}
    assert named(ROLLOUT._replace(final_observations=at(ROLLOUT.final_observations, 1, 0))) == {"observation"}
    assert named(ROLLOUT._replace(rewards=at(ROLLOUT.rewards, 2, 1))) == {"reward"}
    assert named(ROLLOUT._replace(costs=at(ROLLOUT.costs, 2, 1, 0))) == {"cost"}
    assert named(ROLLOUT._replace(actions=at(ROLLOUT.actions, 2, 1, 0))) == {"action"}
    assert named(values=jnp.full((2, 6, 4), bad)) == {"critic"}
    assert named(critics=jnp.asarray(bad)) == {"critic"}
    for broken in (
        LocalModel(at(MODEL.g, 0), MODEL.a, MODEL.b, lambda v: v),
        LocalModel(MODEL.g, at(MODEL.a, 0, 0), MODEL.b, lambda v: v),
        LocalModel(MODEL.g, MODEL.a, at(MODEL.b, 0), lambda v: v),
    ):
        assert named(model=broken) == {"gradient"}
    assert named(info=INFO._replace(cg_residuals=at(INFO.cg_residuals, 1))) == {"curvature"}
    for part in ("seen", "mean", "variance"):
        empty = normalize.empty(3)
        assert named(normalizer=empty._replace(**{part: getattr(empty, part) + bad})) == {"normalizer"}


def test_a_step_without_finite_surrogates_is_named():
    assert named(info=INFO._replace(status=jnp.asarray(int(Status.NONFINITE), jnp.int32))) == {"surrogate"}
    searched = {"line_search": jnp.asarray(int(Reason.NOT_FINITE), jnp.int32)}
    assert named(info=INFO._replace(extra=searched)) == {"surrogate"}
    for reason in set(Reason) - {Reason.NOT_FINITE}:
        assert named(info=INFO._replace(extra={"line_search": jnp.asarray(int(reason), jnp.int32)})) == set()


def test_only_the_first_cause_is_named():
    """A wrong observation makes wrong actions, rewards, gradients; a wrong action makes wrong rewards."""
    o, a = ROLLOUT.observations, ROLLOUT.actions
    all_after = ROLLOUT._replace(
        observations=o.at[2:, 1].set(NAN), actions=a.at[2:, 1].set(NAN), rewards=ROLLOUT.rewards.at[2:, 1].set(NAN),
        costs=ROLLOUT.costs.at[2:, 1].set(NAN), final_observations=ROLLOUT.final_observations.at[1].set(NAN),
    )  # fmt: skip
    broken = LocalModel(NAN * MODEL.g, NAN * MODEL.a, NAN * MODEL.b, lambda v: v)
    assert named(all_after, broken, values=jnp.full((2, 6, 4), NAN), critics=jnp.asarray(NAN)) == {"observation"}
    assert named(all_after._replace(observations=o.at[3:, 1].set(NAN))) == {"action"}
    early = all_after._replace(rewards=ROLLOUT.rewards.at[1:, 1].set(NAN))
    assert named(early) == {"observation", "reward"}  # the reward at step 1 was there before
    elsewhere = all_after._replace(costs=ROLLOUT.costs.at[5, 3].set(NAN))
    assert named(elsewhere) == {"observation", "cost"}  # another episode has a fault of its own
    assert named(model=broken, critics=jnp.asarray(NAN)) == {"critic"}
    assert named(model=broken, info=INFO._replace(cg_residuals=jnp.full(2, NAN))) == {"gradient"}


def test_whole_numbers_are_finite():
    assert named(ROLLOUT._replace(actions=jnp.zeros((6, 4), jnp.int32))) == set()


def test_no_constraint_is_nothing_to_name():
    model = LocalModel(jnp.ones(3), jnp.ones((0, 3)), jnp.ones(0), lambda v: v)
    assert named(random_rollout(1, T=6, E=4, m=0, full=True), model) == set()


def test_estimated_bounds_by_hand():
    """kl 0.02, so sqrt(2 kl) = 0.2. Largest advantages 3, 5, and 4 once its weight of 0.5 is taken off."""
    A = jnp.array([[[1.0], [-3.0]], [[5.0], [0.0]], [[1.0], [2.0]]])
    weights, discounts = jnp.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.5]]), jnp.array([0.9, 1.0, 0.5])
    happened = Surrogates(jnp.asarray(7.0), jnp.array([0.5, -0.5]), jnp.asarray(0.02))
    reward, costs = estimated_bounds(happened, jnp.array([10.0, 20.0]), A, weights, discounts)
    assert float(reward) == pytest.approx(7.0 - 0.2 * 0.9 * (0.2 * 3) / 0.1**1.5)
    first = 10.5 + 0.2 * 5 * 1 * np.sqrt(2 * 2 * 0.02)
    second = 19.5 + 0.2 * 0.5 * (0.2 * 4) / 0.5**1.5
    np.testing.assert_allclose(costs, [first, second])


def test_no_step_has_no_penalty():
    still = Surrogates(NOTHING, jnp.zeros(1), NOTHING)
    reward, costs = estimated_bounds(still, jnp.array([3.0]), jnp.ones((2, 4, 1)), jnp.ones((2, 4)), jnp.ones(2))
    assert reward == 0.0
    np.testing.assert_array_equal(costs, [3.0])


def test_what_nobody_wants_or_is_not_due_is_not_a_number():
    def look():
        return spectrum(MODEL, jax.random.key(0), 5)

    for every, update, due in ((0, 0, False), (3, 4, False), (3, 6, True)):
        found = now_and_then(look, jnp.asarray(update, jnp.int32), every)
        assert found.keys() == {"spectrum_min", "spectrum_max", "condition"}
        assert np.all(np.isfinite([*found.values()]) == due)
