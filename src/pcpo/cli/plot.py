"""`pcpo plot`: learning curves of one or several runs, or the audit of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import tyro

from pcpo.cli.parsing import UsageError, parse
from pcpo.cli.views import PICTURES, Runs, check_output, note, read_runs, tell_figure, write_figure

X: TypeAlias = Literal["updates", "steps"]
Band: TypeAlias = Literal["std", "interval"]


@dataclass(frozen=True)
class Plot:
    """Draws the learning curves of one run, or of several runs of one task.

    Reward, each cost with its limit dashed, and reward against the violations so far; lines are means over seeds. A run
    that is still training can be drawn at any time.
    """

    runs: Runs = ()
    out: Annotated[
        Path | None,
        tyro.conf.arg(
            aliases=["-o"],
            metavar="FILE",
            help="Where the picture goes; .png or .svg, or both without an ending. Without it, into the directory "
            "plots/ of a single run. A file of that name is replaced.",
        ),
    ] = None
    audit: bool = False
    """Draws instead, for one run, what its updates predicted and what they did, CG residuals, multipliers, statuses,
    condition number and the estimated bound."""
    x: X = "updates"
    """The horizontal axis: updates, or steps of the environment."""
    band: Band = "std"
    """Around the mean over seeds: one standard deviation, or a 95 % interval of the mean. The figure says which."""
    trade_off: bool = True
    """Whether to draw reward against violations beside the curves."""


def run(args: Sequence[str]) -> None:
    """`pcpo plot DIR... [options]`."""
    options = parse(Plot, args, prog="pcpo plot")
    if options.audit and len(options.runs) > 1:
        raise UsageError(f"--audit is about one run, but {len(options.runs)} are given; draw them one by one")
    if len(options.runs) > 1 and options.out is None:
        raise UsageError("several runs have no directory in common for their picture; say where with -o FILE.png")
    series = read_runs(options.runs, "pcpo plot")
    out = options.out or next(iter(options.runs)) / "plots" / ("audit" if options.audit else "curves")
    check_output(out, ("", *PICTURES))

    from pcpo.experiments import audit, comparison, curves, plots

    for difference in comparison.differences(series):
        note(difference)
    with plots.style():
        if options.audit:
            figure = audit.audit(series[0], options.x)
        else:
            figure = curves.learning_curves(series, options.band, options.x, options.trade_off)
        files = write_figure(figure, out)
    tell_figure(files)
