"""A join compiled for columns: the condition of each side, that of tuples, and the fragments of their answers.

A step join compiles:

    for $x in stream("s")/root/item[condition]|path diff ...|
    for $y in stream("t")/root/item[condition]|count ...|
    ...
    let ... where condition return result

and an interval join, whose `for`s have no windows, over streams with declared times; both with conditions and results
that `expressions/compiling.py` compiles, over the items of all sides.
Two sides may read the same stream.
Any other join is answered by the reference evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from anabranch.columnar.expressions.compiling import LookScope
from anabranch.columnar.expressions.scope import Binding
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Column,
    ConstantValue,
    Expression,
    Fragment,
    FunctionCall,
    Junction,
    Kind,
    RowExtreme,
    RowFold,
    RowLoop,
    RowQuantifier,
    inner,
    sides_of,
)
from anabranch.columnar.items.query import (
    CompiledFor,
    joined,
    reference_column,
    refuse_records,
    single_spot,
    time_column,
)
from anabranch.columnar.joins.condition import OneSided, TupleCondition, TupleTest, tuple_tests
from anabranch.columnar.match.condition import ALWAYS, NO, YES, Condition, Settled, columns_of, numbers_of
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.language import ast
from anabranch.logic import And, Not, Or
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class CompiledJoin:
    """A join, compiled for the looks of its sides."""

    sides: tuple[CompiledFor, ...]
    condition: TupleCondition
    fragments: tuple[Fragment, ...]


def read_together(joins: Sequence[CompiledJoin]) -> list[CompiledJoin]:
    """Joins for the same looks, over items that are shredded once for all of them."""
    wanted = [_union([side.wanted for side in each]) for each in zip(*(join.sides for join in joins), strict=True)]
    return [_reading(join, wanted) for join in joins]


def _reading(join: CompiledJoin, wanted: Sequence[WantedColumns]) -> CompiledJoin:
    sides = (replace(side, wanted=each) for side, each in zip(join.sides, wanted, strict=True))
    return replace(join, sides=tuple(sides))


def _union(wanted: Sequence[WantedColumns]) -> WantedColumns:
    columns: list[Column] = [column for each in wanted for column in (*each.columns, *each.computed)]
    numbers = {column for each in wanted for column, numeric in zip(each.columns, each.numeric, strict=True) if numeric}
    return WantedColumns.of(wanted[0].look, columns, numbers)


def compile_join(
    flwor: ast.Flwor, roots: Sequence[str], looks: Sequence[Look], times: Sequence[Path | None]
) -> CompiledJoin | None:
    """Compile a join; None where it does not compile.

    By side: `roots` are the expanded names of the streams' roots; `times` are the paths to the times of items, where
    they are declared.
    """
    fors = [clause for clause in flwor.clauses[: len(roots)] if isinstance(clause, ast.For)]
    lets = [clause for clause in flwor.clauses[len(roots) :] if isinstance(clause, ast.Let)]
    if flwor.order or len(fors) < len(roots) or len(fors) + len(lets) < len(flwor.clauses):
        return None
    try:
        sides = [_side(*each) for each in zip(fors, range(len(fors)), roots, looks, times, strict=True)]
        return _compiled(sides, lets, flwor.where, flwor.result)
    except NotColumnar:
        return None


@dataclass(frozen=True, slots=True)
class _Side:
    variable: str
    spot: Spot
    condition: Condition
    reference: PartColumn | None
    time: PartColumn | None
    presence: PartColumn | None
    """As in `CompiledFor`."""

    def compiled(self, conditions: Sequence[Condition], others: Sequence[Expression | Fragment]) -> CompiledFor:
        """The compiled `for`; `conditions` and `others` are what else is read of its items."""
        every = (self.condition, *conditions)
        numbers: set[Column] = {each for each in (self.reference, self.time) if each is not None}
        numbers = numbers.union(*map(numbers_of, every))
        columns = numbers.union({self.spot.presence}, *map(columns_of, every))
        wanted = WantedColumns.of(self.spot.look, columns, numbers, others)
        return CompiledFor(True, self.presence, self.condition, self.reference, self.time, wanted)


def _side(clause: ast.For, side: int, root: str, look: Look, time: Path | None) -> _Side:
    conditions, spot = single_spot(clause.source, root, look, side)
    if spot is None:
        raise NotColumnar("a join of what is not there")
    moment = time_column(time, look)
    if clause.window is None:
        if moment is None:
            raise NotColumnar("a join of what has neither a window nor a time")
        # an item that the path does not reach shows the progress of its stream as any other does
        return _Side(clause.variable, spot, tuple(conditions) or ALWAYS, moment, moment, None)
    reference = reference_column(clause.window, root, spot) if isinstance(clause.window, ast.TimeWindow) else None
    return _Side(clause.variable, spot, tuple(conditions) or ALWAYS, reference, moment, spot.presence)


def _compiled(
    sides: Sequence[_Side], lets: Sequence[ast.Let], where: ast.Expression | None, result: ast.Expression
) -> CompiledJoin:
    names: dict[str | None, Binding] = {side.variable: side.spot for side in sides}
    if len(names) < len(sides):
        raise NotColumnar("two loops over one name")
    scope = LookScope(names)
    clear: list[Expression] = []
    for each in lets:
        scope, known = scope.let(each.variable, each.value)
        clear += [] if known is None else [known]
    condition: TupleCondition
    if clear:  # a `let` that fails is an error, whatever `where` says
        holds = ConstantValue(True) if where is None else scope.truth(where)
        condition = TupleTest(FunctionCall("behind", (Junction(True, tuple(clear)), holds), Kind.BOOLEAN))
    else:
        condition = Settled(YES) if where is None else _condition(scope, where)
    refuse_records([side.spot.look for side in sides], result, clauses=lets)
    fragments = joined(scope.result(result))
    asked = list(tuple_tests(condition))
    looked_at = [part for test in asked if isinstance(test, TupleTest) for part in parts_of(test.expression)]
    looked_at += [part for each in fragments if not isinstance(each, bytes) for part in parts_of(each)]
    compiled = (
        side.compiled(
            [each.condition for each in asked if isinstance(each, OneSided) and each.side == number],
            [part for part in looked_at if sides_of(part) == {number}],
        )
        for number, side in enumerate(sides)
    )
    return CompiledJoin(tuple(compiled), condition, fragments)


def parts_of(node: Expression | Fragment) -> Iterator[Expression | Fragment]:
    """The largest parts of a node that read one item only; rows inside an item never read another item."""
    if len(sides_of(node)) < 2:
        yield node
        return
    if isinstance(node, RowQuantifier | RowExtreme | RowLoop) or (isinstance(node, RowFold) and node.repeated):
        raise NotColumnar("repeated parts of an item that are compared with another item")
    for each in inner(node):
        yield from parts_of(each)


def _condition(scope: LookScope, expression: ast.Expression) -> TupleCondition:
    match expression:
        case ast.And(operands):
            return And(tuple(_condition(scope, each) for each in operands))
        case ast.Or(operands):
            return Or(tuple(_condition(scope, each) for each in operands))
        case ast.Call("not" | "fn:not", (operand,)):
            return Not(_condition(scope, operand))
    truth = scope.truth(expression)
    if isinstance(truth, ConstantValue):
        return Settled(YES if truth.value else NO)
    on = sides_of(truth)
    if len(on) == 1:  # once for each item, and exact where numbers have many digits
        (side,) = on
        return OneSided(side, (scope.condition(expression),))
    return TupleTest(truth)
