r"""The paper's example: which way PCPO goes under either projection, and where it ends.

.. math:: \max_x \; f(x) = x' \mathrm{diag}(5, -1) x \quad \text{s.t.} \quad x_1 + x_2 \le -1

PCPO (Yang et al., 2020), appendix "Comparison of Optimization Paths" (label appendix:section_optimizationPath).
The paper names neither H nor delta nor the number of steps; here H = |Hessian of f| = diag(10, 2). Every step is
made by `pcpo.rules.pcpo`; every verdict is computed from those steps. docs/experiments/optimization-path.md has the
derivation by hand.
"""

import json
import logging
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pcpo import rules
from pcpo.core import LocalModel
from pcpo.experiments import plots

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

PROJECTIONS = ("kl", "l2")
CLAIMED = ((0.75, -1.75), (0.25, -1.25), (-0.25, -0.75))
"""Where the paper says that the KL direction is zero."""
START = (0.5, -2.0)
"""Where the paper's paths start."""
ZERO = 1e-6
"""A direction counts as zero when it is shorter than this fraction of the reward step, in the norm of H."""

_log = logging.getLogger(__name__)
_NAMES = {"kl": "KL", "l2": "L2"}
_COLORS = {"kl": plots.KL, "l2": plots.L2}
_KEPT = 200  # points of each path in the JSON file
_BLOCK = 1025  # points whose directions are computed at once
_REACH = 8.0  # how far along the boundary directions are examined: x1 in [-8, 8]


class Directions(NamedTuple):
    """One update of PCPO from each of n points."""

    points: Float[np.ndarray, "n 2"]
    steps: Float[np.ndarray, "n 2"]
    shares: Float[np.ndarray, " n"]
    """``|step|_H / sqrt(2 delta)``: 1 for the untouched reward step, 0 at a stationary point."""


class Walk(NamedTuple):
    """The points that repeated updates visit, and f there."""

    points: Float[np.ndarray, "visited 2"]
    f: Float[np.ndarray, " visited"]
    last_share: float
    """Share of the update from the last point."""


class Ends(NamedTuple):
    """Where paths from a grid of feasible points end."""

    starts: Float[np.ndarray, "n 2"]
    ends: Float[np.ndarray, "n 2"]
    last_shares: Float[np.ndarray, " n"]


class Verdict(NamedTuple):
    """One claim of the paper and what became of it."""

    claim: str
    place: str
    verdict: str
    """``holds``, ``fails``, ``partly`` or ``untested``."""
    evidence: str


class Measurements(NamedTuple):
    """All numbers of the experiment, by projection where they depend on it."""

    delta: float
    steps: int
    start: tuple[float, float]
    claimed: dict[str, Directions]
    """At the paper's three points."""
    boundary: dict[str, Directions]
    """Along x1 + x2 = -1."""
    field: dict[str, Directions]
    """Over the plane."""
    zeros: dict[str, Float[np.ndarray, "k 2"]]
    """Where the directions vanish on the boundary."""
    curvature_along_boundary: float
    """t'(Hessian of f)t for the unit vector t along the boundary; positive: f has no maximum there."""
    walks: dict[str, Walk]
    """From the start."""
    others: dict[str, Ends]
    """From a grid of feasible points."""


def reproduce(
    directory: Path, *, delta: float = 1e-3, steps: int = 2000, start: tuple[float, float] = START
) -> list[Path]:
    """Computes the example, draws the paper's two figures and judges its claims.

    Args:
        directory: Where the files go; it is made if missing, and files of the same names are replaced.
        delta: KL radius of each reward step.
        steps: Updates along each path.
        start: Where the paths start.

    Returns:
        ``optimization-path-directions`` and ``optimization-path-paths``, each as ``.png`` and ``.svg``, and
        ``optimization-path.json``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _log.info("computing directions, and %s steps along each path", f"{steps:,}")
    found = measure(delta, steps, start)
    _log.info("drawing")
    with plots.style():
        pictures = [
            *plots.save(draw_directions(found), directory, "optimization-path-directions"),
            *plots.save(draw_paths(found), directory, "optimization-path-paths"),
        ]
    numbers = directory / "optimization-path.json"
    numbers.write_text(_dump(as_json(found)), encoding="utf-8")
    return [*pictures, numbers]


# The problem, and PCPO on it.


def objective(x: Float[Array, "2"]) -> Float[Array, ""]:
    """``x' diag(5, -1) x``, to be maximised."""
    return x @ (jnp.array([5.0, -1.0], x.dtype) * x)


