"""Queries about the past of streams of items as branches: versions are arrivals (LAWS 5.5).

There are two kinds.
Where one `for` runs over a stream without qualifier, each round runs when its item arrives, and its results stand: the
answer only grows, piece by piece (query 3 of the history paper); so do those of windows that close (`windowed.py`).
Where streams are read only by qualifiers, the query is evaluated at the latest element, and its answer is a display,
corrected by the next element (queries 4 and 5); where its shape allows, at the cost of what changes (`entrywise.py`).

Where a stream evolves, items are read in the units of the query's start, and the answer stays in them (LAWS 4.7).

Both remember no more than later rounds can ask for (`runtime/past/recollection.py`): that is the state, as raw entries,
which are parsed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from anabranch.algebra.display.display import Piece as Shown
from anabranch.algebra.display.publishing import Published, ReaderState, heartbeat
from anabranch.branch.display.branch import BranchContext
from anabranch.branch.display.publishing import SHOWN, wire_time
from anabranch.branch.evolution.following import Absorbing, Following
from anabranch.branch.held_items import ENTRY, entry_of, entry_row, number_nodes
from anabranch.branch.intake.entries import EntryReader, RawEntry
from anabranch.branch.intake.merge import Changed, DocumentJudge, Merged, Released, StreamSignal
from anabranch.branch.members import AnswerWriter, BranchMember
from anabranch.branch.past.entrywise import EntrywiseAnswer
from anabranch.branch.past.queries import RecalledQuery
from anabranch.branch.past.values import ArrivingItem, PastValues
from anabranch.branch.past.windowed import WindowedAnswer
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import DynamicError, StateError
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm
from anabranch.language.json_results import json_results, with_json_results
from anabranch.law.construct import answer_text
from anabranch.law.env import Env
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.inputs import Arrival, Input
from anabranch.law.inputs import Signal as Passed
from anabranch.law.paths import base_of
from anabranch.law.slices import WholeNeeded
from anabranch.runtime.past.recollection import Recollection
from anabranch.runtime.units import standing_piece
from anabranch.stream.affine import Affine
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Document, Element, copy
from anabranch.values.sequences import Values

_REGION = "all"


class Memory(Protocol):
    """The remembered past of streams, over which expressions are evaluated."""

    @property
    def now(self) -> Fraction: ...

    def value(self, expression: ast.Expression, env: Env, item: Arrival | None = None) -> Values: ...

    def drained(self) -> list[DeadLetter]: ...


class StandingAnswer:
    """Results that stand: each item adds a piece."""

    def __init__(self, member: BranchMember[RecalledQuery], form: AnswerForm) -> None:
        standing = member.query.standing
        self._form = form
        assert standing is not None
        assert standing.hole is not None
        self._standing, self._hole, self._out = standing, standing.hole, member.out
        source = base_of(standing.fors[0].source if isinstance(self._hole, ast.Flwor) else self._hole)
        assert isinstance(source, ast.Source)
        self._stream = source.name
        self._answers = AnswerWriter(member.name, member.out)
        if standing.at_top:
            edited = bool(member.query.edited)
            self._hole = json_results(self._hole, standing.outputs, form, edited=edited)

    def take(self, memory: Memory, place: Place, item: Arrival | None) -> None:
        """Process an element at a place: an item, or an element that only advances time or edits a document."""
        if item is None or item.place.stream != self._stream:
            return
        values = memory.value(self._hole, self._standing.env, item)
        self._answers.write(standing_piece(values, self._standing, self._form))
        for letter in memory.drained():
            self._out.bury(letter)

    def save(self) -> tuple[Any, list[str]]:
        return self._answers.save()["ended"], []

    def restore(self, data: Any, shown: list[str]) -> None:
        self._answers.restore({"ended": data})


class DisplayAnswer:
    """An answer that is computed anew with every element: one region, which is replaced."""

    def __init__(self, member: BranchMember[RecalledQuery], form: AnswerForm) -> None:
        edited = bool(member.query.edited)
        self._query, self._name, self._out = (
            with_json_results(member.query.query, form, edited=edited),
            member.name,
            member.out,
        )
        self._json = form == "json"
        self._display = Published(json=self._json)
        self._display.region(_REGION)
        self._text: str | None = None
        self._failing: dict[DeadLetter, None] = {}
        """The dead letters of the latest moment; each is reported once, and again after it was absent."""

    def take(self, memory: Memory, place: Place, item: Arrival | None) -> None:
        """Process an element at a place."""
        letters: list[DeadLetter] = []
        text = ""
        try:
            values = memory.value(self._query.body, Env.of(self._query))
            text = answer_text(values, json=self._json)
        except DynamicError as error:
            known = next((each for each in self._failing if not each.raw and each.reason == error.message), None)
            letters = [known or DeadLetter(place, error.message, "", error.code, self._name)]
        letters += memory.drained()
        for letter in letters:
            if letter not in self._failing:
                self._out.bury(letter)
        self._failing = dict.fromkeys(letters)
        if text != self._text:
            self._text = text
            self._display.rewrite(_REGION, [Shown(text)] if text else [])
            at = wire_time(memory.now)
            self._out.piece("".join((*self._display.wire(at), heartbeat(at, json=self._json))))

    def save(self) -> tuple[Any, list[str]]:
        letters = [
            [each.place.stream, each.place.partition, each.place.offset, each.reason, each.raw, each.code]
            for each in self._failing
        ]
        return [[*self._display.told], json.dumps(letters)], [] if self._text is None else [self._text]

    def restore(self, data: Any, shown: list[str]) -> None:
        told, letters = data
        for stream, partition, offset, *rest in json.loads(letters):
            reason, raw, code = rest
            self._failing[DeadLetter(Place(stream, partition, offset), reason, raw, code, self._name)] = None
        if shown:
            (self._text,) = shown
            self._display.rewrite(_REGION, [Shown(self._text)] if self._text else [])
        self._display.resume(ReaderState(*told))


REACHES_ROOT = "a path of the query reaches the root of a stream"
"""Why a query ends: only items are remembered, and not the root element around them."""
_ROWS = pa.schema(
    [
        *(*ENTRY, ("time", pa.string()), ("came", pa.string()), ("number", pa.int64())),
        *(("units", pa.string()), ("paths", pa.list_(pa.int32()))),
    ]
)


class PastBranch(Merged):
    """A branch with the past that a query may ask for."""

    def __init__(
        self,
        member: BranchMember[RecalledQuery],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
        judge: DocumentJudge | None = None,
    ) -> None:
        self._member = member
        self._inputs = inputs
        super().__init__(inputs.values(), spill, judge)
        self._roots = {name: copy(stream.root) for name, stream in inputs.items()}
        self._remembering(given)
        self._answer = self._answering(given, state)
        self._windows = self._answer if isinstance(self._answer, WindowedAnswer) else None
        self._entries: dict[Arrival, tuple[RawEntry, int, Mapping[Path, Affine]]] = {}
        """Each remembered item: raw entry, number among all items, and maps into the units of query start."""
        self.taken = 0
        """The number of items so far."""
        self._following = Following([Absorbing.of(member, given.functions)], self._merge, lambda: self.taken)
        self._ended: str | None = None
        self.aborted: dict[str, str] = {}
        if state is not None:
            self._restore(state)
        else:
            self._following.begin()

    def _remembering(self, given: BranchContext) -> None:
        """Create the memory."""
        streams = self._inputs.items()
        empty = {
            name: Input(_document(self._roots[name]), time=stream.source.time, retain=stream.source.retain)
            for name, stream in streams
        }
        asked, name = self._member.query, self._member.name
        self._recollection = Recollection(asked.query, asked.asked, {**given.documents, **empty}, given.functions, name)
        around = given.around(name, asked.query, asked.text)
        self._values = PastValues(asked.query, self._inputs, around, asked.edited)
        self._recollection.look_up(self._values.histories)

    def _answering(
        self, given: BranchContext, state: BranchState | None
    ) -> StandingAnswer | WindowedAnswer | EntrywiseAnswer | DisplayAnswer:
        member, form = self._member, given.form(self._member.query.query)
        if member.query.has_windows:
            rooted = {name: replace(each, root=self._roots[name]) for name, each in self._inputs.items()}
            return WindowedAnswer(member, given, rooted, self._recollection)
        if member.query.standing is not None:
            return StandingAnswer(member, form)
        is_earlier = state is not None and isinstance(state.meta["answer"], list)  # an earlier release knew only that
        if not is_earlier and not member.query.edited:
            roots = {name: each.name.local for name, each in self._roots.items()}
            found = EntrywiseAnswer.of(member, given, self._recollection, roots)
            if found is not None:
                return found
        return DisplayAnswer(member, form)

    # --- elements -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        for each in self._merge.released():
            if self._ended is not None:
                continue
            match each:
                case Released(entry, item, units):
                    origin = entry.origin
                    time = self._merge.sources[origin.stream, origin.partition].now
                    came = ArrivingItem(entry, item, units, time, self.taken)
                    self._take(origin.stream, self._arrival(entry, item, time, units), came)
                case StreamSignal(stream, partition, punctuation):
                    if punctuation is not None:
                        self._following.signal(each)
                        self._pass(stream.name, partition, punctuation.place)
                    if self._windows is not None and self._ended is None:
                        self._windows.signal(each)
                case Changed(stream, partition, change):
                    self._following.take(each)
                    self._pass(stream.name, partition, change.place)
                case _:
                    pass

    def _finish(self) -> None:
        if self._windows is not None and self._ended is None:
            self._windows.finish()

    def _pass(self, stream: str, partition: int, place: Place) -> None:
        """Process an element that is no item: it advances the time, and an accent may end the query."""
        reason = self._following.aborted.get(self._member.key)
        if reason is not None:
            self._abort(reason)
            return
        time = self._merge.sources[stream, partition].now
        self._take(stream, Passed(Punctuation(None, place), time, partition))

    def _arrival(
        self, entry: RawEntry, item: Item, time: Fraction, units: Mapping[Path, Affine], known: int | None = None
    ) -> Arrival:
        """An item that arrives, or an earlier one with its number among all items."""
        stream, number = entry.origin.stream, self.taken if known is None else known
        self.taken += known is None
        item.tree.parent = self._roots[stream]
        number_nodes(item.tree, list(self._inputs).index(stream), number)
        arrival = Arrival(item.tree, time, entry.origin.partition, item.place)
        self._entries[arrival] = entry, number, units
        return arrival

    def _take(self, stream: str, element: Arrival | Passed, came: ArrivingItem | None = None) -> None:
        try:
            self._recollection.take(stream, element)
            item = element if isinstance(element, Arrival) else None
            place = element.punctuation.place if isinstance(element, Passed) else element.place
            self._remember(place, came)
            self._tell(place, item, came)
        except WholeNeeded:
            self._abort(REACHES_ROOT)

    def _tell(self, place: Place, item: Arrival | None, came: ArrivingItem | None) -> None:
        """Answer an element from a place, an item or one that only moves time."""
        if not isinstance(self._answer, WindowedAnswer):
            self._answer.take(self._memory, place, item)
        elif item is not None and came is not None:
            self._answer.came(came, item)

    def _remember(self, place: Place, came: ArrivingItem | None = None) -> None:
        """Take the values of a moment that are asked for later."""
        self._values.moment(self._memory, place, came)
        for letter in self._values.dead:
            self._member.out.bury(letter)
        self._values.dead.clear()

    @property
    def _memory(self) -> Memory:
        """The memory in which the answer is evaluated."""
        return self._recollection

    def _abort(self, reason: str) -> None:
        if self._ended is None:
            self._ended = self.aborted[self._member.key] = reason

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The state at the end of the epoch."""
        merge, waiting = self._merge.save()
        rows = []
        for arrival, came, paths in self._recollection.remembered():
            entry, number, units = self._entries[arrival]
            known = {"time": str(arrival.time), "came": str(came), "number": number, "paths": paths}
            rows.append({**entry_row(entry), **known, "units": _units_text(units)})
        tables: dict[str, pa.Table] = {}
        if isinstance(self._answer, WindowedAnswer):
            answer, tables = self._answer.save()
        else:
            answer, shown = self._answer.save()
            tables["shown"] = pa.table([shown], schema=SHOWN)
        meta = {"operator": "past", "merge": merge, "answer": answer, **self._put_away()}
        items = pa.Table.from_pylist(rows, schema=_ROWS)
        return BranchState(meta, {**tables, "waiting": waiting, "items": items})

    def _put_away(self) -> dict[str, Any]:
        """The JSON part of the state."""
        events = self._following.save()
        known = {"taken": self.taken, "now": str(self._recollection.now), "ended": self._ended, "said": events}
        return {**known, "values": self._values.save()} if self._values.histories else known

    def _restore(self, state: BranchState) -> None:
        meta = state.meta
        if meta["operator"] != "past":
            raise StateError(f"the state of '{self._member.name}' is that of another kind of branch")
        self._merge.restore(meta["merge"], state.tables["waiting"])
        self.taken, self._ended = meta["taken"], meta["ended"]
        self._following.restore(meta["said"])
        readers = {name: EntryReader(stream) for name, stream in self._inputs.items()}
        found: list[tuple[Arrival, Fraction, list[int]]] = []
        for row in state.tables["items"].to_pylist():
            entry = entry_of(row)
            item = readers[row["stream"]].read(entry)
            if not isinstance(item, Item):
                raise StateError(f"an item that '{self._member.name}' remembers can no longer be read")
            units = _units_of(row["units"])
            if units:
                item = replace(item, tree=remeasured(item.tree, units))
            arrival = self._arrival(entry, item, Fraction(row["time"]), units, row["number"])
            if self._windows is not None:
                self._windows.hold_again(row["number"], entry, item, units, arrival)
            found.append((arrival, Fraction(row.get("came", row["time"])), row["paths"]))  # earlier releases lack it
        self._recollection.restore(Fraction(meta["now"]), found)
        if self._values.histories:
            self._values.restore(meta["values"])
        if isinstance(self._answer, WindowedAnswer):
            self._answer.restore(meta["answer"], state.tables)
        else:
            self._answer.restore(meta["answer"], state.tables["shown"].column("text").to_pylist())

    @property
    def held(self) -> int:
        """The number of items in its state."""
        return self._recollection.held


def _units_text(units: Mapping[Path, Affine]) -> str:
    return json.dumps([[str(path), str(by.a), str(by.b)] for path, by in units.items()]) if units else ""


def _units_of(text: str) -> dict[Path, Affine]:
    rows = json.loads(text) if text else ()
    return {Path.parse(path, itself=True): Affine(Fraction(a), Fraction(b)) for path, a, b in rows}


def _document(root: Element) -> Document:
    document = Document()
    document.append(root)
    return document
