"""Broken and hostile streams: each costs what is bad in it, with the right reason, and nothing else happens."""

from __future__ import annotations

import gzip
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source, read
from anabranch.stream.serialize import serialize

LIMITS = Limits(item_bytes=2_000, depth=20, nodes=200, attributes=16)

LAUGHS = b'<!DOCTYPE i [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'


@dataclass(frozen=True)
class Case:
    """A stream, a part of each reason that is expected, in order, and the items that still come through."""

    name: str
    data: bytes
    reasons: tuple[str, ...]
    good: tuple[str, ...] = ("<i>1</i>", "<i>2</i>")


def around(bad: bytes) -> bytes:
    """A document with a good item before and after."""
    return b"<r><i>1</i>" + bad + b"<i>2</i></r>"


CASES = [
    # what would fetch, expand or reveal
    Case("doctype in an item", around(b"<i><!DOCTYPE i><j/></i>"), ("not well-formed",)),
    Case("doctype between items", around(b"<!DOCTYPE i>"), ("a DOCTYPE is not allowed here",)),
    Case("billion laughs in an item", around(b"<i>" + LAUGHS + b"&c;</i>"), ("not well-formed",)),
    Case("billion laughs in the prolog", LAUGHS + around(b"<i>&c;</i>"), ("undefined entity",)),
    Case(
        "file entity", b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + around(b"<i>&x;</i>"), ("undefined",)
    ),
    Case(
        "http entity", b'<!DOCTYPE r [<!ENTITY x SYSTEM "http://127.0.0.1/">]>' + around(b"<i>&x;</i>"), ("undefined",)
    ),
    Case("parameter entity", b'<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1/"> %p; ]>' + around(b""), ()),
    Case("external document type", b'<!DOCTYPE r SYSTEM "http://127.0.0.1/x.dtd">' + around(b""), ()),
    Case("stylesheet", b'<?xml-stylesheet href="http://127.0.0.1/" encoding="UTF-16"?>' + around(b""), ()),
    Case("undefined entity", around(b"<i>&nbsp;</i>"), ("undefined entity",)),
    Case("entity without end", around(b"<i>&lt</i>"), ("not well-formed",)),
    Case(
        "inclusion",
        around(b'<i xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="/etc/passwd"/></i>'),
        (),
        (
            "<i>1</i>",
            '<i xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="/etc/passwd"/></i>',
            "<i>2</i>",
        ),
    ),
    # bytes and characters
    Case("bad UTF-8", around(b"<i>\xff\xfe</i>"), ("not UTF-8: bad byte at byte 3",)),
    Case("overlong UTF-8", around(b"<i>\xc0\xbc</i>"), ("not UTF-8",)),
    Case("surrogate in UTF-8", around(b"<i>\xed\xa0\x80</i>"), ("not UTF-8",)),
    Case("beyond Unicode", around(b"<i>\xf4\x90\x80\x80</i>"), ("not UTF-8",)),
    Case("not a character", around(b"<i>\xef\xbf\xbf</i>"), ("not well-formed",)),
    Case("cut character", around(b"<i>\xe2\x82</i>"), ("not UTF-8",)),
    Case("bad UTF-8 in a name", around(b"<i\xff/>"), ("not UTF-8",)),
    Case("NUL", around(b"<i>\0</i>"), ("control character (U+0000)",)),
    Case("control character", around(b"<i>\x1b[2J</i>"), ("control character (U+001B)",)),
    Case("reference to a control character", around(b"<i>&#1;</i>"), ("invalid character number",)),
    Case("reference to a surrogate", around(b"<i>&#xD800;</i>"), ("invalid character number",)),
    Case("UTF-16 inside", around("<i>1</i>".encode("utf-16-le")), ("broken markup", "broken markup")),
    # tags
    Case("unclosed element in an item", around(b"<i><j></i>"), ("mismatched tag",)),
    Case("unclosed item", around(b"<i><j>x</j>"), ("'i' is not closed before the next one starts",)),
    Case("unclosed last item", b"<r><i>1</i><i>2</i><i><j></r>", ("'i' is not closed",)),
    Case("crossed tags", around(b"<i><j><k></j></k></i>"), ("mismatched tag",)),
    Case("stray closing tag in an item", around(b"<i>x</j></i>"), ("mismatched tag",)),
    Case("stray closing tag", around(b"</j>"), ("a closing tag 'j' without its element",)),
    Case("many closing tags", around(b"</i></i>"), ("a closing tag 'i'", "a closing tag 'i'")),
    Case("duplicate attributes", around(b"<i a='1' a='2'/>"), ("duplicate attribute",)),
    Case("missing quotes", around(b"<i a=1/>"), ("not well-formed",)),
    Case("missing closing quote", around(b'<i a="1>x</i>'), ("not well-formed",)),
    Case("missing opening quote", around(b'<i a=1">x</i>'), ("not well-formed",)),
    Case("'<' in an attribute", around(b'<i a="x<y">z</i>'), ("not well-formed",)),
    Case("closing tag in an attribute", around(b'<i a="</i>"/>'), ("not well-formed", "text between items")),
    Case("undeclared prefix", around(b"<p:i/>"), ("the prefix 'p' is not declared",)),
    Case("undeclared prefix of an attribute", around(b"<i p:a='1'/>"), ("the prefix 'p' is not declared",)),
    Case("same attribute by two prefixes", around(b"<i xmlns:a='u' xmlns:b='u' a:x='' b:x=''/>"), ("given twice",)),
    Case("space before the name", around(b"< i>x</i>"), ("broken markup", "a closing tag 'i'")),
    Case("digit as a name", around(b"<5>x</5>"), ("broken markup", "broken markup")),
    Case(
        "two items in one tag",
        around(b"<i <i>x</i>"),
        ("'i' is not closed before the next",),
        ("<i>1</i>", "<i>x</i>", "<i>2</i>"),
    ),
    # too much
    Case("too deep", around(b"<i>" + b"<j>" * 20 + b"</j>" * 20 + b"</i>"), ("nested more than 20 deep",)),
    Case("too deep and unclosed", around(b"<i>" + b"<j>" * 100), ("'i' is not closed before the next",)),
    Case("too many nodes", around(b"<i>" + b"<j/>" * 200 + b"</i>"), ("more than 200 nodes",)),
    Case(
        "too many attributes", around(b"<i" + b"".join(b" a%d=''" % n for n in range(17)) + b"/>"), ("16 attributes",)
    ),
    Case(
        "too many namespaces", around(b"<i" + b"".join(b" xmlns:a%d='u'" % n for n in range(17)) + b"/>"), ("16 attr",)
    ),
    Case("huge text", around(b"<i>" + b"x" * 9_000 + b"</i>"), ("more than 2,000 bytes",)),
    Case("huge attribute", around(b"<i a='" + b"x" * 9_000 + b"'/>"), ("more than 2,000 bytes",)),
    Case("huge name", around(b"<" + b"x" * 1_500 + b"/>"), ("broken markup",)),
    Case("huge comment in an item", around(b"<i><!--" + b"x" * 9_000 + b"--></i>"), ("more than 2,000 bytes",)),
    Case("huge text between items", around(b"x" * 5_000), ("text between items",) * 3),
    # what never closes, or closes what was not open
    Case("unclosed comment in an item", around(b"<i><!-- x</i>"), ("'i' is not closed",)),
    Case("unclosed comment between items", around(b"<!-- x"), ("a comment is not closed",)),
    Case("unclosed CDATA", around(b"<i><![CDATA[ x</i>"), ("'i' is not closed",)),
    Case("unclosed instruction in an item", around(b"<i><?p x</i>"), ("'i' is not closed",)),
    Case("unclosed instruction between items", around(b"<?p x"), ("a processing instruction is not closed",)),
    Case("unclosed doctype", b"<!DOCTYPE r [" + around(b""), ("a DOCTYPE is not closed",)),
    Case("comment that ends at once", around(b"<i><!--></i>"), ("'i' is not closed",)),
    Case("two hyphens in a comment", around(b"<i><!-- a -- b --></i>"), ("not well-formed",)),
    Case("']]>' in text", around(b"<i>x]]>y</i>"), ("not well-formed",)),
    Case("declaration in an item", around(b"<i><?xml version='1.0'?></i>"), ("not well-formed",)),
    Case("CDATA between items", around(b"<![CDATA[<i>3</i>]]>"), ("text between items",)),
    Case("text between items", around(b" x &amp; y "), ("text between items",)),
    Case("trailing text", around(b"") + b" and more", ("text outside the root element",)),
    Case("trailing closing tag", around(b"") + b"</r>", ("a closing tag 'r' without its element",)),
    Case("trailing NULs", around(b"") + b"\0" * 3, ("text outside the root element",)),
    Case("a comment that hides an item", around(b"<!-- <i>no</i> -->"), ()),
    Case("a document that just stops", b"<r><i>1</i><i>2</i><i", ("'i' is not closed",)),
    # one item per line
    Case("line that is no XML", b"<i>1</i>\nrubbish\n<i>2</i>\n", ("not well-formed",)),
    Case("line with two items", b"<i>1</i>\n<i/><i/>\n<i>2</i>\n", ("junk after document element",)),
    Case("half an item on a line", b"<i>1</i>\n<i>\n</i>\n<i>2</i>\n", ("no element found", "not well-formed")),
    Case("doctype on a line", b"<i>1</i>\n" + LAUGHS + b"<i>&c;</i>\n<i>2</i>\n", ("a DOCTYPE is not allowed here",)),
    Case("huge line", b"<i>1</i>\n<i>" + b"x" * 9_000 + b"</i>\n<i>2</i>\n", ("more than 2,000 bytes",)),
    Case("NUL on a line", b"<i>1</i>\n<i>\0</i>\n<i>2</i>", ("control character (U+0000)",)),
    Case(
        "encoding on a line",
        b"<i>1</i>\n<?xml version='1.0' encoding='UTF-7'?><i/>\n<i>2</i>",
        (),
        (
            "<i>1</i>",
            "<i/>",
            "<i>2</i>",
        ),
    ),
    # packed
    Case("gzip cut short", gzip.compress(around(b""))[:-8], ("the gzip data is cut short",)),
    Case("gzip with rubbish behind", gzip.compress(around(b"")) + b"rubbish", ("the gzip data is damaged",)),
    Case("gzip in name only", b"\x1f\x8b" + around(b""), ("the gzip data is damaged",), ()),
]

