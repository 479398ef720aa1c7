"""Files that are there whole or not at all, and directories that one process at a time writes to."""

import contextlib
import errno
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not a POSIX system: nobody is kept out
    fcntl = None

NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""What file systems say that know no locks, as on some clusters: nobody is kept out there."""


class RunError(ValueError):
    """A run's files cannot be used as asked. One line: what was found, why that is wrong, what to try."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that whoever reads it, even after a power cut, finds all of it or what was there before."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:  # also Ctrl-C
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON that every program can read: no NaN, no infinity."""
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        RunError: If there is none.
    """
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):  # of json, and of unicode
        raise RunError(f"{path} is damaged: it is not JSON; restore it from a copy") from None
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: it holds no JSON object; restore it from a copy")
    return value


@contextlib.contextmanager
def locked(directory: Path) -> Generator[None]:
    """Keeps other processes from writing to a run. The lock ends with the process, however that ends.

    Raises:
        RunError: If another process holds it.
    """
    if fcntl is None:
        yield
        return
    with (directory / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip()
            by = f"process {who}" if who else "another process"
            raise RunError(
                f"{directory} is being written by {by}; wait for it or stop it, or use another directory"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
