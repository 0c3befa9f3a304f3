"""Which items are good is the parser's to say, alone for each: on trunks it is what the reference says (LAWS 2.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from anabranch.language import check, parse
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source
from mass import some
from spark.bare import BareTrunk
from spark.law import Law, law_of

WINDOWS = 'for $w in stream("s")/*/p[e>2]|t diff 10| return <w n="{count($w)}">{avg($w/e)}</w>'
QUERIES = {
    "windows": WINDOWS,
    "some": 'for $p in stream("s")/*/p where $p/e > 2 return <some>{ $p/t }</some>',
    "all": 'for $p in stream("s")/*/* return $p',
    "root": 'for $p in stream("s")/r/p where $p/e > 2 return <below>{ $p/t }</below>',
    "join": """for $p in stream("s")/*/p|t diff 10| for $q in stream("s")/*/p|t diff 10|
        where $p/e = $q/e and $p/t < $q/t return <pair>{ $p/t }{ $q/t }</pair>""",
}
ITEMS = [f"<p><t>{number}</t><e>{number % 7}</e></p>\n".encode() for number in range(60)]
LATER = b"<p><t>1031</t><e>1</e></p>"
"""An item that would move all windows, were it good."""


def among(line: bytes) -> bytes:
    """A line behind the item of time 31."""
    return b"".join([*ITEMS[:32], line + b"\n", *ITEMS[32:]])


def compare(folder: Path, data: bytes, form: Format, queries: Mapping[str, str] = QUERIES) -> dict[str, Law]:
    """Answers, dead letters and late items of trunks are those of the reference; gives the law.

    Queries run together, and two of them alone: which items are read by others must not show.
    """
    file = folder / "s"
    file.write_bytes(data)
    source = Source("s", file, form, root="r", item="p")
    laws = {
        name: law_of(check(parse(text), text, inputs={"s": None}).query, [source], endless=False, name=name)
        for name, text in queries.items()
    }
    groups = [{name: text} for name, text in list(queries.items())[:2]] + [queries] * (len(queries) > 1)
    for number, group in enumerate(groups):
        trunk = BareTrunk(folder / str(number), [source], Random(number), finite=True)
        trunk.run(group, (len(data) + 1, len(data) // 3 + 1), (1, 2))
        dead = Counter(trunk.log.dead_letters())
        for name in group:
            assert trunk.answer(name) == laws[name].text, f"{name} of {sorted(group)}"
            assert Counter({each: dead[each] for each in dead if each.subscription in (None, name)}) == laws[name].dead
        if "windows" in group:
            assert trunk.late() == laws["windows"].late | laws.get("join", laws["windows"]).late
    return laws


def test_text_in_a_cdata_section_behind_an_item_is_bad(tmp_path: Path) -> None:
    """Legal between siblings, but not behind a line's one element: the line is set aside, and moves no window."""
    law = compare(tmp_path, among(LATER + b"<![CDATA[x]]>"), "lines", {"windows": WINDOWS})["windows"]
    assert law.text.count("<w ") == 6
    assert (len(law.dead), len(law.late)) == (1, 0)


@pytest.mark.parametrize("line", some([b"%s<![CDATA[]]>", b"<![CDATA[ ]]>%s", b"%s<!-- c --><![CDATA[<p/>]]>\r"]))
def test_a_cdata_section_is_text_whatever_it_holds(tmp_path: Path, line: bytes) -> None:
    """Nothing, white space or what looks like an element: it may not stand outside the line's element."""
    law = compare(tmp_path, among(line % LATER), "lines")["windows"]
    assert (len(law.dead), len(law.late)) == (1, 0)


def test_what_may_not_stand_around_an_item_on_its_line(tmp_path: Path) -> None:
    """Lines that are not well-formed alone, each between good ones: all are set aside."""
    around = [
        b"%s&#32;", b"&amp;%s", b"%s\x0c", b"%s\x00", b"<!DOCTYPE p>%s", b" <?xml version='1.0'?>%s", b"%s<!--",
        b"%s<?i", b"%s<?xml version='1.0'?>", b"%s<!-- -- -->", b"%s<q", b"%s<", b"%s</r>", b"\xff%s", b"%s\xc2\xa0",
        b"%s%%",
    ]  # fmt: skip
    lines = b"".join(each % LATER + b"\n" + item for each, item in zip(around, ITEMS, strict=False))
    law = compare(tmp_path, lines + b"".join(ITEMS[len(around) :]), "lines")["windows"]
    assert (len(law.dead), len(law.late)) == (len(around), 0)


