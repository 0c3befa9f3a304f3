"""What a run does now: numbers that are those of the log, lag, and why it is late, in real situations."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pytest

from anabranch.client.events import EventReader
from anabranch.service.routes.now import NowAnswer
from anabranch.service.watch.rates import SlidingRates
from brokers import Broker
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

IDLE = ENGINE.replace("trigger_ms = 5", "trigger_ms = 600000")
"""Reads what is there when it begins, and then nothing for long."""
ALL = {"all": '<all>{ for $p in stream("s")/root/p return $p/v }</all>'}


def items(*values: object) -> str:
    return "".join(f"<p><v>{each}</v></p>\n" for each in values)


def now(site: ServedSite) -> Any:
    """What it does now, which has the members that are documented and no other."""
    found = site.get("/api/now")
    NowAnswer.model_validate(found)
    return found


def read(site: ServedSite, count: int) -> Any:
    """What it does when so many items were read."""
    return wait_until(lambda: found if (found := now(site))["totals"]["items"] >= count else None)


def late(site: ServedSite, what: str, words: str = "") -> Any:
    """The first cause of a kind with some words in its message, as soon as there is one."""

    def found() -> Any:
        causes = now(site)["late"]
        return next((each for each in causes if each["what"] == what and words in each["message"]), None)

    return wait_until(found)


@contextmanager
def events(site: ServedSite) -> Iterator[Iterator[Any]]:
    """The events of `/api/now/events`."""
    with site.opened("/api/now/events") as reply:
        assert reply.status == 200
        assert (reply.getheader("Content-Type") or "").startswith("text/event-stream")

        def come() -> Iterator[Any]:
            reader = EventReader()
            while data := reply.read1(1 << 16):
                yield from (json.loads(each.data) for each in reader.feed(data))

        yield come()


def test_the_numbers_are_those_of_the_log(tmp_path: Path) -> None:
    """Totals, epochs and their phases agree with the lines of the log; events are its other lines."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        first = now(site)
        assert (first["epoch"], first["epochs"], first["run_state"]) == (-1, [], "ready")
        site.add(items(*range(10)) + "bad\n")
        read(site, 10)
        site.add(items(*range(5)))
        found = read(site, 15)
        lines = list(map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines()))
        told = [each for each in lines if each["event"] == "epoch"]
        assert found["epoch"] == told[-1]["epoch"]
        assert found["subscriptions"] == 1
        for key, name in (("items", "items"), ("bytes", "bytes"), ("answers", "matched")):
            assert found["totals"][key] == sum(each[name] for each in told)
            assert [each[key] for each in found["epochs"]] == [each[name] for each in told]
        assert found["totals"]["dead_letters"] == 1
        for shown, line in zip(found["epochs"], told, strict=True):
            phases = {each["name"]: each for each in shown["phases"]}
            assert {name: each["ms"] for name, each in phases.items()} == {
                "plan": line["plan_ms"],
                "tasks": line["job_ms"],
                "publish": line["publish_ms"],
                "deliver": line["deliver_ms"],
            }
            assert phases["tasks"]["start_ms"] == line["plan_ms"]
            assert shown["total_ms"] == line["deliver_start_ms"] + line["deliver_ms"]
            assert abs(shown["began"] - line["began"]) < 0.001
        assert found["rates"]["items"] > 0
        (stream,) = found["streams"]
        assert (stream["name"], stream["items"], stream["fast_share"]) == ("s", 15, 1.0)
        assert [each["event"] for each in found["events"]] == ["serving", "started"]
        assert site.get("/api/streams")["streams"][0]["items"] == 15


