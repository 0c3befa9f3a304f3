"""Items that fit no template, read for the numbers that are wanted and nothing else.

Two readers share the work, each doing what it is good at.
A compiled loop (`scan`) walks the markup of one item: where elements begin and end, which of them lie on a wanted path,
and that the item is closed in itself.
Expat, the parser behind `stream/reading/parse.py`, then judges about a thousand such items at once, with no handler,
inside one element: since each is closed in itself, all are well-formed if that element is.
Where it finds a fault, they are judged one by one.

Guarantees: an item that is called good is one that `parse_item` would accept; a number that comes out is that of the
only element at its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.markup import scan
from anabranch.columnar.scan.shred import Shredded, Wanted
from anabranch.columnar.scan.template import is_plain_around
from anabranch.stream.limits import LONGEST_NAME, Limits

AT_A_TIME = 1_000
_ATTRIBUTE = len(' a=""')

_Guide: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Names, and steps as `scan` takes them."""


def fill(shredded: Shredded, limits: Limits) -> NDArray[np.bool_]:
    """Set the numbers of entries that do not fit, as far as they are clear; says which of these are good items."""
    good = np.zeros(len(shredded.fits), np.bool_)
    others = np.flatnonzero(~shredded.fits)
    if shredded.wanted is None or not len(others):
        return good
    entries, data, begins, finishes = _spans(shredded, others)
    # So small an item has neither too many nodes or attributes nor too long a name.
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
        return others, shredded.data, shredded.begins[others], shredded.finishes[others]
    around = {(cut.root, cut.encoding) for cut in shredded.cuts.values()}
    plain = {each for each in around if is_plain_around(*each)}
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
def _guide(wanted: Wanted) -> _Guide:
    """The paths to the wanted numbers as steps: (state, start of the name, its end, next state, row or -1) each."""
    names = bytearray()
    states: dict[tuple[str, ...], int] = {(): 0}
    steps: list[tuple[int, int, int, int, int]] = []
    for path, row in _paths(wanted):
        above = states[path[:-1]]
        states[path] = len(states)
        name = path[-1].encode()
        steps.append((above, len(names), len(names) + len(name), states[path], row))
        names += name
    return np.frombuffer(bytes(names), np.uint8), np.array(steps, np.int64).reshape(-1, 5)


def _paths(wanted: Wanted) -> Iterator[tuple[tuple[str, ...], int]]:
    """All paths of the template, each once, those above before those below, with the row of a number or -1."""
    parts = wanted.template.parts
    rows: dict[int | None, int] = {
        leaf: row
        for row, (leaf, is_numeric) in enumerate(zip(wanted.leaves, wanted.numeric, strict=True))
        if is_numeric
    }
    paths: list[tuple[str, ...]] = []
    for part in parts:
        paths.append((*(paths[part.parent] if part.parent >= 0 else ()), part.name))
    for path in dict.fromkeys(paths):
        leaves = {part.leaf for part, each in zip(parts, paths, strict=True) if each == path}
        # A path that the template has twice is no single number; it stays unclear.
        yield path, rows.get(leaves.pop(), -1) if len(leaves) == 1 else -1
