"""Boxes: sets of items divided into disjoint conjunctions, and combined again.

An accent's description is a conjunction of comparisons and denied comparisons, the *literals* (LAWS 4.4), so any other
set becomes several accents with disjoint descriptions: each item is described by one, and their order does not matter.
A *box* is such a conjunction, as a tuple of literals.

* Whether some item is in a box (`possible`) is decided term by term, since terms are independent of each other.
A term that may be missing, and that only denials name, is missing: `not(a = 'FOO')` also describes items without `a`.
The texts of a listed domain are tried; intervals and texts are decided in `predicate/`.
* A conjunction of sets is their boxes multiplied out; a disjunction is, of each part, what is not in the earlier ones.
  Box without box is one box per literal: `not(l1)`, `l1 and not(l2)`, ...
* With a path hidden, a set is its boxes without their comparisons of that path: `for_some`, and `for_all` by two
negations.

Cost: boxes that pin a term to different constants (`s = 1`, `s = 2`), or give it different ranges, are known to be
disjoint without being compared (`index.py`), so a union of ten thousand of them costs ten thousand steps.
Sets that overlap in many terms can have exponentially many boxes: a division that takes more than MOST_STEPS tests is
abandoned with a StreamError, and nothing larger than MOST_COMBINED boxes is shortened.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice

from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import stands
from anabranch.errors import StreamError
from anabranch.logic import OPPOSITE
from anabranch.predicate import (
    NOTHING,
    And,
    Compare,
    Finite,
    Integers,
    Not,
    Or,
    Predicate,
    Term,
    and_,
    implies,
    not_,
    or_,
    satisfiable,
)
from anabranch.predicate.formula import atoms
from anabranch.stream.path import Path


def is_conjunction(items: Predicate) -> bool:
    """Whether a set can be described by one accent (LAWS 4.4)."""
    match items:
        case And(parts):
            return all(map(is_literal, parts))
        case _:
            return is_literal(items)


def is_literal(items: Predicate) -> bool:
    """Whether a set is one comparison, or a denied one."""
    return isinstance(items.part if isinstance(items, Not) else items, Compare)


def literals(conjunction: Predicate) -> tuple[Predicate, ...]:
    """The literals of a conjunction."""
    return conjunction.parts if isinstance(conjunction, And) else (conjunction,)


def term_of(literal: Predicate) -> Term:
    """The term of a comparison."""
    match literal:
        case Compare(term) | Not(Compare(term)):
            return term
        case _:
            raise AssertionError(literal)


def readable(conjunction: Predicate) -> Predicate:
    """A conjunction for people: positive literals first, by the names of the paths."""
    plain = map(_plainly, literals(conjunction))
    return and_(*sorted(plain, key=lambda each: (isinstance(each, Not), term_of(each).path)))


def _plainly(literal: Predicate) -> Predicate:
    """`not(wid <= 1)` is `wid >= 2` where every item has a whole number there."""
    match literal:
        case Not(Compare(term, op, Fraction() as bound)) if term.occurs == "one" and isinstance(term.domain, Integers):
            return _plainly(Compare(term, OPPOSITE[op], bound))
        case Compare(term, ">", Fraction() as bound) if term.occurs == "one" and isinstance(term.domain, Integers):
            return Compare(term, ">=", Fraction(math.floor(bound) + 1))
        case Compare(term, "<", Fraction() as bound) if term.occurs == "one" and isinstance(term.domain, Integers):
            return Compare(term, "<=", Fraction(math.ceil(bound) - 1))
        case _:
            return literal


def possible(box: Box) -> bool:
    """Whether some item is in the box."""
    of: dict[Term, list[Predicate]] = {}
    for each in box:
        of.setdefault(term_of(each), []).append(each)
    return all(_possible(term, tuple(literals)) for term, literals in of.items())


@lru_cache(maxsize=100_000)
def _possible(term: Term, literals: Box) -> bool:
    """Whether some value of one term, or its absence, fulfils all literals."""
    if term.occurs == "optional" and all(isinstance(each, Not) for each in literals):
        return True
    if isinstance(term.domain, Finite) and term.occurs == "one":
        return _choice(term.domain, literals)
    return satisfiable(and_(*literals))


def _choice(domain: Finite, literals: Sequence[Predicate]) -> bool:
    """Whether some text of a domain fulfils all literals; literals about one constant are looked up."""
    denied: set[object] = set()
    wanted: set[object] = set()
    others: list[Predicate] = []
    for each in literals:
        match each:
            case Compare(_, "=", constant):
                wanted.add(constant)
            case Not(Compare(_, "=", constant)):
                denied.add(constant)
            case _:
                others.append(each)
    spelt = _spelt(domain)
    return any(
        wanted <= {text, value} and denied.isdisjoint((text, value)) and all(_holds(text, each) for each in others)
        for text, value in (spelt.get(next(iter(wanted)), ()) if wanted else spelt[None])
    )


@lru_cache(maxsize=100)
def _spelt(domain: Finite) -> dict[object, list[tuple[str, object]]]:
    """The texts of a domain with their numbers: all under None, and each under its text and its number."""
    found: dict[object, list[tuple[str, object]]] = {None: []}
    for text in sorted(domain.texts):
        value = number(text)
        for key in (None, text) if value is None else (None, text, value):
            found.setdefault(key, []).append((text, text if value is None else value))
    return found


def _holds(text: str, literal: Predicate) -> bool:
    match literal:
        case Not(part):
            return not _holds(text, part)
        case Compare(_, op, constant):
            return stands(text, op, constant)
        case _:
            raise AssertionError(literal)


MOST_STEPS = 20_000


class Dividing:
    """One division into boxes; it counts its tests."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def possible(self, box: Box) -> bool:
        self.left -= 1 + len(box) // 10
        if self.left < 0:
            raise StreamError("the described items fall into too many parts")
        return possible(box)

    def boxes(self, items: Predicate, holds: bool) -> list[Box]:
        """The boxes of a set, or of its complement."""
        match items:
            case Not(part):
                return self.boxes(part, not holds)
            case And(parts) | Or(parts):
                return self.meet(parts, holds) if isinstance(items, And) == holds else self.join(parts, holds)
            case _:
                box: Box = (items if holds else Not(items),)
                return [box] if self.possible(box) else []

    def meet(self, parts: Sequence[Predicate], holds: bool) -> list[Box]:
        """The boxes of an intersection; plain comparisons first, before products of boxes."""
        plain = dict.fromkeys(part if holds else not_(part) for part in parts if is_literal(part))
        found: list[Box] = [tuple(plain)] if self.possible(tuple(plain)) else []
        for part in parts:
            if found and not is_literal(part):
                inner = self.boxes(part, holds)
                merged = (tuple(dict.fromkeys((*one, *other))) for one in found for other in inner)
                found = [box for box in merged if self.possible(box)]
        return found

    def join(self, parts: Sequence[Predicate], holds: bool) -> list[Box]:
        """The boxes of a union: of each part what is not in the earlier ones."""
        found: Index[None] = Index()
        for part in parts:
            for box in self.boxes(part, holds):
                rest = [box]
                for _, other, _ in sorted(found.near(box), key=lambda each: each[0]):
                    rest = [left for each in rest for left in self.without(each, other)]
                for each in rest:
                    found.add(each, None)
        return [box for _, (box, _) in found.items()]

    def without(self, box: Box, other: Box) -> list[Box]:
        """A box without another."""
        if not self.possible(tuple(dict.fromkeys((*box, *other)))):
            return [box]
        rest: list[Box] = []
        inside = box
        for literal in other:
            if literal in inside:
                continue
            outside = (*inside, not_(literal))
            if self.possible(outside):
                rest.append(outside)
            inside = (*inside, literal)
        return rest

    def rest(self, box: Box, others: Sequence[Box]) -> list[Box]:
        """A box without others: many boxes that differ from it in one comparison are subtracted at once.

        The remainder is split by the comparison that most of the others have: where it does not hold, and where it
        does; so the parts of one division cost as much as their number, not as their number of pairs.
        """
        known = set(box)
        left = [tuple(literal for literal in other if literal not in known) for other in others]
        denied = [not_(other[0]) for other in left if len(other) == 1]
        box = tuple(dict.fromkeys((*box, *denied)))
        if () in left or not self.possible(box):
            return []
        larger = [other for other in left if len(other) > 1 and (not denied or self.possible((*box, *other)))]
        if not larger:
            return [box]
        [(most, _)] = Counter(literal for other in larger for literal in other).most_common(1)
        found: list[Box] = []
        for inner in ((*box, not_(most)), (*box, most)):
            if self.possible(inner):
                found += self.rest(inner, [other for other in larger if self.possible((*inner, *other))])
        return found

    def left_over(self, box: Box, others: Sequence[Box]) -> Box | None:
        """Some part of a box that is in none of the others.

        Only one is searched: first the part that each of the others misses by its first, or by its last comparison,
        which exists if they are far from covering the box; then depth first.
        """
        known = set(box)
        others = [tuple(literal for literal in other if literal not in known) for other in others]
        single = [other[0] for other in others if len(other) == 1]
        box = tuple(dict.fromkeys((*box, *map(not_, single))))
        if () in others or not self.possible(box):
            return None
        larger = [other for other in others if len(other) > 1]
        for end in (0, -1):
            missing = tuple(dict.fromkeys((*box, *(not_(other[end]) for other in larger))))
            if self.possible(missing):
                return missing
        pending = [(box, 0)]
        while pending:
            box, at = pending.pop()
            if at == len(larger):
                return box
            pending += [(each, at + 1) for each in reversed(self.without(box, larger[at]))]
        return None


