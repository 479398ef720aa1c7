"""Pictures of a task from above: who is where, what is allowed, what has been earned and paid so far.

matplotlib is imported inside the functions, and never through pyplot: a figure needs no display and leaves nothing
behind.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pcpo.rl.rollout import State
from pcpo.tasks.api import DeviceTask, HostTask, Task
from pcpo.tasks.scene import Point, Scene, Sensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Picture = npt.NDArray[np.uint8]
"""``[height, width, 3]``."""

WIDTH, HEIGHT = 576, 640
"""In pixels. Multiples of 16, as video codecs want them."""
_BORDER = 17
SIDE = WIDTH - 2 * _BORDER
"""Of what is shown below the captions."""
_MARGIN = _BORDER / WIDTH
_DPI = 100

AGENT = "#0072b2"
COSTLY = "#d55e00"
"""Steps that cost something."""
APPLE = "#009e73"
BOMB = "#2b2b2b"
SPARK = "#e69f00"
FORBIDDEN = "#f8e7e2"
TARGET = "#56b4e9"
INK = "#222222"
GREY = "#9a9a9a"
FLOOR = "#fbfbfa"


def frame(
    task: DeviceTask, states: Sequence[State], rewards: Sequence[float], costs: Sequence[Sequence[float]]
) -> Picture:
    """One picture: the last state, and how it came to it.

    Args:
        task: The task.
        states: From the reset on, one more than there are steps.
        rewards: One for each step.
        costs: For each step, in the order of ``task.cost_names``.
    """
    return paint(task, scenes_of(task, states), rewards, costs)


def film(
    task: DeviceTask, states: Sequence[State], rewards: Sequence[float], costs: Sequence[Sequence[float]]
) -> Iterator[Picture]:
    """A picture for each state, from the reset to the end; see `frame`."""
    scenes = scenes_of(task, states)
    for t in range(len(scenes)):
        yield paint(task, scenes[: t + 1], rewards[:t], costs[:t])


def host_film(
    task: HostTask, scenes: Sequence[Any], rewards: Sequence[float], costs: Sequence[Sequence[float]]
) -> Iterator[Picture]:
    """What `film` does, for a task on the host: a picture for every ``task.film_every``-th state, and for the last.

    Raises:
        ValueError: If the task says nothing about how it looks.
    """
    if task.paint is None:
        raise ValueError(f"{task.name} cannot be drawn; give HostTask(..., paint=...), and its worlds a scene()")
    last = len(scenes) - 1
    for t in [*range(0, last, task.film_every), last]:
        yield task.paint(task, scenes[: t + 1], rewards[:t], costs[:t])


def scenes_of(task: DeviceTask, states: Sequence[State]) -> list[Scene]:
    """What pictures of some states show.

    Raises:
        ValueError: If the task says nothing about how it looks.
    """
    if task.scene is None:
        raise ValueError(f"{task.name} has no scene, so there is nothing to draw; give DeviceTask(..., scene=...)")
    return [task.scene(state) for state in states]


def paint(task: Task, scenes: Sequence[Scene], rewards: Sequence[float], costs: Sequence[Sequence[float]]) -> Picture:
    """What `frame` does, from scenes that are there already."""
    figure = _empty_figure()
    axes = figure.add_axes((_MARGIN, _MARGIN * WIDTH / HEIGHT, 1 - 2 * _MARGIN, (1 - 2 * _MARGIN) * WIDTH / HEIGHT))
    now = scenes[-1]
    view = _view(scenes)
    _floor(axes, now, view)
    if now.sensor is not None:
        _fans(axes, now, now.sensor)
    _trail(axes, scenes, costs)
    for place in now.apples:
        _apple(axes, place)
    for place in now.bombs:
        _bomb(axes, place)
    _robot(axes, now, view)
    captions(figure, task, rewards, costs)
    return _pixels(figure)


def framed(view: Picture, task: Task, rewards: Sequence[float], costs: Sequence[Sequence[float]]) -> Picture:
    """A picture that somebody else has made, `SIDE` by `SIDE`, with the captions of ours above it."""
    figure = _empty_figure()
    captions(figure, task, rewards, costs)
    picture = _pixels(figure)
    picture[-SIDE - _BORDER : -_BORDER, _BORDER : SIDE + _BORDER] = view
    return picture


def _empty_figure() -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _pixels(figure: Any) -> Picture:
    figure.canvas.draw()
    return np.ascontiguousarray(np.asarray(figure.canvas.buffer_rgba())[..., :3])


def _view(scenes: Sequence[Scene]) -> float:
    """Half the side of what is shown: it grows when the robot leaves it, and never shrinks within an episode."""
    farthest = max(max(map(abs, scene.position)) for scene in scenes)
    farthest = farthest if math.isfinite(farthest) else 0.0
    return max(scenes[-1].view, 1.08 * farthest)


def _floor(axes: "Axes", scene: Scene, view: float) -> None:
    """The ground, the forbidden places, the arena's edge and the circle to run on."""
    from matplotlib.patches import Circle, Rectangle

    limited = scene.safe_x is not None or scene.safe_y is not None
    axes.set(xlim=(-view, view), ylim=(-view, view), aspect="equal", xticks=[], yticks=[])
    axes.set_facecolor(FORBIDDEN if limited else "#efefef")
    axes.spines[:].set_color("#d0d0d0")
    if limited:
        x, y = scene.safe_x or 2 * view, scene.safe_y or 2 * view
        axes.add_patch(Rectangle((-x, -y), 2 * x, 2 * y, facecolor=FLOOR, edgecolor=COSTLY, lw=1.8, zorder=1))
    else:
        side = scene.arena
        axes.add_patch(Rectangle((-side, -side), 2 * side, 2 * side, facecolor=FLOOR, edgecolor=GREY, lw=1.8, zorder=1))
    axes.plot([0], [0], marker="+", color=GREY, ms=9, mew=1.0, zorder=2)
    if scene.circle is not None:
        axes.add_patch(Circle((0, 0), scene.circle, fill=False, ec=TARGET, lw=2.4, ls=(0, (5, 3)), zorder=2))
        for degrees in (45, 135, 225, 315):
            _chevron(axes, scene.circle, math.radians(degrees), view)


