"""Documents of updates: what they take, what they set aside, and at which moments they can be looked at."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anabranch.language import parse
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import answer, arrivals
from anabranch.stream.elements import Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import implied_root, parse_item
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import STREAM_NAMESPACE
from history.asking import Asked, ask, elements, shown
from history.late import begun_at

ALL = 'for $e in stream("s")/root//e return string($e)'


def document(text: str) -> EditedDocument:
    """The document at the end of a stream."""
    found = EditedDocument(implied_root("root"))
    for each in arrivals({"s": found}, {"s": [elements(text)]}):
        list(found.take(each.element, each.at))
    return found


def shows(found: EditedDocument, query: str = ALL) -> str:
    return answer(parse(query), {"s": found}).text


# --- bad input ------------------------------------------------------------------------------------------------

GOOD = '<s:mutable id="1" at="1"><e>a</e></s:mutable><s:replace target="1" id="2" at="2"><e>b</e></s:replace>'


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('<s:replace target="9" id="3"><e>x</e></s:replace>', "no region is called '9'"),
        ('<s:before target="9"><e>x</e></s:before>', "no region is called '9'"),
        ('<s:mutable id="1"><e>x</e></s:mutable>', "the id '1' is that of a mutable region, which keeps it"),
        ('<s:replace target="1" id="1"><e>x</e></s:replace>', "the id '1' is that of a mutable region"),
        ('<s:replace target="1" at="1.5"><e>x</e></s:replace>', "its time 1.5 is before 2"),
        ('<s:punctuation at="1"/>', "its time 1 is before 2"),
        ('<e s:at="0">x</e>', "its time 0 is before 2"),
        ('<e s:at="5">x<s:replace target="1" at="4"/></e>', "its time 4 is before 5"),
        (
            '<s:mutable id="3"><e>x</e><s:after target="3"><e>y</e></s:after></s:mutable>',
            "the region '3' is still open",
        ),
        ('<s:mutable id="3"><e>x</e><s:replace target="3"/></s:mutable>', "the region '3' is still open"),
        ('<s:replace target="1" id="3"><s:before target="1" id="3"/></s:replace>', "the id '3' is that of a region"),
        ('<s:replace target="1" id="3"><s:replace target="2"/></s:replace>', "the region '2' is being replaced"),
        ('<e>x<s:mutable id="3"/><s:replace target="9"/></e>', "no region is called '9'"),
    ],
)
def test_bad_input_is_set_aside_whole(bad: str, reason: str) -> None:
    """With its reason and place, and as if it had never been: times and ids are as before."""
    found = document(GOOD + bad + '<s:mutable id="3" at="2"><e>c</e></s:mutable>')
    assert shows(found) == "b c"
    assert shows(found, 'stream("s")/root/e#[9]') == "<e>b</e><e>a</e><e>c</e>"
    (letter,) = found.admission.dead
    assert letter.reason.startswith(reason)
    assert letter.place.offset == 2
    assert letter.raw.startswith(bad[:2])


def test_an_id_names_the_region_that_took_it_last() -> None:
    """The id of an update may be taken again, by an insertion or another chain."""
    found = document(
        GOOD
        + '<s:after target="1" id="2"><e>c</e></s:after><s:replace target="2"><e>d</e></s:replace>'
        + '<s:mutable id="2"><e>e</e></s:mutable><s:before target="2" id="3"><e>f</e></s:before>'
    )
    assert shows(found) == "b d f e"
    assert not found.admission.dead


def test_before_an_open_region() -> None:
    """Something may be put before a region that is not complete, from inside of it."""
    assert (
        shows(document('<s:mutable id="1"><e>b</e><s:before target="1"><e>a</e></s:before><e>c</e></s:mutable>'))
        == "a b c"
    )


def test_ids_belong_to_a_partition() -> None:
    """A region of another partition is unknown."""
    asked = Asked(ALL, s=['<s:mutable id="1"><e>a</e></s:mutable>', '<s:replace target="1" at="1"/>'])
    assert asked.answer() == "a"
    assert [each.reason for each in asked.documents["s"].admission.dead] == ["no region is called '1'"]


def test_a_bad_element_holds_nobody_up() -> None:
    """Its time does not count, not even for the order in which partitions are merged."""
    asked = Asked(ALL, s=['<s:replace target="9" at="100"/><e s:at="5">a</e>', '<e s:at="50">b</e>'])
    assert asked.timeline() == [(Fraction(5), "a"), (Fraction(50), "a b")]


def test_an_accent_moves_the_time_and_nothing_else() -> None:
    """It stands in a stream of items that is read beside updates; whom it ends is told by `changed.py`."""
    found = document('<e>x</e><s:accent at="4"><s:drop path="a"/></s:accent>')
    assert (len(found.entries), found.now, found.admission.dead) == (1, Fraction(4), [])


def test_a_document_is_no_deeper_than_an_item_may_be() -> None:
    """Updates that nest regions in one another end where an item would."""
    found = EditedDocument(implied_root("root"), Limits(depth=100))
    content = '<s:mutable id="0"/>' + "".join(
        f'<s:replace target="{number}"><e><s:mutable id="{number + 1}">x</s:mutable></e></s:replace>'
        for number in range(200)
    )
    for each in elements(content):
        list(found.take(each, Fraction(0)))
    assert {each.reason for each in found.admission.dead} == {"nested more than 100 deep"} | {
        f"no region is called '{number}'" for number in range(50, 200)
    }
    assert shows(found, 'count(stream("s")//e)') == "49"
    assert shows(found, 'count(stream("s")//e#1)') == "0"


@pytest.mark.parametrize(("depth", "reason"), [(250, "nested more than 200 deep"), (1900, "nested too deep")])
def test_what_is_deeper_than_anybody_goes_is_bad(depth: int, reason: str) -> None:
    """Where an item may be very deep, a document still is not; nor does the way to finding out break anything."""
    limits = Limits(depth=2000)
    found = EditedDocument(implied_root("root"), limits)
    deep = "<e>" * depth + "</e>" * depth
    raw = f"<s:mutable xmlns:s='{STREAM_NAMESPACE}' id='1'>{deep}</s:mutable>"
    assert list(found.take(element_of(parse_item(raw.encode(), limits), Place("s", "text", 0)), Fraction(0))) == []
    assert [each.reason for each in found.admission.dead] == [reason]


def test_insertions_each_beside_the_last_are_no_nesting() -> None:
    """A thousand of them, as whoever appends writes them."""
    appended = "".join(f'<s:after target="{n}" id="{n + 1}"><e>{n + 1}</e></s:after>' for n in range(1000))
    found = document(f'<s:mutable id="0"><e>0</e></s:mutable>{appended}')
    assert shows(found) == " ".join(map(str, range(1001)))


# --- where updates stand --------------------------------------------------------------------------------------


def test_appending_to_two_open_elements_at_once() -> None:
    """Two elements grow, turn by turn, by what is put before a mark at their end."""
    found = document(
        '<stocks><s:mutable id="s"/></stocks><funds><s:mutable id="f"/></funds>'
        + "".join(f'<s:before target="{key}"><e>{key}{n}</e></s:before>' for n in range(3) for key in "sf")
    )
    assert shows(found, 'stream("s")/root/*') == (
        "<stocks><e>s0</e><e>s1</e><e>s2</e></stocks><funds><e>f0</e><e>f1</e><e>f2</e></funds>"
    )


def test_an_update_inside_an_item_acts_at_its_place() -> None:
    """Nothing of it stays where it was written, and what is behind it came at its time."""
    stream = '<s:mutable id="1" at="1"><e>a</e></s:mutable>'
    stream += '<i s:at="2"><e>b</e><s:replace target="1" at="3"><e>c</e></s:replace><e>d</e></i>'
    assert shown(ALL, stream) == [("1", "a"), ("3", "c b d")]
    assert ask('(count(stream("s")//e))?0.5', stream) == "2"
    assert ask('stream("s")/root/i', stream) == "<i><e>b</e><e>d</e></i>"


def test_moments_inside_an_element() -> None:
    """What completes before time moves on is seen, though its ancestors are open; what completes at one time is one."""
    stream = '<i s:at="1"><e>a</e><s:mutable id="1"><e>b</e></s:mutable><s:mutable id="2"><e>c</e></s:mutable>'
    stream += '<s:mutable id="3" at="2"><e>d</e></s:mutable><e>e</e></i>'
    assert shown(ALL, stream) == [("1", "a b c"), ("2", "a b c d e")]


def test_white_space_between_items_is_layout() -> None:
    """Also in a region between items; text that says something stays."""
    found = document('<s:mutable id="1"> <e>a</e>\n </s:mutable><s:after target="1"> b </s:after>')
    assert shows(found, 'stream("s")/root') == "<root><e>a</e> b </root>"


def test_regions_in_a_region_between_items_hold_entries() -> None:
    """Several items in one region come, go and come back together."""
    stream = '<s:mutable id="1"><e>a</e><s:mutable id="2"><e>b</e></s:mutable></s:mutable><e>z</e>'
    stream += '<s:replace target="1" at="1"/><s:replace target="1" at="2"><e>c</e><e>d</e></s:replace>'
    assert shown(ALL, stream) == [("0", "a b"), ("0", "a b z"), ("1", "z"), ("2", "c d z")]


# --- who comes late (LAWS 3.6) --------------------------------------------------------------------------------


def test_a_late_start_is_from_the_document_as_it_stands() -> None:
    """Lives begin there, ids go on, and the stream's own document does not change with it."""
    stream = GOOD + '<i><s:mutable id="4"><e>x</e></s:mutable></i><s:mutable id="5"><s:mutable id="6"/></s:mutable>'
    found = document(stream + '<s:replace target="5" at="5"/>')
    late = begun_at(found, Fraction(7))
    assert shows(late) == shows(found) == "b x"
    assert shows(late, 'count(stream("s")//e#1)') == "0"
    assert shows(late, 'count(stream("s")//e?0)') == "2"
    assert shows(late, 'count(stream("s")//e?1)') == "0"
    assert shows(found, 'count(stream("s")//e?1)') == "2"
    more = '<s:replace target="1" at="8"><e>c</e></s:replace><s:replace target="4" at="9"><e>y</e></s:replace>'
    for each in elements(more + '<s:replace target="6" at="9"><e>never</e></s:replace><s:after target="6"/>'):
        list(late.take(each, Fraction(each.at or 9)))
    assert not late.admission.dead
    assert shows(late) == "c y"
    assert shows(late, 'stream("s")//e#[5]') == "<e>c</e><e>b</e><e>y</e><e>x</e>"
    assert shows(late, 'stream("s")//e?1.5') == "<e>b</e><e>x</e>"
    assert shows(found) == "b x"


def test_an_element_has_its_own_time_beside_a_partition_that_is_further() -> None:
    """Now is the latest time of all, and what came earlier by its own time lived earlier."""
    one = '<e s:at="1">a<s:mutable id="1" at="5"/></e>'
    asked = Asked('for $e in stream("s")/root/e?1 return string($e)', s=[one, '<e s:at="3">b</e>'])
    assert asked.timeline() == [(Fraction(5), "a"), (Fraction(5), "a b")]


def test_content_keeps_its_namespaces_wherever_it_goes() -> None:
    """What is in no namespace stays so below a default one, and alone it need not say so."""
    text = '<a xmlns="urn:d"><s:mutable id="1"/></a><s:replace target="1"><c><b/></c></s:replace>'
    assert ask('stream("s")/root/*', text) == '<a xmlns="urn:d"><c xmlns=""><b/></c></a>'
    assert ask('stream("s")//c', text) == "<c><b/></c>"
    assert ask('<o xmlns="urn:d">{ stream("s")//*:c }</o>', text) == '<o xmlns="urn:d"><c xmlns=""><b/></c></o>'
