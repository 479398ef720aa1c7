"""What experiments there are, what they cost, and how much of each is done. Nothing here needs jax or numpy."""

import json
from collections.abc import Iterable
from pathlib import Path

from pcpo.experiments.suite.plan import Experiment, units
from pcpo.experiments.suite.presets import hours, steps


def done(directory: Path) -> dict[str, int]:
    """Updates of each piece of work whose results are in a directory, by its name; damaged ones are left out."""
    found: dict[str, int] = {}
    for path in sorted(directory.glob("*.seed*-*.json")) if directory.is_dir() else []:
        try:
            found[path.stem] = int(json.loads(path.read_text(encoding="utf-8"))["updates"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def state(experiment: Experiment, directories: Iterable[Path]) -> str:
    """How much of an experiment is done, at its full scale, in whichever directory has most of it.

    Returns:
        Words such as ``"done"``, ``"2 of 7 pieces done, 1 begun"``, ``"not run"``.
    """
    wanted = [unit.name for unit in units(experiment, experiment.scale.seeds)]
    best = (0, 0)
    for directory in directories:
        updates = done(directory)
        complete = sum(updates.get(name, 0) >= experiment.scale.updates for name in wanted)
        variants = {each.name for each in experiment.variants}
        started = [name for name in updates if name.split(".seed")[0] in variants]
        best = max(best, (complete, max(0, len(started) - complete)))
    complete, begun = best
    if complete == len(wanted):
        return "done"
    if not complete and not begun:
        return "not run"
    return f"{complete} of {len(wanted)} pieces done" + (f", {begun} begun" if begun else "")


def cost(experiment: Experiment, directories: Iterable[Path] = ()) -> str:
    """What the whole of it takes, in words: by the records of what was run of it on two cores, where there are any."""
    seeds, _, updates = experiment.scale
    recorded = [rate for directory in directories if (rate := _seconds_per_step(directory)) is not None]
    time = sum(steps(each, seeds, updates) for each in experiment.variants) * recorded[0] / 3600.0 if recorded else None
    by = "" if time is None else ", by what is recorded of it"
    time = hours(experiment) if time is None else time
    shown = f"{60.0 * time:.0f} minutes" if time < 1.9 else f"{time:.0f} hours"
    return f"{len(experiment.variants)} variants x {seeds} seeds x {updates} updates, about {shown} on two cores{by}"


def _seconds_per_step(directory: Path) -> float | None:
    """Of all pieces of work in a directory that were run on two cores; None where there are none."""
    seconds = count = 0.0
    for path in sorted(directory.glob("*.seed*-*.json")) if directory.is_dir() else []:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            config, versions = record["config"], record["versions"]
            if versions["cores"] == "2" and versions["device"].startswith("cpu"):
                taken, done_ = float(record["seconds"]), record["updates"] * config["seeds"] * config["batch_size"]
                seconds, count = seconds + taken, count + done_
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return seconds / count if count else None
