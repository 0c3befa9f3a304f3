"""The files of a spool, and their bytes as one file that grows.

To its readers a pushed stream is a single file that only grows, for ever: `PUSHED`, of which a position is the number
of bytes that were accepted before.
These bytes lie in the files of a folder.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from anabranch.errors import StateError, StreamError
from anabranch.spark.checkpoint import durable
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


def file_at(folder: Path, start: int) -> Path:
    """The file whose first byte has a position."""
    return folder / f"{start:0{_DIGITS}}"


def starts(folder: Path) -> list[int]:
    """The positions at which the files of a spool begin, in order."""
    try:
        return sorted(
            int(each.name) for each in folder.iterdir() if len(each.name) == _DIGITS and each.name.isdecimal()
        )
    except FileNotFoundError:
        return []  # nothing was ever accepted
    except OSError as error:
        raise StreamError(f"cannot read '{folder}': {error.strerror}") from None


def read_footer(path: Path) -> Footer:
    """The footer of a file; `StateError` if the file is damaged."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            tail = file.read()
            length = int(tail) if len(tail) == _TAIL else size
            file.seek(max(0, size - _TAIL - length))
            data, found, _ = file.read(length).split(b"\n")
        if durable.digest(data).encode() != found:
            raise ValueError("another checksum")
        footer = from_plain(Footer, json.loads(data))
        if file_at(path.parent, footer.start) != path or size != footer.end - footer.start + length + _TAIL:
            raise ValueError("another size or name")
    except OSError as error:
        raise StateError(f"cannot read '{path}': {error.strerror}") from None
    except ValueError:
        hint = "restore the checkpoint from a copy; what was accepted and not read is in it"
        raise StateError(f"'{path}' is damaged", hint=hint) from None
    return footer


def end_of(folder: Path) -> int:
    """The position behind all that was accepted."""
    found = starts(folder)
    return read_footer(file_at(folder, found[-1])).end if found else 0


def listing(folder: str) -> dict[str, int]:
    """A pushed stream as a file with its size; nothing where nothing was accepted yet."""
    end = end_of(Path(folder))
    return {PUSHED: end} if end else {}


def border(folder: str, position: int, limit: int) -> int:
    """The end of the file that holds the byte before a position, at most `limit`."""
    return next((each for each in starts(Path(folder)) if position <= each < limit), limit)


def moments(folder: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The moments at which the bytes between two positions were accepted, as (start, end, moment)."""
    found: tuple[int, int, int] | None = None
    for begin in _covering(starts(Path(folder)), start):
        if begin >= end:
            break
        footer = read_footer(file_at(Path(folder), begin))
        span = max(start, begin), min(end, footer.end), footer.moment
        if found is not None and found[2] != span[2]:
            yield found
            found = None
        found = span if found is None else (found[0], span[1], span[2])
    if found is not None:
        yield found


def _covering(found: Sequence[int], position: int) -> Sequence[int]:
    """The files from that on which holds a position."""
    return found[max(0, bisect_right(found, position) - 1) :]


class SpooledFile:
    """The bytes of a spool as one file to read; what was removed at its front cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = starts(folder)
        self._end = read_footer(file_at(folder, self._starts[-1])).end if self._starts else 0
        self._at = 0
        self._open: BinaryIO | None = None
        self._limit = 0
        """Where the bytes of the open file end."""

    def __enter__(self) -> SpooledFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def seek(self, position: int) -> int:
        """Go to a position."""
        if position != self._at:
            self._close()
        self._at = position
        return position

    def read(self, size: int) -> bytes:
        """The next bytes; fewer than asked for only at the end."""
        found: list[bytes] = []
        while size > 0 and self._at < self._end:
            if self._open is None:
                self._enter()
            assert self._open is not None, "it was just opened"
            piece = self._open.read(min(size, self._limit - self._at))
            if not piece:
                raise StateError(f"'{self._open.name}' is damaged: it ends before its bytes do")
            found.append(piece)
            self._at += len(piece)
            size -= len(piece)
            if self._at == self._limit:
                self._close()
        return b"".join(found)

    def _enter(self) -> None:
        """Open the file that holds the present position."""
        number = bisect_right(self._starts, self._at) - 1
        if number < 0:
            raise StateError(f"'{self._folder}' is damaged: what was accepted before is missing")
        start = self._starts[number]
        path = file_at(self._folder, start)
        self._limit = read_footer(path).end
        if self._limit != (self._starts[number + 1] if number + 1 < len(self._starts) else self._end):
            raise StateError(f"'{self._folder}' is damaged: what was accepted behind '{path.name}' is missing")
        try:
            self._open = path.open("rb")
        except OSError as error:
            raise StateError(f"cannot read '{path}': {error.strerror}") from None
        self._open.seek(self._at - start)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
