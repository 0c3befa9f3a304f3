"""Predicates against z3: 2,000 seeded pairs, in worlds of a few terms and comparisons each.

The judge must be agreed with in both directions, except where two texts of the stream are compared as they stand:
there a yes must be right, and a no may be ignorance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import pytest
import z3

from anabranch.predicate import (
    Predicate,
    Term,
    and_,
    can_raise,
    covers,
    disjoint,
    equivalent,
    hull,
    image,
    implies,
    not_,
    or_,
    relax,
    satisfiable,
    simplify,
    terms,
)
from anabranch.stream.affine import Affine
from mass import Mass, enough, some
from predicate.generate import DOMAINS, some_atoms, some_predicate, some_terms
from predicate.judge import STRINGS, Judge

PAIRS = 50
"""Per world; ten worlds of each of four kinds."""


@dataclass
class World:
    """Some terms, comparisons over them, and the judge."""

    random: Random
    terms: list[Term]
    atoms: list[Predicate]
    judge: Judge
    exact: bool

    def pairs(self, count: int) -> Iterator[tuple[Predicate, Predicate]]:
        """Predicates, of which the second often has something of the first, so that many implications hold."""
        for _ in range(count):
            p, q = some_predicate(self.random, self.atoms), some_predicate(self.random, self.atoms)
            match self.random.randrange(4):
                case 0:
                    yield p, or_(p, q) if self.random.random() < 0.3 else or_(q, not_(and_(p, not_(q))))
                case 1:
                    yield and_(p, q), some_predicate(self.random, self.atoms, depth=1)
                case _:
                    yield p, q

    def agree(self, ours: bool, judged: bool, *shown: Predicate) -> None:
        """Fail if ours is a wrong yes, or a no that it should know."""
        known = f"{[str(each) for each in shown]} over {self.terms}"
        assert not (ours and not judged), f"a wrong yes: {known}"
        assert ours or not judged or not self.exact, f"not known: {known}"


def world(kind: str, number: int) -> World:
    """A world of single numbers, of repeated numbers, of numbers and strings, or of texts compared with each other."""
    random = Random(f"{kind} {number}")
    match kind:
        case "single":
            found = some_terms(random, occurs=("one",), domains=DOMAINS[1:5])
        case "numbers":
            found = some_terms(random, domains=DOMAINS[1:5])
        case _:
            found = some_terms(random)
    strings = STRINGS if kind in ("strings", "texts") else ()
    judge = Judge(found)
    if kind == "texts":
        judge.solver.add(judge.same_text())
    atoms = some_atoms(random, found, strings, texts=kind == "texts")
    return World(random, found, atoms, judge, exact=kind != "texts")


KINDS = pytest.mark.parametrize("kind", ["single", "numbers", "strings", "texts"])


@KINDS
def test_implies_and_disjoint(kind: str, mass: Mass) -> None:
    """Implications and contradictions are what z3 says, and enough of both kinds come up."""
    yes = count = 0
    for number in mass.cases(10):
        here = world(kind, number)
        for p, q in here.pairs(PAIRS):
            implied, apart = here.judge.implies(p, q), here.judge.disjoint(p, q)
            here.agree(implies(p, q), implied, p, q)
            here.agree(disjoint(p, q), apart, p, q)
            yes, count = yes + implied + apart, count + 2
    assert count == 2 * mass.done * PAIRS
    assert 0.2 < yes / count < 0.8 or mass.done < mass.total


@KINDS
def test_operations(kind: str) -> None:
    """Simplified, subtracted and relaxed predicates are, or contain, what z3 says that they must."""
    for number in some(range(4)):
        here = world(kind, number + 100)
        judge = here.judge
        for p, q in here.pairs(5):
            assert judge.equivalent(simplify(p), p), str(p)
            here.agree(not can_raise(p), judge.never_raises(p), p)
            rest = simplify(and_(p, not_(q)))
            assert judge.equivalent(rest, and_(p, not_(q))), f"{p} without {q}"
            here.agree(not satisfiable(rest), judge.disjoint(rest, rest), rest)
            here.agree(equivalent(p, q), judge.equivalent(p, q), p, q)
            here.agree(covers([rest, q], p), judge.implies(p, or_(rest, q)), p, q)
            assert judge.equivalent(relax(p, q, most=1_000), or_(p, q)), f"{p} and {q}"
            for wider in (relax(p, q, most=2), relax(p, q, most=1), hull(p, q)):
                assert judge.implies(or_(p, q), wider), f"{p} and {q} in {wider}"


@pytest.mark.parametrize("kind", ["single", "numbers", "strings"])
def test_images(kind: str) -> None:
    """A predicate's image has the same verdict on mapped items as the predicate has on the items."""
    mapped = 0
    for number in some(range(20)):
        random = Random(f"image {kind} {number}")
        here = world(kind, number)
        term = here.terms[0]
        change = Affine(Fraction(random.choice(("1", "2", "5/9"))), Fraction(random.choice(("0", "3", "-7/2"))))
        target = Term("$mapped", term.path, term.occurs)
        p = some_predicate(random, [each for each in here.atoms if image(each, term, change, target) is not None])
        found = image(p, term, change, target)
        assert found is not None
        mapped += term in terms(p)
        judge = Judge([*here.terms, target])
        before, after = judge.verdict(p), judge.verdict(found)
        differ = z3.Or(before.yes != after.yes, before.maybe != after.maybe)
        assert judge.never(z3.And(judge.maps(term, target, change), differ)), f"{p} under {change}"
    assert mapped > enough(5)
