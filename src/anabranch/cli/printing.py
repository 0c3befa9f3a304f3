"""What the commands print and write in the same way."""

from __future__ import annotations

import sys
from collections.abc import Iterable


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
