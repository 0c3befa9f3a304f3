"""Images: what a predicate says once a unit change has mapped the values of a term.

The map `x -> a*x + b` with `a > 0` keeps order and has an inverse, so a comparison with a constant becomes the same
comparison with the mapped constant, exactly, and NaN, INF and words stay what they are (LAWS 4.3, 4.4).
An exact difference keeps its form under a shift of one side, or where both sides are the mapped term.
Sums in doubles round elsewhere after a change, and of the spelling of mapped values nothing is known: neither they nor
text that is compared as text have an image.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from anabranch.predicate.formula import And, Compare, Difference, Not, Or, Predicate, and_, not_, or_
from anabranch.predicate.terms import TEXT, Domain, Finite, Integers, Reals, Term, Text
from anabranch.stream.affine import IDENTITY, Affine


def image(predicate: Predicate, term: Term, change: Affine, target: Term | None = None) -> Predicate | None:
    """What holds for mapped items exactly where the predicate holds for the items; None if no predicate says that.

    The mapped values are at `target`; if it is not given, at the same path, with the domain mapped, too.
    """
    if change == IDENTITY and target in (None, term):
        return predicate
    return _image(predicate, term, change, target or replace(term, domain=_domain(term.domain, change)))


def _image(predicate: Predicate, term: Term, change: Affine, target: Term) -> Predicate | None:
    match predicate:
        case And(parts) | Or(parts):
            mapped = [_image(part, term, change, target) for part in parts]
            known = [part for part in mapped if part is not None]
            if len(known) < len(mapped):
                return None
            return and_(*known) if isinstance(predicate, And) else or_(*known)
        case Not(part):
            inner = _image(part, term, change, target)
            return None if inner is None else not_(inner)
        case Compare(of, op, constant) if of == term:
            return Compare(target, op, change(constant)) if isinstance(constant, Fraction) else None
        case Difference(left, op, right, offset, arithmetic) if term in (left, right):
            exact = offset if arithmetic == "exact" else None
            moved = None if exact is None else _offset(left == term, right == term, exact, change)
            if moved is None:
                return None
            ends = (target if each == term else each for each in (left, right))
            return Difference(next(ends), op, next(ends), moved, arithmetic)
        case _:
            return predicate


def _offset(left: bool, right: bool, offset: Fraction, change: Affine) -> Fraction | None:
    if left and right:
        return offset * change.a
    if change.a != 1:
        return None
    return offset + change.b if left else offset - change.b


def _domain(domain: Domain, change: Affine) -> Domain:
    """A domain that has all mapped values of a domain."""
    match domain:
        case Reals(low, high) | Integers(low, high):
            whole = isinstance(domain, Integers) and change.a.denominator == change.b.denominator == 1
            ends = (None if low is None else change(low), None if high is None else change(high))
            return Integers(*ends) if whole else Reals(*ends)
        case Text() | Finite():
            return TEXT
