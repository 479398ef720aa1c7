"""The tasks by their names, and the settings that the paper trains them with."""

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, overload

from pcpo.rl.spaces import Box
from pcpo.tasks.ant import ant_circle, ant_gather
from pcpo.tasks.api import DeviceTask, HostTask, Task
from pcpo.tasks.circle import point_circle, point_square
from pcpo.tasks.gather import point_gather
from pcpo.tasks.traffic.bottleneck import bottleneck
from pcpo.tasks.traffic.grid import grid


@dataclass(frozen=True)
class Preset:
    """What the paper's table of parameters says of one task. What it says of all tasks alike are the defaults."""

    limits: Mapping[str, float]
    """The largest allowed J_C of each cost, per episode."""
    gamma: float = 0.995
    """Discount of the reward."""
    gae_lambda: float = 0.95
    """Of the reward's advantages."""
    cost_discount: float = 1.0
    """The paper's text discounts the costs; its code and its figures do not."""
    cost_gae_lambda: float = 1.0
    """Of the costs' advantages."""
    batch_size: int = 50_000
    """Steps of the environment per update."""
    hidden: tuple[int, ...] = (64, 32)
    """Widths of the hidden layers of the policy and of the critics."""
    delta: float = 1e-4
    """Radius of the trust region, in nats."""
    critic: str = "network"
    """Whether critics are networks, or linear functions of features."""

    def __post_init__(self) -> None:
        """Makes the limits as unchangeable as the rest."""
        object.__setattr__(self, "limits", MappingProxyType(dict(self.limits)))


@dataclass(frozen=True)
class _Entry:
    factory: Callable[..., Task]
    preset: Preset
    summary: str


_TASKS: Mapping[str, _Entry] = {
    "point-circle": _Entry(
        point_circle,
        Preset({"cost": 5.0}),
        "A point robot earns reward for running counter-clockwise on a circle of radius 15 around the origin. Each "
        "step that begins outside of the band abs(x) < 2.5 costs 1, so most of the circle is forbidden.",
    ),
    "point-gather": _Entry(
        point_gather,
        Preset({"cost": 0.1}),
        "A point robot earns 10 for each of 2 apples and loses 1 for each of 8 bombs that it comes within 1 of, on a "
        "field of 12 by 12; each step that hits a bomb also costs 1. It sees distances in 10 sectors ahead of it.",
    ),
    "point-square": _Entry(
        point_square,
        Preset({"cost_x": 5.0, "cost_y": 5.0}),
        "Point-Circle with walls in both directions and a cost for each: a step that begins at abs(x) >= 2.5 costs 1 "
        "under the name cost_x, one that begins at abs(y) >= 5 costs 1 under the name cost_y. Ours, not the paper's.",
    ),
    "ant-circle": _Entry(
        ant_circle,
        Preset({"cost": 10.0}, cost_gae_lambda=0.5, batch_size=100_000),
        "A four-legged robot in MuJoCo earns reward for running counter-clockwise on a circle of radius 10 around the "
        "origin. Each step that begins with its centre of mass outside of the band abs(x) < 3 costs 1. An episode ends "
        "when it falls.",
    ),
    "ant-gather": _Entry(
        ant_gather,
        Preset({"cost": 0.2}, cost_gae_lambda=0.5, batch_size=100_000),
        "A four-legged robot in MuJoCo earns 10 for each of 8 apples and loses 1 for each of 8 bombs that its centre "
        "of mass comes within 1 of, in a room of 13 by 13, and loses 10 if it falls, which ends the episode; each step "
        "that hits a bomb also costs 1. It sees distances in 10 sectors.",
    ),
    "grid": _Entry(
        grid,
        Preset(
            {"cost": 0.0},
            gamma=0.999,
            gae_lambda=0.97,
            cost_gae_lambda=0.5,
            batch_size=10_000,
            hidden=(16, 16),
            critic="linear",
        ),
        "Four traffic lights on two roads that cross two roads, simulated by SUMO, are asked to switch. Reward is how "
        "fast all cars are. A direction that has been red for more than 7 seconds costs 1 in each further second.",
    ),
    "bottleneck": _Entry(
        bottleneck,
        Preset({"cost": 0.0}, gamma=0.999, gae_lambda=0.97, batch_size=25_000, hidden=(50, 25), critic="linear"),
        "Four lanes become two, then one, simulated by SUMO; a tenth of the cars is the agent's, which sets how fast "
        "they may drive in each piece of the road. Reward is the outflow. A human who has been slower than 3 m/s for "
        "more than 10 seconds costs 1 in each further half second.",
    ),
}


