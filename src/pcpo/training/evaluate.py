"""What a trained policy earns and costs, from episodes that training never saw, with how sure one can be of it.

The episodes come from a stream of random numbers of their own (`DeviceProgram.rollout`), folded from each seed of the
run: no update has ever used one of them. The same call gives the same episodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pcpo import __version__
from pcpo.rl.rollout import Rollout
from pcpo.tasks.api import Task
from pcpo.training import checkpoint
from pcpo.training.checkpoint import Checkpoint, CheckpointError
from pcpo.training.collect_host import HostProgram
from pcpo.training.config import Config
from pcpo.training.files import write_json
from pcpo.training.host.fleet import Hands
from pcpo.training.programs import AnyProgram, program_for, shape_of_state
from pcpo.training.run import CHECKPOINTS, EVALUATION, Run
from pcpo.training.statistics import mean_interval, probability_within

CONFIDENCE = 0.95
"""Of all intervals."""
FILE = EVALUATION
"""Where a run keeps its last evaluation."""
BLOCK = 1000
"""Episodes of each seed that are played at once."""
HOST_BLOCK = 64
"""The same on the host, where episodes may be long and observations wide, and little is gained by more."""


@dataclass(frozen=True)
class Mean:
    """A mean over episodes, with Student's interval of it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class CostMean(Mean):
    """J_C of one cost, its limit, and the probability that the true J_C is at most that."""

    limit: float
    probability_within: float
    """See `pcpo.training.statistics.probability_within`."""


@dataclass(frozen=True)
class Judgement:
    """What some episodes say of the policy, or of the policies, that played them."""

    episodes: int
    discounted_return: Mean
    undiscounted_return: Mean
    episode_length: float
    costs: Mapping[str, CostMean]


@dataclass(frozen=True)
class Evaluation:
    """A judgement on the policy of each seed, and on all of them together."""

    update: int
    """After how many updates."""
    deterministic: bool
    """Whether the likeliest action was played, rather than one drawn as in training."""
    seeds: Mapping[int, Judgement]
    pooled: Judgement
    """All episodes of all seeds: of a policy drawn from these, not of seeds that were never trained."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not a finite number is None."""
        return _plain(
            {
                "pcpo": __version__,
                "confidence": CONFIDENCE,
                "update": self.update,
                "deterministic": self.deterministic,
                "seeds": {str(seed): asdict(judgement) for seed, judgement in self.seeds.items()},
                "pooled": asdict(self.pooled),
            }
        )


class Episodes(NamedTuple):
    """Sums over each episode, one row per seed."""

    discounted_returns: Float[np.ndarray, "seeds n"]
    undiscounted_returns: Float[np.ndarray, "seeds n"]
    lengths: Float[np.ndarray, "seeds n"]
    costs: Float[np.ndarray, "seeds n m"]


def evaluate(
    run: Run,
    episodes: int = 1000,
    deterministic: bool = False,
    update: int | None = None,
    task: Task | None = None,
    hands: Hands = Hands(),  # noqa: B008 (unchangeable)
) -> Evaluation:
    """Plays fresh episodes with the policies of a run.

    Args:
        run: The run.
        episodes: For each seed.
        deterministic: Whether to play the likeliest action. Limits are kept, if at all, by the policy as it was
            trained, which draws its actions.
        update: Of which checkpoint, by the number of updates made before it; the newest by default.
        task: The task itself, where it is not one that pcpo knows.
        hands: Who steps the environments of a task on the host.

    Raises:
        RunError: If there is no such checkpoint, or it is damaged.
        WorldError: If an environment cannot go on.
        ValueError: If no episodes are asked for.
    """
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; play 1 or more, such as 1000")
    program, found = trained(run, update, task, hands)
    config = run.record.at(found.update)
    try:
        played = play_episodes(program, found.tree, config, episodes, deterministic)
    finally:
        if isinstance(program, HostProgram):
            program.close()
    judgements = {
        seed: judge(Episodes(*(each[place : place + 1] for each in played)), config)
        for place, seed in enumerate(config.all_seeds)
    }
    return Evaluation(found.update, deterministic, judgements, judge(played, config))


def save_evaluation(run: Run, evaluation: Evaluation) -> Path:
    """Writes it into the run, in place of the last one, and returns where."""
    path = run.directory / FILE
    write_json(path, evaluation.to_json())
    return path


def trained(
    run: Run,
    update: int | None = None,
    task: Task | None = None,
    hands: Hands = Hands(),  # noqa: B008 (unchangeable)
) -> tuple[AnyProgram, Checkpoint]:
    """The program of a run, and the state that it had reached."""
    program = program_for(run.config, task, hands=hands)
    like = shape_of_state(program, run.config)
    if update is None:
        return program, run.latest_state(like)
    known = checkpoint.updates(run.directory / CHECKPOINTS)
    if update not in known:
        there = ", ".join(map(str, known)) or "none"
        raise CheckpointError(f"{run.directory} has no checkpoint after {update} updates; there are: {there}")
    return program, checkpoint.load(run.directory / CHECKPOINTS, update, like)


def play_episodes(
    program: AnyProgram, state: Any, config: Config, episodes: int, deterministic: bool = False
) -> Episodes:
    """Sums over fresh episodes of each seed, played in blocks of one size, so that one program serves all of them."""
    block = min(episodes, HOST_BLOCK if isinstance(program, HostProgram) else BLOCK)
    parts = [
        _sums(program.rollout(state, number, block, deterministic), config) for number in range(-(-episodes // block))
    ]
    return Episodes(*(np.concatenate(each, axis=1)[:, :episodes] for each in zip(*parts, strict=True)))


def judge(played: Episodes, config: Config) -> Judgement:
    """What the episodes of all seeds in ``played`` say."""
    costs = played.costs.reshape(played.lengths.size, -1)
    return Judgement(
        episodes=played.lengths.size,
        discounted_return=_mean(played.discounted_returns),
        undiscounted_return=_mean(played.undiscounted_returns),
        episode_length=float(played.lengths.mean()),
        costs={name: _cost_mean(costs[:, i], limit) for i, (name, limit) in enumerate(config.limits.items())},
    )


def _sums(rollout: Rollout, config: Config) -> Episodes:
    """Sums in double precision of the rewards and costs that the program gave; steps after an end are zero there."""
    rewards, costs = np.asarray(rollout.rewards, np.float64), np.asarray(rollout.costs, np.float64)
    steps = np.arange(rewards.shape[1])
    weights = np.array([[each.discount**t for each in config.constraints] for t in steps.tolist()], np.float64)
    return Episodes(
        np.einsum("t,ste->se", config.gamma**steps, rewards),
        rewards.sum(axis=1),
        np.asarray(rollout.mask).sum(axis=1, dtype=np.float64),
        np.einsum("tm,stem->sem", weights.reshape(len(steps), -1), costs),
    )


def _mean(values: Float[np.ndarray, "..."]) -> Mean:
    return Mean(float(values.mean()), *mean_interval(values, CONFIDENCE))


def _cost_mean(costs: Float[np.ndarray, " n"], limit: float) -> CostMean:
    return CostMean(**asdict(_mean(costs)), limit=limit, probability_within=probability_within(costs, limit))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
