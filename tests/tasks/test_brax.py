"""Environments with the API of Brax, written here for the purpose: small, and with its habits."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.cli import main
from pcpo.rl.rollout import World, play
from pcpo.rl.spaces import Box
from pcpo.tasks.adapters.brax import from_brax, is_brax
from pcpo.training.run import Run


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    """As Brax's own: a dataclass of arrays, replaced at every step."""

    data: Any
    obs: Any
    reward: Any
    done: Any
    metrics: dict[str, Any]
    info: dict[str, Any]

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)


class Cart:
    """A cart with two thrusters on a rail: faster is better, faster than 1 costs, and it falls off at 3.

    It has Brax's habits: its ``done`` is a float, its random numbers come from a key of the old kind that it keeps
    among its arrays, and a reset begins with numbers of Python.
    """

    action_size = 2
    observation_size = 3
    episode_length = 60

    def reset(self, rng):
        rng, start = jax.random.split(rng)
        x = jax.random.uniform(start, minval=-0.1, maxval=0.1)
        zero = 0.0
        info = {"cost": zero, "rng": rng, "steps": 0}
        return State(jnp.stack([x, 0.0]), jnp.stack([x, 0.0, 1.0]), zero, zero, {"speed": zero}, info)

    def step(self, state, action):
        rng, push = jax.random.split(state.info["rng"])
        x, v = state.data
        v = v + 0.1 * action[0] + 0.05 * action[1] + 0.01 * jax.random.normal(push)
        x = x + 0.1 * v
        info = {"cost": jnp.float32(abs(v) > 1), "rng": rng, "steps": state.info["steps"] + 1}
        return state.replace(
            data=jnp.stack([x, v]),
            obs=jnp.stack([x, v, 1.0]),
            reward=v,
            done=jnp.where(abs(x) > 3, 1.0, 0.0),
            metrics={"speed": abs(v)},
            info=info,
        )


def changed(**attributes):
    return type("Changed", (Cart,), attributes)()


@pytest.fixture(scope="module")
def cart():
    return from_brax(Cart())


def test_what_is_known_beforehand(cart):
    assert (cart.name, cart.observation_size, cart.horizon, cart.cost_names) == ("Cart", 3, 60, ("cost",))
    assert cart.action_space == Box((-1.0, -1.0), (1.0, 1.0))
    assert isinstance(cart, World)
    assert from_brax(Cart(), horizon=7, name="mine").horizon == 7


def test_a_task_steps_as_its_environment_does(cart):
    """The environment itself, stepped by hand with the rules that it was written for."""
    env, key = Cart(), jax.random.key(3)
    state, step = cart.reset(key), jax.jit(cart.step)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs, their_step = env.reset(jax.random.key_data(key)), jax.jit(env.step)
        for action in ([0.5, -1.0], [1.0, 1.0], [-0.3, 0.2]):
            theirs = their_step(theirs, jnp.asarray(action))
            state, outcome = step(state, jnp.asarray(action))
            np.testing.assert_allclose(cart.observe(state), theirs.obs, rtol=1e-6)
            assert outcome.reward == pytest.approx(float(theirs.reward), rel=1e-6)
            assert outcome.costs.tolist() == [float(theirs.info["cost"])]


def full_thrust(seen, noise):
    return jnp.ones((len(seen), 2))


def rollout_of(task, episodes=3, act=full_thrust):
    keys = jax.random.split(jax.random.key(0), episodes)
    return jax.jit(lambda keys: play(task, act, keys, jnp.zeros((task.horizon, episodes))))(keys)


def test_the_last_observation_is_the_one_that_ended_the_episode(cart):
    """Full thrust: it falls off after about 19 steps. What Brax's own training sees then is the next start."""
    rollout = rollout_of(cart)
    lengths = rollout.mask.sum(0)
    assert rollout.terminated.all()
    assert (lengths < 30).all()
    assert (rollout.final_observations[:, 0] > 3).all()
    assert (rollout.observations[lengths - 1, jnp.arange(3), 0] <= 3).all()
    after = jnp.concatenate([rollout.observations[1:, 0, 1], jnp.zeros(1)])
    after = after.at[lengths[0] - 1].set(rollout.final_observations[0, 1])
    np.testing.assert_array_equal(rollout.costs[:, 0, 0], rollout.mask[:, 0] * (after > 1))
    assert rollout.costs.sum() > 0


def test_the_time_limit_cuts_off_and_does_not_end():
    rollout = rollout_of(from_brax(Cart(), horizon=4))
    assert rollout.mask.all()
    assert rollout.truncated.all()
    assert not rollout.terminated.any()


def test_actions_are_clipped(cart):
    state = cart.reset(jax.random.key(0))
    at_bound, beyond = (cart.step(state, jnp.full(2, size))[0] for size in (1.0, 50.0))
    np.testing.assert_array_equal(cart.observe(at_bound), cart.observe(beyond))


