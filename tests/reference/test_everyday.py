"""Everyday XQuery by example: the cases of LAWS 2.8, and each construct once with what XQuery says it gives."""

from __future__ import annotations

import time

import pytest

from reference.asking import ask, error, leaves, stream

VALUES = (
    ("1 eq 1, 'a' lt 'b', () eq 1, 2 ge 3", "true true false"),
    ("1 to 3, 3 to 1, count(-2 to 2)", "1 2 3 5"),
    ("'a' || 1 || ()", "a1"),
    ("(1, 2, 3) ! (. * 2)", "2 4 6"),
    ("('a', 'b') ! concat(position(), ., last())", "1a2 2b2"),
    ("'a b' => upper-case() => tokenize(' ')", "A B"),
    ("7 idiv 2, -7 idiv 2, 7.5 idiv 2, 1e3 idiv 7", "3 -3 3 142"),
    ("2 * 7 idiv 4 * 3", "9"),
    ("switch (2) case 1 return 'a' case 2 case 3 return 'b' default return 'c'", "b"),
    ("switch (()) case () return 'none' default return 'some'", "none"),
    ("typeswitch (1.5) case xs:integer return 'i' case $d as xs:decimal return $d * 2 default return 'x'", "3"),
    ("1 instance of xs:integer, (1, 2) instance of xs:integer, () instance of xs:integer?", "true false true"),
    ("<a/> instance of element(a), <a/> instance of element(b), 'x' instance of item()+", "true false true"),
    ("(1 treat as xs:integer) + 1", "2"),
    ("try { 1 div 0 } catch err:FOAR0001 { 'zero' } catch * { 'other' }", "zero"),
    ("try { error((), 'mine') } catch * { $err:code, $err:description }", "err:FOER0000 mine"),
    ("element a { attribute b { 1, 2 }, 'x' }", '<a b="1 2">x</a>'),
    ("element { concat('a', 'b') } { text { 'x', 'y' }, comment { 'c' } }", "<ab>x y<!--c--></ab>"),
    ("<a>{ processing-instruction p { 'data' } }</a>", "<a><?p data?></a>"),
    ("document { <a/>, <b/> }/b/preceding-sibling::*", "<a/>"),
    ("for $x allowing empty at $i in () return <e at='{ $i }'>{ count($x) }</e>", '<e at="0">0</e>'),
    ("for $x in (1, 2) for $y allowing empty in ()[$x] return $x", "1 2"),
    ("for $x in (3, 1, 2) order by $x count $c return $x * 10 + $c", "11 22 33"),
    ("for $x in (1, 2, 3) where $x > 1 let $y := $x * 2 where $y < 6 return $y", "4"),
    ("let $d := <r><a/><b/><c/></r> return ($d/c | $d/a | $d/a)/name()", "a c"),
    ("let $d := <r><a/><b/></r> return ($d/* except $d/a, $d/* intersect $d/a)", "<b/><a/>"),
    ("let $d := <r><a/><b/></r> return ($d/a << $d/b, $d/a is $d/a, $d/a >> $d/b)", "true true false"),
    ("let $d := <r><a><x/></a><b><y/></b></r> return $d//x/following::*/name()", "b y"),
    ("let $d := <r><a><x/></a><b><y/></b></r> return $d//y/preceding::*[1]/name()", "x"),
    ("let $d := <r><a><x/></a></r> return $d//x/ancestor::*[1]/name()", "a"),
    (
        "let $d := <r><!--c-->{ processing-instruction p { 'd' } }t</r> return ($d/comment(), "
        "$d/processing-instruction(p), $d/text())",
        "<!--c--><?p d?>t",
    ),
    ("declare variable $n := 5; declare variable $m as xs:integer := $n + 1; $m * $n", "30"),
    ("declare variable $n := (1, 2); declare function local:f() { count($n) }; local:f()", "2"),
    ("declare function local:f($x as xs:integer) as xs:double { $x + 1 }; local:f(<a>2</a>)", "3"),
    ("let $f := function($x, $y) { $x + $y } return $f(1, 2)", "3"),
    ("let $n := 10 let $f := function($x) { $x + $n } return for $n in (1, 2) return $f($n)", "11 12"),
    ("for-each((1, 2), function($x) { $x * $x }), filter((1, 2, 3), function($x) { $x mod 2 = 1 })", "1 4 1 3"),
    (
        "fold-left(1 to 4, 0, function($a, $x) { $a + $x }), fold-right(('a', 'b'), '', function($x, $a) { $a || $x })",
        "10 ba",
    ),
    ("for-each-pair((1, 2), (3, 4, 5), function($a, $b) { $a * $b })", "3 8"),
    ("sort((3, 1, 2)), sort(('bb', 'a'), (), function($x) { string-length($x) })", "1 2 3 a bb"),
    ("zero-or-one(()), exactly-one(5), one-or-more((1, 2))", "5 1 2"),
    ("some $x as xs:integer in (1, 2) satisfies $x eq 2", "true"),
    ("compare('a', 'b'), codepoints-to-string((72, 105)), string-to-codepoints('Hi')", "-1 Hi 72 105"),
    ("contains-token(' a b ', 'b'), normalize-unicode('e\u0301'), encode-for-uri('a b/c')", "true \xe9 a%20b%2Fc"),
    (
        "matches('abracadabra', 'bra$'), replace('abracadabra', 'a(.)', 'a$1$1'), tokenize('1,2;3', '[,;]')",
        "true abbraccaddabbra 1 2 3",
    ),
    ("matches('Hello', 'h.*O', 'i'), matches('a.c', 'a.c', 'q'), replace('x', 'x', '\\$')", "true true $"),
    ("matches('b', '[a-z-[aeiou]]'), matches('e', '[a-z-[aeiou]]'), matches('\xe9', '\\p{Ll}')", "true false true"),
    ("insert-before((1, 2), 2, 9), remove((1, 2, 3), 2), index-of((1, 2, 1), 1)", "1 9 2 1 3 1 3"),
    (
        "deep-equal(<a b='1'>x</a>, <a b='1'>x</a>), deep-equal((1, 2), (1, 3)), deep-equal(number('x'), number('y'))",
        "true false true",
    ),
    ("math:sqrt(9), math:pow(2, 3), math:pi() > 3.14", "3 8 true"),
    (
        "format-integer(1234, '#,##0'), format-integer(4, 'I'), format-integer(21, 'w'), format-integer(2, '1;o')",
        "1,234 IV twenty one 2nd",
    ),
    ("unordered { ordered { (1, 2) } }", "1 2"),
)


