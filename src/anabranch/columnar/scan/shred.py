"""Bytes into columns: the items of a range as they arrive, those that fit a template already taken apart.

A `Shredder` stands in front of a splitter.
It lets the kernel take all items that fit and hands all other bytes to the splitter, line by line or, in a document,
until the splitter stands between two items again.
So every byte that the kernel did not recognise is judged by the same code as without it, and where a piece of input
ends inside an item, the splitter has it.

Guarantees: what comes out is what the splitter alone would give, in the same order, whatever the template and however
the bytes are fed; so is the carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.tree import Column
from anabranch.columnar.scan.cutter import ItemCutter
from anabranch.columnar.scan.frames import FrameRows, Frames
from anabranch.columnar.scan.kernels import UNCLEAR, Indices, ItemColumns
from anabranch.columnar.scan.template import Declarations, scope_around
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.lines import Carry, Cut, LineSplitter, line_cut
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.tree import Element

if TYPE_CHECKING:
    from anabranch.columnar.messages import MessageOrigins, Messages

Splitter: TypeAlias = LineSplitter | DocumentSplitter
_STEP = 2_048  # how much of a document the splitter gets before the kernel tries again
_FRONT = 4
_NO_BYTES = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Shredded:
    """Some entries of a stream in order: items that fit, and entries that the splitter cut out."""

    wanted: WantedColumns | None
    data: NDArray[np.uint8]
    """The bytes that columns point into; for JSON, the XML items that were written for its lines."""
    raw: NDArray[np.uint8]
    """The bytes as they came."""
    base: int
    """Their position in the partition."""
    around: Carry
    """Has the root and the encoding around the items that fit."""
    fits: NDArray[np.bool_]
    begins: NDArray[np.int32]
    finishes: NDArray[np.int32]
    """The spans of entries in `raw`, except those in `cuts`."""
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    """The spans of their columns, by row; `ABSENT` and `UNCLEAR` where there is none."""
    values: NDArray[np.float64]
    """By row: the numbers in these spans; NaN where a text is no number, or not simple enough to be exact."""
    marks: NDArray[np.uint8]
    """By entry: its mark, which tells what may be copied of it (`decoded.py`)."""
    cuts: dict[int, Cut]
    """By entry: the cut of the splitter; a line that does not fit is cut on demand."""
    limits: Limits
    frames: Frames | None = None
    """The rows of repeated parts."""
    first: int = 0
    """The number of the first entry among those that were read together."""
    templated: int = 0
    """The number of entries that were recognised by the template, among those that were read together."""
    origins: MessageOrigins | None = None
    """The messages that the entries come from, where they come from messages."""

    def frame(self, part: int) -> FrameRows:
        """The rows of a repeated part, in all entries that were read together."""
        assert self.frames is not None, "only what was shredded has repeated parts"
        return self.frames.of(part)

    def part(self, start: int, stop: int) -> Shredded:
        """The entries `start` to `stop`."""
        return replace(
            self,
            fits=self.fits[start:stop],
            begins=self.begins[start:stop],
            finishes=self.finishes[start:stop],
            starts=self.starts[:, start:stop],
            ends=self.ends[:, start:stop],
            values=self.values[:, start:stop],
            marks=self.marks[start:stop],
            cuts={entry - start: cut for entry, cut in self.cuts.items() if start <= entry < stop},
            first=self.first + start,
            origins=None if self.origins is None else self.origins.part(start, stop),
        )

    def unfit(self, entries: NDArray[np.bool_]) -> Shredded:
        """The batch with some entries made unfit."""
        starts, ends, values = self.starts.copy(), self.ends.copy(), self.values.copy()
        starts[:, entries] = ends[:, entries] = UNCLEAR
        values[:, entries] = np.nan
        return replace(self, fits=self.fits & ~entries, starts=starts, ends=ends, values=values)

    def row(self, column: Column) -> int:
        """The row of a column."""
        assert self.wanted is not None, "only what was shredded has columns"
        return self.wanted.rows[column]

    def cut(self, entry: int) -> Cut:
        """The raw item of an entry."""
        if entry in self.cuts:
            return self.cuts[entry]
        begin, finish = int(self.begins[entry]), int(self.finishes[entry])
        raw = self.raw[begin:finish].tobytes()
        if self.origins is not None:
            return self.origins.cut(entry, self.base + begin, raw, self.limits)
        if self.around.root is not None:
            root = self.around.root.encode("latin-1")
            return Cut(self.base + begin, self.base + finish, raw, None, root, self.around.encoding)
        line = line_cut(self.base + begin, raw, self.limits)
        assert line is not None, "a blank line is no entry"
        return line

    def positions(self, entries: Indices) -> Indices:
        """Where some entries that are in no cut stand in their partition: their first bytes, or their messages."""
        begins = self.base + self.begins[entries].astype(np.int64)
        return begins if self.origins is None else self.origins.positions(entries, begins)

    def position(self, entry: int) -> int:
        """Where an entry stands in its partition."""
        return self.cuts[entry].start if entry in self.cuts else int(self.positions(np.array([entry]))[0])

    def tree(self, entry: int) -> Element:
        """The item of an entry that fits."""
        raw = self.cut(entry).raw
        if self.wanted is None or not self.wanted.look.is_json:
            return parse_item(raw, self.limits, dict(self.wanted.look.scope) if self.wanted else {})
        (own,) = self.wanted.look.own
        element = parse_line(raw, Place("", "", 0), self.limits, self.wanted.look.parts[own].name)
        assert isinstance(element, Item), "what fits is an item"
        return element.tree


class Shredder:
    """Reads one range; `feed` and `finish` change it."""

    def __init__(self, splitter: Splitter, limits: Limits) -> None:
        self._splitter = splitter
        self._limits = limits
        self._position = splitter.carry.position
        """The position behind the bytes that were fed."""

    @property
    def carry(self) -> Carry:
        """The carry from which another shredder could go on."""
        return self._splitter.carry

    def sample(self, piece: bytes | Messages, most: int) -> list[Cut]:
        """The items in the first `most` bytes of the next piece, without taking the piece."""
        assert isinstance(piece, bytes)
        return type(self._splitter)(self._limits, replace(self.carry, position=self._position)).feed(piece[:most])

    def feed(self, piece: bytes | Messages, wanted: WantedColumns | None) -> Iterator[Shredded]:
        """Take the next bytes; gives the entries that end in them."""
        assert isinstance(piece, bytes)
        if wanted is None:
            cuts = self._splitter.feed(piece)
            self._position += len(piece)
            return self._only(cuts, wanted)
        return self._lines(piece, wanted) if isinstance(self._splitter, LineSplitter) else self._document(piece, wanted)

    def finish(self) -> Iterator[Shredded]:
        """End the input; gives the last entries."""
        return self._only(self._splitter.finish(), None)

    def _only(self, cuts: Sequence[Cut], wanted: WantedColumns | None) -> Iterator[Shredded]:
        """The splitter's cuts as a batch in which nothing fits."""
        if cuts:
            columns = ItemColumns.room(len(wanted.rows) if wanted else 0, len(cuts))
            columns.fits[:], columns.begins[:], columns.finishes[:] = False, 0, 0
            columns.clear(~columns.fits)
            marks = np.zeros(len(cuts), np.uint8)
            given = *columns, marks, dict(enumerate(cuts)), self._limits
            yield Shredded(wanted, _NO_BYTES, _NO_BYTES, 0, Carry(), *given)

    # --- lines --------------------------------------------------------------------------------------------

    def _lines(self, piece: bytes, wanted: WantedColumns) -> Iterator[Shredded]:
        base = self._position
        at = 0
        inside_line = self.carry.position < base or self.carry.skipping is not None
        if inside_line or base < _FRONT:  # the splitter also judges the first bytes of a partition
            at = piece.find(b"\n", max(0, _FRONT - 1 - base)) + 1 or len(piece)
            yield from self._single(self._splitter.feed(piece[:at]), wanted)
        stop = piece.rfind(b"\n") + 1
        while at < stop:
            columns = _Columns.of(piece, base, wanted, self.carry, self._limits)
            at = columns.cutter.cut(at, stop, lines=True)
            yield columns.shredded(self._limits)
            self._splitter = LineSplitter(self._limits, Carry(base + at))
        yield from self._only(self._splitter.feed(piece[at:]), wanted)
        self._position = base + len(piece)

    def _single(self, cuts: Sequence[Cut], wanted: WantedColumns) -> Iterator[Shredded]:
        """The splitter's lines as batches; a single line is taken apart like all others."""
        if len(cuts) != 1 or cuts[0].reason is not None:
            yield from self._only(cuts, wanted)
            return
        line = cuts[0].raw + b"\n"
        columns = _Columns.of(line, cuts[0].start, wanted, self.carry, self._limits)
        columns.cutter.cut(0, len(line), lines=True)
        yield columns.shredded(self._limits)

    # --- documents ----------------------------------------------------------------------------------------

    def _document(self, piece: bytes, wanted: WantedColumns) -> Iterator[Shredded]:
        base = self._position
        columns = _Columns.of(piece, base, wanted, self.carry, self._limits)
        tried = base - 1  # where the kernel began last; to begin there twice would not be linear in bytes
        fed = 0
        while True:
            carry = self.carry
            if carry.position > tried and _is_between_items(carry, wanted.look.scope):
                if carry.root != columns.around.root or columns.cutter.is_full:
                    yield columns.shredded(self._limits)
                    columns = _Columns.of(piece, base, wanted, carry, self._limits)
                tried = carry.position
                before = columns.cutter.count
                at = columns.cutter.cut(tried - base, len(piece), lines=False)
                if columns.cutter.count > before:
                    self._splitter = DocumentSplitter(self._limits, replace(carry, position=base + at))
                    fed = at
                    if columns.cutter.is_full:
                        continue
            if fed == len(piece):
                break
            cuts = self._splitter.feed(piece[fed : fed + _STEP])
            fed = min(len(piece), fed + _STEP)
            if len(cuts) < columns.cutter.room:
                columns.extend(cuts)
            else:
                yield columns.shredded(self._limits)
                yield from self._only(cuts, wanted)
                columns = _Columns.of(piece, base, wanted, self.carry, self._limits)
        yield columns.shredded(self._limits)
        self._position = base + len(piece)


