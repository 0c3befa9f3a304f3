"""What the language refuses, in one table: the name it goes by, why, what to write instead, and an example.

A refusal is a decision, not a gap: either XQuery's meaning would need what a stream does not have (positions, a
whole document), or the notation is taken (`#`, `?`, `|`), or the construct has no user here yet.
`tests/language/test_refusals.py` runs every example, and `docs/language.md` prints the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import Refused, Span


@dataclass(frozen=True, slots=True)
class Refusal:
    name: str
    hint: str
    example: str


_ALL = (
    # operators
    Refusal(
        "type expression",
        "the types known are xs:string, xs:boolean, xs:integer, xs:decimal, xs:double, xs:untypedAtomic, xs:dateTime, "
        "xs:date, xs:time, xs:dayTimeDuration, xs:yearMonthDuration, and nodes, items and functions",
        "1 instance of xs:unsignedByte",
    ),
    # expressions
    Refusal("lookup", "'?' asks for an earlier time; '.' looks up, as in $o.name", "stream('s')/r/i?name"),
    Refusal("unary lookup", "'?' asks for an earlier time and stands behind a path; '.' looks up", "?name"),
    Refusal("annotation", "leave it out", "%private function($x) { $x }"),
    Refusal("namespace constructor", "declare the namespace", "<a>{ namespace p { 'urn:p' } }</a>"),
    Refusal("validate", "items have no schema: leave the keyword and its braces out", "validate { <a/> }"),
    Refusal("processing instruction constructor", "leave it out", "<?pi data?>"),
    Refusal(
        "control element in an answer",
        "give it another namespace: who reads the answer as a stream would take it for an accent, an update or a time",
        "<s:replace xmlns:s='urn:anabranch:stream' target='1'/>",
    ),
    Refusal("kind test", "elements have no types: write the name alone", "stream('s')/r/i/schema-element(a)"),
    Refusal("axis", "declare the namespaces that are asked for", "stream('s')/r/i/namespace::p"),
    # FLWR
    Refusal(
        "type declaration",
        "give the key a value, '$k as xs:string := ...'",
        "for $p in doc('d')/r/i let $a := $p/a group by $a as xs:string return $a",
    ),
    Refusal(
        "allowing empty",
        "whether a stream stays empty, only its end tells: loop over a window, or over what a 'for' gives",
        "for $p allowing empty in stream('s')/r/i return $p",
    ),
    Refusal(
        "order modifier",
        "leave it out: text is compared by its characters",
        "for $p in stream('s')/r/i order by $p/a collation 'c' return $p",
    ),
    Refusal(
        "positional variable",
        "items of a stream have no positions: number what a window holds, or what a 'for' over the stream gives",
        "for $p at $i in stream('s')/r/i return $i",
    ),
    Refusal(
        "positional predicate",
        "items of a stream have no positions: take them from a window, or from what comes of the stream by a 'for'",
        "stream('s')/r/i[1]",
    ),
    Refusal(
        "position beside a temporal qualifier",
        "put parentheses around the versions, as in (stream('s')/r/i#[5])[1]",
        "stream('s')/r/i#[5][1]",
    ),
    Refusal(
        "window clause",
        "write a window behind the path, '|count 3|'",
        "for tumbling window $w in (1, 2) start when true() return $w",
    ),
    Refusal(
        "count clause",
        "items of a stream have no numbers: count behind 'order by' or 'group by'",
        "for $p in stream('s')/r/i count $c return $c",
    ),
    Refusal(
        "collation of a group",
        "leave it out: text is compared by its characters",
        "for $p in stream('s')/r/i group by $a := $p/a collation 'c' return $a",
    ),
    Refusal(
        "group by without a loop over the window",
        "groups are made inside each window: write 'for $o in $w' before 'group by'",
        "for $w in stream('s')/r/i|count 2| group by $n := count($w) return $n",
    ),
    Refusal(
        "group by or count over a join",
        "join first, register the answer as a stream, and group that",
        "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|count 2| group by $a := $x/a return $a",
    ),
    # prolog
    Refusal(
        "prolog declaration", "namespaces, functions and variables are declared", "declare boundary-space preserve; 1"
    ),
    Refusal("external variable", "give it a value, or read it from doc('name')", "declare variable $x external; $x"),
    Refusal("module import", "put all of the query in one text", "import module namespace m = 'urn:m'; 1"),
    Refusal(
        "recursive function",
        "a query must end on every item",
        "declare function local:f($x) { local:f($x) }; local:f(1)",
    ),
    Refusal(
        "outside access", "register the input under a name and write doc('name')", "unparsed-text('file:///etc/passwd')"
    ),
    Refusal("clock", "times are in the data: compare with the time of an item", "current-dateTime()"),
    # streams, windows and joins
    Refusal(
        "unbounded second stream",
        "give both a window, or tie them together in 'where', by equal keys or by an interval",
        "for $x in stream('s')/r/i, $y in stream('t')/r/i where $x/a < $y/a return $x",
    ),
    Refusal(
        "window beside a stream without one",
        "give every stream of the join a window",
        "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i return $x",
    ),
    Refusal(
        "stream inside the round of another",
        "name all streams in the 'for' clauses of one expression",
        "for $x in stream('s')/r/i return <a>{ for $y in stream('t')/r/i return $y }</a>",
    ),
    Refusal(
        "join input that depends on another",
        "move the condition to 'where'",
        "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i[a = $x/a]|count 2| return $y",
    ),
    Refusal(
        "aggregate over a join",
        "join first, register the answer as a stream, and aggregate that",
        "for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|count 2| let $a := avg($x/a) return $a",
    ),
    Refusal(
        "window on what is no path",
        "a window follows a path, as in stream('s')/r/i|count 2|",
        "for $w in (1, 2)|count 2| return count($w)",
    ),
    Refusal(
        "session in a join",
        "give the stream a time window, or register the answer over sessions as a stream",
        "for $x in stream('s')/r/i|t gap 5|, $y in stream('t')/r/i|t diff 5| return $x",
    ),
    Refusal(
        "duration in months",
        "months differ in length: write days, hours, minutes or seconds, as in P30D or PT1M",
        "for $w in stream('s')/r/i|t diff P1M| return count($w)",
    ),
    Refusal(
        "bounds of what is no window",
        "write the variable of a 'for' with a time window or a session",
        "for $w in stream('s')/r/i|count 2| return window-start($w)",
    ),
    Refusal("step out of the item", "'..' stays inside an item", "for $p in stream('s')/r/i return $p/.."),
)

REFUSALS = {refusal.name: refusal for refusal in _ALL}


def refuse(name: str, text: str, span: Span) -> Refused:
    """The error for one row of the table, to be raised at a place."""
    return Refused(f"refused: {name}", text=text, span=span, hint=REFUSALS[name].hint)
