"""Whole episodes, decided before they start: what is recorded is what a plain loop over single episodes sees."""

from typing import Any

import numpy as np
import pytest

from pcpo.rl.spaces import Discrete
from pcpo.tasks.host import Outcomes, WorldError
from pcpo.training.host.episodes import ATTEMPTS, Plan, play
from pcpo.training.host.fleet import Hands, InProcess, fleet_for
from tests.training.host_worlds import HORIZON, Faulty, Walk, Walks, task

EPISODES = 11
SEEDS = np.arange(100, 100 + EPISODES)


def act(observations, noise):
    """A policy: rows have nothing to do with each other."""
    return 0.5 * np.tanh(observations[:, :2]) + noise


def plan(block=4, seeds=SEEDS, dtype: Any = np.float64):
    noise = np.random.default_rng(1).normal(size=(HORIZON, len(seeds), 2)).astype(dtype)
    return Plan(seeds, noise, block, "update 3, seed 0")


def played(a_task=None, environments=4, hands=None, told=None, **changes):
    """A batch, with its environments in this process unless ``hands`` says otherwise."""
    a_task = a_task or task()
    fleet = fleet_for(a_task, environments, hands or Hands(workers=0))
    try:
        return play(a_task, fleet, act, plan(**changes), (told if told is not None else []).append)
    finally:
        fleet.close()


@pytest.fixture(scope="module")
def batch():
    return played().rollout


def assert_same(rollout, other):
    for name, values, others in zip(rollout._fields, rollout, other, strict=True):
        np.testing.assert_array_equal(values, others, err_msg=name)


def test_a_batch_is_what_a_plain_loop_sees(batch):
    """Every step, the end of every episode, its last observation and its last cost."""
    noise = plan().noise
    for e, seed in enumerate(SEEDS):
        walk, over, t = Walk(seed), (False, False), 0
        after = walk.observe()
        for t in range(HORIZON):
            observation = walk.observe()
            action = act(observation[None], noise[t, e][None])[0]
            after, reward, costs, *over = walk.step(action)
            np.testing.assert_array_equal(batch.observations[t, e], observation)
            np.testing.assert_array_equal(batch.actions[t, e], action)
            np.testing.assert_array_equal(batch.costs[t, e], costs)
            assert batch.rewards[t, e] == reward
            assert batch.mask[t, e]
            if any(over):
                break
        np.testing.assert_array_equal(batch.final_observations[e], after)
        assert batch.terminated[e] == over[0]
        assert batch.truncated[e] == (not over[0])  # by itself, or at the horizon
        for values in (batch.observations, batch.actions, batch.rewards, batch.costs, batch.mask):
            assert not values[t + 1 :, e].any()


def test_the_example_has_every_kind_of_end(batch):
    """Episodes that end, that cut themselves off, and that are cut off at the horizon; short ones and long ones."""
    lengths = batch.mask.sum(axis=0)
    assert batch.terminated.any()
    assert (batch.truncated & (lengths < HORIZON)).any()
    assert (batch.truncated & (lengths == HORIZON)).any()
    assert lengths.min() <= 2


@pytest.mark.parametrize("environments", [1, 3, 11, 16])
def test_how_many_play_at_once_changes_nothing_else(batch, environments):
    assert_same(played(environments=environments, block=16).rollout, batch)


def test_an_episode_is_its_seeds_alone(batch):
    """The same, whichever episodes are beside it."""
    few = Plan(SEEDS[3:5], plan().noise[:, 3:5], 4, "")
    fleet = InProcess(task(), 4)
    rollout = play(task(), fleet, act, few, [].append).rollout
    np.testing.assert_array_equal(rollout.observations, batch.observations[:, 3:5])
    np.testing.assert_array_equal(rollout.final_observations, batch.final_observations[3:5])


def test_floats_are_those_of_the_run():
    rollout = played(dtype=np.float32).rollout
    assert {x.dtype for x in (rollout.observations, rollout.rewards, rollout.costs)} == {np.dtype(np.float32)}
    assert rollout.mask.dtype == np.dtype(bool)


