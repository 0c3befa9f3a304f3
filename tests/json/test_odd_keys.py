"""Keys that are no names of XML, in lookups, steps, answers, windows, displays, updates and sinks (LAWS 7.1)."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Engine, Parquet
from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.scan.look import Look
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.engine.reports.columns import SupposedLook, columns_verdict
from anabranch.language import check, parse
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.json_names import step_of_key
from anabranch.stream.reading.source import Source
from columnar.streams import item_queries
from mass import examples
from odd_keys import ODD_KEYS, any_attribute, any_key, quoted
from spark.bare import BareTrunk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES: tuple[EngineName, ...] = ("reference", "local")
LOOP = 'for $o in stream("s") '
ITEMS = 'for $o in stream("s")/root/item'
ODD = '{"odd key": 1.0, "2026": "x", "a/b": {"": null, "$ref": [true]}, "@x y": 5}\n'


def answer(folder: Path, query: str, lines: str, engine: EngineName, time: str | None = None) -> tuple[str, list[str]]:
    """What a query answers over lines, and why items were set aside."""
    (folder / "s.jsonl").write_text(lines)
    path = None if time is None else ItemPath.parse(time)
    inputs = Inputs([Source("s", folder / "s.jsonl", format="json", time=path)], finite=True)
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        return "".join(run.answers["q"]), [each.reason for each in run.dead]


# --- by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "lines", "expected"),
    [
        # case 86: as they are, and looked up
        (LOOP + "return $o", ODD, '{"@x y": 5, "odd key": 1.0, "2026": "x", "a/b": {"": null, "$ref": [true]}}\n'),
        (
            LOOP + 'return [$o."odd key", $o."2026", $o."a/b"."$ref"[[1]], exists($o."a/b".""), $o."@x y"]',
            ODD,
            '[1.0, "x", true, true, 5]\n',
        ),
        # case 87: as XML, their names, and steps to them
        (
            LOOP + "return <r>{ $o/@*, $o/* }</r>",
            ODD,
            '<r x_x0020_y="5"><odd_x0020_key>1.0</odd_x0020_key><_x0032_026>x</_x0032_026>'
            "<a_x002F_b><_x_/><_x0024_ref>true</_x0024_ref></a_x002F_b></r>",
        ),
        (
            LOOP + "return array { $o/@*/name(), $o//*/name() }",
            ODD,
            '["x y", "odd key", "2026", "a/b", "", "$ref"]\n',
        ),
        (LOOP + "return [$o/odd_x0020_key + 1, count($o/a_x002F_b/*)]", ODD, "[2, 2]\n"),
        (
            LOOP + 'return { "n": local-name($o/odd_x0020_key), "m": name($o/@x_x0020_y) }',
            ODD,
            '{"n": "odd key", "m": "x y"}\n',
        ),
        # case 88: what looks like an escape
        (
            LOOP + "return <r>{ $o/@*, $o/* }</r>",
            '{"a ": 1, "a_x0020_": 2, "a_x0041_": 3, "@xmlns": "u"}\n',
            '<r _x0078_mlns="u"><a_x0020_>1</a_x0020_><a_x005F_x0020_>2</a_x005F_x0020_><a_x0041_>3</a_x0041_></r>',
        ),
        # case 90: SQL
        (
            'SELECT MAX("unit price") AS "the most" FROM TUMBLE(s, "event time", 10) GROUP BY window_start',
            '{"event time": 1, "unit price": 2.5}\n{"event time": 5, "unit price": 1}\n'
            '{"event time": 12, "unit price": 3}\n',
            '{"the most": 2.5}\n{"the most": 3}\n',
        ),
        # what a query makes, and calls
        (
            LOOP + 'let $m := { "a/b": $o."odd key", "": $o } return [$m("a/b"), $m("")."2026", $m."a/b", $m]',
            '{"odd key": 1.0, "2026": "x"}\n',
            '[1.0, "x", 1.0, {"a/b": 1.0, "": {"odd key": 1.0, "2026": "x"}}]\n',
        ),
        (LOOP + 'return $o."a/b"("$ref")(1)', ODD, "true\n"),
        (LOOP + 'return deep-equal($o."a/b", { "$ref": [true()], "": $o."a/b"."" })', ODD, "true"),
        # letters that no name has may stand in a step
        (
            LOOP + "return [$o.țară, string($o/țară), name($o/*[1]), $o/*[name() = 'țară']/data()]",
            '{"țară": "RO"}\n',
            '["RO", "RO", "țară", "RO"]\n',
        ),
        (LOOP + "return (<țară>1</țară>, <b/>)/self::țară", "{}\n", "<țară>1</țară>"),
        # sessions by an odd key, and groups
        (
            'for $w in stream("s")|t gap 5 by the_x0020_user| return { "u": $w[1]."the user", "n": count($w) }',
            '{"t": 1, "the user": "a"}\n{"t": 2, "the user": "b"}\n{"t": 3, "the user": "a"}\n'
            '{"t": 20, "the user": "b"}\n',
            '{"u": "b", "n": 1}\n{"u": "a", "n": 2}\n{"u": "b", "n": 1}\n',
        ),
    ],
)
def test_cases(tmp_path: Path, query: str, lines: str, expected: str, engine: EngineName) -> None:
    """Each case gives what was worked out by hand from the laws."""
    assert answer(tmp_path, query, lines, engine) == (expected, [])


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_bad(tmp_path: Path, engine: EngineName) -> None:
    """Reserved keys where they cannot stand, characters that XML does not have, and what comes twice (case 89)."""
    lines = (
        '{"a": {"$at": 1}}\n{"a": {"$after": 1}}\n{"\\u0001": 1}\n{"\\ud800": 1}\n{"a b": 1, "a b": 2}\n{"$then": 1}\n'
    )
    found, dead = answer(tmp_path, LOOP + "return $o", lines, engine)
    assert found == '{"$then": 1}\n'
    assert dead == [
        "key '$at' is a reserved key that cannot stand here",
        "key '$after' is a reserved key that cannot stand here",
        "character U+0001 in key '\\u0001'",
        "character U+D800 in key '\\ud800'",
        "key 'a b' twice in one object",
    ]


def test_conversion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--as xml` escapes keys, and `--as json` makes keys of escaped names (case 88)."""
    from anabranch.cli import main

    lines = '{"@xmlns": "u", "a ": 1, "a_x0020_": 2, "a_x0041_": 3}\n'
    (tmp_path / "s.jsonl").write_text(lines)
    (tmp_path / "q.xq").write_text('for $o in stream("s") return $o')
    (tmp_path / "x.xq").write_text('for $o in stream("s") return <r>{ $o/@*, $o/* }</r>')
    given = ["--stream", f"s={tmp_path / 's.jsonl'}", "--engine", "reference"]
    assert main(["query", str(tmp_path / "q.xq"), *given, "--as", "xml"]) == 0
    inside = "<a_x0020_>1</a_x0020_><a_x005F_x0020_>2</a_x005F_x0020_><a_x0041_>3</a_x0041_>"
    assert capsys.readouterr().out == f'<item _x0078_mlns="u">{inside}</item>\n'
    assert main(["query", str(tmp_path / "x.xq"), *given, "--as", "json"]) == 0
    assert capsys.readouterr().out == lines


