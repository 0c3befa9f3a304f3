"""Whether literals can hold together for some item, by constructing an item of the values they ask for.

A claimed literal asks for a value (a pair of values) that fulfils it, its witness; a denied one forbids values.
With fewer values nothing more is forbidden, so if there is an item at all, there is one of witnesses alone.
Where a term has at most one value, all its witnesses are that value; where it may have many, each claim has its own.
So repeated elements need no logic of their own: `en >= 4` and `en <= 2` then have two witnesses, which do not
contradict each other.

1. Each witness gets the set of texts that its claims and the denials about its term leave (`texts.py`).
2. Witnesses that are claimed to be the same text become one.
3. Claims and denials between witnesses are decided for numbers (`_compared`).

A no is always right. A yes is right where no two texts are compared with each other, except for the density of strings.

Between witnesses, each value concerned is treated as a finite number or as one of the special kinds, in all
combinations that its set of texts allows; words and NaN then settle their literals, and numbers remain: variables with
bounds on their differences (`differences.py`).

* Numbers that are compared exactly are one variable each, and infinities are settled.
* A sum in doubles, `x op y + c`, compares the double nearest to x with that nearest to (the double of y) + c.
  For each value y and offset c that sum is a variable of its own, offset 0 being the double of y itself; it does not
  fall when c grows, and lies between the sums of the bounds of y. Nothing else is assumed about rounding.
* A distance in doubles, `x - y op c`, is one variable for each pair, or NaN, as that of two infinities.
* Two texts that are compared as texts are less, equal or greater, or dateTimes of the same moment; the literals about
the same two must leave one of these.
Consequences for a third text are not considered.

So a no is always right, and a yes is right for exact comparisons of numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import pairwise, product
from operator import or_
from typing import TypeAlias

from anabranch.logic import MIRRORED, OPPOSITE, Operator
from anabranch.predicate.claims import MOST_REMEMBERED, Effort, Literal, Several, Word, denied
from anabranch.predicate.differences import Bound, Unequal, feasible
from anabranch.predicate.formula import Compare, Difference, Term, terms_of
from anabranch.predicate.texts import (
    INF,
    MINUS_INF,
    NAN,
    NO_NUMBERS,
    NUMERIC,
    SPECIAL,
    WORD,
    Texts,
    ValueRange,
    fulfilling,
    number_of,
    span,
    texts_of,
)  # fmt: skip

_SHORTEST_MOMENT = len("2026-01-01T00:00:00")
_MOST_COMPARED = 100
_PER_STEP = 50
"""Operations on fractions per step."""

Witness: TypeAlias = int
Kind: TypeAlias = str | Fraction | None
"""How a value is treated: a special kind, a known number, or None for some finite number."""
Variable: TypeAlias = tuple[str, int, Fraction | int]
"""An exact number, a sum or a distance: its value, and its offset or other value."""

_LESS, _EQUAL, _GREATER, _SAME = 1, 2, 4, 8
"""How two texts compare; `_SAME` are dateTimes of one moment that are written differently (LAWS 2.3)."""
_ORDERS: dict[Operator, int] = {
    "<": _LESS,
    "<=": _LESS | _EQUAL | _SAME,
    "=": _EQUAL,
    "!=": _LESS | _GREATER | _SAME,
    ">=": _GREATER | _EQUAL | _SAME,
    ">": _GREATER,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A literal about two values."""

    left: Witness
    right: Witness
    literal: Literal
    difference: Difference

    @property
    def wanted(self) -> Operator:
        """The relation that the two must have if they are ordered."""
        return self.difference.op if self.literal.holds else OPPOSITE[self.difference.op]


