"""Projections against optax, brute force and hand-worked cases."""

import jax
import jax.numpy as jnp
import numpy as np
import optax.projections
import pytest

from pcpo.core.projection import halfspace_multiplier, project_cyclic, project_dykstra
from tests.problems import alternating_projections, nearest_in_intersection

PROJECT = {"cyclic": jax.jit(project_cyclic), "dykstra": jax.jit(project_dykstra)}


def project(how, d, a, b, L=None):
    """The projected point and the report, for dense L (default: identity)."""
    a, b = jnp.atleast_2d(jnp.asarray(a)), jnp.atleast_1d(jnp.asarray(b))
    w = a if L is None else jnp.linalg.solve(L, a.T).T
    report = PROJECT[how](a @ w.T, a @ d + b)
    return d - report.multipliers @ w, report


def test_one_half_space_agrees_with_optax():
    rng = np.random.default_rng(0)
    ours = jax.jit(lambda a, b, d: d - halfspace_multiplier(a, b, a, d) * a)
    theirs = jax.jit(lambda a, b, d: optax.projections.projection_halfspace(d, a, -b))
    active = 0
    for _ in range(200):
        a, d = jnp.asarray(rng.normal(size=(2, 9)))
        b = jnp.asarray(rng.normal())
        np.testing.assert_allclose(ours(a, b, d), theirs(a, b, d), rtol=1e-12, atol=1e-14)
        active += bool(a @ d + b > 0)
    assert 50 < active < 150


def test_one_half_space_in_a_metric_by_hand():
    """Minimise (x^2 + 4 y^2) / 2 from (0, 0) under x + y >= 5: L = diag(1, 4) makes y dear, so x = 4, y = 1."""
    a, b = jnp.array([-1.0, -1.0]), jnp.array(5.0)
    w = a / jnp.array([1.0, 4.0])
    np.testing.assert_allclose(-halfspace_multiplier(a, b, w, jnp.zeros(2)) * w, [4.0, 1.0], rtol=1e-15)


@pytest.mark.parametrize("m", [2, 3, 4, 5])
@pytest.mark.parametrize("metric", ["identity", "dense"])
def test_dykstra_is_the_nearest_point_of_the_intersection(m, metric):
    rng = np.random.default_rng(m)
    for _ in range(40):
        root = rng.normal(size=(6, 6))
        L = np.eye(6) if metric == "identity" else root @ root.T + 0.1 * np.eye(6)
        a, b, d = rng.normal(size=(m, 6)) + 1.0, rng.normal(size=m), rng.normal(size=6)
        point, report = project("dykstra", d, a, b, jnp.asarray(L))
        expected = nearest_in_intersection(d, a, b, L)
        np.testing.assert_allclose(point, expected, rtol=1e-8, atol=1e-9)
        assert not report.infeasible
        assert np.all(report.multipliers >= 0.0)


def test_cyclic_is_alternating_projections_and_ends_inside():
    rng = np.random.default_rng(1)
    farther = 0
    for _ in range(60):
        a, b, d = rng.normal(size=(3, 6)) + 0.5, rng.normal(size=3), rng.normal(size=6)
        point, report = project("cyclic", d, a, b)
        np.testing.assert_allclose(point, alternating_projections(d, a, b, np.eye(6)), rtol=1e-8, atol=1e-9)
        assert np.all(a @ point + b <= 1e-9)
        assert not report.infeasible
        nearest = nearest_in_intersection(d, a, b, np.eye(6))
        farther += np.linalg.norm(point - d) > np.linalg.norm(nearest - d) + 1e-6
    assert farther > 5, "cyclic and exact projection never differed: the comparison is blind"


