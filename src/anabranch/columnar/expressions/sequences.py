"""The compiler of sequences: what has several values for a row, and positions among these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Self

from anabranch.columnar.expressions.functions.function import TEXTUAL
from anabranch.columnar.expressions.functions.operators import spread
from anabranch.columnar.expressions.junctions import (
    all_of,
    either,
    is_certain,
    negated,
    text_node,
    then,
    there_only,
)
from anabranch.columnar.expressions.literals import check_comparable
from anabranch.columnar.expressions.objects.lookups import there as value_there
from anabranch.columnar.expressions.scope import CHECKED, behind_first, blaming
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Clear,
    ColumnComparison,
    ConstantValue,
    Expression,
    FirstOfValue,
    FunctionCall,
    Junction,
    Kind,
    PartText,
    Presence,
    RowFold,
    RowKey,
    RowPlace,
    RowQuantifier,
    RowSource,
    Truth,
)
from anabranch.columnar.tables.lookups import LookupScope
from anabranch.language import ast

TRUE = ConstantValue(True)


class Needed(Enum):
    """What is needed of a sequence."""

    VALUES = "values, in any order"
    ORDER = "values in their order"
    NULLS = "the same, where `null` would be one of them, which columns leave to the law"
    COUNT = "how many there are"
    GIVEN = "what is written into JSON, in its order"


IN_ORDER = (Needed.ORDER, Needed.NULLS, Needed.GIVEN)


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
SAME = "op:same"
"""Whether a value is `eq` a literal, as a call: what cannot be compared is not."""
_PLACE_OF = "place of "
"""Before the name of a loop's variable: the name of its place."""


