"""Several runs side by side: what each earned, what it cost, and from when on its limit was kept."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pcpo.experiments.series import Series, Table
from pcpo.training.statistics import Interval, mean_interval

WINDOW = 10
"""Updates over which a cost is averaged before it is held against its limit."""
TOLERANCE = 0.1
"""Part of the limit by which such a mean may exceed it: about what the noise of a batch amounts to."""
SHARE_AT_THE_END = 0.1
"""Part of the updates, counted from the last, over which final numbers are means."""


class Estimate(NamedTuple):
    """A mean over seeds; the interval is of that mean, endless for one seed."""

    mean: float
    interval: Interval

    def __str__(self) -> str:
        """Mean and half the width of the 95 % interval, or only the mean."""
        reach = (self.interval.high - self.interval.low) / 2
        return f"{self.mean:.4g} ± {reach:.2g}" if math.isfinite(reach) else f"{self.mean:.4g}"


class OfCost(NamedTuple):
    """How a run went with one of its costs."""

    final: Estimate
    limit: float
    """As it was at the end."""
    cumulative_violation: Estimate
    kept_from: int | None
    """See `kept_from`."""


class Summary(NamedTuple):
    """One run in a few numbers."""

    label: str
    algorithm: str
    updates: int
    seeds: int
    reward: Estimate
    costs: Mapping[str, OfCost]
    steps_per_second: float
    """Of all seeds together, in the median update."""


def summarise(run: Series) -> Summary:
    """A run in a few numbers."""
    return Summary(
        label=run.label,
        algorithm=run.algorithm,
        updates=len(run.updates),
        seeds=len(run.seeds),
        reward=_final(run.column("discounted_return")),
        costs={name: _of_cost(run, name) for name in run.cost_names},
        steps_per_second=steps_per_second(run),
    )


def kept_from(run: Series, name: str) -> int | None:
    """The first update from which a limit was kept.

    That is the first one whose own cost is at most a tenth above the limit, and so is each mean over ten updates in a
    row from there to the end of the run; costs are means over seeds. None where there is no such update with nine more
    after it.

    Args:
        run: Its measurements. An update without one is left out of a mean, ten such updates keep no limit.
        name: Of the cost.
    """
    limit = run.limits[name]
    excess = _over_seeds(run.column(f"costs.{name}")) - limit - TOLERANCE * np.abs(limit)
    if excess.size < WINDOW:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(excess, WINDOW)
    means = _mean_of_known(windows, axis=1)
    broken = np.flatnonzero(~(means <= 0.0))
    after = int(broken[-1]) + 1 if broken.size else 0
    kept = np.flatnonzero(excess[after : means.size] <= 0.0)
    return int(run.updates[after + kept[0]]) if kept.size else None


def steps_per_second(run: Series) -> float:
    """Steps of the environment per second, all seeds together, in the median update; so compiling does not count."""
    steps = np.diff(run.column("env_steps").sum(axis=1), prepend=0.0)
    seconds = _over_seeds(run.column("seconds"))
    rates = steps / np.where(seconds > 0.0, seconds, np.nan)
    known = rates[np.isfinite(rates)]
    return float(np.median(known)) if known.size else math.nan


def differences(runs: Sequence[Series]) -> list[str]:
    """In what respects some runs of one task cannot be compared as they stand: one line for each."""
    found = [
        f"the limits of {name} differ: " + ", ".join(f"{run.label} {run.limits[name][-1]:g}" for run in runs)
        for name in runs[0].cost_names
        if len({float(run.limits[name][-1]) for run in runs}) > 1
    ]
    found += [
        f"the limit of {name} was changed during {run.label}"
        for run in runs
        for name, limit in run.limits.items()
        if len(set(limit.tolist())) > 1
    ]
    for key, meaning in _COMPARED.items():
        values = [run.settings.get(key) for run in runs]
        if any(value != values[0] for value in values):
            found.append(f"the {meaning} differ: " + ", ".join(f"{run.label} {run.settings.get(key)}" for run in runs))
    return found


def misfit(runs: Sequence[Series]) -> str | None:
    """Why runs cannot be shown together at all, or None."""
    first = runs[0]
    for run in runs[1:]:
        if run.task != first.task:
            return f"{first.label} is a run of {first.task} and {run.label} one of {run.task}; give runs of one task"
        if run.cost_names != first.cost_names:
            names = [", ".join(each.cost_names) or "none" for each in (first, run)]
            return f"{first.label} has the costs {names[0]} and {run.label} {names[1]}; give runs with the same costs"
    return None


_COMPARED = {"task_options": "options of the task", "gamma": "discounts of the reward", "batch_size": "batch sizes"}


# As a table.


def cells(summaries: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Headings, and one row of texts for each run, for people."""
    names = list(summaries[0].costs)
    headings = ["run", "algorithm", "seeds", "updates", "reward"]
    for name in names:
        headings += [f"{name}", "limit", "violation", "kept from"]
    rows: list[list[str]] = []
    for each in summaries:
        row = [each.label, each.algorithm, str(each.seeds), str(each.updates), str(each.reward)]
        for of_cost in each.costs.values():
            never = "never" if each.updates >= WINDOW else "too short"
            kept = never if of_cost.kept_from is None else f"update {of_cost.kept_from}"
            row += [str(of_cost.final), f"{of_cost.limit:g}", str(of_cost.cumulative_violation), kept]
        rows.append([*row, _rate(each.steps_per_second)])
    return [*headings, "steps/s"], rows


