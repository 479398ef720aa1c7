"""The audit's warnings, on rows made by hand: what is said, at which bounds, once, and what to try."""

import dataclasses
import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from pcpo import PCPO
from pcpo.rl.audit import NONFINITE_NAMES
from pcpo.tasks import registry
from pcpo.training.watch import Watch, cg_error
from tests.training.small import SMALL, small


def row(update=0, seed=0, **changes: Any) -> dict[str, Any]:
    """A row with nothing to complain about."""
    usual = {
        "update": update,
        "seed": seed,
        "kl": 1e-4,
        "predicted_kl": 1e-4,
        "predicted_reward": 0.02,
        "eta": 0.01,
        "multipliers": {"cost": 0.0},
        "predicted_costs": {"cost": -1.0},
        "costs": {"cost": 10.0},
        "cost_standard_errors": {"cost": 0.3},
        "violations": {"cost": 5.0},
        "confirmed": {"reward": None, "cost": None},
        "status": "projected",
        "refused": [],
    }
    return {**usual, **changes}


def said(*rows, **settings):
    return Watch(small(**settings)).see(rows)


def test_nothing_is_said_where_there_is_nothing_to_say():
    assert said(row(0), row(1)) == []
    assert Watch(small()).summary(2) == []


# What the other half of a batch confirms: where it is measured, and a correction is wanted and made.


@pytest.mark.parametrize(
    ("share", "violation", "algorithm", "warns"),
    [
        (0.19, 5.0, "pcpo-kl", True),
        (-0.5, 5.0, "cpo", True),
        (0.2, 5.0, "pcpo-kl", False),
        (0.0, 0.0, "pcpo-kl", False),  # nothing to correct
        (0.0, 5.0, "trpo", False),  # nobody corrects
        (None, 5.0, "pcpo-l2", False),  # not measured in this update
        (0.0, None, "pcpo-l2", False),  # not finite: told of elsewhere
    ],
)
def test_a_correction_that_the_other_half_does_not_confirm(share, violation, algorithm, warns):
    one = row(confirmed={"reward": 0.0, "cost": share}, violations={"cost": violation})
    lines = said(one, algorithm=algorithm)
    assert bool(lines) == warns
    if warns:
        assert f"the other half confirms {share:.0%}" in lines[0]
        assert "--batch-size (now " in lines[0]
        assert "--cost-gae-lambda cost=0.5" in lines[0]


def test_what_is_measured_now_and_then_is_counted_among_what_was_measured():
    watch = Watch(small(spectrum_every=10, seeds=2))
    watch.see([row(update, confirmed={"reward": 0.0, "cost": 0.0}) for update in (0, 10)])
    assert watch.summary(11)[0].startswith("2 of 4 updates: measured, and half of the batch hardly confirmed")


# KL: above twice the predicted, and above delta (1e-4 here).


@pytest.mark.parametrize(
    ("kl", "predicted", "warns"),
    [
        (0.021, 0.01, True),
        (0.0199, 0.01, False),
        (0.02, 0.01, False),  # twice is not above twice
        (0.04, 0.02, False),  # 400 times delta, and as predicted: by design
        (9e-5, 1e-5, False),  # nine times the predicted one, but below delta
        (1.1e-4, 1e-5, True),
        (None, 1e-5, False),
    ],
)
def test_kl_is_compared_with_the_predicted_one_and_with_delta(kl, predicted, warns):
    found = said(row(7, 3, kl=kl, predicted_kl=predicted))
    assert bool(found) == warns
    if warns:
        assert found[0].startswith(f"update 7, seed 3: the policy moved by a KL of {kl:.2g}, more than 2 times the ")
        assert f"predicted {predicted:.2g}" in found[0]
        assert "try a smaller --delta (now 0.0001), or --max-kl" in found[0]


def test_only_rules_that_know_a_cap_are_given_one():
    for algorithm, capped in (("pcpo-l2", True), ("cpo", False)):
        (found,) = said(row(kl=0.5, predicted_kl=0.01), algorithm=algorithm)
        assert ("--max-kl 0.01" in found) == capped


# The cost: the wrong way by more than three standard errors of the difference.


@pytest.mark.parametrize(
    ("after", "predicted", "warns"),
    [
        (12.2, -1.0, True),  # 3 * sqrt(0.5^2 + 0.5^2) = 2.12
        (12.0, -1.0, False),
        (12.2, 0.5, False),  # a rise was predicted
        (2.0, -1.0, False),  # fell more than predicted: the right way
    ],
)
def test_a_cost_that_rose_where_a_fall_was_predicted(after, predicted, warns):
    errors = {"cost": 0.5}
    first = row(4, cost_standard_errors=errors, predicted_costs={"cost": predicted})
    found = said(first, row(5, costs={"cost": after}, cost_standard_errors=errors))
    assert bool(found) == warns
    if warns:
        assert found[0] == (
            "update 5, seed 0: cost rose by 2.2 (standard error 0.7) where the update before predicted a change of -1; "
            "try a larger --batch-size, or a smaller --delta"
        )


def test_the_cost_after_a_refused_update_proves_nothing():
    assert len(said(row(0, refused=["reward"], status="nonfinite"), row(1, costs={"cost": 99.0}))) == 1


def test_each_seed_is_compared_with_itself():
    low, high = {"cost": 1.0}, {"cost": 50.0}
    rows = [row(0, 0, costs=low), row(0, 1, costs=high), row(1, 0, costs=low), row(1, 1, costs=high)]
    assert said(*rows) == []


