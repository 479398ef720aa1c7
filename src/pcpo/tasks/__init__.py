"""Worlds: what an agent does, what it sees, and what it earns and costs. They know nothing of learning.

This file imports nothing, because Gymnasium reads a module of this room whenever it is imported itself. Begin with
`pcpo.tasks.registry`.
"""
