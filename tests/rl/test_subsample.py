"""The random part of a batch on which curvature is measured."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.subsample import sample_size, stratified_rows

T, E = 10, 7
LENGTHS = np.array([10, 3, 1, 7, 10, 5, 4])
MASK = np.arange(T)[:, None] < LENGTHS[None, :]
"""40 of 70 steps happened."""


def draws(mask, count, times=1):
    keys = jax.random.split(jax.random.key(0), times)
    return jax.jit(jax.vmap(lambda key: stratified_rows(key, jnp.asarray(mask), count)))(keys)


def counts(mask, count, times):
    """How often each step was drawn."""
    rows = draws(mask, count, times)
    found = np.zeros(mask.shape, int)
    np.add.at(found, (np.ravel(rows.time), np.ravel(rows.episode)), 1)
    return found


@pytest.mark.parametrize("count", [1, 8, 11, 40])
def test_every_step_that_happened_is_as_likely_as_any_other(count):
    """Four standard deviations of a binomial; strata make the true spread smaller."""
    times = 4000
    found = counts(MASK, count, times)
    assert np.all(found[~MASK] == 0)
    p = count / 40
    np.testing.assert_allclose(found[MASK] / times, p, atol=4.5 * np.sqrt(p / times) + 1e-12)


@pytest.mark.parametrize("count", [1, 4, 8, 11, 27, 39, 40])
def test_no_step_is_drawn_twice_while_there_are_enough(count):
    rows = draws(MASK, count, 300)
    flat = np.asarray(rows.time) * E + np.asarray(rows.episode)
    assert all(len(set(one)) == count for one in flat.tolist())


def test_every_episode_is_represented_in_proportion():
    rows = draws(MASK, 20, 50)
    for one in np.asarray(rows.episode):
        found = np.bincount(one, minlength=E)
        assert np.all(np.abs(found - LENGTHS / 2) <= 1)


def test_another_key_draws_other_rows():
    rows = draws(MASK, 8, 2)
    assert not np.array_equal(rows.time[0], rows.time[1])


def test_it_is_not_the_first_time_steps():
    """The trap: the first fifth of a flattened ``[T, E]`` batch is the first fifth of all episodes."""
    mask = np.ones((50, 100), bool)
    rows = draws(mask, 1000)
    time = np.asarray(rows.time[0])
    assert abs(time.mean() - 24.5) < 4 * np.sqrt((50**2 - 1) / 12 / 1000)
    assert np.all(np.bincount(time, minlength=50) > 0)
    assert np.asarray(draws(mask, 1000).episode[0]).max() == 99


def test_a_short_batch_is_drawn_from_more_than_once():
    """10 rows of 3 steps: each of them, and in proportion."""
    mask = np.zeros((5, 4), bool)
    mask[:2, 1] = mask[0, 3] = True
    rows = draws(mask, 10, 100)
    assert np.all(mask[np.ravel(rows.time), np.ravel(rows.episode)])
    for t, e in zip(np.asarray(rows.time), np.asarray(rows.episode), strict=True):
        found = np.zeros(mask.shape)
        np.add.at(found, (t, e), 1)
        assert np.all(found[mask] >= 2)


def test_one_episode_and_one_step():
    rows = draws(np.ones((6, 1), bool), 6)
    np.testing.assert_array_equal(np.sort(rows.time[0]), np.arange(6))
    rows = draws(np.array([[True], [False]]), 3)
    np.testing.assert_array_equal(rows.time[0], 0)


def test_episodes_of_no_steps_are_passed_over():
    mask = np.ones((3, 4), bool)
    mask[:, [0, 2]] = False
    rows = draws(mask, 6, 20)
    assert set(np.unique(np.asarray(rows.episode))) == {1, 3}


def test_rows_pick_from_any_array():
    rows = jax.tree.map(lambda x: x[0], draws(MASK, 5))
    x = jnp.arange(T * E * 2).reshape(T, E, 2)
    np.testing.assert_array_equal(rows.of(x), np.asarray(x)[np.asarray(rows.time), np.asarray(rows.episode)])


def test_large_samples_are_whole_multiples_and_never_more_than_there_is():
    assert [sample_size(0.2, steps) for steps in (1, 1_000, 6_250, 6_400, 50_000)] == [1, 200, 1_250, 1_280, 10_112]
    assert [sample_size(1.0, steps) for steps in (1_280, 1_300, 50_000)] == [1_280, 1_300, 50_000]
