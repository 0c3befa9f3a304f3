"""One record of JSON written as the XML item that it stands for, along a look: the loop over its tokens.

Keys are looked up among the parts of the look, starting with the one that came next in the record before, since most
records have their keys in one order.
They are compared as the law spells them (`json_items.write_string`); a record that spells one otherwise is left to the
law.
Attributes can only be written while the start tag is open, so a key with `@` behind others is left to the law.

An array in an array is read as an object is whose only key is `member`, and has its array there.
Lookups tell both apart, so a record is left to the law where something is wanted of one in which they look keys up.

Where a look knows the type of a part and it is wanted, a value of this type is noted once more, in a row of its own;
one of another type makes that unclear, and `null` leaves it absent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.columnar.scan.decoded import DecodedTexts, decode
from anabranch.columnar.scan.json_tokens import (
    ESCAPED,
    FALSE,
    NULL,
    QUOTE,
    TRUE,
    decode_text,
    number_end,
    skip_space,
    text_end,
    word_end,
)
from anabranch.columnar.scan.kernels import (
    SPACE,
    UNCLEAR,
    Bytes,
    Flags,
    Indices,
    ItemColumns,
    Places,
    compiled,
    compiled_inline,
    number_at,
)
from anabranch.columnar.scan.look import JSON_TYPES
from anabranch.columnar.scan.wanted import FrameLog, Guide
from anabranch.columnar.scan.words import WORD, are_equal, put_bytes

LONGEST_ITEM = 1 << 16
"""Records that would be items of more bytes are left to the law."""
ITEM_ROOM = LONGEST_ITEM + WORD
"""The room that `out` must have for the next item."""
REFUSED = -1
"""In the place of a position: the record is left to the law."""
NO_ROOM = -2
"""In the place of a position: the log is full."""

_COMMA, _COLON, _BEGIN_OBJECT, _END_OBJECT, _BEGIN_ARRAY, _END_ARRAY = b",:{}[]"
_T, _F, _N = b"tfn"
_LESS, _GREATER, _SLASH, _EQUALS = b"<>/="

# What comes next.
_FIRST_KEY, _KEY, _VALUE, _MEMBER, _SEPARATOR, _END_LIST = range(6)

_STRING, _NUMBER, _BOOLEAN, _OBJECT = range(len(JSON_TYPES))
_LIST = len(JSON_TYPES)
"""An array in an array, which is of no type that a look knows."""
_NOTHING = -1
"""In the place of a type: that of `null`."""


class ScanState(NamedTuple):
    """The state of a scan: followers and stamps between records, and by level the open objects of a record, and its
    open arrays that are in arrays."""

    followers: Indices
    """By place among `children`: the place of the part that last followed it, -1 for none; then by part: the place of
    its first member."""
    stamps: Indices
    """By part: the number of the object in which it was seen last; behind them the number of the last object."""
    parts: Indices
    objects: Indices
    """By level: the number of the object."""
    begins: Indices
    """By level: where its element begins."""
    last_places: Indices
    """By level: the place in `followers` of the part that was seen last."""
    rows: Indices
    """By level: the row of its frame; the number of the entry for frame 0."""
    are_tags_open: Flags
    """By level: whether the start tag of its element has no end yet."""
    are_in_arrays: Flags
    """By level: whether an array of its object is being read."""
    read_from: Indices
    """By level: where it begins in the record."""
    arrays_from: Indices
    """By level: where the last array of its object begins in the record."""
    are_lists: Flags
    """By level: whether it is an array in an array, and no object."""


@compiled
def new_state(guide: Guide) -> ScanState:
    """The state before the first record."""
    count, levels = len(guide.has_text), len(guide.has_text) + 1
    followers = np.full(len(guide.children) + count, -1, np.int64)
    return ScanState(
        followers,
        np.zeros(count + 1, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.bool_),
        np.zeros(levels, np.bool_),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.bool_),
    )


@compiled_inline
def write_item(
    data: Bytes,
    at: int,
    stop: int,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    entry: int,
    out: Bytes,
    out_at: int,
    state: ScanState,
) -> int:
    """Write the record in `data[at:stop]` into `out` from a place on, and set the columns of an entry; gives its end.

    Where it is REFUSED or has NO_ROOM, the caller removes its rows and spans from the log.
    """
    names, bounds, are_attributes, heads, children, texts, wholes, numeric, has_text, frames, repeated = guide[:11]
    types, typed, arrays = guide.types, guide.typed, guide.arrays
    counts, opened, spans = log
    followers, stamps, parts, objects, begins, last_places, rows, are_tags_open, are_in_arrays = state[:9]
    read_from, arrays_from, are_lists = state.read_from, state.arrays_from, state.are_lists
    limit = min(len(out) - WORD, out_at + LONGEST_ITEM)
    at = skip_space(data, at, stop)
    if at >= stop or data[at] != _BEGIN_OBJECT or heads[1] != 1:
        return REFUSED
    at += 1
    part, level, row, expected = children[0], 0, entry, _FIRST_KEY
    if limit - out_at < bounds[part + 1] - bounds[part] + 1:
        return REFUSED
    write = put_bytes(names, bounds[part], bounds[part + 1], out, _put_sign(_LESS, out, out_at))
    _enter_object(state, level, part, row, out_at, len(children))
    while True:
        # --- on to the next value, or to the end of an object ---
        at = skip_space(data, at, stop)
        if at >= stop:
            return REFUSED
        if expected == _SEPARATOR:
            if data[at] == _COMMA:
                expected = _MEMBER if are_in_arrays[level] else _KEY
                at = skip_space(data, at + 1, stop)
            elif are_in_arrays[level]:
                if data[at] != _END_ARRAY:
                    return REFUSED
                are_in_arrays[level] = False
                if are_lists[level]:
                    expected = _END_LIST
                else:
                    at += 1
                    if not _note(
                        columns, log, arrays[part], frames[parts[level]], entry, rows[level], arrays_from[level], at
                    ):
                        return NO_ROOM
                    continue
        if expected <= _KEY and at < stop and data[at] == QUOTE:
            low, high, last = heads[parts[level] + 1], heads[parts[level] + 2], last_places[level]
            place, at = _find_key(
                data, at + 1, stop, guide.keys, guide.key_bounds, children, low, high, followers, last
            )
            if at < 0:
                return REFUSED
            last_places[level] = place
            part = children[place]
            if stamps[part] == objects[level]:
                return REFUSED
            stamps[part] = objects[level]
            expected = _VALUE
            if at < stop and data[at] == _BEGIN_ARRAY:
                arrays_from[level] = at
                at = skip_space(data, at + 1, stop)
                if at >= stop or are_attributes[part]:
                    return REFUSED
                if data[at] == _END_ARRAY:
                    expected = _SEPARATOR
                    at += 1
                    noted, first = arrays[part], arrays_from[level]
                    end = at
                    if not repeated[part]:
                        noted, first, end = typed[part], UNCLEAR, UNCLEAR
                    if not _note(columns, log, noted, frames[parts[level]], entry, rows[level], first, end):
                        return NO_ROOM
                    continue
                are_in_arrays[level] = True
            else:
                noted = arrays[part] if repeated[part] and at < stop and data[at] != _N else -1
                if not _note(columns, log, noted, frames[parts[level]], entry, rows[level], UNCLEAR, UNCLEAR):
                    return NO_ROOM
        if at >= stop:
            return REFUSED
        byte = data[at]

        if expected in (_VALUE, _MEMBER):
            # --- a value ---
            is_attribute = are_attributes[part]
            low, high = bounds[part], bounds[part + 1]
            if limit - write < high - low + 4 or (expected == _MEMBER and not repeated[part]):
                return REFUSED
            if is_attribute:
                if not are_tags_open[level]:
                    return REFUSED
            elif are_tags_open[level]:
                are_tags_open[level] = False
                write = _put_sign(_GREATER, out, write)
            row = rows[level]
            if repeated[part]:
                frame = frames[part]
                if counts[0] >= len(opened):
                    return NO_ROOM
                opened[counts[0], 0], opened[counts[0], 1] = frame, row
                row = counts[1 + frame]
                counts[0] += 1
                counts[1 + frame] += 1
            begin = write
            write = _put_sign(SPACE if is_attribute else _LESS, out, write)
            write = put_bytes(names, low, high, out, write)
            if byte == _BEGIN_OBJECT and not is_attribute:
                if are_in_arrays[level] and not repeated[part] and guide.holds_typed[part]:
                    return REFUSED  # lookups find nothing in an array
                level += 1
                read_from[level] = at
                at += 1
                _enter_object(state, level, part, row, begin, len(children))
                expected = _FIRST_KEY
                continue
            if byte == _BEGIN_ARRAY and are_in_arrays[level]:
                if guide.holds_typed[part]:
                    return REFUSED
                level += 1
                read_from[level] = at
                at = skip_space(data, at + 1, stop)
                _enter_object(state, level, part, row, begin, len(children))
                are_lists[level] = True
                expected = _END_LIST
                if at < stop and data[at] != _END_ARRAY:
                    part, expected, are_in_arrays[level] = guide.members[part], _VALUE, True
                    if part < 0:
                        return REFUSED
                continue
            found = _type_of(byte)
            first, end, at = _scalar(data, at, stop)
            if at < 0 or not (has_text[part] or first == end):
                return REFUSED
            start = write
            if is_attribute or first != end:
                at, start, write, plain = _put_text(
                    data, first, end, at, stop, is_attribute, high - low, out, write, limit
                )
                if at < 0:
                    return REFUSED
                end = write
                if is_attribute:
                    begin = start
                    write = _put_sign(QUOTE, out, write)
                else:
                    write = _put_end_tag(names, low, high, out, write)
                finish = end if is_attribute else write
                if not plain and (texts[part] >= 0 or typed[part] >= 0):
                    start, end = decode(out, start, end, decoded, entry)
                    if start < 0:
                        return REFUSED
            else:
                end = write
                write = finish = _put_sign(_GREATER, out, _put_sign(_SLASH, out, write))
        elif expected == _END_LIST or (byte == _END_OBJECT and expected != _KEY):
            # --- the end of an object, or of an array in an array ---
            part, row, begin = parts[level], rows[level], begins[level]
            low, high = bounds[part], bounds[part + 1]
            if limit - write < high - low + 3:
                return REFUSED
            if are_tags_open[level]:
                start = end = write
                write = _put_sign(_GREATER, out, _put_sign(_SLASH, out, write))
            else:
                start = end = UNCLEAR  # its text is that of all its parts together
                write = _put_end_tag(names, low, high, out, write)
            at += 1
            found, first = _LIST if are_lists[level] else _OBJECT, read_from[level]
            level -= 1
            finish = write
        else:
            return REFUSED

        # --- the columns of the part that has ended ---
        text, whole = texts[part], wholes[part]
        if frames[part] == 0:
            if text >= 0:
                columns.starts[text, entry], columns.ends[text, entry] = start, end
                if numeric[text] and 0 <= start < len(out):  # decoded texts are no numbers
                    number, behind = number_at(out, start, end)
                    columns.values[text, entry] = number if behind == end else np.nan
            if whole >= 0:
                columns.starts[whole, entry], columns.ends[whole, entry] = begin, finish
        elif not (_log(counts, spans, text, row, start, end) and _log(counts, spans, whole, row, begin, finish)):
            return NO_ROOM
        is_alone = level >= 0 and are_in_arrays[level] and not repeated[part]
        if typed[part] >= 0 and (found != _NOTHING or is_alone):
            if found != types[part] or is_alone:
                start = end = UNCLEAR
            elif found == _OBJECT:
                start, end = first, at
            elif found == _NUMBER and frames[part] == 0 and numeric[typed[part]]:
                number, behind = number_at(out, start, end)
                columns.values[typed[part], entry] = number if behind == end else np.nan
            if not _note(columns, log, typed[part], frames[part], entry, row, start, end):
                return NO_ROOM
        if level < 0:
            return write if skip_space(data, at, stop) == stop else REFUSED
        expected = _SEPARATOR


@compiled_inline
def _enter_object(state: ScanState, level: int, part: int, row: int, begin: int, places: int) -> None:
    """Open an object whose element begins at `begin` in `out`; `places` is the length of `Guide.children`."""
    stamps = state.stamps
    stamps[-1] += 1
    state.objects[level] = stamps[-1]
    state.parts[level], state.rows[level], state.begins[level] = part, row, begin
    state.last_places[level] = places + part
    state.are_tags_open[level], state.are_in_arrays[level], state.are_lists[level] = True, False, False


@compiled_inline
def _find_key(
    data: Bytes,
    at: int,
    stop: int,
    keys: Bytes,
    bounds: Indices,
    children: Indices,
    low: int,
    high: int,
    followers: Indices,
    last: int,
) -> tuple[int, int]:
    """The place of the key at `at` among `children[low:high]`, and the place of its value; REFUSED if it is none.

    The key that followed the last key in an earlier record is tried first, then the others, from the last one on.
    """
    place = followers[last]
    end = _key_end(data, at, stop, keys, bounds, children[place]) if place >= 0 else REFUSED
    if end < 0:
        place = last if last < len(children) else high - 1
        for _ in range(high - low):
            place = place + 1 if place + 1 < high else low
            end = _key_end(data, at, stop, keys, bounds, children[place])
            if end >= 0:
                followers[last] = place
                break
        else:
            return REFUSED, REFUSED
    end = skip_space(data, end, stop)
    if end >= stop or data[end] != _COLON:
        return REFUSED, REFUSED
    return place, skip_space(data, end + 1, stop)


@compiled_inline
def _key_end(data: Bytes, at: int, stop: int, keys: Bytes, bounds: Indices, part: int) -> int:
    """The place behind the key at `at`, if it is that of a part; the quote behind a key that is equal ends it."""
    low, size = bounds[part], bounds[part + 1] - bounds[part]
    end = at + int(size)
    if end >= stop or data[end] != QUOTE or not are_equal(data, at, keys, low, size):
        return REFUSED
    return end + 1


@compiled_inline
def _scalar(data: Bytes, at: int, stop: int) -> tuple[int, int, int]:
    """The start and end of the text of the value at `at`, and the place behind the value; REFUSED if it is none.

    A text with escapes ends at ESCAPED.
    """
    byte = data[at]
    if byte == QUOTE:
        end = text_end(data, at + 1, stop)
        return at + 1, end, at + 1 if end == ESCAPED else end + 1 if end >= 0 else REFUSED
    if byte == _N:
        end = word_end(data, at, stop, NULL)
        return end, end, end
    if byte == _T:
        end = word_end(data, at, stop, TRUE)
    elif byte == _F:
        end = word_end(data, at, stop, FALSE)
    else:
        end = number_end(data, at, stop)
    return at, end, end


@compiled_inline
def _put_text(
    data: Bytes,
    first: int,
    end: int,
    at: int,
    stop: int,
    is_attribute: bool,
    size: int,
    out: Bytes,
    write: int,
    limit: int,
) -> tuple[int, int, int, bool]:
    """Write the text that `_scalar` gave behind a name of `size` bytes, and leave room for the end tag or quote.

    Gives the place behind the value in `data`, the start and end of its text in `out`, and whether it is plain;
    REFUSED where there is no room or XML does not allow the text.
    """
    plain = True
    limit -= 1 if is_attribute else size + 3
    if limit - write < 2 + max(0, end - first):
        return REFUSED, REFUSED, REFUSED, False
    if is_attribute:
        write = _put_sign(_EQUALS, out, write)
    write = _put_sign(QUOTE if is_attribute else _GREATER, out, write)
    start = write
    if end == ESCAPED:
        quote, write, plain = decode_text(data, first, stop, is_attribute, out, write, limit)
        at = quote + 1 if quote >= 0 else REFUSED
    else:
        write = put_bytes(data, first, end, out, write)
    return at, start, write, plain


@compiled_inline
def _put_end_tag(names: Bytes, low: int, high: int, out: Bytes, write: int) -> int:
    write = _put_sign(_SLASH, out, _put_sign(_LESS, out, write))
    return _put_sign(_GREATER, out, put_bytes(names, low, high, out, write))


@compiled_inline
def _put_sign(sign: int, out: Bytes, write: int) -> int:
    out[write] = sign
    return write + 1


@compiled_inline
def _type_of(byte: int) -> int:
    """The type of a value that is no object, by its first byte."""
    return _STRING if byte == QUOTE else _NOTHING if byte == _N else _BOOLEAN if byte in (_T, _F) else _NUMBER


@compiled_inline
def _note(
    columns: ItemColumns, log: FrameLog, wanted: int, frame: int, entry: int, row: int, start: int, end: int
) -> bool:
    """Set or log a span in a row, if it is wanted; False where the log has no room for it."""
    if wanted < 0:
        return True
    if frame > 0:
        return _log(log.counts, log.spans, wanted, row, start, end)
    columns.starts[wanted, entry], columns.ends[wanted, entry] = start, end
    return True


@compiled_inline
def _log(counts: Indices, spans: Places, wanted: int, row: int, start: int, end: int) -> bool:
    """Log a span, if it is wanted; False where the log has no room for it."""
    if wanted < 0:
        return True
    number = counts[1]
    if number >= len(spans):
        return False
    spans[number, 0], spans[number, 1], spans[number, 2], spans[number, 3] = wanted, row, start, end
    counts[1] = number + 1
    return True
