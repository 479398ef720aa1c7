"""Memory that was freed is there at once when it is asked for again."""

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, resource, sys
from pcpo.training.memory import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("no glibc")
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
size = 100 * 2**20
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    memory = libc.malloc(size)
    ctypes.memset(memory, 1, size)
    libc.free(memory)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""


def _faults_of_second_use(how: str) -> int:
    run = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=False)
    if run.stderr.strip() == "no glibc":
        pytest.skip("this system has no glibc")
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_freed_memory_is_kept() -> None:
    """100 MB that were freed are used again without a page fault; as usual, every page is a new one."""
    assert _faults_of_second_use("keep") < 10
    assert _faults_of_second_use("as usual") > 1_000
