"""Files that survive kill -9 and a power cut: complete or absent, never half written.

Three ways to write are enough for a checkpoint: `replace` (a new version instead of the old), `publish` (a file that
must not exist yet: of two runs that try, one wins) and `append` (a log).
All of them return when the bytes and the name are on the disk.
A writer that was killed leaves a file under a hidden name, until `sweep`.
Records are JSON followed by a checksum, so a damaged record is detected and named.
A full disk raises `DiskFull` and leaves what was durable before untouched.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from anabranch.errors import DiskFull, StateError
from anabranch.stream.plain import from_plain, to_plain

T = TypeVar("T")

_BEGUN = re.compile(r"\..+\.[0-9]+", re.DOTALL)
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Translate errors of the operating system while writing."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            hint = "make room and start again: it goes on where it was"
            raise DiskFull(f"the disk is full: cannot write '{path}'", hint=hint) from None
        raise StateError(f"cannot write '{path}': {error.strerror or error}") from None


def replace(path: Path, data: bytes) -> None:
    """Write a file, or a new version of it, atomically."""
    with writing(path):
        fresh = _written(path, data)
        os.replace(fresh, path)
        sync(path.parent)


def publish(path: Path, data: bytes) -> None:
    """Write a file that must not exist; of several writers, one succeeds."""
    with writing(path):
        fresh = _written(path, data)
        try:
            os.link(fresh, path)
        except FileExistsError:
            raise StateError(f"'{path}' exists: another run is at work on this checkpoint") from None
        finally:
            fresh.unlink()
        sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file durably."""
    with writing(path):
        path.unlink(missing_ok=True)
        sync(path.parent)


def append(path: Path, data: Iterable[bytes], at: int) -> int:
    """Write after the first `at` bytes of a file, dropping incomplete bytes there; gives the new length."""
    with writing(path):
        new = not path.exists()
        with path.open("ab") as file:
            file.truncate(at)
            file.writelines(data)
            file.flush()
            os.fsync(file.fileno())
            length = file.tell()
        if new:
            sync(path.parent)
    return length


def sweep(folder: Path) -> None:
    """Remove the files of killed writers in a folder; only for its single writer."""
    for path in folder.glob(".*"):
        if _BEGUN.fullmatch(path.name):
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Sync the names in a folder, or the bytes of a file, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Sequence[Path]) -> None:
    """Sync files that others wrote, and names in folders, in parallel: a disk takes them in one go."""
    with writing(paths[0]), ThreadPoolExecutor(len(paths)) as threads:
        list(threads.map(sync, paths))


def sealed(value: Any) -> bytes:
    """A value as JSON, followed by its checksum on a line."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return data + b"\n" + digest(data).encode() + b"\n"


def unsealed(path: Path) -> Any:
    """The value in a sealed file; `StateError` if it is damaged."""
    try:
        data, found, _ = path.read_bytes().split(b"\n")
    except ValueError:
        data, found = b"", b""
    except OSError as error:
        raise StateError(f"cannot read '{path}': {error.strerror}") from None
    if digest(data).encode() != found:
        raise StateError(f"'{path}' is damaged", hint="restore the checkpoint from a copy, or begin with a new one")
    return json.loads(data)


def write_record(path: Path, value: Any) -> None:
    """Write a dataclass into a sealed file."""
    replace(path, sealed(to_plain(value)))


def read_record(kind: type[T], path: Path) -> T:
    """The dataclass that a sealed file holds."""
    return from_plain(kind, unsealed(path))


def digest(data: bytes) -> str:
    """The checksum of records, also in the names of plans."""
    return hashlib.sha256(data).hexdigest()


def _written(path: Path, data: bytes) -> Path:
    """A new file beside `path` that holds the data, on the disk."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    return fresh
