"""The tables of docs/results.md: every claim with its verdict, our own questions, and what was run on what."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from pcpo.experiments.claims import appendix, main_section, paths
from pcpo.experiments.claims.ends import ends_table
from pcpo.experiments.claims.evidence import Data
from pcpo.experiments.claims.ours import QUESTIONS
from pcpo.experiments.claims.quotes import PLACES
from pcpo.experiments.claims.verdicts import Judged, Verdict
from pcpo.experiments.suite.presets import EXPERIMENTS
from pcpo.training.files import RunError, read_json

JUDGES = {**main_section.JUDGES, **appendix.JUDGES, **paths.JUDGES}
"""What judges each claim, by its name."""

BEGIN, END = "<!-- {0}: made by `pcpo reproduce claims`, begins -->", "<!-- {0}: ends -->"


class Answer(NamedTuple):
    """A claim and what became of it."""

    key: str
    place: str
    quote: str
    judged: Judged


def judge(data: Data) -> list[Answer]:
    """Every claim, judged by the results."""
    return [
        Answer(key, place.where, quote, judged(key, data)) for place in PLACES for key, quote in place.claims.items()
    ]


def judged(key: str, data: Data) -> Judged:
    """One claim. What an experiment says that has hardly begun is told, but decides nothing."""
    data.asked.clear()
    found = JUDGES[key](data)
    short = data.short()
    if not short:
        return found
    if found.verdict not in {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED}:
        return Judged(found.verdict, f"{found.evidence}; so far: {', '.join(short)}")
    return Judged(Verdict.UNDECIDED, f"so far {found.verdict.value}, with {', '.join(short)}: {found.evidence}")


def as_json(answers: list[Answer]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "verdicts": [
            {"key": each.key, "claim": each.quote, "place": each.place, "verdict": each.judged.verdict.value,
             "evidence": each.judged.evidence}
            for each in answers
        ]
    }  # fmt: skip


# Tables.


def counted(answers: list[Answer]) -> str:
    """How many claims there are of each verdict, in a sentence."""
    counts = Counter(each.judged.verdict for each in answers)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)
    return f"Of {len(answers)} claims: {said}.\n"


def claims_table(answers: list[Answer]) -> str:
    """All claims, a table for each place."""
    parts: list[str] = []
    for place in PLACES:
        rows = ["| claim | verdict | our numbers |", "|---|---|---|"]
        rows += [
            f"| {_cell(each.quote)} | **{each.judged.verdict.value}** | {_cell(each.judged.evidence)} |"
            for each in answers
            if each.place == place.where
        ]
        parts.append(f"### {_heading(place.where)}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def questions_table(data: Data) -> str:
    """Our own questions with their answers."""
    rows = ["| question | what the results say |", "|---|---|"]
    rows += [f"| {_cell(question)} | {_cell(answer(data))} |" for question, answer in QUESTIONS.items()]
    return "\n".join(rows) + "\n"


def runs_table(data: Data) -> str:
    """What was run: how much of each experiment, on what, and how long it took; not what has other settings."""
    rows = ["| experiment | asked for | there is | on | hours |", "|---|---|---|---|---|"]
    for name, experiment in EXPERIMENTS.items():
        seeds, _, updates = experiment.scale
        asked = f"{len(experiment.variants)} variants x {seeds} seeds x {updates:,} updates"
        records = [read_json(piece.path) for piece in data.pieces(name)]
        rows.append(f"| `{name}` | {asked} | {' | '.join(_there_is(records))} |")
    return "\n".join(rows) + "\n"


def _there_is(records: list[dict[str, Any]]) -> tuple[str, str, str]:
    if not records:
        return "nothing yet", "", ""
    variants = {record["variant"] for record in records}
    seeds: Counter[str] = Counter()
    for record in records:
        seeds[record["variant"]] += record["config"]["seeds"]
    updates = [record["updates"] for record in records]
    amount = f"{len(variants)} variants x {_range(list(seeds.values()))} seeds x {_range(updates)} updates"
    devices = sorted({str(record["versions"].get("device", "?")) for record in records})
    known = [record["seconds"] for record in records if record["seconds"] is not None]
    time = f"{sum(known) / 3600.0:.2g}" if len(known) == len(records) else "not kept"
    return amount, ", ".join(devices), time


def _range(numbers: list[int]) -> str:
    return f"{min(numbers):,}" if min(numbers) == max(numbers) else f"{min(numbers):,} to {max(numbers):,}"


def _heading(place: str) -> str:
    return place.replace("_", r"\_")


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("_", r"\_")


# The page.


def tables(directory: Path) -> dict[str, str]:
    """The text between each pair of markers, by their names.

    Raises:
        RunError: If results are damaged.
    """
    data = Data(directory)
    answers = judge(data)
    return {
        "count": counted(answers),
        "claims": claims_table(answers),
        "ends": ends_table(data),
        "questions": questions_table(data),
        "runs": runs_table(data),
    }


def filled(text: str, made: dict[str, str]) -> str:
    """A page with what stands between its markers made anew.

    Raises:
        RunError: If a marker is missing.
    """
    for name, table in made.items():
        begin, end = BEGIN.format(name), END.format(name)
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise RunError(f"the page has no place for {name}; it needs the lines {begin} and {end}, once each")
        head, rest = text.split(begin)
        text = f"{head}{begin}\n\n{table}\n{end}{rest.split(end)[1]}"
    return text
