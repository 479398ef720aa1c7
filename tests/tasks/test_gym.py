"""The tasks as Gymnasium environments: what any other library will see."""

import contextlib
import dataclasses
import subprocess
import sys
import warnings
from importlib.metadata import entry_points

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.passive_env_checker import env_render_passive_checker

from pcpo.rl.spaces import Discrete
from pcpo.tasks import registry
from pcpo.tasks.api import DeviceTask, HostTask
from pcpo.tasks.gym import TaskEnv, identifier, register

NAMES = registry.names()
ON_DEVICE = [name for name in NAMES if isinstance(registry.make(name), DeviceTask)]


def make(name, **options) -> gymnasium.Env:
    return gymnasium.make(identifier(name), **options)


def test_the_names_are_those_of_the_contract():
    on_host = {"pcpo/AntCircle-v0", "pcpo/AntGather-v0", "pcpo/Grid-v0", "pcpo/Bottleneck-v0"}
    names = {"pcpo/PointCircle-v0", "pcpo/PointGather-v0", "pcpo/PointSquare-v0"} | on_host
    assert names <= {identifier(name) for name in NAMES} <= set(gymnasium.registry)


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_own_checker_has_nothing_to_say(name):
    """But for pictures of tasks of which a process can hold one: to check them, it opens another one."""
    env, task = make(name, render_mode="rgb_array").unwrapped, registry.make(name)
    alone = isinstance(task, HostTask) and task.per_process == 1
    with warnings.catch_warnings(), contextlib.closing(env):
        warnings.simplefilter("error")
        if name == "bottleneck":  # the action box of Flow and of the paper
            warnings.filterwarnings("ignore", message=".*we recommend using a symmetric and normalized space")
        check_env(env, skip_render_check=alone)
        if alone:
            env.reset()
            env_render_passive_checker(env)