class Episode:
    """What Brax's EpisodeWrapper does: ``done`` at the time limit too, with ``truncation`` beside it."""

    def __init__(self, env, episode_length):
        self.env, self.episode_length, self.action_size = env, episode_length, env.action_size

    def reset(self, rng):
        state = self.env.reset(rng)
        return state.replace(info={**state.info, "truncation": 0.0})

    def step(self, state, action):
        inner = {name: value for name, value in state.info.items() if name != "truncation"}
        state = self.env.step(state.replace(info=inner), action)
        over = state.info["steps"] >= self.episode_length
        truncation = jnp.where(over, 1 - state.done, 0.0)
        return state.replace(done=jnp.where(over, 1.0, state.done), info={**state.info, "truncation": truncation})


def test_a_wrapper_that_cuts_episodes_off_ends_none():
    task = from_brax(Episode(Cart(), 5))
    assert task.horizon == 5
    rollout = rollout_of(task)
    assert rollout.truncated.all()
    assert rollout_of(from_brax(Episode(Cart(), 60))).terminated.all()


def test_costs_come_from_info_metrics_or_a_function():
    assert from_brax(Cart(), cost=()).cost_names == ()
    state = from_brax(Cart()).reset(jax.random.key(0))
    task = from_brax(
        Cart(),
        cost={"heat": "speed", "brakes": lambda before, action, after, info: abs(after[1] - before[1]) + info["steps"]},
    )
    assert task.cost_names == ("heat", "brakes")
    after, outcome = task.step(state, jnp.ones(2))
    speed = float(abs(task.observe(after)[1]))
    assert outcome.costs.tolist() == pytest.approx([speed, 1 + speed], rel=1e-6)


def test_of_a_mapping_with_a_state_the_policy_sees_the_state():
    """Playground's way to give a critic more than the policy; other mappings are seen whole."""

    def split_into(*names):
        def reset(self, rng):
            state = Cart.reset(self, rng)
            return state.replace(obs=dict(zip(names, (state.obs[:2], state.obs), strict=True)))

        def step(self, state, action):
            after = Cart.step(self, state, action)
            return after.replace(obs=dict(zip(names, (after.obs[:2], after.obs), strict=True)))

        return changed(reset=reset, step=step)

    assert from_brax(split_into("state", "privileged_state")).observation_size == 2
    assert from_brax(split_into("arm", "hand")).observation_size == 5
    seen = from_brax(split_into("state", "rest"), cost=lambda before, action, after, info: before[0] + after[1])
    assert seen.cost_names == ("cost",)


def test_it_trains_from_the_command_line_with_seeds_side_by_side(tmp_path):
    """Two seeds in one compiled program: rows that differ. From Python, examples/brax_style.py does the same."""
    line = "train tests.tasks.test_brax:Cart --limit 5 --max-episode-steps 20 --batch-size 100 --seeds 2 --updates 2"
    assert main([*line.split(), "--hidden", "4", "--out", str(tmp_path / "run")]) == 0
    run = Run.open(tmp_path / "run")
    assert run.config.own == ("task",)
    returns, costs = np.asarray(run.column("return")), np.asarray(run.column("costs", "cost"))
    assert returns.shape == costs.shape == (2, 2)
    assert np.isfinite(returns).all()
    assert returns[0, 0] != returns[0, 1]


def begins_by_itself(self, rng):
    state = Cart.reset(self, rng)
    return state.replace(info={**state.info, "first_obs": state.obs})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_brax(Cart(), cost="heat"), "Cart gives no cost 'heat': a step reports 'speed', 'cost'"),
        (lambda: from_brax(SimpleNamespace(step=1)), "no environment of Brax's kind"),
        (lambda: from_brax(changed(episode_length=None)), "has not got an episode_length"),
        (lambda: from_brax(Cart(), horizon=0), "the horizon of Cart is 0"),
        (lambda: from_brax(changed(reset=begins_by_itself)), "without its AutoResetWrapper"),
        (lambda: from_brax(changed(reset=lambda self, rng: SimpleNamespace(obs=1.0))), "has no reward"),
        (
            lambda: from_brax(changed(reset=lambda self, rng: Cart.reset(self, rng).replace(done=jnp.zeros(4)))),
            "without its VmapWrapper",
        ),
        (
            lambda: from_brax(changed(step=lambda self, state, a: Cart.step(self, state, a).replace(info={"cost": 0}))),
            "has other parts after",
        ),
    ],
)
def test_what_is_wrong_is_said_at_once(make, message):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_of_brax_s_kind_is_known():
    assert is_brax(Cart())
    assert not is_brax(SimpleNamespace(reset=print, step=print))
