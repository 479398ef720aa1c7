"""CPO's dual: hand-worked cases and ties, and the case analysis of the CPO paper written out literally."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo.core.cpo_dual import DualCase, solve_cpo_dual

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "cpo_dual.json").read_text())["cases"]
solve = jax.jit(solve_cpo_dual)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_hand_worked(golden):
    g, a = np.array(golden["g"], float), np.array(golden["a"], float)
    scalars = (g @ g, a @ g, a @ a, golden["b"], golden["delta"])
    step = solve(*(jnp.asarray(x, float) for x in scalars))
    assert DualCase(int(step.case)).name == golden["case"]
    np.testing.assert_allclose(
        [step.eta, step.multiplier], [golden["eta"], golden["multiplier"]], rtol=1e-14, atol=1e-15
    )


def literal_dual(q, r, s, c, delta):
    """Theorem 2 of CPO as its paper and code compute it: two candidate lambdas, each on its own domain."""
    A, B = q - r**2 / s, 2 * delta - c**2 / s
    if c < 0 and B < 0:
        return np.sqrt(q / (2 * delta)), 0.0
    lam_mid, lam_a, lam_b = -r / c, np.sqrt(A / B), np.sqrt(q / (2 * delta))
    # Where nu = max(0, lambda c + r) / s is positive: lambda c + r > 0.
    domain_a, domain_b = ((0.0, lam_mid), (lam_mid, np.inf)) if c < 0 else ((lam_mid, np.inf), (0.0, lam_mid))
    if lam_mid <= 0:
        domain_a, domain_b = ((0.0, 0.0), (0.0, np.inf)) if c < 0 else ((0.0, np.inf), (0.0, 0.0))
    candidates = []
    for lam, (low, high), f in (
        (lam_a, domain_a, lambda x: -0.5 * (A / x + B * x) + r * c / s),
        (lam_b, domain_b, lambda x: -0.5 * (q / x + 2 * delta * x)),
    ):
        clipped = np.clip(lam, low, high)
        if clipped > 0:
            candidates.append((f(clipped), clipped))
    lam = max(candidates)[1]
    return lam, max(0.0, lam * c + r) / s


def test_agrees_with_the_case_analysis_of_the_cpo_paper():
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(DualCase, 0)
    for _ in range(500):
        g, a = rng.normal(size=(2, 4))
        q, r, s, b, delta = g @ g, a @ g, a @ a, 2.0 * rng.normal(), rng.uniform(0.05, 1.0)
        step = solve(*(jnp.asarray(x) for x in (q, r, s, b, delta)))
        case = DualCase(int(step.case))
        counts[case] += 1
        if b > 0 and b * b / s > 2 * delta:
            assert case == DualCase.INFEASIBLE
            continue
        lam, nu = literal_dual(q, r, s, b, delta)
        np.testing.assert_allclose([step.eta, step.multiplier], [1 / lam, nu / lam], rtol=1e-7, atol=1e-9)
    assert min(counts[case] for case in (DualCase.INACTIVE, DualCase.ACTIVE, DualCase.INFEASIBLE)) > 50


def test_a_remainder_without_cancellation_is_used():
    """g and a at an angle of 1e-6: q - r^2 / s has lost half of its digits, the remainder has not."""
    angle, b, delta = 1e-6, jnp.array(0.0), jnp.array(0.5)
    q, r, s = jnp.array(1.0), jnp.cos(angle), jnp.array(1.0)
    exact = solve(q, r, s, b, delta, jnp.sin(angle) ** 2)
    np.testing.assert_allclose(exact.eta, 1.0 / np.sin(angle), rtol=1e-12)


@pytest.mark.parametrize(
    ("b", "remainder", "why"),
    [
        (-0.15, None, "-b is beyond sqrt(2 delta s) = 0.104, but eta r = 0.18 is beyond -b"),
        (-0.09, 4.0, "B = 0.01, so that sqrt(B / A) = 0.05 and nu would be (0.05 * 0.9 - 0.09) / s < 0"),
    ],
)
def test_scalars_of_an_unconverged_cg_cut_the_reward_step_off_at_the_boundary(b, remainder, why):
    """r^2 > q s, which no H allows: with a.d = eta r - multiplier s the step must still end on a.d = -b, nu >= 0."""
    q, r, s, delta = (jnp.asarray(x, float) for x in (1.0, 0.9, 0.27, 0.02))
    step = solve(q, r, s, jnp.asarray(b, float), delta, None if remainder is None else jnp.asarray(remainder, float))
    assert DualCase(int(step.case)) == DualCase.ACTIVE, why
    np.testing.assert_allclose([step.eta, step.multiplier], [-b / 0.9, 0.0], rtol=1e-14, atol=1e-16, err_msg=why)


def test_parallel_gradients_in_float32_do_not_divide_rounding_by_rounding():
    for angle in (0.0, 1e-8, 1e-4, 1e-2):
        scalars = (1.0, np.cos(angle), 1.0, -0.5, 0.5)
        step = solve(*(jnp.asarray(x, jnp.float32) for x in scalars))
        assert jnp.isfinite(step.eta)
        assert jnp.isfinite(step.multiplier)
