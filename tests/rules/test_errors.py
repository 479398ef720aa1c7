"""Mistakes of the caller, outside jit: an error that names the argument, what was given, and the remedy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import pytest

from pcpo import rules
from pcpo.core import LocalModel, Status, Surrogates

G, A, B = jnp.ones(3), jnp.ones((2, 3)), jnp.zeros(2)


def same(v):
    return v


def no_change(d):
    return Surrogates(jnp.zeros(()), jnp.zeros(2), jnp.zeros(()))


def model(g: Any = G, a: Any = A, b: Any = B, fvp: Any = same, evaluate: Any = None) -> LocalModel:
    return LocalModel(g, a, b, fvp, evaluate)


def step(rule, state=None, **parts):
    return rule.update(model(**parts), rule.init(2) if state is None else state)


@pytest.fixture(autouse=True)
def _as_users_run_it():
    """Without the types that are checked while tests run (see conftest), which would complain first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


MODELS: dict[str, tuple[Callable[[], object], str]] = {
    "b without an axis": (
        lambda: model(a=G, b=jnp.zeros(())),
        r"b has shape \(\), .* shape \[m\]; .*jnp\.reshape\(b, \(1,\)\)",
    ),
    "a without an axis for one constraint": (
        lambda: model(a=G, b=jnp.zeros(1)),
        r"a has shape \(3,\), but b has 1 constraint\(s\) and g has shape \(3,\), .* \(1, 3\); .*a\[None\]",
    ),
    "one gradient for two violations": (
        lambda: model(a=A[:1]),
        r"a has shape \(1, 3\), but b has 2 constraint\(s\) .* must be \(2, 3\); stack one gradient per constraint",
    ),
    "a of other parameters": (
        lambda: model(a={"w": jnp.ones((2, 4))}, g={"w": G}),
        r"a\['w'\] has shape \(2, 4\), .* g\['w'\] has shape \(3,\), so it must be \(2, 3\)",
    ),
    "a of another tree": (
        lambda: model(a={"w": A}),
        r"a has tree structure .*'w'.*, g has .*; a must be the same tree as g with a leading axis m, as jax\.jacrev",
    ),
    "whole numbers": (
        lambda: model(g=jnp.ones(3, int)),
        r"g is int64 and a is float64; gradients must be floating point",
    ),
    "nothing to optimise": (lambda: model(g={}, a={}), r"g has no arrays in it; pass the gradient of the reward"),
    "a matrix for fvp": (
        lambda: model(fvp=jnp.eye(3)),
        r"fvp is .*, which cannot be called; pass a function",
    ),
    "fvp of another shape": (
        lambda: step(rules.pcpo(0.01), fvp=lambda v: v[:2]),
        r"fvp returned a tree of shapes \(2,\) for one of \(3,\); it must return a tree like g",
    ),
    "evaluate with one cost for two": (
        lambda: step(rules.pcpo(0.01), evaluate=lambda d: no_change(d)._replace(costs=jnp.zeros(1))),
        r"evaluate returned reward \(\), costs \(1,\), kl \(\); .* each of the 2 constraint\(s\) in b",
    ),
    "own metric of another shape": (
        lambda: step(rules.pcpo(0.01, rules.Metric("mine", lambda a: a[:2]))),
        r"solve of the metric 'mine' returned a tree of shapes \(2,\) for one of \(3,\)",
    ),
}
ARGUMENTS: dict[str, tuple[Callable[[], object], str]] = {
    "delta zero": (lambda: rules.pcpo(0.0), r"delta is 0, but must be above 0; the paper takes 1e-4"),
    "delta negative": (lambda: rules.trpo(-1.0), r"delta is -1, but must be above 0"),
    "delta not a number": (lambda: rules.cpo(float("nan")), r"delta is nan, but must be above 0"),
    "several deltas": (
        lambda: rules.pdo(jnp.ones(3)),
        r"delta has shape \(3,\), but one number is needed; vmap over several values",
    ),
    "projection unknown": (
        lambda: rules.pcpo(0.01, "k1"),
        r"projection is 'k1'; pass one of 'kl', 'l2', 'adaptive'",
    ),
    "several unknown": (lambda: rules.pcpo(0.01, several="all"), r"several is 'all'; pass one of 'cyclic', 'dykstra'"),
    "cap of zero": (lambda: rules.pcpo(0.01, max_kl=0.0), r"max_kl is 0, but must be above 0; pass math\.inf for no"),
    "no CG": (
        lambda: rules.pcpo(0.01, cg_iterations=0),
        r"cg_iterations is 0, but CG needs an int of at least 1",
    ),
    "CG by halves": (lambda: rules.trpo(0.01, cg_iterations=2.5), r"cg_iterations is 2\.5, but CG needs"),  # pyright: ignore[reportArgumentType]
    "tolerance negative": (
        lambda: rules.fpo(0.01, 1.0, cg_tolerance=-1.0),
        r"cg_tolerance is -1, but must be",
    ),
    "price negative": (lambda: rules.fpo(0.01, -1.0), r"multiplier is -1, but must be at least 0; it is the price"),
    "one of two prices negative": (
        lambda: rules.fpo(0.01, jnp.array([1.0, -2.0])),
        r"multiplier is -2, but must be at least 0",
    ),
    "curvatures never measured": (
        lambda: rules.pcpo(0.01, "adaptive", adaptive=rules.AdaptiveOptions(refresh_every=0)),
        r"AdaptiveOptions\.refresh_every is 0, but must be a whole number above 0; try 10",
    ),
    "curvatures measured with nothing": (
        lambda: rules.pcpo(0.01, "adaptive", adaptive=rules.AdaptiveOptions(products=0)),
        r"AdaptiveOptions\.products is 0, but must be a whole number above 0; try 8",
    ),
    "damping negative": (
        lambda: rules.pcpo(0.01, "adaptive", adaptive=rules.AdaptiveOptions(damping=-1.0)),
        r"AdaptiveOptions\.damping is -1, but must be at least 0",
    ),
    "rate negative": (lambda: rules.pdo(0.01, -0.1), r"learning_rate is -0\.1, but must be at least 0"),
    "start negative": (lambda: rules.pdo(0.01, 0.1, -2.0), r"initial_multiplier is -2, but must be at least 0"),
    "three prices for two costs": (
        lambda: step(rules.fpo(0.01, jnp.ones(3))),
        r"multiplier has shape \(3,\), but the model has 2 constraint\(s\); pass one number, or one for each",
    ),
    "the state of another problem": (
        lambda: step(rules.pdo(0.01), state=rules.pdo(0.01).init(3)),
        r"state has shape \(3,\), but the model has 2 constraint\(s\); .* rule\.init\(2\)",
    ),
    "cpo for two": (
        lambda: step(rules.cpo(0.01), evaluate=no_change),
        r"cpo solves its dual for one constraint, but b has shape \(2,\); use pcpo, .* or add the costs",
    ),
    "cpo without surrogates": (
        lambda: rules.cpo(0.01).update(LocalModel(G, A[:1], B[:1], same), ()),
        r"cpo\(line_search=True\) needs LocalModel\.evaluate .*; give the model its .* pass line_search=False",
    ),
    "adaptive without surrogates": (
        lambda: step(rules.pcpo(0.01, "adaptive")),
        r"projection='adaptive' needs LocalModel\.evaluate .* or choose projection='kl' or 'l2'",
    ),
}


