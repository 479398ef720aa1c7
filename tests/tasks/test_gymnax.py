"""Environments of gymnax as tasks: real ones against gymnax itself, and small ones in either of its two APIs."""

import dataclasses
import functools
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo import PCPO
from pcpo.cli import main
from pcpo.rl.rollout import World, play
from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.adapters import _jax
from pcpo.tasks.adapters.gymnax import from_gymnax, is_gymnax
from pcpo.training.run import Run

gymnax = pytest.importorskip("gymnax", reason="gymnax is not installed: pip install gymnax six")


def spins(observation, action, after, info):
    """A cost of 1 for each step after which the pendulum turns faster than 4 rad/s."""
    return abs(after[2]) > 4


@pytest.fixture(scope="module")
def pendulum():
    return from_gymnax("Pendulum-v1", cost=spins)


@pytest.fixture(scope="module")
def cart():
    return from_gymnax("CartPole-v1", cost=lambda before, action, after, info: abs(after[0]) > 1)


# The real gymnax.


def test_what_is_known_beforehand(pendulum, cart):
    assert (pendulum.name, pendulum.observation_size, pendulum.horizon) == ("gymnax:Pendulum-v1", 3, 200)
    assert pendulum.action_space == Box((-2.0,), (2.0,))
    assert pendulum.cost_names == ("cost",)
    assert isinstance(pendulum, World)
    assert cart.action_space == Discrete(2)
    assert from_gymnax("CartPole-v1", cost=()).cost_names == ()


def test_a_task_steps_as_gymnax_does(pendulum):
    """The same states, rewards and observations as gymnax's own step from the same state with the same key."""
    env, params = gymnax.make("Pendulum-v1")
    state = pendulum.reset(jax.random.key(3))
    step, theirs = jax.jit(pendulum.step), jax.jit(env.step_env)
    for t, action in enumerate([0.5, -2.0, 1.3, 2.0]):
        key, _ = jax.random.split(state.key)
        with _jax.their_rules():
            observation, _, reward, *_ = theirs(key, state.inner, jnp.asarray([action]), params)
        state, outcome = step(state, jnp.asarray([action]))
        np.testing.assert_allclose(pendulum.observe(state), observation, rtol=1e-12)
        assert outcome.reward == pytest.approx(float(reward), rel=1e-12)
        assert outcome.costs.tolist() == [float(abs(observation[2]) > 4)]
        assert state.inner.time == t + 1


def test_actions_are_clipped_to_the_bounds(pendulum):
    state = pendulum.reset(jax.random.key(0))
    (at_bound, _), (beyond, _) = (pendulum.step(state, jnp.asarray([a])) for a in (2.0, 50.0))
    np.testing.assert_array_equal(pendulum.observe(at_bound), pendulum.observe(beyond))


def test_the_last_observation_is_the_one_that_ended_the_episode(cart):
    """Pushed to one side, the pole falls. What gymnax's own step returns then is the start of the next episode."""
    keys, noise = jax.random.split(jax.random.key(0), 8), jnp.zeros((cart.horizon, 8))
    rollout = jax.jit(lambda keys: play(cart, lambda seen, _: jnp.ones(len(seen), int), keys, noise))(keys)
    lengths = rollout.mask.sum(0)
    assert rollout.terminated.all()
    assert (lengths < 20).all()
    assert (abs(rollout.final_observations[:, 2]) > 12 * np.pi / 180).all()
    before = rollout.observations[lengths - 1, jnp.arange(8)]
    assert (abs(before[:, 2]) <= 12 * np.pi / 180).all()


def test_the_time_limit_cuts_off_and_does_not_end():
    short = from_gymnax("Pendulum-v1", cost=(), horizon=5)
    rollout = play(short, lambda seen, _: jnp.zeros((2, 1)), jax.random.split(jax.random.key(0)), jnp.zeros((5, 2)))
    assert rollout.mask.all()
    assert not rollout.terminated.any()
    assert rollout.truncated.all()


