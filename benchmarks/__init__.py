"""Measurements behind the design: `make bench`, or one of them alone with `python -m benchmarks.test_rule_overhead`."""

from pcpo.training.memory import keep_freed_memory

keep_freed_memory()  # as the command line does, before anything imports numpy
