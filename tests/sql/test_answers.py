"""Answers of queries in SQL: the cases of the law, joins and sessions, each worked out by hand or by plain Python."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source

ENGINES: tuple[EngineName, ...] = ("reference", "local")


def answer(folder: Path, query: str, engine: EngineName, **streams: str) -> tuple[list[Any], list[str]]:
    """The rows of an answer, and the codes of its dead letters; a stream called `prices` is a table."""
    for name, lines in streams.items():
        (folder / f"{name}.jsonl").write_text(lines)
    sources = [Source(each, folder / f"{each}.jsonl", format="json") for each in streams if each != "prices"]
    tables = {"prices": DocumentSource(folder / "prices.jsonl")} if "prices" in streams else None
    inputs = Inputs(sources, tables, finite=True)
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        rows = [json.loads(line) for line in "".join(run.answers["q"]).splitlines()]
        return rows, [each.code or "" for each in run.dead]


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in rows)


MINUTE = "TUMBLE(s, t, INTERVAL '1 MINUTE')"
DAYS = lines({"n": 1, "d": "2026-03-01"}, {"n": 2, "d": "2026-03-01T12:00:00"}, {"n": 3, "d": None})
THREE = lines({"t": 1, "a": 2}, {"t": 2, "a": None}, {"t": 3, "a": 1})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("query", "rows", "expected"),
    [
        # case 75: unknown is not true
        ("SELECT a FROM s WHERE NOT a = 5", lines({"a": 5}, {"a": None}, {}, {"a": 7}), [{"a": 7}]),
        ("SELECT a FROM s WHERE a NOT IN (5, NULL)", lines({"a": 5}, {"a": None}, {}, {"a": 7}), []),
        ("SELECT a FROM s WHERE a IS NULL", lines({"a": 5}, {"a": None}, {}, {"a": 7}), [{"a": None}, {"a": None}]),
        # case 76: unknown as a value
        (
            "SELECT a > 1 AS b, NOT a > 1 AS c, a > 1 OR TRUE AS d, UPPER(a) AS e, COALESCE(a, 0) AS f FROM s",
            lines({"a": None}, {}),
            [{"b": None, "c": None, "d": True, "e": None, "f": 0}] * 2,
        ),
        # case 77: NULL is one group
        (
            f"SELECT k, COUNT(*) AS n, COUNT(a) AS c, SUM(a) AS s FROM {MINUTE} GROUP BY k, window_start",
            lines({"t": 1, "k": "x", "a": 1}, {"t": 2, "k": None, "a": 2}, {"t": 3, "a": None}, {"t": 4, "k": "x"}),
            [{"k": "x", "n": 2, "c": 1, "s": 1}, {"k": None, "n": 2, "c": 1, "s": 2}],
        ),
        # case 78: aggregates of nothing
        ("SELECT COUNT(a) AS c, SUM(a) AS s, MAX(a) AS m FROM s", lines({"a": None}), [{"c": 0, "s": None, "m": None}]),
        # case 79: where NULL sorts
        (f"SELECT a FROM {MINUTE} ORDER BY a", THREE, [{"a": 1}, {"a": 2}, {"a": None}]),
        (f"SELECT a FROM {MINUTE} ORDER BY a DESC LIMIT 1", THREE, [{"a": None}]),
        (f"SELECT a FROM {MINUTE} ORDER BY a NULLS FIRST", THREE, [{"a": None}, {"a": 1}, {"a": 2}]),
        # case 94: NaN is no NULL
        (
            "SELECT a / b > 2 AS x, NOT a / b > 2 AS y, a / b NOT BETWEEN 1 AND 5 AS z FROM s",
            lines({"a": 0, "b": 0}, {"a": 6, "b": 2}),
            [{"x": False, "y": True, "z": True}, {"x": True, "y": False, "z": False}],
        ),
        ("SELECT a FROM s WHERE NOT a / b > 2", lines({"a": 0, "b": 0}, {"a": 6, "b": 2}, {"a": 1}), [{"a": 0}]),
        ("SELECT a FROM s WHERE NOT a - b <= 0", '{"a": 1e400, "b": 1e400}\n{"a": 1, "b": 2}\n', [{"a": math.inf}]),
        # case 95: numbers are exact as far as exponents are of use
        (
            "SELECT CAST(a AS VARCHAR) AS a, COUNT(*) AS n FROM s GROUP BY a",
            "".join(
                f'{{"a": {each}}}\n' for each in ("0", "1e-400", "1e-5000", "1e1100", "2e1100", "1e5000", "2e5000")
            ),
            [
                {"a": "0", "n": 2},
                {"a": "1e-400", "n": 1},
                {"a": "1e1100", "n": 1},
                {"a": "2e1100", "n": 1},
                {"a": "1e5000", "n": 2},
            ],
        ),
        (
            "SELECT k FROM s WHERE a = 0 OR a = 1e5000 OR a = 1e1100",
            "".join(
                f'{{"k": "{each}", "a": {each}}}\n' for each in ("1e-400", "1e-5000", "1e1100", "2e1100", "2e5000")
            ),
            [{"k": "1e-5000"}, {"k": "1e1100"}, {"k": "2e5000"}],
        ),
        # case 111: bounds of windows beside columns that are plain numbers, and in aggregates
        (
            "SELECT a, a - window_start AS b FROM TUMBLE(s, a, 3) WHERE a > window_start",
            lines({"a": 1}, {"a": 4}, {"a": 6}),
            [{"a": 1, "b": 1}, {"a": 4, "b": 1}],
        ),
        ("SELECT a FROM SESSION(s, a, 3) WHERE a > window_start", lines({"a": 1}, {"a": 2}), [{"a": 2}]),
        (
            "SELECT MAX(window_end) AS b, COUNT(window_start) AS n FROM TUMBLE(s, a, 3) GROUP BY window_start",
            lines({"a": 1}, {"a": 4}),
            [{"b": 3, "n": 1}, {"b": 6, "n": 1}],
        ),
        (
            "SELECT k, MIN(window_start) AS b FROM HOP(s, a, 3, 6) GROUP BY k, window_end",
            lines({"a": 1, "k": "x"}, {"a": 4, "k": "y"}),
            [{"k": "x", "b": 0}, {"k": "y", "b": 0}, {"k": "y", "b": 3}],
        ),
        # case 112: what makes a column a time
        (
            "SELECT ts - TIMESTAMP '2026-01-01 00:00:00' AS a, ts + 2 * INTERVAL '1 HOUR' AS b FROM s",
            lines({"ts": "2026-01-01T00:00:10Z"}, {"ts": None}),
            [{"a": "PT10S", "b": "2026-01-01T02:00:10Z"}, {"a": None, "b": None}],
        ),
        (
            "SELECT window_end - ts AS a, ts + (INTERVAL '1 HOUR' - n * INTERVAL '1 MINUTE') AS b "
            "FROM TUMBLE(s, ts, INTERVAL '1 MINUTE')",
            lines({"ts": "2026-01-01T00:00:10Z", "n": 5}),
            [{"a": "PT50S", "b": "2026-01-01T00:55:10Z"}],
        ),
        (
            "SELECT b - a AS c FROM s WHERE a > TIMESTAMP '2026-01-01 00:00:00'",
            lines({"a": "2026-01-01T00:00:10Z", "b": "2026-01-01T01:00:10+01:00"}),
            [{"c": "PT0S"}],
        ),
        # case 143: dates of times, and intervals that lead back
        (
            "SELECT CAST(ts AS DATE) AS d, TIMESTAMP '2026-03-01 10:00:00' + INTERVAL '-1 DAY 2 HOURS' AS b FROM s",
            lines({"ts": "2026-03-01T23:30:00-05:00"}, {"ts": "2026-03-02"}, {"ts": None}),
            [{"d": day, "b": "2026-02-28T12:00:00"} for day in ("2026-03-01", "2026-03-02", None)],
        ),
        (
            "SELECT n FROM s WHERE ts::DATE = DATE '2026-03-01' "
            "AND ts > TIMESTAMP '2026-03-01 10:00:00' + INTERVAL '-1' HOUR",
            lines({"n": 1, "ts": "2026-03-01T09:30:00Z"}, {"n": 2, "ts": "2026-03-01T09:00:00Z"}),
            [{"n": 1}],
        ),
        # case 182: where SQL's functions are not XQuery's
        (
            "SELECT ROUND(x) AS a, ROUND(x, 1) AS b, LEFT('abc', -1) AS c, RIGHT('abc', -1) AS d, "
            "REPLACE('abc', '', 'x') AS e FROM s",
            lines({"x": -2.5}, {"x": 0.25}),
            [{"a": a, "b": b, "c": "ab", "d": "bc", "e": "abc"} for a, b in ((-3, -2.5), (0, 0.3))],
        ),
        (
            "SELECT LEFT(t, n) AS a, RIGHT(t, n) AS b, REPLACE(t, o, '-') AS c, ROUND(n * 0.5 + n) AS d FROM s",
            lines({"t": "abc", "n": -5, "o": ""}, {"t": "abc", "n": 1, "o": "b"}, {"t": "abc", "n": None}),
            [
                {"a": "", "b": "", "c": "abc", "d": -8},
                {"a": "a", "b": "c", "c": "a-c", "d": 2},
                {"a": None, "b": None, "c": None, "d": None},
            ],
        ),
        # case 183: dates are midnights
        ("SELECT n FROM s WHERE d > DATE '2026-03-01'", DAYS, [{"n": 2}]),
        ("SELECT n FROM s WHERE d <= DATE '2026-03-02' - INTERVAL '1 DAY'", DAYS, [{"n": 1}]),
        ("SELECT n FROM s WHERE d NOT IN (DATE '2026-03-01', DATE '2026-03-02')", DAYS, [{"n": 2}]),
        ("SELECT n FROM s WHERE CAST(d AS DATE) < DATE '2026-03-01' + INTERVAL '1 HOUR'", DAYS, [{"n": 1}, {"n": 2}]),
        ("SELECT d - DATE '2026-02-28' AS a FROM s", DAYS, [{"a": "P1D"}, {"a": "P1DT12H"}, {"a": None}]),
        (
            "SELECT DATE '2026-03-01' + INTERVAL '36 HOURS' AS a, EXTRACT(DAY FROM d) AS b FROM s",
            DAYS,
            [{"a": "2026-03-02T12:00:00", "b": day} for day in (1, 1, None)],
        ),
        # case 113: CONCAT_WS passes over NULL
        (
            "SELECT CONCAT_WS('-', a, b, c) AS d, CONCAT_WS(b, a, c) AS e FROM s",
            lines({"a": 1, "b": None, "c": "x"}, {"b": "+", "a": "", "c": True}),
            [{"d": "1-x", "e": None}, {"d": "-+-true", "e": "+true"}],
        ),
        # LIKE: only what a pattern of XPath takes for a sign is escaped
        (
            "SELECT n FROM s WHERE n LIKE '_\\%\\_-&@\\\\.%_'",
            lines({"n": "a%_-&@\\.b"}, {"n": "a%_-&@\\xb"}, {"n": "ab_-&@\\.b"}, {"n": None}),
            [{"n": "a%_-&@\\.b"}],
        ),
        # types stay, numbers keep their spelling, and objects and arrays pass
        (
            'SELECT "@id" AS o, c, c.d[2] AS m FROM s',
            '{"@id": 1.50, "c": {"d": [1, "2"]}}\n',
            [{"o": 1.5, "c": {"d": [1, "2"]}, "m": "2"}],
        ),
        # an error of a row concerns that row
        ("SELECT id FROM s WHERE a > 1", lines({"id": 1, "a": "2"}, {"id": 2, "a": 3}), [{"id": 2}]),
    ],
)
def test_cases(tmp_path: Path, query: str, rows: str, expected: list[Any], engine: EngineName) -> None:
    """Each case gives what was worked out by hand from the laws."""
    found, codes = answer(tmp_path, query, engine, s=rows)
    assert found == expected
    assert codes == (["XPTY0004"] if '"2"' in rows and "WHERE" in query else [])


def _moment(random: Random, after: datetime) -> datetime:
    return after + timedelta(seconds=random.randrange(0, 40))


def _events(seed: int, count: int) -> list[dict[str, Any]]:
    random = Random(seed)
    at = datetime(2026, 1, 1)
    found: list[dict[str, Any]] = []
    for number in range(count):
        at = _moment(random, at)
        row: dict[str, Any] = {"id": number, "ts": at.isoformat() + "Z", "v": random.randrange(10)}
        if random.random() < 0.8:
            row["k"] = random.choice(("x", "y", None))
        found.append(row)
    return found


def _seconds(row: dict[str, Any]) -> float:
    return datetime.fromisoformat(row["ts"].removesuffix("Z")).timestamp()


@pytest.mark.parametrize("engine", ENGINES)
def test_interval_join(tmp_path: Path, engine: EngineName) -> None:
    """Rows of two streams meet where their keys are equal and their times within the bounds."""
    left, right = _events(1, 30), _events(2, 30)
    query = (
        "SELECT a.id AS a, b.id AS b FROM a JOIN b "
        "ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 MINUTE' WHERE a.v <> b.v"
    )
    expected = [
        {"a": one["id"], "b": two["id"]}
        for one in left
        for two in right
        if one.get("k") is not None and one.get("k") == two.get("k") and one["v"] != two["v"]
        if 0 <= _seconds(two) - _seconds(one) <= 60
    ]
    assert len(expected) > 5
    found, codes = answer(tmp_path, query, engine, a=lines(*left), b=lines(*right))
    assert (sorted(map(str, found)), codes) == (sorted(map(str, expected)), [])


@pytest.mark.parametrize("unit", [None, "ms"])
def test_interval_join_of_streams_that_go_on(tmp_path: Path, unit: str | None) -> None:
    """Over declared times a pair is answered when both streams have gone past it, whatever their numbers count in."""
    last = {"id": 99, "ts": "2026-02-01T00:00:00Z", "k": "none", "v": 0}
    left, right = [*_events(1, 30), last], [*_events(2, 30), last]
    query = (
        "SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 MINUTE'"
    )
    expected = [
        {"a": one["id"], "b": two["id"]}
        for one in left[:-1]
        for two in right[:-1]
        if one.get("k") is not None and one.get("k") == two.get("k") and 0 <= _seconds(two) - _seconds(one) <= 60
    ]
    with Engine(local=True, once=True, epoch_bytes=400) as engine:
        for name, rows in (("a", left), ("b", right)):
            (tmp_path / f"{name}.jsonl").write_text(lines(*rows))
            engine.stream(name, tmp_path / f"{name}.jsonl", time="ts", time_unit=unit)
        asked = engine.subscribe(query)
        engine.wait()
        found = [json.loads(line) for line in "".join(asked).splitlines()]
    assert len(expected) > 5
    assert found == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("outer", [False, True])
def test_join_with_a_table(tmp_path: Path, outer: bool, engine: EngineName) -> None:
    """Each row meets the rows of a table with its key; with LEFT JOIN, rows without one stay."""
    events = _events(3, 20)
    prices: list[dict[str, Any]] = [{"k": "x", "p": 2.5}, {"k": "y", "p": 4}, {"k": "y", "p": None}, {"p": 9}]
    query = f"SELECT e.id, e.v * t.p AS total FROM e {'LEFT' if outer else ''} JOIN prices t ON e.k = t.k"
    expected: list[dict[str, Any]] = []
    for each in events:
        met = [row for row in prices if each.get("k") is not None and row.get("k") == each["k"]]
        for row in met or ([{}] if outer else []):
            price = row.get("p")
            expected.append({"id": each["id"], "total": None if price is None else each["v"] * price})
    assert answer(tmp_path, query, engine, e=lines(*events), prices=lines(*prices)) == (expected, [])


@pytest.mark.parametrize("engine", ENGINES)
def test_aggregates_over_a_join_with_a_table(tmp_path: Path, engine: EngineName) -> None:
    """What is aggregated may be made of columns of the stream and of the table."""
    events = _events(4, 40)
    prices: list[dict[str, Any]] = [{"k": "x", "p": 2, "c": "a"}, {"k": "y", "p": 4, "c": "b"}]
    query = (
        "SELECT t.c, SUM(e.v * t.p) AS total, COUNT(*) FILTER (WHERE e.v > t.p) AS more "
        "FROM TUMBLE(e, ts, INTERVAL '2 MINUTES') e JOIN prices t ON e.k = t.k GROUP BY t.c, window_start"
    )
    groups: dict[tuple[float, str], list[tuple[int, int]]] = {}
    for each in events:
        for row in prices:
            if each.get("k") == row["k"]:
                groups.setdefault((_seconds(each) // 120, row["c"]), []).append((each["v"], row["p"]))
    expected = [
        {"c": c, "total": sum(v * p for v, p in members), "more": sum(v > p for v, p in members)}
        for (_, c), members in groups.items()
    ]
    found, codes = answer(tmp_path, query, engine, e=lines(*events), prices=lines(*prices))
    assert (sorted(map(str, found)), codes) == (sorted(map(str, expected)), [])


@pytest.mark.parametrize("engine", ENGINES)
def test_limits_of_a_union(tmp_path: Path, engine: EngineName) -> None:
    """Case 181: LIMIT and OFFSET behind UNION ALL count through the rows of all its queries."""
    query = "SELECT a FROM s UNION ALL SELECT a FROM t LIMIT 2 OFFSET 1"
    found, codes = answer(tmp_path, query, engine, s=lines({"a": 1}, {"a": 2}), t=lines({"a": 3}))
    assert (found, codes) == ([{"a": 2}, {"a": 3}], [])


@pytest.mark.parametrize("engine", ENGINES)
def test_sessions(tmp_path: Path, engine: EngineName) -> None:
    """A session holds the rows of a key without a long pause; `null` and a missing key have their own (LAWS 8.6)."""
    events = _events(5, 60)
    query = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM SESSION(e, ts, INTERVAL '1 MINUTE', k) GROUP BY k, window_start"
    sessions: dict[tuple[bool, str | None], list[list[dict[str, Any]]]] = {}
    for each in events:
        held = sessions.setdefault(("k" in each, each.get("k")), [])
        if held and _seconds(each) - _seconds(held[-1][-1]) < 60:
            held[-1].append(each)
        else:
            held.append([each])
    expected = [
        {"k": k, "n": len(members), "m": max(row["v"] for row in members)}
        for (_, k), held in sessions.items()
        for members in held
    ]
    found, codes = answer(tmp_path, query, engine, e=lines(*events))
    assert (sorted(map(str, found)), codes) == (sorted(map(str, expected)), [])
