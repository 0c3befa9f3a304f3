"""The files and folders that a run reads and writes: no two uses may conflict.

A sink in the folder of a stream would be read as part of it, dead letters written over a query would destroy it, and
a file that two sinks write would be the answer of neither.
Each file is claimed for one use, and conflicting claims are refused before anything is written.
A file is known by its identity and not its spelling: `o.xml`, `out/../o.xml`, a symbolic link and a hard link are one.

Names of subscriptions and queries become file names only where they are valid ones.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from anabranch.errors import UsageError
from anabranch.storage import Location, Where
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.visible import visible

_LONGEST = 200
"""The most bytes of a name that becomes a file name: file systems take 255, and suffixes are added."""

DEAD_LETTERS = "the file for dead letters"
LATE_ITEMS = "the file for late items"

_Identity: TypeAlias = tuple[int | str, ...]
"""The identity of a file: its number on its device; if it does not exist yet, its folder and name."""


class FileConflict(UsageError):
    """Two uses of a file conflict; `use` is the one that has to change."""

    def __init__(self, use: str, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.use = use


@dataclass(frozen=True)
class Claim:
    """A file or folder that is read or written, and its use: `the sink of 'vela'`."""

    path: Where
    use: str
    whole: bool = False
    """It is a folder, and all its content belongs to this use."""

    @cached_property
    def line(self) -> list[_Identity]:
        """The file and the folders around it, from itself to the root; in an object store, by their names."""
        at = Location.of(self.path)
        if at.path is None:
            bucket, *parts = str(Location(at.storage, "")), *at.key.split("/")
            return [(bucket, *parts[:size]) for size in range(len(parts), -1, -1)]
        real = Path(os.path.realpath(at.path))
        found: list[_Identity] = []
        for each in reversed((real, *real.parents)):
            try:
                status = os.stat(each)
                found.append((status.st_dev, status.st_ino))
            except OSError:
                found.append((*(found[-1] if found else ()), each.name))
        return found[::-1]

    @property
    def identity(self) -> _Identity:
        return self.line[0]


def stream_claims(streams: Collection[Source]) -> list[Claim]:
    """The claims of streams; those that are answers, or are pushed, read files of the run, and topics are no files."""
    named = (source for source in streams if not source.answer and source.http is None and source.topic is None)
    both = ((source.name, path) for source in named for path in source.partitions)
    return [Claim(path, stream_use(name), whole=_may_be_folder(path)) for name, path in both]


def _may_be_folder(path: Location) -> bool:
    """Whether a path is a folder; in an object store, anything could become one."""
    return path.path is None or path.is_folder()


def document_claims(documents: Mapping[str, DocumentSource]) -> list[Claim]:
    """The claims of the documents behind `doc()`."""
    return [Claim(each.path, document_use(name)) for name, each in documents.items()]


def document_use(name: str) -> str:
    """How messages name the use of a document's file."""
    return f"the document '{name}'"


def stream_use(name: str) -> str:
    """How messages name the use of a stream's files."""
    return f"the stream '{name}'"


def check_claims(
    read: Sequence[Claim],
    written: Sequence[Claim],
    *,
    state: Claim | None = None,
    fed: Collection[tuple[str, str]] = (),
) -> None:
    """Refuse conflicting reads and writes; `FileConflict` names both uses.

    `state` is the folder of the run's own state, in which nothing else may lie.
    `fed` are pairs of uses of which one writes on purpose what the other reads.
    """
    owned = [*written, *([state] if state else [])]
    held: dict[_Identity, Claim] = {}
    for each in owned:
        other = held.setdefault(each.identity, each)
        if other is not each:
            raise _twice(other, each)
    folders = {each.identity: each for each in owned if each.whole}
    for each in (*written, *read):
        around = next((folders[place] for place in each.line if place in folders and folders[place] is not each), None)
        if around is not None:
            raise _inside(each, around)
    sources = {each.identity: each for each in read if each.whole}
    for each in written:
        around = next((sources[place] for place in each.line if place in sources), None)
        if around is not None:
            raise FileConflict(
                each.use,
                f"{each.use} cannot be '{each.path}': it lies in the folder that {around.use} reads",
                hint="write to a place outside of it, or the stream reads what is written",
            )
    for reader in read:
        for place in (reader.identity, *_linked(reader, held)):
            writer = held.get(place)
            if writer is not None and (reader.whole or (writer.use, reader.use) not in fed):
                what = f"a file of {reader.use}, too" if reader.whole else reader.use
                message = f"{writer.use} cannot be '{writer.path}': that is {what}"
                raise FileConflict(writer.use, message, hint="write to another file")


def _linked(reader: Claim, held: Collection[_Identity]) -> Iterator[_Identity]:
    """The files in a folder that is read which are also written, under other names."""
    folder = Location.of(reader.path).path
    if not reader.whole or not held or folder is None:
        return
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue  # no stream reads it
                if entry.is_symlink():
                    yield Claim(Path(entry.path), reader.use).identity
                elif (place := (reader.identity[0], entry.inode())) in held:
                    yield place
    except OSError:
        return  # its reader reports the error


def _twice(one: Claim, other: Claim) -> FileConflict:
    sinks = one.use.startswith("the sink of ") and other.use.startswith("the sink of ")
    whom = (
        f"two sinks write to it, {one.use.removeprefix('the sink of ')} and {other.use.removeprefix('the sink of ')}"
        if sinks
        else f"by {one.use} and by {other.use}"
    )
    message = f"'{other.path}' would be written twice over: {whom}"
    return FileConflict(other.use, message, hint="give each a file of its own")


def _inside(each: Claim, around: Claim) -> FileConflict:
    return FileConflict(
        each.use,
        f"{each.use} cannot be '{each.path}': it lies in '{around.path}', {around.use}",
        hint="that folder is for nothing else",
    )


# --- names --------------------------------------------------------------------------------------------------


def called(folder: Path | Location, name: str, suffix: str, what: str) -> Path | Location:
    """The file in a folder that is named after something; refused where that would be outside the folder."""
    if not is_file_name(name):
        raise UsageError(f"{what} '{name}' cannot give its name to a file in '{folder}'", hint="name the file itself")
    return folder / f"{name}{suffix}"


def is_file_name(name: str) -> bool:
    """Whether a name is a valid file name, in its folder, on one line, and on every system."""
    if name in ("", ".", "..") or any(each in name for each in "/\\\0") or visible(name) != name:
        return False
    return len(name.encode()) <= _LONGEST


def is_text(name: str) -> bool:
    """Whether a name can be encoded: it has no surrogates."""
    return not any("\ud800" <= each <= "\udfff" for each in name)


def check_name(name: str, what: str) -> None:
    """Refuse a name that cannot be stored."""
    if not is_text(name):
        raise UsageError(f"{what} cannot be called '{name}'", hint="the name has halves of characters")
