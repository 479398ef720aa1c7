"""Measurements behind the design: `make bench`, or one of them alone with `python -m benchmarks.test_rule_overhead`."""
