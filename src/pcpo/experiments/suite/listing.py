"""What experiments there are, what they cost, and how much of each is done. Nothing here needs jax or numpy."""

import json
from collections.abc import Iterable
from pathlib import Path

from pcpo.experiments.suite.plan import Experiment, units
from pcpo.experiments.suite.presets import hours


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


def cost(experiment: Experiment) -> str:
    """What the whole of it takes, in words."""
    seeds, _, updates = experiment.scale
    time = hours(experiment)
    shown = f"{60.0 * time:.0f} minutes" if time < 1.9 else f"{time:.0f} hours"
    return f"{len(experiment.variants)} variants x {seeds} seeds x {updates} updates, about {shown} on two cores"
