"""JSON values come out as they went in: through select, group, window, join, displays, links, the answer log, sinks
and streams; with dots, with paths and in SQL.

The judge is Python's own reader of JSON, with numbers as they are spelled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.network import topology
from anabranch.network.description import RegisteredStream
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from mass import examples
from odd_keys import any_attribute, any_key
from peers.working import GrowingStream, bare_network, network_of


class Digits(str):
    """A number in its spelling."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digits) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def read(line: str) -> Any:
    """A line of JSON with its types and spellings, keys in order."""
    return json.loads(line, parse_float=Digits, parse_int=Digits, object_pairs_hook=lambda pairs: ("object", pairs))


numbers = st.sampled_from(["0", "-0", "1", "1.0", "1.50", "-7", "2e3", "2E+3", "1e400", "0.1", "12345678901234567890"])
texts = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"], max_codepoint=0xFFFD), max_size=6)
scalars = st.one_of(numbers, texts.map(json.dumps), st.sampled_from(["true", "false", "null", '""', '"5"', '"true"']))
keys = st.one_of(st.sampled_from(["a", "b", "c-d", "e.f"]), any_key)


def written_object(entries: dict[str, str]) -> str:
    """An object; attributes stand first, as they are written."""
    ordered = sorted(entries.items(), key=lambda entry: not entry[0].startswith("@"))
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in ordered) + "}"


