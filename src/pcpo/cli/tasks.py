"""`pcpo tasks`: what there is to train on."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from pcpo.cli.parsing import UsageError, parse


@dataclass(frozen=True)
class Tasks:
    """Lists the tasks, or says all there is to know of one."""

    task: Annotated[
        tyro.conf.Positional[str | None], tyro.conf.arg(metavar="TASK", help="The name of a task; all by default.")
    ] = None


def run(args: Sequence[str]) -> None:
    """`pcpo tasks [TASK]`."""
    options = parse(Tasks, args, prog="pcpo tasks")
    from pcpo.tasks import registry

    if options.task is None:
        for name in registry.names():
            print(f"{name}\n{_wrapped(registry.describe(name))}\n")
        print("pcpo train TASK trains on one; pcpo render TASK -o FILE.gif shows it.")
        return
    try:
        print(_wrapped(registry.describe(options.task)))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=108, initial_indent="  ", subsequent_indent="  ")