def as_markdown(summaries: Sequence[Summary]) -> str:
    """The table in Markdown."""
    headings, rows = cells(summaries)
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def as_csv(summaries: Sequence[Summary]) -> str:
    """The numbers, unrounded, one run per line; what is not known is empty."""
    text = io.StringIO()
    records = [_record(each) for each in summaries]
    writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _record(summary: Summary) -> dict[str, Any]:
    record: dict[str, Any] = {
        "run": summary.label,
        "algorithm": summary.algorithm,
        "seeds": summary.seeds,
        "updates": summary.updates,
        **_parts("reward", summary.reward),
    }
    for name, of_cost in summary.costs.items():
        record |= _parts(name, of_cost.final)
        record[f"{name}_limit"] = of_cost.limit
        record |= _parts(f"{name}_cumulative_violation", of_cost.cumulative_violation)
        record[f"{name}_kept_from"] = of_cost.kept_from
    record["steps_per_second"] = _known(summary.steps_per_second)
    return record


def _parts(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {
        name: _known(estimate.mean),
        f"{name}_low": _known(estimate.interval.low),
        f"{name}_high": _known(estimate.interval.high),
    }


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if math.isfinite(rate) else "?"


# Means.


def _of_cost(run: Series, name: str) -> OfCost:
    violations = run.column(f"cumulative_violations.{name}")
    return OfCost(
        final=_final(run.column(f"costs.{name}")),
        limit=float(run.limits[name][-1]),
        cumulative_violation=_estimate(_last_known(violations)),
        kept_from=kept_from(run, name),
    )


def _final(values: Table) -> Estimate:
    """Of each seed's mean over the last tenth of its updates."""
    last = max(1, math.ceil(SHARE_AT_THE_END * len(values)))
    return _estimate(_mean_of_known(values[-last:], axis=0))


def _estimate(of_seeds: Float[np.ndarray, " seeds"]) -> Estimate:
    known = of_seeds[np.isfinite(of_seeds)]
    if not known.size:
        return Estimate(math.nan, Interval(math.nan, math.nan))
    return Estimate(float(known.mean()), mean_interval(known))


def _over_seeds(values: Table) -> Float[np.ndarray, " n"]:
    return _mean_of_known(values, axis=1)


def _mean_of_known(values: Float[np.ndarray, "a b"], axis: int) -> Float[np.ndarray, " n"]:
    finite = np.isfinite(values)
    counts = finite.sum(axis=axis)
    return np.where(counts > 0, np.where(finite, values, 0.0).sum(axis=axis) / np.maximum(counts, 1), np.nan)


def _last_known(values: Table) -> Float[np.ndarray, " seeds"]:
    places = [np.flatnonzero(np.isfinite(column)) for column in values.T]
    return np.array([column[at[-1]] if at.size else np.nan for column, at in zip(values.T, places, strict=True)])
