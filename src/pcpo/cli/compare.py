"""`pcpo compare`: several runs side by side, as a table and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcpo.cli.parsing import parse
from pcpo.cli.plot import Band, X
from pcpo.cli.views import (
    PICTURES,
    Runs,
    check_output,
    note,
    print_table,
    read_runs,
    tell_figure,
    write_figure,
    write_text,
)

TABLES = (".md", ".csv")


@dataclass(frozen=True)
class Compare:
    """Puts runs of one task side by side.

    Final reward and cost are means over the last tenth of the updates, with a 95 % interval over seeds. A limit is kept
    from the first update whose cost, and every ten-update mean from there on, is at most a tenth above it. Steps per
    second are those of the median update, all seeds together.
    """

    runs: Runs = ()
    out: Annotated[
        Path | None,
        tyro.conf.arg(
            aliases=["-o"],
            metavar="FILE",
            help="Where a picture goes; .png or .svg, or both without an ending. Without it, none is drawn.",
        ),
    ] = None
    table: Annotated[
        Path | None,
        tyro.conf.arg(metavar="FILE", help="Where the table goes besides the terminal; .md, or .csv with every digit."),
    ] = None
    x: X = "updates"
    """The horizontal axis: updates, or steps of the environment."""
    band: Band = "std"
    """Around the mean over seeds: one standard deviation, or a 95 % interval of the mean. The figure says which."""


def run(args: Sequence[str]) -> None:
    """`pcpo compare DIR... [options]`."""
    options = parse(Compare, args, prog="pcpo compare")
    series = read_runs(options.runs, "pcpo compare")
    if options.out:
        check_output(options.out, ("", *PICTURES))
    if options.table:
        check_output(options.table, TABLES, "--table")

    from pcpo.experiments import comparison, curves, plots

    summaries = [comparison.summarise(each) for each in series]
    print_table(*comparison.cells(summaries), title=series[0].task_name)
    for difference in comparison.differences(series):
        note(difference)
    if options.table:
        as_text = comparison.as_csv if options.table.suffix.lower() == ".csv" else comparison.as_markdown
        write_text(options.table, as_text(summaries), "--table")
        print(f"table    {options.table}")
    if options.out:
        with plots.style():
            files = write_figure(curves.side_by_side(series, options.band, options.x), options.out)
        tell_figure(files)
