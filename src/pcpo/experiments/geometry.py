r"""The geometry of one update in two dimensions, one picture for each kind of rule, for docs/algorithms.

Every step in the pictures is made by `pcpo.rules` on a small `LocalModel`; only trust regions, circles and level lines
are drawn from their equations.
"""

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pcpo import rules
from pcpo.core import LocalModel, StepInfo, UpdateRule
from pcpo.experiments import plots

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_log = logging.getLogger(__name__)
_DELTA = 0.5
_ORIGIN = np.zeros(2)
_EDGE = "#9c4f5e"  # text on the forbidden side


class Scene(NamedTuple):
    """One update in two dimensions: what a rule is given."""

    g: tuple[float, float]
    a: tuple[float, float]
    b: float
    H: tuple[tuple[float, float], tuple[float, float]]


class Taken(NamedTuple):
    """A step that a rule took in a scene, and what the rule said about it."""

    d: Float[np.ndarray, "2"]
    info: StepInfo

    @property
    def kl(self) -> float:
        """Predicted KL divergence, in units of delta."""
        return float(self.info.predicted_kl) / _DELTA


_RULES = {
    "trpo": rules.trpo(_DELTA),
    "pcpo-kl": rules.pcpo(_DELTA, "kl"),
    "pcpo-l2": rules.pcpo(_DELTA, "l2"),
    "cpo": rules.cpo(_DELTA, line_search=False),
}


def take(rule: str, scene: Scene) -> Taken:
    """The step of one of ``_RULES`` in a scene, in float64 whatever jax is set to."""
    with jax.enable_x64(True):
        step, info = _step(rule, *(jnp.asarray(x, float) for x in scene))
        return Taken(np.asarray(step), jax.tree.map(np.asarray, info))


def take_at_prices(prices: Float[np.ndarray, " k"], scene: Scene) -> list[Taken]:
    """The steps of FPO, one for each multiplier."""
    with jax.enable_x64(True):
        steps, infos = _steps_at_prices(jnp.asarray(prices, float), *(jnp.asarray(x, float) for x in scene))
        one = [jax.tree.map(lambda x, i=i: np.asarray(x)[i], infos) for i in range(len(prices))]
        return [Taken(step, info) for step, info in zip(np.asarray(steps), one, strict=True)]


@partial(jax.jit, static_argnames="rule")
def _step(rule: str, g: Array, a: Array, b: Array, H: Array) -> tuple[Array, StepInfo]:
    return _apply(_RULES[rule], g, a, b, H)


@jax.jit
def _steps_at_prices(prices: Array, g: Array, a: Array, b: Array, H: Array) -> tuple[Array, StepInfo]:
    return jax.vmap(lambda price: _apply(rules.fpo(_DELTA, price), g, a, b, H))(prices)


def _apply(rule: UpdateRule, g: Array, a: Array, b: Array, H: Array) -> tuple[Array, StepInfo]:
    step, _, info = rule.update(LocalModel(g=g, a=a[None], b=b[None], fvp=H.__matmul__), rule.init(1))
    return step, info


