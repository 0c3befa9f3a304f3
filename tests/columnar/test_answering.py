"""Which way an item takes never shows: columns answer as the law does, for items of every kind, however fed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.match import index as matching
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.reading.reader import Format
from anabranch.stream.schema import Schema
from columnar.looks import look_of
from columnar.streams import FRONT, NUMBERS, SHAPES, TEXTS, USUAL, Stream, item_queries
from mass import Mass, examples

COLUMNAR = {
    "numbers": 'for $p in stream("s")/root/p where $p/a/x >= 1.5 and $p/z < 7 return <hit>{ $p/a/x }{ $p/z }</hit>',
    "whole": 'for $p in stream("s")/root/p where not($p/a/y = "abc") return $p',
    "path": 'stream("s")/root/p[a/x > 3 or z = 5]/a',
    "attributes": 'for $p in stream("s")/root/p return <o at="{ $p/a/y }&quot;">&lt;{ $p/a/y/text() }<b/><!--c--></o>',
    "then": 'for $p in stream("s")/root/p[z > 1] where $p/a/x > 2 return <t/>',
    "texts": 'for $p in stream("s")/root/p where "abc" <= $p/a/y and $p/a/y != "b" return ($p/a/y, <e>{ () }</e>)',
    "absent": 'for $p in stream("s")/root/p where $p/opt > 1 or $p/z > 3 return ($p/opt, $p/z)',
    "exists": 'for $p in stream("s")/root/p where $p/opt or $p/a/x = -0.25 return <o>{ $p/a }</o>',
    "inner": 'for $a in stream("s")/root/p[z >= 0]/a where $a/x != 5 return <i>{ $a/x }</i>',
    "elsewhere": 'stream("s")/other/p/z',
    "flipped": '<f>{ for $p in stream("s")/root/p where 5 > $p/z return <q>{ $p/z, $p/a/x }</q> }</f>',
    "abstract": """<root>{ for $p in stream("s")/root/p return if ($p/a/x >= 1.5 or $p/z < 7)
        then <p>{ for $a in $p/a return <a>{ for $o in $p/opt return <o>{ $a/x }</o> }{ $a/y }</a> }{ $p/z }</p>
        else () }</root>""",
    "everything": 'for $item in stream("s")/*/* return $item',
    "any": 'for $p in stream("s")/root/* where $p/*/x > 3 return <any>{ $p/a/* }</any>',
    "doubtful": """for $p in stream("s")/root/p where $p/z > 1
        return if ($p/a/x > 2) then if ($p/a/x != 5) then $p/a/y else () else ()""",
    "otherwise": 'for $p in stream("s")/root/p return if ($p/z > 3) then <high/> else $p/z',
    "here and there": 'for $p in stream("s")/root/p return <p>{ if ($p/z > 3) then $p/z else () }</p>',
    "computed": 'for $p in stream("s")/root/p where $p/a/x + 1 > 3 return <s>{ string($p/z) }</s>',
    "spaced": 'declare namespace n = "u"; <f xmlns="v">{ for $p in stream("s")/root/p return $p/z }</f>',
}
OTHERS = {
    "deep": 'stream("s")//x',
    "digits": 'for $p in stream("s")/root/p where $p/a/x > 0.1000000000000000055 return <d/>',
}
QUERIES = item_queries(COLUMNAR | OTHERS)

number = st.one_of(st.decimals(-10, 10, places=2).map(str), st.sampled_from(NUMBERS))
text = st.sampled_from(TEXTS)
shapes = st.one_of(st.just(USUAL), st.sampled_from(SHAPES))
items = st.builds(lambda shape, **texts: shape.format(**texts), shapes, x=number, y=text, z=number)
line_ends = st.sampled_from(["\n", "\n", "\r\n", "\n\n"])
streams = st.lists(st.tuples(items, line_ends), min_size=1, max_size=30)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(bounds)]


def check_against_law(form: Format, items: str, places: list[int]) -> None:
    """Answers, dead letters, their order, counts and the carry are those of the law, before and after learning."""
    data = (f"<root>\n{FRONT}{items}</root>\n" if form == "document" else FRONT + items).encode()
    stream = Stream(QUERIES, form, limits=Limits(item_bytes=300, depth=20))
    law = stream.by_law(data)
    answers = stream.answers()
    assert stream.by_columns(cut(data, places), answers)[0] == law
    assert stream.by_columns(cut(data, places), answers)[0] == law


MARKED = [
    *(shape.format(x="4.5", y="abc", z="3") for shape in SHAPES),
    *(USUAL.format(x="2", y=each, z="3") for each in TEXTS),
]
NUMBERED = [
    *(USUAL.format(x=each, y="abd", z="3") for each in NUMBERS),
    *(USUAL.format(x="4.5", y="abd", z=each) for each in NUMBERS),
]
"""No splitter looks at these."""


def test_every_kind_of_item_is_answered_as_by_law(mass: Mass) -> None:
    """An item of each kind, once among usual ones."""
    kinds: list[tuple[Format, str]] = [("lines", each) for each in (*MARKED, *NUMBERED)]
    kinds += [("document", each) for each in MARKED]
    for number in mass.cases(len(kinds)):
        form, item = kinds[number]
        check_against_law(form, f"{item}\n{USUAL.format(x='2.5', y='ab', z='4')}\n", [])


@pytest.mark.parametrize("form", ["lines", "document"])
def test_a_batch_with_too_many_answers_is_taken_in_parts(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for a few pairs at a time, answers, dead letters and their order are the same."""
    monkeypatch.setattr(matching, "_ROOM", 4)
    monkeypatch.setattr(matching, "_MOST_PAIRS", 16)
    items = [USUAL.format(x=each, y="abd", z="3") for each in NUMBERS] + [
        each.format(x="4.5", y="b", z="3") for each in SHAPES
    ]
    check_against_law(form, "\n".join(items) + "\n", [])


