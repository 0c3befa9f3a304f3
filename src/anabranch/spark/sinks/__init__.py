"""Sinks: where the answer to a subscription goes besides the answer log.

    Files(path)      one file that grows, the front of the answer to the byte (`growing.py`)
    Parquet(path)    a folder with a file per epoch, for answers that are tables (`parquet.py`, `tables.py`)
    Console(out)     lines for whoever looks (`delivery.py`)

A sink is asked for by one of these values; `delivery.py` brings it what it has not had.
Files and tables are written exactly once, whatever is killed when; a console remembers nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeAlias

from anabranch.stream.files import called


@dataclass(frozen=True, slots=True)
class Files:
    """Into a file that grows."""

    path: Path


@dataclass(frozen=True, slots=True)
class Parquet:
    """Into a folder of Parquet files."""

    path: Path


@dataclass(frozen=True, slots=True)
class Console:
    """To standard output, or to another stream of text."""

    out: TextIO | None = None


Sink: TypeAlias = Files | Parquet | Console


def path_of(sink: Sink) -> Path | None:
    """What a sink writes to, which no other may."""
    return None if isinstance(sink, Console) else sink.path


def file_of(path: Path, name: str, *, json: bool = False) -> Path:
    """The file that a path means: itself, or in a folder that is there the one called after the subscription.

    One whose answer is `json` is called `NAME.jsonl`.
    """
    return called(path, name, ".jsonl" if json else ".xml", "the subscription") if path.is_dir() else path
