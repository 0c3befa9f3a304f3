"""Branches that are fed follow accents: windows that need their items, joins, merges, and what waits for the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algebra.accented import CELSIUS, HERE, add, alter, closed, drop
from anabranch.branch.ports import InputStream, Start
from anabranch.runtime.evolution.views import views
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.elements import Accent, DeadLetter, Doubt
from branch.feeding import Flow, Stream
from evolving.branching import Doubted, Together, ask, raw, run, shown
from evolving.measuring import evolved
from evolving.outlets import ROUND

WINDOW = 'for $w in stream("a")/r/i |ts diff 10| '
TO_CELSIUS = str(parse_map(CELSIUS))
JOIN = 'for $x in stream("a")/r/i |count 2| for $y in stream("b")/r/i |count 1| where $x/key = $y/key return '


# --- LAWS -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("sum", ["<x>231</x>"]),
        ("count", ["<x>3</x>"]),
        ("avg", [f"alter . by {TO_CELSIUS}", "<x>25</x>"]),
        ("max", [f"alter . by {TO_CELSIUS}", "<x>30</x>"]),
        ("median", [f"alter . by {TO_CELSIUS}", "<x>25</x>"]),
        ("stddev", ["alter . by . * 5 div 9", "<x>5</x>"]),
    ],
)
def test_case_17(function: str, answer: list[str]) -> None:
    """68 and 77 F, then 30 C in one window, wherever epochs end."""
    given = "ts=1 t=68", "ts=2 t=77", alter("t", CELSIUS), "ts=3 t=30"
    assert ask(f"{WINDOW}return <x>{{{function}($w/t)}}</x>", *given) == answer


def test_windows_stand_on_their_side_of_an_accent() -> None:
    """What has closed before an accent is in the old units and before it, what closes later behind it in the new."""
    given = "ts=1 t=68", "ts=11 t=77", alter("t", CELSIUS), "ts=12 t=30", "ts=25 t=20"
    assert ask(f"{WINDOW}return <x>{{$w/t}}</x>", *given) == [
        "<x><t>68</t></x>",
        f"alter t by {TO_CELSIUS}",
        "<x><t>25</t><t>30</t></x>",
        "<x><t>20</t></x>",
    ]


def test_windows_on_an_altered_path() -> None:
    """Windows are those of the units of the start (LAWS 4.2 b), and items keep their places in them."""
    given = "ts=1", "ts=9", alter("ts", ". * 2"), "ts=4", "ts=20", "ts=50"
    assert ask(f"{WINDOW}return <w>{{count($w)}}</w>", *given) == ["<w>2</w>", "<w>1</w>", "<w>1</w>"]


def test_case_21() -> None:
    """A stream of two partitions lets out what both have gone through in the same order."""
    given = (
        ("a", alter("t", ". * 2"), 0), ("a", alter("t", ". + 10"), 1), ("a", alter("t", ". + 10"), 0),
        ("a", alter("t", ". * 2"), 1), ("a", "t=20 ts=1", 0), ("a", "t=30 ts=1", 1),
    )  # fmt: skip
    assert ask(f"{ROUND}return $p/t", *given, partitions=2, time="ts") == ["<t>5</t>", "<t>5</t>"]


def test_case_22() -> None:
    """Raw values with four accents between."""
    given = add("p"), "p=10", alter("p", ". * 2"), "p=20", drop("p"), add("p"), "p=7"
    assert ask(f"{ROUND}return $p/p", *given) == [
        "add .", "<p>10</p>", "alter . by . * 2", "<p>20</p>", "drop .", "add .", "<p>7</p>",
    ]  # fmt: skip


def test_case_23() -> None:
    """Keys meet in the units of the start, whenever an item came."""
    given = "key=50", alter("key", ". * 2"), "key=100", ("b", "key=50")
    assert ask(f"{JOIN}<o>{{$x/key}}</o>", *given) == ["<o><key>50</key></o>", "<o><key>50</key></o>"]


def test_case_25() -> None:
    """A drop takes what open windows know of the path, in any split (LAWS 4.2 g)."""
    given = "ts=1 t=70", drop("t"), "ts=7", "ts=12"
    assert ask(f"{WINDOW}return <x><a>{{avg($w/t)}}</a></x>", *given) == ["drop a", "<x><a/></x>", "<x><a/></x>"]
    assert ask(f"{WINDOW}return <x>{{count($w/t)}}</x>", *given)[-2:] == ["<x>0</x>", "<x>0</x>"]


# --- joins ------------------------------------------------------------------------------------------------


def test_joined_items_that_waited_leave_in_the_units_of_their_place() -> None:
    """What waits in a join's state is altered with what comes (LAWS 4.2 c)."""
    given = "key=1 t=68", alter("t", CELSIUS), "key=1 t=25", ("b", "key=1")
    assert ask(f"{JOIN}<o>{{$x/t}}</o>", *given) == [
        f"alter t by {TO_CELSIUS}",
        "<o><t>20</t></o>",
        "<o><t>25</t></o>",
    ]