_opened: list[str] | None = None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is not None and (event == "open" or event.startswith(("socket.", "subprocess.", "os.system", "urllib"))):
        _opened.append(f"{event} {arguments[0]}")


sys.addaudithook(_watch)


def outcome(path: Path) -> tuple[list[str], list[str]]:
    good: list[str] = []
    reasons: list[str] = []
    for each in read(Source("s", path), LIMITS):
        match each:
            case DeadLetter():
                reasons.append(each.reason)
            case Item():
                good.append(serialize(each.tree))
            case _:
                raise AssertionError(f"unexpected {each}")
    return good, reasons


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hostile_input_is_set_aside_and_the_stream_goes_on(case: Case, tmp_path: Path) -> None:
    """The expected dead letters, all the good items, and not a file or socket opened but the stream's own."""
    global _opened
    path = tmp_path / "in"
    path.write_bytes(case.data)
    opened: list[str] = []
    _opened = opened
    try:
        good, reasons = outcome(path)
    finally:
        _opened = None
    assert good == list(case.good)
    assert len(reasons) == len(case.reasons), reasons
    assert all(part in reason for part, reason in zip(case.reasons, reasons, strict=True)), reasons
    assert set(opened) == {f"open {path}"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le"])
def test_wide_encodings_are_set_aside_as_a_whole(encoding: str, tmp_path: Path) -> None:
    """Nothing in such a file can be read, so it is one dead letter."""
    path = tmp_path / "in"
    path.write_bytes(around(b"").decode().encode(encoding))
    good, [reason] = outcome(path)
    assert not good
    assert reason.endswith("is not supported")


@pytest.mark.mass
def test_a_gzip_bomb_is_unpacked_in_small_pieces(tmp_path: Path) -> None:
    """64 MiB of one letter in 64 KiB: the one item is too long, and the next is read."""
    path = tmp_path / "in"
    path.write_bytes(gzip.compress(around(b"<i>" + b"x" * (64 << 20) + b"</i>")))
    assert path.stat().st_size < 100_000
    assert outcome(path) == (["<i>1</i>", "<i>2</i>"], ["more than 2,000 bytes"])
