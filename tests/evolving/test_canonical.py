"""Items in the units of a query's start, and queries over them."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from random import Random
from typing import Any

import pytest

from algebra.accents.making import PLACE, add, alter, drop, path, tree
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import leaves, nodes
from anabranch.law import text_input
from anabranch.law.evolution.canonical import canonical, measured, remeasured
from anabranch.logic import EVERYTHING
from anabranch.predicate.writing import number_text
from anabranch.stream.affine import IDENTITY, parse
from anabranch.stream.elements import Accent, Alter
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Attribute, Element, Text, descendants, in_document_order, texts
from anabranch.values.atomic import Atomic, Untyped, compare
from anabranch.values.numbers import exact_number, nearest_double, no_number, spell_double
from anabranch.values.operators import ComparisonOperator
from evolving.measuring import ask, evolved
from evolving.measuring import measured as measured_input
from oracle.generate import Case, case

# --- trees ------------------------------------------------------------------------------------------------------------


def item(text: str) -> Element:
    return parse_item(text.encode(), Limits())


def unknown(evolution: Evolution, tree: Element) -> tuple[Path, ...]:
    return tuple(each for each in (Path(()), *leaves(tree)) if evolution.state(each, tree).unit is None)


def test_nothing_touched() -> None:
    """An item that no unit change touches keeps its very tree."""
    one = tree(s=1, t=20, u="x")
    assert canonical(one, Evolution()) is one
    assert canonical(one, evolved([drop("p"), add("q", "s = 2")])) is one
    assert canonical(one, evolved([alter("t", ". * 2", "s = 2")])) is one
    assert canonical(one, evolved([alter("u", ". * 2")])) is one  # a word
    assert canonical(one, evolved([alter("t", ". * 2"), alter("t", ". div 2")])) is one


def test_touched() -> None:
    """Another tree, at the same place in document order, whose touched values are measured; the first is left alone."""
    one = item("<i k='4'><c><t>2.0</t><t>x</t></c><!-- no --><u>7</u></i>")
    found = canonical(one, evolved([alter("c/t", ". * 2"), alter("@k", ". + 1")]))
    assert serialize(found) == '<i k="3"><c><t>1</t><t>x</t></c><!-- no --><u>7</u></i>'
    assert serialize(one) == '<i k="4"><c><t>2.0</t><t>x</t></c><!-- no --><u>7</u></i>'
    below: list[Any] = [found, *found.attributes, *descendants(found)]
    assert in_document_order(below) == below
    assert [each.order for each in below] == [each.order for each in (one, *one.attributes, *descendants(one))]
    assert found.attributes[0].measure is not None
    assert [each.measure is not None for each in texts(found)] == [True, False, False]


def test_digits_with_a_comment_between() -> None:
    """A value is all the text of its leaf."""
    found = canonical(item("<i><t>2<!-- c -->0</t></i>"), evolved([alter("t", ". * 2")]))
    assert serialize(found) == "<i><t>10<!-- c --></t></i>"


def test_the_item_itself() -> None:
    """An item that is a value has a unit too."""
    accent = Accent(EVERYTHING, Alter(Path(()), parse("(. - 32) * 5 div 9")), PLACE)
    assert serialize(canonical(item("<t>25.0</t>"), evolved([accent]))) == "<t>77</t>"


def test_namespaces() -> None:
    """A prefix declared above the item still holds in the canonical one."""
    one = text_input("<r xmlns:p='urn:p'><i><p:t>2</p:t></i></r>").arrivals[0].item
    found = canonical(one, evolved([alter("p:t", ". * 2")]))
    assert serialize(found) == '<i xmlns:p="urn:p"><p:t>1</p:t></i>'


def test_added_again() -> None:
    """LAWS case 22: what is added after a drop is a new path, in its own unit."""
    evolution = evolved([add("p"), alter("p", ". * 2")])
    assert serialize(canonical(tree(p=20), evolution)) == "<r><p>10</p></r>"
    for accent in (drop("p"), add("p")):
        assert evolution.apply(accent) is None
    assert serialize(canonical(tree(p=7), evolution)) == "<r><p>7</p></r>"


def test_unknown_paths() -> None:
    """The paths of an item that are unknown, since an accent was refused (LAWS 4.5)."""
    evolution = evolved([drop("t", "s = 2")])
    assert evolution.apply(alter("t", ". * 2", "s = 2")) is not None
    assert unknown(evolution, tree(s=2, t=1)) == (path("t"),)
    assert unknown(evolution, tree(s=1, t=1)) == ()
    assert canonical(one := tree(s=2, t=1), evolution) is one
    evolution.mistrust(path("c"), EVERYTHING)
    assert unknown(evolution, item("<i><c><ra>1</ra><dec>2</dec></c></i>")) == (path("c/ra"), path("c/dec"))


def test_digits_have_an_end() -> None:
    """A stream whose units grow by two hundred digits with every accent is not followed for ever."""
    evolution, random = Evolution(), Random(1)
    digits = (random.randrange(10**198, 10**199) for _ in range(40))
    refusals = [
        evolution.apply(alter("t", f". * {one} div {other}")) for one, other in zip(digits, digits, strict=True)
    ]
    reasons = [each.reason for each in refusals if each is not None]
    assert reasons == ["the unit changes of the path have too many digits together"]
    assert unknown(evolution, tree(t=1)) == (path("t"),)


def test_there_and_back() -> None:
    """A value that comes home is its text again; a word never leaves."""
    there = parse("(. - 32) * 5 div 9")
    one = item("<i><t>077.50</t><t>x</t></i>")
    away = remeasured(one, {path("t"): there})
    assert serialize(away) == "<i><t>25.27777777777778</t><t>x</t></i>"
    home = remeasured(away, {path("t"): there.inverse()})
    assert serialize(home) == serialize(one)
    assert texts(home)[0].measure is None
    assert remeasured(one, {path("t"): IDENTITY}) is one


def test_beyond_all_doubles() -> None:
    """A number that no double reaches is not lost on the way."""
    text, measure = measured("1e300", None, parse(f". * 1{'0' * 100}"))
    assert text == "INF"
    assert measured(text, measure, parse(f". div 1{'0' * 99}")) == (
        "1.0E301",
        measured("1e300", None, parse(". * 10"))[1],
    )


def test_computed_values() -> None:
    """A computed number is brought into another unit from its fraction, rounded once."""
    (average,) = ask('avg((stream("s")/r/t))', {"s": text_input("<r><t>1</t><t>1</t><t>2</t></r>")}).values
    assert average == 4 / 3
    found = ask('<o>{ avg((stream("s")/r/t)) }</o>', {"s": text_input("<r><t>1</t><t>1</t><t>2</t></r>")}).values[0]
    assert isinstance(found, Element)
    assert serialize(remeasured(found, {Path(()): parse(". * 3 - 4")})) == "<o>0</o>"
    assert serialize(remeasured(found, {Path(()): parse(". * 3")})) == "<o>4</o>"


# --- queries ----------------------------------------------------------------------------------------------------------

LEAVES = ("a", "n", "t", "c/a", "c/n", "c/@k", "s/e")
MAPS = (". * 2", ". div 5 + 3", ". * 4 - 1", ". + 0.1", ". * 1.6 + 32")
"""Each has decimals for decimals, in both directions."""


def spelt(document: str) -> list[Element]:
    """The items of a document, with all numbers in XQuery's spelling, so that text and number say the same."""
    items = [arrival.item for arrival in text_input(document).arrivals]
    for each in items:
        for node in leaf_nodes(each):
            number = exact_number(node.value)
            if number is not None:
                node.value = spell_double(nearest_double(Fraction(number)) + 0.0) if number.is_finite() else node.value
    return items


