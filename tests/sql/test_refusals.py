"""What SQL says and is refused here goes by its name, and with a hint what to write instead (LAWS 8.8)."""

from __future__ import annotations

import pytest

from anabranch.errors import QueryError, Refused
from anabranch.sql import read_query
from anabranch.sql.refusals import SQL_REFUSALS, SqlRefusal

OTHERS = [
    # queries in queries
    ("SELECT a FROM s WHERE a IN (SELECT b FROM t)", "subquery"),
    ("SELECT a FROM s WHERE EXISTS (SELECT 1 FROM t)", "subquery"),
    ("SELECT a FROM s WHERE a > (SELECT AVG(a) FROM s)", "subquery"),
    ("SELECT a FROM s WHERE a > ALL (SELECT a FROM t)", "subquery"),
    ("SELECT a FROM s WHERE a = ANY (SELECT a FROM t)", "subquery"),
    ("SELECT a FROM (VALUES (1), (2)) AS t", "subquery"),
    ("SELECT a FROM s CROSS JOIN LATERAL (SELECT 1) t", "LATERAL"),
    ("WITH RECURSIVE t AS (SELECT 1) SELECT a FROM t", "WITH"),
    ("SELECT a FROM s UNION DISTINCT SELECT a FROM t", "UNION without ALL"),
    ("SELECT a FROM s INTERSECT ALL SELECT a FROM t", "INTERSECT"),
    # statements
    ("INSERT INTO s SELECT a FROM t", "statement other than SELECT"),
    ("CREATE TABLE s (a INT)", "statement other than SELECT"),
    ("CREATE SOURCE s (a INT) WITH (connector = 'kafka')", "statement other than SELECT"),
    ("CREATE SINK x FROM s", "statement other than SELECT"),
    ("DELETE FROM s", "statement other than SELECT"),
    ("UPDATE s SET a = 1", "statement other than SELECT"),
    ("DROP MATERIALIZED VIEW v", "statement other than SELECT"),
    ("ALTER TABLE s ADD COLUMN a INT", "statement other than SELECT"),
    ("EXPLAIN SELECT a FROM s", "statement other than SELECT"),
    ("SHOW TABLES", "statement other than SELECT"),
    ("VALUES (1)", "statement other than SELECT"),
    # functions over windows
    ("SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM s", "window function"),
    ("SELECT ROW_NUMBER() AS n FROM s", "window function"),
    ("SELECT LAG(a) OVER (ORDER BY ts) AS n FROM s", "window function"),
    ("SELECT RANK() OVER w AS n FROM s WINDOW w AS (PARTITION BY k)", "window function"),
    ("SELECT a FROM s ORDER BY SUM(a) OVER ()", "window function"),
    # joins
    (
        "SELECT a.x FROM TUMBLE(a, ts, INTERVAL '1 MINUTE') AS a JOIN TUMBLE(b, ts, INTERVAL '1 MINUTE') AS b "
        "ON a.k = b.k AND a.window_start = b.window_start",
        "join of windows",
    ),
    ("SELECT a.x FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + 5", "outer join of streams"),
    ("SELECT a.x FROM a FULL OUTER JOIN b ON a.k = b.k", "RIGHT or FULL JOIN"),
    ("SELECT a.x FROM a ANTI JOIN b ON a.k = b.k", "SEMI or ANTI JOIN"),
    ("SELECT a.x FROM a NATURAL LEFT JOIN b", "NATURAL JOIN"),
    ("SELECT t FROM s CROSS JOIN UNNEST(tags) AS t", "UNNEST"),
    ("SELECT t FROM s, UNNEST(tags) AS t", "UNNEST"),
    # groups and aggregates
    ("SELECT a, COUNT(*) AS n FROM s GROUP BY GROUPING SETS ((a), ())", "GROUPING SETS, ROLLUP and CUBE"),
    ("SELECT a, COUNT(*) AS n FROM s GROUP BY CUBE (a)", "GROUPING SETS, ROLLUP and CUBE"),
    ("SELECT TUMBLE_START(ts, INTERVAL '1 MINUTE') AS t FROM s", "window outside FROM"),
    ("SELECT k, STRING_AGG(a, ',') AS n FROM s GROUP BY k", "function STRING_AGG"),
    ("SELECT k, ARRAY_AGG(a) AS n FROM s GROUP BY k", "function ARRAY_AGG"),
    ("SELECT k, JSONB_AGG(a) AS n FROM s GROUP BY k", "function JSONB_AGG"),
    ("SELECT k, FIRST_VALUE(a ORDER BY ts) AS n FROM s GROUP BY k", "function FIRST_VALUE"),
    ("SELECT k, APPROX_COUNT_DISTINCT(a) AS n FROM s GROUP BY k", "function APPROX_COUNT_DISTINCT"),
    ("SELECT k, VAR_SAMP(a) AS n FROM s GROUP BY k", "function VAR_SAMP"),
    (
        "SELECT k, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY a) AS n FROM s GROUP BY k",
        "function PERCENTILE_CONT",
    ),
    # times and chance
    ("SELECT PROCTIME() AS p FROM s", "clock"),
    ("SELECT CURRENT_TIMESTAMP AS p FROM s", "clock"),
    ("SELECT LOCALTIMESTAMP AS p FROM s", "clock"),
    ("SELECT EXTRACT(DOW FROM ts) AS p FROM s", "EXTRACT of DOW"),
    ("SELECT DATE_BIN('1 hour', ts, ts) AS p FROM s", "function DATE_BIN"),
    ("SELECT GEN_RANDOM_UUID() AS p FROM s", "random value"),
    # texts, objects and arrays
    ("SELECT REGEXP_REPLACE(a, 'x', 'y') AS p FROM s", "regular expression"),
    ("SELECT REGEXP_MATCH(a, 'x') AS p FROM s", "regular expression"),
    ("SELECT a FROM s WHERE a SIMILAR TO 'x'", "regular expression"),
    ("SELECT a FROM s WHERE a ~* 'x'", "regular expression"),
    ("SELECT SPLIT_PART(a, ',', 1) AS p FROM s", "function SPLIT_PART"),
    ("SELECT a -> 'b' AS p FROM s", "operator of JSON"),
    ("SELECT a #>> '{b}' AS p FROM s", "operator of JSON"),
    ("SELECT a ? 'b' AS p FROM s", "operator of JSON"),
    ("SELECT JSONB_BUILD_OBJECT('a', a) AS p FROM s", "object inside a row"),
    ("SELECT tags[1:2] AS p FROM s", "array"),
    ("SELECT ARRAY_LENGTH(tags) AS p FROM s", "array"),
    ("SELECT CARDINALITY(tags) AS p FROM s", "array"),
    ("SELECT a FROM s WHERE a @> b", "array"),
    ("SELECT a & b AS p FROM s", "BITWISE AND"),
    ("SELECT CAST(a AS VARCHAR(10)) AS p FROM s", "type"),
    ("SELECT a FROM s WHERE a > :x", "parameter"),
]
"""What a user of RisingWave may write besides the examples of the table."""


