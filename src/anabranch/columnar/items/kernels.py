"""The compiled loops that lay answers out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places, compiled, compiled_inline, compiled_lean

SIZE, COUNT, FIRST = range(3)
"""The columns of an owner's row: the bytes of its texts, their number, and the length of the first."""
_FIRST_WEIGHT, _NEXT_WEIGHT = np.uint32(0x9E3779B1), np.uint32(0x85EBCA76)
"""The first is odd and the second even, so every weight is odd."""


class ItemLeaves(NamedTuple):
    """Items with the spans of their leaves, by slot and item."""

    data: Bytes
    starts: Places
    ends: Places


class Fragments(NamedTuple):
    """Sets of fragments; set `k` is `fragments[sets[k] : sets[k + 1]]`.

    A fragment is (kind, first, last): fixed bytes from `first` to `last`, the text of an item in the row `first`, the
    computed text with the number `first`, or the content of an element: the `first` fragments that follow, and the end
    tag behind them; where all of them are empty, an empty tag is written instead.
    """

    fragments: Indices
    sets: Indices
    fixed: Bytes
    own: Flags
    """By set: whether a fragment in it is computed, so that equal texts cannot be shared."""


FIXED, TAKEN, MADE, CONTENT = range(4)
"""The kinds of fragments."""
_SLASH, _CLOSE = b"/>"


class MadeTexts(NamedTuple):
    """Computed texts, by number within their set and by text that is laid out."""

    data: Bytes
    starts: Places
    ends: Places


class ReadyPieces(NamedTuple):
    """Complete texts, each between two bounds."""

    data: Bytes
    bounds: Indices


class OwnedTexts(NamedTuple):
    """The texts to lay out, and the owner of each.

    `given` is the number of a set of fragments, or, below 0, the complement of the number of a complete piece.
    """

    given: Indices
    items: Places
    owners: Places
    made: Indices
    """The place of the computed texts of each; without meaning where there are none."""


@compiled_inline
def _length(leaves: ItemLeaves, made: MadeTexts, kind: int, first: int, last: int, item: int, text: int) -> int:
    """How long a single fragment is."""
    if kind == FIXED:
        return last - first
    if kind == TAKEN:
        return int(leaves.ends[first, item] - leaves.starts[first, item])
    return int(made.ends[first, text] - made.starts[first, text])


@compiled_lean
def _content_length(
    leaves: ItemLeaves, made: MadeTexts, fragments: Fragments, place: int, count: int, item: int, text: int
) -> int:
    """How long the fragments of an element's content are."""
    size = 0
    for each in range(place, place + count):
        kind, first, last = fragments.fragments[each]
        size += _length(leaves, made, kind, first, last, item, text)
    return size


@compiled_lean
def _size(leaves: ItemLeaves, made: MadeTexts, fragments: Fragments, chosen: int, item: int, text: int) -> int:
    """How long a set of fragments is for an item."""
    size = 0
    place, stop = fragments.sets[chosen], fragments.sets[chosen + 1]
    while place < stop:
        kind, first, last = fragments.fragments[place]
        place += 1
        if kind != CONTENT:
            size += _length(leaves, made, kind, first, last, item, text)
        elif _content_length(leaves, made, fragments, place, first, item, text):
            size += 1
        else:
            size += 2
            place += first + 1
    return size


@compiled_lean
def _copy(source: Bytes, begin: int, end: int, out: Bytes, at: int) -> int:
    """Copy a text; returns where it ends. Over slices the compiler makes this a loop over words."""
    text = source[begin:end]
    room = out[at : at + len(text)]
    for place in range(len(text)):
        room[place] = text[place]
    return at + len(text)


