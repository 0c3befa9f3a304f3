"""What comes out of queries over evolving streams: accents with paths of the output, and what is written after them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from algebra import evolving as algebra_evolving
from algebra.accented import CELSIUS, HERE, add, alter, closed, drop, path, show
from algebra.evolving import stream
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.select import Select
from anabranch.algebra.plans.interpret import Apply, StreamSource
from anabranch.errors import Aborted, StreamError
from anabranch.logic import EVERYTHING
from anabranch.predicate import Finite
from anabranch.runtime.evolution.outlet import Outlet, accent_text
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.description import parse as parse_description
from anabranch.stream.elements import Accent, Alter, Drop, Item
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import Element
from anabranch.values.sequences import Values
from evolving.outlets import ROUND, Asked, Given, ask, item, lineage
from evolving.square import EXACT, item_query, join_query, square, window_query
from mass import enough, some
from models.interpreter import run

WINDOW = 'for $w in stream("a")/r/i |ts diff 100| '
TO_CELSIUS = str(parse_map(CELSIUS))
JOIN = 'for $x in stream("a")/r/i |count 2| for $y in stream("b")/r/i |count 1| where $x/key = $y/key return '


# --- LAWS -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("sum", ["<x>231</x>"]),
        ("count", ["<x>3</x>"]),
        ("avg", [f"alter . by {TO_CELSIUS}", "<x>25</x>"]),
        ("min", [f"alter . by {TO_CELSIUS}", "<x>20</x>"]),
        ("max", [f"alter . by {TO_CELSIUS}", "<x>30</x>"]),
        ("median", [f"alter . by {TO_CELSIUS}", "<x>25</x>"]),
        ("stddev", ["alter . by . * 5 div 9", "<x>5</x>"]),
    ],
)
def test_case_17(function: str, answer: list[str]) -> None:
    """68 and 77 F, then 30 C: a sum or count stays as it was, an average follows (LAWS 4.2 a)."""
    given = "ts=1 t=68", "ts=2 t=77", alter("t", CELSIUS), "ts=3 t=30"
    assert ask(f"{WINDOW}return <x>{{{function}($w/t)}}</x>", *given) == answer


def test_a_sum_follows_what_only_scales() -> None:
    """LAWS 4.2 a: with b = 0 the sum is scaled like its values; a later shift is absorbed, and a scaling let out."""
    given = "ts=1 t=2", alter("t", ". * 10"), "ts=2 t=30", alter("t", ". + 1"), alter("t", ". * 2"), "ts=3 t=22"
    query = f"{WINDOW}return <x><y>{{sum($w/t)}}</y></x>"
    assert ask(query, *given) == ["alter y by . * 10", "alter y by . * 2", "<x><y>120</y></x>"]


def test_cases_18_and_19() -> None:
    """A selection is exact in the units of its start, and a value that nobody computed leaves as it came."""
    assert ask(f"{ROUND}where $p/t >= 38.84 return $p/t", alter("t", CELSIUS), "t=3.8") == [
        f"alter . by {TO_CELSIUS}",
        "<t>3.8</t>",
    ]
    assert ask(f"{ROUND}return $p/t", alter("t", CELSIUS), "t=25.0") == [f"alter . by {TO_CELSIUS}", "<t>25.0</t>"]


def test_cases_20_and_21() -> None:
    """A stream of two partitions is their union: it lets out what both have, and adds of either once."""
    asked = Asked(f"{ROUND}return $p/t", parts=2)
    for part, element in (
        (0, alter("t", ". * 2")),
        (1, alter("t", ". + 10")),
        (0, alter("t", ". + 10")),
        (1, alter("t", ". * 2")),
        (0, "t=20"),
        (1, "t=30"),
    ):
        asked.feed("a", element, part)
    assert asked.shown == ["<t>5</t>", "<t>5</t>"]
    asked = Asked(f"{ROUND}return $p", parts=2)
    asked.feed("a", add("x", "a = 'FOO' and c < 3"), 0)
    assert asked.shown == ["add x where a = 'FOO' and c < 3"]
    asked.feed("a", add("x", "b < 5"), 1)
    later = [each.where for each in asked.answer[1:] if isinstance(each, Accent)]
    assert len(later) > 1
    assert all("b < 5" in str(each) for each in later)


def test_case_22() -> None:
    """A path that comes, is measured otherwise, goes and comes again: four accents, and raw values between."""
    given = add("p"), "p=10", alter("p", ". * 2"), "p=20", drop("p"), add("p"), "p=7"
    accents = ["add {}", "alter {} by . * 2", "drop {}", "add {}"]
    for query, at, piece in (("$p/p", ".", "<p>{}</p>"), ("<o>{$p/p}</o>", "p", "<o><p>{}</p></o>")):
        one, two, three, four = (each.format(at) for each in accents)
        ten, twenty, seven = (piece.format(each) for each in (10, 20, 7))
        assert ask(f"{ROUND}return {query}", *given) == [one, ten, two, twenty, three, four, seven]


def test_case_23() -> None:
    """Keys are compared in the units of the start; one stream alone cannot change the unit of a pair's key."""
    given = "key=50", alter("key", ". * 2"), "key=100", ("b", "key=50")
    assert ask(f"{JOIN}<o>{{$x/key}}</o>", *given) == ["<o><key>50</key></o><o><key>50</key></o>"]


