"""Descriptions as sets: division, combination, rewriting, hidden paths, coverage; each judged item by item."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from algebra.accents.generate import GRID, description, grid
from algebra.accents.making import items, path, tree
from anabranch.algebra.accents.boxes import combined, divided, empty, for_all, for_some, within
from anabranch.algebra.accents.items import leaves, number, spelled, values
from anabranch.algebra.accents.sets import description_of, fulfils, items_of, parted, rewritten
from anabranch.predicate import EVERYTHING, Finite, Reals, and_, not_, or_
from anabranch.stream import affine
from anabranch.stream.description import parse
from anabranch.stream.tree import Element, Name, Text
from mass import some
from models.items import altered, overlap

ITEMS = grid()
SEEDS = some(range(10))


@pytest.mark.parametrize("text", ["t > 50 div 3", "a = 'FOO' and not(t <= -1 div 3)", "not(true())", "true()"])
def test_descriptions_round_trip(text: str) -> None:
    """A set is written as the description it came from, fractions that are no decimals included."""
    described = parse(text)
    assert str(described) == text
    assert description_of(items_of(described)) == described


def test_missing_paths() -> None:
    """LAWS 4.4: `not(a = 'FOO')` is fulfilled without `a`, `a != 'FOO'` is not; a word is not below 5."""
    bare, word = tree(b=1), tree(b="word")
    assert fulfils(bare, items("not(a = 'FOO')"))
    assert not fulfils(bare, items("a != 'FOO'"))
    assert fulfils(word, items("not(b < 5)"))
    assert not fulfils(word, items("b >= 5"))
    assert within(EVERYTHING, or_(items("b < 5"), items("not(b < 5)")))
    assert not within(EVERYTHING, or_(items("b < 5"), items("b >= 5")))


@pytest.mark.parametrize("seed", SEEDS)
def test_division(seed: int) -> None:
    """Every item of a set is in exactly one part of its division, every other in none; combining changes nothing."""
    random = Random(seed)
    whole = items(description(random, depth=3))
    parts, fewer = divided(whole), combined(whole)
    for each in ITEMS:
        described = fulfils(each, whole)
        assert sum(fulfils(each, part) for part in parts) == described
        assert fulfils(each, fewer) == described


@pytest.mark.parametrize("seed", SEEDS)
def test_comparing(seed: int) -> None:
    """One set is within another, or overlaps it, just where the items say so."""
    random = Random(seed)
    one, other = items(description(random)), items(description(random))
    verdicts = [(fulfils(each, one), fulfils(each, other)) for each in ITEMS]
    assert within(one, other) == all(there for here, there in verdicts if here)
    assert overlap(one, other) == ((True, True) in verdicts)


@pytest.mark.parametrize("seed", SEEDS)
def test_hidden_paths(seed: int) -> None:
    """With `t` hidden an item is in the set for some, for all values that it may have there."""
    random = Random(seed)
    whole = items(description(random, depth=3))
    some, every = for_some(whole, [path("t")]), for_all(whole, [path("t")])
    for at in range(0, len(ITEMS), len(GRID["t"])):
        verdicts = [fulfils(each, whole) for each in ITEMS[at : at + len(GRID["t"])]]
        assert fulfils(ITEMS[at], some) == any(verdicts)
        assert fulfils(ITEMS[at], every) == all(verdicts)


@pytest.mark.parametrize("seed", SEEDS)
def test_rewriting(seed: int) -> None:
    """A set told by the values after a unit change has the same items, and so has one whose path comes or goes."""
    random = Random(seed)
    whole, where = items(description(random)), items(description(random, names="as"))
    by = affine.parse(random.choice(("(. - 32) * 5 div 9", ". * 2", ". + 1")))
    told = rewritten(whole, path("t"), where, by)
    assert told is not None
    gone = parted(whole, path("t"), where)
    for each in ITEMS:
        described = fulfils(each, where)
        assert fulfils(altered(each, path("t"), by) if described else each, told) == fulfils(each, whole)
        bare = tree(**{name: values(each, path(name))[0] for name in "as" if values(each, path(name))})
        assert fulfils(each, gone) == fulfils(bare if described else each, whole)


def test_text_has_no_image() -> None:
    """What compares an altered path as text cannot be told after the change; of other paths it can."""
    assert rewritten(items("t = '25.0'"), path("t"), EVERYTHING, affine.parse(". * 2")) is None
    assert rewritten(items("a = '25.0'"), path("t"), EVERYTHING, affine.parse(". * 2")) == items("a = '25.0'")


def test_case_20() -> None:
    """LAWS case 20: the second addition of a Union, disjoint from the first, also for items without `a`."""
    first, second = items("a = 'FOO' and c < 3"), items("b < 5")
    parts = divided(and_(second, not_(first)))
    assert [str(description_of(part)) for part in parts] == [
        "b < 5 and not(a = 'FOO')",
        "b < 5 and not(c < 3) and a = 'FOO'",
    ]
    assert within(or_(first, second), or_(first, *parts))
    assert not any(overlap(first, part) for part in parts)


def test_coverage_with_domains_and_intervals() -> None:
    """Sensors 1 and 2 are all there are where the domain says so, and intervals cover a declared range."""
    sensors = {path("s"): Finite(frozenset(("1", "2")))}
    assert within(EVERYTHING, or_(items("s = 1", sensors), items("s = 2", sensors)))
    assert not within(EVERYTHING, or_(items("s = 1"), items("s = 2")))
    declared = {path("t"): Reals()}
    assert (
        str(description_of(combined(items("s = 1 and t < 5 or s = 1 and t = 5 or s = 1 and t > 5", declared))))
        == "s = 1"
    )
    assert empty(items("s = 3", sensors))


def test_values_in_items() -> None:
    """Values stand in elements and attributes, may repeat, and are mapped exactly; the item stays as it is."""
    root, coord = Element(Name("r")), Element(Name("coord"))
    coord.set(Name("unit"), "7")
    for text in ("1.50", "word", "INF"):
        ra = Element(Name("ra"))
        ra.append(Text(text))
        coord.append(ra)
    root.append(coord)
    assert values(root, path("coord/ra")) == ["1.50", "word", "INF"]
    assert list(leaves(root)) == [path("coord/@unit"), path("coord/ra")]
    mapped = altered(
        altered(root, path("coord/ra"), affine.parse(". div 9")), path("coord/@unit"), affine.parse(". * 2")
    )
    assert values(mapped, path("coord/ra")) == ["1/6", "word", "INF"]
    assert values(mapped, path("coord/@unit")) == ["14"]
    assert values(root, path("coord/@unit")) == ["7"]
    assert number("1/6") == Fraction(1, 6)
    assert number(spelled(Fraction(-5, 4))) == Fraction(-5, 4)
    assert altered(root, path("coord/ra"), affine.IDENTITY) is root
