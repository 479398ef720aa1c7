"""Projection-based constrained policy optimisation: maximise reward while keeping costs under limits."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcpo import rules as rules
    from pcpo.rl.networks import Network as Network
    from pcpo.training.agents import CPO as CPO
    from pcpo.training.agents import FPO as FPO
    from pcpo.training.agents import PCPO as PCPO
    from pcpo.training.agents import PDO as PDO
    from pcpo.training.agents import TRPO as TRPO
    from pcpo.training.config import Constraint as Constraint
    from pcpo.training.programs import Networks as Networks

__version__ = "0.1.0"
__all__ = ["CPO", "FPO", "PCPO", "PDO", "TRPO", "Constraint", "Network", "Networks", "__version__", "rules"]


def __getattr__(name: str) -> Any:
    """Imports what the root promises when it is asked for: the command line must start without jax."""
    if name == "rules":
        import pcpo.rules

        return pcpo.rules
    if name == "Constraint":
        from pcpo.training.config import Constraint

        return Constraint
    if name == "Network":
        from pcpo.rl.networks import Network

        return Network
    if name in __all__ and not name.startswith("_"):
        from pcpo.training import agents

        return getattr(agents, name)
    raise AttributeError(f"module 'pcpo' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to find, also what has not been imported yet."""
    return sorted({*globals(), *__all__})