def test_case_24() -> None:
    """Descriptions speak of raw values at their place, in the output, too."""
    given = alter("t", CELSIUS, "s = 2"), add("p", "t > 30"), "s=1 t=31 p=1", "s=2 t=29"
    assert ask(f"{ROUND}return $p", *given) == [
        f"alter t by {TO_CELSIUS} where s = 2",
        "add p where t > 30",
        "<i><s>1</s><t>31</t><p>1</p></i>",
        "<i><s>2</s><t>29</t></i>",
    ]


def test_case_25() -> None:
    """A drop takes what open windows know of the path; state is told what to forget."""
    asked = Asked(f"{WINDOW}return <x><a>{{avg($w/t)}}</a></x>")
    for each in ("ts=1 t=70", drop("t"), "ts=7", "ts=12"):
        asked.feed("a", each)
    [purge] = asked.outlet.purges
    assert (purge.input, purge.path) == (0, path("t"))
    asked.end()
    assert asked.shown == ["drop a", "<x><a/></x>"]


def test_figure_1() -> None:
    """Figure 1 of the accents paper: the average is right although one sensor has changed, and follows all of them."""
    query = (
        'for $x in stream("a")/r/i |ts diff 5| for $y in stream("b")/r/i |count 2| '
        "where $x/s = $y/s return <m>{$x/t}{$x/s}{$y/l}</m>"
    )
    joined: list[Given | tuple[str, Given]] = [
        ("b", "s=1 l=A"),
        ("b", "s=2 l=A"),
        "ts=0 s=1 t=68",
        "ts=0 s=2 t=77",
        alter("t", CELSIUS, "s = 2"),
    ]
    assert ask(query, *joined, "ts=4 s=2 t=25")[0] == f"alter t by {TO_CELSIUS} where s = 2"
    average = f"{WINDOW}return <m><avg>{{avg($w/t)}}</avg></m>"
    readings = "ts=0 s=1 t=68", "ts=0 s=2 t=77", alter("t", CELSIUS, "s = 2"), "ts=4 s=2 t=25", "ts=4 s=1 t=86"
    assert ask(average, *readings) == ["<m><avg>77</avg></m>"]
    both = *readings, alter("t", CELSIUS, "s = 1")
    domains = [{path("s"): Finite(frozenset(("1", "2")))}]
    assert ask(average, *both) == ["<m><avg>77</avg></m>"]
    assert ask(average, *both, domains=domains) == [f"alter avg by {TO_CELSIUS}", "<m><avg>25</avg></m>"]


# --- places in the output ---------------------------------------------------------------------------------


def test_renamed_and_repeated_outputs() -> None:
    """Accents name the paths of the output, one for each place where the input's path stands."""
    query = f'{ROUND}return <r at="{{$p/t}}"><a><temp>{{$p/t/text()}}</temp></a>{{$p/t}}<n>{{data($p/t)}}</n></r>'
    assert ask(query, "t=68", alter("t", CELSIUS), "t=25.0") == [
        '<r at="68"><a><temp>68</temp></a><t>68</t><n>68</n></r>',
        *(f"alter {at} by {TO_CELSIUS}" for at in ("@at", "a/temp", "t", "n")),
        '<r at="25.0"><a><temp>25.0</temp></a><t>25.0</t><n>25.0</n></r>',
    ]


