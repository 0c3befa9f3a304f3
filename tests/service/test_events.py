"""Answers as events: nobody waits for anybody, everything ends, and what is sent is what the log has."""

from __future__ import annotations

import http.client
import socket
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.events import EventReader, ServerEvent
from anabranch.service.answers import events as module
from anabranch.service.answers import feed
from anabranch.service.answers.feed import AnswerFeed, ResultPart, ResultSource, WirePart, comment, event
from service.sites import ENGINE, LINES, PATIENCE, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

ALL = {"all": '<all>{ for $p in stream("s")/root/p return $p }</all>'}
EVENTS = {"Accept": "text/event-stream"}
PATH = "/api/subscriptions/all/answers"


def numbered(begin: int, end: int) -> str:
    return "".join(f"<p>{number}</p>\n" for number in range(begin, end))


# --- what is sent -----------------------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from(" \n\ta:<>&\u2028\u0085\u00e9\U0001f600") | st.characters(exclude_characters="\r"))


@given(st.lists(TEXTS.filter(bool)), st.integers(1, 20))
def test_an_event_is_read_as_it_was_written(texts: list[str], step: int) -> None:
    """Any text without a carriage return comes out as it was, in whatever pieces the bytes arrive."""
    part = ResultPart(12, 0, 5, tuple(texts), is_last=True)
    wire = WirePart.of(part)
    data = comment("a\nb") + wire.data + event("over\nand out", kind="end")
    assert read(data, step) == [
        *(ServerEvent("message", f"12-{index}", text) for index, text in enumerate(texts, 5)),
        ServerEvent("end", None, "over\nand out"),
    ]
    for index in range(len(texts)):
        assert [each.data for each in read(wire.data[wire.start(index) :], step)] == texts[index:]


@given(st.text(st.sampled_from("\r\na<")))
def test_a_carriage_return_is_never_sent(text: str) -> None:
    """It would end the line; a reader gets the end of a line instead, as a parser of XML does."""
    data = event(text, id="0-0")
    assert b"\r" not in data
    (found,) = read(data, 7)
    assert found.data == text.replace("\r\n", "\n").replace("\r", "\n")


def read(data: bytes, step: int) -> list[ServerEvent]:
    reader = EventReader()
    return [each for at in range(0, len(data), step) for each in reader.feed(data[at : at + step])]


def test_items_as_they_are_keep_their_lines(tmp_path: Path) -> None:
    """Items of a file with carriage returns are answered over events as a parser of XML would read them."""
    stream = LINES.replace('"lines"', '"document"')
    with served_site(tmp_path, ENGINE + stream, {"all": 'for $p in stream("s")/root/p return $p'}) as site:
        (tmp_path / "in" / "a").write_bytes(b"<root>\r\n<p a='1\r\n2'>one\r\ntwo\rthree&#13;four</p>\r\n<p/>\r\n")
        found = site.follow("all", 2)
        pages = site.results("all")
    assert [text.replace("\r\n", "\n").replace("\r", "\n") for _, text in pages] == [text for _, text in found]
    assert "one\ntwo\nthree&#" in found[0][1]


# --- when it is sent --------------------------------------------------------------------------------------------------


def test_events_come_as_epochs_are_committed(tmp_path: Path) -> None:
    """A client that follows gets each result once, in order, and one that begins now gets only what is new."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site, ExitStack() as held:
        early = held.enter_context(site.events("all"))
        site.add(numbered(0, 3))
        assert [next(early).data for _ in range(3)] == ["<p>0</p>", "<p>1</p>", "<p>2</p>"]
        late = held.enter_context(site.events("all", from_="now"))
        for number in range(3, 9):
            site.add(numbered(number, number + 1))
            assert next(early) == next(late)
        assert [text for _, text in site.results("all")] == [f"<p>{number}</p>" for number in range(9)]
        again = held.enter_context(site.events("all", last=site.results("all")[6][0], from_="now"))
        assert next(again).data == "<p>7</p>"


def test_silence_is_filled_with_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing else comes, comments do, so that a lost connection is noticed."""
    monkeypatch.setattr(module, "KEEP_ALIVE_SECONDS", 0.05)
    with served_site(tmp_path, ENGINE + LINES, ALL) as site, site.opened(PATH, EVENTS) as reply:
        assert reply.getheader("Cache-Control") == "no-store"
        assert [reply.readline() for _ in range(6)] == [b": \n", b"\n"] * 3


