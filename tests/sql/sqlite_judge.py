"""Random queries in SQL that SQLite answers as well: over rows with NULLs, whose windows are made by hand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

COLUMNS = ("id", "t", "a", "b", "k", "n", "ok")
_TEXTS = ("", "a", "ab", "Abc", "b a", " x ", "a%b", "zz_z")


def random_rows(random: Random, count: int) -> list[dict[str, Any]]:
    """Rows in the order of their times, in which columns may be null or missing."""
    rows: list[dict[str, Any]] = []
    time = 0
    for number in range(count):
        time += random.randrange(0, 8)
        row: dict[str, Any] = {"id": number, "t": time}
        values: dict[str, Any] = {
            "a": random.randrange(-3, 10),
            "b": random.randrange(-20, 60) / 4,
            "k": random.choice(("x", "y", "z")),
            "n": random.choice(_TEXTS),
            "ok": random.random() < 0.5,
        }
        for name, value in values.items():
            chance = random.random()
            if chance < 0.7:
                row[name] = value
            elif chance < 0.85:
                row[name] = None
        rows.append(row)
    return rows


def lines_of(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in rows)


def tumbled(rows: Iterable[dict[str, Any]], size: int, step: int) -> list[dict[str, Any]]:
    """Each row once for each window that it is in, in the order of the windows."""
    found = [
        {**row, "window_start": start, "window_end": start + size}
        for row in rows
        for start in range(0, row["t"] + 1, step)
        if start <= row["t"] < start + size
    ]
    return sorted(found, key=lambda row: (row["window_start"], row["id"]))


def in_sqlite(rows: Iterable[dict[str, Any]], query: str) -> list[tuple[Any, ...]]:
    """What SQLite answers over a table `s`."""
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA case_sensitive_like = ON")
        names = (*COLUMNS, "window_start", "window_end")
        database.execute(f"CREATE TABLE s ({', '.join(names)})")
        values = [tuple(row.get(name) for name in names) for row in rows]
        database.executemany(f"INSERT INTO s VALUES ({', '.join('?' * len(names))})", values)
        return database.execute(query).fetchall()


def plain(value: Any) -> Any:
    """A value as both say it: SQLite has no truth values, and doubles may be written as integers."""
    if isinstance(value, bool):
        return int(value)
    return round(float(value), 9) if isinstance(value, int | float) else value


def rows_of(answer: str) -> list[tuple[Any, ...]]:
    """The rows of an answer, which are objects."""
    return [tuple(json.loads(line).values()) for line in answer.splitlines()]


def same(ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]], *, ordered: bool) -> bool:
    left = [tuple(map(plain, row)) for row in ours]
    right = [tuple(map(plain, row)) for row in theirs]
    return left == right if ordered else sorted(left, key=repr) == sorted(right, key=repr)


class RandomSql:
    """Expressions of known types."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def number(self, depth: int = 2) -> str:
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.35:
            return pick(("a", "b", "a", "b", "1", "2.5", "-3", "0", "NULL"))
        less = depth - 1
        return pick(
            (
                lambda: f"({self.number(less)} + {self.number(less)})",
                lambda: f"({self.number(less)} - {self.number(less)} * {self.number(less)})",
                lambda: f"ABS({self.number(less)})",
                lambda: f"- {self.column('a', 'b')}",
                lambda: f"COALESCE({self.number(less)}, {self.number(less)})",
                lambda: f"NULLIF({self.number(less)}, {self.number(less)})",
                lambda: f"LENGTH({self.text(less)})",
                lambda: f"CASE WHEN {self.condition(less)} THEN {self.number(less)} ELSE {self.number(less)} END",
                lambda: f"CASE a WHEN 1 THEN {self.number(less)} WHEN b THEN 7 END",
            )
        )()

    def column(self, *names: str) -> str:
        return self.random.choice(names)

    def text(self, depth: int = 2) -> str:
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.35:
            return pick(("k", "n", "n", "'a'", "'Abc'", "''", "NULL"))
        less = depth - 1
        return pick(
            (
                lambda: f"UPPER({self.text(less)})",
                lambda: f"LOWER({self.text(less)})",
                lambda: f"({self.text(less)} || {self.text(less)})",
                lambda: f"SUBSTR({self.text(less)}, {pick('12')}, {pick('012')})",
                lambda: f"REPLACE({self.text(less)}, 'a', 'qq')",
                lambda: f"TRIM({self.text(less)})",
                lambda: f"COALESCE({self.text(less)}, 'none')",
                lambda: f"CASE WHEN {self.condition(less)} THEN {self.text(less)} END",
            )
        )()

    def condition(self, depth: int = 2) -> str:
        pick = self.random.choice
        operator = pick(("=", "<>", "<", "<=", ">", ">="))
        if depth == 0 or self.random.random() < 0.4:
            return pick(
                (
                    f"a {operator} {self.number(0)}",
                    f"n {operator} {self.text(0)}",
                    f"{pick(('a', 'b', 'k', 'n', 'ok'))} IS {pick(('', 'NOT '))}NULL",
                    "ok",
                    "ok IS TRUE",
                    "ok IS NOT FALSE",
                    f"n {pick(('', 'NOT '))}LIKE '{pick(('a%', '%b', '%a%', '_b', 'a_c%', '%', '', 'ab', '%z$_%'))}'"
                    + " ESCAPE '$'",
                )
            )
        less = depth - 1
        return pick(
            (
                lambda: f"NOT ({self.condition(less)})",
                lambda: f"({self.condition(less)} AND {self.condition(less)})",
                lambda: f"({self.condition(less)} OR {self.condition(less)})",
                lambda: f"{self.number(less)} {operator} {self.number(less)}",
                lambda: f"{self.text(less)} {operator} {self.text(less)}",
                lambda: f"a {pick(('', 'NOT '))}BETWEEN {self.number(0)} AND {self.number(less)}",
                lambda: f"{self.number(less)} {pick(('', 'NOT '))}IN (1, {self.number(0)}, 5)",
                lambda: f"k {pick(('', 'NOT '))}IN ('x', {self.text(0)})",
                lambda: f"a IS {pick(('', 'NOT '))}DISTINCT FROM {self.number(0)}",
            )
        )()

    def aggregate(self) -> str:
        pick = self.random.choice
        return pick(
            (
                lambda: "COUNT(*)",
                lambda: f"COUNT({pick(('a', 'k', 'ok', self.number(1)))})",
                lambda: f"COUNT(DISTINCT {pick(('a', 'k', self.number(1)))})",
                lambda: f"{pick(('SUM', 'AVG', 'MIN', 'MAX'))}({self.number(1)})",
                lambda: f"{pick(('MIN', 'MAX'))}({pick(('k', 'n'))})",
                lambda: f"COUNT(*) FILTER (WHERE {self.condition(1)})",
                lambda: f"SUM(a) FILTER (WHERE {self.condition(1)})",
            )
        )()

    def having(self) -> str:
        pick = self.random.choice
        operator = pick(("=", "<>", "<", ">"))
        return pick((f"COUNT(*) {operator} 2", f"SUM(a) {operator} 5", f"NOT (MAX(b) {operator} 6) OR COUNT(a) > 2"))
