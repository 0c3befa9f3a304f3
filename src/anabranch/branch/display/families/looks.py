"""One entry at one moment, evaluated for several queries at once: what they have in common is evaluated once.

What has the same text in several queries (`loops.py`) is evaluated once for all of them.
In usual cases that is done by closures over what is kept of the entry (`compiled_loops/`); else the entry's nodes are
made, once for all as well, and the law's evaluator is asked.
A part that fails, sets something aside or takes many steps has no shared value: then each query evaluates the entry by
itself, as it would alone, and its errors are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

from anabranch.branch.display.compiled_loops.kept_nodes import MOST_WORK, KeptValues, Unusual, atoms, holds
from anabranch.branch.display.compiled_loops.loops import CompiledLoop, ShownRow, compiled
from anabranch.branch.display.families.loops import EntryLoop, LoopTest, SharedText
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.calls import PythonFunction
from anabranch.law.evaluate import ResultRow
from anabranch.law.history.chains import Content, Lived
from anabranch.law.history.evaluate import HistoryEvaluator
from anabranch.runtime.tables import Lookups
from anabranch.stream.tree import Element
from anabranch.values.atomic import Atomic, compare
from anabranch.values.sequences import Value, Values, atomize, truth

T = TypeVar("T")

_MOST_NODES = 64
"""Loops over more nodes of one entry are evaluated for each query by itself."""
_PART = 1_024
"""A shared value takes at most this part of the steps that are allowed: then all conditions and results of a loop over
so many nodes take no more than the whole."""


class Unshared(Exception):  # a signal between functions, not an error
    """Something has no value that queries could share."""


class LookEvaluator(Lookups, HistoryEvaluator):
    """The law's evaluator over one entry, for all queries that look at it."""

    def nodes(self, text: SharedText) -> list[Value]:
        """What a loop goes through."""
        found = [value for _, value in self._by_entry(text.loop.source, text.env)]
        if self.dead or len(found) > _MOST_NODES:
            raise Unshared
        return found

    def of_round(self, text: SharedText, node: Value) -> Values:
        """The value of a part of a loop in one round."""
        env = text.env.bind(text.loop.variable, [node])
        return self._within(lambda: self.value(text.value, env))

    def result(self, text: SharedText, node: Value) -> list[ResultRow]:
        """The results of one round, whatever its conditions say."""
        env = text.env.bind(text.loop.variable, [node])
        return self._within(lambda: list(self._rows(text.expression, (), env)))

    def compared(self, test: LoopTest, values: Values) -> bool:
        """Whether a comparison with a constant holds."""
        assert test.operator is not None
        assert test.constant is not None
        return self._compared(test.operator, values, [test.constant])

    def of_whole(self, text: SharedText) -> list[ResultRow]:
        """The results of a part that is no loop."""
        value, env = text.value, text.env
        if isinstance(value, ast.Flwor) and value.order:
            rows = self.rows(value, env)
        else:
            rows = [ResultRow((), self.top(value, env))]
        if self.dead:
            raise Unshared
        return rows

    def _within(self, body: Callable[[], list[T]]) -> list[T]:
        """A part of a round, whose errors are not set aside."""

        def counted() -> list[T]:
            before = self.left
            found = self._inside((None,), body)
            if before - self.left > before // _PART:
                raise Unshared
            return found

        return self.apart(counted)


class CompiledTexts:
    """The parts of the queries of a family as closures, where they can be compiled."""

    def __init__(self, query: ast.Query, root: Element) -> None:
        self._query, self._root = query, root
        self._found: dict[str, CompiledLoop | None] = {}
        self.now = [Fraction(0)]
        """The time at which they are asked."""
        self.functions: Mapping[str, PythonFunction] = {}
        """The functions that the user has registered."""

    def of(self, text: SharedText) -> CompiledLoop:
        """A part of a loop; raises `Unusual` where only the law can answer it."""
        if text.key not in self._found:
            is_plain = bool(text.source) and not text.env.namespaces.get("")
            found = compiled(text.expression, self._query, self._root, self.now) if is_plain else None
            self._found[text.key] = found
        loop = self._found[text.key]
        if loop is None or (loop.calls and not loop.calls.isdisjoint(self.functions)):
            raise Unusual
        return loop


@dataclass(frozen=True, slots=True)
class _Worked(Generic[T]):
    """A value, and the work that it took."""

    value: T
    work: int


