"""SQL: texts that explode or ask for more than a stream gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.errors import AnabranchError
from anabranch.sql import in_xquery
from anabranch.stream.reading.source import Source
from hostile.attacks import Attack, Carry, Outcome
from hostile.streams import answered

_LINES = b'{"a": 41, "b": "good", "t": 1}\n' * 3


def _asked(text: str) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        source = Source("s", folder / "s", format="json")
        other = 'for $i in stream("s") return $i.a'
        try:
            query = in_xquery(text, Path("q.sql"))
            found, dead = answered(folder, _LINES, source, {"q": query, "other": other})
        except AnabranchError:
            return "refused"
        assert found["other"].count("41") == 3, "the other query does not notice"
        return "set aside" if dead else "answered"

    return carry_out


REFUSED = {
    "parentheses": f"SELECT {'(' * 5_000}a{')' * 5_000} AS a FROM s",
    "not": f"SELECT {'NOT ' * 5_000}a AS a FROM s",
    "casts": f"SELECT a{'::int' * 3_000} AS a FROM s",
    "cases": f"SELECT {'CASE WHEN a THEN ' * 100}1{' END' * 100} AS a FROM s",
    "arrays": f"SELECT {'ARRAY[' * 20}1{']' * 20} AS a FROM s",
    "a subquery": "SELECT a FROM s WHERE a IN (SELECT a FROM s)",
    "recursion": "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT a FROM r) SELECT a FROM r",
    "two statements": "SELECT a FROM s; DROP TABLE s",
    "DROP": "DROP TABLE s",
    "COPY": "COPY s TO PROGRAM 'reboot'",
    "a file": "SELECT pg_read_file('/etc/passwd') AS a FROM s",
    "a function of the system": "SELECT pg_sleep(1000) AS a FROM s",
    "an extension": "CREATE EXTENSION x",
    "a text that never ends": "SELECT 'x FROM s",
    "a comment that never ends": "SELECT a /* FROM s",
    "20,000 columns": f"SELECT {','.join('a' * 20_000)} FROM s",
    "a NUL": "SELECT '\x00' AS a FROM s",
    "a window of no size": "SELECT COUNT(*) AS n FROM TUMBLE(s, t, INTERVAL '0 SECONDS') GROUP BY window_start",
}
ANSWERED = {
    "a cross join of eight": "SELECT x0.a FROM " + ", ".join(f"s AS x{n}" for n in range(8)),
    "a join without bounds": "SELECT x.a FROM s AS x CROSS JOIN s AS y",
    "a quote in a text": "SELECT a, '''; DROP TABLE s; --' AS b FROM s",
    "an odd name": 'SELECT a AS "; DROP TABLE s; --" FROM s',
    "a pattern that explodes": "SELECT a FROM s WHERE b LIKE '" + "%a" * 200 + "%' OR a > 0",
}


def attacks() -> Iterator[Attack]:
    """Queries in SQL beside another one."""
    groups: tuple[tuple[dict[str, str], Outcome], ...] = ((REFUSED, "refused"), (ANSWERED, "answered"))
    for found, expected in groups:
        for name, text in found.items():
            yield Attack("a query in SQL", name, _asked(text), expected)
