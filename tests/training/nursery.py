"""A process that has imported everything and started nothing, so that its children begin to train at once.

Each line on its input is ``DIRECTORY UPDATES``: a child trains there, or goes on, until there are so many updates. The
answers are the child's number, then, when it has ended, how it ended.
"""

import os
import sys
from pathlib import Path

import jax

from pcpo.training import loop
from tests.training.small import small

SEEDS = 2
OFTEN = loop.Manner(checkpoint_every=0.03)


def main(cache: str) -> None:
    """Serves until the input ends."""
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    loop.LOOK_EVERY = 0.01
    for line in sys.stdin:
        directory, updates = line.rsplit(maxsplit=1)
        child = os.fork()
        if child == 0:
            go_on(Path(directory), int(updates))
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def go_on(directory: Path, updates: int) -> None:
    """As a person would: trains where there is nothing, goes on where there is something."""
    if (directory / "config.json").exists():
        loop.resume(directory, OFTEN, updates=updates)
    else:
        loop.train(small(seeds=SEEDS, updates=updates, spectrum_every=0), directory, OFTEN)


if __name__ == "__main__":
    main(sys.argv[1])
