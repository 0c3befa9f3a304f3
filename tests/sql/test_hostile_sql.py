"""Hostile text in SQL: whatever is written, an answer comes soon, and it is a query or an error of ours."""

from __future__ import annotations

import time
from random import Random

import pytest

from anabranch.errors import QueryError
from anabranch.sql import read_query
from anabranch.sql.parsing import MAX_DEPTH, MAX_TOKENS

_SECONDS = 5
"""Far more than needed; some of these take minutes, or never end, without limits."""


HOSTILE = {
    "open parentheses": f"SELECT {'(' * 15_000}",
    "parentheses": f"SELECT {'(' * 500}a{')' * 500} AS a FROM s",
    "arrays": f"SELECT {'ARRAY[' * 20}1{']' * 20} AS a FROM s",
    "brackets": f"SELECT {'a[' * 20}1{']' * 20} AS a FROM s",
    "members": f"SELECT a{'[1]' * 5_000} AS a FROM s",
    "not": f"SELECT {'NOT ' * 5_000}a AS a FROM s",
    "minus": f"SELECT {'- ' * 5_000}a AS a FROM s",
    "is null": f"SELECT a{' IS NULL' * 3_000} AS a FROM s",
    "casts": f"SELECT a{'::int' * 3_000} AS a FROM s",
    "cases": f"SELECT {'CASE WHEN a THEN ' * 100}1{' END' * 100} AS a FROM s",
    "dots": f"SELECT {'.'.join('a' * 9_000)} AS a FROM s",
    "tables": f"SELECT a FROM {'(' * 30}s{')' * 30}",
    "columns": f"SELECT {','.join('a' * MAX_TOKENS)} FROM s",
    "string": f"SELECT '{'x' * 300_000}' AS a FROM s",
    "digits": f"SELECT {'9' * 5_000} AS a FROM s",
    "character": "SELECT '\x00' AS a FROM s",
    "doubled": f"SELECT {'((' * 15}a{' IN (1)) IN (b IN (2)))' * 15} AS a FROM s",
    "open comments": "/*" * 50_000 + "SELECT a FROM s",
    "comments": "/**/" * 40_000 + "SELECT",
    "repeated conditions": (
        f"SELECT {', '.join(f'SUM(a + {n}) AS c{n}' for n in range(800))} FROM s WHERE {' AND '.join(['a > 1'] * 900)}"
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_limits(name: str) -> None:
    """What is too long, too deep or too large is an error, in bounded time."""
    start = time.process_time()
    with pytest.raises(QueryError):
        read_query(HOSTILE[name], language="sql")
    assert time.process_time() - start < _SECONDS


@pytest.mark.mass
def test_long_chains_are_no_deep_ones() -> None:
    """Thousands of conditions, operands, texts and rows side by side are read."""
    start = time.process_time()
    read_query("SELECT a FROM s WHERE " + " AND ".join(["a > 5"] * 4_000))
    read_query("SELECT " + "+".join("a" * 8_000) + " AS b FROM s")
    read_query("SELECT a FROM s WHERE a IN (" + ",".join("1" * 8_000) + ")")
    read_query(" UNION ALL ".join(["SELECT a FROM s"] * 1_000))
    assert time.process_time() - start < 4 * _SECONDS


def test_deep_text_is_read_up_to_the_limit() -> None:
    """Parentheses nest as deep as the limit says."""
    depth = MAX_DEPTH - 1
    read_query(f"SELECT {'(' * depth}a{')' * depth} AS a FROM s")
    read_query(f"SELECT {'ABS(' * depth}a{')' * depth} AS a FROM s")


_WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET UNION ALL AND OR NOT IN BETWEEN LIKE ESCAPE IS NULL CASE WHEN
THEN ELSE END CAST AS INT INTERVAL TIMESTAMP DISTINCT COUNT SUM TUMBLE HOP SESSION JOIN LEFT ON USING FILTER OVER
WITHIN EXTRACT HOUR TRIM COALESCE a b s window_start ( ) ( ) , . * + - / % = <> < > <= || :: [ ] 1 2.5 '1_MINUTE' 'x'
"q" ; -- /* */ $1 ? { } @ ~ E'x' $$ WITH VALUES LATERAL UNNEST EXISTS ANY ROW ARRAY
"""


def test_random_words() -> None:
    """Any row of words is read, or refused by an error of ours; nothing else is raised."""
    random, known = Random(5), _WORDS.split()
    read = 0
    start = time.process_time()
    for _ in range(3_000):
        words = [random.choice(known) for _ in range(random.randrange(1, 25))]
        kept = ["SELECT", *words, "FROM", "s"] if random.random() < 0.7 else words
        try:
            read_query(" ".join(kept), language="sql")
        except QueryError:
            continue
        read += 1
    assert read
    assert time.process_time() - start < 12 * _SECONDS
