"""Files as tasks and the driver read them: through pyarrow, in bounded pieces.

What is opened is what the user named as a stream's path, never what the data said.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyarrow import NativeFile
from pyarrow.fs import FileSystem

from anabranch.spark.ranges import File

PIECE = 8 << 20
"""How many bytes of a range are held at a time."""
_GLANCE = 1 << 16


def open_file(path: str) -> NativeFile:
    """A file that can be read from any position."""
    system, inner = FileSystem.from_uri(path)
    return system.open_input_file(inner)


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
            if not glance:  # the file has shrunk under us
                break
            at += len(glance)
    return file.size


def pieces(path: str, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a range, piece by piece."""
    with open_file(path) as source:
        source.seek(start)
        while start < end:
            piece = source.read(min(PIECE, end - start))
            if not piece:
                return
            yield piece
            start += len(piece)
