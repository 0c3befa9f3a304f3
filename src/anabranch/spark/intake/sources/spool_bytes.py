"""The bytes of a range of a spool, for the task that reads it."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.columnar.scan.shred import Shredder
from anabranch.spark.intake.ranges import Range
from anabranch.spark.intake.storage import PIECE
from anabranch.spark.spool.files import bodies
from anabranch.storage import Location
from anabranch.stream.limits import Limits
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.split import Carry, DocumentSplitter, LineSplitter


class SpoolBytes:
    """A range of what was pushed, read once: bodies of requests, which are whole."""

    def __init__(self, form: Format, limits: Limits, reach: Range) -> None:
        split = DocumentSplitter if form == "document" else LineSplitter
        self.lines = split is LineSplitter
        self.start = reach.start
        self.shredder = Shredder(split(limits, Carry(reach.start)), limits)
        self.messages = 0
        self.largest: int | None = None
        self.size = reach.end - reach.start
        self._range = reach

    def carry(self) -> str | None:
        return None

    def parts(self, size: int = PIECE) -> Iterator[bytes | None]:
        """The bodies, small ones together: a part costs more than its bytes."""
        held: list[bytes] = []
        total = 0
        for each in bodies(Location.of(self._range.path), self._range.end):
            held.append(each)
            total += len(each)
            if total >= size:
                yield b"".join(held)
                held, total = [], 0
        if held:
            yield b"".join(held)
        yield None
