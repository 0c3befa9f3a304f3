"""XML items read along a look: compiled, one item after the other, without a tree.

An item is taken if it is *of the look*, each of its elements and attributes being a part of it.
Most are *canonical*: their bytes are what `serialize` writes for the tree that `parse_item` reads out of them.
So copying bytes is copying nodes, as with templates (`template.py`), but parts may be missing, be repeated and come in
any order.
Others are marked (`decoded.py`), and so are those with texts that are not plain.

    <p a="1"><x>5</x><y/> text <x>6</x></p>

The scanner knows the everyday cases: no comment, instruction or CDATA section; only the references of `decoded.py`;
`<a></a>` and `<a />` as the only forms that are not canonical; only the namespaces that the look declares.
It compares names as they are written: in items that declare the same, these mean the same.
It refuses all other items, and the law judges them.
It also refuses items that `scan_memory.py` has no rows for: those in which a part comes twice that the look has once,
if it is inside a repeated part or has one inside it.

The text of an element that has other elements in it is unclear.

Guarantees: an item that is taken is one that `parse_item` accepts, if it has no more bytes than `longest_item` says;
time is linear in the bytes of an item and the parts of the look, whatever the bytes are; nothing is read beyond `stop`.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.scan.decoded import (
    AMPERSAND,
    CANONICAL,
    IS_CANONICAL,
    NO_REFERENCE,
    NOT_CANONICAL,
    DecodedTexts,
    decode,
    reference_at,
)
from anabranch.columnar.scan.kernels import (
    CR,
    LF,
    SPACE,
    TAB,
    UNCLEAR,
    Bytes,
    Flags,
    Indices,
    ItemColumns,
    Pattern,
    behind_template,
    compiled,
    compiled_inline,
    compiled_lean,
    is_blank,
    is_space,
    number_at,
)
from anabranch.columnar.scan.scan_memory import (
    ScanMemory,
    begin_item,
    find_part,
    guessed_part,
    is_declared,
    is_declared_first,
    make_unclear,
    next_stamp,
    note,
    open_row,
    parents_of,
    scan_memory,
    take_back,
)
from anabranch.columnar.scan.template import PLAIN
from anabranch.columnar.scan.wanted import FrameLog, Guide
from anabranch.columnar.scan.words import are_equal
from anabranch.stream.limits import Limits

REFUSED, FULL = -1, -2
"""In the place of an item's end: the item is left to the law, or there is no room in the log."""

_OPEN, _CLOSE, _SLASH, _EQUALS, _QUOTE = b'<>/="'
_ATTRIBUTE, _ELEMENT = len(' a=""'), len("<a></a>")
_BEYOND_ASCII = 0x80
_DELETE = 0x7F

_TEXT = np.frombuffer(PLAIN, np.uint8).astype(np.bool_)
"""By byte: whether it means itself in attributes, and in elements without elements."""
_BETWEEN = _TEXT | np.isin(np.arange(256), [TAB, LF, _QUOTE, _DELETE])
"""By byte: whether it means itself beside elements."""
_BETWEEN_IN_LINE = _BETWEEN & (np.arange(256) != LF)
_IN_ATTRIBUTE = _TEXT | np.isin(np.arange(256), [_CLOSE, _DELETE])

NO_PATTERN = Pattern(
    np.frombuffer(b"\0", np.uint8),
    np.zeros(1, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.bool_),
    np.frombuffer(PLAIN, np.uint8),
)
"""The pattern where there is no template."""


def longest_item(guide: Guide, limits: Limits) -> int:
    """The number of bytes up to which an item of a look cannot exceed any limit."""
    parents = parents_of(guide.heads, guide.children)
    depths = np.zeros(len(parents) + 1, np.int64)  # the last is for what is around an item
    for part, parent in enumerate(parents):
        depths[part] = depths[parent] + (not guide.are_attributes[part])
    attributes = np.bincount(parents[guide.are_attributes], minlength=1)
    longest = min(limits.item_bytes, limits.nodes)
    if depths.max() > limits.depth:
        longest = min(longest, _ELEMENT * limits.depth)
    if attributes.max() > limits.attributes:
        longest = min(longest, _ATTRIBUTE * limits.attributes)
    return longest


# --- one item -----------------------------------------------------------------------------------------------


