"""Costs of environments that report a reward only: from ``info``, from a function, or as a third value of a step.

No jax here: the processes that step environments import this.
"""

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pcpo.tasks.host import WorldError

CostFunction: TypeAlias = Callable[[Any, Any, Any, Mapping[str, Any]], Any]
"""``cost(observation, action, next_observation, info)`` of one step, all of them as the environment knows them."""
CostSource: TypeAlias = str | CostFunction
"""A key of ``info``, a function, or ``package.module:function`` for one."""
CostSpec: TypeAlias = CostSource | Iterable[CostSource] | Mapping[str, CostSource] | None
"""Where costs come from; see `costs_of`."""

USUAL = "cost"
"""The key of ``info`` where nothing is said, and the name of a cost that has no other. The third value of a step that
gives six is found under it."""


_PLAIN = frozenset((float, int, bool, np.float64, np.float32, np.bool_))
"""The types of almost all numbers; of the others more is asked."""


class Costs(NamedTuple):
    """The costs of a step, by name."""

    sources: dict[str, CostSource]

    @property
    def names(self) -> tuple[str, ...]:
        """One for each cost."""
        return tuple(self.sources)

    @property
    def functions(self) -> bool:
        """Whether any of them has to see observations."""
        return any(callable(source) for source in self.sources.values())

    def __call__(self, before: Any, action: Any, after: Any, info: Mapping[str, Any]) -> list[float]:
        """The costs of one step.

        Raises:
            WorldError: If one is missing or is no number. The message lacks a subject.
        """
        return [
            number(source(before, action, after, info), "its cost function gave", name)
            if callable(source)
            else _reported(source, info)
            for name, source in self.sources.items()
        ]


def costs_of(cost: CostSpec) -> Costs:
    """The costs that somebody asked for.

    Args:
        cost: A key of ``info`` or several, a function of the step, or a mapping from names of one's own to either;
            ``()`` for none. None is ``info["cost"]``, or the third value of a step that gives six.

    Raises:
        ValueError: If it is none of these.

    Example:
        >>> costs_of(["heat", "noise"]).names
        ('heat', 'noise')
        >>> costs_of({"speed": lambda before, action, after, info: abs(after[1])}).names
        ('speed',)
        >>> costs_of(lambda before, action, after, info: 1.0).names
        ('cost',)
    """
    if cost is None:
        return Costs({USUAL: USUAL})
    if isinstance(cost, str) or callable(cost):
        function = cost if callable(cost) else _named(cost)
        return Costs({USUAL if callable(function) else function: _checked(function)})
    if isinstance(cost, Mapping):
        sources = {str(name): _checked(_named(source)) for name, source in cost.items()}
        return Costs(sources)
    if not isinstance(cost, Iterable):
        raise ValueError(f"cost is {cost!r}; give a key of info, several, a function, or a mapping from names to these")
    sources: dict[str, CostSource] = {}
    for each in cost:
        source = _checked(_named(each))
        name = getattr(source, "__name__", str(source)) if callable(source) else source
        if name in sources:
            raise ValueError(f"cost names {name!r} twice; give each cost once, or names of your own in a mapping")
        sources[name] = source
    return Costs(sources)


def is_code(cost: CostSpec) -> bool:
    """Whether somebody's own code is needed to know the costs, so that no file may bring it back.

    Example:
        >>> is_code(["heat", "noise"]), is_code("robots.limits:heat"), is_code({"heat": "temperature"})
        (False, True, False)
    """
    if cost is None:
        return False
    if isinstance(cost, str):
        return ":" in cost
    if isinstance(cost, Mapping):
        return any(is_code(source) for source in cost.values())
    return callable(cost) or any(is_code(each) for each in cost)


def number(value: Any, what: str, name: str) -> float:
    """One number, which may have come as an array of one. Whether it is finite is not asked here.

    Raises:
        WorldError: If it is none.
    """
    if type(value) in _PLAIN:
        return float(value)
    if isinstance(value, int | float | np.number | np.bool_):
        if not isinstance(value, np.complexfloating):
            return float(value)
    elif value is not None and not isinstance(value, str):
        array = np.asarray(value)
        if array.size == 1 and array.dtype.kind in "biuf":
            return float(array.reshape(()))
    raise WorldError(f"{what} {_shown(value)} as {name}, which must be one number for each step")


def _reported(key: str, info: Mapping[str, Any]) -> float:
    try:
        value = info[key]
    except (KeyError, TypeError):
        there = ", ".join(map(repr, info)) if isinstance(info, Mapping) and info else "nothing"
        raise WorldError(
            f"its info has no {key!r} (it has {there}), and a missing cost is never taken for zero. Name the key that "
            "holds it with cost=... (--cost NAME); or give a function of the step, cost=lambda observation, action, "
            "next_observation, info: ... (--cost package.module:function); or cost=() (--cost none) if there is none"
        ) from None
    return number(value, "its info gave", repr(key))


def _checked(source: Any) -> CostSource:
    if callable(source):
        _check_arguments(source)
        return source
    if isinstance(source, str) and source:
        return source
    raise ValueError(f"a cost is {source!r}; give a key of info, or cost(observation, action, next_observation, info)")


def _check_arguments(function: Callable[..., Any]) -> None:
    """Whether it takes what it will be given."""
    try:
        inspect.signature(function).bind(None, None, None, {})
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"the cost function {name} cannot be called ({error}); it gets four arguments: cost(observation, action, "
            "next_observation, info)"
        ) from None
    except ValueError:  # some builtins do not tell
        return


def _named(source: Any) -> Any:
    """The function that ``package.module:function`` names; anything else as it is."""
    if not isinstance(source, str) or ":" not in source:
        return source
    module, _, name = source.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"cost is {source!r}, but there is no such function ({error}); give package.module:function, and start "
            "where Python finds that module"
        ) from None
    if not callable(found):
        raise ValueError(f"cost is {source!r}, which is {_shown(found)} and no function")
    return found


def _shown(value: Any) -> str:
    shape = np.shape(value) if not isinstance(value, str | None) and hasattr(value, "__len__") else ()
    return f"something of the shape {shape}" if shape else repr(value)
