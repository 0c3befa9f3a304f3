"""The memory of a scanner that reads items along a look: the open elements, and the parts seen so far.

Parts are found by their names, by guessing first: the part that came next the last time mostly comes next again.
Where the guess is wrong, a hash table has them, so a look of a thousand names costs no more than one of ten.

The spans of a part are set in the rows of the item's entry; those inside a repeated part are logged.
Where a part comes twice that the look has once, its rows are unclear, and those of all parts inside it.

Guarantees: each function is linear in the length of a name or the number of parts; nothing is written outside the
arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.columnar.scan.kernels import (
    ABSENT,
    SPACE,
    UNCLEAR,
    Bytes,
    Indices,
    ItemColumns,
    compiled,
    compiled_inline,
    compiled_lean,
)
from anabranch.columnar.scan.wanted import FrameLog, Guide
from anabranch.columnar.scan.words import are_equal

_EQUALS, _QUOTE = b'="'
_ONE, _HALF, _PRIME = map(np.uint64, (1, 32, 0x100000001B3))


class ScanMemory(NamedTuple):
    """The state of a scanner while it reads items of one look.

    A *stamp* is a number that is given once: to an item, to a row of a frame, or to a start tag; stamps grow.
    So nothing has to be cleared between items.
    """

    open_parts: Indices
    begins: Indices
    """By depth, from 1 on: the element that is open there, and where it begins; part -1 is around an item."""
    inside: Indices
    """Room for the parts that `make_unclear` has still to visit."""
    rows: Indices
    stamps: Indices
    """By frame: its open row, and the stamp of that row; for frame 0 those of the item."""
    seen: Indices
    """By part: the stamp of the row in which it came last; one more where it is unclear there."""
    tags: Indices
    """By part that is an attribute: the stamp of the start tag in which it came last."""
    last_stamp: Indices
    """The stamp given last, as an array of one."""
    guesses: Indices
    """The part that came next the last time: behind part p at [p], as the first element in part p at [n + 1 + p], and
    as its first attribute at [2n + 1 + p], where n is the number of parts; part -1 is around an item."""
    parents: Indices
    """By part."""
    hashes: Indices
    """By part: the hash of its name, its parent and whether it is an attribute."""
    table: Indices
    """The hash table, with linear probing: by hash a part, or -1."""


@compiled
def parents_of(heads: Indices, children: Indices) -> Indices:
    """By part: the part around it, from the `heads` and `children` of a `Guide`."""
    parents = np.full(len(heads) - 2, -1, np.int64)
    for place in range(1, len(heads) - 1):
        for number in range(heads[place], heads[place + 1]):
            parents[children[number]] = place - 1
    return parents


@compiled
def scan_memory(guide: Guide) -> ScanMemory:
    """The memory of a scanner before its first item."""
    parts, frames = len(guide.texts), 1
    for part in range(parts):
        frames = max(frames, guide.frames[part] + 1)
    parents = parents_of(guide.heads, guide.children)
    size = 2
    while size < 2 * parts:
        size *= 2
    hashes, table = np.zeros(parts, np.int64), np.full(size, -1, np.int64)
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
        np.zeros(parts, np.int64),
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


@compiled_inline
def next_stamp(memory: ScanMemory) -> int:
    """A new stamp."""
    memory.last_stamp[0] += 2
    return memory.last_stamp[0]  # type: ignore[no-any-return]


@compiled_inline
def begin_item(entry: int, guide: Guide, columns: ItemColumns, memory: ScanMemory) -> None:
    """Begin an item: all its rows are absent so far."""
    for row in range(len(guide.numeric)):
        columns.starts[row, entry] = columns.ends[row, entry] = ABSENT
        if guide.numeric[row]:
            columns.values[row, entry] = np.nan
    memory.rows[0] = entry
    memory.stamps[0] = next_stamp(memory)


# --- names --------------------------------------------------------------------------------------------------


@compiled_inline
def guessed_part(data: Bytes, at: int, stop: int, guess: int, guide: Guide, memory: ScanMemory) -> tuple[int, int]:
    """The part at `guesses[guess]` and the place behind its name, if the bytes at `at` begin with it; -1 for none.

    There is at least one byte behind; the caller checks whether the name ends there.
    """
    part = memory.guesses[guess]
    if part >= 0:
        size = guide.bounds[part + 1] - guide.bounds[part]
        if at + size < stop and are_equal(data, at, guide.names, guide.bounds[part], size):
            return part, at + size
    return -1, at


@compiled_lean
def find_part(
    data: Bytes, begin: int, end: int, parent: int, is_attribute: bool, guess: int, guide: Guide, memory: ScanMemory
) -> int:
    """The part inside `parent` with the name `data[begin:end]`, -1 for none; it becomes the next guess."""
    wanted = _hash(data, begin, end, parent, is_attribute)
    table, bounds = memory.table, guide.bounds
    place = wanted & (len(table) - 1)
    while True:
        part = table[place]
        if part < 0:
            return -1
        if (
            memory.hashes[part] == wanted
            and memory.parents[part] == parent
            and guide.are_attributes[part] == is_attribute
            and bounds[part + 1] - bounds[part] == end - begin
            and are_equal(data, begin, guide.names, bounds[part], end - begin)
        ):
            memory.guesses[guess] = part
            return part  # type: ignore[no-any-return]
        place = (place + 1) & (len(table) - 1)


@compiled_lean
def _hash(data: Bytes, begin: int, end: int, parent: int, is_attribute: bool) -> int:
    """FNV-1a without the highest bits; in unsigned numbers, for signed ones must not overflow in compiled code."""
    found = np.uint64(2 * (parent + 1) + is_attribute)
    for place in range(begin, end):
        found = (found ^ np.uint64(data[place])) * _PRIME
    return np.int64((found ^ (found >> _HALF)) >> _ONE)  # type: ignore[return-value]


# --- declarations -------------------------------------------------------------------------------------------


@compiled_lean
def is_declared_first(data: Bytes, begin: int, end: int, part: int, guide: Guide) -> bool:
    """Whether the start tag `data[begin:end]` of a part begins with the look's declarations, as they are serialised."""
    at = begin + 1 + guide.bounds[part + 1] - guide.bounds[part]
    for number in range(guide.declared[part], guide.declared[part + 1]):
        at = _behind_declaration(data, at, end, number, guide)
        if at < 0:
            return False
    return True


