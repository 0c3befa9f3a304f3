"""What follows plainly, and what plainly does not: decided part by part or by an example, without a search.

An `or` is within what each of its parts is within, an `and` within what one of its parts is; a comparison with a
constant is within another of the same term if each value that fulfils it fulfils the other: both raise for the same
values; sums and distances in doubles do not fall where the offset grows.
`and` and `or` take the least and the greatest verdict and `not` turns the order round, so all of this holds with errors
between yes and no, too.

An example is an item whose terms have one value each, taken from the bounds that the first formula names: where it
fulfils that one and not the other, nothing follows.

Whatever is said here is right; where neither is plain, `sets.py` has to search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import Any

from anabranch.logic import COMPARES, And, Not, Operator, Or, fold
from anabranch.predicate.formula import TEXT, Atom, Compare, Difference, Predicate, Term, atoms, terms

_MOST = 16
"""Cases that are told apart."""


def plainly(p: Predicate, q: Predicate) -> bool:
    """Whether p stands nowhere higher than q, for a plain reason."""
    if p == q:
        return True
    if isinstance(p, Or):
        return all(plainly(part, q) for part in p.parts)
    if isinstance(q, And):
        return all(plainly(p, part) for part in q.parts)
    if isinstance(q, Or) and any(plainly(p, part) for part in q.parts):
        return True
    match p, q:
        case And(parts), _:
            return any(plainly(part, q) for part in parts) or _by_cases(p, q)
        case Not(first), Not(second):
            return plainly(second, first)
        case Compare(), Compare() if p.term == q.term:
            return _follows(p, q)
        case Difference(), Difference() if (p.left, p.right, p.arithmetic) == (q.left, q.right, q.arithmetic):
            return p.offset is not None and q.offset is not None and _moves(p.op, p.offset, q.op, q.offset)
        case _:
            return False


def _by_cases(p: And[Atom], q: Predicate) -> bool:
    """Whether it is plain for each way in which the first `or` inside an `and` may hold."""
    choice = next((part for part in p.parts if isinstance(part, Or)), None)
    if (
        choice is None
        or not isinstance(q, Or)
        or prod(len(each.parts) for each in p.parts if isinstance(each, Or)) > _MOST
    ):
        return False
    others = tuple(part for part in p.parts if part is not choice)
    return all(plainly(And((each, *others)), q) for each in choice.parts)


def _follows(p: Compare, q: Compare) -> bool:
    """Whether each value that fulfils one comparison fulfils the other."""
    a, b = p.constant, q.constant
    if isinstance(a, str) != isinstance(b, str):
        return False
    less, equal = a < b, a == b  # type: ignore[operator]  # two texts or two numbers
    match q.op:
        case "=":
            return equal and p.op == "="
        case "!=":
            return _misses(p, less, equal)
        case "<":
            return (p.op in ("<", "<=", "=") and less) or (p.op == "<" and equal)
        case "<=":
            return p.op in ("<", "<=", "=") and (less or equal)
        case ">":
            return (p.op in (">", ">=", "=") and not less and not equal) or (p.op == ">" and equal)
        case ">=":
            return p.op in (">", ">=", "=") and not less


def _moves(op: Operator, offset: Fraction, other: Operator, wider: Fraction) -> bool:
    """Whether a bound follows from one that is at least as far in; a strict one only from a strict one."""
    match other:
        case "<" | "<=":
            return offset <= wider and op in (("<",) if other == "<" else ("<", "<=", "="))
        case ">" | ">=":
            return offset >= wider and op in ((">",) if other == ">" else (">", ">=", "="))
        case _:
            return False


def _misses(p: Compare, less: bool, equal: bool) -> bool:
    """Whether a comparison with a constant that is less than, or equal to, another leaves that one out."""
    match p.op:
        case "=":
            return not equal
        case "!=":
            return equal
        case "<":
            return less or equal
        case "<=":
            return less
        case ">":
            return not less
        case ">=":
            return not less and not equal


def refuted(p: Predicate, q: Predicate) -> bool:
    """Whether an example shows that p does not imply q."""
    bounds: dict[Term, list[Fraction | str]] = {}
    for each in atoms(p):
        if isinstance(each, Compare):
            bounds.setdefault(each.term, []).append(each.constant)
    if any(term.occurs == "one" or term.domain != TEXT for term in terms(p) | terms(q)):
        return False  # not every value may be given
    for pick in (min, max, _middle):
        item = {
            term: pick(found) for term, found in bounds.items() if len({isinstance(each, str) for each in found}) == 1
        }
        if _holds(p, item) and _holds(q, item) is False:
            return True
    return False


def _middle(bounds: list[Any]) -> Any:
    return (min(bounds) + max(bounds)) / 2 if isinstance(bounds[0], Fraction) else bounds[0]


def _holds(predicate: Predicate, item: Mapping[Term, Any]) -> bool | None:
    """Whether a predicate holds for an item of single values; None where that is not plain."""

    def compared(atom: Atom) -> bool | None:
        if isinstance(atom, Difference):
            return None
        if atom.term not in item:
            return False
        value = item[atom.term]
        if isinstance(value, str) != isinstance(atom.constant, str):
            return None
        return COMPARES[atom.op](value, atom.constant)

    def joined(parts: Iterator[bool | None], decisive: bool) -> bool | None:
        found = set(parts)
        return decisive if decisive in found else None if None in found else not decisive

    return fold(
        predicate,
        compared,
        lambda parts: joined(parts, decisive=False),
        lambda parts: joined(parts, decisive=True),
        lambda held: None if held is None else not held,
    )
