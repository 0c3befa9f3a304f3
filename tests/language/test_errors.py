from __future__ import annotations

import pytest

from anabranch.errors import QueryError
from anabranch.language import check, parse

BROKEN = (
    ("", "1:1", "", "expected an expression, found the end of the query", "XPST0003", None),
    ("1 +", "1:4", "", "expected an expression, found the end of the query", "XPST0003", None),
    (
        "for $x in a",
        "1:12",
        "",
        "expected 'where', 'order by' or 'return', found the end of the query",
        "XPST0003",
        None,
    ),
    ("for x in a return 1", "1:5", "x", "expected an operator or the end of the query, found 'x'", "XPST0003", None),
    ("for $x a return 1", "1:8", "a", "expected 'in', found 'a'", "XPST0003", None),
    ("let $x = 1 return $x", "1:8", "=", "expected ':=', found '='", "XPST0003", None),
    ("if (a) then b", "1:14", "", "expected 'else', found the end of the query", "XPST0003", None),
    ("if (a) b else c", "1:8", "b", "expected 'then', found 'b'", "XPST0003", None),
    ("some $x in a", "1:13", "", "expected 'satisfies', found the end of the query", "XPST0003", None),
    ("a =", "1:4", "", "expected an expression, found the end of the query", "XPST0003", None),
    ("a = b = c", "1:7", "=", "comparisons do not chain", "XPST0003", "join them with 'and'"),
    ("a[", "1:3", "", "expected an expression, found the end of the query", "XPST0003", None),
    ("a[b", "1:4", "", "expected ']', found the end of the query", "XPST0003", None),
    ("a/", "1:3", "", "expected a step, found the end of the query", "XPST0003", None),
    ("a//", "1:4", "", "expected a step, found the end of the query", "XPST0003", None),
    ("a/b c", "1:5", "c", "expected an operator or the end of the query, found 'c'", "XPST0003", None),
    ("f(a", "1:4", "", "expected ',' or ')', found the end of the query", "XPST0003", None),
    ("f(a b)", "1:5", "b", "expected ',' or ')', found 'b'", "XPST0003", None),
    ("(a, )", "1:5", ")", "expected an expression, found ')'", "XPST0003", None),
    ("a, , b", "1:4", ",", "expected an expression, found ','", "XPST0003", None),
    ("$", "1:2", "", "expected a variable name, found the end of the query", "XPST0003", None),
    ("$1", "1:2", "1", "expected a variable name, found '1'", "XPST0003", None),
    ("@", "1:2", "", "expected a name, '*', text() or node(), found the end of the query", "XPST0003", None),
    ("a/@", "1:4", "", "expected a name, '*', text() or node(), found the end of the query", "XPST0003", None),
    ("1a", "1:2", "a", "'a' follows the number '1' directly", "XPST0003", "put a space between them"),
    ("1.5x", "1:4", "x", "'x' follows the number '1.5' directly", "XPST0003", "put a space between them"),
    ("'x", "1:1", "'", "this string is never closed", "XPST0003", "close it with '"),
    (
        '"&x;"',
        "1:1",
        '"&x;"',
        "'&' begins no known reference",
        "XPST0003",
        "write '&amp;' for the character itself; &lt; &gt; &quot; &apos; and &#...; are known",
    ),
    (
        "'&#0;'",
        "1:1",
        "'&#0;'",
        "'&' begins no known reference",
        "XQST0090",
        "write '&amp;' for the character itself; &lt; &gt; &quot; &apos; and &#...; are known",
    ),
    ("(: x", "1:1", "(:", "this comment is never closed", "XPST0003", "close it with ':)'"),
    ("<a>", "1:1", "<a", "<a> is never closed", "XPST0003", "close it with '</a>'"),
    ("<a></b>", "1:4", "</b", "</b> closes <a>", "XQST0118", "close it with '</a>'"),
    ("<a b></a>", "1:5", ">", "expected '=' behind attribute 'b'", "XPST0003", None),
    ("<a b=c/>", "1:6", "c", "expected the value of 'b' in quotes", "XPST0003", None),
    ("<a b='1'c='2'/>", "1:9", "c", "expected white space, '>' or '/>'", "XPST0003", None),
    ("<a b='1' b='2'/>", "1:10", "b", "attribute 'b' is given twice", "XQST0040", None),
    ("<a b='<'/>", "1:7", "<", "'<' cannot stand in an attribute value", "XPST0003", "write '&lt;'"),
    ("<a>}</a>", "1:4", "}", "'}' stands alone", "XPST0003", "write '}}' for the character itself"),
    ("<a b='}'/>", "1:7", "}", "'}' stands alone", "XPST0003", "write '}}' for the character itself"),
    ("<a><!-- -- --></a>", "1:4", "<", "'--' cannot stand in a comment", "XQDY0072", None),
    ("<a>{1</a>", "1:9", ">", "comparisons do not chain", "XPST0003", "join them with 'and'"),
    ("<a><![CDATA[</a>", "1:4", "<", "this CDATA section is never closed", "XPST0003", "close it with ']]>'"),
    (
        "<1/>",
        "1:2",
        "1",
        "expected an element name behind '<'",
        "XPST0003",
        "for the operator '<', leave a space behind it",
    ),
    ("<a xmlns:p='u' xmlns:p='v'/>", "1:16", "x", "namespace prefix 'p' is declared twice", "XQST0071", None),
    ("<a xmlns:p=''/>", "1:4", "x", "prefix 'p' cannot be undeclared", "XQST0085", None),
    ("<a xmlns='{1}'/>", "1:4", "x", "a namespace must be literal", "XQST0022", None),
    ("<a xmlns:xml='u'/>", "1:4", "x", "prefix 'xml' cannot be declared", "XQST0070", None),
    (
        "for $w in a|count| return 1",
        "1:18",
        "|",
        "expected 'diff' or 'gap', found '|'",
        "XPST0003",
        "as in |det_time diff 60| or |det_time gap 60|",
    ),
    (
        "for $w in a|count x| return 1",
        "1:19",
        "x",
        "expected 'diff' or 'gap', found 'x'",
        "XPST0003",
        "as in |det_time diff 60| or |det_time gap 60|",
    ),
    ("for $w in a|t diff| return 1", "1:19", "|", "expected a window size, found '|'", "XPST0003", None),
    (
        "for $w in a|t 5| return 1",
        "1:15",
        "5",
        "expected 'diff' or 'gap', found '5'",
        "XPST0003",
        "as in |det_time diff 60| or |det_time gap 60|",
    ),
    ("for $w in a|t gap| return 1", "1:18", "|", "expected a gap, found '|'", "XPST0003", None),
    ("for $w in a|t gap 5 step 2| return 1", "1:21", "step", "expected 'by' or '|', found 'step'", "XPST0003", None),
    (
        "for $w in a|t gap 5 by 2| return 1",
        "1:24",
        "2",
        "the key of a session is no path",
        "XPST0003",
        "as in |det_time diff 60| or |det_time gap 60 by user|",
    ),
    (
        "for $w in a|t diff PT| return 1",
        "1:20",
        "PT",
        "expected a window size, found 'PT'",
        "XPST0003",
        None,
    ),
    (
        "for $w in a|t diff PT5X| return 1",
        "1:20",
        "PT5X",
        "'PT5X' is no duration",
        "XPST0003",
        "as in PT30S, PT1M, PT1H30M or P1D",
    ),
    ("for $w in a|count 2 step| return 1", "1:25", "|", "expected a step size, found '|'", "XPST0003", None),
    ("for $w in a|count 2 return 1", "1:21", "return", "expected 'step' or '|', found 'return'", "XPST0003", None),
    (
        "for $w in a|5| return 1",
        "1:13",
        "5",
        "expected 'count' and a number, or a path and 'diff' or 'gap', found '5'",
        "XPST0003",
        None,
    ),
    ("a#", "1:3", "", "expected a version number, found the end of the query", "XPST0003", None),
    ("a#b", "1:3", "b", "expected a version number, found 'b'", "XPST0003", None),
    ("a?[", "1:4", "", "expected a time in seconds, found the end of the query", "XPST0003", None),
    ("a#[1", "1:5", "", "expected ']', found the end of the query", "XPST0003", None),
    ("declare namespace = 'u'; 1", "1:19", "=", "expected a prefix, found '='", "XPST0003", None),
    ("declare namespace p 'u'; 1", "1:21", "'u'", "expected '=', found a string", "XPST0003", None),
    ("declare namespace p = u; 1", "1:23", "u", "expected a namespace in quotes, found 'u'", "XPST0003", None),
    ("declare namespace p = 'u' 1", "1:27", "1", "expected ';', found '1'", "XPST0003", None),
    (
        "declare namespace p = 'u'; declare namespace p = 'v'; 1",
        "1:46",
        "p",
        "namespace prefix 'p' is declared twice",
        "XQST0033",
        None,
    ),
    ("declare namespace xml = 'u'; 1", "1:19", "xml", "prefix 'xml' cannot be declared", "XQST0070", None),
    ("declare function f() { 1 }; 1", "1:18", "f", "function 'f' needs a prefix", "XQST0045", "call it 'local:f'"),
    (
        "declare function local:f($x, $x) { 1 }; 1",
        "1:9",
        "function local:f($x, $x",
        "parameter '$x' is named twice",
        "XQST0039",
        None,
    ),
    ("declare function local:f { 1 }; 1", "1:26", "{", "expected '(', found '{'", "XPST0003", None),
    ("stream()", "1:8", ")", "expected the name of a stream, in quotes, found ')'", "XPST0003", None),
    ("stream(a)", "1:8", "a", "expected the name of a stream, in quotes, found 'a'", "XPST0003", None),
    ("doc('a', 'b')", "1:8", ",", "expected ')', found ','", "XPST0003", None),
    ("foo::a", "1:1", "foo", "'foo' is no axis", "XPST0003", "use child, parent, self or attribute"),
    ("a order by b", "1:3", "order", "expected an operator or the end of the query, found 'order'", "XPST0003", None),
    ("for $x in a order b return 1", "1:19", "b", "expected 'by', found 'b'", "XPST0003", None),
    ("for $x in a where return 1 2", "1:26", "1", "expected 'return', found '1'", "XPST0003", None),
    ("for $x in a\nwhere $x/b >\nreturn $x", "3:8", "$", "expected 'return', found '$'", "XPST0003", None),
    ("~", "1:1", "~", "unexpected character '~'", "XPST0003", None),
    ("a := 1", "1:3", ":=", "expected an operator or the end of the query, found ':='", "XPST0003", None),
    ("1 = = 2", "1:5", "=", "expected an expression, found '='", "XPST0003", None),
    ("}", "1:1", "}", "expected an expression, found '}'", "XPST0003", None),
    ("\t\t~", "1:3", "~", "unexpected character '~'", "XPST0003", None),
)
"""Query text, line and column, what the caret marks, message, W3C code, hint."""


