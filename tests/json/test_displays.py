"""Displays in JSON: behind each element what evaluating anew would show, as lines, and as a stream of updates in JSON.

The law is judged by hand and by plain Python over the lines, and a trunk by the law (LAWS 7.4, 7.5).
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Engine
from anabranch.algebra.display.replay import Replay
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.engine.reports.timelines import timelines
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass, examples
from spark.bare import BareTrunk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES: tuple[EngineName, ...] = ("reference", "local")
ITEMS = (
    '{"t": 1, "k": "a", "v": [1, 2]}\n{"t": 2, "k": "b", "v": null}\n{"t": 3, "k": "a", "v": "5"}\n{"t": 4, "v": 5.0}\n'
)


def timeline(text: str, query: str, engine: EngineName, *, updates: bool = False) -> list[str]:
    """The lines of a timeline, the last of which shows what the query answers in the end; nothing fails."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "s"
        file.write_text(text)
        time = None if updates else ItemPath.parse("t")
        inputs = Inputs([Source("s", file, "json", time=time, updates=updates)], finite=True)
        with timelines([prepare("q", query, inputs, engine, timeline=True)], inputs) as run:
            found = "".join(run.answers["q"]).splitlines()
            assert (list(run.dead), dict(run.aborted)) == ([], {})
        with answering([prepare("q", query, inputs, engine)], inputs) as run:
            lines = "".join(run.answers["q"]).splitlines()
        assert not found or found[-1].endswith(f'"answer": [{", ".join(lines)}]}}')
        return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # case 81: an order
        (
            'for $o in stream("s") order by $o.k descending return $o.v',
            ["[1, 2]", "null, [1, 2]", 'null, [1, 2], "5"', 'null, [1, 2], "5", 5.0'],
        ),
        # groups of all of a stream: what is missing comes first
        (
            'for $o in stream("s") group by $k := $o.k order by $k return { "k": $k, "v": array { $o.v } }',
            [
                '{"k": "a", "v": [[1, 2]]}',
                '{"k": "a", "v": [[1, 2]]}, {"k": "b", "v": [null]}',
                '{"k": "a", "v": [[1, 2], "5"]}, {"k": "b", "v": [null]}',
                '{"k": null, "v": [5.0]}, {"k": "a", "v": [[1, 2], "5"]}, {"k": "b", "v": [null]}',
            ],
        ),
        # the first few
        (
            '(for $o in stream("s") order by $o.t descending return { "v": $o.v })[position() <= 2]',
            ['{"v": [1, 2]}', '{"v": null}, {"v": [1, 2]}', '{"v": "5"}, {"v": null}', '{"v": 5.0}, {"v": "5"}'],
        ),
        # an aggregate, and arrays in arrays that a query makes
        ('[[1, 2], [count(stream("s")/root/item)], []]', [f"[[1, 2], [{n}], []]" for n in (1, 2, 3, 4)]),
        # the past of items
        (
            'stream("s")/root/item?[1]',
            [
                '{"t": 1, "k": "a", "v": [1, 2]}',
                '{"t": 2, "k": "b", "v": null}, {"t": 1, "k": "a", "v": [1, 2]}',
                '{"t": 3, "k": "a", "v": "5"}, {"t": 2, "k": "b", "v": null}',
                '{"t": 4, "v": 5.0}, {"t": 3, "k": "a", "v": "5"}',
            ],
        ),
        # what only grows has a timeline, too
        (
            'for $w in stream("s")|count 2| return { "n": count($w), "v": array { $w.v } }',
            ['{"n": 2, "v": [[1, 2], null]}', '{"n": 2, "v": [[1, 2], null]}, {"n": 2, "v": ["5", 5.0]}'],
        ),
        ('(0, stream("s")/root/item[k = "b"])', ["0", '0, {"t": 2, "k": "b", "v": null}']),
    ],
)
def test_items(query: str, expected: list[str], engine: EngineName) -> None:
    """Each moment shows what was worked out by hand, with types and spellings."""
    found = timeline(ITEMS, query, engine)
    assert [json.loads(line, parse_float=Decimal)["at"] for line in found][-1] in (2, 4)
    assert [line.partition('"answer": ')[2] for line in found] == [f"[{each}]}}" for each in expected]


