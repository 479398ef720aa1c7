"""Any Gymnasium environment as a task: spaces, bounds, costs, and what environments do that none should."""

import copy
import warnings
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.adapters.gymnasium import from_gymnasium, is_environment, named_environment
from pcpo.tasks.adapters.gymnasium_costs import costs_of, is_code
from pcpo.tasks.adapters.gymnasium_spaces import BoxActions, actions_of, observations_of
from pcpo.tasks.host import HostTask, Outcomes, WorldError

OBSERVATIONS = spaces.Box(-1.0, 1.0, (3,), np.float32)
ACTIONS = spaces.Box(-2.0, 2.0, (2,), np.float32)


class Plain(gymnasium.Env):
    """Does what it is told: its parts can be replaced one by one."""

    observation_space: spaces.Space = OBSERVATIONS
    action_space: spaces.Space = ACTIONS

    def __init__(self, **parts: Any) -> None:
        for name, value in parts.items():
            setattr(self, name, value)
        self.t = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action) -> Any:
        self.t += 1
        self.sent = action
        return self.observe(), self.reward(), False, self.t == 4, self.info()

    def observe(self) -> Any:
        return np.array([self.t, 0.5, self.np_random.normal()], np.float32)

    def reward(self) -> Any:
        return 1.0 + self.t

    def info(self) -> Any:
        return {"cost": 0.25 * self.t, "heat": 2, "noise": np.float32(3.0)}


def a_task(cost=None, steps: int | None = 5, **parts: Any) -> HostTask:
    return from_gymnasium(lambda: Plain(**parts), cost, steps, "plain")


def steps_of(task: HostTask, count=1, action=None) -> tuple[list[Outcomes], Any]:
    """The outcomes of some steps of one environment."""
    worlds: Any = task.worlds(1)
    which = np.zeros(1, np.int64)
    worlds.reset(which, np.array([3]))
    size = getattr(task.action_space, "low", None)
    action = action if action is not None else np.zeros((1, len(size)) if size else 1, float if size else int)
    return [worlds.step(which, action) for _ in range(count)], worlds


# Costs.


def test_costs_come_from_where_they_are_asked_for():
    def speed(before, action, after, info):
        return after[0] - before[0] + action[0]

    for cost, names, values in [
        (None, ("cost",), [0.25]),
        ("heat", ("heat",), [2.0]),
        (["noise", "heat"], ("noise", "heat"), [3.0, 2.0]),
        (speed, ("cost",), [1.0]),
        ({"fast": speed, "hot": "heat"}, ("fast", "hot"), [1.0, 2.0]),
        ((), (), []),
    ]:
        task = a_task(cost)
        assert task.cost_names == names
        assert steps_of(task)[0][0].costs.tolist() == [values]


def test_the_third_of_six_values_is_the_cost():
    class Six(Plain):
        def step(self, action) -> Any:
            observation, reward, ended, cut, info = super().step(action)
            del info["cost"]
            return observation, reward, 7.0, ended, cut, info

    assert steps_of(from_gymnasium(Six, max_episode_steps=5))[0][0].costs.tolist() == [[7.0]]
    both = from_gymnasium(Six, ["heat", "cost"], max_episode_steps=5)
    assert steps_of(both)[0][0].costs.tolist() == [[2.0, 7.0]]


def test_a_missing_cost_is_an_error_that_says_how_to_supply_it():
    with pytest.raises(WorldError, match=r"plain, in step 1 of an episode: its info has no 'hazard' \(it has 'cost'"):
        steps_of(a_task("hazard"))
    message = r"never taken for zero.*--cost NAME.*cost=lambda observation, action, next_observation, info.*cost=\(\)"
    with pytest.raises(WorldError, match=message):
        steps_of(a_task(info=dict))


def test_a_cost_that_is_missing_in_some_steps_is_an_error_too():
    class Sometimes(Plain):
        def info(self):
            return {"cost": 1.0} if self.t < 3 else {}

    with pytest.raises(WorldError, match="in step 3 of an episode: its info has no 'cost'"):
        steps_of(from_gymnasium(Sometimes, max_episode_steps=5), 4)


