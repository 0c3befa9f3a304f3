"""What is known of a query's output from its text."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algebra.accented import path
from anabranch.runtime.evolution.lineage import DEEP, Origin, leads
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path
from evolving.outlets import ROUND, lineage, taken

WINDOW = 'for $w in stream("a")/r/i |ts diff 10| '
ITSELF = Path(())


def places(query: str, at: str, input: int = 0) -> list[str]:
    """Where the values of an input's path stand in the output, as far as accents can speak of them."""
    found = lineage(query).targets(input, Alter(path(at), parse_map(". * 2")))
    return [str(each.at) for each in found]


@pytest.mark.parametrize(
    ("result", "where"),
    [
        ("$p/t", ["."]),
        ("$p", ["t"]),
        ("<r>{$p}</r>", ["i/t"]),
        ("<r>{$p/t}</r>", ["t"]),
        ("<r>{$p/*}</r>", ["t"]),
        ("<r>{$p/t/text()}</r>", ["."]),
        ('<r t="{$p/t}"/>', ["@t"]),
        ('<r t="{$p/t} F"/>', []),
        ("<r><a><b>{$p/t/text()}</b></a></r>", ["a/b"]),
        ("<r>{$p/t}<b>{data($p/t)}</b><c>{string($p/t)}</c></r>", ["t", "b", "c"]),
        ("<r><a>{$p/t}{$p/s}</a></r>", ["a/t"]),
        ("<r><a>{$p/t/text()}{$p/s}</a></r>", []),
        ("<r><a>{$p/t/text()}{$p/s/text()}</a></r>", []),
        ("<r>{for $x in $p/t return <a>{$x/text()}</a>}</r>", ["a"]),
        ("<r>{let $x := $p/t return <a>{$x * 2}</a>}</r>", ["a"]),
        ("<r><a>{max($p/t)}</a><b>{count($p/t)}</b></r>", ["a"]),
        ("<r><a>{max(($p/t, $p/s))}</a></r>", []),
        ("<r>{$p/t[. > 1]}</r>", ["t"]),
        ("<r>{$p//t}</r>", []),
        ("<r>{$p/s/../t}</r>", ["t"]),
        ("$p/t/text()", []),
        ("avg($p/t)", []),
        ("($p/t, <t>{$p/t/text()}</t>)", ["."]),
        ("($p/t, $p/s)", []),
        ("if ($p/s) then <r>{$p/t}</r> else <r><t>1</t></r>", []),
        ("<r>{doc('b')/x}{$p/t}</r>", []),
    ],
)
def test_where_values_stand(result: str, where: list[str]) -> None:
    """Copies, aggregates and affine computations have a place, unless something else may stand there, too."""
    assert places(f"{ROUND}return {result}", "t") == where


def test_rounds_over_the_items_of_a_window_are_of_one_item() -> None:
    """A text of all items of a window is no number; that of each is."""
    assert places(f"{WINDOW}return <o>{{$w/t/text()}}</o>", "t") == []
    assert places(f"{WINDOW}return for $x in $w return <o>{{$x/t/text()}}</o>", "t") == ["."]
    assert places(f"{WINDOW}return <o>{{$w/t}}</o>", "t") == ["t"]


def test_functions_are_looked_into() -> None:
    """A declared function is read with the arguments it is called with; one that the user registered is not known."""
    declared = "declare function local:f($x, $y) { <o><a>{$x/t/text()}</a>{$y}</o> }; "
    assert places(f"{declared}{ROUND}return local:f($p, $p/s)", "t") == ["a"]
    query = taken(f"{ROUND}return <o>{{max($p/t)}}</o>")
    assert lineage_of(query, registered=("max",)).targets(0, Alter(path("t"), parse_map(". * 2"))) == ()


