"""The evolution of streams over HTTP: lanes, accents, what was done about them, and accents that are published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from service.sites import ENGINE, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

SITE = (
    ENGINE
    + """
[streams.sensors]
source = "files"
path = "in"
format = "lines"
root = "sensors"
domains = { s = [1, 2] }

[streams.board]
source = "files"
path = ["left", "right"]
format = "json"

[streams.pushed]
source = "http"

[streams.hotter]
source = "answer"
of = "hot"
"""
)
HOT = '<hot>{ for $r in stream("sensors")/sensors/r where $r/t > 20 return <h>{ $r/s }{ $r/t }</h> }</hot>'
SUMS = 'for $w in stream("sensors")/sensors/r|count 2| return <sum>{ sum($w/t) }</sum>'
NAMES = 'for $r in stream("sensors")/sensors/r return <n>{ $r/s/text() }</n>'
QUERIES = {"hot": HOT, "sums": SUMS, "names": NAMES}
FAHRENHEIT = {"where": "s = 2", "alter": {"path": "t", "by": "(. - 32) * 5 div 9"}}
FAHRENHEIT_XML = '<s:accent where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>'
FAHRENHEIT_JSON = '{"$accent": {"where": "s = 2", "alter": {"path": "t", "by": "(. - 32) * 5 div 9"}}}'
SENSORS = "/api/streams/sensors"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ServedSite]:
    """A site whose sensors have sent six readings, and a board of two partitions."""
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text('{"a": 1}\n')
    with served_site(tmp_path, SITE, QUERIES) as found:
        found.add("".join(f"<r><s>{number % 2 + 1}</s><t>{20 + number}</t></r>\n" for number in range(6)))
        wait_until(lambda: found.get("/api/subscriptions/hot")["answers"] == 5)
        yield found


def accent(site: ServedSite, given: Any, stream: str = "sensors", **more: Any) -> tuple[int, Any]:
    return site.send("POST", f"/api/streams/{stream}/accents", {"accent": given, **more})


def deeds(reactions: list[Any]) -> dict[str, list[str]]:
    assert all(each["count"] == len(each["subscriptions"]) for each in reactions)
    return {each["deed"]: each["subscriptions"] for each in reactions}


def test_an_accent_is_previewed_published_and_followed(site: ServedSite) -> None:
    """The preview says whom it concerns and changes nothing; published, it stands in the stream, comes out of the
    answer that passes it on, and values behind it are converted: 10 in the new unit is 50 in the old one."""
    status, found = accent(site, FAHRENHEIT, preview=True)
    assert status == 200, found
    assert found["preview"]
    assert (found["places"], found["warnings"], found["others"]) == (["in/a.accent-0001"], [], 1)
    assert deeds(found["reactions"]) == {"passes it on": ["hot"], "reckons with it": ["sums"]}
    assert site.get(f"{SENSORS}/evolution")["accents"] == []
    assert [each.name for each in (site.folder / "in").iterdir()] == ["a"]

    status, published = accent(site, FAHRENHEIT)
    assert status == 201
    assert published == {**found, "preview": False}
    assert (site.folder / "in" / "a.accent-0001").exists()
    (told,) = wait_until(lambda: site.get(f"{SENSORS}/evolution")["accents"])
    assert deeds(told["reactions"]) == deeds(found["reactions"])
    (site.folder / "in" / "b").write_text("<r><s>2</s><t>10</t></r>\n<r><s>1</s><t>25</t></r>\n")
    results = wait_until(lambda: each if len(each := site.results("hot")) == 8 else None)
    assert results[5][1].startswith("<s:accent")
    assert "div 9" in results[5][1]
    assert [text for _, text in results[6:]] == ["<h><s>2</s><t>10</t></h>", "<h><s>1</s><t>25</t></h>"]
    assert site.results("sums")[-1][1] == "<sum>75</sum>"


def test_the_schema_over_time(site: ServedSite) -> None:
    """A path that is altered has been there before; behind the accent the described items are in another unit, and the
    others are not; the stream tells the same of now."""
    accent(site, FAHRENHEIT)
    found = wait_until(lambda: each if (each := site.get(f"{SENSORS}/evolution"))["accents"] else None)
    (told,) = found["accents"]
    epoch = told["epoch"]
    assert (told["number"], told["path"], told["kind"], told["items"], told["refused"]) == (
        0,
        "t",
        "alter",
        "s = 2",
        "",
    )
    assert (told["partition"], told["file"], told["offset"]) == (0, "a.accent-0001", 0)
    (lane,) = found["lanes"]
    assert (lane["path"], lane["partition"]) == ("t", 0)
    stretches = [(each["from_epoch"], each["to_epoch"], each["items"], each["unit"]) for each in lane["stretches"]]
    unit = ". * 5 div 9 - 160 div 9"
    assert stretches == [(0, epoch, "all items", ""), (epoch, None, "s = 2", unit), (epoch, None, "not(s = 2)", "")]
    assert found["epochs"]["first"] == 0
    assert found["epochs"]["last"] >= epoch
    paths = site.get(SENSORS)["paths"]
    assert [(each["items"], each["unit"]) for each in paths] == [("s = 2", unit), ("not(s = 2)", "")]
    accent(site, {"drop": {"path": "t"}})
    later = wait_until(lambda: each if len((each := site.get(f"{SENSORS}/evolution"))["accents"]) == 2 else None)
    states = [(each["state"], each["to_epoch"]) for each in later["lanes"][0]["stretches"]]
    assert ("dropped", None) in states
    assert sum(end is None for _, end in states) == 1
    assert later["accents"][1]["reactions"][0]["deed"]


@pytest.mark.parametrize("given", [FAHRENHEIT, FAHRENHEIT_XML, FAHRENHEIT_JSON], ids=["object", "xml", "json"])
def test_an_accent_in_each_of_its_forms(site: ServedSite, given: Any) -> None:
    """The object, the XML and the JSON are one accent."""
    status, found = accent(site, given, preview=True)
    assert status == 200, found
    assert deeds(found["reactions"]) == {"passes it on": ["hot"], "reckons with it": ["sums"]}


def test_subscriptions_of_the_service_are_concerned_too(site: ServedSite) -> None:
    """Also one that waits for its first epoch, and one that the accent would end says why."""
    body = {"name": "late", "query": 'for $r in stream("sensors")/sensors/r return <q>{ $r/t }</q>'}
    assert site.send("POST", "/api/subscriptions", {**body, "policy": "abort"})[0] == 201
    _, found = accent(site, {"where": "s = 2", "drop": {"path": "t"}}, preview=True)
    concerned = deeds(found["reactions"])
    assert "late" in {each for names in concerned.values() for each in names}
    _, found = accent(site, FAHRENHEIT, preview=True)
    assert found["others"] + sum(each["count"] for each in found["reactions"]) == 4
    for name, reason in found["reasons"].items():
        assert name in deeds(found["reactions"])["ends"]
        assert reason


def test_thousands_that_do_the_same_come_page_by_page(site: ServedSite) -> None:
    """A hundred are named at once, and all of them on pages, each once and in order."""
    bodies = [{"name": f"q{number:04}", "query": HOT.replace("> 20", f"> {number}")} for number in range(1_200)]
    assert site.send("POST", "/api/subscriptions", bodies)[0] == 201
    site.add("<r><s>1</s><t>1</t></r>\n")
    wait_until(lambda: site.get("/api/subscriptions/q1199")["state"] == "running")
    _, found = accent(site, FAHRENHEIT)
    (passing,) = (each for each in found["reactions"] if each["deed"] == "passes it on")
    assert (passing["count"], len(passing["subscriptions"])) == (1_201, 100)
    (told,) = wait_until(lambda: site.get(f"{SENSORS}/evolution")["accents"])
    assert {each["deed"]: each["count"] for each in told["reactions"]}["passes it on"] == 1_201
    names: list[str] = []
    after: str | None = None
    path = f"{SENSORS}/evolution/0/{quote('passes it on')}"
    while True:
        page = site.get(path, after=after, limit=500)
        assert page["count"] == 1_201
        names += page["subscriptions"]
        after = page["next"]
        if after is None:
            break
    assert names == sorted({"hot", *(each["name"] for each in bodies)})
    assert site.ask(f"{SENSORS}/evolution/1/ends")[0] == 404
    assert site.ask(f"{SENSORS}/evolution/0/laughs")[0] == 404


def test_what_a_stream_does_not_take_is_refused(site: ServedSite) -> None:
    """A text that is no accent, one with a mistake, one that is not valid there, and streams that take none; nothing is
    written for any of them."""
    refused = [
        ("sensors", "<r><s>1</s></r>", 400, "no accent"),
        ("sensors", '<s:accent where="s = "><s:drop path="t"/></s:accent>', 400, "at character 5"),
        ("sensors", "<s:accent><s:alter path='t' by='. * '/></s:accent>", 400, "at character 5 of the unit change"),
        ("sensors", {"where": "s = 1"}, 400, "one of"),
        ("sensors", {"drop": {"path": "t"}, "add": {"path": "u"}}, 400, "one of"),
        ("sensors", {"drop": {"path": "t", "wehre": "x"}}, 400, ""),
        ("sensors", "\x00\x1b]0;x", 400, ""),
        ("pushed", FAHRENHEIT, 400, "endpoint"),
        ("hotter", FAHRENHEIT, 400, "answer of 'hot'"),
        ("board", {"drop": {"path": "a"}}, 400, "2 partitions"),
        ("nothing", FAHRENHEIT, 404, "no stream 'nothing'"),
    ]
    for stream, given, status, message in refused:
        for preview in (True, False):
            answer = accent(site, given, stream, preview=preview)
            assert answer[0] == status, answer
            assert message in answer[1]["message"]
    assert [each.name for each in (site.folder / "in").iterdir()] == ["a"]


def test_an_accent_for_a_path_that_nobody_has_is_warned_of(site: ServedSite) -> None:
    """It may be meant so, but most often it is a mistake."""
    _, found = accent(site, {"drop": {"path": "tt"}}, preview=True)
    assert found["warnings"] == ["no item has had 'tt': the newest 6 were looked at, in 'a'"]


def test_one_partition_or_all(site: ServedSite) -> None:
    """Of a stream with partitions one is chosen, or all of them, which get it together, in the stream's own format."""
    status, found = accent(site, {"drop": {"path": "a"}}, "board", partition=1)
    assert (status, found["places"]) == (201, ["right/a.accent-0001"])
    assert (site.folder / "right" / "a.accent-0001").read_text().startswith('{"$accent"')
    status, found = accent(site, {"drop": {"path": "b"}}, "board", partition="all")
    assert (status, found["places"]) == (201, ["left/a.accent-0001", "right/a.accent-0002"])
    assert accent(site, {"drop": {"path": "a"}}, "board", partition=2)[0] == 400