@pytest.mark.parametrize("value", [None, "1", [1.0, 2.0], 1j, {"a": 1.0}])
def test_a_cost_is_one_number(value):
    with pytest.raises(WorldError, match=r"its info gave .* as 'cost', which must be one number for each step"):
        steps_of(a_task(info=lambda: {"cost": value}))


@pytest.mark.parametrize("value", [1, True, np.bool_(1), np.float32(1), np.array([1.0]), np.array(1)])
def test_what_is_one_number(value):
    assert steps_of(a_task(info=lambda: {"cost": value}, reward=lambda: value))[0][0].costs.tolist() == [[1.0]]


def test_a_cost_function_sees_the_observation_before_even_where_it_is_overwritten():
    class InPlace(Plain):
        memory = np.zeros(3, np.float32)

        def observe(self):
            self.memory[:] = self.t
            return self.memory

    task = from_gymnasium(InPlace, lambda before, action, after, info: after[0] - before[0], 5)
    assert [outcome.costs.item() for outcome in steps_of(task, 3)[0]] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (["heat", "heat"], "cost names 'heat' twice"),
        (["heat", ""], "a cost is ''"),
        (lambda before, after: 0.0, r"cannot be called \(too many positional.*it gets four arguments"),
        ("no.such:cost", "cost is 'no.such:cost', but there is no such function"),
        ("math:pi", "cost is 'math:pi', which is 3.14.* and no function"),
    ],
)
def test_wrong_costs(cost, message):
    with pytest.raises(ValueError, match=message):
        costs_of(cost)


def a_cost(before, action, after, info):
    return 1.0


def test_functions_by_name():
    assert costs_of("tests.tasks.test_gymnasium_adapter:a_cost").names == ("cost",)
    assert costs_of(["heat", "tests.tasks.test_gymnasium_adapter:a_cost"]).names == ("heat", "a_cost")
    assert [is_code(cost) for cost in (None, "heat", ["a", "m:f"], {"a": "m:f"}, a_cost, ())] == [
        False, False, True, True, True, False,
    ]  # fmt: skip


# Actions.


def test_bounded_actions_are_stretched_and_others_clipped():
    low, high = np.array([0.0, -np.inf, -np.inf, 5.0]), np.array([1000.0, np.inf, 1.0, np.inf])
    actions = actions_of(spaces.Box(low, high, dtype=np.float64))
    assert actions.ours == Box((-1.0, -np.inf, -np.inf, 5.0), (1.0, np.inf, 1.0, np.inf))
    sent = actions.decode(np.array([[0.0, 0.0, 0.0, 0.0], [-1.0, -9.0, 9.0, 9.0], [3.0, 9.0, -9.0, 5.0]]))
    np.testing.assert_array_equal(sent, [[500.0, 0, 0, 5], [0, -9, 1, 9], [1000, 9, -9, 5]])


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (-0.3, 1e6), (-1e-3, 1e-3)])
def test_no_rounding_leads_out_of_the_bounds(low, high):
    space = spaces.Box(np.float32(low), np.float32(high), (1,), np.float32)
    sent = BoxActions(space).decode(np.array([[1.0], [-1.0], [1e9], [-1e9], [0.1]]))
    assert sent.dtype == np.float32
    assert all(action in space for action in sent)


def test_actions_have_the_shape_and_dtype_of_their_space():
    space = spaces.Box(-3, 3, (2, 2), np.int32)
    actions = actions_of(space)
    assert actions.ours == Box((-1.0,) * 4, (1.0,) * 4)
    sent = actions.decode(np.array([[0.2, 0.5, -1.0, 0.0]]))
    assert sent.tolist() == [[[1, 2], [-3, 0]]]
    assert sent[0] in space
    (_,), worlds = steps_of(a_task(action_space=space))
    assert worlds.envs[0].sent in space


def test_choices_may_begin_anywhere():
    space = spaces.Discrete(3, start=-1)
    task = a_task(action_space=space)
    assert task.action_space == Discrete(3)
    (_,), worlds = steps_of(task, action=np.array([2]))
    assert worlds.envs[0].sent == 1
    assert worlds.envs[0].sent in space


