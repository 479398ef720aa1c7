"""From settings to the program that computes with them."""

from typing import Any, NamedTuple

import jax

from pcpo.rl.distributions import distribution_for
from pcpo.rl.networks import Network
from pcpo.rl.policy import Policy
from pcpo.tasks import registry
from pcpo.tasks.api import DeviceTask
from pcpo.training.collect_device import DeviceProgram, device_program
from pcpo.training.config import Config


class Networks(NamedTuple):
    """Networks of your own in place of the tanh networks of `Config.hidden`."""

    policy: Network | None = None
    """From observations to means (Box), one for each dimension of an action, or to one logit per choice (Discrete)."""
    critic: Network | None = None
    """From observations to one number. The reward and each cost have one of their own."""


def program_for(config: Config, task: DeviceTask | None = None, networks: Networks | None = None) -> DeviceProgram:
    """The program for a configuration.

    Args:
        config: The settings.
        task: The task itself, where it is not one that `pcpo.tasks.registry` knows.
        networks: Those of the policy and of the critics, where they are not the usual ones.

    Raises:
        ValueError: If the task is unknown, or its costs are not those that the configuration limits.
    """
    world = registry.make(config.task, **config.task_options) if task is None else task
    if world.cost_names != config.cost_names:
        raise ValueError(
            f"{config.task} has the costs {', '.join(world.cost_names) or 'none'}, but limits are given for "
            f"{', '.join(config.cost_names) or 'none'}; give one limit for each cost, in that order"
        )
    policy, critic = networks or Networks()
    return device_program(
        world,
        config.options(),
        batch_size=config.batch_size,
        seeds=config.all_seeds,
        hidden=config.hidden,
        precision=config.precision,
        policy=None if policy is None else Policy(policy, distribution_for(world.action_space)),
        critic=critic,
    )


def shape_of_state(program: DeviceProgram, config: Config) -> Any:
    """What a state of the program looks like, without computing one: for reading it from a file."""
    return jax.eval_shape(program.init, config.hyper())
