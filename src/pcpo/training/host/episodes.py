"""Plays whole episodes, decided before they start, in environments that are stepped in lock step.

Environment i of n begins with episode i. When an episode ends, its environment takes the next one that nobody has
begun, so that all stay busy. Who plays which episode when follows from the episodes alone: processes that are many or
few, fast or slow, or that die and are replaced change nothing. (Where one process may hold few environments only, their
number is that of the processes; the policy is still evaluated in blocks of one shape, in which a row's place has no
influence.)
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from jaxtyping import Int, Shaped

from pcpo.rl.rollout import Rollout
from pcpo.tasks.host import HostTask, WorldError
from pcpo.training.host.fleet import Failure, Fleet, with_trace
from pcpo.training.host.table import Command

ATTEMPTS = 3
"""So many failures of one episode end the run."""

Act: TypeAlias = Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]]
"""``(observations [n, o], noise [n, ...]) -> actions [n, ...]``, where n is always the plan's block."""


class Plan(NamedTuple):
    """All that is decided before the first step."""

    seeds: Int[np.ndarray, " E"]
    """What each episode is reset with."""
    noise: Shaped[np.ndarray, "T E ..."]
    """The randomness of each action."""
    block: int
    """On how many observations at once the policy is evaluated; at least as many as there are environments."""
    where: str
    """Names the batch in messages."""


class Played(NamedTuple):
    """A batch."""

    rollout: Rollout
    failures: int
    """So often workers died, hung or failed, and were replaced."""


def play(task: HostTask, fleet: Fleet, act: Act, plan: Plan, tell: Callable[[str], None]) -> Played:
    """One episode for each seed.

    Args:
        task: The task.
        fleet: Its environments.
        act: The policy.
        plan: The episodes. The floats of the rollout have the dtype of its noise.
        tell: Hears of everything that went wrong and was mended.

    Raises:
        WorldError: If an environment does what none may do, or if one episode has failed `ATTEMPTS` times.
    """
    with np.errstate(over="ignore"):  # what is too large for the run's floats is infinite, and told of as such
        return _Batch(task, fleet, act, plan, tell).play()


