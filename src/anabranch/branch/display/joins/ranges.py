"""Ranges in a join: which entries of another stream an entry can be joined with, by the order of numbers.

Where `$x/a < $y/b`, or `$x/a - $y/b <= 10`, is one of the conditions that must all hold, an entry of `$x` need only be
compared with entries of `$y` whose numbers lie in a range around its own; the bounds of all such conditions on the same
two paths are taken together.
For all others the condition is false, and nothing in it fails: so words, NaN, infinite and very large numbers meet all
entries, and in a condition that computes so do several values, which are an error there, and none.
A condition computes in doubles, so ranges are wider than what it says, by more than rounding can be.

`range_between` finds the range in a query, and `RangeMeeting` is an index of the numbers of two streams' entries.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.branch.display.joins.keys import ANY, is_path_from, pairs_between
from anabranch.language import ast
from anabranch.values.atomic import Atomic, Untyped, finite_value
from anabranch.values.numbers import read_fraction, write_fraction

LARGEST = Fraction(10**15)
"""Numbers from here on, and constants in conditions, are left to the evaluation: doubles are too far apart there."""
_MOST_TERMS = 8
_ROUNDING = Fraction(1, 2**40)
"""More than all operations of a condition can be wrong by, in relation to the largest number in it."""


@dataclass(frozen=True, slots=True)
class JoinRange:
    """The expressions that give the numbers of an entry, and of an entry of the other stream, and their distance."""

    own: ast.Expression
    other: ast.Expression
    least: Fraction | None = None
    """At least so much is a number of the other stream larger than the own; None where nothing is said."""
    most: Fraction | None = None
    computes: bool = False
    """Whether a condition computes with the numbers, which must be single values then."""

    def written(self, values: Sequence[Atomic]) -> tuple[str, ...] | None:
        """The numbers that values are; None where one is no usual number, or they cannot be computed with."""
        if self.computes and len(values) != 1:
            return None
        numbers = [finite_value(each) if isinstance(each, Untyped) else None for each in values]
        found = tuple(write_fraction(each) for each in numbers if each is not None and abs(each) < LARGEST)
        return found if len(found) == len(values) else None

    def with_bounds(self, other: JoinRange) -> JoinRange:
        """Both bounds at once, on the same two expressions."""
        least = [each for each in (self.least, other.least) if each is not None]
        most = [each for each in (self.most, other.most) if each is not None]
        computes = self.computes or other.computes
        return replace(self, least=max(least, default=None), most=min(most, default=None), computes=computes)


@dataclass(frozen=True, slots=True)
class _Sum:
    """Paths with their signs, and a constant."""

    terms: tuple[tuple[int, ast.Expression], ...]
    constant: Fraction = Fraction(0)
    largest: Fraction = Fraction(0)
    """The largest constant that was written."""

    def plus(self, other: _Sum, sign: int) -> _Sum:
        turned = tuple((sign * each, term) for each, term in other.terms)
        return _Sum((*self.terms, *turned), self.constant + sign * other.constant, max(self.largest, other.largest))


def _sum(expression: ast.Expression) -> _Sum | None:
    """An expression as a sum; None where it is something else."""
    match expression:
        case ast.Number():
            return _Sum((), expression.exact, abs(expression.exact))
        case ast.Path() | ast.Variable():
            return _Sum(((1, expression),))
        case ast.Arithmetic(first, rest):
            found = _sum(first)
            for operator, operand in rest:
                term = _sum(operand) if operator in ("+", "-") else None
                if found is None or term is None or len(found.terms) > _MOST_TERMS:
                    return None
                found = found.plus(term, 1 if operator == "+" else -1)
            return found
        case _:
            return None


def range_between(flwor: ast.Flwor, stream: str, other: str) -> JoinRange | None:
    """The range in which entries of a stream meet those of another, each read once."""
    for pair in pairs_between(flwor, stream, other):
        found: dict[tuple[ast.Expression, ast.Expression], JoinRange] = {}
        for one, two, bound in _bounds(pair.conditions, pair.variable, pair.other_variable) if pair.is_alone else ():
            each = replace(bound, own=pair.own(one), other=pair.other(two))
            found[one, two] = found[one, two].with_bounds(each) if (one, two) in found else each
        if found:
            return max(found.values(), key=lambda each: (each.least is not None) + (each.most is not None))
    return None


def _bounds(
    conditions: Iterable[ast.Expression], own: str, other: str
) -> Iterator[tuple[ast.Expression, ast.Expression, JoinRange]]:
    """The bounds in some conditions: the paths from the two variables, and their distance."""
    for condition in conditions:
        if not isinstance(condition, ast.Comparison) or condition.operator not in ("<", "<=", ">", ">="):
            continue
        left, right = _sum(condition.left), _sum(condition.right)
        if left is None or right is None:
            continue
        at_most = left.plus(right, -1) if condition.operator in ("<", "<=") else right.plus(left, -1)  # 0
        if at_most.largest >= LARGEST or len(at_most.terms) != 2:
            continue
        for (sign, one), (opposite, two) in (at_most.terms, at_most.terms[::-1]):
            if sign == -opposite and is_path_from(one, own) and is_path_from(two, other):
                computes = any(isinstance(each, ast.Arithmetic) for each in (condition.left, condition.right))
                slack = (at_most.largest + 1) * _ROUNDING
                least, most = (at_most.constant - slack, None) if sign > 0 else (None, slack - at_most.constant)
                yield one, two, JoinRange(one, two, least, most, computes)


class RangeMeeting:
    """The numbers of the entries of one stream (`own`) and of another; the evaluator adds them by `put`."""

    def __init__(self, key: JoinRange) -> None:
        self._key = key
        self.own = SortedKeys()
        self.other = SortedKeys()

    def met_by_other(self, entry: int) -> set[int]:
        """The own entries that an entry of the other stream meets."""
        least, most = self._key.least, self._key.most
        lowest, highest = None if most is None else -most, None if least is None else -least
        return self.own.around(self.other.keys.get(entry, ()), lowest, highest)

    def met_by_own(self, entry: int) -> set[int]:
        """The entries of the other stream that an own entry meets."""
        return self.other.around(self.own.keys.get(entry, ()), self._key.least, self._key.most)


class SortedKeys:
    """The numbers of some entries, as written, and the entries in the order of their numbers."""

    def __init__(self) -> None:
        self.keys: dict[int, tuple[str | None, ...]] = {}
        self._sorted: list[tuple[Fraction, int]] = []
        self._meeting_all: set[int] = set()

    def put(self, entry: int, keys: Iterable[str | None]) -> None:
        """Set the numbers of an entry; none for one that is gone."""
        for key in self.keys.pop(entry, ()):
            if key is not ANY:
                del self._sorted[bisect_left(self._sorted, (read_fraction(key), entry))]
        self._meeting_all.discard(entry)
        found = tuple(dict.fromkeys(keys))
        if found:
            self.keys[entry] = found
        for key in found:
            if key is ANY:
                self._meeting_all.add(entry)
            else:
                insort(self._sorted, (read_fraction(key), entry))

    def around(self, keys: Iterable[str | None], least: Fraction | None, most: Fraction | None) -> set[int]:
        """The entries with a number in the range around one of these, and those that meet all."""
        if ANY in keys:
            return set(self.keys)
        found: set[int] = set()
        for key in keys:
            assert key is not ANY
            number = read_fraction(key)
            slack = abs(number) * _ROUNDING
            first = 0 if least is None else bisect_left(self._sorted, (number + least - slack, -1))
            last = None if most is None else bisect_right(self._sorted, (number + most + slack, _LAST))
            found.update(entry for _, entry in self._sorted[first:last])
        return found | self._meeting_all if self.keys else found


_LAST = 1 << 62
"""Behind all entries."""
