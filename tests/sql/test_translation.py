"""Queries in SQL and the queries in XQuery that they are, and where errors in SQL stand (LAWS 8)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from anabranch.errors import QueryError
from anabranch.language import check, parse, parsing, print_query
from anabranch.language.rewrite import parts
from anabranch.sql import read_query
from anabranch.sql.reading import is_sql

TWINS = [
    # plain where that is exact
    (
        "SELECT customer.name AS who, amount FROM orders o WHERE amount > 100 AND o.customer.vip AND NOT id = 5",
        'for $o in stream("orders") where $o.amount > 100 and $o.customer.vip and $o.id != 5 '
        'return { "who": $o.customer.name, "amount": $o.amount }',
    ),
    ("SELECT * FROM s", 'for $s in stream("s") return $s'),
    ("select s.* from s where a is not null;", 'for $s in stream("s") where exists(non-null($s.a)) return $s'),
    (
        'SELECT a AS "odd key", "@id" FROM s WHERE "x y".z = \'it\'\'s\' -- all of it',
        'for $s in stream("s") where $s."x y".z = "it\'s" return { "odd key": $s.a, "@id": $s."@id" }',
    ),
    ("SELECT tags[1] AS t FROM s", 'for $s in stream("s") return { "t": $s.tags[[1]] }'),
    (
        "SELECT a + b * 2 - 1 AS x, -a AS y, a / 2 AS z, MOD(a, 3) AS m FROM s",
        'for $s in stream("s") return { "x": $s.a + $s.b * 2 - 1, "y": -$s.a, "z": $s.a div 2, "m": $s.a mod 3 }',
    ),
    # conditions
    (
        "SELECT a FROM s WHERE a IN (1, 2) OR NOT (b < 3 AND c IS NULL)",
        'for $s in stream("s") where $s.a = (1, 2) or ($s.b >= 3 or exists(non-null($s.c))) return { "a": $s.a }',
    ),
    (
        "SELECT a FROM s WHERE a NOT IN (1, 2) AND b NOT BETWEEN 1 AND 2 AND c NOT IN (1, NULL)",
        'for $s in stream("s") where $s.a != 1 and $s.a != 2 and ($s.b < 1 or $s.b > 2) and false() '
        'return { "a": $s.a }',
    ),
    (
        "SELECT a FROM s WHERE a LIKE 'x%' AND b LIKE '%x' AND c LIKE '%x%' AND d LIKE 'x' AND e LIKE 'a_b.%'",
        'for $s in stream("s") where starts-with($s.a, "x") and ends-with($s.b, "x") and contains($s.c, "x") '
        'and $s.d = "x" and matches($s.e, "^a.b\\..*$", "s") return { "a": $s.a }',
    ),
    (
        "SELECT a FROM s WHERE a NOT LIKE 'x%' AND LOWER(b) = 'q' AND LOWER(c) <> 'q'",
        'for $s in stream("s") where exists(non-null($s.a)) and not(starts-with($s.a, "x")) '
        'and lower-case($s.b) = "q" and (for $x in non-null($s.c) return lower-case($x)) != "q" '
        'return { "a": $s.a }',
    ),
    (
        "SELECT a > 5 AS big, NOT ok AS no, a IS NULL AS gone FROM s",
        'for $s in stream("s") return { "big": $s.a gt 5, '
        '"no": if ($s.ok = false()) then true() else if ($s.ok) then false() else (), '
        '"gone": empty(non-null($s.a)) }',
    ),
    (
        "SELECT CASE WHEN a > 1 THEN 'x' WHEN ok THEN 'y' END AS c, COALESCE(a, b, 0) AS d, NULLIF(a, 1) AS e FROM s",
        'for $s in stream("s") return { "c": if ($s.a > 1) then "x" else if ($s.ok) then "y" else (), '
        '"d": (non-null($s.a), non-null($s.b), 0)[1], "e": if ($s.a = 1) then () else $s.a }',
    ),
    (
        "SELECT UPPER(a), a || '-' || b AS ab, CONCAT(a, b), CAST(a AS INT), b::text, ABS(a), ROUND(a, 2) FROM s",
        'for $s in stream("s") return { "upper": for $x in non-null($s.a) return upper-case($x), '
        '"ab": for $x2 in non-null($s.a) for $x3 in non-null($s.b) return concat($x2, "-", $x3), '
        '"concat": concat($s.a, $s.b), "a": xs:integer($s.a), "b": xs:string($s.b), "abs": abs($s.a), '
        '"round": if ($s.a < 0) then -round(-$s.a, 2) else round($s.a, 2) }',
    ),
    # windows and groups
    (
        "SELECT k, COUNT(*) AS n, COUNT(b) AS c, SUM(amount) AS total, window_start "
        "FROM TUMBLE(s, ts, INTERVAL '1 MINUTE') WHERE a > 5 GROUP BY k, window_start HAVING COUNT(*) > 1",
        'for $w in stream("s")|ts diff PT1M| return for $s in $w where $s.a > 5 group by $k := non-null($s.k) '
        'where count($s) > 1 return { "k": $k, "n": count($s), "c": count(non-null($s.b)), '
        '"total": if (exists(avg($s.amount))) then sum($s.amount) else (), "window_start": window-start($w) }',
    ),
    (
        "SELECT window_end, AVG(a) AS m, MEDIAN(a) AS d, STDDEV_SAMP(a) AS v "
        "FROM HOP(s, ts, INTERVAL '1' MINUTE, INTERVAL '5 MINUTES') GROUP BY window_end",
        'for $w in stream("s")|ts diff PT5M step PT1M| '
        'return { "window_end": window-end($w), "m": avg($w.a), "d": median($w.a), "v": stddev($w.a) }',
    ),
    (
        "SELECT user, COUNT(DISTINCT page) AS pages FROM SESSION(s, ts, INTERVAL '30 SECONDS', user) "
        "GROUP BY user, window_start, window_end",
        'for $w in stream("s")|ts gap PT30S by user| return for $s in $w group by $user := non-null($s.user) '
        'return { "user": $user, "pages": count(distinct-values(non-null($s.page))) }',
    ),
    (
        "SELECT k, a FROM TUMBLE(s, t, 60) ORDER BY a DESC LIMIT 3",
        'for $w in stream("s")|t diff 60| return (for $s in $w '
        "order by op:empty-rank(non-null($s.a)) descending, non-null($s.a) descending "
        'return { "k": $s.k, "a": $s.a })[position() <= 3]',
    ),
    (
        "SELECT k, SUM(a * b) AS p, COUNT(*) FILTER (WHERE ok) AS f FROM s GROUP BY k ORDER BY COUNT(*), 1",
        'for $s in stream("s") group by $k := non-null($s.k) '
        "order by count($s), op:empty-rank($k), $k "
        'return { "k": $k, "p": if (exists(avg(for $x in $s return $x.a * $x.b))) '
        'then sum(for $x in $s return $x.a * $x.b) else (), "f": count(for $x2 in $s where $x2.ok return $x2) }',
    ),
    (
        "SELECT EXTRACT(HOUR FROM ts) AS h, COUNT(*) AS n FROM s GROUP BY h",
        'for $s in stream("s") group by $key := hours-from-dateTime(xs:dateTime($s.ts)) '
        'return { "h": $key, "n": count($s) }',
    ),
    ("SELECT DISTINCT k FROM s", 'for $s in stream("s") group by $k := non-null($s.k) return { "k": $k }'),
    (
        "SELECT COUNT(*) AS n FROM s WHERE ok",
        '{ "n": count(for $s in stream("s") where $s.ok return $s) }',
    ),
    # joins
    (
        "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5 MINUTES'",
        'for $a in stream("a") for $b in stream("b") where $a.k = $b.k '
        "and xs:dateTime($b.ts) >= xs:dateTime($a.ts) "
        'and xs:dateTime($b.ts) <= xs:dateTime($a.ts) + xs:dayTimeDuration("PT5M") '
        'return { "x": $a.x, "y": $b.y }',
    ),
    (
        "SELECT a.x, b.y FROM a JOIN b ON b.t >= a.t AND b.t <= a.t + 5",
        'for $a in stream("a") for $b in stream("b") where $b.t >= $a.t and $b.t <= $a.t + 5 '
        'return { "x": $a.x, "y": $b.y }',
    ),
    (
        "SELECT o.id, p.price * o.qty AS total FROM orders o JOIN prices p USING (product)",
        'for $o in stream("orders") for $p in doc("prices")/*/* where $o.product = $p.product '
        'return { "id": $o.id, "total": $p.price * $o.qty }',
    ),
    (
        "SELECT o.id, p.price FROM orders o LEFT JOIN prices p ON o.product = p.product",
        'for $o in stream("orders") return for $p allowing empty in '
        'for $p2 in doc("prices")/*/* where $o.product = $p2.product return $p2 '
        'return { "id": $o.id, "price": $p.price }',
    ),
    # several queries
    (
        "SELECT a FROM s WHERE ok UNION ALL SELECT b FROM s",
        'for $s in stream("s") return (if ($s.ok) then { "a": $s.a } else (), { "a": $s.b })',
    ),
    (
        "SELECT a FROM s UNION ALL SELECT b FROM t",
        '(for $s in stream("s") return { "a": $s.a }, for $t in stream("t") return { "a": $t.b })',
    ),
    # times
    (
        "SELECT a FROM s WHERE ts > TIMESTAMP '2026-01-01 12:00:00' AND day = DATE '2026-01-01'",
        'for $s in stream("s") where xs:dateTime($s.ts) > xs:dateTime("2026-01-01T12:00:00") '
        'and (if (contains($s.day, "T")) then xs:dateTime($s.day) else xs:dateTime(xs:date($s.day))) '
        '= xs:dateTime(xs:date("2026-01-01")) return { "a": $s.a }',
    ),
]


@pytest.mark.parametrize(("sql", "xquery"), TWINS)
def test_twins(sql: str, xquery: str) -> None:
    """A query in SQL is printed as its twin, which is read into the same tree."""
    query = read_query(sql, language="sql", documents=("prices",))
    assert print_query(query) == xquery
    assert parse(xquery) == query


@pytest.mark.parametrize(("sql", "xquery"), TWINS)
def test_all_parts_have_a_place(sql: str, xquery: str) -> None:
    """Whatever a later check says of a part of the tree, it points into the text of SQL."""
    for part in parts(read_query(sql, language="sql", documents=("prices",))):
        span = getattr(part, "span", None)
        assert span is None or 0 <= span.start < span.end <= len(sql) + 1, part


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (
            "SELECT a,\n  b FROM s\nWHERE a >> 5",
            "q.sql:3:7: refused in SQL: BITWISE RIGHT SHIFT\n  WHERE a >> 5\n        ^^^^^^\n"
            "hint: docs/sql.md lists what there is",
        ),
        (
            "SELECT a b c FROM s",
            "q.sql:1:12: 'c' is not expected here\n  SELECT a b c FROM s\n             ^",
        ),
        (
            "SELECT a, FROM s",
            "q.sql:1:11: 'FROM' is not expected here\n  SELECT a, FROM s\n            ^^^^",
        ),
        (
            "SELECT a FROM s WHERE",
            "q.sql:1:22: the query ends too early\n  SELECT a FROM s WHERE\n                       ^",
        ),
        (
            "SELECT 'it''s', 'abc FROM s",
            "q.sql:1:17: this is never closed\n  SELECT 'it''s', 'abc FROM s\n"
            "                  ^\nhint: close it with '",
        ),
        (
            "SELECT a /* b FROM s",
            "q.sql:1:10: this is never closed\n  SELECT a /* b FROM s\n           ^^\nhint: close it with */",
        ),
        (
            "SELECT a, COUNT(*) AS n FROM s",
            "q.sql:1:8: 'a' is neither grouped nor in an aggregate\n  SELECT a, COUNT(*) AS n FROM s\n         ^\n"
            "hint: add it to GROUP BY, or take an aggregate of it",
        ),
        (
            "SELECT a FROM s JOIN t ON s.t - t.t < 5",
            "q.sql:1:8: of which table is 'a'?\n  SELECT a FROM s JOIN t ON s.t - t.t < 5\n         ^\n"
            "hint: write the table in front of it: s, t",
        ),
        (
            "SELECT a, b AS a FROM s",
            "q.sql:1:11: two columns are called 'a'\n  SELECT a, b AS a FROM s\n            ^^^^^^\n"
            "hint: name one of them with AS",
        ),
        (
            "SELECT DATE_TRUNC('hour', ts) AS h FROM s",
            "q.sql:1:8: refused in SQL: function DATE_TRUNC\n  SELECT DATE_TRUNC('hour', ts) AS h FROM s\n"
            "         ^^^^^^^^^^^^^^^^^^^^^\n"
            "hint: group by a window, as in FROM TUMBLE(s, ts, INTERVAL '1 HOUR'), or EXTRACT the parts",
        ),
        (
            "SELECT a FROM s WHERE ts > TIMESTAMP 'soon'",
            "q.sql:1:38: 'soon' is no dateTime\n  SELECT a FROM s WHERE ts > TIMESTAMP 'soon'\n"
            "                                       ^^^^^^",
        ),
        (
            "SELECT COUNT(*) AS n FROM s LIMIT 1",
            "q.sql:1:35: a stream has one row here\n  SELECT COUNT(*) AS n FROM s LIMIT 1\n"
            "                                    ^\nhint: leave LIMIT out, or group by a column",
        ),
        ("", "q.sql:1:1: the query is empty\n  \n  ^"),
    ],
)
def test_errors_show_their_place(sql: str, error: str) -> None:
    """What is wrong is told with line, column and caret, and a hint where there is one."""
    with pytest.raises(QueryError) as found:
        read_query(sql, "q.sql", language="sql")
    assert str(found.value) == error


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT * EXCEPT (a) FROM s", "EXCEPT of STAR"),
        ("SELECT s.* REPLACE (1 AS a) FROM s", "REPLACE of STAR"),
        ("SELECT a FROM s LIMIT 1 PERCENT", "LIMIT OPTIONS of LIMIT"),
        ("SELECT a FROM s ORDER BY a LIMIT 2 WITH TIES", "LIMIT OPTIONS of LIMIT"),
        ("SELECT a FROM s LIMIT 2 BY k", "EXPRESSIONS of LIMIT"),
        ("SELECT a FROM s UNION ALL BY NAME SELECT a FROM s UNION ALL SELECT a FROM s", "BY NAME of UNION"),
        ("SELECT a.x FROM a ASOF JOIN b ON a.k = b.k", "ASOF JOIN"),
        ("SELECT AVG(*) AS a FROM s", "'*' in an aggregate other than COUNT"),
        ("SELECT a, COUNT(*) OVER (PARTITION BY k) AS n FROM s", "window function"),
        ("SELECT k, STRING_AGG(a, ',') AS n FROM s GROUP BY k", "function STRING_AGG"),
    ],
)
def test_nothing_is_passed_over(sql: str, name: str) -> None:
    """What a construct says beyond what is translated is refused by its name (case 114)."""
    with pytest.raises(QueryError) as found:
        read_query(sql)
    assert found.value.message == f"refused in SQL: {name}"


def test_later_checks_point_into_sql() -> None:
    """A join without bounds is refused by the check of the tree, at its place in the text of SQL."""
    sql = "SELECT a.x FROM a JOIN b ON a.k < b.k"
    with pytest.raises(QueryError) as found:
        check(read_query(sql), sql, name="q.sql")
    assert str(found.value).startswith("q.sql:1:24: refused: unbounded second stream\n  SELECT a.x FROM a JOIN b ON")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM s", True),
        ("  -- why\n/* so */ (select a from s)", True),
        ("WITH t AS (SELECT a FROM s) SELECT a FROM t", True),
        ("select/a", False),
        ("select - 1", False),
        ("select div select", False),
        ("select is b", False),
        ("select (: or :) b", True),
        ("with * select", False),
        ('for $s in stream("s") return $s', False),
    ],
)
def test_which_language_it_is(text: str, expected: bool) -> None:
    """A text that begins with SELECT or WITH is SQL, unless XQuery can read it."""
    assert is_sql(text) == expected
    assert is_sql(text, "sql")
    assert not is_sql(text, "xquery")


def test_a_name_behind_a_name_tells_what_xquery_cannot_read() -> None:
    """Whichever word follows SELECT, what is said without XQuery's parser is what that says."""
    sources = Path(parsing.__file__).parent.glob("*.py")
    words = {word for file in sources for word in re.findall(r"[\"' |]([a-z]{2,12})[\"' |]", file.read_text("utf-8"))}
    told = Counter[bool]()
    for word in sorted(words):
        for text in (f"select {word} b", f"SELECT {word} of x", f"select {word}"):
            try:
                parse(text)
            except QueryError:
                told[True] += 1
                assert is_sql(text), text
            else:
                told[False] += 1
                assert not is_sql(text), text
    assert min(told.values()) > 10
