"""The table of options in docs/learner.md says what the settings are."""

import dataclasses
import re
from pathlib import Path

import pytest

from pcpo.rl.options import Hyper, Options
from pcpo.training.config import config_for

PAGE = (Path(__file__).parents[2] / "docs" / "learner.md").read_text()
ROW = re.compile(r"^\| `(\w+)`( of a cost)? \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
TABLE = {(name, bool(cost)): (preset, elsewhere) for name, cost, preset, elsewhere in ROW.findall(PAGE)}
CONFIGS = (config_for("point-circle"), config_for("some.module:factory", {"cost": 1.0}, cost_names=("cost",)))


def text(value) -> str:
    """A value as the table writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"`{value}`"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if value == float("inf"):
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}".replace("e-0", "e-").replace("0.0001", "1e-4")


@pytest.mark.parametrize("name", [name for name, of_a_cost in TABLE if not of_a_cost])
def test_every_setting_in_the_table_has_its_values(name):
    assert TABLE[name, False] == tuple(text(getattr(config, name)) for config in CONFIGS)


@pytest.mark.parametrize("name", ["limit", "discount", "gae_lambda"])
def test_the_settings_of_a_cost_too(name):
    preset, elsewhere = (text(getattr(config.constraints[0], name)) for config in CONFIGS)
    assert TABLE[name, True] == (preset, "yours" if name == "limit" else elsewhere)


def test_every_number_and_choice_of_an_update_is_in_the_table():
    """As `Hyper` and `Options` call them; those of the costs and of the critics have rows of their own."""
    elsewhere = {"limits", "cost_discounts", "cost_gae_lambdas", "critic", "spectrum_products"}
    wanted = {*Hyper._fields, *(f.name for f in dataclasses.fields(Options))} - elsewhere
    assert wanted <= {name for name, of_a_cost in TABLE if not of_a_cost}
