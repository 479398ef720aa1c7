"""Names and objects that become tasks, and what a run with somebody's own code in it asks for."""

import json

import gymnasium
import numpy as np
import pytest

from pcpo import PCPO
from pcpo.cli import main
from pcpo.tasks.api import DeviceTask, HostTask
from pcpo.training.config import config_for
from pcpo.training.files import RunError
from pcpo.training.named import again, is_code, named, plain_options, task_of
from pcpo.training.programs import program_for
from tests.training.host_worlds import task

HERE = "tests.training.test_host_named"


def balance():
    """An environment with a cost."""
    return gymnasium.wrappers.TransformReward(gymnasium.make("CartPole-v1"), lambda reward: 2.0 * float(reward))


def tilted(before, action, after, info):
    return float(abs(after[2]) > 0.1)


def tilt(limit: float = 0.1):
    return task(horizon=int(10 * limit))


def test_names_of_others_environments():
    cart = named("gym:CartPole-v1", {"cost": f"{HERE}:tilted", "max_episode_steps": 40})
    assert (cart.task.name, cart.task.horizon, cart.task.cost_names) == ("gym:CartPole-v1", 40, ("cost",))
    assert cart.own  # the cost is code
    assert cart.preset is None
    assert not named("gym:CartPole-v1", {"cost": ["heat"]}).own
    assert named("gym:CartPole-v1", {"cost": ["heat"]}).task is named("gym:CartPole-v1", {"cost": ["heat"]}).task


def test_names_of_ones_own_functions():
    mine = named(f"{HERE}:balance", {"cost": f"{HERE}:tilted"})
    assert mine.own
    assert isinstance(mine.task, HostTask)
    assert (mine.task.name, mine.task.horizon) == (f"{HERE}:balance", 500)
    assert named(f"{HERE}:tilt", {"limit": 0.5}).task.horizon == 5
    with pytest.raises(ValueError, match="cost is given, but walk is a task and has its own"):
        named(f"{HERE}:tilt", {"cost": "heat"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gym:CartPole-v0x", {}, "no environment could be made"),
        ("gym:CartPole-v1", {"colour": "red"}, "colour"),
        ("safety:Nothing-v0", {}, "Nothing-v0"),
        ("safety:SafetyPointGoal1-v0", {"colour": "red"}, "has no option 'colour'"),
        ("no.such.module:make", {}, "'no.such.module:make' names no task: No module named 'no'.*gym:ID, safety:ID"),
        (f"{HERE}:nothing", {}, "names no task: module .* has no attribute 'nothing'"),
        (f"{HERE}:HERE", {}, "names a str; give a function that makes an environment"),
        ("math:gcd", {}, "math:gcd gave a int, which is neither a gymnasium environment nor a task"),
    ],
)
def test_names_that_name_nothing(name, options, message):
    with pytest.raises(ValueError, match=message):
        named(name, options)


def test_objects():
    assert task_of(task()) == task()
    assert isinstance(task_of(balance, ()), HostTask)
    with pytest.raises(ValueError, match=r"one environment, but several are needed; give a function.*PCPO\(lambda: "):
        task_of(balance())
    with pytest.raises(ValueError, match="3 is no task; give its name"):
        task_of(3)
    with pytest.raises(ValueError, match="neither a gymnasium environment nor a task"):
        task_of(lambda: np.zeros(3))


def test_what_is_code():
    names = ["point-circle", "gym:CartPole-v1", "gym:robots:Arm-v0", "safety:SafetyPointGoal1-v0", "robots.arm:make"]
    assert [is_code(name) for name in names] == [False, False, True, False, True]
    plain = plain_options({"cost": {"fast": tilted, "hot": "heat"}, "x": (1, 2), "other": lambda: 0})
    assert plain == {"cost": {"fast": ":tilted", "hot": "heat"}, "x": [1, 2], "other": ":<lambda>"}


def test_code_is_only_run_when_its_user_names_it_again():
    """A file that names code does not get it run: neither by making a program of it, nor by naming it half."""
    config = config_for(f"{HERE}:balance", 5.0, task_options={"cost": f"{HERE}:tilted"})
    assert config.own == ("task",)
    with pytest.raises(RunError, match="balance is a task of your own, which no file holds"):
        program_for(config)
    with pytest.raises(
        RunError, match=f"code of your own, which no file may run; name it again: --task {HERE}:balance"
    ):
        again(config, cost=f"{HERE}:tilted")
    with pytest.raises(RunError, match=r"the costs are code of your own .*name them again with --cost"):
        again(config, f"{HERE}:balance")
    assert again(config, f"{HERE}:balance", f"{HERE}:tilted") is not None


