"""What a rule costs beyond the Fisher products that it makes, and how the time of an update divides.

The yardstick are bare products in the form in which the rule makes them: ten times, on trees, one for g and each a_i
(by `pcpo.core.rows.over_rows`), each made from the one before. All that a rule adds counts as overhead: flattening, the
vectors of conjugate gradient, the Gram matrix, the projection, the report.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from benchmarks import _timing, problem
from benchmarks.problem import Batch, Params
from pcpo import rules
from pcpo.core import LocalModel, Status, StepInfo, UpdateRule
from pcpo.core.cg import CGSolution, conjugate_gradient
from pcpo.core.rows import over_rows
from pcpo.core.vectors import as_vectors, scaled

DELTA = 0.01
ITERATIONS = 10
TARGET = 1.10
"""A PCPO update may take a tenth more time than its Fisher products."""
SEEDS = 5
MANY = 5
"""Constraints, where there are several."""


def test_overhead_of_pcpo(seconds: float) -> None:
    """The target: core time of the rule over that of its twenty Fisher products.

    Core time, because on the clock a contender also waits for whatever else wants the cores. On a diagonal H, whose
    products cost next to nothing, all that is left is what the rule adds to them: too little to be seen well in the
    difference of two long times.
    """
    model = _model()
    rule = rules.pcpo(DELTA)
    _check(rule, model)
    free = _with_diagonal_fisher(model)
    _check(rule, free)
    bare, name, rest = "20 bare products, as 10 of 2", "pcpo, kl", "pcpo, kl, on a diagonal H"
    race = _timing.race(
        _timing.compiled(bare, chain, model, _right_hand_sides(model)),
        _timing.compiled(name, rule.update, model, ()),
        _timing.compiled(rest, rule.update, free, ()),
        _timing.compiled("the same products, vmapped", vmapped_chain, model, _right_hand_sides(model)),
        seconds=seconds,
        min_rounds=31,
    )
    parameters = ravel_pytree(model.g)[0].size
    _timing.print_table(
        f"PCPO beyond its Fisher products: {parameters} parameters, {problem.STATES} states ({race.rounds} rounds)",
        _timing.ROW,
        [race.row(each, bare) for each in race.contenders],
    )
    ratio = race.cpu_ratio(name, bare).median
    assert ratio < TARGET, f"pcpo takes {ratio:.3f} times its Fisher products; the target is {TARGET}"


def test_overhead_of_all_rules(seconds: float) -> None:
    """Every rule against bare products: as many as its conjugate gradient makes."""
    model, evaluated = _model(), _model(with_evaluate=True)
    adaptive = rules.pcpo(DELTA, "adaptive")
    measured = jax.jit(adaptive.update)(evaluated, adaptive.init(1))[1]
    two, one = "10 bare products of 2", "10 bare products of 1"
    runs: dict[str, tuple[str, UpdateRule, LocalModel, Any]] = {
        "pcpo, kl": (two, rules.pcpo(DELTA), model, ()),
        "pcpo, kl, with evaluate": (two, rules.pcpo(DELTA), evaluated, ()),
        "pcpo, l2 (one product more)": (one, rules.pcpo(DELTA, "l2"), model, ()),
        "pcpo, adaptive, as in nine of ten updates": (two, adaptive, evaluated, measured),
        "pcpo, adaptive, measuring curvatures": (two, adaptive, evaluated, adaptive.init(1)),
        "cpo without line search": (two, rules.cpo(DELTA, line_search=False), model, ()),
        "cpo": (two, rules.cpo(DELTA), evaluated, ()),
        "trpo without line search": (one, rules.trpo(DELTA), model, ()),
        "trpo": (one, rules.trpo(DELTA), evaluated, ()),
    }
    notes = {name: _check(rule, given, state) for name, (_, rule, given, state) in runs.items()}
    gradients = _right_hand_sides(model)
    contenders = [
        _timing.compiled(two, chain, model, gradients),
        _timing.compiled(one, chain, model, jax.tree.map(lambda x: x[:1], gradients)),
        *(_timing.compiled(name, rule.update, given, state) for name, (_, rule, given, state) in runs.items()),
    ]
    race = _timing.race(*contenders, seconds=seconds)
    _timing.print_table(
        f"All rules, one constraint ({race.rounds} rounds)",
        (*_timing.ROW, "status"),
        [[*race.row(name, bare), notes[name]] for name, (bare, *_) in runs.items()],
    )


def test_many_constraints(seconds: float) -> None:
    """Five constraints: six right-hand sides, and sweeps over a 5 x 5 Gram matrix."""
    model = _model(MANY)
    bare = f"10 bare products of {1 + MANY}"
    runs = {
        "pcpo, cyclic": (rules.pcpo(DELTA, several="cyclic"), model),
        "pcpo, dykstra": (rules.pcpo(DELTA, several="dykstra"), model),
        "pcpo, dykstra, products in blocks": (
            rules.pcpo(DELTA, several="dykstra"),
            _model(MANY, way=problem.gauss_newton_in_blocks),
        ),
    }
    notes = {name: _check(rule, given) for name, (rule, given) in runs.items()}
    contenders = [
        _timing.compiled(bare, chain, model, _right_hand_sides(model)),
        *(_timing.compiled(name, rule.update, given, ()) for name, (rule, given) in runs.items()),
    ]
    race = _timing.race(*contenders, seconds=seconds)
    _timing.print_table(
        f"PCPO with {MANY} constraints ({race.rounds} rounds)",
        (*_timing.ROW, "status"),
        [[*race.row(name, bare), notes.get(name, "")] for name in race.contenders],
    )


def test_many_seeds(seconds: float) -> None:
    """Several seeds in one program, vmapped or one after the other, against one alone."""
    keys = jax.random.split(jax.random.key(1), SEEDS)
    rule = rules.pcpo(DELTA)

    def models(way: Callable[..., Any]) -> LocalModel:
        return jax.jit(jax.vmap(lambda key: problem.local_model(*_setting(key, 1), way=way)))(keys)

    def update(model: LocalModel) -> tuple[Params, StepInfo]:
        step, _, info = rule.update(model, ())
        return step, info

    whole, blocks = models(problem.gauss_newton), models(problem.gauss_newton_in_blocks)
    alone = "pcpo, one seed"
    race = _timing.race(
        _timing.compiled(alone, update, _model(with_evaluate=True)),
        _timing.compiled(f"{SEEDS} seeds, vmapped", jax.vmap(update), whole),
        _timing.compiled(f"{SEEDS} seeds, vmapped, products in blocks", jax.vmap(update), blocks),
        _timing.compiled(f"{SEEDS} seeds, one after the other (lax.map)", partial(jax.lax.map, update), whole),
        seconds=seconds,
    )
    _timing.print_table(
        f"PCPO on {SEEDS} seeds ({race.rounds} rounds)",
        _timing.ROW,
        [race.row(name, alone) for name in race.contenders],
    )


def test_where_the_time_goes(seconds: float) -> None:
    """The parts of an update, each in a program of its own, and the whole in one program."""
    params, batch = _setting(jax.random.key(0), 1)
    model = _model(with_evaluate=True)
    bare = _without_evaluate(model)
    free = _with_diagonal_fisher(bare)
    rule = rules.pcpo(DELTA)
    _check(rule, free)

    def learn(params: Params, batch: Batch) -> tuple[Params, StepInfo]:
        step, _, info = rule.update(problem.local_model(params, batch), ())
        return step, info

    def both_gradients(evaluate: Callable[[Params], Any], params: Params) -> tuple[Params, Params]:
        return problem.gradients(evaluate, params)

    whole = "surrogates, model and pcpo with evaluate, one program"
    race = _timing.race(
        _timing.compiled(whole, learn, params, batch),
        _timing.compiled("gradients g and a", both_gradients, model.evaluate, params),
        _timing.compiled("linearisation", problem.gauss_newton, params, batch.states),
        _timing.compiled("20 Fisher products, as 10 of 2", chain, bare, _right_hand_sides(bare)),
        _timing.compiled("evaluate, once", lambda evaluate, step: evaluate(step), model.evaluate, params),
        _timing.compiled("pcpo without evaluate", rule.update, bare, ()),
        _timing.compiled("pcpo on a diagonal H: all but the products", rule.update, free, ()),
        _timing.compiled("of which conjugate gradient", _solve, free),
        _timing.compiled("of which a call that computes nothing", lambda model: model.b, free),
        seconds=seconds,
    )
    _timing.print_table(
        f"Where the time of an update goes ({race.rounds} rounds)",
        _timing.ROW,
        [race.row(name, whole) for name in race.contenders],
    )


def chain(model: LocalModel, vectors: Params) -> Params:
    """Ten products of each vector on trees, each of the result of the one before, as conjugate gradient makes them."""
    return jax.lax.fori_loop(0, ITERATIONS, lambda _, v: over_rows(model.fvp)(v), vectors)


def vmapped_chain(model: LocalModel, vectors: Params) -> Params:
    """The same by `jax.vmap`, which lays out anew what all rows share."""
    return jax.lax.fori_loop(0, ITERATIONS, lambda _, v: jax.vmap(model.fvp)(v), vectors)


def _solve(model: LocalModel) -> CGSolution:
    """The rule's conjugate gradient."""
    units = scaled(as_vectors(model)[0]).model
    return conjugate_gradient(units.fvp, jnp.concatenate([units.g[None], units.a]), ITERATIONS)


