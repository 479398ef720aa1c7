"""The settings of a run as options of a command line: one option for each field of `Config`."""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from pcpo.cli.parsing import UsageError
from pcpo.training.settings import Setting

YES, NO = "yes", "no"


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
    """Limits as they are written on a command line, ``NAME=VALUE``; the only cost needs no name.

    Raises:
        UsageError: If one is no number, or of a cost that there is not.
    """
    limits: dict[str, float] = {}
    for text in texts:
        name, found, value = text.rpartition("=")
        if not found:
            if len(cost_names) != 1:
                raise UsageError(
                    f"--limit is {text!r}, but there are {len(cost_names)} costs; say which: "
                    + " ".join(f"--limit {each}={text}" for each in cost_names)
                )
            name = cost_names[0]
        if name not in cost_names:
            known = ", ".join(cost_names) or "no costs"
            raise UsageError(f"--limit is {text!r}, but there is no cost {name!r}; there are: {known}")
        if name in limits:
            raise UsageError(f"--limit is given twice for {name}; give it once")
        limits[name] = _number(text, value)
    return limits


def pairs_from(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Options of a task, ``NAME=VALUE``: whole numbers, numbers, else words."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag} is {text!r}; give {flag} NAME=VALUE")
        found[name] = _value(value)
    return found


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _number(whole: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--limit is {whole!r}, and {text!r} is not a number; try --limit NAME=5") from None


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
