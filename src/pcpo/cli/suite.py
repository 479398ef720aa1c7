"""The options of the experiments that train, all alike: how much to run, whose results to merge, or only to draw."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from pcpo.cli.parsing import UsageError, closest, number
from pcpo.experiments.suite.plan import Experiment, Share
from pcpo.experiments.suite.presets import EXPERIMENTS

Out = Annotated[
    Path,
    tyro.conf.arg(
        aliases=["-o"],
        metavar="DIR",
        help="Where runs, results and figures go. Safe to use again: what is done is not done twice, and what was "
        "stopped goes on.",
    ),
]
Merge = Annotated[
    tyro.conf.UseAppendAction[tuple[Path, ...]],
    tyro.conf.arg(
        metavar="DIR",
        help="Trains nothing, but takes what fits from a directory with results or runs, such as another machine's; "
        "repeatable. Safe: what is not of this experiment is left out.",
    ),
]
Only = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="VARIANT", help="Only this variant; repeatable. Safe: all of them, which is what is run."),
]


@dataclasses.dataclass(frozen=True)
class Training:
    """An experiment that trains."""

    name: ClassVar[str] = ""

    out: Out
    seeds: Annotated[int | None, number("--seeds", int, 1, 4096, "leave it out for the experiment's own")] = None
    """Seeds 0, 1, ... of each variant, in the experiment's groups. Safe: all; the experiment's own by default."""
    updates: Annotated[int | None, number("--updates", int, 1, 10_000_000, "leave it out for the experiment's own")] = (
        None
    )
    """Updates of each run; more can be made later; of merged ones, how many to take. Safe: all; its own by default."""
    hours: Annotated[float | None, number("--hours", float, 1e-6, 10_000.0, "try --hours 1")] = None
    """Hours of the clock, after which all is saved; the same command goes on. Safe: all; no end by default."""
    batch_size: Annotated[int | None, number("--batch-size", int, 1, 100_000_000, "try --batch-size 500")] = None
    """Steps per update, for a try only: such results are never judged. Safe: 100 and more; the paper's by default."""
    share: str = "1/1"
    """I/N: this machine does the I-th of N shares of the work, which can be merged later. Safe: all."""
    only: Only = ()
    merge: Merge = ()
    draw: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Trains nothing, but draws the figures anew from the results that are there. Safe: always."""

    def run(self) -> list[Path]:
        """Runs, merges or draws; returns the files with what came out."""
        experiment = EXPERIMENTS[self.name]
        share, only = _share(self.share), _known(experiment, self.only)
        if self.merge and self.draw:
            raise UsageError("--merge and --draw are given, but --merge draws too; leave out --draw")
        from pcpo.cli.views import run_errors_explained, world_errors_explained

        with run_errors_explained(), world_errors_explained():
            stopped_by = None
            if self.merge:
                self._merge(experiment)
            elif not self.draw:
                stopped_by = self._train(experiment, share, only)
            files = _drawn(experiment, self.out)
        if stopped_by == "interrupted":
            raise KeyboardInterrupt
        if stopped_by == "terminated":
            sys.exit(143)
        return files

    def _train(self, experiment: Experiment, share: Share, only: tuple[str, ...]) -> str | None:
        from pcpo.experiments.suite import runner
        from pcpo.training.progress import display_for

        budget = runner.Budget(self.seeds, self.updates, self.hours, self.batch_size, share, only)
        try:
            ran = runner.run(experiment, self.out, budget, display_for)
        except ValueError as error:
            raise UsageError(str(error)) from None
        print(f"done     {ran.complete} of {ran.pieces} pieces of work in {self.out}")
        if ran.stopped_by is not None:
            print(f"stopped  {ran.stopped_by}; the same command goes on")
        return ran.stopped_by

    def _merge(self, experiment: Experiment) -> None:
        from pcpo.experiments.suite import runner

        new = runner.merge(experiment, self.merge, self.out, self.updates)
        print("merged   " + (", ".join(new) or "nothing that was not there already"))


def _drawn(experiment: Experiment, directory: Path) -> list[Path]:
    from pcpo.experiments.suite import figures

    return figures.draw(experiment, directory)


def _share(text: str) -> Share:
    this, slash, of = text.partition("/")
    if not (slash and this.isdigit() and of.isdigit() and 1 <= int(this) <= int(of)):
        raise UsageError(f"--share is {text!r}, but must be I/N with I from 1 to N; try --share 1/2")
    return Share(int(this), int(of))


def _known(experiment: Experiment, only: tuple[str, ...]) -> tuple[str, ...]:
    names = [variant.name for variant in experiment.variants]
    for name in only:
        if name not in names:
            raise UsageError(f"{experiment.name} has no variant {name!r}; {closest(name, names)}")
    return only


def options_of(experiment: Experiment) -> Any:
    """The options of one experiment as a dataclass, with its own directory and its own help."""
    seeds, _, updates = experiment.scale
    fields = [("out", Out, dataclasses.field(default=Path("runs") / experiment.name))]
    made: Any = dataclasses.make_dataclass("Training", fields, bases=(Training,), frozen=True)
    made.name = experiment.name
    made.__doc__ = f"{experiment.summary} ({seeds} seeds x {updates} updates; in the paper: {experiment.place})"
    return made
