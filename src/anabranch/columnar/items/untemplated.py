"""Items that do not fit the look, read for the numbers that are needed and nothing else.

Two readers share the work.
A compiled loop (`scan`) walks the markup of one item: where elements begin and end, which of them lie on a wanted path,
and that the item is closed in itself.
Expat, the parser behind `stream/reading/parse.py`, then judges about a thousand such items at once, with no handler,
inside one element: since each is closed in itself, all are well-formed if that element is.
Where it finds a fault, they are judged one by one.

The loop knows just enough of XML to follow elements in a well-formed text: tags with quoted values, comments, CDATA
sections, instructions.
Items that it cannot follow, and those with namespaces, it leaves alone.

Guarantees: an item that is called good is one that `parse_item` would accept; a number that comes out is that of the
only element at its path.
An item that is called closed begins and ends between elements, leaves nothing open, and holds one element at the top
with nothing but white space, comments and instructions around it; so an item that is well-formed between others like it
is so alone, and joining such items cannot hide a fault of one behind another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import SPACE, Bytes, Flags, Indices, Numbers, Places, compiled, is_space, number_at
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.template import scope_around
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.limits import LONGEST_NAME, Limits

AT_A_TIME = 1_000
_ATTRIBUTE = len(' a=""')

_Guide: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Names, and steps as `scan` takes them."""


def fill(shredded: Shredded, limits: Limits) -> NDArray[np.bool_]:
    """Set the numbers of entries that do not fit, as far as they are clear; says which of these are good items."""
    good = np.zeros(len(shredded.fits), np.bool_)
    others = np.flatnonzero(~shredded.fits)
    if shredded.wanted is None or shredded.wanted.look.is_json or not len(others):
        return good
    entries, data, begins, finishes = _spans(shredded, others)
    # an item of at most so many bytes has neither too many nodes or attributes nor too long a name
    longest = min(LONGEST_NAME, limits.nodes, limits.item_bytes, _ATTRIBUTE * limits.attributes)
    values = np.full((len(shredded.values), len(entries)), np.nan)
    closed = np.zeros(len(entries), np.bool_)
    scan(data, begins, finishes, longest, limits.depth, *_guide(shredded.wanted), values, closed)
    able = np.flatnonzero(closed)
    view = data.data
    for first in range(0, len(able), AT_A_TIME):
        batch = able[first : first + AT_A_TIME]
        good[entries[batch[_well_formed([view[begins[each] : finishes[each]] for each in batch])]]] = True
    values[:, ~good[entries]] = np.nan
    shredded.values[:, entries] = values
    return good


