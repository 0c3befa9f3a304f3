"""Messages into columns: the values of a topic's messages, joined to bytes that the scanners take.

A message is one item, whatever line ends are in it, or it holds lines, each of them an item.
Values are joined without a look at them, and what goes with each message stands beside: its offset, its timestamp, its
key and its headers.
An entry of a batch knows the number of its message, so its position is the message's offset, in whatever batches
messages are read; that of a line has the byte in its message besides (`stream/elements.py`).

Guarantees: those of `scan/shred.py`; what comes out depends on the messages alone, not on how many are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from anabranch.columnar.scan.entries import shred_entries
from anabranch.columnar.scan.kernels import Indices
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.elements import MESSAGE_BITS
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import SHOWN_BYTES, Cut, LineSplitter, line_cut, too_long

EMPTY = "the message is empty"
"""The reason for setting a message aside that is to be an item and has no bytes."""


class MessageColumns(NamedTuple):
    """What goes with some elements that came in messages; None where none of them has it."""

    stamps: pa.Array | None
    keys: pa.Array | None
    headers: pa.Array | None


@dataclass(frozen=True)
class Messages:
    """Some messages of one partition of a topic, in order."""

    data: bytes
    """Their values, one behind the other; those that hold lines end with a newline each."""
    ends: Indices
    """By message: where its value ends in `data`."""
    offsets: Indices
    stamps: Indices | None = None
    """By message: its timestamp in milliseconds, where that is the time of its elements."""
    keys: Sequence[bytes | None] | None = None
    """By message: its key; None where no message has one."""
    headers: Sequence[bytes | None] | None = None
    """By message: its headers, packed; None where no message has any."""
    lines: bool = False
    """Whether each line is an entry, else the whole message."""

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def begins(self) -> Indices:
        """By message: where its value begins in `data`."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])

    def first(self, count: int) -> Messages:
        """The first messages."""
        ends, offsets = self.ends[:count], self.offsets[:count]
        stamps = None if self.stamps is None else self.stamps[:count]
        data = self.data[: int(ends[-1]) if count else 0]
        return replace(self, data=data, ends=ends, offsets=offsets, stamps=stamps)

    def positions(self, numbers: Indices, begins: Indices) -> Indices:
        """The positions of entries that begin at some bytes of `data`, in the messages of these numbers."""
        offsets = self.offsets[numbers]
        return (offsets << MESSAGE_BITS) + begins - self.begins[numbers] if self.lines else offsets

    def placed(self, cut: Cut, number: int) -> Cut:
        """A cut of `data` as one of a message."""
        start = int(self.positions(np.array([number]), np.array([cut.start]))[0])
        return cut._replace(
            start=start,
            end=start + cut.end - cut.start if self.lines else start + 1,
            stamp=None if self.stamps is None else int(self.stamps[number]),
            key=None if self.keys is None else self.keys[number],
            headers=None if self.headers is None else self.headers[number],
        )

    def packed(self, numbers: Indices) -> MessageColumns:
        """What goes with the elements of some messages, by their numbers."""
        taken = pa.array(numbers)
        keys, headers = (None if each is None else each.take(taken) for each in (self._keys, self._headers))
        return MessageColumns(None if self.stamps is None else pa.array(self.stamps[numbers]), keys, headers)

    @cached_property
    def _keys(self) -> pa.Array | None:
        return None if self.keys is None else pa.array(self.keys, pa.binary())

    @cached_property
    def _headers(self) -> pa.Array | None:
        return None if self.headers is None else pa.array(self.headers, pa.binary())

    def numbers_of(self, positions: Indices) -> Indices:
        """The numbers of the messages that bytes of `data` belong to."""
        return np.searchsorted(self.ends, positions, side="right")


@dataclass(frozen=True)
class MessageOrigins:
    """The messages that the entries of a batch come from."""

    messages: Messages
    numbers: Indices
    """By entry: the number of its message."""

    def part(self, start: int, stop: int) -> MessageOrigins:
        return MessageOrigins(self.messages, self.numbers[start:stop])

    def cut(self, entry: int, begin: int, raw: bytes, limits: Limits) -> Cut:
        """The raw item of an entry, which begins at a byte of the joined values."""
        if self.messages.lines:
            found = line_cut(begin, raw, limits)
            assert found is not None, "a blank line is no entry"
        elif len(raw) > limits.item_bytes:
            found = Cut(begin, begin + len(raw), raw[: min(limits.item_bytes, SHOWN_BYTES)], too_long(limits))
        else:
            found = Cut(begin, begin + len(raw), raw, None if raw.strip() else EMPTY)
        return self.messages.placed(found, int(self.numbers[entry]))

    def positions(self, entries: Indices, begins: Indices) -> Indices:
        """The positions of some entries, which begin at these bytes."""
        return self.messages.positions(self.numbers[entries], begins)


class MessageShredder(Shredder):
    """Reads the messages of one range; its pieces are `Messages`."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(LineSplitter(limits), limits)

    def sample(self, piece: bytes | Messages, most: int) -> list[Cut]:
        assert isinstance(piece, Messages)
        count = int(np.searchsorted(piece.ends, most, side="right")) or min(1, len(piece))
        return [cut for each in self.feed(piece.first(count), None) for cut in each.cuts.values()]

    def feed(self, piece: bytes | Messages, wanted: WantedColumns | None) -> Iterator[Shredded]:
        assert isinstance(piece, Messages)
        if piece.lines:
            inner = Shredder(LineSplitter(self._limits), self._limits)
            for shredded in inner.feed(piece.data, wanted):
                yield self._placed(shredded, piece)
            return
        numbers = np.arange(len(piece))
        origins = MessageOrigins(piece, numbers)
        if wanted is None:
            spans = zip(piece.begins.tolist(), piece.ends.tolist(), strict=True)
            raw = ((begin, piece.data[begin:end]) for begin, end in spans)
            yield from self._only([origins.cut(entry, *each, self._limits) for entry, each in enumerate(raw)], None)
        elif len(piece):
            yield replace(shred_entries(piece.data, piece.ends, wanted, self._limits, with_marks=True), origins=origins)

    def finish(self) -> Iterator[Shredded]:
        return iter(())

    @staticmethod
    def _placed(shredded: Shredded, piece: Messages) -> Shredded:
        """A batch of lines with the messages that they come from."""
        positions = shredded.base + shredded.begins.astype(np.int64)
        for entry, cut in shredded.cuts.items():
            positions[entry] = cut.start
        numbers = piece.numbers_of(positions)
        cuts = {entry: piece.placed(cut, int(numbers[entry])) for entry, cut in shredded.cuts.items()}
        return replace(shredded, cuts=cuts, origins=MessageOrigins(piece, numbers))
