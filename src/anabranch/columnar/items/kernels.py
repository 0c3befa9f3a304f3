"""The compiled loops that lay answers out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places, compiled, compiled_inline, compiled_lean

SIZE, COUNT, FIRST = range(3)
"""What is known of an owner's texts."""
_FIRST_WEIGHT, _NEXT_WEIGHT = np.uint32(0x9E3779B1), np.uint32(0x85EBCA76)
"""The first is odd and the second even, so every weight is odd."""


class ItemLeaves(NamedTuple):
    """Items with the spans of their leaves, by slot and item."""

    data: Bytes
    starts: Places
    ends: Places


class Fragments(NamedTuple):
    """Sets of fragments; a set stands between two of `sets`.

    A fragment is (kind, first, last): fixed bytes from one place to another, the column of an item in a row, the
    computed text of this number, or an element's content: so many of the fragments that follow, and the end tag behind
    them, which is left out with the start tag's end where they are all empty.
    """

    fragments: Indices
    sets: Indices
    fixed: Bytes
    own: Flags
    """By set: whether anything in it is computed, for each text anew."""


FIXED, TAKEN, MADE, CONTENT = range(4)
"""The kinds of fragments."""
_SLASH, _CLOSE = b"/>"


class MadeTexts(NamedTuple):
    """Computed texts, by number within their set and by text that is laid out."""

    data: Bytes
    starts: Places
    ends: Places


class ReadyPieces(NamedTuple):
    """Texts that need not be put together, each between two bounds."""

    data: Bytes
    bounds: Indices


class OwnedTexts(NamedTuple):
    """The texts to lay out, and whose each is.

    What is given is a set of fragments for an item, or, below 0, the complement of the number of a piece that is ready.
    """

    given: Indices
    items: Places
    owners: Places
    made: Indices
    """Where the computed texts of each are; means nothing where there are none."""


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
    """How long some fragments are that are content."""
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
    """Copy a text; gives where it ends. Over slices this becomes a loop over words, over sums of places it does not."""
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
    """How long the texts are that `deal` is going to write, and those of each owner together.

    The source of a text is the first that is the same, a set for an item, since some item before it.
    By owner, in a row since they are wanted together: the size of its texts, how many they are, and how long the first
    is; all are zeros before.
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
        if not length:  # it is no answer
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
    """Write each text behind those of its owner that came before; `ahead` is where those of each begin.

    Items are read one behind the other, and texts written in many places, each of which goes on where it was: a line of
    the cache is filled before it goes.
    A text that several want is put together once and copied from there.
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
    """The checksums of some stretches; neighbours that are one stretch are looked at once."""
    for number in range(len(offsets)):
        at, length = offsets[number], lengths[number]
        if number and offsets[number - 1] == at and lengths[number - 1] == length:
            found[number] = found[number - 1]
        else:
            found[number] = check_of(data[at : at + length])