def _is_between_items(carry: Carry, scope: Declarations) -> bool:
    """Whether the next bytes begin an item, and only this scope changes the meaning of its names."""
    if carry.skipping is not None or not carry.inside or carry.strict > carry.position:
        return False
    return scope_around(None if carry.root is None else carry.root.encode("latin-1"), carry.encoding) == scope


@dataclass(slots=True)
class _Columns:
    """A `Shredded` that is being filled."""

    cutter: ItemCutter
    base: int
    around: Carry
    cuts: dict[int, Cut] = field(default_factory=dict)

    @staticmethod
    def of(piece: bytes, base: int, wanted: WantedColumns, around: Carry, limits: Limits) -> _Columns:
        return _Columns(ItemCutter(np.frombuffer(piece, np.uint8), wanted, limits), base, around)

    def extend(self, cuts: Sequence[Cut]) -> None:
        """Add the cuts of a splitter."""
        self.cuts.update(enumerate(cuts, self.cutter.count))
        self.cutter.pass_over(len(cuts))

    def shredded(self, limits: Limits) -> Shredded:
        found = self.cutter.finished(with_marks=True)
        return Shredded(
            self.cutter.wanted,
            found.data,
            self.cutter.raw,
            self.base,
            self.around,
            *found.columns,
            found.marks,
            self.cuts,
            limits,
            found.frames,
            templated=found.templated,
        )
