"""A query over streams that only grow, on display: exact behind every element, at the cost of what has come.

It is to items what `branch/display/continuous.py` is to documents that are edited, and has the same stages.
What an item gives is found once, by the law's own evaluator; an item itself is kept only where a part of the query does
not split (`split.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Unpack

from anabranch.algebra.display.display import Display
from anabranch.branch.display.evaluation import AnswerScope, PartEvaluator
from anabranch.branch.display.shown import DisplayChange, ShownQuery
from anabranch.branch.display.split import ComputedPart, EachPart, Folded, Part, WholePart, WindowPart
from anabranch.branch.display.stages import EachStage, EntryPlaces, EntrySource, Stage, WholeStage
from anabranch.branch.document.state import Data
from anabranch.branch.growing.items import Entries, StreamItems, TakenItem
from anabranch.branch.growing.split import parts_in, split_growing
from anabranch.branch.growing.stages import ItemSource, RunningStage, WindowSource
from anabranch.branch.ports import InputStream
from anabranch.language import ast
from anabranch.law.evaluate import Evaluator, ResultRow
from anabranch.law.history.evaluate import Around
from anabranch.law.inputs import Input
from anabranch.runtime.standing import Standing
from anabranch.runtime.tables import Lookups
from anabranch.stream.elements import Place
from anabranch.values.numbers import read_fraction, write_fraction


class _ItemEvaluator(PartEvaluator[Input]):
    """Evaluates parts of a query over items."""

    def _over(self, documents: Mapping[str, Input]) -> Evaluator:
        around = self.around
        inputs = {**(around.get("inputs") or {}), **documents}
        return Lookups(self.query, inputs, around.get("functions") or {}, around.get("name"))


class GrowingDisplay(ShownQuery):
    """A checked query at work; `streams` are those that it reads, in the order in which they are registered."""

    def __init__(
        self,
        query: ast.Query,
        streams: Mapping[str, InputStream],
        *,
        display: Callable[[], Display] = Display,
        **around: Unpack[Around],
    ) -> None:
        """`display` makes what the answer is shown on, empty."""
        self.loops: dict[str, Standing] = {}
        """The loops over windows, by the ids of their results."""
        self._results: dict[str, WindowSource] = {}
        self._read = streams
        roots = {name: each.root.name.local for name, each in streams.items()}
        part = split_growing(query, around.get("functions") or {}, roots)
        self._streams: dict[str, StreamItems] = {}
        self._entries: dict[str, Entries] = {}
        unsplit = WholePart(query.body, tuple(streams))
        super().__init__(query, part, unsplit, _ItemEvaluator(query, **around), display)

    def _build(self, query: ast.Query) -> None:
        needed = {name for each in _wholes(self.part) for name in each.streams}
        self._streams = {
            name: StreamItems(stream, rank, needs_all=name in needed)
            for rank, (name, stream) in enumerate(self._read.items())
        }
        self._entries = dict(self._streams)
        self.loops.clear()
        super()._build(query)

    def _stage(self, id: str, part: Part, scope: AnswerScope) -> Stage:
        match part:
            case EachPart() | WindowPart():
                source, places = self._source(id, scope, part)
                order = part.order if isinstance(part, EachPart) else part.flwor.order
                return EachStage(id, self._site, scope, source, places, order)
            case ComputedPart():

                def taken_over(id: str, folded: Folded) -> tuple[EntrySource, EntryPlaces]:
                    return self._source(id, scope, folded.over)

                return RunningStage(id, self._site, scope, part, taken_over)
            case WholePart():
                return WholeStage(id, self._site, scope, part, lambda stream: self._streams[stream].whole())
            case _:
                raise AssertionError(part)

    def _source(self, id: str, scope: AnswerScope, part: EachPart | WindowPart) -> tuple[EntrySource, EntryPlaces]:
        """What gives the results of items or of windows, and their order."""
        if isinstance(part, EachPart):
            self._evaluation.value(part.first, scope, {}, {})
            items = self._streams[part.stream]
            return ItemSource(id, self._site, scope, part, items.latest), items.order
        self.loops[id] = replace(part.standing, env=scope.env, scope=scope.declared)
        self._entries[id] = Entries()
        self._results[id] = WindowSource(id, self._site)
        return self._results[id], self._entries[id].order

    # --- elements -----------------------------------------------------------------------------------------

    def stream(self, name: str) -> StreamItems:
        """What is kept of a stream."""
        return self._streams[name]

    def moment(
        self,
        now: Fraction,
        place: Place,
        came: tuple[str, TakenItem] | None = None,
        found: Mapping[str, Sequence[Sequence[ResultRow]]] | None = None,
    ) -> DisplayChange:
        """An element has come, from a place: perhaps an item of a stream, and what windows have given with it."""
        self.now = self._evaluation.now = now
        self.is_behind = False
        changed: dict[str, list[int]] = {name: [] for name in self._entries}
        if came is not None:
            stream, item = came
            changed[stream].append(self._streams[stream].take(item))
        for id, several in (found or {}).items():
            for rows in several:
                number = self._entries[id].enter()
                self._results[id].put(number, rows)
                changed[id].append(number)
        for stage in self._stages:
            stage.update(changed)
        for name, numbers in changed.items():
            for number in numbers:
                if any(stage.keeps(name, number) for stage in self._stages):
                    self._entries[name].keep(number)
        return self._change(place)

    @property
    def held(self) -> int:
        """How many items and windows it remembers something of."""
        return sum(len(each.kept) for each in self._entries.values())

    # --- state --------------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How much has changed since `settled`."""
        return sum(len(each.unsaved) for each in self._entries.values())

    def encode(self, *, whole: bool = True) -> Data:
        """All that must be remembered, as plain data, or else what has changed since `settled`."""
        data = self._remembered({name: each.encode(whole=whole) for name, each in self._entries.items()})
        running = {each.id: each.save() for each in self._stages if isinstance(each, RunningStage)}
        return {**data, "running": running, "now": write_fraction(self.now)}

    def settled(self) -> None:
        """All that must be remembered is written."""
        for each in self._entries.values():
            each.unsaved.clear()

    def decode(self, *several: Data) -> None:
        """Go on from what `encode` gave for the same query, one behind the other: all, and changes."""
        for data in several:
            for name, (_, _, count, entries) in data["streams"].items():
                self._entries[name].decode(count, entries)
                for number, _, found in entries:
                    for stage in self._stages:
                        stage.recall(name, number, found.get(stage.id))
        last = several[-1]
        self.now = self._evaluation.now = read_fraction(last["now"])
        for stage in self._stages:
            if isinstance(stage, RunningStage):
                stage.restore(last["running"][stage.id])
        self._recalled(last)


def _wholes(part: Part) -> list[WholePart]:
    """The parts that do not split."""
    return [each for each in parts_in(part) if isinstance(each, WholePart)]
