r"""How true, and how loose, the worst-case bounds of the paper are, on random problems in which everything is exact.

Problems are drawn once, PCPO takes its actual step (KL projection) for every delta of a grid, and each bound is
compared with what happened. The violation is drawn in units of what the trust region can reach, so that it shrinks
with delta and the picture keeps its shape:

.. math:: \beta = \frac{b}{\sqrt{2 \delta\, a'H^{-1}a}}, \qquad c = \frac{a'H^{-1}g}{\sqrt{g'H^{-1}g \cdot a'H^{-1}a}}.

To first order an active projection changes the reward by :math:`\sqrt{2\delta\,g'H^{-1}g}\,(1 - c^2 - \beta c)`, while
the reward bounds as printed allow a smaller one: :math:`\sqrt{2\,kl}` times an epsilon that itself shrinks with the
step. Where :math:`\beta c > 1 - c^2` they fail for every small delta.

`updates` takes and judges one step, `measurements` takes many, `claims` judges the theorems, `figure` draws.
docs/theory/bounds.md has the derivations and what was found.
"""

import logging
from pathlib import Path

from pcpo.experiments import numbers
from pcpo.experiments.bounds.claims import summary, verdicts
from pcpo.experiments.bounds.figure import draw
from pcpo.experiments.bounds.measurements import DELTAS, study

_log = logging.getLogger(__name__)


def reproduce(
    directory: Path,
    *,
    problems: int = 2000,
    states: int = 6,
    actions: int = 3,
    horizon: int = 20,
    seed: int = 0,
) -> list[Path]:
    """Judges the paper's worst-case bounds on random tabular problems; writes a figure and the numbers behind it.

    Args:
        directory: Where ``bounds.png``, ``bounds.svg`` and ``bounds.json`` go; created if missing.
        problems: Random problems, 10 to 20000.
        states: States of each, 2 to 30.
        actions: Actions in each state, 2 to 10.
        horizon: Steps of an episode in the undiscounted half of the study, 2 to 100.
        seed: Of the random problems, 0 or larger.

    Returns:
        The files written.

    Raises:
        ValueError: An option is out of its range.
    """
    _check_range("problems", problems, 10, 20_000, "2000 takes some ten seconds and is enough for the figure")
    _check_range("states", states, 2, 30, "every expectation is a dense linear system; 6 is what the page shows")
    _check_range("actions", actions, 2, 10, "3 is what the page shows")
    _check_range("horizon", horizon, 2, 100, "20 is what the page shows; with one step no state can shift")
    _check_range("seed", seed, 0, 2**31 - 1, "0 is what the page shows")
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    _log.info("taking %s updates on %s random problems", f"{2 * problems * len(DELTAS):,}", f"{problems:,}")
    found = study(problems, states, actions, horizon, seed)
    settings = {"problems": problems, "states": states, "actions": actions, "horizon": horizon, "seed": seed}
    _log.info("drawing")
    pictures = draw(found, directory)
    contents = {"settings": settings, **summary(found), "verdicts": verdicts(found)}
    return [*pictures, numbers.write(directory / "bounds.json", contents)]


def _check_range(name: str, value: int, low: int, high: int, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, but must be a whole number from {low} to {high}; {advice}")