def test_times_and_accents(tmp_path: Path) -> None:
    """A declared time, a window and an accent name an odd key as steps do; units change under lookups, too."""
    lines = (
        '{"event time": 1, "temp °F": 68}\n'
        '{"$accent": {"alter": {"path": "temp_x0020__x00B0_F", "by": "(. - 32) * 5 div 9"}}}\n'
        '{"event time": 2, "temp °F": 20}\n{"event time": 11, "temp °F": 25}\n'
    )
    queries = {
        "windows": 'for $w in stream("s")|event_x0020_time diff 10| return { "t": avg($w."temp °F") }',
        "items": LOOP + 'where $o."temp °F" > 67 return { "at": $o."event time" }',
    }
    for name, query in queries.items():
        by_reference, by_trunk = (answer(tmp_path, query, lines, each, "event_x0020_time") for each in ENGINES)
        assert by_trunk == by_reference, name
        assert by_reference[1] == []
    assert answer(tmp_path, queries["windows"], lines, "local")[0].splitlines()[0] == '{"t": 68}'
    assert answer(tmp_path, queries["items"], lines, "local")[0] == '{"at": 1}\n{"at": 2}\n{"at": 11}\n'


@pytest.mark.parametrize("engine", ENGINES)
def test_updates(tmp_path: Path, engine: EngineName) -> None:
    """Regions and updates hold odd keys, and a display follows them."""
    lines = (
        '{"a/b": {"$mutable": {"id": "1", "content": {"": 1, "x y": [2]}}}, "$ref": 1}\n'
        '{"$replace": {"target": "1", "content": {"x y": {"$mutable": {"id": "2", "content": "z"}}}}}\n'
        '{"$replace": {"target": "2", "content": {"2026": true}}}\n'
    )
    (tmp_path / "s").write_text(lines)
    inputs = Inputs([Source("s", tmp_path / "s", "json", updates=True)], finite=True)
    query = LOOP + 'return { "o": $o, "x": $o."a/b"."x y", "y": $o."a/b"."x y"."2026" }'
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        shown = "".join(run.answers["q"])
        assert list(run.dead) == []
    inner = '{"x y": {"2026": true}}'
    assert shown == f'{{"o": {{"a/b": {inner}, "$ref": 1}}, "x": {{"2026": true}}, "y": true}}\n'


