"""A step join over columns: which items each side takes, which pairs it gives, and what each pair gives.

Compiled is a join of two streams by time windows that reads plain paths:

    for $x in stream("s")/root/item[condition]|path diff ...|
    for $y in stream("t")/root/item[condition]|path diff ...|
    where condition return result

with conditions and results as in `columnar/items/query.py`, and comparisons of numbers reckoned with `+`, `-` and `*`
from both.
Any other join is answered by the reference evaluator.

The result is cut into *runs*, each of one side: what a run gives is written once per item, and a pair's answer is a
few runs copied one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from anabranch.columnar.expressions.compiling import LookScope
from anabranch.columnar.expressions.scope import NotColumnar, Spot, simple_number
from anabranch.columnar.expressions.tree import Column, Fragment, Made, Taken, Wrapped
from anabranch.columnar.items.query import CompiledFor, joined, only, reference_column, single_spot, time_column
from anabranch.columnar.joins.condition import (
    Amount,
    Compared,
    Leaf,
    NumberConstant,
    OneSided,
    PairArithmetic,
    PairCondition,
    PairTest,
    SameText,
    leaves_of,
    pair_tests,
)
from anabranch.columnar.match.condition import ALWAYS, NO, YES, Condition, Settled, columns_of, numbers_of
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.language import ast
from anabranch.logic import And, Not, Or
from anabranch.stream.path import Path
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring fragments of a result that one side gives."""

    side: int
    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class CompiledJoin:
    """What a join takes and gives, for items of the looks it was compiled for."""

    sides: tuple[CompiledFor, CompiledFor]
    condition: PairCondition
    runs: tuple[Run, ...]


def read_together(joins: Sequence[CompiledJoin]) -> list[CompiledJoin]:
    """The same joins, of the same looks, over items that are read once for all of them."""
    first, second = (_union([join.sides[side].wanted for join in joins]) for side in range(2))
    return [
        replace(join, sides=(replace(join.sides[0], wanted=first), replace(join.sides[1], wanted=second)))
        for join in joins
    ]


def _union(wanted: Sequence[WantedColumns]) -> WantedColumns:
    columns: list[Column] = [column for each in wanted for column in (*each.columns, *each.computed)]
    numbers = {column for each in wanted for column, numeric in zip(each.columns, each.numeric, strict=True) if numeric}
    return WantedColumns.of(wanted[0].look, columns, numbers)


def compile_join(
    flwor: ast.Flwor,
    roots: tuple[str, str],
    looks: tuple[Look, Look],
    times: tuple[Path | None, Path | None],
) -> CompiledJoin | None:
    """Compile a join; None where it is not made for columns.

    `roots` are the names of the streams' roots, which stand in no namespace, nor may the query; `times` are the paths
    to the times of items, where they are declared.
    """
    match flwor:
        case ast.Flwor((ast.For() as first, ast.For() as second), where, (), result):
            pass
        case _:
            return None
    try:
        sides = (_side(*each) for each in zip((first, second), (0, 1), roots, looks, times, strict=True))
        return _Compiler(*sides).join(where, result)
    except NotColumnar:
        return None


@dataclass(frozen=True, slots=True)
class _Side:
    variable: str
    spot: Spot
    condition: Condition
    reference: PartColumn
    time: PartColumn | None


def _side(clause: ast.For, side: int, root: str, look: Look, time: Path | None) -> _Side:
    conditions, spot = single_spot(clause.source, root, look, side)
    if spot is None or not isinstance(clause.window, ast.TimeWindow):
        raise NotColumnar("a join of other windows than those of time")
    reference = reference_column(clause.window, root, spot)
    return _Side(clause.variable, spot, tuple(conditions) or ALWAYS, reference, time_column(time, look))


