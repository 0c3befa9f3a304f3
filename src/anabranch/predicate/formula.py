"""Predicates as formulas: comparisons of terms, joined by `and`, `or` and `not` (`logic.py`).

A *term* is a path seen from an input, say `$x/coord/cel/ra`; for one item, or one pair in a join, it has a sequence of
values, and every value is a text, as it stands in the stream.
A text may spell a number of xs:double: a finite one, INF, -INF or NaN; any other text is a *word*.
The number of values (`occurs`) and their `domain` come from a schema or a declaration; the defaults allow everything.
Terms are equal only if occurrence and domain are, too: these belong to the schema of a stream, so all predicates over
the stream take them from there.

A comparison is existential, as XQuery's general comparisons are (LAWS 2.3): it holds if some value of the term (some
pair of values) fulfils it; else it raises if some value cannot be compared; else, and so for a term without a value,
it does not hold.
What a pair fulfils:

* `Compare` with a string compares texts by code points; it never raises.
* `Compare` with a number compares exact values; NaN fulfils `!=` alone, a word raises.
* `Difference` without an offset compares two texts of the stream: `=` and `!=` as texts, the others as numbers where
  both are numbers, as times where both are dateTimes, else as texts. It never raises.
* `Difference` with an offset computes, in one of three ways:
"sum" is `left op right + offset` in doubles, as a query computes it; a word raises, and so do several values on the
right, which `+` does not take;
"distance" is `left - right op offset` in doubles; several values raise on either side, words where both have one;
"exact" is the sum in exact numbers; it raises like the sum.
  Sums in doubles are rounded, and implications between them allow for that: `x >= y + 0.3` implies
  `x >= y + 0.2`, but not `x > y + 0.2`, since both sums may be the same double.

Equal formulas are equivalent, and unequal ones may be (`sets.equivalent`).
A formula prints as a condition of the query language; a fraction that is no decimal, which only a unit change
produces, is written as a quotient (`1 div 3`), which a query rounds.

The *image* of a predicate is the equivalent predicate after a unit change has mapped the values of a term.
The map `x -> a*x + b` with `a > 0` keeps order and has an inverse, so a comparison with a constant becomes the same
comparison with the mapped constant, exactly, and NaN, INF and words stay what they are (LAWS 4.3, 4.4).
An exact difference keeps its form under a shift of one side, or where both sides are the mapped term.
Sums in doubles round differently after a change, and the spelling of mapped values is unknown: neither they nor
comparisons as text have an image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch import logic
from anabranch.logic import Operator, Tree, hashed_once, replaced
from anabranch.predicate.writing import number_text
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path

Arithmetic: TypeAlias = Literal["sum", "distance", "exact"]
Number: TypeAlias = Fraction | Decimal | int
Occurs: TypeAlias = Literal["one", "optional", "many"]
"""Exactly one value; at most one; any number."""


@dataclass(frozen=True, slots=True)
class AnyText:
    """Any text: numbers, NaN, words."""


@dataclass(frozen=True, slots=True)
class Reals:
    """Finite numbers, dense, from `low` to `high`, both included; None is no bound."""

    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Integers:
    """Whole numbers from `low` to `high`, both included; None is no bound."""

    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Finite:
    """These texts and no others; some may be numbers."""

    texts: frozenset[str]


Domain: TypeAlias = AnyText | Reals | Integers | Finite
TEXT = AnyText()


@hashed_once
@dataclass(frozen=True)
class Term:
    """The values at a path of an input; `input` is what query text writes before the path (`$x`, or nothing)."""

    input: str
    path: Path
    occurs: Occurs = "many"
    domain: Domain = field(default=TEXT)
    raises: bool = True
    """Whether comparing a word with a number raises, as in a query, or is false, as in a description."""

    def __str__(self) -> str:
        return "/".join(each for each in (self.input, *self.path.steps) if each) or "."


@hashed_once
@dataclass(frozen=True)
class Compare:
    """Some value of the term has this relation to the constant."""

    term: Term
    op: Operator
    constant: Fraction | str

    def __str__(self) -> str:
        if isinstance(self.constant, Fraction):
            return f"{self.term} {self.op} {number_text(self.constant)}"
        escaped = self.constant.replace("&", "&amp;").replace("'", "''").replace("\r", "&#xD;")
        return f"{self.term} {self.op} '{escaped}'"


@hashed_once
@dataclass(frozen=True)
class Difference:
    """`left op right + offset`, or without an offset `left op right` as texts of the stream compare."""

    left: Term
    op: Operator
    right: Term
    offset: Fraction | None = None
    arithmetic: Arithmetic = "sum"

    def __str__(self) -> str:
        if self.offset is None:
            return f"{self.left} {self.op} {self.right}"
        if self.arithmetic == "distance":
            return f"{self.left} - {self.right} {self.op} {number_text(self.offset)}"
        sign = "-" if self.offset < 0 else "+"
        return f"{self.left} {self.op} {self.right} {sign} {number_text(abs(self.offset))}"


Atom: TypeAlias = Compare | Difference
Predicate: TypeAlias = Tree[Atom]


def compare(term: Term, op: Operator, constant: Number | str) -> Compare:
    """`term op constant`, with the number in its exact value."""
    return Compare(term, op, constant if isinstance(constant, str) else Fraction(constant))


def difference(
    left: Term, op: Operator, right: Term, offset: Number | None = None, arithmetic: Arithmetic = "sum"
) -> Difference:
    """`left op right + offset`; without an offset the values compare as texts, which is not the same as offset 0."""
    return Difference(left, op, right, None if offset is None else Fraction(offset), arithmetic)


def and_(*parts: Predicate) -> Predicate:
    """The conjunction; of nothing, everything."""
    return logic.and_(*parts)


def or_(*parts: Predicate) -> Predicate:
    """The disjunction; of nothing, nothing."""
    return logic.or_(*parts)


def not_(part: Predicate) -> Predicate:
    """The complement; errors stay errors."""
    return logic.not_(part)


def atoms(predicate: Predicate) -> Iterator[Atom]:
    """All comparisons in it, from left to right."""
    return logic.leaves(predicate)


def terms_of(atom: Atom) -> tuple[Term, ...]:
    """The terms of a comparison."""
    return (atom.term,) if isinstance(atom, Compare) else (atom.left, atom.right)


def terms(predicate: Predicate) -> frozenset[Term]:
    """All terms of a predicate."""
    return frozenset(term for atom in atoms(predicate) for term in terms_of(atom))


# --- images ----------------------------------------------------------------------------------------------------


def image(predicate: Predicate, term: Term, change: Affine, target: Term) -> Predicate | None:
    """The predicate that holds for mapped items exactly where this one holds for the items; None if there is none.

    The mapped values are at `target`.
    """
    if change == IDENTITY and target == term:
        return predicate
    try:
        return replaced(predicate, lambda atom: _image(atom, term, change, target))
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