@pytest.mark.parametrize(
    "space",
    [spaces.MultiDiscrete([2, 2]), spaces.Discrete(1), spaces.Dict({"a": ACTIONS}), None, spaces.MultiBinary(2)],
)
def test_other_actions_cannot_be_learnt(space):
    with pytest.raises(ValueError, match=r"plain has the action_space .*only Box and Discrete .*ActionWrapper"):
        a_task(action_space=space)


# Observations.

NESTED = spaces.Dict(
    {"b": spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(2)]), "a": spaces.Box(-1.0, 1.0, (2, 2))}
)


@pytest.mark.parametrize(
    "space",
    [OBSERVATIONS, spaces.Box(0, 255, (2, 3, 3), np.uint8), spaces.Discrete(5), spaces.MultiDiscrete([2, 3]), NESTED],
)
def test_observations_are_flattened_as_gymnasium_does(space):
    space.seed(0)
    seen = space.sample()
    task = a_task(observation_space=space, observe=lambda: seen)
    assert task.observation_size == spaces.flatdim(space)
    (outcome,), worlds = steps_of(task)
    np.testing.assert_array_equal(outcome.observations[0], spaces.flatten(space, seen))
    np.testing.assert_array_equal(worlds.reset(np.zeros(1, int), np.zeros(1, int))[0], spaces.flatten(space, seen))
    encoded = seen if task.encode is None else task.encode(seen)
    np.testing.assert_array_equal(encoded, spaces.flatten(space, seen))


@pytest.mark.parametrize("space", [spaces.Sequence(OBSERVATIONS), spaces.Graph(OBSERVATIONS, None), None, "Box"])
def test_observations_of_no_fixed_size_cannot_be_learnt(space):
    with pytest.raises(ValueError, match="has no fixed number of numbers; wrap it in a gymnasium ObservationWrapper"):
        observations_of(space)


@pytest.mark.parametrize(
    ("space", "given", "message"),
    [
        (OBSERVATIONS, np.zeros(4), r"shape \(4,\), where its observation_space says \(3,\)"),
        (OBSERVATIONS, np.zeros((3, 1)), r"shape \(3, 1\)"),
        (OBSERVATIONS, 0.0, r"shape \(\)"),
        (OBSERVATIONS, None, "dtype object"),
        (OBSERVATIONS, np.array(["a", "b", "c"]), "dtype <U1, which holds no real numbers"),
        (OBSERVATIONS, np.zeros(3, complex), "dtype complex128"),
        (NESTED, {"a": np.zeros((2, 2))}, "does not fit its observation_space"),
        (NESTED, np.zeros(9), "does not fit its observation_space"),
        (spaces.Discrete(3), 7, "does not fit its observation_space"),
        (spaces.Dict({"a": OBSERVATIONS}), {"a": np.zeros(5)}, r"flattens to the shape \(5,\)"),
    ],
)
def test_wrong_observations(space, given, message):
    with pytest.raises(WorldError, match=f"plain, at the start of an episode: gave an observation.*{message}"):
        steps_of(a_task(observation_space=space, observe=lambda: given))


def test_other_floats_than_the_space_says_do_no_harm():
    (outcome,), _ = steps_of(a_task(observe=lambda: [0.1, 2, True]))
    assert outcome.observations.tolist() == [[0.1, 2.0, 1.0]]


# Steps, ends, resets.


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("step", (np.zeros(3), 1.0, False, {}), "step gave a tuple of 4; .*old gym needs a wrapper"),
        ("step", None, "step gave nothing"),
        ("step", (np.zeros(3), "1", False, False, {}), "step gave '1' as the reward"),
        ("step", (np.zeros(3), None, False, False, {}), "step gave None as the reward"),
        ("step", (np.zeros(3), [1.0, 2.0], False, False, {}), r"something of the shape \(2,\) as the reward"),
        ("step", (np.zeros(3), 1.0, "no", False, {}), "step gave 'no' as terminated"),
        ("step", (np.zeros(3), 1.0, False, None, {}), "step gave None as truncated"),
        ("step", (np.zeros(3), 1.0, False, False, None), "step gave a tuple of 5, and nothing for info"),
        ("reset", np.zeros(3), "reset gave an array of the shape"),
        ("reset", (np.zeros(3), 1.0), "reset gave a tuple of 2"),
    ],
)
def test_wrong_steps_and_resets(method, given, message):
    parts: dict[str, Any] = {method: lambda *_, **__: given}
    with pytest.raises(WorldError, match=f"plain, .* of an episode: .*{message}"):
        steps_of(a_task(None, 5, **parts))


