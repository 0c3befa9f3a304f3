"""A query over update streams, answered continuously: exact after every moment, at the cost of what has changed.

The line between applying an update early and adjusting states (history paper, 11) is the entry.
Inside an entry an update is applied at once to what is kept of it (`branch/document/projection.py`), and the entry's
part of the query is evaluated again by the law's own evaluator (`evaluation.py`); between entries states are adjusted,
and the display is edited (`stages.py`).
So an update costs the evaluation of one entry, however many there are; how a query splits is in `split.py`.

What the query keeps is bounded by what it can ever need (`sharing/retention.py`), and is plain data: `encode` gives it
entry by entry and the rest apart, all of it or what has changed, and `decode` restores it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Generic, TypeVar, Unpack

from anabranch.algebra.display.display import Display
from anabranch.algebra.display.sorting import EntryPlaces
from anabranch.branch.display.evaluation import AnswerScope, DocumentEvaluator, Entrywise
from anabranch.branch.display.groups.edited import EditedDistinct, EditedGroups
from anabranch.branch.display.groups.sliced_folds import SlicedFolds
from anabranch.branch.display.groups.slices import SlicedStage
from anabranch.branch.display.parts import (
    ComputedPart,
    DistinctPart,
    EachPart,
    EditedWindowPart,
    EntriesPart,
    Folded,
    GroupPart,
    Part,
    SlicePart,
    WholePart,
    order_of,
)
from anabranch.branch.display.shown import DisplayChange, ShownQuery
from anabranch.branch.display.split import Splitter
from anabranch.branch.display.stages import EachStage, EntrySource, Stage, WholeStage
from anabranch.branch.display.windows import EditedWindows, EditedWindowStage
from anabranch.branch.document.judging import Replacement
from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import Data, decode, encode
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.law.history.evaluate import Around, form_around, refuse_joined_windows
from anabranch.law.inputs import Input
from anabranch.runtime.past.value_histories import histories_of
from anabranch.sharing.needs import needs_of
from anabranch.stream.elements import Alter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Element

N = TypeVar("N")


class Machine(ShownQuery, Generic[N]):
    """A checked query that is kept up to date, moment by moment; `roots` are the root elements of its streams."""

    def __init__(
        self,
        query: ast.Query,
        roots: Mapping[str, Element],
        *,
        limits: Limits | None = None,
        display: Callable[[], Display] = Display,
        **around: Unpack[Around],
    ) -> None:
        """`display` makes the empty display of the answer."""
        refuse_joined_windows(query, around.get("text"))
        query = with_json_results(query, form_around(query, around), edited=True)
        self.needs = needs_of(query, around.get("retain"))
        self.kept = {stream: self._keep(roots[stream], stream, limits) for stream in self.needs.streams}
        names = {stream: root.name.local for stream, root in roots.items()}
        splitter = Splitter(query, names, around.get("functions") or {})
        self._without_groups = Splitter(query, names, around.get("functions") or {}, by_groups=False)
        """How the query splits in a state of an earlier release, which evaluated groups anew."""
        unsplit = WholePart(query.body, tuple(self.needs.streams))
        evaluation = DocumentEvaluator(query, **around)
        super().__init__(query, splitter.part(query.body), unsplit, evaluation, display, splitter.value_part)
        asked = [expression for expression, _ in histories_of(query)]
        self._keeps_groups = self.part != self._without_groups.part(query.body) or any(
            splitter.value_part(each) != self._without_groups.value_part(each) for each in asked
        )

    def _keep(self, root: Element, stream: str, limits: Limits | None) -> KeptDocument:
        """The kept part of a stream's document, empty at first."""
        return KeptDocument(root, stream, self.needs, limits)

    def _stage(self, id: str, part: Part, scope: AnswerScope) -> Stage:
        match part:
            case SlicePart(over, interval):
                source, places = self._source(id, scope, over)
                return SlicedStage(id, self._site, scope, source, places, order_of(over), interval)
            case EachPart() | GroupPart() | DistinctPart():
                source, places = self._source(id, scope, part)
                return EachStage(id, self._site, scope, source, places, order_of(part))
            case ComputedPart():

                def taken_over(id: str, folded: Folded) -> tuple[EntrySource, EntryPlaces]:
                    return self._source(id, scope, folded.over)

                return SlicedFolds(id, self._site, scope, part, taken_over)
            case EditedWindowPart(stream):
                self._evaluation.value(part.first, scope, {}, {})
                windows = EditedWindows(id, self._site, scope, part, self.kept[stream])
                return EditedWindowStage(id, self._site, scope, windows)
            case WholePart():
                return WholeStage(id, self._site, scope, part, lambda stream: self.kept[stream].whole())
            case _:
                raise AssertionError(part)

    def _source(self, id: str, scope: AnswerScope, part: EntriesPart) -> tuple[EntrySource, EntryPlaces]:
        """The source of the results of a part, entry by entry, and the order of the entries."""
        match part:
            case EachPart():
                self._evaluation.value(part.first, scope, {}, {})
                return self._entrywise(id, scope, part)
            case GroupPart(stream):
                self._evaluation.value(part.first, scope, {}, {})
                kept = self.kept[stream]
                return EditedGroups(id, self._site, scope, part, kept), kept.order
            case DistinctPart(over):
                source, places = self._source(id, scope, over)
                return EditedDistinct(source, self.kept[source.stream]), places
            case SlicePart(over):
                return self._source(id, scope, over)
            case _:
                raise AssertionError("aggregates of windows are evaluated anew")

    def _entrywise(self, id: str, scope: AnswerScope, part: EachPart) -> tuple[EntrySource, EntryPlaces]:
        return Entrywise(id, self._site, scope, part, self.kept), self.kept[part.stream].order

    # --- elements -----------------------------------------------------------------------------------------

    def take(self, stream: str, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[N]:
        """Take an element in its merged order (LAWS 1.2); yields the news of its moments.

        A bad element is set aside (`kept[stream].admission.dead`) and gives nothing.
        """
        kept = self.kept[stream]
        kept.moment = 1 + (kept.moment if len(self.kept) == 1 else max(each.moment for each in self.kept.values()))
        for _ in kept.take(element, at, partition):  # the moments of all streams have one order
            yield from self._moment(element.place)

    def take_together(self, stream: str, partition: int, replacements: Sequence[Replacement]) -> Iterator[N]:
        """Take updates that were judged together, one after the other."""
        kept, others = self.kept[stream], [each for name, each in self.kept.items() if name != stream]
        for each in replacements:
            kept.moment = 1 + max([kept.moment, *[other.moment for other in others]])
            kept.take_judged(each, partition)
            yield from self._moment(each.update.place)

    def begin(self, documents: Mapping[str, LateStart]) -> list[N]:
        """Begin late, with the streams' documents as they stand (LAWS 3.6)."""
        for name, document in documents.items():
            self.kept[name].begin(document)
        return list(self._moment(Place("", "", 0)))

    def consult(self, documents: Mapping[str, Input], *, changed: bool) -> None:
        """Use other documents; where they have changed, the next moment evaluates all entries again."""
        super().consult(documents, changed=changed)
        if changed:
            self._evaluate_all()

    def alter(self, alters: Sequence[Alter]) -> None:
        super().alter(alters)
        if alters:
            self._evaluate_all()

    def _evaluate_all(self) -> None:
        """Evaluate all entries again at the next moment."""
        for kept in self.kept.values():
            for number in kept.numbers():
                kept.changed[number] = kept.unsaved.entries[number] = None

    @abstractmethod
    def _moment(self, place: Place) -> Iterable[N]:
        """The news of a moment that an element from a place has caused."""

    def _moved(self) -> dict[str, list[int]]:
        """Move time; returns the entries to be evaluated again: those that are gone first, then by number."""
        self.now = self._evaluation.now = max([each.now for each in self.kept.values()])
        self.is_behind = False
        changed: dict[str, list[int]] = {}
        for name, each in self.kept.items():
            each.moved(self.now)
            changed[name] = each.take_changed()
        return changed

    # --- state --------------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How much has changed since `settled`."""
        return sum(each.changes for each in self.kept.values())

    def encode(self, *, whole: bool = True) -> Data:
        """The whole state as plain data, or else what has changed since `settled` (`branch/document/state.py`)."""
        data = self._remembered({name: encode(kept, whole=whole) for name, kept in self.kept.items()})
        return {**data, "keeps_groups": True} if self._keeps_groups else data

    def settled(self) -> None:
        """Note that the state is saved."""
        for each in self.kept.values():
            each.settled()

    def decode(self, *several: Data) -> None:
        """Restore from what `encode` gave for the same query: first the whole state, then changes.

        A machine that is in an earlier state of the query needs only the changes, and may know some of them already.
        """
        if self._keeps_groups and not several[-1].get("keeps_groups"):
            self._forgo_groups()
        for data in several:
            self._decode(data)
        self.now = self._evaluation.now = max(each.now for each in self.kept.values())
        self._recalled(several[-1])

    def _forgo_groups(self) -> None:
        """Go on as an earlier release has begun: its state has whole values in the place of groups."""
        self._keeps_groups = False
        self._value_part = self._without_groups.value_part
        self.part = self._without_groups.part(self._evaluation.query.body)
        self._build(self._evaluation.query)

    def _decode(self, data: Data) -> None:
        for name, part in data["streams"].items():
            order, ids, rest, entries = part
            decode(self.kept[name], name, [order, ids, rest, [each[:-1] for each in entries]])
            absent: list[tuple[int, Data]] = [(number, {}) for removed, _ in order for number in removed]
            for number, found in (*absent, *((each[0], each[-1]) for each in entries)):
                for stage in self._stages:
                    stage.recall(name, number, found.get(stage.id))


class ContinuousQuery(Machine[DisplayChange]):
    """A query that is not divided into strands; it yields what changes on display."""

    def _moment(self, place: Place) -> tuple[DisplayChange]:
        changed = self._moved()
        for stage in self._stages:
            stage.update(changed)
        return (self._change(place),)
