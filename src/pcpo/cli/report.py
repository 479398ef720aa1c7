"""`pcpo report`: any set of runs on one page of HTML that needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcpo.cli.parsing import UsageError, parse
from pcpo.cli.views import check_output, note, working, write_text

if TYPE_CHECKING:
    from pcpo.experiments.report import Left, Subject

ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class Report:
    """Puts any set of runs on one page: a table, curves to hover and zoom, audits, configuration, environment.

    The page is one file of HTML that needs no network, now or later. Runs of different tasks stand one task after
    another. A run that is damaged or empty is named on the page; if no run can be shown, nothing is written.
    """

    directories: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(metavar="DIR...", help="Runs, or directories with runs somewhere below them."),
    ] = ()
    out: Annotated[
        Path,
        tyro.conf.arg(aliases=["-o"], metavar="FILE", help="Where the page goes. A file of that name is replaced."),
    ] = Path("report.html")
    title: Annotated[str, tyro.conf.arg(metavar="TEXT", help="What the page is called.")] = "Training report"


def run(args: Sequence[str]) -> None:
    """`pcpo report DIR... [options]`."""
    options = parse(Report, args, prog="pcpo report")
    if not options.directories:
        raise UsageError("pcpo report needs the directory of a run; try pcpo report runs/*")
    _check_given(options.directories)

    from pcpo.experiments.report import gather, page

    with working("reading runs"):
        subjects, left = gather(options.directories)
    if not subjects:
        others = f" (and {len(left) - 1} more that cannot be shown)" if len(left) > 1 else ""
        raise UsageError(left[0].reason + others)
    check_output(options.out, ENDINGS)
    _tell(subjects, left)
    with working("writing the page"):
        text = page(subjects, left, options.title)
    write_text(options.out, text, "--out")
    print(f"report   {options.out}: {len(subjects)} {'run' if len(subjects) == 1 else 'runs'}")


def _check_given(directories: Sequence[Path]) -> None:
    """What is not there at all was mistyped."""
    for given in directories:
        if not given.exists():
            raise UsageError(f"{given} does not exist; give the directory of a run, which pcpo train makes")
    resolved = [given.resolve() for given in directories]
    twice = [given for given, path in zip(directories, resolved, strict=True) if resolved.count(path) > 1]
    if twice:
        raise UsageError(f"{twice[0]} is given twice; give each run once")


def _tell(subjects: "Sequence[Subject]", left: "Sequence[Left]") -> None:
    for each in left:
        note(f"{each.label} is not shown: {each.reason}")
    for each in subjects:
        if each.unfinished:
            note(f"{each.series.label} is not finished: {each.unfinished}")
