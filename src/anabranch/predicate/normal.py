"""Predicates in simple form: a disjunction of conjunctions, without redundant parts.

`and` and `or` distribute over each other and `not` can be pushed down to comparisons, also with errors, so
every predicate is an `or` of conjunctions of comparisons and denied comparisons, with the same verdict on every item.
Where that would be more than MOST_CONJUNCTIONS, a part stays as it is, as one member of a conjunction: no function here
looks inside a member.

A denied comparison is replaced by its opposite where that is equivalent: for terms with exactly one value, which is a
number or compared as text; the distance of two numbers beyond all doubles may be NaN even then.

*Relaxation* is one predicate that has all items of several (sharing paper, 4.3: what a widened stream selects).
It is their union, and as a disjunction of conjunctions it grows with every subscription that joins.
Two conjunctions become one where that adds no item (`3 < en <= 5` and `4 < en <= 6`), and, where there are more than
a bound, also where it does: into their *hull*, the conjunction of those of their members that follow from both, which
for two boxes is the least box around them.

    >>> en = Term("", Path.parse("en"), "one")
    >>> low, high = compare(en, "<=", 2), and_(compare(en, ">", 3), compare(en, "<", 5))
    >>> print(relax(low, high), "/", relax(low, high, most=1))
    en <= 2 or en > 3 and en < 5 / en < 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

from anabranch.logic import EVERYTHING, NOTHING, OPPOSITE, And, Not, Or
from anabranch.predicate.formula import (
    Atom,
    Compare,
    Difference,
    Integers,
    Predicate,
    Reals,
    Term,
    and_,
    not_,
    or_,
    terms,
)  # fmt: skip
from anabranch.predicate.sets import implies

MOST_CONJUNCTIONS = 64
MOST_THINNED = 24
MOST_DISJUNCTS = 16

Conjunction: TypeAlias = tuple[Predicate, ...]


def simplify(predicate: Predicate) -> Predicate:
    """An equivalent disjunction of conjunctions without redundant parts."""
    return or_(*(and_(*each) for each in disjuncts(predicate)))


def disjuncts(predicate: Predicate) -> tuple[Conjunction, ...]:
    """The conjunctions of an equivalent disjunction, none of them empty or contained in the others."""
    found = [each for each in map(thinned, conjunctions(predicate)) if not implies(and_(*each), NOTHING)]
    kept = list(dict.fromkeys(found))
    for each in reversed(tuple(kept)):
        others = [and_(*other) for other in kept if other is not each]
        if others and implies(and_(*each), or_(*others)):
            kept.remove(each)
    return ((),) if implies(EVERYTHING, or_(*(and_(*each) for each in kept))) else tuple(kept)


def thinned(conjunction: Sequence[Predicate]) -> Conjunction:
    """The conjunction without members that follow from the others, later ones first; a long one unchanged."""
    kept = list(dict.fromkeys(conjunction))
    if len(kept) > MOST_THINNED or any(isinstance(each, And | Or) for each in kept):
        return tuple(kept)
    for each in reversed(tuple(kept)):
        others = [other for other in kept if other is not each]
        if implies(and_(*others), each):
            kept = others
    return tuple(kept)


def conjunctions(predicate: Predicate, holds: bool = True) -> list[Conjunction]:
    """The conjunctions of an equivalent disjunction of a predicate, or of its denial, not simplified."""
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


def _denied(atom: Atom) -> Predicate:
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


# --- relaxation -----------------------------------------------------------------------------------------------


def relax(*parts: Predicate, most: int = MOST_DISJUNCTS) -> Predicate:
    """The union of the parts, or more where the union would be more than `most` conjunctions.

    The first part is kept as it is while there is room: most calls add to an earlier result.
    """
    found: list[Conjunction] = []
    for part in parts:
        new = conjunctions(part)
        if not found and len(new) <= most:
            found = new
            continue
        for conjunction in new:
            _add(found, thinned(conjunction), most)
    return or_(*(and_(*each) for each in found))


def hull(*parts: Predicate) -> Predicate:
    """One conjunction that contains all items of the parts."""
    found = [each for part in parts for each in disjuncts(part)]
    if not found:
        return or_()
    around = found[0]
    for each in found[1:]:
        around = _around(around, each)
    return and_(*around)


def _add(found: list[Conjunction], new: Conjunction, most: int) -> None:
    """Add a conjunction to the union, by itself or merged with another one into their hull."""
    if implies(and_(*new), or_(*(and_(*each) for each in found))):
        return
    for partner in [each for each in found if _differ_in_one_term(each, new)]:
        joined = _around(partner, new)
        if implies(and_(*joined), or_(and_(*partner), and_(*new))):
            _replace(found, partner, joined)
            found.remove(joined)
            _add(found, joined, most)  # it may now meet a third
            return
    if len(found) < most:
        found.append(new)
    else:
        hulls = [(each, _around(each, new)) for each in found]
        _replace(found, *max(hulls, key=lambda pair: len(pair[1])))  # the most restrictive hull


def _differ_in_one_term(first: Conjunction, second: Conjunction) -> bool:
    """Whether a hull may add nothing: that of two boxes that differ in several directions always adds items."""
    return len({terms(each) for each in {*first} ^ {*second}}) <= 1


def _replace(found: list[Conjunction], partner: Conjunction, joined: Conjunction) -> None:
    """Replace a conjunction, and all others within it, by a wider one."""
    found.remove(partner)
    found[:] = [each for each in found if not implies(and_(*each), and_(*joined))]
    found.append(joined)


def _around(first: Conjunction, second: Conjunction) -> Conjunction:
    """The members of both that follow from the other one, with equations as two bounds."""
    p, q = and_(*first), and_(*second)
    kept = [each for each in _members(first) if implies(q, each)]
    kept += [each for each in _members(second) if implies(p, each)]
    return thinned(kept)


def _members(conjunction: Conjunction) -> list[Predicate]:
    members: list[Predicate] = list(conjunction)
    for each in conjunction:
        match each:
            case Compare(term, "=", constant):
                members += (Compare(term, ">=", constant), Compare(term, "<=", constant))
            case Difference(_, "=", _, offset) if offset is not None:
                members += (replace(each, op=">="), replace(each, op="<="))
            case _:
                pass
    return members
