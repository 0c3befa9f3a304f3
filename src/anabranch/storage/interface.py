"""The interface of a storage: whole objects under keys, in folders that exist as long as something is in them.

All durable state goes through these few calls, so it may lie on a disk or in an object store.
An object is written whole and is there whole or not at all; it may be replaced, never changed in part.
There is no rename, no append and no link; `create` is the only operation that decides between two writers.

Errors are those of files: `FileNotFoundError` for what is missing, `FileExistsError` where `create` comes second, and
`OSError` with a reason for everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, TypeAlias

Data: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Stat:
    """What is known of an object without reading it."""

    size: int
    version: tuple[int | str, ...]
    """Changes with the content, also under the same name and size."""
    changed: float | None = None
    """When it was changed last, in seconds since 1970, where two changes at one tick of a clock have one version."""


class Writer(Protocol):
    """An object that is being written, piece by piece; as a context, it exists when the context has ended.

    A writer that ends with an error leaves no object, or one that nobody has been told of.
    """

    def write(self, data: Data, /) -> None:
        """Add some bytes."""

    def read(self, start: int, length: int) -> bytes:
        """Some of the bytes written so far."""

    def __enter__(self) -> Writer: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Storage(Protocol):
    """A storage; equal values are the same storage, also in another process."""

    def name(self, key: str) -> str:
        """An object or folder as users write it."""

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object, or a range of them; fewer where the object ends before."""

    def stat(self, key: str) -> Stat | None:
        """What is known of an object; None if there is none."""

    def is_folder(self, key: str) -> bool:
        """Whether there is a folder of this name; in an object store, one that has something in it."""

    def names(self, folder: str, *, below: bool = False, after: str = "") -> Sequence[str]:
        """The objects in a folder, in order; with `below`, also those in folders in it, by relative key.

        With `after`, only those whose names are greater, without a look at the others where that is possible.
        """

    def list(self, folder: str) -> Mapping[str, Stat]:
        """What is known of the objects in a folder, by name, in order."""

    def put(self, key: str, data: Data) -> None:
        """Write an object, or a new version of it; durable when this returns."""

    def create(self, key: str, data: Data) -> None:
        """Write an object that must not exist; of several writers, one succeeds. Durable when this returns."""

    def writer(self, key: str) -> Writer:
        """Write a large object, under a name that nobody else uses; durable when its folder is settled."""

    def delete(self, keys: Collection[str]) -> None:
        """Remove objects; those that are missing are passed over."""

    def settle(self, folders: Collection[str]) -> None:
        """Make durable what writers, also in other processes, have written in these folders."""

    def sweep(self, folder: str) -> None:
        """Remove what killed writers have left in a folder; only for its single writer."""
