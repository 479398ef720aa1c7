"""What pictures of traffic show is where SUMO has it, in the right colours; they need neither SUMO nor a display."""

import dataclasses
import math
import subprocess
import sys
from typing import Any, cast

import numpy as np
import pytest

from pcpo.tasks import registry
from pcpo.tasks.api import HostTask
from pcpo.tasks.traffic.draw import COSTLY, LIGHT, SIZES, paint
from pcpo.tasks.traffic.scene import Car, Road, Signal, TrafficScene, View
from tests.tasks.with_sumo import need_sumo

VIEW = View((0.0, 100.0), (0.0, 100.0))
ROAD = Road(((0.0, 50.0), (100.0, 50.0)), 20.0)


def picture(**changes: Any):
    scene = dataclasses.replace(TrafficScene((VIEW,), (ROAD,), (), size=(8.0, 6.0)), **changes)
    return paint(registry.make("grid"), [scene], [], [])


def colour(code):
    return np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)])


def pixels_of(image, code, tolerance=3):
    """Rows and columns of the pixels in a colour, above the legend."""
    return np.argwhere(np.abs(image[:-46].astype(int) - colour(code)).max(axis=2) <= tolerance)


def place_in(image, x, y):
    """Row and column of a point of `VIEW`, from where the layout puts it."""
    height, width = image.shape[:2]
    left, right, top, bottom = 0.025 * width, 0.975 * width, (1 - 0.921) * height + 22, height - 46
    return top + (100 - y) / 100 * (bottom - top), left + x / 100 * (right - left)


@pytest.mark.parametrize("letters", ["GrGr", "yryr", "rGrG", "ryry"])
def test_lights_have_their_colours_on_the_side_that_they_are_for(letters):
    """From above and below, from the right and left; each bar lies where cars on the right-hand side would stop."""
    image = picture(signals=(Signal(50.0, 50.0, letters, (0.0, 0.0)),))
    places = ((45.0, 57.5), (57.5, 55.0), (55.0, 42.5), (42.5, 45.0))
    for letter, (x, y) in zip(letters, places, strict=True):
        row, column = place_in(image, x, y)
        np.testing.assert_allclose(image[round(row), round(column)], colour(LIGHT[letter]), atol=3)


def test_red_ages_are_written_and_turn_orange_beyond_the_limit():
    def written(age):
        image = picture(signals=(Signal(50.0, 50.0, "GrGr", (0.0, age)),), limit=7.0)
        return len(pixels_of(image, COSTLY))

    assert written(0.0) == written(7.0) == 0
    assert written(8.0) > 50


def test_a_car_is_where_it_is_in_the_colour_of_its_speed_and_rimmed_where_it_costs():
    from matplotlib import colormaps

    for speed in (0.0, 15.0, 30.0):
        image = picture(cars=(Car(70.0, 50.0, 0.0, speed),))
        row, column = place_in(image, 66.0, 50.0)  # the middle of the car is behind its front
        expected = 255 * np.array(colormaps["RdYlBu"](speed / 30.0)[:3])
        np.testing.assert_allclose(image[round(row), round(column)], expected, atol=3)
    assert not len(pixels_of(picture(cars=(Car(70.0, 50.0, 0.0, 0.0),)), COSTLY))
    rim = pixels_of(picture(cars=(Car(70.0, 50.0, 0.0, 0.0, late=True),)), COSTLY, 12)
    assert len(rim) > 20


def test_the_agents_cars_are_arrows_that_point_where_they_drive():
    """The tip of an arrow is ahead of a box's front; the middle of its back is cut out."""
    human, robot = (picture(cars=(Car(50.0, 50.0, math.pi / 2, 30.0, robot=robot),)) for robot in (False, True))
    blue = np.abs(human.astype(int) - [49, 54, 149]).max(axis=2) < 8
    arrow = np.abs(robot.astype(int) - [49, 54, 149]).max(axis=2) < 8
    left, right = place_in(human, 0, 0)[1], place_in(human, 90, 0)[1]
    band = slice(round(place_in(human, 0, 70)[0]), round(place_in(human, 0, 30)[0])), slice(round(left), round(right))
    assert np.argwhere(arrow[band])[:, 0].min() < np.argwhere(blue[band])[:, 0].min()
    assert np.ptp(np.argwhere(arrow[band])[:, 1]) > np.ptp(np.argwhere(blue[band])[:, 1])


@pytest.mark.parametrize("name", ["grid", "bottleneck"])
def test_a_scene_is_what_sumo_has(name):
    """Every car, along its road where SUMO has it, and across it on the same side of the middle."""
    need_sumo()
    task = registry.make(name)
    assert isinstance(task, HostTask)
    which, worlds = np.zeros(1, int), cast("Any", task.worlds(1))
    try:
        worlds.reset(which, which)
        for _ in range(60):
            worlds.step(which, np.full((1, task.action_space.size), -1.0))
        scene = worlds.scene(0)
        sumo = worlds.world._sumo
        cars = sumo.vehicle.getIDList()
        assert len(scene.cars) == len(cars) > 10
        for car, shown in zip(cars, scene.cars, strict=True):
            x, y = sumo.vehicle.getPosition(car)
            assert shown.speed == sumo.vehicle.getSpeed(car)
            if name == "bottleneck":
                assert (shown.x, shown.y) == (x, y)
                assert shown.robot == car.startswith("robot")
                assert shown.late == (worlds.world.spells.seconds.get(car, 0.0) > 10.0)
                continue
            along, across, before = (shown.x, shown.y, y) if abs(math.cos(shown.angle)) > 0.7 else (shown.y, shown.x, x)
            assert along == (x if along == shown.x and across == shown.y else y)
            assert across - 300 * round(before / 300) == pytest.approx(2.5 * (before - 300 * round(before / 300)))
        if name == "grid":
            assert [signal.state for signal in scene.signals] == [
                sumo.trafficlight.getRedYellowGreenState(f"center{i}") for i in range(4)
            ]
            assert [(signal.x, signal.y) for signal in scene.signals] == [
                sumo.junction.getPosition(f"center{i}") for i in range(4)
            ]
        else:
            assert any(car.robot for car in scene.cars)
            assert any(car.late for car in scene.cars)
        assert paint(task, [scene], [1.0], [[2.0]]).shape == (*SIZES[len(scene.views)][::-1], 3)
    finally:
        worlds.close()


def test_drawing_needs_neither_sumo_nor_a_display():
    code = """
import sys
sys.modules["libsumo"] = None
from pcpo.tasks import registry
from pcpo.tasks.traffic.scene import Car, Road, TrafficScene, View
scene = TrafficScene((View((0, 9), (0, 9)),), (Road(((0, 5), (9, 5)), 4),), (Car(4, 5, 0, 3),))
print(registry.make("grid").paint(registry.make("grid"), [scene], [], []).shape, "matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={"PATH": ""})
    assert done.stdout.split("\n")[0] == "(928, 832, 3) False", done.stderr