@pytest.mark.parametrize("engine", ENGINES)
def test_documents(tmp_path: Path, engine: EngineName) -> None:
    """Rows of a document of JSON with odd keys, long ones and emoji are joined and given as any other."""
    rows = [{"the id": number, "📦": f"p{number}", "k" * 1_000: number % 3} for number in range(50)]
    (tmp_path / "d.json").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    (tmp_path / "s.jsonl").write_text("".join(f'{{"of id": {number}}}\n' for number in range(0, 60, 7)))
    documents = {"d": DocumentSource(tmp_path / "d.json")}
    inputs = Inputs([Source("s", tmp_path / "s.jsonl", format="json")], documents, finite=True)
    queries = {
        "steps": 'for $o in stream("s") for $d in doc("d")/root/item[the_x0020_id = $o/of_x0020_id] '
        'return { "p": $d."📦", "n": name($d/*[2]) }',
        "sql": 'SELECT d."📦" AS p FROM s JOIN d ON d."the id" = s."of id"',
    }
    prepared = [prepare(name, text, inputs, engine) for name, text in queries.items()]
    with answering(prepared, inputs) as run:
        found = {name: "".join(run.answers[name]) for name in queries}
        assert list(run.dead) == []
    assert found["steps"] == "".join(f'{{"p": "p{number}", "n": "📦"}}\n' for number in range(0, 50, 7))
    assert found["sql"] == "".join(f'{{"p": "p{number}"}}\n' for number in range(0, 50, 7))


# --- any key ----------------------------------------------------------------------------------------------------


class Digits(str):
    """A number in its spelling."""

    __slots__ = ()


def told(text: str) -> list[Any]:
    """Lines of JSON as Python reads them, keys in order, numbers as they are spelled."""
    assert text == "" or text.endswith("\n")
    read = json.JSONDecoder(parse_float=Digits, parse_int=Digits, object_pairs_hook=lambda pairs: ("object", pairs))
    return [read.decode(line) for line in text.split("\n")[:-1]]


