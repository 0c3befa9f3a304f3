"""Keys of groups (LAWS 3.8), and the numbers that rows have for them.

A key has one part for each expression of the `group by`: a text, or nothing where it is missing; keys are compared by
these texts everywhere, in tasks, in rows on their way and in branches.
A boolean is the text `true` or `false`, and a number that a change of unit has made is its text, too.

An item whose key raises, or has several values, is in no group (LAWS 3.8), and one for which the condition in front of
the `group by` raises makes the windows fail that hold it (it *spoils* them).
Neither must be forgotten before its windows close, for dead letters are written then.
So it is counted as a group of its own, whose key holds the error.

Where a range is counted, keys get numbers from 1 on in the order in which they are met.
Texts are looked up in a growing hash table in compiled loops; several parts are numbered pair by pair.

Guarantees: time is linear in the bytes of the texts, whoever has written them: collisions in the table depend on a
number that each process draws for itself, and nothing else does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from secrets import randbits
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anabranch.aggregates.partial import ItemAt
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers, compiled
from anabranch.errors import DynamicError

KeyPart: TypeAlias = bytes | None
Key: TypeAlias = tuple[KeyPart, ...]
_LEFT_OUT, _SPOILS = b"\xfe", b"\xfd"
"""The first byte of a key that holds an error; no text begins so."""
SEED = randbits(62) | 1
"""An argument of the loops, since constants of their module are compiled in and kept on disk."""
_FIRST_ROOM = 1 << 10


def error_key(error: DynamicError, item: ItemAt, parts: int, *, spoils: bool) -> Key:
    """The key, of `parts` parts, of an item that is in no group, and perhaps spoils its windows."""
    told = json.dumps([error.message, error.code, *item]).encode()
    return ((_SPOILS if spoils else _LEFT_OUT) + told, *[None] * (parts - 1))


def is_left_out(key: Key) -> bool:
    """Whether a key is that of an item that is in no group."""
    return key[0] is not None and key[0][:1] in (_LEFT_OUT, _SPOILS)


def spoils(key: Key) -> bool:
    """Whether a key is that of an item that spoils its windows."""
    return key[0] is not None and key[0].startswith(_SPOILS)


def error_of(key: Key) -> tuple[DynamicError, ItemAt]:
    """The error of an item that is in no group, and the item."""
    assert key[0] is not None, "it says why"
    message, code, *item = json.loads(key[0][1:])
    return DynamicError(message, code=code), ItemAt(*item)


class _Texts(NamedTuple):
    """A hash table of texts and their numbers."""

    slots: Indices
    """By hash: the number of a text, or -1; where a slot is taken, the next one is used."""
    hashes: Indices
    bounds: Indices
    """By number: where a text begins, and where it ends."""
    data: Bytes


@compiled
def _number_texts(
    texts: TextColumn, asked: Flags, begin: int, count: int, seed: int, known: _Texts, numbers: Indices, learns: bool
) -> tuple[int, int]:
    """Number the texts of the rows that are asked for, from a row on; -1 for a new one, unless it `learns` those.

    Returns the row at which there was no room for a new text, and the number of texts then.
    """
    slots, hashes, bounds, data = known
    mask = len(slots) - 1
    for row in range(begin, len(numbers)):
        if not asked[row]:
            continue
        place = row if len(texts.starts) > 1 else 0
        start, size = texts.starts[place], texts.ends[place] - texts.starts[place]
        found = np.int64(size) * seed
        for at in range(start, start + size):
            found = (found ^ texts.data[at]) * seed
            found ^= found >> 29
        slot = found & mask
        number = slots[slot]
        while number >= 0:
            if hashes[number] == found and bounds[number + 1] - bounds[number] == size:
                at = 0
                while at < size and data[bounds[number] + at] == texts.data[start + at]:
                    at += 1
                if at == size:
                    break
            slot = (slot + 1) & mask
            number = slots[slot]
        if number < 0 and learns:
            if 2 * count >= len(slots) or bounds[count] + size > len(data):
                return row, count
            number = count
            slots[slot], hashes[number] = number, found
            for at in range(size):
                data[bounds[number] + at] = texts.data[start + at]
            bounds[number + 1] = bounds[number] + size
            count += 1
        numbers[row] = number
    return len(numbers), count


class TextNumbers:
    """Numbers texts from 0 on, in the order in which they are first met."""

    def __init__(self) -> None:
        self._count = 0
        self._known = _Texts(
            np.full(2 * _FIRST_ROOM, -1, np.int64),
            np.empty(_FIRST_ROOM, np.int64),
            np.zeros(_FIRST_ROOM + 1, np.int64),
            np.empty(16 * _FIRST_ROOM, np.uint8),
        )

    def __len__(self) -> int:
        return self._count

    def of(self, texts: TextColumn, asked: Flags) -> Indices:
        """The numbers of the texts in the rows that are asked for; those of other rows are without meaning."""
        numbers = np.zeros(len(asked), np.int64)
        at = 0
        while at < len(asked):
            at, self._count = _number_texts(texts, asked, at, self._count, SEED, self._known, numbers, True)
            if at < len(asked):
                row = at if len(texts.starts) > 1 else 0
                self._grow(int(texts.ends[row] - texts.starts[row]))
        return numbers

    def find(self, texts: TextColumn, asked: Flags) -> Indices:
        """The numbers of texts, without adding new ones; -1 for texts that are not known."""
        numbers = np.full(len(asked), -1, np.int64)
        _number_texts(texts, asked, 0, self._count, SEED, self._known, numbers, False)
        return numbers

    def number(self, text: bytes) -> int:
        """The number of one text."""
        return int(self.of(TextColumn.of(text), np.ones(1, np.bool_))[0])

    def texts(self) -> list[bytes]:
        """The texts by number."""
        bounds = self._known.bounds[: self._count + 1].tolist()
        data = self._known.data[: bounds[-1]].tobytes()
        return [data[start:end] for start, end in pairwise(bounds)]

    def _grow(self, size: int) -> None:
        """Make room for twice as many texts, and for one of this size."""
        slots, hashes, bounds, data = self._known
        slots = np.full(2 * len(slots), -1, np.int64)
        _fill(slots, hashes[: self._count])
        more = len(hashes)
        self._known = _Texts(
            slots,
            np.concatenate([hashes, np.empty(more, np.int64)]),
            np.concatenate([bounds, np.zeros(more, np.int64)]),
            np.concatenate([data, np.empty(len(data) + size, np.uint8)]),
        )


@compiled
def _fill(slots: Indices, hashes: Indices) -> None:
    """Put known numbers into an empty table."""
    mask = len(slots) - 1
    for number in range(len(hashes)):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


def ranked_texts(texts: TextColumn, chosen: Flags) -> tuple[Numbers, list[str]]:
    """The ranks of the chosen texts, NaN for others, and these texts, rising: bytes of UTF-8 rise as characters do."""
    data, rows = texts.data.tobytes(), np.flatnonzero(chosen)
    found = [
        data[first:last] for first, last in zip(texts.starts[rows].tolist(), texts.ends[rows].tolist(), strict=True)
    ]
    rising = sorted(set(found))
    numbers = {each: number for number, each in enumerate(rising)}
    ranks = np.full(len(chosen), np.nan)
    ranks[rows] = [numbers[each] for each in found]
    return ranks, [each.decode() for each in rising]


class GroupNumbers:
    """The numbers of the groups of one member, in one range, from 1 on."""

    def __init__(self, parts: int) -> None:
        self._parts = [TextNumbers() for _ in range(parts)]
        self._pairs = [TextNumbers() for _ in range(parts - 1)]
        """By part behind the first: numbers of pairs, of the number of all parts before and that of the part."""

    def of(self, parts: Sequence[TextColumn], missing: Sequence[Flags | None], asked: Flags) -> Indices:
        """The numbers of the keys of entries that are asked for; their parts are texts or missing."""
        found: Indices | None = None
        for number, (texts, absent) in enumerate(zip(parts, missing, strict=True)):
            there = asked if absent is None else asked & ~absent
            mine = self._parts[number].of(texts, there) + 1
            mine[~there] = 0
            found = mine if found is None else self._pairs[number - 1].of(_pairs(found, mine), asked)
        assert found is not None, "a key has a part"
        return found + 1

    def number(self, key: Key) -> int:
        """The number of one key."""
        parts = [0 if each is None else known.number(each) + 1 for each, known in zip(key, self._parts, strict=True)]
        found, *others = parts
        for pairs, each in zip(self._pairs, others, strict=True):
            found = pairs.number(np.array([found, each], np.int64).tobytes())
        return found + 1

    def keys(self) -> list[Key]:
        """The keys by number, beginning with that of number 1."""
        first, *others = ([None, *each.texts()] for each in self._parts)
        found: list[Key] = [(each,) for each in first]
        for pairs, parts in zip(self._pairs, others, strict=True):
            met = np.frombuffer(b"".join(pairs.texts()), np.int64).reshape(-1, 2).tolist()
            found = [(*found[one], parts[other]) for one, other in met]
        return found


def _pairs(one: Indices, other: Indices) -> TextColumn:
    """Pairs of numbers as texts of a fixed size."""
    data = np.stack([one, other], axis=1)
    starts = np.arange(len(one), dtype=np.int32) * data.itemsize * 2
    return TextColumn(data.reshape(-1).view(np.uint8), starts, starts + np.int32(data.itemsize * 2))


def key_table(keys: Iterable[Key]) -> pa.Table:
    """Keys as a table, by number; there is at least one."""
    columns = list(zip(*keys, strict=True))
    return pa.table([pa.array(each, pa.binary()) for each in columns], list(map(str, range(len(columns)))))


def keys_of(table: pa.Table) -> list[Key]:
    """The keys that were written as a table."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


NO_KEYS: Mapping[int, Sequence[Key]] = {}
