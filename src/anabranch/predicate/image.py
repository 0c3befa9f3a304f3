"""Images: what a predicate says once a unit change has mapped the values of a term.

The map `x -> a*x + b` with `a > 0` keeps order and has an inverse, so a comparison with a constant becomes the same
comparison with the mapped constant, exactly, and NaN, INF and words stay what they are (LAWS 4.3, 4.4).
An exact difference keeps its form under a shift of one side, or where both sides are the mapped term.
Sums in doubles round elsewhere after a change, and of the spelling of mapped values nothing is known: neither they nor
text that is compared as text have an image.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.logic import replaced
from anabranch.predicate.formula import (
    TEXT,
    AnyText,
    Atom,
    Compare,
    Domain,
    Finite,
    Integers,
    Predicate,
    Reals,
    Term,
    terms_of,
)  # fmt: skip
from anabranch.stream.affine import IDENTITY, Affine


def image(predicate: Predicate, term: Term, change: Affine, target: Term | None = None) -> Predicate | None:
    """What holds for mapped items exactly where the predicate holds for the items; None if no predicate says that.

    The mapped values are at `target`; if it is not given, at the same path, with the domain mapped, too.
    """
    if change == IDENTITY and target in (None, term):
        return predicate
    mapped = target or replace(term, domain=_domain(term.domain, change))
    try:
        return replaced(predicate, lambda atom: _image(atom, term, change, mapped))
    except _NoImage:
        return None


class _NoImage(Exception):
    """No comparison of the mapped values says the same."""


def _image(atom: Atom, term: Term, change: Affine, target: Term) -> Atom:
    if term not in terms_of(atom):
        return atom
    if isinstance(atom, Compare):
        if isinstance(atom.constant, str):
            raise _NoImage
        return Compare(target, atom.op, change(atom.constant))
    if atom.offset is None or atom.arithmetic != "exact":
        raise _NoImage
    on_left, on_right = atom.left == term, atom.right == term
    if not (on_left and on_right) and change.a != 1:
        raise _NoImage
    moved = atom.offset * change.a + (on_left - on_right) * change.b
    left, right = target if on_left else atom.left, target if on_right else atom.right
    return replace(atom, left=left, right=right, offset=moved)


def _domain(domain: Domain, change: Affine) -> Domain:
    """A domain that has all mapped values of a domain."""
    match domain:
        case Reals(low, high) | Integers(low, high):
            whole = isinstance(domain, Integers) and change.a.denominator == change.b.denominator == 1
            ends = (None if low is None else change(low), None if high is None else change(high))
            return Integers(*ends) if whole else Reals(*ends)
        case AnyText() | Finite():
            return TEXT