def test_numbers_that_are_none_are_passed_on():
    """The collector tells of them; see tests/training/test_host_episodes.py."""
    (outcome,), _ = steps_of(a_task(reward=lambda: np.nan, info=lambda: {"cost": np.inf}))
    assert np.isnan(outcome.rewards[0])
    assert np.isinf(outcome.costs[0, 0])


def test_nothing_is_reset_by_itself_and_both_ends_are_told_apart():
    outcomes, worlds = steps_of(a_task(), 6)
    assert [outcome.truncated.item() for outcome in outcomes] == [False, False, False, True, False, False]
    assert not any(outcome.terminated.item() for outcome in outcomes)
    assert worlds.envs[0].t == 6
    ending = a_task(step=lambda _: (np.zeros(3), 1.0, 1, np.bool_(0), {"cost": 0}))
    assert steps_of(ending)[0][0].terminated.tolist() == [True]


def test_a_step_of_some_environments_leaves_the_others():
    worlds: Any = a_task().worlds(3)
    worlds.reset(np.arange(3), np.array([5, 6, 5]))
    outcome = worlds.step(np.array([2, 0]), np.zeros((2, 2)))
    assert [env.t for env in worlds.envs] == [1, 0, 1]
    np.testing.assert_array_equal(*outcome.observations)  # the same seed
    worlds.close()


def test_time_limits():
    assert a_task(steps=7).horizon == 7
    assert named_environment("CartPole-v1", {}, ()).horizon == 500
    assert named_environment("CartPole-v1", {}, (), 80).horizon == 80
    assert named_environment("CartPole-v1", {}, (), 800).horizon == 800
    limited = gymnasium.wrappers.TimeLimit
    assert from_gymnasium(lambda: limited(Plain(), 9), max_episode_steps=None).horizon == 9
    assert from_gymnasium(lambda: limited(Plain(), 9), max_episode_steps=20).horizon == 9
    with pytest.raises(ValueError, match=r"plain has no time limit.*max_episode_steps=500.*--max-episode-steps 500"):
        a_task(steps=None)
    for wrong in (0, -3):
        with pytest.raises(ValueError, match=r"max_episode_steps is .*; give a whole number of steps"):
            a_task(steps=wrong)


def test_environments_that_cannot_be_made():
    def broken():
        raise FileNotFoundError("no robot.xml")

    with pytest.raises(ValueError, match=r"broken: no environment could be made \(FileNotFoundError: no robot.xml\)"):
        from_gymnasium(broken)
    with pytest.raises(ValueError, match=r"gave an array.*returns a new gymnasium.Env each time"):
        from_gymnasium(lambda: np.zeros(3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"NoSuch.*no environment could be made|no environment could be made.*NoSuch"):
        named_environment("NoSuchEnvironment-v0", {})
    bare = SimpleNamespace(reset=abs, step=abs, close=int, spec=None, unwrapped=None)
    with pytest.raises(ValueError, match="has no observation_space"):
        from_gymnasium(lambda: bare, name="bare")  # pyright: ignore[reportArgumentType]
    assert not is_environment(bare)


def test_names():
    assert from_gymnasium(Plain, max_episode_steps=5).name == "Plain"
    assert from_gymnasium(lambda: Plain(t=0), max_episode_steps=5).name == "Plain"
    assert from_gymnasium(lambda: gymnasium.make("CartPole-v1"), ()).name == "CartPole-v1"
    assert named_environment("CartPole-v1", {}, ()).name == "gym:CartPole-v1"


def test_options_reach_the_environment():
    task = named_environment("Pendulum-v1", {"g": 1.5}, ())
    worlds: Any = task.worlds(1)
    assert worlds.envs[0].unwrapped.g == 1.5
    with pytest.raises(ValueError, match="unexpected keyword argument 'h'"):
        named_environment("Pendulum-v1", {"h": 1.5}, ())


def test_environments_draw_themselves_where_they_can():
    drawn = from_gymnasium(Plain, None, 5, draw=lambda: Plain(render=lambda: np.full((4, 6, 3), 7, np.uint8)))
    assert drawn.visible is not None
    assert drawn.paint is not None
    scene = drawn.visible(1).scene(0)  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(drawn.paint(drawn, [None, scene], [1.0], [[0.0]]), np.full((4, 6, 3), 7, np.uint8))
    with pytest.raises(WorldError, match="render failed with NotImplementedError"):
        drawn.worlds(1).scene(0)  # pyright: ignore[reportAttributeAccessIssue]
    blank = a_task(render_mode="rgb_array", render=lambda: None)
    assert blank.visible is not None
    with pytest.raises(WorldError, match="render gave nothing; a film needs render_mode 'rgb_array'"):
        blank.visible(1).scene(0)  # pyright: ignore[reportAttributeAccessIssue]
    assert named_environment("CartPole-v1", {}, ()).visible is not None
    assert a_task().paint is None


# The contract, for environments that people use.


class Nested(gymnasium.Env):
    """Observes a Dict."""

    action_space = spaces.Discrete(2)

    def __init__(self):
        self.observation_space = copy.deepcopy(NESTED)  # it draws numbers of its own

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action) -> Any:
        observation = self.observation_space.sample()
        return observation, float(action), bool(observation["b"][0] == 2), False, {"cost": 0.5}


