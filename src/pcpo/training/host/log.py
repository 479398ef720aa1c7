"""What was played, written down step by step, and the batch that is made of it.

Steps stand in the log in the order in which they were made, whosever they are: memory is touched only for those that
were played, and nothing has to be cleared beforehand. A batch has room for several times as many where episodes end
early.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float, Int

from pcpo.rl.rollout import AnyRollout, Packed, Rollout
from pcpo.rl.subsample import WHOLE

WORTH = 4096
"""Batches that could have no more steps than this stay as they are: nothing is gained that a compilation is worth."""
PER_HALF = 4
"""Sizes from a number of rows to its half. Each compiles an update of its own; with four, a batch has a tenth more rows
than steps on average, and never a fifth."""


class Log:
    """The steps of some episodes.

    Args:
        horizon: Steps of an episode, at most.
        episodes: How many.
        observation_size: Numbers in an observation.
        actions: Some actions, as many as there may be: whole numbers, or real ones.
        costs: Number of costs.
        dtype: Of all that is real.
    """

    def __init__(
        self, horizon: int, episodes: int, observation_size: int, actions: npt.NDArray[Any], costs: int, dtype: Any
    ) -> None:
        most = horizon * episodes
        self.steps = 0
        self.line = np.full((horizon, episodes), -1, np.int32)
        """Where each step of each episode stands; -1 for those that were not made."""
        self.observations = np.empty((most, observation_size), dtype)
        self.actions = np.empty((most, *actions.shape[1:]), np.int64 if actions.dtype == np.int64 else dtype)
        self.rewards = np.empty(most, dtype)
        self.costs = np.empty((most, costs), dtype)
        self.terminated, self.truncated = np.zeros(episodes, bool), np.zeros(episodes, bool)
        self.final_observations = np.zeros((episodes, observation_size), dtype)

    def begin(
        self, t: Int[np.ndarray, " n"], episode: Int[np.ndarray, " n"], observations: Float[np.ndarray, "n o"]
    ) -> slice:
        """Writes down what some actions are chosen on; the lines in which the rest of these steps belongs."""
        lines = slice(self.steps, self.steps + len(t))
        self.line[t, episode] = np.arange(lines.start, lines.stop)
        self.observations[lines] = observations
        self.steps = lines.stop
        return lines

    def batch(self, rows: int | None = None) -> AnyRollout:
        """What the learner gets, without what was not played where that is worth it.

        Args:
            rows: How many to have, at least as many as there are steps; None for the usual number.
        """
        rows = rows or rows_for(self.steps, self.line.size)
        if rows == self.line.size:
            return self.rollout()
        lines = self.line.T[self._mask().T]

        def column(x: npt.NDArray[Any]) -> Any:
            packed = np.empty((rows, 1, *x.shape[1:]), x.dtype)
            np.take(x, lines, axis=0, out=packed[: len(lines), 0])
            packed[len(lines) :] = 0
            return packed

        return Packed(observations=column(self.observations), actions=column(self.actions), **self._by_episode())

    def rollout(self) -> Rollout:
        """Everything by steps and episodes."""
        return Rollout(
            observations=self._spread(self.observations), actions=self._spread(self.actions), **self._by_episode()
        )

    def _by_episode(self) -> dict[str, Any]:
        return {
            "rewards": self._spread(self.rewards),
            "costs": self._spread(self.costs),
            "mask": self._mask(),
            "terminated": self.terminated,
            "truncated": self.truncated,
            "final_observations": self.final_observations,
        }

    def _mask(self) -> Bool[np.ndarray, "T E"]:
        return self.line >= 0

    def _spread(self, x: npt.NDArray[Any]) -> Any:
        """What stands in the lines by steps and episodes; zero for steps that were not made."""
        whole, mask = np.zeros((*self.line.shape, *x.shape[1:]), x.dtype), self._mask()
        whole[mask] = x[self.line[mask]]
        return whole


def rows_for(steps: int, possible: int) -> int:
    """In how many rows so many steps are put: the least of a few numbers that follow from those possible alone.

    Args:
        steps: That were played.
        possible: That could have been.

    Example:
        >>> [rows_for(steps, 400_000) for steps in (400_000, 350_000, 120_000, 100_000, 7)]
        [400000, 400000, 141440, 100096, 4480]
    """
    rows = possible
    for quarter in range(1, 16 * PER_HALF):
        smaller = -(-int(possible * 2 ** (-quarter / PER_HALF)) // WHOLE) * WHOLE
        if smaller < max(steps, WORTH):
            break
        rows = smaller
    return rows