@pytest.mark.parametrize(("query", "answer"), VALUES, ids=[query for query, _ in VALUES])
def test_a_construct_means_what_xquery_says(query: str, answer: str) -> None:
    """Without any stream: the value as it is written."""
    assert ask(query, {}).text == answer


ERRORS = (
    ("'a' eq 1", "XPTY0004"),
    ("(1, 2) eq 1", "XPTY0004"),
    ("1 idiv 0", "FOAR0001"),
    ("1 treat as xs:string", "XPDY0050"),
    ("let $x as xs:string := 1 return $x", "XPTY0004"),
    ("exactly-one(())", "FORG0005"),
    ("1 union 2", "XPTY0004"),
    ("(1, <a/>)/.", "XPTY0019"),
    ("<a><b/><c/></a>/(b, 1)", "XPTY0018"),
    ("try { 1 div 0 } catch err:FORG0001 { 1 }", "FOAR0001"),
    ("matches('a', '(')", "FORX0002"),
    ("matches('aa', '(a)\\1')", "FORX0002"),
    ("replace('a', 'a*', 'b')", "FORX0003"),
    ("contains('a', 'b', 'urn:collation')", "FOCH0002"),
    ("let $f := function($x) { 1 } return $f(1, 2)", "XPTY0004"),
    ("let $f := function($f) { $f($f) } return $f($f)", "XPDY0130"),
    ("try { count(1 to 100000000) } catch * { 1 }", "XPDY0130"),
    ("attribute { '1a' } { 1 }", "XQDY0074"),
    ("string(function() { 1 })", "FOTY0013"),
)


