"""What an answer is, JSON or XML, follows from its query and its streams; what is of the other kind is set aside.

Queries are put together from results of all kinds; the law is judged by plain Python where rounds are single items, and
a trunk, in epochs of any size, by the law (LAWS 7.3).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.errors import QueryError
from anabranch.language import check, parse
from anabranch.language.checks.outputs import outputs_of
from anabranch.stream.reading.source import Source
from mass import Mass

ENGINES: tuple[EngineName, ...] = ("reference", "local")
LINES = '{"i": 1, "a": {"b": 1}}\n{"i": 2, "a": []}\n{"i": 3, "a": [{"b": 1}, {"b": 2}]}\n{"i": 4, "a": 0}\n'
XML = "<r><x><i>1</i></x><x><i>3</i></x></r>"


def answer(query: str, engine: EngineName) -> tuple[str, list[tuple[str | None, int]], list[str]]:
    """What a query answers over a stream of JSON and one of XML, what is set aside, and why it has no answer."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s").write_text(LINES)
        (folder / "x").write_text(XML)
        sources = [Source("s", folder / "s", "json"), Source("x", folder / "x", "document")]
        inputs = Inputs(sources, finite=True)
        with answering([prepare("q", query, inputs, engine)], inputs) as run:
            text = "".join(run.answers["q"])
            letters = [(each.code, each.place.offset) for each in run.dead]
            return text, letters, list(run.aborted.values())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "at_fault"),
    [
        ('for $o in stream("s") where $o/a + 1 > 0 return $o.i', (0, 2)),  # item by item
        ('for $w in stream("s")|count 3| return { "n": sum($w/a), "w": array { $w } }', (0, 2)),  # held items
        ('for $w in stream("s")|i diff 10| return { "n": sum($w/a) }', (0, 2)),  # panes
        ('for $o in stream("s") order by $o.i return { "n": $o/a + 1 }', (0, 2)),  # rounds that are put in order
    ],
)
def test_items_of_json_are_set_aside_as_json(query: str, at_fault: tuple[int, ...], engine: EngineName) -> None:
    """A dead letter shows the text of an item as the stream has it, also of those beside the first."""
    lines = ['{"i": 1, "a": "x", "b": [true]}', '{"i": 2, "a": 7}', '{"i": 3, "a": "y", "b": null}']
    with TemporaryDirectory() as name:
        (Path(name) / "s").write_text("".join(f"{line}\n" for line in lines))
        inputs = Inputs([Source("s", Path(name) / "s", "json")], finite=True)
        with answering([prepare("q", query, inputs, engine)], inputs) as run:
            shown = [raw for each in run.dead for raw in (each.raw, *(raw for _, raw in each.others))]
    assert shown == [lines[number] for number in at_fault]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "expected", "codes"),
    [
        # case 83
        ('for $o in stream("s")[i <= 2] return ($o.i, 1 div ($o.i - 2))', "1\n-1\n", ["SERE0020"]),
        # case 84
        (
            'for $a in stream("s")|count 4|, $b in stream("x")|count 2| where $a/i = $b/i '
            "return ($a, if ($a/i = 3) then $b else ())",
            '{"i": 1, "a": {"b": 1}}\n',
            ["SERE0022"],
        ),
        # values beside items are lines, whichever comes first
        ('for $o in stream("s")[i <= 2] return if ($o.i = 1) then 5 else $o', '5\n{"i": 2, "a": []}\n', []),
        (
            'for $o in stream("s")[i <= 2] order by $o.i return if ($o.i = 1) then 5 else $o',
            '5\n{"i": 2, "a": []}\n',
            [],
        ),
        # a node that is an item after all is one, where the answer is JSON
        (
            'for $o in stream("s")[i = 2] return ($o.i, $o/self::item, $o/i/..)',
            '2\n{"i": 2, "a": []}\n' + LINES[24:42],
            [],
        ),
        # and XML where it is not
        ('for $o in stream("s")[i = 4] return $o/i/..', "<item><i>4</i><a>0</a></item>", []),
        ('for $o in stream("s")//b return ($o, $o/..)', "<b>1</b><a><b>1</b></a>" * 2 + "<b>2</b><a><b>2</b></a>", []),
        ('for $o in stream("s")//item[i = 2] return $o', '{"i": 2, "a": []}\n', []),
        # functions that are values, and errors that are caught
        ('for $o in stream("s")[i = 3] return for-each($o.a[], function($m) { [$m.b] })', "[1]\n[2]\n", []),
        ('for $o in stream("s")[i = 1] return try { $o.a + 1 } catch * { { "e": $o.i } }', '{"e": 1}\n', []),
        # a value in front
        ('(0, for $o in stream("s")[i = 2] return $o)', '0\n{"i": 2, "a": []}\n', []),
        # a window, of which one has what is none
        (
            'for $w in stream("s")|count 2| return ($w.i, $w/a/b/..)',
            "",
            ["SERE0022", "SERE0022"],
        ),
    ],
)
def test_cases(query: str, expected: str, codes: list[str], engine: EngineName) -> None:
    """Each case gives what was worked out by hand."""
    text, letters, why = answer(query, engine)
    assert (text, [code for code, _ in letters], why) == (expected, codes, [])


