"""The bodies of requests: what is taken of them, byte for byte, and why they are refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.endpoint.bodies import BadBody, TooLarge, UnknownType, body_of, check_type, unpacked
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from endpoint.client import JSON, LINES, XML, pushed

ORDERS = pushed(Path("/spool"))
PHOTONS = pushed(Path("/spool"), "photons", "document", root="photons")
ITEMS = pushed(Path("/spool"), "photons", "lines")
ANY_ROOT = pushed(Path("/spool"), "photons", "document")


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ('{"a": 1.50}', '{"a": 1.50}\n'),
        ('{"a":\n  1,\r\n "b": 2}', '{"a":   1,   "b": 2}\n'),
        ('[{"a": 1},{"a": 2}]', ' {"a": 1}\n{"a": 2} \n'),
        (' [\n {"a": [1,\n2]} ,\n\n{"a": ","} ]\n', '    {"a": [1, 2]} \n  {"a": ","}   \n'),
        ('[{"a": "]},{"}, 5, null]', ' {"a": "]},{"}\n 5\n null \n'),
        (r'["\\\\", "\"", "\\\",", [1, [2]]]', ' "\\\\\\\\"\n "\\""\n "\\\\\\","\n [1, [2]] \n'),
    ],
)
def test_json_becomes_lines_in_its_place(sent: str, taken: str) -> None:
    """Each value has a line; no byte moves but what is added at the end, and no spelling changes."""
    body = body_of(ORDERS, JSON, sent.encode())
    assert body.data.decode() == taken
    assert (body.front, body.length) == (0, len(sent))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(st.dictionaries(st.text(), _VALUES), min_size=1), st.sampled_from([None, 0, 1, 3]))
def test_any_array_gives_its_values(values: list[dict[str, object]], indent: int | None) -> None:
    """Whatever stands in an array, in whatever layout: the lines are its values in order, and no byte moves."""
    sent = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        sent.decode("utf-8")
    except UnicodeDecodeError:
        return
    data = body_of(ORDERS, f"{JSON}; charset=UTF-8", sent).data
    assert [json.loads(line) for line in data.split(b"\n") if line.strip()] == values
    assert len(data) == len(sent) + 1
    for before, after in zip(sent, data, strict=False):
        assert before == after or (before in b"[],\r\n \t" and after in b" \n")


@pytest.mark.parametrize(
    ("sent", "message", "place"),
    [
        ('{"a": 1', "the body is not JSON: it ends early", (7, 1, 8)),
        ('[{"a": 1},\n {"b": x}]', "the body is not JSON: invalid character", (18, 2, 8)),
        ('{"a": 1} {"a": 2}', "the body is not JSON: trailing characters", (9, 1, 10)),
        ("hello", "the body is not JSON: invalid character", (0, 1, 1)),
        ("17", "the body is neither an object nor an array of objects", (0, 1, 1)),
        ("", "the body is not JSON: it ends early", (0, 1, 1)),
        ("[" * 100_000, "the body is not JSON: nested too deep", (0, 1, 1)),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(sent: str, message: str, place: tuple[int, int, int]) -> None:
    """Byte, line and column of the first error; nothing of the body is taken."""
    with pytest.raises(BadBody) as found:
        body_of(ORDERS, JSON, sent.encode())
    assert found.value.message == message
    assert (found.value.byte, found.value.line, found.value.column) == place


def test_text_that_is_not_utf8_is_refused() -> None:
    """Its first bad byte is named."""
    with pytest.raises(BadBody, match="the body is not UTF-8") as found:
        body_of(ORDERS, JSON, b'{"a": "\xff"}')
    assert found.value.byte == 7


def test_a_body_without_an_item_is_refused() -> None:
    """Nobody can tell whether such a request did what its sender wanted."""
    for sent in (b"[]", b" [ ] "):
        with pytest.raises(BadBody, match="the body holds no item"):
            body_of(ORDERS, JSON, sent)
    for kind in (LINES, XML):
        with pytest.raises(BadBody, match="the body holds no item"):
            body_of(ORDERS if kind == LINES else ITEMS, kind, b"\n \n")


def test_lines_stand_for_themselves() -> None:
    """A bad line is taken with the good ones, to be set aside; without any good one the first error is told."""
    sent = b'bad\n{"a": 1}\n\n{"a": \n'
    assert body_of(ORDERS, LINES, sent).data == sent
    assert body_of(ORDERS, LINES, b'{"a": 1}').data == b'{"a": 1}\n'
    assert body_of(ITEMS, XML, b"<p>1</p>\n<p>").data == b"<p>1</p>\n<p>\n"
    with pytest.raises(BadBody, match="no line can be read: invalid character") as found:
        body_of(ORDERS, LINES, b'\n{"a": x}\nbad')
    assert (found.value.byte, found.value.line, found.value.column) == (7, 2, 7)
    with pytest.raises(BadBody, match="no line can be read: mismatched tag"):
        body_of(ITEMS, XML, b"<p>1</q>")


@pytest.mark.parametrize(
    ("source", "sent", "front", "rear"),
    [
        (PHOTONS, "<photons><photon/>\n<photon/></photons>", "", "\n"),
        (PHOTONS, '<?xml version="1.0"?><!-- a <p> --><photons a="1"/>\n', "", ""),
        (PHOTONS, "<photon>\n<en>1</en>\n</photon>", "<photons>", "</photons>\n"),
        (PHOTONS, "<photon/> <other/>", "<photons>", "</photons>\n"),
        (ANY_ROOT, "<whatever><photon/></whatever>", "", "\n"),
    ],
)
def test_xml_is_a_document_or_items(source: Source, sent: str, front: str, rear: str) -> None:
    """Items without the declared root get it around them; where no root is declared, a body is a whole document."""
    body = body_of(source, XML, sent.encode())
    assert body.data.decode() == front + sent + rear
    assert (body.front, body.length) == (len(front), len(sent))


def test_a_declaration_in_front_of_an_item_gives_way(tmp_path: Path) -> None:
    """It cannot stand inside of a root; bytes keep their places; a DTD names the root as well as the declaration."""
    (tmp_path / "d.dtd").write_text("<!ELEMENT ps (p*)> <!ELEMENT p (#PCDATA)>")
    source = pushed(tmp_path, "s", "document", schema=Schema.read_dtd(tmp_path / "d.dtd"))
    declaration = '<?xml version="1.0" encoding="UTF-8"?>'
    body = body_of(source, XML, f"{declaration}\n<p>1</p>".encode())
    assert body.data.decode() == f"<ps>{' ' * len(declaration)}\n<p>1</p></ps>\n"
    with pytest.raises(BadBody, match="items without a root are in UTF-8"):
        body_of(source, XML, b'<?xml version="1.0" encoding="ISO-8859-1"?><p>\xe9</p>')
    latin = b'<?xml version="1.0" encoding="ISO-8859-1"?><ps><p>\xe9</p></ps>\n'
    assert body_of(source, XML, latin).data == latin


@pytest.mark.parametrize(
    ("sent", "message", "byte"),
    [
        ("<photons><photon></photons>", "the body is not XML: mismatched tag", 19),
        ("<photon><en></photon>", "the body is not XML: mismatched tag", 14),
        ("<photon>", "the body is not XML: mismatched tag", 8),
        ("hello", "the body is not XML: syntax error", 0),
        ("", "the body is not XML: no element found", 0),
        ("hello <photon/>", "text stands before the first item", 0),
        ("<photons/> more", "the body is not XML: junk after document element", 11),
        ("<photon>&x;</photon>", "the body is not XML: undefined entity", 8),
        (
            '<!DOCTYPE photons [<!ENTITY x "y">]><photons>&x;</photons>',
            "the body is not XML: entities are not read",
            19,
        ),
        ("<x:photons/>", "the stream's root element cannot be read: the prefix 'x' is not declared", 0),
        ('<?xml version="1.0" encoding="EBCDIC"?><photons/>', "the encoding 'EBCDIC' is not supported", 39),
    ],
)
def test_what_is_not_xml_is_refused_with_its_place(sent: str, message: str, byte: int) -> None:
    """An error anywhere refuses the whole; an entity is neither expanded nor fetched."""
    with pytest.raises(BadBody) as found:
        body_of(PHOTONS, XML, sent.encode())
    assert (found.value.message, found.value.byte) == (message, byte)


def test_wide_encodings_are_refused() -> None:
    """They cannot be read, as in files."""
    with pytest.raises(BadBody):
        body_of(PHOTONS, XML, "<photons/>".encode("utf-16"))


def test_a_byte_order_mark_gives_way() -> None:
    """It may stand in front of anything."""
    assert body_of(ORDERS, JSON, b'\xef\xbb\xbf{"a": 1}').data == b'   {"a": 1}\n'
    assert body_of(ITEMS, XML, b"\xef\xbb\xbf<p/>").data == b"   <p/>\n"


def test_headers_must_fit_the_stream() -> None:
    """The type, the charset and the content encoding; the hint says which the stream takes."""
    for kind in (JSON, LINES, 'Application/JSON; Charset="utf-8"'):
        check_type(ORDERS, kind, "gzip")
    for kind in (XML, "text/xml;charset=utf-8"):
        check_type(PHOTONS, kind, "")
        check_type(ITEMS, kind, "identity")
    for source, kind, encoding, hint in (
        (ORDERS, XML, "", "send it as application/json or application/x-ndjson"),
        (PHOTONS, JSON, "", "send it as application/xml or text/xml"),
        (ORDERS, "", "", "send it as application/json or application/x-ndjson"),
        (ORDERS, "text/plain", "", "send it as application/json or application/x-ndjson"),
        (ORDERS, f"{JSON}; charset=latin-1", "", "send it in UTF-8"),
        (ORDERS, JSON, "br", "use gzip, or none"),
    ):
        with pytest.raises(UnknownType) as found:
            check_type(source, kind, encoding)
        assert found.value.hint == hint


def test_what_a_body_can_cost() -> None:
    """Millions of small values, lines or open elements take neither memory nor time out of proportion."""
    many = b"[" + b"0," * 2_000_000 + b"0]"
    tracemalloc.start()
    assert body_of(ORDERS, JSON, many).data.count(b"\n") == 2_000_001
    assert tracemalloc.get_traced_memory()[1] < 20 * len(many)
    tracemalloc.stop()
    with pytest.raises(BadBody, match="the body is not XML: nested too deep"):
        body_of(PHOTONS, XML, b"<photons>" + b"<a>" * 1_000_000)
    for kind, source, line in ((LINES, ORDERS, b"x\n"), (XML, ITEMS, b"<x\n"), (LINES, ORDERS, b"\n")):
        with pytest.raises(BadBody):
            body_of(source, kind, line * 1_000_000)
    assert body_of(ORDERS, LINES, b"x\n" * 99 + b"{}").length == 200
    with pytest.raises(BadBody, match="no line can be read"):
        body_of(ORDERS, LINES, b"x\n" * 100 + b"{}")


def test_gzip_is_unpacked_up_to_a_limit() -> None:
    """Also in several members; a bomb is given up at the limit, damage is named."""
    packed = gzip.compress(b"abc") + gzip.compress(b"def")
    assert unpacked(packed, 6) == b"abcdef"
    with pytest.raises(TooLarge, match="more than 5 bytes, unpacked"):
        unpacked(packed, 5)
    with pytest.raises(TooLarge):
        unpacked(gzip.compress(bytes(50 << 20), 1), 1 << 20)
    with pytest.raises(BadBody, match="the gzip data is cut short"):
        unpacked(packed[:-3], 100)
    with pytest.raises(BadBody, match="the gzip data is damaged"):
        unpacked(b"no gzip at all", 100)
