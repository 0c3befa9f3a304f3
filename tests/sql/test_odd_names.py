"""Columns whose names are no names of XML stand in double quotes, and are answered as SQLite does (LAWS 7.1, 8.1)."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from anabranch.engine.preparing import EngineName
from mass import some
from odd_keys import ODD_KEYS
from sql.sqlite_judge import COLUMNS, RandomSql, in_sqlite, random_rows, same, tumbled
from sql.test_judged import answers

ENGINES: tuple[EngineName, ...] = ("reference", "local")
_TOKEN = re.compile(rf"'(?:[^']|'')*'|\b({'|'.join(COLUMNS)})\b")
_WORDS = [each for each in ODD_KEYS if each and len(each) < 100]
"""An identifier of SQL has at least one character."""


class OddNames:
    """Other names for the columns of a test."""

    def __init__(self, random: Random) -> None:
        self.names = dict(zip(COLUMNS, random.sample(_WORDS, len(COLUMNS)), strict=True))

    def rows(self, rows: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{self.names[name]: value for name, value in row.items()} for row in rows]

    def query(self, text: str) -> str:
        """The query, with these names for columns; what stands in single quotes is no column."""

        def quoted(found: re.Match[str]) -> str:
            if not found[1]:
                return found[0]
            name = self.names[found[1]].replace('"', '""')
            return f'"{name}"'

        return _TOKEN.sub(quoted, text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", some(range(4)))
def test_selections(tmp_path: Path, seed: int, engine: EngineName) -> None:
    """Computed columns and conditions over odd names are those of SQLite over plain ones."""
    random = Random(seed)
    odd, sql = OddNames(random), RandomSql(random)
    rows = random_rows(random, 25)
    queries = [
        f"SELECT id, {sql.number()} AS p, {sql.text()} AS q, {sql.condition()} AS r FROM s WHERE {sql.condition(3)}"
        for _ in range(20)
    ]
    found = answers(tmp_path, odd.rows(rows), [odd.query(each) for each in queries], engine)
    for query, ours in zip(queries, found, strict=True):
        assert same(ours, in_sqlite(rows, query), ordered=True), odd.query(query)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [0, *some((1, 2))])
def test_windows_and_groups(tmp_path: Path, seed: int, engine: EngineName) -> None:
    """Windows over a time with an odd name, groups by odd keys and their aggregates are those of SQLite."""
    random = Random(100 + seed)
    odd, sql = OddNames(random), RandomSql(random)
    rows = random_rows(random, 40)
    window = "TUMBLE(s, t, 10)" if seed % 2 else "HOP(s, t, 5, 20)"
    queries = []
    for _ in range(8):
        key = random.choice(("k", "a", "ok", "UPPER(n)"))
        where = random.choice(("", f"WHERE {sql.condition()} "))
        queries.append(
            f"SELECT {key} AS p, window_end, {sql.aggregate()} AS q, {sql.aggregate()} AS r "
            f"FROM {window} {where}GROUP BY {key}, window_start HAVING {sql.having()}"
        )
    held = tumbled(rows, 10, 10) if seed % 2 else tumbled(rows, 20, 5)
    found = answers(tmp_path, odd.rows(rows), [odd.query(each) for each in queries], engine)
    for query, ours in zip(queries, found, strict=True):
        assert same(ours, in_sqlite(held, query.replace(window, "s")), ordered=False), odd.query(query)


@pytest.mark.parametrize("engine", ENGINES)
def test_displays(tmp_path: Path, engine: EngineName) -> None:
    """Order, groups and aggregates over all of a stream, likewise."""
    random = Random(11)
    odd, sql = OddNames(random), RandomSql(random)
    rows = random_rows(random, 30)
    queries = [
        *(f"SELECT {sql.aggregate()} AS p FROM s WHERE {sql.condition()}" for _ in range(5)),
        *(f"SELECT k, {sql.aggregate()} AS p FROM s GROUP BY k HAVING {sql.having()}" for _ in range(5)),
        *(f"SELECT DISTINCT k, {sql.condition(1)} AS p FROM s" for _ in range(3)),
        *(f"SELECT id, a FROM s UNION ALL SELECT id, {sql.number()} FROM s" for _ in range(3)),
        *(f"SELECT id, {sql.number(1)} AS p FROM s ORDER BY {sql.text(1)} NULLS LAST, id LIMIT 7" for _ in "abc"),
    ]
    found = answers(tmp_path, odd.rows(rows), [odd.query(each) for each in queries], engine)
    for query, ours in zip(queries, found, strict=True):
        assert same(ours, in_sqlite(rows, query), ordered="LIMIT" in query), odd.query(query)
