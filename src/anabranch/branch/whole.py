"""Queries that can say nothing before their streams end: everything waits, and the law answers over the whole.

The entries wait in the spill; only when the end has come are they read, all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from anabranch.branch.backlog import Backlog, Key, backlog_table, restore_backlogs
from anabranch.branch.entries import unpack
from anabranch.branch.ports import InputStream, Output, Spill
from anabranch.branch.state import State
from anabranch.reference.calls import PythonFunction
from anabranch.reference.evaluate import evaluate
from anabranch.reference.inputs import Input, stream_input
from anabranch.reference.standing import Standing
from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.tree import Element, copy


class Whole:
    """A branch that waits for the end."""

    def __init__(
        self,
        standing: Standing,
        name: str,
        inputs: Mapping[str, InputStream],
        state: State | None,
        functions: Mapping[str, PythonFunction] | None,
        documents: Mapping[str, Input] | None,
        out: Output,
        spill: Spill,
    ) -> None:
        self._standing = standing
        self._name = name
        self._streams = [inputs[each] for each in inputs if each in standing.streams]
        self._functions = functions
        self._documents = documents or {}
        self._out = out
        keys = ((stream.name, number) for stream in self._streams for number in range(stream.partitions))
        self._backlogs: dict[Key, Backlog] = {key: Backlog(spill) for key in keys}
        self._ended: set[Key] = set()
        if state is not None:
            self._ended = {(stream, partition) for stream, partition in state.meta["ended"]}
            restore_backlogs(self._backlogs, state.tables["waiting"])

    def feed(self, data: bytes) -> None:
        """Take in a feed."""
        origin, _ = unpack(data)
        self._backlogs[origin.stream, origin.partition].append(data)

    def passed(self, time: Fraction) -> None:
        """That time goes by changes nothing."""

    def end(self, stream: str, partition: int) -> None:
        """An input has ended; with the last one the answer is found."""
        self._ended.add((stream, partition))
        if self._ended >= self._backlogs.keys():
            self._answer()

    def _answer(self) -> None:
        given = {stream.name: self._read(stream) for stream in self._streams}
        answer = evaluate(
            self._standing.query,
            {**self._documents, **given},
            functions=self._functions,
            name=self._name,
            text=self._standing.text,
        )
        if answer.text != self._standing.empty:
            self._out.piece(answer.text.removeprefix(self._standing.opening).removesuffix(self._standing.closing))
        for letter in answer.dead:
            self._out.bury(letter)
        for place in answer.late:
            self._out.late(place)

    def _read(self, stream: InputStream) -> Input:
        root = copy(stream.root)
        assert isinstance(root, Element)
        partitions = [self._elements(stream, number) for number in range(stream.partitions)]
        found, _ = stream_input(
            root, partitions, time=stream.time, slack=stream.slack, origin=stream.origin, late=stream.late
        )
        return found

    def _elements(self, stream: InputStream, partition: int) -> Iterator[StreamElement | DeadLetter]:
        reader = stream.reader()
        backlog = self._backlogs[stream.name, partition]
        while backlog.head is not None:
            entry = backlog.take()
            yield from reader.elements([entry.cut], entry.origin.file)

    def save(self) -> State | None:
        """What must be remembered; the epoch is over."""
        for backlog in self._backlogs.values():
            backlog.settle()
        return State({"operator": "whole", "ended": sorted(self._ended)}, {"waiting": backlog_table(self._backlogs)})

    @property
    def held(self) -> int:
        """How many entries wait."""
        return sum(map(len, self._backlogs.values()))

    @property
    def waiting(self) -> dict[Key, int]:
        """None of them waits for another input."""
        return {}

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs."""
        return tuple(ref for backlog in self._backlogs.values() for ref in backlog.spilled)
