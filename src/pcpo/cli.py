"""The command line: `pcpo COMMAND ...`.

A command's options are a frozen dataclass that tyro reads: field, default, range and help stand in one place. What is
not an option (names of commands and experiments, `--list`, `--version`) is looked up here, in two tables; a new
experiment is a dataclass with `run` and one line in `EXPERIMENTS`, a new command a function and one in `COMMANDS`.

Anything wrong with what the user typed is a `UsageError`: one line on stderr that says what was given, why it is
wrong and what to try, and exit code 2. Nothing here imports jax before there is work for it.
"""

import contextlib
import difflib
import io
import json
import logging
import math
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

Options = TypeVar("Options")


class UsageError(Exception):
    """What the user typed cannot be done. The message is one line: what was given, why it is wrong, what to try.

    Not a ValueError: tyro catches those and draws a box around them.
    """


# Options.


def _number(
    flag: str, kind: type[int] | type[float], low: float | int, high: float | int, advice: str, count: int = 1
) -> Any:
    """How tyro shall read ``count`` numbers between ``low`` and ``high``, both allowed."""

    def read_one(text: str) -> float | int:
        try:
            value = kind(text)
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise UsageError(f"{flag} is {text!r}, which is not {noun}; {advice}") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise UsageError(f"{flag} is {text}, but must be between {low:g} and {high:g}; {advice}")
        return value

    def show(value: Any) -> list[str]:
        return [f"{each:g}" if kind is float else str(each) for each in (value if count > 1 else [value])]

    noun = "INT" if kind is int else "FLOAT"
    return PrimitiveConstructorSpec(
        nargs=count,
        metavar=" ".join([noun] * count),
        instance_from_str=lambda texts: tuple(map(read_one, texts)) if count > 1 else read_one(texts[0]),
        is_instance=lambda value: isinstance(value, tuple if count > 1 else kind),
        str_from_instance=show,
    )


Out: TypeAlias = Annotated[
    Path,
    tyro.conf.arg(
        aliases=["-o"],
        metavar="DIR",
        help="Where figures and numbers go; made if missing. Safe to use again: the files of this experiment are "
        "replaced, all others are left alone.",
    ),
]


class Experiment(Protocol):
    """The options of one experiment, and how to run it."""

    @property
    def out(self) -> Path:
        """Directory for the results."""
        ...

    def run(self) -> list[Path]:
        """Runs the experiment and returns the files written."""
        ...


@dataclass(frozen=True)
class OptimizationPath:
    """The paper's two-dimensional example: where both projections lead, and what is true of its claims (seconds).

    Appendix "Comparison of Optimization Paths": update directions, paths, and a verdict on every claim about them.
    """

    out: Out = Path("runs/optimization-path")
    delta: Annotated[
        float, _number("--delta", float, 1e-12, 1.0, "the default is 0.001; 1e-5 to 1e-2 draw a smooth path")
    ] = 1e-3
    """KL radius of each reward step; the paper names none. Safe: 1e-5 to 1e-2. Allowed: 1e-12 to 1."""
    steps: Annotated[int, _number("--steps", int, 1, 20_000, "the default is 2000")] = 2000
    """Updates along each path. Safe: 500 to 5000. Allowed: 1 to 20000; after few, claims about paths stay untested."""
    start: Annotated[
        tuple[float, float], _number("--start", float, -100.0, 100.0, "the paper's start is --start 0.5 -2", count=2)
    ] = (0.5, -2.0)
    """Where the paths start; the claims are about 0.5 -2 only. Safe: -3 to 3 each. Allowed: -100 to 100."""

    def run(self) -> list[Path]:
        """Runs `pcpo.experiments.optimization_path`."""
        from pcpo.experiments.optimization_path import reproduce

        return reproduce(self.out, delta=self.delta, steps=self.steps, start=self.start)


@dataclass(frozen=True)
class Geometry:
    """Pictures of one update in two dimensions, for TRPO, PCPO, CPO, and PDO with FPO (seconds)."""

    out: Out = Path("runs/geometry")

    def run(self) -> list[Path]:
        """Runs `pcpo.experiments.geometry`."""
        from pcpo.experiments.geometry import reproduce

        return reproduce(self.out)


