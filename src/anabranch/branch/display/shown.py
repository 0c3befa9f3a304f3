"""A query whose answer is on display: its parts at their places, and what has changed there.

Subclasses know the contents of the streams; they give the parts their stages and begin each moment: `continuous.py`
over documents that are edited, `branch/growing/` over streams that only grow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from anabranch.algebra.display.display import Display, Edit, Insert, Piece, Remove
from anabranch.branch.display.evaluation import AnswerScope, PartEvaluator, QuerySite
from anabranch.branch.display.history_stage import HistoryStage
from anabranch.branch.display.parts import ComputedPart, ElementPart, FixedPart, Part, SequencePart, WholePart
from anabranch.branch.display.stages import NONE, Single, Stage
from anabranch.branch.document.state import Data
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import construct
from anabranch.law.env import Env
from anabranch.law.history.display_units import DisplayUnits
from anabranch.law.history.evaluate import form_around
from anabranch.law.inputs import Input
from anabranch.runtime.past.value_histories import HistoryKey, ValueHistory, histories_of
from anabranch.runtime.units import piece_of
from anabranch.sharing.needs import needs_of
from anabranch.stream.elements import Alter, DeadLetter, Place
from anabranch.stream.serialize import escape_text
from anabranch.stream.tree import Element, Name, namespaces_in_scope
from anabranch.values.objects.json_text import not_both
from anabranch.values.sequences import Values


class DisplayChange(NamedTuple):
    """What a moment changes on display."""

    at: Fraction
    edits: tuple[Edit, ...]
    dead: tuple[DeadLetter, ...]
    """The dead letters of this moment's evaluations."""
    alters: tuple[Alter, ...] = ()
    """The changes of its units, from this moment on."""


