"""From settings to the program that computes with them."""

from typing import Any

import jax

from pcpo.tasks import registry
from pcpo.tasks.api import DeviceTask
from pcpo.training.collect_device import DeviceProgram, device_program
from pcpo.training.config import Config


def program_for(config: Config, task: DeviceTask | None = None) -> DeviceProgram:
    """The program for a configuration.

    Args:
        config: The settings.
        task: The task itself, where it is not one that `pcpo.tasks.registry` knows.

    Raises:
        ValueError: If the task is unknown, or its costs are not those that the configuration limits.
    """
    world = registry.make(config.task, **config.task_options) if task is None else task
    if world.cost_names != config.cost_names:
        raise ValueError(
            f"{config.task} has the costs {', '.join(world.cost_names) or 'none'}, but limits are given for "
            f"{', '.join(config.cost_names) or 'none'}; give one limit for each cost, in that order"
        )
    return device_program(
        world,
        config.options(),
        batch_size=config.batch_size,
        seeds=config.all_seeds,
        hidden=config.hidden,
        precision=config.precision,
    )


def shape_of_state(program: DeviceProgram, config: Config) -> Any:
    """What a state of the program looks like, without computing one: for reading it from a file."""
    return jax.eval_shape(program.init, config.hyper())
