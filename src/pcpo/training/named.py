"""From what the user named to a task. The one place where names are understood, for Python and for the command line.

A name is one of pcpo's own tasks; ``gym:ID``, ``safety:ID`` or ``gymnax:ID`` for an environment that Gymnasium,
Safety-Gymnasium or gymnax knows; or ``package.module:factory`` for a function of the user's that makes a task, or one
environment of any of these kinds. The last one is code, and so is ``gym:module:ID``, which imports a module, and a cost
that is a function: a file may say that such a name was used, but only its user may have it run again.
"""

import functools
import importlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pcpo.tasks import registry
from pcpo.tasks.api import DeviceTask, HostTask, Task
from pcpo.tasks.registry import Preset
from pcpo.training.files import RunError

if TYPE_CHECKING:
    from pcpo.training.config import Config

COST, STEPS = "cost", "max_episode_steps"
"""The options that every environment of others has."""


class Named(NamedTuple):
    """What a name stands for."""

    task: Task
    preset: Preset | None
    """The settings that the paper trains it with; None where the paper does not."""
    own: bool = False
    """Whether the user's own code is in it, so that nobody but the user may name it again."""


def named(name: str, options: Mapping[str, Any]) -> Named:
    """The task of a name, made with these options. Made once in a process for the same ones.

    Args:
        name: See the module.
        options: Options of the task. ``cost`` and ``max_episode_steps`` of an environment of others are what
            `pcpo.tasks.adapters.gymnasium.from_gymnasium` says of them.

    Raises:
        ValueError: If there is no such task, or an option is wrong.

    Example:
        >>> named("point-circle", {"x_limit": 1.25}).task.cost_names
        ('cost',)
        >>> named("gym:CartPole-v1", {"cost": ()}).task.horizon
        500
    """
    if ":" not in name:
        return Named(registry.make(name, **options), registry.preset(name))
    try:
        key = json.dumps(dict(options), sort_keys=True)
    except TypeError:  # functions cannot be compared
        return _made(name, options)
    return _made_once(name, key)


def task_of(thing: Any, cost: Any = None, max_episode_steps: int | None = None, name: str | None = None) -> Task:
    """The task of an object: a task, or what makes an environment of Gymnasium's, gymnax's or Brax's kind.

    Args:
        thing: The object.
        cost: Where costs come from, of an environment.
        max_episode_steps: Steps after which an episode is cut off, of an environment.
        name: What the task is called; otherwise its environment says so.

    Raises:
        ValueError: If it is neither, or something is given that a task has already.
    """
    if isinstance(thing, DeviceTask | HostTask):
        given = [what for what, value in ((COST, cost), (STEPS, max_episode_steps)) if value is not None]
        if given:
            raise ValueError(f"{given[0]} is given, but {thing.name} is a task and has its own; leave {given[0]} out")
        return thing
    from pcpo.tasks.adapters import brax, gymnasium, gymnax

    one = not isinstance(thing, type)  # a class has the methods of an environment, but makes some
    if one and gymnax.is_gymnax(thing):
        return gymnax.from_gymnax(thing, cost=cost, horizon=max_episode_steps, name=name)
    if one and brax.is_brax(thing):
        return brax.from_brax(thing, cost=cost, horizon=max_episode_steps, name=name)
    if one and gymnasium.is_environment(thing):
        raise ValueError(
            f"{_shown(thing)} is one environment, but several are needed; give a function that makes one, as in "
            "PCPO(lambda: gymnasium.make('CartPole-v1'), ...)"
        )
    if not callable(thing):
        raise ValueError(
            f"{thing!r} is no task; give its name, a function that makes a gymnasium environment, or a DeviceTask or "
            "HostTask"
        )
    make: Callable[[], Any] = thing
    called = name or getattr(thing, "__name__", _shown(thing))
    made = _called(make, called)
    if isinstance(made, DeviceTask | HostTask) or gymnax.is_gymnax(made) or brax.is_brax(made):
        return task_of(made, cost, max_episode_steps, name)
    if not gymnasium.is_environment(made):
        raise ValueError(
            f"{called} gave {_shown(made)}, which is neither a gymnasium environment nor a task; let it return a new "
            "environment each time it is called"
        )
    made.close()
    return gymnasium.from_gymnasium(make, cost, max_episode_steps, name)


def again(config: "Config", task: str | None = None, cost: Any = None) -> Task | None:
    """The task of a run with the user's own code in it, which the user has now named again.

    Args:
        config: Of the run.
        task: The name of the task, where that is code.
        cost: The costs, where they are.

    Returns:
        None for a run that has no such code: it says itself what it was trained on.

    Raises:
        RunError: If something is missing, or given that a run like this has no use for.
    """
    if "task" not in config.own:
        if task not in (None, config.task) or cost is not None:
            raise RunError(
                f"the run was trained on {config.task}, and that cannot be changed; leave out --task, --cost"
            )
        return None
    before = config.task_options.get(COST)
    if task is None and (is_code(config.task) or not _is_code_cost(before)):
        name = config.task if is_code(config.task) else "package.module:factory"
        raise RunError(f"{config.task} is code of your own, which no file may run; name it again: --task {name}")
    if cost is None and _is_code_cost(before):
        raise RunError(f"the costs are code of your own ({before}), which no file may run; name them again with --cost")
    options = {**config.task_options, **({} if cost is None else {COST: cost})}
    try:
        return named(task or config.task, options).task
    except ValueError as error:
        raise RunError(str(error)) from None


