"""A disk that fails when it is told to: at one of all the things that a process does to files below a directory.

A process that was killed does nothing any more, so after `Killed` everything else fails too: no handler can tidy up.
"""

import errno
import os
import shutil
from pathlib import Path
from typing import Any


class Killed(BaseException):
    """What SIGKILL leaves behind: what has been written so far, and nobody who goes on."""


class Disk:
    """Counts what is done to files below ``directory``, and lets it fail from the ``at``-th time on (None: never).

    Args:
        monkeypatch: Of pytest.
        directory: What is watched; all other files are left alone.
        at: The first thing that fails; writing is then done by half.
        error: A number of `errno`, for a disk that refuses to write but lets go of what there is; None for `Killed`.
    """

    def __init__(self, monkeypatch: Any, directory: Path, at: int | None = None, error: int | None = None) -> None:
        self.directory, self.at, self.error, self.count = directory, at, error, 0
        real_open = Path.open

        def open_(path: Path, mode: str = "r", *args: Any, **rest: Any) -> Any:
            writes = bool(set(mode) & set("wa+")) and path.name != ".lock"
            if writes and path.exists() and self.error is not None:
                pass  # a full disk opens what is there
            elif writes:
                self.act(path)
            file = real_open(path, mode, *args, **rest)
            return _File(self, path, file) if writes and self.watches(path) else file

        monkeypatch.setattr(Path, "open", open_)
        for owner, name, gives_up in [
            (Path, "replace", False),
            (Path, "mkdir", False),
            (os, "fsync", True),
            (Path, "unlink", True),
            (os, "truncate", True),
            (shutil, "rmtree", True),
        ]:
            monkeypatch.setattr(owner, name, self._watched(getattr(owner, name), gives_up))

    def watches(self, path: Path) -> bool:
        """Whether a path is below the directory."""
        return self.directory == path or self.directory in path.parents

    def act(self, path: Any, gives_up: bool = False) -> None:
        """Something is about to be done; ``gives_up`` if it needs no room."""
        if isinstance(path, Path) and not self.watches(path):
            return
        if self.error is not None and gives_up:
            return
        self.count += 1
        if self.at is not None and self.count >= self.at:
            if self.error is None:
                raise Killed
            raise OSError(self.error, os.strerror(self.error), str(path))

    def _watched(self, real: Any, gives_up: bool) -> Any:
        def watched(first: Any, *args: Any, **rest: Any) -> Any:
            if not (real.__name__ == "mkdir" and first.is_dir()):
                self.act(first, gives_up)
            return real(first, *args, **rest)

        return watched


class _File:
    """An open file of a `Disk`."""

    def __init__(self, disk: Disk, path: Path, file: Any) -> None:
        self.disk, self.path, self.file = disk, path, file

    def write(self, content: bytes) -> int:
        """All of it, or half of it."""
        try:
            self.disk.act(self.path)
        except BaseException:
            self.file.write(content[: len(content) // 2])
            self.file.flush()
            raise
        written = self.file.write(content)
        self.file.flush()
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> "_File":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


FULL, READ_ONLY = errno.ENOSPC, errno.EROFS
