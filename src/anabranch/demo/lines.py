"""Files of lines that appear while an engine reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def appear(file: Path, lines: Iterable[str]) -> None:
    """Write a file that is there as a whole or not at all: nobody reads hidden files."""
    fresh = file.with_name(f".{file.name}")
    fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    fresh.rename(file)
