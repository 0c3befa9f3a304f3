"""XML items read along a look: compiled, one item after the other, without a tree.

An item is taken if it is *of the look*, each of its elements and attributes being a part of it, and *canonical*: its
bytes are what `serialize` writes for the tree that `parse_item` reads out of them.
So copying bytes is copying nodes, as with templates (`template.py`), but parts may be missing, be repeated and come in
any order.

    <p a="1"><x>5</x><y/> text <x>6</x></p>

Of what is canonical, the scanner knows the plain cases: no comment, instruction, CDATA section, reference or namespace;
in attributes and in elements without elements, plain bytes (`PLAIN`) and characters beyond ASCII; beside elements, all
that is written as itself, line ends and tabs too.
It refuses whatever else there is, and the law judges that.

What comes twice where the look says once is unclear: the rows of that part, and of all parts inside of it.
There are no rows for this inside of a repeated part, nor for repeated parts inside of it; such items are refused.

Parts are found by guessing first: what came next the last time mostly comes next again.
Otherwise a hash table has them, so a look of a thousand names costs no more than one of ten.

Guarantees: an item that is taken is one that `parse_item` accepts, if it has no more bytes than `longest_item` says;
time is linear in the bytes of an item and the parts of the look, whatever the bytes are; nothing is read beyond `stop`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.columnar.scan.kernels import (
    ABSENT,
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
    compiled_lean,
    is_blank,
    is_space,
    number_at,
)
from anabranch.columnar.scan.template import PLAIN
from anabranch.columnar.scan.wanted import FrameLog, Guide
from anabranch.stream.limits import Limits

REFUSED, FULL = -1, -2
"""What is said of an item in the place of its end: that it is left to the law, or that there is no room in the log."""

_OPEN, _CLOSE, _SLASH, _EQUALS, _QUOTE = b'<>/="'
_ATTRIBUTE, _ELEMENT = len(' a=""'), len("<a></a>")
_BEYOND_ASCII = 0x80
_DELETE = 0x7F

_TEXT = np.frombuffer(PLAIN, np.uint8).astype(np.bool_)
"""By byte: whether it means itself in attributes, and in elements without elements."""
_BETWEEN = _TEXT | np.isin(np.arange(256), [TAB, LF, _QUOTE, _DELETE])
"""By byte: whether it means itself beside elements."""
_BETWEEN_IN_LINE = _BETWEEN & (np.arange(256) != LF)

NO_PATTERN = Pattern(
    np.frombuffer(b"\0", np.uint8),
    np.zeros(1, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.bool_),
    np.frombuffer(PLAIN, np.uint8),
)
"""That there is no template."""


def longest_item(guide: Guide, limits: Limits) -> int:
    """How many bytes an item of a look may have to be good by all limits, whatever it holds."""
    parents = _parents(guide.heads, guide.children)
    depths = np.zeros(len(parents) + 1, np.int64)  # the last is that of an item's surroundings
    for part, parent in enumerate(parents):
        depths[part] = depths[parent] + (not guide.are_attributes[part])
    attributes = np.bincount(parents[guide.are_attributes] + 1, minlength=1)
    longest = min(limits.item_bytes, limits.nodes)
    if depths.max() > limits.depth:
        longest = min(longest, _ELEMENT * limits.depth)
    if attributes.max() > limits.attributes:
        longest = min(longest, _ATTRIBUTE * limits.attributes)
    return longest


# --- what a scanner keeps -----------------------------------------------------------------------------------


class ScanMemory(NamedTuple):
    """What a scanner knows while it reads items, all of one look.

    A *stamp* is a number that is given once: to an item, to a row of a frame, or to a start tag.
    So nothing has to be cleared between items.
    """

    open_parts: Indices
    begins: Indices
    """By depth, from 1 on: the element that is open there, and where it begins; -1 for what is around an item."""
    inside: Indices
    """Room for parts that are still to be looked at."""
    rows: Indices
    stamps: Indices
    """By frame: its row that is open, and the stamp of that; for frame 0 those of the item."""
    seen: Indices
    """By part: the stamp of the row in which it came last; one more where it is unclear there."""
    tags: Indices
    """By part that is an attribute: the stamp of the start tag in which it came last."""
    last_stamp: Indices
    """A single number."""
    guesses: Indices
    """The part that came next the last time: behind part p at [p], as the first element in part p at [n + 1 + p], and
    as its first attribute at [2n + 1 + p], where n is the number of parts; p = -1 is what is around an item."""
    parents: Indices
    """By part."""
    hashes: Indices
    """By part: of its name and parent."""
    table: Indices
    """By hash: a part, or -1; where a place is taken, the next one is used."""


@compiled
def _parents(heads: Indices, children: Indices) -> Indices:
    """By part: the part that it is in."""
    parents = np.full(len(heads) - 2, -1, np.int64)
    for place in range(1, len(heads) - 1):
        for number in range(heads[place], heads[place + 1]):
            parents[children[number]] = place - 1
    return parents


@compiled
def scan_memory(guide: Guide) -> ScanMemory:
    """That of a scanner that has not read anything yet."""
    parts, frames = len(guide.texts), 1
    for part in range(parts):
        frames = max(frames, guide.frames[part] + 1)
    parents = _parents(guide.heads, guide.children)
    size = 2
    while size < 2 * parts:
        size *= 2
    hashes, table = np.empty(parts, np.int64), np.full(size, -1, np.int64)
    for part in range(parts):
        begin, end = guide.bounds[part], guide.bounds[part + 1]
        hashes[part] = _hash(guide.names, begin, end, parents[part], guide.are_attributes[part])
        place = hashes[part] & (size - 1)
        while table[place] >= 0:
            place = (place + 1) & (size - 1)
        table[place] = part
    return ScanMemory(
        np.full(parts + 1, -1, np.int64),
        np.zeros(parts + 1, np.int64),
        np.zeros(parts + 1, np.int64),
        np.zeros(frames, np.int64),
        np.zeros(frames, np.int64),
        np.zeros(parts, np.int64),
        np.zeros(parts, np.int64),
        np.zeros(1, np.int64),
        np.full(3 * parts + 1, -1, np.int64),
        parents,
        hashes,
        table,
    )


@compiled_lean
def _hash(data: Bytes, begin: int, end: int, parent: int, is_attribute: bool) -> int:
    """FNV-1a."""
    found = np.int64(2 * parent + is_attribute)
    for place in range(begin, end):
        found = (found ^ data[place]) * np.int64(0x100000001B3)
    return int(found ^ (found >> 32))


# --- one item -----------------------------------------------------------------------------------------------


@compiled
def scan_item(
    data: Bytes, at: int, stop: int, longest: int, guide: Guide, columns: ItemColumns, log: FrameLog, entry: int
) -> int:
    """Read the item that begins at a place; set the rows of an entry and log what is in frames.

    Gives the place behind the item, `REFUSED` or `FULL`; then its rows mean nothing, and nothing of it is logged.
    """
    return _scan_item(data, at, stop, longest, False, guide, columns, log, entry, scan_memory(guide))


@compiled_lean
def _scan_item(
    data: Bytes,
    at: int,
    stop: int,
    longest: int,
    in_line: bool,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    entry: int,
    memory: ScanMemory,
) -> int:
    """As `scan_item`; an item in a line has no line end in it."""
    rows, spans = log.counts[0], log.counts[1]
    behind = _scan(data, at, min(stop, at + longest), in_line, guide, columns, log, entry, memory)
    if behind < 0:
        _take_back(log, rows, spans)
    return behind


@compiled_lean
def _take_back(log: FrameLog, rows: int, spans: int) -> None:
    """Forget what was logged behind so many rows and spans."""
    for row in range(rows, log.counts[0]):
        log.counts[1 + log.opened[row, 0]] -= 1
    log.counts[0], log.counts[1] = rows, spans


@compiled_lean
def _scan(
    data: Bytes,
    at: int,
    stop: int,
    in_line: bool,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    entry: int,
    memory: ScanMemory,
) -> int:
    """As `_scan_item`, but what was logged stays."""
    names, bounds, _, _, _, texts, wholes, numeric, has_text, frames, repeated = guide
    open_parts, begins, _, rows, stamps, seen, tags, last_stamp, _, _, _, _ = memory
    parts = len(texts)
    between = _BETWEEN_IN_LINE if in_line else _BETWEEN
    for row in range(len(numeric)):
        columns.starts[row, entry] = columns.ends[row, entry] = ABSENT
        if numeric[row]:
            columns.values[row, entry] = np.nan
    last_stamp[0] += 2
    rows[0], stamps[0] = entry, last_stamp[0]
    depth = 0
    guess = parts  # where the guess of the next part stands
    while True:  # a start tag
        begin = at
        if at >= stop or data[at] != _OPEN:
            return REFUSED
        parent = open_parts[depth]
        part, at = _part_at(data, at + 1, stop, parent, False, guess, guide, memory)
        if part < 0:
            return REFUSED
        frame = frames[part]
        if repeated[part]:
            if not _open_row(log, memory, frame, rows[frames[parent] if parent >= 0 else 0]):
                return FULL
        elif seen[part] < stamps[frame]:
            seen[part] = stamps[frame]
        elif frame > 0 or (seen[part] == stamps[0] and not _make_unclear(part, entry, guide, columns, memory)):
            return REFUSED
        if at < stop and data[at] == SPACE:
            last_stamp[0] += 2
            tag = last_stamp[0]
            guess = 2 * parts + 1 + part
            while at < stop and data[at] == SPACE:
                attribute, at = _part_at(data, at + 1, stop, part, True, guess, guide, memory)
                if attribute < 0 or tags[attribute] == tag:
                    return REFUSED
                tags[attribute] = tag
                if at + 1 >= stop or data[at] != _EQUALS or data[at + 1] != _QUOTE:
                    return REFUSED
                text = at + 2
                at, number = _behind_value(data, text, stop, texts[attribute], numeric)
                if at >= stop or data[at] != _QUOTE:
                    return REFUSED
                room = _note(columns, log, memory, texts[attribute], attribute, frame, text, at, number)
                if not (room and _note(columns, log, memory, wholes[attribute], attribute, frame, text, at, np.nan)):
                    return FULL
                at += 1
                guess = attribute
        if at + 1 >= stop:
            return REFUSED
        is_closed = True
        if data[at] == _SLASH and data[at + 1] == _CLOSE:
            if not _note(columns, log, memory, texts[part], part, frame, at, at, np.nan):
                return FULL
            at += 2
        elif data[at] == _CLOSE:
            text = at + 1
            at, number = _behind_value(data, text, stop, texts[part], numeric)
            if at + 1 >= stop:
                return REFUSED
            if data[at] == _OPEN and data[at + 1] == _SLASH:
                behind = _behind_end_tag(data, at + 2, stop, names, bounds[part], bounds[part + 1])
                if at == text or behind < 0:
                    return REFUSED
                if not _note(columns, log, memory, texts[part], part, frame, text, at, number):
                    return FULL
                at = behind
            elif has_text[part]:
                return REFUSED
            else:  # there may be elements inside, so the text cannot be told
                if not _note(columns, log, memory, texts[part], part, frame, UNCLEAR, UNCLEAR, np.nan):
                    return FULL
                is_closed = False
                depth += 1
                open_parts[depth], begins[depth] = part, begin
                guess = parts + 1 + part
        else:
            return REFUSED
        if is_closed:
            if not _note(columns, log, memory, wholes[part], part, frame, begin, at, np.nan):
                return FULL
            guess = part
        while depth > 0:  # texts and end tags, until there is another start tag
            at = _behind_text(data, at, stop, between)
            if at + 1 >= stop:
                return REFUSED
            if data[at] != _OPEN or data[at + 1] != _SLASH:
                break
            part = open_parts[depth]
            at = _behind_end_tag(data, at + 2, stop, names, bounds[part], bounds[part + 1])
            if at < 0:
                return REFUSED
            if not _note(columns, log, memory, wholes[part], part, frames[part], begins[depth], at, np.nan):
                return FULL
            guess = part
            depth -= 1
        if depth == 0:
            return at


@compiled_lean
def _part_at(
    data: Bytes, at: int, stop: int, parent: int, is_attribute: bool, guess: int, guide: Guide, memory: ScanMemory
) -> tuple[int, int]:
    """The part inside another whose name stands at a place, and the place behind; -1 and anything for none.

    The guess is at `memory.guesses[guess]`.
    """
    names, bounds = guide.names, guide.bounds
    part = memory.guesses[guess]
    if part >= 0:
        behind = at + bounds[part + 1] - bounds[part]
        if behind < stop and _ends_name(data[behind]) and _is_same(data, at, names, bounds[part], bounds[part + 1]):
            return part, behind
    behind = at
    while behind < stop and not _ends_name(data[behind]):
        behind += 1
    wanted = _hash(data, at, behind, parent, is_attribute)
    table = memory.table
    place = wanted & (len(table) - 1)
    while True:
        part = table[place]
        if part < 0:
            return -1, behind
        if (
            memory.hashes[part] == wanted
            and memory.parents[part] == parent
            and guide.are_attributes[part] == is_attribute
            and bounds[part + 1] - bounds[part] == behind - at
            and _is_same(data, at, names, bounds[part], bounds[part + 1])
        ):
            memory.guesses[guess] = part
            return part, behind
        place = (place + 1) & (len(table) - 1)


@compiled_lean
def _ends_name(byte: int) -> bool:
    """Whether a byte ends a name; others that do are in no name of a look."""
    return byte in (_CLOSE, _SLASH, _EQUALS) or byte <= SPACE


@compiled_lean
def _is_same(data: Bytes, at: int, names: Bytes, begin: int, end: int) -> bool:
    for place in range(end - begin):  # noqa: SIM110 - `all` is slower here
        if data[at + place] != names[begin + place]:
            return False
    return True


@compiled_lean
def _behind_end_tag(data: Bytes, at: int, stop: int, names: Bytes, begin: int, end: int) -> int:
    """The place behind an end tag whose name stands at a place; -1 where it is another."""
    behind = at + end - begin
    return behind + 1 if behind < stop and data[behind] == _CLOSE and _is_same(data, at, names, begin, end) else -1


@compiled_lean
def _open_row(log: FrameLog, memory: ScanMemory, frame: int, around: int) -> bool:
    """Open a row of a frame; False where there is no room."""
    counts, opened, _ = log
    if counts[0] == len(opened):
        return False
    opened[counts[0], 0], opened[counts[0], 1] = frame, around
    memory.rows[frame] = counts[1 + frame]
    counts[0] += 1
    counts[1 + frame] += 1
    memory.last_stamp[0] += 2
    memory.stamps[frame] = memory.last_stamp[0]
    return True


@compiled_lean
def _note(
    columns: ItemColumns,
    log: FrameLog,
    memory: ScanMemory,
    row: int,
    part: int,
    frame: int,
    start: int,
    end: int,
    number: float,
) -> bool:
    """Set or log what was found of a part, if it is wanted; False where there is no room."""
    if row < 0:
        return True
    if frame == 0:
        if memory.seen[part] <= memory.stamps[0]:
            entry = memory.rows[0]
            columns.starts[row, entry], columns.ends[row, entry] = start, end
            if not np.isnan(number):
                columns.values[row, entry] = number
        return True
    counts, _, spans = log
    if counts[1] == len(spans):
        return False
    span = spans[counts[1]]
    span[0], span[1], span[2], span[3] = row, memory.rows[frame], start, end
    counts[1] += 1
    return True


@compiled_lean
def _make_unclear(part: int, entry: int, guide: Guide, columns: ItemColumns, memory: ScanMemory) -> bool:
    """Make a part of an entry and all that is inside of it unclear; False where something inside is repeated."""
    memory.inside[0] = part
    count = 1
    while count > 0:
        count -= 1
        part = memory.inside[count]
        if guide.repeated[part]:
            return False
        memory.seen[part] = memory.stamps[0] + 1
        for row in (guide.texts[part], guide.wholes[part]):
            if row >= 0:
                columns.starts[row, entry] = columns.ends[row, entry] = UNCLEAR
                columns.values[row, entry] = np.nan
        for place in range(guide.heads[part + 1], guide.heads[part + 2]):
            memory.inside[count] = guide.children[place]
            count += 1
    return True


# --- texts --------------------------------------------------------------------------------------------------


@compiled_lean
def _behind_value(data: Bytes, at: int, stop: int, row: int, numeric: Flags) -> tuple[int, float]:
    """The place behind a text that begins at a place, and its number if that is wanted and all of it."""
    number, place = np.nan, -1
    if row >= 0 and numeric[row]:
        number, place = number_at(data, at, stop)
        at = place
    at = _behind_text(data, at, stop, _TEXT)
    return at, number if at == place else np.nan


@compiled_lean
def _behind_text(data: Bytes, at: int, stop: int, itself: Flags) -> int:
    """The place behind all characters from a place on that are written as themselves."""
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
def _character_size(data: Bytes, at: int, stop: int) -> int:
    """How many bytes a character beyond ASCII has, 0 if it is none that XML allows, or no UTF-8."""
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
    count: int,
    most: int,
    pattern: Pattern,
    by_template: Flags,
) -> tuple[int, int, bool]:
    """Cut items of a look out of `data[at:stop]`; gives the number of entries, where it stopped, and whether for room.

    There are `count` entries before, and `most` are no more than `columns` and `by_template` have room for.
    With `lines` each line that is not blank is an entry, also one that is refused, and `data[stop - 1]` is a line end;
    otherwise items have white space between them, and the first thing that is refused is where it stops.
    It also stops before an item for which there is no room in the log; one that alone is too much for it is refused.

    Items that fit the template of `pattern` are told by `by_template`; of these, only the rows of its gaps are set, and
    nothing is logged. There is none in `NO_PATTERN`.
    """
    return _cut(
        data, at, stop, lines, guide, longest, columns, log, count, most, pattern, by_template, scan_memory(guide)
    )


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
            finish = _scan_item(data, at, stop, longest, lines, guide, columns, log, count, memory)
            if finish == FULL and (rows > 0 or spans > 0):
                return count, begin, True
        at = max(begin, finish)
        if lines and data[at] == CR:
            at += 1
        fit = finish >= 0 and at - begin <= longest and (not lines or data[at] == LF)
        if not fit:
            _take_back(log, rows, spans)
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
    pattern: Pattern,
    by_template: Flags,
) -> None:
    """As `cut_items`, for entries that stand one behind the other and end at `ends`: each is an item, or refused."""
    memory = scan_memory(guide)
    begin = 0
    for entry in range(len(ends)):
        end, rows, spans = ends[entry], log.counts[0], log.counts[1]
        finish = behind_template(data, begin, end, pattern, columns, entry) if len(pattern.bounds) > 1 else REFUSED
        by_template[entry] = finish == end
        if finish != end:
            finish = _scan_item(data, begin, end, longest, False, guide, columns, log, entry, memory)
            if finish != end:
                _take_back(log, rows, spans)
        columns.begins[entry], columns.finishes[entry] = begin, end
        columns.fits[entry] = finish == end and end - begin <= longest
        begin = end