EDITS = """\
{"$at": 1, "k": "a", "v": {"$mutable": {"id": "1", "content": 5.0}}}
{"$replace": {"target": "1", "at": 2, "content": "5.0"}}
{"$replace": {"target": "1", "at": 3, "content": {"x": [], "y": ["1", 1]}}}
{"$replace": {"target": "1", "at": 4, "content": null}}
{"$replace": {"target": "1", "at": 5, "content": ""}}
{"$replace": {"target": "1", "at": 6}}
{"$before": {"target": "1", "id": "2", "at": 7, "content": {"z": []}}}
{"$after": {"target": "1", "id": "3", "at": 8, "content": {"w": true}}}
{"$mutable": {"id": "9", "at": 9, "content": [{"k": "b", "v": [{"$mutable": {"id": "4", "content": 1}}, 2]}, 7]}}
{"$replace": {"target": "4", "at": 10, "content": false}}
"""
NESTED = """\
{"$at": 1, "v": [[1, {"$mutable": {"id": "m", "content": 2}}], []]}
{"$replace": {"target": "m", "at": 2, "content": 7.0}}
{"$replace": {"target": "m", "at": 4, "content": {"x": [[], [1]]}}}
{"$replace": {"target": "m", "at": 5}}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_updates(engine: EngineName) -> None:
    """A value has the type of what its region holds (case 82), and items may stand in a region, objects or values."""
    query = 'for $o in stream("s") return ($o.v, $o)'
    behind = ', {"z": [], "w": true}, {"k": "a", "v": {"z": [], "w": true}}'
    values = ("5.0", '"5.0"', '{"x": [], "y": ["1", 1]}', "null", '""', "null", '{"z": []}', '{"z": [], "w": true}')
    expected = [f'{each}, {{"k": "a", "v": {each}}}' for each in values]
    expected += [f'{behind[2:]}, [{each}, 2], {{"k": "b", "v": [{each}, 2]}}, 7' for each in ("1", "false")]
    found = timeline(EDITS, query, engine, updates=True)
    assert [line.partition('"answer": ')[2] for line in found] == [f"[{each}]}}" for each in expected]


@pytest.mark.parametrize("engine", ENGINES)
def test_updates_in_arrays(engine: EngineName) -> None:
    """Case 194: a member of an array in an array has the type of what its region holds, and its past, too."""
    found = timeline(NESTED, 'for $o in stream("s") return [$o.v, count($o.v[][])]', engine, updates=True)
    assert [line.partition('"answer": ')[2] for line in found] == [
        f"[[[[1, {each}], []], 2]]}}" for each in ("2", "7.0", '{"x": [[], [1]]}', "null")
    ]
    found = timeline(NESTED, 'for $o in stream("s") return array { ($o.v[[1]][[2]])#[1] }', engine, updates=True)
    assert [line.partition('"answer": ')[2] for line in found] == [
        f"[{each}]}}" for each in ("[2]", "[7.0, 2]", '[{"x": [[], [1]]}, 7.0]', '[null, {"x": [[], [1]]}]')
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_versions(engine: EngineName) -> None:
    """The past of a value has the types that it had."""
    query = 'for $o in stream("s")[k = "a"] return { "was": array { ($o.v)?1 }, "is": $o.v }'
    found = timeline("".join(EDITS.splitlines(keepends=True)[:3]), query, engine, updates=True)
    was = [line.partition('"answer": ')[2] for line in found]
    assert was == [
        '[{"was": [], "is": 5.0}]}',
        '[{"was": [5.0], "is": "5.0"}]}',
        '[{"was": ["5.0"], "is": {"x": [], "y": ["1", 1]}}]}',
    ]


# --- generated, against plain Python and the law ----------------------------------------------------------------------

leaves = st.sampled_from(['"5"', "5", "5.0", "1e2", '"a"', '""', "true", "null", '"\\n<&"', '"é"'])
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(st.one_of(leaves, inner), max_size=3).map(lambda found: f"[{', '.join(found)}]"),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3).map(
            lambda found: "{" + ", ".join(f'"{key}": {value}' for key, value in found.items()) + "}"
        ),
    ),
    max_leaves=5,
)
inserted = st.lists(st.tuples(st.sampled_from("abc"), values), min_size=1, max_size=6)


def shown(found: list[str]) -> list[str]:
    """What a timeline shows, moment by moment."""
    return [line.partition('"answer": ')[2][1:-2] for line in found]


@given(inserted)
@examples(15)
@pytest.mark.mass
def test_sorted_by_python(records: list[tuple[str, str]]) -> None:
    """The law sorts lines as Python's stable sort does, and gives them as they came; and so does a trunk."""
    lines = [f'{{"t": {place}, "k": "{key}", "v": {value}}}' for place, (key, value) in enumerate(records)]
    text = "".join(f"{line}\n" for line in lines)
    by_key = sorted(range(len(lines)), key=lambda place: records[place][0])
    query = 'for $o in stream("s") order by $o.k return { "k": $o.k, "v": $o.v, "o": $o }'
    expected = ", ".join(f'{{"k": "{records[n][0]}", "v": {records[n][1]}, "o": {lines[n]}}}' for n in by_key)
    for engine in ENGINES:
        assert shown(timeline(text, query, engine))[-1] == expected


