"""Safety-Gymnasium's tasks on a current stack: the trajectories of the original, without its textures."""

import importlib.util
import inspect
import logging
import operator
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest

from pcpo.tasks.adapters import _safety_faster, safety_gymnasium
from pcpo.tasks.adapters.safety_gymnasium import environment, horizon, names, without_pictures
from pcpo.training.named import named

installed = importlib.util.find_spec("safety_gymnasium") is not None
needs_it = pytest.mark.skipif(not installed, reason=f"Safety-Gymnasium is not installed: {safety_gymnasium.INSTALL}")
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")  # gymnasium's own spaces


def trajectory(env, seeds=(3, 4), steps=150, actions=0):
    """What an environment gives for each seed, one after the other: observations, rewards, costs and ends."""
    found = []
    random = np.random.default_rng(actions)
    for seed in seeds:
        found.append(env.reset(seed=seed)[0])
        for _ in range(steps):
            observation, reward, cost, terminated, truncated, info = env.step(
                random.uniform(-1, 1, env.action_space.shape)
            )
            found.append(np.r_[observation, reward, cost, terminated, truncated, info.get("cost_sum", cost)])
            if terminated or truncated:
                break
    return np.concatenate(found)


def original(name):
    """The task as Safety-Gymnasium itself builds it, sky and all."""
    robot = next(each for each in safety_gymnasium.ROBOTS if name.startswith(f"Safety{each}"))
    return safety_gymnasium.builder()(name, config={"agent_name": robot})


def with_its_own_steps(name):
    """As `environment` makes it of a version that is not known; robots with joints need what it does for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_safety_faster, "KNOWN", "another one")
        env = environment(name)
    assert type(env).step.__module__ == "safety_gymnasium.builder"
    return env


@needs_it
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("SafetyPointGoal1-v0", (3,)),
        ("SafetyPointGoal2-v0", (5,)),
        ("SafetyPointCircle1-v0", (3, 4)),
        ("SafetyCarCircle2-v0", (3,)),
        ("SafetyPointButton1-v0", (6,)),
        ("SafetyPointPush1-v0", (7,)),
        ("SafetyRacecarRun0-v0", (3,)),
        ("SafetyPointFadingHard1-v0", (9,)),
    ],
)
def test_whole_episodes_are_those_of_the_original_to_the_last_bit(name, seeds):
    """All that a step gives and MuJoCo has computed, half of the time driven to the goal, where there is one."""
    ours, theirs = environment(name), original(name)
    for seed in seeds:
        np.testing.assert_array_equal(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
        random = np.random.default_rng(seed)
        ends, step = False, 0
        while not ends:
            driven = hasattr(ours.task, "goal") and step % 100 < 50
            action = to_the_goal(ours) if driven else random.uniform(-1, 1, ours.action_space.shape)
            outcome, expected = ours.step(action), theirs.step(action)
            assert outcome[0].dtype == expected[0].dtype
            np.testing.assert_array_equal(outcome[0], expected[0])
            assert outcome[1:] == expected[1:]
            ends, step = outcome[3] or outcome[4], step + 1
        assert state(ours) == state(theirs)
        assert step == horizon(name) or ours.terminated


def state(env):
    """All arrays of MuJoCo's, bit for bit."""
    data = env.task.data
    arrays = {name: getattr(data, name) for name in dir(data) if not name.startswith("_")}
    return {name: array.tobytes() for name, array in arrays.items() if isinstance(array, np.ndarray)}


@needs_it
def test_goals_that_are_reached_and_hazards_that_are_hit_are_among_those_episodes():
    """A robot that drives to its goal meets all that a step can do; the comparison above is then no empty one."""
    ours, theirs = environment("SafetyPointGoal1-v0"), original("SafetyPointGoal1-v0")
    for env in (ours, theirs):
        env.reset(seed=1)
    costs, goals = 0.0, 0
    for _ in range(600):
        action = to_the_goal(ours)
        outcome, expected = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(outcome[0], expected[0])
        assert outcome[1:] == expected[1:]
        costs, goals = costs + outcome[2], goals + outcome[5].get("goal_met", 0)
    assert goals >= 2
    assert costs >= 10


