"""Files as tasks and the driver read them, in bounded pieces: through pyarrow on a disk, by ranges in an object store.

Only paths that the user named are opened, never paths from the data.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import BinaryIO

from pyarrow import NativeFile
from pyarrow.fs import FileSystem

from anabranch.errors import StreamError
from anabranch.storage import Location
from anabranch.stream.reading.gzip import MAGIC

PIECE = 8 << 20
"""How many bytes of a range are held at a time."""
_LOOK_BYTES = 1 << 16
_HEAD_BYTES = 256
_REQUESTS = 16
"""How many requests an object store gets at a time."""


@contextmanager
def open_file(path: str) -> Iterator[NativeFile | BinaryIO]:
    """A file that can be read from any position; `StreamError` if it cannot be read."""
    try:
        with _opened(path) as file:
            yield file
    except OSError as error:
        told = error.strerror if is_address(path) else error.errno and os.strerror(error.errno)
        raise StreamError(f"cannot read '{path}': {told or error}") from None


def _opened(path: str) -> NativeFile | BinaryIO:
    if is_address(path):
        return Location.of(path).open()
    system, inner = FileSystem.from_uri(path)
    return system.open_input_file(inner)


def is_address(path: str) -> bool:
    """Whether a file is in an object store."""
    return "://" in path


def beginning(path: str, size: int) -> tuple[bool, str]:
    """Whether a file is gzip, and a digest of its first bytes, in one request."""
    front = _fronts.pop((path, size), None)
    if front is None:
        front = _front(path)
    return front.startswith(MAGIC), _digest(front[: min(size, _HEAD_BYTES)])


_fronts: dict[tuple[str, int], bytes] = {}
"""The first bytes of files that will soon be begun, by their sizes."""


def read_fronts(files: Sequence[tuple[str, int]]) -> None:
    """Read the first bytes of some files in an object store, given with their sizes, at once."""
    wanted = [each for each in files if each not in _fronts]
    if len(wanted) > 1:
        with ThreadPoolExecutor(_REQUESTS) as threads:
            _fronts.update(zip(wanted, threads.map(lambda each: _front(each[0]), wanted), strict=True))


def _front(path: str) -> bytes:
    with open_file(path) as source:
        return bytes(source.read(_HEAD_BYTES))


def _digest(front: bytes) -> str:
    return f"{len(front)}:{hashlib.sha256(front).hexdigest()[:16]}"


def size_of(path: str) -> int:
    """The size of a file in bytes."""
    if is_address(path):
        with open_file(path) as source:
            return int(source.seek(0, os.SEEK_END))
    return os.path.getsize(path)


def is_packed(path: str) -> bool:
    """Whether a file is gzip, by its first bytes; its name does not count."""
    with open_file(path) as source:
        return bool(source.read(len(MAGIC)) == MAGIC)


def head_of(path: str, size: int) -> str:
    """A digest of the first bytes of a file that has `size` bytes, with their number."""
    return _digest(_front(path)[: min(size, _HEAD_BYTES)])


def has_head(path: str, head: str) -> bool:
    """Whether a file still has the same first bytes."""
    return head_of(path, int(head.partition(":")[0])) == head


def line_end(path: str, position: int, limit: int) -> int:
    """The position just after the first newline at or after `position - 1`, so a line's start stays where it is."""
    at = position - 1
    with open_file(path) as source:
        source.seek(at)
        while at < limit:
            glance = source.read(min(_LOOK_BYTES, limit - at))
            found = glance.find(b"\n")
            if found >= 0:
                return int(at + found + 1)
            if not glance:
                raise _shorter(path)
            at += len(glance)
    return limit


def last_line_end(path: str, position: int, limit: int) -> int:
    """The position just after the last newline before `limit`, `position` where there is none behind it."""
    with open_file(path) as source:
        end = limit
        while end > position:
            at = max(position, end - _LOOK_BYTES)
            source.seek(at)
            found = source.read(end - at).rfind(b"\n")
            if found >= 0:
                return int(at + found + 1)
            end = at
    return position


def pieces(path: str, start: int, end: int, size: int = PIECE, *, lines: bool = False) -> Iterator[bytes]:
    """The bytes of a range, piece by piece; with `lines`, pieces of whole lines where possible.

    An empty range is the end of a file that was read before, and the file need not exist any more.
    """
    if start >= end:
        return
    with open_file(path) as source:
        while start < end:
            stop = min(end, start + size)
            if lines and stop < end:
                source.seek(max(start, stop - _LOOK_BYTES))
                glance = source.read(min(_LOOK_BYTES, stop - start))
                stop -= len(glance) - (glance.rfind(b"\n") + 1 or len(glance))
            source.seek(start)
            piece = source.read(stop - start)
            if not piece:
                raise _shorter(path)
            yield piece
            start += len(piece)


def _shorter(path: str) -> StreamError:
    return StreamError(f"'{path}' has become shorter while it was read", hint="a stream's files may only grow")
