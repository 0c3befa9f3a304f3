"""Several queries over one stream of updates, kept up to date together: one history, and each entry looked at once.

What is kept of the stream is what all of them need, of minimal length for each path (`sharing/histories.py`); elements
are judged and applied once.
An entry that has changed is evaluated for those queries only that it can concern (`bounds.py`), and for those that show
something of it; what these have in common is evaluated once (`looks.py`).
Where time alone has changed an entry, that concerns only queries that look back so many seconds.

Each query has its parts, results and display to itself (`continuous.py`), and shows what it would show alone: it sees
the same entries with the same numbers, in the same moments.
All have seen the stream from the same element on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from anabranch.algebra.display.display import Display
from anabranch.algebra.display.sorting import EntryPlaces
from anabranch.branch.display.compiled_loops.loops import ShownRow
from anabranch.branch.display.compiled_loops.rounds import EntryRounds, NumberedRows
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.evaluation import AnswerScope, Entrywise
from anabranch.branch.display.families.bounds import Concerned
from anabranch.branch.display.families.looks import CompiledTexts, EntryLook, LookEvaluator
from anabranch.branch.display.families.loops import EntryLoop, loop_of
from anabranch.branch.display.parts import EachPart
from anabranch.branch.display.shown import DisplayChange
from anabranch.branch.display.split import Splitter
from anabranch.branch.display.stages import EntrySource, WholeStage
from anabranch.branch.display.strands import spreads
from anabranch.branch.document.judging import Replacement
from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import Data, decode, encode
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.language.rewrite import parts
from anabranch.language.versions import remembered_in
from anabranch.law.calls import PythonFunction
from anabranch.law.evaluate import ResultRow
from anabranch.law.history.evaluate import Around, form_around
from anabranch.law.inputs import Input
from anabranch.sharing.histories import merged
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import Needs, Visibility
from anabranch.stream.elements import Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Element


@dataclass(frozen=True)
class AskedDisplay:
    """A query of a family: what its machine is made with."""

    query: ast.Query
    display: Callable[[], Display]
    """Makes its empty display."""
    around: Around


def shares_history(query: ast.Query, roots: Mapping[str, str]) -> bool:
    """Whether a query over one stream of updates can be of a family: it reads its stream entry by entry, and no more.

    `roots` is the local name of the stream's root.
    """
    if any(isinstance(each, ast.Source) and each.kind == "doc" for each in parts(query)):
        return False
    if any(True for _ in remembered_in(query)) or needs_of(query).evaluates_back:
        return False  # values of the past are those of one query
    return spreads(Splitter(query, roots).part(query.body))


def _needs(asked: AskedDisplay) -> Needs:
    return needs_of(with_json_results(asked.query, form_around(asked.query, asked.around), edited=True))


class FamilyDocument(KeptDocument):
    """What all queries of a family keep of their stream, and why entries have changed."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._timed: dict[int, set[Fraction]] = {}
        self._touched: set[int] = set()

    def _touch(self, number: int, at: Fraction) -> None:
        super()._touch(number, at)
        self._touched.add(number)

    def _leave(self, number: int) -> None:
        super()._leave(number)
        self._touched.add(number)

    def _fall_due(self, number: int, marks: Sequence[Fraction], since: Fraction | None, now: Fraction) -> None:
        found = self._timed.setdefault(number, set())
        for mark in marks:
            found.update(
                each for each in self._seconds if mark + each <= now and (since is None or mark + each > since)
            )

    def news(self) -> list[tuple[int, frozenset[Fraction] | None]]:
        """The entries that have changed, in the order of evaluation.

        Where time alone has changed one, with the seconds that have passed since earlier changes of it; else with None.
        """
        found = [
            (number, None if number in self._touched else frozenset(self._timed.get(number, ())))
            for number in self.take_changed()
        ]
        self._timed.clear()
        self._touched.clear()
        return found


