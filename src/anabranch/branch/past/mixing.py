"""Queries about the past that read items and updates together, as branches (LAWS 5.5).

As with items alone (`recalling.py`), there are two kinds.
Where one `for` runs over a stream of items, each round reads the documents of the moment when its item arrives, and its
results stand.
Where items are read only by qualifiers, the query is evaluated at the latest element, and its answer corrected.

The state is a `MixedMemory`: of streams of items what the query can still ask for (`runtime/past/recollection.py`), of
streams of updates the documents as far as the query sees them (`branch/document/projection.py`).
Expressions are evaluated by the law (`law/arrivals/mixed.py`) over just that: nothing that was dropped could be chosen,
so the values are the same.
An evaluation reads the whole memory, so its cost grows with the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from anabranch.branch.display.branch import BranchContext
from anabranch.branch.document.judging import Replacement
from anabranch.branch.document.keeper import document_of, good_time
from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import Data, decode, encode
from anabranch.branch.evolution.begun import begun_events, begun_inputs
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Came, Changed
from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.branch.members import BranchMember
from anabranch.branch.past.queries import RecalledQuery
from anabranch.branch.past.recalling import REACHES_ROOT, Memory, PastBranch
from anabranch.branch.past.values import ArrivingItem
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.language import ast
from anabranch.law.arrivals.mixed import MixedEvaluator, StandingResults
from anabranch.law.env import Env
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.history.chains import Content
from anabranch.law.history.changed import doubted_time
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.evaluate import Around
from anabranch.law.inputs import Arrival, Signal, element_time
from anabranch.law.slices import WholeNeeded
from anabranch.runtime.past.recollection import Recollection
from anabranch.runtime.past.value_histories import HistoryKey, Remembering, ValueHistory
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import beyond_entries
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Item, Place, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.tree import Element
from anabranch.values.sequences import Values

NOWHERE = Place("", "", 0)
"""The place of a branch that begins late."""


class _MixedLookups(Remembering, MixedEvaluator):
    """The law's evaluator, which looks up values of the past."""

    def moment_time(self) -> Fraction:
        return self._now


class MixedMemory:
    """The memory of one query; `roots` are the root elements of its streams."""

    def __init__(
        self,
        asked: RecalledQuery,
        items: Recollection,
        roots: Mapping[str, Element],
        limits: Limits,
        around: Around,
    ) -> None:
        needs = needs_of(asked.query)
        self.edited = {name: KeptDocument(roots[name], name, needs, limits) for name in asked.edited}
        """The documents of the streams of updates."""
        self._query, self._around = asked.query, around
        self._items = items
        self._documents = {
            name: EditedDocument(root, limits) for name, root in roots.items() if name not in self.edited
        }
        self._contents: dict[Arrival, Content] = {}
        """Items as documents hold them."""
        self._dead: dict[DeadLetter, None] = {}
        self.histories: Mapping[HistoryKey, ValueHistory] = {}
        """The values of the past that are looked up."""

    @property
    def now(self) -> Fraction:
        """The time of the latest element."""
        return self._items.now

    # --- what comes in ------------------------------------------------------------------------------------

    def edit(self, stream: str, element: StreamElement, at: Fraction, partition: int) -> Iterator[None]:
        """Apply an element of a stream of updates; each yield is a moment."""
        for moment in self.edited[stream].take(element, at, partition):
            self.move(stream, element, moment)
            yield

    def move(self, stream: str, element: StreamElement, at: Fraction) -> None:
        """Advance the time by an element that is no item."""
        self._items.take(stream, Signal(Punctuation(None, element.place), at, 0))
        self._moved()

    def arrive(self, arrival: Arrival) -> None:
        """Add an item."""
        self._items.take(arrival.place.stream, arrival)
        self.put(arrival)
        self._moved()

    def put(self, arrival: Arrival) -> None:
        """Add a remembered item to its document."""
        document = self._documents[arrival.place.stream]
        for _ in document.take(Item(arrival.item, arrival.place), arrival.time, arrival.partition):
            self._contents[arrival] = document.entries.pop()
        document.moments.clear()

    def begin(self, documents: Mapping[str, LateStart]) -> None:
        """Begin late, with the present documents of streams of updates (LAWS 3.6)."""
        for name, document in documents.items():
            self.edited[name].begin(document)
            self._items.take(name, Signal(Punctuation(None, NOWHERE), document.now, 0))

    def _moved(self) -> None:
        for each in self.edited.values():
            each.moved(self.now)
            each.changed.clear()

    # --- what is asked ------------------------------------------------------------------------------------

    def value(self, expression: ast.Expression, env: Env, item: Arrival | None = None) -> Values:
        """The value of an expression now; a loop over items has the single round of `item`."""
        arrivals = self._items.arrivals
        self._contents = {each: self._contents[each] for each in arrivals}
        for name, document in self._documents.items():
            document.entries = [content for each, content in self._contents.items() if each.place.stream == name]
        stood = StandingResults(frozenset(self._documents))
        if item is not None and isinstance(expression, ast.Flwor):
            loops = [id(clause) for clause in expression.clauses if isinstance(clause, ast.For)]
            others = [each for each in arrivals if each is not item]
            stood.rows.update({(loop, each.place): [] for loop in loops for each in others})
        items = {name: each.contents for name, each in self._documents.items()}
        documents = {name: each.whole() for name, each in self.edited.items()}
        evaluator = _MixedLookups(self._query, {**documents, **items}, self.now, stood, **self._around)
        evaluator.histories = self.histories
        try:
            return evaluator.top(expression, env)
        finally:
            self._dead.update(dict.fromkeys(evaluator.dead))
            for document in self._documents.values():
                document.entries = []

    def drained(self) -> list[DeadLetter]:
        """The dead letters since the last call, each once."""
        found = list(self._dead)
        self._dead.clear()
        return found

    # --- between epochs -----------------------------------------------------------------------------------

    def encode(self) -> dict[str, Data]:
        """The documents of the streams of updates, as plain data."""
        return {name: encode(each) for name, each in self.edited.items()}

    def decode(self, data: Mapping[str, Data]) -> None:
        """Restore from `encode`, before any element."""
        for name, each in data.items():
            decode(self.edited[name], name, each)


