from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anabranch.stream.limits import Limits
from anabranch.stream.reading.split import Carry, Cut, DocumentSplitter, LineSplitter
from mass import examples, some

Splitter = type[DocumentSplitter] | type[LineSplitter]
DEFAULT = Limits()
SMALL = Limits(item_bytes=60, depth=4)


def cut(kind: Splitter, data: bytes, limits: Limits = DEFAULT) -> list[Cut]:
    splitter = kind(limits)
    return splitter.feed(data) + splitter.finish()


def good(cuts: list[Cut]) -> list[bytes]:
    return [each.raw for each in cuts if each.reason is None]


def bad(cuts: list[Cut]) -> list[tuple[bytes, str]]:
    return [(each.raw, each.reason) for each in cuts if each.reason is not None]


# --- lines ------------------------------------------------------------------------------------------------


def test_lines_end_with_lf_or_crlf() -> None:
    """Both line ends count, a CR alone does not, blank lines are nothing, the last line needs no end."""
    cuts = cut(LineSplitter, b"<a/>\r\n\n  \n<b>\r</b>\n<c/>")
    assert [(each.start, each.end, each.raw) for each in cuts] == [
        (0, 4, b"<a/>"),
        (10, 18, b"<b>\r</b>"),
        (19, 23, b"<c/>"),
    ]


def test_a_last_line_comes_at_the_end_only() -> None:
    """Without its line end a line may still grow."""
    splitter = LineSplitter(Limits())
    assert splitter.feed(b"<a/>\n<b") == [Cut(0, 4, b"<a/>")]
    assert splitter.carry == Carry(5)
    assert splitter.finish() == [Cut(5, 7, b"<b")]


def test_a_long_line_is_one_bad_cut_and_not_kept() -> None:
    """It is set aside as soon as it is too long, its rest is dropped, and the next line is read."""
    splitter = LineSplitter(Limits(item_bytes=10))
    first = splitter.feed(b"x" * 25)
    assert first == [Cut(0, 10, b"x" * 10, "more than 10 bytes")]
    assert splitter.carry == Carry(25, "")
    assert splitter.feed(b"x" * 1000) == []
    assert splitter.feed(b"x\n<a/>\n") == [Cut(1027, 1031, b"<a/>")]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    """The item starts behind it."""
    assert cut(LineSplitter, b"\xef\xbb\xbf{}\n") == [Cut(3, 5, b"{}")]


# --- documents --------------------------------------------------------------------------------------------


def test_items_are_the_children_of_the_root() -> None:
    """Comments, instructions and white space between them are skipped; positions are exact."""
    data = b'<?xml version="1.0"?>\n<r a="1">\n<i>1</i><!-- <i>no</i> --><?p <i/>?> <j b=">"/>\n</r>\n<!-- end -->'
    cuts = cut(DocumentSplitter, data)
    assert good(cuts) == [b"<i>1</i>", b'<j b=">"/>']
    assert bad(cuts) == []
    assert all(data[each.start : each.end] == each.raw for each in cuts)
    assert {each.root for each in cuts} == {b'<r a="1">'}


def test_a_document_that_never_closes_yields_its_items() -> None:
    """Each item comes with its last byte, not with the next item or the end."""
    splitter = DocumentSplitter(Limits())
    assert splitter.feed(b"<r><i>1</i") == []
    assert splitter.carry == Carry(3, root="<r>", inside=True)
    assert splitter.feed(b"><i>2</i>") == [Cut(3, 11, b"<i>1</i>", root=b"<r>"), Cut(11, 19, b"<i>2</i>", root=b"<r>")]
    assert splitter.finish() == []


@pytest.mark.parametrize(
    "item",
    [
        b"<i><i><i/></i><j><i>x</i></j></i>",
        b"<i><![CDATA[</i><i>]]></i>",
        b"<i><!-- </i> <i> --></i>",
        b"<i><?p </i> <i>?></i>",
        b"<i a='>' b='\"/>' c=\"'\">x</i>",
        b"<i\n a = '1'\n><r>x</r></i\n>",
        b"<s:i.-\xc3\xa9>x</s:i.-\xc3\xa9>",
        b"<i/>",
        b"<i />",
    ],
)
def test_an_item_ends_where_it_ends(item: bytes) -> None:
    """Elements of its own name inside, and tags that are no tags, do not end it early."""
    assert good(cut(DocumentSplitter, b"<r>" + item + b"<i>next</i></r>")) == [item, b"<i>next</i>"]


