"""Items of JSON that are given as they are: columns write the lines of the law, to the byte (LAWS 7.3)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.scan.look import Look
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.columns import SupposedLook, columns_verdict
from anabranch.language import check, parse
from anabranch.spark.evolution.following import RangeFollowing
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.source import Source
from anabranch.stream.serialize import serialize
from columnar.json_records import Writer, edited, random_shape
from columnar.streams import Answered, Stream, item_queries
from mass import Mass, some
from spark.bare import BareTrunk

ITEMS = 'stream("s")/root/item'
RECORDS = {
    "all": f"for $o in {ITEMS} return $o",
    "path": f"{ITEMS}[amount > 5]",
    "bare path": ITEMS,
    "where": f"for $o in {ITEMS} where $o/amount > 5 and $o/a return $o",
    "text": f'for $o in {ITEMS} where contains($o/name, "a") return $o',
    "let": f"for $o in {ITEMS} let $n := $o/amount let $x := $o where $n > 5 return $x",
    "if": f"for $o in {ITEMS} return if ($o/ab) then $o else ()",
}
WRAPPED = {
    "wrapped": f"<out>{{ for $o in {ITEMS} where $o/amount > 5 return $o }}</out>",
    "in elements": f"for $o in {ITEMS} return <out>{{ $o }}</out>",
}
OTHERS = {
    "twice": f"for $o in {ITEMS} return ($o, $o)",
    "chosen": f"for $o in {ITEMS} return if ($o/amount > 5) then $o else $o/name",
    "rounds": f"for $o in {ITEMS} for $t in $o/tags return $o",
    "filtered": f"for $o in {ITEMS} let $x := $o[amount > 5] return $x",
}
USUAL = (
    b'{"id": 1, "amount": 7.50, "name": "a \\"b\\" \\\\ \xc3\xbc <&>", "tags": ["x", "y"], "a": {"b": null, "c": []}}',
    b'{ "amount":9,"id" :2,"tags":[ ],"name":"","a":{"c":[{ "d":true } ,{"d":-0E+5}],"b" : {}}}\t\r',
    b'{"id":3,"@k":1}',
    b'{"@k": null, "@l": "1", "amount": "6", "tags": "x\\n\\ty", "name": "@a$\x7f"}',
    b"{}",
)
"""Of all keys that are there and how they are spelled."""


def compared(data: bytes, places: list[int], texts: dict[str, str]) -> tuple[Stream, int]:
    """Answers of columns held against those of the law, and how many items were parsed for them."""
    stream = Stream(item_queries(texts), "json")
    bounds = [0, *sorted(places), len(data)]
    found, read = stream.by_columns([data[a:b] for a, b in pairwise(bounds)])
    expected = stream.by_law(data)
    assert found == expected
    return stream, read


def random_data(random: Random) -> bytes:
    """Lines of one shape, correct ones in every spelling, and some that are nearly so."""
    shape = random_shape(random)
    for name, child in zip(("amount", "name", "tags"), shape.children, strict=False):
        child.name = name
    writers = [Writer(random, odd, loose) for odd in (0.0, 0.0, 0.05) for loose in (False, True)]
    lines = [random.choice(writers).record(shape) for _ in range(60)]
    lines += [edited(random.choice(lines), random) for _ in range(random.choice((0, 5)))]
    return b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines if b"$mutable" not in line)


def test_random_records_leave_as_by_law(mass: Mass) -> None:
    """Nested objects, arrays, all escapes, numbers in all spellings, white space, keys with `@`; and bad lines."""
    for number in mass.cases(20_000):
        random = Random(number)
        data = random_data(random)
        compared(data, [random.randint(0, len(data)) for _ in range(random.choice((0, 2)))], RECORDS | WRAPPED | OTHERS)


@pytest.mark.parametrize("seed", some(range(8)))
def test_some_random_records_leave_as_by_law(seed: int) -> None:
    """A few of them in every run."""
    compared(random_data(Random(seed)), [], RECORDS | WRAPPED)


@pytest.mark.parametrize(
    "line",
    some([
        b'{"a": "\\u0041"}', b'{"a": "x\\/y"}', b'{"a": "\\u000a"}', b'{"a": "\\"\\u00e9"}', b'{"a": [], "@b": 1}',
        b'{"@b": 1, "a": []}', b'{"a": [], "b": [{"a": []}, {"@b": "", "a": 1}]}', b'{"a": "\\\\u0041"}',
        b'{"$at": 5, "a": 1}', b'{"a": [[1]]}', b'{"a": 1, "a": 1}', b'{"a": {"a": {}}, "b": [null, null]}',
        b'{"a": [1]}', b'{"a": [{}]}', b'{"a": "\xe2\x80\xa8\x7f\xc2\x85"}', b'{"a": 1.0E+00, "b": [ -0 ,1e5]}',
        b'{"a": "{\\"a\\": 1, [:,]}"}', b'{"a": "\\b"}', b'{"a": " \\t "}', b'{"@a": false, "@b": 0.0, "a": ":"}',
        b'{"a": "\\r"}', b'{"a" : "\\\\" , "b":"\\\\\\""}', b'{"a": "' + b"x" * 70_000 + b'"}',
    ]),
)  # fmt: skip
def test_spellings(line: bytes) -> None:
    """One line of each kind among usual ones, first and later."""
    usual = b'{"a": 1, "b": [2, 3], "amount": 6}\n' * 3
    compared(usual + line + b"\n" + usual, [], RECORDS | WRAPPED)
    compared((line + b"\n") * 4 + usual, [], RECORDS | WRAPPED)


@pytest.mark.mass
def test_usual_lines_are_not_left_to_the_law() -> None:
    """Lines with quotes, references of XML, and any white space are written in columns, whoever asks."""
    data = b"\n".join(USUAL * 60) + b"\n"
    clear = data.replace(b'{"id":3,"@k":1}', b'{"@k":1,"id":3}')
    for name in ("all", "bare path", "path", "where", "let", "if"):
        stream, read = compared(clear, [], {name: RECORDS[name]})
        assert stream.left_to_law == 0
        assert read <= 1
    compared(data, [], RECORDS)


def test_many_queries_share_lines() -> None:
    """Equal and similar queries have the same lines, each its own choice of them, with counts and first bytes."""
    lines = [f'{{"id":{number},"amount":{number % 50}}}' for number in range(500)]
    texts = {f"q{least}": f"for $o in {ITEMS} where $o/amount >= {least} return $o" for least in range(100)}
    stream = Stream(item_queries(texts), "json")
    data = "".join(f"{line}\n" for line in lines).encode()
    found: Answered = stream.by_columns([data])[0]
    assert stream.left_to_law == 0
    for least in range(100):
        chosen = [each.replace(":", ": ").replace(",", ", ") + "\n" for n, each in enumerate(lines) if n % 50 >= least]
        assert found.texts[f"q{least}"] == "".join(chosen)
        assert found.counts[f"q{least}"] == len(chosen)


def look_of(*lines: bytes) -> Look:
    """The look of some records."""
    read = (parse_line(line, Place("", "", 0), Limits(), "item") for line in lines)
    trees = [each.tree for each in read if isinstance(each, Item)]
    look = Look.learn([(serialize(each).encode(), each) for each in trees], is_json=True)
    assert look is not None
    return look


def test_what_is_made_for_columns() -> None:
    """Explanations say that records as they are, are answered in columns, and which forms are not."""
    look = look_of(*USUAL)
    for name, text in (RECORDS | WRAPPED | OTHERS).items():
        known = {"s": SupposedLook("root", look, "as the first do")}
        verdict = columns_verdict(check(parse(text), text).query, text, known, {})
        assert verdict is not None
        assert (verdict.construct is None) == (name not in OTHERS), name
    query = item_queries({"q": RECORDS["all"]})["q"]
    assert isinstance(compile_query(query.expanded_hole, "root", look), CompiledQuery)


ACCENT = '{"$accent": {"alter": {"path": "t", "by": ". * 5 div 9 - 160 div 9"}}}\n'


@pytest.mark.mass
def test_changed_units_are_left_to_the_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind an accent that changes a unit records are the law's, and so is the condition's choice among them."""
    asked: list[int] = []
    piece = RangeFollowing.piece

    def counted(self: RangeFollowing, number: int, item: Item) -> str:
        asked.append(number)
        return piece(self, number, item)

    monkeypatch.setattr(RangeFollowing, "piece", counted)
    before = "".join(f'{{"i":{number},"t":{number % 100}}}\n' for number in range(500))
    text = before + ACCENT + before
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text(text)
    (tmp_path / "s").write_text(text)
    queries = {
        "all": 'for $o in stream("s")/root/item return $o',
        "some": 'for $o in stream("s")/root/item where $o/t >= 77 return $o',
    }
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "in", format="json")], Random(1), finite=True)
    trunk.run(queries, (1 << 20,), (1,))
    assert asked
    assert len(asked) <= 2 * 500
    inputs = Inputs([Source("s", tmp_path / "s", format="json")], finite=True)
    with answering([prepare(name, text, inputs, "reference") for name, text in queries.items()], inputs) as run:
        expected = {name: "".join(run.answers[name]) for name in queries}
    assert {name: trunk.answer(name) for name in queries} == expected
    assert expected["all"].count(ACCENT) == 1
    assert expected["some"].count("\n") == 5 * 23 + 1 + 5 * 75