def _metric(long: float, short: float, degrees: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The H whose trust region at _DELTA is an ellipse with these half-axes, the long one at this angle."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    R = np.array([[c, -s], [s, c]])
    H = R @ np.diag([2.0 * _DELTA / long**2, 2.0 * _DELTA / short**2]) @ R.T
    return (float(H[0, 0]), float(H[0, 1])), (float(H[1, 0]), float(H[1, 1]))


H = _metric(long=1.55, short=0.66, degrees=24.0)
FREE = Scene(g=(0.35, 1.0), a=(0.0, 1.0), b=-9.0, H=H)
"""A constraint so far away that it plays no part."""
FEASIBLE = Scene(g=(0.8, -0.6), a=(1.0, -0.35), b=-0.55, H=H)
"""The limit is kept, and the reward step would break it."""
VIOLATED = Scene(g=(0.8, -0.6), a=(1.0, -0.35), b=1.65, H=H)
"""The limit is broken by more than a step within the trust region can mend."""
PRICES = (0.0, 0.4, 0.75, 1.0, 2.0)
"""Multipliers whose steps are shown in the picture of PDO and FPO, besides the one that ends on the limit."""


def reproduce(directory: Path) -> list[Path]:
    """Draws ``geometry-trpo``, ``geometry-pcpo``, ``geometry-cpo`` and ``geometry-penalty``.

    Args:
        directory: Where the pictures go; it is made if missing, and pictures of the same names are replaced.

    Returns:
        The paths of the pictures, each as ``.png`` and ``.svg``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pictures: list[Path] = []
    with plots.style():
        for name, draw in (("trpo", draw_trpo), ("pcpo", draw_pcpo), ("cpo", draw_cpo), ("penalty", draw_penalty)):
            _log.info("drawing geometry-%s", name)
            pictures += plots.save(draw(), directory, f"geometry-{name}")
    return pictures


def draw_trpo() -> "matplotlib.figure.Figure":
    """The natural step: where a level line of the reward touches the trust region."""
    figure = plots.new_figure(6.0, 3.9)
    axes = _stage(figure.add_subplot(), (-1.7, 2.5), (-1.1, 1.6))
    natural, g = take("trpo", FREE), np.array(FREE.g)
    _trust_region(axes)
    _name_region(axes, (-0.95, -0.5))
    for fraction in (-1.0, -0.5, 0.0, 0.5, 1.0):
        _level_line(axes, g, fraction * float(g @ natural.d), touching=fraction == 1.0)
    slope = float(np.degrees(np.arctan2(-g[0], g[1])))
    plots.label(
        axes, (-0.75, 1.5), r"largest $g \cdot d$ within the region", plots.GREY, (0, 8), "left", rotation=slope
    )
    plots.label(axes, (1.3, -0.45), r"level lines of $g \cdot d$", plots.GREY, (0, 8), "left", rotation=slope)
    plots.arrow(axes, _ORIGIN, 0.85 * g, plots.KL, width=1.8)
    plots.label(axes, 0.55 * g, "$g$", plots.KL, (-9, 3))
    plots.arrow(axes, _ORIGIN, natural.d, plots.INK, width=2.4)
    plots.label(axes, natural.d, r"$d = \eta\, H^{-1} g$", offset=(10, 7), align="left")
    _here(axes)
    return figure


def draw_pcpo() -> "matplotlib.figure.Figure":
    """The two steps of PCPO under both metrics: from inside the constraint set, and from outside it."""
    figure = plots.new_figure(10.4, 4.2)
    left, right = figure.subplots(1, 2)
    left.set_title("$b < 0$: the limit is kept, the reward step would break it")
    _stage(left, (-1.6, 2.3), (-1.25, 1.45))
    kl, l2 = _draw_projections(left, FEASIBLE, reach=0.5)
    _name_region(left, (-0.95, -0.55))
    plots.label(left, l2.d, "L2 projection:\nnearest parameters", plots.L2, (-8, 11), "right")
    plots.label(left, kl.d, "KL projection:\nnearest policy", plots.KL, (-16, -22), "right")
    right.set_title(r"$b > 0$: the limit is broken, and $\delta$ does not bound the way back")
    _stage(right, (-3.1, 2.3), (-1.65, 2.09))
    kl, l2 = _draw_projections(right, VIOLATED, reach=0.7)
    plots.label(right, l2.d, f"L2 projection:\n{_kl(l2)}", plots.L2, (-10, 6), "right")
    plots.label(right, kl.d, f"KL projection:\n{_kl(kl)}", plots.KL, (-10, 6), "right")
    return figure


def _draw_projections(axes: "matplotlib.axes.Axes", scene: Scene, reach: float) -> tuple[Taken, Taken]:
    """The reward step, and from its tip the projections, each with an arc of the sphere around it that they end on."""
    kl, l2, reward = take("pcpo-kl", scene), take("pcpo-l2", scene), take("trpo", scene)
    _half_space(axes, scene)
    _trust_region(axes)
    for projected, color, metric in ((kl, plots.KL, np.array(H)), (l2, plots.L2, np.eye(2))):
        away = projected.d - reward.d
        sphere = plots.ellipse(metric, 0.5 * float(away @ metric @ away), reward.d, points=721)
        near = np.linalg.norm(sphere - projected.d, axis=1) < reach
        axes.plot(*np.where(near[:, None], sphere, np.nan).T, color=color, linewidth=1.0, zorder=3)
        plots.arrow(axes, reward.d, projected.d, color, width=1.5, dashed=True)
        plots.arrow(axes, _ORIGIN, projected.d, color, width=2.4)
    _reward_step(axes, reward)
    _here(axes, (-9, 8) if scene.b < 0.0 else (7, 10))
    return kl, l2


def draw_cpo() -> "matplotlib.figure.Figure":
    """CPO's step in the active case, and its recovery step, beside what PCPO does there."""
    figure = plots.new_figure(10.4, 4.2)
    left, right = figure.subplots(1, 2)
    left.set_title("Active: CPO takes the most reward within trust region and limit")
    _stage(left, (-1.6, 2.3), (-1.25, 1.45))
    kl, cpo = _draw_beside_pcpo(left, FEASIBLE)
    plots.label(left, (0.17, 0.4), f"PCPO (KL):\n{_gain(kl)}\n{_kl(kl)}", plots.KL)
    plots.label(left, cpo.d, f"CPO: {_gain(cpo)}\n{_kl(cpo)}", plots.CPO, (8, -15), "left")
    right.set_title("Recovery: the trust region does not reach the limit")
    _stage(right, (-3.1, 2.3), (-1.65, 2.09))
    kl, cpo = _draw_beside_pcpo(right, VIOLATED)
    excess = float(cpo.info.predicted_costs[0]) + VIOLATED.b
    cpo_text = f"CPO recovers: {_kl(cpo)},\nstill {excess:.2f} above the limit"
    plots.label(right, (1.05, -1.0), cpo_text, plots.CPO)
    plots.label(right, (-1.05, -1.0), f"PCPO (KL): {_kl(kl)},\nback on the limit", plots.KL)
    return figure


def _draw_beside_pcpo(axes: "matplotlib.axes.Axes", scene: Scene) -> tuple[Taken, Taken]:
    reward, kl, cpo = take("trpo", scene), take("pcpo-kl", scene), take("cpo", scene)
    _half_space(axes, scene)
    _trust_region(axes)
    _reward_step(axes, reward)
    plots.arrow(axes, reward.d, kl.d, plots.KL, width=1.5, dashed=True)
    plots.arrow(axes, _ORIGIN, kl.d, plots.KL, width=2.4)
    plots.arrow(axes, _ORIGIN, cpo.d, plots.CPO, width=2.4)
    _here(axes)
    return kl, cpo


def draw_penalty() -> "matplotlib.figure.Figure":
    """PDO and FPO: the step turns from the reward to the cost as the multiplier grows."""
    figure = plots.new_figure(10.4, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    left.set_title(r"The step for $g - \lambda a$ turns with $\lambda$")
    _draw_fan(_stage(left, (-1.95, 2.0), (-1.2, 1.45)))
    right.set_title("What the step promises")
    _draw_promises(right)
    return figure


def price_on_the_limit(scene: Scene) -> float:
    """The multiplier whose step ends exactly on the limit: CPO's own, nu, from ``nu / lambda`` and ``1 / lambda``."""
    info = take("cpo", scene).info
    return float(info.multipliers[0] / info.eta)


def _draw_fan(axes: "matplotlib.axes.Axes") -> None:
    _half_space(axes, FEASIBLE)
    _trust_region(axes)
    exact = price_on_the_limit(FEASIBLE)
    prices = (*PRICES, exact)
    for price, step in zip(prices, take_at_prices(np.array(prices), FEASIBLE), strict=True):
        color = plots.CPO if price == exact else _shade(price)
        plots.arrow(axes, _ORIGIN, step.d, color, width=2.3)
        out = step.d / np.linalg.norm(step.d)
        names = {0.0: r"$\lambda$ = 0", exact: rf"$\lambda$ = {exact:.2f}: CPO's step"}
        text = names.get(price, f"{price:g}")
        plots.label(axes, step.d, text, color, (9.0 * out[0], 9.0 * out[1]), "right" if out[0] < 0 else "left")
    _here(axes)


def _draw_promises(axes: "matplotlib.axes.Axes") -> None:
    """Predicted reward and violation as functions of the multiplier."""
    prices = np.linspace(0.0, 2.0, 201)
    infos = [step.info for step in take_at_prices(prices, FEASIBLE)]
    exact = price_on_the_limit(FEASIBLE)
    axes.set(xlim=(0.0, 2.0), ylim=(-2.1, 1.25), xlabel=r"$\lambda$, the price of a unit of cost in reward")
    axes.axvspan(0.0, exact, color=plots.FORBIDDEN, linewidth=0.0, zorder=0)
    axes.axhline(0.0, color=plots.GREY, linewidth=0.8, zorder=1)
    axes.plot(prices, [float(i.predicted_reward) for i in infos], color=plots.INK, linewidth=2.2)
    axes.plot(prices, [float(i.predicted_costs[0]) + FEASIBLE.b for i in infos], color=_EDGE, linewidth=2.2)
    plots.point(axes, (exact, 0.0), plots.CPO, size=8.0)
    plots.label(axes, (1.45, -0.86), r"reward, $g \cdot d$", plots.INK, (0, 13))
    plots.label(axes, (1.45, -1.8), r"violation, $a \cdot d + b$", _EDGE, (0, 13))
    plots.label(axes, (exact, 0.0), "CPO", plots.CPO, (-8, -9), "right")
    plots.label(axes, (1.45, -1.28), "FPO keeps its $\\lambda$, PDO adds\n$\\beta b$ to it after every step")
    plots.label(axes, (exact / 2.0, -1.6), "too cheap:\nlimit broken", _EDGE)
    plots.label(axes, (1.3, 0.65), "too dear: reward given away\nfor cost that was allowed", plots.INK)


def _shade(price: float) -> str:
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return to_hex(mpl.colormaps["viridis"](0.7 * price / (price + 0.5)))


def _reward_step(axes: "matplotlib.axes.Axes", reward: Taken) -> None:
    plots.arrow(axes, _ORIGIN, reward.d, plots.INK, width=2.4)
    plots.label(axes, reward.d, "reward step", offset=(6, 2), align="left")


def _kl(step: Taken) -> str:
    return r"KL = $\delta$" if abs(step.kl - 1.0) < 5e-3 else rf"KL = {step.kl:.2g}$\,\delta$"


def _gain(step: Taken) -> str:
    return rf"$g \cdot d$ = {float(step.info.predicted_reward):.2f}"


def _stage(axes: "matplotlib.axes.Axes", x: tuple[float, float], y: tuple[float, float]) -> "matplotlib.axes.Axes":
    """Axes of equal aspect and fixed limits, without ticks or frame."""
    axes.set(xlim=x, ylim=y, aspect="equal")
    axes.set_axis_off()
    return axes


def _trust_region(axes: "matplotlib.axes.Axes") -> None:
    curve = plots.ellipse(H, _DELTA)
    axes.fill(*curve.T, color=plots.REGION, zorder=1, linewidth=0.0)
    axes.plot(*curve.T, color=plots.GREY, linewidth=1.2, zorder=2)


def _name_region(axes: "matplotlib.axes.Axes", at: tuple[float, float]) -> None:
    plots.label(axes, at, "trust region", plots.GREY, (0, 8))
    plots.label(axes, at, r"$\frac{1}{2}\, d^{T} H d \leq \delta$", plots.GREY, (0, -8))


def _half_space(axes: "matplotlib.axes.Axes", scene: Scene) -> None:
    """The forbidden side, and the name of its edge, along its upper end and on the allowed side."""
    ends = sorted(plots.forbid(axes, scene.a, scene.b), key=lambda end: float(end[1]))
    slope = float(np.degrees(np.arctan2(*(ends[1] - ends[0])[::-1])))
    plots.label(axes, ends[1], r"$a \cdot d + b = 0$", offset=(-9, -1), align="right", rotation=slope)


def _here(axes: "matplotlib.axes.Axes", offset: plots.Pair = (-9, 8)) -> None:
    plots.point(axes, _ORIGIN)
    plots.label(axes, _ORIGIN, r"$\theta_k$", offset=offset)


def _level_line(axes: "matplotlib.axes.Axes", g: Any, height: float, touching: bool) -> None:
    """The line ``g . d = height``."""
    foot = height * g / (g @ g)
    along = np.array([-g[1], g[0]]) / np.linalg.norm(g) * 5.0
    ends = np.stack([foot - along, foot + along]).T
    axes.plot(*ends, color=plots.GREY if touching else "#c4c4c4", linewidth=1.4 if touching else 0.8, zorder=1.5)