def test_every_epoch_is_an_event_for_all_who_listen(tmp_path: Path) -> None:
    """All clients get the same objects, at once and after an epoch; one that has gone holds nobody up."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        site.add(items(1))
        read(site, 1)
        with events(site) as some, events(site) as others:
            assert next(some)["totals"]["items"] == next(others)["totals"]["items"] == 1
            for count in (2, 3, 4):
                site.add(items(count))
                told = [
                    next(each for each in listened if each["totals"]["items"] == count) for listened in (some, others)
                ]
                NowAnswer.model_validate(told[0])
                assert told[0]["epochs"] == told[1]["epochs"]
            with events(site) as gone:
                next(gone)
            site.add(items(5))
            assert next(each for each in some if each["totals"]["items"] == 5)
        wait_until(lambda: _open_streams(site) == 0)


def _open_streams(site: ServedSite) -> int:
    with site.opened("/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return int(float(next(each for each in lines if each.startswith("anabranch_event_streams ")).split()[1]))


def test_a_client_that_does_not_read_is_behind_alone(tmp_path: Path) -> None:
    """While one client reads nothing, another gets every epoch, and the run goes on."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        site.add(items(1))
        read(site, 1)
        host, _, port = site.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as slow, events(site) as quick:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.sendall(f"GET /api/now/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            for count in range(2, 40):
                site.add(items(count))
                next(each for each in quick if each["totals"]["items"] == count)


@pytest.mark.mass
def test_something_is_told_when_nothing_happens(tmp_path: Path) -> None:
    """An event comes at least every five seconds."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site, events(site) as told:
        first = next(told)
        begun = monotonic()
        second = next(told)
        assert monotonic() - begun < 8
        assert second["time"] > first["time"]


# --- lag --------------------------------------------------------------------------------------------------------------


def test_bytes_that_cannot_be_read_yet_are_lag(tmp_path: Path) -> None:
    """The beginning of a line is there and not read; it is the stream's lag, with the time it has waited."""
    with served_site(tmp_path, ENGINE + LINES, ALL) as site:
        site.add(items(1) + "<p><v>")
        read(site, 1)
        found = wait_until(lambda: _lagging(site, 6))
        assert found["partitions"] == [{"partition": "0", "lag": found["lag"]}]
        wait_until(lambda: now(site)["streams"][0]["lag"]["seconds"] > 1)
        assert site.get("/api/streams")["streams"][0]["lag"]["bytes"] == 6
        cause = late(site, "stream")
        assert (cause["name"], cause["numbers"]["bytes"]) == ("s", 6)
        site.add("2</v></p>\n")
        read(site, 2)
        wait_until(lambda: _lagging(site, 0))
        wait_until(lambda: now(site)["late"] == [])


def _lagging(site: ServedSite, size: int) -> Any:
    (stream,) = now(site)["streams"]
    return stream if stream["lag"]["bytes"] == size else None


def test_files_that_wait_are_lag_from_their_first_byte(tmp_path: Path) -> None:
    """Of several files those behind the one at work count, too, and a stream with updates likewise."""
    with served_site(tmp_path, IDLE + LINES, ALL) as site:
        read(site, 0)
        site.add(items(*range(100)), "in/a")
        site.add(items(*range(100)), "in/b")
        size = sum((tmp_path / "in" / each).stat().st_size for each in "ab")
        wait_until(lambda: _lagging(site, size))


def test_messages_of_a_topic_that_were_not_read_are_lag_in_offsets(broker: Broker, tmp_path: Path) -> None:
    """By partition, of all that lies behind what was read; a topic has no lag in bytes."""
    topic = broker.topic("lag", 2)
    broker.write(topic, [b"<p><v>1</v></p>"])
    toml = f'{IDLE}[streams.s]\nsource = "kafka"\nbrokers = "{broker.address}"\ntopic = "{topic}"\nformat = "lines"\n'
    with served_site(tmp_path, toml, ALL) as site:
        read(site, 1)
        broker.write(topic, [b"<p><v>2</v></p>"] * 3)
        broker.write(topic, [b"<p><v>2</v></p>"] * 7, 1)
        found = wait_until(lambda: stream if (stream := now(site)["streams"][0])["lag"]["offsets"] == 10 else None)
        partitions = {each["partition"]: each["lag"] for each in found["partitions"]}
        assert {name: (lag["bytes"], lag["offsets"]) for name, lag in partitions.items()} == {
            "0": (None, 3),
            "1": (None, 7),
        }
        assert late(site, "stream")["numbers"]["messages"] == 10


def test_what_was_pushed_and_not_read_is_lag(tmp_path: Path) -> None:
    """By the bytes that lie in the spool."""
    toml = f'{IDLE}[streams.s]\nsource = "http"\nformat = "lines"\n'
    with served_site(tmp_path, toml, ALL) as site:
        lines = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
        (address,) = (each["streams"]["s"] for each in lines if each["event"] == "listening")
        where = urlsplit(address)
        connection = HTTPConnection(where.hostname or "", where.port)
        connection.request("POST", where.path, items(1, 2).encode(), {"Content-Type": "application/xml"})
        assert connection.getresponse().status == 200
        connection.close()
        assert wait_until(lambda: _lagging(site, len(items(1, 2))))["lag"]["offsets"] is None


def test_seconds_are_the_age_of_items_where_they_have_the_time_of_the_clock(tmp_path: Path) -> None:
    """An item that was an hour old when it was read makes the stream an hour late, however long nothing comes."""
    toml = f'{ENGINE}{LINES}time = "at"\n'
    old = datetime.now(UTC) - timedelta(hours=1)
    with served_site(tmp_path, toml, {"all": 'for $p in stream("s")/root/p return $p'}) as site:
        site.add(f"<p><at>{old.isoformat()}</at></p>\n")
        read(site, 1)
        found = wait_until(lambda: now(site)["streams"][0]["lag"]["seconds"])
        assert 3_600 <= found < 3_700
        site.add(f"<p><at>{datetime.now(UTC).isoformat()}</at></p>\n")
        read(site, 2)
        wait_until(lambda: now(site)["streams"][0]["lag"]["seconds"] < 60)
        site.add("<p><at>2001-01-01T00:00:00Z</at></p>\n")
        read(site, 3)
        wait_until(lambda: now(site)["streams"][0]["lag"] == {"bytes": 0, "offsets": None, "seconds": 0.0})


# --- why it is late ---------------------------------------------------------------------------------------------------


def test_a_partition_for_which_another_waits_is_named(tmp_path: Path) -> None:
    """Of two partitions one is silent: the other's items wait for it, and go on when it brings something later."""
    (tmp_path / "b").mkdir()
    toml = ENGINE + '[streams.s]\nsource = "files"\npath = ["in", "b"]\nformat = "lines"\ntime = "t"\n'
    query = '<w>{ for $w in stream("s")/root/p |t diff 10| return <n>{ count($w) }</n> }</w>'
    ordered = '<o>{ for $p in stream("s")/root/p return $p/t }</o>'
    with served_site(tmp_path, toml, {"windows": query, "ordered": ordered}) as site:
        site.add("<p><t>0</t></p>\n", "b/a")
        site.add("".join(f"<p><t>{each}</t></p>\n" for each in range(1, 50)))
        read(site, 50)
        wait_until(lambda: late(site, "partition")["name"] == "s/1")  # each is read at a time of its own
        cause = late(site, "partition")
        assert "wait for 's/1'" in cause["message"]
        assert cause["numbers"]["waiting_items"] > 0
        site.add("<p><t>100</t></p>\n", "b/a")
        wait_until(lambda: all(each["name"] != "s/1" for each in now(site)["late"]))


@pytest.mark.mass
def test_a_topic_whose_brokers_do_not_answer_is_behind(tmp_path: Path) -> None:
    """Epochs go on without it; how many it has not got is told, and that a sink is late."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        brokers = f"127.0.0.1:{nobody.getsockname()[1]}"
        toml = ENGINE + LINES + f'[subscriptions.out]\ntext = "{_escaped(ALL["all"])}"\n'
        toml += f'sink = "kafka"\nbrokers = "{brokers}"\ntopic = "answers"\n'
        with served_site(tmp_path, toml) as site:
            for count in range(1, 5):
                site.add(items(count))
                read(site, count)
            cause = late(site, "sink")
            assert cause["name"] == "kafka"
            assert cause["numbers"]["epochs"] >= 2
            assert now(site)["sinks"] == [{"kind": "kafka", "count": 1, "epochs_behind": 4}]


def _escaped(text: str) -> str:
    return text.replace('"', '\\"')


@pytest.mark.mass
def test_a_query_by_the_law_is_blamed_where_epochs_are_slow(tmp_path: Path) -> None:
    """Columns cannot go to siblings; with thousands of items that takes long, and the reason is told."""
    query = '<r>{ for $p in stream("s")/root/p where empty($p/v/following-sibling::v) return $p/v }</r>'
    slow = {"siblings": query, **ALL}
    with served_site(tmp_path, ENGINE + LINES, slow) as site:
        site.add(items(*range(10_000)))
        read(site, 10_000)
        cause = late(site, "stream", "by the law")
        assert cause["name"] == "s"
        assert cause["message"].startswith("1 of 2 subscriptions to items of 's' are answered by the law")
        assert "sibling" in cause["message"]
        assert cause["numbers"] == {"by_law": 1, "in_columns": 1, "items": 10_000}


# --- rates ------------------------------------------------------------------------------------------------------------


def test_a_rate_is_what_came_in_the_window_by_its_length() -> None:
    """An epoch of 20 s with 2,000 items is 100 a second, and 60 s later nothing."""
    rates = SlidingRates(0.0)
    rates.add(1_000.0, 1_020.0, {"items": 2_000.0})
    assert abs(rates.now(1_020.0)["items"] - 2_000 / 40) < 1
    rates.add(1_020.0, 1_040.0, {"items": 2_000.0})
    assert abs(rates.now(1_040.0)["items"] - 100) < 3
    assert rates.now(1_101.0) == {}


def test_many_small_epochs_are_one_rate_and_bounded_memory() -> None:
    """A hundred epochs a second for two minutes: the rate is that of the last ten seconds."""
    rates = SlidingRates(0.0)
    for number in range(12_000):
        at = 1_000 + number / 100
        rates.add(at, at + 0.005, {"items": 10.0})
    found = rates.now(1_120.0)["items"]
    assert 950 < found < 1_050
    assert len(rates._seconds) <= 62