def to_the_goal(env):
    """Turns towards the goal, and drives when it lies ahead."""
    x, y = env.task._ego_xy(env.task.goal.pos[:2])
    return np.array([1.0 if x > abs(y) else 0.0, np.clip(2 * np.arctan2(y, x), -1, 1)])


@needs_it
def test_steps_are_faster_only_where_what_they_replace_is_known():
    """Another version, or an edited one, keeps its own steps."""
    known, unknown = environment("SafetyPointGoal1-v0"), with_its_own_steps("SafetyPointGoal1-v0")
    for part in ("step", "task.obs", "task.calculate_cost", "task.hazards.cal_cost", "task.agent.dist_xy"):
        ours, theirs = (operator.attrgetter(part)(env).__func__.__module__ for env in (known, unknown))
        assert ours == "pcpo.tasks.adapters._safety_faster", part
        assert theirs.startswith("safety_gymnasium."), part
    np.testing.assert_array_equal(trajectory(unknown, steps=30), trajectory(known, steps=30))


@pytest.fixture
def told(caplog):
    """The warnings that a process gives which has given none yet."""
    _safety_faster.tell.cache_clear()
    yield lambda: [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    _safety_faster.tell.cache_clear()


@needs_it
def test_who_makes_a_task_is_told_once_that_its_steps_are_slow(monkeypatch, told):
    """At a level that is seen where nobody has set up a log; processes that only step say nothing."""
    make = lambda steps: named("safety:SafetyPointGoal1-v0", {"max_episode_steps": steps})  # noqa: E731
    make(901)
    assert told() == []
    monkeypatch.setattr(_safety_faster, "KNOWN", "another one")
    environment("SafetyPointGoal1-v0")
    assert told() == []
    make(902)
    make(903)
    assert told() == ["Safety-Gymnasium is not the 1.0.0 that is known here: its own steps are used, half as fast"]


@needs_it
def test_a_forward_pass_of_the_same_state_changes_nothing_and_of_another_state_does():
    env = environment("SafetyPointPush1-v0")
    env.reset(seed=1)
    env.step(np.ones(2))
    model, data = env.task.model, env.task.data
    assert data.nefc > 0
    before = state(env)
    assert _safety_faster.repeatable(model, data)
    data.qpos[:2] += 1e-9
    assert not _safety_faster.repeatable(model, data)
    data.qpos[:] = np.frombuffer(before["qpos"])
    assert state(env) == before


@needs_it
def test_forward_passes_are_saved_only_where_a_second_one_changes_nothing(monkeypatch, told):
    """Another version of MuJoCo may be another one in this, and the fingerprint does not see it."""
    name, passes = "SafetyPointGoal1-v0", []
    trusting, doubting, theirs = environment(name), environment(name), with_its_own_steps(name)
    mujoco = sys.modules["mujoco"]
    forward = mujoco.mj_forward
    monkeypatch.setattr(mujoco, "mj_forward", lambda *given: passes.append(given) or forward(*given))

    def made(env):
        env.reset(seed=2)
        passes.clear()
        outcomes = [env.step(np.ones(2))[0] for _ in range(3)]
        return sum(given[1] is env.task.data for given in passes), np.array(outcomes)

    saved, ours = made(trusting)
    assert (saved, told()) == (3, [])
    monkeypatch.setattr(_safety_faster, "repeatable", lambda *_: False)
    all_of_them, slower = made(doubting)
    own, expected = made(theirs)
    assert all_of_them == own == 9
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(slower, expected)
    monkeypatch.setattr(_safety_faster, "repeatable", lambda *_: True)
    assert made(doubting)[0] == 9  # once is enough
    assert len(told()) == 1


@needs_it
def test_no_class_of_the_package_has_anything_of_ours():
    """Whoever uses the package beside this, in the same process, finds it as it was installed."""
    environment("SafetyAntGoal1-v0").reset(seed=0)
    ours = {safety_gymnasium.__file__, _safety_faster.__file__}
    modules = [each for name, each in sys.modules.items() if name.startswith("safety_gymnasium.")]
    classes = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    found = {(holder, name): each for holder in classes for name, each in vars(holder).items()}
    functions = {place: inspect.unwrap(each, stop=lambda f: f.__code__.co_filename in ours)
                 for place, each in found.items() if inspect.isfunction(each)}  # fmt: skip
    assert len(functions) > 200
    assert [place for place, each in functions.items() if each.__code__.co_filename in ours] == []


@needs_it
@pytest.mark.parametrize(("alias", "reach"), [(False, 3), (True, None), (True, 0.5)])
def test_lidars_of_other_settings_are_the_same_too(alias, reach):
    ours, theirs = environment("SafetyPointGoal1-v0"), original("SafetyPointGoal1-v0")
    for env in (ours, theirs):
        env.task.lidar_conf.alias, env.task.lidar_conf.max_dist = alias, reach
    np.testing.assert_array_equal(trajectory(ours, steps=50), trajectory(theirs, steps=50))


@needs_it
@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyAntButton1-v0"])
def test_what_is_asked_for_by_hand_is_of_the_state_as_it_is(name):
    """Nothing may rely on a forward pass of a state that somebody has changed since, here a hazard's place."""

    def asked(env, first):
        env.reset(seed=1)
        env.step(np.zeros(env.action_space.shape))
        env.task.model.body("hazard0").pos[:2] = env.task.agent.pos[:2]
        found = [getattr(env.task, each)() for each in (first, "obs", "calculate_cost")]
        env.task.data.qpos[:2] += 0.01
        found.append(env.task.calculate_cost())
        env.task.simulation_forward(np.zeros(env.action_space.shape))
        env.task.data.qpos[:2] += 0.01
        return [*found, env.task.calculate_cost()]

    ours, theirs = environment(name), with_its_own_steps(name)
    for first in ("obs", "calculate_cost"):
        answers = asked(ours, first)
        for answer, expected in zip(answers, asked(theirs, first), strict=True):
            np.testing.assert_equal(answer, expected)
        assert answers[2]["cost_hazards"] > 0.1


@needs_it
def test_a_second_reset_takes_its_costs_where_the_first_does():
    """`Ant.reset` turns joints and makes no forward pass: what a reset finds must not depend on what came before."""

    def places_of_costs(env):
        """Where things are when a reset, a step and another reset ask what they cost."""
        found, count = [], env.task.hazards.cal_cost
        env.task.hazards.cal_cost = lambda: found.append(env.task.data.geom_xpos.copy()) or count()
        env.reset(seed=5)
        env.step(np.zeros(8))
        env.reset(seed=5)
        return found

    ours, theirs = (places_of_costs(make("SafetyAntButton1-v0")) for make in (environment, with_its_own_steps))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ours[2], ours[0])