MOST_COMBINED = 32
MOST_REMEMBERED = 50
"""The most comparisons of a set for which `combined` is cached."""


def divided(items: Predicate) -> tuple[Predicate, ...]:
    """A few short disjoint conjunctions with exactly these items; none for the empty set."""
    found = [thinned(box) for box in boxes(items)]
    if 1 < len(found) <= MOST_COMBINED:
        wider = [thinned(box) for box in boxes(_widened(found))]
        if (len(wider), sum(map(len, wider))) < (len(found), sum(map(len, found))):
            found = wider
    return tuple(and_(*box) for box in found)


def combined(items: Predicate) -> Predicate:
    """The same items in fewer and wider conjunctions, where there are not too many.

    >>> from anabranch.algebra.accents.sets import description_of, items_of
    >>> from anabranch.stream.description import parse
    >>> parts = items_of(parse("s = 1 and t < 5 or s = 1 and not(t < 5)"))
    >>> print(description_of(combined(parts)))
    s = 1
    """
    few = len(list(islice(atoms(items), MOST_REMEMBERED + 1))) <= MOST_REMEMBERED
    return _remembered(items) if few else _combined(items)


def _combined(items: Predicate) -> Predicate:
    found = [thinned(box) for box in boxes(items)]
    return _widened(found) if 1 < len(found) <= MOST_COMBINED else or_(*(and_(*box) for box in found))


