"""Locations: an object or folder of a storage, as a small value that can be compared, sent to tasks and written down.

A location is used like a path: `checkpoint / "manifest"`, and so that code above need not know which storage it is on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from anabranch.storage.disk import DiskStorage
from anabranch.storage.interface import Data, Stat, Storage, Writer
from anabranch.storage.objects import ObjectStorage, bucket_and_key

DISK = DiskStorage()


@dataclass(frozen=True, slots=True)
class Location:
    """An object or folder of a storage."""

    storage: Storage
    key: str

    @staticmethod
    def of(given: Where) -> Location:
        """A location as a user names it."""
        if isinstance(given, Location):
            return given
        if isinstance(given, str) and "://" in given:
            bucket, key = bucket_and_key(given)
            return Location(ObjectStorage(bucket), key)
        return Location(DISK, str(Path(given).absolute()))

    def __truediv__(self, name: str) -> Location:
        return Location(self.storage, f"{self.key.rstrip('/')}/{name}" if self.key else name)

    def __str__(self) -> str:
        return self.storage.name(self.key)

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """The folder that it is in."""
        return Location(self.storage, self.key.rpartition("/")[0])

    @property
    def path(self) -> Path | None:
        """The path of a location on a disk."""
        return Path(self.key) if isinstance(self.storage, DiskStorage) else None

    # --- objects ------------------------------------------------------------------------------------------

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Its bytes, or a range of them."""
        return self.storage.read(self.key, start, length)

    def stat(self) -> Stat | None:
        """What is known of it; None if there is no such object."""
        return self.storage.stat(self.key)

    def exists(self) -> bool:
        """Whether there is such an object."""
        return self.stat() is not None

    def put(self, data: Data) -> None:
        """Write it, or a new version of it."""
        self.storage.put(self.key, data)

    def create(self, data: Data) -> None:
        """Write it; `FileExistsError` if it exists."""
        self.storage.create(self.key, data)

    def writer(self) -> Writer:
        """Write it piece by piece."""
        return self.storage.writer(self.key)

    def delete(self) -> None:
        """Remove it, if it is there."""
        self.storage.delete([self.key])

    # --- folders ------------------------------------------------------------------------------------------

    def names(self, *, below: bool = False) -> Sequence[str]:
        """The objects in it, in order; with `below`, also those in folders in it, by relative key."""
        return self.storage.names(self.key, below=below)

    def list(self) -> Mapping[str, Stat]:
        """What is known of the objects in it, by name, in order."""
        return self.storage.list(self.key)

    def delete_all(self, names: Collection[str]) -> None:
        """Remove objects in it, by relative key."""
        self.storage.delete([f"{self.key}/{name}" for name in names])

    def settle(self, *folders: str) -> None:
        """Make durable what was written by writers in it, and in these folders in it."""
        self.storage.settle([self.key, *(f"{self.key}/{each}" for each in folders)])

    def sweep(self) -> None:
        """Remove what killed writers have left in it."""
        self.storage.sweep(self.key)


Where: TypeAlias = Location | Path | str
"""A location, as code names it: one on a disk may be a path."""
