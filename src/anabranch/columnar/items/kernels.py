"""The compiled loops that lay answers out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Indices, Places, compiled

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

    A fragment is fixed, (-1, 0, start, end) in the fixed bytes, or taken from the item: (slot of its first leaf, slot
    of its last, bytes before the one, bytes behind the other).
    """

    fragments: Indices
    sets: Indices
    fixed: Bytes


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


@compiled
def _size(leaves: ItemLeaves, fragments: Fragments, chosen: int, item: int) -> int:
    """How long a set of fragments is for an item."""
    size = 0
    for place in range(fragments.sets[chosen], fragments.sets[chosen + 1]):
        one, other, back, ahead = fragments.fragments[place]
        if one < 0:
            size += ahead - back
        else:
            size += leaves.ends[other, item] + ahead - leaves.starts[one, item] + back
    return size


@compiled
def _copy(source: Bytes, begin: int, end: int, out: Bytes, at: int) -> int:
    """Copy a text; gives where it ends. Over slices this becomes a loop over words, over sums of places it does not."""
    text = source[begin:end]
    room = out[at : at + len(text)]
    for place in range(len(text)):
        room[place] = text[place]
    return at + len(text)


@compiled
def _write(leaves: ItemLeaves, fragments: Fragments, chosen: int, item: int, out: Bytes, at: int) -> None:
    """Write a set of fragments for an item."""
    for place in range(fragments.sets[chosen], fragments.sets[chosen + 1]):
        one, other, back, ahead = fragments.fragments[place]
        if one < 0:
            at = _copy(fragments.fixed, back, ahead, out, at)
        else:
            at = _copy(leaves.data, leaves.starts[one, item] - back, leaves.ends[other, item] + ahead, out, at)


@compiled
def measure(
    leaves: ItemLeaves,
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
            if before >= 0 and texts.items[before] == item:
                sources[number] = before
                length = lengths[before]
            else:
                latest[chosen] = number
                length = _size(leaves, fragments, chosen, item)
        lengths[number] = length
        row = owned[texts.owners[number]]
        if not row[COUNT]:
            row[FIRST] = length
        row[COUNT] += 1
        row[SIZE] += length


@compiled
def deal(
    leaves: ItemLeaves,
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
            _write(leaves, fragments, chosen, texts.items[number], out, at)


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
