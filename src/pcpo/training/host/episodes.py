"""Plays whole episodes, decided before they start, in environments that are stepped in groups.

A group are the environments of one worker. Those groups that are ready are decided for together and go on; nobody waits
for the others. When an episode ends, its environment takes the next one that nobody has begun, so that all stay busy.
Who plays which episode when depends on who is fast, and changes nothing: an episode follows from its seed, its noise
and a policy that is evaluated in blocks of one shape, in which a row's place and its neighbours have no influence.
So processes may be many or few, fast or slow, and may die and be replaced.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from jaxtyping import Int, Shaped

from pcpo.rl.rollout import Rollout
from pcpo.tasks.host import HostTask, WorldError
from pcpo.training.host.fleet import Failure, Fleet, with_trace
from pcpo.training.host.log import Log
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
    """On how many observations at once the policy is evaluated."""
    where: str
    """Names the batch in messages."""


class Played(NamedTuple):
    """A batch."""

    log: Log
    """All its steps."""
    failures: int
    """So often workers died, hung or failed, and were replaced."""

    @property
    def rollout(self) -> Rollout:
        """All its steps, by steps and episodes."""
        return self.log.rollout()


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
        table, size = fleet.table, task.observation_size
        self.log = Log(task.horizon, len(plan.seeds), size, table.actions, table.costs.shape[1], dtype)
        self.line = np.zeros(n, np.int64)
        """Of the log, in which the step stands that each is making."""
        self.episode = np.full(n, -1)
        """Which one each environment plays; -1 for none."""
        self.t = np.zeros(n, np.int64)
        """Steps that each has made of it."""
        self.begun = 0
        self.orders: dict[int, _Order] = {}
        """What each worker is doing; nothing of those who have nothing to do."""
        self.failures: Counter[int] = Counter()
        """Of each episode."""
        self.replaced = 0
        self.strange: set[str] = set()
        """What has been told of already."""
        self.observations = np.zeros((n, size), dtype)
        """The last one of each environment."""
        self.block = tuple(np.zeros((plan.block, *x.shape[1:]), dtype) for x in (self.observations, plan.noise[0]))
        """Observations and noise as the policy gets them."""

    def play(self) -> Played:
        self._go_on(range(self.fleet.workers), np.arange(len(self.episode)))
        while self.orders:
            done = self._done()
            looked = self._look(_rows_that("reset", done))
            ended = self._record(_rows_that("step", done))
            self._go_on(done.keys(), np.concatenate([looked, ended]))
        return Played(self.log, self.replaced)

    def _go_on(self, workers: Iterable[int], free: npt.NDArray[Any]) -> None:
        """Tells workers what to do next: the next episodes for environments that have none to play, else a step."""
        self.episode[free] = -1
        fresh = free[: len(self.plan.seeds) - self.begun]
        self.episode[fresh], self.t[fresh] = np.arange(self.begun, self.begun + len(fresh)), 0
        self.begun += len(fresh)
        playing: dict[int, npt.NDArray[Any]] = {}
        for worker in workers:
            beginning = fresh[fresh % self.fleet.workers == worker]
            if beginning.size:
                self._have(worker, "reset", beginning)
            elif (rows := self._rows_of(worker)).size:
                playing[worker] = rows
        if playing:
            self._decide(np.concatenate(list(playing.values())))
        for worker, rows in playing.items():
            self._have(worker, "step", rows)

    def _have(self, worker: int, command: Command, rows: npt.NDArray[Any]) -> None:
        """Has a worker do something."""
        self._prepare(command, rows)
        self.orders[worker] = _Order(command, rows)
        self.fleet.begin(worker, command, rows)

    def _prepare(self, command: Command, rows: npt.NDArray[Any]) -> None:
        """Puts what a command needs to know into the table."""
        if command == "reset":
            self.fleet.table.seeds[rows] = self.plan.seeds[self.episode[rows]]
        else:
            self.fleet.table.actions[rows] = self.log.actions[self.line[rows]]

    def _done(self) -> "dict[int, _Order]":
        """Waits for some workers; what those have done that are ready. Who failed is mended and told again."""
        done: dict[int, _Order] = {}
        for worker, failure in self.fleet.finished(self.orders.keys()).items():
            order = self.orders.pop(worker)
            if failure is None:
                done[worker] = order
            else:
                self._mend(failure)
                self._have(worker, *order)
        return done

    def _decide(self, rows: npt.NDArray[Any]) -> None:
        """What to do next, by as many blocks as are needed."""
        t, episode, seen = self.t[rows], self.episode[rows], self.observations[rows]
        lines = self.log.begin(t, episode, seen)
        self.line[rows] = np.arange(lines.start, lines.stop)
        observations, noise = self.block
        for start in range(0, len(rows), len(noise)):
            part = slice(start, min(start + len(noise), len(rows)))
            count = part.stop - start
            observations[:count] = seen[part]
            noise[:count] = self.plan.noise[t[part], episode[part]]
            self.log.actions[lines][part] = self.act(observations, noise)[:count]

    def _look(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Takes the first observations of episodes; returns the rows where they are nothing to begin with."""
        if not rows.size:
            return rows
        lost = self._see(rows)
        self.log.truncated[self.episode[rows]] = lost
        return rows[lost]

    def _record(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Keeps what a step has given; returns the rows whose episodes have ended."""
        if not rows.size:
            return rows
        episode, lines, table, log = self.episode[rows], self.line[rows], self.fleet.table, self.log
        rewards, costs, terminated = table.rewards[rows], table.costs[rows], table.terminated[rows]
        log.rewards[lines], log.costs[lines] = rewards, costs
        self._find_strange("a reward", rows, rewards[:, None])
        self._find_strange("a cost", rows, costs)
        t = self.t[rows] = self.t[rows] + 1
        cut = table.truncated[rows] | (t >= self.task.horizon)
        ended = terminated | cut
        ended |= self._see(rows, ended)
        log.terminated[episode], log.truncated[episode] = terminated, ended & ~terminated
        return rows[ended]

    def _see(self, rows: npt.NDArray[Any], ended: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """Takes new observations.

        Returns:
            Where they are not finite: such an episode ends there. The update that it enters will be refused, and what
            a policy would make of such numbers helps nobody.
        """
        seen = self.fleet.table.observations[rows].astype(self.observations.dtype)
        self.observations[rows] = seen
        strange = self._find_strange("an observation", rows, seen)
        last = strange if ended is None else strange | ended
        if last.any():
            self.log.final_observations[self.episode[rows[last]]] = seen[last]
        return strange

    def _find_strange(self, what: str, rows: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which rows hold something that is not finite. It is told of once in a batch."""
        finite = np.isfinite(values)
        if finite.all():
            return np.zeros(len(rows), bool)
        strange = np.logical_not(finite.all(axis=1))
        if what not in self.strange:
            self.strange.add(what)
            first = int(np.argmax(strange))
            row = int(rows[first])
            component = int(np.argmin(finite[first]))
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
        self._prepare("reset", rows)
        failures = self.fleet.run("reset", rows)
        if not failures:
            self._check_same(rows[made > 0], 0)
        for t in range(int(made.max(initial=0))):
            if failures:
                break
            going = rows[made > t]
            self.fleet.table.actions[going] = self.log.actions[self.log.line[t, self.episode[going]]]
            failures = self.fleet.run("step", going)
            if not failures:
                self._check_same(going, t + 1)
        return failures[0] if failures else None

    def _check_same(self, rows: npt.NDArray[Any], t: int) -> None:
        """Makes sure that an episode went where it had gone the first time."""
        last = self.t[rows] == t
        lines = self.log.line[np.where(last, 0, t), self.episode[rows]]
        before = np.where(last[:, None], self.observations[rows], self.log.observations[lines])
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


class _Order(NamedTuple):
    """What a worker is to do."""

    command: Command
    rows: npt.NDArray[Any]


def _rows_that(command: Command, orders: dict[int, _Order]) -> npt.NDArray[Any]:
    """The rows of all orders of a kind."""
    return np.concatenate([np.arange(0), *(rows for what, rows in orders.values() if what == command)])