values = st.sampled_from(["1", "1.50", '"x"', '"5"', "true", "null", "[]", '[1, "a"]', '{"": 1}', "{}", '"<&>"'])


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Some keys, and records that have some of them each, in order, attributes first."""
    names = draw(st.lists(any_key, min_size=2, max_size=4, unique=True))
    names = [*draw(st.lists(any_attribute, max_size=1)), *names]
    records = []
    for place in range(draw(st.integers(1, 5))):
        chosen = [name for name in names if draw(st.integers(0, 5))]
        scalars = values.filter(lambda each: each[0] not in "[{")
        record = [(name, draw(scalars if name.startswith("@") else values)) for name in chosen]
        if "k" not in names:
            record.append(("k", str(place)))
            records.append(record)
    return names, records


def written(records: list[list[tuple[str, str]]]) -> str:
    return "".join(
        "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {value}" for key, value in each) + "}\n"
        for each in records
    )


def queries_over(names: list[str]) -> dict[str, str]:
    """Queries that look each of the keys up, by all ways to an answer."""
    found = ", ".join(f"{quoted(name)}: $o.{quoted(name)}" for name in names)
    first, made = quoted(names[0]), "".join(f"[$o.{quoted(name)}], " for name in names)
    return {
        "copy": LOOP + "return $o",
        "select": LOOP + f"return {{ {found} }}",
        "each": LOOP + f"return [{made}$o.k]",
        "called": LOOP + f"let $m := {{ {first}: $o }} return [$m({first}).k, $m.{first}.{first}]",
        "where": LOOP + f"where exists($o.{first}) return $o.k",
        "names": LOOP + "return array { $o/@*/name(), $o/*/name() }",
        "window": f'for $w in stream("s")|count 1| return {{ "v": array {{ $w.{first} }}, "o": array {{ $w }} }}',
        "display": LOOP + f"order by $o.k descending return {{ {found} }}",
        "groups": LOOP + f"group by $k := $o.k return {{ {first}: array {{ $o.{first} }} }}",
    }


def expected(name: str, names: list[str], records: list[Any]) -> list[Any]:
    """What such a query answers, told from what Python reads."""
    found: list[Any] = []
    for _, pairs in records:
        has = dict(pairs)
        all_of = ("object", [(each, has.get(each)) for each in names])
        match name:
            case "copy":
                found.append(("object", pairs))
            case "select" | "display":
                found.append(all_of)
            case "each":
                found.append([*([has.get(each)] for each in names), has["k"]])
            case "called":
                found.append([has["k"], has.get(names[0])])
            case "where":
                found += [has["k"]] if names[0] in has else []
            case "names":
                times = [len(value) if isinstance(value, list) else 1 for _, value in pairs]
                found.append(
                    [key.removeprefix("@") for (key, _), n in zip(pairs, times, strict=True) for _ in range(n)]
                )
            case "window":
                found.append(
                    ("object", [("v", [has[names[0]]] if names[0] in has else []), ("o", [("object", pairs)])])
                )
            case "groups":
                found.append(("object", [(names[0], [has[names[0]]] if names[0] in has else [])]))
    return found[::-1] if name == "display" else found


def check_stream(names: list[str], records: list[list[tuple[str, str]]], engine: EngineName) -> None:
    queries = queries_over(names)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "s"
        file.write_text(written(records))
        inputs = Inputs([Source("s", file, format="json")], finite=True)
        with answering([prepare(name, text, inputs, engine) for name, text in queries.items()], inputs) as run:
            assert [str(each) for each in run.dead] == []
            answers = {name: "".join(run.answers[name]) for name in queries}
    for name, text in answers.items():
        assert told(text) == expected(name, names, told(written(records))), (name, queries[name])


@given(streams())
@examples(150)
def test_any_keys_by_the_reference(given: tuple[list[str], list[list[tuple[str, str]]]]) -> None:
    """Values of any keys come out with the types, spellings and order that Python's reader sees."""
    check_stream(*given, "reference")


@pytest.mark.mass
@given(streams())
@examples(25)
def test_any_keys_by_a_trunk(given: tuple[list[str], list[list[tuple[str, str]]]]) -> None:
    """The same in columns, panes and displays."""
    check_stream(*given, "local")


# --- columns, hosts and sinks -----------------------------------------------------------------------------------


def test_columns_learn_odd_keys(tmp_path: Path) -> None:
    """Lookups and steps to odd keys are compiled to columns, for lines as they are, too; explanations say so."""
    line = json.dumps({key: {"": 1, "x y": ["a"]} if place % 7 == 0 else place for place, key in enumerate(ODD_KEYS)})
    read = parse_line(line.encode(), Place("", "", 0), Limits(), "item")
    assert isinstance(read, Item)
    look = Look.learn([(line.encode(), read.tree)] * 3, is_json=True)
    assert look is not None
    texts = {
        "line": f"{ITEMS} return $o",
        **{
            key: f"{ITEMS} where $o.{quoted(key)} > 5 return {{ {quoted(key)}: $o.{quoted(key)} }}"
            for place, key in enumerate(ODD_KEYS)
            if place % 7
        },
        "deep": f'{ITEMS} return [$o.{quoted(ODD_KEYS[0])}."x y"[[1]], $o.{quoted(ODD_KEYS[7])}.""]',
        "steps": f"{ITEMS} return <r>{{ $o/{step_of_key(ODD_KEYS[1])} }}</r>",
        "name": f'{ITEMS} return {{ "n": name($o/{step_of_key(ODD_KEYS[2])}) }}',
    }
    known = {"s": SupposedLook("root", look, "as the first do")}
    for name, text in texts.items():
        verdict = columns_verdict(check(parse(text), text).query, text, known, {})
        assert verdict is not None
        assert verdict.construct is None, (name, verdict)
        query = item_queries({"q": text})["q"]
        assert isinstance(compile_query(query.expanded_hole, "root", look), CompiledQuery), name