def consistent(literals: Iterable[Literal], effort: Effort) -> bool:
    """Whether some item may fulfil all literals; TooLong where that takes more than the effort."""
    effort.spend()
    given = dict.fromkeys(literals)
    if any(each.holds and denied(each) in given for each in given):
        return False
    found = _Witnesses(given)
    if not found.possible or any(found.texts[each].empty for each in set(found.same)):
        return False
    pairs = [replace(pair, left=found.same[pair.left], right=found.same[pair.right]) for pair in found.pairs]
    return not pairs or _compared(pairs, found.texts, effort)


class _Witnesses:
    """The witnesses of some literals; filled by the constructor, then read only."""

    def __init__(self, literals: Collection[Literal]) -> None:
        self.texts: list[Texts] = []
        self.same: list[Witness] = []
        self.pairs: list[Pair] = []
        self.possible = True
        self._of: defaultdict[Term, list[Witness]] = defaultdict(list)
        self._allowed: dict[Term, Texts] = {}
        self._single = {each.about.term for each in literals if isinstance(each.about, Several) and not each.holds}
        for each in literals:
            self._forbid(each)
        for each in literals:
            if each.holds:
                self._claim(each)
        for term in {term for each in literals for term in _terms(each) if term.occurs == "one"}:
            self._witness(term)
        for each in literals:
            if isinstance(each.about, Difference) and not each.holds:
                for left, right in product(self._of[each.about.left], self._of[each.about.right]):
                    self.pairs.append(Pair(left, right, each, each.about))
        self._unite()

    def _forbid(self, literal: Literal) -> None:
        """Remove a denial's values from its term's."""
        if not literal.holds and isinstance(literal.about, Compare | Word):
            term = literal.about.term
            self._allowed[term] = self._texts(term).meet(_left(literal))

    def _claim(self, literal: Literal) -> None:
        match literal.about:
            case Compare(term) | Word(term):
                self._restrict(self._witness(term), _left(literal))
            case Several(term):
                self.possible = self.possible and term not in self._single
                self._witness(term)  # any second value will do
            case Difference(left, _, right):
                self.pairs.append(Pair(self._witness(left), self._witness(right), literal, literal.about))

    def _texts(self, term: Term) -> Texts:
        known = self._allowed.get(term)
        return texts_of(term.domain) if known is None else known

    def _witness(self, term: Term) -> Witness:
        """A new witness, or the existing one where the term has one value at most."""
        known = self._of[term]
        if not known or (term.occurs == "many" and term not in self._single):
            known.append(len(self.texts))
            self.texts.append(self._texts(term))
            self.same.append(known[-1])
        return known[-1]

    def _restrict(self, witness: Witness, texts: Texts) -> None:
        self.texts[witness] = self.texts[witness].meet(texts)

    def _unite(self) -> None:
        """Merge witnesses that are claimed to be the same text."""
        for pair in self.pairs:
            if pair.difference.offset is None and pair.wanted == "=":
                kept, gone = self.same[pair.left], self.same[pair.right]
                self._restrict(kept, self.texts[gone])
                self.same = [kept if each == gone else each for each in self.same]


def _terms(literal: Literal) -> tuple[Term, ...]:
    about = literal.about
    return terms_of(about) if isinstance(about, Compare | Difference) else (about.term,)


@lru_cache(maxsize=MOST_REMEMBERED)
def _left(literal: Literal) -> Texts:
    """The texts that a literal about one term leaves: to its witness if it is claimed, else to all values."""
    match literal.about:
        case Compare(_, op, str() as constant):
            return fulfilling(op if literal.holds else OPPOSITE[op], constant, with_words=False)
        case Compare(_, op, Fraction() as constant):
            fulfilled = fulfilling(op, constant, with_words=literal.loose)
            if literal.holds:
                return fulfilled
            return Texts(span(OPPOSITE[op], constant), SPECIAL - fulfilled.special)
        case _:
            return Texts(NO_NUMBERS, frozenset((WORD,))) if literal.holds else Texts(special=NUMERIC)


# --- between witnesses ----------------------------------------------------------------------------------------