RESULTS: Mapping[str, Callable[[dict[str, Any]], list[str] | None]] = {
    "$o.i": lambda record: [json.dumps(record["i"])],
    '{ "i": $o.i }': lambda record: [json.dumps({"i": record["i"]})],
    "[$o.i, $o.a]": lambda record: [json.dumps([record["i"], record["a"]])],
    "$o": lambda record: [json.dumps(record)],
    "7": lambda record: ["7"],
    '"t"': lambda record: ['"t"'],
    "$o/i/..": lambda record: [json.dumps(record)],
    "1 div ($o.i - 2)": lambda record: None if record["i"] == 2 else [str(1 / (record["i"] - 2)).removesuffix(".0")],
    "$o/a/b/..": lambda record: None if isinstance(record["a"], dict) or record["i"] == 3 else [],
    "()": lambda record: [],
}
"""What a result gives of a record, in an answer of JSON; None where it cannot stand there."""


def some_result(random: Random) -> tuple[str, list[tuple[str, ...]]]:
    """The result of a round, and for odd and even numbers `i` which results those are."""
    one = tuple(random.choices(list(RESULTS), k=random.randrange(1, 4)))
    if random.random() < 0.5:
        return f"({', '.join(one)})", [one, one]
    other = tuple(random.choices(list(RESULTS), k=random.randrange(1, 3)))
    return f"if ($o.i = (1, 3)) then ({', '.join(one)}) else ({', '.join(other)})", [other, one]


def test_generated_queries_over_items(mass: Mass) -> None:
    """Python tells the lines of each item; what cannot stand there sets its item aside, and no other.

    Queries that need no order are answered item by item, those with one are displays; both answer alike.
    """
    for number in mass.cases(150):
        random = Random(number)
        result, chosen = some_result(random)
        order = random.choice(("", "order by $o.i "))
        query = f'for $o in stream("s") {order}return {result}'
        if outputs_of(check(parse(query), query).query).form({"s": "item"}) == "xml":
            continue  # only values and nodes that may be anything
        expected, aside = "", []
        for offset, line in zip((0, 24, 42, 77), LINES.splitlines(), strict=True):
            record = json.loads(line)
            found = [RESULTS[each](record) for each in chosen[record["i"] % 2]]
            if None in found:
                aside.append(offset)
            else:
                expected += "".join(f"{each}\n" for several in found for each in several or ())
        for engine in ENGINES:
            text, letters, why = answer(query, engine)
            assert (text, [place for _, place in letters], why) == (expected, aside, []), (number, query, engine)


def test_generated_queries_of_all_kinds(mass: Mass) -> None:
    """A trunk answers windows, joins, groups and displays with results of all kinds as the law does."""
    results = [
        "$v.i",
        '{ "i": count($v) }',
        "$v[1]",
        "$v",
        "count($v)",
        "$v/a/b/..",
        "1 div (count($v) - 1)",
        "<e/>",
        "$v/i",
    ]
    shapes = (
        'for $v in stream("s")|count 2| return {}',
        'for $v in stream("s")|count 1|, $w in stream("x")|count 1| return ({}, $w)',
        'for $o in stream("s") group by $k := $o.i > 2 let $v := $o return {}',
        'for $v in stream("s") order by $v.i descending return {}',
        'let $n := 1 for $v in stream("s") return {}',
        '(for $v in stream("s") return {})[position() <= 3]',
    )
    for number in mass.cases(150):
        random = Random(number)
        shape = random.choice(shapes)
        allowed = [each for each in results if "$w" not in shape or "count" not in each]  # a join has no aggregates
        query = shape.replace("{}", f"({', '.join(random.choices(allowed, k=random.randrange(1, 4)))})")
        found, expected = (asked(query, engine) for engine in ENGINES)
        assert found == expected, (number, query)
        if found == "SERE0022":
            assert any(each in query for each in ("<e/>", "$v/i")), query


def asked(query: str, engine: EngineName) -> object:
    """What a query answers, and what is set aside for it; or the code with which it is refused."""
    try:
        text, letters, why = answer(query, engine)
    except QueryError as error:
        return error.code
    return text, set(letters), why
