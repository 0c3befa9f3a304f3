"""Bytes into raw pieces, as they arrive: cuts, the carry of a splitter, and the splitter for lines.

A splitter finds the borders of items and leaves their content to the parser; it reports errors only where there is
nothing to parse.
The splitter for whole documents is in `split.py`.

Guarantees of both: the cuts depend on the bytes alone, not on how they were fed; a splitter created from another's
`carry` and fed with the bytes from `carry.position` on continues as the other would have; no more than one item and the
last bytes fed are in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from anabranch.stream.limits import Limits
from anabranch.stream.plain import from_plain, to_plain
from anabranch.stream.reading.markup import BOM, ByteWindow

SHOWN_BYTES = 8_192
"""The bytes of a bad piece that are kept for the dead letter."""


class Cut(NamedTuple):
    """A piece of a partition: an item's bytes, or a bad piece with the reason, of which only the front is kept.

    `start` and `end` are positions in the uncompressed partition; `root` is the start tag of the root around the item
    and `encoding` that of its document, because several documents may follow one another.
    What comes in a message has the message's key and headers, the latter packed, and where that is the time of its
    elements, the timestamp in milliseconds.
    """

    start: int
    end: int
    raw: bytes
    reason: str | None = None
    root: bytes | None = None
    encoding: str = "utf-8"
    stamp: int | None = None
    key: bytes | None = None
    headers: bytes | None = None


@dataclass(frozen=True, slots=True)
class Carry:
    """The state of a splitter: all that another needs to continue."""

    position: int = 0
    """The first byte that is still needed: where the last unfinished item starts."""
    skipping: str | None = None
    """The bad item whose end is searched; empty for a line."""
    root: str | None = None
    """The start tag of the last root, one character per byte."""
    inside: bool = False
    """Whether that root is still open."""
    encoding: str = "utf-8"
    strict: int = 0
    """Items are read strictly before this position."""

    def to_json(self) -> Any:
        """The carry as a JSON value."""
        return to_plain(self)

    @staticmethod
    def from_json(value: Any) -> Carry:
        """The carry from its JSON value."""
        return from_plain(Carry, value)


START = Carry()
"""The beginning of a partition."""


class LineSplitter:
    """One item per line; LF and CRLF end a line, a CR alone does not; blank lines are ignored."""

    root: bytes | None = None

    def __init__(self, limits: Limits, carry: Carry = START) -> None:
        self._limits = limits
        self._window = ByteWindow(carry.position)
        self._at = carry.position
        self._skipping = carry.skipping is not None

    @property
    def carry(self) -> Carry:
        return Carry(self._at, "" if self._skipping else None)

    def feed(self, data: bytes) -> list[Cut]:
        """Add bytes; gives the lines that end in them."""
        self._window.append(data)
        return self._advance(final=False)

    def finish(self) -> list[Cut]:
        """End of the bytes: gives the last line, if it has no line end."""
        return self._advance(final=True)

    def _advance(self, *, final: bool) -> list[Cut]:
        cuts: list[Cut] = []
        window = self._window
        end = window.end
        while (newline := window.find(b"\n", self._at, end)) >= 0:
            self._line(newline, cuts)
            self._skipping = False
            self._at = newline + 1
        if final or self._skipping or end - self._at > self._limits.item_bytes:
            self._line(end, cuts)
            self._skipping = not final
            self._at = end
        window.drop(self._at)
        return cuts

    def _line(self, end: int, cuts: list[Cut]) -> None:
        if self._skipping:
            return
        start = self._at
        if start == 0 and self._window.read(0, 3) == BOM:
            start = 3
        # one byte more than allowed shows that a line is too long
        line = self._window.read(start, min(end, start + self._limits.item_bytes + 1))
        if cut := line_cut(start, line, self._limits):
            cuts.append(cut)


def line_cut(start: int, line: bytes, limits: Limits) -> Cut | None:
    """The cut of a line, given without its LF; None if it is blank."""
    if len(line) > limits.item_bytes:
        shown = line[: min(limits.item_bytes, SHOWN_BYTES)]
        return Cut(start, start + limits.item_bytes, shown, too_long(limits))
    line = line.removesuffix(b"\r")
    return Cut(start, start + len(line), line) if line and not line.isspace() else None


def too_long(limits: Limits) -> str:
    """The reason for setting an item aside whose end is too far."""
    return f"more than {limits.item_bytes:,} bytes"