def _compared(pairs: Sequence[Pair], texts: Sequence[Texts], effort: Effort) -> bool:
    """Whether kinds and numbers exist for which all pairs fulfil their literals."""
    concerned = sorted({each for pair in pairs for each in (pair.left, pair.right)})
    kinds = [list(_kinds(texts[each])) for each in concerned]
    cost = 1 + (len(pairs) + len(concerned) ** 3) // _PER_STEP
    for combination in product(*kinds):
        effort.spend(cost)
        if _Numbers(dict(zip(concerned, combination, strict=True)), texts).allow(pairs):
            return True
    return False


def _kinds(texts: Texts) -> Iterator[Kind]:
    if texts.choice is not None:
        known = {number_of(each) for each in texts.choice}
        if None not in known:
            yield from known
            return
    if not texts.numbers.empty:
        yield None
    yield from texts.special


class _Numbers:
    """Values of certain kinds; it collects the constraints of pairs on numbers and on the order of texts."""

    def __init__(self, kinds: dict[Witness, Kind], texts: Sequence[Texts]) -> None:
        self.kinds = kinds
        self.texts = texts
        self.variables: dict[Variable, int] = {}
        self.bounds: list[Bound] = []
        self.unequal: list[Unequal] = []
        self.orders: dict[tuple[Witness, Witness], int] = {}
        self.distances: defaultdict[Variable, list[tuple[Operator, Fraction, bool]]] = defaultdict(list)

    def allow(self, pairs: Sequence[Pair]) -> bool:
        """Whether all pairs can fulfil their literals."""
        if not all(map(self._takes, pairs)):
            return False
        for distance, said in self.distances.items():
            if not all((op == "!=") == holds for op, _, holds in said):  # else it may be NaN
                number = self._number(distance)
                for op, offset, holds in said:
                    self._bound(op if holds else OPPOSITE[op], number, 0, offset)
                if distance[1] == distance[2]:
                    self._bound("=", number, 0, Fraction(0))
        if not self.bounds and not self.unequal:
            return True
        self._limit()
        whole = [n for (what, each, _), n in self.variables.items() if what == "exact" and self.texts[each].whole]
        return feasible(len(self.variables) + 1, self.bounds, self.unequal, whole)

    def _takes(self, pair: Pair) -> bool:
        """Add the constraint of a pair; False if it contradicts the kinds or the order of texts."""
        left, right = self.kinds[pair.left], self.kinds[pair.right]
        op, offset, holds = pair.difference.op, pair.difference.offset, pair.literal.holds
        if offset is None and (op in ("=", "!=") or WORD in (left, right)):
            return self._order(pair)
        if WORD in (left, right):
            return pair.literal.loose == holds
        if NAN in (left, right):
            return (op == "!=") == holds
        arithmetic = "exact" if offset is None else pair.difference.arithmetic
        offset = offset or Fraction(0)
        match arithmetic:
            case "sum":
                sums = (self._number(("sum", pair.left, Fraction(0))), self._number(("sum", pair.right, offset)))
                self._bound(pair.wanted, *sums, Fraction(0))
            case "distance" if pair.left <= pair.right:
                self.distances["distance", pair.left, pair.right].append((op, _double(offset), holds))
            case "distance":
                self.distances["distance", pair.right, pair.left].append((MIRRORED[op], -_double(offset), holds))
            case "exact" if isinstance(left, str) or isinstance(right, str):
                a, b = (each if isinstance(each, str) else "" for each in (left, right))
                return bool(_infinite_order(a, b) & _ORDERS[op]) == holds
            case "exact":
                numbers = (self._number(("exact", pair.left, 0)), self._number(("exact", pair.right, 0)))
                self._bound(pair.wanted, *numbers, offset)
        return True

    def _order(self, pair: Pair) -> bool:
        """Add the order of two texts; False if none is left."""
        if pair.left <= pair.right:
            key, wanted = (pair.left, pair.right), _ORDERS[pair.wanted]
        else:
            key, wanted = (pair.right, pair.left), _ORDERS[MIRRORED[pair.wanted]]
        if key not in self.orders:
            self.orders[key] = _EQUAL if pair.left == pair.right else _possible_orders(*(self.texts[n] for n in key))
        self.orders[key] &= wanted
        return self.orders[key] != 0

    def _number(self, variable: Variable) -> int:
        """The number of a variable; 0 is the constant 0."""
        return self.variables.setdefault(variable, len(self.variables) + 1)

    def _bound(self, op: Operator, x: int, y: int, c: Fraction) -> None:
        """`x - y op c`."""
        match op:
            case "!=":
                self.unequal.append((x, y, c))
            case "=":
                self.bounds += (x, y, (c, 1)), (y, x, (-c, 1))
            case "<" | "<=":
                self.bounds.append((x, y, (c, int(op == "<="))))
            case ">" | ">=":
                self._bound(MIRRORED[op], y, x, -c)

    def _limit(self) -> None:
        """Add the constraints of each value's set of texts and of the order of sums."""
        sums: defaultdict[Witness, list[Fraction]] = defaultdict(list)
        for (what, each, offset), number in self.variables.items():
            kind = self.kinds[each]
            numbers = ValueRange(kind, kind) if isinstance(kind, Fraction) else self.texts[each].numbers
            if what == "exact":
                self._within(number, numbers)
            elif what == "sum":
                sums[each].append(Fraction(offset))
                if not isinstance(kind, str):
                    self._within(number, _rounded(numbers, Fraction(offset)))
        for each, offsets in sums.items():
            for less, more in pairwise(sorted(offsets)):
                self._bound("<=", self.variables["sum", each, less], self.variables["sum", each, more], Fraction(0))

    def _within(self, x: int, numbers: ValueRange[Fraction]) -> None:
        if numbers.low is not None:
            self._bound(">" if numbers.low_open else ">=", x, 0, numbers.low)
        if numbers.high is not None:
            self._bound("<" if numbers.high_open else "<=", x, 0, numbers.high)
        self.unequal += ((x, 0, each) for each in numbers.without)