def _spans(
    shredded: Shredded, others: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Entries that may be good items, and where their bytes are."""
    if not shredded.cuts:
        return others, shredded.raw, shredded.begins[others], shredded.finishes[others]
    assert shredded.wanted is not None, "something is wanted"
    around = {(cut.root, cut.encoding) for cut in shredded.cuts.values()}
    plain = {each for each in around if scope_around(*each) == shredded.wanted.look.scope}
    able = {
        entry: cut.raw
        for entry, cut in shredded.cuts.items()
        if cut.reason is None and (cut.root, cut.encoding) in plain
    }
    ends = np.cumsum([0, *map(len, able.values())], dtype=np.int32)
    data = np.frombuffer(b"".join(able.values()), np.uint8)
    return np.fromiter(able, np.int64), data, ends[:-1], ends[1:]


def _well_formed(items: Sequence[memoryview]) -> NDArray[np.bool_]:
    """Which of some items, each closed in itself, are well-formed."""
    if _parses(b"".join((b"<all>", *items, b"</all>"))):
        return np.ones(len(items), np.bool_)
    return np.fromiter((_parses(bytes(item)) for item in items), np.bool_)


def _parses(data: bytes) -> bool:
    if b"\0" in data:  # expat would take it for UTF-16, whatever it is told
        return False
    try:
        expat.ParserCreate("utf-8").Parse(data, True)
    except expat.ExpatError:
        return False
    return True


@lru_cache(maxsize=64)
def _guide(wanted: WantedColumns) -> _Guide:
    """The look's elements as steps: (state, start of the name, its end, next state, row or -1) each.

    Nothing leads into items that declare namespaces: those that are read here do not.
    """
    names = bytearray()
    steps: list[tuple[int, int, int, int, int]] = []
    for number, part in enumerate(wanted.look.parts):
        name = part.name.encode()
        if part.name.startswith("@") or part.declared:
            continue
        row = wanted.rows.get(number, -1)
        is_wanted = row >= 0 and wanted.numeric[row] and wanted.look.frames[number] < 0
        steps.append((part.parent + 1, len(names), len(names) + len(name), number + 1, row if is_wanted else -1))
        names += name
    return np.frombuffer(bytes(names), np.uint8), np.array(steps, np.int64).reshape(-1, 5)


# --- markup ----------------------------------------------------------------------------------------------------


_OPEN, _CLOSE, _SLASH, _BANG, _QUESTION, _DASH, _COLON = b"<>/!?-:"
_QUOTE, _APOSTROPHE, _BRACKET, _CLOSING_BRACKET = b"\"'[]"
_M, _L, _N = b"mln"


@compiled
def scan(
    data: Bytes,
    begins: Places,
    finishes: Places,
    longest: int,
    deepest: int,
    names: Bytes,
    steps: Indices,
    values: Numbers,
    closed: Flags,
) -> None:
    """Walk each item `data[begin:finish]` that is not too long; set the numbers at the paths, and whether it is closed.

    The paths are those of `_guide`: each step leads from a state by a name to another state and perhaps to a row.
    A number stays NaN where its element comes twice, or holds more than one simple number.
    """
    states = np.empty(deepest + 1, np.int64)
    seen = np.empty(len(values), np.int64)
    for item in range(len(begins)):
        at, stop = begins[item], finishes[item]
        if stop - at > longest:
            continue
        seen[:] = 0
        depth = 0
        elements = 0  # those at the top
        states[0] = 0
        while at < stop:
            if data[at] != _OPEN:
                if depth == 0 and not is_space(data[at]):
                    break
                at += 1
                continue
            mark = data[at + 1] if at + 1 < stop else 0
            if mark in (_BANG, _QUESTION):
                at = _behind_remark(data, at, stop, depth > 0)
                if at < 0:
                    break
                continue
            if mark == _SLASH:
                while at < stop and data[at] != _CLOSE:
                    at += 1
                depth -= 1
                at += 1
                if depth < 0:
                    break
                continue
            name = at + 1
            behind = _behind_name(data, name, stop)
            end, is_empty = _behind_tag(data, behind, stop)
            if end < 0 or (depth == 0 and elements > 0) or depth >= deepest:
                break
            elements += depth == 0
            state, row = _step(data, name, behind, names, steps, states[depth])
            at = end
            if not is_empty:
                depth += 1
                states[depth] = state
            if row >= 0:
                seen[row] += 1
                number, after = number_at(data, at, stop)
                is_alone = not is_empty and after + 1 < stop and data[after] == _OPEN and data[after + 1] == _SLASH
                values[row, item] = number if is_alone and seen[row] == 1 else np.nan
        closed[item] = at == stop and depth == 0 and elements == 1


@compiled
def _behind_name(data: Bytes, at: int, stop: int) -> int:
    while at < stop and not (data[at] <= SPACE or data[at] == _SLASH or data[at] == _CLOSE):
        at += 1
    return at


@compiled
def _behind_tag(data: Bytes, at: int, stop: int) -> tuple[int, bool]:
    """Where a start tag ends whose name ends at `at`, and whether it is an empty element's.

    -1 for the end where it has none, or where a colon or the name 'xmlns' shows that namespaces are used.
    """
    place = at - 1
    while place >= 0 and data[place] != _OPEN:  # back over the name
        if data[place] == _COLON:
            return -1, False
        place -= 1
    while at < stop:
        byte = data[at]
        if byte == _CLOSE:
            return at + 1, data[at - 1] == _SLASH
        if byte in (_QUOTE, _APOSTROPHE):
            at += 1
            while at < stop and data[at] != byte:
                at += 1
        elif byte in (_COLON, _OPEN) or (byte == _N and data[at - 1] == _L and data[at - 2] == _M):
            return -1, False
        at += 1
    return -1, False


@compiled
def _behind_remark(data: Bytes, at: int, stop: int, inside: bool) -> int:
    """Where a comment, a CDATA section or an instruction ends, -1 if it does not, or is something else.

    A CDATA section is text, so it stands `inside` an element only.
    """
    if at + 3 < stop and data[at + 1] == _BANG and data[at + 2] == _DASH and data[at + 3] == _DASH:
        first, second, at = _DASH, _DASH, at + 4
    elif inside and at + 8 < stop and data[at + 1] == _BANG and data[at + 2] == _BRACKET:
        first, second, at = _CLOSING_BRACKET, _CLOSING_BRACKET, at + 9
    elif data[at + 1] == _QUESTION:
        first, second, at = _QUESTION, 0, at + 2
    else:
        return -1
    while at + 2 < stop + (second == 0):
        if data[at] == first and (second == 0 or data[at + 1] == second):
            end = at + 2 if second else at + 1
            if data[end] == _CLOSE:
                return end + 1
        at += 1
    return -1


@compiled
def _step(data: Bytes, begin: int, end: int, names: Bytes, steps: Indices, state: int) -> tuple[int, int]:
    """The state and the row that a name leads to, -1 and -1 where it leads nowhere."""
    for number in range(len(steps)):
        above, first, last, below, row = steps[number]
        if above != state or last - first != end - begin:
            continue
        same = True
        for place in range(end - begin):
            if data[begin + place] != names[first + place]:
                same = False
                break
        if same:
            return below, row
    return -1, -1