class _Batch:
    """A batch being played. Rows are environments, columns of the rollout are episodes."""

    def __init__(self, task: HostTask, fleet: Fleet, act: Act, plan: Plan, tell: Callable[[str], None]) -> None:
        n, dtype = len(fleet.table.seeds), plan.noise.dtype
        self.task, self.fleet, self.act, self.plan, self.tell = task, fleet, act, plan, tell
        self.rollout = _empty(task, fleet, plan)
        self.episode = np.full(n, -1)
        """Which one each environment plays; -1 for none."""
        self.t = np.zeros(n, np.int64)
        """Steps that each has made of it."""
        self.begun = 0
        self.failures: Counter[int] = Counter()
        """Of each episode."""
        self.replaced = 0
        self.strange: set[str] = set()
        """What has been told of already."""
        self.observations = np.zeros((plan.block, task.observation_size), dtype)
        self.noise = np.zeros((plan.block, *plan.noise.shape[2:]), dtype)

    def play(self) -> Played:
        self._begin(np.arange(len(self.episode)))
        while (busy := np.flatnonzero(self.episode >= 0)).size:
            self._decide(busy)
            self._have("step", busy)
            self._begin(self._record(busy))
        return Played(self.rollout, self.replaced)

    def _begin(self, rows: npt.NDArray[Any]) -> None:
        """The next episodes, in environments that have none to play."""
        while rows.size:
            self.episode[rows] = -1
            rows = rows[: len(self.plan.seeds) - self.begun]
            self.episode[rows], self.t[rows] = np.arange(self.begun, self.begun + len(rows)), 0
            self.begun += len(rows)
            self._have("reset", rows)
            lost = self._see(rows)
            self.rollout.truncated[self.episode[rows]] = lost
            rows = rows[lost]

    def _decide(self, rows: npt.NDArray[Any]) -> None:
        """What to do next."""
        t, episode = self.t[rows], self.episode[rows]
        self.noise[rows] = self.plan.noise[t, episode]
        self.rollout.actions[t, episode] = self.act(self.observations, self.noise)[rows]

    def _record(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Keeps what a step has given; returns the rows whose episodes have ended."""
        t, episode, table, rollout = self.t[rows], self.episode[rows], self.fleet.table, self.rollout
        rewards, costs, terminated = table.rewards[rows], table.costs[rows], table.terminated[rows]
        rollout.rewards[t, episode], rollout.costs[t, episode], rollout.mask[t, episode] = rewards, costs, True
        self._find_strange("a reward", rows, rewards[:, None])
        self._find_strange("a cost", rows, costs)
        self.t[rows] += 1
        cut = table.truncated[rows] | (self.t[rows] >= self.task.horizon)
        ended = terminated | cut
        ended |= self._see(rows, ended)
        rollout.terminated[episode], rollout.truncated[episode] = terminated, ended & ~terminated
        return rows[ended]

    def _see(self, rows: npt.NDArray[Any], ended: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """Takes new observations.

        Returns:
            Where they are not finite: such an episode ends there. The update that it enters will be refused, and what
            a policy would make of such numbers helps nobody.
        """
        self.observations[rows] = self.fleet.table.observations[rows]
        seen = self.observations[rows]
        strange = self._find_strange("an observation", rows, seen)
        last = strange if ended is None else strange | ended
        self.rollout.observations[self.t[rows[~last]], self.episode[rows[~last]]] = seen[~last]
        self.rollout.final_observations[self.episode[rows[last]]] = seen[last]
        return strange

    def _find_strange(self, what: str, rows: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which rows hold something that is not finite. It is told of once in a batch."""
        strange = np.logical_not(np.isfinite(values).all(axis=1))
        if strange.any() and what not in self.strange:
            self.strange.add(what)
            first = int(np.argmax(strange))
            row = int(rows[first])
            component = int(np.argmin(np.isfinite(values[first])))
            self.tell(
                f"{self.task.name} gave {what} that is not finite, {values[first, component]} in component "
                f"{component}, {self._what(row)}"
            )
        return strange

    def _what(self, row: int) -> str:
        """Names a moment so that it can be found again."""
        episode = self.episode[row]
        return f"after {self.t[row]} steps of episode {episode} (seed {self.plan.seeds[episode]}) of {self.plan.where}"

    # What fails is done again.

    def _have(self, command: Command, rows: npt.NDArray[Any]) -> None:
        """Has environments obey. Those that fail are replaced, brought to where they were, and asked again."""
        while rows.size:
            self._order(command, rows)
            failures = self.fleet.run(command, rows)
            rows = rows[np.isin(rows % self.fleet.workers, [failure.worker for failure in failures])]
            for failure in failures:
                self._mend(failure)

    def _order(self, command: Command, rows: npt.NDArray[Any]) -> None:
        episode = self.episode[rows]
        if command == "reset":
            self.fleet.table.seeds[rows] = self.plan.seeds[episode]
        else:
            self.fleet.table.actions[rows] = self.rollout.actions[self.t[rows], episode]

    def _mend(self, failure: Failure | None) -> None:
        """New environments in place of those that were lost, where those were."""
        while failure is not None:
            self._count(failure)
            self.replaced += 1
            self.fleet.replace(failure.worker)
            failure = self._catch_up(self._rows_of(failure.worker))

    def _catch_up(self, rows: npt.NDArray[Any]) -> Failure | None:
        """Begins episodes again from their seeds and repeats the actions, up to where they were."""
        made = self.t[rows].copy()
        self._order("reset", rows)
        failures = self.fleet.run("reset", rows)
        if not failures:
            self._check_same(rows[made > 0], 0)
        for t in range(int(made.max(initial=0))):
            if failures:
                break
            going = rows[made > t]
            self.fleet.table.actions[going] = self.rollout.actions[t, self.episode[going]]
            failures = self.fleet.run("step", going)
            if not failures:
                self._check_same(going, t + 1)
        return failures[0] if failures else None

    def _check_same(self, rows: npt.NDArray[Any], t: int) -> None:
        """Makes sure that an episode went where it had gone the first time."""
        before = self.rollout.observations[t, self.episode[rows]]
        other = (self.fleet.table.observations[rows].astype(before.dtype) != before).any(axis=1)
        if other.any():
            row = rows[int(np.argmax(other))]
            raise WorldError(
                f"{self.task.name} is not decided by its seed: its process was lost, and when episode "
                f"{self.episode[row]} of {self.plan.where} was run again with the same seed and actions, it gave "
                f"another observation after {t} steps; let its reset(seed=...) decide over all that is random"
            )

    def _count(self, failure: Failure) -> None:
        episodes = self.episode[self._rows_of(failure.worker)].tolist()
        self.failures.update(episodes)
        worst = [episode for episode in episodes if self.failures[episode] >= ATTEMPTS]
        if worst:
            named = ", ".join(f"{episode} (seed {self.plan.seeds[episode]})" for episode in worst)
            error = WorldError(
                f"{self.task.name}: a process of the environments {failure.reason}, {ATTEMPTS} times while it played "
                f"episode {named} of {self.plan.where}; play that in the environment by itself to see why"
            )
            raise with_trace(error, failure)
        self.tell(
            f"{self.task.name}: a process of the environments {failure.reason}; it has been replaced, and its episodes "
            f"of {self.plan.where} were run again from their seeds"
        )

    def _rows_of(self, worker: int) -> npt.NDArray[Any]:
        """The environments of a worker that are playing."""
        rows = np.arange(worker, len(self.episode), self.fleet.workers)
        return rows[self.episode[rows] >= 0]


def _empty(task: HostTask, fleet: Fleet, plan: Plan) -> Rollout:
    """A rollout of nothing, in numpy's arrays."""
    T, E, dtype = task.horizon, len(plan.seeds), plan.noise.dtype
    table = fleet.table
    arrays: dict[str, Any] = {
        "observations": np.zeros((T, E, task.observation_size), dtype),
        "actions": np.zeros((T, E, *table.actions.shape[1:]), np.int64 if table.actions.dtype == np.int64 else dtype),
        "rewards": np.zeros((T, E), dtype),
        "costs": np.zeros((T, E, table.costs.shape[1]), dtype),
        "mask": np.zeros((T, E), bool),
        "terminated": np.zeros(E, bool),
        "truncated": np.zeros(E, bool),
        "final_observations": np.zeros((E, task.observation_size), dtype),
    }
    return Rollout(**arrays)
