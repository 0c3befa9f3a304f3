from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

import papers
from anabranch.errors import QueryError
from anabranch.language import Checked, ast, check, parse, print_query
from anabranch.language.signatures import SIGNATURES
from anabranch.law.functions import BUILTINS
from anabranch.law.library.special import SPECIAL
from anabranch.stream.photons import photons_dtd
from anabranch.stream.schema import Schema

PHOTONS: Mapping[str, Schema | None] = {"photons": Schema.from_dtd(photons_dtd())}
LOOP = "for $p in stream('photons')/photons/photon "


def checked(text: str, inputs: Mapping[str, Schema | None] | None = None, functions: Collection[str] = ()) -> Checked:
    return check(parse(text), text, inputs=inputs, functions=functions)


def failure(
    text: str, inputs: Mapping[str, Schema | None] | None = None, functions: Collection[str] = ()
) -> tuple[str | None, str, str]:
    """Code, message and marked text of the error that a query ends in."""
    with pytest.raises(QueryError) as caught:
        checked(text, inputs, functions)
    error = caught.value
    return error.code, error.message, text[error.span.start : error.span.end]


# --- names ------------------------------------------------------------------------------------------------

UNKNOWN_NAMES = (
    ("$x", "XPST0008", "no variable is called '$x'", "$x"),
    ("for $x in $x return 1", "XPST0008", "no variable is called '$x'", "$x"),
    ("let $x := 1 return $y", "XPST0008", "no variable is called '$y'", "$y"),
    ("(let $x := 1 return $x), $x", "XPST0008", "no variable is called '$x'", "$x"),
    ("some $x in 1 satisfies $y", "XPST0008", "no variable is called '$y'", "$y"),
    ("some $x in $y, $y in 1 satisfies $x", "XPST0008", "no variable is called '$y'", "$y"),
    ("let $x := 1 return <a b='{ $c }'/>", "XPST0008", "no variable is called '$c'", "$c"),
    ("declare function local:f($x) { $y }; 1", "XPST0008", "no variable is called '$y'", "$y"),
    ("(let $y := 1 return 2), count($y)", "XPST0008", "no variable is called '$y'", "$y"),
    ("foo(1)", "XPST0017", "no function is called 'foo()'", "foo(1)"),
    ("local:f()", "XPST0017", "no function is called 'local:f()'", "local:f()"),
    ("true(1)", "XPST0017", "'true()' takes 0 arguments, not 1", "true(1)"),
    ("avg()", "XPST0017", "'avg()' takes 1 arguments, not 0", "avg()"),
    ("count(1, 2)", "XPST0017", "'count()' takes 1 arguments, not 2", "count(1, 2)"),
    ("concat('a')", "XPST0017", "'concat()' takes 2 or more arguments, not 1", "concat('a')"),
    ("substring('a')", "XPST0017", "'substring()' takes 2 or more arguments, not 1", "substring('a')"),
    (
        "declare function local:f($x) { $x }; local:f()",
        "XPST0017",
        "'local:f()' takes 1 arguments, not 0",
        "local:f()",
    ),
    (
        "declare function local:f() { 1 }; declare function local:f() { 2 }; 1",
        "XQST0034",
        "function 'local:f' is declared twice",
        "local:f",
    ),
    ("declare function p:f() { 1 }; 1", "XPST0081", "prefix 'p' is not declared", "p:f"),
    ("stream('s')/p:a", "XPST0081", "prefix 'p' is not declared", "p:a"),
    ("stream('s')/@p:a", "XPST0081", "prefix 'p' is not declared", "@p:a"),
    ("stream('s')/p:*", "XPST0081", "prefix 'p' is not declared", "p:*"),
    ("<p:a/>", "XPST0081", "prefix 'p' is not declared", "<p:a/>"),
    ("<a p:b=''/>", "XPST0081", "prefix 'p' is not declared", "<a p:b=''/>"),
    ("<a xmlns:p='u'/>, <p:a/>", "XPST0081", "prefix 'p' is not declared", "<p:a/>"),
    ("a", "XPDY0002", "there is no context item here", "a"),
    (".", "XPDY0002", "there is no context item here", "."),
    ("/a", "XPDY0002", "there is no context item here", "/"),
    ("string()", "XPDY0002", "there is no context item here", "string()"),
    ("declare function local:f() { a }; 1", "XPDY0002", "there is no context item here", "a"),
    ("stream('s')/a#1.5", None, "version '1.5' is no whole number", "1.5"),
)


