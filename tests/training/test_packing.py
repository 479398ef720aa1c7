"""What was not played left out of a batch: the same update, on fewer rows."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.audit import _played_nonfinite
from pcpo.rl.critics import FitOptions
from pcpo.rl.learner import make_learner
from pcpo.rl.linear_features import LinearOptions
from pcpo.rl.options import Options
from pcpo.rl.rollout import Packed, Rollout
from pcpo.training.host.log import WORTH, Log, rows_for
from tests.rl.worlds import random_rollout, setup, walk
from tests.training.test_host_episodes import assert_same

T, E, ROWS = 12, 20, 160
ROLLOUT: Rollout = jax.tree.map(np.asarray, random_rollout(3, T, E, m=2))


def log_of(rollout: Any) -> Log:
    """The steps in some order, as they would be played by environments of which none waits for the others."""
    horizon, episodes = rollout.mask.shape
    sizes = rollout.observations.shape[2], rollout.actions[0], rollout.costs.shape[2]
    log = Log(horizon, episodes, *sizes, rollout.rewards.dtype)
    made, rng = np.zeros(episodes, int), np.random.default_rng(0)
    lengths = rollout.mask.sum(axis=0)
    while (going := np.flatnonzero(made < lengths)).size:
        some = rng.permutation(going)[: rng.integers(1, len(going) + 1)]
        t, made[some] = made[some], made[some] + 1
        lines = log.begin(t, some, rollout.observations[t, some])
        for name in ("actions", "rewards", "costs"):
            getattr(log, name)[lines] = getattr(rollout, name)[t, some]
    for name in ("terminated", "truncated", "final_observations"):
        getattr(log, name)[:] = getattr(rollout, name)
    return log


def pack(rollout: Any, rows: int | None = None):
    return log_of(rollout).batch(rows)


def test_a_log_has_it_all():
    assert_same(log_of(ROLLOUT).rollout(), ROLLOUT)


def test_the_batch_has_what_packing_is_for():
    """Episodes of many lengths, and fewer steps than rows, so that some rows are none."""
    lengths = ROLLOUT.mask.sum(axis=0)
    assert lengths.min() <= 2
    assert lengths.max() >= 11
    assert 100 < lengths.sum() < ROWS - 10


def test_rows_are_steps_episode_after_episode():
    packed = pack(ROLLOUT, ROWS)
    assert isinstance(packed, Packed)
    steps = [(t, e) for e in range(E) for t in range(T) if ROLLOUT.mask[t, e]]
    assert np.asarray(packed.played).sum() == len(steps)
    for row, (t, e) in enumerate(steps):
        np.testing.assert_array_equal(packed.observations[row, 0], ROLLOUT.observations[t, e])
        np.testing.assert_array_equal(packed.actions[row, 0], ROLLOUT.actions[t, e])
        assert packed.played[row, 0]
        assert packed.times[row, 0] == t
    assert not packed.observations[len(steps) :].any()


def test_there_and_back_again():
    packed = pack(ROLLOUT, ROWS)
    rewards = jnp.stack([ROLLOUT.rewards, 2.0 * ROLLOUT.rewards])
    rows = packed.as_rows(rewards)
    assert rows.shape == (2, ROWS, 1)
    assert rows[0].sum() == pytest.approx(ROLLOUT.rewards.sum())
    assert not rows[:, int(ROLLOUT.mask.sum()) :].any()
    np.testing.assert_array_equal(packed.as_episodes(rows), rewards)
    np.testing.assert_array_equal(packed.as_episodes(packed.played), ROLLOUT.mask)


def test_an_episode_without_a_step_has_no_row():
    """As one has whose first observation is not finite."""
    empty = ROLLOUT.mask.copy()
    empty[:, [0, 7, E - 1]] = False
    packed = pack(ROLLOUT._replace(mask=empty), ROWS)
    np.testing.assert_array_equal(
        packed.as_episodes(packed.as_rows(jnp.asarray(ROLLOUT.rewards))), ROLLOUT.rewards * empty
    )


def updates(options: Options):
    """The same update on the batch as it is and on its rows, H and critics on the same number of them."""
    options = dataclasses.replace(options, bootstrap=True, bootstrap_costs=True, normalize_batches=2, spectrum_every=1)
    s = setup(walk(T), m=2, options=options, limits=[3.0, 100.0], cost_discounts=[1.0, 0.9], damping=0.1)
    state = s.state._replace(
        normalizer=s.state.normalizer._replace(
            seen=jnp.ones(()) * 9.0, mean=jnp.ones(3) * 0.1, variance=jnp.ones(3) * 2.0
        )
    )
    for rollout, part in ((ROLLOUT, 72 / (T * E)), (pack(ROLLOUT, ROWS), 72 / ROWS)):
        critic = options.critic._replace(fraction=part) if isinstance(options.critic, FitOptions) else options.critic
        learner = make_learner(s.policy, s.critic, 3, dataclasses.replace(options, fisher_fraction=part, critic=critic))
        yield jax.jit(learner.update)(state, jax.tree.map(jnp.asarray, rollout), s.hyper, jax.random.key(5))


@pytest.mark.parametrize("critic", [FitOptions(steps=2), LinearOptions()])
def test_the_update_is_the_same(critic):
    """Policy, critics, statistics and all metrics: what was not played has no influence, and is no part of a sample."""
    whole, packed = updates(Options(critic=critic))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10), whole, packed)
    metrics = packed[1]
    assert metrics["kl"] > 1e-4
    assert not metrics["refused"]
    assert not metrics["nonfinite"].any()


@pytest.mark.parametrize("what", ["observations", "actions", "rewards", "costs"])
def test_what_is_not_finite_is_named_by_its_episode(what):
    """The first cause: an action, although the observations after it are none either."""
    e = int(np.argmax(ROLLOUT.mask.sum(axis=0)))
    names = ("observations", "rewards", "costs", "actions")
    spoilt = {name: getattr(ROLLOUT, name).copy() for name in names}
    spoilt[what][4, e] = np.nan
    if what == "actions":
        spoilt["observations"][5:8, e] = np.nan
    rollout = ROLLOUT._replace(**spoilt)
    for batch in (rollout, pack(rollout, ROWS)):
        assert [
            name
            for name, found in zip(names, _played_nonfinite(jax.tree.map(jnp.asarray, batch)), strict=True)
            if found
        ] == [what]


def test_few_numbers_of_rows():
    """Never a fifth more than steps; those of a task whose episodes all last are as many as ever."""
    possible = 400_000
    steps = np.linspace(WORTH, possible, 500).astype(int)
    rows = np.array([rows_for(int(n), possible) for n in steps])
    assert (rows >= steps).all()
    assert (rows[steps > WORTH * 1.2] <= 1.2 * steps[steps > WORTH * 1.2]).all()
    assert len(set(rows)) <= 30
    assert rows_for(possible, possible) == possible
    assert rows_for(1, WORTH) == WORTH


def test_small_batches_stay_as_they_are():
    assert_same(pack(ROLLOUT), ROLLOUT)
