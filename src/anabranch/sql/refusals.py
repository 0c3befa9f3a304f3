"""What SQL may say that is refused here, in one table: the name it goes by, and what to write instead (LAWS 8).

Everything that is not translated is refused by its name; what has a row here has a hint as well.
`tests/sql/test_translation.py` runs every example, and `docs/sql.md` prints the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.errors import Refused, Span


@dataclass(frozen=True, slots=True)
class SqlRefusal:
    name: str
    hint: str
    example: str


_ELSE = "docs/sql.md lists what there is"
_STREAM = "register the inner query, and read its answer as a stream"

_ALL = (
    SqlRefusal(
        "statement other than SELECT",
        "write the SELECT alone: it stays as a subscription; streams and sinks are declared in SITE.toml",
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM s",
    ),
    SqlRefusal("several statements", "write one query into each file", "SELECT a FROM s; SELECT b FROM s"),
    SqlRefusal("SELECT without FROM", "name a stream", "SELECT 1 AS one"),
    SqlRefusal("SELECT without columns", "name columns, or write '*'", "SELECT FROM s"),
    SqlRefusal("subquery", _STREAM, "SELECT a FROM (SELECT a FROM s) AS t"),
    SqlRefusal("WITH", _STREAM, "WITH t AS (SELECT a FROM s) SELECT a FROM t"),
    SqlRefusal("LATERAL", _STREAM, "SELECT s.a FROM s, LATERAL (SELECT a FROM t) AS t"),
    SqlRefusal(
        "UNNEST",
        "look one member up, as in tags[1]; in XQuery, tags[] are all of them",
        "SELECT UNNEST(tags) AS t FROM s",
    ),
    SqlRefusal("SELECT INTO", "leave INTO out: sinks are declared in SITE.toml", "SELECT a INTO t FROM s"),
    SqlRefusal("FOR UPDATE", "leave it out: rows of a stream stay as they are", "SELECT a FROM s FOR UPDATE"),
    SqlRefusal(
        "UNION without ALL",
        "write UNION ALL: which rows are equal is known at the end only",
        "SELECT a FROM s UNION SELECT a FROM t",
    ),
    SqlRefusal("INTERSECT", "join on what must be equal", "SELECT a FROM s INTERSECT SELECT a FROM t"),
    SqlRefusal("EXCEPT", "write the condition into WHERE", "SELECT a FROM s EXCEPT SELECT a FROM t"),
    SqlRefusal(
        "window function", "group by a window, as in FROM TUMBLE(...)", "SELECT SUM(a) OVER (ORDER BY ts) AS x FROM s"
    ),
    SqlRefusal("QUALIFY", "use ORDER BY and LIMIT in a window", "SELECT a FROM s QUALIFY ROW_NUMBER() OVER () = 1"),
    SqlRefusal(
        "outer join of streams",
        "whether a row stays without a partner, no stream can tell; a table can be joined with LEFT JOIN",
        "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k",
    ),
    SqlRefusal(
        "RIGHT or FULL JOIN",
        "write the stream first, and LEFT JOIN the table",
        "SELECT a.x FROM a RIGHT JOIN b ON TRUE",
    ),
    SqlRefusal("NATURAL JOIN", "name the columns in ON", "SELECT a.x FROM a NATURAL JOIN b"),
    SqlRefusal(
        "SEMI or ANTI JOIN",
        "write JOIN; which rows have no partner, no stream can tell",
        "SELECT a.x FROM a LEFT SEMI JOIN b ON a.k = b.k",
    ),
    SqlRefusal(
        "ASOF JOIN",
        "bound the distance of the rows, as in ON b.ts BETWEEN a.ts AND a.ts + INTERVAL '5 MINUTES'",
        "SELECT a.x FROM a ASOF JOIN b ON a.k = b.k",
    ),
    SqlRefusal(
        "FOR SYSTEM_TIME",
        "leave it out: a row meets the table as it then is",
        "SELECT s.a FROM s JOIN table FOR SYSTEM_TIME AS OF PROCTIME() ON s.k = table.k",
    ),
    SqlRefusal(
        "join of windows",
        "bound the distance of the rows, as in ON b.ts BETWEEN a.ts AND a.ts + INTERVAL '5 MINUTES'",
        "SELECT a.x FROM TUMBLE(a, ts, INTERVAL '1 MINUTE') AS a JOIN b ON a.k = b.k",
    ),
    SqlRefusal(
        "aggregate over a join of streams",
        "register the join, and group its answer as a stream",
        "SELECT COUNT(*) AS n FROM a JOIN b ON b.ts BETWEEN a.ts AND a.ts + 5",
    ),
    SqlRefusal(
        "GROUP BY that spans windows",
        "add window_start or window_end to GROUP BY, or read the stream without a window",
        "SELECT k, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '1 MINUTE') GROUP BY k",
    ),
    SqlRefusal(
        "DISTINCT that spans windows",
        "add window_start or window_end to the columns, or read the stream without a window",
        "SELECT DISTINCT k FROM TUMBLE(s, ts, INTERVAL '1 MINUTE')",
    ),
    SqlRefusal(
        "window outside FROM",
        "write FROM TUMBLE(s, ts, INTERVAL '1 MINUTE'), and GROUP BY window_start",
        "SELECT COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1 MINUTE')",
    ),
    SqlRefusal(
        "DISTINCT beside groups, aggregates or '*'",
        "name the columns; rows of groups differ in their keys anyway",
        "SELECT DISTINCT k, COUNT(*) AS n FROM s GROUP BY k",
    ),
    SqlRefusal(
        "DISTINCT ON", "group by these columns, and take MIN or MAX of the others", "SELECT DISTINCT ON (k) k, a FROM s"
    ),
    SqlRefusal(
        "DISTINCT of several columns",
        "count one column; for several, register a query that groups by them, and count its rows",
        "SELECT COUNT(DISTINCT a, b) AS n FROM s",
    ),
    SqlRefusal(
        "COUNT of several columns",
        "write COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)",
        "SELECT COUNT(a, b) AS n FROM s",
    ),
    SqlRefusal(
        "GROUPING SETS, ROLLUP and CUBE", "write one query for each grouping", "SELECT a FROM s GROUP BY ROLLUP (a)"
    ),
    SqlRefusal("ORDER BY ALL", "name the columns", "SELECT a FROM TUMBLE(s, ts, INTERVAL '1 HOUR') ORDER BY ALL"),
    SqlRefusal("'*' beside other columns", "name the columns", "SELECT *, a FROM s"),
    SqlRefusal("'*' over a window or a join", "name the columns", "SELECT * FROM TUMBLE(s, ts, INTERVAL '1 HOUR')"),
    SqlRefusal("'*' in a query with groups", "name the columns", "SELECT * FROM s GROUP BY a"),
    SqlRefusal("EXCEPT of STAR", "name the columns", "SELECT * EXCEPT (a) FROM s"),
    SqlRefusal("REPLACE of STAR", "name the columns", "SELECT * REPLACE (1 AS a) FROM s"),
    SqlRefusal("names of columns behind a table", "rename columns with AS in SELECT", "SELECT b FROM s AS t(b)"),
    SqlRefusal("TABLESAMPLE", "write a condition into WHERE", "SELECT a FROM s TABLESAMPLE BERNOULLI (10)"),
    SqlRefusal(
        "PIVOT",
        "write an aggregate for each value, as in SUM(a) FILTER (WHERE b = 1)",
        "SELECT a FROM s PIVOT (SUM(a) FOR b IN (1))",
    ),
    SqlRefusal("column without a name", "name it with AS", "SELECT a + 1 FROM s"),
    SqlRefusal(
        "clock",
        "there is none: an item's time is in the data; windows close as the stream goes on",
        "SELECT NOW() AS now FROM s",
    ),
    SqlRefusal("random value", "an answer follows from the data alone", "SELECT RANDOM() AS r FROM s"),
    SqlRefusal(
        "function DATE_TRUNC",
        "group by a window, as in FROM TUMBLE(s, ts, INTERVAL '1 HOUR'), or EXTRACT the parts",
        "SELECT DATE_TRUNC('hour', ts) AS h FROM s",
    ),
    SqlRefusal(
        "function TO_CHAR", "EXTRACT the parts, and join them with ||", "SELECT TO_CHAR(ts, 'YYYY-MM') AS m FROM s"
    ),
    SqlRefusal("parameter", "write the value itself", "SELECT a FROM s WHERE a > $1"),
    SqlRefusal(
        "pattern that is no literal", "write the pattern itself, or use POSITION", "SELECT a FROM s WHERE a LIKE b"
    ),
    SqlRefusal(
        "type",
        "known are BOOLEAN, INTEGER, BIGINT, DECIMAL, DOUBLE, VARCHAR, TEXT, TIMESTAMP, DATE and TIME, without sizes",
        "SELECT CAST(a AS DECIMAL(10, 2)) AS a FROM s",
    ),
    SqlRefusal(
        "TRY_CAST",
        "write CAST: a row whose value it does not take is set aside",
        "SELECT TRY_CAST(a AS INT) AS a FROM s",
    ),
    SqlRefusal(
        "months as the size of a window", "months differ in length", "SELECT * FROM TUMBLE(s, ts, INTERVAL '1 MONTH')"
    ),
    SqlRefusal("operator of JSON", "look keys up with dots, as in customer.name", "SELECT a ->> 'b' AS b FROM s"),
    SqlRefusal("row value", "compare the columns one by one", "SELECT a FROM s WHERE (a, b) = (1, 2)"),
    SqlRefusal("object inside a row", "name the columns with AS: a row is an object", "SELECT ROW(a, b) AS r FROM s"),
    SqlRefusal("ANY and ALL", "write the values out, as in a IN (1, 2)", "SELECT a FROM s WHERE a = ANY(tags)"),
    SqlRefusal("COLLATE", "texts are compared by their characters", "SELECT a FROM s WHERE a COLLATE \"C\" = 'x'"),
    SqlRefusal("schema in front of a stream", "streams have plain names", "SELECT a FROM db.s"),
    SqlRefusal("ILIKE", "write LOWER(...) LIKE ...", "SELECT a FROM s WHERE a ILIKE 'x%'"),
    SqlRefusal("regular expression", "use LIKE", "SELECT a FROM s WHERE a ~ 'x'"),
    SqlRefusal("FETCH", "write LIMIT", "SELECT a FROM s FETCH FIRST 5 ROWS ONLY"),
    SqlRefusal("array", "look one member up, as in tags[1]", "SELECT ARRAY[1, 2] AS a FROM s"),
    SqlRefusal(
        "nested aggregate", "group first, register that, and aggregate its answer", "SELECT SUM(MAX(a)) AS x FROM s"
    ),
    SqlRefusal("'*' in an aggregate other than COUNT", "name a column", "SELECT SUM(*) AS x FROM s"),
    SqlRefusal(
        "ORDER BY in an aggregate", "leave it out: the result is the same", "SELECT SUM(a ORDER BY b) AS x FROM s"
    ),
    SqlRefusal("aggregate in WHERE", "use HAVING", "SELECT a FROM s WHERE COUNT(*) > 1"),
    SqlRefusal("EMIT", "leave it out: a window answers when it closes", "SELECT a FROM s EMIT ON WINDOW CLOSE"),
    SqlRefusal("zone", "times without a zone are UTC", "SELECT ts AT TIME ZONE 'CET' AS t FROM s"),
)
SQL_REFUSALS: Mapping[str, SqlRefusal] = {each.name: each for each in _ALL}


def refuse_sql(name: str, text: str, span: Span, hint: str | None = None) -> Refused:
    """The error for one construct, to be raised at a place; `hint` is for one without a row."""
    known = SQL_REFUSALS.get(name)
    return Refused(f"refused in SQL: {name}", text=text, span=span, hint=known.hint if known else hint or _ELSE)
