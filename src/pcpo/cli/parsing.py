"""What all commands share: reading options, and saying in one line what is wrong with them.

A command's options are a frozen dataclass that tyro reads: field, default, range and help stand in one place. Anything
wrong with what the user typed is a `UsageError`: what was given, why it is wrong and what to try.
"""

import contextlib
import difflib
import io
import math
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

Options = TypeVar("Options")


class UsageError(Exception):
    """What the user typed cannot be done. The message is one line: what was given, why it is wrong, what to try.

    Not a ValueError: tyro catches those and draws a box around them.
    """


def number(
    flag: str, kind: type[int] | type[float], low: float | int, high: float | int, advice: str, count: int = 1
) -> Any:
    """How tyro shall read ``count`` numbers between ``low`` and ``high``, both allowed."""

    def read_one(text: str) -> float | int:
        try:
            value = kind(text)
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise UsageError(f"{flag} is {text!r}, which is not {noun}; {advice}") from None
        if not (math.isfinite(value) and low <= value <= high):
            ends = f"{low} and {high}" if kind is int else f"{low:g} and {high:g}"
            raise UsageError(f"{flag} is {text}, but must be between {ends}; {advice}")
        return value

    def show(value: Any) -> list[str]:
        return [f"{each:g}" if isinstance(each, float) else str(each) for each in (value if count > 1 else [value])]

    noun = "INT" if kind is int else "FLOAT"
    return PrimitiveConstructorSpec(
        nargs=count,
        metavar=" ".join([noun] * count),
        instance_from_str=lambda texts: tuple(map(read_one, texts)) if count > 1 else read_one(texts[0]),
        is_instance=lambda value: isinstance(value, tuple if count > 1 else kind),
        str_from_instance=show,
    )


def parse(options: Callable[..., Options], args: Sequence[str], prog: str) -> Options:
    """The options of a command, read by tyro; ``--help`` prints and exits.

    tyro answers a mistake with a box of many lines. Ranges and spelling are therefore checked by us (`number`, and
    the arguments that tyro did not recognise); whatever else it rejects is caught and put on one line.
    """
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed, unknown = tyro.cli(options, args=args, prog=prog, return_unknown_args=True)
    except SystemExit as exit_:
        if not exit_.code:
            raise
        said = _one_line(complaint.getvalue())
        raise UsageError(said or f"{' '.join(args)!r} cannot be read; try {prog} --help") from None
    if unknown and unknown[0].startswith("-"):
        flag = unknown[0].split("=")[0]
        flags = [f"--{name.replace('_', '-')}" for name in vars(parsed)]
        raise UsageError(f"{prog} has no option {flag!r}; {closest(flag, flags)}")
    if unknown:
        raise UsageError(f"{unknown[0]!r} stands where no value is expected; try {prog} --help")
    return parsed


def _one_line(box: str) -> str:
    """The text in one of tyro's boxes, without colours, frame, rules and title.

    A box has a frame with the title in it, or, where the terminal is not UTF-8, a title with a rule below it.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    rows = [row for row in (line.strip("│ \t") for line in plain.splitlines()) if row]
    untitled = rows[1:] if len(rows) > 1 and not rows[1].strip("-") else rows
    text = " ".join(row for row in untitled if not row.startswith(("╭", "╰")) and row.strip("─-"))
    return text[:1].lower() + re.sub(r"\s+", " ", text[1:])


def closest(given: str, valid: Iterable[str]) -> str:
    """What was probably meant, or all there is: the end of an error message."""
    names = list(valid)
    bare = {name.lstrip("-"): name for name in names}  # two dashes would make any two options look alike
    near = [bare[each] for each in difflib.get_close_matches(given.lstrip("-"), bare, n=1)]
    near = near or [name for name in names if given.strip("-") in name]
    return f"did you mean {near[0]}?" if near else f"try {alternatives(names)}"


def alternatives(valid: Iterable[str]) -> str:
    """``a, b or c``."""
    *others, last = valid
    return f"{', '.join(others)} or {last}" if others else last


def check_writable(directory: Path) -> None:
    """Makes the directory, and a file in it, before any time is spent on what goes there."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--out is {directory}, which is a file; give a directory")
    with os_errors_explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass


@contextlib.contextmanager
def removed_if_refused(directory: Path) -> Generator[None]:
    """On an error, directories that were not there before and have nothing in them go again."""
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # one is not empty, or was never made
            for each in new:
                each.rmdir()
        raise


@contextlib.contextmanager
def os_errors_explained(directory: Path) -> Generator[None]:
    """What the file system refuses below ``directory`` is the user's to mend, and no traceback."""
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else directory
        if where != directory and directory not in where.parents and where not in directory.parents:
            raise
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{where} cannot be written ({reason}); give another directory with --out") from None