@pytest.mark.parametrize(
    ("expression", "by", "before", "after"),
    [
        ("$p/t * 2 + 1", ". * 5 div 9 - 316 div 9", "137", "51"),
        ("$p/t * -2 + 1", ". * 5 div 9 + 36", "-135", "-49"),
        ("-$p/t", ". * 5 div 9 + 160 div 9", "-68", "-25"),
        ("$p/t div 4", ". * 5 div 9 - 40 div 9", "17", "6.25"),
        ("(100 - $p/t) div 2", ". * 5 div 9 + 280 div 9", "16", "37.5"),
        ("number($p/t)", TO_CELSIUS, "68", "25"),
        ("$p/t + $p/t * 2 - 6", ". * 5 div 9 - 56", "198", "69"),
        ("$p/t - $p/t", None, "0", "0"),
        ("$p/t + $p/s", None, "69", "78"),
        ("$p/t * $p/t", None, "4624", "5929"),
        ("2 div $p/t * 77", None, "2.264705882352941", "2"),
        ("round($p/t)", None, "68", "77"),
        ("string-length($p/t)", None, "2", "2"),
        ("$p/t * 0", None, "0", "0"),
    ],
)
def test_computed_outputs(expression: str, by: str | None, before: str, after: str) -> None:
    """An affine output lets the change out that makes the same computation right; any other absorbs it (LAWS 4.7)."""
    found = ask(f"{ROUND}return <r><v>{{{expression}}}</v></r>", "t=68 s=1", alter("t", CELSIUS), "t=25.0 s=1")
    accents = [] if by is None else [f"alter v by {by}"]
    assert found == [f"<r><v>{before}</v></r>", *accents, f"<r><v>{after}</v></r>"]


def test_values_without_an_element_stay_in_the_units_of_the_start() -> None:
    """A bare text or number has no path that an accent could name."""
    given = "t=68", alter("t", CELSIUS), "t=25.0"
    for expression in ("$p/t/text()", "$p/t + 0", "data($p/t)"):
        assert ask(f"{ROUND}return {expression}", *given) == ["68", "77"]


def test_an_output_of_several_origins_is_absorbed() -> None:
    """What may be a temperature or not follows no change of temperatures, by `if`, a sequence or two elements."""
    given = alter("t", CELSIUS), "t=25.0 s=1"
    for result, piece in (
        ("<r><v>{if ($p/s = 1) then $p/t/text() else $p/s/text()}</v></r>", "<r><v>77</v></r>"),
        ("<r>{if ($p/s = 1) then <v>{$p/t/text()}</v> else <v>0</v>}</r>", "<r><v>77</v></r>"),
        ("<r><v>{$p/t/text()} F</v></r>", "<r><v>77 F</v></r>"),
        ("<r>{$p/*}<s>{$p/t/text()}</s></r>", None),
        ("($p/t, $p/s)", "<t>77</t><s>1</s>"),
        ("<r>{$p//t}</r>", "<r><t>77</t></r>"),
    ):
        found = ask(f"{ROUND}return {result}", *given)
        assert found == (
            [f"alter t by {TO_CELSIUS}", "<r><t>25.0</t><s>1</s><s>77</s></r>"] if piece is None else [piece]
        )


def test_alternatives_that_agree_follow() -> None:
    """Where all that may stand at a path has one origin, or there is nothing, the change comes out."""
    given = alter("t", CELSIUS), "t=25.0 s=1", "t=25.0 s=2"
    for result, pieces in (
        ("if ($p/s = 1) then <hi/> else $p/t", ["<hi/>", "<t>25.0</t>"]),
        ("if ($p/s = 1) then <a>{$p/t/text()}</a> else <b>{$p/t/text()}</b>", ["<a>25.0</a>", "<b>25.0</b>"]),
    ):
        assert ask(f"{ROUND}return {result}", *given) == [f"alter . by {TO_CELSIUS}", *pieces]


