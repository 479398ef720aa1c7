"""Names, options and the paper's table; wrong ones are answered with what would be right."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.rollout import World
from pcpo.tasks import registry
from pcpo.tasks.api import DeviceTask, HostTask
from pcpo.tasks.point import UNBOUNDED
from pcpo.tasks.registry import describe, make, names, options_of, preset

ON_DEVICE = [name for name in names() if isinstance(make(name), DeviceTask)]
ON_HOST = [name for name in names() if name not in ON_DEVICE]


@pytest.mark.parametrize("name", ON_DEVICE)
def test_a_task_is_what_it_says(name):
    task = make(name)
    assert isinstance(task, DeviceTask)
    assert task.name == name
    assert isinstance(task, World)
    state = task.reset(jax.random.key(0))
    assert task.observe(state).shape == (task.observation_size,)
    after, outcome = task.step(state, jnp.zeros(task.action_space.size))
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert [(x.shape, x.dtype) for x in jax.tree.leaves(after)] == [(x.shape, x.dtype) for x in jax.tree.leaves(state)]
    assert outcome.reward.shape == outcome.terminated.shape == ()
    assert outcome.costs.shape == (len(task.cost_names),)
    assert tuple(preset(name).limits) == task.cost_names


@pytest.mark.parametrize("name", ON_HOST)
def test_a_task_on_the_host_is_what_it_says(name):
    task = make(name)
    assert isinstance(task, HostTask)
    assert task.name == name
    assert tuple(preset(name).limits) == task.cost_names
    worlds, which = task.worlds(1), np.zeros(1, np.int64)
    try:
        assert worlds.reset(which, which).shape == (1, task.observation_size)
        observations, rewards, costs, terminated, truncated = worlds.step(which, np.zeros((1, task.action_space.size)))
    finally:
        worlds.close()
    assert observations.shape == (1, task.observation_size)
    assert rewards.shape == terminated.shape == truncated.shape == (1,)
    assert costs.shape == (1, len(task.cost_names))
    assert terminated.dtype == truncated.dtype == bool


SIZES = {
    "point-circle": (9, 2, 50),
    "point-gather": (29, 2, 15),
    "point-square": (9, 2, 50),
    "ant-circle": (32, 8, 500),
    "ant-gather": (52, 8, 500),
    "grid": (156, 4, 400),
    "bottleneck": (141, 20, 500),
}


def test_those_who_check_types_are_told_the_truth():
    assert list(get_args(registry.OnDevice)) == ON_DEVICE
    assert list(get_args(registry.OnHost)) == ON_HOST


@pytest.mark.parametrize("name", SIZES)
def test_the_papers_sizes(name):
    task = make(name)
    assert (task.observation_size, task.action_space.size, task.horizon) == SIZES[name]


@pytest.mark.parametrize(
    ("name", "limit", "cost_gae_lambda", "batch_size"),
    [
        ("point-circle", 5.0, 1.0, 50_000),
        ("point-gather", 0.1, 1.0, 50_000),
        ("ant-circle", 10.0, 0.5, 100_000),
        ("ant-gather", 0.2, 0.5, 100_000),
    ],
)
def test_the_papers_table(name, limit, cost_gae_lambda, batch_size):
    table = preset(name)
    assert dict(table.limits) == {"cost": limit}
    assert (table.gamma, table.gae_lambda, table.cost_discount) == (0.995, 0.95, 1.0)
    assert (table.cost_gae_lambda, table.batch_size) == (cost_gae_lambda, batch_size)
    assert (table.hidden, table.delta) == ((64, 32), 1e-4)


@pytest.mark.parametrize(
    ("name", "cost_gae_lambda", "batch_size", "hidden"),
    [("grid", 0.5, 10_000, (16, 16)), ("bottleneck", 1.0, 25_000, (50, 25))],
)
def test_the_papers_table_for_traffic(name, cost_gae_lambda, batch_size, hidden):
    table = preset(name)
    assert dict(table.limits) == {"cost": 0.0}
    assert (table.gamma, table.gae_lambda, table.cost_discount) == (0.999, 0.97, 1.0)
    assert (table.cost_gae_lambda, table.batch_size) == (cost_gae_lambda, batch_size)
    assert (table.hidden, table.delta, table.critic) == (hidden, 1e-4, "linear")


def test_a_preset_cannot_be_changed():
    with pytest.raises(TypeError):
        preset("point-circle").limits["cost"] = 1.0  # pyright: ignore[reportIndexIssue]


def test_options_reach_the_task():
    assert make("point-circle", horizon=65).horizon == 65
    narrow = make("point-circle", x_limit=3)
    assert isinstance(narrow, DeviceTask)
    assert narrow.scene is not None
    assert narrow.scene(narrow.reset(jax.random.key(0))).safe_x == 3.0
    assert make("point-gather", action_mode="raw").action_space == UNBOUNDED
    assert make("ant-gather", true_yaw="yes") == make("ant-gather", true_yaw=True) != make("ant-gather")
    assert options_of("point-circle") == {"action_mode": "clip", "x_limit": 2.5, "radius": 15.0, "horizon": 50}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("point-circel", {}, "there is no task 'point-circel'; did you mean 'point-circle'?.*point-gather"),
        ("pendulum", {}, "there is no task 'pendulum'. There are: point-circle, "),
        ("point-circle", {"x_limt": 2.0}, "no option 'x_limt'; did you mean 'x_limit'?"),
        ("point-circle", {"y_limit": 2.0}, "point-circle has no option 'y_limit'"),
        ("point-circle", {"x_limit": -1.0}, "x_limit of point-circle is -1.0; give a finite number above zero"),
        ("point-circle", {"x_limit": float("nan")}, "is nan; give a finite number"),
        ("point-circle", {"x_limit": "wide"}, "is 'wide'; give a finite number"),
        ("point-circle", {"horizon": 50.5}, "horizon of point-circle is 50.5; give a whole number"),
        ("point-circle", {"horizon": True}, "horizon of point-circle is True"),
        ("point-circle", {"horizon": 0}, "horizon of point-circle is 0"),
        ("point-gather", {"action_mode": "clamp"}, "action_mode is 'clamp'; choose one of clip, raw"),
        ("ant-gather", {"true_yaw": 2}, "true_yaw of ant-gather is 2; give yes or no"),
        ("ant-gather", {"true_yaw": "perhaps"}, "true_yaw of ant-gather is 'perhaps'; give yes or no"),
        ("ant-gather", {"apples": 9, "bombs": 27}, "9 apples and 27 bombs do not fit into the 35 cells"),
        ("point-gather", {"action_mode": 1}, "action_mode of point-gather is 1; give a word"),
    ],
)
def test_wrong_names_and_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


@pytest.mark.parametrize("ask", [registry.preset, registry.describe, registry.options_of])
def test_wrong_names_everywhere(ask):
    with pytest.raises(ValueError, match="did you mean 'point-gather'"):
        ask("point_gather")


def test_a_description_says_what_one_needs_to_know():
    text = describe("point-square")
    assert "9 observations, 2 real actions, 50 steps" in text
    assert "cost_x <= 5, cost_y <= 5" in text
    assert "y_limit=5.0" in text
    assert "batch-size 50000, delta 0.0001, gamma 0.995, gae-lambda 0.95 (costs: 1), hidden 64 32" in text
    assert "\n" not in text
