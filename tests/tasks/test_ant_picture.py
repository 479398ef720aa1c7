"""Pictures of the ant: by MuJoCo where there is OpenGL, from above where there is none, and never a crash."""

import dataclasses

import numpy as np
import pytest

from pcpo.tasks import draw
from pcpo.tasks.ant import camera as cameras
from pcpo.tasks.ant.circle import AntCircles
from pcpo.tasks.ant.gather import AntGathers
from pcpo.tasks.draw import host_film
from pcpo.tasks.episode import play_on_host
from pcpo.tasks.registry import make
from tests.tasks.ants import put, standing
from tests.tasks.test_draw import coloured, world


@pytest.fixture
def from_above(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")


@pytest.fixture
def with_gl(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    if not any(map(cameras.works, cameras.WAYS)):
        pytest.skip("no OpenGL here: neither EGL nor OSMesa works")


@pytest.fixture(scope="module")
def episodes():
    """Some steps of each task, at random."""
    rng = np.random.default_rng(0)
    return {
        name: play_on_host(make(name, horizon=12), lambda _, t: rng.normal(size=8), 4)
        for name in ("ant-circle", "ant-gather")
    }


@pytest.mark.parametrize("name", ["ant-circle", "ant-gather"])
def test_without_opengl_it_is_drawn_from_above(name, episodes, from_above):
    task, episode = make(name), episodes[name]
    assert task.paint is not None
    picture = task.paint(task, *episode)
    np.testing.assert_array_equal(picture, draw.paint(task, *episode))
    assert picture.shape == (draw.HEIGHT, draw.WIDTH, 3)
    assert coloured(world(picture), draw.AGENT).any()
    if name == "ant-gather":
        assert min(coloured(world(picture), colour).sum() for colour in (draw.APPLE, draw.BOMB)) > 50


@pytest.mark.parametrize("name", ["ant-circle", "ant-gather"])
def test_with_opengl_mujoco_draws_it(name, episodes, with_gl):
    task, (scenes, rewards, costs) = make(name), episodes[name]
    assert task.paint is not None
    picture = task.paint(task, scenes, rewards, costs)
    assert picture.shape == (draw.HEIGHT, draw.WIDTH, 3)
    assert picture.dtype == np.uint8
    assert not np.array_equal(picture, draw.paint(task, scenes, rewards, costs))
    view = world(picture).astype(int)
    assert (view[..., 2] - view[..., 0] > 60).sum() > 100  # the robot
    paid = task.paint(task, scenes, rewards, [[1.0]] * len(costs))
    above = slice(draw.HEIGHT - draw.WIDTH)
    assert not np.array_equal(picture[above], paid[above])  # the running cost
    assert coloured(paid[above], draw.COSTLY).any()


def test_with_opengl_panes_apples_and_bombs_are_where_they_are(with_gl):
    circles = AntCircles(2)
    put(circles, standing(0.0, z=0.55), standing(30.0, z=0.55))
    task = make("ant-circle")
    assert task.paint is not None
    near, far = (world(task.paint(task, [circles.scene(i)], [], [])).astype(int) for i in (0, 1))
    panes = [(picture[..., 0] - picture[..., 2] > 30).mean() for picture in (near, far)]
    assert panes[0] > 0.05 > panes[1]
    gathers = AntGathers(1, apples=1, bombs=1)
    gathers.objects.x[:, 0], gathers.objects.y[:, 0] = (-4, 4), (2, 2)
    gathers.objects.present[:] = True
    put(gathers, standing(z=0.55))
    task, scene = make("ant-gather"), gathers.scene(0)
    assert task.paint is not None
    picture = world(task.paint(task, [scene], [], []))
    for absent, (low, high) in {"apples": (0.1, 0.4), "bombs": (0.6, 0.9)}.items():
        without = world(task.paint(task, [dataclasses.replace(scene, **{absent: ()})], [], []))
        changed = np.argwhere((picture != without).any(axis=-1))
        assert len(changed) > 100
        assert low < changed.mean(axis=0)[1] / draw.WIDTH < high


def test_a_robot_that_came_apart_is_drawn_from_above():
    circles = AntCircles(1)
    circles.reset(np.array([0]), np.array([0]))
    circles.step(np.array([0]), np.full((1, 8), np.nan))
    task, scene = make("ant-circle"), circles.scene(0)
    assert task.paint is not None
    picture = task.paint(task, [scene], [], [])
    assert coloured(picture, draw.COSTLY).any()  # it says that the position is not a number


@pytest.mark.parametrize(
    "question", ["import os; os.abort()", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "1 / 0"]
)
def test_a_driver_that_crashes_means_another_way_to_draw(question, monkeypatch):
    monkeypatch.setattr(cameras, "_QUESTION", question)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    cameras.works.cache_clear()
    cameras._camera.cache_clear()
    try:
        assert cameras.camera(walls=False) is None
    finally:
        cameras.works.cache_clear()
        cameras._camera.cache_clear()


def test_a_driver_that_hangs_means_another_way_to_draw(monkeypatch):
    monkeypatch.setattr(cameras, "_QUESTION", "import time; time.sleep(60)")
    monkeypatch.setattr(cameras, "PATIENCE", 0.5)
    assert not cameras.works.__wrapped__("egl")


def test_a_driver_that_works_elsewhere_and_fails_here_means_another_way_to_draw(monkeypatch):
    def fail(way, walls):
        raise RuntimeError("no context for this thread")

    monkeypatch.setattr(cameras, "Camera", fail)
    monkeypatch.setattr(cameras, "works", lambda way: True)
    assert cameras._camera.__wrapped__(False, ("egl",)) is None


def test_a_film_shows_every_fifth_state_and_the_last(episodes, from_above):
    task, episode = make("ant-circle"), episodes["ant-circle"]
    pictures = list(host_film(task, *episode))
    assert task.film_every == 5
    assert len(pictures) == 4  # states 0, 5, 10 and 12
    np.testing.assert_array_equal(pictures[-1], draw.paint(task, *episode))
    with pytest.raises(ValueError, match="ant-circle cannot be drawn; give HostTask"):
        list(host_film(dataclasses.replace(task, paint=None), *episode))


def test_an_episode_ends_with_the_fall_or_the_horizon():
    episode = play_on_host(make("ant-gather", horizon=5), lambda _, t: np.zeros(8), 0)
    assert (len(episode.rewards), len(episode.costs), len(episode.scenes)) == (5, 5, 6)
    rng, blind = np.random.default_rng(8), dataclasses.replace(make("ant-gather"), paint=None)
    fallen = play_on_host(blind, lambda _, t: rng.normal(size=8), 8)
    assert len(fallen.rewards) < 500
    assert not fallen.scenes
    assert fallen.rewards[-1] == -10.0