def test_falling_in_the_very_last_step_is_an_end():
    """CartPole falls in step 9 or so; the horizon is set to just that."""
    key = jax.random.key(0)
    always, noise = (lambda seen, _: jnp.ones(len(seen), int)), jnp.zeros((500, 1))
    length = int(play(from_gymnax("CartPole-v1", cost=()), always, key[None], noise).mask.sum())
    for horizon, falls in [(length, True), (length - 1, False)]:
        task = from_gymnax("CartPole-v1", cost=(), horizon=horizon)
        rollout = play(task, always, key[None], noise[:horizon])
        assert rollout.terminated.item() is falls
        assert rollout.truncated.item() is not falls


def test_an_environment_written_for_other_rules_of_dtypes_is_made():
    """FourRooms subtracts booleans from whole numbers when it is made; strict promotion, as here, refuses that."""
    assert from_gymnax("FourRooms-misc", cost=()).observation_size == 4


def test_a_choice_observed_is_one_of_n():
    def step_env(self, key, state, action, params):
        return jnp.asarray(2), state, 0.0, False, {}

    env = changed(observation_space=lambda self, params: SimpleNamespace(n=5), step_env=step_env)
    task = from_gymnax(env, cost=())
    after, _ = task.step(task.reset(jax.random.key(0)), jnp.zeros(1))
    assert task.observation_size == 5
    assert task.observe(after).tolist() == [0, 0, 1, 0, 0]


def test_it_trains_from_the_command_line_with_seeds_side_by_side(tmp_path):
    """Two seeds in one compiled program; the costs in the rows are those of the function, step by step."""
    line = "train gymnax:Pendulum-v1 --cost tests.tasks.test_gymnax:spins --max-episode-steps 20 --limit 5 --seeds 2"
    more = f"--batch-size 200 --updates 2 --hidden 4 --out {tmp_path / 'run'}"
    assert main([*line.split(), *more.split()]) == 0
    costs = np.asarray(Run.open(tmp_path / "run").column("costs", "cost"))
    assert costs.shape == (2, 2)
    assert costs[0, 0] != costs[0, 1]
    agent = PCPO.load(tmp_path / "run", cost=spins)
    rollout = agent._program.rollout(agent._session.state, 0, 10)
    expected = (abs(rollout.observations[:, 1:, :, 2]) > 4).sum((1, 2))  # of the steps before the last
    last = (abs(rollout.final_observations[..., 2]) > 4).sum(1)
    np.testing.assert_array_equal(rollout.costs.sum((1, 2, 3)), expected + last)


# Both APIs, by hand: a counter that goes up by its action, and is done for good at 3.


@dataclasses.dataclass(frozen=True)
class Limits:
    max_steps_in_episode: int = 4


class Count(NamedTuple):
    total: Any
    time: Any


class Counter:
    """The API of 0.0.x: ``done`` is true at the time limit too."""

    name = "Counter"
    default_params = Limits()

    def action_space(self, params):
        return SimpleNamespace(low=-1.0, high=1.0, shape=())

    def observation_space(self, params):
        return SimpleNamespace(shape=())

    def reset_env(self, key, params):
        return jnp.zeros(()), Count(jnp.zeros(()), 0)

    def step_env(self, key, state, action, params):
        state = Count(state.total + action, state.time + 1)
        info = {"cost": abs(action), "heat": state.total, "discount": 1.0}
        return state.total, state, state.total, self.is_terminal(state, params), info

    def is_terminal(self, state, params):
        return (state.total >= 3) | (state.time >= params.max_steps_in_episode)


class Environment:
    """What the environments of 1.x inherit."""

    def is_truncated(self, state, params):
        return state.time >= params.max_steps_in_episode


class Newer(Counter, Environment):
    """The API of 1.x: the time limit is no end."""

    def is_terminal(self, state, params):
        return state.total >= 3


