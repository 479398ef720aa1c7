"""What the paper says of its example, and what the measurements say of that; every verdict is computed."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pcpo.experiments.optimization_path.measurements import CLAIMED, PROJECTIONS, REACH, START, ZERO, Ends, Measurements

NAMES = {"kl": "KL", "l2": "L2"}

_KEPT = 200  # points of each path in the JSON file


class Verdict(NamedTuple):
    """One claim of the paper and what became of it."""

    claim: str
    place: str
    verdict: str
    """``holds``, ``fails``, ``partly`` or ``untested``."""
    evidence: str


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
        f"on the boundary, up to |x1| = {REACH:g}, the KL direction vanishes at {_points(kl)}, the L2 direction at "
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
        f"zero at {zero.sum()} of 3: its length there is {', '.join(share_text(s) for s in shares)} of a reward step; "
        f"and where it vanishes, f has a {kind} along the boundary (curvature {curvature:+g})",
    )


def _on_no_l2_points(found: Measurements) -> Verdict:
    boundary = found.boundary["l2"]
    least = int(np.argmin(boundary.shares))
    return Verdict(
        "PCPO with L2 norm projection does not have stationary points in the boundary.",
        "text and Fig. OptPath(a)",
        "fails" if len(found.zeros["l2"]) else "holds",
        f"up to |x1| = {REACH:g} its direction is never under {boundary.shares[least]:.3f} of a reward step "
        f"(at x1 = {boundary.points[least, 0]:g})",
    )


def _on_path(found: Measurements, projection: str) -> Verdict:
    walked, everywhere = found.walks[projection], found.others[projection]
    became = fate(walked.points[0], walked.points[-1], walked.last_share)
    expected = {"kl": "converged", "l2": "diverged"}[projection]
    others = [fate(*each) for each in zip(everywhere.starts, everywhere.ends, everywhere.last_shares, strict=True)]
    saying = {"kl": "converges to a local optimum", "l2": "converges to infinity"}[projection]
    return Verdict(
        f"Starting at (0.5, -2), PCPO with {NAMES[projection]} projection {saying}.",
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


def share_text(share: float) -> str:
    """A share with three decimals, and a plain 0 for one that counts as zero."""
    return "0" if share < ZERO else f"{share:.3f}"


def _point(x: Any) -> str:
    return f"({float(x[0]):.4g}, {float(x[1]):.4g})"


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
