"""Checkpoints: arrays in safetensors, the rest in JSON, each there whole or not at all. Nothing is ever pickled.

A checkpoint is two files, ``update-00000040.safetensors`` and ``update-00000040.json``. The second one is written last,
holds a hash of the first and one of itself, and is what makes it a checkpoint.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import safetensors
import safetensors.numpy

from pcpo import __version__
from pcpo.training.files import RunError, read_json, write_json, write_whole

FORMAT = 1
"""Of the files. Another number means that they cannot be read."""

KEPT = 2
"""How many checkpoints of a run are kept."""

_ABOUT = "pcpo"
"""The entry of a safetensors header that is ours."""

_NAME = re.compile(r"update-(\d{8,})\.json")


class CheckpointError(RunError):
    """A checkpoint cannot be used: damaged, changed, of another run or version. The message names the file."""


class Checkpoint(NamedTuple):
    """The state after so many updates, and what else is needed to go on from there."""

    update: int
    tree: Any
    """A pytree of numpy arrays."""
    meta: dict[str, Any]


def save(directory: Path, update: int, tree: Any, meta: Mapping[str, Any], keep: int = KEPT) -> Path:
    """Writes a checkpoint, then removes all but the newest ones.

    Those of later updates go too: whoever saves after update 20 while there is a checkpoint of update 30 has gone back,
    and what was made from there on is no part of the run any more.

    Args:
        directory: Where checkpoints are; made if missing.
        update: How many updates have been made.
        tree: Any pytree of arrays.
        meta: Values for JSON.
        keep: How many checkpoints may stay, this one included.

    Returns:
        The JSON file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    arrays, record = _paths(directory, update)
    content = to_bytes(tree)
    write_whole(arrays, content)
    about = {"format": FORMAT, "pcpo": __version__, "update": update, "sha256": _sha256(content), **meta}
    write_json(record, {**about, "seal": _seal(about)})
    others = [each for each in updates(directory) if each != update]
    before = [each for each in others if each < update]
    for other in set(others) - set(before[max(0, len(before) + 1 - keep) :]):
        for path in reversed(_paths(directory, other)):
            path.unlink(missing_ok=True)
    _remove_leftovers(directory)
    return record


def updates(directory: Path) -> list[int]:
    """After how many updates there are checkpoints, oldest first."""
    if not directory.is_dir():
        return []
    found = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted(int(match[1]) for match in found if match)


def load(directory: Path, update: int, like: Any) -> Checkpoint:
    """Reads a checkpoint.

    Args:
        directory: Where checkpoints are.
        update: Which one.
        like: A tree of the same structure; of its leaves only shapes and dtypes count.

    Raises:
        CheckpointError: If a file is missing, damaged, changed, or holds something else than is asked for.
    """
    arrays, record = _paths(directory, update)
    meta = _read(record)
    _check_format(meta, str(record))
    if meta.pop("seal", None) != _seal(meta) or meta.get("update") != update:
        raise CheckpointError(f"{record} has been changed since it was written; restore it from a copy")
    try:
        content = arrays.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{arrays} is missing; restore it from a copy") from None
    if _sha256(content) != meta.get("sha256"):
        raise CheckpointError(f"{arrays} is damaged: its hash is not the one in {record.name}; restore it from a copy")
    return Checkpoint(update, from_bytes(content, like, str(arrays)), meta)


def to_bytes(tree: Any) -> bytes:
    """The arrays of a tree as a safetensors file."""
    return safetensors.numpy.save(_arrays(tree))


def to_sealed_bytes(tree: Any, meta: Mapping[str, Any]) -> bytes:
    """The same with values for JSON in its header, and hashes of both."""
    whole = {"format": FORMAT, "pcpo": __version__, **meta, "sha256": _sha256(to_bytes(tree))}
    header = json.dumps({**whole, "seal": _seal(whole)}, allow_nan=False)
    return safetensors.numpy.save(_arrays(tree), {_ABOUT: header})


