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

from anabranch.columnar.items.layout import NO_FRAGMENTS, Dealt, Fragments, Scratch, dealt
from anabranch.columnar.items.programs import ItemQueries, Program
from anabranch.columnar.match.index import NO_MATCHES, Matches
from anabranch.columnar.scan.kernels import Indices, Places
from anabranch.columnar.scan.shred import Shredded
from anabranch.stream.elements import DeadLetter

ROW = np.dtype(
    [(name, "<i8") for name in ("subscription", "offset", "length", "entries", "first")] + [("check", "<u4")]
)
"""`entries` answers to one subscription at `offset`, of which the first is `first` bytes long; and their checksum."""
Rows: TypeAlias = NDArray[Any]
_NONE = np.empty(0, np.int64)


class Answers(Protocol):
    """Where answers and dead letters go."""

    def lay(self, data: memoryview, rows: Rows) -> None:
        """Take answers, which are gone afterwards; the rows say what is whose, and have no checksums yet."""

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
        self.scratch = Scratch()
        self._bounds = np.cumsum([0, *map(len, asked)])
        self._numbers = np.array([number for each in asked for number in each], np.int64)

    def of(self, shredded: Shredded, program: Program | None, matches: Matches) -> Batch:
        """What columns answer to the entries of one batch."""
        if program is None or not self.count:  # all that is found is for takers then
            return Batch(self, shredded, NO_FRAGMENTS, _NONE, NO_MATCHES.conditions, NO_MATCHES.pairs)
        given = program.sets[matches.conditions]
        gives = program.gives[given]  # some take items and give nothing, and takers are no queries
        if gives.all():
            return Batch(self, shredded, program.fragments, given, matches.conditions, matches.pairs)
        pairs = given[gives], matches.conditions[gives], matches.pairs[gives]
        return Batch(self, shredded, program.fragments, *pairs)

    def rows(self, found: Dealt) -> Rows:
        """What is whose."""
        answered = np.flatnonzero(found.counts)
        counts = self._bounds[answered + 1] - self._bounds[answered]
        query = np.repeat(answered, counts)
        within = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.zeros(len(query), ROW)
        rows["subscription"] = self._numbers[self._bounds[query] + within]
        rows["offset"] = found.begins[query]
        rows["length"] = found.sizes[query]
        rows["entries"] = found.counts[query]
        rows["first"] = found.firsts[query]
        return rows


@dataclass(frozen=True, slots=True)
class Batch:
    """Answers to the entries of a batch, in the order of the entries."""

    delivery: Delivery
    shredded: Shredded
    fragments: Fragments
    given: Indices
    """Which set of fragments each is made of."""
    queries: Places
    """Whose it is."""
    entries: Places

    def deliver(self, entries: range, pieces: Sequence[Piece], out: Answers) -> None:
        """Hand out what some entries give, with the pieces that the law gave for them."""
        given, queries, at = self.given, self.queries, self.entries
        if entries.start or entries.stop <= at.max(initial=-1):
            mine = (at >= entries.start) & (at < entries.stop)
            given, queries, at = given[mine], queries[mine], at[mine]
        if pieces:
            at = np.concatenate([at, np.array([piece.entry for piece in pieces], np.int32)])
            order = np.argsort(at, kind="stable")
            at = at[order]
            given = np.concatenate([given, ~np.arange(len(pieces))])[order]
            queries = np.concatenate([queries, np.array([piece.query for piece in pieces], np.int32)])[order]
        if len(queries):
            ready = [piece.data for piece in pieces]
            owners = queries, self.delivery.count
            found = dealt(self.shredded, self.fragments, given, at, *owners, ready, self.delivery.scratch)
            out.lay(found.data.data, self.delivery.rows(found))
