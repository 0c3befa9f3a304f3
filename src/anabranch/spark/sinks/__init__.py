"""Sinks: where answers are delivered besides the answer log.

    Files(path)      one file that grows, a byte-exact prefix of the answer (`growing.py`)
    Parquet(path)    a folder with a file per epoch, for answers that are tables (`parquet.py`, `tables.py`)
    Console(out)     lines for people (`delivery.py`)

A sink is configured by one of these values; `delivery.py` brings it the epochs it is missing.
Files and tables are written exactly once, whenever a process is killed; a console has no position.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeAlias

from anabranch.stream.files import called


@dataclass(frozen=True, slots=True)
class Files:
    """A file that grows."""

    path: Path


@dataclass(frozen=True, slots=True)
class Parquet:
    """A folder of Parquet files."""

    path: Path


@dataclass(frozen=True, slots=True)
class Console:
    """Standard output, or another text stream."""

    out: TextIO | None = None


Sink: TypeAlias = Files | Parquet | Console


def path_of(sink: Sink) -> Path | None:
    """The path that a sink writes to, which no other sink may use."""
    return None if isinstance(sink, Console) else sink.path


def file_of(path: Path, name: str, *, json: bool = False) -> Path:
    """The file that a path means: itself, or within an existing folder the file named after the subscription.

    One whose answer is `json` is called `NAME.jsonl`.
    """
    return called(path, name, ".jsonl" if json else ".xml", "the subscription") if path.is_dir() else path
