"""What XLA has compiled is kept on the disk, so that the second command of the same kind begins at once."""

import contextlib
import os
from pathlib import Path

SWITCH = "JAX_COMPILATION_CACHE_DIR"
"""jax's own name for the directory. Set by the user, it is left as it is; empty, nothing is kept."""

_SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",  # jax's 1 s would leave out half of what a start compiles
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def keep_compiled() -> None:
    """Tells jax, which is imported later, where to keep it: ``~/.cache/pcpo``, or below ``XDG_CACHE_HOME``.

    Where nothing can be written there, nothing is kept.
    """
    if SWITCH in os.environ:
        return
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pcpo" / "compiled"
        directory.mkdir(parents=True, exist_ok=True)
        if os.access(directory, os.W_OK):
            os.environ.update(
                {SWITCH: str(directory), **{key: os.environ.get(key, _SETTINGS[key]) for key in _SETTINGS}}
            )
