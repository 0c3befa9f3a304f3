"""A query over streams that only grow, on display: exact behind every element, with work for what is new only.

It is to items what `branch/display/continuous.py` is to documents that are edited, and has the same stages.
The results of an item are evaluated once, by the law's own evaluator; an item itself is kept only where a part of the
query does not split (`split.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Unpack

from anabranch.algebra.display.display import Display
from anabranch.algebra.display.sorting import EntryPlaces
from anabranch.branch.display.evaluation import AnswerScope, PartEvaluator
from anabranch.branch.display.groups.slices import SlicedStage
from anabranch.branch.display.history_stage import HistoryStage
from anabranch.branch.display.parts import (
    ComputedPart,
    DistinctPart,
    EachPart,
    EntriesPart,
    Folded,
    GroupPart,
    Part,
    SlicePart,
    WholePart,
    WindowPart,
    order_of,
)
from anabranch.branch.display.shown import DisplayChange, ShownQuery
from anabranch.branch.display.stages import EachStage, EntrySource, Stage, WholeStage
from anabranch.branch.document.state import Data
from anabranch.branch.growing.distinct import DistinctSource
from anabranch.branch.growing.groups import GroupSource, NumberedGroups
from anabranch.branch.growing.items import Entries, StreamItems, TakenItem
from anabranch.branch.growing.split import GrowingSplitter, parts_in
from anabranch.branch.growing.stages import ItemSource, RunningStage, WindowSource
from anabranch.branch.ports import InputStream
from anabranch.errors import StateError
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.law.evaluate import ResultRow
from anabranch.law.history.evaluate import Around, form_around
from anabranch.law.inputs import Input
from anabranch.runtime.past.value_histories import HistoryKey, Remembering, ValueHistory, histories_of
from anabranch.runtime.standing import Standing
from anabranch.runtime.tables import Lookups
from anabranch.stream.elements import Place
from anabranch.values.numbers import read_fraction, write_fraction


class _ItemLookups(Remembering, Lookups):
    """The law's evaluator, which looks up rows of documents by their keys, and values of the past."""

    now = Fraction(0)

    def moment_time(self) -> Fraction:
        return self.now


class _ItemEvaluator(PartEvaluator[Input]):
    """Evaluates parts of a query over items."""

    def _over(self, documents: Mapping[str, Input]) -> Remembering:
        around = self.around
        inputs = {**(around.get("inputs") or {}), **documents}
        found = _ItemLookups(self.query, inputs, around.get("functions") or {}, around.get("name"))
        found.now = self.now
        return found