class _Compiler:
    """Compiles what looks at both sides."""

    def __init__(self, first: _Side, second: _Side) -> None:
        if first.variable == second.variable:
            raise NotColumnar("two loops over one name")
        self._sides = first, second
        self._scope = LookScope({first.variable: first.spot, second.variable: second.spot})

    def join(self, where: ast.Expression | None, result: ast.Expression) -> CompiledJoin:
        condition = Settled(YES) if where is None else self.condition(where)
        fragments, needed = _certain(joined(self._scope.result(result)))
        runs = _runs(fragments)
        taken = [each for run in runs for each in run.fragments if isinstance(each, Taken)]
        asked = list(pair_tests(condition))
        read = set().union(*map(leaves_of, asked))
        first, second = (
            self._compiled(
                side,
                {each.column for each in taken if each.side == number},
                {each.column for each in read if each.side == number},
                [each.condition for each in asked if isinstance(each, OneSided) and each.side == number],
                tuple(sorted({each.column for each in needed if each.side == number})),
            )
            for number, side in enumerate(self._sides)
        )
        return CompiledJoin((first, second), condition, runs)

    def _compiled(
        self,
        side: _Side,
        copied: set[PartColumn],
        read: set[PartColumn],
        conditions: Sequence[Condition],
        needed: tuple[PartColumn, ...],
    ) -> CompiledFor:
        every = (side.condition, *conditions)
        numbers: set[Column] = {*read, *(each for each in (side.reference, side.time) if each is not None)}
        numbers = numbers.union(*map(numbers_of, every))
        columns = numbers.union(copied, {side.spot.presence}, *map(columns_of, every))
        wanted = WantedColumns.of(side.spot.look, columns, numbers)
        return CompiledFor(True, side.spot.presence, side.condition, side.reference, side.time, wanted, needed)

    # --- conditions ---------------------------------------------------------------------------------------

    def condition(self, expression: ast.Expression) -> PairCondition:
        """A condition on the pair."""
        match expression:
            case ast.And(operands):
                return And(tuple(self.condition(each) for each in operands))
            case ast.Or(operands):
                return Or(tuple(self.condition(each) for each in operands))
            case ast.Call("not" | "fn:not", (operand,)):
                return Not(self.condition(operand))
            case ast.Comparison(_, ast.String(), path) | ast.Comparison(_, path, ast.String()):
                return self._judged(expression, path)
            case ast.Comparison(operator, left, right):
                amounts = self._amounts(left), self._amounts(right)
                self._scope.work.spend(len(amounts[0]) * len(amounts[1]))
                found = [_test(operator, *pair) for pair in product(*amounts)]
                if not found and any(isinstance(each, PairArithmetic) for each in (*amounts[0], *amounts[1])):
                    raise NotColumnar("a comparison with nothing, which may still fail")
                if len(found) == 1:
                    return found[0]
                return Or(tuple(found)) if found else Settled(NO)
            case ast.Path():
                return self._judged(expression, expression)
            case _:
                raise NotColumnar("a condition on pairs")

    def _judged(self, test: ast.Expression, path: ast.Expression) -> PairCondition:
        spots = self._scope.spots(path)
        return OneSided(spots[0].side, (self._scope.condition(test),)) if spots else Settled(NO)

    def _amounts(self, expression: ast.Expression) -> list[Amount]:
        """The numbers that an operand stands for: of a path all, of arithmetic one."""
        match expression:
            case ast.Path() | ast.Variable():
                spots = (only([each]) for each in self._scope.spots(expression))
                return [Leaf(each.side, each.text) for each in spots]
            case _:
                return [self._amount(expression)]

    def _amount(self, expression: ast.Expression) -> Amount:
        match expression:
            case ast.Path() | ast.Variable():
                spot = only(self._scope.spots(expression))
                return Leaf(spot.side, spot.text)
            case ast.Number() | ast.Negation(ast.Number()):
                return NumberConstant(simple_number(expression))
            case ast.Negation(operand):
                return _computed("-", NumberConstant(0.0), self._amount(operand))
            case ast.Arithmetic(first, rest):
                amount = self._amount(first)
                for operator, operand in rest:
                    amount = _computed(operator, amount, self._amount(operand))
                return amount
            case _:
                raise NotColumnar("arithmetic on pairs")


def _computed(operator: ArithmeticOperator, left: Amount, right: Amount) -> Amount:
    """Between two literals arithmetic would be exact, and not that of doubles."""
    if (
        operator == "div"
        or operator == "mod"
        or (isinstance(left, NumberConstant) and isinstance(right, NumberConstant))
    ):
        raise NotColumnar("exact arithmetic on pairs")
    return PairArithmetic(operator, left, right)


def _test(operator: ComparisonOperator, left: Amount, right: Amount) -> PairTest:
    match left, right:
        case NumberConstant(), NumberConstant():
            raise NotColumnar("a comparison of constants")
        case Leaf(), Leaf() if operator in ("=", "!="):
            return SameText(operator, left, right)
        case _:
            return Compared(operator, left, right)


def _certain(fragments: Sequence[Fragment]) -> tuple[list[bytes | Taken], list[Taken]]:
    """Fragments without any whose content may be empty, and the columns that must not be empty for that."""
    found: list[bytes | Taken] = []
    needed: list[Taken] = []
    for each in fragments:
        match each:
            case Wrapped(content, end_tag):
                inside, more = _certain(content)
                found += [b">", *inside, end_tag]
                needed += [*more, *(one for one in inside if isinstance(one, Taken))]
            case Made():
                raise NotColumnar("something computed from a pair")
            case _:
                found.append(each)
    return found, needed


def _runs(fragments: Iterable[bytes | Taken]) -> tuple[Run, ...]:
    """Fixed bytes go with the run before them, or else with the first."""
    runs: list[Run] = []
    fixed: tuple[Fragment, ...] = ()
    for each in fragments:
        if isinstance(each, bytes):
            fixed = (*fixed, each)
            continue
        if runs and runs[-1].side == each.side:
            runs[-1] = Run(each.side, (*runs[-1].fragments, *fixed, each))
        elif runs:
            runs[-1] = Run(runs[-1].side, (*runs[-1].fragments, *fixed))
            runs.append(Run(each.side, (each,)))
        else:
            runs.append(Run(each.side, (*fixed, each)))
        fixed = ()
    if not runs:
        return (Run(0, fixed),) if fixed else ()
    return (*runs[:-1], Run(runs[-1].side, (*runs[-1].fragments, *fixed)))
