"""Every task of the registry that runs on the host, through the collector: numbers, and hands that change nothing."""

import dataclasses

import numpy as np
import pytest

from pcpo.tasks import registry
from pcpo.tasks.api import HostTask
from pcpo.training.host.episodes import Plan, play
from pcpo.training.host.fleet import Hands, fleet_for

NAMES = [name for name in registry.names() if isinstance(registry.make(name), HostTask)]
EPISODES, STEPS = 3, 6


def batch(task: HostTask, hands: Hands, environments: int):
    """A few steps of a few episodes, with actions drawn at random."""
    noise = np.random.default_rng(0).normal(size=(STEPS, EPISODES, task.action_space.size))
    fleet = fleet_for(task, environments, hands)
    try:
        plan = Plan(np.arange(7, 7 + EPISODES), noise, environments, "")
        return play(task, fleet, lambda observations, drawn: drawn, plan, pytest.fail).rollout
    finally:
        fleet.close()


def test_there_are_tasks_on_the_host():
    assert {"ant-circle", "ant-gather"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_contract(name):
    """Sizes, finite numbers, whole episodes; the same whatever steps them and however many are stepped at once."""
    whole = registry.make(name)
    assert isinstance(whole, HostTask)
    task = dataclasses.replace(whole, horizon=STEPS)
    one, two = (Hands(threads=1), Hands(threads=2)) if task.in_process else (Hands(workers=1), Hands(workers=2))
    alone, together = batch(task, one, 2), batch(task, two, EPISODES)
    for values, others in zip(alone, together, strict=True):
        np.testing.assert_array_equal(values, others)
    assert alone.observations.shape == (STEPS, EPISODES, task.observation_size)
    assert alone.costs.shape == (STEPS, EPISODES, len(task.cost_names))
    assert all(np.isfinite(x).all() for x in (alone.observations, alone.rewards, alone.costs))
    assert (alone.terminated ^ alone.truncated).all()
    assert tuple(registry.preset(name).limits) == task.cost_names
    starts = alone.observations[0]
    assert not np.array_equal(starts[0], starts[1]) or "grid" in name or "bottleneck" in name  # an empty road is one
