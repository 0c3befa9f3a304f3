"""Columns of texts: searched, cut, compared, changed and joined, each as the law's functions do it with one text.

A column has the start and end of each text in some bytes, which are valid UTF-8; a column of one text stands for the
same text in every row.
A function whose results are parts of texts (`substring`) gives a new column over the same bytes; others (`translate`)
write new bytes, one text behind the other.
Code points matter only where they are counted; searching, cutting and comparing work on bytes, whose order is that of
code points.

Guarantees: time is linear in bytes, whatever they are; only bytes of the texts are read; new bytes are at most
`MOST_BYTES`.
A text that needs more than a loop over bytes is flagged: case changes beyond ASCII, or no room for the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.rounding import rounded_half_up
from anabranch.columnar.scan.kernels import SPACE, Bytes, Flags, Indices, Numbers, Places, compiled, is_space

MOST_BYTES = 1 << 28
"""The limit of joined texts together: texts may double each time columns are joined."""
_BLOCK = 256
"""The number of places that are scanned before their result is tested."""
_PATIENCE = 8
"""A search that has compared more than this number of bytes for each byte of the text changes its method."""
_UPPER_BITS, _CONTINUES, _ASCII = 0xC0, 0x80, 0x80
"""The upper two bits of a byte, their value where it continues a code point, and the first byte beyond ASCII."""
_GONE = -1


class TextColumn(NamedTuple):
    """Texts by row: the start and end of each in the bytes."""

    data: Bytes
    starts: Places
    ends: Places

    @staticmethod
    def room(rows: int, size: int) -> TextColumn:
        """An empty column for `rows` texts of `size` bytes together."""
        assert size < 1 << 31, "places are of 32 bits"
        return TextColumn(np.empty(size, np.uint8), np.empty(rows, np.int32), np.empty(rows, np.int32))

    @staticmethod
    def of(*texts: bytes) -> TextColumn:
        """A column of these texts; a single one stands in every row."""
        bounds = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return TextColumn(np.frombuffer(b"".join(texts), np.uint8), bounds[:-1], bounds[1:])

    def spans(self, starts: Places, ends: Places) -> TextColumn:
        """Other texts in the same bytes."""
        return TextColumn(self.data, starts, ends)

    def take(self, rows: NDArray[Any]) -> TextColumn:
        """The texts of some rows."""
        return TextColumn(self.data, self.starts.take(rows), self.ends.take(rows)) if len(self.starts) > 1 else self

    def repeated(self, rows: int) -> TextColumn:
        """A column of one text in `rows` rows."""
        return TextColumn(self.data, np.repeat(self.starts, rows), np.repeat(self.ends, rows))

    def where(self, holds: Flags, other: TextColumn, rows: int) -> TextColumn:
        """These texts where `holds`, and those of `other` elsewhere."""
        moved = len(self.data)
        starts = np.where(holds, self.starts, other.starts + np.int32(moved))
        ends = np.where(holds, self.ends, other.ends + np.int32(moved))
        found = TextColumn(np.concatenate([self.data, other.data]), starts, ends)
        return found if len(starts) == rows else found.repeated(rows)

    def size(self) -> int:
        """The number of bytes of all texts, counted row by row."""
        return int((self.ends - self.starts).sum(dtype=np.int64))


def rows_of(*columns: NDArray[Any]) -> int:
    """The common number of rows of some columns, of which those of one row stand in every row."""
    return next((len(column) for column in columns if len(column) != 1), 1)


@compiled
def _span(texts: TextColumn, row: int) -> tuple[int, int]:
    """The start and end of the text of a row."""
    place = row if len(texts.starts) > 1 else 0
    return texts.starts[place], texts.ends[place]


# --- searching ------------------------------------------------------------------------------------------------


@compiled
def _same(data: Bytes, at: int, other: Bytes, place: int, size: int) -> int:
    """The number of bytes that are the same from two places on, at most `size`."""
    same = 0
    while same < size and data[at + same] == other[place + same]:
        same += 1
    return same


@compiled
def _may_stand(data: Bytes, at: int, count: int, gap: int, first: int, last: int) -> bool:
    """Whether at one of `count` places the byte `first` stands and, behind a gap, the byte `last`.

    Places are unsigned here, so that no index is checked for being negative and the loop is vectorised.
    """
    front, back = np.uint64(at), np.uint64(at + gap)
    any_of = np.uint8(0)
    for place in range(np.uint64(count)):
        any_of |= np.uint8((data[front + place] == first) & (data[back + place] == last))
    return bool(any_of)


@compiled
def _find(data: Bytes, start: int, stop: int, part: Bytes, begin: int, end: int) -> int:
    """The first place of a part in a text, -1 for none.

    Only places with its first and last byte are compared, so finding these is nearly all the work with usual texts; a
    text with many such places is searched by `_find_by_borders`.
    """
    size = end - begin
    if size == 0:
        return start
    behind = stop - size + 1
    first, last = part[begin], part[end - 1]
    patience = _PATIENCE * (stop - start)
    at = start
    while at < behind:
        count = min(_BLOCK, behind - at)
        if _may_stand(data, at, count, size - 1, first, last):
            for place in range(at, at + count):
                if data[place] == first and data[place + size - 1] == last:
                    same = _same(data, place, part, begin, size)
                    if same == size:
                        return place
                    patience -= same
                    if patience < 0:
                        return _find_by_borders(data, place + 1, stop, part[begin:end])
        at += count
    return -1


@compiled
def _find_by_borders(data: Bytes, at: int, stop: int, part: Bytes) -> int:
    """The first place of a part, by the method of Knuth, Morris and Pratt, which reads each byte at most twice."""
    borders = np.zeros(len(part) + 1, np.int32)
    """By length of a prefix of the part: its longest proper prefix that is also its suffix."""
    length = 0
    for place in range(1, len(part)):
        while length and part[place] != part[length]:
            length = borders[length]
        length += part[place] == part[length]
        borders[place + 1] = length
    length = 0
    while at < stop:
        while length and data[at] != part[length]:
            length = borders[length]
        length += data[at] == part[length]
        at += 1
        if length == len(part):
            return int(at - length)
    return -1


@compiled
def _search(texts: TextColumn, parts: TextColumn, found: Places) -> None:
    """The first place of each part in its text, -1 for none."""
    for row in range(len(found)):
        start, stop = _span(texts, row)
        begin, end = _span(parts, row)
        found[row] = _find(texts.data, start, stop, parts.data, begin, end)


@compiled
def _begins(texts: TextColumn, parts: TextColumn, found: Flags) -> None:
    for row in range(len(found)):
        start, stop = _span(texts, row)
        begin, end = _span(parts, row)
        size = end - begin
        found[row] = size <= stop - start and _same(texts.data, start, parts.data, begin, size) == size


@compiled
def _finishes(texts: TextColumn, parts: TextColumn, found: Flags) -> None:
    for row in range(len(found)):
        start, stop = _span(texts, row)
        begin, end = _span(parts, row)
        size = end - begin
        found[row] = size <= stop - start and _same(texts.data, stop - size, parts.data, begin, size) == size


def _places(texts: TextColumn, parts: TextColumn) -> Places:
    found = np.empty(rows_of(texts.starts, parts.starts), np.int32)
    _search(texts, parts, found)
    return found


def contains(texts: TextColumn, parts: TextColumn) -> Flags:
    """Whether each text contains its part."""
    found: Flags = _places(texts, parts) >= 0
    return found


def starts_with(texts: TextColumn, parts: TextColumn) -> Flags:
    """Whether each text begins with its part."""
    found = np.empty(rows_of(texts.starts, parts.starts), np.bool_)
    _begins(texts, parts, found)
    return found


def ends_with(texts: TextColumn, parts: TextColumn) -> Flags:
    """Whether each text ends with its part."""
    found = np.empty(rows_of(texts.starts, parts.starts), np.bool_)
    _finishes(texts, parts, found)
    return found


# --- comparing ------------------------------------------------------------------------------------------------


@compiled
def _compare(left: TextColumn, right: TextColumn, found: NDArray[np.int8]) -> None:
    for row in range(len(found)):
        start, stop = _span(left, row)
        begin, end = _span(right, row)
        size = min(stop - start, end - begin)
        same = _same(left.data, start, right.data, begin, size)
        if same < size:
            found[row] = -1 if left.data[start + same] < right.data[begin + same] else 1
        else:
            found[row] = np.sign((stop - start) - (end - begin))


@compiled
def _equate(left: TextColumn, right: TextColumn, found: Flags) -> None:
    for row in range(len(found)):
        start, stop = _span(left, row)
        begin, end = _span(right, row)
        size = end - begin
        found[row] = size == stop - start and _same(left.data, start, right.data, begin, size) == size


def order_of(left: TextColumn, right: TextColumn) -> NDArray[np.int8]:
    """Whether each text comes before another (-1), is the same (0) or comes behind it (1), by code point."""
    found = np.empty(rows_of(left.starts, right.starts), np.int8)
    _compare(left, right, found)
    return found


def equal(left: TextColumn, right: TextColumn) -> Flags:
    """Whether each text is the same as another."""
    found = np.empty(rows_of(left.starts, right.starts), np.bool_)
    _equate(left, right, found)
    return found


# --- counting and cutting -------------------------------------------------------------------------------------


@compiled
def _count_code_points(texts: TextColumn, found: Indices) -> None:
    for row in range(len(found)):
        text = texts.data[texts.starts[row] : texts.ends[row]]
        count = 0
        for place in range(len(text)):
            count += text[place] & _UPPER_BITS != _CONTINUES
        found[row] = count


def string_length(texts: TextColumn) -> Indices:
    """The number of code points of each text."""
    found = np.empty(len(texts.starts), np.int64)
    _count_code_points(texts, found)
    return found


@compiled
def _behind(data: Bytes, at: int, stop: int, count: int) -> int:
    """The place behind `count` code points, or behind the text where there are fewer."""
    while at < stop:
        if data[at] & _UPPER_BITS != _CONTINUES:
            if count == 0:
                break
            count -= 1
        at += 1
    return at


@compiled
def _cut(texts: TextColumn, firsts: Numbers, behinds: Numbers, starts: Places, ends: Places) -> None:
    """The code points of each text from one position on and before another, both integers, INF, or NaN for none."""
    for row in range(len(starts)):
        start, stop = _span(texts, row)
        first, behind = firsts[row], behinds[row]
        size = stop - start
        starts[row] = ends[row] = start
        if first <= size and behind > 1 and first < behind:
            skipped = int(max(first, 1.0)) - 1
            starts[row] = _behind(texts.data, start, stop, skipped)
            ends[row] = stop
            if behind <= size:
                ends[row] = _behind(texts.data, starts[row], stop, int(behind) - 1 - skipped)


def substring(texts: TextColumn, first: Numbers, length: Numbers | None = None) -> TextColumn:
    """The code points of each text at the positions from `first` on, all or `length` of them; positions count from 1.

    Both are rounded half up, and INF and NaN are positions that are compared as such (XQuery's `fn:substring`).
    """
    rows = rows_of(texts.starts, first, *([] if length is None else [length]))
    firsts, behinds = rounded_half_up(first), np.full(1, np.inf)
    if length is not None:
        with np.errstate(invalid="ignore", over="ignore"):  # -INF and INF together are NaN
            behinds = firsts + rounded_half_up(length)
    starts, ends = np.empty(rows, np.int32), np.empty(rows, np.int32)
    _cut(texts, _in_every_row(firsts, rows), _in_every_row(behinds, rows), starts, ends)
    return texts.spans(starts, ends)


def _in_every_row(numbers: Numbers, rows: int) -> Numbers:
    return np.full(rows, numbers[0]) if len(numbers) == 1 else numbers


@compiled
def _cut_around(texts: TextColumn, parts: TextColumn, before: bool, starts: Places, ends: Places) -> None:
    for row in range(len(starts)):
        start, stop = _span(texts, row)
        begin, end = _span(parts, row)
        place = _find(texts.data, start, stop, parts.data, begin, end)
        if before:
            starts[row], ends[row] = start, max(place, start)
        else:
            starts[row], ends[row] = stop if place < 0 else place + end - begin, stop


def substring_before(texts: TextColumn, parts: TextColumn) -> TextColumn:
    """The text before the first occurrence of a part in each text: empty where it does not occur or is empty."""
    starts, ends = (np.empty(rows_of(texts.starts, parts.starts), np.int32) for _ in range(2))
    _cut_around(texts, parts, True, starts, ends)
    return texts.spans(starts, ends)


def substring_after(texts: TextColumn, parts: TextColumn) -> TextColumn:
    """The text behind the first occurrence of a part in each text: empty where it does not occur."""
    starts, ends = (np.empty(rows_of(texts.starts, parts.starts), np.int32) for _ in range(2))
    _cut_around(texts, parts, False, starts, ends)
    return texts.spans(starts, ends)


# --- making ---------------------------------------------------------------------------------------------------


@compiled
def _trim(texts: TextColumn, starts: Places, ends: Places) -> bool:
    """Cut off the white space around each text; gives whether the texts are normalised then."""
    data = texts.data
    normal = True
    for row in range(len(starts)):
        start, stop = texts.starts[row], texts.ends[row]
        while start < stop and is_space(data[start]):
            start += 1
        while start < stop and is_space(data[stop - 1]):
            stop -= 1
        starts[row], ends[row] = start, stop
        for place in range(start, stop):
            if is_space(data[place]):
                normal &= data[place] == SPACE and not is_space(data[place + 1])
    return normal


@compiled
def _normalize(texts: TextColumn, out: Bytes, starts: Places, ends: Places) -> None:
    """Write each text, which has no white space around it, with one blank for each run of white space."""
    at = 0
    for row in range(len(starts)):
        starts[row] = at
        blank = False
        for place in range(texts.starts[row], texts.ends[row]):
            byte = texts.data[place]
            space = is_space(byte)
            if not (space and blank):
                out[at] = SPACE if space else byte
                at += 1
            blank = space
        ends[row] = at


def normalize_space(texts: TextColumn) -> TextColumn:
    """Each text with its words and one blank between them; over the same bytes where nothing between them changes."""
    starts, ends = np.empty_like(texts.starts), np.empty_like(texts.ends)
    normal = _trim(texts, starts, ends)
    trimmed = texts.spans(starts, ends)
    if normal:
        return trimmed
    made = TextColumn.room(len(starts), trimmed.size())
    _normalize(trimmed, *made)
    return made


class Translation(NamedTuple):
    """A translation of the characters of texts, byte by byte."""

    table: NDArray[np.int16]
    """By byte: its replacement, -1 where it is removed."""
    everywhere: bool
    """Whether the table also holds for texts beyond ASCII, whose other characters stay."""

    @staticmethod
    def of(old: str, new: str) -> Translation | None:
        """The translation of XQuery's `fn:translate`; None if a replacement has several bytes."""
        table = np.arange(256, dtype=np.int16)
        replaced: set[str] = set()
        for place, character in enumerate(old):
            if character in replaced or not character.isascii():
                continue
            replaced.add(character)
            if place < len(new) and not new[place].isascii():
                return None
            table[ord(character)] = ord(new[place]) if place < len(new) else _GONE
        return Translation(table, old.isascii())


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _changing_case(old: str, new: str) -> Translation:
    found = Translation.of(old, new)
    assert found is not None, "letters are ASCII"
    return Translation(found.table, everywhere=False)


UPPER_CASE, LOWER_CASE = _changing_case(_LETTERS, _LETTERS.upper()), _changing_case(_LETTERS.upper(), _LETTERS)


@compiled
def _translate(
    texts: TextColumn, translation: Translation, unclear: Flags, out: Bytes, starts: Places, ends: Places
) -> None:
    table, everywhere = translation
    at = 0
    for row in range(len(starts)):
        starts[row] = at
        any_of = np.uint8(0)
        for byte in texts.data[texts.starts[row] : texts.ends[row]]:
            any_of |= byte
            out[at] = table[byte]
            at += table[byte] != _GONE
        ends[row] = at
        unclear[row] = any_of >= _ASCII and not everywhere


def translate(texts: TextColumn, translation: Translation) -> tuple[TextColumn, Flags]:
    """Each text translated, and which texts need more than a table of bytes."""
    made, unclear = TextColumn.room(len(texts.starts), texts.size()), np.empty(len(texts.starts), np.bool_)
    _translate(texts, translation, unclear, *made)
    return made, unclear


def changed(texts: TextColumn, some: Flags, change: Callable[[str], str]) -> TextColumn:
    """The texts of some rows changed by a function, one by one; the others are empty."""
    spans = zip(texts.starts[some].tolist(), texts.ends[some].tolist(), strict=True)
    made = [change(bytes(texts.data[start:end]).decode()).encode() for start, end in spans]
    sizes = np.zeros(len(some), np.int32)
    sizes[some] = list(map(len, made))
    ends = np.cumsum(sizes, dtype=np.int32)
    return TextColumn.of(b"".join(made)).spans(ends - sizes, ends)


@compiled
def _append(texts: TextColumn, taken: Flags, places: Places, out: Bytes) -> None:
    """Copy the texts of some rows to `places` in `out`, and advance these places."""
    for row in range(len(places)):
        if taken[row]:
            start, stop = _span(texts, row)
            text, room = texts.data[start:stop], out[places[row] : places[row] + stop - start]
            for place in range(len(text)):
                room[place] = text[place]
            places[row] += len(text)


def concat(columns: Sequence[TextColumn]) -> tuple[TextColumn, Flags]:
    """The texts of each row concatenated, and which rows are unclear because there is no room."""
    rows = rows_of(*(column.starts for column in columns))
    sizes = np.zeros(rows, np.int64)
    for column in columns:
        sizes += column.ends - column.starts
    fits = np.cumsum(sizes) <= MOST_BYTES
    behind = np.cumsum(np.where(fits, sizes, 0))
    made = TextColumn.room(rows, int(behind[-1]) if rows else 0)
    made.ends[:] = behind
    made.starts[:] = behind - np.where(fits, sizes, 0)
    places = made.starts.copy()
    for column in columns:
        _append(column, fits, places, made.data)
    return made, ~fits
