"""`pcpo render`: an episode as a film."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pcpo.cli.options import Checkpoint, Costs, Steps, Task, costs_from
from pcpo.cli.parsing import UsageError, alternatives, closest, number, parse
from pcpo.cli.views import check_output, run_errors_explained, working, world_errors_explained, write_errors_explained
from pcpo.training.config import LARGEST_SEED

if TYPE_CHECKING:
    from pcpo.training.programs import AnyProgram

FILMS = (".gif", ".mp4")


@dataclass(frozen=True)
class Render:
    """Makes a film of an episode: of a trained policy, or of one that has learnt nothing yet.

    A name of a task in place of a directory shows the task with an untrained policy.
    """

    what: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="DIR|TASK", help="A directory that pcpo train has made, or the name of a task."),
    ]
    out: Annotated[
        Path | None,
        tyro.conf.arg(
            aliases=["-o"],
            metavar="FILE",
            help="Where the film goes: .gif always works, .mp4 needs ffmpeg. A file of that name is replaced.",
        ),
    ] = None
    episodes: Annotated[int, number("--episodes", int, 1, 100, "the default is 1")] = 1
    """How many episodes, one after the other. Safe: 1 to 5. Allowed: 1 to 100."""
    seed: Annotated[int, number("--seed", int, 0, 2**31 - 101, "the default is 0")] = 0
    """Which episode; the same number gives the same one. Safe: all of 0 to 2147483547."""
    policy: Annotated[
        int | None,
        number("--policy", int, 0, LARGEST_SEED, "give one of the run's seeds"),
        tyro.conf.arg(metavar="SEED", help="Whose policy, where the run trained several seeds; the first by default."),
    ] = None
    deterministic: bool = False
    """Plays the likeliest action rather than one drawn as in training."""
    checkpoint: Checkpoint = None
    task: Task = None
    cost: Costs = ()
    max_episode_steps: Steps = None
    fps: Annotated[int, number("--fps", int, 1, 60, "the default is 10")] = 10
    """Steps per second. Safe: 5 to 30. Allowed: 1 to 60."""


def run(args: Sequence[str]) -> None:
    """`pcpo render DIR|TASK -o FILE [options]`."""
    options = parse(Render, args, prog="pcpo render")
    if options.out is None:
        raise UsageError(f"render needs a file for the film; try pcpo render {options.what} -o episode.gif")
    check_output(options.out, FILMS)
    from pcpo.training.video import checked_format, save_animation

    try:
        checked_format(options.out)
    except ValueError as error:
        raise UsageError(f"--out is {options.out}: {error}") from None
    with working("playing and drawing"):
        program, state, place = _policy(options)
        from pcpo.training.render import film_episodes

        frames = film_episodes(program, state, place, options.episodes, options.seed, options.deterministic)
        with world_errors_explained(), write_errors_explained(options.out):
            save_animation(frames, options.out, options.fps)
    print(f"film     {options.out}")


def _policy(options: Render) -> "tuple[AnyProgram, Any, int]":
    """The program, the state of its policies, and which of them is to play."""
    if Path(options.what).exists():
        return _trained(options)
    from pcpo.tasks import registry

    if ":" not in options.what and options.what not in registry.names():
        near = closest(options.what, registry.names())
        raise UsageError(f"{options.what!r} is neither a directory nor a task; {near}")
    if options.checkpoint is not None or options.policy is not None:
        raise UsageError(
            f"{options.what} is a task, and nothing has been trained on it; leave out --checkpoint and --policy"
        )
    from pcpo.training.config import config_for
    from pcpo.training.named import COST, STEPS, named
    from pcpo.training.programs import program_for

    # The policy has learnt nothing, so neither costs nor their limits matter, unless they are asked for.
    costs = costs_from(options.cost)
    elsewhere = {COST: () if costs is None else costs, STEPS: options.max_episode_steps}
    given = {name: value for name, value in elsewhere.items() if value is not None} if ":" in options.what else {}
    try:
        found = named(options.what, given)
        limits = None if found.preset else dict.fromkeys(found.task.cost_names, 0.0)
        config = config_for(options.what, limits, task_options=given)
    except ValueError as error:
        raise UsageError(str(error)) from None
    program = program_for(config, found.task)
    return program, program.init(config.hyper()), 0


def _trained(options: Render) -> "tuple[AnyProgram, Any, int]":
    from pcpo.training.evaluate import trained
    from pcpo.training.named import again
    from pcpo.training.run import Run

    with run_errors_explained():
        opened = Run.open(options.what)
        seeds = opened.config.all_seeds
        if options.policy is not None and options.policy not in seeds:
            raise UsageError(f"--policy is {options.policy}, but the seeds of {options.what} are {_listed(seeds)}")
        task = again(opened.config, options.task, costs_from(options.cost))
        program, found = trained(opened, options.checkpoint, task)
    return program, found.tree, 0 if options.policy is None else seeds.index(options.policy)


def _listed(seeds: Sequence[int]) -> str:
    return alternatives(map(str, seeds)) if len(seeds) < 6 else f"{seeds[0]} to {seeds[-1]}"