def edits(random: Random, count: int) -> str:
    """Objects with mutable values, and their replacements and insertions; times go up by one."""
    values = ['"5"', "5", "5.0", "null", '""', "true", '{"x": []}', '{"x": [1, "1"], "y": {"z": null}}', '"<"', "{}"]
    lines: list[str] = []
    ids: list[str] = []
    for at in range(1, count + 1):
        what, value, id = random.random(), random.choice(values), f"r{at}"
        if what < 0.35 or not ids:
            kept = random.choice([*values, "[]", '["a"]', "[1, 2]", '[[], ["5", [5]]]'])
            mutable = f'{{"$mutable": {{"id": "{id}", "content": {value}}}}}'
            held = random.choice((mutable, f"[{mutable}, 1]", f"[[{mutable}], [], 1]"))
            lines.append(f'{{"$at": {at}, "k": {random.randrange(3)}, "u": {kept}, "v": {held}}}')
        elif what < 0.75:
            content = "" if random.random() < 0.2 else f', "content": {value}'
            lines.append(f'{{"$replace": {{"target": "{random.choice(ids)}", "at": {at}{content}}}}}')
        else:
            kind = random.choice(("before", "after"))
            content = f'"content": {random.choice(values[6:8])}'
            lines.append(f'{{"${kind}": {{"target": "{random.choice(ids)}", "id": "{id}", "at": {at}, {content}}}}}')
        if f'"id": "{id}"' in lines[-1]:
            ids.append(id)
    return "".join(f"{line}\n" for line in lines)


ABOUT_UPDATES = (
    'for $o in stream("s") return $o',
    'for $o in stream("s") return [$o.v, $o.u, count($o.v[])]',
    'for $o in stream("s") order by $o.k descending return { "v": $o.v }',
    '{ "n": count(stream("s")/root/item), "all": array { stream("s")/root/item } }',
    'for $o in stream("s") where exists($o.v) return $o."v"',
    'for $o in stream("s") return { "was": array { ($o.v)?3 } }',
)


def test_random_updates_show_what_the_law_says(mass: Mass) -> None:
    """A trunk shows what evaluating anew shows, to the byte, also what is set aside, whatever is edited."""
    for number in mass.cases(300):
        random = Random(number)
        text, query = edits(random, 12), random.choice(ABOUT_UPDATES)
        found = []
        for engine in ENGINES:
            with TemporaryDirectory() as folder:
                (Path(folder) / "s").write_text(text)
                inputs = Inputs([Source("s", Path(folder) / "s", "json", updates=True)], finite=True)
                with timelines([prepare("q", query, inputs, engine, timeline=True)], inputs) as run:
                    lines = list(run.answers["q"])
                    found.append((lines, {(each.place.offset, each.reason, each.code) for each in run.dead}))
        assert found[0] == found[1], (number, query, text)


