"""The wire format: what each control element means, what is malformed, and the round trip."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import BadItem
from anabranch.logic import EVERYTHING
from anabranch.stream import description
from anabranch.stream.affine import Affine
from anabranch.stream.elements import (
    Accent,
    Add,
    Alter,
    Drop,
    Item,
    Place,
    Punctuation,
    Region,
    StreamElement,
    Update,
)
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of, tree_of, write
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element

HERE = Place("p", "f", 0)
SCOPE = {"s": STREAM_NAMESPACE}
T, P = Path(("t",)), Path(("p",))


def read(text: str) -> StreamElement:
    return element_of(parse_item(text.encode(), Limits(), SCOPE), HERE)


def texts(content: tuple[Child, ...]) -> list[str]:
    return [serialize(child) for child in content]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<s:accent where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>',
            Accent(description.parse("s = 2"), Alter(T, Affine(Fraction(5, 9), Fraction(-160, 9))), HERE),
        ),
        (
            "<s:accent where=\"region = 'A' and s &lt;= 10\" at='3'><s:add path='p' type='decimal'/></s:accent>",
            Accent(description.parse("region = 'A' and s <= 10"), Add(P, "decimal"), HERE, Decimal(3)),
        ),
        ('<s:accent> <!-- all --> <s:drop path="phc"/>\n</s:accent>', Accent(EVERYTHING, Drop(Path(("phc",))), HERE)),
        ('<s:punctuation where="ts &lt;= 5"/>', Punctuation(description.parse("ts <= 5"), HERE)),
        ('<s:punctuation at="12.5"/>', Punctuation(None, HERE, Decimal("12.5"))),
        ('<s:punctuation at=" 0 " where=""></s:punctuation>', Punctuation(EVERYTHING, HERE, Decimal(0))),
        ('<z:punctuation xmlns:z="urn:anabranch:stream" at="1"/>', Punctuation(None, HERE, Decimal(1))),
        ('<punctuation xmlns="urn:anabranch:stream" at="1"/>', Punctuation(None, HERE, Decimal(1))),
    ],
)
def test_reads_accents_and_punctuations(text: str, expected: StreamElement) -> None:
    """Every form of control element, under any prefix."""
    assert read(text) == expected


def test_reads_regions_and_updates() -> None:
    """Regions and updates keep their ids, their time and their content."""
    region = read('<s:mutable id="1">x<b/></s:mutable>')
    assert isinstance(region, Region)
    assert (region.id, region.at, texts(region.content)) == ("1", None, ["x", "<b/>"])
    for kind in ("replace", "before", "after"):
        update = read(f'<s:{kind} target="1" id="2" at="12.5">y</s:{kind}>')
        assert isinstance(update, Update)
        assert (update.kind, update.target, update.id, update.at) == (kind, "1", "2", Decimal("12.5"))
        assert texts(update.content) == ["y"]


def test_empty_replace_deletes() -> None:
    """A replace without content has no children, and may go without an id."""
    update = read('<s:replace target="1"/>')
    assert update == Update("replace", "1", None, (), HERE)


def test_items_time_is_taken_off() -> None:
    """`s:at` is the item's time and no part of the item; a plain `at` is an attribute like any other."""
    item = read('<photon s:at="1.50" at="x"><en>1</en></photon>')
    assert isinstance(item, Item)
    assert item.at == Decimal("1.5")
    assert [str(each.name) for each in item.tree.attributes] == ["at"]


