"""Relaxation: one predicate that has all items of several (sharing paper, 4.3: what a widened stream selects).

It is their union, and as a disjunction of conjunctions it grows with every subscription that joins.
Two conjunctions become one where that adds no item (`3 < en <= 5` and `4 < en <= 6`), and, where there are more than
a bound, also where it does: into their *hull*, the conjunction of those of their members that follow from both, which
for two boxes is the least box around them.

    >>> en = Term("", Path.parse("en"), "one")
    >>> low, high = compare(en, "<=", 2), and_(compare(en, ">", 3), compare(en, "<", 5))
    >>> to_text(relax(low, high)), to_text(relax(low, high, most=1))
    ('en <= 2 or en > 3 and en < 5', 'en < 5')
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.predicate.formula import Compare, Difference, Predicate, and_, or_, terms
from anabranch.predicate.normal import Conjunction, conjunctions, disjuncts, thinned
from anabranch.predicate.sets import implies

MOST_DISJUNCTS = 16


def relax(*parts: Predicate, most: int = MOST_DISJUNCTS) -> Predicate:
    """The union of the parts, or more where the union would be more than `most` conjunctions.

    Of the first part, what is there is left as it is while there is room: most calls add to an earlier result.
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
    """One conjunction that has all items of the parts."""
    found = [each for part in parts for each in disjuncts(part)]
    if not found:
        return or_()
    around = found[0]
    for each in found[1:]:
        around = _around(around, each)
    return and_(*around)


def _add(found: list[Conjunction], new: Conjunction, most: int) -> None:
    """Take a conjunction into the union, by itself or with another that makes way for the hull of both."""
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
        _replace(found, *max(hulls, key=lambda pair: len(pair[1])))  # the hull that still says most


def _differ_in_one_term(first: Conjunction, second: Conjunction) -> bool:
    """Whether a hull may add nothing: that of two boxes which differ in several directions always does."""
    return len({terms(each) for each in {*first} ^ {*second}}) <= 1


def _replace(found: list[Conjunction], partner: Conjunction, joined: Conjunction) -> None:
    """Put a wider conjunction in the place of one, and of all others that lie in it."""
    found.remove(partner)
    found[:] = [each for each in found if not implies(and_(*each), and_(*joined))]
    found.append(joined)


def _around(first: Conjunction, second: Conjunction) -> Conjunction:
    """The members of both that follow from the other one, with equations taken as two bounds."""
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
