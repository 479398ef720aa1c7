"""Where formulas divide zero by zero, lose all digits or have no answer: every rule on whatever hypothesis thinks of.

Never a NaN, never a silent blow-up: the step is finite, its status says what happened, and no scale of reward, cost or
parameters decides anything. Problems are put together from the awkward pieces below, so that they also meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from jax.tree_util import Partial

from pcpo import rules
from pcpo.core import LocalModel, Status, UpdateRule
from pcpo.core.cpo_dual import DualCase
from pcpo.rules import Choice
from tests.problems import (
    Problem,
    as_arrays,
    multiply,
    natural_step,
    nearest_in_intersection,
    quadratic,
    random_problems,
)
from tests.rules import checks

DELTA, CAP, N, EXACT = 0.02, 1.0, 6, 60
BOTH: dict[str, Callable[..., UpdateRule]] = {
    "pcpo-kl": lambda **cg: rules.pcpo(DELTA, "kl", **cg),
    "pcpo-l2-dykstra": lambda **cg: rules.pcpo(DELTA, "l2", "dykstra", **cg),
    "pcpo-adaptive-capped": lambda **cg: rules.pcpo(DELTA, "adaptive", "dykstra", max_kl=CAP, **cg),
    "pdo": lambda **cg: rules.pdo(DELTA, initial_multiplier=0.5, **cg),
}
ONLY_ONE: dict[str, Callable[..., UpdateRule]] = {
    "trpo": lambda **cg: rules.trpo(DELTA, **cg),
    "cpo": lambda **cg: rules.cpo(DELTA, **cg),
    "cpo-full": lambda **cg: rules.cpo(DELTA, line_search=False, **cg),
    "fpo": lambda **cg: rules.fpo(DELTA, 0.5, **cg),
}
SCALES = (1e-8, 1.0, 1e8)
PROMISES = ("pcpo-kl", "pcpo-l2-dykstra", "pcpo-adaptive-capped", "cpo-full")


@cache
def program(m: int) -> Callable[..., dict[str, Any]]:
    """All rules that take m constraints on one problem, in one program."""
    taking = {**BOTH, **(ONLY_ONE if m < 2 else {})}
    made = {name: make(cg_iterations=EXACT) for name, make in taking.items()}

    @jax.jit
    def update(H, g, a, b):
        model = LocalModel(g, a, b, Partial(multiply, H), Partial(quadratic, H, g, a))
        return {name: rule.update(model, rule.init(m)) for name, rule in made.items()}

    return update


def run(p: Problem, dtype=jnp.float64) -> dict[str, checks.Outcome]:
    made = jax.device_get(program(len(p.b))(*as_arrays(p, dtype)))
    return {name: checks.outcome(*each) for name, each in made.items()}


# Awkward pieces ----------------------------------------------------------------------------------------------------

SPECTRA: dict[str, np.ndarray] = {
    "well": np.geomspace(1.0, 50.0, N),
    "ill": np.geomspace(1e-8, 1.0, N),  # condition 1e8
    "singular": np.array([0.0, 0.0, 0.5, 1.0, 2.0, 4.0]),
    "zero": np.zeros(N),
}
VIOLATIONS = (-10.0, -0.1, 0.0, 1e-12, 0.1, 10.0)
COSTS = ("random", "zero", "like g", "against g", "flat", "tiny", "vanishing", "some zero", "opposite", "twice")


@dataclass(frozen=True)
class Drawn:
    """A problem and how it was made."""

    p: Problem
    spectrum: str
    reward: str
    cost: str


@st.composite
def problems(draw, m: int, spectra=tuple(SPECTRA), kinds=COSTS, finite: bool = True) -> Drawn:
    """Directions are random, what is awkward about them is not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spectrum, reward = draw(st.sampled_from(spectra)), draw(st.sampled_from(["random", "zero", "flat"]))
    cost, scale_g, scale_a = (draw(st.sampled_from(x)) for x in (kinds, SCALES, SCALES))
    basis = np.linalg.qr(rng.normal(size=(N, N)))[0]
    H = (basis * SPECTRA[spectrum]) @ basis.T
    flat = basis[:, 0]  # the direction along which H is smallest
    g = scale_g * {"random": rng.normal(size=N), "zero": np.zeros(N), "flat": flat}[reward]
    a = scale_a * costs(cost, rng.normal(size=(m, N)), g if np.any(g) else flat, flat)
    b = scale_a * np.array(draw(st.lists(st.sampled_from(VIOLATIONS), min_size=m, max_size=m)))
    arrays = {"H": H, "g": g, "a": a, "b": b}
    if not finite:
        broken = draw(st.sampled_from(["H", "g", *(["a", "b"] if m else [])]))
        arrays[broken] = arrays[broken].copy()
        arrays[broken].flat[draw(st.integers(0, arrays[broken].size - 1))] = draw(st.sampled_from([np.nan, np.inf]))
    return Drawn(Problem(**arrays), spectrum, reward, cost)


