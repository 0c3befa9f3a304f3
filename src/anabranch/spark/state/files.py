"""State files: the states of branches between epochs, on disk.

A shard's task writes one file per epoch, with the states of its branches and the elements that wait on disk until
another input has caught up (the *spill*).
A manifest locates the state of each branch; a branch without rows in an epoch keeps its old file, so the number of
shards may change from run to run: any shard finds a state by its file name.

Files have names that no other attempt has and are never changed.
When an epoch's manifest is published, the files that it no longer names are removed
(`spark/checkpoint/manifest.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.parts import unique_name
from anabranch.storage import Location, Writer


class Blob(NamedTuple):
    """Some bytes of a state file, with their checksum."""

    file: str
    offset: int
    length: int
    check: int

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @staticmethod
    def parse(text: str) -> Blob:
        file, offset, length, check = text.split(":")
        return Blob(file, int(offset), int(length), int(check))


@dataclass(frozen=True, slots=True)
class SavedState:
    """The location of a branch's state, and its size."""

    shard: int
    """The shard that wrote it."""
    state: str
    spilled: tuple[str, ...]
    """The spilled elements; they and `state` are blobs as text."""
    held: int
    """The number of items or panes in it."""
    waiting: Mapping[str, int]
    """By input: the items that wait because another input is behind."""
    together: int = 1
    """How many branches share the blob `state`."""

    futures: Mapping[str, str] = field(default_factory=dict)
    """The futures of queries that other branches answer, too, by their keys (`branch/futures.py`)."""

    @property
    def files(self) -> set[str]:
        return {each.partition(":")[0] for each in (self.state, *self.spilled)}

    @property
    def size(self) -> int:
        """Its bytes on disk, or its share of them."""
        spilled = sum(Blob.parse(each).length for each in self.spilled)
        return Blob.parse(self.state).length // self.together + spilled


class StateWriter:
    """Writes the state file of one shard and epoch; the file is created with the first bytes."""

    def __init__(self, folder: Location, epoch: int, shard: int, run: int = 1) -> None:
        self._folder = folder
        self._name = f"{epoch:08}/{unique_name(run, f'{shard:04}-')}"
        self._path = folder / self._name
        self._file: Writer | None = None
        self._offset = 0

    def write(self, data: bytes) -> str:
        """Write a blob; gives its location."""
        with durable.writing(self._path):
            if self._file is None:
                self._file = self._path.writer()
            self._file.write(data)
        found = Blob(self._name, self._offset, len(data), zlib.crc32(data))
        self._offset += len(data)
        return str(found)

    def read(self, ref: str) -> bytes:
        """The bytes of a blob, also of one just written."""
        at = Blob.parse(ref)
        if self._file is None or at.file != self._name:
            return read_blob(self._folder, ref)
        with durable.writing(self._path):
            return _checked(self._path, at, self._file.read(at.offset, at.length))

    def __enter__(self) -> StateWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with durable.writing(self._path):
                self._file.__exit__(kind, error, trace)


def read_blob(folder: Location, ref: str) -> bytes:
    """The bytes of a blob; `StateError` where they are not those written."""
    at = Blob.parse(ref)
    path = folder / at.file
    return _checked(path, at, durable.read_fixed(path, at.offset, at.length))


def _checked(path: Location, at: Blob, data: bytes) -> bytes:
    if len(data) < at.length or zlib.crc32(data) != at.check:
        raise StateError(f"'{path}' is damaged", hint="restore the checkpoint from a copy, or begin with a new one")
    return data
