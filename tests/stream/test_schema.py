"""Schemas: from a DTD, learned from items, and the questions asked of both."""

from __future__ import annotations

import pathlib

import pytest

from anabranch.errors import StreamError
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.schema import MAX_DTD, Learner, Schema
from anabranch.stream.tree import STREAM_NAMESPACE, Element

SCOPE = {"s": STREAM_NAMESPACE, "p": "urn:p"}


def item(text: str) -> Element:
    return parse_item(text.encode(), Limits(), SCOPE)


def path(text: str) -> Path:
    return Path.parse(text)


def occurrences(schema: Schema, name: str) -> dict[str, str]:
    """The children of a declaration with DTD's sign for how often they occur."""
    signs = {(False, False): "", (True, False): "?", (False, True): "+", (True, True): "*"}
    return {part.name: signs[part.optional, part.repeated] for part in schema.declarations[name].children.values()}


# --- from a DTD ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("(a, b?, c*, d+)", {"a": "", "b": "?", "c": "*", "d": "+"}),
        ("(a | b)", {"a": "?", "b": "?"}),
        ("(a | b)*", {"a": "*", "b": "*"}),
        ("(a, b)+", {"a": "+", "b": "+"}),
        ("(a, b, a)", {"a": "+", "b": ""}),
        ("(a?, a?)", {"a": "*"}),
        ("(a?, b, a)", {"a": "+", "b": ""}),
        ("((a, b) | (a, c))", {"a": "", "b": "?", "c": "?"}),
        ("((a, b) | (c, a+))", {"a": "+", "b": "?", "c": "?"}),
        ("((a?, b) | a)", {"a": "?", "b": "?"}),
        ("(a | (b | c))", {"a": "?", "b": "?", "c": "?"}),
        ("(a, (b, (c, d)?)*)", {"a": "", "b": "*", "c": "*", "d": "*"}),
        ("(#PCDATA | a | b)*", {"a": "*", "b": "*"}),
        ("(#PCDATA)", {}),
        ("EMPTY", {}),
    ],
)
def test_content_models(model: str, expected: dict[str, str]) -> None:
    """A content model becomes, for each child, whether it may lack and whether it may repeat, in declared order."""
    schema = Schema.from_dtd(f"<!ELEMENT r (i)*><!ELEMENT i {model}>")
    assert occurrences(schema, "i") == expected
    assert list(occurrences(schema, "i")) == list(expected)


def test_text_and_attributes() -> None:
    """Text is allowed where the DTD has #PCDATA or ANY; attributes are those of ATTLIST, with their prefixes."""
    schema = Schema.from_dtd(
        "<!ELEMENT r (i*)><!ELEMENT i (a, b, c)><!ELEMENT a (#PCDATA)><!ELEMENT b EMPTY><!ELEMENT c ANY>"
        '<!ATTLIST a unit CDATA #REQUIRED xml:lang CDATA #IMPLIED kind (x|y) "x">'
    )
    assert [schema.declarations[name].text for name in "iabc"] == [False, True, False, True]
    assert schema.declarations["a"].attributes == ("kind", "unit", "xml:lang")
    assert schema.has(path("a/@unit"), "i")
    assert not schema.has(path("b/@unit"), "i")
    assert not schema.has(path("@unit"), "i")


def test_any_holds_every_declared_element() -> None:
    """ANY allows each declared element any number of times, itself among them."""
    schema = Schema.from_dtd("<!ELEMENT r (i*)><!ELEMENT i ANY>")
    assert schema.root == "r"
    assert occurrences(schema, "i") == {"r": "*", "i": "*"}


def test_prefixed_names() -> None:
    """A DTD knows prefixes only as a part of names."""
    schema = Schema.from_dtd("<!ELEMENT p:r (p:i*)><!ELEMENT p:i (#PCDATA)>")
    assert (schema.root, schema.items) == ("p:r", ("p:i",))


def test_root_is_what_stands_in_no_other() -> None:
    """The root may hold itself; where several could be it, the error names them and `root` decides."""
    assert Schema.from_dtd("<!ELEMENT r (r?, i*)><!ELEMENT i EMPTY>").root == "r"
    two = "<!ELEMENT r (i*)><!ELEMENT q (i*)><!ELEMENT i EMPTY>"
    with pytest.raises(StreamError, match="several possible roots: 'r', 'q'"):
        Schema.from_dtd(two)
    assert Schema.from_dtd(two, root="q").root == "q"
    with pytest.raises(StreamError, match="does not declare the root 'x'"):
        Schema.from_dtd(two, root="x")
    with pytest.raises(StreamError, match="no root: every element stands in another"):
        Schema.from_dtd("<!ELEMENT a (b?)><!ELEMENT b (a?)>")
    with pytest.raises(StreamError, match="no root: it declares no elements"):
        Schema.from_dtd("")


