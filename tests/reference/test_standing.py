from __future__ import annotations

from fractions import Fraction

import pytest

import papers
from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Kind, Standing, declared_bounds, ordered_by_time, standing
from anabranch.stream.path import Path

FUNCTIONS: dict[str, PythonFunction] = {"twice": lambda x: x * 2}


def taken_apart(query: str) -> Standing:
    return standing(check(parse(query), query, functions=tuple(FUNCTIONS)).query, FUNCTIONS, query)


KINDS: tuple[tuple[Kind, str], ...] = (
    ("items", "for $p in stream('s')/r/i return $p"),
    ("items", "stream('s')/r/i[a = 2]"),
    ("items", "<o>{ stream('s')//a }</o>"),
    ("items", "let $n := 2 for $p in stream('s')/r/i where $p/a >= $n return <x/>"),
    ("items", "for $p in stream('s')/r/i return string($p/a)"),
    ("items", "let $v := doc('d')/r/i/n for $p in stream('s')/r/i where $p/n = $v return $p"),
    ("items", "for $p in stream('s')/r/i, $d in doc('d')/r/i return <x/>"),
    ("windows", "for $w in stream('s')/r/i|count 2| return <n>{ count($w) }</n>"),
    ("windows", "<o>{ for $w in stream('s')/r/i[a > 1]|t diff 2| let $a := avg($w/a) return $a }</o>"),
    ("windows", "let $n := 1 for $w in stream('s')//i|t diff 2| for $x in $w where $x/a > $n return $x"),
    ("step join", "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|count 2| return <p/>"),
    ("step join", "for $x in stream('s')/r/i|t diff 2| for $y in stream('s')/r/i|count 2| return $x/t"),
    (
        "interval join",
        "for $x in stream('s')/r/i, $y in stream('t')/r/i where $x/t >= $y/t and $x/t <= $y/t + 1 return $x",
    ),
)


@pytest.mark.parametrize(("kind", "query"), KINDS)
def test_kinds(kind: Kind, query: str) -> None:
    """The `for` clauses over streams say what a piece of the answer is made of."""
    found = taken_apart(query)
    assert (found.kind, found.reason) == (kind, None)


@pytest.mark.parametrize(
    ("query", "kind"), [(papers.Q1, "windows"), (papers.Q3, "items"), (papers.Q4, "items"), (papers.Q5, "step join")]
)
def test_the_papers_queries(query: str, kind: Kind) -> None:
    """Queries of the sharing paper: an aggregate over windows, two selections, a join."""
    assert taken_apart(query).kind == kind


# --- what has to wait -------------------------------------------------------------------------------------

