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

from anabranch.columnar.items.query import (
    Fragment,
    Other,
    Scope,
    Spot,
    Taken,
    joined,
    simple_number,
    source_spots,
)
from anabranch.columnar.joins.condition import (
    Amount,
    Compared,
    Computed,
    Constant,
    Leaf,
    OneSided,
    PairCondition,
    PairTest,
    SameText,
    leaves_of,
    pair_tests,
)
from anabranch.columnar.match.condition import ALWAYS, NO, YES, Condition, NumberTest, Settled, tests
from anabranch.columnar.match.selecting import CompiledFor, only, reference_leaf, time_leaf, wanted_leaves
from anabranch.columnar.scan.shred import Wanted
from anabranch.columnar.scan.template import Template
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
    """What a join takes and gives, for items that fit the templates it was compiled for."""

    sides: tuple[CompiledFor, CompiledFor]
    condition: PairCondition
    runs: tuple[Run, ...]


def read_together(joins: Sequence[CompiledJoin]) -> list[CompiledJoin]:
    """The same joins, of the same templates, over items that are read once for all of them."""
    first, second = (_union([join.sides[side].wanted for join in joins]) for side in range(2))
    return [
        replace(join, sides=(replace(join.sides[0], wanted=first), replace(join.sides[1], wanted=second)))
        for join in joins
    ]


def _union(wanted: Sequence[Wanted]) -> Wanted:
    leaves = {leaf for each in wanted for leaf in each.leaves}
    numbers = {leaf for each in wanted for leaf, numeric in zip(each.leaves, each.numeric, strict=True) if numeric}
    return wanted_leaves(wanted[0].template, leaves, numbers)


def compile_join(
    flwor: ast.Flwor,
    roots: tuple[str, str],
    templates: tuple[Template, Template],
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
        sides = (_side(*each) for each in zip((first, second), (0, 1), roots, templates, times, strict=True))
        return _Compiler(*sides).join(where, result)
    except Other:
        return None


@dataclass(frozen=True, slots=True)
class _Side:
    variable: str
    spot: Spot
    condition: Condition
    reference: int
    time: int | None


def _side(clause: ast.For, side: int, root: str, template: Template, time: Path | None) -> _Side:
    conditions, found = source_spots(clause.source, root, template, side)
    if not isinstance(clause.window, ast.TimeWindow):
        raise Other
    spot = only(found)
    reference = reference_leaf(clause.window, root, spot)
    return _Side(clause.variable, spot, tuple(conditions) or ALWAYS, reference, time_leaf(time, template))


class _Compiler:
    """Compiles what looks at both sides."""

    def __init__(self, first: _Side, second: _Side) -> None:
        if first.variable == second.variable:
            raise Other
        self._sides = first, second
        self._scope = Scope({first.variable: first.spot, second.variable: second.spot})

    def join(self, where: ast.Expression | None, result: ast.Expression) -> CompiledJoin:
        condition = Settled(YES) if where is None else self.condition(where)
        runs = _runs(joined(self._scope.result(result), [side.spot.template for side in self._sides]))
        taken = [each for run in runs for each in run.fragments if isinstance(each, Taken)]
        copied = {Leaf(each.side, leaf) for each in taken for leaf in (each.first, each.last)}
        asked = list(pair_tests(condition))
        read = set().union(*map(leaves_of, asked))
        for number, side in enumerate(self._sides):
            mine = (each.condition for each in asked if isinstance(each, OneSided) and each.side == number)
            for test in (test for each in (side.condition, *mine) for test in tests(each)):
                (read if isinstance(test, NumberTest) else copied).add(Leaf(number, test.leaf))
            read |= {Leaf(number, leaf) for leaf in (side.reference, side.time) if leaf is not None}
        first, second = (self._compiled(number, copied | read, read) for number in range(2))
        return CompiledJoin((first, second), condition, runs)

    def _compiled(self, number: int, leaves: set[Leaf], read: set[Leaf]) -> CompiledFor:
        side = self._sides[number]
        wanted, numbers = ({each.leaf for each in some if each.side == number} for some in (leaves, read))
        found = wanted_leaves(side.spot.template, wanted, numbers)
        return CompiledFor(True, side.condition, side.reference, side.time, found)

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
                self._scope.visits.spend(len(amounts[0]) * len(amounts[1]))
                found = [_test(operator, *pair) for pair in product(*amounts)]
                if not found and any(isinstance(each, Computed) for each in (*amounts[0], *amounts[1])):
                    raise Other  # compared with nothing it may still fail
                if len(found) == 1:
                    return found[0]
                return Or(tuple(found)) if found else Settled(NO)
            case ast.Path():
                return Settled(YES if self._scope.spots(expression) else NO)
            case _:
                raise Other

    def _judged(self, test: ast.Comparison, path: ast.Expression) -> PairCondition:
        spots = self._scope.spots(path)
        return OneSided(spots[0].side, (self._scope.condition(test),)) if spots else Settled(NO)

    def _amounts(self, expression: ast.Expression) -> list[Amount]:
        """The numbers that an operand stands for: of a path all, of arithmetic one."""
        match expression:
            case ast.Path() | ast.Variable():
                return [Leaf(each.side, each.leaf) for each in self._scope.spots(expression)]
            case _:
                return [self._amount(expression)]

    def _amount(self, expression: ast.Expression) -> Amount:
        match expression:
            case ast.Path() | ast.Variable():
                spot = only(self._scope.spots(expression))
                return Leaf(spot.side, spot.leaf)
            case ast.Number() | ast.Negation(ast.Number()):
                return Constant(simple_number(expression))
            case ast.Negation(operand):
                return _computed("-", Constant(0.0), self._amount(operand))
            case ast.Arithmetic(first, rest):
                amount = self._amount(first)
                for operator, operand in rest:
                    amount = _computed(operator, amount, self._amount(operand))
                return amount
            case _:
                raise Other


def _computed(operator: ArithmeticOperator, left: Amount, right: Amount) -> Amount:
    """Between two literals arithmetic would be exact, and not that of doubles."""
    if operator == "div" or operator == "mod" or (isinstance(left, Constant) and isinstance(right, Constant)):
        raise Other
    return Computed(operator, left, right)


def _test(operator: ComparisonOperator, left: Amount, right: Amount) -> PairTest:
    match left, right:
        case Constant(), Constant():
            raise Other
        case Leaf(), Leaf() if operator in ("=", "!="):
            return SameText(operator, left, right)
        case _:
            return Compared(operator, left, right)


def _runs(fragments: Iterable[Fragment]) -> tuple[Run, ...]:
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