def test_item_may_hold_regions_and_updates() -> None:
    """Regions nest, in items and in updates, and updates may be interleaved (history paper, section 2)."""
    inside = (
        '<a><s:mutable id="1"><b><s:mutable id="2">x</s:mutable></b></s:mutable><s:after target="2">y</s:after></a>'
    )
    item = read(inside)
    assert isinstance(item, Item)
    assert isinstance(item.tree.children[0], Element)
    assert isinstance(read(f'<s:replace target="0">{inside}</s:replace>'), Update)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<s:accent/>", "'s:accent' needs exactly one of add, drop and alter, this has 0"),
        ('<s:accent><s:drop path="a"/><s:drop path="b"/></s:accent>', "exactly one of add, drop and alter, this has 2"),
        ('<s:accent>x<s:drop path="a"/></s:accent>', "'s:accent' must not hold text"),
        ('<s:accent><drop path="a"/></s:accent>', "'drop' is none of add, drop and alter"),
        ('<s:accent><s:mutable id="1"/></s:accent>', "'s:mutable' is none of add, drop and alter"),
        ("<s:accent><s:drop/></s:accent>", "'s:drop' needs 'path'"),
        ('<s:accent><s:drop path="a/"/></s:accent>', "'a/' is not a path"),
        ('<s:accent><s:drop path="//a"/></s:accent>', "'//a' is not a path"),
        ('<s:accent><s:drop path="a" by="."/></s:accent>', "'s:drop' has no attribute 'by'"),
        ('<s:accent><s:drop path="a"><b/></s:drop></s:accent>', "'s:drop' must be empty"),
        ('<s:accent><s:add path="a" type=" "/></s:accent>', "'type' of 's:add' is empty"),
        ('<s:accent><s:alter path="a"/></s:accent>', "'s:alter' needs 'by'"),
        ('<s:accent><s:alter path="a" by=". * ."/></s:accent>', "'.' is multiplied by itself"),
        ('<s:accent><s:alter path="a" by="0 - ."/></s:accent>', "must be increasing"),
        ('<s:accent><s:alter path="a" by=". div 0"/></s:accent>', "division by zero"),
        ('<s:accent where="a = "><s:drop path="b"/></s:accent>', "bad 'where': expected a number"),
        ('<s:accent where="a = 1"><s:alter path="a" by=". * 2"/></s:accent>', "the description names 'a'"),
        ('<s:accent where="not(a/b = 1)"><s:drop path="a"/></s:accent>', "the description names 'a'"),
        ('<s:accent when="a = 1"><s:drop path="b"/></s:accent>', "'s:accent' has no attribute 'when'"),
        ('<s:accent s:at="1"><s:drop path="b"/></s:accent>', "'s:accent' has no attribute 's:at'"),
        ("<s:punctuation/>", "'s:punctuation' needs 'where' or 'at'"),
        ('<s:punctuation at="-1"/>', "'-1' is not a time"),
        ('<s:punctuation at="1e3"/>', "'1e3' is not a time"),
        ('<s:punctuation at="NaN"/>', "'NaN' is not a time"),
        ('<s:punctuation at=""/>', "'' is not a time"),
        (f'<s:punctuation at="{"9" * 1000}"/>', "is not a time"),
        ('<s:punctuation at="1"><a/></s:punctuation>', "'s:punctuation' must be empty"),
        ('<s:punctuation at="1">x</s:punctuation>', "'s:punctuation' must not hold text"),
        ("<s:mutable>x</s:mutable>", "'s:mutable' needs 'id'"),
        ('<s:mutable id=""/>', "'id' of 's:mutable' is empty"),
        ('<s:mutable id="1" target="2"/>', "'s:mutable' has no attribute 'target'"),
        ('<s:replace id="2">x</s:replace>', "'s:replace' needs 'target'"),
        ('<s:before target=" "/>', "'target' of 's:before' is empty"),
        ('<s:after target="1" id=""/>', "'id' of 's:after' is empty"),
        ('<s:drop path="a"/>', "'s:drop' cannot stand between items"),
        ("<s:accents/>", "unknown control element 's:accents'"),
        ('<a s:at="soon"/>', "'soon' is not a time"),
        ('<a s:id="1"/>', "'a' has no attribute 's:id'"),
        ('<a><b s:at="1"/></a>', "'b' has no attribute 's:at'"),
        ('<a><s:punctuation at="1"/></a>', "'s:punctuation' cannot stand inside 'a'"),
        ('<a><s:accent><s:drop path="b"/></s:accent></a>', "'s:accent' cannot stand inside 'a'"),
        ("<a><b><s:mutable>x</s:mutable></b></a>", "'s:mutable' needs 'id'"),
        ('<a><s:mutable id="1" at="x"/></a>', "'x' is not a time"),
        ("<a><s:other/></a>", "unknown control element 's:other'"),
        ('<s:mutable id="1"><s:add path="a"/></s:mutable>', "'s:add' cannot stand inside 's:mutable'"),
        ('<s:replace target="1"><a><s:replace/></a></s:replace>', "'s:replace' needs 'target'"),
    ],
)
def test_malformed_is_a_bad_item(text: str, reason: str) -> None:
    """A malformed control element is set aside with the reason, at any depth; none is ignored."""
    with pytest.raises(BadItem) as caught:
        read(text)
    assert reason in caught.value.message


