"""Ways to form the Fisher-vector product, and ways to run conjugate gradient on it.

Everything in a race runs ten products in a chain, each made from the one before, so that none can be left out, hoisted
out of the loop or run beside another.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.sparse.linalg
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float

from benchmarks import _timing, problem
from benchmarks.problem import Gaussian, Params, States, Tree
from pcpo.core.cg import conjugate_gradient
from pcpo.core.vectors import on_vectors

PRODUCTS = 10
JACOBIAN_STATES = 1_000
"""The explicit Jacobian of 10,000 states has 1.6 GB; all ways are raced once more on as many states as it is given."""

Product: TypeAlias = Callable[[Tree], Tree]


# Ways to form the product: (params, states) -> (v -> H v).


def jvp_of_grad(params: Params, states: States) -> Product:
    """Double backpropagation, forward over reverse, repeated for every product."""
    gradient = jax.grad(_kl_from_here(params, states))
    return lambda v: problem.damped(jax.jvp(gradient, (params,), (v,))[1], v)


def grad_of_grad(params: Params, states: States) -> Product:
    """Double backpropagation, reverse over reverse: the gradient of grad . v, as the TRPO codes do it."""
    gradient = jax.grad(_kl_from_here(params, states))

    def product(v: Params) -> Params:
        return problem.damped(jax.grad(lambda p: _dot(gradient(p), v))(params), v)

    return product


def linearised_grad(params: Params, states: States) -> Product:
    """Double backpropagation, forward over reverse, linearised once."""
    _, hessian = jax.linearize(jax.grad(_kl_from_here(params, states)), params)
    return lambda v: problem.damped(hessian(v), v)


def recomputed_gauss_newton(params: Params, states: States) -> Product:
    """J' F J v by a jvp and a vjp of the distribution's parameters, repeated for every product."""
    at_states = partial(problem.policy, states=states)

    def product(v: Params) -> Params:
        gaussian, tangent = jax.jvp(at_states, (params,), (v,))
        pull = jax.vjp(at_states, params)[1]
        return problem.damped(pull(problem.fisher_of_gaussian(gaussian.log_std, tangent))[0], v)

    return product


def explicit_jacobian(params: Params, states: States) -> Product:
    """J' F J v with the Jacobian of every state's mean in memory."""

    def mean_at(p: Params, state: Float[Array, " observation"]) -> Float[Array, " actions"]:
        return problem.policy(p, state[None]).mean[0]

    per_state = jax.vmap(jax.jacrev(mean_at), in_axes=(None, 0))(params, states)
    jacobian = jnp.concatenate(
        [leaf.reshape(states.shape[0] * problem.ACTIONS, -1) for leaf in jax.tree.leaves(per_state)], axis=1
    )
    unravel = ravel_pytree(params)[1]

    def product(v: Params) -> Params:
        moved = (jacobian @ ravel_pytree(v)[0]).reshape(-1, problem.ACTIONS)
        weighed = problem.fisher_of_gaussian(params.log_std, Gaussian(moved, v.log_std))
        return problem.damped(unravel(jacobian.T @ weighed.mean.ravel())._replace(log_std=weighed.log_std), v)

    return product


WAYS: dict[str, Callable[[Params, States], Product]] = {
    "Gauss-Newton, linearised once": problem.gauss_newton,
    "Gauss-Newton, linearised, in blocks": problem.gauss_newton_in_blocks,
    "Gauss-Newton, recomputed": recomputed_gauss_newton,
    "jvp of grad, linearised once": linearised_grad,
    "jvp of grad": jvp_of_grad,
    "grad of (grad . v)": grad_of_grad,
}
OURS = "Gauss-Newton, linearised once"
JACOBIAN = "explicit Jacobian"


def _kl_from_here(params: Params, states: States) -> Callable[[Params], Float[Array, ""]]:
    here = problem.policy(params, states)
    return lambda p: problem.mean_kl(here, problem.policy(p, states))


# Ways to run conjugate gradient: (fvp, right-hand sides [k, n]) -> x [k, n], ten steps each.


def stacked(fvp: Product, rhs: Array) -> Array:
    """`pcpo.core.cg.conjugate_gradient`, all right-hand sides in lock step."""
    return conjugate_gradient(fvp, rhs, PRODUCTS).x


def one_by_one(fvp: Product, rhs: Array) -> Array:
    """One right-hand side after the other."""
    return jnp.concatenate([stacked(fvp, r[None]) for r in rhs])


def scipy_cg(fvp: Product, rhs: Array) -> Array:
    """`jax.scipy.sparse.linalg.cg`, vmapped."""
    return jax.vmap(lambda r: jax.scipy.sparse.linalg.cg(fvp, r, tol=0.0, maxiter=PRODUCTS)[0])(rhs)


def counted(fvp: Product, rhs: Array) -> Array:
    """The textbook's steps on ``[k, n]``, always ten of them: no tolerance, no guard, no by-product."""
    return _textbook(jax.vmap(fvp), rhs, lambda x, y: jnp.sum(x * y, axis=-1))


