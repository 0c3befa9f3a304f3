"""Continuous queries over update streams: what is on display is what the law says, at the cost of what has changed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anabranch.law.history.timeline import arrivals
from history.describing import describe
from history.following import TICKER, Followed, items, random_case, replaced
from history.late import begun_at, late_start
from mass import Mass


def test_random_cases_show_what_the_law_says(mass: Mass) -> None:
    """After every moment of random update streams, random queries show what the law says, and the edits lead there."""
    moments = 0
    for number in mass.cases(2_000):
        moments += sum(1 for _ in random_case(number).run(put_away=number % 40 == 0))
    assert moments > 4 * mass.done or mass.done < mass.total


def test_a_late_query_begins_with_the_document_as_it_stands() -> None:
    """It answers as the law does over that document, now and when more arrives (LAWS 3.6)."""
    moments = 0
    for number in range(0, 80, 4):
        case = random_case(number)
        early = case.law
        for place, each in enumerate(arrivals(early, case.given)):
            list(early[each.stream].take(each.element, each.at, each.partition))
            if place == 2:
                now = max(document.now for document in early.values())
                case.law = {name: begun_at(document, now) for name, document in early.items()}
                case.machine.begin({name: late_start(document, now) for name, document in early.items()})
            elif place > 2:
                list(case.law[each.stream].take(each.element, each.at, each.partition))
                list(case.machine.take(each.stream, each.element, each.at, each.partition))
            if place >= 2:
                moments += 1
                assert case.machine.text == case.by_law()
    assert moments > 40


def test_the_ticker() -> None:
    """Query 2 of the history paper: what has risen by a tenth since last time, the largest rise first."""
    updates = replaced(10, 11) + replaced(20, 40) + replaced(5, 5.1) + replaced(20, 41) + replaced(10, 13)
    shown = [text for _, text in Followed(TICKER, s=items(30) + updates).run()][30:]
    ten, twenty = '<up k="10"><v>11</v></up>', '<up k="20"><v>40</v></up>'
    assert shown == [ten, twenty + ten, twenty + ten, ten, '<up k="10"><v>13</v></up>']


XY = '<s:mutable id="1" at="1"><e>X</e></s:mutable><s:replace target="1" at="2"><e>Y</e></s:replace>'
NESTED = """
<s:mutable id="a"><a><s:mutable id="b" at="1"><b>X</b></s:mutable></a></s:mutable>
<s:replace target="b" at="2"><b>Y</b></s:replace><s:replace target="a" at="4"><a/></s:replace><s:punctuation at="10"/>
"""
ANCHORS = """
<s:mutable id="x"><e>x</e></s:mutable><s:after target="x"><e>z1</e></s:after><s:after target="x"><e>z2</e></s:after>
<s:before target="x"><e>w1</e></s:before><s:before target="x"><e>w2</e></s:before>
<s:replace target="x"><e>y</e></s:replace>
"""
LAWS = [
    *((26, f"/e{asked}", XY + '<s:punctuation at="5"/>', x) for asked, x in (("?3", "Y"), ("?3.5", "X"), ("?4.5", ""))),
    (26, "/e?[3]", XY + '<s:punctuation at="5"/>', "Y"),
    *((27, f"/a#1/b{asked}", NESTED, x) for asked, x in (("", "Y"), ("#1", "X"), ("?8.5", "X"), ("?2", ""))),
    (28, "/e", XY + '<s:replace target="1" at="3"/>', ""),
    (28, "/e#1", XY + '<s:replace target="1" at="3"/>', "Y"),
    (28, "/e#[2]", XY + '<s:replace target="1" at="3"/><s:replace target="1" at="5"><e>Z</e></s:replace>', "Z Y"),
    (29, "/e", ANCHORS, "w1 w2 y z2 z1"),
    (31, "/e#1", XY + '<s:replace target="1"><e>Z</e></s:replace>', "Y"),
    (31, "/e#2", XY + '<s:replace target="1"><e>Z</e></s:replace>', "X"),
    (32, "/i/v#1", items(3) + replaced(2, 7), "2"),
]


@pytest.mark.parametrize(("case", "path", "stream", "expected"), LAWS)
def test_cases_of_the_laws(case: int, path: str, stream: str, expected: str) -> None:
    """LAWS, cases 26 to 32, kept up to date and not evaluated anew."""
    followed = Followed(f'for $e in stream("s")/root{path} return string($e)', s=stream)
    assert "anew" not in describe(followed.machine.part)
    assert followed.end() == expected


def test_a_maximum_that_goes() -> None:
    """LAWS, case 30: 9, 5, 7; 9 becomes 1."""
    stream = "".join(f'<i><s:mutable id="{each}"><v>{each}</v></s:mutable></i>' for each in (9, 5, 7)) + replaced(9, 1)
    assert [text for _, text in Followed('max(stream("s")//v)', s=stream).run()] == ["9", "9", "9", "7"]


def test_what_expires_leaves_the_display() -> None:
    """Time moves with the elements, of this stream or another (LAWS 1.3)."""
    query = 'stream("s")/root/i/v?[5], count(stream("t")/root/i)'
    stream = items(2) + replaced(1, "x", ' at="1"') + '<s:punctuation at="5.5"/>'
    followed = Followed(query, s=stream, t='<i s:at="2"/><i s:at="7"/>')
    assert [text for _, text in followed.run()][-3:] == [
        "<v>0</v><v>x</v><v>1</v>1",
        "<v>0</v><v>x</v><v>1</v>1",
        "<v>0</v><v>x</v>2",
    ]


NAMESPACES = [
    'declare namespace p = "urn:p"; <p:o xmlns:q="urn:q">{ stream("s")//p:i }<q:in>{ count(stream("s")//p:i) }</q:in>'
    "</p:o>",
    '<o xmlns="urn:d">{ for $x in stream("s")/*:root/*:i return <x>{ $x }</x> }</o>',
    '<o xmlns="urn:d" xmlns:p="urn:p">{ stream("s")/*:root/*:i/* }<p:b>{ stream("s")//p:b }</p:b></o>',
    'declare namespace p = "urn:p"; <a p:k="{ 1 + 1 }"><!--c-->&lt;{ stream("s")//p:b, "&amp;" }{ 1 }</a>',
]


@pytest.mark.parametrize("query", NAMESPACES, ids=range(len(NAMESPACES)))
def test_namespaces_are_declared_where_the_law_does(query: str) -> None:
    """What is put on display piece by piece is written as if it were written at once."""
    stream = """
    <p:i xmlns:p="urn:p" p:k="1"><p:b>1</p:b></p:i><i xmlns:p="urn:q"><s:mutable id="1"><p:b/></s:mutable></i>
    <s:replace target="1"><b xmlns="urn:d"/></s:replace><s:replace target="1"><x:b xmlns:x="urn:p">2</x:b></s:replace>
    <s:mutable id="2" xmlns:p="urn:p"><p:i/></s:mutable><s:replace target="2"/>
    """
    followed = Followed(query, s=stream)
    assert "anew" not in describe(followed.machine.part)
    assert len({text for _, text in followed.run(put_away=True)}) > 1


def test_a_query_that_fails_shows_nothing_until_it_is_mended() -> None:
    """A sum over what is no number fails as a whole; the display comes back with what mends it."""
    stream = items(3) + replaced(1, "one") + replaced(2, 5) + replaced(1, 10)
    shown = [text for _, text in Followed('<n>{ sum(stream("s")//v) }</n>', s=stream).run()]
    assert shown == ["<n>0</n>", "<n>1</n>", "<n>3</n>", "", "", "<n>15</n>"]


def test_an_error_in_a_round_sets_aside_one_entry() -> None:
    """The others stay on display, and the dead letters have it with its code (LAWS 2.4)."""
    followed = Followed('for $x in stream("s")/root/i return <d>{ 6 div $x/v }</d>', s=items(3))
    assert followed.end() == "<d>INF</d><d>6</d><d>3</d>"
    (update,) = Followed('stream("s")/*/*', s=replaced(0, "zero")).given["s"][0]
    (change,) = followed.machine.take("s", update, Fraction(0))
    assert followed.machine.text == "<d>6</d><d>3</d>"
    assert [letter.code for letter in change.dead] == ["FORG0001"]


def test_what_is_set_aside_is_told_once() -> None:
    """An entry that goes on failing is told again only when it fails otherwise, also where the state was put away."""
    for query in (
        'for $x in stream("s")/root/i return <d>{ 6 div $x/v }</d>',
        '<all n="{ count(stream("s")//v) }">{ for $x in stream("s")/root/i return 6 div $x/v }</all>',
    ):
        followed = Followed(query, s=items(2) + replaced(0, "zero") + replaced(1, "2") + replaced(0, "none"))
        told = []
        for element in followed.given["s"][0]:
            data = followed.machine.encode()
            followed.machine = followed.fresh()
            followed.machine.decode(data)
            (change,) = followed.machine.take("s", element, Fraction(0))
            told += [letter.raw for letter in change.dead]
        assert told == ['<i k="0"><v>zero</v></i>', '<i k="0"><v>none</v></i>']