def test_a_doctype_is_skipped_unread() -> None:
    """Brackets, quotes and comments in it do not end it."""
    doctype = b"""<!DOCTYPE r SYSTEM "a>b" [ <!ENTITY x "]>"> <!-- ' ]> --> <?p ' ]> ?> <!ELEMENT i (j)> ]>"""
    assert good(cut(DocumentSplitter, doctype + b"<r><i/></r>")) == [b"<i/>"]


def test_documents_may_follow_one_another() -> None:
    """Each item knows the root and the encoding of its own document."""
    data = b'<?xml version="1.0" encoding="ISO-8859-1"?><r><i/></r>\xef\xbb\xbf<q/><s x="1"><j/></s>'
    cuts = cut(DocumentSplitter, data)
    assert [(each.raw, each.root, each.encoding, each.reason) for each in cuts] == [
        (b"<i/>", b"<r>", "iso-8859-1", None),
        (b"<j/>", b'<s x="1">', "utf-8", None),
    ]


def test_an_unclosed_item_costs_only_itself() -> None:
    """Reading goes on at the next start tag of the same name."""
    data = b"<r><p><en>1</en><p><en>2</en></p><p><en>3</en></p></r>"
    cuts = cut(DocumentSplitter, data)
    assert good(cuts) == [b"<p><en>2</en></p>", b"<p><en>3</en></p>"]
    assert bad(cuts) == [(b"<p><en>1</en>", "'p' is not closed before the next one starts")]


def test_a_document_that_stops_in_an_item() -> None:
    """The unfinished item is bad, those nested in it are not lost."""
    cuts = cut(DocumentSplitter, b"<r><i>1</i><i>2<j>")
    assert (good(cuts), bad(cuts)) == ([b"<i>1</i>"], [(b"<i>2<j>", "'i' is not closed")])


@pytest.mark.parametrize("name", ["UTF-16", "utf-32le", "EBCDIC-CP-US", "shift_jis"])
def test_other_encodings_are_bad_by_name(name: str) -> None:
    """Only encodings that keep ASCII can be split; the reason names the one found."""
    declaration = f'<?xml version="1.0" encoding="{name}"?>'.encode()
    cuts = cut(DocumentSplitter, declaration + b"<r><i/></r>")
    assert (good(cuts), bad(cuts)) == ([], [(declaration, f"the encoding '{name}' is not supported")])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_wide_encodings_are_bad_from_their_first_bytes(encoding: str) -> None:
    """With or without a byte order mark; lines are judged one by one, whatever stands before them."""
    data = "<r><i/></r>".encode(encoding)
    [(front, reason)] = bad(cut(DocumentSplitter, data))
    assert (front, reason) == (data[:4], f"the encoding '{encoding[:6].upper()}' is not supported")
    assert good(cut(LineSplitter, data)) == [data]


# --- laws -------------------------------------------------------------------------------------------------

FRAGMENTS = [
    *(b"<i>", b"</i>", b"<i/>", b"<j>", b"</j>", b"<j a='>'>", b'<i b="x">', b"<r>", b"</r>", b"<ij/>", b"</i >"),
    *(b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?", b"?>", b"<?xml version='1.0' encoding='latin1'?>", b"<!", b"<!DOC"),
    *(
        b"<!DOCTYPE r [",
        b"]>",
        b"<!DOCTYPE r>",
        b'"',
        b"'",
        b"<",
        b">",
        b"/",
        b" ",
        b"\n",
        b"x",
        b"&amp;",
        b"\xef\xbb\xbf",
    ),
    *(b"<i>1</i>", b"<i><j>2</j></i>\n", b"x" * 30, b"<j>" * 5, b"\xff", b"\r\n"),
]
nasty = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(b"".join)
documents = st.one_of(nasty, nasty.map(lambda each: b"<r>" + each))


def in_pieces(kind: Splitter, data: bytes, limits: Limits, cuts: list[tuple[int, bool]]) -> list[Cut]:
    """The cuts when fed up to each position in turn, and handed on there to a new splitter where it says so."""
    splitter = kind(limits)
    found: list[Cut] = []
    fed = 0
    for position, restart in cuts:
        if position > fed:
            found += splitter.feed(data[fed:position])
            fed = position
        if restart:
            splitter = kind(limits, Carry.from_json(json.loads(json.dumps(splitter.carry.to_json()))))
            fed = splitter.carry.position
    return found + splitter.feed(data[fed:]) + splitter.finish()


@pytest.mark.parametrize("kind", [DocumentSplitter, LineSplitter])
@examples(120)
@given(documents, st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=12))
def test_pieces_and_restarts_do_not_show(kind: Splitter, data: bytes, cuts: list[tuple[int, bool]]) -> None:
    """Whatever the bytes, any way of feeding them and any handing on by carry gives the same cuts."""
    assert in_pieces(kind, data, SMALL, sorted(cuts)) == cut(kind, data, SMALL)


