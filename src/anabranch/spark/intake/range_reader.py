"""The reading of one range: bytes to elements, as `stream/` would read them from the whole file.

The ranges of a file are read by different tasks and in different epochs.
Together they give the elements of the whole file because lines are cut after newlines, and a document's splitter
continues from the carry of the range before.
A gzip file can only be read from its front: each of its ranges unpacks it again up to the carry; usually there is
one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from anabranch.columnar.scan.shred import Shredder
from anabranch.spark.intake.ranges import MICROSECONDS, Position, Range
from anabranch.spark.intake.storage import PIECE, pieces
from anabranch.stream.elements import DeadLetter, Place, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.gzip import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.json_items import to_json
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.reading.split import Carry, Cut, DocumentSplitter, LineSplitter
from anabranch.stream.reading.wire import write
from anabranch.stream.tree import Element


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
        self._split = DocumentSplitter if stream.form.format == "document" else LineSplitter
        self._carries = reach.packed or (self._split is DocumentSplitter and stream.source.http is None)
        """Whether it may end within an item; the bodies of requests are whole."""
        self._limits = limits
        self._range = reach
        self.lines = self._split is LineSplitter and not reach.packed
        """Whether each part that ends with a newline holds whole lines."""
        self._beat = None if reach.beat is None else _heartbeat(stream, root, reach.beat)
        begin = self._begin(carry if self._beat is None else None)
        self.shredder = Shredder(self._split(limits, begin), limits)
        """Shreds the parts of the range, each once and in order."""
        self._start = begin.position
        source, admission = stream.source, stream.source.admission(accents=accents)
        self._reader = ElementReader(
            reach.stream, stream.form.format, limits, root, source.item_name, source.checked_schema, admission
        )

    def carry(self) -> str | None:
        """Where the next range of the file continues, as JSON; None if its own start is enough."""
        if self._range.last or not self._carries:
            return None
        return json.dumps(self.shredder.carry.to_json())

    @property
    def start(self) -> Position:
        """Where the range begins."""
        return Position(self._range.number, self._start)

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

    def parts(self, size: int = PIECE) -> Iterator[bytes | DeadLetter | None]:
        """The bytes in pieces of a size, None at an end of input, and last a dead letter where the file is damaged."""
        position = self._start
        damage: DeadLetter | None = None
        for piece in self._pieces(self._start, self._range.end, size):
            if isinstance(piece, Damage):
                damage = DeadLetter(Place(self._range.stream, self._range.file, position), piece.reason, "")
            else:
                position += len(piece)
                yield piece
        if self._range.last or not self._carries:
            yield None
        if damage and self._range.last:  # a gzip file that is still written looks truncated
            yield damage

    def elements(self, cuts: Iterable[Cut]) -> Iterator[StreamElement | DeadLetter]:
        """The elements in some cuts of the range."""
        return self._reader.elements(cuts, self._range.file)

    def _begin(self, carry: str | None) -> Carry:
        if carry is not None:
            return Carry.from_json(json.loads(carry))
        if not self._range.start or not self._carries:
            return Carry(self._range.start)
        # The file had ended, a later one was begun, and now it has grown: read its front again to restore the splitter.
        splitter = self._split(self._limits)
        for piece in self._pieces(0, self._range.start):
            if not isinstance(piece, Damage):
                splitter.feed(piece)
        return splitter.carry

    def _pieces(self, start: int, end: int, size: int = PIECE) -> Iterator[bytes | Damage]:
        """The uncompressed bytes from a position on, up to the range's end on disk."""
        if self._beat is not None:
            yield self._beat
            return
        if not self._range.packed:
            yield from pieces(self._range.path, start, end, size, lines=self._split is LineSplitter)
            return
        skip = start
        for piece in gunzip(pieces(self._range.path, 0, end, PACKED_CHUNK)):
            if isinstance(piece, Damage):
                yield piece
            elif skip < len(piece):
                yield piece[skip:]
                skip = 0
            else:
                skip -= len(piece)


def _heartbeat(stream: KnownStream, root: Element, time: int) -> bytes:
    """A heartbeat in the format of the stream's files."""
    element = Punctuation(None, Place(stream.name, "heartbeat", 0), Decimal(time) / MICROSECONDS)
    if stream.form.format == "json":
        return f"{to_json(element)}\n".encode()
    line = f"{write(element)}\n"
    return (f"<{root.name.local}>{line}</{root.name.local}>" if stream.form.format == "document" else line).encode()
