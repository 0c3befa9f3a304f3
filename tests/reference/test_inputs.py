from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path as FilePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.law import document_input, stream_input, text_input
from anabranch.law.inputs import Signal
from anabranch.stream.description import parse as parse_description
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import implied_root, parse_document, parse_item
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import Element, Name, Text, string_value
from reference.asking import ask, leaves


def item(text: str, partition: str, offset: int, at: str | None = None) -> Item:
    """`<i><t>text</t></i>` at a place."""
    tree, leaf = Element(Name("i")), Element(Name("t"))
    leaf.append(Text(text))
    tree.append(leaf)
    return Item(tree, Place("s", partition, offset), Decimal(at) if at else None)


def texts(*partitions: list[StreamElement | DeadLetter], time: str | None = None) -> list[str]:
    """The items in the order in which a query sees them."""
    found, _ = stream_input(implied_root("r"), partitions, time=Path.parse(time) if time else None)
    return [string_value(arrival.item) for arrival in found.arrivals]


# --- time and order (LAWS 1) ------------------------------------------------------------------------------


def test_time_is_at_then_the_time_path_then_the_element_before() -> None:
    """`at` wins over the declared path; an element without a time has that of the one before, 0 at the start."""
    elements: list[StreamElement | DeadLetter] = [
        item("x", "a", 0),
        item("5", "a", 1),
        item("7", "a", 2, at="2.5"),
        item("y", "a", 3),
        item("NaN", "a", 4),
        item("1e1", "a", 5),
    ]
    found, _ = stream_input(implied_root("r"), [elements], time=Path.parse("t"))
    assert [arrival.time for arrival in found.arrivals] == [0, 5, Fraction(5, 2), Fraction(5, 2), Fraction(5, 2), 10]


def test_partitions_are_merged_by_time() -> None:
    """Ties go to the partition named first, and each partition keeps its own order."""
    a = [item("a1", "a", 0, at="1"), item("a5", "a", 1, at="5"), item("a4", "a", 2, at="4")]
    b = [item("b1", "b", 0, at="1"), item("b2", "b", 1, at="2"), item("b4.5", "b", 2, at="4.5")]
    assert texts([*a], [*b]) == ["a1", "b1", "b2", "b4.5", "a5", "a4"]
    assert texts([*b], [*a]) == ["b1", "a1", "b2", "b4.5", "a5", "a4"]


def test_partitions_without_times_follow_each_other() -> None:
    """All have time 0, so ties decide."""
    assert texts([item("a1", "a", 0), item("a2", "a", 1)], [item("b1", "b", 0)]) == ["a1", "a2", "b1"]


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=3))
def test_a_merge_keeps_every_partition_in_order(times: list[list[int]]) -> None:
    """Law: whatever the times, no partition is reordered and nothing is lost."""
    partitions = [[item(f"{p}.{n}", str(p), n, at=str(t)) for n, t in enumerate(part)] for p, part in enumerate(times)]
    merged = texts(*[list[StreamElement | DeadLetter](part) for part in partitions])
    for number, part in enumerate(times):
        assert [each for each in merged if each.startswith(f"{number}.")] == [f"{number}.{n}" for n in range(len(part))]
    assert len(merged) == sum(map(len, times))


def test_the_streams_of_a_join_are_merged_by_time() -> None:
    """What looks at the order of several streams sees them by time."""
    query = (
        "for $x in stream('x')/r/i|count 1| for $y in stream('y')/r/i|count 1| "
        "return <p>{ string($x/t), string($y/t) }</p>"
    )
    inputs = {"x": leaves("t", 1, 4), "y": leaves("t", 2, 3)}
    assert ask(query, inputs, time="t").text == "<p>1 2</p><p>1 3</p><p>4 3</p>"
    assert ask(query, inputs).text == "<p>4 2</p><p>4 3</p>"


def test_lateness_is_judged_per_partition() -> None:
    """An item is late behind its own partition only (LAWS 3.2)."""
    a = [item("1", "a", 0), item("9", "a", 1)]
    b = [item("2", "b", 0), item("3", "b", 1)]
    merged, _ = stream_input(implied_root("r"), [[*a], [*b]])
    query = "for $w in stream('s')/r/i|t diff 10| return <w>{ count($w) }</w>"
    assert (ask(query, {"s": merged}).text, ask(query, {"s": merged}).late) == ("<w>4</w>", [])


