"""`pcpo evaluate`: what the policies of a run earn and cost, from episodes that training never saw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcpo.cli.options import Checkpoint, Costs, Task, Threads, Workers, costs_from
from pcpo.cli.parsing import UsageError, number, parse
from pcpo.cli.views import (
    check_output,
    print_table,
    run_errors_explained,
    working,
    world_errors_explained,
    write_errors_explained,
)

if TYPE_CHECKING:
    from pcpo.training.evaluate import Evaluation, Judgement, Mean


@dataclass(frozen=True)
class Evaluate:
    """Plays fresh episodes with the trained policies and says how sure one can be that the limits are kept.

    Intervals are 95 % intervals of the means. P(J <= limit) is the posterior probability that the mean cost of all
    episodes that the policy could play is at most the limit; n episodes never give more than n / (n + 1).
    """

    run: Annotated[
        tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR", help="The directory that pcpo train has made.")
    ]
    episodes: Annotated[int, number("--episodes", int, 2, 1_000_000, "the default is 1000")] = 1000
    """Fresh episodes for each seed. Safe: 100 to 10000. Allowed: 2 to 1000000."""
    deterministic: bool = False
    """Plays the likeliest action. The limits were learnt for the policy that draws its actions."""
    checkpoint: Checkpoint = None
    task: Task = None
    cost: Costs = ()
    workers: Workers = None
    threads: Threads = None
    out: Annotated[
        Path | None,
        tyro.conf.arg(
            aliases=["-o"], metavar="FILE", help="Where the numbers go, .json; evaluation.json in the run by default."
        ),
    ] = None


def run(args: Sequence[str]) -> None:
    """`pcpo evaluate DIR [options]`."""
    options = parse(Evaluate, args, prog="pcpo evaluate")
    with run_errors_explained():
        from pcpo.training.run import Run

        opened = Run.open(options.run)
    from pcpo.training import evaluate
    from pcpo.training.files import write_json
    from pcpo.training.host.fleet import Hands
    from pcpo.training.named import again

    out = options.out or options.run / evaluate.FILE
    check_output(out, (".json",))
    _check_no_file_of_the_run(out, options.run)
    with run_errors_explained(), world_errors_explained(), working(f"playing {options.episodes} episodes of each seed"):
        task = again(opened.config, options.task, costs_from(options.cost))
        hands = Hands(options.workers, options.threads)
        found = evaluate.evaluate(opened, options.episodes, options.deterministic, options.checkpoint, task, hands)
    print_table(*_table(found), title=_title(opened.config.task, found))
    with write_errors_explained(out):
        write_json(out, found.to_json())
    print(f"numbers  {out}")


def _check_no_file_of_the_run(out: Path, run: Path) -> None:
    """What a run needs to go on ends in .json, too."""
    from pcpo.training.run import CHECKPOINTS, CONFIG

    there = out.resolve()
    if there == (run / CONFIG).resolve() or (run / CHECKPOINTS).resolve() in there.parents:
        raise UsageError(
            f"--out is {out}, which the run needs to go on; give another file, such as {run / 'mine.json'}"
        )


def _title(task: str, found: "Evaluation") -> str:
    actions = "likeliest actions" if found.deterministic else "actions drawn as in training"
    return f"{task} after {found.update} updates, {actions}"


def _table(found: "Evaluation") -> tuple[list[str], list[list[str]]]:
    headings = ["seed", "episodes", "discounted return", "return"]
    for name in found.pooled.costs:
        headings += [name, "limit", "P(J <= limit)"]
    rows = [_row(str(seed), judgement) for seed, judgement in found.seeds.items()]
    if len(rows) > 1:
        rows.append(_row("all", found.pooled))
    return headings, rows


def _row(name: str, judgement: "Judgement") -> list[str]:
    row = [name, str(judgement.episodes), _shown(judgement.discounted_return), _shown(judgement.undiscounted_return)]
    for cost in judgement.costs.values():
        row += [_shown(cost), f"{cost.limit:g}", _probability(cost.probability_within, judgement.episodes)]
    return row


def _shown(mean: "Mean") -> str:
    return f"{mean.mean:.4g} ({mean.low:.4g} to {mean.high:.4g})"


def _probability(probability: float, episodes: int) -> str:
    """Rounded, and never to certainty."""
    if probability >= episodes / (episodes + 1):
        return f">= {_floor(probability)}"
    if probability <= 1 / (episodes + 1):
        return f"<= {probability:.2g}"
    return "?" if math.isnan(probability) else f"{probability:.3f}"


def _floor(probability: float) -> str:
    digits = 3
    while digits < 9 and float(f"{probability:.{digits}f}") >= 1.0:
        digits += 1
    return f"{probability:.{digits}f}"
