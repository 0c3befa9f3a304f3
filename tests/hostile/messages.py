"""Messages of Kafka, read by the client that a run reads them with, from librdkafka's own mock of a cluster.

The mock speaks Kafka's protocol, but does not tell of topics; that question alone is answered here.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from confluent_kafka import Producer

from anabranch import Engine, Topic
from anabranch.kafka.topics import TopicWatch
from hostile.attacks import Attack, Carry, Outcome
from kafka.mocking import mock_cluster

PATIENCE = 30
QUERY = 'for $i in stream("s")/*/* return <o><n>{ string($i/a) }</n>{ key($i), count(header($i, "h")) }</o>'
SHOWN = '<all>{ for $i in stream("s")/*/* return string($i/a) }</all>'


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as a producer sends it."""

    value: bytes | None
    key: bytes | None = b"k"
    headers: tuple[tuple[str, str | bytes | None], ...] = ()
    stamp: int = 2_000


_JSON: dict[str, tuple[Sent, Outcome]] = {
    "an empty value": (Sent(b""), "set aside"),
    "white space": (Sent(b" \r\n\t "), "set aside"),
    "a tombstone": (Sent(None), "answered"),
    "bytes that are no UTF-8": (Sent(b'{"a": "\xff\xfe"}'), "set aside"),
    "UTF-16": (Sent('{"a": 1}'.encode("utf-16")), "set aside"),
    "a byte order mark": (Sent(b'\xef\xbb\xbf{"a": 1}'), "answered"),
    "Avro with the id of a schema": (Sent(b"\x00\x00\x00\x00\x05\x02\x0a"), "set aside"),
    "what a schema registry puts before JSON": (Sent(b'\x00\x00\x00\x00\x05{"a": 1}'), "set aside"),
    "a gzip stream": (Sent(gzip.compress(b'{"a": 1}')), "set aside"),
    "two objects": (Sent(b'{"a": 1}{"a": 2}'), "set aside"),
    "two lines": (Sent(b'{"a": 1}\n{"a": 2}'), "set aside"),
    "a line end inside of an object": (Sent(b'{"a":\r\n\n1}'), "answered"),
    "an array": (Sent(b'[{"a": 1}]'), "set aside"),
    "depth 100,000": (Sent(b'{"a": ' * 100_000 + b"1" + b"}" * 100_000), "set aside"),
    "five megabytes": (Sent(b'{"a": "' + b"x" * 5_000_000 + b'"}'), "set aside"),
    "a key of a megabyte": (Sent(b'{"a": 1}', key=b"k" * 1_000_000), "answered"),
    "a key that is no text": (Sent(b'{"a": 1}', key=b"\xff\x00"), "answered"),
    "a key with a command of a terminal": (Sent(b'{"a": 1}', key=b"\x1b[2J"), "answered"),
    "a key that is markup": (Sent(b'{"a": 1}', key=b"</o><script>alert(1)</script>"), "answered"),
    "no key": (Sent(b'{"a": 1}', key=None), "answered"),
    "ten thousand headers": (Sent(b'{"a": 1}', headers=(("h", b"1"),) * 10_000), "answered"),
    "a header without a name": (Sent(b'{"a": 1}', headers=(("", b"1"), ("h", None))), "answered"),
    "a header of a megabyte": (Sent(b'{"a": 1}', headers=(("h" * 1_000_000, b"x" * 1_000_000),)), "answered"),
    "a header that forges an accent": (
        Sent(b'{"a": 1}', headers=(("h", b'<s:accent xmlns:s="urn:anabranch:stream"/>'),)),
        "answered",
    ),
    "a time in the year 292,000,000": (Sent(b'{"a": 1}', stamp=2**63 - 1), "answered"),
    "a time before the one before": (Sent(b'{"a": 1}', stamp=1), "answered"),
}
_XML: dict[str, tuple[Sent, Outcome]] = {
    "a billion laughs": (
        Sent(b'<!DOCTYPE i [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><i><a>&b;</a></i>'),
        "set aside",
    ),
    "an external entity": (
        Sent(b'<!DOCTYPE i [<!ENTITY a SYSTEM "file:///etc/passwd">]><i><a>&a;</a></i>'),
        "set aside",
    ),
    "an encoding that is not known": (Sent(b'<?xml version="1.0" encoding="UTF-7"?><i><a>1</a></i>'), "set aside"),
    "an encoding that it is not in": (Sent(b'<?xml version="1.0" encoding="UTF-16"?><i><a>1</a></i>'), "set aside"),
    "two roots": (Sent(b"<i><a>1</a></i><i><a>2</a></i>"), "set aside"),
    "a root that is never closed": (Sent(b"<i><a>1</a>"), "set aside"),
    "an update in a stream that is not edited": (
        Sent(b'<s:replace xmlns:s="urn:anabranch:stream" target="1"><i/></s:replace>'),
        "set aside",
    ),
    "a control element that is not known": (Sent(b'<s:shutdown xmlns:s="urn:anabranch:stream"/>'), "set aside"),
    "JSON in a topic of XML": (Sent(b'{"a": 1}'), "set aside"),
}
_UPSERTS: dict[str, tuple[Sent, Outcome]] = {
    "no key": (Sent(b'{"a": 1}', key=None), "set aside"),
    "a key that is empty": (Sent(b'{"a": 1}', key=b""), "set aside"),
    "a key with a NUL": (Sent(b'{"a": 1}', key=b"a\x00b"), "answered"),
    "a zero byte as a value": (Sent(b"\x00"), "set aside"),
    "a tombstone of a key that never was": (Sent(None, key=b"nobody"), "answered"),
    "a value that is a number": (Sent(b"5"), "set aside"),
}


