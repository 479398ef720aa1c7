"""What the benchmarks need of pytest; the files themselves run without it."""

import pytest


@pytest.fixture
def seconds() -> float:
    """Time for each race. ``python -m benchmarks.<file> --seconds S`` takes another."""
    return 5.0