def test_whole_subtrees_show_what_is_added() -> None:
    """An add comes out where a copy shows the new path, also where the query names it before it is there."""
    given = add("c/p"), "<i><c><p>5</p></c></i>"
    assert ask(f"{ROUND}return <r>{{$p/c}}</r>", *given) == ["add c/p", "<r><c><p>5</p></c></r>"]
    assert ask(f"{ROUND}return $p/c", *given) == ["add p", "<c><p>5</p></c>"]
    assert ask(f"{ROUND}return <r><q>{{$p/c/p/text()}}</q></r>", *given) == ["add q", "<r><q>5</q></r>"]
    assert ask(f"{ROUND}return <r>{{$p/c/*}}</r>", *given) == ["add p", "<r><p>5</p></r>"]
    assert ask(f"{ROUND}return <r>{{$p/d}}</r>", *given) == ["<r/>"]
    assert ask(f"{ROUND}return <r>{{$p/c/p}}</r>", drop("c"), "<i/>") == ["drop p", "<r/>"]


def test_a_sum_or_count_of_a_dropped_path_still_stands_there() -> None:
    """The output keeps the path, with a 0, so no drop can come out."""
    for function in ("sum", "count"):
        query = f"{WINDOW}return <x><a>{{{function}($w/t)}}</a></x>"
        assert ask(query, drop("t"), "ts=1") == ["<x><a>0</a></x>"]


# --- descriptions -----------------------------------------------------------------------------------------


def test_descriptions_on_visible_paths_are_renamed() -> None:
    """A description names what it speaks of as the output calls it."""
    query = f"{ROUND}return <r>{{$p/t}}<sensor>{{$p/s/text()}}</sensor></r>"
    assert ask(query, alter("t", CELSIUS, "s = 2"), "t=20 s=2", "t=68 s=1") == [
        f"alter t by {TO_CELSIUS} where sensor = 2",
        "<r><t>20</t><sensor>2</sensor></r>",
        "<r><t>68</t><sensor>1</sensor></r>",
    ]


@pytest.mark.parametrize(
    "result",
    [
        "<r>{$p/t}</r>",
        "<r>{$p/t}{if ($p/x > 1) then $p/s else ()}</r>",
        "<r>{$p/t}{$p/s[. > 0]}</r>",
        "<r>{$p/t}{$p/s}{$p/s}</r>",
        "<r>{$p/t}<s>{$p/s + 0}</s></r>",
        "(<r>{$p/t}{$p/s}</r>, <q>{$p/t}</q>)",
    ],
)
def test_descriptions_on_hidden_paths_wait(result: str) -> None:
    """What not every output item has, once, cannot be named: the change waits until it holds for all."""
    asked = Asked(f"{ROUND}return {result}")
    asked.feed("a", alter("t", CELSIUS, "s = 2"))
    assert asked.shown == []
    asked.feed("a", alter("t", CELSIUS, "not(s = 2)"))
    assert asked.shown == [f"alter t by {TO_CELSIUS}"]


def test_nothing_inside_an_altered_value_describes_it() -> None:
    """`@s` lies in the element whose own value changes, so a description may not name it (accents 3)."""
    query = f'{ROUND}return <t s="{{$p/s}}">{{$p/t/text()}}</t>'
    assert ask(query, alter("t", CELSIUS, "s = 2"), "t=25 s=2") == ['<t s="2">77</t>']


def test_punctuations_count_as_cover() -> None:
    """No more of sensor 1 come, so the change of all others is one for all (LAWS 4.8)."""
    query = f"{ROUND}return <r>{{$p/t}}</r>"
    given = alter("t", CELSIUS, "not(s = 1)"), closed("s = 1"), "t=25.0 s=2"
    assert ask(query, *given) == [f"alter t by {TO_CELSIUS}", "<r><t>25.0</t></r>"]


def test_what_waited_is_brought_forward() -> None:
    """A partner that has waited since before an accent is written in the unit that it announces."""
    given = "key=1 t=68", alter("t", CELSIUS), "key=1 t=25.0", ("b", "key=1")
    query = f"{JOIN}<o>{{$x/t}}</o>"
    assert ask(query, *given) == [f"alter t by {TO_CELSIUS}", "<o><t>20</t></o><o><t>25.0</t></o>"]


def test_a_pair_of_keys_changes_when_both_have() -> None:
    """LAWS 4.2 c: join paths are coordinated pair by pair, other paths pass at once."""
    asked = Asked(f"{JOIN}<o>{{$x/key}}<k>{{$y/key/text()}}</k>{{$y/u}}</o>")
    for name, element in (("a", alter("key", ". * 2")), ("b", alter("u", ". * 3")), ("b", alter("key", ". * 2"))):
        asked.feed(name, element)
    assert asked.shown == ["alter u by . * 3", "alter key by . * 2", "alter k by . * 2"]


