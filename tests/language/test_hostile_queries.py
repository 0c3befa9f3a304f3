from __future__ import annotations

import builtins
import io
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from anabranch.errors import AnabranchError, QueryError
from anabranch.language import check, parse, print_query
from anabranch.law import evaluate, text_input

ITEMS = "<r><i><a>1</a></i><i><a>2</a></i></r>"


@pytest.fixture
def _sealed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing may be opened or connected while the test runs."""

    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("a query opened something")

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", refuse)
        patch.setattr(io, "open", refuse)
        patch.setattr(os, "open", refuse)
        patch.setattr(socket, "socket", refuse)
        yield


def answer(text: str) -> str:
    """Parse, print, check and evaluate a query over two small items."""
    query = parse(text)
    assert print_query(query)
    checked = check(query, text, inputs={"s": None, "t": None})
    streams = {name: text_input(ITEMS, name=name) for name in ("s", "t")}
    return evaluate(checked.query, streams).text


def nested(opening: str, inner: str, closing: str, depth: int = 10_000) -> str:
    return opening * depth + inner + closing * depth


DEEP = {
    "parentheses": ("(", "1", ")"),
    "predicates": ("a[", "1 = 1", "]"),
    "constructors": ("<a>{", "1", "}</a>"),
    "elements": ("<a>", "", "</a>"),
    "attributes": ('<a b="{', "1", '}"/>'),
    "conditions": ("if (", "1", ") then 1 else 2"),
    "branches": ("if (1) then ", "1", " else 2"),
    "unary minuses": ("-", "1", ""),
    "unary pluses": ("+", "1", ""),
    "loops": ("for $x in 1 return ", "1", ""),
    "clauses": ("for $x in 1 where 1 let $y := 1 count $z ", "return 1", ""),
    "conditions between loops": ("for $x in 1 where 1 ", "return 1", ""),
    "positions": ("(1)[position() = ", "1", "]"),
    "groups": ("for $x in 1 group by $y := ", "1", " return 1"),
    "sources": ("for $x in ", "1", " return 1"),
    "lets": ("let $x := ", "1", " return $x"),
    "quantifiers": ("some $x in 1 satisfies ", "1", ""),
    "calls": ("count(", "1", ")"),
    "all operators": ("0 or 1 and 1 = 1 + 1 * -count(", "1", ")"),
    "operators behind": ("count(", "1", ") * 1 + 1 = 1 and 1 or 0"),
    "everything": ('for $x in <a b="{ 1 + 2 * (some $y in $z[a][not(', "1", ')] satisfies 1 = 1) }"/> return $x'),
}


@pytest.mark.parametrize("levels", [10, 16, 21, 32, 43, 62, 63, 64, 127, 4_000])
@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.usefixtures("_sealed")
def test_nesting_is_bounded(kind: str, levels: int) -> None:
    """However deep a query nests, it is answered or refused with a place, and Python's stack is never spent."""
    opening, inner, closing = DEEP[kind]
    text = nested(opening, inner, closing, levels)
    if levels == 10 and kind not in ("predicates", "everything"):
        assert answer(text)
        return
    try:
        answer(text)
    except QueryError as error:
        place = error.span.start
    else:
        place = 0
        assert levels < 64
    assert 0 <= place <= len(text)


