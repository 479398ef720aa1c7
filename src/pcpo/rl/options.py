"""What can be chosen about an update: numbers, which are traced, and choices, which are static."""

from dataclasses import dataclass, field
from typing import NamedTuple

from jaxtyping import Array, Float

from pcpo.rl.critics import FitOptions
from pcpo.rl.linear_features import LinearOptions

SEVERAL = ("cyclic", "dykstra")
"""How PCPO can project onto several constraints."""

ALGORITHMS = (
    "pcpo-kl",
    "pcpo-l2",
    "pcpo-adaptive",
    "cpo",
    "pdo",
    "fpo",
    "trpo",
    "pcpo-kl-flipped",
    "pcpo-l2-flipped",
)
"""The update rules by the names they have on the command line. The last two have the sign that public copies of the
authors' optimizer have, and are there for one experiment."""


class Hyper(NamedTuple):
    """The numbers of an update. They are traced: another value needs no other program."""

    delta: Array
    """KL radius of the reward step."""
    gamma: Array
    """Discount of the reward."""
    gae_lambda: Array
    limits: Float[Array, " m"]
    """h, per episode."""
    cost_discounts: Float[Array, " m"]
    cost_gae_lambdas: Float[Array, " m"]
    max_kl: Array
    """Largest predicted KL of a whole PCPO step; infinite for none."""
    damping: Array
    """Multiple of the identity in H, for the policy and the critics."""
    critic_radius: Array
    """KL radius of one step of a critic."""
    learning_rate: Array
    """PDO's beta."""
    multiplier: Array
    """FPO's lambda, and PDO's first one."""


@dataclass(frozen=True)
class Options:
    """The choices of a learner. They are static: another choice is another program."""

    algorithm: str = "pcpo-kl"
    several: str = "cyclic"
    """How PCPO projects onto several constraints."""
    line_search: bool = True
    """Whether CPO backtracks."""
    cg_iterations: int = 10
    """Steps of conjugate gradient for the policy, at most."""
    fisher_fraction: float = 0.2
    """Part of the rows of a batch on which H is measured, so that their number is fixed. Where some rows were not
    played it is more than that part of the steps, and above all of them some count twice."""
    critic: FitOptions | LinearOptions = field(default_factory=FitOptions)
    """Whether critics are networks or linear functions of features, and how they are fitted."""
    bootstrap: bool = False
    """Whether the reward of an episode that was cut off goes on with its critic's estimate of the last observation."""
    bootstrap_costs: bool = False
    """The same for the costs, of which only those with a discount below 1 have a tail."""
    normalize_batches: int = 0
    """Batches whose observations enter the running statistics; 0 leaves observations as they are."""
    spectrum_every: int = 10
    """Updates between two measurements of the ends of H's spectrum, and of what half of a batch confirms; 0: none."""
    spectrum_products: int = 20
    """Products with H that such a measurement spends."""

    def __post_init__(self) -> None:
        """Checks the choices."""
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {self.algorithm!r}; pass one of {', '.join(ALGORITHMS)}")
        if self.several not in SEVERAL:
            raise ValueError(f"several is {self.several!r}; pass one of {', '.join(SEVERAL)}")
        parts, counts = self._parts_and_counts()
        for name, part in parts.items():
            if not 0.0 < part <= 1.0:
                raise ValueError(f"{name} is {part}, but a part of the batch is above 0 and at most 1; try 0.2")
        for name, (count, least) in counts.items():
            if count < least:
                raise ValueError(f"{name} is {count}, but must be at least {least}")

    def _parts_and_counts(self) -> tuple[dict[str, float], dict[str, tuple[int, int]]]:
        """Parts of a batch, and counts with the least that is allowed; those of the critics where they are networks."""
        parts = {"fisher_fraction": self.fisher_fraction}
        counts = {
            "cg_iterations": (self.cg_iterations, 1),
            "normalize_batches": (self.normalize_batches, 0),
            "spectrum_every": (self.spectrum_every, 0),
            "spectrum_products": (self.spectrum_products, 1),
        }
        if isinstance(self.critic, FitOptions):
            parts["critic.fraction"] = self.critic.fraction
            counts |= {"critic.steps": (self.critic.steps, 1), "critic.cg_iterations": (self.critic.cg_iterations, 1)}
        return parts, counts
