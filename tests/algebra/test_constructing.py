"""The operators beyond the paper's six: Order, Quantify, Choose, Construct (LAWS 4.6, 4.7)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algebra.accented import CELSIUS, HERE, add, alter, answer, closed, drop, item, path, shown
from anabranch.algebra.operators.construct import Constant, Construct, Copy, Linear, Value
from anabranch.algebra.operators.order import Key, Order
from anabranch.algebra.operators.quantify import Quantify
from anabranch.algebra.plans.builder import stream
from anabranch.algebra.plans.interpret import Apply, StreamSource
from anabranch.errors import Aborted
from anabranch.predicate import Finite
from anabranch.stream.description import parse
from anabranch.stream.elements import Item
from anabranch.stream.tree import Element as Tree
from anabranch.stream.tree import Name
from models.interpreter import Interpreter

TO_CELSIUS = "alter t by . * 5 div 9 - 160 div 9"


def order(*keys: str) -> Order:
    return Order(tuple(Key(path(key.removeprefix("-")), key.startswith("-")) for key in keys))


def construct(**fields: Value) -> Construct:
    return Construct("o", tuple((path(at), value) for at, value in fields.items()))


def linear(text: str, factor: int | Fraction = 1, constant: int = 0) -> Linear:
    return Linear(((Fraction(factor), path(text)),), Fraction(constant))


# --- Order ----------------------------------------------------------------------------------------------------


def test_order_sorts_what_is_closed_together() -> None:
    """LAWS 2.3: nothing, NaN, numbers, times, text; equal ones as they came; a punctuation releases its own."""
    mixed = ("t=b", "t=10", "s=1", "t=9", "t=NaN", "t=9.0")
    assert answer(order("t"), *mixed) == ["s=1", "t=NaN", "t=9", "t=9.0", "t=10", "t=b"]
    moments = ["t=2026-01-01T00:00:00.5Z", "t=2026-01-01T00:00:00Z"]
    assert answer(order("t"), "t=b", *moments, "t=3") == ["t=3", *reversed(moments), "t=b"]
    assert answer(order("-t"), "t=1 s=1", "t=2", "t=1 s=2") == ["t=2", "t=1 s=1", "t=1 s=2"]
    found = answer(order("t"), "w=1 t=3", "w=2 t=1", "w=1 t=2", closed("w <= 1"), "w=2 t=0")
    assert found == ["w=1 t=2", "w=1 t=3", "closed w <= 1", "w=2 t=0", "w=2 t=1"]


def test_order_compares_canonical_values() -> None:
    """30 C is warmer than 77 F, and 20 C colder; the accent comes out at once, and all leaves in its unit."""
    found = answer(order("t"), "s=1 t=77", alter("t", CELSIUS), "s=1 t=30", "s=1 t=20")
    assert found == [TO_CELSIUS, "s=1 t=20", "s=1 t=25", "s=1 t=30"]


def test_order_cannot_do_without_its_keys() -> None:
    """LAWS 4.6; of other paths a drop strips what is kept (LAWS 4.2 c)."""
    with pytest.raises(Aborted, match="Order cannot do without 't'"):
        answer(order("t"), drop("t", "s = 1"))
    assert answer(order("t"), "t=2 x=1", drop("x"), "t=1") == ["drop x", "t=1", "t=2"]


def test_order_takes_one_value() -> None:
    """LAWS 2.4: an item with two values at a key gives nothing, and a failure."""
    query = Interpreter(Apply(order("c/v"), (StreamSource("0"),)))
    for each in ("c/v=1 c/v=2", "c/v=3"):
        assert not list(query.feed("0", item(each)))
    assert len(list(query.end())) == 1
    assert [each.code for each in query.failures] == ["XPTY0004"]


# --- Quantify -------------------------------------------------------------------------------------------------


def placed(*coordinates: tuple[int, int]) -> Item:
    """An item with elements `c`, each with a `ra` and a `dec`."""
    tree = Tree(Name("i"))
    for ra, dec in coordinates:
        inner = item(f"ra={ra} dec={dec}").tree
        inner.name = Name("c")
        tree.append(inner)
    return Item(tree, HERE)


def test_quantifiers_speak_of_one_element() -> None:
    """LAWS case 4: no element has both; and of no elements all do, some do not."""
    both = parse("ra > 5 and dec > 5")
    some, every = Quantify("some", path("c"), both), Quantify("every", path("c"), both)
    apart, at_once = placed((1, 9), (9, 1)), placed((1, 9), (9, 8))
    assert answer(some, apart, at_once, "s=1") == ["c/ra=1 c/ra=9 c/dec=9 c/dec=8"]
    assert answer(every, apart, at_once, "s=1", placed((6, 7))) == ["s=1", "c/ra=6 c/dec=7"]


def test_quantifiers_follow_units() -> None:
    """A unit change of a path below is compared canonically; its drop aborts (LAWS 4.6: `satisfies`)."""
    warm = Quantify("some", path("c"), parse("v > 68"))
    found = answer(warm, alter("c/v", CELSIUS), "c/v=19", "c/v=21")
    assert found == ["alter c/v by . * 5 div 9 - 160 div 9", "c/v=21"]
    with pytest.raises(Aborted, match="Quantify cannot do without 'c'"):
        answer(warm, drop("c"))


# --- Choose ---------------------------------------------------------------------------------------------------


def test_choose_is_a_conditional() -> None:
    """LAWS case 2: `else` is `not(...)`, so an item without the path goes there; the order stays."""
    query = stream("s").choose("en > 1.3", lambda hot: hot.project("en"), lambda other: other.project("phc"))
    fed = [("s", each) for each in ("phc=7", "en=2 phc=8", "en=1 phc=9")]
    assert shown(query.plan, fed) == ["phc=7", "en=2", "phc=9"]


def test_choose_lets_out_what_both_ways_do() -> None:
    """An alter of a path that both ways show comes out once; of one that only one way shows, its values stay."""
    both = stream("s").choose("s = 1", lambda way: way.project("s", "t"), lambda way: way)
    assert shown(both.plan, [("s", alter("t", ". * 2")), ("s", "s=1 t=8")]) == ["alter t by . * 2", "s=1 t=8"]
    one = stream("s").choose("s = 1", lambda way: way.project("s", "t"), lambda way: way.project("s"))
    assert shown(one.plan, [("s", alter("t", ". * 2")), ("s", "s=1 t=8"), ("s", "s=2 t=8")]) == ["s=1 t=4", "s=2"]
    with pytest.raises(Aborted, match="Select cannot do without 's'"):
        shown(both.plan, [("s", drop("s"))])


# --- Construct ------------------------------------------------------------------------------------------------


def test_accents_come_out_by_the_names_of_the_output() -> None:
    """A path that stands twice has two accents; descriptions are told by the new names, too."""
    twice = construct(a=Copy(path("t")), b=Copy(path("t")), n=Copy(path("s")), k=Constant("x"))
    found = answer(twice, add("t", "s = 2"), "s=2 t=5", alter("t", ". * 2", "s = 2"), "s=2 t=10", drop("t"))
    assert found == [
        "add a where n = 2",
        "add b where n = 2",
        "a=5 b=5 n=2 k=x",
        "alter a by . * 2 where n = 2",
        "alter b by . * 2 where n = 2",
        "a=10 b=10 n=2 k=x",
        "drop a",
        "drop b",
    ]


@pytest.mark.parametrize(
    ("factor", "constant", "accent", "value"),
    [
        (1, 0, ". * 5 div 9 - 160 div 9", "25"),
        (2, 3, ". * 5 div 9 - 308 div 9", "53"),
        (-1, 0, ". * 5 div 9 + 160 div 9", "-25"),
        (Fraction(1, 3), -1, ". * 5 div 9 - 172 div 27", "7.333333333333333"),
    ],
)
def test_an_affine_field_follows(factor: int | Fraction, constant: int, accent: str, value: str) -> None:
    """LAWS 4.7: the map is that of the field, also where it turns the order round; 25 C is 25, not 77."""
    found = answer(construct(z=linear("t", factor, constant)), alter("t", CELSIUS), "t=25")
    assert found == [f"alter z by {accent}", f"z={value}"]


def test_other_fields_absorb() -> None:
    """LAWS 4.7: a sum of two paths stays in the units of query start."""
    two = Linear(((Fraction(1), path("t")), (Fraction(1), path("x"))))
    found = answer(construct(u=two), alter("t", ". * 2"), "t=10 x=1", "t=10", "x=1")
    assert found == ["u=6", "", ""]


def test_hidden_descriptions_accumulate() -> None:
    """What is not copied cannot be named: the alter waits until it holds for all."""
    sensors = {path("s"): Finite(frozenset({"1", "2"}))}
    only = construct(z=linear("t", 2))
    first, second = alter("t", ". * 3", "s = 1"), alter("t", ". * 3", "s = 2")
    assert answer(only, first, "s=1 t=6", second, "s=1 t=6", domains=sensors) == ["z=4", "alter z by . * 3", "z=12"]


def test_a_copy_takes_along_what_lies_in_it() -> None:
    """Paths below are named below the new name, also those that are added later."""
    found = answer(construct(o=Copy(path("c"))), "c/v=1 c/v=2", add("c/w"), alter("c/v", ". * 2"), "c/v=4")
    assert found == ["o/v=1 o/v=2", "add o/w", "alter o/v by . * 2", "o/v=4"]
    assert answer(construct(o=Copy(path("c/v"))), drop("c")) == ["drop o"]


def test_words_fail_arithmetic() -> None:
    """LAWS 2.4; INF and NaN are doubles."""
    query = Interpreter(Apply(construct(z=linear("t", 2)), (StreamSource("0"),)))
    found = [each for text in ("t=hot", "t=1 t=2", "t=3") for each in query.feed("0", item(text))]
    assert len(found) == 1
    assert [each.code for each in query.failures] == ["FORG0001", "XPTY0004"]
    assert answer(construct(z=linear("t", -2)), "t=INF", "t=NaN") == ["z=-INF", "z=NaN"]
