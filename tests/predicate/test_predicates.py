"""Predicates by example: the cases of LAWS, what relaxing and subtracting give, and how they are written."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction

import pytest

import anabranch.predicate
from anabranch.language import parse
from anabranch.predicate import (
    EVERYTHING,
    MOST_DISJUNCTS,
    NOTHING,
    TEXT,
    Domain,
    Finite,
    Integers,
    Occurs,
    Predicate,
    Reals,
    Term,
    and_,
    can_raise,
    compare,
    covers,
    difference,
    disjoint,
    disjuncts,
    equivalent,
    hull,
    image,
    implies,
    not_,
    or_,
    relax,
    satisfiable,
    simplify,
)
from anabranch.predicate.texts import INF, MINUS_INF, NAN, WORD, number_of
from anabranch.stream import affine
from anabranch.stream.path import Path
from anabranch.values.numbers import exact_number


def term(path: str, occurs: Occurs = "one", domain: Domain = TEXT, input: str = "") -> Term:
    """A term, by default of single texts."""
    return Term(input, Path.parse(path), occurs, domain)


def both(low: Predicate, high: Predicate) -> Predicate:
    """Both bounds of an interval."""
    return and_(low, high)


@pytest.mark.parametrize(("occurs", "contradicts"), [("one", True), ("optional", True), ("many", False)])
def test_case_1_bounds_contradict_only_for_single_values(occurs: Occurs, contradicts: bool) -> None:
    """LAWS case 1: `en >= 4 and en <= 2` selects an item with 1 and 5, so it is no contradiction where `en` repeats."""
    en = term("en", occurs)
    assert disjoint(compare(en, ">=", 4), compare(en, "<=", 2)) == contradicts


@pytest.mark.parametrize(
    ("occurs", "domain", "known"),
    [("one", Reals(), True), ("optional", Reals(), False), ("many", Reals(), False), ("one", TEXT, False)],
)
def test_cases_2_and_3_what_is_not_less_need_not_be_more(occurs: Occurs, domain: Domain, known: bool) -> None:
    """LAWS cases 2 and 3: a value that is missing, NaN or repeated fulfils `not(en < 5)` without `en >= 5`."""
    en = term("en", occurs, domain)
    assert implies(not_(compare(en, "<", 5)), compare(en, ">=", 5)) == known
    assert covers([compare(en, "<", 5), compare(en, ">=", 5)]) == known


def test_text_that_is_no_number_raises() -> None:
    """Where `en` may be a word, an item on which p raises must not be lost: the dead letters get it (LAWS 2.4)."""
    en, phc = term("en"), term("phc", domain=Reals())
    contradiction = both(compare(en, ">=", 4), compare(en, "<=", 2))
    assert not satisfiable(contradiction)
    assert not implies(contradiction, NOTHING)
    assert implies(contradiction, compare(en, ">", 3))
    assert not implies(contradiction, compare(phc, ">", 3))
    assert equivalent(compare(en, ">", 3), both(compare(en, ">", 3), compare(en, ">", 2)))
    assert can_raise(compare(en, ">", 3))
    assert not can_raise(compare(phc, ">", 3))
    assert not can_raise(and_(compare(en, "=", "a"), difference(en, "<", term("k"))))
    assert can_raise(difference(phc, "<", en, 1))
    assert not can_raise(EVERYTHING)


def test_case_15_two_texts_that_are_numbers() -> None:
    """LAWS case 15: `$x/phc >= $y/phc` compares numbers, so bounds of both decide it."""
    x, y = term("phc", domain=Reals(), input="$x"), term("phc", domain=Reals(), input="$y")
    assert disjoint(difference(x, ">=", y), and_(compare(x, "=", 99), compare(y, "=", 100)))
    assert implies(and_(difference(x, ">=", y), compare(y, ">=", 100)), compare(x, ">=", 100))


def test_case_16_equal_texts_and_equal_numbers() -> None:
    """LAWS case 16: `a = b` compares texts, so equal numbers do not make it true, but equal texts are equal numbers."""
    a, b = term("a"), term("b")
    same, number = difference(a, "=", b), Decimal("1.30")
    assert not implies(and_(compare(a, "=", number), compare(b, "=", number)), same)
    assert implies(and_(same, compare(a, "=", number)), compare(b, "=", number))
    assert disjoint(same, and_(compare(a, "=", "1.3"), compare(b, "=", "1.30")))
    assert implies(and_(compare(a, "=", "1.3"), compare(b, "=", "1.3")), same)
    assert implies(compare(a, "=", "1.3"), compare(a, "=", number))


def test_texts_of_the_same_moment_are_neither_equal_nor_less() -> None:
    """LAWS 2.3: two dateTimes may be one moment in different words, and as texts another order than as times."""
    a, b = term("a"), term("b")
    neither = and_(difference(a, "<=", b), difference(a, ">=", b), difference(a, "!=", b))
    assert satisfiable(neither)
    assert not implies(and_(difference(a, "<=", b), difference(a, "!=", b)), difference(a, "<", b))
    words = term("a", domain=Finite(frozenset(("x", "y")))), term("b", domain=Finite(frozenset(("x", "y"))))
    assert disjoint(
        difference(words[0], "<=", words[1]),
        and_(difference(words[0], ">=", words[1]), difference(words[0], "!=", words[1])),
    )
    later, earlier = "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"
    times = term("a", domain=Finite(frozenset((later,)))), term("b", domain=Finite(frozenset((earlier,))))
    assert satisfiable(difference(times[0], ">", times[1]))
    assert disjoint(difference(times[0], ">", times[1]), difference(times[0], "=", times[1]))


def test_case_18_image_of_a_unit_change() -> None:
    """LAWS case 18: with t changed from F to C, `t >= 38.84` is `t >= 3.8`."""
    t = term("t")
    change = affine.parse("(. - 32) * 5 div 9")
    changed = image(compare(t, ">=", Decimal("38.84")), t, change, t)
    assert changed is not None
    assert str(changed) == "t >= 3.8"
    assert image(compare(t, "=", "38.84"), t, change, t) is None
    assert image(compare(term("s"), "=", "A"), t, change, t) == compare(term("s"), "=", "A")


def test_case_20_growth_of_a_union() -> None:
    """LAWS case 20: what S adds beyond T is apart from T, with it covers both, and holds for an item without `a`."""
    a, b, c = term("a", "optional"), term("b", "optional", Reals()), term("c", "optional", Reals())
    t = and_(compare(a, "=", "FOO"), compare(c, "<", 3))
    s = compare(b, "<", 5)
    growth = simplify(and_(s, not_(t)))
    assert str(growth) == "b < 5 and not(a = 'FOO') or b < 5 and not(c < 3)"
    assert disjoint(growth, t)
    assert covers([t, growth], or_(t, s))
    without_a = not_(or_(compare(a, "=", ""), compare(a, "!=", "")))
    assert implies(and_(s, without_a), growth)


def test_domains() -> None:
    """Integers and finite domains decide what dense numbers leave open."""
    whole, real = term("n", domain=Integers()), term("n", domain=Reals())
    above, from_next = compare(whole, ">", 4), compare(whole, ">=", 5)
    assert equivalent(above, from_next)
    assert not equivalent(compare(real, ">", 4), compare(real, ">=", 5))
    few = term("n", domain=Integers(Fraction(1), Fraction(3)))
    assert covers([compare(few, "=", 1), compare(few, "=", 2), compare(few, "=", 3)])
    color = term("c", domain=Finite(frozenset(("red", "green", "7"))))
    assert not covers([compare(color, "=", 7), compare(color, "!=", 7)])  # red and green raise
    assert covers([compare(color, "=", "red"), compare(color, "=", "green"), compare(color, "=", "7")])
    assert disjoint(compare(color, "=", "red"), compare(color, ">", "red"))


def test_differences_add_up() -> None:
    """Exact differences over single numbers are transitive, also across inputs."""
    x, y, z = (term("t", domain=Reals(), input=f"${name}") for name in "xyz")
    half = Decimal("0.5")
    steps = and_(difference(x, ">=", y, half, "exact"), difference(y, ">", z, half, "exact"))
    assert implies(steps, difference(x, ">", z, 1, "exact"))
    assert not implies(steps, difference(x, ">", z, Decimal("1.01"), "exact"))
    assert disjoint(steps, difference(z, ">=", x))


def test_interval_joins_of_different_size() -> None:
    """The interval of 5 lies within that of 10, as figure 11 writes intervals and as sums, in a query's own doubles."""
    x, y = (term("t", input=f"${name}") for name in "xy")

    def interval(size: int) -> Predicate:
        return and_(difference(x, "<=", y, size, "distance"), difference(y, "<=", x, size, "distance"))

    def sums(size: int) -> Predicate:
        return and_(difference(x, ">=", y, -size), difference(x, "<=", y, size))

    assert implies(interval(5), interval(10))
    assert not implies(interval(10), interval(5))
    assert implies(sums(5), sums(10))
    assert not implies(sums(10), sums(5))
    assert str(interval(5)) == "$x/t - $y/t <= 5 and $y/t - $x/t <= 5"