def test_a_key_that_is_not_in_the_output_is_waited_for_all_the_same() -> None:
    """The pair's other side decides, though only one of the two is returned."""
    asked = Asked(f"{JOIN}<o>{{$y/key}}</o>")
    asked.feed("b", alter("key", ". * 2"))
    assert asked.shown == []
    asked.feed("a", alter("key", ". * 2"))
    assert asked.shown == ["alter key by . * 2"]


# --- policies and aborts ----------------------------------------------------------------------------------


def test_policies() -> None:
    """`absorb` stays in the units of the start, `abort` gives up where a description cannot be told (LAWS 4.7)."""
    query = f"{ROUND}return <r>{{$p/t}}</r>"
    assert ask(query, alter("t", CELSIUS), "t=25.0", policy="absorb") == ["<r><t>77</t></r>"]
    assert ask(query, alter("t", CELSIUS), "t=25.0", policy="abort")[1] == "<r><t>25.0</t></r>"
    with pytest.raises(Aborted, match="'s' is not in its output"):
        ask(query, alter("t", CELSIUS, "s = 2"), policy="abort")
    assert ask(query, alter("x", CELSIUS, "s = 2"), "t=1", policy="abort") == ["<r><t>1</t></r>"]


def test_a_join_that_aborts_calls_paths_as_their_streams_do() -> None:
    """Inside, the paths of two inputs have names of their own; nobody hears of these."""
    outlet = Outlet(lineage(f"{JOIN}$x/t"), policy="abort")
    with pytest.raises(Aborted, match=r"cannot pass on the accent on 't' where s = 2: 's' is not in its output"):
        outlet.accent(0, alter("t", CELSIUS, "s = 2"))


@pytest.mark.parametrize(
    ("query", "at", "word"),
    [
        (f"{ROUND}where $p/s = 1 return $p/t", "s", "where"),
        (f"{ROUND}return $p/t[../s = 1]", "s", "[...]"),
        (f"{ROUND}return if ($p/s = 1) then $p/t else ()", "s", "if"),
        (f"{ROUND}return <r>{{for $c in $p/c order by $c/s return $c/t}}</r>", "c/s", "order by"),
        (f"{ROUND}where some $c in $p/c satisfies $c/s = 1 return $p/t", "c/s", "satisfies"),
        (f"{WINDOW}return avg($w/t)", "ts", "|window|"),
        (f"{JOIN}$x/t", "key", "join"),
        (f"{ROUND}let $a := $p/s + 1 where $a > 2 return $p/t", "s", "where"),
        (
            'declare function local:f($x) { $x/s = 1 }; for $p in stream("a")/r/i where local:f($p) return $p/t',
            "s",
            "where",
        ),
        (f"{ROUND}where $p//s = 1 return $p/t", "c/s", "where"),
        (f"{ROUND}where $p/c/s = 1 return $p/t", "c", "where"),
        ('for $p in stream("a")/r/i order by $p/s return $p/t', "s", "order by"),
    ],
)
def test_a_foundation_path_that_is_dropped_aborts(query: str, at: str, word: str) -> None:
    """The reason names accent, operator and path (LAWS 4.6)."""
    with pytest.raises(Aborted) as caught:
        ask(query, drop(at, "x = 5"))
    assert str(caught.value).startswith(f"'{word}' cannot do without '")
    assert f"the accent on '{at}' where x = 5 drops it" in str(caught.value)


def test_others_go_on() -> None:
    """A path that is only returned or aggregated, or not looked at, is no foundation."""
    assert ask(f"{ROUND}where $p/s = 1 return $p/t", drop("t"), drop("x")) == ["drop ."]
    assert ask(f"{ROUND}where $p//s = 1 return $p/t", drop("c"), drop("x")) == []
    assert ask(f"{ROUND}order by $p/s return $p/t", drop("t")) == []


