"""What the lights of the grid do when they are asked to switch, and for how long each direction has been red.

Plain arithmetic, without SUMO. A light has two directions: 0 is vertical, 1 is horizontal, and one of them is red.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

VERTICAL_GREEN, HORIZONTAL_GREEN = "GrGr", "rGrG"
VERTICAL_YELLOW, HORIZONTAL_YELLOW = "yryr", "ryry"
_DIRECTION = (VERTICAL_GREEN, HORIZONTAL_GREEN)
_BEFORE_DIRECTION = (HORIZONTAL_YELLOW, VERTICAL_YELLOW)
"""What is shown before a direction becomes green: the other one is yellow."""


@dataclass
class Lights:
    """All lights, as they stand.

    A light that is asked to switch turns its green direction yellow, while the other one stays red; after the yellow
    time the other one becomes green. Requests during yellow are ignored. So green lasts one step at least, and red
    one step more than yellow; there is no time when all are red.
    """

    count: int
    yellow_time: float
    """Seconds."""
    time_step: float
    direction: list[int] = field(init=False)
    """The direction that is green, or will be once yellow is over."""
    yellow: list[bool] = field(init=False)
    timer: list[float] = field(init=False)
    """Seconds of yellow so far. It stands still while no direction is yellow, and begins at zero with the next."""
    red: list[list[float]] = field(init=False)
    """Seconds for which the vertical and the horizontal direction of each light have been red without a break."""

    def __post_init__(self) -> None:
        """All lights begin with vertical green, at rest."""
        self.direction = [0] * self.count
        self.yellow = [False] * self.count
        self.timer = [0.0] * self.count
        self.red = [[0.0, 0.0] for _ in range(self.count)]

    def ask(self, wishes: Sequence[bool]) -> list[tuple[int, str]]:
        """What the lights will show in the coming step, if these are asked to switch.

        Returns:
            The lights that change, each with what it shows from now on.
        """
        changes: list[tuple[int, str]] = []
        for i, wish in enumerate(wishes):
            if self.yellow[i]:
                self.timer[i] += self.time_step
                self.yellow[i] = self.timer[i] < self.yellow_time
                if not self.yellow[i]:
                    changes.append((i, self.shown(i)))
            elif wish:
                self.direction[i] = 1 - self.direction[i]
                self.yellow[i] = True
                self.timer[i] = 0.0
                changes.append((i, self.shown(i)))
        return changes

    def shown(self, i: int) -> str:
        """The state of a light in SUMO's words: downwards, to the left, upwards, to the right."""
        return (_BEFORE_DIRECTION if self.yellow[i] else _DIRECTION)[self.direction[i]]

    def passed(self) -> None:
        """A step has passed: red grows older, everything else is zero. Yellow is not red."""
        for i, ages in enumerate(self.red):
            waiting = self.direction[i] if self.yellow[i] else 1 - self.direction[i]
            ages[waiting] += self.time_step
            ages[1 - waiting] = 0.0
