"""A process of its own for some environments: it obeys commands until the process that started it is gone.

Everything that is large goes through a `Table`; a command is one byte, and so is the answer that it has been obeyed.
"""

import contextlib
import fcntl
import json
import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from pcpo.tasks.host import HostWorlds, WorldError
from pcpo.training.host.table import Command, Layout, Table, shared

COMMANDS: dict[bytes, Command] = {b"r": "reset", b"s": "step"}
DONE, FAILED = b".", b"!"


class Order(NamedTuple):
    """What a process is told when it starts, pickled."""

    layout: Layout
    worker: int
    """Its number; it has the environments ``worker, worker + workers, ...``."""
    workers: int
    worlds: bytes
    """``HostTask.worlds``, pickled for itself: whatever that imports is an error of the environment."""


def main(control: int, life: int, memory: int) -> None:
    """Runs until told to stop. The numbers are file descriptors: for commands, for the parent's end, of the table."""
    _end_with_parent(life)
    with socket.socket(fileno=control) as line:
        order: Order = pickle.loads(receive(line))  # noqa: S301 (from the process that started this one)
        table = shared(order.layout, memory)
        mine = np.arange(order.worker, order.layout.environments, order.workers)
        worlds = _answered(line, lambda: pickle.loads(order.worlds)(len(mine)))  # noqa: S301 (as above)
        with contextlib.closing(worlds):
            _serve(line, worlds, table, mine)


def _serve(line: socket.socket, worlds: HostWorlds, table: Table, mine: Any) -> None:
    while (byte := line.recv(1)) in COMMANDS:
        which = np.flatnonzero(table.wanted[mine])
        _answered(line, lambda b=byte, w=which: table.obey(COMMANDS[b], worlds, mine[w], w))


def _answered(line: socket.socket, work: Any) -> Any:
    """Does some work and says that it is done, or what went wrong.

    Then the process ends, since who knows in what state its environments are.
    """
    try:
        result = work()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (it is somebody else's code: all of it is reported)
        send(line, FAILED, json.dumps(explain(error)).encode())
        sys.exit(1)
    line.sendall(DONE)
    return result


def explain(error: BaseException) -> dict[str, Any]:
    """An error in words that can be sent."""
    if isinstance(error, WorldError):
        return {"final": True, "text": str(error), "trace": ""}
    words = _words(error)
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    trace = "".join(traceback.format_exception(error))
    return {"final": False, "text": f"{text}{_place(error.__traceback__)}", "trace": trace}


def _words(error: BaseException) -> str:
    """What an error says of itself, which is somebody else's code too."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return ""


def _place(trace: TracebackType | None) -> str:
    """Where an error was raised."""
    frames = traceback.extract_tb(trace)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def send(line: socket.socket, kind: bytes, content: bytes) -> None:
    """Sends a byte, and content of any length."""
    line.sendall(kind + len(content).to_bytes(8, "little") + content)


def receive(line: socket.socket) -> bytes:
    """The content that `send` sent, after its byte.

    Raises:
        EOFError: If the other side is gone.
    """
    return _exactly(line, int.from_bytes(_exactly(line, 8), "little"))


def _exactly(line: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = line.recv(min(size, 1 << 20))
        if not part:
            raise EOFError("the other side is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _end_with_parent(life: int) -> None:
    """Ends this process and all that it has started as soon as the other end of ``life`` is closed.

    That end is the parent's, and the system closes it however the parent ended. Where the system can send a signal
    then (Linux), it does so even if an environment never gives Python's lock back; elsewhere a thread has to notice.
    """
    if sys.platform == "linux":
        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_kill_when_closed, args=(life,), daemon=True).start()


def _kill_when_closed(life: int) -> None:
    os.read(life, 1)
    os.killpg(0, signal.SIGKILL)
