"""Experiments that train: what they are (`presets`), running them, sharing the work, and the results they leave.

An experiment is a named list of variants, and each variant is a task with settings. Its seeds are trained in fixed
groups, side by side, because the seeds of a group are part of a run's identity. One variant with one group is a unit of
work: a run like any other, made by the same loop, which leaves a small table and a small record among the results.
"""