def test_joined_items_that_waited_lose_what_was_dropped() -> None:
    """A dropped path is stripped from what waits."""
    given = "key=1 t=68", drop("t"), "key=1", ("b", "key=1")
    assert ask(f"{JOIN}<o>{{$x/t}}</o>", *given) == ["drop t", "<o/>", "<o/>"]


def test_keys_that_both_sides_change() -> None:
    """A key of a pair leaves in the new unit when both streams have changed it."""
    given = alter("key", ". * 2"), ("b", alter("key", ". * 2")), "key=100", "key=2", ("b", "key=100")
    assert ask(f"{JOIN}<o>{{$x/key}}</o>", *given) == ["alter key by . * 2", "<o><key>100</key></o>"]


def test_a_self_join() -> None:
    """An accent concerns both `for`s over its stream."""
    query = 'for $x in stream("a")/r/i |count 1| for $y in stream("a")/r/i |count 1| return <o>{$x/t}<y>{$y/t}</y></o>'
    given = "t=1", alter("t", ". * 2"), "t=4"
    assert ask(query, *given) == [
        "<o><t>1</t><y><t>1</t></y></o>",
        "alter t by . * 2",
        "alter y/t by . * 2",
        "<o><t>4</t><y><t>2</t></y></o>",
        "<o><t>4</t><y><t>4</t></y></o>",
    ]


# --- order and form ---------------------------------------------------------------------------------------


def test_an_accent_between_values_is_a_node() -> None:
    """Values that an accent parts need no space, across epochs too."""
    query = f"{ROUND}return ($p/x + 1, if ($p/t > 50) then <t>{{$p/t/text()}}</t> else ())"
    given = "x=1 t=1", "x=2 t=2", alter("t", ". * 2"), "x=3 t=4", "x=4 t=200"
    assert "".join(ask(query, *given)) == "2 3alter . by . * 24 5<t>200</t>"


def test_an_accent_has_a_time() -> None:
    """LAWS 1.2: an accent takes its turn among the elements of other streams by its `at`, else by what is before it."""
    query = 'for $x in stream("a")/r/i |count 1| for $y in stream("b")/r/i |count 1| return <o>{$x/t}{$y/n}</o>'
    late = '<s:accent xmlns:s="urn:anabranch:stream" at="5"><s:alter path="t" by=". * 2"/></s:accent>'
    given = "t=1 ts=1", late, ("b", "n=1 ts=2"), ("b", "n=2 ts=7"), "t=4 ts=8"
    assert ask(query, *given, time="ts") == [
        "<o><t>1</t><n>1</n></o>",
        "alter t by . * 2",
        "<o><t>2</t><n>2</n></o>",
        "<o><t>4</t><n>2</n></o>",
    ]


def test_a_punctuation_closes_windows_before_it_lets_an_accent_out() -> None:
    """LAWS 4.8: a punctuation counts as cover; what it closes is still in the old units."""
    query = 'for $w in stream("a")/r/i |ts diff 10| return <x>{avg($w/t)}</x>'
    given = "ts=1 s=1 t=4", alter("t", ". * 2", "s = 2"), closed("not(s = 2) or ts < 10"), "ts=12 s=2 t=6"
    assert ask(query, *given) == ["<x>4</x>", "alter . by . * 2", "<x>6</x>"]


