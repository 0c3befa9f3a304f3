"""The compiler of sequences: what has several values for a row, and positions among these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from anabranch.columnar.expressions.functions.function import TEXTUAL
from anabranch.columnar.expressions.functions.operators import spread
from anabranch.columnar.expressions.junctions import (
    all_of,
    negated,
    text_node,
    then,
    there_only,
)
from anabranch.columnar.expressions.literals import check_comparable
from anabranch.columnar.expressions.objects.lookups import there as value_there
from anabranch.columnar.expressions.scope import blaming
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Clear,
    ColumnComparison,
    ConstantValue,
    Expression,
    FirstOfValue,
    Junction,
    Kind,
    PartText,
    Presence,
    RowPlace,
    RowQuantifier,
    RowSource,
    Truth,
)
from anabranch.columnar.tables.lookups import LookupScope
from anabranch.language import ast

TRUE = ConstantValue(True)


@dataclass(frozen=True, slots=True)
class CompiledSequence:
    """The sources of a sequence, and the expressions that must be clear for any use of it: an error hides the rest."""

    sources: tuple[RowSource, ...]
    clears: tuple[Expression, ...] = ()

    def __add__(self, other: CompiledSequence) -> CompiledSequence:
        return CompiledSequence((*self.sources, *other.sources), (*self.clears, *other.clears))


_NOTHING = CompiledSequence(())
_FIRST: Expression = ConstantValue(1)
POSITION, LAST = "position()", "last()"
"""The names of these functions in a scope; no variable has such a name."""
PLACE = "op:place"
"""The place of a loop's variable among those for which a condition holds, as a call (`rewriting.py`)."""
_PLACE_OF = "place of "
"""Before the name of a loop's variable: the name of its place."""


