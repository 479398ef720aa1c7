"""Projection-based constrained policy optimisation: maximise reward while keeping costs under limits."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcpo import rules as rules

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports what the root promises when it is asked for: the command line must start without jax."""
    if name == "rules":
        import pcpo.rules

        return pcpo.rules
    raise AttributeError(f"module 'pcpo' has no attribute {name!r}")