def test_unknown_paths_abort_who_reads_them() -> None:
    """LAWS 4.5: an accent that had to be refused leaves its path unknown; the reason is told."""
    outlet = Outlet(lineage(f"{ROUND}where $p/s = 1 return $p/t"))
    outlet.doubt(0, path("x"), "it is so")
    with pytest.raises(Aborted, match="the query reads 't', which is unknown from here on: it is so"):
        outlet.doubt(0, path("t"), "it is so")
    with pytest.raises(Aborted, match="'where' cannot do without 's'"):
        outlet.doubt(0, path("s"), "it is so")
    Outlet(lineage(f"{WINDOW}return <n>{{count($w)}}</n>")).doubt(0, path("x"), "it is so")


# --- the wire ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "accent",
    [
        Accent(parse_description(""), Alter(Path(()), parse_map(CELSIUS)), HERE),
        Accent(parse_description(". > 3 and not(c/@u = 'F')"), Alter(path("t"), parse_map(". + 1")), HERE),
        add("c/p", "s = 2 or s = 3"),
        drop("@id"),
    ],
)
def test_accents_of_answers_can_be_read_again(accent: Accent) -> None:
    """What stands in an answer is an accent of the stream that the answer is; `.` is an item's own value."""
    text = accent_text(accent)
    assert text.startswith('<s:accent xmlns:s="urn:anabranch:stream"')
    assert element_of(parse_item(text.encode(), Limits()), HERE) == accent


def test_an_item_that_is_a_value_can_evolve() -> None:
    """The answers of `return $p/t`, registered as a stream: `.` is altered and dropped like any path."""
    evolution = Evolution()
    assert evolution.apply(Accent(EVERYTHING, Alter(Path(()), parse_map(CELSIUS)), HERE)) is None
    assert [str(each) for each in evolution.units(item("<t>25</t>").tree).values()] == [TO_CELSIUS]
    assert evolution.apply(Accent(EVERYTHING, Drop(Path(())), HERE)) is None
    assert evolution.dropped(item("<t>25</t>").tree) == Path(())
    assert evolution.dropped(item("<t/>").tree) is None
    with pytest.raises(StreamError):
        Path.parse(".")


# --- the square -------------------------------------------------------------------------------------------


@pytest.fixture
def exact_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams whose values stay short decimals."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)


@pytest.mark.mass
@pytest.mark.usefixtures("exact_maps")
@pytest.mark.parametrize("query", [item_query, window_query, join_query])
def test_queries_commute_with_canonisation(query: Callable[[Random], str]) -> None:
    """canonical(query(S)) = query(canonical(S)) for random queries over random accented streams (LAWS 4.1)."""
    came = 0
    for seed in some(range(25)):
        across, down, accents = square(seed, query)
        assert across == down, seed
        came += accents
    assert came > enough(7)


@pytest.mark.mass
@pytest.mark.usefixtures("exact_maps")
def test_queries_let_out_what_the_operators_do() -> None:
    """A query that selects and projects answers what Select and Project of the algebra answer, accents included."""
    came = 0
    for seed in range(15):
        random = Random(seed)
        kept = random.sample(["s", "t", "x", "p"], random.randint(1, 3))
        where = random.choice(("t > 10", "s = 1", "x <= 20"))
        asked = Asked(f"{ROUND}where $p/{where} return <i>{''.join(f'{{$p/{each}}}' for each in kept)}</i>")
        elements = [
            each
            for each in stream(random, ["s", "t", "x"], 12, comes=True, goes=True)
            if isinstance(each, Accent | Item)
        ]
        for each in elements:
            asked.feed("a", each)
        mine = [
            show(piece)
            for each in asked.answer
            for piece in (
                [each]
                if isinstance(each, Accent)
                else [Item(value, HERE) for value in each if isinstance(value, Element)]
            )
        ]
        select = Apply(Select(parse_description(where)), (StreamSource("a"),))
        plan = Apply(Project(frozenset(map(path, kept))), (select,))
        theirs = [show(each) for each in run(plan, [("a", each) for each in elements])]
        assert [sorted(each.split()) for each in mine] == [sorted(each.split()) for each in theirs], seed
        came += sum(isinstance(each, Accent) for each in asked.answer)
    assert came > 10


def test_items_that_nothing_touches_are_left_alone() -> None:
    """Without an accent that has come out, `forward` gives the very values."""
    outlet = Outlet(lineage(f"{ROUND}return $p"))
    values: Values = [item("t=1").tree]
    assert outlet.forward(values) is values
