"""JSON values come out as they went in: through select, group, window, join, displays, links, the answer log, sinks
and streams.

The judge is Python's own reader of JSON, with numbers as they are spelled.
"""

from __future__ import annotations

import json
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


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = st.one_of(values, st.lists(values, max_size=3).map(lambda found: f"[{', '.join(found)}]"))
    plain = st.dictionaries(keys, inner, max_size=3)
    attributes = st.dictionaries(st.one_of(st.just("@g"), any_attribute), scalars, max_size=1)
    return st.tuples(attributes, plain).map(lambda found: written_object({**found[0], **found[1]}))


values = st.recursive(scalars, objects, max_leaves=5)
lists = st.lists(values, max_size=3).map(lambda found: f"[{', '.join(found)}]")
records = st.lists(st.one_of(values, lists), min_size=1, max_size=4).map(
    lambda found: [f'{{"k": {place}, "v": {value}}}' for place, value in enumerate(found)]
)

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
            case "join" | "display":
                found.append(("object", [("v", value), ("w", record)]))
            case "groups":
                found.append(("object", [("k", record[1][0][1]), ("v", [value])]))
            case "past":
                found.append(("object", [("k", record[1][0][1]), ("v", [record])]))
    return found


QUERIES = {"select": SELECT, "copy": COPY, "lookup": LOOKUP, "window": WINDOW, "group": GROUP, "join": JOIN}
SHOWN = {"display": DISPLAY, "groups": GROUPS, "rows": ROWS, "past": PAST}
"""Those that are corrected as they go, and one about the past."""


def answers(folder: Path, lines: list[str], engine: EngineName) -> dict[str, str]:
    (folder / "s").write_text("".join(f"{line}\n" for line in lines))
    inputs = Inputs([Source("s", folder / "s", format="json")], finite=True)
    queries = {**QUERIES, **SHOWN}
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
            engine.wait()
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
