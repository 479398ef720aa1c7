"""What a picture of traffic shows, as plain numbers.

Roads are hundreds of times as long as they are wide, so a scene may be wider than the world: whoever makes it moves
lanes apart.
"""

from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]

LANE = 3.2
"""Metres: the width of SUMO's lanes."""


@dataclass(frozen=True)
class Car:
    """One vehicle."""

    x: float
    y: float
    """Of the middle of its front, in metres."""
    angle: float
    """Radians, counter-clockwise from the x axis."""
    speed: float
    robot: bool = False
    """Whether the agent drives it."""
    late: bool = False
    """Whether it costs something now."""


@dataclass(frozen=True)
class Signal:
    """One light."""

    x: float
    y: float
    state: str
    """Of the links downwards, to the left, upwards, to the right: one letter each, G, y or r."""
    red: tuple[float, float]
    """Seconds for which the vertical and the horizontal direction have been red."""


@dataclass(frozen=True)
class Road:
    """A straight piece of road with lanes side by side."""

    points: tuple[Point, Point]
    """The ends of its middle line, in metres."""
    width: float
    lanes: int = 1
    """Those that are marked; none where lanes come together."""
    end_width: float | None = None
    """At the second point, where it is another one."""


@dataclass(frozen=True)
class View:
    """A part of the world that is shown on its own."""

    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True)
class TrafficScene:
    """Everything that one picture shows."""

    views: tuple[View, ...]
    """One below the other."""
    roads: tuple[Road, ...]
    cars: tuple[Car, ...]
    signals: tuple[Signal, ...] = ()
    limit: float = 0.0
    """Seconds of red, or of being slow, beyond which there is a cost."""
    size: Point = (5.0, 2.0)
    """Length and width of a car as it is drawn."""
    top_speed: float = 30.0
    """The colour of the fastest."""