_remembered = lru_cache(maxsize=10_000)(_combined)
"""Many operators combine the same few sets."""


def _widened(found: Sequence[Box]) -> Predicate:
    """A union of boxes with each as wide as possible, without boxes that the others contain."""
    whole = or_(*(and_(*box) for box in found))
    wide: list[Box] = []
    for box in found:
        for literal in reversed(box):
            wider = tuple(each for each in box if each != literal)
            if implies(and_(*wider), whole):
                box = wider
        wide.append(box)
    kept = list(dict.fromkeys(wide))
    for box in tuple(kept):
        others = [and_(*each) for each in kept if each is not box]
        if others and implies(and_(*box), or_(*others)):
            kept.remove(box)
    return or_(*(and_(*box) for box in kept))


def boxes(items: Predicate) -> list[Box]:
    """Disjoint boxes with exactly these items, not shortened."""
    return Dividing().boxes(items, True)


def empty(items: Predicate) -> bool:
    """Whether no item is in the set; exact, unless it takes too many steps (StreamError)."""
    return not boxes(items)


def within(items: Predicate, others: Predicate) -> bool:
    """Whether all items of one set are in another: no box has a part outside the other's."""
    if items == others:
        return True
    parts = boxes(others)
    return all(left_over(box, parts) is None for box in boxes(items))


def without(items: Predicate, others: Predicate) -> Predicate:
    """The items of one set that are not in another."""
    return items if others == NOTHING else combined(and_(items, not_(others)))


def for_some(items: Predicate, hidden: Iterable[Path]) -> Predicate:
    """The items that are in the set for some values of the hidden paths."""
    gone = frozenset(hidden)
    return combined(or_(*(and_(*(each for each in box if term_of(each).path not in gone)) for box in boxes(items))))


def for_all(items: Predicate, hidden: Iterable[Path]) -> Predicate:
    """The items that are in the set for all values of the hidden paths."""
    return combined(not_(for_some(not_(items), hidden)))


def left_over(box: Box, others: Sequence[Box]) -> Box | None:
    """Some part of a box that is in none of the others; None if they cover it."""
    return Dividing().left_over(box, others)


def rest(box: Box, others: Sequence[Box]) -> list[Box]:
    """A box without others, as disjoint boxes."""
    return Dividing().rest(box, others)


def inside(box: Box, other: Box) -> bool:
    """Whether one box lies in another."""
    return all(literal in box or not possible((*box, not_(literal))) for literal in other)


def met(box: Box, other: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty."""
    both = tuple(dict.fromkeys((*box, *other)))
    return both if possible(both) else None


def thinned(box: Box) -> Box:
    """The box without the comparisons that follow from the others, later ones first; a long one unchanged."""
    if len(box) > MOST_COMBINED:
        return box
    kept = list(box)
    for each in reversed(box):
        others = [other for other in kept if other != each]
        if not possible((*others, not_(each))):
            kept = others
    return tuple(kept)