class _SharedEntrywise(Entrywise):
    """A part of a query of a family: what others evaluate, too, is evaluated once."""

    def __init__(self, family: DisplayFamily, loop: EntryLoop | None, sight: Visibility, *given: Any) -> None:
        """`sight` is what the query sees of the stream's root; without a `loop`, it shares no evaluation."""
        super().__init__(*given)
        self._family, self._loop, self._own_sight = family, loop, sight
        scope = self._scope
        self._is_plain = scope.form != "json" and not scope.declared and not scope.env.namespaces.get("")
        """Whether the texts of nodes are those that are shown."""

    def shown(self, entry: int) -> Sequence[ResultRow | ShownRow] | NumberedRows:
        if self._family.is_single:
            return super().shown(entry)
        self._rounds.pop(entry, None)  # rounds are those of an entry all of whose changes the query is told
        found = self._large(entry) if self._compiled is not None and self._compiled.is_separable else None
        if found is None and self._loop is not None and self._is_plain and not self._scope.units.maps:
            found = self._family.usual_rows(self._loop, entry)
        if found is None:
            return self.rows(entry)
        self._site.failing.pop((self._id, entry), None)
        self._site.told.pop((self._id, entry), None)
        return found

    def _large(self, entry: int) -> Sequence[ResultRow | ShownRow] | NumberedRows | None:
        """The results of an entry whose rounds are numbered one by one; None for another."""
        known, loop = self._family.document.by_number.get(entry), self._compiled
        if loop is None or known is None or known.content is None or not EntryRounds.is_large(loop, known.content):
            return None
        found = self._usual(entry)
        self._rounds.pop(entry, None)
        return found

    def tried(self, entry: int) -> list[ResultRow]:
        rows = None if self._loop is None else self._family.shared_rows(self._loop, entry)
        if rows is None:
            return super().tried(entry)
        self._site.failing.pop((self._id, entry), None)
        self._site.told.pop((self._id, entry), None)
        return rows

    def _sight(self) -> Visibility:
        """What the query would see by itself."""
        return self._own_sight


class FamilyQuery(ContinuousQuery):
    """One of the queries of a family: the document is that of all."""

    def __init__(self, family: DisplayFamily, key: str, asked: AskedDisplay, roots: Mapping[str, Element]) -> None:
        self._family = family
        self.key = key
        self._loops: list[EntryLoop | None] = []
        super().__init__(asked.query, roots, display=asked.display, **asked.around)
        self.seconds = frozenset(self.needs.seconds(family.stream))

    def _keep(self, root: Element, stream: str, limits: Limits | None) -> KeptDocument:
        return self._family.document

    def _build(self, query: ast.Query) -> None:
        self._loops.clear()
        super()._build(query)

    def _entrywise(self, id: str, scope: AnswerScope, part: EachPart) -> tuple[EntrySource, EntryPlaces]:
        loop = loop_of(part, self._evaluation.query, scope)
        self._loops.append(loop)
        family = self._family
        sight = Visibility.of(self.needs.streams[family.stream]).into(family.document.root.name.local)
        return _SharedEntrywise(family, loop, sight, id, self._site, scope, part, self.kept), family.document.order

    def loops(self) -> list[EntryLoop | None]:
        """Its parts, taken apart; None for one that is evaluated for every entry that changes."""
        return [*self._loops, *(None for each in self._stages if isinstance(each, WholeStage))]

    def _evaluate_all(self) -> None:
        """Have the family evaluate all entries for this query alone, at the next moment."""
        self._family.altered.add(self)

    def moment(self, entries: Sequence[int], now: Fraction, place: Place) -> DisplayChange:
        """What a moment has changed on display, where these entries have changed."""
        self.now = self._evaluation.now = now
        for stage in self._stages:
            stage.update({self._family.stream: entries})
        return self._change(place)

    def holds(self, entry: int) -> bool:
        """Whether it shows something of an entry, or has told of its errors."""
        site, stream = self._site, self._family.stream
        return any(
            stage.keeps(stream, entry)
            or any((part, entry) in site.told or (part, entry) in site.failing for part in stage.parts)
            for stage in self._stages
        )

    # --- state --------------------------------------------------------------------------------------------

    def entry_state(self, entry: int) -> Data:
        """What is remembered of an entry, by part."""
        found = {each.id: each.remembered(self._family.stream, entry) for each in self._stages}
        return {id: data for id, data in found.items() if data is not None}

    def recall_entry(self, entry: int, data: Data) -> None:
        """Replace what is known of an entry."""
        for stage in self._stages:
            stage.recall(self._family.stream, entry, data.get(stage.id))

    def rest_state(self) -> Data:
        """What is remembered beside entries; empty where there is nothing to say."""
        found = self._remembered({})
        return {key: found[key] for key in ("failing", "told", "units") if found.get(key)}

    def recall_rest(self, data: Data, *, is_new: bool) -> None:
        """Restore the rest, after all entries."""
        self.now = self._evaluation.now = self._family.document.now
        self._recalled({"failing": [], "told": {}, **data, "is_new": is_new})


