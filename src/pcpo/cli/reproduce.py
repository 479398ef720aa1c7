"""`pcpo reproduce`: remake an experiment of the paper.

An experiment that trains is a line in `pcpo.experiments.suite.presets`; any other is a dataclass with ``run`` and one
line in `EXPERIMENTS`.
"""

import contextlib
import json
import logging
import sys
import textwrap
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, TypeAlias

import tyro

from pcpo.cli import suite
from pcpo.cli.parsing import UsageError, check_writable, closest, number, os_errors_explained, parse
from pcpo.experiments.suite import listing, presets

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
        float, number("--delta", float, 1e-12, 1.0, "the default is 0.001; 1e-5 to 1e-2 draw a smooth path")
    ] = 1e-3
    """KL radius of each reward step; the paper names none. Safe: 1e-5 to 1e-2. Allowed: 1e-12 to 1."""
    steps: Annotated[int, number("--steps", int, 1, 20_000, "the default is 2000")] = 2000
    """Updates along each path. Safe: 500 to 5000. Allowed: 1 to 20000; after few, claims about paths stay untested."""
    start: Annotated[
        tuple[float, float], number("--start", float, -100.0, 100.0, "the paper's start is --start 0.5 -2", count=2)
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
    """The paper's worst-case bounds: where they fail, and how loose they are (seconds).

    Theorems feasibleCase and infeasibleCase, on random tabular problems in which every expectation is exact.
    """

    out: Out = Path("runs/bounds")
    problems: Annotated[int, number("--problems", int, 10, 20_000, "the default is 2000")] = 2000
    """How many random problems; time grows in proportion. Safe: 300 to 5000. Allowed: 10 to 20000."""
    seed: Annotated[int, number("--seed", int, 0, 2**31 - 1, "the default is 0")] = 0
    """Seed of the random problems. Safe: all of 0 to 2147483647."""

    def run(self) -> list[Path]:
        """Runs `pcpo.experiments.bounds`."""
        from pcpo.experiments.bounds import reproduce

        return reproduce(self.out, problems=self.problems, seed=self.seed)


@dataclass(frozen=True)
class Claims:
    """Every claim of the paper about experiments, judged by the results that are there (seconds).

    A verdict for each, with our number and its interval: reproduced, not reproduced, undecided, or not checkable.
    """

    out: Out = Path("runs/claims")
    results: Annotated[
        Path,
        tyro.conf.arg(
            metavar="DIR",
            help="Holds a directory for each experiment that was run, as the repository's own does. Safe: it is only "
            "read.",
        ),
    ] = Path("results")
    page: Annotated[
        Path | None,
        tyro.conf.arg(
            metavar="FILE",
            help="A page whose tables are made anew between their markers, such as docs/results.md. Safe: the rest of "
            "the page stays as it is.",
        ),
    ] = None

    def run(self) -> list[Path]:
        """Runs `pcpo.experiments.claims`."""
        from pcpo.cli.views import run_errors_explained
        from pcpo.experiments.claims import reproduce

        with run_errors_explained():
            return reproduce(self.out, results=self.results, page=self.page)


EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    "optimization-path": OptimizationPath,
    "geometry": Geometry,
    "bounds": Bounds,
    "claims": Claims,
    **{name: suite.options_of(experiment) for name, experiment in presets.EXPERIMENTS.items()},
}
"""What `pcpo reproduce` knows, by name."""


# The command.


def run(args: Sequence[str]) -> None:
    """`pcpo reproduce NAME -o DIR [options]`."""
    if not args:
        raise UsageError("reproduce needs the name of an experiment; pcpo reproduce --list names them")
    name, *rest = args
    if name in {"-h", "--help"}:
        print(_REPRODUCE_HELP.format(experiments=_experiments()), end="")
    elif name == "--list":
        if rest:
            raise UsageError(f"--list is followed by {rest[0]!r}, but takes nothing; try pcpo reproduce --list")
        print(_experiments(full=True))
    elif name.startswith("-"):
        raise UsageError(f"reproduce is followed by {name!r}, but the name comes first; try pcpo reproduce NAME -o DIR")
    elif name not in EXPERIMENTS:
        raise UsageError(f"there is no experiment {name!r}; {_meant(name)}")
    else:
        experiment = parse(EXPERIMENTS[name], rest, prog=f"pcpo reproduce {name}")
        check_writable(experiment.out)
        with _progress_on_stderr(), os_errors_explained(experiment.out):
            files = experiment.run()
        _tell(files)


_REPRODUCE_HELP = """\
usage: pcpo reproduce NAME -o DIR [options]

Remakes an experiment of the paper: computes it, draws it and judges what the paper says of it.

experiments:
{experiments}

options:
  -o DIR, --out DIR       where figures and numbers go (default: runs/NAME); safe to use again
  --list                  the names, with what each costs on two cores and how much is done in results/ or runs/
  -h, --help              this text; pcpo reproduce NAME --help explains the options of one experiment
"""


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


def _meant(name: str) -> str:
    """What was probably meant; all names would not fit on a line."""
    near = closest(name, EXPERIMENTS)
    return near if near.startswith("did you mean") else "pcpo reproduce --list names them"


def _experiments(full: bool = False) -> str:
    """One paragraph for each experiment, and with ``full`` what it costs and how much of it is done here."""
    lines = []
    for name, options in EXPERIMENTS.items():
        text = (options.__doc__ or "").partition("\n")[0]
        if full and name in presets.EXPERIMENTS:
            experiment = presets.EXPERIMENTS[name]
            directories = Path("results") / name, Path("runs") / name
            state = listing.state(experiment, directories)
            text = f"{experiment.summary} [{listing.cost(experiment, directories)}; {state}]"
        lines.append(textwrap.fill(text, width=108, initial_indent=f"  {name:<24}", subsequent_indent=" " * 26))
    return "\n".join(lines)
