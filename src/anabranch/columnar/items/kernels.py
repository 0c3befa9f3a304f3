"""The compiled loops that lay answers out.

A *fragment* is fixed, (-1, 0, start, end) in the fixed bytes, or taken from the item: (slot of its first leaf, slot of
its last, bytes before the one, bytes behind the other).
What is given for an item is one set of fragments, and a set stands between two of `sets`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Indices, Places, compiled

SIZE, COUNT, FIRST = range(3)
"""What is known of an owner's texts."""
_FIRST_WEIGHT, _NEXT_WEIGHT = np.uint32(0x9E3779B1), np.uint32(0x85EBCA76)
"""The first is odd and the second even, so every weight is odd."""


@compiled
def _size(fragments: Indices, first: int, last: int, starts: Places, ends: Places, item: int) -> int:
    """How long the fragments are for an item."""
    size = 0
    for place in range(first, last):
        one, other, back, ahead = fragments[place]
        if one < 0:
            size += ahead - back
        else:
            size += ends[other, item] + ahead - starts[one, item] + back
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
def _write(
    data: Bytes,
    fragments: Indices,
    first: int,
    last: int,
    fixed: Bytes,
    starts: Places,
    ends: Places,
    item: int,
    out: Bytes,
    at: int,
) -> int:
    """Write them; gives where they end."""
    for fragment in range(first, last):
        one, other, back, ahead = fragments[fragment]
        if one < 0:
            at = _copy(fixed, back, ahead, out, at)
        else:
            at = _copy(data, starts[one, item] - back, ends[other, item] + ahead, out, at)
    return at


@compiled
def measure(
    fragments: Indices,
    sets: Indices,
    starts: Places,
    ends: Places,
    picks: Indices,
    bounds: Indices,
    offsets: Indices,
) -> None:
    """Where each piece of an answer ends that `lay_out` is going to write; `offsets[0]` is where the first begins.

    A pick is the number of an item, or, below 0, the complement of the number of a piece that is ready, which stands
    between two `bounds`.
    There is one set of fragments.
    """
    for number in range(len(picks)):
        item = picks[number]
        size = bounds[-item] - bounds[-item - 1] if item < 0 else _size(fragments, 0, sets[1], starts, ends, item)
        offsets[number + 1] = offsets[number] + size


@compiled
def lay_out(
    data: Bytes,
    fragments: Indices,
    sets: Indices,
    fixed: Bytes,
    starts: Places,
    ends: Places,
    picks: Indices,
    ready: Bytes,
    bounds: Indices,
    out: Bytes,
) -> None:
    """Write the pieces of an answer one behind the other; what the arguments are says `measure`."""
    at = 0
    for number in range(len(picks)):
        item = picks[number]
        if item < 0:
            at = _copy(ready, bounds[-item - 1], bounds[-item], out, at)
        else:
            at = _write(data, fragments, 0, sets[1], fixed, starts, ends, item, out, at)


@compiled
def measure_given(
    fragments: Indices,
    sets: Indices,
    starts: Places,
    ends: Places,
    given: Indices,
    items: Places,
    bounds: Indices,
    owners: Places,
    lengths: Indices,
    sources: Indices,
    owned: Indices,
) -> None:
    """How long the texts are that `deal` is going to write, and those of each owner together.

    What is given is a set of fragments for an item, or, below 0, the complement of the number of a piece that is ready,
    which stands between two `bounds`.
    The source of a text is the first that is the same, a set for an item, since some item before it.
    By owner, in a row since they are wanted together: the size of its texts, how many they are, and how long the first
    is; all are zeros before.
    """
    latest = np.full(len(sets), -1, np.int64)
    for number in range(len(items)):
        chosen, item = given[number], items[number]
        sources[number] = number
        if chosen < 0:
            length = bounds[-chosen] - bounds[-chosen - 1]
        else:
            before = latest[chosen]
            if before >= 0 and items[before] == item:
                sources[number] = before
                length = lengths[before]
            else:
                latest[chosen] = number
                length = _size(fragments, sets[chosen], sets[chosen + 1], starts, ends, item)
        lengths[number] = length
        row = owned[owners[number]]
        if not row[COUNT]:
            row[FIRST] = length
        row[COUNT] += 1
        row[SIZE] += length


@compiled
def deal(
    data: Bytes,
    fragments: Indices,
    sets: Indices,
    fixed: Bytes,
    starts: Places,
    ends: Places,
    given: Indices,
    items: Places,
    ready: Bytes,
    bounds: Indices,
    owners: Places,
    lengths: Indices,
    sources: Indices,
    ahead: Indices,
    places: Indices,
    out: Bytes,
) -> None:
    """Write each text behind those of its owner that came before; `ahead` is where those of each begin.

    Items are read one behind the other, and texts written in many places, each of which goes on where it was: a line of
    the cache is filled before it goes.
    A text that several want is put together once and copied from there.
    """
    for number in range(len(items)):
        owner, length, chosen, source = owners[number], lengths[number], given[number], sources[number]
        at = ahead[owner]
        ahead[owner] = at + length
        places[number] = at
        if chosen < 0:
            _copy(ready, bounds[-chosen - 1], bounds[-chosen], out, at)
        elif source < number:
            _copy(out, places[source], places[source] + length, out, at)
        else:
            _write(data, fragments, sets[chosen], sets[chosen + 1], fixed, starts, ends, items[number], out, at)


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
