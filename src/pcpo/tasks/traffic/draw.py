"""Pictures of traffic from above. They need neither SUMO nor a display: everything in them is in the scene.

matplotlib is imported inside the functions, as in `pcpo.tasks.draw`, whose captions stand above.
"""

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pcpo.tasks.traffic.scene import Car, Road, Signal, TrafficScene, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Picture = npt.NDArray[np.uint8]
"""``[height, width, 3]``."""

SIZES = {1: (832, 928), 3: (960, 608)}
"""Width and height in pixels, multiples of 16, by the number of views."""
_DPI = 100

ASPHALT, GROUND, PAINT = "#3f4247", "#eef0ea", "#c9ccd1"
INK, COSTLY = "#222222", "#d55e00"
LIGHT = {"G": "#00b37d", "y": "#ffc20a", "r": "#e0302b"}
SPEEDS = "RdYlBu"
"""Red stands, blue is fast: both are seen on asphalt, also by those who cannot tell red from green."""


BOX = ((0.0, 0.5), (-1.0, 0.5), (-1.0, -0.5), (0.0, -0.5))
ARROW = ((0.25, 0.0), (-0.35, 0.75), (-1.1, 0.75), (-0.75, 0.0), (-1.1, -0.75), (-0.35, -0.75))
"""In lengths and widths of a car, from the middle of its front."""


def paint(
    task: Any, scenes: Sequence[TrafficScene], rewards: Sequence[float], costs: Sequence[Sequence[float]]
) -> Picture:
    """One picture: the last scene, with what has been earned and paid so far; see `pcpo.tasks.host.Painter`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from pcpo.tasks.draw import captions

    scene = scenes[-1]
    width, height = SIZES[len(scene.views)]
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    places = _places(len(scene.views), height)
    for view, place in zip(scene.views, places, strict=True):
        _view(figure.add_axes(place), scene, view)
    captions(figure, task, rewards, costs)
    _legend(figure, scene)
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])


def _places(count: int, height: int) -> list[tuple[float, float, float, float]]:
    """Where the views are, one below the other, between the captions and the legend."""
    side, top, bottom, gap = 0.025, 0.921 - 22 / height, 46 / height, 14 / height
    tall = (top - bottom - gap * (count - 1)) / count
    return [(side, top - (i + 1) * tall - i * gap, 1 - 2 * side, tall) for i in range(count)]


def _view(axes: "Axes", scene: TrafficScene, view: View) -> None:
    axes.set(xlim=view.x, ylim=view.y, xticks=[], yticks=[])
    axes.set_facecolor(GROUND)
    axes.spines[:].set_color("#d0d0d0")
    for road in scene.roads:
        _road(axes, road)
    for signal in scene.signals:
        _signal(axes, signal, scene)
    _cars(axes, [car for car in scene.cars if view.x[0] - 10 < car.x < view.x[1] + 10], scene)


def _road(axes: "Axes", road: Road) -> None:
    """Asphalt, and marks between lanes."""
    from matplotlib.patches import Polygon

    (x0, y0), (x1, y1) = road.points
    along = np.array([x1 - x0, y1 - y0]) / math.hypot(x1 - x0, y1 - y0)
    left = np.array([-along[1], along[0]])
    ends = np.array(road.points), np.array([road.width, road.width if road.end_width is None else road.end_width]) / 2
    (a, b), (start, end) = ends
    axes.add_patch(Polygon([a + start * left, b + end * left, b - end * left, a - start * left], fc=ASPHALT, zorder=1))
    for i in range(1, road.lanes):
        shift = (i / road.lanes - 0.5) * road.width * left
        axes.plot(*np.array([a + shift, b + shift]).T, color=PAINT, lw=0.9, ls=(0, (8, 8)), alpha=0.6, zorder=2)


def _signal(axes: "Axes", signal: Signal, scene: TrafficScene) -> None:
    """A crossing: a bar in the light's colour where each approach stops, and for how long who waits has had red."""
    from matplotlib.patches import Rectangle

    half = max(road.width for road in scene.roads) / 2
    x, y, thick = signal.x, signal.y, 0.5 * half
    axes.add_patch(Rectangle((x - half, y - half), 2 * half, 2 * half, facecolor=ASPHALT, zorder=2.5))
    # Cars keep to the right: those that go down come from above, on its left half, and so on.
    bars = (
        (x - half, y + half - thick, half, thick),
        (x + half - thick, y, thick, half),
        (x, y - half, half, thick),
        (x - half, y - half, thick, half),
    )
    for letter, (left, low, width, height) in zip(signal.state, bars, strict=True):
        axes.add_patch(
            Rectangle((left, low), width, height, facecolor=LIGHT[letter], edgecolor="white", lw=0.6, zorder=8)
        )
    for age, arrow, dx, dy, ha, va in (
        (signal.red[0], "\u2195", 1.6 * half, 1.9 * half, "left", "bottom"),
        (signal.red[1], "\u2194", 1.6 * half, -1.9 * half, "left", "top"),
    ):
        if age > 0:
            late = age > scene.limit
            axes.text(
                x + dx, y + dy, f"{arrow} red {age:g} s", ha=ha, va=va, fontsize=11, zorder=9,
                color=COSTLY if late else INK, fontweight="bold" if late else "normal",
            )  # fmt: skip