_ANSWERS = {"yes": True, "true": True, "no": False, "false": False}


def names() -> tuple[str, ...]:
    """The names of all tasks."""
    return tuple(_TASKS)


OnDevice: TypeAlias = Literal["point-circle", "point-gather", "point-square"]
"""The names of tasks that are written in JAX, for those who check types."""
OnHost: TypeAlias = Literal["ant-circle", "ant-gather", "grid", "bottleneck"]
"""The names of tasks that are simulated on the host."""


@overload
def make(name: OnDevice, **options: Any) -> DeviceTask: ...
@overload
def make(name: OnHost, **options: Any) -> HostTask: ...
@overload
def make(name: str, **options: Any) -> Task: ...
def make(name: str, **options: Any) -> Task:
    """The task of that name. The same name and options give the same object, so that nothing is compiled twice.

    Args:
        name: One of `names`.
        **options: What the task's factory takes, `options_of` lists it; whole numbers may stand for real ones.

    Raises:
        ValueError: If the name, an option or its value is wrong.

    Example:
        >>> make("point-circle", x_limit=1.25).cost_names
        ('cost',)
    """
    defaults = options_of(name)
    chosen = {option: _checked(name, option, value, defaults) for option, value in options.items()}
    return _build(name, tuple((defaults | chosen).items()))


def options_of(name: str) -> dict[str, Any]:
    """The options of a task with their defaults."""
    return {key: option.default for key, option in inspect.signature(_entry(name).factory).parameters.items()}


def preset(name: str) -> Preset:
    """The settings that the paper trains the task with; those of Point-Circle for the square, which is ours."""
    return _entry(name).preset


def describe(name: str) -> str:
    """One paragraph for people: what it is about, sizes, horizon, costs with their limits, options, settings."""
    entry, task, usual = _entry(name), make(name), preset(name)
    space = task.action_space
    action = f"{space.size} real actions" if isinstance(space, Box) else f"{space.n} actions to choose from"
    costs = ", ".join(f"{cost} <= {limit:g}" for cost, limit in usual.limits.items())
    options = ", ".join(f"{option}={default}" for option, default in options_of(name).items())
    hidden = " ".join(map(str, usual.hidden))
    return (
        f"{entry.summary} {task.observation_size} observations, {action}, {task.horizon} steps; per episode {costs}. "
        f"Options: {options}. Trained with: batch-size {usual.batch_size}, delta {usual.delta:g}, "
        f"gamma {usual.gamma:g}, gae-lambda {usual.gae_lambda:g} (costs: {usual.cost_gae_lambda:g}), hidden {hidden}, "
        f"critic {usual.critic}."
    )


@functools.lru_cache(maxsize=128)
def _build(name: str, options: tuple[tuple[str, Any], ...]) -> Task:
    return _entry(name).factory(**dict(options))


def _entry(name: str) -> _Entry:
    if name not in _TASKS:
        raise ValueError(f"there is no task {name!r}{_closest(name, _TASKS)}")
    return _TASKS[name]


def _checked(task: str, option: str, value: Any, defaults: Mapping[str, Any]) -> Any:
    """The value of an option in the type of its default."""
    if option not in defaults:
        raise ValueError(f"{task} has no option {option!r}{_closest(option, defaults)}")
    default = defaults[option]
    if isinstance(default, bool):
        if str(value).lower() in _ANSWERS:
            return _ANSWERS[str(value).lower()]
        raise ValueError(f"{option} of {task} is {value!r}; give yes or no")
    if isinstance(default, str):
        if isinstance(value, str):
            return value  # which words there are, its factory says
        raise ValueError(f"{option} of {task} is {value!r}; give a word such as {default!r}")
    whole = isinstance(default, int)
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not right or not math.isfinite(value) or value <= 0:
        kind = "whole number" if whole else "finite number"
        raise ValueError(f"{option} of {task} is {value!r}; give a {kind} above zero, such as {default!r}")
    return value if whole else float(value)


def _closest(given: str, known: Iterable[str]) -> str:
    """The end of an error message: what was probably meant, and what there is."""
    known = tuple(known)
    matches = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    meant = f"; did you mean {matches[0]!r}?" if matches else "."
    return f"{meant} There are: {', '.join(known)}"
