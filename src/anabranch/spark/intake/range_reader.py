"""The reading of one range: bytes to elements, as `stream/` would read them from the whole source.

Whatever the source is, its bytes go through a shredder, which takes items apart in columns, and through the one reader
that judges elements; how the bytes come is up to the source (`RangeBytes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Protocol, TypeAlias

from anabranch.columnar.messages import Messages
from anabranch.columnar.scan.shred import Shredder
from anabranch.spark.intake.ranges import MICROSECONDS, Position, Range
from anabranch.spark.intake.sources.file_bytes import FileBytes
from anabranch.spark.intake.sources.message_bytes import MessageBytes
from anabranch.spark.intake.sources.spool_bytes import SpoolBytes
from anabranch.spark.intake.storage import PIECE
from anabranch.stream.elements import DeadLetter, Place, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.json_items import to_json
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.reading.split import Cut, DocumentSplitter, LineSplitter
from anabranch.stream.reading.wire import write
from anabranch.stream.tree import Element

Part: TypeAlias = bytes | Messages | DeadLetter | None


class RangeBytes(Protocol):
    """The bytes of one range of a source; the half of a source's interface that runs in tasks."""

    lines: bool
    """Whether its parts are bytes, and each that ends with a newline holds whole lines."""
    start: int
    """The position of its first byte, or of the first that an earlier range has left over."""
    shredder: Shredder
    """Shreds the parts, each once and in order."""

    messages: int
    """The number of messages that were read, where the source has some."""
    size: int
    """The number of bytes that were read."""
    largest: int | None
    """The largest timestamp of a message, in milliseconds, where it is the time of elements."""

    def parts(self, size: int = PIECE) -> Iterator[Part]:
        """The bytes in pieces of about a size, None at an end of input, and dead letters for what is damaged."""

    def carry(self) -> str | None:
        """Behind the last part: where the next range goes on, as JSON; None if its own start is enough."""


def _open(stream: KnownStream, root: Element, limits: Limits, reach: Range, carry: str | None) -> RangeBytes:
    """The bytes of a range, by the source of its stream."""
    if reach.beat is not None:
        return HeartbeatBytes(stream, root, limits, reach.beat)
    if stream.source.topic is not None:
        return MessageBytes(stream.source, stream.form.format, limits, reach)
    if stream.source.http is not None:
        return SpoolBytes(stream.form.format, limits, reach)
    return FileBytes(stream.form.format, limits, reach, carry)


class RangeReader:
    """Reads a range once, from its first element to its last; then `carry` is that for the next range."""

    def __init__(
        self,
        stream: KnownStream,
        root: Element,
        limits: Limits,
        reach: Range,
        carry: str | None = None,
        *,
        accents: bool = True,
    ) -> None:
        """`carry` was left by the reader of the range before; `accents` says whether the engine follows accents."""
        self._range = reach
        self._bytes = _open(stream, root, limits, reach, carry)
        self.lines = self._bytes.lines
        """Whether its parts are bytes, and each that ends with a newline holds whole lines."""
        self.shredder = self._bytes.shredder
        """Shreds the parts of the range, each once and in order."""
        source, admission = stream.source, stream.source.admission(accents=accents)
        given = reach.stream, stream.form.format, limits, root, source.item_name, source.checked_schema, admission
        self._reader = ElementReader(*given, upserts=source.is_upserted)

    def carry(self) -> str | None:
        """Where the next range of the partition continues, as JSON; None if its own start is enough."""
        return self._bytes.carry()

    @property
    def start(self) -> Position:
        """Where the range begins."""
        return Position(self._range.number, self._bytes.start)

    def announce(self, announced: Callable[[Path, Element], bool]) -> None:
        """Set which paths, beside those of the schema, items of a strict stream may have."""
        self._reader.announced = announced

    def __iter__(self) -> Iterator[StreamElement | DeadLetter]:
        for part in self.parts():
            if isinstance(part, DeadLetter):
                yield part
            else:
                for shredded in self.shredder.finish() if part is None else self.shredder.feed(part, None):
                    yield from self.elements(shredded.cuts.values())

    @property
    def largest(self) -> int | None:
        """The largest timestamp of a message, in milliseconds, where it is the time of elements."""
        return self._bytes.largest

    @property
    def read(self) -> tuple[int, int]:
        """The number of messages that were read, and of bytes."""
        return self._bytes.messages, self._bytes.size

    def parts(self, size: int = PIECE) -> Iterator[Part]:
        """The bytes in pieces of a size, None at an end of input, and dead letters for what is damaged."""
        return self._bytes.parts(size)

    def elements(self, cuts: Iterable[Cut]) -> Iterator[StreamElement | DeadLetter]:
        """The elements in some cuts of the range."""
        return self._reader.elements(cuts, self._range.file)


class HeartbeatBytes:
    """A heartbeat of the run, in the format of its stream."""

    def __init__(self, stream: KnownStream, root: Element, limits: Limits, time: int) -> None:
        split = DocumentSplitter if stream.form.format == "document" else LineSplitter
        self.lines = split is LineSplitter
        self.start = self.messages = self.size = 0
        self.largest: int | None = None
        self.shredder = Shredder(split(limits), limits)
        self._data = _heartbeat(stream, root, time)

    def parts(self, size: int = PIECE) -> Iterator[Part]:
        yield self._data
        yield None

    def carry(self) -> str | None:
        return None


def _heartbeat(stream: KnownStream, root: Element, time: int) -> bytes:
    """A heartbeat in the format of the stream's files."""
    element = Punctuation(None, Place(stream.name, "heartbeat", 0), Decimal(time) / MICROSECONDS)
    if stream.form.format == "json":
        return f"{to_json(element)}\n".encode()
    line = f"{write(element)}\n"
    return (f"<{root.name.local}>{line}</{root.name.local}>" if stream.form.format == "document" else line).encode()
