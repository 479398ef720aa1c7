"""The learning curves in numbers: where each rule ended on each task of the paper."""

import math

import numpy as np

from pcpo.experiments.claims.evidence import Data
from pcpo.experiments.claims.judges import SIX
from pcpo.experiments.claims.verdicts import NotRunError
from pcpo.experiments.series import PRETTY
from pcpo.experiments.statistics import found, iqm, last_tenth, time_to_safety
from pcpo.experiments.suite.presets import EXPERIMENTS


def ends_table(data: Data) -> str:
    """A row for each rule on each task: interquartile means over seeds, with their intervals."""
    rows = [
        "| task | rule | updates | seeds | reward | cost | limit | J_C in all | excess in all | safe from update |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for task in SIX:
        for variant in EXPERIMENTS[task].variants:
            try:
                rows.append(_row(data, task, variant.name))
            except NotRunError:
                continue
    return "\n".join(rows) + "\n"


def _row(data: Data, task: str, rule: str) -> str:
    stratum = data.stratum(task, rule)
    updates, seeds = stratum.rewards.shape
    reward, cost = (found(iqm, last_tenth(table)) for table in (stratum.rewards, stratum.costs))
    added, above = (found(iqm, table[-1]) for table in (stratum.summed, stratum.excess))
    safe = _safe_from(time_to_safety(stratum.costs, data.bound(task, rule)))
    numbers = f"{reward} | {cost} | {data.limit(task, rule):g} | {added} | {above} | {safe}"
    return f"| {task} | {PRETTY[rule]} | {updates:,} | {seeds} | {numbers} |"


def _safe_from(times: np.ndarray) -> str:
    """The middle of the seeds, or how many of them never are."""
    never = int(np.isinf(times).sum())
    if never:
        return f"{never} of {len(times)} seeds never"
    middle = float(iqm(times))
    return "too short to say" if math.isnan(middle) else f"{middle:.3g}"
