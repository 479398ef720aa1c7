"""Worlds on the host: processes that step environments, and what plays whole episodes with them.

`child` and `table` are imported by those processes too, which need to start quickly: no jax there.
"""
