"""Queries over streams of updates: their answer is a display.

One that reads its stream entry by entry can be answered in strands, each of which keeps some of the entries.
A query without strands belongs to one shard, so one task evaluates all its entries.
There it shares a branch with all queries that see the same entries, in whatever versions (`sharing/histories.py`): the
stream is judged and kept once for them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Self

from anabranch.branch import Branch
from anabranch.branch.display.branch import DisplayBranch, DisplayMember, DisplayQuery, StrandBranch
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.families.branch import FamilyBranch
from anabranch.branch.display.families.machine import shares_history
from anabranch.branch.display.strands import spreads
from anabranch.branch.family import twin_of
from anabranch.language import ast, parse
from anabranch.language.rewrite import parts
from anabranch.language.versions import remembered_in
from anabranch.law.arrivals.past import named
from anabranch.sharing.histories import SharedHistory
from anabranch.sharing.needs import needs_of
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, Functions, QueryContext, QueryKind, Seat
from anabranch.stream.reading.source import KnownStream


@dataclass(frozen=True, kw_only=True)
class DisplayKind(QueryKind):
    """A query that reads a stream of updates; twins share a branch, and queries that see the same entries."""

    name = label = "display"
    twins = "history"

    query: DisplayQuery

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        found = _display(asked.text, known.edited)
        if found is None:
            return None
        return cls(streams=found.streams, shows=True, query=found, entries=_entries(asked, found, known))

    entries: str = ""
    """Identifies the queries that see the same entries, and read them one by one; empty where it shares none."""

    def family(self, text: str, strands: int) -> str:
        twin = twin_of(self.query.query)
        if strands:
            return super().family(f"in {strands} strands {twin}", strands)
        return f"{_SHARED} {self.entries}" if self.entries else super().family(twin, strands)

    @property
    def key(self) -> str:
        return twin_of(self.query.query) if self.entries else ""

    def can_be_divided(self, known: QueryContext) -> bool:
        if len(self.streams) != 1:
            return False
        stream = known.streams[self.streams[0]]
        return _splits(self.query.text, stream, known.functions)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        members = [self.member(each) for each in seats]
        state = setup.state
        if len(members) > 1 or (state is not None and state.meta["operator"] == FamilyBranch.operator):
            return FamilyBranch(members, setup.inputs, state, setup.given, setup.files)
        (member,) = members
        if setup.strand is None:
            return DisplayBranch([member], setup.inputs, state, setup.given, setup.files)
        strand = replace(member, strand=setup.strand)
        return StrandBranch([strand], setup.inputs, setup.state, setup.given, setup.files)

    def member(self, seat: Seat) -> DisplayMember:
        """The member for a branch, a strand, or a braid."""
        query = seat.query
        assert isinstance(query, DisplayKind), "all queries of a branch are of one kind"
        return DisplayMember(seat.key, seat.asked.name, query.query, seat.out, seat.asked.policy)


_SHARED = "entries"
"""Begins the names of families of queries that are no twins."""


def _entries(asked: Registration, query: DisplayQuery, known: QueryContext) -> str:
    """Which entries of its one stream a query sees, where it can share them; a registered query stays as it has begun.

    Queries of earlier releases, and such as are divided into strands, share nothing.
    """
    if asked.family:
        return asked.family.removeprefix(f"{_SHARED} ") if asked.family.startswith(f"{_SHARED} ") else ""
    if len(query.streams) != 1:
        return ""
    stream = known.streams[query.streams[0]]
    return _entries_of(query.text, stream.name, stream.root().name.local)


@lru_cache(maxsize=1 << 14)
def _entries_of(text: str, stream: str, root: str) -> str:
    query = parse(text)
    if not shares_history(query, {stream: root}):
        return ""
    seen = SharedHistory(stream, needs_of(query), root).entries
    return blake2b(json.dumps(seen).encode(), digest_size=16).hexdigest()


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
    if any(True for _ in remembered_in(query)):
        return False  # a value has its versions in one place
    return spreads(ContinuousQuery(query, {stream.name: stream.root()}, functions=dict(functions), text=text).part)
