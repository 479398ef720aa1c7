"""What a picture of a task shows, as plain numbers: the tasks fill it in, `pcpo.tasks.draw` paints it."""

from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Sensor:
    """Readings of a fan of equal sectors, from the right edge of the field of view to the left."""

    reach: float
    """Length of a sector: an object at this distance reads 0, one at the agent 1."""
    span: float
    """Angle of the whole fan."""
    apples: tuple[float, ...]
    bombs: tuple[float, ...]
    heading: float | None = None
    """Where its middle points, in radians; None where that is the robot's own heading."""


@dataclass(frozen=True)
class Scene:
    """Everything that one picture shows, in the units of the world."""

    position: Point
    """Centre of the robot."""
    heading: float
    """Direction in which it looks, in radians, counter-clockwise from the x axis."""
    arena: float
    """The robot stays within plus and minus this in both coordinates."""
    view: float
    """A picture shows at least plus and minus this."""
    circle: float | None = None
    """Radius of the circle to run on."""
    safe_x: float | None = None
    """Costs are due where abs(x) reaches this."""
    safe_y: float | None = None
    """Costs are due where abs(y) reaches this."""
    apples: tuple[Point, ...] = ()
    bombs: tuple[Point, ...] = ()
    reach: float | None = None
    """Within this distance of the robot, things are taken."""
    sensor: Sensor | None = None
