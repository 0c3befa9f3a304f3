"""Queries that can answer nothing before their streams end: all entries wait, and the law answers over the whole.

The entries wait in the spill; only at the end are they read, all of them, in the units of query start.
No accent comes out: the answer is that of the canonical items (LAWS 4.7), unless the query needs a path that was
dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from heapq import merge
from operator import itemgetter

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.evolution.changelog import shown_at, starts_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.entries import MILLISECONDS, EntryReader
from anabranch.branch.intake.merge import Merged
from anabranch.branch.members import BranchMember
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.law.answer import NoAnswer, evaluate
from anabranch.law.calls import PythonFunction
from anabranch.law.evolution.vantage import Vantage
from anabranch.law.inputs import Input, stream_input
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.tree import copy


class BlockingBranch(Merged):
    """A branch that waits for the end."""

    def __init__(
        self,
        member: BranchMember[Standing],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        functions: Mapping[str, PythonFunction] | None,
        documents: Mapping[str, Input] | None,
        spill: Spill,
    ) -> None:
        self._member = member
        self._standing = member.query
        self._streams = [inputs[each] for each in inputs if each in self._standing.streams]
        super().__init__(self._streams, spill)
        self._functions = functions
        self._documents = documents or {}
        self.aborted: dict[str, str] = {}
        self._starts = starts_of(self._streams)
        if state is not None:
            known = {"now": [], "dated": [], "passed": None, "ended": state.meta["ended"]}
            self._merge.restore(known, state.tables["waiting"])

    def _run(self) -> None:
        """Take nothing before the end."""

    def _finish(self) -> None:
        given = {stream.name: self._read(stream) for stream in self._streams}
        if not self._survives(given):
            return
        out = self._member.out
        try:
            answer = evaluate(
                self._standing.query,
                {**self._documents, **given},
                functions=self._functions,
                name=self._member.name,
            )
            text = answer.text
        except NoAnswer as failure:
            self.aborted[self._member.key] = failure.reason
            for letter in failure.dead:
                out.bury(letter)
            return
        if text != self._standing.empty:
            out.piece(text.removeprefix(self._standing.opening).removesuffix(self._standing.closing))
        for letter in answer.dead:
            out.bury(letter)
        for place in answer.late:
            out.late(place)

    def _survives(self, given: Mapping[str, Input]) -> bool:
        """Whether the query can be answered after all drops of its streams."""
        changes = ([(each.time, name, each) for each in given[name].changes] for name in self._standing.streams)
        merged = (Announced(name, each.partition, each.change) for _, name, each in merge(*changes, key=itemgetter(0)))
        told = [*shown_at(self._starts), *merged]
        if told:
            roots = {each.name: each.root.namespaces for each in self._streams}
            lineage = lineage_of(self._standing, tuple(self._functions or ()), roots)
            follower = Follower(lineage, self._member.policy, {each.name: each.source for each in self._streams})
            for each in told:
                follower.hear(each)
            if follower.aborted is not None:
                self.aborted[self._member.key] = follower.aborted
        return not self.aborted

    def _read(self, stream: InputStream) -> Input:
        root = copy(stream.root)
        partitions = [self._elements(stream, number) for number in range(len(stream.source.partitions))]
        found, _ = stream_input(
            root,
            partitions,
            time=stream.source.time,
            slack=stream.source.slack,
            origin=stream.source.origin,
            late=stream.late,
            retain=stream.source.retain,
            vantages=[self._vantage(stream, number) for number in range(len(stream.source.partitions))],
        )
        return replace(found, item_name=stream.source.item_name) if stream.is_json else found

    def _vantage(self, stream: InputStream, partition: int) -> Vantage:
        start = self._starts.get((stream.name, partition))
        return Vantage(Evolution.of(stream.source)) if start is None else Vantage(start.evolution.copy())

    def _elements(self, stream: InputStream, partition: int) -> Iterator[StreamElement | DeadLetter]:
        reader = EntryReader(stream)
        backlog = self._merge.sources[stream.name, partition].backlog
        now = Decimal(0)
        while backlog.head is not None:
            entry = backlog.take()
            element = reader.read(entry)
            if entry.cut.stamp is not None and not isinstance(element, DeadLetter):
                if element.at is None:  # LAWS 1.3
                    element = replace(element, at=max(now, Decimal(entry.cut.stamp) / MILLISECONDS))
                now = element.at or now
            yield element

    def save(self) -> BranchState | None:
        """The state at the end of the epoch."""
        merge, waiting = self._merge.save()
        return BranchState({"operator": "whole", "ended": merge["ended"]}, {"waiting": waiting})

    @property
    def held(self) -> int:
        """The number of entries that wait for the end."""
        return sum(super().waiting.values())

    @property
    def waiting(self) -> dict[Key, int]:
        """No entry waits for another input."""
        return {}
