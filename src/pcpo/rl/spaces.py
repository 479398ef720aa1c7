"""What an action may be: a box of real numbers, or one of n choices."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """Real vectors between two bounds, which may be infinite."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        """Checks the bounds against each other."""
        if len(self.low) != len(self.high):
            raise ValueError(
                f"low has {len(self.low)} bounds and high {len(self.high)}; give one of each per dimension"
            )
        if not all(low < high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError(f"low is {self.low} and high {self.high}; every low must be below its high")

    @property
    def size(self) -> int:
        """Dimensions of an action."""
        return len(self.low)


@dataclass(frozen=True)
class Discrete:
    """One of the whole numbers 0 .. n - 1."""

    n: int

    def __post_init__(self) -> None:
        """Checks that there is something to choose."""
        if self.n < 2:
            raise ValueError(f"n is {self.n}, but a choice needs at least 2 alternatives")

    @property
    def size(self) -> int:
        """Numbers that a network must give: one logit per alternative."""
        return self.n
