"""Windows in writing: the texts of operators, and the lines in which windows travel."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.partial import Partial
from anabranch.algebra.plans.written import is_plan
from anabranch.branch.remote.lines import (
    FromMark,
    Layout,
    Mark,
    NoLine,
    ReachedMark,
    SentWindow,
    mark_text,
    plain_line,
    read_line,
    window_text,
)
from anabranch.branch.remote.making import sent_plan
from anabranch.branch.remote.queries import WindowTiling, can_travel
from anabranch.branch.remote.written import is_sent, read_sent, stream_of, write_reading, write_sent, write_tuples
from anabranch.errors import DynamicError, StateError, UsageError
from anabranch.language import check, parse
from anabranch.network.needs import need_of
from anabranch.sharing.match import merge
from anabranch.sharing.match_joins import SelectWindows
from anabranch.sharing.remote import CombineWindows, MakeWindows, ReadTuples, ReadWindows, SendTuples
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.tree import PropertyTree
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item

JOIN = 'for $x in stream("s")/r/i|count 2|, $y in stream("u")/r/i|count 2| where $x/k = $y/k return <o>{ $x/v }</o>'
LARGE = 'for $w in stream("s")/r/i[g = 1] |t diff 30 step 10| let $a := avg($w/en) where $a >= 1.3 return <o>{ $a }</o>'
SMALL = 'for $w in stream("s")/r/i[g = 1] |t diff 20 step 10| return <m>{ min($w/en[. > 1]) }</m>'
LAYOUT = Layout(("a", "b"), ("cs", "lg"))


def tree_of(text: str) -> PropertyTree:
    return derive(check(parse(text), text).query)


def test_operators_are_read_as_they_were_written() -> None:
    """Under the name of the stream that is read, in one canonical line that is no query."""
    shared = merge(tree_of(LARGE), tree_of(SMALL))
    put = CombineWindows(tree_of(LARGE), shared)
    for operator in (MakeWindows(shared), put, ReadWindows(put, LARGE)):
        text = write_sent(operator, 's "1"')
        assert "\n" not in text
        assert is_sent(text)
        assert is_plan(text), "those who do not know it pass it over"
        found = read_sent(text)
        assert not isinstance(found, SendTuples | ReadTuples)
        assert stream_of(found) == 's "1"'
        assert write_sent(found, 's "1"') == text
    assert put.selection == SelectWindows(3, 1, 1)
    assert read_sent(write_tuples(SMALL, evolving=False)) == SendTuples(SMALL)
    assert is_sent(write_tuples(SMALL, evolving=False))
    assert read_sent(write_tuples(JOIN, evolving=True)) == SendTuples(JOIN, evolving=True)
    tuples = need_of(JOIN, {}).join
    assert tuples is not None
    for sends in (False, True):
        reading = ReadTuples(JOIN, tuples, "j.1", sends)
        assert read_sent(write_reading(reading)) == reading


@pytest.mark.parametrize(
    "fields",
    [
        {"windows": "make"},
        {"windows": "make", "query": 7},
        {"windows": "make", "query": "1 +"},
        {"windows": "make", "query": 'doc("x")/r/i'},
        {"windows": "make", "query": 'for $p in stream("s")/r/i return $p'},
        {"windows": "make", "query": SMALL, "of": SMALL},
        {"windows": "make", "query": "(" * 5_000},
        {"windows": "read", "query": LARGE},
        {"windows": "run", "query": LARGE},
        {"windows": ["make"], "query": LARGE},
        {"tuples": "send"},
        {"tuples": "send", "query": "1 +"},
        {"tuples": "send", "query": SMALL, "of": SMALL},
        {"tuples": "make", "query": SMALL},
        {"tuples": "read", "query": SMALL, "stream": "j"},
        {"tuples": "read", "query": SMALL, "of": SMALL, "stream": "j"},
        {"tuples": "select", "query": "1 +", "of": JOIN, "stream": "j"},
        {"tuples": "select", "query": JOIN, "of": JOIN, "stream": "j", "more": ""},
    ],
)
def test_hostile_texts_are_refused(fields: dict[str, object]) -> None:
    """What is no operator over windows or tuples is damaged, and nothing else happens."""
    with pytest.raises(StateError, match="damaged"):
        read_sent(json.dumps(fields))


def test_what_cannot_travel() -> None:
    """Values that do not follow from items one by one are made where the answer is."""
    assert can_travel(LARGE, tree_of(LARGE))
    two = LARGE.replace("$w/en)", "$w/c[en > 1]/d[en < 5])")
    assert tree_of(two).window is not None
    assert not can_travel(two, tree_of(two))
    with pytest.raises(UsageError, match="cannot be counted"):
        sent_plan(tree_of(two))


@pytest.mark.parametrize("function", ["median", "stddev"])
def test_windows_that_need_their_items_do_not_travel(function: str) -> None:
    """To a property tree a function that is not put together from parts is one over items, which are sent whole."""
    query = LARGE.replace("avg", function)
    tree = tree_of(query)
    assert not tree.aggregates
    assert ("r", "i", "en") in {each.path for each in tree.outputs}
    assert not can_travel(query, tree)


def test_windows_that_are_grouped_do_not_travel() -> None:
    """Their items are sent: what is told of windows on the way has no keys."""
    query = 'for $w in stream("s")/r/i |t diff 20| for $o in $w group by $k := $o/k return <g>{ $k, sum($o/en) }</g>'
    assert tree_of(query).window is None
    assert not can_travel(query, tree_of(query))
    assert not can_travel(query, tree_of(LARGE))


def some(*texts: str) -> Partial:
    """What is known of some values, as they follow each other."""
    found = Partial()
    for order, text in enumerate(texts, 5):
        found = found.merge(Partial.of(text, order))
    return found


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("1", "2.50"),
        ("-0", "0"),
        ("0", "-0"),
        ("INF", "-INF", "1"),
        ("NaN", "3"),
        ("1e300", "-1e-300"),
        ("<x>", "2"),
        ("x",),
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z"),
        ("2026-01-01T00:00:00Z", "7"),
        ("2026-01-01T00:00:00Z", "x"),
    ],
)
def test_nothing_is_lost_on_the_way(values: tuple[str, ...]) -> None:
    """Whatever values a window holds, what is told of them gives the same, also together with others."""
    known = some(*values)
    text = window_text(7, (known, known), LAYOUT)
    found = read_line(parse_item(text.encode(), Limits()), LAYOUT)
    assert isinstance(found, SentWindow)
    assert found.number == 7
    numbers, times = some("0", "4").moved(100), some("2026-01-01T00:00:00").moved(100)
    for (read, other), function in (
        ((found.partials[0], known), "sum"),
        ((found.partials[0], known), "avg"),
        ((found.partials[0], known), "count"),
        ((found.partials[1], known), "min"),
        ((found.partials[1], known), "max"),
    ):
        assert outcome(read, function) == outcome(other, function)
        for more in (numbers, times):
            assert outcome(read.merge(more), function) == outcome(other.merge(more), function)


def outcome(known: Partial, function: str) -> str:
    try:
        return repr(AGGREGATES[function].value(known))
    except DynamicError as error:
        return f"{error.code} {error.message}"


def test_plain_numbers_are_seen_as_such() -> None:
    """What columns read is what single lines are, and nothing that they cannot hold."""
    pattern = plain_line(LAYOUT)
    assert pattern.fullmatch(window_text(7, (some("1.5"), some("-0")), LAYOUT).encode())
    assert pattern.fullmatch(window_text(7, (some(), some()), LAYOUT).encode())
    for odd in (some("INF"), some("word"), some("12345678901234567890")):
        assert not pattern.fullmatch(window_text(7, (odd, some("1")), LAYOUT).encode())
    assert not pattern.fullmatch(b'<w n="7"><v c="1" s="1.2.3"/><v l="" g=""/></w>')


@pytest.mark.parametrize("mark", [FromMark(0), FromMark(12), ReachedMark(3), ReachedMark(None)])
def test_marks(mark: Mark) -> None:
    """Marks are read as they were written."""
    assert read_line(parse_item(mark_text(mark).encode(), Limits()), LAYOUT) == mark


@pytest.mark.parametrize(
    "text",
    [
        "<i/>",
        "<w/>",
        '<w n="-1"><v c="1" s="1"/><v l="" g=""/></w>',
        '<w n="1"><v c="1" s="1"/></w>',
        '<w n="1"><v c="1"/><v l="" g=""/></w>',
        '<w n="1"><v c="x" s="1"/><v l="" g=""/></w>',
        '<w n="1"><v c="1" s="1e5"/><v l="" g=""/></w>',
        '<w n="1"><v c="1" s="1"/><v l="nan" g=""/></w>',
        "<from/>",
    ],
)
def test_other_items_are_no_lines(text: str) -> None:
    """An item that says something else is no window."""
    with pytest.raises(NoLine):
        read_line(parse_item(text.encode(), Limits()), LAYOUT)


@pytest.mark.parametrize("selection", [(1, 1, 1), (3, 1, 2), (2, 2, 4), (2, 3, 4), (2, 2, 1)])
def test_windows_of_windows(selection: tuple[int, int, int]) -> None:
    """The panes of a tiling make exactly the windows that SELECTWINDOWS says, and close them with their last part."""
    count, every, step = selection
    tiling = WindowTiling(SelectWindows(count, every, step))
    places, panes = tiling.placed(np.arange(40))
    for k in range(6):
        parts = sorted(places[np.isin(panes, tiling.panes.window(k))].tolist())
        assert parts == [k * step + i * every for i in range(count)]
        assert tiling.panes.ended(Fraction(tiling.reached(parts[-1] + 1))) > k
        assert tiling.panes.ended(Fraction(tiling.reached(parts[-1]))) <= k
    assert tiling.first(step * 2) == 2
    assert tiling.first(step * 2 + 1) == 3
