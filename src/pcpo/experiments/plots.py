"""One hand for all figures: colours that colour-blind readers can tell apart, arrows, labels, PNG and SVG.

matplotlib is imported inside the functions, so that importing an experiment stays cheap, and never through pyplot:
figures are plain objects that need no display.
"""

import io
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

Pair: TypeAlias = tuple[float | int, float | int]

KL = "#0072b2"
"""The KL projection, and PCPO where it is alone: blue (Okabe and Ito)."""
L2 = "#d55e00"
"""The L2 projection: vermilion."""
CPO = "#009e73"
"""Rules that PCPO is compared with: bluish green."""
INK = "#222222"
"""Text, axes, the reward step."""
GREY = "#7f7f7f"
"""What is only there for orientation."""
REGION = "#e9edf2"
"""Inside of a trust region."""
FORBIDDEN = "#f6e3e6"
"""The side of a half-space that violates its constraint."""

_STYLE: Any = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.hashsalt": "pcpo",  # the same picture gives the same file
}


@contextmanager
def style() -> Generator[None]:
    """The settings shared by all figures; draw and save inside it."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> "matplotlib.figure.Figure":
    """An empty figure, in inches, that lays itself out."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "matplotlib.figure.Figure", directory: Path, name: str) -> list[Path]:
    """Writes ``name.png`` and ``name.svg`` and returns both paths. The same figure gives the same files.

    Both are made small enough to live in a repository: the PNG with 256 colours, the SVG with hundredths of a point.
    """
    from PIL import Image

    png, svg = (directory / f"{name}.{extension}" for extension in ("png", "svg"))
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", metadata={"Software": None})
    Image.open(pixels).convert("RGB").quantize(256).save(png, optimize=True)
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg", metadata={"Date": None})
    svg.write_text(re.sub(r' d="[^"]*"', _to_hundredths, drawing.getvalue()), encoding="utf-8")
    return [png, svg]


def _to_hundredths(match: re.Match[str]) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", match[0])


def arrow(
    axes: "matplotlib.axes.Axes",
    start: Any,
    end: Any,
    color: str,
    width: float | int = 2.0,
    dashed: bool = False,
    head: float | int = 13.0,
    zorder: float | int = 4.0,
) -> None:
    """An arrow from point to point whose tip is exactly at the end; a dashed one has a dashed shaft, a whole head."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    tail = start
    if dashed:
        tail = end - 1e-3 * (end - start)
        axes.plot(
            *np.stack([start, end - 0.03 * (end - start)]).T, color=color, linewidth=width, dashes=(4, 2), zorder=zorder
        )
    axes.annotate(
        "",
        xy=(end[0], end[1]),
        xytext=(tail[0], tail[1]),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.28,head_length=0.55",
            "color": color,
            "linewidth": 1.0 if dashed else width,
            "shrinkA": 0.0,
            "shrinkB": 0.0,
            "mutation_scale": head,
            "joinstyle": "miter",
            "capstyle": "butt",
        },
        zorder=zorder,
    )


def label(
    axes: "matplotlib.axes.Axes",
    at: Any,
    text: str,
    color: str = INK,
    offset: Pair = (0.0, 0.0),
    align: str = "center",
    vertical: str = "center",
    size: float | int = 9.5,
    rotation: float | int = 0.0,
) -> None:
    """Text beside a point, ``offset`` in typographic points, with a white edge so that lines may pass behind it."""
    from matplotlib import patheffects

    axes.annotate(
        text,
        xy=(float(at[0]), float(at[1])),
        xytext=offset,
        textcoords="offset points",
        color=color,
        ha=align,
        va=vertical,
        fontsize=size,
        rotation=rotation,
        rotation_mode="anchor",
        linespacing=1.25,
        path_effects=[patheffects.withStroke(linewidth=2.6, foreground="white", alpha=0.85)],
        zorder=7,
    )


def point(axes: "matplotlib.axes.Axes", at: Any, color: str = INK, marker: str = "o", size: float | int = 6.0) -> None:
    """A marker with a white rim."""
    axes.plot(
        [float(at[0])],
        [float(at[1])],
        marker=marker,
        color=color,
        markersize=size,
        markeredgecolor="white",
        markeredgewidth=1.0,
        linestyle="none",
        zorder=6,
        clip_on=False,
    )


def forbid(axes: "matplotlib.axes.Axes", a: Any, b: float, color: str = FORBIDDEN) -> tuple[Any, Any]:
    """Shades ``a . x + b > 0`` within the limits of the axes and draws its edge.

    Returns:
        The two ends of the visible edge, lower x first (lower y first where it is vertical).
    """
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    a = np.asarray(a, dtype=float)
    corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    values = corners @ a + b
    region: list[Any] = []
    edge: list[Any] = []
    for i in range(4):
        here, there = corners[i], corners[(i + 1) % 4]
        if values[i] > 0.0:
            region.append(here)
        if values[i] * values[(i + 1) % 4] < 0.0:
            crossing = here + (there - here) * values[i] / (values[i] - values[(i + 1) % 4])
            region.append(crossing)
            edge.append(crossing)
    if region:
        axes.fill(*np.array(region).T, color=color, linewidth=0.0, zorder=0)
    if len(edge) != 2:
        raise ValueError("the edge of the half-space does not cross the axes; set their limits first")
    first, second = sorted(edge, key=lambda p: (round(float(p[0]), 9), float(p[1])))
    axes.plot([first[0], second[0]], [first[1], second[1]], color=INK, linewidth=1.4, zorder=2)
    return first, second


def ellipse(H: Any, level: float, center: Any = (0.0, 0.0), points: int = 361) -> Any:
    """The curve ``(x - center)' H (x - center) / 2 = level``, as ``[points, 2]``."""
    angle = np.linspace(0.0, 2.0 * np.pi, points)
    circle = np.sqrt(2.0 * level) * np.stack([np.cos(angle), np.sin(angle)])
    return np.linalg.solve(np.linalg.cholesky(np.asarray(H, dtype=float)).T, circle).T + np.asarray(center, dtype=float)
