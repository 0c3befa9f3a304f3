"""Queries before they are registered: checked, explained beside those that run, tried, and spelled in another way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pytest
import requests

from service.sites import ENGINE, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

SITE = (
    ENGINE
    + """
[streams.photons]
source = "files"
path = "in"
format = "lines"
root = "photons"

[streams.orders]
source = "files"
path = "orders"
format = "json"
time = "ts"

[streams.edits]
source = "files"
path = "edits"
format = "lines"
updates = true

[streams.pushed]
source = "http"

[streams.rows]
source = "answer"
of = "vela"

[streams.later]
source = "files"
path = "later"
"""
)
VELA = '<vela>{ for $p in stream("photons")/photons/photon where $p/en >= 1.3 return <p>{ $p/en }</p> }</vela>'
SUMS = 'for $w in stream("photons")/photons/photon|count 10| return <sum>{ sum($w/en) }</sum>'
QUERIES = {"vela": VELA, "sums": SUMS}
PHOTONS, ORDERS = 500, 30


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSite]:
    """A site with streams of each kind, which has read what there is."""
    folder = tmp_path_factory.mktemp("queries")
    for name in ("orders", "edits", "later"):
        (folder / name).mkdir()
    orders = [{"ts": number, "v": number * 2, "who": {"name": f"n{number % 3}"}} for number in range(ORDERS)]
    (folder / "orders" / "a").write_text("".join(json.dumps(each) + "\n" for each in orders))
    mutable = '<s:mutable xmlns:s="urn:anabranch:stream" id="a"><p>1</p></s:mutable>\n'
    edit = '<s:replace xmlns:s="urn:anabranch:stream" target="a"><p>5</p></s:replace>\n'
    (folder / "edits" / "a").write_text(mutable + edit)
    with served_site(folder, SITE, QUERIES) as found:
        found.add("".join(f"<photon><en>{number / 100}</en></photon>\n" for number in range(PHOTONS)))
        found.add("<photon><broken></photon>\n<photon><en>bright</en></photon>\n")
        wait_until(lambda: found.get("/api/subscriptions/vela")["answers"] == PHOTONS - 130)
        yield found


def check(site: ServedSite, query: str, **more: str) -> Any:
    status, found = site.send("POST", "/api/check", {"query": query, **more})
    assert status == 200, found
    return found


def tried(site: ServedSite, query: str, **more: Any) -> Any:
    status, found = site.send("POST", "/api/preview", {"query": query, **more})
    assert status == 200, found
    return found


# --- check ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "kind", "answer", "streams"),
    [
        (VELA, "items", "xml", ["photons"]),
        (SUMS, "windows", "xml", ["photons"]),
        ("SELECT v FROM orders WHERE v > 3", "items", "json", ["orders"]),
        ('<show>{ for $p in stream("edits")/root/p return $p }</show>', "display", "display", ["edits"]),
        ('count(stream("photons")/photons/photon)', "display", "display", ["photons"]),
    ],
)
def test_a_query_that_can_be_registered(
    site: ServedSite, query: str, kind: str, answer: str, streams: list[str]
) -> None:
    """It is told of what kind it is, what its answer is made of, what it reads, and how it is understood."""
    found = check(site, query)
    assert found["ok"], found
    assert (found["kind"], found["answer"], found["streams"]) == (kind, answer, streams)
    assert found["language"] == ("sql" if query.startswith("SELECT") else "xquery")
    assert check(site, found["printed"])["printed"] == found["printed"]


@pytest.mark.parametrize(
    ("query", "line", "column", "code"),
    [
        ('for $p in stream("photons")/photons/photon\nwhere $q/en > 1\nreturn $p', 2, 7, "XPST0008"),
        ('for $p in stream("photon")/photons/photon return $p', 1, 11, "FODC0002"),
        ("for $p in", 1, 10, "XPST0003"),
        ("SELECT v FROM orders WHERE", 1, 27, None),
        ("", 1, 1, "XPST0003"),
    ],
)
def test_a_query_that_is_wrong(site: ServedSite, query: str, line: int, column: int, code: str | None) -> None:
    """The check gives the place, and registering gives the same one."""
    found = check(site, query)
    assert not found["ok"]
    (error,) = found["errors"]
    assert (error["line"], error["column"], error["code"]) == (line, column, code)
    assert error["length"] >= 1
    status, refused = site.send("POST", "/api/subscriptions", {"name": "wrong", "query": query})
    assert status == 422
    assert {key: refused[key] for key in error} == error


def test_registering_agrees_with_the_check(site: ServedSite) -> None:
    """What a check accepts is registered, and what it refuses is refused: also what would have to wait for the end."""
    queries = [
        VELA,
        'for $p in stream("photons")/photons/photon order by $p/en return $p',
        'for $p in stream("photons")/photons/photon for $q in stream("orders") return $p',
        'for $w in stream("photons")/photons/photon|count 1000000 step 1| return count($w)',
        'reverse(stream("photons")/photons/photon)',
        "SELECT a FROM nothing",
        "1 + 1",
    ]
    for number, query in enumerate(queries):
        verdict = check(site, query)["ok"]
        status, found = site.send("POST", "/api/subscriptions", {"name": f"same-{number}", "query": query})
        assert (status == 201) == verdict, found
        if status == 201:
            assert site.send("DELETE", f"/api/subscriptions/same-{number}")[0] == 204


def test_what_grows_is_told(site: ServedSite) -> None:
    """A query whose state grows with its stream is accepted, with a warning."""
    found = check(site, 'for $p in stream("photons")/photons/photon group by $e := $p/en return $e')
    assert found["ok"]
    assert "grows" in found["warnings"][0]


CONDITIONS = [f"($p/a{number} = 1 or $p/b{number} = 2)" for number in range(300)]


@pytest.mark.parametrize(
    "query",
    [
        'for $p in stream("photons")/photons/photon return $p' + "/a[b[c]]" * 300,
        'for $p in stream("photons")/photons/photon return (' + ", ".join(f"$p/a{n}" for n in range(5_000)) + ")",
        'for $p in stream("photons")/photons/photon where ' + " and ".join(CONDITIONS) + " return 1",
        "<a>" * 3_000,
        "(" * 100_000,
        "SELECT " + "(" * 5_000 + "v FROM orders",
        "\x00\x1b[2J<script>alert(1)</script>",
    ],
    ids=["deep", "wide", "conditions", "elements", "brackets", "sql", "controls"],
)  # fmt: skip
def test_hostile_queries_are_judged_in_time(site: ServedSite, query: str) -> None:
    """Whatever a text is, both answers come in seconds, and none of them is a failure of the service."""
    begun = monotonic()
    assert site.send("POST", "/api/check", {"query": query})[0] == 200
    assert site.send("POST", "/api/explain", {"query": query})[0] in (200, 422)
    assert monotonic() - begun < 20


# --- explain ----------------------------------------------------------------------------------------------------------


def shares(found: Any) -> dict[str, Any]:
    return {each["what"]: each for each in found["shares"]}


def test_a_query_is_explained_beside_those_that_run(site: ServedSite) -> None:
    """One of the shape of another shares the pass and the shape, and costs a row of constants; one that asks the same
    is a twin, and costs nothing."""
    other = VELA.replace("1.3", "4.7")
    status, found = site.send("POST", "/api/explain", {"query": other})
    assert status == 200
    assert shares(found)["pass"]["count"] == 2
    assert shares(found)["shape"]["names"] == ["vela"]
    assert "twin" not in shares(found)
    assert found["cost"]["pass"] == "none: the stream is read already"
    assert "constants" in found["cost"]["per_item"]
    assert found["cost"]["state"] == "none"
    assert found["columns"].startswith("in columns")
    assert found["text"].startswith('query: stream "photons"')
    _, same = site.send("POST", "/api/explain", {"query": VELA.replace("$p", "$other")})
    assert shares(same)["twin"]["names"] == ["vela"]
    assert same["cost"]["per_item"] == "nothing: it is answered with 'vela'"


def test_windows_and_streams_that_nobody_reads(site: ServedSite) -> None:
    """Windows like those of another begin anew, since the others have seen more; a stream that nobody reads costs a
    pass."""
    _, found = site.send("POST", "/api/explain", {"query": SUMS})
    assert shares(found)["branch"]["names"] == ["sums"]
    assert "begin now" in shares(found)["branch"]["message"]
    assert "does not grow" in found["cost"]["state"]
    _, fresh = site.send("POST", "/api/explain", {"query": "SELECT v FROM orders"})
    assert fresh["shares"] == []
    assert fresh["cost"]["pass"] == "one pass over 'orders', which nobody reads yet"


def test_a_subscription_tells_what_it_shares(site: ServedSite) -> None:
    """One that runs has its plan, how much of it is in columns, the newest position, and with whom it shares what."""
    names = [f"share-{number}" for number in range(3)]
    bodies = [{"name": name, "query": VELA.replace("1.3", f"4.{at}")} for at, name in enumerate(names)]
    assert site.send("POST", "/api/subscriptions", bodies)[0] == 201
    site.add("<photon><en>4.5</en></photon>\n")
    found = wait_until(lambda: each if (each := site.get("/api/subscriptions/share-1"))["position"] else None)
    assert shares(found)["shape"]["count"] == 3
    assert sorted(shares(found)["shape"]["names"]) == ["share-0", "share-2", "vela"]
    assert found["plan"].startswith('share-1: stream "photons"')
    assert found["columns"].startswith("in columns")
    assert found["position"] == site.page("share-1", last=1)["answers"][0]["position"]
    for name in names:
        site.send("DELETE", f"/api/subscriptions/{name}")
    site.add("<photon><en>1</en></photon>\n")
    assert wait_until(lambda: "shape" not in shares(site.get("/api/subscriptions/vela")))


# --- preview ----------------------------------------------------------------------------------------------------------


def test_a_query_is_tried_on_the_newest_items(site: ServedSite) -> None:
    """It is answered over the last of them, with what was set aside for it, and the run does not notice."""
    before = site.get("/api/subscriptions/vela")["answers"]
    found = tried(site, '<a>{ for $p in stream("photons")/photons/photon return <n>{ $p/en * 100 }</n> }</a>', items=50)
    texts = found["answers"]
    assert found["items"]["photons"] < 50
    assert f"<n>{PHOTONS - 1}</n>" in texts
    assert f"<n>{PHOTONS - 51}</n>" not in texts
    reasons = {each["raw"]: each["code"] for each in found["dead_letters"]}
    assert reasons == {"<photon><broken></photon>": None, "<photon><en>bright</en></photon>": "FORG0001"}
    assert not found["more"]
    assert site.get("/api/subscriptions/vela")["answers"] == before
    assert not any(each["name"] == "query" for each in site.get("/api/subscriptions")["subscriptions"])


SUM_20 = "SELECT SUM(v) AS n FROM TUMBLE(orders, ts, 20)"


@pytest.mark.parametrize(
    ("query", "answers", "note"),
    [
        ("SELECT v, who.name AS n FROM orders WHERE v > 55", ['{"v": 56, "n": "n1"}', '{"v": 58, "n": "n2"}'], ""),
        (f"{SUM_20} GROUP BY window_start", ['{"n": 380}', '{"n": 490}'], "closed"),
        ('for $w in stream("orders")|count 20| return <n>{ count($w) }</n>', ["<n>20</n>"], "left out"),
        ('<show>{ for $p in stream("edits")/root/p return $p }</show>', ["<show><p>5</p></show>"], "shows"),
        ('count(stream("orders")/*/*)', ["30"], "shows"),
        ('for $x in stream("later")/root/x return $x', [], "nothing has come"),
        ('for $x in stream("pushed") return $x.a', [], "not known here"),
    ],
)  # fmt: skip
def test_previews_of_each_kind(site: ServedSite, query: str, answers: list[str], note: str) -> None:
    """Rows, windows, displays, and streams in which nothing has come; what differs from a run is told."""
    found = tried(site, query)
    assert found["answers"] == answers
    assert note in " ".join(found["notes"])


def test_the_answer_of_another_can_be_tried(site: ServedSite) -> None:
    """A stream that is the answer of a subscription is previewed like any other."""
    found = tried(site, 'for $p in stream("rows")/vela/p return $p', items=5)
    assert len(found["answers"]) == 5
    assert found["answers"][0].startswith("<p><en>")


@pytest.mark.mass
def test_a_preview_that_does_not_end_is_ended(site: ServedSite) -> None:
    """Of three queries that would take hours two are refused after seconds, and the third is told to wait at once;
    the next preview is answered."""
    loops = "for $i in 1 to 100000 for $j in 1 to 1000 return $i"
    query = f'for $p in stream("photons")/photons/photon return <n>{{ {loops} }}</n>'
    found: list[Any] = []
    threads = [
        Thread(target=lambda: found.append(site.send("POST", "/api/preview", {"query": query, "items": 2_000})))
        for _ in range(3)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [status for status, _ in found] == [429, 422, 422], found
    assert "already" in found[0][1]["message"]
    assert all("seconds" in each["message"] for _, each in found[1:])
    assert tried(site, VELA, items=20)["answers"]


@pytest.mark.mass
def test_functions_documents_schemas_and_what_was_pushed(tmp_path: Path) -> None:
    """A preview has all that a run has: functions in Python, which may print, documents, a schema, and what lies in the
    spool of a pushed stream."""
    (tmp_path / "doubling.py").write_text("def twice(value):\n    print('noise')\n    return value * 2\n")
    (tmp_path / "p.dtd").write_text("<!ELEMENT photons (photon*)><!ELEMENT photon (en)><!ELEMENT en (#PCDATA)>")
    (tmp_path / "rows.xml").write_text("<rows><row k='1'>one</row><row k='2'>two</row></rows>")
    text = (
        ENGINE
        + """