def test_relax_keeps_the_union_while_it_is_small() -> None:
    """Overlapping intervals become one, others stand side by side, and what lies in another vanishes."""
    en = term("en", domain=Reals())
    first = both(compare(en, ">", 3), compare(en, "<=", 5))
    assert str(relax(first, both(compare(en, ">", 4), compare(en, "<=", 6)))) == "en > 3 and en <= 6"
    assert str(relax(first, compare(en, "=", 4))) == "en > 3 and en <= 5"
    assert str(relax(first, compare(en, "<", 1))) == "en > 3 and en <= 5 or en < 1"
    assert relax(first, compare(en, "<=", 3), compare(en, ">", 5)) == EVERYTHING


@pytest.mark.parametrize(("occurs", "apart"), [("one", True), ("optional", True), ("many", False)])
def test_relax_of_neighbours(occurs: Occurs, apart: bool) -> None:
    """Intervals that touch become one; where `en` repeats, that is still their union, though an item may be in both."""
    en = term("en", occurs, Reals())
    first, second = both(compare(en, ">", 3), compare(en, "<=", 5)), both(compare(en, ">", 5), compare(en, "<=", 7))
    assert str(relax(first, second)) == "en > 3 and en <= 7"
    assert disjoint(first, second) == apart


@pytest.mark.mass
def test_relax_is_bounded() -> None:
    """The union of a hundred boxes stays within the bound, contains them all, and is found in reasonable time."""
    ra, dec = term("ra"), term("dec")
    boxes = [
        and_(
            both(compare(ra, ">=", 10 * n % 360), compare(ra, "<", 10 * n % 360 + 5)),
            both(compare(dec, ">=", 7 * n % 180 - 90), compare(dec, "<", 7 * n % 180 - 80)),
        )
        for n in range(100)
    ]
    shared: Predicate = NOTHING
    began = time.process_time()
    for box in boxes:
        shared = relax(shared, box)
    assert time.process_time() - began < 10
    assert len(disjuncts(shared)) <= MOST_DISJUNCTS
    assert all(implies(box, shared) for box in boxes)
    assert not implies(compare(ra, ">=", 0), shared)


