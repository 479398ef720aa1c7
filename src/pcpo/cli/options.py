"""The settings of a run as options of a command line: one option for each field of `Config`."""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from pcpo.cli.parsing import UsageError, number
from pcpo.training.settings import Setting

YES, NO = "yes", "no"
NONE = "none"
"""In place of a cost: there is none."""

Costs = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(
        metavar="SOURCE",
        help="Where a cost of an environment comes from: a key of its info, or package.module:function, called with "
        "(observation, action, next_observation, info) of each step; NAME=SOURCE gives it another name; repeatable; "
        "none for no costs. Default: the key cost, or the third value of a step that gives six.",
    ),
]
Workers = Annotated[
    int | None,
    number("--workers", int, 0, 4096, "the default is one per core"),
    tyro.conf.arg(
        help="Processes that step the environments of a task on the host; 0 for none but this one, for debugging. "
        "Changes nothing but the time it takes. Default: one per core, and two for simulations of traffic.",
    ),
]
Threads = Annotated[
    int | None,
    number("--threads", int, 1, 4096, "the default is one per core"),
    tyro.conf.arg(
        help="The same for tasks that are stepped by threads, as the ant's. Default: one per core.",
    ),
]
Steps = Annotated[
    int | None,
    number("--max-episode-steps", int, 1, 10_000_000, "try 1000"),
    tyro.conf.arg(
        help="Steps after which an episode of an environment is cut off. Safe: 50 to 2000. Default: its own limit."
    ),
]
Checkpoint = Annotated[
    int | None,
    number("--checkpoint", int, 0, 10_000_000, "the default is the newest"),
    tyro.conf.arg(metavar="UPDATES", help="The checkpoint after so many updates; the newest by default."),
]
Task = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="TASK",
        help="The task once more, where it is code of your own: a run never starts code that only its files name.",
    ),
]


def as_option(name: str, about: Setting, default: str) -> tuple[str, Any, Any]:
    """A setting as a field for `dataclasses.make_dataclass`; None stands for "not given".

    Args:
        name: Of the setting.
        about: What may be said about it.
        default: What holds where it is not given, in words.
    """
    flag = f"--{name.replace('_', '-')}"
    help_ = f"{about.described()} Default: {default}."
    argument = tyro.conf.arg(help=help_, help_behavior_hint="")
    return name, Annotated[Any, _reader(flag, about), argument], dataclasses.field(default=None)


def with_answers(args: Sequence[str], switches: Sequence[str]) -> list[str]:
    """``--x`` and ``--no-x`` of settings that are true or false as ``--x yes`` and ``--x no``."""
    yes = {f"--{name.replace('_', '-')}" for name in switches}
    no = {f"--no-{flag[2:]}": flag for flag in yes}
    answered: list[str] = []
    for place, arg in enumerate(args):
        follows = args[place + 1 : place + 2]
        if arg in no:
            answered += [no[arg], NO]
        elif arg in yes and not (follows and follows[0] in {YES, NO}):
            answered += [arg, YES]
        else:
            answered.append(arg)
    return answered


def given(options: Any, names: Sequence[str]) -> dict[str, Any]:
    """The settings that were given."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def limits_from(texts: Sequence[str], cost_names: Sequence[str]) -> dict[str, float]:
    """Limits as they are written on a command line; see `per_cost`."""
    return per_cost("--limit", texts, cost_names, "5")


def per_cost(flag: str, texts: Sequence[str], cost_names: Sequence[str], example: str) -> dict[str, float]:
    """Numbers of costs as they are written on a command line, ``NAME=VALUE``; the only cost needs no name.

    Raises:
        UsageError: If one is no number, or of a cost that there is not.
    """
    found: dict[str, float] = {}
    if texts and not cost_names:
        raise UsageError(f"{flag} is {texts[0]!r}, but there are no costs, so nothing to limit; leave out {flag}")
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            if len(cost_names) != 1:
                raise UsageError(
                    f"{flag} is {text!r}, but there are {len(cost_names)} costs; say which: "
                    + " ".join(f"{flag} {each}={text}" for each in cost_names)
                )
            name = cost_names[0]
        if name not in cost_names:
            raise UsageError(f"{flag} is {text!r}, but there is no cost {name!r}; there are: {', '.join(cost_names)}")
        if name in found:
            raise UsageError(f"{flag} is given twice for {name}; give it once")
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"{flag} is {text!r}, and {value!r} is not a number; try {flag} NAME={example}") from None
    return found


def pairs_from(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Options of a task, ``NAME=VALUE``: whole numbers, numbers, else words."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag} is {text!r}; give {flag} NAME=VALUE")
        found[name] = _value(value)
    return found


def costs_from(texts: Sequence[str]) -> Any:
    """Costs as they are written on a command line: a key of info, a function, ``NAME=`` either; ``none`` for none.

    Returns:
        None where nothing is said; else a list of sources, or a mapping where they have names.
    """
    if not texts:
        return None
    if list(texts) == [NONE]:
        return []
    if not any("=" in text for text in texts):
        return texts[0] if len(texts) == 1 else list(texts)
    found: dict[str, str] = {}
    for text in texts:
        name, _, source = text.partition("=")
        if not name or name in found:
            raise UsageError(f"--cost is {text!r}; give each cost once, as --cost NAME or --cost NAME=SOURCE")
        found[name] = source or name
    return found


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _reader(flag: str, about: Setting) -> PrimitiveConstructorSpec[Any]:
    """How tyro shall read the option."""

    def read(texts: list[str]) -> Any:
        try:
            if about.kind is bool:
                return about.checked(flag, _truth(flag, texts[0], about))
            return about.read(flag, texts)
        except ValueError as error:
            raise UsageError(str(error)) from None

    metavar = "|".join(about.choices) if about.choices else _METAVARS[about.kind]
    return PrimitiveConstructorSpec(
        nargs="*" if about.many else 1,
        metavar=f"{metavar} ..." if about.many else metavar,
        instance_from_str=read,
        is_instance=lambda _: True,
        str_from_instance=lambda value: [str(value)],
    )


def _truth(flag: str, text: str, about: Setting) -> bool:
    if text not in {YES, NO}:
        raise UsageError(f"{flag} is {text!r}, but must be yes or no; {about.advice}")
    return text == YES


_METAVARS: Mapping[type, str] = types.MappingProxyType({int: "INT", float: "FLOAT", bool: f"{YES}|{NO}", str: "WORD"})
