"""A query over update streams, answered continuously: exact after every moment, at the cost of what has changed.

The line between applying an update early and adjusting states (history paper, 11) is the entry.
Inside an entry an update is applied at once to what is kept of it (`branch/document/projection.py`), and the entry's
part of the query is evaluated again by the law's own evaluator (`evaluation.py`); between entries states are adjusted,
and the display is edited (`stages.py`).
So an update costs one entry, whatever their number; how a query splits is in `split.py`.

What the query keeps is bounded by what it can ever need (`sharing/retention.py`), and is plain data: `encode` gives it
entry by entry and the rest apart, all of it or what has changed, and `decode` goes on from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, TypeVar, Unpack

from anabranch.algebra.display.display import Display, Edit, Insert, Piece, Remove
from anabranch.branch.display.evaluation import AnswerScope, PartEvaluator, QuerySite
from anabranch.branch.display.split import (
    ComputedPart,
    EachPart,
    ElementPart,
    FixedPart,
    Part,
    SequencePart,
    WholePart,
    split,
)
from anabranch.branch.display.stages import NONE, ComputedStage, EachStage, Stage, WholeStage
from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import Data, decode, encode
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import construct
from anabranch.law.env import Env
from anabranch.law.history.evaluate import Around, refuse_windows
from anabranch.runtime.units import piece_of
from anabranch.sharing.looking import needs_of
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.serialize import escape_text
from anabranch.stream.tree import Element, Name, namespaces_in_scope
from anabranch.values.sequences import Values


@dataclass(frozen=True, slots=True)
class DisplayChange:
    """What a moment changes on display."""

    at: Fraction
    edits: tuple[Edit, ...]
    dead: tuple[DeadLetter, ...]
    """What was set aside while looking."""


N = TypeVar("N")


class Machine(ABC, Generic[N]):
    """A checked query at work, which gives news of each moment; `roots` are the root elements of its streams."""

    def __init__(
        self,
        query: ast.Query,
        roots: Mapping[str, Element],
        *,
        limits: Limits | None = None,
        display: Callable[[], Display] = Display,
        **around: Unpack[Around],
    ) -> None:
        """`display` makes what the answer is shown on, empty."""
        refuse_windows(query, around.get("text"))
        self.needs = needs_of(query)
        self.kept = {stream: self._keep(roots[stream], stream, limits) for stream in self.needs.streams}
        self.now = Fraction(0)
        """The time of the latest element."""
        self._evaluation = PartEvaluator(query, **around)
        self._display, self._name = display, around.get("name")
        self.part = split(query, {stream: root.name.local for stream, root in roots.items()})
        """How the query splits by entries."""
        try:
            self._build(query)
        except DynamicError:  # what is fixed in it fails, so all of it does, as long as it is asked
            self.part = WholePart(query.body, tuple(self.needs.streams))
            self._build(query)
        self._failed, self._length = False, 0
        self._is_new = True  # there was no moment yet

    def _keep(self, root: Element, stream: str, limits: Limits | None) -> KeptDocument:
        """What is kept of a stream, at first nothing."""
        return KeptDocument(root, stream, self.needs, limits)

    def _build(self, query: ast.Query) -> None:
        self._site = QuerySite(self._evaluation, self.kept, self._display())
        self._stages: list[Stage] = []
        self._elements = 0
        self._put(self.part, None, AnswerScope(Env.of(query)))

    # --- elements -----------------------------------------------------------------------------------------

    def take(self, stream: str, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[N]:
        """Take an element in its merged order (LAWS 1.2); gives the news of its moments.

        A bad element is set aside (`kept[stream].admission.dead`) and gives nothing.
        """
        for _ in self.kept[stream].take(element, at, partition):
            yield from self._moment(element.place)

    def begin(self, documents: Mapping[str, LateStart]) -> list[N]:
        """Begin late, with the streams' documents as they stand (LAWS 3.6)."""
        for name, document in documents.items():
            self.kept[name].begin(document)
        return list(self._moment(Place("", "", 0)))

    @abstractmethod
    def _moment(self, place: Place) -> Iterator[N]:
        """The news of a moment that an element from a place has brought."""

    def _moved(self) -> dict[str, list[int]]:
        """Time has moved; gives what has to be looked at again, first what is gone, then by number."""
        self.now = self._evaluation.now = max(each.now for each in self.kept.values())
        changed: dict[str, list[int]] = {}
        for name, each in self.kept.items():
            each.moved(self.now)
            changed[name] = each.in_turn(each.changed)
            each.changed.clear()
        return changed

    def _edits(self) -> tuple[Edit, ...]:
        """What has changed on display; where all fails, nothing is there."""
        display, failed = self._site.display, bool(self._site.failing)
        edits = tuple(display.edits())
        if failed:
            edits = () if self._failed or not self._length else (Remove(0, self._length),)
        elif self._failed:
            edits = (Insert(0, display.text),) if display.length else ()
        self._failed, self._length = failed, 0 if failed else display.length
        return edits

    @property
    def text(self) -> str:
        """The answer now; empty where the query fails as a whole."""
        return "" if self._site.failing else self._site.display.text

    @property
    def display(self) -> Display:
        """What the answer is on; not to be looked at where the query fails as a whole."""
        return self._site.display

    @property
    def failure(self) -> DynamicError | None:
        """Why the query fails as a whole, so that there is nothing to be seen."""
        return next(iter(self._site.failing.values()), None)

    def call(self, functions: Mapping[str, PythonFunction]) -> None:
        """The functions are from now on these: in another epoch they are other objects."""
        self._evaluation.around["functions"] = functions

    @property
    def evaluated(self) -> int:
        """How many evaluations there were, each of one entry or of all."""
        return self._evaluation.evaluated

    # --- state --------------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How much has changed since `settled`."""
        return sum(each.changes for each in self.kept.values())

    def encode(self, *, whole: bool = True) -> Data:
        """All that must be remembered, as plain data, or else what has changed since `settled`
        (`branch/document/state.py`)."""
        streams: dict[str, Data] = {}
        for name, kept in self.kept.items():
            streams[name] = encode(kept, whole=whole)
            for each in streams[name][-1]:
                found = {stage.id: stage.remembered(name, each[0]) for stage in self._stages}
                each.append({id: data for id, data in found.items() if data is not None})
        failing = [[*key, error.message, error.code] for key, error in self._site.failing.items()]
        told = {stage.id: marks for stage in self._stages if (marks := self._site.told.get((stage.id, NONE)))}
        return {"streams": streams, "failing": failing, "told": told, "is_new": self._is_new}

    def settled(self) -> None:
        """All that must be remembered is written."""
        for each in self.kept.values():
            each.settled()

    def decode(self, *several: Data) -> None:
        """Go on from what `encode` gave for the same query, one behind the other: all, and changes.

        Where this is an earlier state of the same, changes do, and it may know some of them already.
        """
        for data in several:
            self._decode(data)
        self._recalled(several[-1])

    def _decode(self, data: Data) -> None:
        for name, part in data["streams"].items():
            order, ids, rest, entries = part
            decode(self.kept[name], name, [order, ids, rest, [each[:-1] for each in entries]])
            absent: list[tuple[int, Data]] = [(number, {}) for removed, _ in order for number in removed]
            for number, found in (*absent, *((each[0], each[-1]) for each in entries)):
                for stage in self._stages:
                    stage.recall(name, number, found.get(stage.id))

    def _recalled(self, data: Data) -> None:
        self._is_new = data["is_new"]
        self.now = self._evaluation.now = max(each.now for each in self.kept.values())
        if self._is_new:
            return
        for stage in self._stages:
            stage.recalled()
            self._site.told.pop((stage.id, NONE), None)
        self._site.told |= {(id, NONE): marks for id, marks in data["told"].items()}
        self._site.failing = {
            (part, entry): DynamicError(message, code=code) for part, entry, message, code in data["failing"]
        }
        self._site.dead.clear()
        self._edits()

    # --- the parts ----------------------------------------------------------------------------------------

    def _put(self, part: Part, inside: str | None, scope: AnswerScope) -> None:
        """Give a part its place on display, at the end of an element or of all."""
        display, id = self._site.display, f"s{len(self._stages)}"
        match part:
            case FixedPart(expression):
                piece = scope.piece(self._evaluation.value(expression, scope, {}, {}))
                display.write(() if piece is None else (piece,), inside)
            case SequencePart(parts):
                for each in parts:
                    self._put(each, inside, scope)
            case ElementPart():
                self._put_element(part, inside, scope)
            case EachPart():
                self._evaluation.value(part.first, scope, {}, {})
                display.region(id, inside=inside)
                self._stages.append(EachStage(id, self._site, scope, part))
            case ComputedPart(_, names):
                for _, folded in names:
                    self._evaluation.value(folded.over.first, scope, {}, {})
                display.region(id, inside=inside)
                self._stages.append(ComputedStage(id, self._site, scope, part))
            case WholePart():
                display.region(id, inside=inside)
                self._stages.append(WholeStage(id, self._site, scope, part))

    def _put_element(self, part: ElementPart, inside: str | None, scope: AnswerScope) -> None:
        def evaluate(expression: ast.Expression, namespaces: Mapping[str, str]) -> Values:
            there = replace(scope, env=replace(scope.env, namespaces=namespaces))
            return self._evaluation.value(expression, there, {}, {})

        element = construct(replace(part.constructor, content=()), scope.env.namespaces, evaluate)
        tag = piece_of([element], scope.declared).text.removesuffix("/>")
        self._elements += 1
        id = f"e{self._elements}"
        declared = tuple((prefix, uri) for prefix, uri in namespaces_in_scope(element).items() if prefix != "xml")
        self._site.display.element(id, tag, f"</{tag[1:].partition(' ')[0]}>", inside, declared)
        carrier = Element(Name("carrier"), dict(scope.declared))
        carrier.append(element)
        namespaces = {**scope.env.namespaces, **dict(part.constructor.namespaces)}
        within = AnswerScope(replace(scope.env, namespaces=namespaces), namespaces_in_scope(element))
        for each in part.content:
            match each:
                case ast.Characters(value):
                    self._site.display.write((Piece(escape_text(value)),), id)
                case ast.CommentConstructor(value):
                    self._site.display.write((Piece(f"<!--{value}-->"),), id)
                case _:
                    self._site.display.write((Piece(""),), id)  # values in different braces are no neighbours
                    self._put(each, id, within)


class ContinuousQuery(Machine[DisplayChange]):
    """A query in one piece, which tells what changes on display."""

    def _moment(self, place: Place) -> Iterator[DisplayChange]:
        changed = self._moved()
        for stage in self._stages:
            stage.update(changed)
        yield self._change(place)

    def _change(self, place: Place) -> DisplayChange:
        """What has changed with a moment, now that all of it was looked at."""
        self._is_new = False
        dead, self._site.dead = self._site.dead, []
        if self._site.failing and not self._failed:
            error = next(iter(self._site.failing.values()))
            dead.append(DeadLetter(place, error.message, "", error.code, self._name))
        return DisplayChange(self.now, self._edits(), tuple(dead))