@pytest.mark.parametrize(("text", "code", "message", "marked"), UNKNOWN_NAMES, ids=[row[0] for row in UNKNOWN_NAMES])
def test_what_is_not_known_is_an_error(text: str, code: str | None, message: str, marked: str) -> None:
    """A variable, function, prefix or context item that is not there is named, with its place."""
    assert failure(text) == (code, message, marked)


KNOWN_NAMES = (
    "for $x in (1, 2), $y in ($x, 3) return $x + $y",
    "let $x := 1, $x := $x + 1 return $x",
    "every $x in 1, $y in $x satisfies $y = $x",
    "declare namespace p = 'u'; stream('s')/p:a/@p:b",
    "<a xmlns:p='u'>{ <p:b p:c=''/> }</a>",
    "<p:a xmlns:p='u'/>",
    "stream('s')/*:a/@xml:lang",
    "declare namespace p = 'u'; declare function p:f($x) { $x }; p:f(1)",
    "declare function local:g() { local:f() }; declare function local:f() { 1 }; local:g()",
    "fn:count((1, 2))",
    "stream('s')/a[string() = 'x']",
    "stream('s')/a[. = 'x']",
)


@pytest.mark.parametrize("text", KNOWN_NAMES)
def test_what_is_known_passes(text: str) -> None:
    """Names that are bound, declared or built in pass without a warning."""
    assert checked(text).warnings == ()


def test_registered_functions_are_known() -> None:
    """A function that the user registers may be called, with any number of arguments."""
    assert checked("distance(1, 2)", functions=["distance"]).query == parse("distance(1, 2)")
    assert failure("distanse(1)", functions=["distance"])[:2] == ("XPST0017", "no function is called 'distanse()'")


def test_the_library_is_what_the_evaluator_has() -> None:
    """Every function that passes the checks can be evaluated, and the other way round."""
    assert set(SIGNATURES) == {*BUILTINS, *SPECIAL}


# --- inputs -----------------------------------------------------------------------------------------------


def test_inputs_are_listed() -> None:
    """A checked query says which streams and documents it reads, each once, in order."""
    found = checked("stream('b')/r/i, stream('a')/r/i, stream('b')/r/j, doc('d')/x")
    assert (found.streams, found.documents) == (("b", "a"), ("d",))


def test_unknown_inputs_are_errors() -> None:
    """With the inputs given, another name is an error that lists them."""
    with pytest.raises(QueryError) as caught:
        checked("stream('energies')/a", {"photons": None, "x": None})
    assert (caught.value.code, caught.value.message) == ("FODC0002", "no input is called 'energies'")
    assert caught.value.hint == "the inputs given are: 'photons', 'x'"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('stream("fotons")/a/b', "did you mean 'photons'?"),
        ('for $p in stream("photons")/a/b return cuont($p)', "did you mean 'count'?"),
        ('for $photon in stream("photons")/a/b return $foton', "did you mean '$photon'?"),
    ],
)
def test_a_misspelt_name_is_told_what_it_may_mean(text: str, hint: str) -> None:
    """An input, a function or a variable of nearly the same letters is the hint."""
    with pytest.raises(QueryError) as caught:
        check(parse(text), text, inputs={"photons": None})
    assert caught.value.hint == hint