def _chevron(axes: "Axes", radius: float, angle: float, view: float) -> None:
    """An arrow head on the circle that says which way round is rewarded."""
    centre = radius * np.array([math.cos(angle), math.sin(angle)])
    size = 0.035 * view
    shape = size * np.array([[1.0, 0.0], [-0.7, 0.75], [-0.2, 0.0], [-0.7, -0.75]])
    _polygon(axes, shape @ _turn(angle + math.pi / 2).T + centre, facecolor=TARGET, zorder=3)


def _trail(axes: "Axes", scenes: Sequence[Scene], costs: Sequence[Sequence[float]]) -> None:
    """The way so far; steps that cost something have their own colour."""
    from matplotlib.collections import LineCollection

    places = np.asarray([scene.position for scene in scenes])
    colours = [COSTLY if any(cost > 0 for cost in step) else AGENT for step in costs]
    segments = np.stack([places[:-1], places[1:]], axis=1)
    axes.add_collection(LineCollection(list(segments), colors=colours, lw=2.2, alpha=0.75, capstyle="round", zorder=4))
    if colours:
        axes.scatter(places[1:-1, 0], places[1:-1, 1], s=9, c=colours[:-1], zorder=5, linewidths=0)
    axes.scatter(places[:1, 0], places[:1, 1], s=26, facecolor="white", edgecolor=INK, linewidths=1.1, zorder=5)


def _robot(axes: "Axes", scene: Scene, view: float) -> None:
    """A dart that points where it looks, and the circle within which it takes things."""
    from matplotlib.patches import Circle

    if not all(map(math.isfinite, (*scene.position, scene.heading))):
        axes.text(0, 0, "position is not a number", color=COSTLY, ha="center", va="center", fontsize=15, zorder=9)
        return
    size = 0.042 * view
    if scene.reach is not None:
        axes.add_patch(Circle(scene.position, scene.reach, fill=False, ec=AGENT, lw=1.0, ls=(0, (2, 2)), zorder=6))
    dart = size * np.array([[1.6, 0.0], [-1.1, 1.05], [-0.55, 0.0], [-1.1, -1.05]])
    corners = dart @ _turn(scene.heading).T + np.asarray(scene.position)
    _polygon(axes, corners, facecolor=AGENT, edgecolor="white", lw=1.4, joinstyle="round", zorder=9)


