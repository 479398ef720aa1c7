"""What is said when a training ends: where it is, how it did, and how to go on. The picture is drawn then, too."""

import contextlib
import shlex
import signal
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pcpo.cli.parsing import UsageError

if TYPE_CHECKING:
    from pcpo.training.loop import Ended
    from pcpo.training.run import Run

LAST = 10
"""Updates over which the last numbers are means."""


def tell(ended: "Ended") -> int:
    """Draws the curves, says the rest, and returns the exit code: that of the signal, if one ended it."""
    from pcpo.training.run import Run

    run = Run.open(ended.directory)
    if run.updates:
        _numbers(run)
        _draw(run)
    for warning in ended.warnings:
        print(f"warning  {warning}")
    here = shlex.quote(str(ended.directory))
    if ended.stopped_by is None:
        print(f"run      {ended.directory}: {ended.updates} updates")
        print(f"next     pcpo evaluate {here}, or pcpo resume {here} --updates {2 * ended.updates}")
        return 0
    print(f"run      {ended.directory}: {ended.updates} of {ended.of} updates, stopped ({ended.stopped_by})")
    print(f"next     pcpo resume {here}")
    numbers = {"interrupted": signal.SIGINT, "terminated": signal.SIGTERM}
    return 128 + numbers[ended.stopped_by] if ended.stopped_by in numbers else 0


@dataclass
class Failure:
    """Whether an environment failed for good."""

    code: int = 0


@contextlib.contextmanager
def failures_told(directory: Path) -> Generator[Failure]:
    """An environment that cannot go on ends the command with its own error, and with what is left of the run."""
    from pcpo.tasks.host import WorldError
    from pcpo.training.run import Run

    failure = Failure()
    try:
        yield failure
    except WorldError as error:
        failure.code = 1
        for trace in getattr(error, "__notes__", ()):
            print(trace.rstrip(), file=sys.stderr)
        print(f"pcpo: {error}", file=sys.stderr)
        updates = Run.open(directory).updates
        here = shlex.quote(str(directory))
        print(f"run      {directory}: {updates} updates, saved; stopped (the environment)")
        print(f"next     pcpo resume {here}, once the environment is mended")


def _numbers(run: "Run") -> None:
    """Means over the last updates and all seeds."""
    count = min(LAST, run.updates)
    over = f"mean of the last {count} updates" if count > 1 else "of the only update"
    print(f"reward   {run.column('discounted_return')[-count:].mean():.4g} (discounted, {over})")
    for name, limit in run.config.limits.items():
        cost = run.column("costs", name)[-count:].mean()
        so_far = run.column("cumulative_violations", name)[-1].mean()
        print(f"{name:<8} {cost:.4g}, limit {limit:g} ({over}); violations in all {so_far:.4g}")


def _draw(run: "Run") -> None:
    """The learning curves, into the run. A picture that cannot be written takes nothing from what was learnt."""
    from pcpo.cli.views import note, tell_figure, write_figure
    from pcpo.experiments import curves, plots, series

    path = run.directory / "plots" / "curves"
    try:
        path.parent.mkdir(exist_ok=True)
        with plots.style():
            tell_figure(write_figure(curves.learning_curves([series.read_series(run, run.directory.name)]), path))
    except (OSError, UsageError) as error:
        note(f"no picture was drawn: {error}")
