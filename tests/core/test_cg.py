"""Conjugate gradient against dense solves, and what it says of itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.core.cg import conjugate_gradient
from tests.problems import random_problems


def system(seed=0, n=12, k=3, condition=100.0):
    problem = next(random_problems(seed, 1, n, k - 1, condition).each())
    rhs = np.concatenate([problem.g[None], problem.a])
    return jnp.asarray(problem.H), jnp.asarray(rhs / np.linalg.norm(rhs, axis=1, keepdims=True))


@jax.jit
def ten_steps(H, rhs):
    return conjugate_gradient(lambda v: H @ v, rhs, 10)


def test_run_to_the_end_it_is_the_inverse():
    H, rhs = system()
    solution = conjugate_gradient(lambda v: H @ v, rhs, 60)
    np.testing.assert_allclose(solution.x, np.linalg.solve(H, rhs.T).T, rtol=1e-9, atol=1e-11)
    assert np.all(solution.residuals <= 1e-12)
    assert not solution.failed.any()


@pytest.mark.parametrize("iterations", [1, 2, 5, 9])
def test_by_products_are_true_at_every_length(iterations):
    H, rhs = system(seed=1)
    solution = conjugate_gradient(lambda v: H @ v, rhs, iterations)
    np.testing.assert_allclose(solution.hx, solution.x @ H, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(solution.h_rhs, rhs @ H, rtol=1e-12)
    true = np.linalg.norm(solution.x @ H - rhs, axis=1)
    np.testing.assert_allclose(solution.residuals, true, rtol=1e-8)
    assert np.all(solution.iterations == iterations)


def test_each_iterate_is_the_best_of_its_krylov_space_in_the_norm_of_H():
    H, rhs = system(seed=2, k=1)
    for iterations in (1, 3, 6):
        x = conjugate_gradient(lambda v: H @ v, rhs, iterations).x[0]
        powers = [rhs[0]]
        for _ in range(iterations - 1):
            powers.append(H @ powers[-1])
        basis = np.linalg.qr(np.stack(powers).T)[0]
        best = basis @ np.linalg.solve(basis.T @ H @ basis, basis.T @ rhs[0])
        np.testing.assert_allclose(x, best, rtol=1e-7)


def test_lock_step_equals_one_by_one():
    H, rhs = system(seed=3)
    together = ten_steps(H, rhs)
    for i in range(len(rhs)):
        alone = ten_steps(H, rhs[i : i + 1])
        np.testing.assert_allclose(together.x[i], alone.x[0], rtol=1e-9)
        np.testing.assert_allclose(together.residuals[i], alone.residuals[0], rtol=1e-6)


def test_a_converged_row_waits_for_the_others():
    H, rhs = system(seed=4)
    eigenvector = jnp.asarray(np.linalg.eigh(H)[1][:, 3])
    solution = conjugate_gradient(lambda v: H @ v, jnp.stack([eigenvector, rhs[0]]), 60)
    assert solution.iterations[0] == 1
    assert solution.iterations[1] >= 10
    np.testing.assert_allclose(H @ solution.x[0], eigenvector, atol=1e-12)


def test_the_tolerance_is_relative_and_ends_the_loop():
    H, rhs = system(seed=5, n=40, k=1, condition=10.0)
    loose = conjugate_gradient(lambda v: H @ v, rhs, 60, 1e-3)
    small = conjugate_gradient(lambda v: H @ v, 1e-9 * rhs, 60, 1e-3)
    assert loose.iterations[0] == small.iterations[0] < 30
    assert 1e-6 < loose.residuals[0] <= 1e-3
    np.testing.assert_allclose(small.x, 1e-9 * loose.x, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_the_scale_of_H_does_not_matter(scale):
    H, rhs = system(seed=6)
    np.testing.assert_allclose(scale * ten_steps(scale * H, rhs).x, ten_steps(H, rhs).x, rtol=1e-9)


def test_zero_right_hand_sides_are_solved_by_zero():
    H, rhs = system(seed=7)
    solution = ten_steps(H, rhs.at[1].set(0.0))
    assert np.all(solution.x[1] == 0.0)
    assert solution.residuals[1] == 0.0
    assert not solution.failed.any()


def test_no_curvature_along_the_right_hand_side_is_a_failure():
    H = jnp.diag(jnp.array([1.0, 0.0, -1.0]))
    solution = conjugate_gradient(lambda v: H @ v, jnp.eye(3), 5)
    np.testing.assert_array_equal(solution.failed, [False, True, True])
    np.testing.assert_array_equal(solution.x, jnp.diag(jnp.array([1.0, 0.0, 0.0])))
    np.testing.assert_array_equal(solution.residuals, [0.0, 1.0, 1.0])


def test_a_singular_system_stops_with_what_it_has_and_says_so():
    H = jnp.diag(jnp.array([4.0, 1.0, 0.0]))
    rhs = jnp.ones((1, 3)) / jnp.sqrt(3.0)
    solution = conjugate_gradient(lambda v: H @ v, rhs, 50)
    assert jnp.isfinite(solution.x).all()
    np.testing.assert_allclose(solution.residuals[0], jnp.linalg.norm(H @ solution.x[0] - rhs[0]), rtol=1e-9)
    assert solution.residuals[0] > 0.5
    assert not solution.failed[0]


def test_ill_conditioning_up_to_1e14_is_not_mistaken_for_no_curvature():
    H = jnp.diag(jnp.array([1.0, 1e-14]))
    solution = conjugate_gradient(lambda v: H @ v, jnp.array([[1.0, 1e-7]]), 2)
    assert solution.iterations[0] == 2


def test_a_product_that_is_not_finite_reaches_the_solution():
    H, rhs = system(seed=8)
    broken = ten_steps(H.at[0, 0].set(jnp.nan), rhs)
    assert jnp.isnan(broken.x).any()