@compiled_lean
def scan_item(
    data: Bytes,
    at: int,
    stop: int,
    in_line: bool,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    entry: int,
    memory: ScanMemory,
) -> int:
    """Read the item at `at`; set the rows of an entry, and log the parts in frames.

    An item in a line has no line end in it.
    Gives the place behind the item, or `REFUSED` or `FULL`: then its rows mean nothing, and the caller truncates the
    log to its size before.
    """
    texts, wholes = guide.texts, guide.wholes
    between = _BETWEEN_IN_LINE if in_line else _BETWEEN
    parts = len(texts)
    begin_item(entry, guide, columns, memory)
    decoded.marks[entry] = CANONICAL
    depth = 0
    guess = parts  # the place in `guesses` for the next part
    while True:  # a start tag
        begin = at
        if at >= stop or data[at] != _OPEN:
            return REFUSED
        part, at = _part_at(data, at + 1, stop, memory.open_parts[depth], False, guess, guide, memory)
        if part < 0:
            return REFUSED
        fault = _open_part(part, memory.open_parts[depth], guide, columns, log, memory)
        if fault < 0:
            return fault
        if at < stop and data[at] == SPACE:
            at = _behind_attributes(data, at, stop, part, guide, columns, log, decoded, entry, memory)
            if at < 0:
                return at
        if depth == 0 and len(guide.uris) > 1 and not is_declared_first(data, begin, at, part, guide):
            if not is_declared(data, begin, at, part, guide):
                return REFUSED
            decoded.marks[entry] = NOT_CANONICAL
        if at + 1 >= stop:
            return REFUSED
        text, end, number, is_closed = at, at, np.nan, True
        if data[at] == _SLASH and data[at + 1] == _CLOSE:
            at += 2
        elif data[at] == _CLOSE:
            text = at + 1
            end, number = _behind_value(data, text, stop, texts[part], guide.numeric)
            has_signs = guide.has_text[part] and end < stop and data[end] != _OPEN
            if has_signs:
                end, number = _behind_references(data, end, stop, between, False, decoded, entry), np.nan
            at = end
            if end + 1 >= stop:
                return REFUSED
            if data[end] == _OPEN and data[end + 1] == _SLASH:
                at = _behind_end_tag(data, end + 2, stop, part, guide)
                if at < 0:
                    return REFUSED
                if end == text:  # <a></a>
                    decoded.marks[entry] = NOT_CANONICAL
                if has_signs and texts[part] >= 0:
                    text, end = decode(data, text, end, decoded, entry)
                    if text < 0:
                        return REFUSED
            elif guide.has_text[part]:
                return REFUSED
            else:
                text, end, number, is_closed = UNCLEAR, UNCLEAR, np.nan, False
        else:
            return REFUSED
        if not note(texts[part], part, text, end, number, guide, columns, log, memory):
            return FULL
        if is_closed:
            if not note(wholes[part], part, begin, at, np.nan, guide, columns, log, memory):
                return FULL
            guess = part
        else:
            depth += 1
            memory.open_parts[depth], memory.begins[depth] = part, begin
            guess = parts + 1 + part
        while depth > 0:  # texts and end tags, until there is another start tag
            at = _behind_text(data, at, stop, between)
            if at < stop and data[at] == AMPERSAND:
                at = _behind_references(data, at, stop, between, False, decoded, entry)
            if at + 1 >= stop:
                return REFUSED
            if data[at] != _OPEN or data[at + 1] != _SLASH:
                break
            part = memory.open_parts[depth]
            at = _behind_end_tag(data, at + 2, stop, part, guide)
            if at < 0:
                return REFUSED
            if not note(wholes[part], part, memory.begins[depth], at, np.nan, guide, columns, log, memory):
                return FULL
            guess = part
            depth -= 1
        if depth == 0:
            return at


@compiled_inline
def _open_part(part: int, parent: int, guide: Guide, columns: ItemColumns, log: FrameLog, memory: ScanMemory) -> int:
    """Record the begin of an element; 0, `REFUSED` or `FULL`."""
    frame = guide.frames[part]
    if guide.repeated[part]:
        around = memory.rows[guide.frames[parent] if parent >= 0 else 0]
        return 0 if open_row(frame, around, log, memory) else FULL
    if memory.seen[part] < memory.stamps[frame]:
        memory.seen[part] = memory.stamps[frame]
        return 0
    if frame > 0:
        return REFUSED
    is_unclear = memory.seen[part] > memory.stamps[0]
    return 0 if is_unclear or make_unclear(part, guide, columns, memory) else REFUSED


