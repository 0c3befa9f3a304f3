"""Questions about sets: implies, equivalent, disjoint, satisfiable, covers.

Each is the question whether some claims can hold together for an item (`possible`).
`implies(p, q)` asks twice: for an item where p is yes and q is not, and for one where p is yes or an error and q is no.
Where no comparison can raise, both are the same question, and it is asked once.

Most answers are obvious, and found part by part or by an example, without a search.
An `or` is contained in what contains all of its parts, an `and` in what contains one of its parts; a comparison with a
constant is contained in another of the same term if each value that fulfils it fulfils the other: both raise for the
same values; sums and distances in doubles do not fall where the offset grows.
`and` and `or` take the least and the greatest verdict and `not` reverses the order, so all of this holds with errors
between yes and no, too.
An example is an item whose terms have one value each, taken from the bounds that the first formula names: where it
fulfils that one and not the other, there is no implication.
Only the rest is searched, and of an `or` on the left or an `and` on the right each part by itself.

The search takes the literals, then one of the alternatives of each disjunction, and checks consistency
(`witnesses.consistent`) before going deeper.
After an alternative has failed, the next is taken with the failed one denied, so no item is searched twice; that makes
the subtraction of many boxes from one quick.
A search that takes too long is abandoned and assumes that the item exists, since all callers promise something only
where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any

from anabranch.logic import COMPARES, EVERYTHING, And, Not, Operator, Or, decided
from anabranch.predicate.claims import MOST_REMEMBERED, Claim, Effort, Literal, TooLong, claim, denied
from anabranch.predicate.formula import TEXT, Atom, Compare, Difference, Predicate, Term, and_, atoms, or_, terms
from anabranch.predicate.witnesses import consistent

DEEPEST = 300
"""The most disjunctions that are decided in turn."""


@lru_cache(maxsize=MOST_REMEMBERED)
def implies(p: Predicate, q: Predicate) -> bool:
    """Whether for no item p has a higher verdict than q in `no < error < yes`; False also in doubt."""
    if plainly(p, q):
        return True
    if isinstance(p, Or):
        return all(implies(part, q) for part in p.parts)
    if isinstance(q, And):
        return all(implies(p, part) for part in q.parts)
    if refuted(p, q):
        return False
    asked: list[tuple[Claim, Claim]] = []
    for loose in (False, True):
        question = (claim(p, loose), claim(q, loose, holds=False))
        if question not in asked:
            asked.append(question)
    return not any(possible(question) for question in asked)


def equivalent(p: Predicate, q: Predicate) -> bool:
    """Whether p and q have the same verdict on every item; False also in doubt."""
    return implies(p, q) and implies(q, p)


def satisfiable(p: Predicate) -> bool:
    """Whether p holds for some item; True also in doubt."""
    return possible((claim(p, loose=False),))


def can_raise(p: Predicate) -> bool:
    """Whether p raises for some item; True also in doubt."""
    return possible((claim(p, loose=True), claim(p, loose=False, holds=False)))


def disjoint(p: Predicate, q: Predicate) -> bool:
    """Whether there is no item for which both hold; False also in doubt."""
    return not satisfiable(and_(p, q))


def covers(parts: Iterable[Predicate], whole: Predicate = EVERYTHING) -> bool:
    """Whether the parts together contain the whole; False also in doubt."""
    return implies(whole, or_(*parts))


# --- obvious implications -------------------------------------------------------------------------------------

_MOST_CASES = 16
"""The most cases that are distinguished."""


def plainly(p: Predicate, q: Predicate) -> bool:
    """Whether p obviously never has a higher verdict than q."""
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
    """The same for each way in which the first `or` inside an `and` may hold."""
    choice = next((part for part in p.parts if isinstance(part, Or)), None)
    if (
        choice is None
        or not isinstance(q, Or)
        or prod(len(each.parts) for each in p.parts if isinstance(each, Or)) > _MOST_CASES
    ):
        return False
    others = tuple(part for part in p.parts if part is not choice)
    return all(plainly(And((each, *others)), q) for each in choice.parts)


_POSITIONS = {
    (op, at): {each for each in range(5) if compare(each, at)} for op, compare in COMPARES.items() for at in (1, 3)
}
"""The possible positions of a value in some relation to one of two constants, which are at 1 and 3: before, at, between
or behind them."""


def _follows(p: Compare, q: Compare) -> bool:
    """Whether each value that fulfils one comparison fulfils the other; NaN fulfils `!=` alone."""
    a, b = p.constant, q.constant
    if isinstance(a, str) != isinstance(b, str):
        return False
    first, second = (1, 1) if a == b else (1, 3) if a < b else (3, 1)  # type: ignore[operator]  # both of one kind
    return _POSITIONS[p.op, first] <= _POSITIONS[q.op, second]


def _moves(op: Operator, offset: Fraction, other: Operator, wider: Fraction) -> bool:
    """Whether a bound follows from one that is at least as tight; a strict one only from a strict one."""
    match other:
        case "<" | "<=":
            return offset <= wider and op in (("<",) if other == "<" else ("<", "<=", "="))
        case ">" | ">=":
            return offset >= wider and op in ((">",) if other == ">" else (">", ">=", "="))
        case _:
            return False


def refuted(p: Predicate, q: Predicate) -> bool:
    """Whether an example shows that p does not imply q."""
    bounds: dict[Term, list[Fraction | str]] = {}
    for each in atoms(p):
        if isinstance(each, Compare):
            bounds.setdefault(each.term, []).append(each.constant)
    if any(term.occurs == "one" or term.domain != TEXT for term in terms(p) | terms(q)):
        return False  # not every value is allowed
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
    """Whether a predicate holds for an item of single values; None in doubt."""

    def compared(atom: Atom) -> bool | None:
        if isinstance(atom, Difference):
            return None
        if atom.term not in item:
            return False
        value = item[atom.term]
        if isinstance(value, str) != isinstance(atom.constant, str):
            return None
        return COMPARES[atom.op](value, atom.constant)

    return decided(predicate, compared)


# --- the search -----------------------------------------------------------------------------------------------


def possible(claims: Iterable[Claim]) -> bool:
    """Whether some item may fulfil all claims; True also in doubt."""
    try:
        return _found((), tuple(claims), (), Effort(), DEEPEST)
    except TooLong:
        return True


def _found(
    literals: tuple[Literal, ...],
    claims: tuple[Claim, ...],
    open_: tuple[Or[Literal], ...],
    effort: Effort,
    deeper: int,
) -> bool:
    """Whether literals, claims and the disjunctions that are still open can hold together."""
    if not deeper:
        raise TooLong
    known = dict.fromkeys(literals)
    pending = list(claims)
    disjunctions = list(open_)
    while pending:
        match pending.pop():
            case Literal() as literal:
                known[literal] = None
            case And(parts):
                pending += parts
            case Or() as disjunction:
                disjunctions.append(disjunction)
            case Not():
                raise AssertionError("claims are denied literal by literal")
    if len(known) > len(literals) and not consistent(known, effort):
        return False
    disjunctions = [each for each in disjunctions if not any(part in known for part in each.parts)]
    if not disjunctions:
        return True
    first = min(disjunctions, key=lambda each: len(each.parts))
    others = tuple(each for each in disjunctions if each is not first)
    settled = tuple(known)
    failed: tuple[Claim, ...] = ()
    for part in first.parts:
        if _found(settled, (*failed, part), others, effort, deeper - 1):
            return True
        if others:  # else denying it rules nothing out
            failed = (*failed, denied(part))
    return False