@needs_it
def test_a_robot_with_joints_runs_too_and_does_not_see_what_is_drawn():
    """The original no longer makes this one: its joints are asked for in a way that MuJoCo 4 refuses."""
    drawn = environment("SafetyAntGoal1-v0", render_mode="rgb_array")
    np.testing.assert_array_equal(trajectory(environment("SafetyAntGoal1-v0"), steps=30), trajectory(drawn, steps=30))


@needs_it
@pytest.mark.parametrize("name", ["SafetyPointGoal2-v0", "SafetyCarButton1-v0", "SafetyPointPush1-v0",
                                  "SafetyAntVelocity-v1"])  # fmt: skip
def test_an_episode_is_decided_by_its_seed_whatever_came_before(name):
    """Also in a process in which other environments have used up random numbers."""
    used = environment(name)
    trajectory(used, seeds=(7, 8), steps=40)
    again = trajectory(used, seeds=(5,), steps=40, actions=1)
    np.testing.assert_array_equal(again, trajectory(environment(name), seeds=(5,), steps=40, actions=1))


@needs_it
def test_observations_keep_the_order_of_the_original():
    """Sensors first, then what the lidar sees: 60 numbers, the goal's 16 sectors after 12 numbers of sensors."""
    env = environment("SafetyPointGoal1-v0")
    assert list(env.task.obs_info.obs_space_dict.spaces)[:5] == [
        "accelerometer", "velocimeter", "gyro", "magnetometer", "goal_lidar"]  # fmt: skip
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)