class GrowingDisplay(ShownQuery):
    """A checked query that is kept up to date; `streams` are those that it reads, in the order of registration."""

    def __init__(
        self,
        query: ast.Query,
        streams: Mapping[str, InputStream],
        *,
        display: Callable[[], Display] = Display,
        **around: Unpack[Around],
    ) -> None:
        """`display` makes the empty display of the answer."""
        self.loops: dict[str, Standing] = {}
        """The loops over windows, by the ids of their results."""
        self._results: dict[str, WindowSource] = {}
        self._groups: list[GroupSource] = []
        self._read = streams
        query = with_json_results(query, form_around(query, around))
        roots = {name: each.root.name.local for name, each in streams.items()}
        splitter = GrowingSplitter(query, around.get("functions") or {}, roots)
        self._streams: dict[str, StreamItems] = {}
        self._entries: dict[str, Entries] = {}
        unsplit = WholePart(query.body, tuple(streams))
        evaluation = _ItemEvaluator(query, **around)
        super().__init__(query, splitter.part(query.body), unsplit, evaluation, display, splitter.value_part)

    def _build(self, query: ast.Query) -> None:
        values = [self._value_part(expression) for expression, _ in histories_of(query)]
        needed = {name for part in (self.part, *values) for name in _needed(part)}
        self._streams = {
            name: StreamItems(stream, rank, needs_all=name in needed)
            for rank, (name, stream) in enumerate(self._read.items())
        }
        self._entries = dict(self._streams)
        self.loops.clear()
        self._groups.clear()
        super()._build(query)

    def _stage(self, id: str, part: Part, scope: AnswerScope) -> Stage:
        match part:
            case SlicePart(over, interval):
                source, places = self._source(id, scope, over)
                return SlicedStage(id, self._site, scope, source, places, order_of(over), interval)
            case EachPart() | WindowPart() | GroupPart() | DistinctPart():
                source, places = self._source(id, scope, part)
                return EachStage(id, self._site, scope, source, places, order_of(part))
            case ComputedPart():

                def taken_over(id: str, folded: Folded) -> tuple[EntrySource, EntryPlaces]:
                    return self._source(id, scope, folded.over)

                return RunningStage(id, self._site, scope, part, taken_over)
            case WholePart():
                return WholeStage(id, self._site, scope, part, lambda stream: self._streams[stream].whole())
            case _:
                raise AssertionError(part)

    def _source(self, id: str, scope: AnswerScope, part: EntriesPart) -> tuple[EntrySource, EntryPlaces]:
        """The source of the entries of a part, and the order of these entries."""
        match part:
            case EachPart(stream):
                self._evaluation.value(part.first, scope, {}, {})
                items = self._streams[stream]
                return ItemSource(id, self._site, scope, part, items.latest), items.order
            case WindowPart(_, found):
                self.loops[id] = replace(found, env=scope.env, scope=scope.declared)
                self._results[id] = WindowSource(id, self._site)
                return self._results[id], self._derived(id).order
            case GroupPart():
                return self._group_source(id, scope, part)
            case DistinctPart(over):
                values, _ = self._source(f"{id}.over", scope, over)
                entries = self._derived(id)
                return DistinctSource(id, self._site, values, entries), entries.order
            case SlicePart(over):
                return self._source(id, scope, over)

    def _group_source(self, id: str, scope: AnswerScope, part: GroupPart) -> tuple[EntrySource, EntryPlaces]:
        self._evaluation.value(part.first, scope, {}, {})
        own = id if part.count is None else f"{id}.groups"
        entries, items = self._derived(own), self._streams[part.stream]
        groups = GroupSource(own, self._site, scope, part, items.single, entries)
        self._groups.append(groups)
        if part.count is None:
            return groups, entries.order
        numbers = self._derived(id)
        return NumberedGroups(id, self._site, groups, part, numbers), numbers.order

    def _derived(self, id: str) -> Entries:
        """New entries that are derived from others."""
        self._entries[id] = Entries()
        return self._entries[id]

    # --- elements -----------------------------------------------------------------------------------------

    @property
    def streams(self) -> Collection[str]:
        """The streams that it reads."""
        return self._streams.keys()

    @property
    def histories(self) -> Mapping[HistoryKey, ValueHistory]:
        """The values of the past that it remembers."""
        return self._evaluation.histories

    def stream(self, name: str) -> StreamItems:
        """The items of a stream."""
        return self._streams[name]

    def moment(
        self,
        now: Fraction,
        place: Place,
        came: tuple[str, TakenItem] | None = None,
        found: Mapping[str, Sequence[Sequence[ResultRow]]] | None = None,
    ) -> DisplayChange:
        """Take an element from a place: an item of a stream, if it is one, and the rows of windows that have closed."""
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
                if self._keeps(name, number):
                    self._entries[name].keep(number)
        for stage in self._stages:
            for name, number in stage.forgotten():
                if not self._keeps(name, number):
                    self._entries[name].forget(number)
        return self._change(place)

    def _keeps(self, name: str, number: int) -> bool:
        return any(stage.keeps(name, number) for stage in self._stages)

    def consult(self, documents: Mapping[str, Input], *, changed: bool) -> None:
        """Use other documents; where they have changed, the next moment evaluates all groups again."""
        super().consult(documents, changed=changed)
        if changed:
            for each in self._groups:
                each.renew()

    @property
    def held(self) -> int:
        """How many items, windows and groups it keeps something of."""
        return sum(len(each.kept) for each in self._entries.values())

    @property
    def load(self) -> int:
        """What bounds of a subscription count (LAWS 2.9): also the values that groups and the past keep one by one."""
        versions = sum(len(each.versions) for each in self.histories.values())
        return self.held + versions + sum(each.values for each in self._groups)

    # --- state --------------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How much has changed since `settled`."""
        return sum(len(each.unsaved) + len(each.gone) for each in self._entries.values())

    def encode(self, *, whole: bool = True) -> Data:
        """The whole state as plain data, or else what has changed since `settled`."""
        data = self._remembered({name: each.encode(whole=whole) for name, each in self._entries.items()})
        running = {each.id: each.save() for each in self._running()}
        return {**data, "running": running, "now": write_fraction(self.now)}

    def settled(self) -> None:
        """Note that the state is saved."""
        for each in self._entries.values():
            each.settled()

    def decode(self, *several: Data) -> None:
        """Restore from what `encode` gave for the same query: first the whole state, then changes."""
        for data in several:
            if data["streams"].keys() != self._entries.keys():
                raise StateError(
                    "the state of a display is that of a release that kept something else of its streams",
                    hint="use the release that wrote it, or begin with a new checkpoint",
                )
            for name, (order, _, count, entries) in data["streams"].items():
                gone = [number for removed, _ in order for number in removed]
                kept = sorted(entries, key=itemgetter(0))
                self._entries[name].decode(count, gone, kept)
                for number, found in (*((each, {}) for each in gone), *((each[0], each[-1]) for each in kept)):
                    for stage in self._stages:
                        stage.recall(name, number, found.get(stage.id))
        last = several[-1]
        self.now = self._evaluation.now = read_fraction(last["now"])
        for stage in self._running():
            stage.restore(last["running"][stage.id])
        self._recalled(last)

    def _running(self) -> Iterator[RunningStage]:
        """The stages of aggregates, also of those whose values are only remembered."""
        for each in self._stages:
            stage = each.inner if isinstance(each, HistoryStage) else each
            if isinstance(stage, RunningStage):
                yield stage


def _needed(part: Part) -> Iterator[str]:
    """The streams whose items are kept."""
    for each in parts_in(part):
        match each:
            case WholePart(_, streams):
                yield from streams
            case GroupPart(stream, held=held) | SlicePart(GroupPart(stream, held=held)) if held:
                yield stream
            case ComputedPart(_, names):
                for _, folded in names:
                    yield from _needed(folded.over)
