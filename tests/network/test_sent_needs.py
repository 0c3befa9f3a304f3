"""What of a stream may travel: as little as keeps every answer what it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
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


KEYED = 'for $x in stream("s")/r/i[a = 1], $y in stream("u")/r/i where $x/k = $y/k and $y/v > 2 return $x/w'
BY_ITSELF = KEYED.replace('stream("u")', 'stream("s")')


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (KEYED, {"s": "a k w where r/i/a = 1", "u": "k v where r/i/v > 2"}),
        (BY_ITSELF, {"s": "a k v w where r/i/a = 1 or r/i/v > 2"}),
        (
            f"for $w in ({KEYED.replace('$x/w', '<m>{ $x/w }</m>')})|w diff 4| return sum($w/w)",
            {"u": "k v where r/i/v > 2"},
        ),
        (
            'for $x in stream("s")/r/i[a = 1] union stream("u")/r/i where $x/v > 2 return $x/w',
            {"u": "v w where r/i/v > 2"},
        ),
        (
            'for $x in stream("s")/r/i[a = 1] except stream("s")/r/i[v > 2] return $x/w',
            {"s": "a v w where r/i/a = 1 or r/i/v > 2"},
        ),
        (
            'for $w in stream("s")/r/i[a = 1]|p diff 9| for $i in $w group by $k := $i/k return count($i)',
            {"s": "a k p where r/i/a = 1"},
        ),
        ('for $w in stream("s")/r/i[a = 1]|p gap 9 by k| return $w/v', {"s": "a k p v where r/i/a = 1"}),
    ],
)
def test_what_is_made_where_it_is_asked_for(text: str, needed: dict[str, str]) -> None:
    """What is neither windows nor a join on the way is sent what it reads, of items that it may select; and no times
    but where streams are merged."""
    need = sent(text)
    assert need.join is None
    for tree in need.inputs:
        if tree.stream in needed:
            paths = {each.path[2:] for each in tree.outputs} - ({("t",)} if depends_on_time(need) else set())
            condition = tree.guards[("r", "i")]
            assert f"{' '.join(sorted(path for (path,) in paths))} where {condition}" == needed[tree.stream]


def test_a_join_that_forgets_is_told_times() -> None:
    """A join of a stream with itself that is retained for a time forgets by the times of its items (LAWS 3.5)."""
    plain = streams()
    retained = {name: replace(each, source=replace(each.source, retain=Fraction(5))) for name, each in plain.items()}
    for known, forgets in ((plain, False), (retained, True)):
        need = sent_needs(need_of(BY_ITSELF, {}), known)
        assert depends_on_time(need) is forgets
        assert carries_path(need.inputs[0], ("t",)) is forgets
    assert not depends_on_time(sent_needs(need_of(SELECTION, {}), retained))


def test_updates_travel_as_they_are() -> None:
    """Nothing is left out of a stream that is edited."""
    assert sent('<a>{ stream("s")/r/i/k }</a>', updates=True).inputs == (whole("s"),)


def test_references() -> None:
    """A time window is placed by a plain path, or its stream travels whole."""
    assert window_references(need_of(WINDOW, {})) == {"s": frozenset({"i/t"})}
    odd = WINDOW.replace("|t diff", "|x/@t diff")
    assert window_references(need_of(odd, {})) is None
