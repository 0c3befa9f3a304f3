from __future__ import annotations

import pytest

from anabranch.errors import Refused
from anabranch.language import Checked, check, parse
from anabranch.language.checks.refusals import REFUSALS

MARKED = {
    "type expression": "xs:unsignedByte",
    "lookup": "?",
    "unary lookup": "?",
    "annotation": "%",
    "namespace constructor": "namespace",
    "validate": "validate",
    "processing instruction constructor": "<",
    "kind test": "schema-element",
    "axis": "namespace",
    "type declaration": "$a as xs:string",
    "allowing empty": "$p allowing empty in stream('s')/r/i",
    "order modifier": "collation",
    "prolog declaration": "boundary-space",
    "external variable": "external",
    "control element in an answer": "<s:replace xmlns:s='urn:anabranch:stream' target='1'/>",
    "positional variable": "$p at $i in stream('s')/r/i",
    "positional predicate": "[1]",
    "position beside a temporal qualifier": "[1]",
    "window clause": "tumbling",
    "count clause": "count $c",
    "collation of a group": "collation",
    "group by without a loop over the window": "group by $n := count($w)",
    "group by or count over a join": "$y in stream('t')/r/i|count 2|",
    "module import": "import",
    "recursive function": "local:f",
    "outside access": "unparsed-text",
    "clock": "current-dateTime",
    "unbounded second stream": "$y in stream('t')/r/i",
    "window beside a stream without one": "$y in stream('t')/r/i",
    "stream inside the round of another": "$y in stream('t')/r/i",
    "join input that depends on another": "$x",
    "aggregate over a join": "avg($x/a)",
    "window on what is no path": "1, 2",
    "session in a join": "|t gap 5|",
    "duration in months": "P1M",
    "bounds of what is no window": "window-start($w)",
    "step out of the item": "..",
}
"""What the caret marks in each row's example."""


def refused(text: str) -> Refused:
    """The refusal of a query."""
    with pytest.raises(Refused) as caught:
        check(parse(text), text)
    return caught.value


@pytest.mark.parametrize("name", REFUSALS)
def test_a_row_is_refused_by_its_name_and_at_its_place(name: str) -> None:
    """The row's example is refused with the row's own name and hint, and the caret marks the construct."""
    row = REFUSALS[name]
    error = refused(row.example)
    marked = row.example[error.span.start : error.span.end]
    assert (error.message, error.hint, marked) == (f"refused: {name}", row.hint, MARKED[name])