def test_one_input_is_the_context_item() -> None:
    """With one input, a query's own `.` and `/` mean that input."""
    one: Mapping[str, Schema | None] = {"s": None}
    for text in ("./a/b", "/a/b", "a/b"):
        assert print_query(checked(text, one).query) == 'stream("s")/a/b'
    assert print_query(checked("//b[./c]", one).query) == 'stream("s")//b[./c]'
    assert checked("./a#1/b", one).streams == ("s",)


def test_of_several_inputs_none_is_the_context_item() -> None:
    """With several inputs `.` says nothing."""
    assert failure("./a", {"s": None, "t": None}) == ("XPDY0002", "there is no context item here", ".")


def test_nested_loops_become_one() -> None:
    """Loops that are directly nested are one join, in whatever way they are written."""
    nested = "for $x in stream('s')/r/i|count 2| return for $y in stream('t')/r/i|count 2| return $x"
    flat = "for $x in stream('s')/r/i|count 2| for $y in stream('t')/r/i|count 2| return $x"
    assert checked(nested).query == parse(flat)
    conditions = "for $x in (1, 2) where $x = 1 return for $y in (3, 4) where $y = 3 return $x"
    assert checked(conditions).query == parse("for $x in (1, 2) for $y in (3, 4) where $x = 1 and $y = 3 return $x")


@pytest.mark.parametrize(
    "text",
    [
        "for $x in (1, 2) order by $x return for $y in (3, 4) return $x",
        "for $x in (1, 2) return for $y in (3, 4) order by $y return $x",
        "for $x in (1, 2) return for $x in (3, 4) return $x",
        "for $x in (1, 2) where $x = 1 return let $y := 1 div 0 return $y",
    ],
)
def test_nested_loops_stay_where_joining_them_would_show(text: str) -> None:
    """An order holds for its own loop, names hide others, and a condition keeps errors away."""
    assert checked(text).query == parse(text)


# --- schemas ----------------------------------------------------------------------------------------------

IN_CONDITIONS = (
    (LOOP + "where $p/energy > 1 return $p", "energy"),
    (LOOP + "where $p/coord/gal/l > 1 return $p", "gal"),
    (LOOP + "where $p/@id = 1 return $p", "@id"),
    (LOOP + "where exists($p/energy) return $p", "energy"),
    (LOOP + "return if ($p/energy > 1) then $p else ()", "energy"),
    (LOOP + "order by $p/energy return $p", "energy"),
    (LOOP + "return <a>{ $p/coord[gal] }</a>", "gal"),
    (LOOP + "return some $x in $p/energy satisfies $x > 1", "energy"),
    (LOOP + "return every $x in $p/coord satisfies $x/gal", "gal"),
    (LOOP + "let $e := $p/energy where $e > 1 return $p", "$e"),
    (LOOP + "let $e := $p/energy order by $e return $p", "$e"),
    (LOOP + "let $e := $p/energy return if ($e) then 1 else 2", "$e"),
    ("stream('photons')/photons/photon[energy > 1]", "energy"),
    ("for $w in stream('photons')/photons/photon|time diff 60| return count($w)", "time"),
    ("for $w in stream('photons')/photons/photon|/photons/photon/time diff 60| return count($w)", "time"),
    ("for $w in stream('photons')/photons/photon[energy > 1]|det_time diff 60| return count($w)", "energy"),
)


@pytest.mark.parametrize(("text", "marked"), IN_CONDITIONS, ids=[text for text, _ in IN_CONDITIONS])
def test_a_condition_may_only_use_paths_that_the_schema_has(text: str, marked: str) -> None:
    """Where a path decides what is answered, one that the schema lacks is an error at that step."""
    code, message, found = failure(text, PHOTONS)
    assert (code, found) == ("XPST0005", marked)
    assert message.startswith("the schema has no '")


RETURNED = (
    (LOOP + "return $p/energy", "energy", "energy"),
    (LOOP + "return <a>{ $p/coord/gal/l }</a>", "coord/gal", "gal"),
    (LOOP + "return <a b='{ $p/@id }'/>", "@id", "@id"),
    (LOOP + "let $e := $p/energy return $e", "energy", "energy"),
    ("for $w in stream('photons')/photons/photon|count 2| return avg($w/energy)", "energy", "energy"),
    ("stream('photons')/photons/photon/energy", "energy", "energy"),
)


