"""From Gymnasium's spaces to vectors and back: what a policy sees, and what it may send.

Observations of any space that Gymnasium can flatten become vectors, by Gymnasium's own rules: a choice of n as n
numbers one of which is 1, the parts of a Dict in the order of its space. Actions are Box or Discrete.

Actions of a Box. A policy begins with actions around 0, of the size of 1. A component whose two bounds are finite is
therefore sent as a number between -1 and 1, clipped to that, and stretched onto the bounds: -1 is the low one and 1 the
high one. A component with an infinite bound is sent as it is, clipped to the other bound if that is finite.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from jaxtyping import Float

from pcpo.rl.spaces import Box, Discrete
from pcpo.tasks.host import WorldError

NUMBERS = "biuf"
"""The kinds of numpy's dtypes that are real numbers."""


@dataclass(frozen=True)
class Observations:
    """How observations of a space become vectors."""

    space: spaces.Space[Any]
    size: int

    @property
    def vectors(self) -> bool:
        """Whether they are vectors already."""
        return isinstance(self.space, spaces.Box) and len(self.space.shape) == 1

    def encode(self, observation: Any) -> npt.NDArray[Any]:
        """The vector of an observation.

        Raises:
            WorldError: If it is none of the space's. The message lacks a subject.
        """
        if isinstance(self.space, spaces.Box):
            array = np.asarray(observation)
            if array.shape != self.space.shape or array.dtype.kind not in NUMBERS:
                raise WorldError(_misfit(array, self.space))
            return array.ravel()
        try:
            flat = np.asarray(spaces.flatten(self.space, observation))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError) as error:
            raise WorldError(
                f"gave an observation that does not fit its observation_space ({type(error).__name__}: {error}); it "
                f"was {_short(observation)}, and the space is {self.space}"
            ) from None
        if flat.shape != (self.size,) or flat.dtype.kind not in NUMBERS:
            raise WorldError(
                f"gave an observation that flattens to the shape {flat.shape} of {flat.dtype}, where its "
                f"observation_space, {self.space}, has {self.size} numbers; it was {_short(observation)}"
            )
        return flat


def observations_of(space: Any) -> Observations:
    """How observations of a space become vectors.

    Raises:
        ValueError: If they cannot. The message lacks a subject.
    """
    try:
        size = int(spaces.flatdim(space)) if isinstance(space, spaces.Space) and space.is_np_flattenable else None
    except (NotImplementedError, ValueError):
        size = None
    if not size:
        raise ValueError(
            f"has the observation_space {space}, which has no fixed number of numbers; wrap it in a gymnasium "
            "ObservationWrapper that gives a Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
        )
    return Observations(space, size)


@dataclass(frozen=True)
class BoxActions:
    """Actions of a Box; see the module for their bounds."""

    space: spaces.Box

    @property
    def ours(self) -> Box:
        """What a policy sends, in one row."""
        low, high = self._bounds
        scaled = self._scaled
        return Box(
            tuple(np.where(scaled, -1.0, low).tolist()),
            tuple(np.where(scaled, 1.0, high).tolist()),
        )

    def decode(self, actions: Float[np.ndarray, "n k"]) -> npt.NDArray[Any]:
        """What the environments take, in the shape and dtype of their space."""
        low, high = self._bounds
        within = self._stretched(actions).clip(low, high)
        dtype = self.space.dtype
        if dtype.kind in "iu":
            within = np.rint(within)
        return within.astype(dtype).reshape(len(actions), *self.space.shape)

    def _stretched(self, actions: Float[np.ndarray, "n k"]) -> npt.NDArray[Any]:
        """Actions as the environments count them, before they are clipped."""
        low, high = self._bounds
        scaled = self._scaled
        if scaled.all():
            return low + 0.5 * (actions + 1.0) * (high - low)
        with np.errstate(invalid="ignore"):
            return np.where(scaled, low + 0.5 * (actions + 1.0) * (high - low), actions)

    @functools.cached_property
    def _bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        return self.space.low.ravel().astype(np.float64), self.space.high.ravel().astype(np.float64)

    @functools.cached_property
    def _scaled(self) -> npt.NDArray[np.bool_]:
        low, high = self._bounds
        return np.isfinite(low) & np.isfinite(high)


@dataclass(frozen=True)
class DiscreteActions:
    """One of n choices, which the environment may count from another number than 0."""

    space: spaces.Discrete

    @property
    def ours(self) -> Discrete:
        """What a policy sends."""
        return Discrete(int(self.space.n))

    def decode(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the environments take."""
        return np.asarray(actions, np.int64) + int(self.space.start)


Actions = BoxActions | DiscreteActions


def actions_of(space: Any) -> Actions:
    """How a policy acts in a space.

    Raises:
        ValueError: If it cannot. The message lacks a subject.
    """
    if isinstance(space, spaces.Discrete) and space.n >= 2:
        return DiscreteActions(space)
    if isinstance(space, spaces.Box) and space.dtype.kind in "fiu" and math.prod(space.shape) > 0:
        if not np.all(space.low < space.high):
            raise ValueError(
                f"has the action_space {space}, where some low is not below its high; leave such parts out"
            )
        return BoxActions(space)
    raise ValueError(
        f"has the action_space {space}; only Box and Discrete (with two choices or more) can be learnt. Wrap it in a "
        "gymnasium ActionWrapper that has one of them"
    )


def _misfit(array: npt.NDArray[Any], space: spaces.Box) -> str:
    if array.dtype.kind not in NUMBERS:
        return f"gave an observation of the dtype {array.dtype}, which holds no real numbers: {_short(array)}"
    return (
        f"gave an observation of the shape {array.shape}, where its observation_space says {space.shape}; every "
        "observation must have the shape of the space"
    )


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
