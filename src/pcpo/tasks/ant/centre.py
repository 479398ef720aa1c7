"""Where the whole robot's centre of mass is and how fast it moves, for many robots at once.

MuJoCo knows both, but only of the state that a step began with; asking it for those of the new state costs an eighth of
the step (`benchmarks/test_ant.py`). The robot is simple enough for writing them down: a ball, and four legs of a fixed
thigh, a shin that turns about the vertical of the ball, and a foot that bends down from it. The numbers are MuJoCo's up
to rounding (tests/tasks/test_ant.py).

Every robot's numbers are the same to the bit, however many there are beside it: each operation works on single
elements of contiguous arrays, and sums are written out.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

LINK = 0.2 * math.sqrt(2)
"""Length of a thigh and of a shin; a foot is twice as long."""
RADIUS = 0.08
"""Of all links, which are rounded at their ends."""
BALL = 0.25
"""Radius of the torso."""
DENSITY = 5.0

DIRECTION = math.pi * np.array([[0.25], [0.75], [-0.75], [-0.25]])
"""Of each leg in the frame of the torso, counter-clockwise from its x axis, when the angle of its hip is zero."""
BEND = np.array([[-1.0], [1.0], [1.0], [-1.0]])
"""Whether a foot goes up (1) or down (-1) when the angle of its ankle grows."""
SIGNS, OFFSETS = np.stack([np.ones_like(BEND), BEND]), np.stack([DIRECTION, np.zeros_like(BEND)])


def capsule_mass(length: float) -> float:
    """Of a link, in kilograms: a cylinder and two half balls."""
    return DENSITY * math.pi * RADIUS**2 * (length + 4 / 3 * RADIUS)


LINK_MASS, FOOT_MASS = capsule_mass(LINK), capsule_mass(2 * LINK)
TORSO_MASS = DENSITY * 4 / 3 * math.pi * BALL**3
MASS = TORSO_MASS + 4 * (2 * LINK_MASS + FOOT_MASS)

# The centre of mass in the torso's frame is a sum over legs of e (OUT + REACH cos(ankle)) + z BEND REACH sin(ankle),
# where e is the direction of the shin and z the vertical. What depends on no angle, the thighs and the hips' places,
# cancels.
OUT = (LINK_MASS * LINK / 2 + FOOT_MASS * LINK) / MASS
REACH = FOOT_MASS * LINK / MASS


class Centre(NamedTuple):
    """Centre of mass of n robots."""

    place: Float[np.ndarray, "3 n"]
    """In metres."""
    velocity: Float[np.ndarray, "3 n"]
    """In metres per second."""


@np.errstate(invalid="ignore", over="ignore")  # the state of a robot that came apart gives a worthless centre
def centre_of_mass(qpos: Float[np.ndarray, "n 15"], qvel: Float[np.ndarray, "n 14"]) -> Centre:
    """From MuJoCo's coordinates, whose quaternions need not be of length 1."""
    q, v = np.ascontiguousarray(qpos.T), np.ascontiguousarray(qvel.T)
    local, local_rate = _in_torso(_each_leg(q[7:]), _each_leg(v[6:]))
    # The torso's angular velocity is given in its own frame.
    moved = _cross(v[3:6], local) + local_rate
    origin, both = np.stack([q[:3], v[:3]], axis=1), np.stack([local, moved], axis=1)
    centre = origin + _rotate(q[3:7], both)
    return Centre(place=centre[:, 0], velocity=centre[:, 1])


def _each_leg(joints: Float[np.ndarray, "8 n"]) -> Float[np.ndarray, "2 4 n"]:
    """Hips and ankles, apart; contiguous, because functions of strided arrays may round in another way."""
    return np.ascontiguousarray(joints.reshape(4, 2, -1).swapaxes(0, 1))


def _in_torso(
    angles: Float[np.ndarray, "2 4 n"], rates: Float[np.ndarray, "2 4 n"]
) -> tuple[Float[np.ndarray, "3 n"], Float[np.ndarray, "3 n"]]:
    """The centre of mass in the frame of the torso, and the rate at which it moves there."""
    angles, (turning, bending) = SIGNS * angles + OFFSETS, SIGNS * rates
    (x, cos_ankle), (y, sin_ankle) = np.cos(angles), np.sin(angles)
    ahead, up = REACH * cos_ankle, REACH * sin_ankle
    out = OUT + ahead
    around, outwards = out * turning, -up * bending
    place = (x * out, y * out, up)
    rate = (x * outwards - y * around, y * outwards + x * around, ahead * bending)
    sums = _sum(np.stack(place + rate, axis=1))
    return sums[:3], sums[3:]


def _sum(four: Float[np.ndarray, "4 *rest"]) -> Float[np.ndarray, "*rest"]:
    """In one order, however many there are of them."""
    return (four[0] + four[1]) + (four[2] + four[3])


def _rotate(quaternion: Float[np.ndarray, "4 n"], vectors: Float[np.ndarray, "3 k n"]) -> Float[np.ndarray, "3 k n"]:
    """The vectors, turned as the quaternions say once they have been scaled to length 1."""
    real, axis = quaternion[0], quaternion[1:, None]
    length2 = _sum(quaternion * quaternion)
    once = _cross(axis, vectors)
    return vectors + (2.0 / length2) * (real * once + _cross(axis, once))


def _cross(a: Float[np.ndarray, "3 *#n"], b: Float[np.ndarray, "3 *#n"]) -> Float[np.ndarray, "3 *#n"]:
    """The cross product; numpy's own is several times slower."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