@pytest.mark.parametrize("place", ["task", "cost", "costs"])
@pytest.mark.parametrize("verb", ["resume", "evaluate", "render", "load", "load a file"])
def test_a_file_that_hides_that_it_names_code_runs_none(place, verb, tmp_path, monkeypatch):
    """As whoever wants to have it run would write it; all hashes in a run can be made anew."""
    (tmp_path / "planted.py").write_text("raise SystemExit('this has been run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    agent = PCPO("point-circle", batch_size=130, hidden=(4,)).learn(1, out=tmp_path / "run")
    hidden = {
        "task": ("planted:make", {}),
        "cost": ("gym:CartPole-v1", {"cost": "planted:cost"}),
        "costs": ("gym:CartPole-v1", {"cost": {"cost": "planted:cost"}}),
    }[place]
    record = agent._session.record
    plain = record.to_json()
    plain["config"] |= dict(zip(("task", "task_options"), hidden, strict=True))
    (tmp_path / "run" / "config.json").write_text(json.dumps(plain))
    monkeypatch.setattr(type(record), "to_json", lambda _: plain)
    path = agent.save(tmp_path / "agent")
    if verb.startswith("load"):
        with pytest.raises(RunError, match="no file may run code; the file has been changed by hand"):
            PCPO.load(path if verb == "load a file" else tmp_path / "run")
        return
    assert main([verb, str(tmp_path / "run"), *(["-o", str(tmp_path / "x.gif")] if verb == "render" else [])]) == 2


def test_only_what_is_code_is_named_again():
    cost_only = config_for("gym:CartPole-v1", 5.0, task_options={"cost": tilted, "max_episode_steps": 33})
    assert cost_only.task_options == {"cost": ":tilted", "max_episode_steps": 33}
    found = again(cost_only, cost=f"{HERE}:tilted")
    assert found is not None
    assert found.horizon == 33
    plain = config_for("gym:CartPole-v1", {"heat": 5.0}, task_options={"cost": ["heat"]})
    assert plain.own == ()
    assert again(plain) is None
    assert again(plain, "gym:CartPole-v1") is None
    with pytest.raises(RunError, match="was trained on gym:CartPole-v1, and that cannot be changed"):
        again(plain, "gym:Pendulum-v1")
    assert isinstance(program_for(plain).task, HostTask)


def test_tasks_in_jax_have_no_use_for_workers():
    circle = config_for("point-circle")
    assert isinstance(program_for(circle).task, DeviceTask)


def test_a_missing_cost_is_said_before_a_run_is_there(tmp_path, capsys):
    """As every mistake in what was typed: one line, and the same directory can be used again."""
    args = ["train", "gym:CartPole-v1", "--limit", "5", "--workers", "1", "--out", str(tmp_path / "run")]
    assert main(args) == 2
    said = capsys.readouterr().err
    assert said.startswith("pcpo: gym:CartPole-v1, in step 1 of an episode: its info has no 'cost' (it has nothing)")
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["gym:CartPole-v1"],
            "gym:CartPole-v1 has no limit for cost; give one, such as --limit cost=25, or --cost none",
        ),
        (
            ["gym:CartPole-v1", "--cost", "none", "--limit", "5"],
            "there are no costs, so nothing to limit; leave out --limit",
        ),
        (["gym:Nothing-v0", "--limit", "5"], "no environment could be made"),
        (["gym:CartPole-v1", "--cost", "a", "--cost", "a=b", "--limit", "a=5"], "give each cost once"),
        (["gym:CartPole-v1", "--limit", "5", "--max-episode-steps", "0"], "--max-episode-steps is 0, but must be"),
        (["gym:CartPole-v1", "--limit", "5", "--threads", "2"], "threads is 2, but gym:CartPole-v1 is stepped by"),
        (["ant-circle", "--workers", "2"], "workers is 2, but ant-circle is stepped by threads; give threads instead"),
        (["point-circle", "--workers", "2"], "point-circle is written in jax and has no use for them"),
        (["point-circle", "--cost", "heat"], "point-circle has no option 'cost'"),
    ],
)
def test_mistakes_on_the_command_line(args, message, tmp_path, capsys):
    assert main(["train", *args, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
