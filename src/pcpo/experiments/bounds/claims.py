"""What the study says of each theorem, and the numbers that go into its file; every verdict is computed."""

from itertools import pairwise
from typing import Any

import numpy as np

from pcpo.experiments.bounds.measurements import DELTAS, STATEMENTS, Study, failures, looseness
from pcpo.experiments.bounds.updates import PENALTIES, Judged


def verdicts(found: Study) -> list[dict[str, str]]:
    """What is true of the theorems, as the study found it: a bound that was missed once is false."""
    failed = failures(found)
    radii = f"{len(DELTAS)} radii from {DELTAS[0]:g} to {DELTAS[-1]:g}"
    claims = {
        "feasible_reward": ("From b <= 0 the reward falls by at most the printed bound.", "Theorem feasibleCase"),
        "feasible_cost": ("From b <= 0 the cost ends under the printed bound.", "Theorem feasibleCase"),
        "infeasible_reward": ("From b > 0 the reward falls by at most the printed bound.", "Theorem infeasibleCase"),
        "infeasible_cost": ("From b > 0 the cost ends under the printed bound.", "Theorem infeasibleCase"),
    }
    judged: list[dict[str, str]] = []
    for name, (claim, place) in claims.items():
        asked = failed[name][~np.isnan(failed[name]).any(axis=1)]
        ever, updates = int(np.sum(asked.any(axis=1))), int(np.sum(asked))
        evidence = f"False in {updates} of {asked.size} updates, in {ever} of {len(asked)} problems; {radii}."
        judged.append(_verdict(claim, place, updates, evidence))
    broken = int(np.sum(missed(found.judged)) + np.sum(missed(found.episodic_judged)))
    judged.append(
        _verdict(
            "With the surrogate kept and the realised divergence, both bounds hold, discounted and over a horizon.",
            "here",
            broken,
            f"Missed {broken} times in {2 * found.discounted.b.size} updates, with three penalties for each.",
        )
    )
    return judged


def _verdict(claim: str, place: str, misses: int, evidence: str) -> dict[str, str]:
    return {"claim": claim, "place": place, "verdict": "fails" if misses else "holds", "evidence": evidence}


def summary(found: Study) -> dict[str, Any]:
    """The numbers of the study, as plain lists: failures and looseness by delta, by violation and by horizon."""
    failed = failures(found)
    it = found.discounted.happened
    predicted = found.discounted.delta + np.maximum(found.discounted.b, 0.0) ** 2 / (2.0 * found.discounted.scales.s)
    violated = found.beta > 0.0
    reach = np.sqrt(2.0 * found.discounted.delta * found.discounted.scales.q)
    lower = it.reward_surrogate[..., None] - found.judged.reward_penalties
    slack = (it.reward_change[..., None] - lower) / reach[..., None]
    small = DELTAS.index(1e-4)
    return {
        "deltas": [float(f"{d:.3g}") for d in DELTAS],
        "cases": {"feasible": int(np.sum(~violated)), "infeasible": int(np.sum(violated))},
        "printed_failures": {name: _integers(np.nansum(failed[name], axis=0)) for name in STATEMENTS},
        "printed_failures_by_violation_at_delta_1e-4": _by_bins(
            found.beta, (0.0, 0.5, 1.0, 2.0, 3.0), failed["infeasible_reward"][:, small]
        ),
        "printed_failures_by_effective_horizon": {
            name: _by_bins(1.0 / (1.0 - found.gamma), (1.0, 1.1, 1.5, 2.0, 5.0, 10.0, 50.0), np.max(values, axis=1))
            for name, values in failed.items()
        },
        "past_the_curve": {
            "cases": int(np.sum(violated & (found.beta * found.cosine > 1.0 - found.cosine**2))),
            "failed_at_the_smallest_delta": int(np.nansum(failed["infeasible_reward"][:, 0])),
        },
        "correct_bounds_failures": {
            "discounted": _broken(found.judged),
            "episodic": _broken(found.episodic_judged),
        },
        "realised_kl_above_printed": {
            "feasible": _rounded(np.mean((it.kl > predicted)[~violated], axis=0)),
            "infeasible": _rounded(np.mean((it.kl > predicted)[violated], axis=0)),
            "largest_ratio": _rounded(np.max(it.kl / predicted, axis=0)),
        },
        "reward_slack_over_reach_median": {
            "as_printed": _rounded(np.median(found.judged.printed_reward / reach, axis=0)),
            **{name: _rounded(np.median(slack[..., i], axis=0)) for i, name in enumerate(PENALTIES)},
        },
        "looseness": {
            "quantiles": [0.05, 0.25, 0.5, 0.75, 0.95],
            "discounted": _quantiles(looseness(found.judged)),
            "episodic": _quantiles(looseness(found.episodic_judged)),
            "discounted_median_by_delta": _medians(looseness(found.judged)),
            "episodic_median_by_delta": _medians(looseness(found.episodic_judged)),
            "discounted_median_by_violation": _medians_in_bins(found, found.beta, (-1.2, 0.0, 0.5, 1.0, 2.0, 3.0)),
            "discounted_median_by_effective_horizon": _medians_in_bins(
                found, 1.0 / (1.0 - found.gamma), (1.0, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0)
            ),
        },
        "counter_example": {name: _rounded(values, 6) for name, values in found.counter_example.items()},
    }


def missed(judged: Judged) -> np.ndarray:
    """Which correct bounds are missed by more than rounding, reward or cost: ``[N, deltas, len(PENALTIES)]``."""
    reward, cost = (
        error[..., None] > penalties * (1.0 + 1e-9) + 1e-12
        for error, penalties in (
            (judged.reward_error, judged.reward_penalties),
            (judged.cost_error, judged.cost_penalties),
        )
    )
    return np.asarray(reward | cost)


def _broken(judged: Judged) -> dict[str, int]:
    found = missed(judged)
    return {name: int(np.sum(found[..., i])) for i, name in enumerate(PENALTIES)}


def _quantiles(ratios: np.ndarray) -> dict[str, list[float]]:
    levels = np.quantile(ratios, [0.05, 0.25, 0.5, 0.75, 0.95], axis=(0, 1))
    return {name: _rounded(levels[:, i]) for i, name in enumerate(PENALTIES)}


def _medians(ratios: np.ndarray) -> dict[str, list[float]]:
    return {name: _rounded(np.median(ratios[..., i], axis=0)) for i, name in enumerate(PENALTIES)}


def _medians_in_bins(found: Study, values: np.ndarray, edges: tuple[float, ...]) -> dict[str, dict[str, float]]:
    ratios = looseness(found.judged)
    return {
        f"{low:g} to {high:g}": {
            name: float(f"{np.median(ratios[(values > low) & (values <= high)][..., i]):.4g}")
            for i, name in enumerate(PENALTIES)
        }
        for low, high in pairwise(edges)
        if np.any((values > low) & (values <= high))
    }


def _by_bins(values: np.ndarray, edges: tuple[float, ...], failed: np.ndarray) -> dict[str, list[int]]:
    """[failures, cases] between neighbouring edges; cases of which the theorem does not speak (NaN) are left out."""
    speaks = ~np.isnan(failed)
    inside = [(values > low) & (values <= high) & speaks for low, high in pairwise(edges)]
    names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    return {name: [int(np.sum(failed[i])), int(np.sum(i))] for name, i in zip(names, inside, strict=True)}


def _rounded(values: np.ndarray, digits: int = 4) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in np.ravel(values)]


def _integers(values: np.ndarray) -> list[int]:
    return [int(value) for value in values]