def _six():
    class Six(Plain):
        def step(self, action) -> Any:
            *four, info = super().step(action)
            return four[0], four[1], info["cost"], four[2], four[3], {}

    return Six()


USUAL = {
    "CartPole": lambda: named_environment("CartPole-v1", {}, lambda before, action, after, info: abs(after[0]) > 0.5),
    "Pendulum": lambda: named_environment("Pendulum-v1", {}, lambda before, action, after, info: abs(after[2]) > 4),
    "Ant": lambda: named_environment("Ant-v5", {}, lambda before, action, after, info: info["x_velocity"] > 1.0, 20),
    "Dict": lambda: from_gymnasium(Nested, max_episode_steps=6),
    "six": lambda: from_gymnasium(_six, max_episode_steps=6),
    "two costs": lambda: a_task(["heat", "cost"]),
}


@pytest.mark.parametrize("kind", USUAL)
def test_the_contract(kind):
    """Sizes, numbers, seeds that decide everything, and environments that know nothing of each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = USUAL[kind]()
        check_contract(task)


def check_contract(task: HostTask, environments: int = 3) -> None:
    """What the collector relies on."""
    rng = np.random.default_rng(0)
    box = isinstance(task.action_space, Box)
    shape = (6, environments, task.action_space.size) if box else (6, environments)
    actions = 3.0 * rng.normal(size=shape) if box else rng.integers(task.action_space.size, size=shape)
    seeds = np.arange(20, 20 + environments)
    together = _numbers(task, np.arange(environments), seeds, actions)
    for i in range(environments):
        alone = _numbers(task, np.zeros(1, np.int64), seeds[i : i + 1], actions[:, i : i + 1])
        for all_of_them, one in zip(together, alone, strict=True):
            np.testing.assert_array_equal(all_of_them[i : i + 1], one)


def _numbers(task, which, seeds, actions):
    """Everything that some steps give, one row per environment."""
    worlds = task.worlds(len(which))
    n, m = len(which), len(task.cost_names)
    rows = [worlds.reset(which, seeds)]
    assert rows[0].shape == (n, task.observation_size)
    for each in actions:
        outcome = worlds.step(which, each)
        shapes = [x.shape for x in outcome]
        assert shapes == [(n, task.observation_size), (n,), (n, m), (n,), (n,)]
        assert all(np.isfinite(x).all() for x in outcome)
        assert outcome.terminated.dtype == outcome.truncated.dtype == bool
        rows += list(outcome)
    again = worlds.reset(which[:1], seeds[:1])
    np.testing.assert_array_equal(again, rows[0][:1])  # the seed alone, not what was before
    worlds.close()
    return rows
