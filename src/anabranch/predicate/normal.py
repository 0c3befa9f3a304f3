"""Predicates written simply: a disjunction of conjunctions, without what says nothing new.

`and` and `or` distribute over each other and `not` goes down to the comparisons also with errors between yes and no, so
every predicate is an `or` of conjunctions of comparisons and denied comparisons, with the same verdict on every item.
Where that would be more than MOST_CONJUNCTIONS, a part stays as it is, one member of a conjunction like any other:
nothing here asks what a member looks like inside.

A denied comparison is turned into its opposite where that means the same: for terms that have exactly one value, which
is a number or compared as text; a distance may be NaN also then, that of two numbers beyond all doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from anabranch.predicate.formula import (
    EVERYTHING,
    NOTHING,
    OPPOSITE,
    And,
    Compare,
    Difference,
    Not,
    Or,
    Predicate,
    and_,
    not_,
    or_,
)
from anabranch.predicate.sets import implies
from anabranch.predicate.terms import Integers, Reals, Term

MOST_CONJUNCTIONS = 64
MOST_THINNED = 24

Conjunction: TypeAlias = tuple[Predicate, ...]


def simplify(predicate: Predicate) -> Predicate:
    """An equivalent predicate: a disjunction of conjunctions in which nothing is said that follows from the rest."""
    return or_(*(and_(*each) for each in disjuncts(predicate)))


def minus(p: Predicate, q: Predicate) -> Predicate:
    """What holds for the items of p that are not in q, written simply."""
    return simplify(and_(p, not_(q)))


def disjuncts(predicate: Predicate) -> tuple[Conjunction, ...]:
    """The conjunctions of which a predicate is the disjunction, none of them empty or within the others."""
    found = [each for each in map(thinned, conjunctions(predicate)) if not implies(and_(*each), NOTHING)]
    kept = list(dict.fromkeys(found))
    for each in reversed(tuple(kept)):
        others = [and_(*other) for other in kept if other is not each]
        if others and implies(and_(*each), or_(*others)):
            kept.remove(each)
    return ((),) if implies(EVERYTHING, or_(*(and_(*each) for each in kept))) else tuple(kept)


def thinned(conjunction: Sequence[Predicate]) -> Conjunction:
    """The conjunction without the members that follow from the others, the later ones first; a long one as it is."""
    kept = list(dict.fromkeys(conjunction))
    if len(kept) > MOST_THINNED or any(isinstance(each, And | Or) for each in kept):
        return tuple(kept)
    for each in reversed(tuple(kept)):
        others = [other for other in kept if other is not each]
        if implies(and_(*others), each):
            kept = others
    return tuple(kept)


def conjunctions(predicate: Predicate, holds: bool = True) -> list[Conjunction]:
    """The conjunctions of which a predicate, or its denial, is the disjunction, as they come."""
    match predicate:
        case Not(part):
            return conjunctions(part, not holds)
        case And(parts) | Or(parts):
            inner = [conjunctions(part, holds) for part in parts]
            if isinstance(predicate, Or) == holds:
                return [each for part in inner for each in part]
            if prod(map(len, inner)) > MOST_CONJUNCTIONS:
                return [tuple(part if holds else not_(part) for part in parts)]
            return [tuple(dict.fromkeys(member for each in one for member in each)) for one in product(*inner)]
        case _:
            return [(predicate if holds else _denied(predicate),)]


def _denied(atom: Compare | Difference) -> Predicate:
    match atom:
        case Compare(term, op, constant) if term.occurs == "one" and (isinstance(constant, str) or _number(term)):
            return Compare(term, OPPOSITE[op], constant)
        case Difference(left, op, right, offset, arithmetic) if left.occurs == right.occurs == "one" and (
            (_number(left) and _number(right) and arithmetic != "distance") or (offset is None and op in ("=", "!="))
        ):
            return Difference(left, OPPOSITE[op], right, offset, arithmetic)
        case _:
            return Not(atom)


def _number(term: Term) -> bool:
    return isinstance(term.domain, Reals | Integers)