@pytest.mark.parametrize(
    "line", some([b"\xef\xbb\xbf%s", b"<?xml version='1.0' encoding='x'?>%s", b"<!-- <p> -->%s<?i?> \r"])
)
def test_what_may_stand_around_an_item_on_its_line(tmp_path: Path, line: bytes) -> None:
    """Lines that are well-formed alone are good, also where they would not be so between others."""
    law = compare(tmp_path, among(line % LATER), "lines")["windows"]
    assert (len(law.dead), len(law.late)) == (0, 28)


def test_xml_in_a_stream_of_json_is_bad(tmp_path: Path) -> None:
    """A line that would be an item in a stream of XML is no record."""
    law = compare(tmp_path, b'{"t": 1, "e": 3}\n' + b"".join(ITEMS), "json")["all"]
    assert (law.text, len(law.dead)) == ('{"t": 1, "e": 3}\n', 60)


@pytest.mark.parametrize(
    ("root", "look"),
    some(
        [
            (b"<r a='1' a='2'>", b"<p>"),
            (b"<n:r>", b"<p><!-- c -->"),
            (b"<r a='&x;'>", b"<p k='1'>"),
            (b"<r a='\xff'>", b"<p>"),
        ]
    ),
)
def test_items_below_a_root_that_cannot_be_read_are_bad(tmp_path: Path, root: bytes, look: bytes) -> None:
    """A further document whose root is not well-formed: all its items are set aside, of whatever look."""
    items = b"".join(ITEMS).replace(b"<p>", look)
    name = root[1:].split()[0].strip(b">")
    law = compare(tmp_path, b"<r>" + items + b"</r>\n" + root + items + b"</" + name + b">", "document")["some"]
    assert len(law.dead) == 60


@pytest.mark.mass
@pytest.mark.parametrize("first", [b"<r>%s</r>", b"<r/>"])
@pytest.mark.parametrize("second", some([b"<q xmlns='u'>%s</q>", b"<q>%s</q>", b"<q xmlns:n='u'>%s</q>"]))
def test_the_root_of_a_stream_is_its_first(tmp_path: Path, first: bytes, second: bytes) -> None:
    """Documents may follow one another; whoever asks for the first root gets all items, also where it has none."""
    items = b"".join(ITEMS)
    law = compare(tmp_path, first.replace(b"%s", items) + second.replace(b"%s", items), "document")
    assert law["root"].text.startswith("<below>") or b"xmlns='u'" in second


@pytest.mark.mass
def test_the_root_of_a_closed_document_is_read_in_its_encoding(tmp_path: Path) -> None:
    """A root with letters beyond ASCII, in a document that ends before the format is settled."""
    head = "<?xml version='1.0' encoding='iso-8859-1'?>\n<r place='Zürich'>".encode("iso-8859-1")
    law = compare(tmp_path, head + b"".join(ITEMS) + b"</r>", "document")
    assert law["some"].text.count("<some>") == 33


@pytest.mark.mass
@pytest.mark.parametrize(("written", "sign"), some([(b"&#10;", b"\n"), (b"&#xD;", b"\r"), (b"&#13;", b"\r")]))
def test_white_space_written_as_a_reference_is_no_line_end(tmp_path: Path, written: bytes, sign: bytes) -> None:
    """Items with such a reference have a look of their own, which no line with the character itself has."""
    usual = [b"<p>" + written + item[3:] for item in ITEMS]
    other = [b"<p>" + sign + item[3:] for item in ITEMS[:9]]
    law = compare(tmp_path, b"".join([*usual, *other]), "lines")["all"]
    assert len(law.dead) == (18 if sign == b"\n" else 0)
