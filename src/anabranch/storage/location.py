"""Locations: an object or folder of a storage, as a small value that can be compared, sent to tasks and written down.

A location is used like a path: `checkpoint / "manifest"`, and so that code above need not know which storage it is on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from anabranch.storage.disk import DiskStorage
from anabranch.storage.interface import Data, Stat, Storage, Writer
from anabranch.storage.objects import ObjectFile, ObjectStorage, bucket_and_key

DISK = DiskStorage()
_UNSYNCED = DiskStorage(synced=False)


class Location:
    """An object or folder of a storage; a value, which nobody changes.

    Its plain form is what a user writes, so it is no dataclass (`stream/plain.py`).
    """

    __slots__ = ("key", "storage")

    def __init__(self, storage: Storage, key: str) -> None:
        self.storage = storage
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (self.key, self.storage) == (other.key, other.storage)

    def __hash__(self) -> int:
        return hash((self.key, self.storage))

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    @staticmethod
    def of(given: Where) -> Location:
        """A location as a user names it."""
        if isinstance(given, Location):
            return given
        if isinstance(given, str) and "://" in given:
            bucket, key = bucket_and_key(given)
            return Location(ObjectStorage(bucket), key)
        return Location(DISK, str(Path(given).absolute()))

    @staticmethod
    def unsynced(path: Path) -> Location:
        """A file that must survive the end of a process, and no more."""
        return Location(_UNSYNCED, str(path.absolute()))

    def __truediv__(self, name: str) -> Location:
        return Location(self.storage, f"{self.key.rstrip('/')}/{name}" if self.key else name)

    def __str__(self) -> str:
        return self.storage.name(self.key)

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The end of its name from the last dot on."""
        return PurePosixPath(self.name).suffix

    @property
    def stem(self) -> str:
        """Its name without the suffix."""
        return PurePosixPath(self.name).stem

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

    def open(self) -> BinaryIO:
        """Read it as a file, from any position; in an object store each `read` is a request."""
        path = self.path
        return ObjectFile(self.storage, self.key) if path is None else path.open("rb")  # type: ignore[return-value]

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

    def is_folder(self) -> bool:
        """Whether it is a folder: in an object store, one that has something in it."""
        return self.storage.is_folder(self.key)

    def names(self, *, below: bool = False, after: str = "") -> Sequence[str]:
        """The objects in it, in order; with `below`, also those in folders in it, by relative key."""
        return self.storage.names(self.key, below=below, after=after)

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


def resolved(folder: Path, text: str) -> Location:
    """A location as a user names it in a file in a folder: an address, or a path relative to the folder."""
    return Location.of(text if "://" in text else folder.absolute() / text)


if TYPE_CHECKING:
    Where: TypeAlias = Location | Path | str
    """A location as code may name it: one on a disk by its path, and any as a user writes it."""
else:
    Where = Location  # what a value with such a field holds, and what is read back from its plain form