@pytest.mark.parametrize("name", [*MODELS, *ARGUMENTS])
def test_it_is_refused_in_words(name):
    wrong, message = {**MODELS, **ARGUMENTS}[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        wrong()


def test_shapes_are_refused_inside_jit_too():
    """Shapes are known while tracing; only values are not."""
    with pytest.raises(ValueError, match=r"a has shape \(1, 3\)"):
        jax.jit(lambda g, a, b: rules.pcpo(0.01).update(LocalModel(g, a, b, same), ())[0])(G, A[:1], B)


@pytest.mark.parametrize("make", [rules.pcpo, rules.trpo, lambda delta: rules.cpo(delta, line_search=False)])
@pytest.mark.parametrize("b", [-1.0, 1.0])
def test_a_delta_that_is_traced_passes_and_a_bad_one_moves_nothing(make, b):
    """Its value is not known before the program runs; then the status says that it was bad."""
    made = jax.vmap(lambda delta: make(delta).update(model(a=A[:1], b=jnp.full(1, b)), ()))
    steps, _, info = made(jnp.array([0.1, -1.0, jnp.nan, jnp.inf]))
    assert jnp.any(steps[0] != 0.0)
    assert info.status[0] < Status.CG_FAILED
    assert jnp.all(info.status[1:] == Status.NONFINITE)
    assert jnp.all(steps[1:] == 0.0)