ABOUT_ITEMS = (
    'for $o in stream("s") order by $o.k descending, $o.t return ($o.v, $o)',
    'for $o in stream("s") group by $k := $o.k return { "k": $k, "n": count($o), "m": max($o.t) }',
    'for $o in stream("s") group by $k := $o.u return [$k, count($o)]',
    '(for $o in stream("s") order by $o.t descending return { "v": $o.v, "u": $o.u })[position() <= 3]',
    '(for $w in stream("s")|count 2| return { "v": array { $w.v } })[last()]',
    '{ "n": count(stream("s")/root/item), "d": array { distinct-values(for $o in stream("s") return $o.k) } }',
    '{ "n": count(for $o in stream("s") where $o.k = $o.u return $o), "e": exists(stream("s")/root/item[t > 5]) }',
    '(count(stream("s")/root/item), for $w in stream("s")|count 3| order by $w[1].t descending return [$w.k])',
    'for $o in stream("s") return { "n": count(stream("s")/root/item?[3]), "v": $o.v }',
    'stream("s")/root/item?[3]',
)


def some_items(random: Random, count: int) -> str:
    values = ['"5"', "5", "5.0", "null", '""', "true", '{"x": []}', '{"x": [1, "1"], "y": {"z": null}}', "[]", '["a"]']
    values.append("[[1], []]")
    keys = ["1", "1.0", '"1"', "null", "true"]
    lines = (
        f'{{"t": {at}, "k": {random.choice(keys)}, "u": {random.choice(keys)}, "v": {random.choice(values)}}}'
        for at in range(count)
    )
    return "".join(f"{line}\n" for line in lines)


def test_epochs_shards_and_strands_do_not_show(mass: Mass) -> None:
    """Whatever the epochs, shards, strands and restarts, a display shows in the end what the law answers."""
    for number in mass.cases(120):
        random = Random(number)
        updates = random.random() < 0.5
        text = edits(random, 12) if updates else some_items(random, 12)
        query = random.choice(ABOUT_UPDATES if updates else ABOUT_ITEMS)
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "s").write_text(text)
            time = None if updates else ItemPath.parse("t")
            source = Source("s", folder / "s", "json", time=time, updates=updates)
            inputs = Inputs([source], finite=True)
            with answering([prepare("q", query, inputs, "reference")], inputs) as run:
                expected = "".join(run.answers["q"])
            trunk = BareTrunk(folder / "state", [source], random, finite=random.random() < 0.5 or not updates)
            trunk.strands = random.choice((0, 0, 2, 3))
            trunk.run({"q": query}, (60, 150, 1 << 20), (1, 2, 3))
            assert trunk.answer("q") == expected, (number, query, text)


# --- displays as streams ----------------------------------------------------------------------------------------------


WIRE = {"$mutable", "$before", "$replace", "$punctuation"}


def replayed(wire: str, pieces: int) -> tuple[str, list[Any]]:
    """What a stream of updates shows in the end, and its times, read in pieces of some size."""
    replay = Replay()
    times = [moment.at for at in range(0, len(wire), pieces) for moment in replay.feed(wire[at : at + pieces])]
    return replay.text, times


