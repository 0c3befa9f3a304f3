"""Descriptions as sets of items, which can be compared, subtracted, mapped and written as descriptions again.

A description is two-valued: an impossible comparison (of a missing path, or a word with a number) does not hold,
and its `not(...)` does; so a set and its complement together are all items, with or without the path (LAWS 4.4).
The paths that descriptions name occur at most once in an item.
A declared domain promises more: exactly one value, and one of these; coverage is decided by it.
A path that evolves loses its domain (`lasting`).

Sets name the raw values at one place in the stream.
When a path that they name evolves, the same items get another description: `rewritten` maps the constants where its
unit changes, `parted` takes the path as missing where it is dropped or added, since a path added under the same name is
another path (LAWS 4.2 f).
Text has no image under a map, so a set that compares an altered path as text cannot be rewritten: None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch import logic
from anabranch.algebra.accents.items import number, values
from anabranch.logic import COMPARES, EVERYTHING, And, Not, Operator, Or
from anabranch.predicate import TEXT, Compare, Domain, Predicate, Term, and_, compare, image, not_, or_
from anabranch.predicate import terms as terms_of
from anabranch.predicate.formula import Atom
from anabranch.predicate.writing import number_text
from anabranch.stream.affine import Affine
from anabranch.stream.description import Comparison, Description
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

Domains: TypeAlias = Mapping[Path, Domain]
"""By path: every item has exactly one value there, from this domain."""
UNDECLARED: Domains = {}


def lasting(domains: Domains, evolving: Iterable[Path]) -> Domains:
    """The domains without those of paths that evolve."""
    gone = tuple(evolving)
    return {path: domain for path, domain in domains.items() if not any(below(path, each) for each in gone)}


def term(path: Path, domains: Domains = UNDECLARED) -> Term:
    """The term of a path in a description."""
    declared = domains.get(path)
    return Term("", path, "optional" if declared is None else "one", declared or TEXT, raises=False)


def items_of(description: Description, domains: Domains = UNDECLARED) -> Predicate:
    """The items that a description describes."""

    def compared(each: Comparison) -> Predicate:
        return compare(term(each.path, domains), each.op, each.constant)

    return logic.replaced(description, compared)


def description_of(items: Predicate) -> Description:
    """The description of a set of items; `items_of` gives an equal set."""
    match items:
        case Or(()):
            return Not(EVERYTHING)
        case And(parts):
            return And(tuple(map(description_of, parts)))
        case Or(parts):
            return Or(tuple(map(description_of, parts)))
        case Not(part):
            return Not(description_of(part))
        case atom:
            compared = _with_constant(atom)
            value = compared.constant
            if isinstance(value, Fraction) and " div " not in (written := number_text(value)):
                return Comparison(compared.term.path, compared.op, Decimal(written))
            return Comparison(compared.term.path, compared.op, value)


def _with_constant(atom: Atom) -> Compare:
    assert isinstance(atom, Compare), "descriptions compare with constants only"
    return atom


def below(path: Path, above: Path) -> bool:
    """Whether a path equals another one, or lies below it."""
    return path.steps[: len(above.steps)] == above.steps


def and_above(path: Path) -> tuple[Path, ...]:
    """The paths above a path, and the path itself as the last."""
    return tuple(Path(path.steps[:depth]) for depth in range(len(path.steps) + 1))


def names(items: Predicate, path: Path) -> bool:
    """Whether a set names a path, or one below it."""
    return any(not each.input and below(each.path, path) for each in terms_of(items))


def rewritten(items: Predicate, path: Path, where: Predicate, by: Affine) -> Predicate | None:
    """The same items, described after a path has changed its unit for some; None if that is impossible."""
    concerned = [each for each in terms_of(items) if each.path == path and not each.input]
    if not concerned:
        return items
    mapped = items
    for each in concerned:
        found = image(mapped, each, by, each)
        if found is None:
            return None
        mapped = found
    return or_(and_(where, mapped), and_(not_(where), items))


def parted(items: Predicate, path: Path, where: Predicate) -> Predicate:
    """The same items after a path was dropped or added for some: comparisons of it become those of a missing path."""
    if not names(items, path):
        return items
    return or_(and_(where, lacking(items, path)), and_(not_(where), items))


def lacking(items: Predicate, path: Path) -> Predicate:
    """The condition of a set for items without a path."""
    return replaced(items, lambda each: or_() if names(each, path) else each)


def replaced(items: Predicate, tell: Callable[[Compare], Predicate]) -> Predicate:
    """The set with each comparison replaced."""
    return logic.replaced(items, lambda atom: tell(_with_constant(atom)))


def redeclared(items: Predicate, domains: Domains) -> Predicate:
    """The same comparisons under other domains."""
    return items_of(description_of(items), domains)


# --- items ----------------------------------------------------------------------------------------------------


def fulfils(tree: Element, items: Predicate) -> bool:
    """Whether an item is in a set."""
    return has(items, lambda path: values(tree, path))


def has(items: Predicate, values_at: Callable[[Path], Iterable[str]]) -> bool:
    """Whether an item with these values at its paths is in a set."""

    def compared(atom: Atom) -> bool:
        atom = _with_constant(atom)
        return any(stands(text, atom.op, atom.constant) for text in values_at(atom.term.path))

    return logic.holds(items, compared)


def stands(text: str, op: Operator, constant: Fraction | str) -> bool:
    """Whether a comparison holds; a word compares with no number."""
    if isinstance(constant, str):
        return COMPARES[op](text, constant)
    value = number(text)
    if value is None:
        return False
    if isinstance(value, Decimal) and value.is_nan():
        return op == "!="
    return COMPARES[op](value, constant)
