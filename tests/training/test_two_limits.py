"""Two constraints at once: Point-Circle with walls in both directions, each with a cost and a limit of its own."""

from typing import Any

import numpy as np

from pcpo import PCPO

LIMITS = {"cost_x": 5.0, "cost_y": 0.25}
"""Both matter: a policy that has learnt nothing costs 27 and 5, and one that keeps the first limit alone costs 0.7 to 1
of the second."""
UPDATES = 30


def test_both_limits_hold():
    """Every ten-update mean from update 10 on, within a tenth of the limit and three standard errors of that mean."""
    settings: dict[str, Any] = {"batch_size": 15_000, "hidden": (32, 16), "spectrum_every": 0}
    agent = PCPO("point-square", LIMITS, seeds=2, **settings).learn(UPDATES)
    for name, limit in LIMITS.items():
        cost = np.array([row["costs"][name] for row in agent.rows]).reshape(UPDATES, 2)
        error = np.array([row["cost_standard_errors"][name] for row in agent.rows]).reshape(UPDATES, 2)
        assert cost[0].min() > 2.0 * limit  # violated by far at first
        for first in range(10, UPDATES - 9):
            window = slice(first, first + 10)
            allowed = 1.1 * limit + 3.0 * np.sqrt((error[window] ** 2).sum(0)) / 10
            assert (cost[window].mean(0) <= allowed).all(), (name, first, cost[window].mean(0), allowed)
    reward = np.array([row["discounted_return"] for row in agent.rows]).reshape(UPDATES, 2)
    assert (reward[-5:].mean(0) > reward[:1].mean(0)).all()  # and something was learnt
    projected = [row for row in agent.rows if sum(row["multipliers"][name] > 0.0 for name in LIMITS) == 2]
    assert projected  # both half-spaces shaped a step