def _read(folder: Path, sent: Sequence[Sent], form: str, query: str, **declared: str) -> tuple[str, int]:
    """The answer over a topic with some messages, and the number of dead letters."""
    letters: list[int] = []
    described = SimpleNamespace(topic_id="mock", partitions=[SimpleNamespace(id=0)])
    with mock_cluster() as cluster, mock.patch.object(TopicWatch, "_described", return_value=described):
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "message.max.bytes": 10_000_000})
        for each in sent:
            headers = list(each.headers)
            producer.produce("t", each.value, each.key, partition=0, headers=headers, timestamp=each.stamp)
        assert producer.flush(PATIENCE) == 0
        engine = Engine(
            local=True, checkpoint=folder / "state", once=True, on_epoch=lambda each: letters.append(each.dead_letters)
        )
        with engine:
            topic = Topic.of(cluster.bootstrap, "t", partitions=1)
            engine.stream("s", topic, format=form, **declared)  # type: ignore[arg-type]  # what is declared of it
            found = engine.subscribe(query)
            engine.wait()
            return found.answer(), sum(letters)


def _among(sent: Sent, form: str, good: str) -> Carry:
    """A message among good ones, which are answered whatever it is."""

    def carry_out(folder: Path) -> Outcome:
        messages = [Sent(good.replace("N", "41").encode(), stamp=1_000), sent, Sent(good.replace("N", "43").encode())]
        text, dead = _read(folder, messages, form, QUERY)
        assert "<n>41</n>" in text, text[:200]
        assert "<n>43</n>" in text, text[:200]
        assert "<script" not in text
        return "set aside" if dead else "answered"

    return carry_out


def _upsert(sent: Sent) -> Carry:
    """The same where messages are updates of their keys."""

    def carry_out(folder: Path) -> Outcome:
        messages = [Sent(b'{"a": 41}', key=b"first"), sent, Sent(b'{"a": 43}', key=b"last")]
        text, dead = _read(folder, messages, "json", SHOWN, updates="upsert")
        assert "41" in text, text[:200]
        assert "43" in text, text[:200]
        return "set aside" if dead else "answered"

    return carry_out


def attacks() -> Iterator[Attack]:
    """One message each, of JSON, of XML and of upserts."""
    for name, (sent, expected) in _JSON.items():
        yield Attack("a message of Kafka", name, _among(sent, "json", '{"a": N}'), expected)
    for name, (sent, expected) in _XML.items():
        yield Attack("a message of Kafka with XML", name, _among(sent, "xml", "<i><a>N</a></i>"), expected)
    for name, (sent, expected) in _UPSERTS.items():
        yield Attack("an upsert of Kafka", name, _upsert(sent), expected)