OTHER_WRITINGS = (
    ("type expression", "'1' castable as xs:float"),
    ("type expression", "'1' cast as integer"),
    ("type expression", "xs:duration('P1Y')"),
    ("type expression", "1 treat as xs:byte"),
    ("type expression", "$p instance of element(a, xs:integer)"),
    ("type expression", "let $x as xs:long := 1 return $x"),
    ("type expression", "$f instance of function(item()) as item()"),
    ("clock", "current-date()"),
    ("clock", "fn:current-time()"),
    ("lookup", "$m?*"),
    ("processing instruction constructor", "<a><?b?></a>"),
    ("validate", "validate lax { <a/> }"),
    ("kind test", "$p/namespace-node()"),
    ("kind test", "$p/item()"),
    ("step out of the item", "stream('s')/r/i/ancestor::r"),
    *(
        ("step out of the item", f"for $p in stream('s')/r/i return $p/{axis}::a")
        for axis in ("ancestor-or-self", "following", "preceding", "following-sibling", "preceding-sibling")
    ),
    ("positional predicate", "remove(stream('s')/r/i, 1)"),
    ("positional predicate", "insert-before(stream('s')/r/i, 1, 2)"),
    ("positional predicate", "stream('s')/r/i[1 to 3]"),
    ("stream inside the round of another", "let $f := function($x) { stream('t')/r/i } return $f(1)"),
    ("allowing empty", "for $w allowing empty in stream('s')/r/i|count 2| return $w"),
    ("positional predicate", "stream('s')/r/i[position() = 1]"),
    ("positional predicate", "stream('s')/r/i[last()]"),
    ("positional predicate", "stream('s')/r/i[a + 1]"),
    ("positional predicate", "stream('s')/r/i[count(a)]"),
    ("positional predicate", "stream('s')/r/i[-1]"),
    ("positional predicate", "stream('s')/r/i[number()]"),
    ("positional predicate", "stream('s')/r/i[if (a) then 1 else 2]"),
    ("positional predicate", "let $n := 1 return stream('s')/r/i[$n]"),
    ("positional predicate", "let $s := stream('s')/r/i return $s[last()]"),
    ("positional predicate", "let $s := stream('s')/r return $s/i[1]"),
    ("positional predicate", "(stream('s')/r/i)[1]"),
    ("positional predicate", "(stream('s')/r/i/a)[1]"),
    ("positional predicate", "stream('s')//a[1]"),
    ("positional predicate", "stream('s')/r[1]/i"),
    ("positional predicate", "for $w in stream('s')/r/i[2]|count 2| return $w"),
    ("positional predicate", "head(stream('s')/r/i)"),
    ("positional predicate", "subsequence(stream('s')/r/i, 2)"),
    ("positional variable", "for $p in doc('d')/a for $q at $i in stream('s')/r/i return $i"),
    ("positional variable", "for $w in stream('s')/r/i|count 9| return for $v at $i in $w|count 2| return $i"),
    ("position beside a temporal qualifier", "(stream('s')/r/i)#[5][1]"),
    ("count clause", "for $p in stream('s')/r/i where $p/a count $n order by $n return $n"),
    (
        "stream inside the round of another",
        "for $p in stream('s')/r/i group by $k := $p/k return <a>{ for $t in stream('t')/r/i return $t }</a>",
    ),
    ("session in a join", "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|t gap PT5S by u| return $x"),
    *(("duration in months", f"for $w in a|t {size}| return 1") for size in ("diff P1Y", "gap P1Y2M", "gap P1M3DT4H")),
    ("duration in months", "for $w in a|t diff PT1M step P1M| return 1"),
    ("duration in months", "stream('s')/r/i?P1M"),
    ("bounds of what is no window", "window-end(1)"),
    ("bounds of what is no window", "fn:window-end(())"),
    ("bounds of what is no window", "for $w in stream('s')/r/i|t gap 5| return window-start($w/t)"),
    ("bounds of what is no window", "for $w in stream('s')/r/i|t gap 5| return window-start($w[t > 1])"),
    ("bounds of what is no window", "for $w in stream('s')/r/i|t gap 5| for $i in $w return window-start($i)"),
    ("bounds of what is no window", "for $w in stream('s')/r/i|t gap 5| let $v := ($w, 1) return window-start($v)"),
    (
        "bounds of what is no window",
        "declare function local:f($w) { window-start($w) }; for $w in stream('s')/r/i|t gap 5| return local:f($w)",
    ),
    (
        "bounds of what is no window",
        "for $x in stream('s')/r/i|t diff 5|, $y in stream('t')/r/i|t diff 5| return window-start($x)",
    ),
    ("window clause", "for sliding window $w in a start when 1 return $w"),
    ("order modifier", "for $p in a order by $p collation 'c' return $p"),
    ("prolog declaration", "declare default function namespace 'u'; 1"),
    ("prolog declaration", "declare option p:o 'x'; 1"),
    ("module import", "import schema 'u'; 1"),
    (
        "recursive function",
        "declare function local:f() { local:g() }; declare function local:g() { local:h() };"
        "declare function local:h() { local:f() }; 1",
    ),
    *(
        ("outside access", f"{name}('x')")
        for name in ("collection", "fn:collection", "uri-collection", "environment-variable", "doc-available")
    ),
    ("unbounded second stream", "for $x in stream('s')/r/i, $y in stream('t')/r/i return 1"),
    ("unbounded second stream", "for $x in stream('s')/r/i return for $y in stream('t')/r/i return 1"),
    (
        "unbounded second stream",
        "for $x in stream('s')/r/i, $y in stream('t')/r/i where $x/t <= $y/t + 10 return 1",
    ),
    (
        "unbounded second stream",
        "for $x in stream('s')/r/i, $y in stream('t')/r/i where $x/t <= $y/t + 1 or $x/t >= $y/t - 1 return 1",
    ),
    (
        "unbounded second stream",
        "for $x in stream('s')/r/i, $y in stream('t')/r/i where $x/t <= $y/t + 1 and $x/u >= $y/t - 1 return 1",
    ),
    (
        "unbounded second stream",
        "for $x in stream('s')/r/i, $y in stream('t')/r/i, $z in stream('u')/r/i "
        "where $x/t <= $y/t + 1 and $x/t >= $y/t - 1 return 1",
    ),
    ("window beside a stream without one", "for $x in stream('s')/r/i, $y in stream('t')/r/i|count 2| return 1"),
    ("stream inside the round of another", "for $x in stream('s')/r/i where $x = stream('t')/r/i return 1"),
    ("stream inside the round of another", "for $x in stream('s')/r/i return <a>{ stream('t')/r/i }</a>"),
    ("stream inside the round of another", "for $x in stream('s')/r/i[a = stream('t')/r/i/a] return 1"),
    (
        "stream inside the round of another",
        "let $t := stream('t')/r/i for $x in stream('s')/r/i return <a>{ $t }</a>",
    ),
    (
        "aggregate over a join",
        "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|count 2| return <a>{ count(($x, $y)) }</a>",
    ),
    ("window on what is no path", "let $s := stream('s')/r/i for $w in $s|count 2| return count($w)"),
    ("step out of the item", "stream('s')/r/i/.."),
    ("step out of the item", "stream('s')/r/i[../@x]"),
    ("step out of the item", "for $p in stream('s')/r/i return $p/a/../../@x"),
    ("step out of the item", "for $p in stream('s')/r/i return $p/parent::r"),
    ("control element in an answer", "<a xmlns='urn:anabranch:stream'><b/></a>"),
    ("control element in an answer", "declare namespace c = 'urn:anabranch:stream'; <a><c:b/></a>"),
    ("control element in an answer", "declare default element namespace 'urn:anabranch:stream'; <a/>"),
    ("control element in an answer", "<a xmlns:s='urn:anabranch:stream'>{ <b s:at='1'/> }</a>"),
)


