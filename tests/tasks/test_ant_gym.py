"""The ant as a Gymnasium environment: what people know from Gymnasium's own robots holds."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from pcpo.tasks.ant.env import AntEnv
from pcpo.tasks.gym import HostTaskEnv, TaskEnv
from pcpo.tasks.registry import make
from tests.tasks.ants import Alone, standing

NAMES = ["pcpo/AntCircle-v0", "pcpo/AntGather-v0"]


@pytest.mark.parametrize("name", NAMES)
def test_set_state_goes_on_as_mujoco_does(name):
    env = gymnasium.make(name)
    env.reset(seed=0)
    ant = env.unwrapped
    assert isinstance(ant, AntEnv)
    rng = np.random.default_rng(1)
    for _ in range(5):
        env.step(rng.normal(size=8))
    qpos, qvel = standing(3.5, 1.0, 0.5, yaw=0.3, velocity=(0.5, -0.2, 0.0))
    observation = ant.set_state(qpos, qvel)
    np.testing.assert_array_equal(observation[:29], np.concatenate([qpos, qvel]))
    alone = Alone(qpos, qvel, walls="Gather" in name)
    for _ in range(20):
        action = rng.normal(size=8)
        observation, *_ = env.step(action)
        np.testing.assert_array_equal(observation[:29], np.concatenate(alone.step(action)))
        np.testing.assert_array_equal(ant.qpos, observation[:15])
        np.testing.assert_array_equal(ant.qvel, observation[15:29])
    assert ant.dt == ant.model.opt.timestep == 0.02
    assert ant.metadata["render_fps"] == 50


def test_the_cost_follows_the_state_that_was_set():
    env = gymnasium.make(NAMES[0])
    env.reset(seed=0)
    costs = []
    for x in (3.5, 0.0):
        env.unwrapped.set_state(*standing(x))  # pyright: ignore[reportAttributeAccessIssue]
        costs.append(env.step(np.zeros(8))[4])
    assert costs == [{"cost": 1.0}, {"cost": 0.0}]


@pytest.mark.parametrize("name", ["ant-circle", "ant-gather"])
def test_an_episode_is_the_one_that_training_plays_for_that_seed(name):
    worlds, env, one = make(name).worlds(3), AntEnv(name), np.array([1])
    expected = worlds.reset(one, np.array([77]))
    np.testing.assert_array_equal(env.reset(options={"episode": 77})[0], expected[0])
    action = np.full(8, 0.4)
    outcome = worlds.step(one, action[None])
    observation, reward, terminated, truncated, info = env.step(action)
    np.testing.assert_array_equal(observation, outcome.observations[0])
    assert (reward, terminated, truncated) == (outcome.rewards[0], outcome.terminated[0], False)
    assert info == {"cost": outcome.costs[0, 0]}


def test_the_time_limit_truncates_and_a_fall_terminates():
    env = gymnasium.make(NAMES[0], max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(8))[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env.reset(seed=0)
    env.unwrapped.set_state(*standing(z=1.2))  # pyright: ignore[reportAttributeAccessIssue]
    assert env.step(np.zeros(8))[2:4] == (True, False)


def test_options_go_through_gymnasium_make():
    env = gymnasium.make(NAMES[1], apples=1, bombs=2, true_yaw=True)
    observation, _ = env.reset(seed=3)
    assert np.count_nonzero(observation[32:42]) <= 1
    with pytest.raises(ValueError, match="did you mean 'x_limit'"):
        gymnasium.make(NAMES[0], xlimit=3.0)
    with pytest.raises(ValueError, match="max_episode_steps"):
        gymnasium.make(NAMES[0], horizon=60)


def test_mistakes_are_named():
    env = AntEnv("ant-circle")
    for use in (env.step, lambda still: env.set_state(*standing())):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            use(np.zeros(8))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"the action has the shape \(2,\); ant-circle takes Box"):
        env.step(np.zeros(2))
    with pytest.raises(ValueError, match=r"qvel has the shape \(15,\); give 14 numbers"):
        env.set_state(np.zeros(15), np.zeros(15))
    with pytest.raises(ValueError, match="render_mode is 'human'"):
        AntEnv("ant-circle", render_mode="human")
    with pytest.raises(TypeError, match="point-circle is no task on the host; use TaskEnv"):
        HostTaskEnv("point-circle")
    with pytest.raises(TypeError, match="ant-circle is a task on the host; use HostTaskEnv"):
        TaskEnv("ant-circle")


def test_an_action_that_is_no_number_ends_the_episode():
    env = AntEnv("ant-gather")
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step(np.full(8, np.nan))
    assert terminated
    assert np.isnan(observation).any()
    assert (reward, info["cost"]) == (-10.0, 0.0)
    assert np.isfinite(env.reset(seed=0)[0]).all()


def test_pictures_only_when_asked_for():
    env = AntEnv("ant-circle")
    env.reset(seed=0)
    assert env.render() is None
    drawn = AntEnv("ant-circle", render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        drawn.render()


def test_without_mujoco_the_ant_says_what_to_install_and_all_else_works():
    script = """
import sys
sys.modules["mujoco"] = None
import numpy as np
from pcpo.tasks import registry
from pcpo.tasks.host import WorldError
for name in registry.names():
    registry.describe(name)
import pcpo.tasks.gym, gymnasium
env = gymnasium.make("pcpo/PointCircle-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
for make in (lambda: registry.make("ant-circle").worlds(2), lambda: gymnasium.make("pcpo/AntGather-v0")):
    try:
        make()
    except WorldError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 2
    assert all("the ant needs MuJoCo 3.17 or newer" in line and "pip install" in line for line in said)
    assert all("pcpo[mujoco]" in line for line in said)


def test_the_command_line_says_it_in_one_line(tmp_path):
    script = """
import sys
sys.modules["mujoco"] = None
from pcpo.cli import main
sys.exit(main(sys.argv[1:]))
"""
    for words in (
        ["render", "ant-circle", "-o", "film.gif"],
        ["train", "ant-gather", "--out", "run", "--updates", "1"],
    ):
        command = [sys.executable, "-c", script, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert sum("pip install --upgrade 'pcpo[mujoco]'" in line for line in done.stderr.splitlines()) == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]  # neither a film nor a run