WAITING = (
    ("1 + 1", "a query that reads no stream"),
    ("<o/>", "a query that reads no stream"),
    ("doc('d')/r", "a query that reads no stream"),
    ("<o>{ doc('d')/r }{ stream('s')/r/i }</o>", "doc() outside of what flows"),
    (
        "declare function local:d() { doc('d')/r }; <o>{ local:d() }{ stream('s')/r/i }</o>",
        "doc() outside of what flows",
    ),
    ("for $p in stream('s')/r/i order by $p/a return $p", "'order by' over a stream"),
    ("for $w in stream('s')/r/i|count 2| order by count($w) return <w/>", "'order by' over a stream"),
    ("count(stream('s')/r/i)", "'count()' over a whole stream"),
    ("<o>{ avg(stream('s')/r/i/a) }</o>", "'avg()' over a whole stream"),
    ("<o n='{ stream('s')/r/i/a }'/>", "a stream inside an attribute"),
    ("<o>{ stream('s')/r/i }{ stream('s')/r/i }</o>", "reading streams in several places of a query"),
    ("stream('s')/r/i, stream('t')/r/i", "reading streams in several places of a query"),
    ("let $s := stream('s')/r/i return $s", "a 'let' that holds a whole stream"),
    ("let $n := count(stream('s')/r/i) for $p in stream('s')/r/i return $p", "a clause like this before"),
    ("let $n := count(stream('s')/r/i) for $w in stream('s')/r/i|count 2| return $w", "a clause like this before"),
    ("for $n in (1, 2) for $p in stream('s')/r/i return $p", "a clause like this before"),
    ("for $n in (1, 2) for $w in stream('s')/r/i|count 2| return $w", "a clause like this before"),
    ("if (stream('s')/r/i/a) then <x/> else <y/>", "a stream inside this expression"),
    ("{ 'n': count(stream('s')/r/i) }", "an object over a whole stream"),
    ("count(stream('s')/r/i) eq 2", "'eq' over a whole stream"),
    ("for $p in stream('s')/r/i return $p/a#1", "a question about the past"),
    ("stream('s')/r/i?[60]", "a question about the past"),
    ("some $p in stream('s')/r/i satisfies $p/a", "a stream inside this expression"),
    ("if (true()) then stream('s')/r/i else ()", "a stream that is not named by its path"),
    ("declare function local:s() { stream('s')/r/i }; for $p in local:s() return $p", "a stream that is not named by"),
    ("stream('s')", "a stream without a path"),
    ("stream('s')/r", "a look at the stream's root element"),
    ("stream('s')/r/@k", "a look at the stream's root element"),
    ("stream('s')/r[i/a > 1]/i", "a look at the stream's root element"),
    ("stream('s')[r]/r/i", "a look at the stream's root element"),
    ("for $w in stream('s')/r[@k]/i|count 2| return $w", "a look at the stream's root element"),
    ("for $p in stream('s')/r/i return $p/@id", "a result that may be an attribute"),
    ("for $p in stream('s')/r/i return $p/@id/.", "a result that may be an attribute"),
    ("for $p in stream('s')/r/i let $n := $p/@id return $n", "a result that may be an attribute"),
    ("for $p in stream('s')/r/i return if ($p/a) then $p else $p/@id", "a result that may be an attribute"),
    ("for $p in stream('s')/r/i for $q in ($p/a, $p/@id) return $q[. > 1]", "a result that may be an attribute"),
    (
        "declare function local:f($x) { $x//@id }; for $p in stream('s')/r/i return local:f($p)",
        "a result that may be an attribute",
    ),
    ("1, for $p in stream('s')/r/i return string($p/a)", "a value beside the values of a stream"),
    ("<o>{ for $w in stream('s')/r/i|count 1| return count($w), 'x' }</o>", "a value beside the values of a stream"),
    (
        "declare function local:n() { count(stream('s')/r/i) }; let $n := local:n() "
        "for $p in stream('s')/r/i return <x>{ $n }</x>",
        "a clause like this before",
    ),
)


@pytest.mark.parametrize(("query", "construct"), WAITING)
def test_other_queries_wait_for_the_end(query: str, construct: str) -> None:
    """The reason names the construct, and its place is in the query's own text."""
    found = taken_apart(query)
    assert (found.kind, found.hole, found.opening, found.closing) == ("whole", None, "", "")
    assert found.reason is not None
    assert found.reason.message.startswith(construct)
    assert found.reason.text == query
    assert 0 <= found.reason.span.start < found.reason.span.end <= len(query)
    assert found.reason.hint


@pytest.mark.parametrize(
    "query",
    [
        "<o n='{ 1 div 0 }'>{ stream('s')/r/i }</o>",
        "let $n := 1 div 0 for $p in stream('s')/r/i return <x>{ $n }</x>",
        "let $n := 1 div 0 for $w in stream('s')/r/i|count 2| return <x/>",
    ],
)
def test_what_fails_before_all_items_fails_at_once(query: str) -> None:
    """It belongs to no item, so the query has no answer."""
    with pytest.raises(DynamicError) as caught:
        taken_apart(query)
    assert caught.value.code == "FOAR0001"


# --- the parts --------------------------------------------------------------------------------------------


def test_the_frame() -> None:
    """What stands around the pieces, and the answer without any."""
    found = taken_apart("<o k='1'><b/>{ stream('s')/r/i }x</o>")
    assert (found.opening, found.closing, found.empty) == ('<o k="1"><b/>', "x</o>", '<o k="1"><b/>x</o>')


def test_streams_in_the_order_of_first_mention() -> None:
    """It decides ties between them; each is named once, and documents apart."""
    fors = ", ".join(f"${name} in stream('{stream}')/r/i|count 2|" for name, stream in ("xt", "ys", "zt"))
    found = taken_apart(f"for {fors}, $d in doc('d')/r return $x/a")
    assert (found.streams, found.documents) == (("t", "s"), ("d",))