def _check(rule: UpdateRule, model: LocalModel, state: Any = ()) -> str:
    """Makes sure that all iterations are run, so that products can be counted; returns the status."""
    iterations = jax.jit(_solve)(model).iterations
    assert (iterations == ITERATIONS).all(), f"CG ended after {iterations} steps"
    _, _, info = jax.jit(rule.update)(model, state)
    return Status(int(info.status)).name


def _right_hand_sides(model: LocalModel) -> Params:
    """Unit vectors along g and all a_i, stacked, as a tree."""
    flat, unravel = as_vectors(model)
    units = scaled(flat).model
    return jax.vmap(unravel)(jnp.concatenate([units.g[None], units.a]))


def _setting(key: Array, m: int) -> tuple[Params, Batch]:
    keys = jax.random.split(key)
    params = problem.make_params(keys[0])
    return params, problem.make_batch(keys[1], params, m)


def _model(m: int = 1, with_evaluate: bool = False, way: Callable[..., Any] = problem.gauss_newton) -> LocalModel:
    params, batch = _setting(jax.random.key(0), m)
    return jax.jit(partial(problem.local_model, with_evaluate=with_evaluate, way=way))(params, batch)


def _without_evaluate(model: LocalModel) -> LocalModel:
    return LocalModel(model.g, model.a, model.b, model.fvp)


def _with_diagonal_fisher(model: LocalModel) -> LocalModel:
    """The same gradients under an H of condition 1e4, on which CG does not converge in ten steps either."""
    flat, unravel = as_vectors(model)
    diagonal = unravel(jnp.logspace(0.0, -4.0, flat.g.size))
    fvp = jax.tree_util.Partial(lambda d, v: jax.tree.map(jnp.multiply, d, v), diagonal)
    return LocalModel(model.g, model.a, model.b, fvp)


if __name__ == "__main__":
    _timing.run_directly(
        "The rules beyond their Fisher products.",
        test_overhead_of_pcpo,
        test_overhead_of_all_rules,
        test_many_constraints,
        test_many_seeds,
        test_where_the_time_goes,
    )
