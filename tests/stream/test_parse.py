from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import BadItem, StreamError
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import implied_root, parse_document, parse_item, parse_root
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import (
    Comment,
    Element,
    Instruction,
    Name,
    Text,
    descendants,
    namespaces_in_scope,
    string_value,
)
from mass import examples

LIMITS = Limits()


def reason(raw: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(BadItem) as caught:
        parse_item(raw, limits)
    return caught.value.message


def test_an_item_is_a_tree_of_all_kinds_of_nodes() -> None:
    """Text, CDATA, comments and instructions are kept in order; CDATA is text and joins its neighbours."""
    item = parse_item(b"<i a='1'>x<![CDATA[<y>]]>&amp;&#33;<!--c--><?t v?><j/> </i>", LIMITS)
    kinds = [(type(each), getattr(each, "value", None)) for each in item.children]
    assert kinds == [(Text, "x<y>&!"), (Comment, "c"), (Instruction, "v"), (Element, None), (Text, " ")]
    assert item.get("a") == "1"


def test_long_text_is_one_node() -> None:
    """Expat hands out text in pieces; the tree has one node."""
    item = parse_item(b"<i>" + b"x&lt;" * 50_000 + b"</i>", LIMITS)
    assert [string_value(each) for each in item.children] == ["x<" * 50_000]


def test_nodes_are_numbered_in_document_order() -> None:
    """Elements come before their attributes, these before the content."""
    item = parse_item(b"<i a='1' b='2'>x<j c='3'>y</j>z</i>", LIMITS)
    inner = item.children[1]
    assert isinstance(inner, Element)
    found = [item, *item.attributes, item.children[0], inner, *inner.attributes, *inner.children, item.children[2]]
    assert [each.order for each in found] == sorted(each.order for each in found)
    assert all(each.parent is item for each in (*item.attributes, *item.children))


def test_namespaces_are_resolved() -> None:
    """Elements take the default namespace, attributes do not; inner declarations end with their element."""
    item = parse_item(
        b"<i xmlns='u:d' xmlns:p='u:p'><p:j p:a='1' a='2' xml:lang='en'/><k xmlns=''/>"
        b"<k xmlns:p='u:q'><p:l/></k><p:m/></i>",
        LIMITS,
    )
    elements = [item, *(each for each in descendants(item) if isinstance(each, Element))]
    assert [(each.name.local, each.name.uri) for each in elements] == [
        ("i", "u:d"),
        ("j", "u:p"),
        ("k", ""),
        ("k", "u:d"),
        ("l", "u:q"),
        ("m", "u:p"),
    ]
    assert [each.name.uri for each in elements[1].attributes] == ["u:p", "", "http://www.w3.org/XML/1998/namespace"]
    assert item.namespaces == {"": "u:d", "p": "u:p"}


def test_the_scope_of_the_root_is_used_and_not_repeated() -> None:
    """An item resolves the root's prefixes at once, and sees its declarations once the root is its parent."""
    root = parse_root(b"<r xmlns:p='u:p' xmlns='u:d' v=\"1\">")
    item = parse_item(b"<p:i><j/></p:i>", LIMITS, root.namespaces)
    assert (item.name, item.namespaces) == (Name("i", "u:p"), {})
    assert namespaces_in_scope(item) == {}
    item.parent = root
    assert namespaces_in_scope(item) == {"p": "u:p", "": "u:d"}
    assert (root.name, root.get("v"), root.children) == (Name("r", "u:d"), "1", [])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"<p:i/>", "the prefix 'p' is not declared"),
        (b"<i p:a='1'/>", "the prefix 'p' is not declared"),
        (b"<i><j xmlns:p='u'/><p:k/></i>", "the prefix 'p' is not declared"),
        (b"<i xmlns:p='u' xmlns:q='u' p:a='1' q:a='2'/>", "an attribute of 'i' is given twice"),
        (b"<i xmlns:p=''/>", "the prefix 'p' cannot be undeclared"),
        (b"<i xmlns:xml='u'/>", "the prefix 'xml' cannot mean 'u'"),
        (b"<i xmlns:xmlns='u'/>", "the prefix 'xmlns' cannot mean 'u'"),
        (b"<a:b:c xmlns:a='u'/>", "'a:b:c' is not a name"),
        (b"<:a xmlns='u'/>", "':a' is not a name"),
        (b"<a: xmlns:a='u'/>", "'a:' is not a name"),
        (b"<" + b"n" * 2_000 + b"/>", "a name or namespace of more than 1,000 characters"),
        (b"<i a='1' a='2'/>", "not well-formed: duplicate attribute at byte 9"),
        (b"<i><j></i></j>", "not well-formed: mismatched tag at byte 8"),
        (b"<i/><j/>", "not well-formed: junk after document element at byte 4"),
        (b"<!-- only a comment -->", "not well-formed: no element found at byte 23"),
        (b"<i>&nbsp;</i>", "not well-formed: undefined entity at byte 3"),
        (b"<i>\x01</i>", "a control character (U+0001) at byte 3"),
        (b"<i>\xff</i>", "not UTF-8: bad byte at byte 3"),
        ("<i/>".encode("utf-16"), "a control character (U+0000) at byte 3"),
    ],
)
def test_bad_items_have_a_plain_reason(raw: bytes, expected: str) -> None:
    """The reason says what is wrong and where, in the words of the glossary or of XML."""
    assert reason(raw) == expected