def test_a_wedge_that_cyclic_and_dykstra_leave_at_different_points():
    """x <= 0 and x + y <= 0 from (1, 1). Cyclic: first (0, 1), then (-.5, .5). Nearest: the origin."""
    a, b, d = [[1.0, 0.0], [1.0, 1.0]], [0.0, 0.0], jnp.array([1.0, 1.0])
    np.testing.assert_allclose(project("cyclic", d, a, b)[0], [-0.5, 0.5], atol=1e-15)
    np.testing.assert_allclose(project("dykstra", d, a, b)[0], [0.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("angle", [1e-1, 1e-2, 1e-3])
def test_dykstra_is_exact_where_constraints_are_nearly_parallel(angle):
    """Two half-spaces that meet at a sharp angle: sweeps alone would need 1 / angle^2 of them."""
    a = np.array([[np.sin(angle), np.cos(angle)], [np.sin(angle), -np.cos(angle)]])
    b, d = np.array([1.0, 1.0]), np.array([0.3, 0.2])
    point, report = project("dykstra", d, a, b)
    np.testing.assert_allclose(point, [-1.0 / np.sin(angle), 0.0], rtol=1e-9, atol=1e-7)
    assert not report.infeasible


@pytest.mark.parametrize("how", PROJECT)
def test_an_empty_intersection_is_named_and_the_step_bounded(how):
    opposite = ([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0])
    triangle_turned_inside_out = (
        [[np.cos(t), np.sin(t)] for t in (0.0, 2 * np.pi / 3, 4 * np.pi / 3)],
        [1.0, 1.0, 1.0],
    )
    for a, b in (opposite, triangle_turned_inside_out):
        point, report = project(how, jnp.array([0.1, 0.2]), a, b)
        assert report.infeasible
        assert jnp.linalg.norm(point) < 10.0
        assert jnp.isfinite(report.multipliers).all()


@pytest.mark.parametrize("how", PROJECT)
def test_duplicates_and_zero_gradients_change_nothing(how):
    d = jnp.array([1.0, 2.0, 3.0])
    one, _ = project(how, d, [[1.0, 1.0, 0.0]], [0.5])
    many, report = project(
        how, d, [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 0.0]], [0.5, 7.0, 0.5, 1.0]
    )
    np.testing.assert_allclose(many, one, rtol=1e-12)
    assert report.multipliers[1] == 0.0
    assert not report.infeasible


@pytest.mark.parametrize("how", PROJECT)
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_scales_of_constraints_do_not_matter(how, scale):
    rng = np.random.default_rng(5)
    a, b, d = rng.normal(size=(3, 5)) + 0.5, rng.normal(size=3), rng.normal(size=5)
    scales = np.array([1.0, scale, 1.0 / scale])
    plain, report = project(how, d, a, b)
    scaled, scaled_report = project(how, d, scales[:, None] * a, scales * b)
    np.testing.assert_allclose(scaled, plain, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scaled_report.multipliers * scales, report.multipliers, rtol=1e-7, atol=1e-9)


def test_asymmetry_is_reported_and_the_result_still_feasible():
    rng = np.random.default_rng(6)
    for _ in range(50):
        a, b, d = rng.normal(size=(3, 8)), rng.normal(size=3), rng.normal(size=8)
        w = a + 0.2 * rng.normal(size=a.shape)  # a poor solve
        gram = a @ w.T
        report = PROJECT["dykstra"](jnp.asarray(gram), jnp.asarray(a @ d + b))
        length = np.sqrt(np.diagonal(gram))
        np.testing.assert_allclose(
            report.asymmetry, np.max(np.abs(gram - gram.T) / np.outer(length, length)), rtol=1e-9
        )
        assert np.all(a @ (d - report.multipliers @ w) + b <= 1e-8)
        assert not report.infeasible


@pytest.mark.parametrize("how", PROJECT)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_half_space_far_away_neither_hides_an_empty_intersection_nor_stops_the_sweeps(how, dtype):
    """Tolerances go by what is violated: an inactive constraint a million times as far away decides nothing."""

    def report(overlap, excess, far):
        gram = jnp.array([[1.0, overlap, 0.0], [overlap, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype)
        return PROJECT[how](gram, jnp.array([*excess, far], dtype))

    for far in (-1.0, -1e6, -1e12):
        assert report(-1.0, (1.0, 1.0), far).infeasible
        wedge = report(-0.9, (1.0, 0.5), far)
        assert not wedge.infeasible
        np.testing.assert_array_equal(wedge.multipliers, report(-0.9, (1.0, 0.5), -1.0).multipliers)


@pytest.mark.parametrize("how", PROJECT)
def test_what_is_not_finite_is_not_reported_as_nan(how):
    report = PROJECT[how](jnp.full((2, 2), jnp.nan), jnp.ones(2))
    assert jnp.isfinite(report.asymmetry)


def test_float32_is_feasible_to_its_precision():
    rng = np.random.default_rng(7)
    for how in PROJECT:
        a = rng.normal(size=(3, 6)).astype(np.float32)
        b, d = rng.normal(size=3).astype(np.float32), rng.normal(size=6).astype(np.float32)
        point, report = project(how, jnp.asarray(d), a, b)
        assert point.dtype == jnp.float32
        assert np.all(a @ point + b <= 1e-5)
        assert not report.infeasible
