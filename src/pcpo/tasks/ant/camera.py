"""MuJoCo's renderer without a screen, where there is OpenGL for it: through EGL, or OSMesa in software.

Where there is none, or a driver that does not work, nothing here raises: `camera` says None. Some drivers end the
process that asks them, so the question is put in a process of its own. The environment variable MUJOCO_GL, MuJoCo's
own, chooses: ``egl``, ``osmesa``, or ``disable``.
"""

import atexit
import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pcpo.tasks.ant.robot import engine, model
from pcpo.tasks.draw import SIDE
from pcpo.tasks.scene import Point

Place = tuple[float, float, float]

WAYS = ("egl", "osmesa")
OFF = ("disable", "disabled", "off", "false", "0")
"""What MuJoCo takes in MUJOCO_GL for no OpenGL at all."""
PATIENCE = 60.0
"""Seconds for the question whether a way works."""
MOST = 2000
"""Shapes in one picture."""

_QUESTION = """
import importlib, sys, mujoco
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(32, 32)
context.make_current()
drawing = mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), mujoco.mjtFontScale.mjFONTSCALE_100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawing)
assert drawing.currentBuffer == mujoco.mjtFramebuffer.mjFB_OFFSCREEN
"""


class Shape(NamedTuple):
    """Something that is seen and touches nothing."""

    kind: str
    """``"box"``, ``"sphere"``, ``"ellipsoid"`` or ``"line"``."""
    place: Place
    """Of its middle; where a line begins."""
    size: Place
    """Half its sides; of a line, its radius first."""
    colour: str
    """Such as ``"#0072b2"``."""
    opacity: float = 1.0
    end: Place | None = None
    """Of a line."""

    @staticmethod
    def line(start: Place, end: Place, radius: float, colour: str) -> "Shape":
        """A line with round ends."""
        return Shape("line", start, (radius, 0.0, 0.0), colour, end=end)


class Camera:
    """Takes pictures of a robot, `SIDE` by `SIDE`.

    Args:
        way: How to get OpenGL, one of `WAYS`.
        walls: Whether the robot is in a room.
    """

    def __init__(self, way: str, walls: bool) -> None:
        mujoco = engine()
        self._mujoco = mujoco
        self._model, self._data = model(walls), mujoco.MjData(model(walls))
        self._context = importlib.import_module(f"mujoco.{way}").GLContext(SIDE, SIDE)
        self._context.make_current()
        self._drawing = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._scene = mujoco.MjvScene(self._model, maxgeom=MOST)
        self._option, self._view = mujoco.MjvOption(), mujoco.MjvCamera()
        atexit.register(self.close)  # before the interpreter takes things away in an order of its own

    def picture(
        self, qpos: Sequence[float], shapes: Iterable[Shape], stand: tuple[Point, float, float]
    ) -> npt.NDArray[np.uint8]:
        """One picture.

        Args:
            qpos: Of the robot.
            shapes: What else is there.
            stand: What the camera looks at, from how far, and its elevation in degrees.
        """
        mujoco = self._mujoco
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        (x, y), self._view.distance, self._view.elevation = stand
        self._view.lookat[:], self._view.azimuth = (x, y, 0.3), 90.0
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, self._data, self._option, None, self._view, everything, self._scene)
        for shape in shapes:
            self._add(shape)
        return self._taken()

    def close(self) -> None:
        """Gives the driver back what it lent."""
        atexit.unregister(self.close)
        self._drawing.free()
        self._context.free()

    def _add(self, shape: Shape) -> None:
        """Puts a shape into the scene, unless that is full."""
        mujoco, scene = self._mujoco, self._scene
        if scene.ngeom >= scene.maxgeom:
            return
        thing = scene.geoms[scene.ngeom]
        kind = getattr(mujoco.mjtGeom, f"mjGEOM_{'CAPSULE' if shape.end else shape.kind.upper()}")
        colour = [int(shape.colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        rgba = np.array([*colour, shape.opacity], np.float32)
        mujoco.mjv_initGeom(thing, kind, np.array(shape.size), np.array(shape.place), np.eye(3).ravel(), rgba)
        if shape.end is not None:
            mujoco.mjv_connector(thing, kind, shape.size[0], np.array(shape.place), np.array(shape.end))
        scene.ngeom += 1

    def _taken(self) -> npt.NDArray[np.uint8]:
        mujoco = self._mujoco
        self._context.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._drawing)
        whole, pixels = mujoco.MjrRect(0, 0, SIDE, SIDE), np.empty((SIDE, SIDE, 3), np.uint8)
        mujoco.mjr_render(whole, self._scene, self._drawing)
        mujoco.mjr_readPixels(pixels, None, whole, self._drawing)
        return pixels[::-1]


def camera(walls: bool) -> Camera | None:
    """The camera for a room or for open ground, or None where there is no OpenGL that works."""
    wanted = os.environ.get("MUJOCO_GL", "").strip().lower()
    return None if wanted in OFF else _camera(walls, (wanted,) if wanted in WAYS else WAYS)


@functools.lru_cache(maxsize=8)
def _camera(walls: bool, ways: tuple[str, ...]) -> Camera | None:
    way = next(filter(works, ways), None)
    if way is None:
        return None
    try:
        return Camera(way, walls)
    except Exception:  # noqa: BLE001 (a driver's reasons are many, and there is another way to draw)
        return None


@functools.cache
def works(way: str) -> bool:
    """Whether OpenGL can be had in that way; asked in another process, which a bad driver may end."""
    if not sys.platform.startswith("linux"):
        return False
    command = [sys.executable, "-c", _QUESTION, way]
    environment = {**os.environ, "MUJOCO_GL": "disable"}
    try:
        return not subprocess.run(
            command, env=environment, capture_output=True, timeout=PATIENCE, check=False
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