def on_trees(fvp: Product, rhs: Tree) -> Tree:
    """The same on trees with a leading axis k."""

    def dots(x: Tree, y: Tree) -> Array:
        parts = jax.tree.map(lambda a, b: jnp.sum(a * b, axis=tuple(range(1, a.ndim))), x, y)
        return jax.tree.reduce(jnp.add, parts)

    return _textbook(jax.vmap(fvp), rhs, dots)


def _textbook(multiply: Product, rhs: Tree, dots: Callable[[Tree, Tree], Array]) -> Tree:
    def along(factor: Array, x: Tree, y: Tree) -> Tree:
        return jax.tree.map(lambda a, b: a + factor.reshape(-1, *[1] * (a.ndim - 1)) * b, x, y)

    def iterate(_: Array, state: tuple[Tree, Tree, Tree, Array]) -> tuple[Tree, Tree, Tree, Array]:
        x, residual, direction, squared = state
        product = multiply(direction)
        alpha = squared / dots(direction, product)
        residual = along(-alpha, residual, product)
        before, squared = squared, dots(residual, residual)
        return along(alpha, x, direction), residual, along(squared / before, residual, direction), squared

    start = (jax.tree.map(jnp.zeros_like, rhs), rhs, rhs, dots(rhs, rhs))
    return jax.lax.fori_loop(0, PRODUCTS, iterate, start)[0]


def chain(fvp: Product, vectors: Tree) -> Tree:
    """Ten stacked products, each of the result of the one before: the least that any of the above can cost."""
    return jax.lax.fori_loop(0, PRODUCTS, lambda _, v: jax.vmap(fvp)(v), vectors)


# The benchmarks.


def test_products_agree() -> None:
    """All ways give one and the same H v (with the device's exact float32 arithmetic)."""
    with jax.default_matmul_precision("highest"):
        difference = _differences(WAYS, *_setting(problem.STATES))
        difference |= _differences({OURS: WAYS[OURS], JACOBIAN: explicit_jacobian}, *_setting(JACOBIAN_STATES))
        exact = _product(WAYS[OURS], *_setting(problem.STATES))
    coarse = _relative(_product(WAYS[OURS], *_setting(problem.STATES)), exact)
    rows = [[name, f"{x:.1e}"] for name, x in difference.items()]
    _timing.print_table(
        "Relative difference to the first of the products with one vector",
        ("", "relative difference"),
        [*rows, ["the first, in the device's default precision of matrix products", f"{coarse:.1e}"]],
    )
    assert max(difference.values()) < 2e-5, difference


def test_ways_to_form_the_product(seconds: float) -> None:
    """What an update pays: the preparation and ten stacked products."""
    few = {name: way for name, way in WAYS.items() if name.startswith("Gauss-Newton")}
    for hidden, k, ways in (
        (problem.HIDDEN, 1, WAYS),
        (problem.HIDDEN, 2, WAYS),
        (problem.HIDDEN, 6, few),
        ((64, 32), 2, WAYS),
    ):
        params, states, v = _setting(problem.STATES, hidden)
        _race_of_ways(ways, params, states, _stack(v, k), seconds)


def test_explicit_jacobian(seconds: float) -> None:
    """The Jacobian in memory against the others, on a tenth of the states."""
    params, states, v = _setting(JACOBIAN_STATES)
    ways = {OURS: WAYS[OURS], JACOBIAN: explicit_jacobian}
    _race_of_ways(ways, params, states, _stack(v, 2), seconds)


def test_distance_to_the_floor(seconds: float) -> None:
    """The rate of the chained products against the rate of one large matrix product."""
    params, states, v = _setting(problem.STATES)
    fvp = jax.jit(problem.gauss_newton)(params, states)
    size = 2048
    matrix = jnp.ones((size, size))
    runs = {1: f"{PRODUCTS} products", 2: f"{PRODUCTS} products of 2", 6: f"{PRODUCTS} products of 6"}
    race = _timing.race(
        _timing.compiled("matrix", lambda x: x @ x, matrix),
        *(_timing.compiled(name, chain, fvp, _stack(v, k)) for k, name in runs.items()),
        seconds=seconds,
    )
    operations = {name: PRODUCTS * k * _operations(params) for k, name in runs.items()} | {"matrix": 2 * size**3}
    rate = {name: operations[name] / race.time(name).median for name in operations}
    _timing.print_table(
        f"Distance to the floor: rate of multiplications and additions ({race.rounds} rounds)",
        ("", "GFLOP", "GFLOP/s", "of the matrix product"),
        [
            [name, f"{operations[name] / 1e9:.2f}", f"{x / 1e9:.0f}", f"{x / rate['matrix']:.0%}"]
            for name, x in rate.items()
        ],
    )