class EntryLook:
    """What queries see of one entry at one moment."""

    def __init__(self, texts: CompiledTexts, content: Content | None, evaluator: Callable[[], LookEvaluator]) -> None:
        """`evaluator` makes one of the law, over the entry."""
        self._texts, self._content, self._make = texts, content, evaluator
        self._known: dict[tuple[str, str, int], Any] = {}

    @cached_property
    def _evaluator(self) -> LookEvaluator:
        return self._make()

    # --- usual cases ----------------------------------------------------------------------------------------

    def usual(self, loop: EntryLoop) -> list[ShownRow] | None:
        """The results of a loop as they are shown, where nothing is unusual."""
        try:
            nodes = self._usual_nodes(loop.result)
            work, chosen = 0, list[int]()
            for place in range(len(nodes)):
                holding = True
                for test in loop.tests:
                    found = self._usual_values(test.text, place)
                    work += found.work
                    holding &= _holds(test, found.value)
                chosen += [place] if holding else []
            rows: list[ShownRow] = []
            for place in chosen:
                shown = self._usual_rows(loop.result, place)
                work += shown.work
                rows += shown.value
        except (Unusual, Unshared, DynamicError):
            return None
        if work > MOST_WORK or (len(chosen) > 1 and not loop.is_ordered):
            return None
        return rows

    def _usual_nodes(self, text: SharedText) -> list[Lived]:
        loop, content = self._texts.of(text), self._content
        if content is None:
            raise Unusual
        return self._once("kept", text.source, lambda: loop.nodes((content,), loop.steps))

    def _usual_values(self, text: SharedText, place: int) -> _Worked[KeptValues]:
        loop, node = self._texts.of(text), self._usual_nodes(text)[place]
        return self._once("usual", text.key, lambda: _worked(loop, lambda: loop.values(node)), place)

    def _usual_rows(self, text: SharedText, place: int) -> _Worked[list[ShownRow]]:
        loop, node = self._texts.of(text), self._usual_nodes(text)[place]
        return self._once("shown", text.key, lambda: _worked(loop, lambda: loop.round(node)), place)

    def _usual_atoms(self, text: SharedText) -> list[Atomic]:
        nodes = self._usual_nodes(text)
        if len(nodes) == 1:  # as in most entries
            return atoms(self._usual_values(text, 0).value)
        return [each for place in range(len(nodes)) for each in atoms(self._usual_values(text, place).value)]

    # --- by the law -----------------------------------------------------------------------------------------

    def atoms(self, text: SharedText) -> list[Atomic] | None:
        """The atomic values of a part of a loop in all its rounds; None where they cannot be shared."""
        try:
            return self._once("atoms", text.key, lambda: self._atoms(text))
        except Unshared:
            return None

    def rows(self, loop: EntryLoop) -> list[ResultRow] | None:
        """The results of a loop; None where a query has to evaluate it by itself."""
        try:
            if not loop.result.source:
                return self._once("whole", loop.result.key, lambda: self._evaluator.of_whole(loop.result))
            nodes = self._nodes(loop.result)
            chosen = [place for place in range(len(nodes)) if all(self._holds(test, place) for test in loop.tests)]
            if not chosen:
                return []
            rows = [row for place in chosen for row in self._result(loop.result, place)]
        except (Unshared, DynamicError):
            return None
        return rows if loop.is_ordered else [ResultRow((), [value for row in rows for value in row.values])]

    def _holds(self, test: LoopTest, place: int) -> bool:
        """Whether a condition holds in a round."""
        values = self._value(test.text, place)
        return truth(values) if test.operator is None else self._evaluator.compared(test, values)

    def _nodes(self, text: SharedText) -> list[Value]:
        return self._once("nodes", text.source, lambda: self._evaluator.nodes(text))

    def _value(self, text: SharedText, place: int) -> Values:
        node = self._nodes(text)[place]
        return self._once("value", text.key, lambda: self._evaluator.of_round(text, node), place)

    def _result(self, text: SharedText, place: int) -> list[ResultRow]:
        node = self._nodes(text)[place]
        return self._once("result", text.key, lambda: self._evaluator.result(text, node), place)

    def _atoms(self, text: SharedText) -> list[Atomic]:
        try:
            return self._usual_atoms(text)
        except (Unusual, Unshared, DynamicError):
            pass
        return [each for place in range(len(self._nodes(text))) for each in atomize(self._value(text, place))]

    def _once(self, what: str, key: str, find: Callable[[], T], place: int = 0) -> T:
        """What is found once for all queries, or else never."""
        asked = what, key, place
        if asked not in self._known:
            try:
                self._known[asked] = find()
            except (Unusual, Unshared, DynamicError, RecursionError):
                self._known[asked] = Unshared
                if "_evaluator" in self.__dict__:
                    self._evaluator.dead.clear()
        found = self._known[asked]
        if found is Unshared:
            raise Unshared
        return found  # type: ignore[no-any-return]


def _worked(loop: CompiledLoop, find: Callable[[], T]) -> _Worked[T]:
    loop.begin()
    value = find()
    return _Worked(value, loop.work)


def _holds(test: LoopTest, values: KeptValues) -> bool:
    """Whether a condition holds for its values, or for those that it compares with a constant."""
    if test.operator is None or test.constant is None:
        return holds(values)
    found = [compare(test.operator, each, test.constant) for each in atoms(values)]  # each, for its errors
    return any(found)