def _cars(axes: "Axes", cars: Sequence[Car], scene: TrafficScene) -> None:
    """Humans drive boxes and the agent arrows, both in the colour of their speed; whoever costs has an orange rim."""
    from matplotlib.collections import PolyCollection

    if not cars:
        return
    colours = _speeds()(np.clip([car.speed / scene.top_speed for car in cars], 0.0, 1.0))
    rims = [COSTLY if car.late else "white" if car.robot else "#1a1a1a" for car in cars]
    widths = [2.2 if car.late else 1.3 if car.robot else 0.5 for car in cars]
    shapes = [_shape(car, *scene.size) for car in cars]
    axes.add_collection(PolyCollection(shapes, facecolors=colours, edgecolors=rims, linewidths=widths, zorder=7))


def _shape(car: Car, length: float, width: float) -> npt.NDArray[np.float64]:
    """The corners of a car, whose place is the middle of its front."""
    corners = np.array(ARROW if car.robot else BOX) * (length, width)
    cos, sin = math.cos(car.angle), math.sin(car.angle)
    return corners @ np.array([[cos, sin], [-sin, cos]]) + (car.x, car.y)


def _legend(figure: "Figure", scene: TrafficScene) -> None:
    """What the colours mean."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path

    height = figure.get_figheight() * _DPI
    axes = figure.add_axes((0.025, 14 / height, 0.95, 20 / height))
    axes.set(xlim=(0, 100), ylim=(0, 1))
    axes.axis("off")
    axes.imshow(np.linspace(0, 1, 64)[None], extent=(10, 30, 0.2, 0.8), aspect="auto", cmap=SPEEDS)
    axes.set(xlim=(0, 100), ylim=(0, 1))
    words: dict[str, Any] = {"va": "center", "fontsize": 10, "color": INK}
    axes.text(9, 0.5, "standing", ha="right", **words)
    axes.text(31, 0.5, f"{scene.top_speed:g} m/s", **words)
    if not scene.signals:
        large: dict[str, Any] = {"s": 320, "facecolor": "#9fc5e0", "clip_on": False}
        car: dict[str, Any] = {"s": 90, "facecolor": "#9fc5e0", "clip_on": False}
        arrow = MarkerStyle(Path((*ARROW, ARROW[0])))
        axes.scatter([46.5], [0.5], marker=arrow, edgecolor=INK, **large)
        axes.text(48, 0.5, "the agent's", **words)
        axes.scatter([62], [0.5], marker="s", edgecolor=INK, **car)
        axes.text(64, 0.5, "a human", **words)
        axes.scatter([75], [0.5], marker="s", edgecolor=COSTLY, linewidths=2.2, **car)
        axes.text(77, 0.5, f"slow for over {scene.limit:g} s", **words)
    else:
        axes.text(100, 0.5, f"red for over {scene.limit:g} s costs", ha="right", **words)


@functools.cache
def _speeds() -> Any:
    from matplotlib import colormaps

    return colormaps[SPEEDS]