def test_clients_share_one_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clients follow, a part of an answer is read and split once, and once more for all pages."""
    split: Counter[tuple[int, int, int]] = Counter()
    real = AnswerFeed._split

    def counted(self: AnswerFeed, source: ResultSource, epoch: int, part: int, layout: feed._Layout) -> ResultPart:
        split[source.number, epoch, part] += 1
        return real(self, source, epoch, part, layout)

    monkeypatch.setattr(AnswerFeed, "_split", counted)
    with served_site(tmp_path, ENGINE + LINES, ALL) as site, ExitStack() as held:
        clients = [held.enter_context(site.events("all")) for _ in range(12)]
        for begin in range(0, 40, 4):
            site.add(numbered(begin, begin + 4))
            for client in clients:
                assert [next(client).data for _ in range(4)] == [f"<p>{n}</p>" for n in range(begin, begin + 4)]
        assert set(split.values()) == {1}
        site.results("all", limit=3)
        epochs = {position.split("-")[0] for position, _ in site.results("all")}
    assert len(split) == len(epochs)
    assert set(split.values()) == {2}


# --- who reads slowly -------------------------------------------------------------------------------------------------


def test_nobody_waits_for_a_slow_client(tmp_path: Path) -> None:
    """A client reads nothing while thousands of results come: another one gets them all, and then so does it."""
    count, text = 6_000, "x" * 2_000  # more than what the sockets buffer
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        slow = asleep(site)
        with site.events("all") as quick:
            for begin in range(0, count, 1_000):
                site.add("".join(f"<p>{number} {text}</p>\n" for number in range(begin, begin + 1_000)))
                for number in range(begin, begin + 1_000):
                    assert next(quick).data == f"<p>{number} {text}</p>"
        every = site.results("all")
        assert len(every) == count
        found = awake(slow, count)
    assert [(each.id, each.data) for each in found] == every


def asleep(site: ServedSite) -> socket.socket:
    """A client that has sent its request and reads nothing, with small buffers."""
    where = urlsplit(site.url)
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    found.settimeout(PATIENCE)
    found.connect((where.hostname, where.port))
    found.sendall(f"GET {PATH} HTTP/1.1\r\nHost: {where.netloc}\r\nAccept: text/event-stream\r\n\r\n".encode())
    return found


def awake(client: socket.socket, count: int) -> list[ServerEvent]:
    """What such a client gets when it reads at last."""
    reply, reader, found = http.client.HTTPResponse(client), EventReader(), list[ServerEvent]()
    reply.begin()
    while len(found) < count:
        found += reader.feed(reply.read1(1 << 16))
    client.close()
    return found


def test_a_client_that_leaves_is_let_go(tmp_path: Path) -> None:
    """Of one stream at a time, the next one may come when the first has closed its connection; pages are no streams."""
    with served_site(tmp_path, ENGINE + LINES, ALL, event_streams=1) as site:
        for _ in range(3):
            with ExitStack() as held:
                wait_until(partial(opens, site, held))
                with site.opened(PATH, EVENTS) as second:
                    assert second.status == 429
                    assert second.getheader("Retry-After") == "1"
                site.page("all")


def opens(site: ServedSite, held: ExitStack) -> bool:
    """Open a stream that stays open, unless it is refused."""
    with ExitStack() as opened:
        if opened.enter_context(site.opened(PATH, EVENTS)).status != 200:
            return False
        held.push(opened.pop_all())
        return True


# --- ends -------------------------------------------------------------------------------------------------------------


def test_events_end_with_the_run(tmp_path: Path) -> None:
    """A run that stops ends the streams of its clients at once, without an event `end`: they will come back."""
    with ExitStack() as held:
        site = held.enter_context(served_site(tmp_path, ENGINE + LINES, ALL))
        site.add(numbered(0, 2))
        events = ExitStack()
        client = events.enter_context(site.events("all"))
        assert [next(client).data, next(client).data] == ["<p>0</p>", "<p>1</p>"]
        begun = monotonic()
        held.close()
        assert list(client) == []
        assert monotonic() - begun < 2.5  # the server's own patience with clients that go on is longer
        events.close()


def test_a_cancelled_subscription_ends(tmp_path: Path) -> None:
    """Who follows gets an event `end` with the reason; who comes later reads what there is, and then the same."""
    body = {"name": "mine", "query": 'for $p in stream("s")/root/p return <one>{ $p/text() }</one>'}
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        assert site.send("POST", "/api/subscriptions", body)[0] == 201
        with site.events("mine") as events:
            site.add(numbered(0, 2))
            expected = [next(events), next(events)]
            assert site.send("DELETE", "/api/subscriptions/mine")[0] == 204
            assert next(events) == ServerEvent("end", None, "it was cancelled")
            assert list(events) == []
        site.add(numbered(2, 3))
        wait_until(lambda: len(site.results("all")) == 3)
        with site.events("mine", last=expected[0].id) as events:
            assert list(events) == [expected[1], ServerEvent("end", None, "it was cancelled")]
        assert site.results("mine") == [(each.id, each.data) for each in expected]
        assert site.send("POST", "/api/subscriptions", body)[0] == 201
        with site.events("mine", last=expected[1].id) as events:
            site.add(numbered(3, 4))
            assert next(events).data == "<one>3</one>"


def test_a_subscription_that_an_accent_ends(tmp_path: Path) -> None:
    """Its stream ends with the reason behind its last result, also for who comes later."""
    query = {"hot": 'for $p in stream("s")/root/p where $p/t > 5 return $p/t'}
    accent = '<s:accent xmlns:s="urn:anabranch:stream"><s:drop path="t"/></s:accent>\n'
    with served_site(tmp_path, ENGINE + LINES, query) as site:
        with site.events("hot") as events:
            site.add("<p><t>7</t></p>\n")
            first = next(events)
            assert first.data == "<t>7</t>"
            site.add(accent)
            *more, end = events
        assert end.kind == "end"
        assert "it has ended: " in end.data
        with site.events("hot", last=first.id) as events:
            assert list(events) == [*more, end]


def test_a_position_that_is_no_longer_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events go on with the first result that is kept, and an event `gap` says so; a page says it is not whole."""
    monkeypatch.setattr("anabranch.spark.checkpoint.retention.MIN_EPOCHS", 3)
    with served_site(tmp_path, f"{ENGINE}keep = 3\n{LINES}", ALL) as site:
        with site.events("all") as events:
            for number in range(8):
                site.add(numbered(number, number + 1))
                assert next(events).data == f"<p>{number}</p>"
        kept = site.results("all")
        assert 0 < len(kept) < 8
        assert site.page("all")["whole"] is False
        with site.events("all", last="0-0") as events:
            gap = next(events)
            assert (gap.kind, gap.id) == ("gap", None)
            assert gap.data == f"results in front of epoch {kept[0][0].split('-')[0]} are no longer kept"
            assert [(each.id, each.data) for _, each in zip(kept, events, strict=False)] == kept
        assert site.results("all", after="0-0") == kept
        assert site.follow("all", len(kept)) == kept
        assert site.page("all", before="0-5")["answers"] == []


def test_many_follow_while_others_come_and_go(tmp_path: Path) -> None:
    """Clients that leave in the middle of their answers change nothing for those who stay."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        found: dict[int, list[tuple[str, str]]] = {}

        def follow(number: int) -> None:
            found[number] = site.follow("all", 200 if number % 3 else 20)

        threads = [Thread(target=follow, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for begin in range(0, 200, 10):
            site.add(numbered(begin, begin + 10))
        for thread in threads:
            thread.join()
        every = site.results("all")
    assert [text for _, text in every] == [f"<p>{number}</p>" for number in range(200)]
    assert all(each == every[: len(each)] and len(each) >= 20 for each in found.values())
    assert len(found) == 12
