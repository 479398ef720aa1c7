"""Settings: what is allowed, what is said otherwise, and the way to a file and back."""

import json
import math

import numpy as np
import pytest

from pcpo.rl import options
from pcpo.training import config as config_
from pcpo.training.config import Config, Constraint, config_for
from pcpo.training.settings import settings_of
from tests.training.small import small


def test_the_algorithms_are_those_of_the_learner():
    assert config_.ALGORITHMS == options.ALGORITHMS


def test_every_setting_says_what_it_is_and_which_range_is_safe():
    for name, about in settings_of(Config).items():
        assert about.help.endswith((".", "each.")), name
        assert about.choices or about.kind is bool or about.safe, name
        assert about.advice, name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": "small"}, r"delta is 'small', which is not a number; try 0.01"),
        ({"delta": math.nan}, r"delta is nan, but must be between 1e-12 and 10; try 0.01"),
        ({"delta": 0}, r"delta is 0, but must be between"),
        ({"updates": 1.5}, r"updates is 1.5, which is not a whole number; try 100"),
        ({"updates": True}, r"updates is True, which is not a whole number"),
        ({"updates": None}, r"updates is None, which is not a whole number"),
        ({"hidden": 64}, r"hidden is 64, which is no list of whole numbers; try 64 32"),
        ({"hidden": ()}, r"hidden is \(\), which is no list"),
        ({"hidden": (64, 0)}, r"hidden is 0, but must be between 1 and 65536"),
        ({"bootstrap": 1}, r"bootstrap is 1, but must be True or False"),
        ({"algorithm": "ppo"}, r"algorithm is 'ppo', but must be one of pcpo-kl, "),
        ({"seed": -1}, r"seed is -1, but must be between 0 and 2147483647"),
        ({"eta": 1}, r"there is no setting 'eta'; there are: algorithm, "),
    ],
)
def test_a_wrong_value_says_what_was_given_why_it_is_wrong_and_what_to_try(given, message):
    with pytest.raises(ValueError, match=message):
        small(**given)


def test_numbers_of_numpy_and_of_jax_are_numbers():
    config = small(delta=np.float32(0.5), updates=np.int64(3), hidden=[np.int32(7)])
    assert (config.delta, config.updates, config.hidden) == (0.5, 3, (7,))
    assert [type(x) for x in (config.delta, config.updates, config.hidden[0])] == [float, int, int]
    json.dumps(config.to_json(), allow_nan=False)


def test_a_config_survives_its_file():
    config = config_for(
        "point-square", {"cost_x": 1, "cost_y": 2.5}, task_options={"x_limit": 2.0}, max_kl=math.inf, hidden=(3, 2)
    )
    again = Config.from_json(json.loads(json.dumps(config.to_json(), allow_nan=False)))
    assert again == config
    assert again.max_kl == math.inf


def test_the_papers_tasks_come_with_the_papers_settings_and_others_do_not():
    paper = config_for("point-circle")
    assert (paper.delta, paper.gamma, paper.batch_size, paper.bootstrap) == (1e-4, 0.995, 50_000, False)
    assert paper.limits == {"cost": 5.0}
    own = config_for("mine", 2.5, cost_names=["heat"])
    assert (own.delta, own.gamma, own.batch_size, own.bootstrap) == (0.01, 0.99, 20_000, True)
    assert own.constraints == (Constraint("heat", 2.5),)
    short = config_for("mine", 2.5, cost_names=["heat"], cost_settings={"heat": {"discount": 0.9, "gae_lambda": 0.5}})
    assert short.constraints == (Constraint("heat", 2.5, discount=0.9, gae_lambda=0.5),)
    assert config_for("mine", 2.5, cost_names=["heat"], algorithm="fpo").multiplier == 1.0