def test_calls_of_calls_cost_no_more_than_the_query_is_long() -> None:
    """Each function calls the one before twice, so that the whole is 2 to the 15 parts, or as many paths."""
    for twice in ("({0}, {0})", "<o><a>{{{0}}}</a><b>{{{0}}}</b></o>"):
        functions = ["declare function local:f0($x) { <o>{$x/t}</o> };"]
        for k in range(1, 16):
            body = twice.format(f"local:f{k - 1}($x)")
            functions.append(f"declare function local:f{k}($x) {{ {body} }};")
        prolog = " ".join(functions)
        assert places(f"{prolog} {ROUND}return local:f2($p)", "t")
        assert places(f"{prolog} {ROUND}return local:f15($p)", "t") == []
        assert lineage(f"{prolog} {ROUND}return local:f15($p)").reads(0, path("t"))


@pytest.mark.parametrize(
    ("function", "by", "follows"),
    [
        (None, ". * 2 + 3", ". * 2 + 5"),
        ("avg", ". * 2 + 3", ". * 2 + 5"),
        ("sum", ". * 2", ". * 2 - 1"),
        ("sum", ". + 3", None),
        ("count", ". * 2", None),
        ("median", ". * 2 + 3", ". * 2 + 5"),
        ("stddev", ". * 2 + 3", ". * 2 - 1"),
        ("stddev", ". + 3", "."),
    ],
)
def test_what_a_computation_follows(function: str | None, by: str, follows: str | None) -> None:
    """`2 * f(x) + 1` under a change of x."""
    origin = Origin(0, path("t"), function, Fraction(2), Fraction(1))
    found = origin.follows(parse_map(by))
    assert (None if found is None else str(found)) == follows


def test_changes_that_could_not_be_read_again_are_not_followed() -> None:
    """The wire takes fractions of 200 digits; what goes beyond is absorbed."""
    origin = Origin(0, path("t"), None, Fraction(10**150), Fraction(1))
    assert origin.follows(parse_map(". * 2")) is not None
    assert origin.follows(parse_map(f". + {10**150}")) is None


def test_inputs_are_the_loops_over_streams() -> None:
    """A self-join has two; a query that waits for the end has one for each stream."""
    join = 'for $x in stream("a")/r/i |count 1| for $y in stream("a")/r/i |count 1| where $x/t < $y/t return $y/t'
    found = lineage(join)
    assert found.streams == (("a",), ("a",))
    assert found.pairs == (((0, path("t")), (1, path("t"))),)
    assert [(each.input, str(each.path), each.word) for each in found.needs] == [(0, "t", "join"), (1, "t", "join")]
    assert lineage('(stream("b")/r/i/t, stream("a")/r/i[s = 1]/t)').streams == (("b",), ("a",))
    union = 'for $x in stream("b")/r/i union stream("a")/r/i[s = 1] union stream("b")/r/i[t > 1] return $x/t'
    assert lineage(union).streams == (("b", "a"),)


def test_three_streams_compared_in_a_chain_are_coordinated_together() -> None:
    """`x/k = y/k` and `y/k = z/k` make one group."""
    found = lineage(
        'for $x in stream("a")/r/i |count 1| for $y in stream("b")/r/i |count 1| for $z in stream("a")/r/i |count 1| '
        "where $x/k = $y/k and $y/k = $z/k and $x/u = 1 return $x/t"
    )
    assert found.pairs == (((0, path("k")), (1, path("k")), (2, path("k"))),)


def test_a_waiting_query_says_nothing_of_its_output() -> None:
    """It is answered at the end, in the units of query start; what it cannot do without is known."""
    found = lineage(f"{ROUND}order by $p/s return $p/t")
    assert found.items == ()
    assert found.need(0, path("s")) is not None
    assert found.reads(0, path("t"))
    assert not found.reads(0, path("u"))


def test_a_key_is_foundation() -> None:
    """LAWS 4.6; as a result it is a value that was computed, and what is grouped are values of many items."""
    found = lineage(f"{WINDOW}for $o in $w group by $k := $o/s return <g k='{{$k}}'><a>{{avg($o/t)}}</a>{{$o/x}}</g>")
    needed = [(str(each.path), each.word) for each in found.needs]
    assert needed == [("ts", "|window|"), ("s", "group by")]
    sites = {at: [str(each.at) for each in found.targets(0, Alter(path(at), parse_map(". * 2")))] for at in "stx"}
    assert sites == {"s": [], "t": ["a"], "x": ["x"]}


