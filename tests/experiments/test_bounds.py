"""The study of the bounds: what it draws, what it counts, and what it writes. The bounds themselves: tests/theory."""

import json
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.experiments import bounds, tabular
from pcpo.experiments.bounds import claims, measurements, updates
from pcpo.experiments.bounds.measurements import DELTAS, STATEMENTS, Study
from pcpo.experiments.bounds.updates import PENALTIES

PROBLEMS = 60


@cache
def small() -> Study:
    return measurements.study(problems=PROBLEMS, states=4, actions=2, horizon=6, seed=3)


@pytest.fixture(name="found")
def _found() -> Study:
    return small()


def test_problems_are_drawn_as_the_docstring_says() -> None:
    cases = jax.jit(jax.vmap(lambda key: updates.draw_case(key, 3, 2)))(jax.random.split(jax.random.key(1), 4000))
    beta, effective = np.asarray(cases.beta), 1 / (1 - np.asarray(cases.gamma))
    assert np.mean(beta > 0) == pytest.approx(0.5, abs=0.03)
    assert beta.min() == pytest.approx(-1.2, abs=0.01)
    assert beta.max() == pytest.approx(3.0, abs=0.01)
    assert np.mean(beta[beta <= 0] == 0) == pytest.approx(1 / 11, abs=0.02)
    assert effective.min() == pytest.approx(1.02, rel=0.01)
    assert effective.max() == pytest.approx(50, rel=0.01)
    assert np.median(np.log(effective)) == pytest.approx(np.log(1.02 * 50) / 2, abs=0.15)
    assert np.allclose(cases.cmdp.transitions.sum(axis=-1), 1)


def test_cosine_is_that_of_the_natural_gradients_in_the_metric_of_h() -> None:
    case = updates.aligned_case()
    at = updates.evaluate(case, case.theta)
    H = jax.vmap(lambda v: tabular.fisher_product(at, v.reshape(2, 2)).ravel())(jnp.eye(4))
    v, w = (x.ravel() for x in tabular.natural_gradients(at))
    expected = v @ H @ w / jnp.sqrt((v @ H @ v) * (w @ H @ w))
    assert updates.scales(at).cosine == pytest.approx(float(expected), rel=1e-12)
    assert 0.99 < float(expected) < 1


def test_every_radius_is_studied_on_every_problem(found: Study) -> None:
    assert all(low < high for low, high in pairwise(DELTAS))
    assert found.discounted.b.shape == found.episodic.b.shape == (PROBLEMS, len(DELTAS))
    for done in (found.discounted, found.episodic):
        assert np.allclose(done.delta, DELTAS)
        unit = np.sqrt(2 * np.asarray(DELTAS) * done.scales.s)
        assert np.allclose(done.b, found.beta[:, None] * unit)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((found.discounted, found.judged, found.episodic)))
    assert found.discounted.b.dtype == np.float64


def test_the_theorems_are_asked_only_about_their_own_cases(found: Study) -> None:
    violated = found.beta > 0
    failed = measurements.failures(found)
    assert tuple(sorted(failed)) == tuple(sorted(STATEMENTS))
    for name, values in failed.items():
        asked = violated if name.startswith("infeasible") else ~violated
        assert np.array_equal(np.isnan(values), np.broadcast_to(~asked[:, None], values.shape)), name


def test_what_was_measured_is_what_is_counted(found: Study) -> None:
    numbers = claims.summary(found)
    failed = measurements.failures(found)
    assert numbers["printed_failures"]["infeasible_reward"] == np.nansum(failed["infeasible_reward"], axis=0).tolist()
    assert sum(numbers["printed_failures"]["infeasible_reward"]) > 0
    past = (found.beta > 0) & (found.beta * found.cosine > 1 - found.cosine**2)
    assert numbers["past_the_curve"]["cases"] == past.sum()
    assert set(np.flatnonzero(failed["infeasible_reward"][:, 0] == 1)) <= set(np.flatnonzero(past))
    assert numbers["cases"] == {"feasible": int(np.sum(found.beta <= 0)), "infeasible": int(np.sum(found.beta > 0))}
    by_violation = numbers["printed_failures_by_violation_at_delta_1e-4"]
    assert sum(cases for _, cases in by_violation.values()) == numbers["cases"]["infeasible"]
    assert numbers["correct_bounds_failures"] == {
        way: dict.fromkeys(PENALTIES, 0) for way in ("discounted", "episodic")
    }