def test_the_clauses() -> None:
    """Those before the streams, those over streams, and the others."""
    found = taken_apart(
        "let $n := 1 for $x in stream('s')/r/i|count 2| let $a := $x/a for $y in stream('t')/r/i|count 2| "
        "for $b in $y/b return <p>{ $n, $a, $b }</p>"
    )
    assert [clause.variable for clause in found.before] == ["n"]
    assert [clause.variable for clause in found.fors] == ["x", "y"]
    assert [clause.variable for clause in found.others] == ["a", "b"]


SEPARATE = (
    ("$p", True),
    ("($p/a, <x>{ 1 }</x>)", True),
    ("$p/a/text()", True),
    ("$p/node()", True),
    ("local:f($p)", True),
    ("if ($p/a) then $p else ()", True),
    ("string($p/a)", False),
    ("($p/a, 1)", False),
    ("if ($p/a) then $p else 'x'", False),
    ("twice($p/a)", False),
    ("local:g($p)", False),
    ("$p/a + 1", False),
    ("$p/a = 1", False),
    ("for $n in (1, 2) return $n", False),
)


@pytest.mark.parametrize(("result", "separate"), SEPARATE)
def test_whether_pieces_may_stand_side_by_side(result: str, separate: bool) -> None:
    """Nodes may; values want a space between them."""
    functions = "declare function local:f($x) { <f>{ $x }</f> }; declare function local:g($x) { ($x/a, count($x)) }; "
    assert taken_apart(f"{functions}for $p in stream('s')/r/i return {result}").separate is separate


def test_functions_that_call_each_other_twice_cost_little() -> None:
    """Each is looked at once for what it is given."""
    calls = "".join(
        f"declare function local:f{n}($x) {{ (local:f{n - 1}($x), local:f{n - 1}($x)) }}; " for n in range(1, 30)
    )
    query = f"declare function local:f0($x) {{ $x }}; {calls}for $p in stream('s')/r/i return local:f29($p)"
    assert taken_apart(query).separate


def test_a_hole_in_a_namespace_is_not_plain() -> None:
    """There, names mean something else, or pieces are written otherwise."""
    assert taken_apart("<o>{ stream('s')/r/i }</o>").plain_hole is not None
    assert taken_apart("<o xmlns='u'>{ stream('s')/r/i }</o>").plain_hole is None
    assert taken_apart("declare default element namespace 'u'; stream('s')/r/i").plain_hole is None


# --- interval joins by time -------------------------------------------------------------------------------

BY_TIME = (
    ("$x/t >= $y/t - 10 and $x/t <= $y/t + 10", {"s": "t", "u": "t"}, True),
    ("$x/a/t >= $y/@t - 10 and $x/a/t <= $y/@t + 10", {"s": "a/t", "u": "@t"}, True),
    ("$x/t >= $y/t - 10 and $x/t <= $y/t + 10 and $x/a = $y/a", {"s": "t", "u": "t"}, True),
    ("$x/t >= $y/t - 10 and $x/t <= $y/t + 10", {"s": "t"}, False),
    ("$x/t >= $y/t - 10 and $x/t <= $y/t + 10", {"s": "t", "u": "a"}, False),
    ("$x/t[. > 1] >= $y/t - 10 and $x/t[. > 1] <= $y/t + 10", {"s": "t", "u": "t"}, False),
    ("$x/t >= $y/t and $x/a >= $y/a and $x/a <= $y/a + 1", {"s": "t", "u": "t"}, False),
)


@pytest.mark.parametrize(("where", "times", "ordered"), BY_TIME)
def test_interval_joins_that_compare_declared_times(where: str, times: dict[str, str], ordered: bool) -> None:
    """Only they can be answered before the streams end."""
    found = taken_apart(f"for $x in stream('s')/r/i, $y in stream('u')/r/i where {where} return <p/>")
    declared: dict[str, Path | None] = {name: Path.parse(path) for name, path in times.items()}
    assert ordered_by_time(found, declared) is ordered


def test_the_bounds_of_an_interval_join() -> None:
    """How far apart times may lie, in each direction."""
    where = "$x/t - $y/t <= 2.5 and $y/t <= $x/t + 10"
    found = taken_apart(f"for $x in stream('s')/r/i, $y in stream('u')/r/i where {where} return <p/>")
    bounds = declared_bounds(found, {"s": Path.parse("t"), "u": Path.parse("t")})
    assert [(each.left.variable, each.right.variable, each.most) for each in bounds] == [
        ("x", "y", Fraction(5, 2)),
        ("y", "x", Fraction(10)),
    ]
