"""The files of a spool, and their bytes as one file that grows.

To its readers a pushed stream is a single file that only grows, for ever: `PUSHED`, of which a position is the number
of bytes that were accepted before.
These bytes lie in the files of a folder, on a disk or in an object store.
Each is written once, whole, and never changed: the bodies of requests that were accepted together, and behind them a
footer that says which bytes of the stream they are, when they were accepted, and under which keys.
Its name begins with the position of its first byte, so a second writer cannot take the same place, and files that were
read can be removed: only the newest stays, since its footer says where the stream ends.

Which run writes
----------------
On a disk a lock keeps other runs out.
In an object store a run that was overtaken may wake up at any time, so there the name of a file has the number of its
run, too, and a run begins with a *claim*: a file without bytes, under the very name that the run before it would use
next, which says who writes from there on.
Either the claim comes first, and what the run before tries to write is refused by the store; or its file comes first,
is a part of the stream, and the claim is tried behind it.
Claims stay when files are removed, else their names could be used again.

What describes the bytes stands behind them, as in Parquet, so both become durable in one write, and a position in a
body is a position in the file.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location
from anabranch.stream.plain import from_plain, to_plain
from anabranch.stream.reading.reader import Format

PUSHED = "http"
"""The name of the file that a pushed stream is, in places and order logs."""
_NAME = re.compile(r"([0-9]{18})(?:-([0-9]{8}))?")
_LENGTH_DIGITS = 10
_TAIL = _LENGTH_DIGITS + 1
_READERS = 16
"""How many footers are read at a time."""
_LOOK_BYTES = 8 << 10
"""What is read of the end of a file to find its footer, which is seldom longer."""


class FileName(NamedTuple):
    """The name of a file, in the order of the stream: of several that begin at one position, the last has the bytes."""

    start: int
    """The position of its first byte."""
    run: int = 0
    """The number of the run that writes it, 0 where a lock guards the spool."""

    def __str__(self) -> str:
        return f"{self.start:018}-{self.run:08}" if self.run else f"{self.start:018}"


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
    claimed: int = 0
    """The number of the run that writes from here on, if the file is a claim."""

    def behind(self, bodies: bytes) -> bytes:
        """The content of the file: the bodies, and this footer."""
        sealed = durable.sealed(to_plain(self))
        return b"%b%b%0*d\n" % (bodies, sealed, _LENGTH_DIGITS, len(sealed))


def names(folder: Location) -> list[FileName]:
    """The files of a spool, in order."""
    return sorted(found for each in durable.names(folder) if (found := name_of(each)))


def name_of(text: str) -> FileName | None:
    """The name of a file of a spool; None if it is that of another."""
    found = _NAME.fullmatch(text)
    return FileName(int(found[1]), int(found[2] or 0)) if found else None


def starts(folder: Location) -> list[int]:
    """The positions at which the files of a spool begin, in order."""
    return sorted({each.start for each in names(folder)})


def read_footer(where: Location) -> Footer:
    """The footer of a file; `StateError` if the file is damaged."""
    with durable.reading(where):
        stat = where.stat()
    if stat is None:
        raise _damaged(where)
    data = durable.read(where, max(0, stat.size - _LOOK_BYTES), _LOOK_BYTES)
    length = _length(data[-_TAIL:])
    if length is None or length + _TAIL > stat.size:
        raise _damaged(where)
    size = stat.size - _TAIL - length
    if length + _TAIL > len(data):
        data = durable.read(where, size, length + _TAIL)
    return _footer(where, data[-_TAIL - length : -_TAIL], size)


def read_file(where: Location) -> tuple[Footer, bytes]:
    """A file as its footer and the bodies before it; `StateError` if it is damaged."""
    try:
        data = where.read()
    except FileNotFoundError:
        raise _damaged(where) from None
    except OSError as error:
        raise StateError(f"cannot read '{where}': {error.strerror or error}") from None
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
    name = name_of(where.name)
    if name is None or name.start != footer.start or footer.end - footer.start != size:
        raise _damaged(where)
    return footer


def _damaged(where: Location) -> StateError:
    hint = "restore the checkpoint from a copy; what was accepted and not read is in it"
    return StateError(f"'{where}' is damaged", hint=hint)


# --- the stream as one file -------------------------------------------------------------------------------


def borders(folder: Location, start: int, end: int) -> list[int]:
    """The positions behind `start` at which files end, and `end` itself."""
    return [*(each for each in starts(folder) if start < each < end), end]


def footers(folder: Location, start: int, end: int) -> list[Footer]:
    """The footers of the files that hold the bytes between two positions, in order; `StateError` if one is missing."""
    known = list({each.start: each for each in names(folder)}.values())  # of those at one position, the last
    first = bisect_right(known, FileName(start, sys.maxsize)) - 1
    chosen = [each for each in known[max(0, first) :] if each.start < end] if start < end else []
    with ThreadPoolExecutor(_READERS) as threads:
        found = list(threads.map(lambda each: read_footer(folder / str(each)), chosen))
    at = start
    for each in found:
        if not each.start <= at < each.end:
            break
        at = each.end
    if at < end:
        raise StateError(f"'{folder}' is damaged: what was accepted as byte {at:,} is missing")
    return found


def bodies(first: Location, end: int) -> Iterator[bytes]:
    """The bytes from the first of a file on, file by file, up to a position at which one ends.

    Each file says where the next begins, and a claim who wrote it, so that the folder need not be listed.
    """
    name = name_of(first.name)
    assert name is not None, "it is a file of a spool"
    while name.start < end:
        footer, data = read_file(first.parent / str(name))
        if data:
            yield data
        name = FileName(footer.end, footer.claimed or name.run)
