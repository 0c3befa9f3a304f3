"""The first of several values, and whether there is one, where values may be `null` (LAWS 7.1)."""

from __future__ import annotations

import json
from random import Random

import pytest

from anabranch.language import print_query
from anabranch.sql import read_query
from columnar.lookup_cases import SOURCE
from columnar.streams import Stream, check_by_law, item_queries
from mass import sized

FIRSTS = [
    "($o.a = 1, $o.b = 2)[1]",
    "($o.a, $o.b)[1]",
    "(non-null($o.a), $o.b)[1]",
    "(non-null($o.a), non-null($o.b))[1]",
    "(non-null($o.a), 0)[1]",
    "(0, $o.a)[1]",
    "(non-null($o.a), 1.50)[1]",
    "(non-null($o.a), 'x')[1]",
    "(non-null($o.n), non-null($o.a), 'x')[1]",
    "(non-null($o.f), false())[1]",
    "(non-null($o.f), $o.a > 1)[1]",
    "(non-null($o.a) + 1, 0)[1]",
    "(upper-case($o.n), 5)[1]",
    "(non-null($o.a), number($o.n))[1]",
    "(data($o.a), data($o.b))[1]",
    "(zero-or-one($o.a), 5)[1]",
    "(if ($o.f) then $o.a else $o.b, 5)[1]",
    "(let $x := data($o.a) return $x, 5)[1]",
    "(for $x in non-null($o.n) return upper-case($x), 5)[1]",
    "head($o.a)",
    "head(($o.a, 1))",
    "exists($o.a[1])",
    "count($o.s[1])",
    "exists($o.s[[2]])",
    "exists(if ($o.f) then $o.a else $o.b)",
    "count(zero-or-one($o.a))",
    "(let $x := (if ($o.f) then $o.a else $o.b) return exists($x))",
    "(for $x in (if ($o.f) then $o.a else $o.b) return 'y')",
    "(for $x in data($o.a) return 'y')",
]


def records(seed: int, count: int, *, odd: bool = False) -> list[dict[str, object]]:
    """Records with keys that are missing, `null`, or of their type; where they are odd, some are of another one."""
    random = Random(seed)
    values: dict[str, list[object]] = {
        "a": [1, 2, 3, None, *([1.5, "x"] if odd else [])],
        "b": [2, 4, None],
        "n": ["p", "q", "5", None],
        "f": [True, False, None],
        "s": [[], [1], [None, 2], [3, None]],
    }
    return [
        {"id": number, **{key: random.choice(given) for key, given in values.items() if random.randrange(4)}}
        for number in range(count)
    ]


def lines(found: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in found).encode()


@pytest.mark.parametrize("odd", [False, True])
def test_the_first_of_several_values_is_that_of_the_law(odd: bool) -> None:
    """In objects and in conditions; `null` is a value to `[1]`, `exists()` and loops, and a condition is always one."""
    texts = {f"in {each}": f'for $o in {SOURCE} return {{ "v": {each} }}' for each in FIRSTS}
    texts |= {f"if {each}": f"for $o in {SOURCE} where {each} = 1 return {{ 'v': $o.id }}" for each in FIRSTS[1:10]}
    check_by_law(Stream(item_queries(texts), "json"), lines(records(1, sized(80, fast=30), odd=odd)), Random(2))


def test_coalesce_of_several_types_is_answered_in_columns() -> None:
    """COALESCE with a literal of another type, in SELECT and WHERE, is what Python makes of it, and needs no law."""
    found = records(3, 120)
    asked = {
        "SELECT id, COALESCE(a, 0) AS v FROM s": [
            {"id": each["id"], "v": 0 if each.get("a") is None else each["a"]} for each in found
        ],
        "SELECT id FROM s WHERE COALESCE(a, 0) < 2": [
            {"id": each["id"]} for each in found if (each.get("a") or 0) in (0, 1)
        ],
        "SELECT id, COALESCE(a, b, 'none') AS v FROM s": [
            {"id": each["id"], "v": next((each[k] for k in ("a", "b") if each.get(k) is not None), "none")}
            for each in found
        ],
        "SELECT id, COALESCE(f, FALSE) AS v FROM s": [{"id": each["id"], "v": bool(each.get("f"))} for each in found],
    }
    stream = Stream(item_queries({sql: print_query(read_query(sql)) for sql in asked}), "json")
    answers, _ = check_by_law(stream, lines(found), Random(4))
    texts = stream.by_columns([lines(found)], answers)[0].texts
    for sql, rows in asked.items():
        assert [json.loads(line) for line in texts[sql].splitlines()] == rows, sql
    assert stream.left_to_law == 0
    assert answers.coverage.by_law == 0
