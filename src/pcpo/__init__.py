"""Projection-based constrained policy optimisation: maximise reward while keeping costs under limits."""

from pcpo import rules as rules

__version__ = "0.1.0"
