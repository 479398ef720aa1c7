"""Judges of the claims about the optimisation paths, from the numbers that `pcpo reproduce optimization-path` left.

That experiment says in words what it found; here the same is decided from its numbers, so that other numbers give
another verdict.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pcpo.experiments.claims.evidence import Data
from pcpo.experiments.claims.judges import Judge, not_checkable, together
from pcpo.experiments.claims.verdicts import Judged, NotRunError, Verdict
from pcpo.experiments.optimization_path.claims import fate
from pcpo.experiments.optimization_path.measurements import START, ZERO
from pcpo.training.files import RunError, read_json

_AS_CLAIMED = {"kl": "converged", "l2": "diverged"}


def _judge(part: Callable[[Any], Judged]) -> Judge:
    """A judge of the numbers in the file.

    Raises:
        RunError: If it is damaged.
    """

    def judge(data: Data) -> Judged:
        path = data.directory / "optimization-path" / "optimization-path.json"
        if not path.is_file():
            raise NotRunError("optimization-path")
        try:
            return part(read_json(path))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise RunError(f"{path} is damaged; restore it from a copy, or remake it") from None

    return together(judge)


def _is(so: bool, said: str) -> Judged:
    return Judged(Verdict.REPRODUCED if so else Verdict.NOT_REPRODUCED, said)


def _infinity(found: Any) -> Judged:
    curvature = float(found["curvature_of_f_along_boundary"])
    return _is(curvature > 0.0, f"along the boundary f has curvature {curvature:+g}: above 0 it grows without limit")


def _zeros(found: Any, projection: str) -> np.ndarray:
    return np.array(found["directions_vanish_on_boundary_at"][projection], float).reshape(-1, 2)


def _different_points(found: Any) -> Judged:
    kl, l2 = (_zeros(found, projection) for projection in ("kl", "l2"))
    same = kl.shape == l2.shape and np.allclose(kl, l2, atol=1e-6)
    return _is(
        not same, f"on the boundary the KL direction vanishes at {_points(kl)}, the L2 direction at {_points(l2)}"
    )


def _kl_points(found: Any) -> Judged:
    zeros = _zeros(found, "kl")
    gradients = zeros * np.array([10.0, -2.0])
    along_a = bool(np.allclose(gradients[:, 0], gradients[:, 1], atol=1e-6) and (gradients >= 0.0).all())
    return _is(
        len(zeros) > 0 and along_a, f"at {_points(zeros)} the gradient of f is {_points(gradients)}; a is (1, 1)"
    )


def _three_points(found: Any) -> Judged:
    shares = [float(each["kl"]["share"]) for each in found["claimed_stationary_points"]]
    zero = [share < ZERO for share in shares]
    told = ", ".join("0" if share < ZERO else f"{share:.3f}" for share in shares)
    kind = "a minimum" if float(found["curvature_of_f_along_boundary"]) > 0.0 else "no minimum"
    return _is(
        len(zero) == 3 and all(zero),
        f"zero at {sum(zero)} of {len(zero)}: its length there is {told} of a reward step; where it vanishes, f has "
        f"{kind} along the boundary",
    )


def _no_l2_points(found: Any) -> Judged:
    zeros = _zeros(found, "l2")
    return _is(
        not len(zeros), f"on the boundary, within 8 of the origin in x1, its direction vanishes at {_points(zeros)}"
    )


def _fate(found: Any, projection: str) -> tuple[str, str]:
    """What became of a path, and in words; ``moving`` for one that does not begin where the paper's does."""
    walked = found["paths"][projection]
    end, last = np.array(walked["end"], float), float(walked["last_share"])
    became = fate(np.array(found["start"], float), end, last) if tuple(found["start"]) == START else "moving"
    place = f"{projection.upper()} is at {_points(end[None])} after {found['steps']:,} steps"
    return became, f"{place}, still making {last:.2f} of a reward step"


def _path(projection: str) -> Callable[[Any], Judged]:
    def judge(found: Any) -> Judged:
        became, said = _fate(found, projection)
        others = found["other_feasible_starts"][projection]
        said = f"{said}; of {others['starts']} other feasible starts {others['converged']} converge"
        if became == "moving":
            return Judged(Verdict.UNDECIDED, said)
        return _is(became == _AS_CLAIMED[projection], said)

    return judge


def _different_solutions(found: Any) -> Judged:
    """Infinity counts as a solution, as the paper says of L2; whether it is the same one on both sides, nobody said."""
    fates, said = zip(*(_fate(found, projection) for projection in ("kl", "l2")), strict=True)
    told = "; ".join(said)
    if "moving" in fates or fates == ("diverged", "diverged"):
        return Judged(Verdict.UNDECIDED, told)
    ends = [np.array(found["paths"][projection]["end"], float) for projection in ("kl", "l2")]
    return _is(fates[0] != fates[1] or not np.allclose(*ends, atol=1e-3), told)


def _points(points: np.ndarray) -> str:
    return " and ".join(f"({x:.4g}, {y:.4g})" for x, y in points) or "no point"


JUDGES: Mapping[str, Judge] = {
    "path-infinity": _judge(_infinity),
    "path-different-points": _judge(_different_points),
    "path-kl-points": _judge(_kl_points),
    "path-three-points": _judge(_three_points),
    "path-no-l2-points": _judge(_no_l2_points),
    "path-kl": _judge(_path("kl")),
    "path-l2": _judge(_path("l2")),
    "path-different-solutions": _judge(_different_solutions),
    "path-same-point": not_checkable(
        "here the gradient is zero at the origin only, outside the constraint set; under either projection a zero "
        "gradient gives a zero step by definition"
    ),
}
"""What judges each claim."""