@pytest.mark.parametrize("form", ["lines", "document"])
@examples(15)
@given(stream=streams, places=st.lists(st.integers(0, 5_000), max_size=3), ended=st.booleans())
@pytest.mark.mass
def test_streams_are_answered_as_by_law(
    form: Format, stream: list[tuple[str, str]], places: list[int], ended: bool
) -> None:
    """Any items one after the other, however the bytes are fed."""
    data = "".join(item + end for item, end in stream)
    check_against_law(form, data if ended else data.rstrip("\n"), places)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_made_for_columns(name: str) -> None:
    """Queries of plain paths are compiled, others and those among namespaces are not."""
    raw = FRONT.encode().splitlines()[0]
    hole = QUERIES[name].expanded_hole
    compiled = isinstance(compile_query(hole, "root", look_of(raw)), CompiledQuery)
    assert compiled == (name in COLUMNAR)


def test_items_of_one_look_are_not_parsed() -> None:
    """Of two thousand photons the parser reads the first at most, and the answer is the law's."""
    query = """for $p in stream("s")/photons/photon
        where $p/coord/cel/ra >= 120 and $p/coord/cel/ra <= 138 and $p/en >= 1.3
        return <vela>{ $p/coord/cel/ra }{ $p/en }</vela>"""
    stream = Stream(item_queries({"q": query}), root="<photons>")
    data = "".join(f"{photon}\n" for photon in photons(2_000, 7)).encode()
    found, read = stream.by_columns([data])
    assert found == stream.by_law(data)
    assert found.counts["q"] > 100
    assert read <= 1  # the first line, which is where a byte order mark would be


def test_attributes_are_part_of_the_look() -> None:
    """Items with attributes of any plain value fit a template, and are copied with them."""
    query = 'for $p in stream("s")/photons/photon where $p/en >= 1.3 return <hit>{ $p/coord/cel }{ $p }</hit>'
    stream = Stream(item_queries({"q": query}), root="<photons>")
    tags = [f'<photon id="{number}" k="a>b"><note/>' for number in range(300)]
    tags[7] = '<photon id="" k="&quot;">'
    data = "".join(
        photon.replace("<photon>", tag).replace("<cel>", '<cel epoch="J2000">') + "\n"
        for photon, tag in zip(photons(300, 3), [tag.replace(">b", "b") for tag in tags], strict=True)
    ).encode()
    found, read = stream.by_columns([data])
    assert found == stream.by_law(data)
    assert read <= 2


def test_items_that_fit_nothing_are_parsed_only_where_they_may_be_taken() -> None:
    """Comments in all items leave nothing to fit, but enough to know which of them are selected."""
    query = 'for $p in stream("s")/photons/photon where $p/en >= 2.3 return $p'
    stream = Stream(item_queries({"q": query}), root="<photons>")
    data = "".join(photon.replace("<en>", "<!-- c --><en>") + "\n" for photon in photons(1_000, 7)).encode()
    found, read = stream.by_columns([data])
    assert found == stream.by_law(data)
    assert 0 < found.counts["q"] == read


def test_elements_of_one_name_may_be_of_two_kinds() -> None:
    """A name that stands for a text in one place and for an element with others in it in another."""
    query = 'for $p in stream("s")/root/p where $p/a > 3 or $p/a/b > 3 return <r>{ $p/a/b }</r>'
    stream = Stream(item_queries({"q": query}))
    usual = [f"<p><a>{number}</a><a><b>{9 - number}</b></a></p>\n" for number in range(10)]
    data = "".join([*usual, *(each.replace("<p>", "<p><!-- c -->") for each in usual)]).encode()
    assert stream.by_columns([data])[0] == stream.by_law(data)


