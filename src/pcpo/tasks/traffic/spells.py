"""For how long vehicles have been slow without a break. Plain arithmetic, without SUMO."""

from collections.abc import Iterable


class Spells:
    """The current spells of all vehicles that are slow now.

    Args:
        slow: Metres per second; a vehicle that reaches it is not slow.
        time_step: Seconds by which a spell grows in a step.
    """

    def __init__(self, slow: float, time_step: float) -> None:
        self.seconds: dict[str, float] = {}
        """By vehicle; who is not slow is not here."""
        self._slow = slow
        self._time_step = time_step

    def passed(self, vehicles: Iterable[tuple[str, float]]) -> None:
        """A step has passed, after which these vehicles are there at these speeds. Whoever is gone is forgotten."""
        before, slow, step = self.seconds, self._slow, self._time_step
        self.seconds = {name: before.get(name, 0.0) + step for name, speed in vehicles if speed < slow}


def over(ages: Iterable[float], limit: float) -> int:
    """How many have lasted longer than the limit; the limit itself is allowed."""
    return sum(age > limit for age in ages)


def just_over(ages: Iterable[float], limit: float, time_step: float) -> int:
    """How many have passed the limit in the last step."""
    return sum(limit < age <= limit + time_step for age in ages)
