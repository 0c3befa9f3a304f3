"""What the commands print and write in the same way."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from anabranch.errors import UsageError


def print_text(pieces: Iterable[str]) -> None:
    """Print a text that comes in pieces, and end its line."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, each as soon as it is there; they bring their ends along."""
    for line in lines:
        sys.stdout.write(line)
        sys.stdout.flush()


def short(path: Path) -> Path:
    """A path as somebody in the working directory would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def write_picture(picture: str, file: Path) -> None:
    """Write a picture to where the user wants it."""
    try:
        file.write_text(picture, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write '{file}': {error.strerror}") from None
