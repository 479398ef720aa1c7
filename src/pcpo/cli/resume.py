"""`pcpo resume`: goes on with a run where it stopped, bit for bit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcpo.cli import endings
from pcpo.cli.options import Costs, Task, Threads, Workers, costs_from, limits_from
from pcpo.cli.parsing import UsageError, number, os_errors_explained, parse
from pcpo.cli.train import Limits
from pcpo.cli.views import run_errors_explained


@dataclass(frozen=True)
class Resume:
    """Goes on with a run that was stopped or killed, or makes more updates than were asked for at first.

    Without options the rows that follow are the ones that the run would have had if nobody had stopped it.
    """

    run: Annotated[
        tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR", help="The directory that pcpo train has made.")
    ]
    updates: Annotated[int | None, number("--updates", int, 1, 10_000_000, "give more than the run has")] = None
    """Updates in all, those included that were made before; as many as the run was meant to have by default."""
    limit: Limits = ()
    task: Task = None
    cost: Costs = ()
    workers: Workers = None
    threads: Threads = None
    tensorboard: bool = False
    """Writes TensorBoard files too (needs the extra pcpo[tensorboard])."""


def run(args: Sequence[str]) -> int:
    """`pcpo resume DIR [options]`."""
    options = parse(Resume, args, prog="pcpo resume")
    with run_errors_explained():
        from pcpo.training.run import Run

        config = Run.open(options.run).config
    limits = limits_from(options.limit, config.cost_names)
    try:
        config.with_limits(limits)
    except ValueError as error:
        raise UsageError(str(error)) from None
    from pcpo.training import loop
    from pcpo.training.host.fleet import Hands
    from pcpo.training.named import again
    from pcpo.training.progress import display_for

    hands = Hands(options.workers, options.threads)
    manner = loop.Manner(display_for(), tensorboard=options.tensorboard, hands=hands)
    with run_errors_explained(), os_errors_explained(options.run), endings.failures_told(options.run) as failed:
        task = again(config, options.task, costs_from(options.cost))
        ended = loop.resume(options.run, manner, updates=options.updates, limits=limits, task=task)
        return endings.tell(ended)
    return failed.code
