"""Files as tasks and the driver read them: through pyarrow, in bounded pieces.

Only paths that the user named are opened, never paths from the data.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from pyarrow import NativeFile
from pyarrow.fs import FileSystem

from anabranch.errors import StreamError
from anabranch.stream.reading.gzip import MAGIC

PIECE = 8 << 20
"""How many bytes of a range are held at a time."""
_LOOK_BYTES = 1 << 16
_HEAD_BYTES = 256


def open_file(path: str) -> NativeFile:
    """A file that can be read from any position; `StreamError` if it cannot be opened."""
    try:
        system, inner = FileSystem.from_uri(path)
        return system.open_input_file(inner)
    except OSError as error:
        raise StreamError(f"cannot read '{path}': {os.strerror(error.errno) if error.errno else error}") from None


def is_packed(path: str) -> bool:
    """Whether a file is gzip, by its first bytes; its name does not count."""
    with open_file(path) as source:
        return bool(source.read(len(MAGIC)) == MAGIC)


def head_of(path: str, size: int) -> str:
    """A digest of the first bytes of a file that has `size` bytes, with their number."""
    length = min(size, _HEAD_BYTES)
    with open_file(path) as source:
        return f"{length}:{hashlib.sha256(source.read(length)).hexdigest()[:16]}"


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
