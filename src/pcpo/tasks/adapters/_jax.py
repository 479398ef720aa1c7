"""What the adapters of other people's JAX environments share: costs, observations, and states of fixed types.

Their code runs under jax's own rules about dtypes and ranks (`their_rules`), whatever the process is set to, since it
was written for those.
"""

import contextlib
import math
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.adapters import gymnasium_costs
from pcpo.tasks.adapters.gymnasium_costs import CostSource, CostSpec

FARTHEST = 1e30
"""A bound beyond this is none: some write the largest float32 for infinity."""


@contextlib.contextmanager
def their_rules() -> Generator[None]:
    """What most code expects of jax: dtypes and ranks are promoted."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


class Costs(NamedTuple):
    """The costs of a step, by name."""

    sources: dict[str, CostSource]

    @property
    def names(self) -> tuple[str, ...]:
        """One for each cost."""
        return tuple(self.sources)

    def __call__(self, task: str, before: Any, action: Any, after: Any, info: Mapping[str, Any]) -> Float[Array, " m"]:
        """The costs of one step.

        Raises:
            ValueError: If one is missing or is no single number.
        """
        found = [self._one(task, name, before, action, after, info) for name in self.sources]
        return jnp.stack(found) if found else jnp.zeros(0, float)

    def _one(self, task: str, name: str, before: Any, action: Any, after: Any, info: Mapping[str, Any]) -> Array:
        source = self.sources[name]
        if callable(source):
            return single(source(before, action, after, info), float, f"the cost {name!r} of {task}")
        if source not in info:
            raise ValueError(
                f"{task} gives no cost {source!r}: a step reports {_listed(info)}. Name one of these with cost=..., or "
                "give a function, cost=lambda observation, action, next_observation, info: ..., or cost=() for none"
            )
        return single(info[source], float, f"the cost {source!r} of {task}")


def costs_of(cost: CostSpec) -> Costs:
    """The costs that somebody asked for, in the words that serve every kind of environment; functions are in jax.

    Args:
        cost: See `pcpo.tasks.adapters.gymnasium_costs.costs_of`.

    Example:
        >>> costs_of(["heat", "noise"]).names
        ('heat', 'noise')
    """
    return Costs(gymnasium_costs.costs_of(cost).sources)


def single(value: Any, dtype: Any, what: str) -> Array:
    """A number that may have come as an array of one.

    Raises:
        ValueError: If it is more than one.
    """
    array = jnp.asarray(value)
    if array.size != 1:
        raise ValueError(f"{what} has the shape {array.shape}, but must be one number for a step")
    return array.reshape(()).astype(dtype)


def flat(observation: Any) -> Float[Array, " o"]:
    """All numbers of an observation, whatever its parts and their shapes, in one row."""
    leaves = [jnp.ravel(jnp.asarray(leaf)).astype(float) for leaf in jax.tree.leaves(observation)]
    return jnp.concatenate(leaves)


def to_bounds(space: Box, shape: tuple[int, ...], action: Array) -> Array:
    """An action as the environment gets it: within the bounds, in the shape that it expects."""
    low, high = (jnp.asarray(bound, action.dtype) for bound in (space.low, space.high))
    return jnp.clip(action, low, high).reshape(shape)


def box(low: Any, high: Any, shape: tuple[int, ...]) -> Box:
    """A box of any shape as one row of bounds."""
    bounds = [np.broadcast_to(np.asarray(bound, np.float64), shape).ravel().tolist() for bound in (low, high)]
    return Box(*(tuple(x if abs(x) < FARTHEST else math.copysign(math.inf, x) for x in bound) for bound in bounds))


def an_action(space: Box | Discrete) -> Array:
    """Some action, to see what a step gives."""
    return jnp.zeros((), int) if isinstance(space, Discrete) else jnp.zeros(space.size, float)


def horizon_of(name: str, given: int | None, own: int | None, called: str) -> int:
    """Steps after which an episode is cut off.

    Args:
        name: The task's.
        given: What the user says.
        own: What the environment says.
        called: What the environment would call it, with its article.

    Raises:
        ValueError: If neither says it, or it is no number of steps.
    """
    limit = own if given is None else given
    if limit is None:
        raise ValueError(f"{name} has not got {called}, so an episode might never end; give horizon=, such as 500")
    if isinstance(limit, bool) or int(limit) != limit or limit < 1:
        raise ValueError(f"the horizon of {name} is {limit!r}; give a whole number of steps, at least 1")
    return int(limit)


# States of fixed types. A loop on the device needs them: what comes out of a step must be what went in.


def settled(task: str, step: Callable[[Any], Any], state: Any) -> Any:
    """A state after a reset, in types that hold it after a step too: ``time=0`` may be followed by ``time=1.0``.

    Args:
        task: Its name, for messages.
        step: From a state to the next one, with some action.
        state: As the reset made it.
    """
    arrays = jax.tree.map(jnp.asarray, state)
    after = jax.eval_shape(step, arrays)
    _check_parts(task, after, arrays)
    return _cast(arrays, _wider(after, arrays))


def kept(task: str, after: Any, before: Any) -> Any:
    """A state after a step, in the types that it had before.

    Raises:
        ValueError: If that would lose something, or if the two have not the same parts.
    """
    after = jax.tree.map(jnp.asarray, after)
    _check_parts(task, after, before)
    wider = _wider(after, before)
    for (path, new), old in zip(jax.tree.leaves_with_path(wider), jax.tree.leaves(before), strict=True):
        if new != old.dtype:
            raise ValueError(
                f"the state of {task} changes its types at every step: {jax.tree_util.keystr(path)} was "
                f"{old.dtype} and has become {new}; give it one dtype in its reset and in its step"
            )
    return _cast(after, wider)


def _wider(one: Any, other: Any) -> Any:
    """The dtype of each leaf that holds both."""
    with their_rules():
        return jax.tree.map(lambda x, y: y.dtype if _opaque(y) else jnp.promote_types(x.dtype, y.dtype), one, other)


def _cast(state: Any, dtypes: Any) -> Any:
    return jax.tree.map(lambda x, dtype: x if _opaque(x) else x.astype(dtype), state, dtypes)


def _opaque(leaf: Any) -> bool:
    """Whether it is a key of random numbers, which has a type of its own."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _check_parts(task: str, after: Any, before: Any) -> None:
    parts = [{jax.tree_util.keystr(path): jnp.shape(leaf) for path, leaf in jax.tree.leaves_with_path(tree)}
             for tree in (after, before)]  # fmt: skip
    changed = [name for name in {**parts[0], **parts[1]} if parts[0].get(name) != parts[1].get(name)]
    if changed:
        name = changed[0]
        raise ValueError(
            f"the state of {task} has other parts after a step than before it: {name} had the shape "
            f"{parts[1].get(name, 'of nothing')} and has {parts[0].get(name, 'none')}; let its reset make all parts "
            "that its step makes, in the same shapes"
        )


def _listed(info: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, info)) or "nothing"


def ended(value: Any, what: str) -> Bool[Array, ""]:
    """Whether an episode is over; some say it with a number."""
    return single(value, bool, what)
