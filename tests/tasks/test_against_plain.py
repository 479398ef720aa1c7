"""Every task step by step against a second implementation of its specification, on random actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.tasks.registry import make
from tests.tasks import plain


def as_robot(state, size, mode):
    return plain.Robot(
        float(state.x), float(state.y), float(state.heading), state.velocity.tolist(), size, mode == "clip"
    )


def circle(state, mode):
    return plain.Circle(as_robot(state, 40, mode))


def square(state, mode):
    return plain.Circle(as_robot(state, 40, mode), y_limit=5.0)


def gather(state, mode):
    x, y, _ = (part.tolist() for part in state.objects)
    kinds = ["apple"] * 2 + ["bomb"] * 8
    return plain.Gather(as_robot(state.robot, 6, mode), zip(x, y, kinds, strict=True))


@pytest.mark.parametrize("mode", ["clip", "raw"])
@pytest.mark.parametrize(
    ("name", "twin"), [("point-circle", circle), ("point-square", square), ("point-gather", gather)]
)
def test_a_task_equals_its_twin(name, twin, mode):
    task = make(name, action_mode=mode)
    step, observe = jax.jit(task.step), jax.jit(task.observe)
    for seed in range(12):
        # Drawn apart from the task's own key. A turn to the left on average, so that more of the plane is seen.
        actions = np.random.default_rng(seed).normal([0.5, 0.1], [1.5, 0.8], size=(3 * task.horizon, 2))
        state = task.reset(jax.random.key(seed))
        world = twin(state, mode)
        np.testing.assert_allclose(observe(state), world.observe(), atol=1e-12)
        for action in actions:
            state, outcome = step(state, jnp.asarray(action))
            reward, costs, done = world.step(action)
            np.testing.assert_allclose(outcome.reward, reward, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(outcome.costs, costs)
            assert bool(outcome.terminated) == done
            np.testing.assert_allclose(observe(state), world.observe(), rtol=1e-9, atol=1e-12)
            if done:
                break


def test_the_twin_would_notice_a_move_before_the_turn():
    """A planted mistake: the old heading."""
    state = make("point-circle").reset(jax.random.key(0))
    world = circle(state, "clip")
    world.step((1.0, 0.25))
    wrong = float(state.x) + np.cos(float(state.heading))
    assert abs(world.robot.x - wrong) > 1e-3


@pytest.mark.parametrize("name", ["point-circle", "point-square", "point-gather"])
def test_float32_is_near_float64(name):
    """What a run computes in. Sensors may jump where an object lies on the edge of a sector; here none does."""
    task = make(name)
    double = task.reset(jax.random.key(5))
    single = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, double)
    for action in np.random.default_rng(5).normal(size=(task.horizon, 2)):
        double, a = task.step(double, jnp.asarray(action))
        single, b = task.step(single, jnp.asarray(action, jnp.float32))
        assert {x.dtype for x in (task.observe(single), b.reward, b.costs)} == {jnp.dtype(jnp.float32)}
        np.testing.assert_allclose(a.reward, b.reward, atol=1e-4)
        np.testing.assert_allclose(task.observe(double), task.observe(single), atol=1e-4)
