"""The audit's warnings: where the linear picture of an update was wrong, in plain words, with the option to try.

Each kind is said once and then counted. What was predicted is compared with what happened, never with what would be
nice: a first update at 100 times delta is by design, since the projection is not limited by delta.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pcpo.rl.audit import NONFINITE_NAMES
from pcpo.training.config import Config
from pcpo.training.metrics import Row

KL_FACTOR = 2.0
"""A divergence above this multiple of the predicted one, and above delta, is reported."""
STANDARD_ERRORS = 3.0
"""A cost that rose by more than this where a fall was predicted is reported."""
CONFIRMED = 0.2
"""A correction of which the other half of the batch confirms less than this is reported."""
CG_ERROR = 0.1
"""An error of conjugate gradient in a·d above this part of it is reported."""

_STATUSES = {
    "cg_failed": "conjugate gradient found no positive curvature, so the update was not made; try a larger --damping",
    "zero_cost_gradient_violated": "a cost is above its limit but no action has any influence on it, so it was left "
    "out; try a larger --batch-size, or check the cost",
    "infeasible_intersection": "no step satisfies all limits at once, so the step goes between them; try larger limits "
    "(--limit NAME=VALUE)",
}


class Watch:
    """Sees every row, in order; says what is new and counts the rest."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.counts: dict[str, int] = {}
        self._before: dict[int, dict[str, Any]] = {}

    def see(self, rows: Iterable[Row]) -> list[str]:
        """The warnings that these rows give for the first time."""
        new: list[str] = []
        for row in rows:
            for kind, text in self._findings(row):
                self.counts[kind] = self.counts.get(kind, 0) + 1
                if self.counts[kind] == 1:
                    new.append(f"update {row['update']}, seed {row['seed']}: {text}")
            self._before[row["seed"]] = {key: row[key] for key in _REMEMBERED}
        return new

    def summary(self, updates: int) -> list[str]:
        """How often each kind of warning came in so many updates of each seed; nothing for none."""
        every = self.config.spectrum_every
        measured = -(-updates // every) if every else 0
        of = {kind: measured if kind == "confirmed" else updates for kind in self.counts}
        return [
            f"{count} of {of[kind] * self.config.seeds} updates: {_SUMMARIES.get(kind, kind)}"
            for kind, count in self.counts.items()
        ]

    def to_json(self) -> dict[str, Any]:
        """What a run that goes on later needs to know."""
        return {"counts": self.counts, "before": {str(seed): row for seed, row in self._before.items()}}

    @classmethod
    def from_json(cls, config: Config, plain: Mapping[str, Any]) -> "Watch":
        """What `to_json` gave."""
        watch = cls(config)
        watch.counts = dict(plain["counts"])
        watch._before = {int(seed): dict(row) for seed, row in plain["before"].items()}
        return watch

    def _findings(self, row: Row) -> list[tuple[str, str]]:
        found = [_moved_the_wrong_way(row, self._before.get(row["seed"]))]
        if row["refused"]:
            found += [_refused(name) for name in row["refused"]]
        else:
            found += [self._kl(row), self._conjugate_gradient(row), self._unconfirmed(row)]
            found += [(row["status"], _STATUSES[row["status"]]) if row["status"] in _STATUSES else None]
        return [finding for finding in found if finding is not None]

    def _kl(self, row: Row) -> tuple[str, str] | None:
        happened, predicted = row["kl"], row["predicted_kl"]
        if happened is None or predicted is None or happened <= max(KL_FACTOR * predicted, self.config.delta):
            return None
        capped = self.config.algorithm.startswith("pcpo")  # the other rules know no cap
        return "kl", (
            f"the policy moved by a KL of {happened:.2g}, more than {KL_FACTOR:g} times the predicted {predicted:.2g}: "
            f"the step was too long for its quadratic model; try a smaller --delta (now {self.config.delta:g})"
            + (f", or --max-kl {max(predicted, self.config.delta):.1g}" if capped else "")
        )

    def _conjugate_gradient(self, row: Row) -> tuple[str, str] | None:
        error = cg_error(row)
        if self.config.algorithm not in {"pcpo-kl", "cpo"} or error is None:
            return None
        costs = sum(abs(row["multipliers"][name] * (row["predicted_costs"][name] or 0.0)) for name in row["costs"])
        noise = sum(abs(row["multipliers"][name] * (row["cost_standard_errors"][name] or 0.0)) for name in row["costs"])
        if costs == 0.0 or error <= max(CG_ERROR * costs, noise):
            return None
        return "cg", (
            "conjugate gradient was not done, and the change of cost that the step promises is off by "
            f"{error / costs:.0%}; try --cg-iterations {2 * self.config.cg_iterations} (now "
            f"{self.config.cg_iterations}), or a larger --damping (now {self.config.damping:g})"
        )

    def _unconfirmed(self, row: Row) -> tuple[str, str] | None:
        """A correction that is more accident than gradient. Only where one is needed, and made."""
        if self.config.algorithm in {"trpo", "pdo", "fpo"}:
            return None
        for name, violation in row["violations"].items():
            share = row["confirmed"][name]
            if share is None or not violation or share >= CONFIRMED:
                continue
            constraint = next(each for each in self.config.constraints if each.name == name)
            shorter = f", or --cost-gae-lambda {name}=0.5" if constraint.gae_lambda > 0.5 else ""
            return "confirmed", (
                f"of the change of {name} that half of the episodes promise the other half confirms {share:.0%}: the "
                f"correction is mostly noise; try a larger --batch-size (now {self.config.batch_size}){shorter}"
            )
        return None


def cg_error(row: Row) -> float | None:
    r"""By how much unfinished conjugate gradient changes a·d, times the multipliers: None where it cannot be told.

    With :math:`v = H^{-1}g` and :math:`w_i = H^{-1}a_i` exactly,
    :math:`d = \eta v - \sum_i\nu_i w_i` has :math:`d'Hd = \eta\, g'd - \sum_i\nu_i\, a_i'd`. What is missing on the way
    from one side to the other are the products of the residuals with the other solutions,
    :math:`\eta\nu_i\,(w_i'r_g + v'r_i)`: the errors of :math:`\nu_i\, a_i'(\eta v)`.
    """
    numbers = [row["predicted_kl"], row["predicted_reward"], row["eta"]]
    multipliers, costs = list(row["multipliers"].values()), list(row["predicted_costs"].values())
    if any(x is None for x in (*numbers, *multipliers, *costs)) or not any(multipliers):
        return None
    kl, reward, eta = numbers
    along = sum(multiplier * cost for multiplier, cost in zip(multipliers, costs, strict=True))
    return abs(2.0 * kl - (eta * reward - along))


def _moved_the_wrong_way(row: Row, before: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """A cost that rose though the update before said that it would fall, beyond what chance explains."""
    if before is None or before["refused"]:
        return None
    for name, predicted in before["predicted_costs"].items():
        numbers = [before["costs"][name], row["costs"].get(name)]
        errors = [before["cost_standard_errors"][name], row["cost_standard_errors"].get(name)]
        if any(x is None for x in (predicted, *numbers, *errors)):
            continue
        rise, error = numbers[1] - numbers[0], math.hypot(*errors)
        if predicted < 0.0 < error and rise > STANDARD_ERRORS * error:
            return "cost", (
                f"{name} rose by {rise:.2g} (standard error {error:.1g}) where the update before predicted a change of "
                f"{predicted:.2g}; try a larger --batch-size, or a smaller --delta"
            )
    return None


def _refused(name: str) -> tuple[str, str]:
    return f"refused: {name}", (
        f"the {name} was not finite, so the update was not made and the policy stays as it was; "
        f"{_REMEDIES.get(name, 'try a smaller --delta, or --precision float64')}"
    )


_REMEMBERED = ("costs", "cost_standard_errors", "predicted_costs", "refused")

_REMEDIES = {
    "observation": "check what the task gives as observations",
    "reward": "check the task's reward",
    "cost": "check the task's costs",
    "action": "the policy's own output overflowed: try --normalize-batches 100, or a smaller --delta",
    "curvature": "try a larger --damping",
    "normalizer": "check how large the task's observations are, or leave --normalize-batches out",
    "critic": "try fewer --critic-steps, or a smaller --critic-radius",
}

_SUMMARIES = {
    "kl": "the KL was more than twice the predicted one",
    "cost": "a cost rose where a fall was predicted, by over three standard errors",
    "cg": "unfinished conjugate gradient changed the predicted cost by more than a tenth",
    "confirmed": "measured, and half of the batch hardly confirmed the correction that the other half promised",
    "cg_failed": "conjugate gradient failed; nothing was changed",
    "zero_cost_gradient_violated": "a violated cost had no gradient",
    "infeasible_intersection": "the limits could not be met at once",
    **{f"refused: {name}": f"not made, because the {name} was not finite" for name in NONFINITE_NAMES},
}