@pytest.mark.parametrize("accent", ["", ACCENT.replace('{"alter"', '{"where": "p = 1", "alter"')])
def test_partitions_are_merged_as_by_law(tmp_path: Path, accent: str) -> None:
    """Records of two partitions in the order of their times, some of them left to the law, some in other units."""
    for part in range(2):
        (tmp_path / f"p{part}").mkdir()
        texts = ["a\\/" if number % 9 == 0 else 'a\\"' for number in range(300)]
        lines = [f'{{"i":{2 * n + part},"p":{part},"t":{n % 100},"n":"{text}"}}\n' for n, text in enumerate(texts)]
        (tmp_path / f"p{part}" / "a").write_text("".join([*lines[:200], accent if part else "", *lines[200:]]))
    queries = {name: RECORDS[name].replace("amount > 5", "t >= 77") for name in ("all", "path")}
    source = Source("s", tmp_path / "p0", format="json", time=ItemPath(("i",)), more=(tmp_path / "p1",))
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run(queries, (1 << 12, 1 << 20), (2, 1))
    inputs = Inputs([source], finite=True)
    with answering([prepare(name, text, inputs, "reference") for name, text in queries.items()], inputs) as run:
        expected = {name: "".join(run.answers[name]) for name in queries}
    assert {name: trunk.answer(name) for name in queries} == expected
    assert expected["all"].count("\n") == 600
    assert ('"t": 210.2,' in expected["all"]) == bool(accent)  # only one partition has told it: the answer absorbs it
