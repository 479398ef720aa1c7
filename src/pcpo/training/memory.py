"""Memory that a program has used and will use again, kept by the process."""

import ctypes
import functools
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of glibc's ``mallopt``."""
_NEVER = 2**31 - 1
_LARGE = 2**30
"""Bytes; what is larger is mapped and given back each time, as usual."""


@functools.cache
def keep_freed_memory() -> bool:
    """Tells glibc not to give freed memory back to the system; whether it was understood.

    XLA asks for the memory of all temporary arrays of a program anew whenever the program is run, and frees it
    afterwards. What is larger than 32 MB glibc maps each time, and the kernel clears it page by page when it is
    touched. One update of Point-Circle at the paper's scale has 95 MB: 23,000 page faults, an eighth of its time on the
    cores. Threads get their part of the memory when they first ask for some, so this has to come before numpy and jax
    start theirs: afterwards it does little. On a system without glibc nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _NEVER))
    understood = [mallopt(parameter, value) == 1 for parameter, value in settings]
    return all(understood)
