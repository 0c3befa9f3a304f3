"""The bytes of a range of a file, for the task that reads it.

The ranges of a file are read by different tasks and in different epochs.
Together they give the elements of the whole file because lines are cut after newlines, and a document's splitter
continues from the carry of the range before.
A gzip file can only be read from its front: each of its ranges unpacks it again up to the carry; usually there is
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from anabranch.columnar.scan.shred import Shredder
from anabranch.spark.intake.ranges import Range
from anabranch.spark.intake.storage import PIECE, pieces
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.gzip import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.split import Carry, DocumentSplitter, LineSplitter


class FileBytes:
    """A range of a file, read once from its first element to its last."""

    def __init__(self, form: Format, limits: Limits, reach: Range, carry: str | None) -> None:
        """`carry` was left by the reader of the range before."""
        self._split = DocumentSplitter if form == "document" else LineSplitter
        self._limits = limits
        self._range = reach
        self._carries = reach.packed or self._split is DocumentSplitter
        self.lines = not self._carries
        begin = self._begin(carry)
        self.shredder = Shredder(self._split(limits, begin), limits)
        self.start = begin.position
        self.messages = 0
        self.largest: int | None = None
        self.size = reach.end - reach.start

    def carry(self) -> str | None:
        if self._range.last or not self._carries:
            return None
        return json.dumps(self.shredder.carry.to_json())

    def parts(self, size: int = PIECE) -> Iterator[bytes | DeadLetter | None]:
        position = self.start
        damage: DeadLetter | None = None
        for piece in self._pieces(self.start, self._range.end, size):
            if isinstance(piece, Damage):
                damage = DeadLetter(Place(self._range.stream, self._range.file, position), piece.reason, "")
            else:
                position += len(piece)
                yield piece
        if self._range.last or not self._carries:
            yield None
        if damage and self._range.last:  # a gzip file that is still written looks truncated
            yield damage

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