def test_long_models() -> None:
    """A model of many names is read without recursion over its length."""
    names = [f"x{n}" for n in range(5_000)]
    for separator in (",", "|"):
        schema = Schema.from_dtd(f"<!ELEMENT r (i*)><!ELEMENT i ({separator.join(names)})>")
        assert list(occurrences(schema, "i")) == names


def test_internal_entities_and_comments_are_read() -> None:
    """Entities whose text stands in the DTD work as they should."""
    schema = Schema.from_dtd(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a "comment" -->\n<!ENTITY % inner "a | b">\n'
        "<!ENTITY % all '(%inner; | c)*'><!ENTITY nbsp \"&#160;\"><!ELEMENT r (i*)><!ELEMENT i %all;>"
    )
    assert occurrences(schema, "i") == {"a": "*", "b": "*", "c": "*"}


@pytest.mark.parametrize(
    "dtd",
    [
        '<!ENTITY % x SYSTEM "{file}"> %x; <!ELEMENT r (i*)>',
        '<!ENTITY % x PUBLIC "-//X" "{file}"> %x; <!ELEMENT r (i*)>',
        '<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;',
        '<!ENTITY x SYSTEM "{file}">',
        '<!ENTITY % s "SYS"><!ENTITY % t "%s;TEM"><!ENTITY % x %t; "{file}"> %x;',
        "<!ENTITY % a '<!ENTITY &#37; x SYSTEM \"{file}\">'> %a; %x;",
        "<!ENTITY % a '&#60;!ENTITY &#37; x S&#89;STEM \"{file}\">'> %a; %x;",
        '<!-- --><!ENTITY\n%\nx\nSYSTEM\n"{file}"> %x;',
        '<![IGNORE[ <!-- ]]><!ENTITY % x SYSTEM "{file}"> %x; <!-- -->',
        '<?xml encoding="UTF-7"?><!ENTITY % x SYSTEM "{file}"> %x;',
    ],
)
def test_nothing_is_fetched(dtd: str, tmp_path: pathlib.Path) -> None:
    """External entities are refused before lxml sees them, however they are dressed up."""
    file = tmp_path / "outside.dtd"
    file.write_text("<!ELEMENT stolen (#PCDATA)>")
    with pytest.raises(StreamError, match="declares an entity that is external or too complex"):
        Schema.from_dtd(dtd.replace("{file}", file.as_uri()))


def test_announced_encoding_does_not_count() -> None:
    """Text is text: an encoding that the DTD announces cannot make lxml read something else than was checked."""
    assert Schema.from_dtd('<?xml version="1.0" encoding="UTF-16"?><!ELEMENT r (i*)>').items == ("i",)


def test_entity_bomb_is_refused() -> None:
    """Entities that multiply are refused, not expanded."""
    layers = "".join(f'<!ENTITY % a{n + 1} "{"|".join([f"%a{n};"] * 10)}">' for n in range(9))
    with pytest.raises(StreamError, match="not a DTD"):
        Schema.from_dtd(f'<!ENTITY % a0 "x|x">{layers}<!ELEMENT r (%a9;)*>')


@pytest.mark.parametrize("dtd", ["<!ELEMENT r (", "<!ELEMENT>", "<r/>", "hello", "<!ELEMENT r ((a)>"])
def test_broken_dtd(dtd: str) -> None:
    """What is no DTD is refused with a line."""
    with pytest.raises(StreamError, match="not a DTD, line 1"):
        Schema.from_dtd(dtd)


def test_dtd_size_is_capped() -> None:
    """A DTD beyond the cap is not looked at."""
    with pytest.raises(StreamError, match="at most 1,048,576 characters"):
        Schema.from_dtd("<!ELEMENT r (i*)>" + " " * MAX_DTD)


def test_files(tmp_path: pathlib.Path) -> None:
    """A DTD is read from a file in UTF-8; a file that cannot be read is named."""
    good, bad = tmp_path / "good.dtd", tmp_path / "bad.dtd"
    good.write_text("<!ELEMENT r (é*)>", encoding="utf-8")
    bad.write_bytes(b"<!ELEMENT r (\xe9*)>")
    assert Schema.read_dtd(good).items == ("é",)
    with pytest.raises(StreamError, match=r"cannot read the DTD '.*bad.dtd': it is not UTF-8"):
        Schema.read_dtd(bad)
    with pytest.raises(StreamError, match=r"cannot read the DTD '.*none.dtd': No such file"):
        Schema.read_dtd(tmp_path / "none.dtd")


