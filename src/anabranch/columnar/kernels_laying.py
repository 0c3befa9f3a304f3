"""The compiled loops that lay answers out.

A *fragment* is fixed, (-1, 0, start, end) in the fixed bytes, or taken from the item: (slot of its first leaf, slot of
its last, bytes before the one, bytes behind the other).
What is given for an item is one set of fragments, and a set stands between two of `sets`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.kernels import Bytes, Indices, Places, compiled

SIZE, COUNT, FIRST = range(3)
"""What is known of an owner's texts."""
_STRIDE = 16
"""So many bytes are moved at once."""


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
            for place in range(back, ahead):
                out[at] = fixed[place]
                at += 1
        else:
            for place in range(starts[one, item] - back, ends[other, item] + ahead):
                out[at] = data[place]
                at += 1
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
            for place in range(bounds[-item - 1], bounds[-item]):
                out[at] = ready[place]
                at += 1
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
        owner, length, chosen = owners[number], lengths[number], given[number]
        at = ahead[owner]
        ahead[owner] = at + length
        places[number] = at
        if chosen < 0:
            _copy(ready, bounds[-chosen - 1], length, out, at)
        elif sources[number] < number:
            _copy(out, places[sources[number]], length, out, at)
        else:
            _write(data, fragments, sets[chosen], sets[chosen + 1], fixed, starts, ends, items[number], out, at)


@compiled
def _copy(source: Bytes, begin: int, length: int, out: Bytes, at: int) -> None:
    """Copy a text."""
    if length < _STRIDE:
        for place in range(length):
            out[at + place] = source[begin + place]
        return
    for stride in range(length // _STRIDE):
        for place in range(stride * _STRIDE, (stride + 1) * _STRIDE):
            out[at + place] = source[begin + place]
    for place in range(length - _STRIDE, length):  # the rest, and again what is before it: one move all the same
        out[at + place] = source[begin + place]


def _tables() -> NDArray[np.uint32]:
    """For each byte that stands so far ahead, what it does to a CRC-32."""
    found = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        found[0, byte] = value
    for ahead in range(1, 8):
        found[ahead] = found[0][found[ahead - 1] & 0xFF] ^ (found[ahead - 1] >> np.uint32(8))
    return found


_CRC = _tables()


@compiled
def checks(data: Bytes, offsets: Indices, lengths: Indices, found: NDArray[np.uint32]) -> None:
    """The CRC-32 of some stretches; neighbours that are one stretch are looked at once."""
    for number in range(len(offsets)):
        at, end = offsets[number], offsets[number] + lengths[number]
        if number and offsets[number - 1] == at and lengths[number - 1] == lengths[number]:
            found[number] = found[number - 1]
            continue
        crc = np.uint32(0xFFFFFFFF)
        while at + 8 <= end:
            crc ^= (
                np.uint32(data[at])
                | np.uint32(data[at + 1]) << np.uint32(8)
                | np.uint32(data[at + 2]) << np.uint32(16)
                | np.uint32(data[at + 3]) << np.uint32(24)
            )
            crc = (
                _CRC[7, crc & np.uint32(0xFF)]
                ^ _CRC[6, (crc >> np.uint32(8)) & np.uint32(0xFF)]
                ^ _CRC[5, (crc >> np.uint32(16)) & np.uint32(0xFF)]
                ^ _CRC[4, crc >> np.uint32(24)]
                ^ _CRC[3, data[at + 4]]
                ^ _CRC[2, data[at + 5]]
                ^ _CRC[1, data[at + 6]]
                ^ _CRC[0, data[at + 7]]
            )
            at += 8
        while at < end:
            crc = _CRC[0, (crc ^ np.uint32(data[at])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
            at += 1
        found[number] = crc ^ np.uint32(0xFFFFFFFF)
