"""Subscriptions that are registered while a site runs: durable, beside those of its file, and in its way never."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest

from anabranch.cli import main
from anabranch.site import read_site
from service.local_service import PATIENCE, SITE, LocalService, served

pytestmark = pytest.mark.service

SUBSCRIPTIONS = "/api/subscriptions"


def query(number: int = 0) -> str:
    return f'for $p in stream("s")/root/p where $p > {number} return <m>{{ $p/text() }}</m>'


def awaited(look: Callable[[], Any]) -> Any:
    """What somebody finds, as soon as there is something."""
    until, pause = monotonic() + PATIENCE, Event()
    while monotonic() < until:
        if found := look():
            return found
        pause.wait(0.02)
    raise AssertionError("nothing has come")


def names(site: LocalService, **asked: str) -> list[str]:
    found = [each.name for each in site.site().subscriptions(**asked)]
    assert len(found) == len(set(found))
    return found


def test_a_registered_query_answers_what_comes_behind_it(tmp_path: Path) -> None:
    """It is told with 201 and its place in the list, begins with the next epoch, and is answered as any other."""
    with served(tmp_path) as site:
        site.add(1, 2)
        awaited(lambda: site.site().subscription("all").about["answers"] == 2)
        told = site.ask("POST", SUBSCRIPTIONS, {"name": "mine", "query": query(1)})
        assert told.status == 201
        assert (told.content["origin"], told.content["state"], told.content["query"]) == (
            "service",
            "waiting",
            query(1),
        )
        site.add(3, 1, 4)
        found = awaited(lambda: site.site().subscription("mine").about if _answers(site, "mine") == 2 else None)
        assert (found["state"], found["kind"], found["answer"]) == ("running", "items", "xml")
        assert names(site) == ["all", "mine", "show"]


def _answers(site: LocalService, name: str) -> int:
    found: int = site.site().subscription(name).about["answers"]
    return found


def test_registrations_are_there_again_after_a_restart(tmp_path: Path) -> None:
    """What was registered, changed and cancelled is as it was told, and goes on with its answer."""
    with served(tmp_path) as site:
        for number in range(5):
            assert site.ask("POST", SUBSCRIPTIONS, {"name": f"q{number}", "query": query(number)}).status == 201
        assert site.ask("DELETE", f"{SUBSCRIPTIONS}/q1").status == 204
        assert site.ask("PUT", f"{SUBSCRIPTIONS}/q2", {"query": query(100), "policy": "absorb"}).status == 200
        site.add(3)
        awaited(lambda: _answers(site, "q0"))
    with served(tmp_path) as site:
        assert names(site) == ["all", "q0", "q2", "q3", "q4", "show"]
        again = site.site().subscription("q2").about
        assert (again["query"], again["policy"]) == (query(100), "absorb")
        assert _answers(site, "q0") == 1
        site.add(200)
        awaited(lambda: _answers(site, "q2") and _answers(site, "q0") == 2)
        assert site.ask("GET", f"{SUBSCRIPTIONS}/q1").status == 404


def test_what_is_wrong_with_a_query_is_told_with_its_place(tmp_path: Path) -> None:
    """A refused query is a 422 with message, line, column and hint, and nothing is registered."""
    with served(tmp_path) as site:
        told = site.ask("POST", SUBSCRIPTIONS, {"name": "x", "query": 'for $p in stream("s")/root/p\nreturn $q'})
        assert (told.status, told.content["line"], told.content["column"]) == (422, 2, 8)
        assert "q" in told.content["message"]
        assert told.content.keys() >= {"message", "line", "column", "hint"}
        endless = site.ask("POST", SUBSCRIPTIONS, {"name": "x", "query": 'for $p in stream("t")/root/p return $p'})
        assert (endless.status, endless.content["line"]) == (422, 1)
        assert names(site) == ["all", "show"]


WRONG: list[tuple[object, int]] = [
    ({"name": "all", "query": query()}, 409),
    ({"name": "x"}, 400),
    ({"name": "x", "query": query(), "colour": "red"}, 400),
    ({"name": "x", "query": query(), "policy": "hope"}, 400),
    ({"name": "x", "query": query(), "language": "cobol"}, 400),
    ({"name": "", "query": query()}, 400),
    ({"name": "x", "query": query(), "sink": {"sink": "files", "path": "../out.xml"}}, 400),
    ({"name": "x", "query": query(), "sink": {"sink": "files", "path": "/etc/out.xml"}}, 400),
    ({"name": "x", "query": query(), "sink": {"sink": "files", "path": "s3://bucket/out.xml"}}, 400),
    ({"name": "x", "query": query(), "sink": {"sink": "console"}}, 400),
    ({"name": "x", "query": query(), "sink": {"sink": "files", "path": "in/items"}}, 400),
    ({"name": "x", "query": query(), "sink": {"text": "1"}}, 400),
    ([], 400),
    ([{"name": "x", "query": query()}, {"name": "x", "query": query(1)}], 400),
    ([{"name": "x", "query": query()}, {"name": "y", "query": "for"}], 422),
    ("x", 400),
]


def test_wrong_registrations_change_nothing(tmp_path: Path) -> None:
    """Whatever is wrong has its status and a message, and of several that are registered together none is."""
    with served(tmp_path) as site:
        for body, status in WRONG:
            told = site.ask("POST", SUBSCRIPTIONS, body)
            assert (told.status, bool(told.content["message"])) == (status, True), told.content
            assert str(tmp_path) not in told.content["message"]
        assert names(site) == ["all", "show"]


def test_the_subscriptions_of_the_file_are_read_only(tmp_path: Path) -> None:
    """They can be seen, and neither changed nor cancelled; their file can be."""
    with served(tmp_path) as site:
        assert site.ask("DELETE", f"{SUBSCRIPTIONS}/all").status == 409
        assert site.ask("PUT", f"{SUBSCRIPTIONS}/all", {"query": query()}).status == 409
        assert site.ask("DELETE", f"{SUBSCRIPTIONS}/none").status == 404
        assert names(site) == ["all", "show"]


def test_a_sink_is_written_below_the_folder_of_the_site(tmp_path: Path) -> None:
    """A subscription may be registered with a sink, gets it, and loses it when it is cancelled."""
    with served(tmp_path) as site:
        sink = {"sink": "files", "path": "out/mine.xml"}
        told = site.ask("POST", SUBSCRIPTIONS, {"name": "mine", "query": query(), "sink": sink})
        assert told.status == 201
        site.add(5)
        file = tmp_path / "out" / "mine.xml"
        awaited(lambda: file.exists() and "<m>5</m>" in file.read_text())
        assert site.ask("DELETE", f"{SUBSCRIPTIONS}/mine").status == 204
        site.add(6)
        awaited(lambda: _answers(site, "all") == 2)
    assert "<m>6</m>" not in file.read_text()


def test_pages_filters_and_orders(tmp_path: Path) -> None:
    """Every page size gives the same list; filters let through what they say; answers order by their number."""
    with served(tmp_path) as site:
        many = [{"name": f"n{number:03}", "query": query(number)} for number in range(57)]
        told = site.ask("POST", SUBSCRIPTIONS, many)
        assert (told.status, told.content["registered"]) == (201, [each["name"] for each in many])
        site.add(*range(60))
        awaited(lambda: _answers(site, "n000") == 59)
        everything = names(site)
        assert len(everything) == 59
        for size in (1, 7, 58, 59, 60, 1000):
            found, after = [], None
            while True:
                more = "" if after is None else f"&after={after}"
                page = site.ask("GET", f"{SUBSCRIPTIONS}?limit={size}{more}").content
                assert page["total"] == 59
                found += [each["name"] for each in page["subscriptions"]]
                after = page["next"]
                if after is None:
                    break
            assert found == everything
        assert names(site, search="N00") == [f"n{number:03}" for number in range(10)]
        assert names(site, search="$p > 41 ") == ["n041"]
        assert names(site, origin="site") == ["all", "show"]
        assert names(site, stream="board") == ["show"]
        assert names(site, kind="display") == ["show"]
        assert names(site, state="waiting") == []
        assert names(site, sort="answers", order="desc")[:3] == ["all", "n000", "n001"]
        assert site.ask("GET", f"{SUBSCRIPTIONS}?after=garbage").status == 400
        assert site.ask("GET", f"{SUBSCRIPTIONS}?limit=0").status == 400


def test_the_file_may_change_beside_registrations(tmp_path: Path) -> None:
    """A new version of the file takes effect; one that takes a stream or a name away is refused, and says whose."""
    with served(tmp_path) as site:
        assert site.ask("POST", SUBSCRIPTIONS, {"name": "mine", "query": query()}).status == 201
        text = "text = 'for $p in stream(\"s\")/root/p return <k/>'"
        site.file.write_text(f"{SITE}\n[subscriptions.more]\n{text}\n")
        awaited(lambda: "more" in names(site))
        assert "mine" in names(site)
        site.file.write_text(f"{SITE}\n[subscriptions.mine]\n{text}\n")
        awaited(lambda: [each for each in site.log if each["event"] == "refused" and "'mine'" in each["message"]])
        board = SITE[: SITE.index("[streams.s]")] + SITE[SITE.index("[streams.board]") :]
        site.file.write_text(board.replace('[subscriptions.all]\nquery = "all.xq"\n', ""))
        awaited(lambda: [each for each in site.log if "registered through" in each.get("message", "")])
        assert "mine" in names(site)
        site.add(1)
        awaited(lambda: _answers(site, "mine") == 1)


def test_a_registration_whose_stream_is_gone_at_a_start_waits(tmp_path: Path) -> None:
    """The site starts without it, says why it waits, and it goes on when the stream is back; it can be cancelled."""
    with served(tmp_path) as site:
        body = {"name": "mine", "query": 'for $p in stream("board")/root/p return $p'}
        assert site.ask("POST", SUBSCRIPTIONS, [body, {**body, "name": "other"}]).status == 201
    begin, end = SITE.index("[streams.board]"), SITE.index("[subscriptions.all]")
    without = (SITE[:begin] + SITE[end:]).replace('[subscriptions.show]\nquery = "show.xq"\n', "")
    with served(tmp_path, without) as site:
        found = site.site().subscription("mine").about
        assert found["state"] == "refused"
        assert "board" in found["error"]
        assert site.ask("DELETE", f"{SUBSCRIPTIONS}/other").status == 204
        assert "other" not in names(site)
        site.file.write_text(SITE)
        awaited(lambda: site.site().subscription("mine").about["state"] == "waiting")
        site.add(1)
        awaited(lambda: site.site().subscription("mine").about["state"] == "running")


def test_what_is_exported_is_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables that export prints are valid, and read back they declare what was registered."""
    odd = "(: ''' \\ \x85 \u2028 :)\n" + query(3)
    bodies: list[dict[str, Any]] = [
        {"name": "plain", "query": query(), "policy": "absorb"},
        {"name": 'odd "name" é.x', "query": odd, "sink": {"sink": "files", "path": "out/odd.xml"}},
        {"name": "lines", "query": query(4).replace(" where", "\nwhere"), "from": "now"},
    ]
    with served(tmp_path) as site:
        for body in bodies:
            assert site.ask("POST", SUBSCRIPTIONS, body).status == 201, body
    assert main(["export", str(tmp_path / "SITE.toml")]) == 0
    printed = capsys.readouterr().out
    tables = tomllib.loads(printed)["subscriptions"]
    assert {name: each["text"] for name, each in tables.items()} == {each["name"]: each["query"] for each in bodies}
    other = tmp_path / "other"
    other.mkdir()
    for name in ("in", "updates"):
        (other / name).mkdir()
    (other / "SITE.toml").write_text(SITE[: SITE.index("[subscriptions")] + printed)
    assert read_site(other / "SITE.toml").subscriptions.keys() == {each["name"] for each in bodies}


def test_many_clients_register_at_once(tmp_path: Path) -> None:
    """Eight threads register under names that overlap: each name is told once, and all that was told is there."""
    with served(tmp_path) as site:
        told: list[tuple[str, int]] = []

        def register(first: int) -> None:
            for number in range(first, first + 12):
                name = f"n{number % 40:02}"
                told.append((name, site.ask("POST", SUBSCRIPTIONS, {"name": name, "query": query(number)}).status))

        threads = [Thread(target=register, args=(first * 7,)) for first in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        won = [name for name, status in told if status == 201]
        assert {status for _, status in told} == {201, 409}
        assert sorted(won) == sorted(set(won))
        assert set(won) == {name for name, _ in told}
        assert set(names(site)) == {*won, "all", "show"}
    with served(tmp_path) as site:
        assert set(names(site)) == {*won, "all", "show"}