def test_constants_of_conditions_do_not_count() -> None:
    """Thousands of subscriptions of a few shapes have a few lineages."""
    assert lineage(f"{ROUND}where $p/s = 1 return $p/t") == lineage(f"{ROUND}where $p/s = 'x' return $p/t")
    assert hash(lineage(f"{WINDOW}return <o>{{avg($w/t)}}</o>"))
    assert lineage(f"{WINDOW}return <o>{{avg($w/t)}}</o>") == lineage(
        'for $w in stream("a")/r/i |ts diff 99 step 3| return <o>{avg($w/t)}</o>'
    )


@pytest.mark.parametrize(
    ("result", "name"),
    [
        ("$p", "s"),
        ("<r>{$p/s}</r>", "s"),
        ("<r>{$p}</r>", "i/s"),
        ('<r k="{$p/s}">{$p/t}</r>', "@k"),
        ("<r><k>{$p/s/text()}</k></r>", "k"),
        ("<r>{$p/*}</r>", "s"),
        ("if ($p/t > 1) then <a>{$p/s}</a> else <b>{$p/s}</b>", "s"),
        ("for $c in $p/c return <r>{$c}{$p/s}</r>", "s"),
        ("<r>{$p/s}<k>{$p/s/text()}</k></r>", "s"),
        ("if ($p/t > 1) then <a>{$p/s}</a> else <b/>", None),
        ("$p/s", None),
        ("$p/s/text()", None),
        ("<r>{$p/s + 0}</r>", None),
        ("<r>{$p/s}<s>1</s></r>", None),
        ('<r k="{$p/s}">{$p/t/text()}</r>', None),
    ],
)
def test_what_descriptions_can_name(result: str, name: str | None) -> None:
    """What each output item has once, as a copy, and not inside another value."""
    found = lineage(f"{ROUND}return {result}").seen(0, path("s"))
    assert (None if found is None else str(found)) == name


def test_in_a_window_nothing_can_be_named() -> None:
    """What comes out there is of many items."""
    assert lineage(f"{WINDOW}return <w>{{$w/s}}</w>").seen(0, path("s")) is None
    assert lineage(f"{WINDOW}return $w").seen(0, path("s")) is None


def test_drops_and_adds_come_out_where_the_path_goes_and_comes() -> None:
    """Also by way of an element around it; not where something else is inside."""
    found = lineage(f"{ROUND}return <r>{{$p/c/t}}<a>{{max($p/c/t)}}</a><b>{{sum($p/c/t)}}</b></r>")
    for evolution in (Drop(path("c/t")), Add(path("c")), Drop(path("c"))):
        assert [str(each.at) for each in found.targets(0, evolution)] == ["t", "a"]
    assert [str(each.at) for each in found.targets(0, Alter(path("c"), parse_map(". * 2")))] == []
    mixed = lineage(f"{ROUND}return ($p/t, <o><a>{{$p/s/text()}}</a></o>)")
    assert mixed.targets(0, Drop(path("t"))) == ()


@pytest.mark.parametrize(
    ("look", "at", "leads_there"),
    [
        (("a", "b"), "a/b", True),
        (("a", "b"), "a", True),
        (("a", "b"), "a/b/c", True),
        (("a", "b"), "a/c", False),
        (("*", "b"), "x/b", True),
        (("*", "b"), "x/c", False),
        ((DEEP, "b"), "b", True),
        ((DEEP, "b"), "x/y/b/z", True),
        ((DEEP, "b"), "x", False),
        (("a", DEEP, "b"), "a", True),
        (("a", DEEP, "b"), "a/x", False),
        (("a", DEEP, "b"), "b", False),
        ((DEEP,), "x", True),
        ((), "x", True),
    ],
)
def test_which_paths_a_look_leads_to(look: tuple[str, ...], at: str, leads_there: bool) -> None:
    """Paths above and below count, but for what is above a step of any depth."""
    assert leads(Path(look), path(at)) is leads_there
