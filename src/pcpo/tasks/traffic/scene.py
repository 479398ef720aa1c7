"""What a picture of traffic shows, as plain numbers."""

from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]


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
    """A piece of road with lanes side by side."""

    points: tuple[Point, ...]
    """Its middle line, in metres."""
    width: float
    lanes: int = 1


@dataclass(frozen=True)
class TrafficScene:
    """Everything that one picture shows."""

    roads: tuple[Road, ...]
    cars: tuple[Car, ...]
    signals: tuple[Signal, ...] = ()
    limit: float = 0.0
    """Seconds of red, or of being slow, from which on there is a cost."""
    top_speed: float = 30.0
    """The colour of the fastest."""
