"""The count of a range, which tasks send to branches, and what the law reads in single items.

A range is counted for many *members* at once, one for each window query over its stream.
Members with windows over the same reference of the same items share an *axis*: lateness, and how far the range goes, is
found once for all of them (LAWS 3.2).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from anabranch.aggregates.partial import Typed
from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.panes.keys import NO_KEYS, Key, key_table, keys_of
from anabranch.columnar.panes.rows import ManyPanes
from anabranch.errors import DynamicError
from anabranch.stream.elements import Item, Punctuation

Reach: TypeAlias = Fraction | float
"""How far a stream has come: a value, or infinity."""
Texts: TypeAlias = tuple[str | Fraction | Typed, ...] | DynamicError
"""The values of an aggregated path, as exact numbers where units have changed; or why it failed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A node that the window's path leads to in an item, selected by its predicates or not."""

    selected: bool
    value: Fraction | None
    """Its reference value in a time window, counted from the stream's origin."""
    error: DynamicError | None
    """Why it has none."""
    texts: tuple[Texts, ...]
    """If it is selected: the values of each aggregated path, or why it failed; where times are counted, behind these a
    value for each time.
    """
    key: Key | DynamicError | None = ()
    """If it is selected, and windows are grouped: the key of its group, why it has none, or None if a
    condition leaves it out of all groups.
    """
    spoils: DynamicError | None = None
    """The error of all windows that hold it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What the law reads in one item."""

    nodes: tuple[Seen, ...]
    error: DynamicError | None = None
    """The error of a predicate, where one failed: then nothing of the item is selected."""


class ItemLaw(Protocol):
    """The law for one window query, for items that columns leave unclear."""

    def item(self, item: Item) -> Looked: ...

    def canonical(self, item: Item, evolution: Evolution) -> Item:
        """An item as it is in the units of the start."""

    def punctuation(self, punctuation: Punctuation, evolution: Evolution | None) -> Reach | None:
        """The reference value, from the origin on, of an item that would show the same progress; None for no progress.

        The evolution is given where values are not in the units of the start.
        """


_KEYS = "keys "
"""The names of key tables begin so; the number of the member follows."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a range shows of one axis."""

    largest: Reach | None = None
    """The largest value, including that at the start and those of punctuations."""
    low: Fraction | None = None
    """The least value that was not late."""
    first: Fraction | None = None
    """The first value."""
    late: tuple[int, ...] = ()
    """The offsets of late items."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The count of a range for one member, without its panes."""

    reached: Reached
    span: int
    """How many places in the stream the range takes up."""
    selected: int
    """How many nodes were selected, for windows that count them."""
    file: str


@dataclass(frozen=True, slots=True)
class CountedRange:
    """The count of a range for all members."""

    file: str
    span: int
    axes: tuple[Reached, ...]
    members: dict[int, tuple[int, int]]
    """By member: which axis it has, -1 for none, and how many nodes it selected."""
    panes: ManyPanes
    keys: Mapping[int, Sequence[Key]] = field(default_factory=lambda: NO_KEYS)
    """By member whose windows are grouped: the keys of the groups; the first has the number 1."""

    def of(self, member: int) -> Counted:
        """The count for one member, without its panes."""
        axis, selected = self.members[member]
        return Counted(Reached() if axis < 0 else self.axes[axis], self.span, selected, self.file)

    def part(self, members: Sequence[int]) -> CountedRange:
        """The count for some members, which keep their numbers."""
        wanted = np.zeros(max(self.members, default=-1) + 1, np.bool_)
        wanted[list(members)] = True
        found = {each: self.members[each] for each in members}
        keys = {each: self.keys[each] for each in members if each in self.keys}
        return CountedRange(self.file, self.span, self.axes, found, self.panes.part(wanted), keys)

    def to_bytes(self) -> bytes:
        """The count as one blob."""
        named = {f"{_KEYS}{member}": key_table(keys) for member, keys in self.keys.items()}
        tables = {name: _table_bytes(table) for name, table in {**self.panes.tables(), **named}.items()}
        axes = [
            [*(None if value is None else str(value) for value in (each.largest, each.low, each.first)), each.late]
            for each in self.axes
        ]
        sizes = {name: len(each) for name, each in tables.items()}
        head = json.dumps([self.file, self.span, axes, list(self.members.items()), sizes]).encode()
        return b"".join((head, b"\n", *tables.values()))

    @staticmethod
    def from_bytes(data: bytes) -> CountedRange:
        """The count from a blob of `to_bytes`."""
        at = data.index(b"\n") + 1
        file, span, axes, members, sizes = json.loads(data[:at])
        tables: dict[str, pa.Table] = {}
        for name, size in sizes.items():
            with pa.ipc.open_stream(pa.py_buffer(data).slice(at, size)) as reader:
                tables[name] = reader.read_all()
            at += size
        found = {member: (axis, selected) for member, (axis, selected) in members}
        keys = {int(name.removeprefix(_KEYS)): keys_of(each) for name, each in tables.items() if name.startswith(_KEYS)}
        return CountedRange(file, span, tuple(map(_reached, axes)), found, ManyPanes.read(tables, span), keys)


def _reached(fields: list[Any]) -> Reached:
    *values, late = fields
    largest, low, first = values
    furthest = math.inf if largest == "inf" else _value(largest)
    return Reached(furthest, _value(low), _value(first), tuple(late))


def _value(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