@pytest.mark.parametrize(("text", "path", "marked"), RETURNED, ids=[row[0] for row in RETURNED])
def test_a_path_that_is_only_returned_is_a_warning(text: str, path: str, marked: str) -> None:
    """What the schema lacks may be added later, so returning it is allowed, with one warning."""
    (warning,) = checked(text, PHOTONS).warnings
    assert warning.message == f"the schema has no '{path}'; nothing is returned there unless it is added"
    assert text[warning.span.start : warning.span.end] == marked


WRONG_ROOTS = (
    ("stream('photons')/photon", "photon"),
    ("stream('photons')/photons/event", "event"),
    ("for $p in stream('photons')/fotons/photon return $p", "fotons"),
    ("for $p in stream('photons')/photons/event return $p/en", "event"),
)


@pytest.mark.parametrize(("text", "marked"), WRONG_ROOTS)
def test_a_wrong_root_or_item_is_an_error_everywhere(text: str, marked: str) -> None:
    """A root or item that the schema lacks can never be added, so it is an error even where it is returned."""
    assert failure(text, PHOTONS) == ("XPST0005", f"the schema has no '{marked}'", marked)


IN_SCHEMA = (
    *papers.SHARING.values(),
    "stream('photons')//ra",
    "stream('photons')/*/photon/*/cel/ra",
    "stream('photons')/photons/photon[coord/cel/ra/text() > 1]",
    "stream('photons')/photons/photon[coord/cel/../det/dx > 1]",
    "stream('photons')/photons/photon[.//whatever]",
    LOOP + "for $c in $p/coord where $c/cel/ra > 1 return $c/det",
    "for $w in stream('photons')/photons/photon|/photons/photon/det_time diff 60| return <a/>",
)


@pytest.mark.parametrize("text", IN_SCHEMA)
def test_paths_of_the_schema_pass(text: str) -> None:
    """What the schema has, and what it cannot tell, passes without a warning."""
    inputs = dict.fromkeys(("photons", "photon1", "photon2"), PHOTONS["photons"])
    assert checked(text, inputs).warnings == ()


# --- windows ----------------------------------------------------------------------------------------------

BAD_WINDOWS = (
    ("count 0", "'0' is no size of a window", "0"),
    ("count 2 step 0", "'0' is no size of a window", "0"),
    ("count 1.5", "'1.5' is no whole number of items", "1.5"),
    ("count 2 step 0.5", "'0.5' is no whole number of items", "0.5"),
    ("count 1e2", "'1e2' is no whole number of items", "1e2"),
    ("t diff 0.0", "'0.0' is no size of a window", "0.0"),
    ("t diff 1e2", "'1e2' is no size of a window", "1e2"),
    ("t diff 1 step 0", "'0' is no size of a window", "0"),
    ("t diff PT0S", "'PT0S' is no size of a window", "PT0S"),
    ("t gap 0", "'0' is no size of a window", "0"),
    ("t gap 5 by u[1]", "'u[1]' is no plain path", "u[1]"),
    ("t diff PT10001S step PT1S", "each item would be in more than 10,000 windows", "|t diff PT10001S step PT1S|"),
    ("t diff PT1M step 1", "each item would be in more than 10,000 windows", "|t diff PT1M step 1|"),
    ("t diff 10001 step 1", "each item would be in more than 10,000 windows", "|t diff 10001 step 1|"),
    ("t[u] diff 1", "'t[u]' is no plain path", "t[u]"),
    ("t//u diff 1", "'t//u' is no plain path", "t//u"),
    ("/r/j/t diff 1", "'/r/j/t' is not below '/r/i'", "/r/j/t"),
    ("/t diff 1", "'/t' is not below '/r/i'", "/t"),
)