def test_a_directory_is_one_partition() -> None:
    """Its files follow each other, and what is late behind an item of an earlier file is late (LAWS 1.1, 3.2)."""
    files = [item("1", "a.xml", 0), item("9", "a.xml", 1), item("2", "b.xml", 0), item("9.5", "b.xml", 1)]
    one, _ = stream_input(implied_root("r"), [[*files]])
    query = "for $w in stream('s')/r/i|t diff 10| return <w>{ count($w) }</w>"
    answer = ask(query, {"s": one})
    assert (answer.text, answer.late) == ("<w>3</w>", [Place("s", "b.xml", 0)])


def test_files_of_different_partitions_may_have_the_same_name() -> None:
    """Items are told apart though their places look alike: each pair comes once, and each late item is one."""
    a = [item("1", "part.xml", 0, at="1"), item("4", "part.xml", 1, at="4"), item("0", "part.xml", 2, at="5")]
    b = [item("2", "part.xml", 0, at="2"), item("3", "part.xml", 1, at="3"), item("0", "part.xml", 2, at="6")]
    merged, _ = stream_input(implied_root("r"), [[*a], [*b]])
    query = (
        "for $x in stream('s')/r/i|count 1|, $y in stream('s')/r/i|count 1| where $x/t > 0 and $y/t > 0 "
        "return <p>{ string($x/t), string($y/t) }</p>"
    )
    pairs = ("1 1", "2 1", "2 2", "3 2", "3 3", "4 3", "4 4")
    assert ask(query, {"s": merged}).text == "".join(f"<p>{pair}</p>" for pair in pairs)
    assert len(ask("for $w in stream('s')/r/i|t diff 10| return <w/>", {"s": merged}).late) == 2


def test_partitions_in_files_are_merged_by_their_declared_time(tmp_path: FilePath) -> None:
    """From registration to the answer, for streams whose partitions are documents."""
    for name, times in (("a", (1, 4, 5)), ("b", (2, 3, 9))):
        (tmp_path / name).write_text(leaves("t", *times))
    stream = Source("s", tmp_path / "a", more=(tmp_path / "b",), time=Path.parse("t"))
    inputs = Inputs((stream,))
    query = prepare("q", "for $w in stream('s')/r/i|count 2| return <w>{ $w/t }</w>", inputs, "reference")
    with answering([query], inputs) as run:
        text = "".join(run.answers["q"])
    assert text.replace("<t>", "").replace("</t>", " ") == "<w>1 2 </w><w>3 4 </w><w>5 9 </w>"


# --- what is set aside or refused -------------------------------------------------------------------------


def test_dead_letters_pass_by() -> None:
    """What was set aside while reading is handed on, and the stream goes on."""
    letter = DeadLetter(Place("s", "a", 1), "broken", "<i")
    found, dead = stream_input(implied_root("r"), [[item("1", "a", 0), letter, item("2", "a", 2)]])
    assert (len(found.arrivals), dead) == (2, [letter])


CONTROL = "xmlns:s='urn:anabranch:stream'"
CONTROLS = (
    ("<s:mutable id='1'><i/></s:mutable>", "a region"),
    ("<s:replace target='1' id='2'/>", "an update"),
    ("<i><s:mutable id='1'><t>1</t></s:mutable></i>", "a region inside an item"),
    ("<i><t><s:after target='1'/></t></i>", "an update inside an item"),
)


@pytest.mark.parametrize(("control", "kind"), CONTROLS)
def test_regions_and_updates_are_bad_in_a_stream_of_items(control: str, kind: str) -> None:
    """LAWS 2.5 and 5.1: they are set aside with their place and what would help, and the items around them count."""
    texts = ["<i/>", control, "<i/>"]
    items = [
        element_of(parse_item(text.encode(), Limits(), {"s": "urn:anabranch:stream"}), Place("s", "a", number))
        for number, text in enumerate(texts)
    ]
    found, dead = stream_input(implied_root("r"), [items])
    assert [arrival.place.offset for arrival in found.arrivals] == [0, 2]
    reason = f"{kind} stands in a stream of items: one that is edited needs 'updates = true'"
    assert [(each.place.offset, each.reason) for each in dead] == [(1, reason)]


