"""What training adds to the ant's simulator: all that a batch costs beyond MuJoCo's own steps, and the update.

The yardstick is MuJoCo's batch stepped bare: the same model, as many robots, as many threads, as many steps in all,
actions of the same size, robots that stand as those of a batch do. Everything else counts as overhead: the policy, its
noise, storage, resets, seeds, the centre of mass, rewards, costs, falls, the ends of batches, when few robots are
left, and the rows for the learner.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import _timing
from benchmarks._timing import Contender
from pcpo.tasks.ant import robot
from pcpo.tasks.ant.centre import centre_of_mass
from pcpo.training.collect_host import HostProgram, next_episodes, of_one
from pcpo.training.config import config_for
from pcpo.training.programs import program_for
from pcpo.training.streams import PLAY, arithmetic, typed

STEPS = 100_000
AGAIN = 100
"""Steps after which bare robots begin anew, so that few of them have fallen."""
TARGET = 0.85
"""Of the bare rate, that collecting should have."""
HALF = 0.5
"""Of the time of collecting, that an update may take."""
BARE, COLLECT, UPDATE = "bare Batch.step", "collecting", "update"


def test_collecting_and_updating(seconds: float) -> None:
    """A batch of about 100,000 steps of an untrained policy, which soon falls, and the update on it."""
    program, state, hyper = _program()
    with arithmetic(program.precision):
        episodes = _episodes(program, state)
        one = of_one(state, 0)

        def collect() -> Any:
            return program._play(one, 0, PLAY, 0, episodes).log.batch()

        batch = collect()
        steps, robots = int(batch.mask.sum()), min(program.environments, episodes)
        update = functools.partial(program._update, one, batch, typed(hyper), jnp.uint32(0))
        jax.block_until_ready(update())
        race = _timing.race(
            Contender(BARE, _bare(robots, steps), 0.0, 0.0),
            Contender(COLLECT, collect, 0.0, 0.0),
            Contender(UPDATE, update, 0.0, 0.0),
            seconds=seconds,
            min_rounds=7,
        )
    program.close()
    _timing.print_table(
        f"Ant-Circle: {episodes} episodes, {steps} steps in {batch.played.size} rows, {robots} robots "
        f"({race.rounds} rounds)",
        ("", "steps per second", "time over bare", "core time over bare"),
        [
            [
                name,
                f"{steps / race.time(name).median:,.0f}",
                race.ratio(name, BARE).show(),
                race.cpu_ratio(name, BARE).show(),
            ]
            for name in race.contenders
        ],
    )
    rate, share = race.ratio(BARE, COLLECT).median, race.ratio(UPDATE, COLLECT).median
    print(f"collecting has {rate:.2f} of the bare rate; an update takes {share:.2f} of the time of collecting")
    missed = [f"collecting has {rate:.2f} of the bare rate; the target is {TARGET}"] if rate < TARGET else []
    missed += [f"an update takes {share:.2f} of the collection; the target is {HALF}"] if share > HALF else []
    assert not missed, "; ".join(missed)


def test_the_centre_of_mass(seconds: float) -> None:
    """Our formula, against asking MuJoCo for the positions of the new state too (velocities would come on top)."""
    n = robot.ENVIRONMENTS
    ants, which = robot.Ants(n), np.arange(n)
    ants.reset(which, robot.generators(which))
    start, everyone = ants.states(which), which.astype(np.int32)
    batch: Any = ants._batch
    position = int(robot.engine().mjtStage.mjSTAGE_POS)

    def steps(more: Callable[[], Any], **options: Any) -> float:
        ants.place(which, *start)
        for _ in range(20):
            batch.step(everyone, **options)
            more()
        return 0.0

    plain, asked, ours = "steps", "steps that end with MuJoCo's centre of mass", "steps and our formula"
    race = _timing.race(
        Contender(plain, lambda: steps(lambda: None), 0.0, 0.0),
        Contender(asked, lambda: steps(lambda: None, stage=position), 0.0, 0.0),
        Contender(ours, lambda: steps(lambda: centre_of_mass(ants.qpos, ants.qvel)), 0.0, 0.0),
        seconds=seconds,
        min_rounds=11,
    )
    _timing.print_table(
        f"Where the centre of mass is, {n} robots ({race.rounds} rounds)",
        ("", "time over plain steps", "core time over plain steps"),
        [[name, race.ratio(name, plain).show(), race.cpu_ratio(name, plain).show()] for name in race.contenders],
    )


def _program() -> tuple[HostProgram, Any, Any]:
    config = config_for("ant-circle", delta=0.01)
    program = program_for(config)
    assert isinstance(program, HostProgram)
    return program, program.init(config.hyper()), config.hyper()


def _episodes(program: HostProgram, state: Any) -> int:
    """So many that a batch has about 100,000 steps, of the numbers that training chooses from."""
    mask = program.rollout(state, 1, program.episodes).mask
    return next_episodes(STEPS, program.episodes, float(mask.sum()) / program.episodes)


def _bare(n: int, steps: int) -> Callable[[], float]:
    """As many steps of n robots, their torques prepared."""
    ants, which = robot.Ants(n), np.arange(n)
    ants.reset(which, robot.generators(which))
    start, everyone = ants.states(which), which.astype(np.int32)
    torques = robot.TORQUE * np.clip(np.random.default_rng(0).normal(size=(AGAIN, n, robot.ACTIONS)), -1, 1)
    batch, control = ants._batch, ants._torques

    def run() -> float:
        for t in range(steps // n):
            if t % AGAIN == 0:
                ants.place(which, *start)
            control[:] = torques[t % AGAIN]
            batch.step(everyone)
        return 0.0

    return run


if __name__ == "__main__":
    _timing.run_directly(
        "What training adds to the ant's simulator.", test_collecting_and_updating, test_the_centre_of_mass
    )
