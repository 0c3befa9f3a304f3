"""Items cut out of bytes into columns: by the scanner of their format, XML's by template first."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from anabranch.columnar.scan.decoded import CANONICAL, DecodedTexts
from anabranch.columnar.scan.frames import Frames, LoggedFrames
from anabranch.columnar.scan.json_record import ITEM_ROOM
from anabranch.columnar.scan.json_scan import cut_lines, longest_line, transcode_entries
from anabranch.columnar.scan.kernels import UNCLEAR, Bytes, Flags, Indices, ItemColumns
from anabranch.columnar.scan.wanted import FrameLog, WantedColumns
from anabranch.columnar.scan.xml_scan import NO_PATTERN, cut_entries, cut_items, longest_item
from anabranch.stream.limits import Limits

LONGEST_FITTING = 1 << 16
"""Longer items are left to the law, in bytes: answers in columns do not count the law's steps (LAWS 2.6)."""
_USUAL_SIZE = 64
_WIDER = 3
"""The room for the XML item of a JSON record, as a multiple of the record's bytes; few items need more."""


class CutItems(NamedTuple):
    """Entries in columns, which point into `data`."""

    columns: ItemColumns
    data: Bytes
    frames: Frames | None
    templated: int
    """The number of entries that fit and were recognised by the template."""
    marks: Bytes
    """By entry: its mark, which tells what may be copied of it (`decoded.py`)."""


class ItemCutter:
    """Cuts items out of one piece of bytes, as long as there is room."""

    def __init__(self, raw: Bytes, wanted: WantedColumns, limits: Limits, count: int | None = None) -> None:
        """`count` is the number of entries, where that is known."""
        self.raw = raw
        self.wanted = wanted
        self.count = 0
        self.is_full = False
        look = wanted.look
        shortest = look.template.shortest if look.template else _USUAL_SIZE
        room = len(raw) // shortest + 1_000 if count is None else count
        self._columns = ItemColumns.room(wanted.room, room)
        self._by_template = np.zeros(room, np.bool_)
        self._log = FrameLog.room(len(wanted.frames), 1_024 + len(raw) // 8 if wanted.frames else 1)
        self._longest = _longest(wanted, limits)
        size = _WIDER * len(raw) + ITEM_ROOM if look.is_json else 0
        self._room = np.empty(size + len(raw), np.uint8)  # no text has more characters than there are bytes
        self._out = self._room[:size]
        base = size if look.is_json else len(raw)
        self._decoded = DecodedTexts(self._room[size:], np.zeros(1, np.int64), base, np.zeros(room, np.uint8))
        self._written = 0

    @property
    def room(self) -> int:
        """The number of further entries that there is room for."""
        return len(self._columns.fits) - self.count

    def cut(self, at: int, stop: int, *, lines: bool) -> int:
        """Cut items out of the bytes from `at` on; gives the place where it stopped (`xml_scan.cut_items`)."""
        given = self.wanted.guide, self._longest, self._columns, self._log, self._decoded
        entries = self.count, len(self._columns.fits)
        if self.wanted.look.is_json:
            self.count, at, self._written = cut_lines(self.raw, at, stop, *given, *entries, self._out, self._written)
            return at
        pattern = self.wanted.pattern if self.wanted.look.template else NO_PATTERN
        found = cut_items(self.raw, at, stop, lines, *given, *entries, pattern, self._by_template)
        self.count, at, full = found
        self.is_full = full or self.count == len(self._columns.fits)
        return at

    def cut_all(self, ends: Indices) -> None:
        """Take all bytes apart as consecutive entries that end at `ends`."""
        given = self.wanted.guide, self._longest, self._columns, self._log, self._decoded
        if self.wanted.look.is_json:
            self._written = transcode_entries(self.raw, ends, *given, self._out)
        else:
            pattern = self.wanted.pattern if self.wanted.look.template else NO_PATTERN
            cut_entries(self.raw, ends, *given, pattern, self._by_template)
        self.count = len(ends)

    def pass_over(self, entries: int) -> None:
        """Skip the rows of entries that the splitter has cut out."""
        self._columns.fits[self.count : self.count + entries] = False
        self._by_template[self.count : self.count + entries] = False
        self.count += entries

    def finished(self, *, with_marks: bool = False) -> CutItems:
        """The entries that were cut out; marked ones fit only with `with_marks`, for callers that check marks."""
        columns, by_template = self._columns.first(self.count), self._by_template[: self.count]
        marks = self._decoded.marks[: self.count]
        if not with_marks:
            columns.fits[marks != CANONICAL] = False
        self._leave_unclear(columns, by_template)
        if not columns.fits.all():
            columns.clear(~columns.fits)
        templated = columns.fits & by_template
        columns = self.wanted.complete(columns, templated)
        data = self._data()
        frames = LoggedFrames(self.wanted, data, self._log, self.count) if self.wanted.frames else None
        return CutItems(columns, data, frames, int(np.count_nonzero(templated)), marks)

    def _data(self) -> Bytes:
        """The bytes that columns point into: those of items, and decoded texts behind them."""
        decoded = int(self._decoded.size[0])
        if self.wanted.look.is_json:
            return self._room[: len(self._out) + decoded] if decoded else self._out[: self._written]
        return np.concatenate([self.raw, self._decoded.data[:decoded]]) if decoded else self.raw

    def _leave_unclear(self, columns: ItemColumns, by_template: Flags) -> None:
        """An entry of which some column is unclear does not fit; of what is typed each reader sees for itself."""
        scanned = columns.fits & ~by_template
        if scanned.any():
            unclear = (columns.starts[self.wanted.untyped] == UNCLEAR).any(axis=0)
            columns.fits[scanned & unclear] = False


@lru_cache(maxsize=64)
def _longest(wanted: WantedColumns, limits: Limits) -> int:
    if wanted.look.is_json:
        return min(longest_line(wanted.look, limits), LONGEST_FITTING)
    return min(longest_item(wanted.guide, limits), LONGEST_FITTING)
