"""The point robot: a heading and a place in the plane. It turns, then it moves; there is no physics.

The world that the numbers come from used MuJoCo as a container only: positions were overwritten and the simulation was
never advanced, so its initial velocities stay as they were drawn for the whole episode. They remain a part of the
observation, as a nuisance.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pcpo.rl.spaces import Box

ACTION_MODES = ("clip", "raw")
CLIPPED = Box((-1.0, -0.25), (1.0, 0.25))
"""Forward displacement and turn in radians, each per step."""
UNBOUNDED = Box((-math.inf,) * 2, (math.inf,) * 2)

CENTRE_AHEAD = 0.04258
"""The centre of mass lies this far ahead of the joint, because of the arrow on the robot's back."""
HEIGHT = 0.5
POSITION_NOISE = 0.01
VELOCITY_NOISE = 0.1
OBSERVATION_SIZE = 9


class PointState(NamedTuple):
    """Where the robot is. The centre of mass follows from the rest; it is kept because every step needs it twice."""

    x: Float[Array, ""]
    y: Float[Array, ""]
    heading: Float[Array, ""]
    """In radians, counter-clockwise from the x axis; never wrapped."""
    velocity: Float[Array, " 3"]
    """Drawn at the reset and frozen: it says nothing about motion."""
    centre_x: Float[Array, ""]
    centre_y: Float[Array, ""]


class Stride(NamedTuple):
    """The increments of one step as commanded, before the arena's bounds stopped the robot."""

    dx: Float[Array, ""]
    dy: Float[Array, ""]


def action_space(action_mode: str) -> Box:
    """What a policy may send: the robot's ranges, or anything.

    Raises:
        ValueError: If there is no such mode.
    """
    if action_mode not in ACTION_MODES:
        raise ValueError(f"action_mode is {action_mode!r}; choose one of {', '.join(ACTION_MODES)}")
    return CLIPPED if action_mode == "clip" else UNBOUNDED


def reset(key: Key[Array, ""]) -> PointState:
    """Near the origin, looking along x: each coordinate ~ N(0, 0.01^2), each velocity ~ N(0, 0.1^2)."""
    noise = jax.random.normal(key, (6,))
    x, y, heading = (POSITION_NOISE * noise[i] for i in range(3))
    return _at(x, y, heading, VELOCITY_NOISE * noise[3:])


def move(state: PointState, action: Float[Array, " 2"], space: Box, size: float) -> tuple[PointState, Stride]:
    """Turns by ``action[1]``, then goes ``action[0]`` along the new heading, and stops at the bounds of the arena.

    Args:
        state: Where the robot is.
        action: As the policy chose it.
        space: The action is clipped to these bounds, where they are finite.
        size: The arena is ``[-size, size]`` in both coordinates.
    """
    forward, turn = (_clip(action[i].astype(state.x.dtype), space.low[i], space.high[i]) for i in range(2))
    heading = state.heading + turn
    stride = Stride(jnp.cos(heading) * forward, jnp.sin(heading) * forward)
    x, y = (jnp.clip(old + step, -size, size) for old, step in zip(state[:2], stride, strict=True))
    return _at(x, y, heading, state.velocity), stride


def observe(state: PointState) -> Float[Array, " 9"]:
    """Position and heading (3), the frozen velocities (3), the centre of mass (3)."""
    place = jnp.stack([state.x, state.y, state.heading])
    centre = jnp.stack([state.centre_x, state.centre_y, jnp.full_like(state.x, HEIGHT)])
    return jnp.concatenate([place, state.velocity, centre])


def _at(
    x: Float[Array, ""], y: Float[Array, ""], heading: Float[Array, ""], velocity: Float[Array, " 3"]
) -> PointState:
    ahead_x, ahead_y = CENTRE_AHEAD * jnp.cos(heading), CENTRE_AHEAD * jnp.sin(heading)
    return PointState(x, y, heading, velocity, centre_x=x + ahead_x, centre_y=y + ahead_y)


def _clip(value: Float[Array, ""], low: float, high: float) -> Float[Array, ""]:
    return value if math.isinf(low) and math.isinf(high) else jnp.clip(value, low, high)
