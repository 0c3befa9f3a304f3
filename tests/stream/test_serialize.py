from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_document, parse_item, parse_root
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Attribute, Document, Element, Name, Text, copy
from mass import examples


@pytest.mark.parametrize(
    "text",
    [
        "<a/>",
        "<a>x</a>",
        '<a b="1" c="2"><d/>x<!--c--><?t v?><?t?></a>',
        "<a>&lt;&gt;&amp;\"'&#xD;\n\t</a>",
        '<a b="&lt;>&amp;&quot;\'&#xD;&#xA;&#x9;"/>',
        '<a xmlns="u:d" xmlns:p="u:p"><p:b p:c="1"/><d xmlns=""><e/></d></a>',
        '<a xmlns:p="u:p"><b xmlns:p="u:q"><p:c/></b><p:d/></a>',
        '<a xml:lang="en"/>',
        "<a>\u00e9\u20ac\U0001f600</a>",
    ],
)
def test_text_comes_back_as_it_was(text: str) -> None:
    """What is written in the form of answers is read and written unchanged."""
    assert serialize(parse_item(text.encode(), Limits())) == text


def test_redundant_declarations_are_left_out() -> None:
    """A child that declares what its parent already declares does not say it again."""
    item = parse_item(b'<a xmlns:p="u"><b xmlns:p="u"><p:c xmlns:p="u"/></b></a>', Limits())
    assert serialize(item) == '<a xmlns:p="u"><b><p:c/></b></a>'


def test_the_top_declares_what_is_in_scope() -> None:
    """An item that stands in a root can be read without it, copied or not."""
    root = parse_root(b'<r xmlns="u:d" xmlns:p="u:p">')
    item = parse_item(b"<p:i><j/></p:i>", Limits(), root.namespaces)
    item.parent = root
    expected = '<p:i xmlns="u:d" xmlns:p="u:p"><j/></p:i>'
    assert serialize(item) == expected
    assert serialize(copy(item)) == expected


def test_names_get_the_declarations_they_lack() -> None:
    """In a tree that a query made, prefixes may be undeclared or mean two things; each name keeps its meaning."""
    top = Element(Name("a"))
    top.append(child := Element(Name("b", "u:1", "p")))
    child.set(Name("c", "u:2", "p"), "1")
    child.set(Name("c", "u:3"), "2")
    child.set(Name("c"), "3")
    child.append(Element(Name("d", "u:4")))
    child.append(Element(Name("e")))
    text = serialize(top)
    assert text == (
        '<a><p:b xmlns:ns0="u:2" xmlns:ns1="u:3" xmlns:p="u:1" ns0:c="1" ns1:c="2" c="3"><d xmlns="u:4"/><e/></p:b></a>'
    )
    read = etree.fromstring(text)[0]
    assert (read.tag, list(read.attrib)) == ("{u:1}b", ["{u:2}c", "{u:3}c", "c"])
    assert [child.tag for child in read] == ["{u:4}d", "e"]


def test_a_child_without_namespace_leaves_the_default_one() -> None:
    """It says so, for otherwise it would be taken in."""
    top = Element(Name("a", "u:d"))
    top.append(Element(Name("b")))
    assert serialize(top) == '<a xmlns="u:d"><b xmlns=""/></a>'


def test_documents_attributes_and_texts_by_themselves() -> None:
    """A document is its children, an attribute is written as in a tag."""
    document = Document()
    document.append(Element(Name("a")))
    document.append(Element(Name("b", "u", "p")))
    assert serialize(document) == '<a/><p:b xmlns:p="u"/>'
    assert serialize(Attribute(Name("c"), 'a"b')) == 'c="a&quot;b"'
    assert serialize(Text("a<b")) == "a&lt;b"


def test_a_deep_tree_is_written() -> None:
    """Depth is no matter of the interpreter's stack."""
    top = at = Element(Name("a"))
    for _ in range(5_000):
        inner = Element(Name("a"))
        at.append(inner)
        at = inner
    assert serialize(top) == "<a>" * 5_000 + "<a/>" + "</a>" * 5_000


names = st.sampled_from(["a", "b", "p:a", "q:b"])
texts = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=6).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
)
markup = st.recursive(
    texts,
    lambda inner: st.builds(
        lambda name, bound, value, parts: f'<{name} {bound} p:x="{value}">{"".join(parts)}</{name}>',
        names,
        st.sampled_from(["", 'xmlns="u:1"', 'xmlns=""', 'xmlns:p="u:2"', 'xmlns:q="u:1" q:y=""']),
        texts,
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@examples(150)
@given(markup)
def test_canonical_xml_is_the_same(inner: str) -> None:
    """Another parser sees the same document before and after; what is declared twice may go."""
    before = f'<i xmlns:p="u:p" xmlns:q="u:q">{inner}</i>'
    after = serialize(parse_document(before.encode()))
    assert etree.tostring(etree.fromstring(after.encode()), method="c14n") == etree.tostring(
        etree.fromstring(before.encode()), method="c14n"
    )
