"""Pictures become a film in a file."""

import io
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pcpo.training.files import write_whole

Picture = npt.NDArray[np.uint8]
"""``[height, width, 3]``."""

LAST = 1.5
"""Seconds for which the last picture of a GIF stays before it begins again."""
COLOURS = 256


def save_animation(frames: Iterable[Picture], path: str | Path, fps: int = 10) -> Path:
    """Writes a film, whole or not at all. The name decides: .gif always works, .mp4 needs ffmpeg.

    Args:
        frames: Pictures of one size; they are taken one by one.
        path: Where to. Missing directories are made, an existing file is replaced.
        fps: Pictures per second.

    Returns:
        The path.

    Raises:
        ValueError: If the name ends in something else, there is no picture, or ffmpeg is missing or fails.
    """
    path = Path(path)
    encode = checked_format(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, encode(iter(frames), fps))
    return path


def checked_format(path: Path) -> Callable[[Iterable[Picture], int], bytes]:
    """What encodes a film of that name; so that a wrong name is found before anything has been drawn.

    Raises:
        ValueError: If nothing does.
    """
    kind = path.suffix.lower()
    if kind not in _FORMATS:
        raise ValueError(f"{path.name} ends in {kind or 'nothing'}; choose a name that ends in .gif or .mp4")
    if kind == ".mp4" and shutil.which("ffmpeg") is None:
        raise ValueError(f"{path.name} needs ffmpeg, which is not installed; choose a name that ends in .gif")
    return _FORMATS[kind]


def _gif(frames: Iterable[Picture], fps: int) -> bytes:
    """With one palette for each picture: flat colours need few, and text stays smooth."""
    from PIL import Image

    pictures = [Image.fromarray(frame).quantize(COLOURS, dither=Image.Dither.NONE) for frame in frames]
    if not pictures:
        raise ValueError("there are no pictures to make a film of; play at least one step")
    durations = [round(1000 / fps)] * (len(pictures) - 1) + [round(1000 * LAST)]
    content = io.BytesIO()
    pictures[0].save(content, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    return content.getvalue()


def _mp4(frames: Iterable[Picture], fps: int) -> bytes:
    """H.264 that browsers play, through the ffmpeg program: raw pictures in, a film in pieces out."""
    pictures = [np.ascontiguousarray(frame) for frame in frames]
    if not pictures:
        raise ValueError("there are no pictures to make a film of; play at least one step")
    height, width, _ = pictures[0].shape
    source: list[Any] = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(fps), "-i", "-"]
    target = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-f", "mp4", "-movflags", "frag_keyframe+empty_moov", "-"]
    command = ["ffmpeg", "-loglevel", "error", *source, *target]
    done = subprocess.run(command, input=b"".join(p.tobytes() for p in pictures), capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise ValueError(f"ffmpeg failed with code {done.returncode} ({reason[-1]}); choose a name that ends in .gif")
    return done.stdout


_FORMATS: dict[str, Callable[[Iterable[Picture], int], bytes]] = {".gif": _gif, ".mp4": _mp4}