def local_model(x: Float[Array, "2"]) -> LocalModel:
    """What PCPO sees at x: the exact gradient, the constraint, and H = |Hessian of f| (which is diagonal)."""
    H = jnp.abs(jax.hessian(objective)(x))
    return LocalModel(g=jax.grad(objective)(x), a=jnp.ones((1, 2), x.dtype), b=jnp.sum(x)[None] + 1.0, fvp=H.__matmul__)


def update(x: Float[Array, "2"], delta: ArrayLike, projection: str) -> tuple[Float[Array, "2"], Float[Array, ""]]:
    """PCPO's step from x, and its length as a share of the reward step's, in the norm of H."""
    rule = rules.pcpo(delta, projection)
    step, _, info = rule.update(local_model(x), rule.init(1))
    return step, jnp.sqrt(info.predicted_kl / delta)


@partial(jax.jit, static_argnames="projection")
def directions(
    points: Float[Array, "n 2"], delta: ArrayLike, projection: str
) -> tuple[Float[Array, "n 2"], Float[Array, " n"]]:
    """`update` from many points."""
    return jax.vmap(lambda x: update(x, delta, projection))(points)


@partial(jax.jit, static_argnames=("steps", "projection"))
def walk(starts: Float[Array, "n 2"], delta: ArrayLike, steps: int, projection: str) -> Float[Array, "visited n 2"]:
    """The points that ``steps`` updates visit from each start, the start included."""

    def advance(points: Float[Array, "n 2"], _: None) -> tuple[Float[Array, "n 2"], Float[Array, "n 2"]]:
        moved = points + directions(points, delta, projection)[0]
        return moved, moved

    return jnp.concatenate([starts[None], jax.lax.scan(advance, starts, length=steps)[1]])


# Measuring.


def measure(delta: float = 1e-3, steps: int = 2000, start: tuple[float, float] = START) -> Measurements:
    """All numbers of the experiment, in float64 whatever jax is set to."""
    with jax.enable_x64(True):
        tangent = jnp.array([1.0, -1.0]) / jnp.sqrt(2.0)
        along = np.linspace(-_REACH, _REACH, 1025)
        walks = {p: _walks(start, delta, steps, p) for p in PROJECTIONS}
        return Measurements(
            delta=delta,
            steps=steps,
            start=start,
            claimed={p: _directions(np.array(CLAIMED), delta, p) for p in PROJECTIONS},
            boundary={p: _directions(on_boundary(along), delta, p) for p in PROJECTIONS},
            field={p: _directions(_field_points(), delta, p) for p in PROJECTIONS},
            zeros={p: zeros_on_boundary(along, delta, p) for p in PROJECTIONS},
            curvature_along_boundary=float(tangent @ jax.hessian(objective)(tangent) @ tangent),
            walks={p: walks[p][0] for p in PROJECTIONS},
            others={p: walks[p][1] for p in PROJECTIONS},
        )