# Conjugate gradient: the error of a . d above a tenth of it.


H, G, A = np.diag([2.0, 5.0]), np.array([1.0, 2.0]), np.array([3.0, -1.0])
ETA, NU = 0.1, 0.4
V, W = np.linalg.solve(H, G), np.linalg.solve(H, A)


def unfinished(residual: float) -> dict[str, Any]:
    """The row of a step d = eta v - nu w for which conjugate gradient left ``residual`` in the first entry of H v."""
    d = ETA * np.linalg.solve(H, np.add(G, [residual, 0.0])) - NU * W
    kl = float(0.5 * d @ H @ d)
    return row(
        eta=ETA,
        multipliers={"cost": NU},
        predicted_reward=float(G @ d),
        predicted_costs={"cost": float(A @ d)},
        predicted_kl=kl,
        kl=kl,
        cost_standard_errors={"cost": 0.0},
    )


@pytest.mark.parametrize("residual", [0.0, 0.1, 4.0])
def test_the_error_of_conjugate_gradient_is_what_the_residual_does_to_the_step(residual):
    """d'Hd - (eta g'd - nu a'd) is eta d'r by hand, and r has one entry."""
    d = ETA * np.linalg.solve(H, np.add(G, [residual, 0.0])) - NU * W
    assert cg_error(unfinished(residual)) == pytest.approx(abs(ETA * d[0] * residual), abs=1e-14)


@pytest.mark.parametrize(("residual", "warns"), [(0.1, False), (1.2, False), (1.4, True), (40.0, True)])
def test_an_error_above_a_tenth_of_a_d_is_reported(residual, warns):
    """Of ``nu a'd``: a residual of 1.2 is an error of 9.2 %, one of 1.4 of 10.8 %."""
    found = said(unfinished(residual))
    assert bool(found) == warns
    if warns:
        assert "conjugate gradient was not done, and the change of cost that the step promises is off by " in found[0]
        assert "try --cg-iterations 20 (now 10), or a larger --damping (now 1e-05)" in found[0]
    assert said(unfinished(residual), algorithm="pdo") == []  # its step promises nothing of the kind


def test_an_error_below_the_noise_of_the_cost_is_not_reported():
    noisy = {**unfinished(40.0), "cost_standard_errors": {"cost": 1e6}}
    assert said(noisy) == []


# Once, then counted.


def test_each_kind_is_said_once_then_counted_also_after_going_on():
    config = small(seeds=2)
    watch = Watch(config)
    wrong = {"kl": 0.5, "predicted_kl": 0.01}
    first = watch.see([row(0, 0, **wrong), row(0, 1, **wrong), row(1, 0, status="infeasible_intersection")])
    assert len(first) == 2
    assert "no step satisfies all limits at once" in first[1]
    again = Watch.from_json(config, json.loads(json.dumps(watch.to_json())))
    assert again.see([row(1, 1, **wrong)]) == []
    assert again.summary(2) == [
        "3 of 4 updates: the KL was more than twice the predicted one",
        "1 of 4 updates: the limits could not be met at once",
    ]


def test_going_on_remembers_the_costs_of_the_update_before():
    config = small()
    watch = Watch(config)
    watch.see([row(0)])
    again = Watch.from_json(config, json.loads(json.dumps(watch.to_json())))
    assert len(again.see([row(1, costs={"cost": 99.0})])) == 1


# Numbers that are none.


@pytest.mark.parametrize("name", NONFINITE_NAMES)
def test_a_refused_update_names_the_quantity_and_what_to_try(name):
    (found,) = said(row(12, 1, refused=[name], status="nonfinite", kl=None))
    assert found.startswith(
        f"update 12, seed 1: the {name} was not finite, so the update was not made and the policy stays as it was; "
    )
    assert any(word in found for word in ("try ", "check "))
    watch = Watch(small())
    watch.see([row(12, refused=[name], status="nonfinite")])
    assert watch.summary(13) == [f"1 of 13 updates: not made, because the {name} was not finite"]


def test_a_reward_that_is_not_a_number_stops_nothing_silently(tmp_path, capsys):
    """A task whose reward is not a number wherever the robot has gone far to the right."""
    task: Any = registry.make("point-circle")

    def step(state, action):
        state, outcome = task.step(state, action)
        far = task.observe(state)[0] > 10.0
        return state, outcome._replace(reward=jnp.where(far, jnp.nan, outcome.reward))

    settings: dict[str, Any] = {**SMALL, "delta": 0.01, "max_kl": 0.1}
    mine = PCPO(dataclasses.replace(task, step=step), cost_limit=5.0, **settings)
    before = []
    mine.learn(12, lambda row: before.append(np.asarray(mine.params["network"][0]["w"])), out=tmp_path / "run",
               progress=True)  # fmt: skip
    refused = [row for row in mine.rows if row["refused"]]
    assert 0 < len(refused) < 12
    for row_ in mine.rows:
        bad = bool(row_["refused"])
        assert row_["refused"] == ["reward"] * bad
        assert (row_["discounted_return"] is None) == bad
        assert ("discounted_return" in row_["nonfinite"]) == bad
        assert (row_["status"] == "nonfinite") == bad
        after = before[row_["update"]]
        if bad and row_["update"]:
            np.testing.assert_array_equal(after, before[row_["update"] - 1])
    first = refused[0]["update"]
    err = " ".join(capsys.readouterr().err.split())
    assert f"warning: update {first}, seed 0: the reward was not finite, so the update was not made" in err
    assert err.count("the reward was not finite") == 1