@pytest.mark.parametrize(("query", "code"), ERRORS)
def test_an_error_has_xquerys_code(query: str, code: str) -> None:
    """Also what may not be caught: the end of the steps."""
    assert error(query) == code


def test_value_comparisons_take_items_for_text() -> None:
    """LAWS 6, case 56."""
    document = {"s": stream("<a>10</a><b>9</b>")}
    assert ask("for $p in stream('s')/r/i return ($p/a lt $p/b, $p/a < $p/b)", document).text == "true false"
    answer = ask("for $p in stream('s')/r/i where $p/a eq 10 return $p", document)
    assert (answer.text, [each.code for each in answer.dead]) == ("", ["XPTY0004"])


def test_axes_stay_inside_the_item() -> None:
    """LAWS 6, case 57: what is around the item is not reached."""
    document = {"s": stream("<z/>", "<a/><b/>", "<z/>")}
    around = "for $p in stream('s')/r/i return <o>{{ {} }}</o>"
    assert ask(around.format("$p/a/following::*"), document).text == "<o/><o><b/></o><o/>"
    assert ask(around.format("$p/b/ancestor::*/name()"), document).text == "<o/><o>i</o><o/>"
    assert ask(around.format("root($p/a)/b"), document).text == "<o/><o><b/></o><o/>"


def test_parents_stay_inside_the_item() -> None:
    """LAWS 6, case 115: whether a step leads out of an item may depend on the item."""
    document = {"s": stream("<c><e/></c>", "<e/>")}
    around = "for $p in stream('s')/r/i return <o>{{ {} }}</o>"
    assert ask(around.format("$p//e/../../name()"), document).text == "<o>i</o><o/>"
    assert ask(around.format("$p//e/ancestor::*/name()"), document).text == "<o>i c</o><o>i</o>"
    assert ask("stream('s')//e/../../name()", document).text == "i"


def test_what_is_caught_is_no_dead_letter() -> None:
    """LAWS 6, case 58."""
    query = "for $p in stream('s')/r/i return try { xs:integer($p/f) } catch err:FORG0001 { 0 }"
    answer = ask(query, {"s": leaves("f", 1, "abc")})
    assert (answer.text, answer.dead) == ("1 0", [])


def test_empty_greatest() -> None:
    """LAWS 6, case 59."""
    document = {"s": stream("<f>2</f>", "", "<f>NaN</f>", "<f>1</f>")}
    query = "for $p in stream('s')/r/i order by $p/f empty greatest return <o>{ string($p/f) }</o>"
    assert ask(query, document).text == "<o>1</o><o>2</o><o>NaN</o><o/>"
    backwards = query.replace("empty", "descending empty")
    assert ask(backwards, document).text == "<o/><o>NaN</o><o>2</o><o>1</o>"


def test_regular_expressions_take_time_in_proportion() -> None:
    """LAWS 6, case 60: a pattern that a backtracking matcher needs 2^n steps for is answered at once."""
    began = time.process_time()
    text = "a" * 10_000
    assert ask("for $p in stream('s')/r/i return matches($p/t, '(a*)*b')", {"s": leaves("t", text)}).text == "false"
    assert time.process_time() - began < 5


def test_switch_compares_text() -> None:
    """LAWS 6, case 61."""
    query = "for $p in stream('s')/r/i return <o>{ switch ($p/f) case '1' return 'one' default return 'other' }</o>"
    assert ask(query, {"s": leaves("f", "1", "1.0", "x")}).text == "<o>one</o><o>other</o><o>other</o>"


def test_steps_that_are_expressions_go_item_by_item() -> None:
    """An error in one concerns its item."""
    answer = ask("stream('s')/r/i/xs:integer(f)", {"s": leaves("f", 1, "x", 3)})
    assert (answer.text, len(answer.dead)) == ("1 3", 1)