@needs_it
def test_a_reset_without_a_sky_is_many_times_faster():
    """8 ms in place of 90 to 300, by how much of the pictures is in the machine's caches."""
    ours, theirs = environment("SafetyPointCircle1-v0"), original("SafetyPointCircle1-v0")

    def seconds(env):
        env.reset(seed=0)
        start = time.process_time()
        env.reset(seed=1)
        return time.process_time() - start

    assert seconds(ours) < seconds(theirs) / 3
    assert ours.task.world.model.ntex == 0
    assert theirs.task.world.model.ntex > 0


@needs_it
def test_every_task_is_made_and_stepped_as_long_as_it_says(tmp_path, monkeypatch):
    """One of each kind and one of each robot; a full list takes a quarter of a minute."""
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log there: Gymnasium's half cheetah has an old attribute
    kinds = [f"SafetyPoint{kind}-v0" for kind in safety_gymnasium.HORIZONS]
    robots = [f"Safety{robot}Goal1-v0" for robot in safety_gymnasium.ROBOTS]
    for name in {*kinds, *robots}:
        env = environment(name)
        env.reset(seed=0)
        assert len(env.step(np.zeros(env.action_space.shape))) == 6
        assert env.task.num_steps == horizon(name)
    for name in names():
        if "Velocity" in name:
            env = environment(name)
            env.reset(seed=0)
            assert len(env.step(np.zeros(env.action_space.shape))) == 6


def test_names():
    assert len(names()) == len(set(names())) == 5 * 22 + 12
    assert horizon("SafetyPointCircle1-v0") == 500
    assert horizon("SafetyHumanoidVelocity-v1") == 1000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SafetyPointGoal3-v0", "has no task 'SafetyPointGoal3-v0'; there are Safety<robot><task>-v0 with the robots"),
        ("PointGoal1", "has no task"),
        ("SafetyPointGoal1Vision-v0", "shows pictures"),
        ("SafetyCarGoal1Debug-v0", "waits for a keyboard"),
    ],
)
def test_a_wrong_name_is_answered_in_one_line(name, message):
    with pytest.raises(ValueError, match=r".") as caught:
        environment(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["safety_gymnasium", "xmltodict"])
def test_what_is_not_installed_is_named_with_how_to_install_it(missing):
    """In a process of its own, in which it cannot be found."""
    code = f"""
import sys
sys.modules[{missing!r}] = None
from pcpo.tasks.adapters.safety_gymnasium import environment
try:
    environment("SafetyPointGoal1-v0")
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "install it with: pip install 'pcpo[safety]' && pip install --no-deps safety-gymnasium" in done.stdout
    assert done.stdout.count("\n") == 1


@needs_it
def test_nothing_of_jax_and_nothing_of_ours_is_needed_to_simulate():
    """The processes that step it start quickly, and leave no trace in what others import."""
    code = """
import dataclasses, sys
plain = dataclasses.dataclass
from pcpo.tasks.adapters.safety_gymnasium import environment
environment("SafetyPointGoal1-v0").reset(seed=0)
assert "jax" not in sys.modules
assert dataclasses.dataclass is plain
"""
    subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], check=True)


def test_materials_go_and_everything_else_stays():
    xml = (
        '<mujoco><asset><texture name="a" file="sky.png"/><mesh name="m"/><material name="b" texture="a"/></asset>'
        '<default><geom material="b" rgba="1 0 0 1"/></default><worldbody><geom name="g" material="b" mass="2"/>'
        "</worldbody></mujoco>"
    )
    assert without_pictures(xml) == (
        '<mujoco><asset><mesh name="m" /></asset><default><geom rgba="1 0 0 1" /></default>'
        '<worldbody><geom name="g" mass="2" /></worldbody></mujoco>'
    )


@needs_it
def test_it_is_an_environment_of_gymnasium():
    env = environment("SafetyPointGoal1-v0")
    assert isinstance(env, gymnasium.Env)
    assert isinstance(env.action_space, gymnasium.spaces.Box)
