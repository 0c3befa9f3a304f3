"""What is durable is complete or absent, never half written, and survives kill -9 and a power cut.

Two ways to write are enough for a checkpoint: `replace` (a new version instead of the old) and `create` (what must not
exist yet: of two runs that try, one wins); where they write is a location on any storage.
`append` is for files of the user's that grow, which are on a disk.
All of them return when the bytes and the name are on the disk.
Records are JSON followed by a checksum, so a damaged record is detected and named.
A full disk raises `DiskFull` and leaves what was durable before untouched.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anabranch.errors import DiskFull, StateError
from anabranch.storage import Location, Where, cache
from anabranch.storage.disk import make_folder, sync
from anabranch.stream.plain import from_plain, to_plain

T = TypeVar("T")

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing(where: Where) -> Iterator[None]:
    """Translate errors of the operating system while writing."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            hint = "make room and start again: it goes on where it was"
            raise DiskFull(f"the disk is full: cannot write '{where}'", hint=hint) from None
        raise StateError(f"cannot write '{where}': {error.strerror or error}") from None


def replace(where: Where, data: bytes) -> None:
    """Write an object, or a new version of it, atomically."""
    with writing(where):
        Location.of(where).put(data)


def create(where: Where, data: bytes) -> bool:
    """Write an object that must not exist; of several writers, one succeeds, and the others get False."""
    with writing(where):
        try:
            Location.of(where).create(data)
        except FileExistsError:
            return False
    return True


def publish(where: Where, data: bytes) -> None:
    """Write an object that must not exist, since nobody else writes there."""
    if not create(where, data):
        raise StateError(f"'{where}' exists: another run is at work on this checkpoint")


def append(path: Path, data: Iterable[bytes], at: int, *, synced: bool = True) -> int:
    """Write after the first `at` bytes of a file, dropping incomplete bytes there; gives the new length.

    What is not `synced` survives the end of the process only.
    """
    with writing(path):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.truncate(at)
            file.writelines(data)
            file.flush()
            if synced:
                os.fsync(file.fileno())
            length = file.tell()
        if not at and synced:  # who has made the file may have been killed before its name was synced
            make_folder(path.parent)
            sync(path.parent)
    return length


def sealed(value: Any) -> bytes:
    """A value as JSON, followed by its checksum on a line."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return data + b"\n" + digest(data).encode() + b"\n"


@contextmanager
def reading(where: Where) -> Iterator[None]:
    """Translate errors of the operating system while reading."""
    try:
        yield
    except OSError as error:
        raise StateError(f"cannot read '{where}': {error.strerror or error}") from None


def read(where: Where, start: int = 0, length: int | None = None) -> bytes:
    """The bytes of an object, or a range of them; `StateError` if it cannot be read."""
    with reading(where):
        return Location.of(where).read(start, length)


def read_fixed(at: Location, start: int, length: int) -> bytes:
    """Some bytes of an object that is never replaced."""
    with reading(at):
        return cache.read_fixed(at, start, length)


def exists(where: Where) -> bool:
    """Whether there is an object; `StateError` if nobody can tell."""
    with reading(where):
        return Location.of(where).exists()


def names(where: Where, *, below: bool = False, after: str = "") -> Sequence[str]:
    """The objects in a folder, in order; with `below`, also those in folders in it, by relative key.

    With `after`, only those whose names are greater.
    """
    with reading(where):
        return Location.of(where).names(below=below, after=after)


def delete(where: Where, names: Collection[str]) -> None:
    """Remove objects in a folder, by relative key, to which nothing refers."""
    if names:
        with writing(where):
            Location.of(where).delete_all(names)


def unsealed(where: Where) -> Any:
    """The value in a sealed record; `StateError` if it is damaged."""
    try:
        data, found, _ = read(where).split(b"\n")
    except ValueError:
        data, found = b"", b""
    if digest(data).encode() != found:
        raise StateError(f"'{where}' is damaged", hint="restore the checkpoint from a copy, or begin with a new one")
    return json.loads(data)


def write_record(where: Where, value: Any) -> None:
    """Write a dataclass into a sealed record."""
    replace(where, sealed(to_plain(value)))


def read_record(kind: type[T], where: Where) -> T:
    """The dataclass that a sealed record holds; `StateError` if it holds another, as one of another release does."""
    try:
        return from_plain(kind, unsealed(where))
    except ValueError as error:
        raise StateError(f"'{where}' is no record of this release: {error}") from None


def digest(data: bytes) -> str:
    """The checksum of records, also in the names of plans."""
    return hashlib.sha256(data).hexdigest()
