"""The files of a spool, and their bytes as one file that grows.

To its readers a pushed stream is a single file that only grows, for ever: `PUSHED`, of which a position is the number
of bytes that were accepted before.
These bytes lie in the files of a folder, on a disk or in an object store.
Each is written once, whole, and never changed: the bodies of requests that were accepted together, and behind them a
footer that says which bytes of the stream they are, when they were accepted, and under which keys.
Its name is the position of its first byte, so a second writer cannot take the same place, and files that were read can
be removed: only the newest stays, since its footer says where the stream ends.

What describes the bytes stands behind them, as in Parquet, so both become durable in one write, and a position in a
body is a position in the file.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location
from anabranch.stream.plain import from_plain, to_plain
from anabranch.stream.reading.reader import Format

PUSHED = "http"
"""The name of the file that a pushed stream is, in places and order logs."""
_DIGITS = 18
_LENGTH_DIGITS = 10
_TAIL = _LENGTH_DIGITS + 1


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with an idempotency key: its bytes in the stream, and a digest of its body."""

    key: str
    digest: str
    start: int
    end: int
    moment: int
    """When it was accepted, in microseconds."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file of a spool says of its bytes."""

    start: int
    end: int
    """Its bytes are those of the stream from `start` to `end`."""
    moment: int
    """When they were accepted, in microseconds; it never runs backwards from file to file."""
    format: Format
    keyed: tuple[KeyedRequest, ...] = ()

    def behind(self, bodies: bytes) -> bytes:
        """The content of the file: the bodies, and this footer."""
        sealed = durable.sealed(to_plain(self))
        return b"%b%b%0*d\n" % (bodies, sealed, _LENGTH_DIGITS, len(sealed))


def file_at(folder: Location, start: int) -> Location:
    """The file whose first byte has a position."""
    return folder / name_at(start)


def name_at(start: int) -> str:
    """The name of the file whose first byte has a position."""
    return f"{start:0{_DIGITS}}"


def starts(folder: Location) -> list[int]:
    """The positions at which the files of a spool begin, in order."""
    try:
        return [int(each) for each in folder.names() if len(each) == _DIGITS and each.isdecimal()]
    except OSError as error:
        raise StateError(f"cannot read '{folder}': {error.strerror or error}") from None


def read_footer(where: Location) -> Footer:
    """The footer of a file; `StateError` if the file is damaged."""
    stat = where.stat()
    if stat is None:
        raise _damaged(where)
    tail = durable.read(where, max(0, stat.size - _TAIL), _TAIL)
    length = _length(tail)
    if length is None or length + _TAIL > stat.size:
        raise _damaged(where)
    return _footer(where, durable.read(where, stat.size - _TAIL - length, length), stat.size - _TAIL - length)


def read_file(where: Location) -> tuple[Footer, bytes]:
    """A file as its footer and the bodies before it; `StateError` if it is damaged."""
    data = durable.read(where)
    length = _length(data[-_TAIL:])
    if length is None or length + _TAIL > len(data):
        raise _damaged(where)
    size = len(data) - _TAIL - length
    return _footer(where, data[size:-_TAIL], size), data[:size]


def _length(tail: bytes) -> int | None:
    """The length of a footer by the last bytes of its file."""
    return int(tail) if len(tail) == _TAIL and tail[:-1].isdigit() else None


def _footer(where: Location, data: bytes, size: int) -> Footer:
    """The footer of a file with bodies of a size."""
    try:
        text, found, _ = data.split(b"\n")
        if durable.digest(text).encode() != found:
            raise ValueError("another checksum")
        footer = from_plain(Footer, json.loads(text))
    except ValueError:
        raise _damaged(where) from None
    if name_at(footer.start) != where.name or footer.end - footer.start != size:
        raise _damaged(where)
    return footer


def _damaged(where: Location) -> StateError:
    hint = "restore the checkpoint from a copy; what was accepted and not read is in it"
    return StateError(f"'{where}' is damaged", hint=hint)


# --- the stream as one file -------------------------------------------------------------------------------


def borders(folder: Location, start: int, end: int) -> list[int]:
    """The positions behind `start` at which files end, and `end` itself."""
    return [*(each for each in starts(folder) if start < each < end), end]


def footers(folder: Location, start: int, end: int) -> Iterator[Footer]:
    """The footers of the files that hold the bytes between two positions, in order."""
    return (footer for footer, _ in _between(folder, start, end, lambda where: (read_footer(where), b"")))


def bodies(folder: Location, start: int, end: int) -> Iterator[bytes]:
    """The bytes between two positions, file by file."""
    for footer, data in _between(folder, start, end, read_file):
        yield data[max(0, start - footer.start) : end - footer.start]


def _between(
    folder: Location, start: int, end: int, read: Callable[[Location], tuple[Footer, bytes]]
) -> Iterator[tuple[Footer, bytes]]:
    """The files that hold the bytes between two positions, in order; `StateError` if one is missing."""
    known, at = starts(folder), start
    while at < end:
        number = bisect_right(known, at) - 1
        found = read(file_at(folder, known[number])) if number >= 0 else None
        if found is None or found[0].end <= at:
            raise StateError(f"'{folder}' is damaged: what was accepted as byte {at:,} is missing")
        yield found
        at = found[0].end