@compiled_inline
def _behind_attributes(
    data: Bytes,
    at: int,
    stop: int,
    part: int,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    entry: int,
    memory: ScanMemory,
) -> int:
    """The place behind the attributes of an element, which begin with the space at `at`; or `REFUSED` or `FULL`."""
    tag = next_stamp(memory)
    guess = 2 * len(guide.texts) + 1 + part
    while at < stop and data[at] == SPACE:
        if at + 1 < stop and (data[at + 1] == _SLASH or data[at + 1] == _CLOSE):  # <a />
            decoded.marks[entry] = NOT_CANONICAL
            return at + 1
        attribute, at = _part_at(data, at + 1, stop, part, True, guess, guide, memory)
        if attribute < 0 or memory.tags[attribute] == tag:
            return REFUSED
        memory.tags[attribute] = tag
        if at + 1 >= stop or data[at] != _EQUALS or data[at + 1] != _QUOTE:
            return REFUSED
        text = at + 2
        row, whole = guide.texts[attribute], guide.wholes[attribute]
        at, number = _behind_value(data, text, stop, row, guide.numeric)
        start, end = text, at
        if at < stop and data[at] != _QUOTE:
            at, number = _behind_references(data, at, stop, _IN_ATTRIBUTE, True, decoded, entry), np.nan
            start, end = decode(data, text, at, decoded, entry) if row >= 0 else (text, at)
        if at >= stop or data[at] != _QUOTE or start < 0:
            return REFUSED
        if not (
            note(row, attribute, start, end, number, guide, columns, log, memory)
            and note(whole, attribute, text, at, np.nan, guide, columns, log, memory)
        ):
            return FULL
        at += 1
        guess = attribute
    return at


@compiled_inline
def _part_at(
    data: Bytes, at: int, stop: int, parent: int, is_attribute: bool, guess: int, guide: Guide, memory: ScanMemory
) -> tuple[int, int]:
    """The part inside `parent` whose name is at `at`, -1 for none, and the place behind the name."""
    part, behind = guessed_part(data, at, stop, guess, guide, memory)
    if part >= 0 and _ends_name(data[behind]):
        return part, behind
    behind = at
    while behind < stop and not _ends_name(data[behind]):
        behind += 1
    return find_part(data, at, behind, parent, is_attribute, guess, guide, memory), behind


@compiled_inline
def _ends_name(byte: int) -> bool:
    """Whether a byte ends a name; other bytes that end names are in no name of a look."""
    return byte in (_CLOSE, _SLASH, _EQUALS) or byte <= SPACE


@compiled_inline
def _behind_end_tag(data: Bytes, at: int, stop: int, part: int, guide: Guide) -> int:
    """The place behind the end tag of a part, whose name is at `at`; -1 where it is the tag of another part."""
    size = guide.bounds[part + 1] - guide.bounds[part]
    behind = at + size
    is_same = behind < stop and data[behind] == _CLOSE and are_equal(data, at, guide.names, guide.bounds[part], size)
    return behind + 1 if is_same else -1


# --- texts --------------------------------------------------------------------------------------------------


@compiled_inline
def _behind_value(data: Bytes, at: int, stop: int, row: int, numeric: Flags) -> tuple[int, float]:
    """The place behind the text at `at`, and its number, if a number is wanted and the text is one."""
    number, place = np.nan, -1
    if row >= 0 and numeric[row]:
        number, place = number_at(data, at, stop)
        at = place
    at = _behind_text(data, at, stop, _TEXT)
    return at, number if at == place else np.nan


@compiled_inline
def _behind_text(data: Bytes, at: int, stop: int, itself: Flags) -> int:
    """The place behind all characters from `at` on that are written as themselves."""
    while at < stop:
        if itself[data[at]]:
            at += 1
        elif data[at] >= _BEYOND_ASCII:
            size = _character_size(data, at, stop)
            if size == 0:
                break
            at += size
        else:
            break
    return at


@compiled_lean
def _behind_references(
    data: Bytes, at: int, stop: int, itself: Flags, is_attribute: bool, decoded: DecodedTexts, entry: int
) -> int:
    """The place behind all characters from `at` on that are written as themselves, or as references."""
    while True:
        at = _behind_text(data, at, stop, itself)
        if at >= stop or data[at] != AMPERSAND:
            return at
        reference, behind = reference_at(data, at, stop)
        if reference == NO_REFERENCE:
            return at
        if not IS_CANONICAL[int(is_attribute), reference]:
            decoded.marks[entry] = NOT_CANONICAL
        at = behind