def on_boundary(x1: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
    """The points of ``x1 + x2 = -1`` with these first coordinates."""
    return np.stack([x1, -1.0 - x1], axis=1)


def zeros_on_boundary(along: Float[np.ndarray, " n"], delta: float, projection: str) -> Float[np.ndarray, "k 2"]:
    """The points between the first and last of ``along`` at which the direction vanishes.

    Every local minimum of the share that is small on the grid is looked at through ever smaller grids, so that
    zeros are found whether or not the direction changes sign there.
    """
    shares = _directions(on_boundary(along), delta, projection).shares
    inner = shares[1:-1]
    candidates = np.flatnonzero((inner < 0.1) & (inner <= shares[:-2]) & (inner <= shares[2:])) + 1
    found: list[float] = []
    for candidate in along[candidates]:
        x1, share = _smallest_near(float(candidate), along, delta, projection)
        if share < ZERO and not any(abs(x1 - other) < 1e-6 for other in found):
            found.append(x1)
    return on_boundary(np.array(found, dtype=float))


def _smallest_near(x1: float, along: Float[np.ndarray, " n"], delta: float, projection: str) -> tuple[float, float]:
    """The place and the value of the smallest share within one spacing of ``along`` around x1."""
    width, smallest = float(along[1] - along[0]), np.inf
    for _ in range(4):
        closer = np.linspace(x1 - width, x1 + width, len(along))
        shares = _directions(on_boundary(closer), delta, projection).shares
        x1, smallest, width = float(closer[np.argmin(shares)]), float(shares.min()), float(closer[1] - closer[0])
    return x1, smallest


def _directions(points: Float[np.ndarray, "n 2"], delta: float, projection: str) -> Directions:
    """`directions` in blocks of one shape, so that it is compiled once for all uses."""
    n = len(points)
    blocks = np.resize(points, (-(-n // _BLOCK), _BLOCK, 2))
    done = [directions(jnp.asarray(block, float), delta, projection) for block in blocks]
    steps, shares = (np.concatenate([np.asarray(part) for part in parts])[:n] for parts in zip(*done, strict=True))
    return Directions(points, steps, shares)


def _walks(start: tuple[float, float], delta: float, steps: int, projection: str) -> tuple[Walk, Ends]:
    """The path from the start, and the ends of the paths from a grid of feasible points, in one go."""
    others = _feasible(_grid((-2.125, 2.125), (-3.125, 1.125), 0.25))
    starts = np.concatenate([np.array([start], dtype=float), others])
    visited = walk(jnp.asarray(starts, float), delta, steps, projection)
    f = jax.vmap(objective)(visited[:, 0])
    last = _directions(np.asarray(visited[-1]), delta, projection)
    first = Walk(np.asarray(visited[:, 0]), np.asarray(f), float(last.shares[0]))
    return first, Ends(others, last.points[1:], last.shares[1:])


def _field_points() -> Float[np.ndarray, "n 2"]:
    """A grid with spacing 1/4: it meets the boundary exactly, at the paper's three points among others."""
    return _grid((-2.0, 2.0), (-2.5, 1.0), 0.25)


def _grid(x1: tuple[float, float], x2: tuple[float, float], spacing: float) -> Float[np.ndarray, "n 2"]:
    columns = np.arange(x1[0], x1[1] + spacing / 2, spacing)
    rows = np.arange(x2[0], x2[1] + spacing / 2, spacing)
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)


def _feasible(points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "k 2"]:
    return points[points.sum(axis=1) <= -1.0]


# Judging.


def fate(start: Any, end: Any, last_share: float) -> str:
    """``converged``, ``diverged`` or ``moving``: what a path that ends like this did.

    A path has converged when its next step would be under a hundredth of a reward step. It has diverged when it is
    three times as far out as it started, and at least 3 away from the origin, without having slowed down to that.
    """
    if last_share < 0.01:
        return "converged"
    return "diverged" if np.linalg.norm(end) > 3.0 * max(1.0, float(np.linalg.norm(start))) else "moving"


def judge(found: Measurements) -> list[Verdict]:
    """The verdict on every claim of the appendix section, in its order."""
    return [
        _on_infinity(found),
        _on_different_points(found),
        _on_kl_points(found),
        _on_three_points(found),
        _on_no_l2_points(found),
        _on_path(found, "kl"),
        _on_path(found, "l2"),
        _on_different_solutions(found),
        _on_zero_gradient(found),
    ]


def _on_infinity(found: Measurements) -> Verdict:
    curved_up = found.curvature_along_boundary > 0.0
    return Verdict(
        "An optimal solution to this constrained optimization problem is infinity.",
        "text",
        "holds" if curved_up else "fails",
        f"f has curvature {found.curvature_along_boundary:+g} along the boundary, so it grows without limit both ways",
    )


def _on_different_points(found: Measurements) -> Verdict:
    kl, l2 = found.zeros["kl"], found.zeros["l2"]
    same = kl.shape == l2.shape and np.allclose(kl, l2, atol=1e-6)
    return Verdict(
        "A stationary point of PCPO with KL projection is different from the one with L2 projection.",
        "text, Theorem PCPO_converge",
        "fails" if same else "holds",
        f"on the boundary, up to |x1| = {_REACH:g}, the KL direction vanishes at {_points(kl)}, the L2 direction at "
        f"{_points(l2)}",
    )


def _on_kl_points(found: Measurements) -> Verdict:
    zeros = found.zeros["kl"]
    gradients = zeros * np.array([10.0, -2.0])
    along_a = bool(np.allclose(gradients[:, 0], gradients[:, 1], atol=1e-6) and (gradients >= 0.0).all())
    return Verdict(
        "PCPO with KL projection has stationary points with g in -a in the boundary of the constraint set.",
        "text and Fig. OptPath(a)",
        "holds" if len(zeros) and along_a else "fails",
        f"at {_points(zeros)} the gradient of f is {_points(gradients)}, and a is (1, 1)",
    )


def _on_three_points(found: Measurements) -> Verdict:
    shares = found.claimed["kl"].shares
    zero = shares < ZERO
    curvature = found.curvature_along_boundary
    kind = "minimum" if curvature > 0.0 else "maximum"
    return Verdict(
        "The KL update direction is zero at (0.75, -1.75), (0.25, -1.25) and (-0.25, -0.75).",
        "text and Fig. OptPath(a)",
        "holds" if zero.all() else "partly" if zero.any() else "fails",
        f"zero at {zero.sum()} of 3: its length there is {', '.join(_share(s) for s in shares)} of a reward step; "
        f"and where it vanishes, f has a {kind} along the boundary (curvature {curvature:+g})",
    )


def _on_no_l2_points(found: Measurements) -> Verdict:
    boundary = found.boundary["l2"]
    least = int(np.argmin(boundary.shares))
    return Verdict(
        "PCPO with L2 norm projection does not have stationary points in the boundary.",
        "text and Fig. OptPath(a)",
        "fails" if len(found.zeros["l2"]) else "holds",
        f"up to |x1| = {_REACH:g} its direction is never under {boundary.shares[least]:.3f} of a reward step "
        f"(at x1 = {boundary.points[least, 0]:g})",
    )


def _on_path(found: Measurements, projection: str) -> Verdict:
    walked, everywhere = found.walks[projection], found.others[projection]
    became = fate(walked.points[0], walked.points[-1], walked.last_share)
    expected = {"kl": "converged", "l2": "diverged"}[projection]
    others = [fate(*each) for each in zip(everywhere.starts, everywhere.ends, everywhere.last_shares, strict=True)]
    saying = {"kl": "converges to a local optimum", "l2": "converges to infinity"}[projection]
    return Verdict(
        f"Starting at (0.5, -2), PCPO with {_NAMES[projection]} projection {saying}.",
        "text and Fig. OptPath(b)",
        "untested" if became == "moving" or found.start != START else "holds" if became == expected else "fails",
        f"from {_point(walked.points[0])} it is at {_point(walked.points[-1])} after {found.steps:,} steps, f = "
        f"{walked.f[-1]:,.1f}, still making {walked.last_share:.2f} of a reward step; of {len(others)} other feasible "
        f"starts {others.count('converged')} converge",
    )


def _on_different_solutions(found: Measurements) -> Verdict:
    kl, l2 = (found.walks[p] for p in PROJECTIONS)
    fates = [fate(p.points[0], p.points[-1], p.last_share) for p in (kl, l2)]
    apart = float(kl.points[-1] @ l2.points[-1]) < 0.0
    moving = "moving" in fates or found.start != START
    said = "neither converges" if fates == ["diverged", "diverged"] else f"KL has {fates[0]}, L2 has {fates[1]}"
    return Verdict(
        "Both projections converge to different solutions.",
        "caption of Fig. OptPath",
        "untested" if moving else "holds" if "diverged" not in fates else "partly" if apart else "fails",
        f"{said}: after {found.steps:,} steps KL is at {_point(kl.points[-1])} and L2 at {_point(l2.points[-1])}",
    )


def _on_zero_gradient(found: Measurements) -> Verdict:
    del found
    return Verdict(
        "If the gradient is zero in the constraint set or its boundary, both may converge to the same point.",
        "text",
        "untested",
        "here the gradient is zero at the origin only, which violates the constraint; a zero gradient gives a zero "
        "step under either projection by definition",
    )


def _share(share: float) -> str:
    return "0" if share < ZERO else f"{share:.3f}"


def _point(x: Any) -> str:
    return f"({float(x[0]):.4g}, {float(x[1]):.4g})"


def _shown(x: Any) -> str:
    """For figures: two decimals at most, and a true minus sign."""
    texts = [f"{float(v):.2f}".rstrip("0").rstrip(".") for v in x]
    return f"({texts[0]}, {texts[1]})".replace("-", "\u2212")


def _points(x: Float[np.ndarray, "k 2"]) -> str:
    return " and ".join(_point(p) for p in x) or "no point"


def as_json(found: Measurements) -> dict[str, Any]:
    """What goes into ``optimization-path.json``."""
    return {
        "experiment": "optimization-path",
        "source": "PCPO (Yang et al., 2020), appendix:section_optimizationPath",
        "problem": {"maximise": "5 x1^2 - x2^2", "subject_to": "x1 + x2 <= -1", "H": [[10.0, 0.0], [0.0, 2.0]]},
        "delta": found.delta,
        "steps": found.steps,
        "start": list(found.start),
        "units": "share: length of a step in the norm of H, divided by that of the reward step, sqrt(2 delta)",
        "claimed_stationary_points": [
            {
                "x": list(x),
                "gradient": [10.0 * x[0], -2.0 * x[1]],
                **{
                    p: {
                        "step": found.claimed[p].steps[i].tolist(),
                        "norm": float(np.linalg.norm(found.claimed[p].steps[i])),
                        "share": float(found.claimed[p].shares[i]),
                    }
                    for p in PROJECTIONS
                },
            }
            for i, x in enumerate(CLAIMED)
        ],
        "directions_vanish_on_boundary_at": {p: found.zeros[p].tolist() for p in PROJECTIONS},
        "curvature_of_f_along_boundary": found.curvature_along_boundary,
        "paths": {p: _path_as_json(found, p) for p in PROJECTIONS},
        "other_feasible_starts": {p: _ends_as_json(found.others[p]) for p in PROJECTIONS},
        "verdicts": [v._asdict() for v in judge(found)],
    }


def _dump(numbers: dict[str, Any]) -> str:
    """Indented JSON with lists of numbers on one line."""
    text = json.dumps(numbers, indent=1)
    return re.sub(r"\[[^][{}\"]*\]", lambda match: re.sub(r"\s+", " ", match[0]), text) + "\n"


def _path_as_json(found: Measurements, projection: str) -> dict[str, Any]:
    walked = found.walks[projection]
    kept = np.unique(np.linspace(0, found.steps, min(_KEPT, found.steps) + 1).round().astype(int))
    excess = walked.points.sum(axis=1) + 1.0
    reached = np.flatnonzero(excess > -1e-9)
    nearest = [float(np.linalg.norm(walked.points - zero, axis=1).min()) for zero in found.zeros["kl"]]
    return {
        "fate": fate(walked.points[0], walked.points[-1], walked.last_share),
        "end": walked.points[-1].tolist(),
        "f_start": float(walked.f[0]),
        "f_lowest": float(walked.f.min()),
        "f_end": float(walked.f[-1]),
        "steps_that_lower_f": int(np.sum(np.diff(walked.f) < 0.0)),
        "largest_fall_of_f": float(np.max(np.maximum.accumulate(walked.f) - walked.f)),
        "reaches_boundary_at_step": int(reached[0]) if len(reached) else None,
        "reaches_boundary_at": walked.points[reached[0]].tolist() if len(reached) else None,
        "largest_violation": float(max(0.0, excess.max())),
        "nearest_to_kl_stationary_points": nearest,
        "last_share": walked.last_share,
        "step": kept.tolist(),
        "x": walked.points[kept].round(9).tolist(),
        "f": walked.f[kept].round(9).tolist(),
    }


def _ends_as_json(others: Ends) -> dict[str, Any]:
    fates = [fate(*each) for each in zip(others.starts, others.ends, others.last_shares, strict=True)]
    right = others.ends[:, 0] > 0.0
    return {
        "starts": len(fates),
        **{kind: fates.count(kind) for kind in ("converged", "diverged", "moving")},
        "end_with_x1_above_0": int(right.sum()),
        "end_with_x1_below_0": int((~right).sum()),
    }


# Drawing.


def draw_directions(found: Measurements) -> "matplotlib.figure.Figure":
    """Both directions over the plane, and along the boundary: the paper's Fig. OptPath(a)."""
    figure = plots.new_figure(9.0, 7.9)
    figure.suptitle(
        "Circled: the paper's three stationary points, with the length of the step there (1 = the reward step)",
        fontsize=9.5,
    )
    grid = figure.add_gridspec(2, 2, height_ratios=(1.55, 1.0))
    for column, projection in enumerate(PROJECTIONS):
        _draw_field(figure.add_subplot(grid[0, column]), found, projection)
    _draw_along_boundary(figure.add_subplot(grid[1, :]), found)
    return figure


def draw_paths(found: Measurements) -> "matplotlib.figure.Figure":
    """Both paths in the plane, and f along them: the paper's Fig. OptPath(b)."""
    figure = plots.new_figure(9.6, 5.0)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.3, 1.0))
    _draw_plane(figure.add_subplot(grid[:, 0]), found)
    early = min(found.steps, 140)
    first = figure.add_subplot(grid[0, 1])
    _draw_objective(first, found, early, f"$f$ during the first {early:,} steps")
    _mark_fall(first, found.walks["l2"].f[: early + 1])
    _draw_objective(figure.add_subplot(grid[1, 1]), found, found.steps, f"$f$ during all {found.steps:,} steps")
    return figure


def _draw_field(axes: "matplotlib.axes.Axes", found: Measurements, projection: str) -> None:
    color, field, claimed = _COLORS[projection], found.field[projection], found.claimed[projection]
    axes.set(xlim=(-2.2, 2.2), ylim=(-2.7, 1.2), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axes.set_title(f"{_NAMES[projection]} projection", color=color, fontweight="bold")
    _draw_landscape(axes)
    units = field.steps / np.maximum(np.linalg.norm(field.steps, axis=1, keepdims=True), 1e-300)
    excess = field.points.sum(axis=1) + 1.0
    for part, shade in ((excess < 0.0, "#4d4d4d"), (excess > 0.0, "#c09aa2")):
        axes.quiver(
            *field.points[part].T,
            *(0.17 * units[part].T),
            angles="xy",
            scale_units="xy",
            scale=1.0,
            pivot="mid",
            color=shade,
            width=0.0032,
            headwidth=4.2,
            zorder=3,
        )
    for x, share, unit in zip(field.points, field.shares, units, strict=True):
        if x.sum() == -1.0 and -2.0 < x[0] < 1.7:
            axes.plot(*x, "o", color=color, markersize=3.2, zorder=6)
            if share > ZERO:
                plots.arrow(axes, x, x + 0.27 * share * unit, color, width=2.2, head=9.0, zorder=5)
    for x, share in zip(claimed.points, claimed.shares, strict=True):
        axes.plot(*x, "o", color="none", markeredgecolor=plots.INK, markeredgewidth=1.2, markersize=11, zorder=6)
        plots.label(axes, x, _share(share), offset=(9.0, 10.0), align="left")
    plots.label(axes, (2.1, 1.0), "$x_1 + x_2 > -1$", "#9c4f5e", align="right")


def _draw_along_boundary(axes: "matplotlib.axes.Axes", found: Measurements) -> None:
    axes.set(xlim=(-1.5, 3.0), ylim=(-1.6, 1.05), xlabel="$x_1$ on the boundary ($x_2 = -1 - x_1$)")
    axes.set_ylabel("step along the boundary\n(1 = the reward step)")
    axes.set_title("Along the boundary", fontweight="bold")
    axes.axhline(0.0, color=plots.GREY, linewidth=0.8, zorder=1)
    for x, _ in CLAIMED:
        axes.axvline(x, color=plots.GREY, linewidth=0.8, linestyle=(0, (3, 3)), zorder=1)
    for projection in PROJECTIONS:
        along, claimed, color = found.boundary[projection], found.claimed[projection], _COLORS[projection]
        axes.plot(along.points[:, 0], _signed(along), color=color, linewidth=2.2, zorder=3)
        heights = _signed(claimed)
        axes.plot(*(claimed.points[:, 0], heights), "o", color=color, markeredgecolor="white", markersize=7, zorder=5)
    plots.label(axes, (2.2, 0.54), "KL projection", plots.KL, offset=(0, 11))
    plots.label(axes, (2.2, -0.21), "L2 projection: never zero", plots.L2, offset=(0, -11))
    plots.label(axes, (-1.45, -1.0), "constraint inactive:\nboth take the reward step", offset=(0, 18), align="left")
    for zero in found.zeros["kl"]:
        for sign in (-1.0, 1.0):
            plots.arrow(axes, (zero[0] + 0.04 * sign, 0.0), (zero[0] + 0.24 * sign, 0.0), plots.KL, 2.2, head=11.0)
    if len(found.zeros["kl"]) == 1 and found.curvature_along_boundary > 0.0:
        zero = found.zeros["kl"][0]
        text = f"the only zero, {_shown(zero)}:\na minimum of $f$ along the boundary,\nso it repels"
        plots.label(axes, (zero[0], 0.0), text, plots.KL, offset=(-10.0, 34.0), align="right")


def _signed(found: Directions) -> Float[np.ndarray, " n"]:
    """Shares, positive where x1 grows along the boundary."""
    return found.shares * np.sign(found.steps[:, 0] - found.steps[:, 1])


def _draw_plane(axes: "matplotlib.axes.Axes", found: Measurements) -> None:
    (x1, x2), margin = found.start, 0.5
    axes.set(
        xlim=(min(-2.2, x1 - margin), max(2.2, x1 + margin)),
        ylim=(min(-2.9, x2 - margin), max(1.2, x2 + margin)),
        aspect="equal",
        xlabel="$x_1$",
        ylabel="$x_2$",
    )
    _draw_landscape(axes)
    kl, l2 = (found.walks[p].points for p in PROJECTIONS)
    together = np.linalg.norm(kl - l2, axis=1) < 1e-9
    parting = int(np.argmin(together)) if not together.all() else found.steps
    for points, color in ((kl[max(parting - 1, 0) :], plots.KL), (l2[max(parting - 1, 0) :], plots.L2)):
        _draw_trail(axes, points, color, ahead=0.9)
    _draw_trail(axes, kl[: parting + 1], plots.INK, ahead=0.35)
    axes.plot(*found.start, "*", color="#c1121f", markeredgecolor="white", markersize=15, zorder=8)
    plots.label(axes, found.start, f"start {_shown(found.start)}", offset=(-9.0, -3.0), align="right")
    for zero in found.zeros["kl"]:
        axes.plot(*zero, "o", color="white", markeredgecolor=plots.INK, markeredgewidth=1.3, markersize=8, zorder=8)
        text = f"{_shown(zero)}:\nthe KL direction is zero,\nbut $f$ is at its lowest\non the boundary"
        plots.label(axes, zero, text, offset=(11.0, 24.0), align="left")
    for projection, corner, align in (("kl", (2.1, -0.1), "right"), ("l2", (-2.1, -2.5), "left")):
        walked = found.walks[projection]
        end = f"{_shown(walked.points[-1])},\n$f$ = {walked.f[-1]:,.0f}"
        text = f"{_NAMES[projection]} after {found.steps:,} steps:\n{end}"
        plots.label(axes, corner, text, _COLORS[projection], align=align)


def _draw_trail(axes: "matplotlib.axes.Axes", points: Float[np.ndarray, "n 2"], color: str, ahead: float) -> None:
    """A path with an arrowhead every ``ahead`` units of length, as far as the axes show it."""
    axes.plot(*points.T, color=color, linewidth=2.4, zorder=4, solid_capstyle="butt")
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    for distance in np.arange(ahead, min(travelled[-1], 12.0) + 1e-9, ahead):
        i = int(np.searchsorted(travelled, distance - 1e-9))
        if left < points[i, 0] < right and bottom < points[i, 1] < top:
            plots.arrow(axes, points[i - 1], points[i], color, width=1.0, head=15.0, zorder=5)


def _draw_objective(axes: "matplotlib.axes.Axes", found: Measurements, last: int, title: str) -> None:
    axes.set_title(title)
    axes.set(xlabel="step", xlim=(0, last))
    axes.locator_params(nbins=5)
    for projection in PROJECTIONS:
        f = found.walks[projection].f[: last + 1]
        axes.plot(np.arange(len(f)), f, color=_COLORS[projection], linewidth=2.0)
        plots.label(axes, (last, f[-1]), _NAMES[projection], _COLORS[projection], offset=(5, 0), align="left")


def _mark_fall(axes: "matplotlib.axes.Axes", f: Float[np.ndarray, " n"]) -> None:
    """Says where the L2 path loses reward, if it does."""
    lost = np.maximum.accumulate(f) - f
    lowest = int(np.argmax(lost))
    if lost[lowest] > 0.05:
        plots.label(axes, (lowest, f[lowest]), "L2 loses reward at first", plots.L2, offset=(6, -11))


def _draw_landscape(axes: "matplotlib.axes.Axes") -> None:
    """Level lines of f and the constraint, within the limits of the axes."""
    x1, x2 = np.meshgrid(np.linspace(*axes.get_xlim(), 81), np.linspace(*axes.get_ylim(), 81))
    f = 5.0 * x1**2 - x2**2
    axes.contour(x1, x2, f, levels=np.arange(-8.0, 60.0, 2.0), colors="#dcdcdc", linewidths=0.7, zorder=0.5)
    plots.forbid(axes, (1.0, 1.0), 1.0)
