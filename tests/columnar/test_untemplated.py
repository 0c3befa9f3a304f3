"""Items that are called good without a tree are those that the parser accepts, and their numbers are the tree's."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.items import untemplated
from anabranch.columnar.scan.shred import Shredder
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry, LineSplitter
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.tree import Element, string_value
from columnar.looks import wanted_of
from columnar.streams import NUMBERS, SHAPES, TEXTS
from mass import examples

LIMITS = Limits(item_bytes=500, depth=5)
USUAL = b"<p><a><x>1</x></a><z>2</z></p>"
PATHS = (("a", "x"), ("z",))
MARKUP = [
    "<p>", "</p>", "<a>", "</a>", "<x>", "</x>", "<z>", "</z>", "<z/>", "<p", "<z", "/>", ">", "<", "</", "<!--", "-->",
    "--", "<![CDATA[", "]]>", "<!DOCTYPE p>", "<?", "?>", "<?xml version='1.0'?>", " k='", " k=\"", "'", '"', " k='v'",
    "xmlns='u'", " n:k='v'", "<n:z>", "</n:z>", "&amp;", "&x;", "&#1;", "=", "x", " ", "5", "-1.5", "é", "\x01", "\t",
]  # fmt: skip
whole = st.builds(
    lambda before, x, between, z, behind: f"{before}<p>{between}<a><x>{x}</x></a>{between}<z>{z}</z></p>{behind}",
    *[st.sampled_from(["", "", " ", "<!-- </p> -->", "<?i?>", "<!--"]), st.sampled_from(NUMBERS)],
    *[st.sampled_from(["", *MARKUP, "<z>1</z>", "<q><z>7</z></q>", "<a/>"]), st.sampled_from(NUMBERS + TEXTS)],
    st.sampled_from(["", "", " ", "-->", "<p/>", "x"]),
)  # fmt: skip
soup = st.lists(st.sampled_from(MARKUP), max_size=12).map("".join)
shaped = st.builds(lambda shape, x, y, z: shape.format(x=x, y=y, z=z), *[
    st.sampled_from(each) for each in (SHAPES, NUMBERS, TEXTS, NUMBERS)
])  # fmt: skip


def texts_at(item: Element, path: tuple[str, ...]) -> list[str]:
    found = [item]
    for step in path:
        found = [
            child for each in found for child in each.children if isinstance(child, Element) and str(child.name) == step
        ]
    return [string_value(each) for each in found]


@examples(150)
@given(st.lists(st.one_of(whole, soup, shaped), min_size=1, max_size=12))
def test_good_is_what_the_parser_accepts(items: list[str]) -> None:
    """However the items of a batch are broken, none is good that is not, and no number comes from another place."""
    wanted = wanted_of(USUAL, *("/".join(path) for path in PATHS))
    paths = {wanted.look.path(column)[1:]: row for column, row in wanted.rows.items() if isinstance(column, int)}
    rows = [paths[tuple(path)] for path in PATHS]
    data = "".join(f"{item}\n" for item in items).encode()
    reader = ElementReader("s", "lines", LIMITS, parse_item(b"<root/>", LIMITS))
    for shredded in Shredder(LineSplitter(LIMITS, Carry(100)), LIMITS).feed(data, wanted):
        good = untemplated.fill(shredded, LIMITS)
        for entry in range(len(shredded.fits)):
            numbers = [shredded.values[row, entry] for row in rows]
            if not good[entry]:
                assert shredded.fits[entry] or all(map(math.isnan, numbers))
                continue
            (element,) = reader.elements([shredded.cut(entry)], "f")
            assert isinstance(element, Item)
            for path, number in zip(PATHS, numbers, strict=True):
                if not math.isnan(number):
                    (text,) = texts_at(element.tree, path)
                    assert element.tree.name.local == "p"
                    assert float(text) == number


def test_one_bad_item_does_not_cost_the_others() -> None:
    """Where a batch has a fault, its other items are still known to be good."""
    wanted = wanted_of(USUAL, "/".join(PATHS[0]))
    unusual = USUAL.replace(b"<p>", b"<p><!-- c -->")
    lines = [unusual, unusual.replace(b"</z>", b"</y>"), unusual]
    data = b"".join(line + b"\n" for line in lines)
    (shredded,) = Shredder(LineSplitter(LIMITS, Carry(100)), LIMITS).feed(data, wanted)
    assert untemplated.fill(shredded, LIMITS).tolist() == [True, False, True]
    assert shredded.values[0, 0] == 1.0
    assert math.isnan(shredded.values[0, 1])
