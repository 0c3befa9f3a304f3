"""What kind of query a subscription asks, decided once from its text and its streams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.branch.remote.written import write_tuples
from anabranch.errors import StateError
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import KINDS, decide, read_query
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.membership import subscriptions_of
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import KnownStream, Source

S, T, U = (KnownStream.of(Source(name, Path(name), root="r", item="i", time=ItemPath.parse("t"))) for name in "stu")
EDITED = replace(U, source=replace(U.source, updates=True))
TWO_PARTS = replace(S, source=replace(S.source, more=(Path("more"),)))
KNOWN = QueryContext({"s": S, "t": T, "u": EDITED})
ITEMS = 'stream("s")/r/i'
WINDOW = 'for $w in stream("s")/r/i|t diff 5| return <w>{ count($w) }</w>'
GROUPED = 'for $w in stream("s")/r/i|t diff 5| for $o in $w group by $k := $o/k return <w>{ $k, count($o) }</w>'
HELD = 'for $w in stream("s")/r/i|t diff 5| return <w>{ $w/n }</w>'
JOIN = 'for $x in stream("s")/r/i|t diff 5| for $y in stream("t")/r/i|t diff 5| return <p>{ $x/n, $y/n }</p>'
INTERVAL = """for $x in stream("s")/r/i for $y in stream("t")/r/i
    where $x/t >= $y/t - 5 and $x/t <= $y/t + 5 return <p>{ $x/n, $y/n }</p>"""


def kind(text: str, known: QueryContext = KNOWN, *, timed: bool = False) -> str:
    return decide(Registration(0, "q", text, 0, timed=timed), known)[0].kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ITEMS, "items"),
        ('for $x in stream("s")/r/i return $x/n + 1', "items in order"),
        (WINDOW, "windows by panes"),
        (GROUPED, "windows by panes"),
        (GROUPED.replace("$o/k", "$o/k + 1"), "windows"),
        (HELD, "windows"),
        (WINDOW.replace("diff 5", "gap 5 by k"), "sessions by panes"),
        (HELD.replace("diff 5", "gap 5"), "sessions"),
        (JOIN, "step join"),
        (INTERVAL, "interval join"),
        ('count(stream("s")/r/i)', "display of items"),
        (f"<a>{{ {WINDOW} }}{{ {HELD} }}</a>", "display of items"),
        (f"let $all := ({HELD}) return ($all, $all)", "display of items"),
        ('let $all := (for $w in stream("s")/r/i|count 2| return $w) return $all/n', "whole"),
        ('count(stream("u")/r/i)', "display"),
        ('count(stream("s")/r/i#[3])', "past"),
        ('for $x in stream("s")/r/i return <n>{ $x/n, stream("t")/r/i#0 }</n>', "past"),
        ('{"stream":"s"}', "plan"),
        (write_tuples(JOIN, evolving=False), "remote tuples"),
        (write_tuples(JOIN, evolving=True), "remote tuples with accents"),
        ('stream("other")/r/i', "unread"),
    ],
)
def test_a_query_has_one_kind(text: str, expected: str) -> None:
    """It is written into the plan, and read back as that."""
    asked, query = decide(Registration(0, "q", text, 0), KNOWN)
    assert (asked.kind, asked.streams) == (expected, query.streams)
    if expected != "unread":
        assert type(read_query(asked, KNOWN)) is KINDS[expected] is type(query)


def test_what_a_kind_depends_on() -> None:
    """On the order of a stream's partitions, on whether moments are told, and on whether the streams end."""
    merged = QueryContext({"s": TWO_PARTS, "t": T})
    assert [kind(text, merged) for text in (ITEMS, WINDOW)] == ["items in order", "windows"]
    assert [kind(text, timed=True) for text in (ITEMS, WINDOW)] == ["items in order", "windows"]
    assert kind(INTERVAL, replace(KNOWN, endless=False)) == "whole"
    count, finite = 'count(stream("s")/r/i)', replace(KNOWN, endless=False)
    assert [kind(count, finite), kind(count, finite, timed=True)] == ["whole", "display of items"]


def test_it_is_decided_anew_where_a_stream_changes() -> None:
    """Who was there goes on with the same number, as what it is now; a stream that comes is read from then on."""
    plan = Plan((S,), (), Limits(), 0)
    wanted = {"a": ITEMS, "b": 'stream("t")/r/i'}
    for streams, expected in (
        ((S,), ["items", "unread"]),
        ((TWO_PARTS, T), ["items in order", "items"]),
    ):
        found, following = subscriptions_of(plan, wanted, 0, (), streams)
        plan = Plan(streams, found, Limits(), following)
        assert [(each.id, each.kind) for each in found] == list(enumerate(expected))


def test_a_kind_that_a_query_is_not() -> None:
    """A plan that says what cannot be is refused by name."""
    with pytest.raises(StateError, match="'q' was registered as 'windows by panes'"):
        read_query(Registration(0, "q", HELD, 0, kind="windows by panes", streams=("s",)), KNOWN)
