"""Queries that are a frame with one hole: items, windows, joins, and those that wait for the end of their streams.

Queries that need one item at a time are answered where the item is read; the others are branches with state.
So are item queries that need an order: that of partitions with a time, which are read in parallel (LAWS 1.2), of
several streams, or of adjacent values; and all queries whose answers are recorded with their moments.
Windows are counted by panes where their query needs only aggregates of them, and no document that may change; so are
sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

from anabranch.branch import Branch, BranchMember, open_branch
from anabranch.branch.family import family_of, operator_of, twin_of
from anabranch.branch.panes.plan import pane_plan
from anabranch.language import parse
from anabranch.runtime.standing import Standing, standing
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, Functions, QueryContext, QueryKind, Seat, shapes_of
from anabranch.stream.reading.source import KnownStream


@dataclass(frozen=True, kw_only=True)
class StandingKind(QueryKind):
    """The common part of these kinds; they differ in the operator behind the merge of their inputs."""

    sends: ClassVar[bool] = False
    """Whether its results are tuples for another trunk."""
    passes: ClassVar[bool] = False
    """Whether the events of its streams are passed on between these."""

    standing: Standing
    operator: str
    """Usually the same as the label of the kind."""

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        if operator_in(_shape(asked, known), known) != cls.label:
            return None
        found = taken_apart(asked.text, known.functions)
        return cls(streams=found.streams, standing=found, operator=cls.label)

    def family(self, text: str, strands: int) -> str:
        return super().family(text, strands) or family_of(self.standing, self.operator)

    @property
    def key(self) -> str:
        return twin_of(self.standing.query)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        members = []
        for each in seats:
            assert isinstance(each.query, StandingKind), "a branch serves queries of one kind"
            given = each.query.standing, each.out, each.asked.policy, self.sends, self.passes, each.asked.caps
            members.append(BranchMember(each.key, each.asked.name, *given))
        known = setup.given.functions, setup.given.documents
        return open_branch(self.operator, members, setup.inputs, setup.state, *known, setup.files)


class UnreadKind(StandingKind):
    """A query over a stream that does not exist yet; its kind is decided when the stream comes."""

    name = label = "unread"
    is_branch = False

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        found = _shape(asked, known)
        if cls._is_it(found, asked, known):
            return cls(streams=found.streams, standing=found, operator=cls.label)
        return None

    @staticmethod
    def _is_it(found: Standing, asked: Registration, known: QueryContext) -> bool:
        return not set(found.streams) <= known.streams.keys()


class ItemKind(UnreadKind):
    """A query that is answered where its items are read; its constants are those of the shape, not of its text."""

    name = label = "items"

    @staticmethod
    def _is_it(found: Standing, asked: Registration, known: QueryContext) -> bool:
        is_apart = not asked.timed and found.kind == "items" and found.separate and len(found.streams) == 1
        return is_apart and not any(_is_merged(known.streams[name]) for name in found.streams)


class OrderedItemKind(StandingKind):
    """A query of one item at a time whose answer needs an order."""

    name = "items in order"
    label = "items"


class PaneKind(StandingKind):
    """Windows that are counted by panes, in the tasks; only twins share a branch."""

    name = "windows by panes"
    label = "windows"

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        found = None if asked.timed else super().read(asked, known)
        if found is None:
            return None
        stream = known.streams[found.streams[0]]
        if _is_merged(stream):  # panes are merged in the order in which ranges are read
            return None
        if found.standing.documents and known.endless:
            return None  # a window sees documents as of its close, but an item is counted when it comes
        functions = dict(known.functions)
        source = stream.source
        panes = pane_plan(found.standing, source.slack, source.origin, functions, stream.namespaces, source.time)
        return None if panes is None else replace(found, panes=panes)

    def family(self, text: str, strands: int) -> str:
        return f"{self.twins} {text}" if self.twins else twin_of(self.standing.query)

    @property
    def key(self) -> str:
        return ""

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        raise AssertionError("panes are merged for all branches of a shard together")


class SessionPaneKind(PaneKind):
    """Sessions that are counted by panes."""

    name = "sessions by panes"
    label = "sessions"


class WindowKind(StandingKind):
    """Windows that hold their items."""

    name = label = "windows"


class SessionKind(StandingKind):
    """Sessions, which hold their items."""

    name = label = "sessions"


class StepJoinKind(StandingKind):
    """Windows over several streams, whose items meet when one of them moves."""

    name = label = "step join"


class IntervalJoinKind(StandingKind):
    """Items whose declared times are near each other."""

    name = label = "interval join"


class KeyedJoinKind(StandingKind):
    """Items that have a key in common, however far apart they are."""

    name = label = "keyed join"


class BlockingKind(StandingKind):
    """Queries that can be answered only at the end of the streams."""

    name = label = "whole"


def _shape(asked: Registration, known: QueryContext) -> Standing:
    return shapes_of(known.functions).of(asked.text).shape.standing


def operator_in(query: Standing, known: QueryContext) -> str:
    """The operator of a query over known streams."""
    times = {name: known.streams[name].source.time for name in query.streams}
    return operator_of(query, times, endless=known.endless)


def _is_merged(stream: KnownStream) -> bool:
    """Whether the order of a stream differs from that in which its ranges are read."""
    return stream.source.is_merged


@lru_cache(maxsize=1 << 14)
def taken_apart(text: str, functions: Functions) -> Standing:
    """An analysed stateful query, shared by the plans of this process."""
    return standing(parse(text), dict(functions))