class MixedPastBranch(PastBranch):
    """A branch with items of the past and with documents."""

    def __init__(
        self,
        member: BranchMember[RecalledQuery],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
    ) -> None:
        self._begun = begun_events(inputs, state, given.keepers)
        inputs = begun_inputs(inputs, self._begun)
        super().__init__(member, inputs, state, given, spill, self)
        needs = needs_of(member.query.query)
        for name, stream in inputs.items() if state is None else ():
            if not stream.source.updates and beyond_entries(needs.streams[name], stream.root.name.local):
                self._abort(REACHES_ROOT)
        self._check_following()
        self._merge.measure({name: each.admission for name, each in self._mixture.edited.items()})
        if state is None and given.keepers and self._ended is None:
            for kept in given.keepers.values():
                self._merge.restore(kept.meta["merge"], kept.tables["waiting"])
            late = given.keepers.items()
            self._mixture.begin({name: document_of(kept, inputs[name], given.limits, spill) for name, kept in late})
            self._show(NOWHERE, None)

    def _remembering(self, given: BranchContext) -> None:
        super()._remembering(given)
        asked = self._member.query
        around = given.around(self._member.name, asked.query, asked.text)
        around["retained"] = {name: each.source.retain for name, each in self._inputs.items()}
        self._mixture = MixedMemory(asked, self._recollection, self._roots, given.limits, around)
        self._mixture.histories = self._values.histories

    @property
    def _memory(self) -> Memory:
        return self._mixture

    # --- what comes in ------------------------------------------------------------------------------------

    def together(self, key: Key, updates: Sequence[UsualUpdate], first: int) -> Sequence[Replacement]:
        """None: items come between updates."""
        return ()

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of the next element; None for a bad one."""
        name, partition = key
        if name in self._mixture.edited:
            return good_time(self._mixture.edited[name].admission, self._inputs[name], partition, element, arrived)
        assert isinstance(element, Item | Accent | Punctuation), "a stream of items has no others"
        meant = self._canonical(key, element)[0] if isinstance(element, Item) else element
        now = self._merge.sources[key].now  # items out of order do not turn time back
        return max(now, element_time(meant, self._inputs[name].source.time, now if arrived is None else arrived))

    def _canonical(self, key: Key, item: Item) -> tuple[Item, Mapping[Path, Affine]]:
        """The next item of an input in the units of query start, and the maps that lead there."""
        units = self._merge.sources[key].vantage.units(item.tree)
        return (replace(item, tree=remeasured(item.tree, units)), units) if units else (item, units)

    def reached(self, key: Key) -> Fraction:
        """The time that an input has reached."""
        name, partition = key
        edited = self._mixture.edited.get(name)
        return self._merge.sources[key].now if edited is None else edited.admission.reached(partition)

    def _run(self) -> None:
        for each in self._merge.released():
            match each:
                case _ if self._ended is not None:
                    pass
                case Came(stream, partition, element):
                    if isinstance(element, Accent):
                        self._change(Changed(self._inputs[stream], partition, element))
                    try:
                        if self._ended is None:
                            self._come(each)
                    except WholeNeeded:
                        self._abort(REACHES_ROOT)
                case Changed():
                    self._change(each)
                case _:
                    pass
        for kept in self._mixture.edited.values():
            kept.admission.dead.clear()  # the keeper of the document reports them

    def _change(self, changed: Changed) -> None:
        """Follow an accent, or what was left in doubt; it may end the query."""
        self._following.take(changed)
        self._check_following()
        if (reason := doubted_time(changed.stream.source, changed.change)) is not None:
            self._abort(reason)

    def _check_following(self) -> None:
        if (reason := self._following.aborted.get(self._member.key)) is not None:
            self._abort(reason)

    def _come(self, came: Came) -> None:
        place = came.element.place
        if came.stream in self._mixture.edited:
            for _ in self._mixture.edit(came.stream, came.element, came.at, came.partition):
                self._show(place, None)
        elif isinstance(came.element, Item):
            assert came.entry is not None, "an item is no usual update"
            item, units = self._canonical((came.stream, came.partition), came.element)
            arriving = ArrivingItem(came.entry, item, units, came.at, self.taken)
            arrival = self._arrival(came.entry, item, came.at, units)
            self._mixture.arrive(arrival)
            self._show(place, arrival, arriving)
        else:
            self._mixture.move(came.stream, came.element, came.at)
            self._show(place, None)

    def _show(self, place: Place, item: Arrival | None, came: ArrivingItem | None = None) -> None:
        self._merge.moved(self._mixture.now)
        self._remember(place, came)
        self._tell(place, item, came)

    # --- between epochs -----------------------------------------------------------------------------------

    def _put_away(self) -> dict[str, Any]:
        return {**super()._put_away(), "edited": self._mixture.encode(), "begun": self._begun}

    def _restore(self, state: BranchState) -> None:
        super()._restore(state)
        self._mixture.decode(state.meta["edited"])
        for arrival in self._recollection.arrivals:
            self._mixture.put(arrival)