@pytest.mark.parametrize(
    ("text", "place", "marked", "message", "code", "hint"), BROKEN, ids=[repr(row[0]) for row in BROKEN]
)
def test_broken_text_is_explained(
    text: str, place: str, marked: str, message: str, code: str | None, hint: str | None
) -> None:
    """The error says what was expected, where, under which code, and what to do."""
    with pytest.raises(QueryError) as caught:
        parse(text)
    error = caught.value
    found = (f"{error.line}:{error.column}", text[error.span.start : error.span.end], error.message, error.code)
    assert (*found, error.hint) == (place, marked, message, code, hint)


@pytest.mark.parametrize(("text", "place", "marked", "message", "code", "hint"), BROKEN)
def test_messages_have_one_style(
    text: str, place: str, marked: str, message: str, code: str | None, hint: str | None
) -> None:
    """Messages are short, without a full stop, and begin in lower case or with what they quote."""
    assert len(message) <= 90
    assert not message.endswith(".")
    assert message[0].islower() or message[0] in "'<"
    assert hint is None or hint[0].islower() or hint[0] in "'&"


DRAWN = (
    (
        "for $x in a\nwhere $x/b >\nreturn $x",
        "line 3, column 8: expected 'return', found '$' [XPST0003]\n  return $x\n         ^",
    ),
    (
        "<a>\n  </b>",
        "line 2, column 3: </b> closes <a> [XQST0118]\n    </b>\n    ^^^\nhint: close it with '</a>'",
    ),
    ("\t~", "line 1, column 2: unexpected character '~' [XPST0003]\n   ~\n   ^"),
    ("1\x1b", "line 1, column 2: character '\\x1b' cannot stand in a query [XPST0003]\n  1 \n   ^"),
    ("", "line 1, column 1: expected an expression, found the end of the query [XPST0003]\n  \n  ^"),
    (
        "(\n" + "a + " * 100 + "~ - b",
        f"line 2, column 401: unexpected character '~' [XPST0003]\n  {('a + ' * 20)[1:]}~ - b\n  {' ' * 79}^",
    ),
)