[streams.photons]
source = "files"
path = "in"
format = "lines"
dtd = "p.dtd"
strict = true

[streams.pushed]
source = "http"

[http]
listen = "127.0.0.1:0"

[functions]
twice = "doubling:twice"

[documents.rows]
path = "rows.xml"
"""
    )
    with served_site(tmp_path, text) as other:
        other.add("<photon><en>1</en></photon>\n<photon><en>2</en></photon>\n")
        photons = 'for $p in stream("photons")/photons/photon'
        assert tried(other, f"{photons} return <t>{{ twice($p/en) }}</t>")["answers"] == ["<t>2</t>", "<t>4</t>"]
        looked_up = f'{photons} return <t>{{ doc("rows")/rows/row[@k = $p/en]/text() }}</t>'
        assert tried(other, looked_up)["answers"] == ["<t>one</t>", "<t>two</t>"]
        url = other.get("/api/streams/pushed")["url"]
        lines, kind = b'{"a": 1}\n{"a": 2}\n', {"Content-Type": "application/x-ndjson"}
        assert requests.post(url, data=lines, headers=kind, timeout=60).ok
        assert tried(other, 'for $x in stream("pushed") return { "a": $x.a }')["answers"] == ['{"a": 1}', '{"a": 2}']
        assert wait_until(lambda: other.get("/api/streams/pushed")["learned"]) == [{"path": "a", "values": ["1", "2"]}]


def test_what_cannot_be_registered_is_not_tried(site: ServedSite) -> None:
    """A wrong query has its place here as well, and so has a number of items that is too large."""
    status, found = site.send("POST", "/api/preview", {"query": "for $p in"})
    assert (status, found["line"], found["column"]) == (422, 1, 10)
    assert site.send("POST", "/api/preview", {"query": VELA, "items": 2_001})[0] == 400


# --- spelling ---------------------------------------------------------------------------------------------------------

EXACT = (
    "SELECT v, who.name AS name FROM orders WHERE v > 50 AND note IS NULL OR who.name LIKE 'n%'",
    "SELECT * FROM orders WHERE v <> 3",
    "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a FROM TUMBLE(orders, ts, 10) GROUP BY window_start "
    "HAVING MAX(v) > 3",
    "SELECT window_end AS until, who.name, COUNT(v) AS n FROM HOP(orders, ts, 5, 20) WHERE v >= 1 "
    "GROUP BY window_end, who.name",
    "SELECT window_start, MIN(v) AS least FROM SESSION(orders, ts, 5, who.name) GROUP BY window_start",
    "SELECT v + 1 AS x, v * 2 - ts / 4 AS y, 'it''s' AS z FROM orders WHERE v IN (1, 2) AND ts BETWEEN 1 AND 5",
    'SELECT "odd key", "select" FROM orders',
)


@pytest.mark.parametrize("query", EXACT)
def test_sql_and_xquery_are_spelled_into_one_another(site: ServedSite, query: str) -> None:
    """SQL as XQuery and back is exact both times: all three are understood as one."""
    _, there = site.send("POST", "/api/spelling", {"query": query, "to": "xquery"})
    assert there["exact"], there
    status, back = site.send("POST", "/api/spelling", {"query": there["query"], "to": "sql"})
    assert status == 200, back
    assert back["exact"]
    printed = [check(site, each)["printed"] for each in (query, there["query"], back["query"])]
    plain = [site.send("POST", "/api/spelling", {"query": each, "to": "sql"})[1]["query"] for each in printed[1:]]
    assert plain[0] == plain[1]


def test_paths_and_dots(site: ServedSite) -> None:
    """Paths that are asked for values become dots and come back, and both are called inexact; the answers over items
    without nulls are the same."""
    paths = 'for $o in stream("orders") where $o/v > 50 return { "v": data($o/v), "n": data($o/who/name) }'
    dots = 'for $o in stream("orders") where $o.v > 50 return { "v": $o.v, "n": $o.who.name }'
    _, found = site.send("POST", "/api/spelling", {"query": paths, "to": "dots"})
    assert (" ".join(found["query"].split()), found["exact"]) == (dots, False)
    _, back = site.send("POST", "/api/spelling", {"query": found["query"], "to": "xquery"})
    assert (" ".join(back["query"].split()), back["exact"]) == (paths, False)
    assert tried(site, paths)["answers"] == tried(site, found["query"])["answers"] != []
    _, same = site.send("POST", "/api/spelling", {"query": dots, "to": "dots"})
    assert same == {"query": dots, "exact": True}


@pytest.mark.parametrize(
    ("query", "to", "column"),
    [
        ('for $o in stream("orders") return <o>{ $o/v }</o>', "dots", 40),
        ('for $o in stream("orders") where $o/v[text()] > 1 return 1', "dots", 37),
        ('for $p in stream("photons")/photons/photon return data($p/en)', "dots", 11),
        ('for $o in stream("orders") return { "v": non-null($o.v) }', "xquery", 42),
        ('for $o in stream("orders") return <o>{ $o.v }</o>', "sql", 35),
        ('for $w in stream("orders")|count 5| return { "n": count($w) }', "sql", 11),
        ('for $o in stream("orders") where $o.v > 1 return { "v": distinct-values($o.v) }', "sql", 57),
        ('for $w in stream("orders")|ts diff 5| for $o in $w group by $n := $o.v return { "n": $n }', "sql", 1),
        ("for $o in", "sql", 10),
    ],
)
def test_what_has_no_such_spelling(site: ServedSite, query: str, to: str, column: int) -> None:
    """It is refused with its place, and never written as something that is nearly the same."""
    status, found = site.send("POST", "/api/spelling", {"query": query, "to": to})
    assert status == 422, found
    assert (found["line"], found["column"]) == (1, column)


def test_bodies_that_do_not_fit(site: ServedSite) -> None:
    """A body without a query, with an unknown key or an unknown spelling is told so."""
    for path, body in (
        ("/api/check", {}),
        ("/api/check", {"query": "1", "langage": "sql"}),
        ("/api/explain", {"query": 1}),
        ("/api/preview", {"query": "1", "items": 0}),
        ("/api/spelling", {"query": "1", "to": "cobol"}),
    ):
        assert site.send("POST", path, body)[0] == 400


def test_a_path_with_many_predicates_is_left_to_the_law(tmp_path: Path) -> None:
    """It is not compiled to columns, and is said to be answered by the law; time does not double with each."""
    for name in ("orders", "edits", "later"):
        (tmp_path / name).mkdir()
    with served_site(tmp_path, SITE, QUERIES) as other:
        query = 'for $p in stream("later")/root/p return $p' + "/a[b]" * 14
        assert "predicates along one path" in check(other, query)["columns"]
