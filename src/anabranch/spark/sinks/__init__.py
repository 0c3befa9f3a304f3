"""Sinks: where answers are delivered besides the answer log.

    Files(path)      one file that grows, a byte-exact prefix of the answer (`growing.py`)
    Parquet(path)    a folder with a file per epoch, for answers that are tables (`parquet.py`, `tables.py`)
    Console(out)     lines for people (`delivery.py`)

A sink is configured by one of these values; `delivery.py` brings it the epochs it is missing.
Files and tables are written exactly once, whenever a process is killed; a console has no position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO, TypeAlias

from anabranch.storage import Location, Where
from anabranch.stream.files import called


@dataclass(frozen=True, slots=True)
class Files:
    """A file that grows; in an object store, a folder of parts."""

    path: Where

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Location.of(self.path))

    @property
    def at(self) -> Location:
        return Location.of(self.path)


@dataclass(frozen=True, slots=True)
class Parquet:
    """A folder of Parquet files."""

    path: Where

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Location.of(self.path))

    @property
    def at(self) -> Location:
        return Location.of(self.path)


@dataclass(frozen=True, slots=True)
class Console:
    """Standard output, or another text stream."""

    out: TextIO | None = None


Sink: TypeAlias = Files | Parquet | Console


def path_of(sink: Sink) -> Location | None:
    """The path that a sink writes to, which no other sink may use."""
    return None if isinstance(sink, Console) else sink.at


def file_of(path: Where, name: str, *, json: bool = False) -> Location:
    """The file that a path means: itself, or within an existing folder the file named after the subscription.

    One whose answer is `json` is called `NAME.jsonl`.
    """
    at = Location.of(path)
    if at.path is None or not at.is_folder():
        return at
    return Location.of(called(at, name, ".jsonl" if json else ".xml", "the subscription"))
