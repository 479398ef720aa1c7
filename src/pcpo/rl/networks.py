"""A network is two functions; a user's own (flax, equinox, by hand) is another pair of them."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

Params: TypeAlias = Any
"""Any pytree of floating-point arrays."""


class Network(NamedTuple):
    """``params = init(key)``; ``apply(params, inputs [N, i]) -> outputs [N, o]``, both pure."""

    init: Callable[[Key[Array, ""]], Params]
    apply: Callable[[Params, Float[Array, "N i"]], Float[Array, "N o"]]


def mlp(sizes: Sequence[int], activation: Callable[[Array], Array] = jnp.tanh) -> Network:
    r"""A multilayer perceptron with a linear last layer.

    Weights are drawn as in the paper's code, uniform in :math:`\pm\sqrt{6/(\text{fan in} + \text{fan out})}` (Glorot)
    in **all** layers, the last one included; biases start at zero.

    Args:
        sizes: Widths from input to output, two at least.
        activation: Applied after every layer but the last.

    Example:
        >>> import jax
        >>> network = mlp([9, 64, 32, 2])
        >>> params = network.init(jax.random.key(0))
        >>> network.apply(params, jax.numpy.zeros((5, 9))).shape
        (5, 2)
    """
    if len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"sizes is {list(sizes)}; give the widths from input to output, all at least 1")
    shapes = list(pairwise(sizes))

    def init(key: Key[Array, ""]) -> Params:
        keys = jax.random.split(key, len(shapes))
        return [_glorot(k, rows, columns) for k, (rows, columns) in zip(keys, shapes, strict=True)]

    def apply(params: Params, inputs: Float[Array, "N i"]) -> Float[Array, "N o"]:
        x = inputs
        for layer in params[:-1]:
            x = activation(x @ layer["w"] + layer["b"][None, :])
        return x @ params[-1]["w"] + params[-1]["b"][None, :]

    return Network(init, apply)


def _glorot(key: Key[Array, ""], rows: int, columns: int) -> dict[str, Array]:
    limit = math.sqrt(6.0 / (rows + columns))
    return {"w": jax.random.uniform(key, (rows, columns), float, -limit, limit), "b": jnp.zeros(columns, float)}