FamilyNews: TypeAlias = tuple[str, DisplayChange]
"""What changes on display, and for whom."""


class DisplayFamily:
    """Queries over one stream by their keys, which all have seen the same elements."""

    def __init__(
        self, asked: Mapping[str, AskedDisplay], roots: Mapping[str, Element], limits: Limits | None = None
    ) -> None:
        ((self.stream, root),) = roots.items()
        needs = merged(map(_needs, asked.values()))
        self.document = FamilyDocument(root, self.stream, needs, limits)
        self.kept: dict[str, KeptDocument] = {self.stream: self.document}
        self.queries = {key: FamilyQuery(self, key, each, roots) for key, each in asked.items()}
        self._reads = ast.Query(ast.Source("stream", self.stream))
        """What is read when entries are looked at."""
        self._texts = CompiledTexts(self._reads, self.document.root)
        self._holders: dict[int, dict[FamilyQuery, None]] = {}
        """By entry: the queries that show something of it."""
        self._looks: dict[int, EntryLook] = {}
        """The looks at entries in the present moment."""
        self.altered: set[FamilyQuery] = set()
        """The queries whose displays are shown anew at the next moment."""
        self.is_behind = False
        self.is_new = True
        """Whether there was no moment yet."""
        self._index()

    def _index(self) -> None:
        parts = ((query, loop) for query in self.queries.values() for loop in query.loops())
        self._concerned = Concerned(
            (query, query.seconds, None) if loop is None else (query, loop.seconds, loop.bound) for query, loop in parts
        )

    def call(self, functions: Mapping[str, PythonFunction]) -> None:
        """Use these functions from now on."""
        self._texts.functions = functions
        for query in self.queries.values():
            query.call(functions)

    def consult(self, documents: Mapping[str, Input], *, changed: bool) -> None:
        """Families read no documents."""

    def leave(self, key: str) -> None:
        """Let a query leave; what only it needed is dropped when the state is next restored."""
        gone = self.queries.pop(key)
        for holders in self._holders.values():
            holders.pop(gone, None)
        self._index()

    # --- elements -----------------------------------------------------------------------------------------

    def take(self, stream: str, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[FamilyNews]:
        """Take an element; yields what its moments change, each to be shown before the next is asked for."""
        for _ in self.document.take(element, at, partition):
            yield from self._moment(element.place)

    def take_together(self, stream: str, partition: int, replacements: Sequence[Replacement]) -> Iterator[FamilyNews]:
        """Take updates that were judged together, one after the other."""
        for each in replacements:
            self.document.take_judged(each, partition)
            yield from self._moment(each.update.place)

    def begin(self, documents: Mapping[str, LateStart]) -> Iterator[FamilyNews]:
        """Begin late, with the document as it stands (LAWS 3.6)."""
        self.document.begin(documents[self.stream])
        yield from self._moment(Place("", "", 0))

    def _moment(self, place: Place) -> Iterator[FamilyNews]:
        now = self.document.now
        self.document.moved(now)
        self._texts.now[0] = now
        self._looks.clear()
        concerned: dict[FamilyQuery, list[int]] = {}
        for entry, seconds in self.document.news():
            for query in self._concerned_by(entry, seconds):
                concerned.setdefault(query, []).append(entry)
        for query in [each for each in self.queries.values() if each in self.altered] if self.altered else ():
            entries = self.document.in_turn({*concerned.get(query, ()), *self.document.numbers()})
            self.document.unsaved.entries.update(dict.fromkeys(entries))
            concerned[query] = entries
        self.altered.clear()
        if self.is_new:
            concerned = {query: concerned.get(query, []) for query in self.queries.values()}
            self.is_new = False
        for query, entries in concerned.items():
            change = query.moment(entries, now, place)
            for entry in entries:
                self._hold(query, entry, holds=query.holds(entry))
            yield query.key, change
        self._looks.clear()

    def _concerned_by(self, entry: int, seconds: frozenset[Fraction] | None) -> dict[FamilyQuery, None]:
        """The queries that a changed entry may concern."""
        if self.is_single:
            return dict.fromkeys(self.queries.values())
        holders = self._holders.get(entry, {})
        found = (
            dict(holders)
            if seconds is None
            else {each: None for each in holders if not seconds.isdisjoint(each.seconds)}
        )
        return found | self._concerned.by(self._look(entry), seconds) if entry in self.document.by_number else found

    def _hold(self, query: FamilyQuery, entry: int, *, holds: bool) -> None:
        holders = self._holders.get(entry)
        if holds:
            self._holders.setdefault(entry, {})[query] = None
        elif holders is not None:
            holders.pop(query, None)
            if not holders:
                del self._holders[entry]

    @property
    def is_single(self) -> bool:
        """Whether one query is left."""
        return len(self.queries) == 1

    def _look(self, entry: int) -> EntryLook:
        if entry not in self._looks:
            content = self.document.by_number[entry].content
            self._looks[entry] = EntryLook(self._texts, content, partial(self._evaluator, entry))
        return self._looks[entry]

    def _evaluator(self, entry: int) -> LookEvaluator:
        documents = {self.stream: self.document.some((entry,))}
        return LookEvaluator(self._reads, documents, self.document.now, functions=self._texts.functions)

    def shared_rows(self, loop: EntryLoop, entry: int) -> list[ResultRow] | None:
        """The results of an entry in a part; None where they are not to be shared, or it is gone."""
        if self.is_single or entry not in self.document.by_number:
            return None
        return self._look(entry).rows(loop)

    def usual_rows(self, loop: EntryLoop, entry: int) -> list[ShownRow] | None:
        """The same as they are shown, where nothing is unusual."""
        return self._look(entry).usual(loop) if entry in self.document.by_number else None

    # --- state --------------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How much has changed since `settled`."""
        return self.document.changes

    def settled(self) -> None:
        """Note that the state is saved."""
        self.document.settled()

    def encode(self, *, whole: bool = True) -> Data:
        """The whole state as plain data, or what has changed since `settled`."""
        data = encode(self.document, whole=whole)
        for each in data[-1]:
            each.append({query.key: query.entry_state(each[0]) for query in self._holders.get(each[0], ())})
        rest = {key: found for key, query in self.queries.items() if (found := query.rest_state())}
        more = {"is_new": self.is_new, "rest": rest, "members": sorted(self.queries)}
        return {"streams": {self.stream: data}, **more}

    def decode(self, *several: Data) -> None:
        """Restore from what `encode` gave: first the whole state, then changes.

        What only queries have needed that are here no more is dropped.
        """
        strange: dict[int, None] = {}
        for data in several:
            order, ids, rest, entries = data["streams"][self.stream]
            decode(self.document, self.stream, [order, ids, rest, [each[:-1] for each in entries]])
            gone = [number for removed, _ in order for number in removed]
            self._recall([*((number, {}) for number in gone), *((each[0], each[-1]) for each in entries)], strange)
        latest = several[-1]
        self.is_new = latest["is_new"]
        for key, query in self.queries.items():
            query.recall_rest(latest["rest"].get(key, {}), is_new=self.is_new)
        if latest["members"] != sorted(self.queries):
            self.document.narrow()
        self.document.unsaved.entries.update(each for each in strange.items() if each[0] in self.document.by_number)

    def _recall(self, found: Iterable[tuple[int, Data]], strange: dict[int, None]) -> None:
        for number, by_query in found:
            for query in [*self._holders.get(number, ())]:
                if query.key not in by_query:
                    query.recall_entry(number, {})
                    self._hold(query, number, holds=False)
            for key, data in by_query.items():
                if (query := self.queries.get(key)) is None:
                    strange[number] = None
                else:
                    query.recall_entry(number, data)
                    self._hold(query, number, holds=True)