def array_of(members: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(members, max_size=3).map(lambda found: f"[{', '.join(found)}]")


def arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Arrays of some values, and of arrays."""
    return array_of(st.recursive(values, array_of, max_leaves=5))


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = st.one_of(values, arrays(values))
    plain = st.dictionaries(keys, inner, max_size=3)
    attributes = st.dictionaries(st.one_of(st.just("@g"), any_attribute), scalars, max_size=1)
    return st.tuples(attributes, plain).map(lambda found: written_object({**found[0], **found[1]}))


values = st.recursive(scalars, objects, max_leaves=5)
records = st.lists(st.one_of(values, arrays(values)), min_size=1, max_size=4).map(
    lambda found: [f'{{"k": {place}, "v": {value}}}' for place, value in enumerate(found)]
)

singles = st.lists(values, min_size=1, max_size=4).map(
    lambda found: [f'{{"k": {place}, "v": {value}}}' for place, value in enumerate(found)]
)
ENGINES: tuple[EngineName, ...] = ("reference", "local")

SELECT = 'for $o in stream("s") return { "v": $o.v }'
COPY = 'for $o in stream("s") return $o'
LOOKUP = 'for $o in stream("s") where $o.k >= 0 return $o.v'
WINDOW = 'for $w in stream("s")|count 1| return { "v": $w.v, "w": array { $w } }'
GROUP = 'for $w in stream("s")|count 1| for $o in $w group by $k := $o.k return { "k": $k, "v": $o.v }'
DISPLAY = 'for $o in stream("s") order by $o.k return { "v": $o.v, "w": $o }'
GROUPS = 'for $o in stream("s") group by $k := $o.k return { "k": $k, "v": array { $o.v } }'
ROWS = '(for $o in stream("s") order by $o.k return $o.v)[position() >= 1]'
PAST = 'for $o in stream("s") return { "k": $o.k, "v": array { (stream("s")/root/item#0) } }'
JOIN = 'for $a in stream("s")|count 1|, $b in stream("s")|count 1| where $a.k = $b.k return { "v": $a.v, "w": $b }'
INTERVAL = 'for $a in stream("s"), $b in stream("u") where $b.k >= $a.k and $b.k <= $a.k return { "v": $a.v, "w": $b }'
TABLE = 'for $o in stream("s"), $p in doc("p")/*/* where $o.k = $p.k return { "v": $o.v, "w": $p }'


def expected(query: str, lines: list[str]) -> list[Any]:
    """What comes out, told from the lines alone."""
    found = []
    for line in lines:
        record = read(line)
        value = record[1][1][1]
        match query:
            case "copy":
                found.append(record)
            case "lookup" | "rows":
                found.append(value)
            case "select":
                found.append(("object", [("v", value)]))
            case "window":
                found.append(("object", [("v", value), ("w", [record])]))
            case "group":
                found.append(("object", [("k", record[1][0][1]), ("v", value)]))
            case "join" | "display" | "interval" | "table":
                found.append(("object", [("v", value), ("w", record)]))
            case "groups":
                found.append(("object", [("k", record[1][0][1]), ("v", [value])]))
            case "past":
                found.append(("object", [("k", record[1][0][1]), ("v", [record])]))
    return found


QUERIES = {"select": SELECT, "copy": COPY, "lookup": LOOKUP, "window": WINDOW, "group": GROUP, "join": JOIN}
SHOWN = {"display": DISPLAY, "groups": GROUPS, "rows": ROWS, "past": PAST}
"""Those that are corrected as they go, and one about the past."""
JOINED = {"interval": INTERVAL, "table": TABLE}
"""Joins with another stream and with a table, both of the same lines."""
OTHERS = {
    "select in SQL": "SELECT v FROM s",
    "copy in SQL": "SELECT * FROM s WHERE k >= 0",
    "select in SQL, of windows": "SELECT v FROM TUMBLE(s, k, 1) ORDER BY k",
    "select in SQL, ordered": "SELECT v FROM s ORDER BY k",
    "select in SQL, of pairs": "SELECT a.v FROM s a JOIN u b ON b.k BETWEEN a.k AND a.k",
    "select in SQL, of pairs, the other": "SELECT b.v FROM s a JOIN u b ON b.k BETWEEN a.k AND a.k",
    "select in SQL, of a table": "SELECT p.v FROM s JOIN p ON s.k = p.k",
    "copy with a path": 'for $o in stream("s")/root/item[k >= 0] return $o',
    "lookup behind a path": 'for $w in stream("s")/root/item[k >= 0]|count 1| return $w.v',
}
"""The same in other spellings; the first word says what comes out."""
PATHS = {
    "select with a path": 'for $o in stream("s")/root/item return { "v": $o/v }',
    "select with a path, of windows": 'for $w in stream("s")/root/item|count 1| return { "v": $w/v }',
    "select with a path, of groups": 'for $w in stream("s")/root/item|count 1| for $o in $w group by $k := $o/k '
    'return { "v": $o/v }',
    "select with a path, ordered": 'for $o in stream("s")/root/item order by $o/k return { "v": $o/v }',
}
"""What a path reaches has its type as well; of arrays it reaches the members."""


def answers(
    folder: Path, lines: list[str], engine: EngineName, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    for name in ("s", "u", "p"):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    sources = [Source(name, folder / name, format="json") for name in ("s", "u")]
    inputs = Inputs(sources, {"p": DocumentSource(folder / "p")}, finite=True)
    queries = {**QUERIES, **SHOWN} if more is None else more
    with answering([prepare(name, text, inputs, engine) for name, text in queries.items()], inputs) as run:
        assert list(run.dead) == []
        return {name: "".join(answer) for name, answer in run.answers.items()}


def told(text: str) -> list[Any]:
    assert text == "" or text.endswith("\n")
    return [read(line) for line in text.split("\n")[:-1]]


@given(records)
@examples(20)
def test_by_the_reference(lines: list[str]) -> None:
    """Each query gives the values with the types, spellings and order that Python's reader sees in the lines."""
    with TemporaryDirectory() as folder:
        for name, text in answers(Path(folder), lines, "reference").items():
            assert told(text) == expected(name, lines), name


@given(records)
@examples(5)
def test_by_a_trunk(lines: list[str]) -> None:
    """A trunk gives the same, to the byte as the reference does."""
    with TemporaryDirectory() as folder:
        by_trunk = answers(Path(folder), lines, "local")
        assert by_trunk == answers(Path(folder), lines, "reference")
        for name, text in by_trunk.items():
            assert told(text) == expected(name, lines), name


@pytest.mark.mass
@given(records)
@examples(5)
def test_in_other_spellings(lines: list[str]) -> None:
    """The same in SQL, and through joins with another stream and with a table."""
    with TemporaryDirectory() as folder:
        found = {each: answers(Path(folder), lines, each, JOINED | OTHERS) for each in ENGINES}
        assert found["local"] == found["reference"]
        for name, text in found["local"].items():
            assert told(text) == expected(name.partition(" ")[0], lines), name


@given(singles)
@examples(5)
def test_by_paths(lines: list[str]) -> None:
    """What paths reach keeps its type in an object."""
    with TemporaryDirectory() as folder:
        found = {each: answers(Path(folder), lines, each, PATHS) for each in ENGINES}
        assert found["local"] == found["reference"]
        for name, text in found["local"].items():
            assert told(text) == expected("select", lines), name


@given(st.lists(scalars, min_size=1, max_size=8))
@examples(10)
def test_keys_of_groups(values: list[str]) -> None:
    """A key of a group is what it is in the first of its records; numbers are one key where they are equal, and a
    text is never the key of a number."""
    lines = [f'{{"k": {place}, "v": {value}}}' for place, value in enumerate(values)]
    groups: dict[Any, list[Any]] = {}
    for value in map(read, values):
        key = Fraction(str(value)) if isinstance(value, Digits) else (type(value), value)
        groups.setdefault(key, []).append(value)
    keyed = [("object", [("v", each[0]), ("n", Digits(len(each)))]) for each in groups.values()]
    queries = {
        "dots": f'for $w in stream("s")|count {len(lines)}| for $o in $w group by $v := $o.v '
        'return { "v": $v, "n": count($o) }',
        "sql": "SELECT v, COUNT(*) AS n FROM TUMBLE(s, k, 100) GROUP BY v, window_start",
        "whole": 'for $o in stream("s") group by $v := $o.v return { "v": $v, "n": count($o) }',
        "whole in SQL": "SELECT v, COUNT(*) AS n FROM s GROUP BY v",
    }
    with TemporaryDirectory() as folder:
        for engine in ENGINES:
            for name, text in answers(Path(folder), lines, engine, queries).items():
                assert told(text) == keyed, (engine, name)


@given(records)
@examples(3)
def test_through_log_sink_and_stream(lines: list[str]) -> None:
    """Answers in the log, in a file and in a stream that is an answer have the same types and spellings."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s").write_text("".join(f"{line}\n" for line in lines))
        with Engine(local=True, once=True) as engine:
            engine.stream("s", folder / "s", format="json")
            first = engine.subscribe(SELECT, "first", sink=folder / "first.jsonl")
            engine.stream("t", first)
            again = engine.subscribe('for $o in stream("t") return { "v": $o.v }', "again")
            in_sql = engine.subscribe("SELECT v FROM t", "in-sql", sink=folder / "in_sql.jsonl")
            engine.wait()
            assert in_sql.answer() == (folder / "in_sql.jsonl").read_text() == first.answer()
            assert told(first.answer()) == expected("select", lines)
            assert (folder / "first.jsonl").read_text() == first.answer()
            assert again.answer() == first.answer()
            assert [read(each) for each in first] == expected("select", lines)


@given(records)
@examples(3)
def test_through_displays_and_their_streams(lines: list[str]) -> None:
    """A display in the log, in a file, and followed as a stream of updates has the same types and spellings."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s").write_text("".join(f"{line}\n" for line in lines))
        with Engine(local=True, once=True) as engine:
            engine.stream("s", folder / "s", format="json")
            found = {name: engine.subscribe(text, name, sink=folder / name) for name, text in SHOWN.items()}
            engine.stream("t", found["display"])
            again = engine.subscribe('for $o in stream("t") return $o', "again")
            engine.wait()
            for name, each in found.items():
                assert told(each.answer()) == expected(name, lines), name
                assert "".join(each) == (folder / name).read_text()
            assert again.answer() == found["display"].answer()


@given(records, st.integers(1, 3))
@examples(4)
@pytest.mark.mass
def test_through_links(lines: list[str], portion: int) -> None:
    """Behind two links each query gives what it gives at the source."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = Source("s", folder / "s", "json")
        grown = GrowingStream(folder / "s", lines)
        registered = RegisteredStream(source, "SP0", "SP0", None, accents=False)
        with bare_network(network_of(topology.line(3), [registered]), folder / "network", Random(portion)) as network:
            queries = {name: text for name, text in (QUERIES | SHOWN).items() if name != "past"}
            for name, text in queries.items():
                network.register(name, text, "SP2")
            for _ in range(0, len(lines), portion):
                grown.grow(portion)
                network.drain()
            for name in queries:
                assert told(network.answer(name)) == expected(name, lines), name
