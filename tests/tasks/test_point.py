"""The point robot, by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.rl.spaces import Box
from pcpo.tasks import point

START = point.PointState(*(jnp.asarray(v, float) for v in (0.0, 0.0, 0.0, [0.1, 0.2, 0.3], 0.04258, 0.0)))


def action(forward, turn):
    return jnp.asarray([forward, turn], float)


def test_it_turns_before_it_moves():
    """After a turn of 0.25 a stride of 1 leads to (cos 0.25, sin 0.25), not to (1, 0)."""
    after, stride = point.move(START, action(1.0, 0.25), point.CLIPPED, 40.0)
    assert after.heading == 0.25
    assert (after.x, after.y) == pytest.approx((math.cos(0.25), math.sin(0.25)))
    assert tuple(stride) == pytest.approx((math.cos(0.25), math.sin(0.25)))


@pytest.mark.parametrize(
    ("given", "done"), [((3.0, 0.0), (1.0, 0.0)), ((-3.0, 9.0), (-1.0, 0.25)), ((0.4, -7.0), (0.4, -0.25))]
)
def test_clip_mode_clips_to_the_robots_ranges(given, done):
    clipped, _ = point.move(START, action(*given), point.action_space("clip"), 40.0)
    same, _ = point.move(START, action(*done), point.action_space("raw"), 40.0)
    np.testing.assert_array_equal(point.observe(clipped), point.observe(same))


def test_raw_mode_takes_anything():
    after, _ = point.move(START, action(3.0, math.pi), point.action_space("raw"), 40.0)
    assert (after.x, after.heading) == pytest.approx((-3.0, math.pi))


@pytest.mark.parametrize("size", [6.0, 40.0])
def test_the_arena_stops_it_but_not_the_commanded_step(size):
    after, stride = point.move(START, action(100.0, -math.pi / 4), point.action_space("raw"), size)
    assert (after.x, after.y) == (size, -size)
    assert tuple(stride) == pytest.approx((100 / math.sqrt(2), -100 / math.sqrt(2)))


def test_the_heading_is_never_wrapped():
    state = START
    for _ in range(40):
        state, _ = point.move(state, action(0.0, 0.25), point.CLIPPED, 40.0)
    assert state.heading == pytest.approx(10.0)


def test_the_centre_of_mass_lies_ahead():
    state, _ = point.move(START, action(0.0, math.pi / 2), point.action_space("raw"), 40.0)
    assert (state.centre_x, state.centre_y) == pytest.approx((0.0, 0.04258))


def test_the_observation_is_place_velocity_centre():
    """From (0, 0) half a step ahead, no turn: x = 0.5, the velocities as drawn, the centre 0.04258 ahead at 0.5."""
    state, _ = point.move(START, action(0.5, 0.0), point.CLIPPED, 40.0)
    assert point.observe(state) == pytest.approx([0.5, 0.0, 0.0, 0.1, 0.2, 0.3, 0.54258, 0.0, 0.5])


def test_resets_have_the_noise_of_the_original():
    states = jax.vmap(point.reset)(jax.random.split(jax.random.key(0), 20_000))
    for place in states[:3]:
        assert place.mean() == pytest.approx(0.0, abs=3e-4)
        assert place.std() == pytest.approx(0.01, rel=0.03)
    assert states.velocity.std(axis=0) == pytest.approx([0.1] * 3, rel=0.03)
    independent = np.corrcoef(np.vstack([*states[:3], states.velocity.T]))
    assert np.abs(independent - np.eye(6)).max() < 0.04


def test_the_velocity_never_changes():
    state = point.reset(jax.random.key(1))
    after, _ = point.move(state, action(1.0, 0.2), point.CLIPPED, 40.0)
    np.testing.assert_array_equal(after.velocity, state.velocity)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("mode", point.ACTION_MODES)
def test_not_a_number_is_not_clipped_away(mode, index):
    after, _ = point.move(START, action(0.1, 0.1).at[index].set(jnp.nan), point.action_space(mode), 40.0)
    assert np.isnan(point.observe(after)).any()


def test_action_spaces():
    assert point.action_space("clip") == Box((-1.0, -0.25), (1.0, 0.25))
    assert point.action_space("raw") == Box((-math.inf, -math.inf), (math.inf, math.inf))
    with pytest.raises(ValueError, match="'clop'; choose one of clip, raw"):
        point.action_space("clop")


def test_float32_actions_leave_the_state_as_it_is():
    after, _ = point.move(START, jnp.asarray([1.0, 0.1], jnp.float32), point.CLIPPED, 40.0)
    assert after.x.dtype == jnp.float64