def leaf_nodes(one: Element) -> list[Text | Attribute]:
    elements = [one, *(each for each in descendants(one) if isinstance(each, Element))]
    return [*texts(one), *(attribute for each in elements for attribute in each.attributes)]


def raw(one: Element, evolution: Evolution) -> Element:
    """The item as it would be written behind the accents, in decimals."""
    for of, unit in evolution.units(one).items():
        for node in nodes(one, of):
            leaf = node if isinstance(node, Attribute) else next(iter(texts(node)), None)
            number = None if leaf is None else exact_number(leaf.value)
            if leaf is not None and number is not None and number.is_finite():
                leaf.value = number_text(unit(Fraction(number)))
    return one


def written(items: list[Element]) -> str:
    return f"<r>{''.join(map(serialize, items))}</r>"


def strict(operator: ComparisonOperator, left: Atomic, right: Atomic) -> bool:
    """A word with a number is an error: whether one was measured does not show then (LAWS 2.3)."""
    if isinstance(left, Untyped) and isinstance(right, Untyped):
        known = [exact_number(each) for each in (left, right)]
        if known.count(None) == 1:
            raise no_number(left if known[0] is None else right)
    return compare(operator, left, right)


def both(one: Case, random: Random) -> tuple[str, str]:
    """A query's answers: over streams in the units of the start, and over the same behind accents."""
    streams: dict[str, list[list[Element]]] = {}
    for name, text in one.inputs.items():
        streams.setdefault(name.partition(".")[0], []).append(spelt(text))
    time = "t" if one.timed else None
    plain, evolved_ = {}, {}
    for name, partitions in streams.items():
        accents: list[Accent] = []
        for of in random.sample(LEAVES, 3):
            accents.append(alter(of, random.choice(MAPS), random.choice(("", "@id = '1'", "not(@id = 'x')"))))
        evolution = evolved(accents)
        plain[name] = measured_input([written(each) for each in partitions], Evolution(), name=name, time=time)
        there = [written([raw(each, evolution) for each in items]) for items in partitions]
        evolved_[name] = measured_input(there, evolution, name=name, time=time)
    answers = [ask(one.query, inputs) for inputs in (plain, evolved_)]
    first, second = (f"{each.text} {[dead.code for dead in each.dead]} {len(each.late)}" for each in answers)
    return first, second


@pytest.mark.parametrize(("family", "count"), [("items", 40), ("windows", 40), ("joins", 25), ("partitions", 15)])
@pytest.mark.mass
def test_queries_see_what_is_meant(family: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query over items behind accents answers to the byte as over the same items in the units of its start."""
    monkeypatch.setattr(import_module("anabranch.law.evaluate"), "compare", strict)
    for number in range(count):
        one = case(family, number)
        plain, behind = both(one, Random(number))
        assert behind == plain, f"{family} {number}: {one}"