@pytest.mark.parametrize(("window", "message", "marked"), BAD_WINDOWS, ids=[row[0] for row in BAD_WINDOWS])
def test_windows_have_sizes_and_references(window: str, message: str, marked: str) -> None:
    """A size is a number above nothing, whole for counts; a reference is a plain path below the item."""
    assert failure(f"for $w in stream('s')/r/i|{window}| return count($w)")[1:] == (message, marked)


GOOD_WINDOWS = ("count 1", "count 2 step 5", "t diff .5", "t diff 10000 step 1", "@t diff 1", "a/t diff 1 step 0.1")


@pytest.mark.parametrize("window", [*GOOD_WINDOWS, "/r/i/t diff 1", "./t diff 1"])
def test_windows_may_have_any_sensible_size(window: str) -> None:
    """Steps may be smaller or larger than the window, sizes may be fractions, references relative or absolute."""
    assert checked(f"for $w in stream('s')/r/i|{window}| return count($w)").streams == ("s",)


INTERVALS = (
    "$x/t >= $y/t - 10 and $x/t <= $y/t + 10",
    "$x/t - $y/t <= 10 and $y/t - $x/t <= 10",
    "$y/t + 10 >= $x/t and $x/t + 10 >= $y/t",
    "$x/t > $y/t and $x/t < $y/t + 5",
    "-10 <= $x/t - $y/t and $x/t - $y/t <= 10",
    "0 <= $x/t - $y/t + 3 and -$x/t + $y/t >= -1",
    "$x/a = $y/a and ($x/t >= $y/t - 1 and $x/t <= $y/t + 1)",
    "$x/c/t <= $y/@t + 1 and $x/c/t >= $y/@t",
)


@pytest.mark.parametrize("where", INTERVALS)
def test_an_interval_condition_bounds_a_join(where: str) -> None:
    """Two streams without windows may be joined where both bounds are there, in any linear writing."""
    text = f"for $x in stream('s')/r/i, $y in stream('t')/r/i where {where} return <p>{{ $x, $y }}</p>"
    assert checked(text).streams == ("s", "t")


def test_intervals_may_tie_three_streams_in_a_chain() -> None:
    """Each stream need only be tied to one of the others."""
    where = " and ".join(f"${a}/t >= ${b}/t - 1 and ${a}/t <= ${b}/t + 1" for a, b in ("xy", "zy"))
    fors = ", ".join(f"${name} in stream('{name}')/r/i" for name in "xyz")
    assert checked(f"for {fors} where {where} return $x").streams == ("x", "y", "z")


def test_a_tree_made_by_hand_can_be_checked() -> None:
    """Without text, errors show the printed query."""
    with pytest.raises(QueryError) as caught:
        check(ast.Query(ast.Variable("x")))
    assert caught.value.text == "$x"


@pytest.mark.parametrize(
    ("query", "settled"),
    [
        (
            'for $x in stream("s")/r/i |count 2| let $y := $x/b for $y in stream("t")/r/i |count 2| return ($x, $y)',
            'for $x in stream("s")/r/i|count 2| let $y.1 := $x/b for $y in stream("t")/r/i|count 2| return ($x, $y)',
        ),
        (
            'for $x in stream("s")/r/i let $x := $x/b let $x := $x + 1 return $x',
            'for $x.1 in stream("s")/r/i let $x.2 := $x.1/b let $x := $x.2 + 1 return $x',
        ),
        (
            'for $x in stream("s")/r/i let $y := $x/b let $z := (some $y in $y/c satisfies $y = 2, '
            "for $y in $y return $y) for $y in $x/a return ($y, $z)",
            'for $x in stream("s")/r/i let $y.1 := $x/b let $z := (some $y in $y.1/c satisfies $y = 2, '
            "for $y in $y.1 return $y) for $y in $x/a return ($y, $z)",
        ),
    ],
)
def test_a_name_that_is_taken_again(query: str, settled: str) -> None:
    """Each clause has a name of its own, so a join may bind its items in any order."""
    assert check(parse(query), query).query == parse(settled)