@dataclass(frozen=True)
class Bounds:
    """The paper's worst-case bounds: where they fail, and how loose they are (a minute or more).

    Theorems feasibleCase and infeasibleCase, on random tabular problems in which every expectation is exact.
    """

    out: Out = Path("runs/bounds")
    problems: Annotated[int, _number("--problems", int, 10, 20_000, "the default is 2000")] = 2000
    """How many random problems; time grows in proportion. Safe: 300 to 5000. Allowed: 10 to 20000."""
    seed: Annotated[int, _number("--seed", int, 0, 2**31 - 1, "the default is 0")] = 0
    """Seed of the random problems. Safe: all of 0 to 2147483647."""

    def run(self) -> list[Path]:
        """Runs `pcpo.experiments.bounds`."""
        from pcpo.experiments.bounds import reproduce

        return reproduce(self.out, problems=self.problems, seed=self.seed)


EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    "optimization-path": OptimizationPath,
    "geometry": Geometry,
    "bounds": Bounds,
}
"""What `pcpo reproduce` knows, by name."""


# Commands.


def reproduce(args: Sequence[str]) -> None:
    """`pcpo reproduce NAME -o DIR [options]`."""
    if not args:
        raise UsageError(f"reproduce needs the name of an experiment: {_alternatives(EXPERIMENTS)}")
    name, *rest = args
    if name in {"-h", "--help"}:
        print(_REPRODUCE_HELP.format(experiments=_experiments()), end="")
    elif name == "--list":
        if rest:
            raise UsageError(f"--list is followed by {rest[0]!r}, but takes nothing; try pcpo reproduce --list")
        print(_experiments())
    elif name.startswith("-"):
        raise UsageError(f"reproduce is followed by {name!r}, but the name comes first; try pcpo reproduce NAME -o DIR")
    elif name not in EXPERIMENTS:
        raise UsageError(f"there is no experiment {name!r}; {_closest(name, EXPERIMENTS)}")
    else:
        experiment = parse(EXPERIMENTS[name], rest, prog=f"pcpo reproduce {name}")
        _check_writable(experiment.out)
        with _progress_on_stderr(), _os_errors_explained(experiment.out):
            files = experiment.run()
        _tell(files)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "reproduce": reproduce,
}
"""What `pcpo` knows, by name."""

_HELP = """\
usage: pcpo COMMAND ...

Projection-based constrained policy optimisation: maximise reward while keeping costs under limits.

commands:
  reproduce NAME -o DIR   remake an experiment of the paper (pcpo reproduce --list names them)

options:
  -h, --help              this text; pcpo COMMAND --help explains a command
  --version               the version
"""

