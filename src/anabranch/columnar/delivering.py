"""Handing answers out: all in one buffer, those to each query together, and rows that say whose is what.

What columns answer and the pieces that the law gave stand between each other in the order of the items.
A query that several have asked is there once, with a row for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.kernels import Places
from anabranch.columnar.laying import NO_TEXTS, Dealt, Store
from anabranch.columnar.matching import Matches
from anabranch.columnar.programs import ItemQueries, Program
from anabranch.columnar.shred import Shredded
from anabranch.stream.elements import DeadLetter

ROW = np.dtype([(name, "<i8") for name in ("subscription", "offset", "length", "entries", "first")] + [("crc", "<u4")])
"""`entries` answers to one subscription at `offset`, of which the first is `first` bytes long; and their checksum."""
Rows: TypeAlias = NDArray[Any]


class Answers(Protocol):
    """Where answers and dead letters go."""

    def lay(self, data: memoryview, rows: Rows) -> None:
        """Take answers; the rows say what is whose, and have no checksums yet."""

    def bury(self, letter: DeadLetter) -> None:
        """Set a dead letter down."""


class Piece(NamedTuple):
    """What the law gives to a query for an entry."""

    query: int
    entry: int
    data: bytes


class Delivery:
    """Who asked the queries of a stream."""

    def __init__(self, queries: Sequence[ItemQueries]) -> None:
        asked = [[number for number, _ in each.subscribers] for group in queries for each in group.members]
        self.count = len(asked)
        self._bounds = np.cumsum([0, *map(len, asked)])
        self._numbers = np.array([number for each in asked for number in each], np.int64)

    def of(self, shredded: Shredded, program: Program | None, matches: Matches) -> Batch:
        """What columns answer to the entries of one batch."""
        if program is None:
            return Batch(self, NO_TEXTS, matches.conditions, matches.pairs)
        if matches.count > self.count:
            matches = matches.part(0, self.count)  # takers are no queries
        given = program.sets[matches.conditions]
        store = Store.of(shredded, program.fragments, given, matches.pairs)
        gives = store.lengths > 0  # some take items and give nothing
        if gives.all():
            return Batch(self, store, matches.conditions, matches.pairs)
        return Batch(self, store.some(gives), matches.conditions[gives], matches.pairs[gives])

    def rows(self, dealt: Dealt) -> Rows:
        """What is whose."""
        answered = np.flatnonzero(dealt.counts)
        counts = self._bounds[answered + 1] - self._bounds[answered]
        query = np.repeat(answered, counts)
        within = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.zeros(len(query), ROW)
        rows["subscription"] = self._numbers[self._bounds[query] + within]
        rows["offset"] = dealt.begins[query]
        rows["length"] = dealt.sizes[query]
        rows["entries"] = dealt.counts[query]
        rows["first"] = dealt.firsts[query]
        return rows


@dataclass(frozen=True, slots=True)
class Batch:
    """Answers to the entries of a batch, in the order of the entries: which query's each is, and to which entry."""

    delivery: Delivery
    store: Store
    queries: Places
    entries: Places

    def deliver(self, entries: range, pieces: Sequence[Piece], out: Answers) -> None:
        """Hand out what some entries give, with the pieces that the law gave for them."""
        store, queries = self.store, self.queries
        if entries.start or entries.stop <= self.entries.max(initial=-1):
            mine = (self.entries >= entries.start) & (self.entries < entries.stop)
            store, queries = store.some(mine), queries[mine]
        if pieces:
            at = self.entries[(self.entries >= entries.start) & (self.entries < entries.stop)]
            order = np.argsort(np.concatenate([at, [piece.entry for piece in pieces]]), kind="stable")
            queries = np.concatenate([queries, np.array([piece.query for piece in pieces], np.int32)])[order]
            store = store.with_pieces([piece.data for piece in pieces]).some(order)
        if len(queries):
            dealt = store.dealt(queries, self.delivery.count)
            out.lay(dealt.data.data, self.delivery.rows(dealt))