def _possible_orders(first: Texts, second: Texts) -> int:
    """The possible orders of two texts, as texts or as dateTimes; fewer where both are among a few."""
    if first.choice is None or second.choice is None or len(first.choice) * len(second.choice) > _MOST_COMPARED:
        return _LESS | _EQUAL | _GREATER | _SAME
    pairs = product(first.choice, second.choice)
    return reduce(or_, {_possible_order(*pair) for pair in pairs}, 0)


def _possible_order(a: str, b: str) -> int:
    if a != b and all(len(each) >= _SHORTEST_MOMENT and "T" in each for each in (a, b)):
        return _LESS | _GREATER | _SAME  # their moments are not parsed here
    return _LESS if a < b else _EQUAL if a == b else _GREATER


def _infinite_order(a: str, b: str) -> int:
    """The order of two numbers of which one is infinite; a finite one has no name."""
    first, second = ({MINUS_INF: -1, INF: 1}.get(each, 0) for each in (a, b))
    return _LESS if first < second else _GREATER if first > second else _EQUAL


def _rounded(numbers: ValueRange[Fraction], offset: Fraction) -> ValueRange[Fraction]:
    """The range of the sums in doubles of an offset and the numbers of a range."""
    try:
        low = None if numbers.low is None else _sum(numbers.low, offset)
        high = None if numbers.high is None else _sum(numbers.high, offset)
    except OverflowError:
        return ValueRange()
    return ValueRange(low, high)


def _sum(number: Fraction, offset: Fraction) -> Fraction:
    return Fraction(float(number) + float(offset))


def _double(value: Fraction) -> Fraction:
    """The double nearest to a number; infinity is the power of two beyond all doubles."""
    try:
        return Fraction(float(value))
    except OverflowError:
        return Fraction(2**1024 if value > 0 else -(2**1024))