def refusal_of(sql: str) -> Refused:
    with pytest.raises(QueryError) as found:
        read_query(sql, language="sql", documents=("table",))
    assert isinstance(found.value, Refused), sql
    return found.value


@pytest.mark.parametrize("row", SQL_REFUSALS.values(), ids=lambda each: each.name)
def test_refusals(row: SqlRefusal) -> None:
    """Every construct in the table is refused by its name, with its hint."""
    found = refusal_of(row.example)
    assert (found.message, found.hint) == (f"refused in SQL: {row.name}", row.hint)


def test_what_users_of_risingwave_may_write_is_refused_with_a_hint() -> None:
    """Other ways to write the same are refused by the same names, and what has no row has a hint as well."""
    for sql, name in OTHERS:
        found = refusal_of(sql)
        assert found.message == f"refused in SQL: {name}", sql
        row = SQL_REFUSALS.get(name)
        assert found.hint == row.hint if row else found.hint, sql


def test_the_hints_of_aggregates_and_parts_of_times_name_those_that_are_there() -> None:
    """What is one of several is answered with the others; these are read."""
    assert refusal_of("SELECT ARRAY_AGG(a) AS x FROM s").hint == (
        "aggregates are COUNT, SUM, AVG, MIN, MAX, MEDIAN, PERCENTILE_CONT(0.5) and STDDEV"
    )
    for name in ("COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "STDDEV"):
        read_query(f"SELECT {name}(a) AS x FROM s")
    hint = refusal_of("SELECT EXTRACT(DOW FROM ts) AS x FROM s").hint
    assert hint == "known are YEAR, MONTH, DAY, HOUR, MINUTE, SECOND and EPOCH"
    for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "EPOCH"):
        read_query(f"SELECT EXTRACT({part} FROM ts) AS x FROM s")


def test_distinct_over_windows_is_refused_as_what_it_is() -> None:
    """Rows that differ over all windows would span these, and DISTINCT says so, not GROUP BY, at its place."""
    found = refusal_of("SELECT DISTINCT k FROM TUMBLE(s, ts, INTERVAL '1 MINUTE')")
    assert found.message == "refused in SQL: DISTINCT that spans windows"
    assert found.span is not None
    read_query("SELECT DISTINCT k, window_start FROM TUMBLE(s, ts, INTERVAL '1 MINUTE')")