@pytest.mark.parametrize(("name", "text"), OTHER_WRITINGS, ids=[text for _, text in OTHER_WRITINGS])
def test_other_writings_are_refused_alike(name: str, text: str) -> None:
    """A refusal does not depend on how the construct is written."""
    assert refused(text).message == f"refused: {name}"


ACCEPTED = (
    "for $p in stream('s')/r/i where $p/a eq 'x' and $p/b ne 'y' return $p/c || $p/d",
    "for $p in stream('s')/r/i return $p/a/ancestor::b | $p/a/following-sibling::*[1]",
    "for $p in stream('s')/r/i return $p/(a, b)/string()",
    "stream('s')/r/i/(a | b)",
    "for $p as element(i) in stream('s')/r/i return $p",
    "for $p in stream('s')/r/i return switch ($p/a) case 'x' return 1 default return 2",
    "for $p in stream('s')/r/i return try { xs:integer($p/a) } catch * { $err:code }",
    "for $p in stream('s')/r/i order by $p/a empty greatest return $p",
    "for $p in stream('s')/r/i return for $a allowing empty in $p/a return count($a)",
    "for $p in stream('s')/r/i return element { name($p) } { $p/@*, text { 'x' } }",
    "declare variable $least := 5; for $p in stream('s')/r/i where $p/a > $least return $p",
    "declare function local:f($x as element()) as xs:string? { $x/@id/string() }; stream('s')/r/i/local:f(.)",
    "for $p in stream('s')/r/i return for-each($p/a, function($a) { $a * 2 })",
    "for $w in (stream('s')/r/i)|count 2| return count($w)",
    "for $x in (doc('d')/a | doc('d')/b) return $x",
    "ordered { unordered { 1 } }",
    "for $w in stream('s')/r/i|t diff PT1M step PT10S| let $v := $w return window-start($v)",
    "for $w in stream('s')/r/i|t gap P1DT0.5S by @user| where window-end($w) > 5 return 1",
    "for $p in stream('s')/r/i for $w in $p/j|t diff 5| return window-start($w)",
    "for $p in stream('s')/r/i return stream('t')/r/i?PT1M",
    "for $p in stream('s')/r/i return stream('t')/r/i?[PT0.5S]",
    "for $p in stream('s')/r/i return $p/a/..",
    "for $p in stream('s')/r/i return $p/a[../b]",
    "for $p in doc('d')/r/i return $p/..",
    "stream('s')/r/i['1']",
    "stream('s')/r/i[a]",
    "stream('s')/r/i[not(1)]",
    "stream('s')/r/i[1 = 1]",
    "for $x in stream('s')/r/i for $y in doc('d')/r/i return $y",
    "for $x in stream('s')/r/i where $x/a = doc('d')/r/a return $x",
    "for $x in stream('s')/r/i where some $y in stream('t')/r/i?[60] satisfies $y/a = $x/a return $x",
    "for $w in doc('d')/r/i|count 2| return count($w)",
    "let $s := stream('s')/r/i return count($s)",
    "(stream('s')/r/i, stream('t')/r/i)",
    "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|t diff 2| return <a>{ $x, $y }</a>",
    "declare function local:f($x) { local:g($x) }; declare function local:g($x) { $x }; local:f(1)",
    "(for $x in stream('s')/r/i return $x)?5",
    "stream('s')/r/i#1/a?2",
    "declare namespace s = 'urn:anabranch:stream'; <a xmlns:s='urn:a'><s:b s:at='1' at='2'/></a>",
)


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_resembles_a_refusal_and_is_none_passes(text: str) -> None:
    """The refusals go no further than their reasons."""
    assert isinstance(check(parse(text), text), Checked)