def test_penalties_are_ordered_from_loose_to_tight_and_none_is_too_small(found: Study) -> None:
    """Half the range is never the larger one. Which of the others is depends on the two directions of KL as well."""
    gained = {
        "discounted": np.sqrt(1 - found.gamma)[:, None],
        "episodic": 5 * np.sqrt(2 * 6) / (6 * np.sqrt(5 * 11 / 3)),  # a horizon of T = 6 steps
    }
    for way, judged, done in (
        ("discounted", found.judged, found.discounted),
        ("episodic", found.episodic_judged, found.episodic),
    ):
        ratios = measurements.looseness(judged)
        assert ratios.shape == (PROBLEMS, len(DELTAS), 3)
        assert np.all(ratios > 1)
        assert np.all(ratios[..., 2] <= ratios[..., 1] * (1 + 1e-12))
        directions = np.sqrt(done.happened.kl_old_new / done.happened.kl)
        np.testing.assert_allclose(ratios[..., 1] / ratios[..., 0], directions * gained[way], rtol=1e-9)
        small = np.array(DELTAS) <= 0.1  # at larger radii the directions differ by factors
        assert np.all(np.median(ratios[..., 1], axis=0)[small] < np.median(ratios[..., 0], axis=0)[small])


def test_verdicts_follow_what_was_measured(found: Study) -> None:
    """A missed bound is called false, whichever it is."""
    said = [verdict["verdict"] for verdict in claims.verdicts(found)]
    assert (said[0], said[2], said[4]) == ("holds", "fails", "holds")
    generous = found.judged._replace(
        printed_reward=np.full_like(found.judged.printed_reward, 1.0),
        printed_cost=np.full_like(found.judged.printed_cost, 1.0),
    )
    assert [v["verdict"] for v in claims.verdicts(found._replace(judged=generous))] == ["holds"] * 5
    too_small = generous._replace(cost_penalties=generous.cost_penalties * 1e-9)
    assert [v["verdict"] for v in claims.verdicts(found._replace(judged=too_small))] == ["holds"] * 4 + ["fails"]


def test_the_same_seed_gives_the_same_study_and_another_seed_another(found: Study) -> None:
    again = measurements.study(problems=PROBLEMS, states=4, actions=2, horizon=6, seed=3)
    jax.tree.map(np.testing.assert_array_equal, found, again)
    other = measurements.study(problems=PROBLEMS, states=4, actions=2, horizon=6, seed=4)
    assert not np.isin(other.beta[other.beta != 0], found.beta).any()


def test_figure_and_numbers_are_written_and_written_over(found: Study, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bounds, "study", lambda *_: found)
    directory = tmp_path / "new" / "folder"
    files = bounds.reproduce(directory, problems=PROBLEMS, seed=3)
    assert [path.name for path in files] == ["bounds.png", "bounds.svg", "bounds.json"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert all(path.stat().st_size > 3_000 for path in files)
    numbers = json.loads(files[2].read_text())
    assert numbers["settings"]["problems"] == PROBLEMS
    assert len(numbers["verdicts"]) == 5
    contents = [path.read_bytes() for path in files]
    assert [path.read_bytes() for path in bounds.reproduce(directory, problems=PROBLEMS, seed=3)] == contents


@pytest.mark.parametrize(
    ("option", "value"),
    [("problems", 9), ("problems", 20_001), ("states", 1), ("actions", 1), ("horizon", 1), ("seed", -1)],
)
def test_an_option_out_of_range_is_refused_before_any_work(option: str, value: int, tmp_path) -> None:
    with pytest.raises(ValueError, match=rf"{option} is {value}, but must be a whole number from"):
        bounds.reproduce(tmp_path / "new", **{option: value})
    assert not list(tmp_path.iterdir())


def test_a_truth_value_is_no_number(tmp_path) -> None:
    """Python counts True as a whole number. (What is no integer at all is stopped by its type, and by the CLI.)"""
    with pytest.raises(ValueError, match="seed is True, but must be a whole number"):
        bounds.reproduce(tmp_path / "new", seed=True)
    assert not list(tmp_path.iterdir())
