"""Lines of JSON into columns: each record is written as the XML item that it stands for, and the columns point there.

    {"id": 7, "tag": ["a", "b"], "note": null}
    <item><id>7</id><tag>a</tag><tag>b</tag><note/></item>

So all code behind the scanner sees XML only.
A record is taken if it is correct JSON, all its keys are parts of the look and all its texts are such as XML allows
(`json_tokens.py`); anything else is left to the law.
Texts that are not plain are decoded, too, and such records are marked (`decoded.py`).
How one record is written is in `json_record.py`.

Guarantees: what is written is what `serialize` writes for the tree that `json_items.parse_line` makes, to the byte;
nothing is read or written outside of the arrays; time is linear in bytes; no item has more than `LONGEST_ITEM` bytes.

The look is that of records of JSON: all its names can be keys.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from anabranch.columnar.scan.decoded import CANONICAL, DecodedTexts
from anabranch.columnar.scan.json_record import (
    ITEM_ROOM,
    LONGEST_ITEM,
    NO_ROOM,
    REFUSED,
    ScanState,
    new_state,
    write_item,
)
from anabranch.columnar.scan.json_tokens import BACKSLASH, QUOTE
from anabranch.columnar.scan.kernels import (
    ABSENT,
    CR,
    LF,
    SPACE,
    TAB,
    Bytes,
    Flags,
    Indices,
    ItemColumns,
    Places,
    compiled,
    compiled_inline,
    compiled_lean,
)
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.wanted import FrameLog, Guide
from anabranch.columnar.scan.words import WORD, find_byte, put_bytes
from anabranch.stream.limits import Limits


def longest_line(look: Look, limits: Limits) -> int:
    """The number of bytes up to which a record of the look cannot exceed any limit: scanners do not count nodes.

    A record has no more nodes than bytes.
    """
    depths: list[int] = []
    for part in look.parts:
        is_inside = not (part.is_typed or part.name.startswith("@"))
        depths.append(1 if part.parent < 0 else depths[part.parent] + is_inside)
    attributes = Counter(part.parent for part in look.parts if part.name.startswith("@"))
    if max(depths) > limits.depth or max(attributes.values(), default=0) > limits.attributes:
        return 0
    return min(limits.item_bytes, limits.nodes, LONGEST_ITEM)


@compiled
def cut_lines(
    data: Bytes,
    at: int,
    stop: int,
    guide: Guide,
    longest: int,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    count: int,
    most: int,
    out: Bytes,
    out_at: int,
) -> tuple[int, int, int]:
    """Transcode the lines in `data[at:stop]`; gives the number of entries, and its places in `data` and `out`.

    There are `count` entries before, and `most` are no more than `columns` have room for; `data[stop - 1]` is a line
    end. Each line that is not blank is an entry, also one that does not fit, whose columns mean nothing.
    It stops early where `out` has less than `ITEM_ROOM` left or the log is full; a line that is too large for an empty
    log does not fit.
    """
    state = new_state(guide)
    while count < most and at < stop and len(out) - out_at >= ITEM_ROOM:
        begin = text = at
        end = find_byte(data, at, stop - 1, LF)
        while text < end and (data[text] == SPACE or TAB <= data[text] <= CR):
            text += 1
        if text < end:
            finish = end - 1 if data[end - 1] == CR else end
            # the splitter, too, takes one CR away
            fit = end - begin <= longest and data[finish - 1] != CR
            if fit:
                written = transcode(data, begin, finish, guide, columns, log, decoded, count, out, out_at, state)
                if written == NO_ROOM and log.counts[0] + log.counts[1] > 0:
                    break
                fit = written >= 0
                if fit:
                    out_at = written
            columns.begins[count], columns.finishes[count], columns.fits[count] = begin, finish if fit else end, fit
            count += 1
        at = end + 1
    return count, at, out_at


@compiled_lean
def transcode(
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
    """Write the record in `data[at:stop]` into `out` from a place on and set the columns of an entry; gives its end.

    It is REFUSED where it is not of the look or not plain, or would go beyond `LONGEST_ITEM` or `out`; NO_ROOM where
    the log is full.
    Then nothing of it is in the log, and the columns of the entry mean nothing.
    """
    counts, opened = log.counts, log.opened
    opened_before, logged_before = counts[0], counts[1]
    decoded.marks[entry] = CANONICAL
    for row in range(len(guide.numeric)):
        columns.starts[row, entry] = columns.ends[row, entry] = ABSENT
        if guide.numeric[row]:
            columns.values[row, entry] = np.nan
    end = write_item(data, at, stop, guide, columns, log, decoded, entry, out, out_at, state)
    if end < 0:
        for place in range(opened_before, counts[0]):
            counts[1 + opened[place, 0]] -= 1
        counts[0], counts[1] = opened_before, logged_before
    return end


@compiled
def transcode_entries(
    data: Bytes,
    ends: Indices,
    guide: Guide,
    longest: int,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    out: Bytes,
) -> int:
    """Transcode consecutive records that end at `ends`, each an entry; gives the end of what was written to `out`.

    A record for which there is no room does not fit.
    """
    state = new_state(guide)
    begin = out_at = 0
    for entry in range(len(ends)):
        end = ends[entry]
        written = -1
        if end - begin <= longest and len(out) - out_at >= ITEM_ROOM:
            written = transcode(data, begin, end, guide, columns, log, decoded, entry, out, out_at, state)
        columns.begins[entry], columns.finishes[entry], columns.fits[entry] = begin, end, written >= 0
        out_at = max(out_at, written)
        begin = end
    return out_at


# --- records as lines -----------------------------------------------------------------------------------------

_COMMA, _COLON, _BEGIN_OBJECT, _END_OBJECT, _AT_SIGN, _SMALL_N, _SMALL_T = b",:{}@nt"


@compiled_lean
def write_lines(
    data: Bytes,
    begins: Places,
    finishes: Places,
    asked: Flags,
    out: Bytes,
    starts: Places,
    ends: Places,
    unclear: Flags,
) -> int:
    """Write records that fit as lines of the answer, one behind the other; gives the end of the last one.

    Unclear are records that are not asked for, have no room, or that `json_items.write_value` may spell otherwise.
    """
    write = 0
    for entry in range(len(asked)):
        starts[entry] = ends[entry] = write
        unclear[entry] = True
        begin, finish = begins[entry], finishes[entry]
        if not asked[entry] or len(out) - write < 2 * (finish - begin) + 1 + WORD:
            continue
        end = _put_line(data, begin, finish, out, write)
        if end >= 0:
            ends[entry] = write = end
            unclear[entry] = False
    return write


@compiled_inline
def _put_line(data: Bytes, at: int, stop: int, out: Bytes, write: int) -> int:
    """Write a correct record with one space behind each comma and colon; REFUSED where more has to be changed.

    Strings are copied, so they must have no escapes but those that the law writes, and keys with `@` must come first.
    """
    begin, only_attributes = at, True
    while at < stop:
        byte = data[at]
        if byte == QUOTE:
            begin = at
            at += 1
            while at < stop and data[at] != QUOTE:
                if data[at] == BACKSLASH:
                    at += 1
                    if at >= stop or data[at] not in (QUOTE, BACKSLASH, _SMALL_N, _SMALL_T):
                        return REFUSED
                at += 1
            if at >= stop:
                return REFUSED
            at += 1
            write = put_bytes(data, begin, at, out, write)
            continue
        at += 1
        if byte <= SPACE:
            continue
        out[write] = byte
        write += 1
        if byte == _COMMA:
            out[write] = SPACE
            write += 1
        elif byte == _COLON:
            out[write] = SPACE
            write += 1
            if data[begin + 1] == _AT_SIGN and not only_attributes:
                return REFUSED
            only_attributes = data[begin + 1] == _AT_SIGN
        elif byte == _BEGIN_OBJECT:
            only_attributes = True
        elif byte == _END_OBJECT:
            only_attributes = False
    out[write] = LF
    return write + 1
