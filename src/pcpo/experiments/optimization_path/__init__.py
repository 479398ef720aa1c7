r"""The paper's example: which way PCPO goes under either projection, and where it ends.

.. math:: \max_x \; f(x) = x' \mathrm{diag}(5, -1) x \quad \text{s.t.} \quad x_1 + x_2 \le -1

PCPO (Yang et al., 2020), appendix "Comparison of Optimization Paths" (label appendix:section_optimizationPath).
The paper names neither H nor delta nor the number of steps; here H = |Hessian of f| = diag(10, 2). Every step is
made by `pcpo.rules.pcpo`; every verdict is computed from those steps. docs/experiments/optimization-path.md has the
derivation by hand.

`measurements` computes, `claims` judges, `figure` draws.
"""

import logging
from pathlib import Path

from pcpo.experiments import numbers, plots
from pcpo.experiments.optimization_path.claims import as_json
from pcpo.experiments.optimization_path.figure import draw_directions, draw_paths
from pcpo.experiments.optimization_path.measurements import START, measure

_log = logging.getLogger(__name__)


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
    return [*pictures, numbers.write(directory / "optimization-path.json", as_json(found))]