@pytest.mark.parametrize("name", ON_DEVICE)
def test_an_episode_equals_that_of_the_task(name):
    """The same key, the same actions: the same numbers, to the bit."""
    task, env = registry.make(name), make(name)
    assert isinstance(task, DeviceTask)
    key = jax.random.key(11)
    step, state = jax.jit(task.step), task.reset(key)
    observation, _ = env.reset(options={"key": key})
    np.testing.assert_allclose(observation, task.observe(state), rtol=1e-14)
    actions = np.random.default_rng(0).normal(size=(task.horizon, 2))
    for t, action in enumerate(actions):
        state, outcome = step(state, jnp.asarray(action))
        observation, reward, terminated, truncated, info = env.step(action)
        np.testing.assert_allclose(observation, task.observe(state), rtol=1e-13, atol=1e-15)
        assert reward == pytest.approx(float(outcome.reward), rel=1e-13, abs=1e-13)
        assert [info[cost] for cost in task.cost_names] == outcome.costs.tolist()
        assert info["cost"] == float(outcome.costs.sum())
        assert terminated == bool(outcome.terminated)
        assert truncated == (t == task.horizon - 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_everything(name):
    def play(seed, episodes=2):
        env, numbers = make(name), []
        env.action_space.seed(seed)
        for episode in range(episodes):
            numbers.append(env.reset(seed=seed if episode == 0 else None)[0])
            for _ in range(10):
                observation, reward, *_, info = env.step(env.action_space.sample())
                numbers.append(np.append(observation, [float(reward), info["cost"]]))
        return numbers

    first, again, other = play(3), play(3), play(4)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    if name != "grid":  # which always begins with the same cars at the same places
        assert not np.array_equal(first[0], other[0])
        assert not np.array_equal(first[0], first[11])  # the second episode is another one


def test_two_costs_have_their_names_and_their_sum():
    env = make("point-square", y_limit=0.01)
    env.reset(seed=0)
    seen = [env.step(np.array([1.0, 0.25]))[-1] for _ in range(10)]
    assert {info["cost"] for info in seen} == {0.0, 1.0, 2.0}
    assert all(info["cost"] == info["cost_x"] + info["cost_y"] for info in seen)


def test_time_limits_truncate_and_the_last_object_terminates():
    env = make("point-circle")
    env.reset(seed=0)
    ends = [env.step(np.zeros(2))[2:4] for _ in range(50)]
    assert ends == [(False, False)] * 49 + [(False, True)]
    env = make("point-gather", bombs=1, apples=1, max_episode_steps=4000)
    env.reset(seed=0)
    env.action_space.seed(0)
    steps = (env.step(env.action_space.sample())[2:4] for _ in range(4000))
    assert next(end for end in steps if any(end)) == (True, False)


def test_options_go_through_gymnasium_make():
    bounds = np.array([1.0, 0.25])
    assert make("point-circle").action_space == gymnasium.spaces.Box(-bounds, bounds, dtype=np.float64)
    assert make("point-circle", action_mode="raw").action_space == gymnasium.spaces.Box(
        -np.inf, np.inf, (2,), np.float64
    )
    with pytest.raises(ValueError, match="did you mean 'x_limit'"):
        make("point-circle", xlimit=3.0)
    with pytest.raises(ValueError, match="max_episode_steps"):
        make("point-circle", horizon=60)
    with pytest.raises(ValueError, match="render_mode is 'human'"):
        TaskEnv("point-circle", render_mode="human")


@pytest.mark.parametrize("call", ["step", "render"])
def test_nothing_before_the_first_reset(call):
    env = TaskEnv("point-circle", render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(np.zeros(2)) if call == "step" else env.render()


def test_pictures_only_when_asked_for():
    env = TaskEnv("point-circle")
    env.reset(seed=0)
    assert env.render() is None
    drawn = TaskEnv("point-circle", render_mode="rgb_array")
    drawn.reset(seed=0)
    before = drawn.render()
    drawn.step(np.array([1.0, 0.0]))
    after = drawn.render()
    assert before is not None
    assert after is not None
    assert before.shape == after.shape
    assert before.dtype == np.uint8
    assert not np.array_equal(before, after)


def test_not_a_number_is_passed_on():
    env = TaskEnv("point-circle", render_mode="rgb_array")
    env.reset(seed=0)
    observation, reward, terminated, _, _ = env.step(np.array([np.nan, 0.0]))
    assert np.isnan(reward)
    assert np.isnan(observation).any()
    assert not terminated
    assert env.render() is not None


def test_choices_among_n_actions_become_a_discrete_space():
    circle = registry.make("point-circle")

    def step(state, action):
        return circle.step(state, jnp.asarray([1.0, 0.1]) * (action - 1).astype(float))

    task = DeviceTask("choices", 9, Discrete(3), 5, ("cost",), circle.reset, step, circle.observe, circle.scene)
    env = TaskEnv(task)
    assert env.action_space == gymnasium.spaces.Discrete(3)
    env.reset(seed=0)
    observation, *_ = env.step(env.action_space.sample())
    assert np.isfinite(observation).all()


def test_one_import_is_enough_or_a_module_in_the_name():
    script = """
import gymnasium
env = gymnasium.make("pcpo.tasks.gym:pcpo/PointGather-v0")
observation, info = env.reset(seed=0)
assert observation.shape == (29,) and observation.dtype == "float32", observation
assert env.step(env.action_space.sample())[-1] == {"cost": 0.0}
import sys
assert "matplotlib" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_entry_point_registers_everything():
    """As Gymnasium before 1.0 did it: load, and call."""
    (point,) = [point for point in entry_points(group="gymnasium.envs") if point.name == "pcpo"]
    assert point.load() is register
    before = set(gymnasium.registry)
    point.load()()
    assert set(gymnasium.registry) == before


def test_a_task_without_a_scene_works_and_says_that_there_is_nothing_to_draw():
    task = dataclasses.replace(registry.make("point-circle"), name="plain", scene=None)
    with pytest.raises(ValueError, match=r"render_mode is 'rgb_array', but plain has no scene"):
        TaskEnv(task, render_mode="rgb_array")
    env = TaskEnv(task)
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[4].keys() == {"cost"}
