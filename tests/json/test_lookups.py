"""Lookups, objects and arrays, and answers in JSON (LAWS 7), by the reference and by a trunk in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.errors import DynamicError, QueryError
from anabranch.law.rounds.joins import declared_time
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.source import Source

ENGINES: tuple[EngineName, ...] = ("reference", "local")
LOOP = 'for $o in stream("s") '
NESTED = '{"v": [[1.50, "2"], [], [[null]], {"k": [[]]}]}\n'


def answer(folder: Path, query: str, lines: str, engine: EngineName) -> tuple[str, list[str]]:
    """What a query answers over lines, and the codes of its dead letters."""
    (folder / "s.jsonl").write_text(lines)
    inputs = Inputs([Source("s", folder / "s.jsonl", format="json")], finite=True)
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        return "".join(run.answers["q"]), [each.code or "" for each in run.dead]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "lines", "expected", "codes"),
    [
        # case 66: five things
        (
            LOOP + 'return { "a": $o.a, "n": count($o.a), "m": count($o.a[]) }',
            '{"a": []}\n{"a": ["x"]}\n{"a": "x"}\n{"a": null}\n{}\n',
            '{"a": [], "n": 1, "m": 0}\n{"a": ["x"], "n": 1, "m": 1}\n{"a": "x", "n": 1, "m": 0}\n'
            '{"a": null, "n": 1, "m": 0}\n{"a": null, "n": 0, "m": 0}\n',
            [],
        ),
        # case 67: a string is no number, and numbers keep their spelling
        (LOOP + "where $o.n = 1.5 return $o", '{"n": 1.50}\n{"n": "1.50"}\n', '{"n": 1.50}\n', ["XPTY0004"]),
        # case 68: truth
        (
            LOOP + "where $o.ok return { 'i': $o.i }",
            '{"i": 1, "ok": true}\n{"i": 2, "ok": false}\n{"i": 3, "ok": "false"}\n{"i": 4, "ok": null}\n{"i": 5}\n',
            '{"i": 1}\n{"i": 3}\n',
            [],
        ),
        # case 69: groups
        (
            'for $w in stream("s")|count 3| for $o in $w group by $k := $o.n return { "k": $k, "n": count($o) }',
            '{"n": 1}\n{"n": 1.0}\n{"n": "1"}\n',
            '{"k": 1, "n": 2}\n{"k": "1", "n": 1}\n',
            [],
        ),
        # case 180: casts take the exact value, and a number is a position
        (
            LOOP + "return [xs:decimal($o.n) = 0.1, xs:boolean($o.n), xs:integer($o.n), (5, 6, 7)[$o.n]]",
            '{"n": 0.1}\n{"n": 0}\n{"n": 12345678901234567890}\n{"n": 2.0}\n',
            "[true, true, 0, null]\n[false, false, 0, null]\n[false, true, 12345678901234567890, null]\n"
            "[false, true, 2, 6]\n",
            [],
        ),
        (LOOP + "return xs:integer($o.n) + 0 * xs:decimal($o.n)", '{"n": 1e400}\n', "", ["FOCA0002"]),
        # members, and what is beyond
        (
            LOOP + "return [$o.a[[1]], $o.a[[3]], $o.b.c[[2]].d]",
            '{"a": [1, 2], "b": {"c": [0, {"d": "x"}]}}\n',
            '[1, null, "x"]\n',
            [],
        ),
        # case 190: arrays in arrays
        (LOOP + "return $o", NESTED, NESTED, []),
        (
            LOOP + "return [$o.v[[1]], $o.v[[1]][[2]], count($o.v[]), array { $o.v[][] }, exists($o.v[[2]][[1]]), "
            "$o.v[].k]",
            NESTED,
            '[[1.50, "2"], "2", 4, [1.50, "2", [null]], false, [[]]]\n',
            [],
        ),
        # case 191: as nodes
        (
            LOOP + "return <r>{ $o/v[position() < 4] }</r>",
            NESTED,
            "<r><v><member>1.50</member><member>2</member></v><v/><v><member><member/></member></v></r>",
            [],
        ),
        (
            LOOP + "return [count($o/v), array { $o/v/member }, array { $o//*/name() }]",
            NESTED,
            '[4, [1.50, "2", [null]], ["v", "member", "member", "v", "v", "member", "member", "v", "k"]]\n',
            [],
        ),
        # case 192: an array stands for its members, and they for theirs
        (
            LOOP + "where $o.v > 5 return [sum($o.v), max($o.v), $o.v = 7]",
            '{"v": [5, [6, [7]]]}\n{"v": [[8]]}\n{"v": [[]]}\n{"v": [["x"]]}\n',
            "[18, 7, true]\n[8, 8, false]\n",
            ["XPTY0004"],
        ),
        # case 193: what a query makes of them
        (
            LOOP + 'let $a := $o.v return ($a(1), [[$a], $a(1)(2)], { "k": [[$a(2)]] })',
            '{"v": [[1, 2], [3]]}\n',
            '[1, 2]\n[[[[1, 2], [3]]], 2]\n{"k": [[[3]]]}\n',
            [],
        ),
        (LOOP + "return <e>{ $o.v }</e>", '{"v": [[1, 2], [3]]}\n', "<e>1 2 3</e>", []),
        (
            LOOP + 'return { "d": deep-equal($o.v, [[1, 2], [3]]), "f": deep-equal($o.v, [1, 2, 3]) }',
            '{"v": [[1, 2], [3]]}\n',
            '{"d": true, "f": false}\n',
            [],
        ),
        # an array with nothing but null in it is an array
        (LOOP + "where $o.n return [1]", '{"n": "x"}\n' * 5 + '{"n": [null]}\n', "[1]\n" * 5, ["FORG0006"]),
        # odd keys, calls
        (
            'for $o in stream("s") let $m := { "odd key": $o.a } return ($m."odd key", $m("odd key"), [7, 8](2))',
            '{"a": 5e1}\n',
            "5e1\n5e1\n8\n",
            [],
        ),
        # arithmetic and comparison of numbers
        (
            LOOP + "return [$o.a + $o.b, $o.a = $o.b, $o.a < 2, sum($o.c), max($o.c[]), $o.c = 3]",
            '{"a": 1.0, "b": 1, "c": [1, 3, 2]}\n',
            "[2, true, true, 6, 3, true]\n",
            [],
        ),
        # case 71: null stands for nothing
        (
            LOOP + "return [$o.a = $o.b, $o.a != $o.b, $o.a != 1, not($o.a = 1), empty($o.a eq 1), empty($o.a + 1), "
            "string($o.a), exists($o.a)]",
            '{"a": null, "b": null}\n',
            '[false, false, false, true, true, true, "", true]\n',
            [],
        ),
        (LOOP + "where $o.a < 1 return 1", '{"a": null}\n', "", []),
        # case 72: aggregates leave it out, and count() does not
        (
            'for $w in stream("s")|count 4| '
            "return [count($w.a), count(non-null($w.a)), sum($w.a), avg($w.a), min($w.a)]",
            '{"a": 1}\n{"a": null}\n{"a": 3}\n{}\n',
            "[3, 2, 4, 2, 1]\n",
            [],
        ),
        (
            'for $w in stream("s")|count 3| return [max($w.a), median($w.a), stddev($w.a), string-join($w.a, "-")]',
            '{"a": 1}\n{"a": null}\n{"a": 3}\n',
            '[3, 2, 1.4142135623730951, "1-3"]\n',
            [],
        ),
        # case 73: a group of its own
        (
            'for $w in stream("s")|count 3| for $o in $w group by $k := $o.k return [count($o), exists($k)]',
            '{"k": null}\n{}\n{"k": null}\n',
            "[2, true]\n[1, false]\n",
            [],
        ),
        (
            'for $w in stream("s")|count 3| for $o in $w group by $k := non-null($o.k) return { "n": count($o) }',
            '{"k": null}\n{}\n{"k": null}\n',
            '{"n": 3}\n',
            [],
        ),
        # case 74: what stands in its place, and in an element
        (
            LOOP + "return { 'a': (non-null($o.a), 0)[1] }",
            '{"a": null}\n{}\n{"a": 5}\n',
            '{"a": 0}\n{"a": 0}\n{"a": 5}\n',
            [],
        ),
        (LOOP + "return <r>{ $o.a }</r>", '{"a": null}\n{}\n{"a": 5}\n', "<r/><r/><r>5</r>", []),
        # functions take it for nothing, and nothing else that is asked of values notices it
        (
            LOOP
            + "return [string-length($o.a), abs($o.a), xs:integer($o.a), $o.a castable as xs:integer, $o.a || 'x', "
            "index-of(($o.a, 1), 1), deep-equal($o.a, $o.a), count(distinct-values(($o.a, $o.a))), $o.a * 2, -$o.a]",
            '{"a": null}\n',
            '[0, null, null, false, "x", 2, true, 1, null, null]\n',
            [],
        ),
        # what leaves as XML
        (LOOP + "return <r>{ $o.a, $o.b }</r>", '{"a": 1.50, "b": ["x", "y"]}\n', "<r>1.50 x y</r>", []),
        (LOOP + "return <r>{ $o }</r>", '{"a": 1.50}\n', "<r><item><a>1.50</a></item></r>", []),
        (LOOP + "return $o/a", '{"a": 1.50}\n', "<a>1.50</a>", []),
        (LOOP + "return ($o//b, <x/>)", '{"a": {"b": 1}}\n', "<b>1</b><x/>", []),
        (LOOP + "return ($o/descendant::b, <x/>)", '{"a": {"b": 1}}\n', "<b>1</b><x/>", []),
        (LOOP + "return (<x/>, ($o/a, $o/c)/b)", '{"a": {"b": 1}, "c": {"b": 2}}\n', "<x/><b>1</b><b>2</b>", []),
        (
            'for $w in stream("s")|count 2| return if ($w/b = 1) then $w//b else <none/>',
            '{"b": 1}\n{"b": 2}\n{"b": 3}\n{}\n',
            "<b>1</b><b>2</b><none/>",
            [],
        ),
        (LOOP + "return <r>{ $o.a }</r>", '{"a": {"b": 1}}\n{"a": [1, {"b": 1}]}\n', "", ["XQTY0105"] * 2),
        # what JSON has no word for
        (LOOP + 'return { "a": $o.a div 0 }', '{"a": 1}\n', "", ["SERE0020"]),
        (LOOP + 'return { "a": $o.a[] }', '{"a": [1, 2]}\n{"a": [3]}\n', '{"a": 3}\n', ["SERE0023"]),
        (
            LOOP + 'return { "a": 1, $o.k: 2 }',
            '{"k": "a"}\n{"k": "b"}\n{"k": 1}\n',
            '{"a": 1, "b": 2}\n',
            ["XQDY0137", "XPTY0004"],
        ),
        # order: missing, null, numbers, text
        (
            'for $w in stream("s")|count 5| for $o in $w order by $o.a return $o.i',
            '{"i": 1, "a": "x"}\n{"i": 2, "a": 10}\n{"i": 3, "a": 9.5}\n{"i": 4, "a": null}\n{"i": 5}\n',
            "5\n4\n3\n2\n1\n",
            [],
        ),
        # a predicate with nodes, a window and aggregates over lookups
        (
            'for $w in stream("s")[a > 1]|t diff 10| return { "n": count($w), "s": sum($w.a), "i": array { $w.a } }',
            '{"t": 1, "a": 1}\n{"t": 2, "a": 2.50}\n{"t": 3, "a": 1e1}\n{"t": 11, "a": 7}\n',
            '{"n": 2, "s": 12.5, "i": [2.50, 1e1]}\n{"n": 1, "s": 7, "i": [7]}\n',
            [],
        ),
        # a join
        (
            'for $a in stream("s")|count 2|, $b in stream("s")|count 2| where $a.k = $b.r '
            'return { "a": $a, "b": $b.k }',
            '{"k": "x", "r": "y"}\n{"k": "y", "r": "z"}\n',
            '{"a": {"k": "y", "r": "z"}, "b": "x"}\n',
            [],
        ),
        # attributes and empty objects
        (LOOP + 'return [$o."@id", $o.a, $o]', '{"a": {}, "@id": 5}\n', '[5, {}, {"@id": 5, "a": {}}]\n', []),
    ],
)
def test_cases(tmp_path: Path, query: str, lines: str, expected: str, codes: list[str], engine: EngineName) -> None:
    """Each case gives what was worked out by hand from the laws."""
    assert answer(tmp_path, query, lines, engine) == (expected, codes)


@pytest.mark.parametrize("engine", ENGINES)
def test_xml_is_looked_into(tmp_path: Path, engine: EngineName) -> None:
    """Of an XML element, a lookup gives the children one after the other, without a type."""
    file = tmp_path / "s.xml"
    file.write_text('<r><i n="1"><a>2</a><a>x y</a><b><c>1.0</c></b></i></r>')
    inputs = Inputs([Source("s", file)], finite=True)
    query = (
        'for $o in stream("s") return { "a": array { $o.a }, "c": $o.b.c, "n": $o."@n", "b": $o.b, "eq": $o.b.c = 1 }'
    )
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        assert "".join(run.answers["q"]) == '{"a": [2, "x y"], "c": 1.0, "n": 1, "b": {"c": 1.0}, "eq": true}\n'


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ('({ "a": 1 }, <a/>)', "SERE0022"),
        ('for $o in stream("s") return if ($o.a) then { "a": 1 } else <a/>', "SERE0022"),
        ('for $o in stream("s") return ($o, <a/>)', "SERE0022"),
        ('for $o in stream("s") return if ($o.a) then $o else $o//a', "SERE0022"),
        ('let $r := stream("s")/root for $o in $r/item return ($o, $o/a)', "SERE0022"),
        ('<a>{ { "a": 1 } }</a>', "XQTY0105"),
        ('for $o in stream("s") return { a: 1 }', "XPST0003"),
        ("for $o in stream('s') return $p.a", "XPST0008"),
        ("for $o in stream('s') return $o/a[[1]]", "XPST0003"),
        ("for $o in stream('s') return op:lookup($o, 'a')", "XPST0081"),
    ],
)
def test_refused(query: str, code: str) -> None:
    """What cannot be meant is refused with its place."""
    with pytest.raises(QueryError) as caught:
        Inputs([]).check(query, "q") if "stream" not in query else _inputs_of_nothing().check(query, "q")
    assert caught.value.code == code
    assert caught.value.span is not None


def _inputs_of_nothing() -> Inputs:
    return Inputs([Source("s", Path(__file__).parent, format="json")])


def test_the_longest_name_wins() -> None:
    """`$a.b` is a variable where it is bound (case 70), and printing keeps apart what was written apart."""
    from anabranch.language import parse, print_query
    from anabranch.law import evaluate

    query = parse('let $a.b := 1 let $a := { "b": 2 } return [$a.b, $a."b"]')
    assert evaluate(query, {}).text == "[1, 2]\n"
    assert evaluate(parse(print_query(query)), {}).text == "[1, 2]\n"


def test_files_sinks_and_streams(tmp_path: Path) -> None:
    """Answers in JSON go to NAME.jsonl, come one by one from the subscription, and can be a stream that has types."""
    from anabranch import Engine

    (tmp_path / "s.jsonl").write_text('{"a": "5", "x": "<&"}\n{"a": 5, "x": [null]}\n')
    out = tmp_path / "out"
    out.mkdir()
    with Engine(local=True, once=True) as engine:
        engine.stream("s", tmp_path / "s.jsonl")
        made = engine.subscribe('for $o in stream("s") return { "b": $o.a, "x": $o.x }', "made", sink=out)
        copied = engine.subscribe('for $o in stream("s") return $o', "copied", sink=out)
        engine.stream("t", made)
        again = engine.subscribe('for $o in stream("t") where $o.b = 5 return [$o.x, $o]', "again")
        engine.wait()
        assert list(made) == ['{"b": "5", "x": "<&"}\n', '{"b": 5, "x": [null]}\n']
        assert copied.answer() == (tmp_path / "s.jsonl").read_text() == (out / "copied.jsonl").read_text()
        assert (out / "made.jsonl").read_text() == made.answer()
        assert again.answer() == '[[null], {"b": 5, "x": [null]}]\n'
        assert "&lt;&amp;" in made._repr_html_()


def test_conversion_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--as` turns elements into objects and lines of JSON into elements."""
    from anabranch.cli import main

    (tmp_path / "s.jsonl").write_text('{"a": 1.50, "t": ["x"]}\n')
    (tmp_path / "q.xq").write_text('for $o in stream("s") return $o')
    (tmp_path / "x.xq").write_text('for $o in stream("s") return <r>{ $o/a }</r>')
    given = ["--stream", f"s={tmp_path / 's.jsonl'}", "--engine", "reference"]
    assert main(["query", str(tmp_path / "q.xq"), *given, "--as", "xml"]) == 0
    assert capsys.readouterr().out == "<item><a>1.50</a><t>x</t></item>\n"
    assert main(["query", str(tmp_path / "x.xq"), *given, "--as", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"a": 1.5}


def test_an_array_in_an_array_is_no_time() -> None:
    """A join by intervals sets an item aside whose time is one, whatever its text: lookups find other values there."""
    for time, of in (("5", "5"), ("[5]", "5"), ("[[5]]", None), ("[[1, 2]]", None), ("[[]]", None)):
        item = parse_line(f'{{"t": {time}}}'.encode(), Place("s", "s", 0), Limits(), "item")
        assert isinstance(item, Item)
        if of is None:
            with pytest.raises(DynamicError, match="the time 't' is an array in an array"):
                declared_time(item.tree, ItemPath.parse("t"))
        else:
            assert declared_time(item.tree, ItemPath.parse("t")) == int(of)