@dataclass(frozen=True, slots=True)
class SequenceScope(LookupScope):
    """Compiles sequences and predicates."""

    def value(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one."""
        raise NotColumnar("a value")

    def truth(self, expression: ast.Expression) -> Expression:
        """The effective boolean value of an expression."""
        raise NotColumnar("a condition")

    def let(self, name: str, value: ast.Expression) -> tuple[Self, Expression | None]:
        """The scope behind a `let`, and the expression that must be clear for it."""
        raise NotColumnar("a `let`")

    # --- sequences ----------------------------------------------------------------------------------------

    def predicate(self, spot: Spot, condition: ast.Expression) -> Expression:
        """The condition of a predicate on a spot, behind earlier conditions; tested only where the part is there."""
        frame = self._frame_of(spot)
        inside = self.bind(None, spot.bare) if spot.is_single else self.bind_row(None, spot.bare, frame)
        holds = inside.truth(condition)
        if isinstance(holds, Truth) and holds.operand.kind not in TEXTUAL:
            raise NotColumnar("a number as a predicate")
        return self._held(spot, frame, holds)

    def position(self, spot: Spot, condition: ast.Expression, counted: int) -> Expression:
        """The condition of a predicate that may be a position; of a part that is there at most once, that is 1."""
        frame = self._frame_of(spot)
        inside = self.bind(None, spot.bare) if spot.is_single else self.bind_row(None, spot.bare, frame)
        place, last = _FIRST, _FIRST
        if spot.part == frame and counted != frame:
            place, last = (RowPlace(frame, is_last, spot.condition, counted) for is_last in (False, True))
        elif not spot.is_single and counted == self.frame:
            raise NotColumnar("a position among parts of repeated parts")
        holds = inside.bind(POSITION, place).bind(LAST, last).truth(condition)
        if isinstance(holds, Truth) and holds.operand.kind not in TEXTUAL:
            check_comparable(place, holds.operand)
            holds = ColumnComparison("=", place, holds.operand)
        return self._held(spot, frame, holds)

    def _held(self, spot: Spot, frame: int, holds: Expression) -> Expression:
        """A condition on a part that is there, tested behind the earlier conditions."""
        if spot.part != frame:
            holds = Junction(True, (Presence(spot.presence, spot.side), holds))
        return then(spot.condition, holds)

    def _frame_of(self, spot: Spot) -> int:
        """The frame in whose rows a spot has at most one value."""
        return self.frame if spot.is_single else self.frame_of(spot)

    @blaming
    def sequence(self, expression: ast.Expression, *, counted: bool = False, ordered: bool = False) -> CompiledSequence:
        """The values of a sequence, or only their number (`counted`); they are in their order only with `ordered`."""
        self.work.spend()
        match expression:
            case ast.Call("op:to") if spread(expression) is not expression:
                return self.sequence(spread(expression), counted=counted, ordered=ordered)
            case ast.Sequence(items):
                parts = (self.sequence(each, counted=counted, ordered=ordered) for each in items)
                return sum(parts, _NOTHING)
            case ast.Call("data" | "fn:data", (operand,)):
                return self.sequence(operand, counted=counted, ordered=ordered)
            case ast.Call("non-null", (operand,)):
                values = self.sequence(operand, ordered=ordered)
                return replace(values, sources=tuple(map(there_only, values.sources))) if counted else values
            case ast.Call("distinct-values" | "fn:distinct-values", (operand,)):
                return self._distinct(self.sequence(operand, ordered=ordered), counted=counted)
            case ast.If(condition, then, otherwise):
                holds = self.truth(condition)
                sides = (self.sequence(each, counted=counted, ordered=ordered) for each in (then, otherwise))
                one, other = map(self._where, (holds, negated(holds)), sides)
                return one + other
            case ast.Flwor((ast.For(_, source, None), *_), _, (), _) if self.is_path(source):
                return self._loop_sequence(expression, counted=counted, ordered=ordered)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                spots = self.with_text_nodes(start, steps)
                texts = [replace(each, value=text_node(each.value)) for each in map(self._values_at, spots)]
                found = list(map(there_only, texts)) if counted else texts
            case _ if self.is_path(expression):
                spots = self.filtered_spots(expression)
                spots = spots if counted else self.opened(spots)
                found = [self.nodes_at(each) if counted else self._values_at(each) for each in spots]
            case _:
                single = RowSource(self.frame, None, self.value(expression), self.side)
                return CompiledSequence((there_only(single) if counted else single,))
        if ordered and len(found) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        return CompiledSequence(tuple(found), tuple(self.asked(spots)))

    def _distinct(self, sequence: CompiledSequence, *, counted: bool) -> CompiledSequence:
        """A sequence of texts without duplicates."""
        match sequence.sources:
            case (RowSource(frame, condition, value) as source,) if value is not None and value.kind in TEXTUAL:
                if frame != self.frame:
                    first = FirstOfValue(frame, value, condition, self.frame)
                    source = replace(source, condition=then(condition, first))
                return replace(sequence, sources=(there_only(source) if counted else source,))
            case _:
                raise NotColumnar("distinct values of several parts, or of numbers", "string(...) of one part")

    def _values_at(self, spot: Spot) -> RowSource:
        side = self.side if spot.is_single else spot.side
        return RowSource(self._frame_of(spot), spot.condition, PartText(spot.text, spot.side, spot.kind), side)

    def nodes_at(self, spot: Spot) -> RowSource:
        """The nodes of a path; without a condition each row of its frame is one."""
        frame = self._frame_of(spot)
        there: Expression | None = None if spot.part == frame else Presence(spot.presence, spot.side)
        if spot.is_typed:
            there = value_there(spot)
        condition = then(there, spot.condition) if spot.condition is not None else there
        return RowSource(frame, condition, None, self.side if spot.is_single else spot.side)

    def in_round(self, name: str, spot: Spot, *, is_alone: bool = True) -> Self:
        """The scope inside a loop over the nodes at a spot, perhaps beside those at others."""
        nodes = self.nodes_at(spot)
        scope = self.bind(name, spot.bare) if spot.is_single else self.bind_row(name, spot.bare, nodes.frame)
        if not is_alone or self.is_looked_up(spot):
            return scope
        place = _FIRST if spot.is_single else RowPlace(nodes.frame, False, nodes.condition, self.frame)
        return scope.bind(f"{_PLACE_OF}{name}", place)

    def place(self, variable: ast.Variable, condition: ast.Expression | None) -> Expression:
        """The place of a loop's variable among those for which a condition holds."""
        match self.names.get(f"{_PLACE_OF}{variable.name}"):
            case RowPlace() as found if condition is not None:
                return replace(found, condition=then(found.condition, self.truth(condition)))
            case RowPlace() | ConstantValue() as found:
                return found
            case _:
                raise NotColumnar("positions in a loop over parts of several names, or of a document")

    def asked(self, spots: Sequence[Spot]) -> list[Expression]:
        """Expressions that are clear where all predicates on the way to some spots are."""
        return [
            Clear(each) if self._lies_in(frame, spot) else self._everywhere(frame, Clear(each), spot.side)
            for spot in spots
            for frame, each in spot.asked
        ]

    def _lies_in(self, frame: int, spot: Spot) -> bool:
        """Whether the current rows lie in rows of a frame."""
        mine = self.frame if self.side == spot.side else -1
        look = spot.look if self.work.tables is None else self.work.tables.look
        while mine not in (-1, frame):
            parent = look.parts[mine].parent
            mine = look.frames[parent] if parent >= 0 else -1
        return mine == frame

    def _everywhere(self, frame: int, clear: Expression, side: int) -> Expression:
        """An expression that is clear where `clear` is in all rows of a frame, if that is an inner one."""
        return clear if frame == self.frame else RowQuantifier(frame, False, clear, self.frame, side)

    def _where(self, condition: Expression, sequence: CompiledSequence) -> CompiledSequence:
        """A sequence under one more condition, which is tested first."""
        sources = tuple(replace(each, condition=then(condition, each.condition)) for each in sequence.sources)
        clears = (Junction(False, (negated(condition), each)) for each in sequence.clears)
        return CompiledSequence(sources, (Clear(condition), *clears))

    def _loop_sequence(self, loop: ast.Flwor, *, counted: bool, ordered: bool) -> CompiledSequence:
        """The results of the rounds of a loop."""
        first, *rest = loop.clauses
        assert isinstance(first, ast.For)
        spots, where = self.looped_spots(first.variable, first.source, loop.where, rest)
        if ordered and len(spots) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        found = CompiledSequence((), tuple(self.asked(spots)))
        for spot in spots:
            nodes, others = self.nodes_at(spot), rest
            scope = self.in_round(first.variable, spot, is_alone=len(spots) == 1)
            condition = nodes.condition
            while others and isinstance(others[0], ast.Let):
                scope, clear = scope.let(others[0].variable, others[0].value)
                condition, others = condition if clear is None else then(condition, clear), others[1:]
            if others:
                given = scope.sequence(replace(loop, clauses=tuple(others)), counted=counted, ordered=ordered)
            else:
                if where is not None:
                    condition = then(condition, scope.truth(where))
                given = scope.sequence(loop.result, counted=counted, ordered=ordered)
            if ordered and len(given.sources) > 1:
                raise NotColumnar("a loop whose rounds give several values")
            if condition is not None:
                given = scope._where(condition, given)
            clears = tuple(self._everywhere(nodes.frame, each, nodes.side) for each in given.clears)
            found += CompiledSequence(given.sources, clears)
        return found

    def _value_clears(self, sequence: CompiledSequence) -> list[Expression]:
        """That the values of a sequence are clear, and whether they are there; what is read is, or is no error."""
        found: list[Expression] = []
        for each in sequence.sources:
            if each.condition is not None and not isinstance(each.condition, Presence):
                found.append(self._everywhere(each.frame, Clear(each.condition), each.side))
            if each.value is not None and not _is_read(each.value):
                clear: Expression = Clear(each.value)
                if each.condition is not None:
                    clear = Junction(False, (negated(each.condition), clear))
                found.append(self._everywhere(each.frame, clear, each.side))
        return found

    def _some_row(self, source: RowSource, test: Expression | None) -> Expression:
        """Whether there is a value of a sequence for which a test holds."""
        asked = all_of([each for each in (source.condition, test) if each is not None]) or TRUE
        if source.frame == self.frame:
            return asked
        return RowQuantifier(source.frame, True, asked, self.frame, source.side)


def _is_read(value: Expression) -> bool:
    """Whether a value raises nothing by itself; an object in the place of a value of JSON does."""
    match value:
        case PartText(_, _, Kind.UNTYPED) | ConstantValue():
            return True
        case _:
            return False
