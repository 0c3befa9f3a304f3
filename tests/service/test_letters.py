"""Dead letters and late items over HTTP: page by page, with their texts, by stream, after a restart as before."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch.service.answers import aside
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

STREAMS = """
[streams.d]
source = "files"
path = "d"
format = "document"
time = "t"

[streams.z]
source = "files"
path = "z"
format = "json"
time = "t"
"""
QUERIES = {
    "tens": '<tens>{ for $w in stream("s")/root/p[. < 50] |self::p diff 10| return <w>{ count($w) }</w> }</tens>',
    "again": '<tens>{ for $w in stream("s")/root/p[. < 50] |self::p diff 10| return <v>{ count($w) }</v> }</tens>',
    "d": '<d>{ for $w in stream("d")/root/p |t diff 10| return <w>{ count($w) }</w> }</d>',
    "z": 'for $w in stream("z")/root/item |t diff 10| return <w>{ count($w) }</w>',
    "divided": 'for $p in stream("s")/root/p where 1 idiv ($p - 13) > 0 return $p',
}
BAD = ("<p>1</q>", "<p", '<p a="1" a="2"/>', "<p>\u2028&nothing;</p>")
LATE = "/api/late"
DEAD = "/api/dead-letters"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSite]:
    """A site in whose streams much is bad or too late, over several epochs."""
    folder = tmp_path_factory.mktemp("letters")
    for name in ("d", "z"):
        (folder / name).mkdir()
    with served_site(folder, ENGINE + LINES + STREAMS, QUERIES) as found:
        found.add("".join(f"{each}\n" for each in BAD) + "<p>13</p>\n")
        wait_until(lambda: len(letters(found, DEAD)) == len(BAD) + 1)
        found.add("<p>30</p>\n<p>5</p>\n<p>32</p>\n")
        found.add(
            "<root>\n<p><t>1</t>a\nb</p><p><t>30</t></p><p><t>5</t>late\none</p>\n<p><t>32</t></p><p>bad</p>", "d/a"
        )
        packed = b'{"t": 1}\n{"t": 30}\n{"t": 5}\n{"t": 32}\n'
        (folder / "z" / "a.gz").write_bytes(gzip.compress(packed))
        wait_until(lambda: len(letters(found, LATE)) == 3)
        found.add("<p>6</p>\n<p\n")
        wait_until(lambda: len(letters(found, LATE)) == 4)
        yield found


def letters(site: ServedSite, path: str, limit: int = 1_000, **query: str) -> list[dict[str, Any]]:
    """All letters, page by page."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = site.get(path, after=after, limit=limit, **query)
        found += page["letters"]
        after = page["next"]
        if not page["more"]:
            return found


def test_dead_letters_are_those_of_the_log(site: ServedSite) -> None:
    """Each with its place, reason and text, in the order of the log, in pages of any size."""
    every = letters(site, DEAD)
    log = list(AnswerLog(Checkpoint.at(site.folder / "state")).dead_letters())
    assert [(each["stream"], each["partition"], each["offset"], each["reason"], each["raw"]) for each in every] == [
        (each.place.stream, each.place.partition, each.place.offset, each.reason, each.raw) for each in log
    ]
    assert [each["raw"] for each in every[: len(BAD)]] == list(BAD)
    (divided,) = (each for each in every if each["subscription"] == "divided")
    assert (divided["subscription"], divided["code"], divided["raw"]) == ("divided", "FOAR0001", "<p>13</p>")
    for limit in (1, 2, 3):
        assert letters(site, DEAD, limit=limit) == every
    for number, each in enumerate(every):
        page = site.get(DEAD, after=each["position"], limit=2)
        assert page["letters"] == every[number + 1 : number + 3]
        assert page["more"] is (number + 3 < len(every))


def test_late_items_have_their_texts(site: ServedSite) -> None:
    """An item counts once, whoever missed it; its text is read from its file, unless that is packed."""
    found = {(each["stream"], each["raw"]): each for each in letters(site, LATE)}
    late = [("s", "<p>5</p>"), ("s", "<p>6</p>"), ("d", "<p><t>5</t>late\none</p>"), ("z", None)]
    assert sorted(found, key=str) == sorted(late, key=str)
    assert {each["reason"] for each in found.values()} == {"too late for a time window"}
    first = found["s", "<p>5</p>"]
    assert (first["partition"], first["subscription"], first["code"]) == ("a", None, None)
    with (site.folder / "in" / "a").open("rb") as file:
        file.seek(first["offset"])
        assert file.readline() == b"<p>5</p>\n"


def test_letters_of_one_stream(site: ServedSite) -> None:
    """Those of others are left out, and positions stay what they are; a stream that is not there has none."""
    for path in (DEAD, LATE):
        every = letters(site, path)
        for stream in ("s", "d", "z", "nothing"):
            expected = [each for each in every if each["stream"] == stream]
            assert letters(site, path, stream=stream) == expected
            assert letters(site, path, limit=1, stream=stream) == expected


def test_letters_of_one_subscription(site: ServedSite) -> None:
    """Those that its own query has failed with; what no query could read belongs to none."""
    every = letters(site, DEAD)
    for name, count in (("divided", 1), ("nobody", 0)):
        expected = [each for each in every if each["subscription"] == name]
        assert len(expected) == count
        for limit in (1, 100):
            assert letters(site, DEAD, limit=limit, subscription=name) == expected
    assert letters(site, DEAD, subscription="divided", stream="d") == []


def test_a_page_looks_through_so_many(site: ServedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that filters may be empty and say that there is more; all of them together are complete."""
    monkeypatch.setattr(aside, "_LOOKED", 2)
    page = site.get(DEAD, stream="d")
    assert (page["letters"], page["more"]) == ([], True)
    assert [each["stream"] for each in letters(site, DEAD, stream="d")] == ["d"]


def test_what_cannot_be_asked(site: ServedSite) -> None:
    """Wrong positions and sizes are refused."""
    for path in (DEAD, LATE):
        for query in ({"after": "x"}, {"after": "1"}, {"limit": 0}, {"limit": 1_001}):
            assert site.ask(path, **query)[0] == 400
        assert site.get(path, after="999999-0") == {"letters": [], "next": "999999-0", "more": False}


def test_letters_stay_after_a_restart(tmp_path: Path) -> None:
    """Their positions are the same, and new ones come behind them."""
    for name in ("d", "z"):
        (tmp_path / name).mkdir()
    with served_site(tmp_path, ENGINE + LINES + STREAMS, QUERIES) as site:
        site.add("<p\n")
        before = wait_until(lambda: letters(site, DEAD))
    with served_site(tmp_path, ENGINE + LINES + STREAMS, QUERIES) as site:
        assert letters(site, DEAD) == before
        site.add("<q\n")
        more = wait_until(lambda: site.get(DEAD, after=before[0]["position"])["letters"])
        assert json.dumps([each["raw"] for each in more]) == '["<q"]'
