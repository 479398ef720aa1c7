"""What judges a claim: a function of the results, put together from functions about one task each."""

import functools
from collections.abc import Callable, Iterable
from typing import TypeAlias

from pcpo.experiments.claims.evidence import Data
from pcpo.experiments.claims.verdicts import Judged, Verdict, alike, all_of, is_missing, where_run

Judge: TypeAlias = Callable[[Data], Judged]
OnTask: TypeAlias = Callable[[Data, str], Judged]
OfRule: TypeAlias = Callable[[str, Data, str], Judged]

SIX = ("point-circle", "point-gather", "ant-circle", "ant-gather", "grid", "bottleneck")
POINTS = SIX[:2]
KL, L2 = "pcpo-kl", "pcpo-l2"


def on(tasks: Iterable[str], part: OnTask) -> Judge:
    """A claim about each of some tasks."""
    return together(*(functools.partial(_on_task, part, task) for task in tasks))


def together(*parts: Judge) -> Judge:
    """A claim that is made of several."""

    def judge(data: Data) -> Judged:
        judged = where_run([functools.partial(part, data) for part in parts])
        there = [part for part in judged if not is_missing(part)]
        whole = all_of(judged)
        if len(there) < len(judged) and there and all_of(there).verdict is Verdict.REPRODUCED:
            return Judged(whole.verdict, f"reproduced where run: {whole.evidence}")
        return whole

    return judge


def of_pcpo(part: OfRule) -> OnTask:
    """A claim about "PCPO", whose figures in the paper have both projections: decided where both say the same."""

    def judge(data: Data, task: str) -> Judged:
        return alike(where_run([functools.partial(part, rule, data, task) for rule in (KL, L2)]))

    return judge


def not_checkable(why: str) -> Judge:
    """A claim that no data of ours could decide."""

    def judge(data: Data) -> Judged:
        del data
        return Judged(Verdict.NOT_CHECKABLE, why)

    return judge


def _on_task(part: OnTask, task: str, data: Data) -> Judged:
    return part(data, task)