@examples(60)
@given(documents)
@example(b"<r><i><!-- <i><!-- <i><!--")
def test_one_byte_at_a_time(data: bytes) -> None:
    """The smallest pieces there are, with a restart at each, give the same cuts."""
    every = [(position, True) for position in range(1, len(data))]
    assert in_pieces(DocumentSplitter, data, SMALL, every) == cut(DocumentSplitter, data, SMALL)


@examples(80)
@given(documents)
def test_cuts_are_pieces_of_the_input_in_order(data: bytes) -> None:
    """They do not overlap, good ones are exactly the bytes they name, bad ones begin with them."""
    cuts = cut(DocumentSplitter, data, SMALL)
    ends = [0] + [each.end for each in cuts]
    assert all(before <= each.start < each.end for before, each in zip(ends, cuts, strict=False))
    assert all(data[each.start : each.end] == each.raw for each in cuts)


items = st.recursive(
    st.sampled_from([b"x", b"<j/>", b"<!-- <i> -->", b"<![CDATA[</i>]]>", b"<?p <?>", b"&lt;"]),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: b"<i a='>'>" + b"".join(parts) + b"</i >"),
    max_leaves=6,
).map(lambda inner: b"<i>" + inner + b"</i>")


@examples(60)
@given(st.lists(items, max_size=6))
def test_well_formed_items_all_come_out(written: list[bytes]) -> None:
    """What was put into a document is what is cut out of it, nothing is bad."""
    cuts = cut(DocumentSplitter, b"<r>\n" + b"\n".join(written) + b"</r>")
    assert ([each.raw for each in cuts], bad(cuts)) == (written, [])


@pytest.mark.parametrize(
    "unit",
    some(
        [
            b"<i>1</i>",
            b"<i><j></i>",
            b"<i>",
            b"<i><!-- ",
            b"<i><![CDATA[<i>",
            b"<i><i></i><j>",
            b"<i a='",
            b"</j>",
            b"< ",
            b"<!-- ",
            b"<!DOCTYPE [",
            b"<r><i></r></r>",
            b"x",
        ]
    ),
)
def test_work_is_linear_in_bytes(unit: bytes) -> None:
    """Twice the input is at most a little over twice the bytes looked at, and no byte is looked at very often."""

    def work(size: int) -> int:
        splitter = DocumentSplitter(Limits(item_bytes=3_000))
        data = b"<r>" + unit * (size // len(unit))
        for start in range(0, len(data), 1_000):
            splitter.feed(data[start : start + 1_000])
        splitter.finish()
        return splitter.scanned

    once, twice = work(20_000), work(40_000)
    assert twice <= 2.1 * once
    assert twice <= 8 * 40_000


@pytest.mark.mass
def test_work_is_linear_in_the_largest_item() -> None:
    """A larger cap lets an attack reach further, but the work per byte stays the same."""

    def work(cap: int, unit: bytes) -> int:
        splitter = DocumentSplitter(Limits(item_bytes=cap))
        splitter.feed(b"<r>" + unit * (30_000 // len(unit)))
        splitter.finish()
        return splitter.scanned

    for unit in (b"<i><!-- ", b"<i><i></i><j>", b"<i a='", b"<i><j></i>", b"<i></i><k><k><!--</k>"):
        assert work(15_000, unit) <= 1.2 * work(1_500, unit) + 15_000
