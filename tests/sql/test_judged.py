"""Random queries in SQL give what SQLite gives over the same rows, NULLs and all (LAWS 8)."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.stream.reading.source import Source
from mass import some
from sql.sqlite_judge import RandomSql, in_sqlite, lines_of, random_rows, rows_of, same, tumbled

ENGINES: tuple[EngineName, ...] = ("reference", "local")


def answers(
    folder: Path, rows: list[dict[str, Any]], queries: list[str], engine: EngineName
) -> list[list[tuple[Any, ...]]]:
    """The rows that queries give; none of them may set anything aside."""
    (folder / "s.jsonl").write_text(lines_of(rows))
    inputs = Inputs([Source("s", folder / "s.jsonl", format="json")], finite=True)
    prepared = [prepare(f"q{number}", text, inputs, engine) for number, text in enumerate(queries)]
    with answering(prepared, inputs) as run:
        found = [rows_of("".join(run.answers[each.name])) for each in prepared]
        assert [str(each) for each in run.dead] == []
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", some(range(4)))
def test_selections(tmp_path: Path, seed: int, engine: EngineName) -> None:
    """Columns that are computed, and conditions in three-valued logic, are those of SQLite."""
    random = Random(seed)
    rows, sql = random_rows(random, 25), RandomSql(random)
    queries = [
        f"SELECT id, {sql.number()} AS p, {sql.text()} AS q, {sql.condition()} AS r FROM s WHERE {sql.condition(3)}"
        for _ in some(range(40))
    ]
    for query, found in zip(queries, answers(tmp_path, rows, queries, engine), strict=True):
        assert same(found, in_sqlite(rows, query), ordered=True), query


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", some(range(3)))
def test_groups_in_windows(tmp_path: Path, seed: int, engine: EngineName) -> None:
    """Groups of windows, their aggregates and HAVING are those of SQLite over windows made by hand."""
    random = Random(100 + seed)
    rows, sql = random_rows(random, 40), RandomSql(random)
    for size, step in ((10, 10), (20, 5)):
        window = f"TUMBLE(s, t, {size})" if size == step else f"HOP(s, t, {step}, {size})"
        queries = []
        for _ in some(range(12)):
            key = random.choice(("k", "a", "ok", "UPPER(n)", None))
            named = "" if key is None else f"{key} AS p, "
            keys = "window_start" if key is None else f"{key}, window_start"
            where = random.choice(("", f"WHERE {sql.condition()} "))
            having = random.choice(("", f" HAVING {sql.having()}"))
            queries.append(
                f"SELECT {named}window_end, {sql.aggregate()} AS q, {sql.aggregate()} AS r "
                f"FROM {window} {where}GROUP BY {keys}{having}"
            )
        held = tumbled(rows, size, step)
        for query, found in zip(queries, answers(tmp_path, rows, queries, engine), strict=True):
            assert same(found, in_sqlite(held, query.replace(window, "s")), ordered=False), query


@pytest.mark.parametrize("engine", ENGINES)
def test_order_and_limit_in_windows(tmp_path: Path, engine: EngineName) -> None:
    """ORDER BY, LIMIT and OFFSET are those of each window, with NULL where RisingWave puts it."""
    random = Random(7)
    rows, sql = random_rows(random, 40), RandomSql(random)
    queries, theirs = [], []
    for _ in some(range(25)):
        key, turned = random.choice((sql.number(1), sql.text(1), "a", "k", "ok")), random.choice(("", " DESC"))
        nulls = random.choice(("", " NULLS FIRST", " NULLS LAST"))
        limit = random.choice(("", " LIMIT 2", " LIMIT 3 OFFSET 1"))
        start = f"SELECT id, {sql.number(1)} AS p FROM "
        condition = f" WHERE {sql.condition(1)}"
        queries.append(f"{start}TUMBLE(s, t, 25){condition} ORDER BY {key}{turned}{nulls}, id{limit}")
        default = nulls or (" NULLS FIRST" if turned else " NULLS LAST")
        theirs.append(f"{start}s{condition} ORDER BY {key}{turned}{default}, id{limit}")
    windows: dict[int, list[dict[str, Any]]] = {}
    for row in tumbled(rows, 25, 25):
        windows.setdefault(row["window_start"], []).append(row)
    for query, judged, found in zip(queries, theirs, answers(tmp_path, rows, queries, engine), strict=True):
        expected = [each for held in windows.values() for each in in_sqlite(held, judged)]
        assert same(found, expected, ordered=True), query


@pytest.mark.mass
@pytest.mark.parametrize("engine", ENGINES)
def test_whole_streams(tmp_path: Path, engine: EngineName) -> None:
    """Aggregates, groups, order and UNION ALL over all of a stream are those of SQLite."""
    random = Random(11)
    rows, sql = random_rows(random, 30), RandomSql(random)
    queries = [
        *(f"SELECT {sql.aggregate()} AS p, {sql.aggregate()} AS q FROM s WHERE {sql.condition()}" for _ in range(10)),
        *(
            f"SELECT k, {sql.aggregate()} AS p FROM s WHERE {sql.condition()} GROUP BY k HAVING {sql.having()}"
            for _ in range(10)
        ),
        *(f"SELECT DISTINCT k, {sql.condition(1)} AS p FROM s" for _ in range(5)),
        *(f"SELECT id, a FROM s WHERE {sql.condition(1)} UNION ALL SELECT id, {sql.number()} FROM s" for _ in range(5)),
    ]
    for query, found in zip(queries, answers(tmp_path, rows, queries, engine), strict=True):
        assert same(found, in_sqlite(rows, query), ordered=False), query
    ordered = [
        f"SELECT id, {sql.number(1)} AS p FROM s ORDER BY {sql.text(1)} DESC NULLS LAST, id LIMIT 7" for _ in "abc"
    ]
    for query, found in zip(ordered, answers(tmp_path, rows, ordered, engine), strict=True):
        assert same(found, in_sqlite(rows, query), ordered=True), query