def test_hull_is_the_least_box() -> None:
    """The hull of two boxes has their outermost bounds, and no others."""
    ra, dec = term("ra", domain=Reals()), term("dec", domain=Reals())
    first = and_(compare(ra, ">=", 120), compare(ra, "<=", 138), compare(dec, "=", -45))
    second = and_(compare(ra, ">", 130), compare(ra, "<", 140), compare(dec, "<", -50))
    assert str(hull(first, second)) == "ra >= 120 and dec <= -45 and ra < 140"
    assert str(hull(first, compare(dec, ">", 0))) == "dec >= -45"
    assert hull(first, compare(term("en"), ">", 0)) == EVERYTHING
    assert hull(NOTHING) == NOTHING


def test_simplify() -> None:
    """What follows from the rest goes, and denied comparisons of single numbers are turned round."""
    en, s = term("en", domain=Reals()), term("s", "optional")
    assert str(simplify(not_(or_(compare(en, "<", 5), compare(en, "=", 3))))) == "en >= 5"
    assert str(simplify(not_(and_(compare(en, "<", 5), compare(s, "=", "A"))))) == "en >= 5 or not(s = 'A')"
    assert simplify(and_(compare(en, "<", 5), compare(en, ">", 6))) == NOTHING
    assert simplify(or_(compare(en, "<", 6), compare(en, ">", 5))) == EVERYTHING


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (EVERYTHING, "true()"),
        (NOTHING, "false()"),
        (compare(term("a/@b", input="$x"), "!=", "it's & so on"), "$x/a/@b != 'it''s &amp; so on'"),
        (compare(term("a"), "<", Decimal("-0.050")), "a < -0.05"),
        (compare(term("a"), "<", Fraction(1, 3)), "a < 1 div 3"),
        (compare(term("a"), "<", 1_000_000), "a < 1000000"),
        (difference(term("a"), ">=", term("b"), Decimal("0.5")), "a >= b + 0.5"),
        (difference(term("a"), ">=", term("b"), -2), "a >= b - 2"),
        (difference(term("a"), "=", term("b")), "a = b"),
        (
            and_(or_(compare(term("a"), "=", 1), compare(term("b"), "=", 2)), not_(compare(term("c"), "=", 3))),
            "(a = 1 or b = 2) and not(c = 3)",
        ),
        (or_(and_(compare(term("a"), "=", 1), compare(term("b"), "=", 2)), NOTHING), "a = 1 and b = 2"),
    ],
)
def test_text(predicate: Predicate, text: str) -> None:
    """Predicates are written as conditions that the parser takes."""
    assert str(predicate) == text
    parse(f'for $x in stream("s")/r/i return $x[{text}]')


