"""Windows and tuples that are sent between trunks; only twins share a branch, whatever query they were made from.

The maker of windows counts them like any window query, and their reader has a branch of its own; tuples are sent by the
branch of their join, and read as items.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from anabranch.branch import Branch
from anabranch.branch.members import BranchMember
from anabranch.branch.remote.gathering import SentWindowBranch
from anabranch.branch.remote.making import sent_plan
from anabranch.branch.remote.queries import SentQuery, sent_query
from anabranch.branch.remote.tuples import TupleQuery, TupleReader, tuple_query
from anabranch.branch.remote.written import is_sent, read_sent, stream_of
from anabranch.errors import UsageError
from anabranch.language import parse
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing, standing
from anabranch.sharing.remote import CombineWindows, MakeWindows, ReadTuples, ReadWindows, SendTuples
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, QueryContext, QueryKind, Seat
from anabranch.spark.plan.kinds.standing import PaneKind, StandingKind, operator_in, taken_apart
from anabranch.stream.reading.source import KnownStream


class RemoteTupleKind(StandingKind):
    """A join whose tuples are sent; one whose condition raises an error is sent, too, and judged where it is read."""

    name = "remote tuples"
    label = "plan"
    twins = "sent"
    has_frame = False
    sends = True

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        operator = read_sent(asked.text) if is_sent(asked.text) else None
        if not isinstance(operator, SendTuples) or operator.evolving is not cls.passes:
            return None
        found = taken_apart(operator.text, ())
        there = set(found.streams) <= known.streams.keys()
        return cls(streams=found.streams, standing=found, operator=operator_in(found, known) if there else "")


class EvolvingTupleKind(RemoteTupleKind):
    """The same, with the accents of its streams between the tuples."""

    name = "remote tuples with accents"
    passes = True


@dataclass(frozen=True, kw_only=True)
class TupleReaderKind(QueryKind):
    """The answer of a query from such tuples, or the tuples of a narrower flow."""

    name = "remote tuples read"
    label = "plan"
    twins = "sent"

    query: TupleQuery

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        operator = read_sent(asked.text) if is_sent(asked.text) else None
        if not isinstance(operator, ReadTuples):
            return None
        return cls(streams=(operator.stream,), query=tuple_query(operator))

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        member = BranchMember(seat.key, seat.asked.name, self.query, seat.out, seat.asked.policy)
        given = setup.given
        return TupleReader(member, setup.inputs[self.query.stream], setup.state, given.functions, given.documents)

    @classmethod
    def framed(cls, text: str, functions: Mapping[str, PythonFunction], edited: Collection[str]) -> Standing | None:
        operator = read_sent(text)
        assert isinstance(operator, ReadTuples), "so its kind was decided"
        return None if operator.sends else standing(parse(operator.text), functions)


class RemotePaneKind(PaneKind):
    """Windows that are made from items, and sent."""

    name = "remote windows of items"
    label = "plan"
    twins = "sent"
    has_frame = False

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        operator = read_sent(asked.text) if is_sent(asked.text) else None
        if not isinstance(operator, MakeWindows):
            return None
        stream = known.streams.get(operator.tree.stream)
        _refuse_partitions(stream, any_order=False)
        source = stream.source if stream else None
        timing = (source.slack, source.origin, source.time) if source else ()
        panes = sent_plan(operator.tree, *timing)
        return cls(streams=panes.whole.streams, standing=panes.whole, operator=cls.label, panes=panes)


@dataclass(frozen=True, kw_only=True)
class RemoteWindowKind(QueryKind):
    """Larger windows that are made from windows, and sent on, or the answer of a query computed from them."""

    name = "remote windows"
    label = "plan"
    twins = "sent"

    query: SentQuery

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        operator = read_sent(asked.text) if is_sent(asked.text) else None
        if not isinstance(operator, CombineWindows | ReadWindows):
            return None
        _refuse_partitions(known.streams.get(stream_of(operator)), any_order=True)
        found = sent_query(operator)
        return cls(streams=found.streams, query=found)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        member = BranchMember(seat.key, seat.asked.name, self.query, seat.out, seat.asked.policy)
        given = setup.given
        return SentWindowBranch(member, setup.inputs[self.query.stream], setup.state, given.functions, given.documents)

    @classmethod
    def framed(cls, text: str, functions: Mapping[str, PythonFunction], edited: Collection[str]) -> Standing | None:
        operator = read_sent(text)
        return standing(parse(operator.text), functions) if isinstance(operator, ReadWindows) else None


def _refuse_partitions(stream: KnownStream | None, *, any_order: bool) -> None:
    """Refuse windows of several partitions; without `any_order`, only if these are merged by their times."""
    if stream is not None and stream.source.is_divided and (stream.source.is_timed or any_order):
        raise UsageError(
            f"windows of stream '{stream.name}' cannot be made or read on their way: it has several partitions",
            hint="send the items",
        )
