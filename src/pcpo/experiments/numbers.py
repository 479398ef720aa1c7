"""One hand for the numbers behind all figures: JSON that a person can read too."""

import json
import re
from pathlib import Path
from typing import Any


def write(path: Path, contents: dict[str, Any]) -> Path:
    """Writes indented JSON with every list of numbers on a line of its own, and returns the path.

    Raises:
        ValueError: A number is not finite; JSON has no word for it.
    """
    path.write_text(dump(contents), encoding="utf-8")
    return path


def dump(contents: dict[str, Any]) -> str:
    """The text that `write` writes."""
    text = json.dumps(contents, indent=1, allow_nan=False)
    return re.sub(r"\[[^][{}\"]*\]", lambda match: re.sub(r"\s+", " ", match[0]), text) + "\n"
