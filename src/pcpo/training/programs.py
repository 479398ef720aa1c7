"""From settings to the program that computes with them."""

from typing import Any, NamedTuple, TypeAlias

import jax

from pcpo.rl.distributions import distribution_for
from pcpo.rl.networks import Network
from pcpo.rl.policy import Policy
from pcpo.tasks.api import HostTask, Task
from pcpo.training.collect_device import DeviceProgram, device_program
from pcpo.training.collect_host import HostProgram, host_program
from pcpo.training.config import Config
from pcpo.training.files import RunError
from pcpo.training.host.fleet import Hands
from pcpo.training.named import named

AnyProgram: TypeAlias = DeviceProgram | HostProgram
"""What is trained, by where its task is simulated."""


class Networks(NamedTuple):
    """Networks of your own in place of the tanh networks of `Config.hidden`."""

    policy: Network | None = None
    """From observations to means (Box), one for each dimension of an action, or to one logit per choice (Discrete)."""
    critic: Network | None = None
    """From observations to one number. The reward and each cost have one of their own."""


def program_for(
    config: Config,
    task: Task | None = None,
    networks: Networks | None = None,
    hands: Hands = Hands(),  # noqa: B008 (unchangeable)
) -> AnyProgram:
    """The program for a configuration.

    Args:
        config: The settings.
        task: The task itself, where it is not one that `pcpo.training.named` knows.
        networks: Those of the policy and of the critics, where they are not the usual ones.
        hands: Who steps the environments of a task on the host; no part of what is computed.

    Raises:
        RunError: If the task is unknown, its costs are not those that the configuration limits, something is not given
            that the configuration says is the user's own, or the task has no use for the hands.
    """
    world = task_for(config) if task is None else task
    if networks is None and "networks" in config.own:
        raise RunError(
            f"this agent for {config.task} was trained with networks of its own, which no file holds; give them again, "
            "in Python, with load(..., networks=...)"
        )
    if world.cost_names != config.cost_names:
        raise RunError(
            f"{config.task} has the costs {', '.join(world.cost_names) or 'none'}, but limits are given for "
            f"{', '.join(config.cost_names) or 'none'}; give one limit for each cost, in that order"
        )
    own, critic = networks or Networks()
    if critic is not None and config.critic == "linear":
        raise RunError(
            "a critic's network is given, but the critics are linear on features of the observation and have none; "
            'leave it out, or set critic="network"'
        )
    policy = None if own is None else Policy(own, distribution_for(world.action_space))
    usual: dict[str, Any] = {
        "batch_size": config.batch_size,
        "seeds": config.all_seeds,
        "hidden": config.hidden,
        "precision": config.precision,
        "policy": policy,
        "critic": critic,
    }
    if isinstance(world, HostTask):
        try:
            return host_program(world, config.options(), environments=config.environments, hands=hands, **usual)
        except ValueError as error:
            raise RunError(str(error)) from None
    if hands != Hands():
        raise RunError(f"workers or threads are given, but {world.name} is written in jax and has no use for them")
    return device_program(world, config.options(), **usual)


def task_for(config: Config) -> Task:
    """The task that a configuration names.

    Raises:
        RunError: If it names none that can be made from its name alone.
    """
    if "task" in config.own:
        raise RunError(
            f"{config.task} is a task of your own, which no file holds; give it again: load(..., env=...) in Python, "
            "--task package.module:factory on the command line"
        )
    try:
        return named(config.task, config.task_options).task
    except ValueError as error:
        raise RunError(str(error)) from None


def shape_of_state(program: AnyProgram, config: Config) -> Any:
    """What a state of the program looks like, without computing one: for reading it from a file."""
    return jax.eval_shape(program.init, config.hyper())
