"""Worlds: what an agent does, what it sees, and what it earns and costs. They know nothing of learning.

Begin with `pcpo.tasks.registry`; importing `pcpo.tasks.gym` makes all tasks known to Gymnasium.
"""