@dataclass(frozen=True, slots=True)
class SequenceScope(LookupScope):
    """Compiles sequences and predicates."""

    def value(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one."""
        raise NotColumnar("a value")

    def order_keys(self, expression: ast.Expression) -> list[Expression]:
        """What rows are sorted by for one key of an `order by`."""
        raise NotColumnar("an order")

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
        if spot.look.shown(spot.part) == frame and counted != frame:
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
        if spot.is_typed:
            holds = Junction(True, (value_there(spot), holds))
        elif spot.part != frame:
            holds = Junction(True, (Presence(spot.presence, spot.side), holds))
        return then(spot.condition, holds)

    def _frame_of(self, spot: Spot) -> int:
        """The frame in whose rows a spot has at most one value."""
        return self.frame if spot.is_single else self.frame_of(spot)

    @blaming
    def sequence(self, expression: ast.Expression, use: Needed = Needed.VALUES) -> CompiledSequence:
        """The values of a sequence, for some use."""
        self.work.spend()
        match expression:
            case ast.Call("op:to") if spread(expression) is not expression:
                return self.sequence(spread(expression), use)
            case ast.Sequence(items):
                parts = (self.sequence(each, use) for each in items)
                return sum(parts, _NOTHING)
            case ast.Call("data" | "fn:data", (operand,)):
                return self.sequence(operand, use)
            case ast.Call("non-null", (operand,)):
                values = self.sequence(operand, Needed.VALUES if use is Needed.COUNT else Needed.ORDER)
                return self.used(values, use)
            case ast.Call("distinct-values" | "fn:distinct-values", (operand,)):
                return self.used(self._distinct(self.sequence(operand, Needed.NULLS)), use)
            case ast.Call(name, (operand,)) if name.removeprefix("fn:") in CHECKED:
                clears = self.number_checked(name.removeprefix("fn:"), operand)
                return self.sequence(operand, use) + CompiledSequence((), tuple(clears))
            case ast.If(condition, then, otherwise):
                holds = self.truth(condition)
                sides = (self.sequence(each, use) for each in (then, otherwise))
                one, other = map(self._where, (holds, negated(holds)), sides)
                return one + other
            case ast.Flwor((ast.Let(name, value), *_), _, ()):
                scope, clear = self.let(name, value)
                given = scope.sequence(behind_first(expression), use)
                return given if clear is None else given + CompiledSequence((), (clear,))
            case ast.Flwor((ast.For(_, _, None), *_)) if self._is_loop(expression):
                return self._loop_sequence(expression, use)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                spots = self.with_text_nodes(start, steps)
                texts = [replace(each, value=text_node(each.value)) for each in map(self.values_at, spots)]
                found = list(map(there_only, texts)) if use is Needed.COUNT else texts
            case _ if self.is_path(expression):
                spots = self.filtered_spots(expression)
                spots = spots if use in (Needed.COUNT, Needed.GIVEN) else self.opened(spots)
                found = [self.given_at(each, use) for each in spots]
            case _:
                return self.single(expression, use)
        if use in IN_ORDER and len(found) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        return CompiledSequence(tuple(found), tuple(self.asked(spots)))

    def given_at(self, spot: Spot, use: Needed) -> RowSource:
        """What is at a spot, for some use."""
        if use is Needed.COUNT:
            return self.nodes_at(spot)
        found = self.values_at(spot)
        if use is not Needed.NULLS or not spot.is_typed or found.value is None:
            return found
        return replace(found, condition=then(found.condition, self.not_null(spot)))

    def not_null(self, spot: Spot) -> Expression:
        """True, but unclear for `null`."""
        text = PartText(spot.text, spot.side, spot.kind)
        is_known = either([FunctionCall("there", (text,), Kind.BOOLEAN), negated(value_there(spot))])
        return FunctionCall("needed", (is_known,), Kind.BOOLEAN)

    def single(self, expression: ast.Expression, use: Needed) -> CompiledSequence:
        """A sequence of one value at most."""
        return self.used(CompiledSequence((RowSource(self.frame, None, self.value(expression), self.side),)), use)

    def used(self, values: CompiledSequence, use: Needed) -> CompiledSequence:
        """Values that were computed, for some use."""
        sources = values.sources
        return replace(values, sources=tuple(map(there_only, sources))) if use is Needed.COUNT else values

    def number_checked(self, name: str, operand: ast.Expression) -> list[Expression]:
        """That there are as many values as a function asks for."""
        found = self.sequence(operand, Needed.COUNT)
        if name == "zero-or-one" and len(found.sources) == 1 and found.sources[0].frame == self.frame:
            return []
        count = RowFold("count", found.sources, (), Kind.INTEGER, self.frame)
        asked: list[Expression] = []
        if name != "zero-or-one":
            asked.append(ColumnComparison(">=", count, ConstantValue(1)))
        if name != "one-or-more":
            asked.append(ColumnComparison("<=", count, ConstantValue(1)))
        return [Clear(FunctionCall("needed", (each,), Kind.BOOLEAN)) for each in asked]

    def _is_loop(self, expression: ast.Flwor) -> bool:
        """Whether a loop may have several rounds, and not one at most as those of values do that may be nothing."""
        first = expression.clauses[0]
        assert isinstance(first, ast.For)
        return self.is_path(first.source) or not self._is_value(first.source)

    def _is_value(self, expression: ast.Expression) -> bool:
        """Whether an expression has at most one value, and is no path."""
        scope, meant = self.meant(expression)
        match meant:
            case ast.Sequence() | ast.Flwor() | ast.Call("distinct-values" | "fn:distinct-values" | "op:to"):
                return False
            case ast.Call("data" | "fn:data" | "non-null", (operand,)):
                spots = scope.filtered_spots(operand) if scope.is_path(operand) else None
                return scope._is_value(operand) if spots is None else len(spots) == 1 and spots[0].is_single
            case ast.Call(name, (operand,)) if name.removeprefix("fn:") in CHECKED:
                return scope._is_value(operand)
            case ast.If(_, one, other):
                return scope._is_value(one) and scope._is_value(other)
            case _:
                return not scope.is_path(meant)

    def _distinct(self, sequence: CompiledSequence) -> CompiledSequence:
        """A sequence of texts without duplicates."""
        match sequence.sources:
            case (RowSource(frame, condition, value) as source,) if value is not None and value.kind in TEXTUAL:
                if frame != self.frame:
                    first = FirstOfValue(frame, value, condition, self.frame)
                    source = replace(source, condition=then(condition, first))
                return replace(sequence, sources=(source,))
            case _:
                raise NotColumnar("distinct values of several parts, or of numbers", "string(...) of one part")

    def values_at(self, spot: Spot) -> RowSource:
        """The values of a path."""
        side = self.side if spot.is_single else spot.side
        return RowSource(self._frame_of(spot), spot.condition, spot.string_value, side)

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
        return scope.bind(f"{_PLACE_OF}{name}", self._place_in(nodes))

    def _place_in(self, rows: RowSource) -> Expression:
        """The place of a row among those that are taken."""
        return _FIRST if rows.frame == self.frame else RowPlace(rows.frame, False, rows.condition, self.frame)

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
            if not is_certain(each)
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

    def value_rounds(self, name: str, source: ast.Expression) -> tuple[list[tuple[Self, RowSource]], list[Expression]]:
        """The scopes inside a loop over values, each with the rows of its rounds; and what must be clear for it."""
        if self.gives_nodes(source, some=True):
            raise NotColumnar("a loop over what may be nodes or values", "a loop over each")
        values = self.sequence(source, Needed.NULLS)
        found: list[tuple[Self, RowSource]] = []
        for each in values.sources:
            if each.value is None or each.value.kind in (Kind.BOOLEAN, Kind.CONTENT):
                raise NotColumnar("a loop over conditions, or over objects")
            rows = there_only(each)
            scope = self if each.frame == self.frame else replace(self, frame=each.frame, side=each.side)
            if len(values.sources) == 1 and not each.order:
                scope = scope.bind(f"{_PLACE_OF}{name}", self._place_in(rows))
            found.append((scope.bind(name, each.value), rows))
        return found, [*values.clears, *self._value_clears(values)]

    def _loop_sequence(self, loop: ast.Flwor, use: Needed) -> CompiledSequence:
        """The results of the rounds of a loop."""
        first, *rest = loop.clauses
        assert isinstance(first, ast.For)
        where = loop.where
        if self.is_path(first.source):
            spots, where = self.looped_spots(first.variable, first.source, where, rest)
            if use in IN_ORDER and len(spots) > 1:
                raise NotColumnar("the values of parts of different names in a row")
            is_alone, clears = len(spots) == 1, self.asked(spots)
            rounds = [(self.in_round(first.variable, each, is_alone=is_alone), self.nodes_at(each)) for each in spots]
        else:
            rounds, clears = self.value_rounds(first.variable, first.source)
        if loop.order and len(rounds) > 1:
            raise NotColumnar("a loop with `order by` over several parts")
        found = CompiledSequence((), tuple(clears))
        for scope, rows in rounds:
            found += self._round_sequence(scope, rows, replace(loop, clauses=tuple(rest), where=where), use)
        return found

    def _round_sequence(self, scope: Self, rows: RowSource, loop: ast.Flwor, use: Needed) -> CompiledSequence:
        """The results of the rounds of the rest of a loop, for some rows."""
        others, condition, where = loop.clauses, rows.condition, loop.where
        while others and isinstance(others[0], ast.Let):
            scope, clear = scope.let(others[0].variable, others[0].value)
            condition, others = condition if clear is None else then(condition, clear), others[1:]
        keys: tuple[RowKey, ...] = ()
        if others:
            if loop.order:
                raise NotColumnar("a loop with `order by` and several `for`")
            given = scope.sequence(replace(loop, clauses=others), use)
        else:
            if where is not None:
                condition = then(condition, scope.truth(where))
            keys = tuple(RowKey(key, each.descending) for each in loop.order for key in scope.order_keys(each.key))
            given = scope.sequence(loop.result, use)
        if use in IN_ORDER and len(given.sources) > 1 and rows.frame != self.frame:
            raise NotColumnar("a loop whose rounds give several values")
        if keys:
            clear = all_of([Clear(each.value) for each in keys])
            given = scope._where(then(condition, clear) if condition else clear or TRUE, given)
        elif condition is not None:
            given = scope._where(condition, given)
        sources = given.sources
        if use in IN_ORDER and (rows.order or keys):
            if any(each.order for each in sources):
                raise NotColumnar("a loop with `order by` inside of another one")
            sources = tuple(replace(each, order=(*keys, *rows.order)) for each in sources)
        return CompiledSequence(sources, tuple(self._everywhere(rows.frame, each, rows.side) for each in given.clears))

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
