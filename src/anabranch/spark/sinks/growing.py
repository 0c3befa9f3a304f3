"""A file that grows by whole epochs, and exactly once.

Its position is durable: the subscription whose answer it holds, the next epoch, and the length of the file.
Bytes are written first and the position is moved afterwards; after a kill in between, the file is truncated to the
position and the same bytes are written again.
When a query is changed, the answer so far is moved aside (`vela.xml.3`, after the old subscription's number).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.sinks.parts import GrowingParts
from anabranch.storage import Location
from anabranch.storage.disk import sync


@dataclass(frozen=True, slots=True)
class FilePosition:
    """The position of a file: whose answer it holds, the next epoch, the length of the file."""

    owner: int
    next: int
    length: int


class Growing(Protocol):
    """What grows by whole epochs: a file, or a folder of parts in an object store."""

    next: int
    """The next epoch to deliver."""

    @property
    def path(self) -> Location:
        """Where it is."""

    def begins(self, owner: int) -> bool:
        """Whether it holds nothing of the answer of `owner` yet."""

    def append(self, owner: int, epoch: int, texts: Iterable[str]) -> None:
        """Append the results of an epoch for `owner`."""


def growing(path: Location, record: Location) -> Growing:
    """What grows at a location; `record` is where its position is kept."""
    return GrowingParts(path, record) if path.path is None else GrowingFile(path.path, record)


class GrowingFile:
    """A file that grows by whole epochs; `record` is where its position is kept."""

    def __init__(self, path: Path, record: Location) -> None:
        self._path = path
        self.path = Location.of(path)
        self._record = record
        self.reached = durable.read_record(FilePosition, record) if durable.exists(record) else None
        if self.reached is None and path.exists() and path.stat().st_size:
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it")
        self.next = self.reached.next if self.reached else 0
        """The next epoch to deliver; epochs without results are not recorded."""

    def begins(self, owner: int) -> bool:
        """Whether the file holds nothing of the answer of `owner` yet."""
        return self.reached is None or self.reached.owner != owner or not self.reached.length

    def append(self, owner: int, epoch: int, texts: Iterable[str]) -> None:
        """Append the results of an epoch for `owner`."""
        with durable.writing(self._path):
            start = self._prepared(owner, epoch)
        length = durable.append(self._path, (text.encode() for text in texts), start)
        self._move(FilePosition(owner, epoch + 1, length))

    def _prepared(self, owner: int, epoch: int) -> int:
        """The valid length of the file; the answer of an earlier query moves aside."""
        before = self.reached
        if before is None or before.owner != owner:
            if before is not None:
                move_aside(self._path, before.owner)
            self._move(FilePosition(owner, epoch, 0))  # from now on the file is ours
            return 0
        size = self._path.stat().st_size if self._path.exists() else 0
        if size < before.length:
            raise StateError(f"'{self._path}' has become shorter than what was written to it")
        return before.length

    def _move(self, reached: FilePosition) -> None:
        durable.write_record(self._record, reached)
        self.reached = reached
        self.next = max(self.next, reached.next)


def numbered(owner: int, again: int = 0) -> str:
    """What tells the answers apart that have had one place: the number of the subscription."""
    return f"{owner}.{again}" if again else str(owner)


def move_aside(path: Path, owner: int, again: int = 0) -> Path:
    """Rename the file of an earlier subscription by its number; it is missing if that was done before.

    `again` counts earlier moves for the same subscription.
    """
    aside = path.with_name(f"{path.name}.{numbered(owner, again)}")
    if path.exists():
        if aside.exists():
            raise StateError(f"'{path}' cannot be moved aside: '{aside}' exists", hint="move one of them away")
        path.rename(aside)
    if aside.exists():  # also where it was renamed by a run that was killed before the names were synced
        sync(path.parent)
    return aside