@compiled_lean
def is_declared(data: Bytes, begin: int, end: int, part: int, guide: Guide) -> bool:
    """Whether the start tag `data[begin:end]` of a part has the look's declarations, anywhere among its attributes."""
    for number in range(guide.declared[part], guide.declared[part + 1]):
        at = begin
        is_quoted = False
        while at < end and (is_quoted or _behind_declaration(data, at, end, number, guide) < 0):
            is_quoted ^= data[at] == _QUOTE
            at += 1
        if at == end:
            return False
    return True


@compiled_inline
def _behind_declaration(data: Bytes, at: int, end: int, number: int, guide: Guide) -> int:
    """The place behind a declaration of the look, with the space before it, at `at`; -1 where it is not there."""
    part = len(guide.texts) - len(guide.uris) + 1 + number
    name, uri = guide.bounds[part], guide.uris[number]
    value = at + 1 + guide.bounds[part + 1] - name + 2
    behind = value + guide.uris[number + 1] - uri
    if behind >= end or data[at] != SPACE or data[value - 1] != _QUOTE or data[behind] != _QUOTE:
        return -1
    is_named = are_equal(data, at + 1, guide.names, name, value - 2 - at - 1) and data[value - 2] == _EQUALS
    return behind + 1 if is_named and are_equal(data, value, guide.names, uri, behind - value) else -1


# --- rows ---------------------------------------------------------------------------------------------------


@compiled_inline
def open_row(frame: int, around: int, log: FrameLog, memory: ScanMemory) -> bool:
    """Open a row of a frame inside the row `around`; False where there is no room."""
    counts, opened, _ = log
    if counts[0] == len(opened):
        return False
    opened[counts[0], 0], opened[counts[0], 1] = frame, around
    memory.rows[frame], memory.stamps[frame] = counts[1 + frame], next_stamp(memory)
    counts[0] += 1
    counts[1 + frame] += 1
    return True


@compiled_inline
def note(
    row: int,
    part: int,
    start: int,
    end: int,
    number: float,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    memory: ScanMemory,
) -> bool:
    """Set or log the span of a part in a row, if the row is wanted (not -1); False where there is no room."""
    if row < 0:
        return True
    frame = guide.frames[part]
    if frame == 0:
        if memory.seen[part] <= memory.stamps[0]:
            entry = memory.rows[0]
            columns.starts[row, entry], columns.ends[row, entry] = start, end
            if guide.numeric[row]:
                columns.values[row, entry] = number
        return True
    counts, _, spans = log
    place = counts[1]
    if place == len(spans):
        return False
    spans[place, 0], spans[place, 1], spans[place, 2], spans[place, 3] = row, memory.rows[frame], start, end
    counts[1] = place + 1
    return True


@compiled_lean
def make_unclear(part: int, guide: Guide, columns: ItemColumns, memory: ScanMemory) -> bool:
    """Make a part that an item has once, and all parts inside it, unclear; False if one of them is repeated.

    The logged rows of a repeated part could not be assigned to one of the two.
    """
    entry = memory.rows[0]
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


@compiled_lean
def take_back(log: FrameLog, rows: int, spans: int) -> None:
    """Truncate a log to its first `rows` rows and `spans` spans."""
    for row in range(rows, log.counts[0]):
        log.counts[1 + log.opened[row, 0]] -= 1
    log.counts[0], log.counts[1] = rows, spans