_REPRODUCE_HELP = """\
usage: pcpo reproduce NAME -o DIR [options]

Remakes an experiment of the paper: computes it, draws it and judges what the paper says of it.

experiments:
{experiments}

options:
  -o DIR, --out DIR       where figures and numbers go (default: runs/NAME); safe to use again
  --list                  the names, as above
  -h, --help              this text; pcpo reproduce NAME --help explains the options of one experiment
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code: 0, or 2 for what cannot be done as typed.

    Args:
        argv: The arguments after the program's name; `sys.argv` by default.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        _dispatch(args)
    except UsageError as error:
        print(f"pcpo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pcpo: interrupted", file=sys.stderr)
        return 130
    return 0


def _dispatch(args: list[str]) -> None:
    if not args or args[0] in {"-h", "--help"}:
        print(_HELP, end="")
    elif args[0] == "--version":
        from pcpo import __version__

        print(f"pcpo {__version__}")
    elif args[0] in COMMANDS:
        COMMANDS[args[0]](args[1:])
    elif args[0].startswith("-"):
        raise UsageError(f"there is no option {args[0]!r}; {_closest(args[0], ('--help', '--version'))}")
    else:
        raise UsageError(f"there is no command {args[0]!r}; {_closest(args[0], COMMANDS)}")


# Parsing.


def parse(options: Callable[..., Options], args: Sequence[str], prog: str) -> Options:
    """The options of a command, read by tyro; ``--help`` prints and exits.

    tyro answers a mistake with a box of many lines. Ranges and spelling are therefore checked by us (`_number`, and
    the arguments that tyro did not recognise); whatever else it rejects is caught and put on one line.
    """
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed, unknown = tyro.cli(options, args=args, prog=prog, return_unknown_args=True)
    except SystemExit as exit_:
        if not exit_.code:
            raise
        said = _one_line(complaint.getvalue())
        raise UsageError(said or f"{' '.join(args)!r} cannot be read; try {prog} --help") from None
    if unknown and unknown[0].startswith("-"):
        flag = unknown[0].split("=")[0]
        flags = [f"--{name.replace('_', '-')}" for name in vars(parsed)]
        raise UsageError(f"{prog} has no option {flag!r}; {_closest(flag, flags)}")
    if unknown:
        raise UsageError(f"{unknown[0]!r} stands where no value is expected; try {prog} --help")
    return parsed


def _one_line(box: str) -> str:
    """The text in one of tyro's boxes, without colours, frame, rules and title.

    A box has a frame with the title in it, or, where the terminal is not UTF-8, a title with a rule below it.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    rows = [row for row in (line.strip("│ \t") for line in plain.splitlines()) if row]
    untitled = rows[1:] if len(rows) > 1 and not rows[1].strip("-") else rows
    text = " ".join(row for row in untitled if not row.startswith(("╭", "╰")) and row.strip("─-"))
    return text[:1].lower() + re.sub(r"\s+", " ", text[1:])


def _closest(given: str, valid: Iterable[str]) -> str:
    names = list(valid)
    near = difflib.get_close_matches(given, names, n=1) or [name for name in names if given.strip("-") in name]
    return f"did you mean {near[0]}?" if near else f"try {_alternatives(names)}"


def _alternatives(valid: Iterable[str]) -> str:
    *others, last = valid
    return f"{', '.join(others)} or {last}" if others else last


def _check_writable(directory: Path) -> None:
    """Makes the directory, and a file in it, before any time is spent on what goes there."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--out is {directory}, which is a file; give a directory")
    with _os_errors_explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass


@contextlib.contextmanager
def _os_errors_explained(directory: Path) -> Generator[None]:
    """What the file system refuses below ``directory`` is the user's to mend, and no traceback."""
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else directory
        if where != directory and directory not in where.parents and where not in directory.parents:
            raise
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{where} cannot be written ({reason}); give another directory with --out") from None


# Talking.


@contextlib.contextmanager
def _progress_on_stderr() -> Generator[None]:
    """Shows what the experiments log: one line for each part that takes a while."""
    logger, handler = logging.getLogger("pcpo"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _tell(files: list[Path]) -> None:
    """Prints where everything is, and the verdicts if the experiment's numbers contain any."""
    for file in files:
        if file.suffix == ".png":
            drawing = file.with_suffix(".svg")
            print(f"figure   {file}" + (f" (and {drawing.name})" if drawing in files else ""))
    for file in files:
        if file.suffix == ".json":
            print(f"numbers  {file}")
            for verdict in json.loads(file.read_text(encoding="utf-8")).get("verdicts", []):
                print(f"\n{verdict['verdict'].upper():8} {_wrapped(verdict['claim'])}")
                print(f"{'':8} {_wrapped(verdict['evidence'])}")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=108, initial_indent=" " * 9, subsequent_indent=" " * 9).lstrip()


def _experiments() -> str:
    """One paragraph for each experiment."""
    lines = []
    for name, options in EXPERIMENTS.items():
        summary = (options.__doc__ or "").partition("\n")[0]
        lines.append(textwrap.fill(summary, width=108, initial_indent=f"  {name:<22}", subsequent_indent=" " * 24))
    return "\n".join(lines)
