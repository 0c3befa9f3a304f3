"""Predicates against the reference evaluator: what they promise is true of real items and real query text.

z3 judges the mathematics; here the text of each predicate is asked as a query, over items with repeated and missing
values, NaN, INF and words.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from anabranch.language import check, parse
from anabranch.law import evaluate, text_input
from anabranch.predicate import (
    TEXT,
    And,
    Compare,
    Difference,
    Domain,
    Finite,
    Integers,
    Not,
    Occurs,
    Predicate,
    Reals,
    Term,
    and_,
    compare,
    difference,
    disjoint,
    hull,
    implies,
    not_,
    or_,
    relax,
    simplify,
)
from anabranch.stream.path import Path
from mass import some
from predicate.generate import OCCURS, some_atoms, some_predicate
from predicate.judge import STRINGS

NUMBERS: tuple[str, ...] = ("-1", "-0.50", "0", "0.5", "1", "1.0", " 1 ", "2", "2.5", "25e-1", "3", "4.5")
MOMENTS = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z")
"""The first two are one moment, and as texts the last stands before the first."""
WORDS: tuple[str, ...] = ("", "a", "b", "1x", "NaN", "INF", "-INF", *MOMENTS)
ITEMS = 100


def some_values(random: Random, term: Term) -> list[str]:
    """Values that a term may have."""
    texts: tuple[str, ...]
    match term.domain:
        case Reals():
            texts = NUMBERS
        case Integers():
            texts = tuple(each for each in NUMBERS if float(each).is_integer())
        case Finite(known):
            texts = tuple(sorted(known))
        case _:
            texts = NUMBERS + WORDS
    count = {"one": 1, "optional": random.randint(0, 1), "many": random.choice((0, 1, 1, 2, 3))}[term.occurs]
    return [random.choice(texts) for _ in range(count)]


def some_stream(random: Random, terms: list[Term]) -> str:
    """Numbered items."""
    items = []
    for number in range(ITEMS):
        fields = [(str(term.path), value) for term in terms for value in some_values(random, term)]
        items.append(f'<i n="{number}">{"".join(f"<{name}>{value}</{name}>" for name, value in fields)}</i>')
    return f"<r>{''.join(items)}</r>"


def verdicts(predicate: Predicate, stream: str) -> list[int]:
    """What the reference evaluator says of each item: 0 for no, 1 for an error, 2 for yes."""
    query = f'for $p in stream("s")/r/i where {predicate} return <n>{{ string($p/@n) }}</n>'
    given = {"s": text_input(stream, name="s")}
    answer = evaluate(check(parse(query), query, inputs=dict.fromkeys(given)).query, given, name="q")
    found = [0] * ITEMS
    for number in re.findall("<n>([0-9]+)</n>", answer.text):
        found[int(number)] = 2
    for letter in answer.dead:
        numbered = re.match('<i n="([0-9]+)"', letter.raw)
        assert numbered is not None
        found[int(numbered[1])] = 1
    return found


DOMAINS: tuple[Domain, ...] = (TEXT, TEXT, Reals(), Integers(), Finite(frozenset(("1", "2.5", "a"))))


def some_term(random: Random, name: str) -> Term:
    """A term of the item."""
    occurs: Occurs = random.choice(OCCURS)
    return Term("$p", Path((name,)), occurs, random.choice(DOMAINS))


@pytest.mark.parametrize("number", some(range(3)))
def test_promises_hold_for_items(number: int) -> None:
    """Where p implies q no item stands higher with p, where they are disjoint none fulfils both."""
    random = Random(f"law {number}")
    terms = [some_term(random, name) for name in "xyz"]
    stream = some_stream(random, terms)
    atoms = some_atoms(random, terms, STRINGS, True, ("sum", "distance"), count=12)
    known = {predicate: verdicts(predicate, stream) for predicate in atoms}
    for _ in range(8):
        made = some_predicate(random, atoms)
        known[made] = verdicts(made, stream)
    promises = 0
    for p, left in known.items():
        for q, right in known.items():
            if p != q and implies(p, q):
                promises += 1
                wrong = [item for item in range(ITEMS) if left[item] > right[item]]
                assert not wrong, f"{p} implies {q}, but not for items {wrong}"
            if disjoint(p, q):
                promises += 1
                assert not any(a == b == 2 for a, b in zip(left, right, strict=True)), (str(p), str(q))
    assert promises > 3


@pytest.mark.parametrize("number", some(range(2)))
@pytest.mark.mass
def test_operations_hold_for_items(number: int) -> None:
    """Simplified predicates and differences have the same verdicts as query text; relaxed ones lose no item."""
    random = Random(f"operations {number}")
    terms = [some_term(random, name) for name in "xyz"]
    stream = some_stream(random, terms)
    atoms = some_atoms(random, terms, STRINGS, True, ("sum", "distance"), count=12)
    for _ in range(4):
        p, q = some_predicate(random, atoms), some_predicate(random, atoms)
        assert verdicts(simplify(p), stream) == verdicts(p, stream), str(p)
        assert verdicts(simplify(and_(p, not_(q))), stream) == verdicts(and_(p, not_(q)), stream)
        union = verdicts(or_(p, q), stream)
        assert verdicts(relax(p, q, most=1_000), stream) == union
        for wider in (relax(p, q, most=1), hull(p, q)):
            assert all(a <= b for a, b in zip(union, verdicts(wider, stream), strict=True)), (str(p), str(q))


ROUNDED = ("0.1", "0.2", "0.3", "0.30000000000000004", "0.299999999999999999999", "0.7", "0.8", "0.7999999999999999")
LARGE = ("1e17", "100000000000000001", "9007199254740993", "1.7e308", "-1.7e308", "1e400", "INF", "0", "-0.1")


X, Y = (Term("$p", Path((name,)), "one") for name in "xy")
BY_TENTHS = difference(X, ">=", Y, Decimal("0.1"))
WRONG_IF_EXACT = [
    (difference(X, ">=", Y, Decimal("0.3")), difference(X, ">", Y, Decimal("0.2")), "1e17", "1e17"),
    (and_(BY_TENTHS, compare(Y, ">=", Decimal("0.7"))), compare(X, ">=", Decimal("0.8")), "0.7999999999999999", "0.7"),
    (difference(X, "<=", Y, 0), not_(difference(X, ">", Y)), "100000000000000001", "100000000000000000"),
]


@pytest.mark.parametrize(("p", "q", "x", "y"), WRONG_IF_EXACT)
def test_rounding_is_not_overlooked(p: Predicate, q: Predicate, x: str, y: str) -> None:
    """An implication that holds for true numbers is not promised for doubles, and the reference shows an item why."""
    items = f'<r><i n="0"><x>{x}</x><y>{y}</y></i></r>'
    assert (verdicts(p, items)[0], verdicts(q, items)[0]) == (2, 0)
    assert not implies(p, q)
    assert implies(_exactly(p), _exactly(q))


def _exactly(predicate: Predicate) -> Predicate:
    """The same, in true numbers."""
    match predicate:
        case And(parts):
            return and_(*map(_exactly, parts))
        case Not(part):
            return not_(_exactly(part))
        case Difference(left, op, right, offset):
            return Difference(replace(left, domain=Reals()), op, replace(right, domain=Reals()), offset, "exact")
        case Compare(term, op, constant):
            return Compare(replace(term, domain=Reals()), op, constant)
    raise AssertionError(predicate)


@pytest.mark.mass
def test_rounded_sums() -> None:
    """No promise about sums and distances fails for values that round."""
    pairs = [(a, b) for a in ROUNDED + LARGE for b in ROUNDED + LARGE]
    random = Random("rounded")
    offsets = [Fraction(each) for each in ("0.1", "0.2", "0.3", "0", "-0.1", "1", "0.7", "0.8", str(10**17))]
    promises = 0
    for _ in range(2):
        items = "".join(
            f'<i n="{number}"><x>{a}</x><y>{b}</y></i>' for number, (a, b) in enumerate(random.sample(pairs, ITEMS))
        )
        atoms = some_atoms(random, [X, Y], (), True, ("sum", "distance"), offsets, count=16)
        made = [*atoms, *(and_(*random.sample(atoms, 2)) for _ in range(12))]
        known = {predicate: verdicts(predicate, f"<r>{items}</r>") for predicate in made}
        for p, left in known.items():
            for q, right in known.items():
                if p != q and implies(p, q):
                    promises += 1
                    assert all(a <= b for a, b in zip(left, right, strict=True)), (str(p), str(q))
    assert promises > 20