def test_punctuations_speak_of_raw_values() -> None:
    """A punctuation on an altered path closes the windows of the values that it means."""
    query = 'for $w in stream("a")/r/i |ts diff 10| return <x>{count($w)}</x>'
    for bound, pieces in (("18", []), ("20", ["<x>1</x>"])):
        asked = Together([query], [Stream("a")])
        flow = Flow(asked)
        for each in ("ts=1", alter("ts", ". * 2"), closed(f"ts < {bound}")):
            flow.bring("a", raw(each))
        assert asked.takens[0].pieces == pieces


def test_what_waits_for_the_end_absorbs() -> None:
    """LAWS 4.7: an answer that is only known at the end is in the units of the start."""
    query = f"{ROUND}order by $p/t descending return <o>{{$p/t}}</o>"
    given = "t=70", alter("t", CELSIUS), "t=30", alter("t", ". + 1"), "t=21"
    assert ask(query, *given) == ["<o><t>86</t></o><o><t>70</t></o><o><t>68</t></o>"]


# --- who cannot go on -------------------------------------------------------------------------------------


def test_one_member_of_a_family_is_over() -> None:
    """An accent that a query cannot survive ends that one, in its place, and the others go on (LAWS 4.6)."""
    queries = [f"{WINDOW}where max($w/t) > 1 return <x>{{count($w)}}</x>", f"{WINDOW}return <y>{{count($w)}}</y>"]
    given = "ts=1 t=5", "ts=11 t=6", drop("t"), "ts=12", "ts=25"
    for cuts in ((), range(5), (3,)):
        asked = run(queries, given, cuts=cuts)
        assert shown(asked.takens[0].pieces) == ["<x>1</x>"]
        assert shown(asked.takens[1].pieces) == ["<y>1</y>", "<y>2</y>", "<y>1</y>"]
        assert asked.ended == {"q0": "'where' cannot do without 't': the accent on 't' where true() drops it"}


@pytest.mark.parametrize("query", [f"{ROUND}where $p/t > 1 return $p/s", f"{ROUND}order by $p/t return $p/s"])
def test_doubt(query: str) -> None:
    """A refused accent leaves its path unknown: who reads it is over, whoever does not goes on (LAWS 4.5)."""
    refused = alter("t", ". * 2", "s = 2")
    for cuts in ((), range(4)):
        asked = run([query], ["t=1 s=1", Doubted(refused, "it is not valid"), "t=3 s=1"], cuts=cuts)
        assert "is unknown from here on: it is not valid" in asked.ended["q0"]
        assert run([f"{ROUND}return $p/s"], ["s=1", Doubted(refused, "it is not valid"), "s=2"], cuts=cuts).ended == {}


def test_an_unreadable_accent_is_doubt_too() -> None:
    """What an accent that cannot be read spoke of is unknown."""
    broken = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="t" by="wrong"/></s:accent>'
    for cuts in ((), range(3)):
        assert "unknown" in run([f"{WINDOW}return $w/t"], ["ts=1 t=1", broken, "ts=2 t=3"], cuts=cuts).ended["q0"]
        assert run([f"{WINDOW}return $w/s"], ["ts=1 t=1", broken, "ts=2 t=3"], cuts=cuts).ended == {}


def test_dead_letters_show_what_was_written() -> None:
    """An item that fails is set aside as it came, however long it has waited."""
    query = f"{WINDOW}return <x>{{sum($w/t) + $w/s}}</x>"
    for cuts in ((), range(4)):
        asked = run([query], [alter("t", ". * 2"), "ts=1 t=4 s=a", "ts=2 t=6 s=b", "ts=12 t=8 s=1"], cuts=cuts)
        [letter] = asked.takens[0].dead
        assert letter.raw == "<i><ts>1</ts><t>4</t><s>a</s></i>"
        assert shown(asked.takens[0].pieces) == ["<x>5</x>"]


