"""Files as tasks and the driver read them: through pyarrow, in bounded pieces.

What is opened is what the user named as a stream's path, never what the data said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyarrow import NativeFile
from pyarrow.fs import FileSystem

from anabranch.errors import StreamError
from anabranch.spark.ranges import File
from anabranch.stream.packed import MAGIC

PIECE = 8 << 20
"""How many bytes of a range are held at a time."""
_GLANCE = 1 << 16


def open_file(path: str) -> NativeFile:
    """A file that can be read from any position; `StreamError` if it cannot be opened."""
    try:
        system, inner = FileSystem.from_uri(path)
        return system.open_input_file(inner)
    except OSError as error:
        raise StreamError(f"cannot read '{path}': {os.strerror(error.errno) if error.errno else error}") from None


def is_packed(path: str) -> bool:
    """Whether a file is gzip, by its bytes, for names lie."""
    with open_file(path) as source:
        return bool(source.read(len(MAGIC)) == MAGIC)


def line_end(file: File, position: int) -> int:
    """The position just after the first newline at or after `position - 1`, so a line's start stays where it is."""
    at = position - 1
    with open_file(file.path) as source:
        source.seek(at)
        while at < file.size:
            glance = source.read(min(_GLANCE, file.size - at))
            found = glance.find(b"\n")
            if found >= 0:
                return int(at + found + 1)
            if not glance:
                raise StreamError(f"'{file.path}' has become shorter while it was read")
            at += len(glance)
    return file.size


def pieces(path: str, start: int, end: int, size: int = PIECE) -> Iterator[bytes]:
    """The bytes of a range, piece by piece."""
    with open_file(path) as source:
        source.seek(start)
        while start < end:
            piece = source.read(min(size, end - start))
            if not piece:
                raise StreamError(f"'{path}' has become shorter while it was read")
            yield piece
            start += len(piece)
