"""Whole episodes, policies and networks: what is played, what it starts from, and what a wrong choice is told."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.critics import FitOptions
from pcpo.rl.networks import mlp
from pcpo.rl.options import Options
from pcpo.rl.policy import environment_actions, policy_for
from pcpo.rl.rollout import Transition, World, play
from pcpo.rl.spaces import Box, Discrete
from tests.rl.worlds import Toy, collect, episode_keys, line

HORIZON = 5
ENDS = jnp.array([1, 3, 5, 9])
"""Steps after which an episode ends by itself; the last one is cut off before."""


def counter() -> Toy:
    """Counts its steps, earns the count, costs the action; ends after as many steps as its key says; then breaks."""

    def reset(key):
        return jnp.zeros((), int), jnp.asarray(jax.random.key_data(key)[1], int)

    def step(state, action):
        count, end = state[0] + 1, state[1]
        reward = jnp.where(count > end, jnp.nan, count.astype(float))
        return (count, end), Transition(reward, action, count >= end)

    return Toy(HORIZON, reset, step, lambda state: state[0].astype(float)[None])


def played():
    keys = jax.vmap(lambda end: jax.random.wrap_key_data(jnp.stack([jnp.zeros((), jnp.uint32), end])))(
        ENDS.astype(jnp.uint32)
    )
    noise = jnp.arange(1.0, 1.0 + HORIZON * 4).reshape(HORIZON, 4, 1)
    return play(counter(), lambda observations, n: observations + n, keys, noise), np.asarray(noise)[..., 0]


def test_episodes_are_whole_and_nothing_lies_after_them():
    """Even where a world breaks after its end."""
    rollout, noise = played()
    mask = np.arange(HORIZON)[:, None] < np.minimum(ENDS, HORIZON)[None, :]
    count = np.arange(HORIZON)[:, None] * np.ones((1, 4))
    np.testing.assert_array_equal(rollout.mask, mask)
    np.testing.assert_array_equal(rollout.observations[..., 0], np.where(mask, count, 0))
    np.testing.assert_array_equal(rollout.actions[..., 0], np.where(mask, count + noise, 0))
    np.testing.assert_array_equal(rollout.rewards, np.where(mask, count + 1, 0))
    np.testing.assert_array_equal(rollout.costs[..., 0], np.where(mask, count + noise, 0))


def test_terminated_truncated_and_the_last_observation():
    """An end at the very horizon is an end, and no cut-off."""
    rollout, _ = played()
    np.testing.assert_array_equal(rollout.terminated, [True, True, True, False])
    np.testing.assert_array_equal(rollout.truncated, [False, False, False, True])
    np.testing.assert_array_equal(rollout.final_observations[:, 0], [1, 3, 5, 5])


def test_an_episode_does_not_depend_on_how_many_there_are():
    world, policy = counter(), policy_for(1, line(), (2,))
    params = policy.init(jax.random.key(0))
    few, many = (collect(world, policy, params, episode_keys(jax.random.key(1), n)) for n in (2, 5))
    np.testing.assert_allclose(few.actions, many.actions[:, :2], rtol=1e-14)


def test_a_toy_is_a_world():
    assert isinstance(counter(), World)
    assert not isinstance(3, World)


@pytest.mark.parametrize(
    ("inputs", "actions", "parameters"), [(9, 2, 2788), (29, 2, 4068), (32, 8, 4464), (52, 8, 5744)]
)
def test_the_papers_networks_have_as_many_parameters(inputs, actions, parameters):
    params = policy_for(inputs, line(actions)).init(jax.random.key(0))
    assert sum(x.size for x in jax.tree.leaves(params)) == parameters
    np.testing.assert_array_equal(params["distribution"], 0.0)


def test_weights_start_as_glorot_says_in_every_layer():
    """The last one included: uniform within sqrt(6 / (in + out)), with that deviation; no biases."""
    params = mlp([30, 40, 50, 20]).init(jax.random.key(0))
    for layer, (rows, columns) in zip(params, [(30, 40), (40, 50), (50, 20)], strict=True):
        limit = np.sqrt(6 / (rows + columns))
        assert layer["w"].shape == (rows, columns)
        assert np.abs(layer["w"]).max() <= limit
        assert np.std(layer["w"]) == pytest.approx(limit / np.sqrt(3), rel=0.1)
        np.testing.assert_array_equal(layer["b"], 0.0)


def test_a_network_by_hand():
    params = [{"w": jnp.array([[2.0]]), "b": jnp.array([1.0])}, {"w": jnp.array([[3.0]]), "b": jnp.array([-1.0])}]
    found = mlp([1, 1, 1]).apply(params, jnp.array([[0.5], [-0.5]]))
    np.testing.assert_allclose(found, [[3 * np.tanh(2.0) - 1], [-1.0]], rtol=1e-14)


def test_actions_are_clipped_for_the_environment_alone():
    box = Box((-1.0, -0.25), (1.0, np.inf))
    clipped = environment_actions(box, jnp.array([[3.0, -2.0], [-0.5, 9.0]]))
    np.testing.assert_array_equal(clipped, [[1.0, -0.25], [-0.5, 9.0]])
    np.testing.assert_array_equal(environment_actions(Discrete(3), jnp.array([2, 0])), [2, 0])


WRONG: list[tuple[Any, str]] = [
    (lambda: Options("ppo"), "algorithm is 'ppo'; pass one of pcpo-kl"),
    (lambda: Options(several="both"), "several is 'both'; pass one of cyclic"),
    (lambda: Options(fisher_fraction=0.0), "fisher_fraction is 0.0, .* try 0.2"),
    (lambda: Options(fisher_fraction=1.5), "fisher_fraction is 1.5"),
    (lambda: Options(fisher_fraction=float("nan")), "fisher_fraction is nan"),
    (lambda: Options(critic=FitOptions(fraction=2.0)), "critic.fraction is 2.0"),
    (lambda: Options(critic=FitOptions(steps=0)), "critic.steps is 0, but must be at least 1"),
    (lambda: Options(critic=FitOptions(cg_iterations=0)), "critic.cg_iterations is 0"),
    (lambda: Options(cg_iterations=0), "cg_iterations is 0"),
    (lambda: Options(normalize_batches=-1), "normalize_batches is -1, but must be at least 0"),
    (lambda: Options(spectrum_every=-1), "spectrum_every is -1"),
    (lambda: Options(spectrum_products=0), "spectrum_products is 0"),
    (lambda: Box((0.0,), (1.0, 2.0)), "low has 1 bounds and high 2"),
    (lambda: Box((0.0,), (0.0,)), "every low must be below its high"),
    (lambda: Box((float("nan"),), (0.0,)), "every low must be below its high"),
    (lambda: Discrete(1), "n is 1, but a choice needs at least 2"),
    (lambda: mlp([3]), "widths from input to output"),
    (lambda: mlp([3, 0, 1]), "all at least 1"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message.split(",")[0] for _, message in WRONG])
def test_a_wrong_choice_is_told_what_to_try(make, message):
    with pytest.raises(ValueError, match=message):
        make()
