"""Where trees become vectors, and vectors become unit vectors.

Rules flatten a model once, so that every equation behind them is written on ``[n]`` and ``[m, n]`` arrays as it
stands in the paper, and each step of CG is a few large operations instead of a few per leaf of the network.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from pcpo.core.types import LocalModel, Surrogates, Tree


def as_vectors(model: LocalModel) -> tuple[LocalModel, Callable[[Array], Tree]]:
    """The same model on flat vectors, and the function that turns a vector back into a tree like ``model.g``."""
    g, unravel = ravel_pytree(model.g)
    m = model.num_constraints
    pairs = zip(jax.tree.leaves(model.a), jax.tree.leaves(model.g), strict=True)
    a = jnp.concatenate([leaf.reshape(m, like.size).astype(g.dtype) for leaf, like in pairs], axis=1)
    evaluate = None if model.evaluate is None else _evaluate_on_vectors(model.evaluate, unravel, m, g.dtype)
    fvp = on_vectors(model.fvp, unravel, "fvp")
    return LocalModel(g=g, a=a, b=model.b.astype(g.dtype), fvp=fvp, evaluate=evaluate), unravel


def on_vectors(
    function: Callable[[Tree], Tree], unravel: Callable[[Array], Tree], name: str
) -> Callable[[Array], Array]:
    """A map from trees like g to trees like g, as a map from ``[n]`` to ``[n]``."""

    def flat(vector: Float[Array, " n"]) -> Float[Array, " n"]:
        given = unravel(vector)
        returned = function(given)
        if _shapes(returned) != _shapes(given):
            raise ValueError(
                f"{name} returned a tree of shapes {_shapes(returned)} for one of {_shapes(given)}; "
                "it must return a tree like g"
            )
        return ravel_pytree(returned)[0].astype(vector.dtype)

    return flat


def unit(x: Float[Array, "*batch n"]) -> tuple[Float[Array, "*batch n"], Float[Array, "*batch"]]:
    """``x / |x|`` and ``|x|`` along the last axis, without underflow or overflow; (0, 0) for a zero vector.

    Zero means that not even the largest component is a normal number of the dtype (1e-38 in float32): a scale of
    the arithmetic, not of the problem. Rewards counted in millionths and in millions are treated alike.
    """
    peak = jnp.max(jnp.abs(x), axis=-1)
    usable = peak >= jnp.finfo(x.dtype).tiny
    scaled = x / jnp.where(usable, peak, 1.0)[..., None]
    norm = jnp.sqrt(jnp.sum(scaled * scaled, axis=-1))
    direction = jnp.where(usable[..., None], scaled / jnp.where(usable, norm, 1.0)[..., None], 0.0)
    return direction, jnp.where(usable, norm * peak, 0.0)


class Scaled(NamedTuple):
    """A model on vectors with its lengths taken out, so that no scale of reward or cost can reach the arithmetic.

    The half-space ``a . d + b <= 0`` is the same one after division by ``|a|``.
    """

    model: LocalModel
    """Unit g, unit a_i and ``b_i / |a_i|`` (b_i where a_i is zero)."""
    g_norm: Float[Array, ""]
    a_norms: Float[Array, " m"]


def scaled(model: LocalModel) -> Scaled:
    """Divides g and each half-space of a model on vectors by its length."""
    g, g_norm = unit(model.g)
    a, a_norms = unit(model.a)
    b = model.b / jnp.where(a_norms > 0.0, a_norms, 1.0)
    return Scaled(LocalModel(g=g, a=a, b=b, fvp=model.fvp), g_norm, a_norms)


def ratio(numerator: Float[Array, "..."], denominator: Float[Array, "..."]) -> Float[Array, "..."]:
    """``numerator / denominator``, zero where the denominator is zero."""
    nonzero = denominator != 0.0
    return jnp.where(nonzero, numerator / jnp.where(nonzero, denominator, 1.0), 0.0)


def all_finite(*arrays: Array) -> Bool[Array, ""]:
    """Whether every entry of every array is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in arrays]))


def _evaluate_on_vectors(
    evaluate: Callable[[Tree], Surrogates], unravel: Callable[[Array], Tree], m: int, dtype: jnp.dtype
) -> Callable[[Array], Surrogates]:
    def flat(vector: Float[Array, " n"]) -> Surrogates:
        returned = Surrogates(*(jnp.asarray(x) for x in evaluate(unravel(vector))))
        if (returned.reward.shape, returned.costs.shape, returned.kl.shape) != ((), (m,), ()):
            raise ValueError(
                f"evaluate returned reward {returned.reward.shape}, costs {returned.costs.shape}, "
                f"kl {returned.kl.shape}; reward and kl must be scalars and costs one number for each of the {m} "
                "constraint(s) in b"
            )
        return Surrogates(*(x.astype(dtype) for x in returned))

    return flat


def _shapes(tree: Tree) -> Tree:
    return jax.tree.map(jnp.shape, tree)