def about(content: bytes, where: str) -> dict[str, Any]:
    """The values for JSON in what `to_sealed_bytes` gave.

    Raises:
        CheckpointError: If there are none, or they have been changed. The message begins with ``where``.
    """
    try:
        length = int.from_bytes(content[:8], "little")
        found = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_ABOUT])
        seal = found.pop("seal")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found, seal = None, None
    if found is None:
        raise CheckpointError(f"{where} is damaged, or was not written by pcpo; give a file that save() has made")
    _check_format(found, where)
    if seal != _seal(found):
        raise CheckpointError(f"{where} has been changed since it was written; restore it from a copy")
    return found


def from_sealed_bytes(content: bytes, like: Any, where: str) -> Checkpoint:
    """What `to_sealed_bytes` was given.

    Raises:
        CheckpointError: As `about` and `from_bytes`.
    """
    meta = about(content, where)
    tree = from_bytes(content, like, where)
    if meta.get("sha256") != _sha256(to_bytes(tree)):
        raise CheckpointError(f"{where} has been changed since it was written; restore it from a copy")
    return Checkpoint(meta["update"], tree, meta)


def _arrays(tree: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(tree))
    return {_name(path): np.array(leaf, order="C") for path, leaf in leaves}


def from_bytes(content: bytes, like: Any, where: str) -> Any:
    """The tree in a safetensors file, as numpy arrays.

    Raises:
        CheckpointError: If the file is damaged, or holds other arrays than ``like``. The message begins with ``where``.
    """
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError) as error:
        raise CheckpointError(f"{where} is damaged ({error}); restore it from a copy") from None
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = {_name(path): leaf for path, leaf in leaves}
    differing = set(wanted) ^ set(arrays)
    if differing:
        raise CheckpointError(
            f"{where} holds other arrays than this run needs ({', '.join(sorted(differing)[:3])}); it belongs to a run "
            "with another configuration or version of pcpo"
        )
    for name, leaf in wanted.items():
        found = arrays[name]
        if found.shape != tuple(leaf.shape) or found.dtype != leaf.dtype:
            raise CheckpointError(
                f"{where} has {name} as {found.dtype}{list(found.shape)} where this run needs {leaf.dtype}"
                f"{list(leaf.shape)}; it belongs to a run with another configuration"
            )
    return jax.tree.unflatten(structure, [arrays[name] for name in wanted])


def _check_format(meta: Mapping[str, Any], where: str) -> None:
    if meta.get("format") != FORMAT:
        raise CheckpointError(
            f"{where} has format {meta.get('format')!r}, written by pcpo {meta.get('pcpo', 'unknown')}; this is pcpo "
            f"{__version__}, which reads format {FORMAT}: install the version that wrote it"
        )


def _read(record: Path) -> dict[str, Any]:
    try:
        return read_json(record)
    except FileNotFoundError:
        raise CheckpointError(f"{record} is missing; restore it from a copy") from None
    except RunError as error:
        raise CheckpointError(str(error)) from None


def _paths(directory: Path, update: int) -> tuple[Path, Path]:
    stem = f"update-{update:08d}"
    return directory / f"{stem}.safetensors", directory / f"{stem}.json"


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _seal(record: Mapping[str, Any]) -> str:
    """A hash of all that a record holds, as it will be read."""
    return fingerprint(json.loads(json.dumps(record)))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _remove_leftovers(directory: Path) -> None:
    """What a process that was killed while writing has left: temporary files, and arrays without a record."""
    known = {path.name for update in updates(directory) for path in _paths(directory, update)}
    for path in directory.iterdir():
        leftover = path.name.endswith(".tmp") or (path.name.startswith("update-") and path.name not in known)
        if leftover and path.is_file():
            path.unlink(missing_ok=True)


def fingerprint(value: Any) -> str:
    """A short hash of JSON values, to tell whether two runs are the same."""
    return _sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode())[:16]
