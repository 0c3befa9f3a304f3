"""Logs in parts: what a log has gained is a new object, and the manifest names those that count.

An object store knows no append, and a log that grows under one name could be written by two runs at once.
So every part has a name that nobody else uses, and a log is the sequence of parts that the newest manifest names; what
was written by a run that was killed, or overtaken by another, is in no log.
A new part takes up the parts before it that are not larger than itself: a log of n bytes has about log n parts, and
each byte is written about log n times.

Names of objects begin with the number of the run that wrote them: a run removes only what it and those before it have
written, so one that wakes up late harms none that has taken over (`runs.py`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias
from uuid import uuid4

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location


class LogPart(NamedTuple):
    """A part of a log: its name in the folder of the log, and its size."""

    file: str
    size: int


Parts: TypeAlias = tuple[LogPart, ...]
"""A log, as a manifest names it."""


def unique_name(run: int, more: str = "") -> str:
    """A name that no other run and no other attempt uses."""
    return f"{run:06}-{more}{uuid4().hex}"


def run_of(name: str) -> int:
    """The run that wrote an object; -1 for a name of another kind."""
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else -1


def read_parts(folder: Location, parts: Parts, start: int = 0) -> bytes:
    """The bytes of a log, from one on."""
    found: list[bytes] = []
    for part in parts:
        if start < part.size:
            data = durable.read(folder / part.file, start)
            if len(data) != part.size - start:
                hint = "restore the checkpoint from a copy, or begin with a new one"
                raise StateError(f"'{folder / part.file}' is damaged", hint=hint)
            found.append(data)
        start = max(0, start - part.size)
    return b"".join(found)


def grown(folder: Location, parts: Parts, data: bytes, run: int) -> Parts:
    """A log with more bytes behind it; they are durable when the folder is settled."""
    held, whole = list(parts), data
    while held and held[-1].size <= len(whole):
        whole = read_parts(folder, (held.pop(),)) + whole
    return (*held, written(folder, whole, run))


def written(folder: Location, data: bytes, run: int) -> LogPart:
    """An object of its own; it is durable when the folder is settled."""
    name = unique_name(run)
    with durable.writing(folder / name), (folder / name).writer() as writer:
        writer.write(data)
    return LogPart(name, len(data))
