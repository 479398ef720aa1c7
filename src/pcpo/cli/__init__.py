"""The command line: `pcpo COMMAND ...`.

Each command is a module of this package with a function ``run``; a new one is such a module and one line in `COMMANDS`.
What all share is in `pcpo.cli.parsing`. Nothing here imports jax before there is work for it.

Anything wrong with what the user typed is a `UsageError`: one line on stderr that says what was given, why it is
wrong and what to try, and exit code 2.
"""

import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pcpo.cli import compare, evaluate, plot, render, report, reproduce, resume, tasks, train
from pcpo.cli.cache import keep_compiled
from pcpo.cli.parsing import UsageError, closest
from pcpo.training.memory import keep_freed_memory


class Command(NamedTuple):
    """One command."""

    run: Callable[[Sequence[str]], int | None]
    """Takes the arguments after the command's name; returns an exit code where it is not 0."""
    usage: str
    """The name with what must follow it."""
    summary: str


COMMANDS: dict[str, Command] = {
    "train": Command(train.run, "train TASK", "train a policy under limits; leaves a run, a directory"),
    "resume": Command(resume.run, "resume DIR", "go on with a run where it stopped, bit for bit"),
    "plot": Command(plot.run, "plot DIR... -o FILE", "draw learning curves of one or several runs, or audit one"),
    "compare": Command(compare.run, "compare DIR...", "put runs side by side: a table, and a picture with -o FILE"),
    "report": Command(report.run, "report DIR...", "put any set of runs on one page of HTML that works offline"),
    "evaluate": Command(evaluate.run, "evaluate DIR", "play fresh episodes: reward, cost, and is the limit kept?"),
    "render": Command(render.run, "render DIR -o FILE", "make a film of an episode, .gif or .mp4"),
    "tasks": Command(tasks.run, "tasks [TASK]", "list what there is to train on"),
    "reproduce": Command(
        reproduce.run, "reproduce NAME -o DIR", "remake an experiment of the paper (pcpo reproduce --list names them)"
    ),
}
"""What `pcpo` knows, by name."""

_HELP = """\
usage: pcpo COMMAND ...

Projection-based constrained policy optimisation: maximise reward while keeping costs under limits.

commands:
{commands}

options:
  -h, --help              this text; pcpo COMMAND --help explains a command
  --version               the version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code: 0, 2 for what cannot be done as typed, 130 if interrupted.

    Args:
        argv: The arguments after the program's name; `sys.argv` by default. Only then is this a process of its own,
            and keeps what it compiles and the memory it has used.
    """
    if argv is None:
        sys.path.append(str(Path.cwd()))  # for package.module:factory, as `python -m pcpo` has it
        keep_compiled()
        keep_freed_memory()
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(args) or 0
    except UsageError as error:
        print(f"pcpo: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has had enough
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        print("pcpo: interrupted", file=sys.stderr)
        return 130


def _dispatch(args: list[str]) -> int | None:
    if not args or args[0] in {"-h", "--help"}:
        print(_HELP.format(commands="\n".join(map(_line, COMMANDS.values()))), end="")
    elif args[0] == "--version":
        from pcpo import __version__

        print(f"pcpo {__version__}")
    elif args[0] in COMMANDS:
        return COMMANDS[args[0]].run(args[1:])
    elif args[0].startswith("-"):
        raise UsageError(f"there is no option {args[0]!r}; {closest(args[0], ('--help', '--version'))}")
    else:
        raise UsageError(f"there is no command {args[0]!r}; {closest(args[0], COMMANDS)}")
    return None


def _line(command: Command) -> str:
    """A command in the help: its usage, and from column 26 on what it does."""
    return textwrap.fill(f"  {command.usage:<22}  {command.summary}", width=108, subsequent_indent=" " * 26)
