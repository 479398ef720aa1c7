"""Training on the host: the same run whoever steps the environments, whatever befalls them; kept, resumed, judged."""

import dataclasses
import functools
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.cli import endings
from pcpo.rl.normalize import Normalizer, empty
from pcpo.tasks.host import WorldError
from pcpo.training import evaluate, loop
from pcpo.training.agents import PCPO
from pcpo.training.collect_host import BLOCK, FACTORS, HostProgram, host_program, next_episodes
from pcpo.training.config import Config, Constraint
from pcpo.training.files import RunError
from pcpo.training.host.fleet import Hands
from pcpo.training.programs import program_for
from pcpo.training.progress import Silent
from pcpo.training.run import Run
from pcpo.training.streams import EVALUATE, PLAY, episode_seeds
from tests.training import host_worlds
from tests.training.host_worlds import Faulty, Walks
from tests.training.small import assert_same, rows_in, without_clock

LIMITS = (Constraint("far", 2.0), Constraint("time", 20.0))
CONFIG = Config("walk", {}, LIMITS, ("task",), batch_size=9, hidden=(4,), updates=4, spectrum_every=0)
"""Three episodes per update, of at most four steps; so few that their number never changes, and nothing is compiled
again."""

task = functools.partial(host_worlds.task, horizon=4)
HERE = loop.Manner(hands=Hands(workers=0))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing has happened to."""
    directory = tmp_path_factory.mktemp("host") / "run"
    loop.train(CONFIG, directory, HERE, task=task())
    return directory


def state_of(directory):
    program = program_for(Run.open(directory).config, task())
    return evaluate.trained(Run.open(directory), task=task())[1].tree, program


def test_a_run_has_rows_of_whole_episodes(whole):
    rows = rows_in(whole)
    assert [row["update"] for row in rows] == [0, 1, 2, 3]
    assert all(row["worker_failures"] == 0 for row in rows)
    lengths = [row["episode_length"] for row in rows]
    assert rows[-1]["env_steps"] == round(sum(3 * length for length in lengths))
    assert all(set(row["costs"]) == {"far", "time"} for row in rows)


def test_processes_that_are_killed_change_nothing_but_their_count(whole, tmp_path):
    """The curve is the one it would have been: the same rows, whoever steps the environments."""
    seed = int(episode_seeds(0, PLAY, 2, 3)[1])
    faulty = task(Faulty("is killed", seed, 1, str(tmp_path / "faults")))
    said = []

    class Display(Silent):
        def say(self, text):
            said.append(text)

    manner = loop.Manner(Display(), hands=Hands(workers=2))
    loop.train(CONFIG, tmp_path / "run", manner, task=faulty)
    rows = rows_in(tmp_path / "run")
    assert without_clock(rows) == without_clock(rows_in(whole))
    assert [row["worker_failures"] for row in rows] == [0, 0, 1, 0]
    assert len([text for text in said if "died of SIGKILL; it has been replaced" in text]) == 1
    assert_same(state_of(tmp_path / "run")[0], state_of(whole)[0])


def test_an_episode_that_always_fails_stops_the_run_and_what_was_made_is_kept(whole, tmp_path):
    """Mended, it goes on as if nothing had been."""
    seed = int(episode_seeds(0, PLAY, 2, 3)[1])
    faulty = task(Faulty("raises", seed, 1, str(tmp_path / "faults"), times=100))
    directory = tmp_path / "run"
    with pytest.raises(
        WorldError, match=f"RuntimeError: the robot fell apart.*3 times while it played episode .*seed {seed}"
    ):
        loop.train(CONFIG, directory, HERE, task=faulty)
    assert len(rows_in(directory)) == 2
    assert Run.open(directory).updates == 2
    ended = loop.resume(directory, HERE, task=task())
    assert ended.stopped_by is None
    assert without_clock(rows_in(directory)) == without_clock(rows_in(whole))


def test_a_run_goes_on_bit_for_bit(whole, tmp_path):
    directory = tmp_path / "run"
    loop.train(CONFIG.replace(updates=2), directory, HERE, task=task())
    loop.resume(directory, HERE, updates=4, task=task())
    assert without_clock(rows_in(directory)) == without_clock(rows_in(whole))
    assert_same(state_of(directory)[0], state_of(whole)[0])


def test_a_task_of_ones_own_is_named_again(whole):
    with pytest.raises(RunError, match=r"walk is a task of your own.*load\(..., env=...\).*--task package.module"):
        loop.resume(whole, HERE, updates=8)


def test_two_seeds_are_two_runs(whole):
    """Trained one after the other: each is the run that it would be alone."""
    program: Any = program_for(CONFIG.replace(seeds=2), task(), hands=HERE.hands)
    state, metrics = program.update(program.init(CONFIG.hyper()), CONFIG.hyper())
    first = rows_in(whole)[0]
    costs = np.asarray(metrics["costs"])
    assert costs.shape == (2, 2)
    np.testing.assert_allclose(costs[0], list(first["costs"].values()), rtol=1e-6)
    assert not np.allclose(costs[0], costs[1])
    assert state.episodes.shape == (2,)


def test_an_agent_learns_predicts_and_is_loaded(whole, tmp_path):
    agent: Any = PCPO(task(), LIMITS, workers=0, batch_size=9, hidden=(4,), spectrum_every=0).learn(2)
    assert without_clock(agent.rows) == without_clock(rows_in(whole)[:2])
    actions = agent.predict(np.zeros((5, 3)))[0]
    assert actions.shape == (5, 2)
    path = agent.save(tmp_path / "agent")
    with pytest.raises(RunError, match="walk is a task of your own"):
        PCPO.load(path)
    loaded = PCPO.load(path, env=task(), workers=0)
    np.testing.assert_array_equal(loaded.predict(np.zeros((5, 3)))[0], actions)
    assert without_clock(loaded.learn(2).rows) == without_clock(rows_in(whole)[2:])
    assert agent._program._fleet is None  # nothing is left running


def test_evaluation_plays_episodes_that_training_never_saw(whole):
    found = evaluate.evaluate(Run.open(whole), 10, task=task(), hands=HERE.hands)
    again = evaluate.evaluate(Run.open(whole), 10, task=task(), hands=Hands(workers=2))
    assert found == again
    assert found.pooled.episodes == 10
    assert found != evaluate.evaluate(Run.open(whole), 10, deterministic=True, task=task(), hands=HERE.hands)
    seen = {int(seed) for update in range(4) for seed in episode_seeds(0, PLAY, update, 3)}
    assert not seen & set(map(int, episode_seeds(0, EVALUATE, 0, 10)))


def test_observations_are_normalised_by_a_part_of_the_state(tmp_path):
    """Refreshed for as many batches as asked for, then frozen; the same in training, evaluation and on its own."""
    config = CONFIG.replace(normalize_batches=2)
    loop.train(config, tmp_path / "run", HERE, task=task())
    tree, _ = state_of(tmp_path / "run")
    normalizer = Normalizer(*(jnp.asarray(np.asarray(x)[0]) for x in tree.normalizer))
    rows = rows_in(tmp_path / "run")
    assert normalizer.batches == 2
    assert normalizer.seen == rows[1]["env_steps"]
    agent = PCPO.load(tmp_path / "run", env=task(), workers=0)
    seen = np.array([[0.3, -2.0, 4.0]], np.float32)
    policy = agent._program.policy
    with jax.enable_x64(False):
        params = jax.tree.map(lambda x: jnp.asarray(x)[0], tree.params)
        expected = policy.distribution.mode(policy.apply(params, normalizer.apply(jnp.asarray(seen))))
    np.testing.assert_allclose(agent.predict(seen)[0], np.clip(np.asarray(expected), -1, 1), rtol=1e-6)
    evaluate.evaluate(Run.open(tmp_path / "run"), 4, task=task(), hands=HERE.hands)
    assert_same(state_of(tmp_path / "run")[0].normalizer, tree.normalizer)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("block", "size"), [(16, 9), (16, 111), (BLOCK, 32)])
def test_where_an_environment_sits_in_the_block_has_no_influence(block, size, precision):
    """Otherwise the number of environments and processes would be a part of the arithmetic."""
    wide = dataclasses.replace(task(), observation_size=size)
    program = host_program(wide, CONFIG.options(), batch_size=20, seeds=(0,), precision=precision, environments=block)
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(block, size)).astype(precision)
    noise = rng.normal(size=(block, 2)).astype(precision)
    with jax.enable_x64(precision == "float64"):
        act = functools.partial(program._act, program.policy.init(jax.random.key(0)), empty(size))
        actions = np.asarray(act(observations, noise, False))
        for _ in range(5):
            order = rng.permutation(block)
            np.testing.assert_array_equal(np.asarray(act(observations[order], noise[order], False)), actions[order])


def test_a_batch_grows_where_episodes_are_short():
    """By the mean of the batch before: which episodes count is decided before they start."""
    assert [next_episodes(1000, 10, length) for length in (100.0, 70.0, 69.0, 35.0, 34.0, 1.0)] == [
        10,
        10,
        20,
        20,
        40,
        160,
    ]
    assert next_episodes(1000, 10, 0.5) == 10 * FACTORS[-1]


def test_episodes_have_seeds_of_their_own():
    seeds = [tuple(episode_seeds(*numbers, 4)) for numbers in ((0, 1, 0), (1, 1, 0), (0, 3, 0), (0, 1, 1))]
    flat = [seed for each in seeds for seed in each]
    assert len(set(flat)) == len(flat)
    assert all(0 <= seed < 2**31 for seed in flat)
    np.testing.assert_array_equal(episode_seeds(0, 1, 0, 2), seeds[0][:2])


class _Breaks(Walks):
    def step(self, which, actions):
        raise KeyboardInterrupt


def test_after_ctrl_c_nothing_is_left(whole):
    program = program_for(CONFIG, task(_Breaks), hands=HERE.hands)
    assert isinstance(program, HostProgram)
    with pytest.raises(KeyboardInterrupt):
        program.update(program.init(CONFIG.hyper()), CONFIG.hyper())
    assert program._fleet is None


@pytest.mark.parametrize(
    ("hands", "message"),
    [(Hands(threads=2), "threads is 2, but walk is stepped by processes; give workers instead")],
)
def test_hands_are_checked_before_anything_is_done(hands, message, tmp_path):
    with pytest.raises(RunError, match=message):
        loop.train(CONFIG, tmp_path / "run", loop.Manner(hands=hands), task=task())
    assert not (tmp_path / "run").exists()


def test_a_function_that_makes_an_environment_is_all_that_is_needed(tmp_path):
    """With a cost that is a closure, through a process of its own, to actions that the environment takes."""
    angle = 0.02
    make = functools.partial(gymnasium.make, "CartPole-v1")

    def tilted(before, action, after, info):
        return abs(after[2]) > angle

    given: Any = {"cost": tilted, "max_episode_steps": 8}
    agent = PCPO(make, 5.0, **given, workers=1, batch_size=8, hidden=(4,), spectrum_every=0).learn(1)
    assert agent.config.task == "CartPole-v1"
    assert 0.0 < agent.rows[0]["costs"]["cost"] <= 8.0
    env = make()
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation)
    assert action in env.action_space
    loaded = PCPO.load(agent.save(tmp_path / "agent"), env=make, **given)
    assert loaded.predict(observation)[0] == action


def test_the_command_line_tells_of_an_environment_that_cannot_go_on(whole, capsys):
    """Its own error on stderr, what is left of the run and how to go on, and an exit code of its own."""
    with endings.failures_told(whole) as failed:
        error = WorldError("walk: it fell apart")
        error.add_note("Traceback: in walk.py")
        raise error
    assert failed.code == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == ["Traceback: in walk.py", "pcpo: walk: it fell apart"]
    assert "4 updates, saved" in said.out
    assert f"pcpo resume {whole}" in said.out