# --- late starts ------------------------------------------------------------------------------------------


def late(*accents: Accent, name: str = "a") -> dict[str, InputStream]:
    """The stream for a branch that begins behind some accents."""
    [view] = views([evolved(accents)], [HERE])

    def starts() -> list[Start]:
        changes = (
            each if isinstance(each, Accent) else DeadLetter(HERE, "?", "", doubts=(each,)) for each in view.accents
        )
        return [Start(view.evolution, tuple(changes))]

    return {name: replace(Stream(name, late=True).for_branch(), starts=starts)}


def test_a_late_branch_has_the_units_of_its_start() -> None:
    """LAWS 3.6: what is in force for all is simply its units, what is in force for a part is shown to it first."""
    query = f"{ROUND}return <o>{{$p/t}}{{$p/s}}</o>"
    inputs = late(alter("t", CELSIUS), alter("t", ". + 1", "s = 2"))
    given = "t=21 s=2", "t=20 s=1", alter("t", ". * 10"), "t=210 s=2"
    for cuts in ((), range(4)):
        asked = run([query], given, cuts=cuts, inputs=inputs)
        assert shown(asked.takens[0].pieces) == [
            "alter t by . + 1 where s = 2",
            "<o><t>21</t><s>2</s></o>",
            "<o><t>20</t><s>1</s></o>",
            "alter t by . * 10",
            "<o><t>210</t><s>2</s></o>",
        ]
        sums = run(
            [f"{WINDOW}return <x>{{sum($w/t)}}</x>"], ["ts=10 t=21 s=2", "ts=11 t=20 s=1"], cuts=cuts, inputs=inputs
        )
        assert shown(sums.takens[0].pieces) == ["<x>40</x>"]


def test_a_late_branch_that_cannot_begin() -> None:
    """What is unknown for a part ends a late query that reads it, and one that waits for the end as well."""
    evolution = evolved([drop("t", "s = 2")])
    assert evolution.apply(alter("t", ". * 2", "s = 2")) is not None
    [view] = views([evolution], [HERE])
    [doubt] = view.accents
    assert isinstance(doubt, Doubt)
    start = Start(view.evolution, (DeadLetter(HERE, "it was in doubt", "", doubts=(doubt,)),))
    inputs = {"a": replace(Stream("a", late=True).for_branch(), starts=lambda: [start])}
    for query in (f"{ROUND}return $p/t", f"{ROUND}order by $p/t return $p/s"):
        for cuts in ((), (1,)):
            assert "it was in doubt" in run([query], ["s=1 t=2", "s=1 t=3"], cuts=cuts, inputs=inputs).ended["q0"]


# --- cost -------------------------------------------------------------------------------------------------


def test_what_no_query_looks_at_leaves_columns_alone() -> None:
    """Items are answered many at a time as long as nothing was said of a path that matters."""
    query = f"{ROUND}where $p/t > 0 return <o>{{$p/t}}</o>"
    many = [f"t={number} s=1" for number in range(1, 101)]
    asked = run([query], [*many, alter("s", ". * 2"), drop("u"), *many])
    assert asked.takens[0].at_once == 200
    asked = run([query], [*many, alter("t", ". * 2", "s = 2"), *many])
    assert asked.takens[0].at_once == 100


def test_punctuations_do_not_pile_up() -> None:
    """One that says more takes the place of those before it, until something came of them."""
    flow = Flow(Together([f"{WINDOW}return <x>{{avg($w/t)}}</x>"], [Stream("a")]))
    for number in range(50):
        flow.bring("a", raw(f"ts={number} t=1"), raw(closed(f"ts < {number}")), raw(closed("s = 3")))
    flow.epoch()
    few = flow.size
    flow.bring("a", raw(alter("t", ". * 2", "s = 2")))
    for number in range(50, 100):
        flow.bring("a", raw(f"ts={number} t=1 s=2"), raw(closed(f"ts < {number}")))
    flow.epoch()
    assert flow.size < few + 500