class ShownQuery(ABC):
    """The parts of a query on display."""

    def __init__(
        self,
        query: ast.Query,
        part: Part,
        unsplit: Part,
        evaluation: PartEvaluator[Any],
        display: Callable[[], Display],
        value_part: Callable[[ast.Expression], ComputedPart | WholePart],
    ) -> None:
        """`part` is how the query splits, and `unsplit` the same in one piece; `display` makes an empty display.

        `value_part` splits an expression whose values are remembered.
        """
        self._evaluation = evaluation
        self._value_part = value_part
        self._display = display
        self.now = Fraction(0)
        """The time of the latest element."""
        self._units = DisplayUnits()
        self._alters: list[Alter] = []
        """Changes of these units that are to be told with the next moment."""
        self.part = part
        try:
            self._build(query)
        except DynamicError:  # a fixed part fails, and so does the whole, at every moment
            self.part = unsplit
            self._build(query)
        self._failed, self._length = False, 0
        self._is_new = True  # there was no moment yet
        self.is_behind = False
        """Whether documents have changed, and there was no moment since."""
        self._consults = any(isinstance(each, ast.Source) and each.kind == "doc" for each in parts(query))

    def _build(self, query: ast.Query) -> None:
        self._site = QuerySite(self._evaluation, self._display())
        self._stages: list[Stage] = []
        self._elements = 0
        self._evaluation.histories.clear()
        for key, lookbacks in histories_of(query).items():
            self._remember(key, ValueHistory(lookbacks), Env.of(query))
        top = AnswerScope(Env.of(query), form="json" if self.json else "xml", units=self._units)
        self._put(self.part, None, top)

    def _remember(self, key: HistoryKey, history: ValueHistory, env: Env) -> None:
        """Add the stage that computes and remembers the values of an expression."""
        expression, namespaces = key
        part, id = self._value_part(expression), f"h{len(self._stages)}"

        def inner(site: QuerySite, scope: AnswerScope) -> Single:
            around, self._site = self._site, site
            try:
                stage = self._stage(id, part, scope)
            except DynamicError:  # what it computes before any entry fails, and so the whole does
                stage = self._stage(id, WholePart(expression, self._read_by(expression)), scope)
            finally:
                self._site = around
            assert isinstance(stage, Single)
            return stage

        scope = AnswerScope(replace(env, namespaces=dict(namespaces)))
        self._stages.append(HistoryStage(id, self._site, scope, history, inner, lambda: self._stages))
        self._evaluation.histories[key] = history

    def _read_by(self, expression: ast.Expression) -> tuple[str, ...]:
        """The streams that an expression reads."""
        return tuple(needs_of(replace(self._evaluation.query, body=expression)).streams)

    @abstractmethod
    def _stage(self, id: str, part: Part, scope: AnswerScope) -> Stage:
        """The stage of a part that reads streams; raises DynamicError where what it computes before fails."""

    # --- the display --------------------------------------------------------------------------------------

    def _change(self, place: Place) -> DisplayChange:
        """What a moment has changed, after all stages were updated."""
        self._is_new = False
        dead, self._site.dead = self._site.dead, []
        if self._site.failing and not self._failed:
            error = next(iter(self._site.failing.values()))
            dead.append(DeadLetter(place, error.message, "", error.code, self._evaluation.around.get("name")))
        return DisplayChange(self.now, self._edits(), tuple(dead), self._altered())

    def alter(self, alters: Sequence[Alter]) -> None:
        """Change units of the display with the next moment, which shows all of it anew (LAWS 4.9 e)."""
        if alters:
            self._units.alter(alters)
            self._alters += alters
            for stage in self._stages:
                stage.reshow()

    def _altered(self) -> tuple[Alter, ...]:
        """The changes of units that are told with this moment."""
        found, self._alters = tuple(self._alters), []
        return found

    def _edits(self) -> tuple[Edit, ...]:
        """What has changed on display, which is empty where the query fails as a whole."""
        display, failed = self._site.display, bool(self._site.failing)
        edits = tuple(display.edits())
        if failed:
            edits = () if self._failed or not self._length else (Remove(0, self._length),)
        elif self._failed:
            edits = (Insert(0, display.text),) if display.length else ()
        self._failed, self._length = failed, 0 if failed else display.length
        return edits

    @property
    def json(self) -> bool:
        """Whether the answer is lines of JSON (LAWS 7.3)."""
        return form_around(self._evaluation.query, self._evaluation.around) == "json"

    @property
    def text(self) -> str:
        """The answer now; empty where the query fails as a whole."""
        return "" if self._site.failing else self._site.display.text

    @property
    def display(self) -> Display:
        """The display of the answer; not to be read where the query fails as a whole."""
        return self._site.display

    @property
    def failure(self) -> DynamicError | None:
        """Why the query fails as a whole, so that nothing is on display."""
        return next(iter(self._site.failing.values()), None)

    def call(self, functions: Mapping[str, PythonFunction]) -> None:
        """Use these functions from now on: each epoch has objects of its own."""
        self._evaluation.around["functions"] = functions

    def consult(self, documents: Mapping[str, Input], *, changed: bool) -> None:
        """Use these documents for `doc()`; where they have changed, the next moment computes anew what reads them."""
        self._evaluation.around["inputs"] = documents
        self.is_behind = changed
        if changed:
            for stage in self._stages:
                stage.renew()

    @property
    def evaluated(self) -> int:
        """How many evaluations there were, each of one entry or of all."""
        return self._evaluation.evaluated

    # --- state --------------------------------------------------------------------------------------------

    def _remembered(self, streams: Mapping[str, Data]) -> Data:
        """The state of the stages, added to that of the streams, whose entries are the last of their data."""
        for name, (*_, entries) in streams.items():
            for each in entries:
                found = {stage.id: stage.remembered(name, each[0]) for stage in self._stages}
                each.append({id: data for id, data in found.items() if data is not None})
        failing = [[*key, error.message, error.code] for key, error in self._site.failing.items()]
        told = {stage.id: marks for stage in self._stages if (marks := self._site.told.get((stage.id, NONE)))}
        remembered: Data = {"streams": streams, "failing": failing, "told": told, "is_new": self._is_new}
        if remembering := {each.id: each.save() for each in self._stages if isinstance(each, HistoryStage)}:
            remembered["histories"] = remembering
        if self._units.maps:
            remembered["units"] = self._units.save()
        if self._consults:  # other documents would give something else than what is on display
            remembered["stood"] = {each.id: each.written() for each in self._stages if isinstance(each, Single)}
        return remembered

    def _recalled(self, data: Data) -> None:
        """Restore the stages after all entries were restored; `data` is the latest state."""
        self._is_new = data["is_new"]
        if self._units.restore(data.get("units", ())):  # what is kept as text is recalled so, and the rest shown anew
            for stage in self._stages:
                stage.reshow()
        if self._is_new:
            return
        for stage in self._stages:
            if isinstance(stage, HistoryStage):
                stage.restore(data["histories"][stage.id])
        for stage in self._stages:
            if self._consults and isinstance(stage, Single):
                stage.stood(data["stood"][stage.id])
            else:
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
        """Give a part its place on display, at the end of an element or of the whole display."""
        display, id = self._site.display, f"s{len(self._stages)}"
        match part:
            case FixedPart(expression):
                piece = scope.piece(self._evaluation.value(expression, scope, {}, {}))
                display.write(() if piece is None else (piece,), inside)
            case SequencePart(inner):
                for each in inner:
                    self._put(each, inside, scope)
            case ElementPart():
                self._put_element(part, inside, scope)
            case _:
                stage = self._stage(id, part, scope)
                display.region(id, inside=inside)
                self._stages.append(stage)

    def _put_element(self, part: ElementPart, inside: str | None, scope: AnswerScope) -> None:
        if scope.form == "json":
            raise not_both()

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
        steps = () if scope.steps is None else (*scope.steps, str(element.name))
        env = replace(scope.env, namespaces=namespaces)
        within = AnswerScope(env, namespaces_in_scope(element), units=scope.units, steps=steps)
        for each in part.content:
            match each:
                case ast.Characters(value):
                    self._site.display.write((Piece(escape_text(value)),), id)
                case ast.CommentConstructor(value):
                    self._site.display.write((Piece(f"<!--{value}-->"),), id)
                case _:
                    self._site.display.write((Piece(""),), id)  # no space between values in different braces
                    self._put(each, id, within)