def test_ways_to_run_conjugate_gradient(seconds: float) -> None:
    """Ten steps of every kind of conjugate gradient, for 1, 2 and 6 right-hand sides, against bare products."""
    params, states, v = _setting(problem.STATES)
    fvp = jax.jit(problem.gauss_newton)(params, states)
    _, unravel = ravel_pytree(params)
    kinds = (stacked, one_by_one, scipy_cg, counted)

    def flattened(solve: Callable[[Product, Array], Array], fvp: Partial, rhs: Array) -> Array:
        return solve(on_vectors(fvp, unravel, "fvp"), rhs)

    for k in (1, 2, 6):
        trees = _stack(v, k)
        vectors = jax.vmap(lambda tree: ravel_pytree(tree)[0])(trees)
        vectors /= jnp.linalg.norm(vectors, axis=1, keepdims=True)
        trees = jax.vmap(unravel)(vectors)
        iterations = jax.jit(
            lambda fvp, r: conjugate_gradient(on_vectors(fvp, unravel, "fvp"), r, PRODUCTS).iterations
        )(fvp, vectors)
        assert (iterations == PRODUCTS).all(), (
            f"CG ended after {iterations} steps, so that the times are not comparable"
        )
        bare = f"{PRODUCTS} bare products of {k}, on trees"
        contenders = [
            _timing.compiled(bare, chain, fvp, trees),
            _timing.compiled("the same, on vectors", partial(flattened, chain), fvp, vectors),
            *(_timing.compiled(solve.__name__, partial(flattened, solve), fvp, vectors) for solve in kinds),
            _timing.compiled("on_trees", on_trees, fvp, trees),
        ]
        race = _timing.race(*contenders, seconds=seconds)
        solutions = {solver.name: jax.vmap(lambda x: ravel_pytree(x)[0])(solver.call()) for solver in contenders[2:]}
        difference = {name: _relative(x, solutions[stacked.__name__]) for name, x in solutions.items()}
        _timing.print_table(
            f"Conjugate gradient, {PRODUCTS} steps, {k} right-hand side(s) ({race.rounds} rounds)",
            (*_timing.ROW, "difference of x"),
            [
                [*race.row(name, bare), f"{difference[name]:.0e}" if name in difference else ""]
                for name in race.contenders
            ],
        )
        assert max(difference.values()) < 0.1, difference  # one method; ten unconverged steps amplify rounding


def _differences(
    ways: dict[str, Callable[[Params, States], Product]], params: Params, states: States, v: Params
) -> dict[str, float]:
    """Of each way's product to that of the first."""
    products = [_product(way, params, states, v) for way in ways.values()]
    return {name: _relative(x, products[0]) for name, x in zip(ways, products, strict=True)}


def _product(way: Callable[[Params, States], Product], params: Params, states: States, v: Params) -> Array:
    return ravel_pytree(jax.jit(lambda params, states, v: way(params, states)(v))(params, states, v))[0]


def _race_of_ways(
    ways: dict[str, Callable[[Params, States], Product]], params: Params, states: States, v: Tree, seconds: float
) -> None:
    def update(way: Callable[[Params, States], Product], params: Params, states: States, v: Tree) -> Tree:
        return chain(way(params, states), v)

    contenders = (_timing.compiled(name, partial(update, way), params, states, v) for name, way in ways.items())
    race = _timing.race(*contenders, seconds=seconds)
    k = v.log_std.shape[0]
    _timing.print_table(
        f"Preparation and {PRODUCTS} products of {k} vector(s): {ravel_pytree(params)[0].size} parameters, "
        f"{states.shape[0]} states ({race.rounds} rounds)",
        _timing.ROW,
        [race.row(name, OURS) for name in ways],
    )


def _setting(num_states: int, hidden: tuple[int, ...] = problem.HIDDEN) -> tuple[Params, States, Params]:
    """A policy, states, and a vector to multiply by."""
    keys = jax.random.split(jax.random.key(0), 3)
    params = problem.make_params(keys[0], hidden)
    leaves, structure = jax.tree.flatten(params)
    subkeys = jax.random.split(keys[2], len(leaves))
    v = [jax.random.normal(k, leaf.shape) for k, leaf in zip(subkeys, leaves, strict=True)]
    return params, jax.random.normal(keys[1], (num_states, problem.OBSERVATION)), structure.unflatten(v)


def _stack(v: Tree, k: int) -> Tree:
    """k different vectors."""
    return jax.tree.map(lambda x: jnp.stack([jnp.roll(x, 3 * i) for i in range(k)]), v)


def _operations(params: Params) -> int:
    """Multiplications and additions in the matrix products of one H v: for J v and for J' u, each layer twice."""
    sizes = [weights.size for weights, _ in params.layers]
    return 2 * 2 * problem.STATES * (sizes[0] + 2 * sum(sizes[1:]))


def _dot(x: Tree, y: Tree) -> Array:
    return jax.tree.reduce(jnp.add, jax.tree.map(jnp.vdot, x, y))


def _relative(x: Array, y: Array) -> float:
    return float(jnp.linalg.norm(x - y) / jnp.linalg.norm(y))


if __name__ == "__main__":
    _timing.run_directly(
        "Fisher products and conjugate gradient.",
        test_products_agree,
        test_ways_to_form_the_product,
        test_explicit_jacobian,
        test_distance_to_the_floor,
        test_ways_to_run_conjugate_gradient,
    )
