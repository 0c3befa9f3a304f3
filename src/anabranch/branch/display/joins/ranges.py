"""Ranges in a join: which entries of another stream an entry can be joined with, by the order of numbers.

Where `$x/a < $y/b`, `$x/a - $y/b <= 10`, or a distance below a constant (`distances.py`) is one of the conditions that
must all hold, an entry of `$x` need only be compared with entries of `$y` whose numbers lie in a range around its own;
the bounds of all such conditions on the same two paths are taken together.
For all others the condition is false, and nothing in it fails: so words, NaN, infinite and very large numbers meet all
entries, and in a condition that computes so do several values, which are an error there, and none; and so does an entry
of which the condition computes with anything else that is no single number.
A condition computes in doubles, so ranges are wider than what it says, by more than rounding can be.

`range_between` finds the range in a query, and `ranges_between` all of them; `RangeMeeting` is an index of the numbers
of two streams' entries.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.branch.display.joins.distances import Inequality, inequalities
from anabranch.branch.display.joins.keys import ANY, JoinKey, JoinPair, Meeting, pairs_between
from anabranch.language import ast
from anabranch.language.equalities import is_path_from
from anabranch.values.atomic import Atomic, Untyped, finite_value
from anabranch.values.numbers import read_fraction, write_fraction

LARGEST = Fraction(10**15)
"""Numbers from here on, and constants in conditions, are left to the evaluation: doubles are too far apart there."""
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
    own_beside: tuple[ast.Expression, ...] = ()
    """What else of an entry a condition computes with, which must be single numbers, too."""
    other_beside: tuple[ast.Expression, ...] = ()

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
        return replace(
            self,
            least=max(least, default=None),
            most=min(most, default=None),
            computes=self.computes or other.computes,
            own_beside=tuple(dict.fromkeys((*self.own_beside, *other.own_beside))),
            other_beside=tuple(dict.fromkeys((*self.other_beside, *other.other_beside))),
        )


def range_between(
    flwor: ast.Flwor,
    stream: str,
    other: str,
    functions: Mapping[str, ast.Function] | None = None,
    shadowed: Collection[str] = (),
) -> JoinRange | None:
    """The range in which entries of a stream meet those of another, each read once: that with most bounds."""
    found = ranges_between(flwor, stream, other, functions, shadowed)
    return max(found, key=lambda each: (each.least is not None) + (each.most is not None), default=None)


def ranges_between(
    flwor: ast.Flwor,
    stream: str,
    other: str,
    functions: Mapping[str, ast.Function] | None = None,
    shadowed: Collection[str] = (),
) -> tuple[JoinRange, ...]:
    """The ranges in all of which entries of a stream meet those of another: one for each coordinate, say.

    `functions` are those of the query, and `shadowed` the names of those that a user has registered.
    """
    for pair in pairs_between(flwor, stream, other):
        found: dict[tuple[ast.Expression, ast.Expression], JoinRange] = {}
        for condition in pair.conditions:
            for each in inequalities(condition, functions or {}, shadowed):
                for one, two, bound in _bounds(each, pair):
                    found[one, two] = found[one, two].with_bounds(bound) if (one, two) in found else bound
        if found:
            return tuple(found.values())
    return ()


def _bounds(given: Inequality, pair: JoinPair) -> Iterator[tuple[ast.Expression, ast.Expression, JoinRange]]:
    """The bounds of an inequality: the paths from the two variables, and their distance."""
    at_most = given.sum
    if at_most.largest >= LARGEST or len(at_most.terms) != 2:
        return
    others = [each for each in dict.fromkeys(given.others) if each not in at_most.paths]
    own = [each for each in others if is_path_from(each, pair.variable)]
    other = [each for each in others if is_path_from(each, pair.other_variable)]
    if len(own) + len(other) < len(others):
        return  # it computes with something else, too
    for (sign, one), (opposite, two) in (at_most.terms, at_most.terms[::-1]):
        if sign == -opposite and is_path_from(one, pair.variable) and is_path_from(two, pair.other_variable):
            slack = (at_most.largest + 1) * _ROUNDING
            least, most = (at_most.constant - slack, None) if sign > 0 else (None, slack - at_most.constant)
            beside = tuple(map(pair.own, own)), tuple(map(pair.other, other))
            yield one, two, JoinRange(pair.own(one), pair.other(two), least, most, given.computes, *beside)


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


def meeting_by(key: JoinKey | JoinRange) -> Meeting | RangeMeeting:
    """An empty index by a key or a range."""
    return RangeMeeting(key) if isinstance(key, JoinRange) else Meeting()


def keys_by(
    key: JoinKey | JoinRange, atoms: Callable[[ast.Expression], Sequence[Atomic] | None], *, is_own: bool
) -> Collection[str | None]:
    """What an index files an entry under, of the first stream or of the other.

    `atoms` gives what an expression finds in the entry, or None where it fails.
    """
    beside = (key.own_beside if is_own else key.other_beside) if isinstance(key, JoinRange) else ()
    written: Collection[str] = ()
    for expression in (*beside, key.own if is_own else key.other):
        values = atoms(expression)
        found = None if values is None else key.written(values)
        if found is None:
            return (ANY,)
        written = found
    return written


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
