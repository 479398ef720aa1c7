"""What the commands share that look at runs: reading them, checking where the result goes, writing it whole."""

import contextlib
import sys
import tempfile
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import tyro

from pcpo.cli.parsing import UsageError, alternatives

if TYPE_CHECKING:
    import matplotlib.figure

    from pcpo.experiments.series import Series

Runs: TypeAlias = Annotated[
    tyro.conf.Positional[tuple[Path, ...]],
    tyro.conf.arg(metavar="DIR...", help="Directories that pcpo train has made."),
]
PICTURES = (".png", ".svg")


def read_runs(directories: Sequence[Path], command: str) -> "list[Series]":
    """The measurements of some runs, named so that they can be told apart."""
    from pcpo.experiments.comparison import misfit
    from pcpo.experiments.series import read_series
    from pcpo.training.run import Run

    if not directories:
        raise UsageError(f"{command} needs the directory of a run; try {command} runs/NAME")
    resolved = [directory.resolve() for directory in directories]
    twice = [given for given, path in zip(directories, resolved, strict=True) if resolved.count(path) > 1]
    if twice:
        raise UsageError(f"{twice[0]} is given twice; give each run once")
    names = [path.name for path in resolved]
    labels = [name if names.count(name) == 1 else str(given) for name, given in zip(names, directories, strict=True)]
    with run_errors_explained():
        found = [read_series(Run.open(path), label) for path, label in zip(directories, labels, strict=True)]
    reason = misfit(found)
    if reason:
        raise UsageError(reason)
    return found


@contextlib.contextmanager
def run_errors_explained() -> Generator[None]:
    """What is wrong with a run's files is one line, and no traceback."""
    from pcpo.training.files import RunError

    try:
        with _damage_noted():
            yield
    except RunError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read ({_reason(error)}); check its permissions") from None


@contextlib.contextmanager
def _damage_noted() -> Generator[None]:
    """A checkpoint that had to be passed over is a note, and no line of Python's."""
    from pcpo.training.run import DamagedCheckpointWarning

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **rest: Any) -> None:
        if issubclass(category, DamagedCheckpointWarning):
            note(str(message))
        else:
            usual(message, category, *where, **rest)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


@contextlib.contextmanager
def world_errors_explained() -> Generator[None]:
    """What an environment does wrong is one line; its own traceback goes before it."""
    from pcpo.tasks.host import WorldError

    try:
        yield
    except WorldError as error:
        for trace in getattr(error, "__notes__", ()):
            print(trace.rstrip(), file=sys.stderr)
        raise UsageError(str(error)) from None


def check_output(path: Path, suffixes: Sequence[str], flag: str = "--out") -> None:
    """Makes sure, before any work is done, that a file can be written there and that its kind is known."""
    if path.is_dir():
        raise UsageError(f"{flag} is {path}, which is a directory; give a file, such as {path / ('x' + suffixes[0])}")
    if path.suffix.lower() not in suffixes:
        kind = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        shown = alternatives([suffix or "no ending" for suffix in suffixes])
        raise UsageError(f"{flag} is {path}, which {kind}; try {shown}")
    with write_errors_explained(path, flag):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass


@contextlib.contextmanager
def write_errors_explained(path: Path, flag: str = "--out") -> Generator[None]:
    """What the file system refuses is the user's to mend."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({_reason(error)}); give another file with {flag}") from None


def write_text(path: Path, text: str, flag: str) -> None:
    """Writes a file whole or not at all."""
    from pcpo.training.files import write_whole

    with write_errors_explained(path, flag):
        write_whole(path, text.encode())


def write_figure(figure: "matplotlib.figure.Figure", path: Path) -> list[Path]:
    """Writes a picture, each file whole or not at all: PNG or SVG by the name, both where it has no ending."""
    from pcpo.experiments import plots
    from pcpo.training.files import write_whole

    wanted = [path] if path.suffix else [path.with_name(path.name + suffix) for suffix in PICTURES]
    with tempfile.TemporaryDirectory() as scratch:
        drawn = {file.suffix: file.read_bytes() for file in plots.save(figure, Path(scratch), "figure")}
    with write_errors_explained(path):
        for file in wanted:
            write_whole(file, drawn[file.suffix.lower()])
    return wanted


def tell_figure(files: Sequence[Path]) -> None:
    """Says where a picture is."""
    others = f" (and {', '.join(file.name for file in files[1:])})" if len(files) > 1 else ""
    print(f"figure   {files[0]}{others}")


def note(text: str) -> None:
    """Something to know that is no reason to stop, on stderr."""
    print(f"pcpo: note: {text}", file=sys.stderr)


@contextlib.contextmanager
def working(text: str) -> Generator[None]:
    """Shows on a terminal that something is being done."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(text) if console.is_terminal else contextlib.nullcontext():
        yield


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table for people; as wide as it needs to be where nobody's terminal limits it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=1000)
    console.print(table)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
