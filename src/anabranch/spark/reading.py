"""The reading of one range: bytes to elements, as `stream/` would read them from the whole file.

The pieces of a file are read by different tasks and in different epochs.
What makes the sum of them equal the whole is that lines are cut after newlines, and that a document's splitter goes on
from the carry of the range before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from anabranch.spark.plan import StreamPlan
from anabranch.spark.ranges import Range
from anabranch.spark.storage import pieces
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.packed import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reader import ElementReader
from anabranch.stream.split import Carry, DocumentSplitter, LineSplitter
from anabranch.stream.tree import Element


class RangeReader:
    """Reads a range once, from its first element to its last; then `carry` says where the next range goes on."""

    def __init__(
        self, stream: StreamPlan, root: Element, limits: Limits, reach: Range, carry: str | None = None
    ) -> None:
        begin = Carry(reach.start) if carry is None else Carry.from_json(json.loads(carry))
        split = DocumentSplitter if stream.format == "document" else LineSplitter
        self._splitter = split(limits, begin)
        self._start = begin.position
        self._range = reach
        self._reader = ElementReader(reach.stream, stream.format, limits, root, item=stream.item, schema=stream.schema)

    def carry(self) -> str:
        """Where the splitter stands, as JSON."""
        return json.dumps(self._splitter.carry.to_json())

    def __iter__(self) -> Iterator[StreamElement | DeadLetter]:
        read, splitter, file = self._reader.elements, self._splitter, self._range.file
        position = self._start
        damage: DeadLetter | None = None
        for piece in self._pieces():
            if isinstance(piece, Damage):
                damage = DeadLetter(Place(self._range.stream, file, position), piece.reason, "")
            else:
                position += len(piece)
                yield from read(splitter.feed(piece), file)
        if self._range.last or isinstance(splitter, LineSplitter):
            yield from read(splitter.finish(), file)
        if damage:
            yield damage

    def _pieces(self) -> Iterator[bytes | Damage]:
        path, end = self._range.path, self._range.end
        if self._range.packed:
            return gunzip(pieces(path, 0, end, PACKED_CHUNK))
        return pieces(path, self._start, end)
