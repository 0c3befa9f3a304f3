"""What the law sees in single items, and what a range comes to: the words in which tasks and branches talk of panes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from anabranch.errors import DynamicError
from anabranch.stream.elements import Item, Punctuation

Reach: TypeAlias = Fraction | float
"""How far a stream has come: a value, or infinity."""
Texts: TypeAlias = tuple[str, ...] | DynamicError
"""What an aggregated path leads to, or why it failed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A node that the window's path leads to in an item, selected by its predicates or not."""

    selected: bool
    value: Fraction | None
    """Its reference value in a time window, counted from the stream's origin."""
    error: DynamicError | None
    """Why it has none."""
    texts: tuple[Texts, ...]
    """If it is selected: what each aggregated path leads to, or why it failed."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What the law sees in one item."""

    nodes: tuple[Seen, ...]
    error: DynamicError | None = None
    """Where a predicate failed: nothing of the item is selected."""


class Law(Protocol):
    """The law for one window query, for what columns leave unclear."""

    def item(self, item: Item) -> Looked: ...

    def punctuation(self, punctuation: Punctuation) -> Reach | None:
        """The value, counted from the origin, that an item would have that shows as much; None if it shows nothing."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What there is to say of a range."""

    panes: pa.Table
    span: int
    """How many places in the stream it takes up."""
    selected: int
    """How many nodes were selected, for windows that count them."""
    largest: Reach | None
    """The largest value, that of the start and of punctuations among them."""
    low: Fraction | None
    """The least value that was not late."""
    first: Fraction | None
    """The first value."""
    late: tuple[int, ...]
    """The offsets of items that came too late."""
    file: str

    def to_bytes(self) -> bytes:
        """One blob."""
        values = {name: getattr(self, name) for name in ("span", "selected", "late", "file")}
        reaches = {name: getattr(self, name) for name in ("largest", "low", "first")}
        texts = {name: None if each is None else str(each) for name, each in reaches.items()}
        table = self.panes.replace_schema_metadata({"range": json.dumps({**values, **texts})})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        written: bytes = sink.getvalue().to_pybytes()
        return written

    @staticmethod
    def from_bytes(data: bytes) -> Counted:
        """What `to_bytes` gave this blob for."""
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        fields: dict[str, Any] = json.loads(table.schema.metadata[b"range"])
        for name in ("largest", "low", "first"):
            if fields[name] is not None:
                fields[name] = float(fields[name]) if fields[name] == "inf" else Fraction(fields[name])
        fields["late"] = tuple(fields["late"])
        return Counted(table.replace_schema_metadata(None), **fields)
