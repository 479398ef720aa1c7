"""Real steps on random problems, computed once for all tests that judge them. Seeds were fixed before any run."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcpo.experiments import tabular
from pcpo.experiments.bounds import updates
from pcpo.experiments.tabular import Comparison

COUNT, SEED, HORIZON = 600, 0, 12
KINDS = ("kl", "l2", "random")


class Steps(NamedTuple):
    """What happened in `COUNT` updates; every array has that length. jax's while compiled, numpy's outside."""

    gamma: Any
    delta: Any
    beta: Any
    b: Any
    J_C: Any
    scales: updates.Scales
    predicted_kl: Any
    happened: Comparison


@cache
def cases() -> tuple[updates.Case, jax.Array]:
    """Cases and deltas, log-uniform in [1e-4, 1]."""
    keys = jax.random.split(jax.random.key(SEED), COUNT)
    delta = 10.0 ** jax.random.uniform(jax.random.key(SEED + 1), (COUNT,), minval=-4.0, maxval=0.0)
    return jax.jit(jax.vmap(lambda key: updates.draw_case(key, states=5, actions=3)))(keys), delta


@cache
def steps(kind: str, horizon: int | None = None) -> Steps:
    """PCPO's steps under either projection, or random ones of a length like delta's."""
    given, delta = cases()

    def one(case: updates.Case, delta: jax.Array, noise: jax.Array) -> Steps:
        before = updates.evaluate(case, case.theta, horizon)
        if kind == "random":
            after = updates.evaluate(case, case.theta + 3.0 * jnp.sqrt(delta) * noise, horizon)
            b = case.beta * jnp.sqrt(2.0 * delta * updates.scales(before).s)
            done = updates.Update(updates.scales(before), b, delta, delta, tabular.compare(before, after))
        else:
            done = updates.update(case, delta, kind, horizon)
        return Steps(case.gamma, delta, case.beta, done.b, before.J_C, done.scales, done.predicted_kl, done.happened)

    noise = jax.random.normal(jax.random.key(SEED + 2), given.theta.shape)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(given, delta, noise))