def test_limits_hold_to_the_last_one() -> None:
    """Exactly as much as allowed is allowed, one more is not."""
    limits = Limits(item_bytes=1_000, depth=3, nodes=10, attributes=2)
    parse_item(b"<a><b><c/></b></a>", limits)
    assert reason(b"<a><b><c><d/></c></b></a>", limits) == "nested more than 3 deep"
    parse_item(b"<a>" + b"<b/>" * 9 + b"</a>", limits)
    assert reason(b"<a>" + b"<b/>" * 10 + b"</a>", limits) == "more than 10 nodes"
    parse_item(b"<a x='1' xmlns:y='2'/>", limits)
    assert reason(b"<a x='1' y='2' z='3'/>", limits) == "more than 2 attributes in 'a'"
    parse_item(b"<a>" + b"x" * 993 + b"</a>", limits)
    assert reason(b"<a>" + b"x" * 994 + b"</a>", limits) == "more than 1,000 bytes"


def test_attributes_and_text_count_as_nodes() -> None:
    """So a bomb of attributes or comments is no way around."""
    limits = Limits(nodes=5)
    assert reason(b"<a><b x='1' y='1'/><b x='1' y='1'/></a>", limits) == "more than 5 nodes"
    assert reason(b"<a>1<!---->2<!---->3</a>", limits) == "more than 5 nodes"


@pytest.mark.parametrize(
    ("encoding", "raw", "expected"),
    [
        ("utf-8", b"<i>\xc3\xa9</i>", "\u00e9"),
        ("iso-8859-1", b"<i>\xe9</i>", "\u00e9"),
        ("windows-1252", b"<i>\x80</i>", "\u20ac"),
        ("ascii", b"<i>e</i>", "e"),
    ],
)
def test_encodings(encoding: str, raw: bytes, expected: str) -> None:
    """The bytes are read in the encoding that the document declared."""
    assert string_value(parse_item(raw, LIMITS, encoding=encoding)) == expected


def test_bytes_that_the_encoding_lacks_are_bad() -> None:
    """They are not replaced by something else."""
    with pytest.raises(BadItem, match="not ascii: bad byte at byte 3"):
        parse_item(b"<i>\xe9</i>", LIMITS, encoding="ascii")


def test_a_root_that_cannot_be_read_is_an_error_of_the_stream() -> None:
    """Without its root nothing in a stream has a meaning."""
    with pytest.raises(StreamError, match="root element cannot be read: not well-formed"):
        parse_root(b"<r a=1>")


def test_an_implied_root_has_a_name_and_nothing_else() -> None:
    """It stands for the root that one-item-per-line streams do not write."""
    assert serialize(implied_root("root")) == "<root/>"


def test_a_document_is_read_whole_and_its_type_left_out() -> None:
    """Comments and instructions around the root are kept, the document type is not interpreted."""
    document = parse_document(
        b"""<?xml version="1.0"?><!--a--><!DOCTYPE d SYSTEM "http://example.org/d" [<!ENTITY e "]>">]><d>x</d><?p q?>"""
    )
    assert serialize(document) == "<!--a--><d>x</d><?p q?>"
    assert document.order < document.children[0].order


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<!DOCTYPE d [<!ENTITY e 'x'>]><d>&e;</d>", "undefined entity"),
        (b"<!DOCTYPE d><!DOCTYPE d><d/>", "a DOCTYPE is not allowed here"),
        (b"<!DOCTYPE d [<d/>", "not allowed"),
        (b"<d>", "no element found"),
        (b"", "no element found"),
        ("<d/>".encode("utf-16"), "'UTF-16' is not supported"),
    ],
)
def test_a_bad_document_is_an_error(data: bytes, expected: str) -> None:
    """A finite document has no dead letters; it is read or it is not, and its own entities are unknown."""
    with pytest.raises(StreamError, match=expected):
        parse_document(data)


def test_a_document_in_another_encoding() -> None:
    """The declaration is honoured."""
    document = parse_document(b"<?xml version='1.0' encoding='ISO-8859-1'?><d>\xe9</d>")
    assert string_value(document) == "\u00e9"


@examples(300)
@given(st.binary(max_size=60).map(lambda noise: b"<i>" + noise + b"</i>"))
def test_noise_is_an_item_or_a_bad_item(raw: bytes) -> None:
    """Nothing else comes out, whatever the bytes, and an item can be written and read again."""
    try:
        item = parse_item(raw, LIMITS)
    except BadItem:
        return
    written = serialize(item)
    assert item.name == Name("i")
    assert serialize(parse_item(written.encode(), LIMITS)) == written