@given(inserted)
@examples(4)
@pytest.mark.mass
def test_a_display_is_a_stream(records: list[tuple[str, str]]) -> None:
    """The answer in log and sink is lines of JSON, which show the answer when they are followed.

    As a stream of updates it answers what the query answers (LAWS 5.7), and the sink's file as well.
    """
    lines = [f'{{"t": {place}, "k": "{key}", "v": {value}}}' for place, (key, value) in enumerate(records)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s").write_text("".join(f"{line}\n" for line in lines))
        (folder / "out").mkdir()
        with Engine(local=True, once=True) as engine:
            engine.stream("s", folder / "s", format="json", time="t")
            query = '(for $o in stream("s") order by $o.k return { "k": $o.k, "v": $o.v })[position() <= 3]'
            first = engine.subscribe(query, "first", sink=folder / "out")
            copied = engine.subscribe('for $o in stream("s") order by $o.k return $o', "copied", sink=folder / "out")
            engine.stream("t", first)
            engine.stream("u", copied)
            again = engine.subscribe('for $o in stream("t") return { "k": $o.k, "v": $o.v }', "again")
            nested = engine.subscribe('for $o in stream("u") return $o', "nested")
            engine.wait()
            wire = (folder / "out" / "first.jsonl").read_text()
            assert "".join(first) == wire
            assert all(next(iter(json.loads(line))) in WIRE for line in wire.splitlines())
            assert (
                replayed(wire, 7) == replayed(wire, 1 << 20) == (first.answer(), [*dict.fromkeys(replayed(wire, 9)[1])])
            )
            assert again.answer() == first.answer()
            assert nested.answer() == copied.answer()
            best = sorted(range(len(lines)), key=lambda place: records[place][0])
            expected = [f'{{"k": "{records[n][0]}", "v": {records[n][1]}}}' for n in best[:3]]
            assert first.answer() == "".join(f"{each}\n" for each in expected)
            assert copied.answer() == "".join(f"{lines[n]}\n" for n in best)
        inputs = Inputs([Source("f", folder / "out" / "first.jsonl", "json", root="answer", updates=True)], finite=True)
        for by in ENGINES:
            with answering([prepare("q", 'for $o in stream("f") return $o', inputs, by)], inputs) as run:
                assert "".join(run.answers["q"]) == "".join(f"{each}\n" for each in expected)


def test_values_and_updates_as_streams(tmp_path: Path) -> None:
    """Results that are values are items, too; an answer over updates is a stream in its turn, with its types."""
    (tmp_path / "s").write_text("".join(EDITS.splitlines(keepends=True)[:5]))
    with Engine(local=True, once=True) as engine:
        engine.stream("s", tmp_path / "s", format="json", updates=True)
        values = engine.subscribe('for $o in stream("s") return ($o.k, $o.v)', "values")
        engine.stream("t", values)
        again = engine.subscribe('for $o in stream("t") return $o', "again")
        objects = engine.subscribe('for $o in stream("s") return { "o": $o.v }', "objects")
        engine.stream("u", objects)
        past = engine.subscribe('for $o in stream("u")/answer/item#[9] return $o.o', "past")
        engine.wait()
        assert values.answer() == again.answer() == '"a"\n""\n'
        assert past.answer() == '""\nnull\n{"x": [], "y": ["1", 1]}\n"5.0"\n5.0\n'


def test_items_whose_format_comes_later(tmp_path: Path) -> None:
    """A display of items is registered before its stream has begun: what it is then follows from the first bytes."""
    (tmp_path / "s").mkdir()
    (tmp_path / "out").mkdir()
    query = 'for $o in stream("s") order by $o/a descending return $o'
    with Engine(local=True, once=False, checkpoint=tmp_path / "state") as engine:
        engine.stream("s", tmp_path / "s")
        found = engine.subscribe(query, "found", sink=tmp_path / "out" / "found")
        engine.start()
        (tmp_path / "s" / "1").write_text('{"a": 1}\n{"a": "2"}\n')
        moments = iter(found.display())
        while "2" not in (display := engine.log.answer(found.registered).text() if found.registered else ""):
            next(moments)
    assert display == '{"a": "2"}\n{"a": 1}\n'
    assert (tmp_path / "out" / "found").read_text().startswith('{"$mutable": {"id": "end"')


# --- on Spark ---------------------------------------------------------------------------------------------------------

OF_BOTH_KINDS = (
    'for $o in stream("s") return ($o.v, 1 div ($o.t - 3))',
    'for $w in stream("s")|count 3| return ($w[1], $w/v/..)',
)


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Answers, timelines and what is set aside are those of the reference, to the byte."""
    random = Random(11)
    (tmp_path / "s").write_text(some_items(random, 30))
    (tmp_path / "u").write_text(edits(random, 30))
    items = Source("s", tmp_path / "s", "json", time=ItemPath.parse("t"))
    inputs = Inputs([items, Source("u", tmp_path / "u", "json", updates=True)], finite=True)
    texts = [*OF_BOTH_KINDS, *ABOUT_ITEMS, *(each.replace('"s"', '"u"') for each in ABOUT_UPDATES)]
    stand = {f"q{number}" for number in range(len(OF_BOTH_KINDS))}

    def found(engine: EngineName) -> list[object]:
        queries = [prepare(f"q{number}", text, inputs, engine) for number, text in enumerate(texts)]
        with answering(queries, inputs) as run:
            answers = {name: "".join(each) for name, each in run.answers.items()}
            letters = {(each.subscription, each.place.offset, each.code) for each in run.dead}
            letters = {each for each in letters if each[0] in stand}  # a display also fails on its way
        moments = [prepare(f"q{number}", text, inputs, engine, timeline=True) for number, text in enumerate(texts)]
        with timelines(moments, inputs) as run:
            return [answers, letters, {name: "".join(each) for name, each in run.answers.items()}]

    assert found("spark") == found("reference")