SHOWN = {
    "copy": LOOP + "return $o",
    "select": LOOP + 'where $o."2026" > 3 return { "a/b": $o."a/b".""[[1]], "": $o."odd key" }',
    "xml": LOOP + "return <row>{ $o/odd_x0020_key, $o/_x0032_026 }</row>",
    "windows": 'for $w in stream("s")|event_x0020_time diff 10| '
    'for $o in $w group by $k := $o."odd key" return { "k": $k, "s": sum($o."2026"), "📈": max($o."2026") }',
    "top": '(for $o in stream("s") order by $o."2026" descending return $o)[position() <= 3]',
    "sql": 'SELECT "odd key" AS "🔑", COUNT(*) AS "how many" FROM s GROUP BY "odd key"',
}
LINES = "".join(
    f'{{"event time": {number}, "odd key": "k{number % 3}", "2026": {number % 7}, "a/b": {{"": [{number}, "😀"]}}}}\n'
    for number in range(100)
)


def by_reference(folder: Path) -> dict[str, str]:
    (folder / "s.jsonl").write_text(LINES)
    source = Source("s", folder / "s.jsonl", format="json", time=ItemPath.parse("event_x0020_time"))
    inputs = Inputs([source], finite=True)
    with answering([prepare(name, text, inputs, "reference") for name, text in SHOWN.items()], inputs) as run:
        assert list(run.dead) == []
        return {name: "".join(run.answers[name]) for name in SHOWN}


def test_epochs(tmp_path: Path) -> None:
    """States that hold odd keys are saved and read again: many epochs of any size show what the reference does."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text(LINES)
    source = Source("s", tmp_path / "in", format="json", time=ItemPath.parse("event_x0020_time"))
    trunk = BareTrunk(tmp_path / "state", [source], Random(3), finite=True)
    queries = {name: text for name, text in SHOWN.items() if name != "sql"}
    trunk.run(queries, (300, 1_000), (1, 2))
    expected = by_reference(tmp_path)
    assert {name: trunk.answer(name) for name in queries} == {name: expected[name] for name in queries}


def test_sinks_and_streams(tmp_path: Path) -> None:
    """Lines in files and streams have the keys; elements, columns of tables and streams of XML have the names."""
    expected = by_reference(tmp_path)
    with Engine(local=True, once=True) as engine:
        engine.stream("s", tmp_path / "s.jsonl", format="json", time="event_x0020_time")
        copy = engine.subscribe(SHOWN["copy"], "copy", sink=tmp_path / "copy.jsonl")
        rows = engine.subscribe(SHOWN["xml"], "rows", sink=Parquet(tmp_path / "rows"))
        others = engine.subscribe(LOOP + "return <all>{ $o/* }</all>", "others", sink=tmp_path / "others.xml")
        engine.stream("t", copy)
        engine.stream("u", others)
        again = engine.subscribe(SHOWN["select"].replace('"s"', '"t"'), "again")
        read = 'for $r in stream("u") return [$r."odd key", name($r/*[2]), count($r."a/b".""), $r.missing]'
        steps = engine.subscribe(read, "steps")
        engine.wait()
        assert (tmp_path / "copy.jsonl").read_text() == expected["copy"] == LINES
        assert again.answer() == expected["select"]
        assert rows.answer() == expected["xml"]
        assert next(iter(others)) == (
            "<all><event_x0020_time>0</event_x0020_time><odd_x0020_key>k0</odd_x0020_key><_x0032_026>0</_x0032_026>"
            "<a_x002F_b><_x_>0</_x_><_x_>😀</_x_></a_x002F_b></all>"
        )
        assert steps.answer().splitlines()[1] == '["k1", "odd_x0020_key", 2, null]'
    table = pq.read_table(tmp_path / "rows").to_pylist()
    assert table == [{"odd_x0020_key": f"k{number % 3}", "_x0032_026": f"{number % 7}"} for number in range(100)]


def test_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Spark gives what the reference gives, to the byte."""
    expected = by_reference(tmp_path)
    inputs = Inputs(
        [Source("s", tmp_path / "s.jsonl", format="json", time=ItemPath.parse("event_x0020_time"))], finite=True
    )
    prepared = [prepare(name, text, inputs, "spark") for name, text in SHOWN.items()]
    with answering(prepared, inputs) as run:
        assert {name: "".join(run.answers[name]) for name in SHOWN} == expected
        assert list(run.dead) == []