class _Strange(Walks):
    """Something that is not finite, in step 2 of every episode of an even length."""

    what = ""

    def step(self, which, actions):
        outcome = super().step(which, actions)
        hit = [self.walks[i].t == 2 and self.walks[i].length % 2 == 0 for i in which]
        values = getattr(outcome, self.what)
        values[hit] = np.nan
        return outcome


class _NanRewards(_Strange):
    what = "rewards"


class _NanCosts(_Strange):
    what = "costs"


class _NanObservations(_Strange):
    what = "observations"


@pytest.mark.parametrize(
    ("worlds", "what"), [(_NanRewards, "a reward"), (_NanCosts, "a cost"), (_NanObservations, "an observation")]
)
def test_what_is_not_finite_is_told_of_and_kept(worlds, what):
    """The learner refuses such a batch; it is named once, so that it can be found."""
    told = []
    rollout = played(task(worlds), told=told).rollout
    assert len(told) == 1
    assert told[0].startswith(f"walk gave {what} that is not finite, nan in component 0, after ")
    assert "of episode" in told[0]
    assert "of update 3, seed 0" in told[0]
    kept = np.isnan(np.concatenate([x.ravel() for x in rollout if x.dtype.kind == "f"]))
    assert kept.any()


def test_an_observation_that_is_not_finite_ends_its_episode():
    """What a policy would make of it helps nobody."""
    rollout = played(task(_NanObservations)).rollout
    strange = np.isnan(rollout.final_observations).any(axis=1)
    assert strange.any()
    assert (rollout.mask.sum(axis=0)[strange] == 2).all()
    assert (rollout.truncated | rollout.terminated).all()


class _Wide(Walks):
    def reset(self, which, seeds):
        return super().reset(which, seeds)[:, :2]


class _Costless(Walks):
    def step(self, which, actions):
        outcome = super().step(which, actions)
        return Outcomes(*outcome[:2], outcome.costs[:, :1], *outcome[3:])


@pytest.mark.parametrize(
    ("worlds", "message"),
    [
        (_Wide, r"observations of the shape \(4, 2\) where \(4, 3\) was"),
        (_Costless, r"costs of the shape \(4, 1\)"),
    ],
)
def test_wrong_shapes_are_refused(worlds, message):
    with pytest.raises(WorldError, match=message):
        played(task(worlds))


def test_what_fails_here_is_tried_again(batch, tmp_path):
    """Without processes, too: environments that raised are made anew, and episodes repeated up to where they were."""
    told = []
    again = played(task(Faulty("raises", 104, 3, str(tmp_path / "faults"))), told=told)
    assert_same(again.rollout, batch)
    assert again.failures == 1
    assert len(told) == 1
    assert "RuntimeError: the robot fell apart (host_worlds.py, line " in told[0]


def test_what_always_fails_ends_with_its_own_error(tmp_path):
    with pytest.raises(WorldError, match="RuntimeError: the robot fell apart") as caught:
        played(task(Faulty("raises", 104, 0, str(tmp_path / "faults"), times=100)))
    assert f"{ATTEMPTS} times while it played episode" in str(caught.value)
    assert "(seed 104)" in str(caught.value)
    assert "of update 3, seed 0" in str(caught.value)
    assert 'raise RuntimeError("the robot fell apart")' in "".join(caught.value.__notes__)
    assert len((tmp_path / "faults").read_text().splitlines()) == ATTEMPTS


def test_what_no_environment_may_do_is_not_tried_again(tmp_path):
    with pytest.raises(WorldError, match="what no environment may do"):
        played(task(Faulty("refuses", 104, 2, str(tmp_path / "faults"), times=100)))
    assert len((tmp_path / "faults").read_text().splitlines()) == 1


def test_one_environment_for_each_process_where_a_task_says_so():
    """SUMO's worlds; the policy's block stays what it was."""
    only = task(per_process=1)
    fleet = fleet_for(only, 4, Hands(workers=0))
    assert len(fleet.table.seeds) == 1