def is_code(name: str) -> bool:
    """Whether making the task of that name runs code that the name brings in.

    Example:
        >>> [is_code(name) for name in ("point-circle", "gym:CartPole-v1", "gym:robots:Arm-v0", "robots.arm:make")]
        [False, False, True, True]
    """
    kind, _, rest = name.partition(":")
    return ":" in rest if kind in _KINDS else bool(rest)


def names_code(name: str, options: Mapping[str, Any]) -> bool:
    """Whether making that task with these options runs code that they bring in: the task, or its costs.

    Example:
        >>> [names_code("gym:CartPole-v1", {"cost": cost}) for cost in ("heat", "robots.arm:heat")]
        [False, True]
    """
    return is_code(name) or _is_code_cost(options.get(COST))


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a file may hold them: a function only leaves its name, which nothing can be made from."""

    def plain(value: Any) -> Any:
        if callable(value):
            return f":{getattr(value, '__name__', type(value).__name__)}"
        if isinstance(value, Mapping):
            return {str(key): plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    return {name: plain(value) for name, value in options.items()}


def _gymnasium(identifier: str, options: Mapping[str, Any], cost: Any, steps: int | None) -> Task:
    from pcpo.tasks.adapters.gymnasium import named_environment

    return named_environment(identifier, options, cost, steps)


def _safety(identifier: str, options: Mapping[str, Any], cost: Any, steps: int | None) -> Task:
    from pcpo.tasks.adapters import safety_gymnasium
    from pcpo.tasks.adapters.gymnasium import from_gymnasium

    _none_of(f"safety:{identifier}", options)
    limit = safety_gymnasium.horizon(identifier)
    make = functools.partial(safety_gymnasium.environment, identifier)
    draw = functools.partial(safety_gymnasium.environment, identifier, "rgb_array")
    task = from_gymnasium(make, cost, limit if steps is None else min(steps, limit), f"safety:{identifier}", draw)
    safety_gymnasium.tell_if_slow()
    return task


def _gymnax(identifier: str, options: Mapping[str, Any], cost: Any, steps: int | None) -> Task:
    from pcpo.tasks.adapters.gymnax import from_gymnax

    _none_of(f"gymnax:{identifier}", options)
    return from_gymnax(identifier, cost=cost, horizon=steps)


_KINDS: Mapping[str, Callable[[str, Mapping[str, Any], Any, int | None], Task]] = {
    "gym": _gymnasium,
    "safety": _safety,
    "gymnax": _gymnax,
}
"""What stands before the colon in the names of other people's environments."""


@functools.lru_cache(maxsize=32)
def _made_once(name: str, options: str) -> Named:
    return _made(name, json.loads(options))


def _made(name: str, options: Mapping[str, Any]) -> Named:
    rest = dict(options)
    cost, steps = rest.pop(COST, None), rest.pop(STEPS, None)
    kind, _, identifier = name.partition(":")
    own = names_code(name, options)
    if kind in _KINDS:
        return Named(_KINDS[kind](identifier, rest, cost, steps), None, own)
    found = _imported(name)
    if isinstance(found, DeviceTask | HostTask):
        _none_of(name, rest)
        return Named(task_of(found, cost, steps), None, own)
    return Named(task_of(functools.partial(found, **rest) if rest else found, cost, steps, name), None, own)


def _imported(name: str) -> Any:
    """What ``package.module:factory`` names."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        kinds = ", ".join(f"{kind}:ID" for kind in _KINDS)
        raise ValueError(
            f"{name!r} names no task: {error}. package.module:factory names a function of yours, in a module that can "
            f"be imported from here; {kinds} name the environments of others"
        ) from None
    if not callable(found) and not isinstance(found, DeviceTask | HostTask):
        raise ValueError(f"{name!r} names {_shown(found)}; give a function that makes an environment")
    return found


def _called(make: Callable[[], Any], name: str) -> Any:
    """What the user's function makes."""
    try:
        return make()
    except Exception as error:
        raise ValueError(f"{name}: no environment could be made ({type(error).__name__}: {error})") from error


def _none_of(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise ValueError(f"{name} has no option {next(iter(options))!r}; it has {COST} and {STEPS}")


def _is_code_cost(cost: Any) -> bool:
    from pcpo.tasks.adapters.gymnasium_costs import is_code as is_code_cost

    return is_code_cost(cost)


def _shown(thing: Any) -> str:
    return f"a {type(thing).__name__}"