LONG = {
    "and": (" and ".join(["1"] * 12_000), "true"),
    "or": (" or ".join(["0"] * 12_000), "false"),
    "sum": ("+".join(["1"] * 12_000), "12000"),
    "steps": ('stream("s")' + "/a" * 15_000, ""),
    "deep steps": ('stream("s")' + "//a" * 10_000, ""),
    "deep nodes": ('count(stream("s")' + "//node()" * 2_000 + ")", "0"),
    "predicates": ('count(stream("s")/r/i' + "[a]" * 2_000 + ")", "2"),
    "sequence": ("count((" + ",".join(["1"] * 12_000) + "))", "12000"),
    "arguments": ("string-length(concat(" + ",".join(["'ab'"] * 1_000) + "))", "2000"),
    "comments": ("(:" * 40_000 + ":)" * 40_000 + "1", "1"),
    "many comments": ("(::)" * 40_000 + "1", "1"),
    "a long string": ('string-length("' + "x" * 190_000 + '")', "190000"),
    "quotes in a string": ('string-length("' + '""' * 90_000 + '")', "90000"),
    "references": ('string-length("' + "&amp;" * 12_000 + '")', "12000"),
    "braces": ("string-length(<a>" + "{{" * 90_000 + "</a>)", "90000"),
    "attributes": ("<a " + " ".join(f'a{n}=""' for n in range(256)) + "/>", None),
    "elements side by side": ("count((" + ",".join(["<a/>"] * 10_000) + "))", "10000"),
    "functions": ("".join(f"declare function local:f{n}() {{ {n} }};" for n in range(4_000)) + "local:f7()", "7"),
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.usefixtures("_sealed")
@pytest.mark.mass
def test_length_is_no_harm(kind: str) -> None:
    """A query of the greatest length is answered, in time that grows with its length and no faster."""
    text, expected = LONG[kind]
    found = answer(text)
    assert expected is None or found == expected


DOUBLING = "".join(
    f"declare function local:f{n}($x) {{ (local:f{n + 1}($x), local:f{n + 1}($x)) }};" for n in range(20)
)
CHAIN = "".join(f"declare function local:f{n}($x) {{ local:f{n + 1}($x) }};" for n in range(1_000))
SQUARES = "let $x0 := " + "9" * 900 + "".join(f" let $x{n + 1} := $x{n} * $x{n}" for n in range(40)) + " return $x40"
DECIMALS = SQUARES.replace("9" * 900, "9" * 900 + ".5")

HOSTILE = {
    "one character too many": ("1" + " " * 200_000, "the query has 200,001 characters, more than the 200,000 allowed"),
    "an endless query": ("x" * 10_000_000, "the query has 10,000,000 characters, more than the 200,000 allowed"),
    "an empty query": ("", "expected an expression, found the end of the query"),
    "white space": (" \t\r\n", "expected an expression, found the end of the query"),
    "comment bomb": ("(:" * 99_999, "this comment is never closed"),
    "unclosed string": ('"' + "x" * 100_000, "this string is never closed"),
    "unclosed string of quotes": ('"' + '""' * 50_000, "this string is never closed"),
    "unclosed parenthesis": ("(1", "expected ')', found the end of the query"),
    "unclosed predicate": ("a[1", "expected ']', found the end of the query"),
    "unclosed element": ("<a>", "<a> is never closed"),
    "unclosed tag": ("<a b='1'", "expected white space, '>' or '/>'"),
    "unclosed attribute": ("<a b='1", "this attribute value is never closed"),
    "unclosed braces": ("<a>{ 1", "expected '}', found the end of the query"),
    "attributes without end": (
        "<a " + " ".join(f'a{n}=""' for n in range(20_000)) + "/>",
        "an element with more than 256 attributes",
    ),
    "unclosed CDATA": ("<a><![CDATA[", "this CDATA section is never closed"),
    "unclosed XML comment": ("<a><!--", "this comment is never closed"),
    "unclosed window": ("for $w in stream('s')/r/i|count 2", "expected 'step' or '|', found the end of the query"),
    "unclosed function": ("declare function local:f() { 1", "expected '}', found the end of the query"),
    "NUL": ("1 \0", r"character '\x00' cannot stand in a query"),
    "NUL in a string": ('"\0"', r"character '\x00' cannot stand in a query"),
    "escape in an element": ("<a>\x1b[2J</a>", r"character '\x1b' cannot stand in a query"),
    "surrogate": ('"\ud800"', r"character '\ud800' cannot stand in a query"),
    "no character": ("<a>\uffff</a>", r"character '\uffff' cannot stand in a query"),
    "zero-width space": ("1\u200b+ 1", r"unexpected character '\u200b'"),
    "digits of another script": ("\u0663 + 1", r"unexpected character '\u0663'"),
    "5,000 digits": ("9" * 5_000, "this number has more than 1000 digits"),
    "5,000 decimals": ("0." + "0" * 5_000 + "1", "this number has more than 1000 digits"),
    "an exponent of 5,000 digits": ("1e" + "9" * 5_000, "this number has more than 1000 digits"),
    "unknown entity": ('"&lol;"', "'&' begins no known reference"),
    "entity bomb": ('<a>&lol9;</a> (: <!ENTITY lol9 "&lol8;&lol8;"> :)', "'&' begins no known reference"),
    "document type": ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "expected an element name"),
    "reference to NUL": ('"&#0;"', "'&' begins no known reference"),
    "reference to a surrogate": ('"&#xD800;"', "'&' begins no known reference"),
    "reference beyond Unicode": ('"&#x110000;"', "'&' begins no known reference"),
    "a file": ('doc("/etc/passwd")', "no input is called '/etc/passwd'"),
    "an address": ('doc("http://example.org/")', "no input is called 'http://example.org/'"),
    "a computed name": ('doc(concat("/etc/", "passwd"))', "expected the name of a doc, in quotes"),
    "a file as a stream": ('stream("file:///etc/passwd")', "no input is called 'file:///etc/passwd'"),
    "a file's text": ('unparsed-text("/etc/passwd")', "refused: outside access"),
    "the environment": ('environment-variable("HOME")', "refused: outside access"),
    "a collection": ('fn:collection("/etc")', "refused: outside access"),
    "Python": ('__import__("os")', "no function is called '__import__()'"),
    "a private function": ('local:eval("1")', "no function is called 'local:eval()'"),
    "a module": ('import module namespace m = "urn:m" at "http://example.org/m.xq"; 1', "refused: module import"),
    "window of nothing": ("for $w in stream('s')/r/i|count 0| return 1", "'0' is no size of a window"),
    "window of less": ("for $w in stream('s')/r/i|count -1| return 1", "expected 'diff', found '-'"),
    "step of nothing": ("for $w in stream('s')/r/i|a diff 1 step 0| return 1", "'0' is no size of a window"),
    "step of 0.000": ("for $w in stream('s')/r/i|a diff 1 step 0.000| return 1", "'0.000' is no size of a window"),
    "half an item": ("for $w in stream('s')/r/i|count 1.5| return 1", "'1.5' is no whole number of items"),
    "window with an exponent": ("for $w in stream('s')/r/i|a diff 1e9| return 1", "'1e9' is no size of a window"),
    "overlap without end": (
        "for $w in stream('s')/r/i|a diff 1000000000 step 0.0001| return 1",
        "each item would be in more than 10,000 windows",
    ),
    "a chain of functions": (CHAIN + "1", "functions call each other more than 128 constructs deep"),
    "a chain of variables": ("let $x := 1 " * 5_000 + "return $x", "more than 128 constructs inside one another"),
    "a chain of quantifiers": (
        "some " + ", ".join(["$x in 1"] * 5_000) + " satisfies 1",
        "more than 128 constructs inside one another",
    ),
    "squares of integers": (SQUARES, "the number is too large"),
    "squares of decimals": (DECIMALS, "the number is too large"),
    "recursion": (
        "declare function local:f() { local:g() }; declare function local:g() { local:f() }; 1",
        "refused: recursive function",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.usefixtures("_sealed")
def test_hostile_queries_end_in_the_right_error(kind: str) -> None:
    """Each ends in its own error, soon, and opens neither a file nor a socket."""
    text, message = HOSTILE[kind]
    with pytest.raises(AnabranchError) as caught:
        answer(text)
    assert caught.value.message.startswith(message)
    str(caught.value).encode()  # the message can be shown, whatever the query holds


HARMLESS = {
    "a double beyond all": ("1e999999999", "INF"),
    "a double below all": ("1e-999999999", "0"),
    "an exponent of 900 digits": ("1e" + "9" * 900, "INF"),
    "a comparison beyond all": ("count(stream('s')/r/i[a < 1e999999999])", "2"),
    "1,000 digits": ("string-length(string(" + "9" * 1_000 + "))", "1000"),
    "a large count window": ("for $w in stream('s')/r/i|count 999999999| return <w/>", ""),
    "a large time window": (f"for $w in stream('s')/r/i|a diff {'9' * 900}| return count($w)", "2"),
    "a fine window": (f"for $w in stream('s')/r/i|a diff 0.{'0' * 900}1| return count($w)", "1 1"),
    "doubling functions": (DOUBLING + "declare function local:f20($x) { () }; <a/>", "<a/>"),
    "entities in a string": ('"&lt;!ENTITY x &quot;&amp;y;&quot;>"', '&lt;!ENTITY x "&amp;y;"&gt;'),
    "a string like a query": ("\"') or doc('/etc/passwd')\"", "') or doc('/etc/passwd')"),
    "shadowed names": ("let $x := 1 " * 100 + "return $x", "1"),
}


@pytest.mark.parametrize("kind", HARMLESS)
@pytest.mark.usefixtures("_sealed")
def test_what_looks_hostile_and_is_not_is_answered(kind: str) -> None:
    """Extreme but meaningful queries have their answer."""
    text, expected = HARMLESS[kind]
    assert answer(text) == expected


NUMBERS = ("1e999999", "1e-999999", "-1e999999999", "1e99999999999999999999", "9" * 100_000, "0." + "0" * 100_000 + "1")
QUESTIONS = (
    "count(stream('s')/r/i[a > 5])",
    "sum(stream('s')/r/i/a)",
    "avg(stream('s')/r/i/a)",
    "for $p in stream('s')/r/i order by $p/a return <o/>",
    "for $p in stream('s')/r/i return <o>{ $p/a * 2, round($p/a), max($p/a), substring('abc', $p/a) }</o>",
    "for $w in stream('s')/r/i|a diff 10 step 3| return <o/>",
    "for $x in stream('s')/r/i|a diff 10 step 3| for $y in stream('s')/r/i|a diff 7| return <o/>",
)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:22])
@pytest.mark.usefixtures("_sealed")
def test_hostile_numbers_in_items_cost_nothing(number: str, question: str) -> None:
    """A number of any size in an item is compared, summed, ordered and put into windows at once."""
    stream = text_input(f"<r><i><a>{number}</a></i><i><a>2</a></i></r>", name="s")
    checked = check(parse(question), question)
    assert evaluate(checked.query, {"s": stream}).text
