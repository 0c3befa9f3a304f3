"""What of a stream may travel: as little as keeps every answer what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.needs import (
    QueryNeeds,
    carries_path,
    depends_on_time,
    fed_inputs,
    need_of,
    provides,
    sent_needs,
    whole,
    widened,
    window_references,
)
from anabranch.predicate import EVERYTHING
from anabranch.sharing.match import matches
from anabranch.sharing.tree import PropertyTree
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source

SELECTION = 'for $p in stream("s")/r/i where $p/k >= 2 return if ($p/k >= 3) then $p/t else $p/v'
WINDOW = 'for $w in stream("s")/r/i[k >= 2]|t diff 10| return sum($w/v)'
JOIN = 'for $x in stream("s")/r/i|count 2| for $y in stream("u")/r/i|count 2| where $x/k = $y/k return $x/v'
PAST = 'for $p in stream("s")/r/i return count(stream("s")/r/i?[5])'


def sent(text: str, *, accents: bool = False, time: str | None = "t", updates: bool = False) -> QueryNeeds:
    """What travels for a query over streams of one kind."""
    return sent_needs(need_of(text, {}), streams(accents=accents, time=time, updates=updates))


def streams(*, accents: bool = False, time: str | None = "t", updates: bool = False) -> dict[str, RegisteredStream]:
    """Two streams of one kind."""
    path = None if time is None else ItemPath.parse(time)
    return {
        name: RegisteredStream(Source(name, Path(name), time=path, updates=updates), "SP0", "SP0", None, accents)
        for name in "su"
    }


def test_parts_of_items() -> None:
    """Of a stream without accents only what is asked for travels, and windows as such."""
    (tree,) = sent(SELECTION).inputs
    assert {each.path[2:] for each in tree.outputs} == {("k",), ("t",), ("v",)}
    for text in (WINDOW, WINDOW.replace("t diff 10", "count 4 step 2")):
        assert sent(text).inputs[0].window is not None
    assert sent(WINDOW.replace("sum($w/v)", "$w/v")).inputs[0].window is None, "which hands out its items"


def test_parts_of_items_that_may_evolve() -> None:
    """Where accents may come the same travels, also windows."""
    for text in (SELECTION, WINDOW):
        assert sent(text, accents=True).inputs == sent(text).inputs


@pytest.mark.parametrize(
    ("text", "evolved"),
    [
        (WINDOW, "s"),
        (WINDOW.replace("sum($w/v)", "sum($w[k >= 3]/v)"), ""),
    ],
)
def test_windows_that_are_made_where_they_are_asked_for(text: str, evolved: str) -> None:
    """Who begins behind an accent, or may end where others go on, gets the parts of items that its windows need."""
    assert sent(text).inputs[0].window is not None
    need = sent_needs(need_of(text, {}), streams(accents=True), evolved)
    (tree,) = need.inputs
    assert need.gathered is not None
    assert tree.window is None
    assert {("k",), ("t",), ("v",)} <= {each.path[2:] for each in tree.outputs}


def test_windows_are_shared_by_those_who_need_the_same_paths() -> None:
    """A query that ends when a path is dropped (LAWS 4.6) is not answered from windows that do not need the path."""
    (plain,), (more,) = (
        sent(text, accents=True).inputs for text in (WINDOW, WINDOW.replace("[k >= 2]", "[k >= 2 or k >= 2 and m > 3]"))
    )
    assert plain.window is not None
    assert more.window is not None
    assert matches(plain, more), "they select the same"
    assert not provides(plain, more)
    both = widened(plain, more)
    assert isinstance(both, PropertyTree)
    assert both.window is None
    assert provides(both, plain)
    assert provides(both, more)


@pytest.mark.parametrize("text", [JOIN, PAST])
def test_times_are_told(text: str) -> None:
    """Who asks when items came is sent the time of each, and all of a stream that declares none."""
    need = sent(text)
    assert depends_on_time(need)
    assert all(carries_path(each, ("t",)) for each in need.inputs)
    if need.join:
        assert fed_inputs(need.join, streams()) == need.inputs, "so does a join on the way"
        assert all(each != whole(each.stream) for each in need.inputs)
    assert sent(text, time=None).inputs[0] == whole("s")


def test_interval_joins_are_told_all_times() -> None:
    """What is not selected lets an interval join go on, so its time travels, and nothing else of it."""
    text = (
        'for $x in stream("s")/r/i[k = 1] for $y in stream("u")/r/i '
        "where $x/t >= $y/t - 1 and $x/t <= $y/t + 1 and $y/v > 2 return $x/v"
    )
    for tree in sent(text).inputs:
        found = {each.path[2:]: each.condition for each in tree.outputs}
        assert found[("t",)] == EVERYTHING
        assert found[("v",)] != EVERYTHING


def test_updates_travel_as_they_are() -> None:
    """Nothing is left out of a stream that is edited."""
    assert sent('<a>{ stream("s")/r/i/k }</a>', updates=True).inputs == (whole("s"),)


def test_references() -> None:
    """A time window is placed by a plain path, or its stream travels whole."""
    assert window_references(need_of(WINDOW, {})) == {"s": frozenset({"i/t"})}
    odd = WINDOW.replace("|t diff", "|x/@t diff")
    assert window_references(need_of(odd, {})) is None