# --- questions ----------------------------------------------------------------------------------------------

PARTS = Schema.from_dtd(
    "<!ELEMENT parts (part*)><!ELEMENT part (name, price?, part*)><!ELEMENT name (#PCDATA)>"
    "<!ELEMENT price (#PCDATA)><!ATTLIST price unit CDATA #IMPLIED>"
)


def test_paths_of_a_recursive_schema_are_finite() -> None:
    """An element nested in itself is listed and not entered again, though `has` follows it to any depth."""
    assert [str(each) for each in PARTS.paths("part")] == ["name", "price", "price/@unit", "part"]
    assert PARTS.has(path("part/part/price/@unit"), "part")
    assert not PARTS.has(path("part/part/cost"), "part")
    assert not PARTS.has(path("name"), "parts")
    assert list(PARTS.paths("nothing")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<part><name>x</name></part>", None),
        ("<part><name>x</name><part><name/><part/></part></part>", None),
        ("<part><price unit='x'/></part>", None),
        ("<other/>", "other"),
        ("<part><cost/></part>", "cost"),
        ("<part id='1'/>", "@id"),
        ("<part><part><price currency='x'/></part></part>", "part/price/@currency"),
        ("<part><name><b/></name></part>", "name/b"),
        ("<part><s:mutable id='1'><name/></s:mutable></part>", None),
        ("<part><s:mutable id='1'><s:mutable id='2'><cost/></s:mutable></s:mutable></part>", "cost"),
        ("<part><p:name/></part>", "p:name"),
    ],
)
def test_undeclared(text: str, expected: str | None) -> None:
    """The first path that the schema lacks is found, also inside regions; a valid item has none."""
    found = PARTS.undeclared(item(text))
    assert (None if found is None else str(found)) == expected


def test_undeclared_is_the_first_in_the_item() -> None:
    """Of several undeclared paths on one level the first is named."""
    assert PARTS.undeclared(item("<part><cost/><name/><weight/></part>")) == path("cost")


# --- learned ------------------------------------------------------------------------------------------------


def learn(*texts: str) -> Schema:
    learner = Learner("root")
    for text in texts:
        learner.add(item(text))
    return learner.schema()


def test_learns_occurrences() -> None:
    """Seen in every parent: once; missing somewhere: optional; twice in one parent: repeated."""
    schema = learn("<i><a>1</a><b/><c/></i>", "<i><c/><a/><c/><d/></i>")
    assert occurrences(schema, "root/i") == {"a": "", "b": "?", "c": "+", "d": "?"}
    assert schema.items == ("i",)


def test_learns_by_path() -> None:
    """Elements of one name are told apart by where they stand."""
    schema = learn("<i><x><n>1</n></x><y><n><m/></n></y></i>")
    assert schema.has(path("y/n/m"), "i")
    assert not schema.has(path("x/n/m"), "i")


def test_learns_text_and_attributes() -> None:
    """White space between elements is no text; attributes are kept as first seen."""
    schema = learn("<i z='1'> <a> x </a> </i>", "<i b='2' z='3'/>")
    assert (schema.declarations["root/i"].text, schema.declarations["root/i/a"].text) == (False, True)
    assert schema.declarations["root/i"].attributes == ("z", "b")


def test_learns_through_regions() -> None:
    """What stands in a region counts for the element around it."""
    schema = learn("<i><s:mutable id='1'><a/></s:mutable><a/></i>")
    assert occurrences(schema, "root/i") == {"a": "+"}


def test_what_was_learned_is_declared() -> None:
    """An item is valid by the schema that it taught; one with a new path is not."""
    texts = ["<i k='1'><a><b/></a></i>", "<j><a/></j>"]
    schema = learn(*texts)
    assert [schema.undeclared(item(text)) for text in texts] == [None, None]
    assert schema.undeclared(item("<j><a><b/></a></j>")) == path("a/b")


def test_nothing_learned_yet() -> None:
    """Before the first item there is a root without children."""
    assert learn().items == ()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the cap new paths are left out and known ones go on being counted."""
    monkeypatch.setattr("anabranch.stream.schema.MAX_PATHS", 3)
    schema = learn("<i><a/><b/><c/></i>", "<i><d/><a/></i>", "<j/>")
    assert schema.items == ("i",)
    assert occurrences(schema, "root/i") == {"a": "", "b": "?"}