@compiled_lean
def _write(
    leaves: ItemLeaves,
    made: MadeTexts,
    fragments: Fragments,
    chosen: int,
    item: int,
    text: int,
    out: Bytes,
    at: int,
) -> None:
    """Write a set of fragments for an item."""
    place, stop = fragments.sets[chosen], fragments.sets[chosen + 1]
    while place < stop:
        kind, first, last = fragments.fragments[place]
        place += 1
        if kind == FIXED:
            at = _copy(fragments.fixed, first, last, out, at)
        elif kind == TAKEN:
            at = _copy(leaves.data, leaves.starts[first, item], leaves.ends[first, item], out, at)
        elif kind == MADE:
            at = _copy(made.data, made.starts[first, text], made.ends[first, text], out, at)
        elif _content_length(leaves, made, fragments, place, first, item, text):
            out[at] = _CLOSE
            at += 1
        else:
            out[at], out[at + 1] = _SLASH, _CLOSE
            at += 2
            place += first + 1


@compiled
def measure(
    leaves: ItemLeaves,
    made: MadeTexts,
    fragments: Fragments,
    ready: ReadyPieces,
    texts: OwnedTexts,
    lengths: Indices,
    sources: Indices,
    owned: Indices,
) -> None:
    """Measure the texts that `deal` is going to write, and those of each owner together.

    The source of a text is an earlier one of the same set for the same item, from which it is copied, or itself.
    `owned` has a row for each owner: the size of its texts, their number, and the length of the first; all are zeros
    before.
    """
    latest = np.full(len(fragments.sets), -1, np.int64)
    for number in range(len(texts.items)):
        chosen, item = texts.given[number], texts.items[number]
        sources[number] = number
        if chosen < 0:
            length = ready.bounds[-chosen] - ready.bounds[-chosen - 1]
        else:
            before = latest[chosen]
            if before >= 0 and texts.items[before] == item and not fragments.own[chosen]:
                sources[number] = before
                length = lengths[before]
            else:
                latest[chosen] = number
                length = _size(leaves, made, fragments, chosen, item, texts.made[number])
        lengths[number] = length
        if not length:  # an empty text is no answer
            continue
        row = owned[texts.owners[number]]
        if not row[COUNT]:
            row[FIRST] = length
        row[COUNT] += 1
        row[SIZE] += length


@compiled
def deal(
    leaves: ItemLeaves,
    made: MadeTexts,
    fragments: Fragments,
    ready: ReadyPieces,
    texts: OwnedTexts,
    lengths: Indices,
    sources: Indices,
    ahead: Indices,
    out: Bytes,
) -> None:
    """Write each text behind the earlier ones of its owner; `ahead` is where the texts of each owner begin.

    Items are read in order, and each owner's texts are written in order, so that lines of the processor's cache are
    filled before they are evicted.
    A text that several owners get is put together once and copied from there.
    """
    places = np.empty(len(texts.items), np.int64)
    for number in range(len(texts.items)):
        owner, length, chosen, source = texts.owners[number], lengths[number], texts.given[number], sources[number]
        at = ahead[owner]
        ahead[owner] = at + length
        places[number] = at
        if chosen < 0:
            _copy(ready.data, ready.bounds[-chosen - 1], ready.bounds[-chosen], out, at)
        elif source < number:
            _copy(out, places[source], places[source] + length, out, at)
        else:
            _write(leaves, made, fragments, chosen, texts.items[number], texts.made[number], out, at)


@compiled
def check_of(text: Bytes) -> np.uint32:
    """The checksum of some bytes: their sum, each with a weight of its own.

    Weights are odd, so no change of a single byte leaves it as it was.
    """
    total = np.uint32(0)
    for place in range(len(text)):
        weight = np.uint32(_FIRST_WEIGHT + np.uint32(place) * _NEXT_WEIGHT)
        total += np.uint32(np.uint32(text[place]) * weight)
    return np.uint32(total)


@compiled
def checks(data: Bytes, offsets: Indices, lengths: Indices, found: NDArray[np.uint32]) -> None:
    """The checksums of some stretches of bytes; equal neighbours are computed once."""
    for number in range(len(offsets)):
        at, length = offsets[number], lengths[number]
        if number and offsets[number - 1] == at and lengths[number - 1] == length:
            found[number] = found[number - 1]
        else:
            found[number] = check_of(data[at : at + length])