def test_one_stream_with_what_its_items_have(site: ServedSite) -> None:
    """The paths of the newest items and a few of their values, for completion; nothing for one without items."""
    found = site.get(SENSORS)
    assert [each["path"] for each in found["learned"]] == ["s", "t"]
    assert found["learned"][0]["values"] == ["1", "2"]
    assert found["name"] == "sensors"
    assert site.get("/api/streams/board")["learned"] == [{"path": "a", "values": ["1"]}]
    assert site.get("/api/streams/pushed")["learned"] == []
    assert site.ask("/api/streams/nothing")[0] == 404


DTD = """<!ELEMENT sensors (r*)><!ELEMENT r (s, t)><!ELEMENT s (#PCDATA)><!ELEMENT t (#PCDATA)>"""


def test_a_stream_with_a_schema(tmp_path: Path) -> None:
    """Its paths are declared from the beginning; behind an accent the lane of its path goes on in another state."""
    (tmp_path / "sensors.dtd").write_text(DTD)
    (tmp_path / "left").mkdir()
    text = SITE.replace('["left", "right"]', '"left"').replace('root = "sensors"', 'dtd = "sensors.dtd"')
    with served_site(tmp_path, text, QUERIES) as site:
        site.add("<r><s>2</s><t>30</t></r>\n")
        wait_until(lambda: site.get("/api/subscriptions/hot")["answers"] == 1)
        found = site.get(f"{SENSORS}/evolution")
        states = {each["path"]: [one["state"] for one in each["stretches"]] for each in found["lanes"]}
        assert states == {"s": ["declared"], "t": ["declared"]}
        assert deeds(accent(site, FAHRENHEIT)[1]["reactions"])["passes it on"] == ["hot"]
        found = wait_until(lambda: each if (each := site.get(f"{SENSORS}/evolution"))["accents"] else None)
        (lane,) = (each for each in found["lanes"] if each["path"] == "t")
        epoch = found["accents"][0]["epoch"]
        assert [(each["state"], each["from_epoch"], each["to_epoch"]) for each in lane["stretches"]] == [
            ("declared", 0, epoch),
            ("there", epoch, None),
            ("there", epoch, None),
        ]


def test_the_past_is_there_after_a_restart(tmp_path: Path) -> None:
    """Before the first epoch of another run the evolution is told as before."""
    with served_site(tmp_path, SITE.replace('["left", "right"]', '"in"'), QUERIES) as first:
        first.add("<r><s>2</s><t>30</t></r>\n")
        wait_until(lambda: first.get("/api/subscriptions/hot")["answers"] == 1)
        accent(first, FAHRENHEIT)
        before = wait_until(lambda: each if (each := first.get(f"{SENSORS}/evolution"))["accents"] else None)
    with served_site(tmp_path, SITE.replace('["left", "right"]', '"in"'), QUERIES) as again:
        found = again.get(f"{SENSORS}/evolution")
        assert (found["lanes"], found["accents"]) == (before["lanes"], before["accents"])