@compiled_lean
def _character_size(data: Bytes, at: int, stop: int) -> int:
    """The number of bytes of a character beyond ASCII; 0 if it is none that XML allows, or no UTF-8."""
    first = data[at]
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or at + size > stop:
        return 0
    for place in range(at + 1, at + size):
        if data[place] & 0xC0 != 0x80:
            return 0
    second = data[at + 1]
    too_long = (first == 0xE0 and second < 0xA0) or (first == 0xF0 and second < 0x90)
    too_large = first == 0xF4 and second > 0x8F
    is_surrogate = first == 0xED and second > 0x9F
    is_no_character = first == 0xEF and second == 0xBF and data[at + 2] > 0xBD
    return 0 if too_long or too_large or is_surrogate or is_no_character else size


# --- many items ---------------------------------------------------------------------------------------------


@compiled
def cut_items(
    data: Bytes,
    at: int,
    stop: int,
    lines: bool,
    guide: Guide,
    longest: int,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    count: int,
    most: int,
    pattern: Pattern,
    by_template: Flags,
) -> tuple[int, int, bool]:
    """Cut items of a look out of `data[at:stop]`; gives the number of entries, its place, and whether room ended.

    There are `count` entries before, and `most` are no more than `columns` and `by_template` have room for.
    With `lines` each line that is not blank is an entry, also one that is refused, and `data[stop - 1]` is a line end;
    otherwise items have white space between them, and it stops at the first that is refused.
    It also stops before an item for which there is no room in the log; one that alone is too much for it is refused.

    `by_template` is set for items that fit the template of `pattern`; of these, only the rows of its gaps are set, and
    nothing is logged. `NO_PATTERN` has no template.
    """
    memory = scan_memory(guide)
    return _cut(data, at, stop, lines, guide, longest, columns, log, decoded, count, most, pattern, by_template, memory)


@compiled_lean
def _cut(
    data: Bytes,
    at: int,
    stop: int,
    lines: bool,
    guide: Guide,
    longest: int,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    count: int,
    most: int,
    pattern: Pattern,
    by_template: Flags,
    memory: ScanMemory,
) -> tuple[int, int, bool]:
    """As `cut_items`."""
    while count < most:
        while not lines and at < stop and is_space(data[at]):
            at += 1
        if at >= stop:
            break
        begin, rows, spans = at, log.counts[0], log.counts[1]
        finish = behind_template(data, at, stop, pattern, columns, count) if len(pattern.bounds) > 1 else REFUSED
        by_template[count] = finish >= 0
        if finish < 0:
            finish = scan_item(data, at, min(stop, at + longest), lines, guide, columns, log, decoded, count, memory)
            if finish == FULL and (rows > 0 or spans > 0):
                take_back(log, rows, spans)
                return count, begin, True
        at = max(begin, finish)
        if lines and data[at] == CR:
            at += 1
        fit = finish >= 0 and at - begin <= longest and (not lines or data[at] == LF)
        if not fit:
            take_back(log, rows, spans)
            at = begin
            by_template[count] = False
            if not lines:
                break
        if lines:
            while data[at] != LF:
                at += 1
            at += 1
            if not fit:
                finish = at - 1
                if is_blank(data, begin, finish):
                    continue
        columns.begins[count], columns.finishes[count], columns.fits[count] = begin, finish, fit
        count += 1
    return count, at, False


@compiled
def cut_entries(
    data: Bytes,
    ends: Indices,
    guide: Guide,
    longest: int,
    columns: ItemColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    pattern: Pattern,
    by_template: Flags,
) -> None:
    """As `cut_items`, for consecutive entries that end at `ends`: each is an item, or refused."""
    memory = scan_memory(guide)
    begin = 0
    for entry in range(len(ends)):
        end, rows, spans = ends[entry], log.counts[0], log.counts[1]
        finish = behind_template(data, begin, end, pattern, columns, entry) if len(pattern.bounds) > 1 else REFUSED
        by_template[entry] = finish == end
        if finish != end:
            finish = scan_item(
                data, begin, min(end, begin + longest), False, guide, columns, log, decoded, entry, memory
            )
            if finish != end:
                take_back(log, rows, spans)
        columns.begins[entry], columns.finishes[entry] = begin, end
        columns.fits[entry] = finish == end and end - begin <= longest
        begin = end