def test_item_whose_own_prefix_is_s() -> None:
    """An item that uses the prefix `s` for something else still gets its time written, and read back."""
    item = element_of(parse_item(b'<s:a xmlns:s="urn:other" xmlns:t="urn:anabranch:stream" t:at="2"/>', Limits()), HERE)
    again = read(write(item))
    assert isinstance(again, Item)
    assert (again.at, again.tree.name.uri) == (Decimal(2), "urn:other")


# --- the round trip -----------------------------------------------------------------------------------------

ids = st.text("ab1 \"<&'\n", min_size=1, max_size=4).filter(lambda text: bool(text.strip()))
times = st.none() | st.decimals(0, 10**6, places=3)
paths = st.sampled_from(["a", "b/c", "@d"]).map(Path.parse)
wheres = st.sampled_from(["", "x = 1", "x/y <= -2.5 and not(z = '<\"''')", "x = 1 or (y < 2 or z > 3)"]).map(
    description.parse
)
positive = st.fractions(Fraction(1, 50), 50, max_denominator=50)
evolutions = st.one_of(
    st.builds(Add, paths, st.none() | st.just("decimal")),
    st.builds(Drop, paths),
    st.builds(Alter, paths, st.builds(Affine, positive, st.fractions(-50, 50, max_denominator=50))),
)
markup = st.recursive(
    st.sampled_from(["x", "&lt;&amp;", "<e/>", "<!--c-->", '<q xmlns="urn:q" k="v"/>', "<s:q xmlns:s='urn:x'/>"]),
    lambda inner: st.one_of(
        inner.map(lambda text: f"<a>{text}</a>"),
        inner.map(lambda text: f'<s:mutable id="1">{text}</s:mutable>'),
        inner.map(lambda text: f'<s:replace target="1" at="0.5">{text}</s:replace>'),
        st.tuples(inner, inner).map("".join),
    ),
    max_leaves=5,
)
trees = markup.map(lambda text: parse_item(f"<i>{text}</i>".encode(), Limits(), SCOPE))
contents = trees.map(lambda tree: tuple(tree.children))
elements: st.SearchStrategy[StreamElement] = st.one_of(
    st.builds(Item, trees, st.just(HERE), times),
    st.builds(Accent, wheres, evolutions, st.just(HERE), times),
    st.builds(Punctuation, wheres, st.just(HERE), times),
    st.builds(Punctuation, st.none(), st.just(HERE), st.decimals(0, 10**6, places=3)),
    st.builds(Region, ids, contents, st.just(HERE), times),
    st.builds(
        Update, st.sampled_from(["replace", "before", "after"]), ids, st.none() | ids, contents, st.just(HERE), times
    ),
)


@given(elements)
def test_round_trip(element: StreamElement) -> None:
    """What is written is read as the same element: equal in every field, with equal trees."""
    again = read(write(element))
    assert _flat(again) == _flat(element)


@given(elements)
def test_writing_leaves_the_element_alone(element: StreamElement) -> None:
    """Writing copies content, so the element can be written again."""
    first = write(element)
    assert write(element) == first
    assert serialize(tree_of(element)) == first


def _flat(element: StreamElement) -> tuple[object, ...]:
    match element:
        case Item():
            return Item, _shape(element.tree), element.at
        case Region():
            return Region, element.id, [_shape(child) for child in element.content], element.at
        case Update():
            content = [_shape(child) for child in element.content]
            return Update, element.kind, element.target, element.id, content, element.at
        case _:
            return (element,)


def _shape(node: Child) -> object:
    """A tree as plain values; prefixes and unused declarations do not count."""
    if isinstance(node, Element):
        return node.name, {each.name: each.value for each in node.attributes}, [_shape(each) for each in node.children]
    return type(node), serialize(node)
