"""Pictures of the ant: by MuJoCo's renderer where the machine has OpenGL, else drawn from above."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pcpo.tasks import draw
from pcpo.tasks.ant.camera import Shape, camera
from pcpo.tasks.api import HostTask
from pcpo.tasks.scene import Point, Scene

RINGS = 180
"""Pieces of the circle to run on."""
SHOWN = 250
"""The latest steps of the trail, which are all that one sees well."""


@dataclass(frozen=True)
class AntScene(Scene):
    """What a picture of an ant shows."""

    qpos: tuple[float, ...] = ()
    """MuJoCo's coordinates of the robot."""
    walls: bool = False


def paint(
    task: HostTask, scenes: Sequence[AntScene], rewards: Sequence[float], costs: Sequence[Sequence[float]]
) -> npt.NDArray[np.uint8]:
    """A `pcpo.tasks.host.Painter`."""
    now = scenes[-1]
    eye = camera(now.walls)
    if eye is None or not all(map(math.isfinite, now.qpos)):
        return draw.paint(task, scenes, rewards, costs)
    view = eye.picture(now.qpos, [*_ground(now), *_things(now), *_trail(scenes, costs)], _stand(now))
    return draw.framed(view, task, rewards, costs)


def _stand(scene: Scene) -> tuple[Point, float, float]:
    """Where the camera looks, from how far, and how steeply down: into a room from above, else after the robot."""
    if scene.circle is None:
        return (0.0, -0.6), 2.6 * scene.view, -66.0
    return scene.position, 0.9 * scene.circle, -38.0


def _ground(scene: Scene) -> Iterator[Shape]:
    """The circle to run on, and the panes that mark where costs begin: nothing that the robot could touch."""
    if scene.circle is not None:
        angles = 2 * math.pi * np.arange(RINGS + 1) / RINGS
        places = [(scene.circle * math.cos(angle), scene.circle * math.sin(angle), 0.01) for angle in angles]
        for a, b in zip(places[::2], places[1::2], strict=False):
            yield Shape.line(a, b, 0.05, draw.TARGET)
    if scene.safe_x is not None:
        length = scene.arena
        for x in (-scene.safe_x, scene.safe_x):
            yield Shape("box", (x, 0.0, 0.4), (0.02, length, 0.4), draw.COSTLY, 0.28)
    if scene.reach is not None:
        angles = 2 * math.pi * np.arange(61) / 60
        x, y = scene.position
        ring = [(x + scene.reach * math.cos(a), y + scene.reach * math.sin(a), 0.01) for a in angles]
        for a, b in zip(ring[::2], ring[1::2], strict=False):
            yield Shape.line(a, b, 0.02, draw.AGENT)


def _things(scene: Scene) -> Iterator[Shape]:
    for x, y in scene.apples:
        yield Shape("sphere", (x, y, 0.32), (0.32, 0.32, 0.32), draw.APPLE)
        yield Shape.line((x, y, 0.6), (x + 0.06, y + 0.02, 0.85), 0.04, "#7a4a21")
        yield Shape("ellipsoid", (x + 0.2, y + 0.05, 0.78), (0.17, 0.09, 0.04), "#4fbf73")
    for x, y in scene.bombs:
        yield Shape("sphere", (x, y, 0.3), (0.3, 0.3, 0.3), draw.BOMB)
        yield Shape.line((x, y, 0.58), (x + 0.14, y + 0.1, 0.8), 0.035, "#8a6d3b")
        yield Shape("sphere", (x + 0.15, y + 0.1, 0.84), (0.09, 0.09, 0.09), draw.SPARK)


def _trail(scenes: Sequence[Scene], costs: Sequence[Sequence[float]]) -> Iterator[Shape]:
    """The way so far; steps that cost something have their own colour."""
    first = max(0, len(scenes) - 1 - SHOWN)
    for before, after, cost in zip(scenes[first:-1], scenes[first + 1 :], costs[first:], strict=True):
        colour = draw.COSTLY if any(c > 0 for c in cost) else draw.AGENT
        yield Shape.line((*before.position, 0.015), (*after.position, 0.015), 0.04, colour)
