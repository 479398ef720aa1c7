"""From what the user named to a task. The one place where names are understood, for Python and for the command line."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pcpo.tasks import registry
from pcpo.tasks.api import Task
from pcpo.tasks.registry import Preset


class Named(NamedTuple):
    """What a name stands for."""

    task: Task
    preset: Preset | None
    """The settings that the paper trains it with; None where the paper does not."""


def named(name: str, options: Mapping[str, Any]) -> Named:
    """The task of a name, made with these options.

    Raises:
        ValueError: If there is no such task, or an option is wrong.

    Example:
        >>> named("point-circle", {"x_limit": 1.25}).task.cost_names
        ('cost',)
    """
    return Named(registry.make(name, **options), registry.preset(name))
