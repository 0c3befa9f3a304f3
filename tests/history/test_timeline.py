"""Timelines: what a query shows after each element, for every kind of query over streams of items."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from anabranch.engine.reports.timelines import line
from anabranch.law import evaluate, stream_input
from anabranch.law.answer import ShownAnswer
from anabranch.predicate.writing import number_text
from anabranch.runtime.past.timeline import Timeline
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import implied_root, parse_item
from history.past import checked, given, item, stream, timeline

FIVE = stream(item(1, v=3), item(2, v=1), item(2, v=2), item(11, v=9), item(25, v=4))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("stream('s')/r/i/v[. > 2]", [(1, "<v>3</v>"), (11, "<v>3</v><v>9</v>"), (25, "<v>3</v><v>9</v><v>4</v>")]),
        ("count(stream('s')/r/i)", [(1, "1"), (2, "2"), (2, "3"), (11, "4"), (25, "5")]),
        ("max(stream('s')/r/i/v)", [(1, "3"), (11, "9")]),
        (
            "for $p in stream('s')/r/i where $p/v < 4 order by $p/v return $p/v",
            [(1, "<v>3</v>"), (2, "<v>1</v><v>3</v>"), (2, "<v>1</v><v>2</v><v>3</v>")],
        ),
        ("<o>{ stream('s')/r/i[v = 9]/v }</o>", [(1, "<o/>"), (11, "<o><v>9</v></o>")]),
        ("for $w in stream('s')/r/i|count 2| return count($w)", [(2, "2"), (11, "2 2")]),
        ("for $w in stream('s')/r/i|t diff 10| return count($w)", [(11, "3"), (25, "3 1 1")]),
        ("if (stream('s')/r/i/v = 9) then 'nine' else ()", [(11, "nine")]),
        ("stream('s')/r/i/v?[9]", [(1, "3"), (2, "13"), (2, "213"), (11, "921"), (25, "4")]),
    ],
)
def test_every_kind_of_query(query: str, expected: list[tuple[int, str]]) -> None:
    """Answers grow, are corrected or wait for a window; only what differs is shown, and nothing before the first."""
    found = [(int(at), text) for at, text in timeline(query, {"s": FIVE})]
    if query.endswith("?[9]"):
        expected = [(at, "".join(f"<v>{each}</v>" for each in text)) for at, text in expected]
    assert found == expected


def test_the_last_line_is_the_answer() -> None:
    """What waits for the end comes with the last element, and is what the query answers."""
    streams = given({"s": FIVE, "t": stream(item(3, v=1), item(30, v=2))})
    within = "$x/t >= $y/t and $x/t <= $y/t + 9"
    for query in (
        "for $x in stream('s')/r/i|t diff 10|, $y in stream('t')/r/i|t diff 10| return <p>{ $x/v, $y/v }</p>",
        f"for $x in stream('s')/r/i, $y in stream('t')/r/i where {within} return <p>{{ $x/v }}</p>",
        "for $w in stream('s')/r/i|t diff 10 step 5| return <n>{ count($w) }</n>, stream('t')/r/i/v",
    ):
        asked = checked(query, streams).query
        shown = list(Timeline(asked, streams))
        assert shown[-1].text == evaluate(asked, streams).text
        assert shown[-1].text


def test_a_window_closes_when_all_partitions_have_passed_it() -> None:
    """Also by the end of a partition, which is known behind its last element (LAWS 3.2)."""
    parts = [[1, 12, 35], [2, 5]]
    elements = [
        [Item(parse_item(item(time).encode(), Limits()), Place("s", str(number), time)) for time in part]
        for number, part in enumerate(parts)
    ]
    read, _ = stream_input(implied_root("r"), elements, time=Path.parse("t"))
    query = "for $w in stream('s')/r/i|t diff 10| return count($w)"
    assert timeline(query, {"s": read}) == [("12", "3"), ("35", "3 1 1")]


def test_a_punctuation_closes_a_window() -> None:
    """It is an element, after which the answer differs."""
    text = f'<r>{item(1)}<s:punctuation xmlns:s="urn:anabranch:stream" at="15"/>{item(40)}</r>'
    query = "for $w in stream('s')/r/i|t diff 10| return count($w)"
    assert timeline(query, {"s": text}) == [("15", "1"), ("40", "1 1")]


def test_the_root_holds_what_has_arrived() -> None:
    """A query that returns the root of its stream shows it as it grows; no step up from an item leads there."""
    found = timeline("stream('s')/r", {"s": stream(item(1), item(2))})
    assert found == [("1", stream(item(1))), ("2", stream(item(1), item(2)))]
    assert timeline("count(stream('s')//i/..)", {"s": stream(item(1), item(2))}) == [("1", "0")]
    assert timeline("count(stream('s')//i/../i)", {"s": stream(item(1), item(2))}) == [("1", "0")]


def test_a_query_that_fails_shows_nothing() -> None:
    """While it fails as a whole nothing is on display; the element that began it is named in the dead letters."""
    streams = given({"s": stream(item(1, v=1), item(2, v="x"), item(2, v="x"), item(3, v=2))})
    query = "sum(stream('s')/r/i/v#0) + 1"
    law = Timeline(checked(query, streams).query, streams, name="q")
    assert [(str(each.at), each.text) for each in law] == [("1", "2"), ("2", ""), ("3", "3")]
    (letter,) = law.dead
    assert (letter.place, letter.code, letter.subscription) == (streams["s"].arrivals[1].place, "FORG0001", "q")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (Fraction(0), "0"),
        (Fraction(12), "12"),
        (Fraction("12.5"), "12.5"),
        (Fraction("12.050"), "12.05"),
        (Fraction("0.1"), "0.1"),
        (Fraction("-1.25"), "-1.25"),
        (Fraction("123456789012345678901.000000000000000000001"), "123456789012345678901.000000000000000000001"),
    ],
)
def test_times_are_exact(time: Fraction, expected: str) -> None:
    """A time is written in full, with no digit too many."""
    assert number_text(time) == expected


def test_a_line_is_json() -> None:
    """Whatever the answer holds, a line is one line, and text stays text."""
    text = line(ShownAnswer(Fraction("12.5"), '<b a="x">Y\n\u2028é\\</b>'))
    assert text.index("\n") == len(text) - 1
    assert json.loads(text) == {"at": 12.5, "answer": '<b a="x">Y\n\u2028é\\</b>'}
    assert text.startswith('{"at": 12.5, "answer": "<b a=')