@pytest.mark.parametrize("env", [Counter(), Newer()], ids=["0.0.x", "1.x"])
@pytest.mark.parametrize(("action", "length", "ends"), [(1.0, 3, True), (0.5, 4, False), (0.75, 4, True)])
def test_both_apis_tell_an_end_from_the_time_limit(env, action, length, ends):
    task = from_gymnax(env)
    keys, noise = jax.random.key(0)[None], jnp.zeros((4, 1))
    rollout = play(task, lambda seen, _: jnp.full((1, 1), action), keys, noise)
    assert rollout.mask.sum() == length
    assert rollout.terminated.item() is ends
    assert rollout.costs.sum() == pytest.approx(action * length)
    assert rollout.final_observations[0, 0] == pytest.approx(action * length)


def test_costs_are_chosen_by_name():
    assert from_gymnax(Counter(), cost="heat").cost_names == ("heat",)
    assert from_gymnax(Counter(), cost=["heat", "cost"]).cost_names == ("heat", "cost")
    both = from_gymnax(Counter(), cost={"warm": "heat", "twice": lambda before, action, after, info: 2 * after})
    assert both.cost_names == ("warm", "twice")
    _, outcome = both.step(both.reset(jax.random.key(0)), jnp.ones(1))
    assert outcome.costs.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_gymnax("Pendulum-v1"), "gives no cost 'cost': a step reports 'discount'"),
        (lambda: from_gymnax("Pendulum-v1", cost=lambda b, a, after, i: after), "has the shape (3,), but must be one"),
        (lambda: from_gymnax("Pendulum-v9"), "no environment 'Pendulum-v9'; it has CartPole-v1"),
        (lambda: from_gymnax(Counter(), cost="no.such:function"), "there is no such function"),
        (lambda: from_gymnax(Counter(), horizon=0), "the horizon of gymnax:Counter is 0"),
        (lambda: from_gymnax(SimpleNamespace(step=1)), "is no environment of gymnax"),
        (lambda: from_gymnax(Wrapped(Counter())), "wraps an environment"),
        (lambda: from_gymnax(changed(default_params=object())), "has not got max_steps_in_episode"),
        (lambda: from_gymnax(changed(is_truncated=lambda self, state, params: True)), "an is_truncated of its own"),
        (lambda: from_gymnax(changed(action_space=lambda self, params: "any")), "only Box and Discrete"),
        (lambda: from_gymnax(changed(step_env=drops_a_part)), "has other parts after"),
    ],
)
def test_what_is_wrong_is_said_at_once(make, message):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert message in str(caught.value)


class Wrapped:
    def __init__(self, env):
        self._env = env


def drops_a_part(self, key, state, action, params):
    return state.total, (state.total, state.time, state.time), state.total, False, {"cost": 0.0}


def changed(**attributes):
    return type("Changed", (Counter,), attributes)()


def test_a_state_that_never_settles_on_a_type_is_refused():
    """Each step makes its state one size wider: int8, int16, int32."""
    wider = {"int8": jnp.int16, "int16": jnp.int32, "int32": jnp.int64}

    def step_env(self, key, state, action, params):
        later = state._replace(time=state.time.astype(wider[str(state.time.dtype)]))
        return state.total, later, state.total, False, {"cost": 0.0}

    def reset_env(self, key, params):
        return jnp.zeros(()), Count(jnp.zeros(()), jnp.int8(0))

    with pytest.raises(ValueError, match="changes its types at every step"):
        from_gymnax(changed(step_env=step_env, reset_env=reset_env))


def test_a_missing_gymnax_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnax", None)
    with pytest.raises(ValueError, match="install it with: pip install gymnax six"):
        from_gymnax("Pendulum-v1")


def test_what_is_gymnax_is_known():
    assert is_gymnax(Counter())
    assert not is_gymnax(functools.partial(Counter))