def test_a_search_that_is_too_long_promises_nothing() -> None:
    """A predicate with a hundred thousand combinations gets an answer soon, and none that is wrong."""
    n = [term(f"x{index}", "many") for index in range(40)]
    p = and_(*(or_(compare(each, ">", 1), difference(each, "<", n[0])) for each in n))
    q = and_(*(or_(compare(each, "<", 0), difference(n[0], "<", each)) for each in n))
    began = time.process_time()
    assert not implies(p, q)
    assert not disjoint(p, q)
    assert equivalent(simplify(p), p)
    assert time.process_time() - began < 10


@pytest.mark.mass
def test_very_many_parts() -> None:
    """A union of a thousand intervals is no reason to fail: within a few hundred it is decided, beyond not."""
    en = term("en", domain=Reals())
    steps = [both(compare(en, ">=", n), compare(en, "<", n + 1)) for n in range(1_000)]
    assert covers(steps[:100], both(compare(en, ">=", 0), compare(en, "<", 100)))
    assert not covers(steps[:100], both(compare(en, ">=", 0), compare(en, "<=", 100)))
    assert implies(compare(en, "=", 150), or_(*steps[:200]))
    assert not implies(compare(en, "=", 150), or_(*(step for step in steps if step != steps[150])))
    assert isinstance(covers(steps, both(compare(en, ">=", 0), compare(en, "<", 1_000))), bool)


@pytest.mark.parametrize(
    "text", ["1", "-1.50", "+.5", "3.", "2e3", "25E-1", " 7 ", "", "x", "1e", "0x1", "1_0", "٣", "."]
)
def test_numbers_are_read_as_everywhere(text: str) -> None:
    """A constant text is the number that the engine reads it as, or a word."""
    number = exact_number(text)
    assert number_of(text) == (WORD if number is None else Fraction(number))


def test_special_numbers() -> None:
    """INF and NaN are kinds of their own, and a number too long to reckon is left open."""
    assert [number_of(each) for each in ("INF", "+INF", "-INF", "NaN", "1e5000")] == [INF, INF, MINUS_INF, NAN, None]


def test_predicates_travel() -> None:
    """A predicate that another process has pickled is equal and found in a set: hashes of text do not travel."""
    program = (
        "import pickle, sys; from anabranch.predicate import *; p = compare(Term('', Path(('a',))), '=', 'x');"
        "hash(p); sys.stdout.buffer.write(pickle.dumps(p))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert pickle.loads(done.stdout) in {compare(Term("", Path(("a",))), "=", "x")}  # noqa: S301  # our own


def test_the_examples_in_the_documentation() -> None:
    """The examples in the headers say what happens."""
    names = {**vars(anabranch.predicate), "Decimal": Decimal}
    for module in (anabranch.predicate, sys.modules["anabranch.predicate.normal"]):
        found = doctest.testmod(module, extraglobs=names)
        assert (found.failed, found.attempted > 0) == (0, True)