def _fans(axes: "Axes", scene: Scene, sensor: Sensor) -> None:
    """The field of view, and for each reading a ray as long as the distance that was read, apples beside bombs."""
    from matplotlib.patches import Wedge

    middle = scene.heading if sensor.heading is None else sensor.heading
    right = math.degrees(middle - sensor.span / 2)
    width = math.degrees(sensor.span) / len(sensor.apples)
    whole = (right, right + width * len(sensor.apples))
    if not math.isfinite(right):
        return
    inside = axes.patches[0]
    field = Wedge(scene.position, sensor.reach, *whole, facecolor=TARGET, alpha=0.10, zorder=2)
    axes.add_patch(field).set_clip_path(inside)
    for i in range(1, len(sensor.apples)):
        edge = math.radians(right + i * width)
        tip = [scene.position[k] + sensor.reach * (math.cos(edge), math.sin(edge))[k] for k in (0, 1)]
        (line,) = axes.plot(*zip(scene.position, tip, strict=True), color=TARGET, lw=0.6, alpha=0.35, zorder=2)
        line.set_clip_path(inside)
    for readings, colour, half in ((sensor.bombs, BOMB, 0), (sensor.apples, APPLE, 1)):
        for i, reading in enumerate(readings):
            if reading > 0:
                start, distance = right + (i + half / 2) * width, (1 - reading) * sensor.reach
                strength = 0.12 + 0.45 * reading
                ray = Wedge(scene.position, distance, start, start + width / 2, facecolor=colour, alpha=strength)
                ray.set(zorder=3, linewidth=0)
                axes.add_patch(ray)


def _apple(axes: "Axes", place: Point) -> None:
    """Round and green, with a stem and a leaf."""
    from matplotlib.patches import Circle, Ellipse

    x, y = place
    axes.add_patch(Circle(place, 0.34, facecolor=APPLE, edgecolor="white", lw=1.2, zorder=7))
    axes.add_patch(Ellipse((x - 0.11, y + 0.11), 0.15, 0.1, angle=40, facecolor="white", alpha=0.55, zorder=7.5))
    axes.plot([x, x + 0.05], [y + 0.28, y + 0.52], color="#7a4a21", lw=2.0, solid_capstyle="round", zorder=7)
    axes.add_patch(Ellipse((x + 0.2, y + 0.47), 0.3, 0.14, angle=25, facecolor="#4fbf73", zorder=7))


def _bomb(axes: "Axes", place: Point) -> None:
    """Round and black, with a burning fuse."""
    from matplotlib.patches import Circle

    x, y = place
    axes.plot([x + 0.17, x + 0.27, x + 0.4], [y + 0.25, y + 0.42, y + 0.44], color="#8a6d3b", lw=1.8, zorder=7)
    axes.add_patch(Circle(place, 0.32, facecolor=BOMB, edgecolor="white", lw=1.2, zorder=7))
    axes.add_patch(Circle((x - 0.1, y + 0.1), 0.07, facecolor="white", alpha=0.5, zorder=7.5))
    angles = np.arange(12) * math.pi / 6
    radii = np.where(np.arange(12) % 2, 0.16, 0.07)
    spark = np.stack([x + 0.42 + radii * np.cos(angles), y + 0.44 + radii * np.sin(angles)], axis=1)
    _polygon(axes, spark, facecolor=SPARK, zorder=8)


def captions(figure: Any, task: Task, rewards: Sequence[float], costs: Sequence[Sequence[float]]) -> None:
    """Name and step on the first line; reward and costs so far on the second."""
    title = "-".join(word.capitalize() for word in task.name.split("-"))
    left, right, top, below = 0.03, 0.97, 0.962, 0.921
    figure.text(left, top, title, fontsize=14, fontweight="bold", color=INK, va="center")
    figure.text(right, top, f"step {len(rewards)} of {task.horizon}", fontsize=11, color=INK, va="center", ha="right")
    figure.text(left, below, f"reward {sum(rewards):.1f}", fontsize=12, color=AGENT, va="center")
    sums = [sum(step[i] for step in costs) for i in range(len(task.cost_names))]
    spent = "    ".join(f"{name} {total:g}" for name, total in zip(task.cost_names, sums, strict=True))
    figure.text(right, below, spent, fontsize=12, color=COSTLY if any(sums) else INK, va="center", ha="right")


def _polygon(axes: "Axes", corners: npt.NDArray[np.floating[Any]], **style: Any) -> None:
    from matplotlib.patches import Polygon

    axes.add_patch(Polygon(corners, closed=True, **style))


def _turn(angle: float) -> npt.NDArray[np.float64]:
    """The matrix that turns counter-clockwise."""
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
