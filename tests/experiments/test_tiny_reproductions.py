"""Every experiment that trains runs from a fresh clone, at a tiny budget: two updates of a few episodes.

One variant of each, chosen so that few programs are compiled; that all variants can be made is tested in `test_suite`.
"""

import json

import jax
import pytest

from pcpo.cli import main
from pcpo.experiments.suite.presets import EXPERIMENTS

EPISODES = {  # the variant, and the steps of a few episodes of its task; neighbours share a program
    "point-circle": ("pcpo-kl", 100),
    "small-batch": ("pc-pcpo-kl", 100),
    "sign": ("pc-pcpo-kl", 100),
    "actions": ("pc-pcpo-kl-clip", 100),
    "predictions": ("pc-pcpo-kl", 100),
    "line-search": ("pc-cpo-without-0.01", 100),
    "multipliers": ("pc-fpo-3", 100),
    "point-square": ("pcpo-kl-dykstra", 100),
    "point-gather": ("pcpo-kl", 30),
    "harder": ("pg-pcpo-kl", 30),
    "ant-circle": ("pcpo-kl", 500),
    "ant-circle-small-steps": ("pcpo-kl", 500),
    "ant-gather": ("pcpo-kl", 500),
    "grid": ("pcpo-kl", 400),
    "cg": ("pcpo-kl-10", 400),
    "bottleneck": ("pcpo-kl", 500),
}


@pytest.fixture(scope="module", autouse=True)
def _quickly_compiled():
    """How fast programs of two updates are is nothing to these tests."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def test_none_is_left_out():
    assert set(EPISODES) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", EPISODES)
def test_it_runs_at_a_tiny_budget_and_draws_what_came_out(name, capsys, tmp_path):
    variant, steps = EPISODES[name]
    line = f"reproduce {name} --seeds 1 --updates 2 --batch-size {steps} --only {variant} -o"
    assert main([*line.split(), str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "done     1 of 1 pieces of work" in out
    record = json.loads((tmp_path / f"{variant}.seed-0.json").read_text())
    assert record["updates"] == 2
    assert (tmp_path / f"{variant}.seed-0.csv.gz").stat().st_size > 0
    figures = sorted(tmp_path.glob("*.png"))
    assert len(figures) == 1
    assert figures[0].with_suffix(".svg").exists()
    assert str(figures[0]) in out
