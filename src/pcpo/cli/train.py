"""`pcpo train`: from a task to a policy, and to a run that can be plotted, resumed, evaluated and compared."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pcpo.cli import endings
from pcpo.cli.options import (
    Costs,
    Steps,
    Threads,
    Workers,
    as_option,
    costs_from,
    given,
    limits_from,
    pairs_from,
    per_cost,
    with_answers,
)
from pcpo.cli.parsing import UsageError, check_writable, os_errors_explained, parse, removed_if_refused
from pcpo.cli.views import run_errors_explained
from pcpo.training.config import PRESET, Config, config_for
from pcpo.training.settings import settings_of

if TYPE_CHECKING:
    from pcpo.tasks.api import Task

SETTINGS = settings_of(Config)
SWITCHES = tuple(name for name, about in SETTINGS.items() if about.kind is bool)


PerCost = tyro.conf.UseAppendAction[tuple[str, ...]]
Limits = Annotated[
    PerCost,
    tyro.conf.arg(
        metavar="NAME=VALUE",
        help="Largest allowed J_C of a cost, per episode; once for each cost, and without NAME= where there is only "
        "one. Default: the paper's, where the task is the paper's.",
    ),
]
Discounts = Annotated[
    PerCost,
    tyro.conf.arg(
        metavar="NAME=VALUE",
        help="Discount of a cost, where its limit is one of the discounted sum. Safe: 0.9 to 1. Default: 1; the "
        "paper's for the paper's tasks.",
    ),
]
Lambdas = Annotated[
    PerCost,
    tyro.conf.arg(
        metavar="NAME=VALUE",
        help="lambda of a cost's advantages; less is less noise and more trust in the critic. Safe: 0.5 to 1. "
        "Default: 0.95; the paper's for the paper's tasks.",
    ),
]
_TASK = (
    "`pcpo tasks` lists them; gym:ID, safety:ID or gymnax:ID for an environment of Gymnasium, Safety-Gymnasium or "
    "gymnax; package.module:factory for a function of your own that makes one."
)


def run(args: Sequence[str]) -> int:
    """`pcpo train TASK [options]`."""
    options = parse(_options(), with_answers(args, SWITCHES), prog="pcpo train")
    config, task = _config(options)
    from pcpo.training import loop
    from pcpo.training.host.fleet import Hands
    from pcpo.training.progress import display_for
    from pcpo.training.run import free_directory

    directory = options.out or free_directory(config)
    hands = Hands(options.workers, options.threads)
    manner = loop.Manner(display_for(), tensorboard=options.tensorboard, hands=hands)
    with (
        removed_if_refused(directory),
        run_errors_explained(),
        os_errors_explained(directory),
        endings.failures_told(directory) as failed,
    ):
        check_writable(directory)
        ended = loop.train(config, directory, manner, task=task, overwrite=options.overwrite)
        return endings.tell(ended)
    return failed.code


def _options() -> Any:
    """The options: where and how, and one for each setting of a run."""
    where: list[Any] = [
        ("task", Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK", help=_TASK)]),
        ("limit", Limits, ()),
        ("cost_discount", Discounts, ()),
        ("cost_gae_lambda", Lambdas, ()),
        ("cost", Costs, ()),
        ("max_episode_steps", Steps, None),
        ("workers", Workers, None),
        ("threads", Threads, None),
        (
            "out",
            Annotated[
                Path | None,
                tyro.conf.arg(
                    aliases=["-o"], metavar="DIR", help="Where the run goes; a new directory under runs/ by default."
                ),
            ],
            None,
        ),
        (
            "overwrite",
            Annotated[bool, tyro.conf.arg(help="Replaces a run that is in the directory already.")],
            False,
        ),
        (
            "tensorboard",
            Annotated[bool, tyro.conf.arg(help="Writes TensorBoard files too (needs the extra pcpo[tensorboard]).")],
            False,
        ),
        (
            "task_option",
            Annotated[
                tyro.conf.UseAppendAction[tuple[str, ...]],
                tyro.conf.arg(
                    metavar="NAME=VALUE", help="An option of the task, as `pcpo tasks TASK` lists them; repeatable."
                ),
            ],
            (),
        ),
    ]
    settings = [as_option(name, about, _default(name)) for name, about in SETTINGS.items()]
    options: Any = dataclasses.make_dataclass("Train", [*where, *settings], frozen=True)
    options.__doc__ = (
        "Trains a policy that maximises reward while its costs stay under their limits.\n\n"
        "The run goes to a directory that pcpo plot, evaluate, compare, render and resume understand. Ctrl-C finishes "
        "the update, saves, and says how to go on."
    )
    return options


def _default(name: str) -> str:
    """What holds where a setting is not given."""
    default = Config.__dataclass_fields__[name].default
    if isinstance(default, bool):
        shown = "yes" if default else "no"
    else:
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else f"{default}"
    return f"{shown}; the paper's for the paper's tasks" if name in PRESET else shown


def _config(options: Any) -> "tuple[Config, Task]":
    """The settings that were asked for, and the task, which the settings may not be able to make."""
    from pcpo.training.named import COST, STEPS, named

    task_options = pairs_from(options.task_option, "--task-option")
    for name, value in ((COST, costs_from(options.cost)), (STEPS, options.max_episode_steps)):
        if value is not None:
            task_options[name] = value
    try:
        found = named(options.task, task_options)
        task = found.task
        limits = limits_from(options.limit, task.cost_names)
        _check_limits(options.task, found.preset is None, limits, task.cost_names)
        settings = given(options, tuple(SETTINGS))
        costs = _cost_settings(options, task.cost_names)
        return config_for(
            options.task, limits or None, task_options=task_options, cost_settings=costs, **settings
        ), task
    except ValueError as error:
        raise UsageError(str(error)) from None


def _cost_settings(options: Any, cost_names: Sequence[str]) -> dict[str, dict[str, float]]:
    """What was said of single costs besides their limits."""
    found: dict[str, dict[str, float]] = {name: {} for name in cost_names}
    for field, example in (("discount", "0.99"), ("gae_lambda", "0.95")):
        option = f"cost_{field}"
        flag = f"--{option.replace('_', '-')}"
        for name, value in per_cost(flag, getattr(options, option), cost_names, example).items():
            found[name][field] = value
    return found


def _check_limits(task: str, needed: bool, limits: Mapping[str, float], cost_names: Sequence[str]) -> None:
    """Nobody but the user knows the limits of a task that is not the paper's."""
    missing = [name for name in cost_names if name not in limits]
    if needed and missing:
        flags = " ".join(f"--limit {name}=25" for name in missing)
        raise UsageError(
            f"{task} has no limit for {', '.join(missing)}; give one, such as {flags}, or --cost none to train without"
        )