def test_items_of_another_look_are_parsed_only_where_they_may_be_taken() -> None:
    """Photons with an attribute fit no template of the first ones; the parser reads those that are selected."""
    query = 'for $p in stream("s")/photons/photon where $p/en >= 2.3 return $p'
    stream = Stream(item_queries({"q": query}), root="<photons>")
    first, *rest = photons(1_000, 7)
    data = "\n".join([first, *(photon.replace("<photon>", "<photon id='1'>") for photon in rest), ""]).encode()
    answers = stream.answers()
    stream.by_columns([f"{first}\n".encode()], answers)
    found, read = stream.by_columns([data], answers)
    assert found == stream.by_law(data)
    assert 0 < found.counts["q"] == read


def test_what_every_item_has_twice_is_compared_twice() -> None:
    """Where the usual item repeats a child, a comparison holds if it holds for one of them, also in unusual items."""
    query = 'for $p in stream("s")/root/p where $p/x > 3 and $p/x < 2 return <r k="{ $p/x }">{ $p/x }</r>'
    stream = Stream(item_queries({"q": query}))
    values = [("1", "4"), ("4", "1"), ("1", "1"), ("4", "4"), ("a", "4"), ("1", "b"), ("4", "b")] * 3
    usual = [f"<p><x>{first}</x><x>{second}</x></p>\n" for first, second in values]
    unusual = [each.replace("<p>", "<p k='1'>") for each in usual]
    other = [f"<p k='1'><x>{first}</x></p>\n" for first, _ in values]
    data = "".join([*usual, *unusual, *other]).encode()
    found, _ = stream.by_columns([data])
    assert found == stream.by_law(data)
    assert found.counts["q"] == 12


def test_a_new_look_is_learned() -> None:
    """When the items of a stream change their look, the next piece is read by a new template."""
    query = 'for $p in stream("s")/photons/photon where $p/en >= 1.3 return $p/en'
    stream = Stream(item_queries({"q": query}), root="<photons>")
    old = "".join(f"{photon}\n" for photon in photons(500, 1)).encode()
    new = old.replace(b"<en>", b"<more>1</more><en>")
    found, read = stream.by_columns([old, new, new])
    assert found == stream.by_law(old + new + new)
    assert read < 500


def test_a_strict_stream_sets_aside_what_is_not_declared() -> None:
    """An item with an undeclared path is a dead letter, also where most items have it."""
    query = 'for $p in stream("s")/photons/photon where $p/en >= 1.3 return $p/en'
    schema = Schema.from_dtd(photons_dtd())
    stream = Stream(item_queries({"q": query}), root="<photons>", schema=schema)
    good = [f"{photon}\n" for photon in photons(40, 1)]
    bad = [photon.replace("<en>", "<more>1</more><en>") for photon in good]
    data = "".join([*bad[:20], *good, *bad[20:]]).encode()
    found, _ = stream.by_columns([data[:9_000], data[9_000:]])
    assert found == stream.by_law(data)
    assert (len(found.dead), found.items) == (40, 40)


def test_many_slow_answers_are_handed_out_in_between() -> None:
    """Answers of several megabytes by the slow way keep their order among those of the fast way."""
    query = 'for $p in stream("s")/root/p where $p/z > 0 return <hit>{ $p }</hit>'
    stream = Stream(item_queries({"q": query}))
    plain = "<p><z>{0}</z><t>abc</t></p>\n"
    other = "<p><z>{0}</z><t>" + "é" * 100_000 + "</t></p>\n"
    data = "".join((other if number % 3 == 2 else plain).format(number) for number in range(100)).encode()
    assert stream.by_columns([data])[0] == stream.by_law(data)


def test_a_root_that_declares_control_elements_costs_nothing() -> None:
    """Items below such a root are copied without its declaration (LAWS 2.1), so their bytes are what is copied."""
    query = 'for $p in stream("s")/photons/photon where $p/en >= 1.3 return <hit>{ $p/coord }{ $p }</hit>'
    root = '<photons xmlns:s="urn:anabranch:stream">'
    stream = Stream(item_queries({"q": query}), "document", root=root)
    data = "\n".join([root, *photons(500, 7), "</photons>"]).encode()
    found, read = stream.by_columns([data])
    assert found == stream.by_law(data)
    assert "xmlns" not in found.texts["q"]
    assert found.counts["q"] > 100
    assert read < 10  # what the splitter had cut before the first template
