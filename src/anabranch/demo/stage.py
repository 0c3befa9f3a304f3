"""What the acts of the demo have in common: the shipped queries, and files that appear while an engine reads."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path


def example(name: str) -> str:
    """The text of a shipped query."""
    return files("anabranch").joinpath(f"examples/{name}.xq").read_text("utf-8")


def appear(file: Path, lines: Iterable[str]) -> None:
    """Write a file that is there as a whole or not at all: nobody reads hidden files."""
    fresh = file.with_name(f".{file.name}")
    fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    fresh.rename(file)
