"""Parsing (and, as a second figure, parsing and checking) a thousand typical queries, in XQuery and in SQL.

What loads the parser of SQL is not in the figures.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from importlib.resources import files
from statistics import median

from anabranch.bench.harness.timing import Figures, Work, timed
from anabranch.language import check, parse
from anabranch.sql import read_query

_NUMBER = re.compile(r"(?<= )\d+(\.\d+)?")
_WARM_UP, _ROUNDS, _QUICK_ROUNDS = 2, 10, 3


def measure(quick: bool) -> Figures:
    """Run the bench."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    texts = _typical_queries(1_000)
    parsing = _rounds(lambda: [parse(text) for text in texts], rounds)
    checking = _rounds(lambda: [check(parse(text), text) for text in texts], rounds)
    in_sql = _queries_in_sql(1_000)
    reading = _rounds(lambda: [read_query(text) for text in in_sql], rounds)
    return {
        "queries": len(texts),
        "characters": sum(map(len, texts)),
        "parse_1000_s": median(parsing),
        "parse_1000_s_worst": max(parsing),
        "parse_and_check_1000_s": median(checking),
        "characters_sql": sum(map(len, in_sql)),
        "parse_sql_1000_s": median(reading),
        "parse_sql_1000_s_worst": max(reading),
    }


_SQL = (
    "SELECT id, customer.name AS who, amount FROM orders WHERE amount > 100 AND country = 'DE' AND note IS NOT NULL",
    "SELECT window_start, country, COUNT(*) AS orders, SUM(amount) AS revenue "
    "FROM TUMBLE(orders, ts, INTERVAL '1 MINUTE') WHERE amount > 100 GROUP BY window_start, country "
    "HAVING COUNT(*) > 2",
    "SELECT id, CASE WHEN amount >= 100 THEN 'large' ELSE 'small' END AS kind, COALESCE(country, 'unknown') AS country "
    "FROM orders WHERE UPPER(customer.name) LIKE 'A%'",
    "SELECT o.id, p.ts AS paid FROM orders AS o JOIN payments AS p "
    "ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '5 MINUTES' WHERE o.amount > 100",
    "SELECT id, amount FROM HOP(orders, ts, INTERVAL '1 MINUTE', INTERVAL '5 MINUTES') "
    "WHERE amount BETWEEN 100 AND 900 ORDER BY amount DESC LIMIT 10",
)


def _queries_in_sql(count: int) -> list[str]:
    """The everyday questions of docs/sql.md, about other amounts."""
    return [_SQL[number % len(_SQL)].replace("100", str(100 + number)) for number in range(count)]


def _typical_queries(count: int) -> list[str]:
    """Variations of the shipped examples: other sky, other energies, other windows."""
    folder = files("anabranch").joinpath("examples")
    originals = sorted((each.name, each.read_text("utf-8")) for each in folder.iterdir() if each.name.endswith(".xq"))
    return [_NUMBER.sub(partial(_moved, number % 97), originals[number % len(originals)][1]) for number in range(count)]


def _moved(by: int, number: re.Match[str]) -> str:
    return str(Decimal(number.group()) + by)


def _rounds(work: Work, rounds: int) -> list[float]:
    return [timed(work) for _ in range(_WARM_UP + rounds)][_WARM_UP:]