@pytest.mark.parametrize(("text", "drawn"), DRAWN)
def test_the_place_is_drawn(text: str, drawn: str) -> None:
    """The line is shown with a caret under the place; a tab is one blank, and of a long line a part is shown."""
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == drawn


CHECKED = (
    (
        "for $p in stream('s')/r/i return $q",
        "line 1, column 34: no variable is called '$q' [XPST0008]\n"
        "  for $p in stream('s')/r/i return $q\n"
        "                                   ^^\n"
        "hint: bound are: $p",
    ),
    (
        "1 +\n contains('a')",
        "line 2, column 2: 'contains()' takes 2 or more arguments, not 1 [XPST0017]\n"
        "   contains('a')\n   ^^^^^^^^^^^^^",
    ),
    (
        "<p:a/>",
        "line 1, column 1: prefix 'p' is not declared [XPST0081]\n  <p:a/>\n  ^^^^^^\n"
        'hint: declare it: declare namespace p = "...";',
    ),
)


@pytest.mark.parametrize(("text", "drawn"), CHECKED)
def test_the_checks_draw_their_place_too(text: str, drawn: str) -> None:
    """An error found behind the parser points into the same text."""
    with pytest.raises(QueryError) as caught:
        check(parse(text), text)
    assert str(caught.value) == drawn


def test_the_name_of_a_query_replaces_the_word_line() -> None:
    """A checked query that has a name, a file's say, is shown with it."""
    with pytest.raises(QueryError) as caught:
        check(parse("$x"), "$x", name="vela.xq")
    assert str(caught.value).splitlines()[0] == "vela.xq:1:1: no variable is called '$x' [XPST0008]"
