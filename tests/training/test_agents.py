"""PCPO, TRPO, CPO, PDO, FPO as people use them: learn, predict, save, load."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
from math import erf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import pcpo
from pcpo import CPO, FPO, PCPO, PDO, TRPO, Constraint
from pcpo.rl.networks import Network, mlp
from pcpo.tasks import registry
from pcpo.training import loop
from pcpo.training.checkpoint import CheckpointError
from pcpo.training.files import RunError
from pcpo.training.programs import Networks
from pcpo.training.run import Run
from tests.training.small import SMALL, assert_same, rows_in, without_clock

ORIGIN = [0.0] * 9


def agent(kind: Any = PCPO, *, task: Any = "point-circle", **settings: Any) -> Any:
    return kind(task, **{**SMALL, **settings})


@pytest.fixture(scope="module")
def trained():
    return agent().learn(4)


# What the root of the package promises.


def test_the_root_gives_what_it_promises_and_only_when_asked():
    assert set(pcpo.__all__) <= set(dir(pcpo))
    assert all(getattr(pcpo, name) is not None for name in pcpo.__all__)
    with pytest.raises(AttributeError, match="no attribute 'PPO'"):
        _ = pcpo.PPO
    code = "import sys, pcpo; assert 'jax' not in sys.modules; from pcpo import PCPO; assert 'jax' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# Learning.


def test_learning_again_goes_on_as_if_it_had_never_stopped(trained):
    halves = agent()
    assert halves.learn(1) is halves
    halves.learn(3)
    assert halves.updates == 4
    assert without_clock(halves.rows) == without_clock(trained.rows)
    assert [row["update"] for row in trained.rows] == [0, 1, 2, 3]
    assert_same(halves.params, trained.params)


@pytest.mark.parametrize(
    ("kind", "algorithm", "multiplier"),
    [(TRPO, "trpo", 0.0), (CPO, "cpo", 0.0), (PDO, "pdo", 0.0), (FPO, "fpo", 1.0)],
)
def test_each_class_is_its_algorithm(kind, algorithm, multiplier):
    other = agent(kind)
    assert (other.config.algorithm, other.config.multiplier) == (algorithm, multiplier)
    with pytest.raises(ValueError, match=rf"algorithm is 'pcpo-kl'; {kind.__name__} is {algorithm}"):
        agent(kind, algorithm="pcpo-kl")


def test_pcpo_has_three_projections():
    assert [agent(projection=each).config.algorithm for each in ("kl", "l2", "adaptive")] == list(PCPO.algorithms)
    with pytest.raises(ValueError, match=r"projection is 'l1'; pass 'kl', 'l2' or 'adaptive'"):
        agent(projection="l1")


def test_limits_are_a_number_a_mapping_or_constraints():
    def limits(task, limit):
        return PCPO(task, limit, batch_size=130, hidden=(4,)).config.limits

    assert limits("point-circle", None) == {"cost": 5.0}
    for same in (2, 2.0, {"cost": 2.0}, Constraint("cost", 2.0), [Constraint("cost", 2.0)]):
        assert limits("point-circle", same) == {"cost": 2.0}
    assert limits("point-square", {"cost_y": 1.0}) == {"cost_x": 5.0, "cost_y": 1.0}
    own = agent(cost_limit=Constraint("cost", 2.0, discount=0.9, gae_lambda=0.5)).config.constraints
    assert own == (Constraint("cost", 2.0, discount=0.9, gae_lambda=0.5),)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (float("nan"), r"limit of 'cost' is nan, but must be between"),
        ({"heat": 5.0}, r"point-circle has no cost 'heat'; it has cost"),
        ([Constraint("cost", 1.0)] * 2, r"cost_limit names cost, cost; give each cost one limit"),
    ],
)
def test_a_limit_that_is_none_says_what_to_give(limit, message):
    with pytest.raises(ValueError, match=message):
        PCPO("point-circle", limit)


def test_one_number_for_two_costs_is_not_enough():
    with pytest.raises(ValueError, match=r"point-square has 2 costs \(cost_x, cost_y\); name them, as in {'cost_x'"):
        PCPO("point-square", 5.0)


@pytest.mark.parametrize("updates", [0, -1, True])
def test_a_number_of_updates_that_is_none(updates, trained):
    with pytest.raises(ValueError, match=rf"updates is {updates!r}|updates is {updates}, but must be"):
        trained.learn(updates)
    assert trained.config.updates == 4


# The callback.


def test_the_callback_sees_every_row_and_can_stop():
    seen = []

    def callback(row):
        seen.append((row["update"], row["seed"]))
        return np.bool_(False) if row["update"] == 2 else None

    stopped = agent(seeds=2).learn(9, callback)
    assert stopped.updates == 3
    assert seen == [(update, seed) for update in range(3) for seed in (0, 1)]
    assert [(row["update"], row["seed"]) for row in stopped.rows] == seen


def test_after_a_callback_that_fails_everything_goes_on(trained, tmp_path):
    def fail(row):
        if row["update"] == 1:
            raise RuntimeError("mine")

    shaken = agent()
    with pytest.raises(RuntimeError, match="mine"):
        shaken.learn(3, fail, out=tmp_path / "run")
    assert shaken.updates == 2
    shaken.learn(2, out=tmp_path / "run")
    assert without_clock(shaken.rows) == without_clock(trained.rows)
    assert without_clock(rows_in(tmp_path / "run")) == without_clock(trained.rows)


def test_ctrl_c_finishes_the_update_and_leaves_everything_whole(trained, tmp_path):
    def interrupt(row):
        if row["update"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    interrupted = agent()
    with pytest.raises(KeyboardInterrupt):
        interrupted.learn(4, interrupt, out=tmp_path / "run")
    assert interrupted.updates == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    interrupted.learn(2, out=tmp_path / "run")
    assert without_clock(rows_in(tmp_path / "run")) == without_clock(trained.rows)


def test_an_agent_that_was_cut_off_within_an_update_says_so(monkeypatch, tmp_path):
    torn = agent()

    def cut(*_):
        raise KeyboardInterrupt  # as a second Ctrl-C does

    with monkeypatch.context() as patch:
        patch.setattr(loop.Session, "collect", cut)
        with pytest.raises(KeyboardInterrupt):
            torn.learn(1)
    for use in (lambda: torn.learn(1), lambda: torn.save(tmp_path / "agent")):
        with pytest.raises(RunError, match=r"cut off in the middle of update 0.*load the agent from its run"):
            use()
    assert not list(tmp_path.iterdir())


# Predicting.


def test_predict_takes_one_observation_or_many(trained):
    action, state = trained.predict(ORIGIN)
    assert state is None
    assert action.shape == (2,)
    assert action.dtype == np.float32
    many, _ = trained.predict(np.zeros((5, 9)))
    assert many.shape == (5, 2)
    np.testing.assert_allclose(many, np.tile(action, (5, 1)), rtol=1e-6)


def test_a_deterministic_action_is_always_the_same_and_a_drawn_one_is_not(trained):
    np.testing.assert_array_equal(trained.predict(ORIGIN)[0], trained.predict(ORIGIN)[0])
    drawn = [trained.predict(ORIGIN, deterministic=False)[0] for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_drawn_actions_have_the_spread_of_the_policy(trained):
    """Actions of Point-Circle are bounded by 1 and 0.25, and the policy begins with a standard deviation of 1."""
    actions, _ = trained.predict(np.zeros((4000, 9)), deterministic=False)
    np.testing.assert_array_equal(np.abs(actions).max(0), [1.0, 0.25])
    mode, _ = trained.predict(ORIGIN)
    for each, bound, m in zip(actions.T, (1.0, 0.25), mode.tolist(), strict=True):
        inside = 0.5 * (erf((bound - m) / 2**0.5) + erf((bound + m) / 2**0.5))
        np.testing.assert_allclose(np.mean(np.abs(each) < bound), inside, atol=0.05)


def test_actions_are_clipped_to_the_box():
    far = Network(lambda key: jnp.zeros(1, float), lambda params, x: jnp.stack([x[:, 0], -x[:, 0]], 1) + params.sum())
    pushed = agent(networks=Networks(policy=far))
    np.testing.assert_array_equal(pushed.predict([100.0, *ORIGIN[1:]])[0], [1.0, -0.25])
    np.testing.assert_allclose(pushed.predict([0.125, *ORIGIN[1:]])[0], [0.125, -0.125])


@pytest.mark.parametrize("shape", [(8,), (2, 8), (1, 1, 9), ()])
def test_an_observation_of_another_size_is_named(shape, trained):
    with pytest.raises(ValueError, match=r"observation has shape .* but point-circle has 9 numbers in one; pass \[9\]"):
        trained.predict(np.zeros(shape))


def test_each_seed_has_its_policy():
    two = agent(seeds=2)
    actions = [two.predict(np.ones(9), policy=which)[0] for which in (0, 1)]
    assert not np.array_equal(*actions)
    np.testing.assert_allclose(actions[0], agent().predict(np.ones(9))[0], rtol=1e-5)
    for wrong in (2, -1):
        with pytest.raises(ValueError, match=rf"policy is {wrong}, but there are 2; count from 0"):
            two.predict(ORIGIN, policy=wrong)


# Files.


def test_a_loaded_agent_goes_on_bit_for_bit(trained, tmp_path):
    first = agent().learn(2)
    path = first.save(tmp_path / "new" / "agent")
    assert path == tmp_path / "new" / "agent.safetensors"
    again = PCPO.load(tmp_path / "new" / "agent")
    assert again.config == first.config
    np.testing.assert_array_equal(again.predict(ORIGIN)[0], first.predict(ORIGIN)[0])
    again.learn(2)
    assert without_clock(again.rows) == without_clock(trained.rows[2:])
    assert_same(again.params, trained.params)


def test_double_precision_survives_a_file(tmp_path):
    exact = agent(precision="float64").learn(1)
    again = PCPO.load(exact.save(tmp_path / "agent"))
    assert again.predict(ORIGIN)[0].dtype == np.float64
    assert_same(again.params, exact.params)


def test_a_file_holds_arrays_and_json_and_nothing_else(trained, tmp_path):
    path = trained.save(tmp_path / "agent")
    arrays = safetensors.numpy.load_file(path)
    assert arrays["params/network/0/w"].shape == (1, 9, 4)
    with safetensors.safe_open(path, "np") as file:
        about = json.loads(file.metadata()["pcpo"])
    assert about["record"]["config"]["task"] == "point-circle"


def test_the_class_of_a_file_is_checked(trained, tmp_path):
    path = trained.save(tmp_path / "agent")
    with pytest.raises(CheckpointError, match=r"holds an agent of pcpo-kl; load it with PCPO.load"):
        CPO.load(path)


def test_damaged_changed_and_foreign_files_are_refused(trained, tmp_path):
    whole = trained.save(tmp_path / "agent").read_bytes()
    bad = tmp_path / "bad.safetensors"
    flipped = bytearray(whole)
    flipped[-3] ^= 1
    format_99 = whole.replace(b'\\"format\\": 1', b'\\"format\\": 9')
    assert format_99 != whole
    cases = {
        b"": "was not written by pcpo",
        whole[: len(whole) // 2]: "damaged",
        whole[:40]: "damaged",
        bytes(flipped): "has been changed since it was written",
        whole.replace(b"0.0001", b"0.0009"): "has been changed since it was written",
        format_99: f"format 9, written by pcpo {pcpo.__version__}",
        pickle.dumps(print): "was not written by pcpo",
        safetensors.numpy.save({"x": np.zeros(2)}): "was not written by pcpo",
    }
    for content, message in cases.items():
        bad.write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            PCPO.load(bad)
    with pytest.raises(CheckpointError, match=r"nowhere does not exist; give a file that save\(\) has made"):
        PCPO.load(tmp_path / "nowhere")


# Leaving a run.


def test_a_run_is_left_and_gone_on_with(trained, tmp_path):
    out = tmp_path / "run"
    leaving = agent().learn(1, out=out)
    leaving.learn(1, out=out)
    again = PCPO.load(out)
    assert again.updates == 2
    again.learn(2, out=out)
    assert without_clock(rows_in(out)) == without_clock(trained.rows)
    assert Run.open(out).config.updates == 4
    with pytest.raises(RunError, match=r"holds 4 updates, but this agent has made 2"):
        leaving.learn(1, out=out)
    assert without_clock(rows_in(out)) == without_clock(trained.rows)


def test_limits_may_change_between_two_calls_of_learn(tmp_path):
    learner = agent(cost_limit=20.0)
    for limits in (None, {"cost": 10.0}, None):
        learner.learn(1, limits=limits, out=tmp_path / "run")
    assert [row["limits"]["cost"] for row in rows_in(tmp_path / "run")] == [20.0, 10.0, 10.0]
    with pytest.raises(ValueError, match="has no cost 'heat'"):
        learner.learn(1, limits={"heat": 1.0}, out=tmp_path / "run")
    assert learner.config.limits == Run.open(tmp_path / "run").record.config.limits == {"cost": 10.0}
    assert agent(cost_limit=20.0).learn(1, limits={"cost": 7.0}).rows[0]["limits"] == {"cost": 7.0}


def test_a_run_is_not_overwritten_unless_asked(trained, tmp_path):
    agent().learn(1, out=tmp_path)
    with pytest.raises(RunError, match=r"holds a run already.*--overwrite"):
        agent().learn(1, out=tmp_path)
    assert len(rows_in(tmp_path)) == 1
    agent().learn(2, out=tmp_path, overwrite=True)
    assert without_clock(rows_in(tmp_path)) == without_clock(trained.rows[:2])


def test_a_run_cannot_begin_in_the_middle(tmp_path):
    late = agent().learn(1)
    with pytest.raises(RunError, match=r"the first 1 updates were made without it.*in the first call of learn"):
        late.learn(1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# What is one's own.


def relu():
    return mlp([9, 4, 2], jax.nn.relu)


def test_a_network_for_critics_that_have_none_is_refused():
    with pytest.raises(RunError, match="linear on features of the observation and have none"):
        agent(networks=Networks(critic=mlp([9, 8, 1])), critic="linear").learn(1)


def test_networks_of_ones_own_must_be_given_again(tmp_path):
    """The same shapes with another activation would load without complaint, and act differently."""
    given = Networks(policy=relu())
    mine = agent(networks=given).learn(1, out=tmp_path / "run")
    path = mine.save(tmp_path / "agent")
    for where in (path, tmp_path / "run"):
        with pytest.raises(RunError, match=r"trained with networks of its own.*load\(..., networks=...\)"):
            PCPO.load(where)
        again = PCPO.load(where, networks=given)
        np.testing.assert_array_equal(again.predict(np.ones(9))[0], mine.predict(np.ones(9))[0])
    with pytest.raises(RunError, match="networks of its own"):
        loop.resume(tmp_path / "run", updates=2)
    with pytest.raises(CheckpointError, match=r"this run needs|other arrays than"):
        PCPO.load(path, networks=Networks(policy=mlp([9, 5, 2])))


def test_a_task_of_ones_own_must_be_given_again(trained, tmp_path):
    """It may well have the name of a task that pcpo knows."""
    task: Any = registry.make("point-circle", x_limit=100.0)
    with pytest.raises(ValueError, match=r"cost_limit is None, which has no limit for cost of point-circle"):
        agent(task=task)
    mine = agent(task=task, cost_limit=5.0, gamma=0.995, bootstrap=False, max_kl=np.inf, critic_steps=1).learn(1)
    assert mine.rows[0]["costs"] == {"cost": 0.0}
    path = mine.save(tmp_path / "agent")
    with pytest.raises(RunError, match=r"point-circle is a task of your own.*load\(..., env=...\)"):
        PCPO.load(path)
    assert PCPO.load(path, env=task).learn(1).rows[0]["costs"] == {"cost": 0.0}


def test_a_task_that_has_other_costs_than_limits_is_refused(trained, tmp_path):
    path = trained.save(tmp_path / "agent")
    renamed: Any = dataclasses.replace(registry.make("point-circle"), cost_names=("heat",))
    with pytest.raises(RunError, match=r"has the costs heat, but limits are given for cost"):
        PCPO.load(path, env=renamed)
