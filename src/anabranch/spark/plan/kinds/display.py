"""Queries over streams of updates: their answer is a display.

One that reads its stream entry by entry can be answered in strands, each of which keeps some of the entries.
A query without strands belongs to one shard, so one task evaluates all its entries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

from anabranch.branch import Branch
from anabranch.branch.display.branch import DisplayBranch, DisplayMember, DisplayQuery, StrandBranch
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.strands import spreads
from anabranch.branch.family import twin_of
from anabranch.language import ast, parse
from anabranch.language.rewrite import parts
from anabranch.law.arrivals.past import named
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, Functions, QueryContext, QueryKind, Seat
from anabranch.stream.reading.source import KnownStream


@dataclass(frozen=True, kw_only=True)
class DisplayKind(QueryKind):
    """A query that reads a stream of updates; only twins share a branch."""

    name = label = "display"
    twins = "history"

    query: DisplayQuery

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        found = _display(asked.text, known.edited)
        if found is None:
            return None
        return cls(streams=found.streams, shows=True, query=found)

    def family(self, text: str, strands: int) -> str:
        twin = twin_of(self.query.query)
        return super().family(f"in {strands} strands {twin}" if strands else twin, strands)

    def can_be_divided(self, known: QueryContext) -> bool:
        if len(self.streams) != 1:
            return False
        stream = known.streams[self.streams[0]]
        return _splits(self.query.text, stream, known.functions)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        member = self.member(seat)
        if setup.strand is None:
            return DisplayBranch(member, setup.inputs, setup.state, setup.given, setup.files)
        strand = replace(member, strand=setup.strand)
        return StrandBranch(strand, setup.inputs, setup.state, setup.given, setup.files)

    def member(self, seat: Seat) -> DisplayMember:
        """The member for a branch, a strand, or a braid."""
        return DisplayMember(seat.key, seat.asked.name, self.query, seat.out)


@lru_cache(maxsize=1 << 14)
def _display(text: str, edited: tuple[str, ...]) -> DisplayQuery | None:
    """A query that reads a stream of updates, given by name; None for another one."""
    if not may_read(text, edited):
        return None
    query = parse(text)
    streams = named(query)
    return None if set(streams).isdisjoint(edited) else DisplayQuery(query, text, streams)


def may_read(text: str, streams: Collection[str]) -> bool:
    """Whether a query may read one of some streams: then its text contains the name."""
    return any(each in text or not each.isidentifier() for each in streams)


@lru_cache(maxsize=1 << 10)
def _splits(text: str, stream: KnownStream, functions: Functions) -> bool:
    """Whether a query reads a stream entry by entry."""
    query = parse(text)
    if any(isinstance(each, ast.Source) and each.kind == "doc" for each in parts(query)):
        return False  # its content is not known before it is read
    return spreads(ContinuousQuery(query, {stream.name: stream.root()}, functions=dict(functions), text=text).part)