def costs(kind: str, a: np.ndarray, g: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Cost gradients of unit size, but for those that are awkward because they are not."""
    if len(a) == 0:
        return a
    if kind == "some zero":
        a[::2] = 0.0
    if kind == "opposite" and len(a) > 1:  # with both violated nothing satisfies them
        a[1] = -a[0]
    if kind == "twice" and len(a) > 1:
        a[1] = 2.0 * a[0]
    like = g / np.linalg.norm(g)
    return {
        "zero": 0.0 * a,
        "like g": 0.0 * a + like,
        "against g": 0.0 * a - like,
        "flat": 0.0 * a + flat,
        "tiny": 1e-12 * a,
        "vanishing": 1e-170 * a,  # a . a is zero in float64, a is not
    }.get(kind, a)


# What always holds --------------------------------------------------------------------------------------------------


def is_sound(p: Problem, name: str, out: checks.Outcome, rtol: float = 1e-6) -> None:
    """`checks.is_sound`, and numbers that are those of the step."""
    checks.is_sound((p.g, p.a, p.b), out)
    for said, vectors in ((out.predicted_reward, p.g), (out.predicted_costs, p.a)):
        with np.errstate(invalid="ignore"):
            true, terms = vectors @ out.step, np.abs(vectors) @ np.abs(out.step)
        if np.all(np.isfinite(vectors)):
            assert np.all(np.abs(said - true) <= rtol * terms), f"{name}: predicted {said}, made {true}"
    if "capped" in name:
        assert out.predicted_kl <= CAP * (1 + rtol), f"{name}: KL {out.predicted_kl} over the cap"


def says_what_happened(p: Problem, name: str, out: checks.Outcome) -> None:
    """Statuses of models that are finite. (Where several apply the most severe is reported.)"""
    if not name.startswith(("pcpo", "cpo")):
        return
    if np.any(~np.any(p.a != 0.0, axis=1) & (p.b > 0)):
        assert out.status >= Status.ZERO_COST_GRADIENT_VIOLATED, f"{name}: {out.status.name}"
    if not np.any(p.g):
        assert out.status >= Status.ZERO_REWARD_GRADIENT, f"{name}: {out.status.name}"


def is_inside(p: Problem, name: str, out: checks.Outcome, tol: float = 1e-6) -> None:
    """Mild statuses promise ``a . d + b <= 0``. For H that is not singular, else its inverse is rounding."""
    movable = np.any(p.a != 0.0, axis=1)
    # A search may shorten the step; a half-space out of CPO's reach is not entered.
    recovers = name == "cpo-full" and out.extra["case"] == DualCase.INFEASIBLE
    if name in PROMISES and out.status <= Status.ZERO_REWARD_GRADIENT and not recovers:
        l2 = "l2" in name or ("adaptive" in name and out.extra["projection"] == Choice.L2)
        w = p.a if l2 else p.a @ np.linalg.pinv(p.H)
        # What the projection takes back may be far longer than what is left of the step.
        terms = np.abs(p.b) + np.abs(p.a) @ np.abs(out.step) + np.abs(p.a @ w.T) @ out.multipliers
        left = p.a @ out.step + p.b
        assert np.all((left <= tol * terms)[movable]), f"{name}: a.d + b = {left}, made of terms of size {terms}"


@pytest.mark.parametrize("m", [0, 1, 5])
def test_every_rule_is_sound_on_awkward_problems(m):
    @given(problems(m))
    @settings(max_examples=120)
    def check(drawn):
        event(f"{drawn.spectrum}, g {drawn.reward}, a {drawn.cost}")
        for name, out in run(drawn.p).items():
            is_sound(drawn.p, name, out)
            says_what_happened(drawn.p, name, out)
            if drawn.spectrum in {"well", "ill"}:
                is_inside(drawn.p, name, out)
            if drawn.spectrum == "well" and drawn.cost != "vanishing":
                checks.needs_no_excuse(out)

    check()


@given(problems(1))
@settings(max_examples=100)
def test_float32_is_as_sound(drawn):
    p = Problem(*(x.astype(np.float32).astype(float) for x in (drawn.p.H, drawn.p.g, drawn.p.a, drawn.p.b)))
    for name, out in run(p, jnp.float32).items():
        is_sound(p, name, out, rtol=1e-3)
        if drawn.spectrum == "well":
            says_what_happened(p, name, out)
            is_inside(p, name, out, tol=1e-3)


@pytest.mark.parametrize("m", [1, 5])
def test_what_is_not_finite_moves_nothing(m):
    @given(problems(m, finite=False))
    @settings(max_examples=100)
    def check(drawn):
        for name, out in run(drawn.p).items():
            is_sound(drawn.p, name, out)
            assert not np.any(out.step), f"{name}: {out.status.name}, step {out.step}"

    check()


@given(
    problems(1, spectra=("well",), kinds=("random", "zero", "tiny", "like g", "against g")),
    st.floats(-8.0, 8.0),
    st.floats(-8.0, 8.0),
)
@settings(max_examples=100)
def test_no_scale_decides_anything(drawn, reward, cost):
    p, c, e = drawn.p, 10.0**reward, 10.0**cost
    plain, scaled = run(p), run(Problem(p.H, c * p.g, e * p.a, e * p.b))
    # (In CPO's problem with parallel gradients every point of the boundary is optimal, and rounding may choose.)
    names = ["pcpo-kl", "pcpo-l2-dykstra", "trpo", *(["cpo-full"] if drawn.cost in {"random", "zero"} else [])]
    for name in names:
        before, after = plain[name], scaled[name]
        assert before.status == after.status, f"{name}: {before.status.name} becomes {after.status.name}"
        # Between parallel gradients the step is a difference of terms of these lengths.
        length = np.linalg.norm(before.step) + np.linalg.norm(natural_step(p, DELTA) if np.any(p.g) else 0.0)
        assert np.linalg.norm(after.step - before.step) <= 1e-8 * length, f"{name}: {before.step} to {after.step}"


# What happens, by name ----------------------------------------------------------------------------------------------

GENERAL = next(random_problems(seed=70, count=1, n=N, m=1).each())


@pytest.mark.parametrize(
    ("b", "status"),
    [(1.0, Status.ZERO_COST_GRADIENT_VIOLATED), (0.0, Status.OK), (-1.0, Status.OK)],
)
def test_a_zero_cost_gradient_leaves_the_reward_step(b, status):
    p = Problem(GENERAL.H, GENERAL.g, np.zeros((1, N)), np.array([b]))
    outcomes = run(p)
    for name in ("pcpo-kl", "pcpo-l2-dykstra", "pcpo-adaptive-capped", "cpo-full"):
        assert outcomes[name].status == status, name
        np.testing.assert_allclose(outcomes[name].step, natural_step(p, DELTA), rtol=1e-8)


def test_without_a_reward_gradient_only_constraints_are_restored():
    p = Problem(GENERAL.H, np.zeros(N), GENERAL.a, np.array([0.3]))
    outcomes = run(p)
    for name, L in (("pcpo-kl", p.H), ("pcpo-l2-dykstra", np.eye(N))):
        assert outcomes[name].status == Status.ZERO_REWARD_GRADIENT
        np.testing.assert_allclose(
            outcomes[name].step, nearest_in_intersection(np.zeros(N), p.a, p.b, L), rtol=1e-8, atol=1e-12
        )
    satisfied = run(Problem(p.H, p.g, p.a, -p.b))
    for name in ("trpo", "pcpo-kl", "pcpo-l2-dykstra", "cpo", "cpo-full"):
        assert satisfied[name].status == Status.ZERO_REWARD_GRADIENT, name
        assert not np.any(satisfied[name].step), name


def test_a_tiny_gradient_above_the_limit_makes_a_huge_step_or_a_capped_one():
    outcomes = run(Problem(GENERAL.H, GENERAL.g, 1e-6 * GENERAL.a, np.array([1.0])))
    assert outcomes["pcpo-kl"].status == Status.PROJECTED
    assert outcomes["pcpo-kl"].predicted_kl > 1e8  # by formula; nothing hides it
    assert outcomes["pcpo-adaptive-capped"].status == Status.KL_CAPPED
    np.testing.assert_allclose(outcomes["pcpo-adaptive-capped"].predicted_kl, CAP, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_an_empty_intersection_of_five_has_its_name_and_a_bounded_step(seed):
    p = next(random_problems(seed=80 + seed, count=1, n=N, m=5).each())
    a = np.concatenate([p.a[:1], -2.0 * p.a[:1], p.a[2:]])
    p = Problem(p.H, p.g, a, np.array([0.4, 0.5, -50.0, -50.0, 0.0]))
    for name, L in (("pcpo-kl", p.H), ("pcpo-l2-dykstra", np.eye(N)), ("pcpo-adaptive-capped", None)):
        out = run(p)[name]
        assert out.status == Status.INFEASIBLE_INTERSECTION, name
        if L is not None:
            d = natural_step(p, DELTA)
            distances = (p.a @ d + p.b) / np.sqrt(np.sum(p.a * np.linalg.solve(L, p.a.T).T, axis=1))
            assert np.sqrt((out.step - d) @ L @ (out.step - d)) < 10.0 * np.max(np.abs(distances)), name
