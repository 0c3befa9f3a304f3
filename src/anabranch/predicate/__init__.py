"""Sets of items, exact: the predicates that selections, windows, joins, subscriptions and accents share.

A predicate compares terms with constants and with each other (`formula.py`) and says of every item that it holds, that
it does not, or that it raises an error (LAWS 2.4): `no < error < yes`, where `and` takes the least, `or` the greatest,
and `not` turns the order round.
`implies(p, q)` means that for no item p stands higher than q, so that a stream selected by q has every item on which p
would answer, and every one on which it would raise; `equivalent` means the same verdict everywhere.

What a term may hold (how often it occurs, from which domain) decides what follows from what: where an
element may repeat, `en >= 4 and en <= 2` is no contradiction, and `not(en < 5)` never means `en >= 5` where `en` may be
missing, NaN or no number.

Everything is sound: a yes of `implies`, `equivalent`, `disjoint` and `covers` is always right; they answer no in doubt,
which happens for predicates of very many parts and between texts that are no numbers.

    >>> en = Term("$p", Path.parse("en"), "one")
    >>> implies(compare(en, ">=", 5), compare(en, ">", 3)), implies(compare(en, ">", 3), compare(en, ">=", 5))
    (True, False)
    >>> print(relax(compare(en, ">=", 5), and_(compare(en, ">", 3), compare(en, "<=", Decimal("4.5")))))
    $p/en >= 5 or $p/en > 3 and $p/en <= 4.5
"""

from anabranch.logic import EVERYTHING, NOTHING, And, Not, Operator, Or
from anabranch.predicate.formula import (
    TEXT,
    Arithmetic,
    Compare,
    Difference,
    Domain,
    Finite,
    Integers,
    Occurs,
    Predicate,
    Reals,
    Term,
    and_,
    compare,
    difference,
    image,
    not_,
    or_,
    terms,
)  # fmt: skip
from anabranch.predicate.normal import MOST_DISJUNCTS, disjuncts, hull, relax, simplify
from anabranch.predicate.sets import can_raise, covers, disjoint, equivalent, implies, satisfiable
from anabranch.stream.path import Path

__all__ = [
    "EVERYTHING", "MOST_DISJUNCTS", "NOTHING", "TEXT", "And", "Arithmetic", "Compare", "Difference", "Domain",
    "Finite", "Integers", "Not", "Occurs", "Operator", "Or", "Path", "Predicate", "Reals", "Term", "and_", "can_raise",
    "compare", "covers", "difference", "disjoint", "disjuncts", "equivalent", "hull", "image", "implies", "not_", "or_",
    "relax", "satisfiable", "simplify", "terms",
]  # fmt: skip