@pytest.mark.parametrize(
    ("changes", "hands", "message"),
    [
        ({"in_process": True}, Hands(workers=2), "workers is 2, but walk is stepped by threads; give threads"),
        ({}, Hands(threads=2), "threads is 2, but walk is stepped by processes; give workers"),
    ],
)
def test_hands_that_a_task_has_no_use_for(changes, hands, message):
    with pytest.raises(ValueError, match=message):
        hands.check(task(**changes))


class _Unpunctual(InProcess):
    """Four workers, one environment each, who are done in an order that a seed decides, one or several at a time."""

    def __init__(self, a_task, environments, seed):
        super().__init__(a_task, environments)
        self.workers, self.chance, self.begun = environments, np.random.default_rng(seed), {}
        self.order = []

    def begin(self, worker, command, rows):
        assert worker not in self.begun
        assert list(rows) == [worker]
        self.begun[worker] = (command, rows)

    def finished(self, workers):
        assert set(workers) <= self.begun.keys()
        several = self.chance.permutation(list(workers))[: self.chance.integers(1, len(workers) + 1)]
        self.order.append(tuple(several))
        for worker in several:
            command, rows = self.begun.pop(worker)
            self.table.obey(command, self._worlds, rows, rows)
        return dict.fromkeys(map(int, several))


def test_groups_may_finish_in_any_order(batch):
    """Nobody waits for the slowest, and who plays which episode has no influence on it."""
    orders = set()
    for seed in range(5):
        fleet = _Unpunctual(task(), 4, seed)
        assert_same(play(task(), fleet, act, plan(), [].append).rollout, batch)
        orders.add(tuple(fleet.order))
    assert len(orders) == 5


def _spinning(n, threads):
    """Walks for a task that is stepped by threads."""
    assert threads in (1, 2, 3)
    return Walks(n)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_of_the_engine_are_no_part_of_the_arithmetic(batch, threads):
    assert_same(played(task(_spinning, in_process=True), 5, Hands(threads=threads)).rollout, batch)


@pytest.mark.parametrize("fault", ["raises", "fails without words"])
def test_what_fails_in_this_process_is_made_anew(batch, fault, tmp_path):
    faulty = Faulty(fault, 104, 3, str(tmp_path / "faults"))
    again = played(task(lambda n, threads: faulty(n), in_process=True), 4, Hands(threads=2))
    assert_same(again.rollout, batch)
    assert again.failures == 1


def test_what_no_environment_may_do_and_ctrl_c_reach_the_caller(tmp_path):
    for fault, error in (("refuses", WorldError), ("is interrupted", KeyboardInterrupt)):
        faulty = Faulty(fault, 104, 2, str(tmp_path / fault), times=100)
        with pytest.raises(error):
            played(task(lambda n, threads, make=faulty: make(n), in_process=True), 4, Hands(threads=2))
        assert len((tmp_path / fault).read_text().splitlines()) == 1


@pytest.mark.parametrize("block", [1, 3, 16])
def test_a_policy_is_asked_in_blocks_of_one_shape(batch, block):
    """As many as are needed, however many environments there are."""
    asked = []

    def noted(observations, noise):
        asked.append(observations.shape)
        return act(observations, noise)

    fleet = fleet_for(task(), 7, Hands(workers=0))
    assert_same(play(task(), fleet, noted, plan(block), [].append).rollout, batch)
    assert set(asked) == {(block, 3)}
    assert len(asked) >= batch.mask.sum() / block


def test_choices_stay_whole_numbers():
    """Of a policy that chooses one of several things."""

    class Choosing(Walks):
        def step(self, which, actions):
            assert actions.dtype == np.int64
            return super().step(which, np.stack([actions - 1, 1 - actions], axis=1))

    def choose(observations, noise):
        return (np.abs(observations[:, 0] + noise[:, 0]) * 10).astype(int) % 3

    discrete = task(Choosing, action_space=Discrete(3))
    fleet = fleet_for(discrete, 4, Hands(workers=0))
    rollout = play(discrete, fleet, choose, plan(dtype=np.float32), [].append).rollout
    assert rollout.actions.dtype == np.int64
    assert set(rollout.actions[rollout.mask]) == {0, 1, 2}
