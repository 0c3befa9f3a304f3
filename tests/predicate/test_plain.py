"""What is seen to follow at once is what the search for a counterexample does not refute."""

from __future__ import annotations

from itertools import product

import pytest

from anabranch.predicate import Operator, Path, Predicate, Term, and_, compare, difference, not_, or_
from anabranch.predicate.claims import claim
from anabranch.predicate.formula import Arithmetic
from anabranch.predicate.sets import plainly, possible

OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
X, Y = (Term(name, Path(("en",))) for name in ("$x", "$y"))


def searched(p: Predicate, q: Predicate) -> bool:
    """Whether p implies q, found by looking for an item where it does not."""
    return not any(possible((claim(p, loose), claim(q, loose, holds=False))) for loose in (False, True))


@pytest.mark.parametrize("constants", [(1, 2, 3), ("a", "b", "c")], ids=["numbers", "texts"])
def test_comparisons_with_constants(constants: tuple[int | str, ...]) -> None:
    """For all operators and orders of constants both ways agree, in both directions."""
    atoms = [compare(X, op, constant) for op, constant in product(OPERATORS, constants)]
    for p, q in product(atoms, atoms):
        assert plainly(p, q) == searched(p, q), f"{p} {q}"
        assert plainly(not_(q), not_(p)) == plainly(p, q)


@pytest.mark.parametrize("arithmetic", ["sum", "distance", "exact"])
def test_differences(arithmetic: Arithmetic) -> None:
    """A bound follows from one that is further in; what is not plain may follow all the same."""
    atoms = [difference(X, op, Y, offset, arithmetic) for op, offset in product(OPERATORS, (1, 2, 3))]
    plain = [(p, q) for p, q in product(atoms, atoms) if plainly(p, q)]
    assert all(searched(p, q) for p, q in plain)
    assert sum(p != q for p, q in plain) > 30


def test_unions_of_boxes() -> None:
    """A union of many boxes is within another at once, where each box is within one of the others."""

    def boxes(width: int) -> Predicate:
        return or_(*(and_(compare(X, ">", 10 * n), compare(X, "<=", 10 * n + width)) for n in range(60)))

    assert plainly(boxes(3), boxes(4))
    assert not plainly(boxes(4), boxes(3))
