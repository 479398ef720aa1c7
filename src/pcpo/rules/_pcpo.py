"""PCPO: a reward step, then a projection onto the constraints."""

import math
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike

from pcpo.core.metric import KL, L2, Metric, directions
from pcpo.core.projection import project_cyclic, project_dykstra
from pcpo.core.types import LocalModel, Status, StepInfo, Tree, UpdateRule, most_severe
from pcpo.core.vectors import as_vectors, scaled
from pcpo.rules._adaptive import DEFAULT_OPTIONS, AdaptiveOptions, check_options, choose, initial_state
from pcpo.rules._report import check_delta, check_number, report, solver, stateless
from pcpo.rules._two_steps import Several, capped, two_steps

METRICS = {
    "kl": KL,
    "l2": L2,
    "adaptive": KL,
}  # adaptive needs the directions of KL; those of L2 come with them
SEVERAL = {"cyclic": project_cyclic, "dykstra": project_dykstra}


def pcpo(
    delta: ArrayLike,
    projection: str | Metric = "kl",
    several: str = "cyclic",
    max_kl: ArrayLike = math.inf,
    *,
    cg_iterations: int = 10,
    cg_tolerance: float | None = None,
    adaptive: AdaptiveOptions = DEFAULT_OPTIONS,
    flipped_sign: bool = False,
) -> UpdateRule:
    r"""Projection-based constrained policy optimisation.

    .. math::
        d = \sqrt{\frac{2\delta}{g'H^{-1}g}}\, H^{-1}g
        - \max\Bigl(0, \frac{\sqrt{2\delta / g'H^{-1}g}\; a'H^{-1}g + b}{a'L^{-1}a}\Bigr) L^{-1}a

    PCPO (Yang et al., 2020), Eq. PCPO_final, with L = H (``"kl"``), L = I (``"l2"``) or a `Metric` of your own.
    There is no line search: the step is the formula's. It may leave the trust region, since the projection goes as
    far as the constraint is away; ``max_kl`` bounds how far.

    Differences from the paper and its code:

    1. A constraint with a zero gradient is left out (the formula divides zero by zero); the status says so if it
       is violated.
    2. The public copies of the authors' optimizer flip the sign of ``a'H^{-1}g``; we follow the paper's formula, unless
       ``flipped_sign`` is true.
    3. ``several="dykstra"`` finds the nearest point of an intersection; the paper's alternating projections are
       ``"cyclic"``.
    4. A step whose surrogates are not finite is not taken. This is the only use of ``evaluate``.

    Args:
        delta: KL radius of the reward step.
        projection: ``"kl"``, ``"l2"``, a `Metric`, or ``"adaptive"``, which chooses between the first two anew in
            each update (see `choose`) and needs ``evaluate``.
        several: How to project onto several constraints, ``"cyclic"`` or ``"dykstra"``.
        max_kl: Upper limit of the predicted KL divergence of the whole step; beyond it the step is shortened along
            itself. The paper has none (infinity).
        cg_iterations: Upper limit of CG steps.
        cg_tolerance: Relative residual at which CG stops; default by dtype.
        adaptive: Settings of the adaptive projection.
        flipped_sign: Whether the projection makes up for minus what the reward step does to the costs, as the public
            copies do. Wrong, and for showing that only.

    `StepInfo.extra`: ``asymmetry`` and ``sweeps`` of the projection onto several constraints (see
    `pcpo.core.projection.Projection`), and with ``evaluate`` the surrogates at the step (see `report`).

    Example:
        >>> import jax.numpy as jnp
        >>> from pcpo.core import LocalModel, Status
        >>> model = LocalModel(g=jnp.array([1.0, 0.0]), a=jnp.array([[1.0, 1.0]]), b=jnp.zeros(1), fvp=lambda v: v)
        >>> rule = pcpo(delta=0.5)
        >>> step, _, info = rule.update(model, rule.init(1))
        >>> step.tolist(), Status(int(info.status)).name
        ([0.5, -0.5], 'PROJECTED')
    """
    check_delta(delta)
    check_number("max_kl", max_kl, above=0.0, advice="pass math.inf for no limit")
    check_options(adaptive)
    if flipped_sign and projection == "adaptive":
        raise ValueError("flipped_sign is True, but projection='adaptive' has no such copy; pass 'kl' or 'l2'")
    solve = solver(cg_iterations, cg_tolerance)
    metric, project = _metric(projection), _several(several)

    def update(model: LocalModel, state: Any) -> tuple[Tree, Any, StepInfo]:
        flat, unravel = as_vectors(model)
        units = scaled(flat)
        radius, cap = jnp.asarray(delta, flat.b.dtype), jnp.asarray(max_kl, flat.b.dtype)
        found = directions(metric, units.model, unravel, solve)
        if projection == "adaptive":
            _check_can_adapt(model)
            taken, state, extra = choose(flat, units, found, radius, project, cap, state, adaptive)
        else:
            taken, extra = two_steps(units, found, radius, project, flipped_sign), {}
        step, too_long = capped(taken.step, cap)
        happened = None if flat.evaluate is None else flat.evaluate(step.d)
        status = jnp.maximum(taken.status, most_severe((too_long, Status.KL_CAPPED)))
        extra |= {"asymmetry": taken.projection.asymmetry, "sweeps": taken.projection.sweeps}
        returned, info = report(flat, unravel, step, taken.residuals, status, extra, happened)
        return returned, state, info

    return UpdateRule(initial_state if projection == "adaptive" else stateless, update)


def _metric(projection: str | Metric) -> Metric:
    if isinstance(projection, Metric):
        return projection
    if projection not in METRICS:
        raise ValueError(f"projection is {projection!r}; pass one of {', '.join(map(repr, METRICS))} or a Metric")
    return METRICS[projection]


def _several(several: str) -> Several:
    if several not in SEVERAL:
        raise ValueError(f"several is {several!r}; pass one of {', '.join(map(repr, SEVERAL))}")
    return SEVERAL[several]


def _check_can_adapt(model: LocalModel) -> None:
    if model.evaluate is None:
        raise ValueError(
            "projection='adaptive' needs LocalModel.evaluate to measure the curvature of the reward surrogate, but it "
            "is None; give the model its surrogates, or choose projection='kl' or 'l2'"
        )