def test_a_stream_that_evolves_is_read_in_the_units_of_its_start() -> None:
    """Items and punctuations behind an accent are told by canonical values; a refused accent leaves doubt."""
    alter = f"<s:accent {CONTROL}><s:alter path='t' by='. * 2'/></s:accent>"
    closed = f"<s:punctuation {CONTROL} where='t &lt; 20'/>"
    drop = f"<s:accent {CONTROL}><s:drop path='t'/></s:accent>"
    found = text_input(f"<r><i><t>1</t></i>{alter}{closed}<i><t>30</t></i>{drop}{alter}</r>", time="t")
    assert [each.time for each in found.arrivals] == [1, 15]
    [signal] = (each for each in found.elements if isinstance(each, Signal))
    assert str(signal.punctuation.where) == "t < 10"
    assert [type(each.change).__name__ for each in found.changes] == ["Accent", "Accent", "DeadLetter"]


def punctuation(offset: int, *, at: str | None = None, where: str | None = None) -> Punctuation:
    described = parse_description(where) if where is not None else None
    return Punctuation(described, Place("s", "a", offset), Decimal(at) if at else None)


def test_a_punctuation_is_no_item() -> None:
    """It stands among the elements with a time, its own or that of the element before, and is not counted."""
    elements: list[StreamElement | DeadLetter] = [
        item("1", "a", 0),
        punctuation(1, where="t < 1"),
        punctuation(2, at="4"),
        item("x", "a", 3),
    ]
    found, _ = stream_input(implied_root("r"), [elements], time=Path.parse("t"))
    assert [each.time for each in found.elements] == [1, 1, 4, 4]
    assert [isinstance(each, Signal) for each in found.elements] == [False, True, True, False]
    assert ask("count(stream('s')/r/i)", {"s": found}).text == "2"


def test_punctuations_take_part_in_the_merge() -> None:
    """What stands behind one waits for its turn."""
    a: list[StreamElement] = [punctuation(0, at="5"), item("a1", "a", 1, at="1")]
    b = [item("b3", "b", 0, at="3"), item("b6", "b", 1, at="6")]
    assert texts([*a], [*b]) == ["b3", "a1", "b6"]


# --- trees ------------------------------------------------------------------------------------------------


def test_a_stream_is_one_document() -> None:
    """All items stand below one root, which keeps its name and attributes."""
    found = text_input("<r k='v'><i/><i/></r>", name="s")
    assert (found.root.name, found.root.get("k"), len(found.root.children)) == (Name("r"), "v", 2)
    assert all(arrival.item.parent is found.root for arrival in found.arrivals)
    assert found.root.parent is found.document


def test_places_are_byte_offsets() -> None:
    """An item's place is where its bytes begin, so that it can be found again."""
    text = "<r k='é'><i/> <i a='ü'/><i/></r>"
    found = text_input(text, name="s")
    data = text.encode()
    assert [data[arrival.place.offset :][:2] for arrival in found.arrivals] == [b"<i"] * 3
    assert len({arrival.place for arrival in found.arrivals}) == 3


def test_a_document_that_never_closes_has_its_items() -> None:
    """What is there is answered."""
    assert ask("count(stream('s')/r/i)", {"s": "<r><i/><i/>"}).text == "2"


def test_a_document_input_has_no_arrivals() -> None:
    """It is a tree and nothing else."""
    found = document_input(parse_document(b"<?xml version='1.0'?><!-- c --><d><k/></d>"))
    assert (found.root.name, found.arrivals) == (Name("d"), ())


def test_slack_and_origin_are_exact() -> None:
    """They are decimals, kept as fractions."""
    found = text_input("<r/>", slack="0.1", origin="-2.5")
    assert (found.slack, found.origin) == (Fraction(1, 10), Fraction(-5, 2))
