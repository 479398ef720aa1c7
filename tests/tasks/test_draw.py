"""Pictures show what is there. Colours are looked for, not pixels compared."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.tasks import draw
from pcpo.tasks.api import DeviceTask
from pcpo.tasks.circle import point_circle, point_square
from pcpo.tasks.draw import film, frame, paint
from pcpo.tasks.episode import Episode, play_one
from pcpo.tasks.gather import GatherState, Objects, point_gather
from pcpo.tasks.registry import make, names
from pcpo.tasks.scene import Scene


def coloured(picture, colour, tolerance=12):
    """Where the picture has a colour."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return (np.abs(picture.astype(int) - rgb) <= tolerance).all(axis=-1)


def ahead(observation, t):
    return 1.0, 0.0


def world(picture):
    """The part below the captions."""
    return picture[draw.HEIGHT - draw.WIDTH :]


ON_DEVICE = [name for name in names() if isinstance(make(name), DeviceTask)]


@pytest.mark.parametrize("name", ON_DEVICE)
def test_every_task_can_be_filmed(name):
    task = make(name)
    assert isinstance(task, DeviceTask)
    episode = play_one(task, ahead, jax.random.key(0))
    pictures = list(film(task, *episode))[::10]
    for picture in pictures:
        assert picture.shape == (draw.HEIGHT, draw.WIDTH, 3)
        assert picture.dtype == np.uint8
        assert coloured(world(picture), draw.AGENT).any()
    assert not np.array_equal(pictures[0], pictures[-1])


def test_frame_is_the_last_of_the_film():
    task = make("point-gather")
    episode = play_one(task, ahead, jax.random.key(1))
    np.testing.assert_array_equal(frame(task, *episode), list(film(task, *episode))[-1])


def test_the_circle_has_a_safe_band_and_the_square_a_safe_rectangle():
    pictures = []
    for task in (point_circle(), point_square()):
        start = [task.reset(jax.random.key(0))]
        pictures.append(world(frame(task, start, [], [])))
    forbidden = [coloured(picture, draw.FORBIDDEN, 2).mean() for picture in pictures]
    safe = [coloured(picture, draw.FLOOR, 1).mean() for picture in pictures]
    assert forbidden[0] > 0.6
    assert forbidden[1] > forbidden[0]
    assert safe[1] < safe[0]
    top = pictures[0][40, :]  # a row far up: still safe in the middle for the circle, forbidden in the square
    assert coloured(top, draw.FLOOR, 2).sum() > 40
    assert coloured(pictures[1][40, :], draw.FORBIDDEN, 2).sum() > 400


def test_steps_that_cost_are_drawn_in_their_own_colour():
    task = make("point-circle", x_limit=30.0)
    free = play_one(task, ahead, jax.random.key(0))
    without = world(frame(task, *free))
    paid = Episode(free.states, free.rewards, [[1.0]] * len(free.costs))
    difference = coloured(world(frame(task, *paid)), draw.COSTLY, 60).sum() - coloured(without, draw.COSTLY, 60).sum()
    assert difference > 300


def test_the_robot_is_where_it_is():
    """From the centre to the right: the agent's colour moves to the right, and nothing up or down."""
    task = make("point-gather", apples=1, bombs=1)
    bare = Scene((0.0, 0.0), 0.0, arena=6.0, view=7.0)
    moved = Scene((4.0, 0.0), 0.0, arena=6.0, view=7.0)
    here, there = (np.argwhere(coloured(world(paint(task, [s], [], [])), draw.AGENT)) for s in (bare, moved))
    shift = there.mean(axis=0) - here.mean(axis=0)
    pixels_per_unit = 0.94 * draw.WIDTH / 14
    assert shift == pytest.approx([0.0, 4 * pixels_per_unit], abs=2)


def test_apples_bombs_and_rays_come_and_go():
    task = point_gather(apples=1, bombs=1)
    state = task.reset(jax.random.key(0))
    both = Objects(jnp.asarray([3.0, -4.0]), jnp.asarray([0.5, -4.0]), jnp.asarray([True, True]))
    none = both._replace(present=jnp.asarray([False, False]))
    full, empty = (world(frame(task, [GatherState(state.robot, o)], [], [])) for o in (both, none))
    for colour in (draw.APPLE, draw.BOMB, draw.SPARK):
        assert coloured(full, colour).sum() > 20
        assert not coloured(empty, colour).any()
    assert not np.array_equal(full, empty)


def test_the_captions_change_with_reward_and_cost():
    task = make("point-circle")
    states = [task.reset(jax.random.key(0))] * 2
    above = draw.HEIGHT - draw.WIDTH
    pictures = [
        frame(task, states, [reward], [[cost]])[:above] for reward, cost in [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    ]
    assert not np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[1], pictures[2])
    assert coloured(pictures[2], draw.COSTLY).any()
    assert not coloured(pictures[1], draw.COSTLY).any()


def test_the_view_grows_with_the_way_and_never_shrinks():
    near, far = (Scene((x, 0.0), 0.0, arena=40.0, view=19.5, circle=15.0) for x in (0.0, 30.0))
    task = make("point-circle")
    circles = [coloured(world(paint(task, scenes, [], [])), draw.TARGET).any(axis=0) for scenes in ([near], [far])]
    widths = [np.ptp(np.flatnonzero(columns)) for columns in circles]
    assert widths[1] < 0.7 * widths[0]


def test_a_position_that_is_not_a_number_is_said():
    task = make("point-circle")
    lost = Scene((float("nan"), 0.0), 0.0, arena=40.0, view=19.5)
    picture = paint(task, [lost], [], [])
    assert coloured(picture, draw.COSTLY).any()


def test_an_episode_ends_where_the_task_ends():
    circle = make("point-circle")
    assert len(play_one(circle, ahead, jax.random.key(0)).rewards) == circle.horizon
    gather = point_gather(apples=1, bombs=0, horizon=500)
    noise = np.random.default_rng(0).normal(size=(500, 2))
    episode = play_one(gather, lambda _, t: noise[t], jax.random.key(0))
    assert len(episode.rewards) < 500
    assert sum(episode.rewards) == 10.0
    assert len(episode.states) == len(episode.costs) + 1


def test_a_task_without_a_scene_says_that_there_is_nothing_to_draw():
    task = dataclasses.replace(point_circle(), name="plain", scene=None)
    start = [task.reset(jax.random.key(0))]
    for draw_it in (frame, lambda *episode: list(film(*episode))):
        with pytest.raises(ValueError, match=r"plain has no scene.*give DeviceTask"):
            draw_it(task, start, [], [])
