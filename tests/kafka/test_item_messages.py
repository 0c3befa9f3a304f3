"""Keys, headers and tombstones of messages, as queries see them (LAWS 1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from anabranch import Engine, Topic
from brokers import PATIENCE, Broker
from kafka.producing import KEPT

Sent = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""A message: its key, its value and its headers."""


def sent(broker: Broker, *messages: Sent) -> Topic:
    """A topic with some messages, a second from one another."""
    topic = broker.topic("messages", 1, **KEPT)
    producer = Producer({"bootstrap.servers": broker.address})
    for number, (key, value, headers) in enumerate(messages):
        producer.produce(topic, value, key, headers=list(headers), timestamp=1_000 * (number + 1))
    assert producer.flush(PATIENCE) == 0
    return Topic.of(broker.address, topic)


def answered(folder: Path, topic: Topic, *queries: str, epoch_bytes: int = 1 << 20, **declared: str) -> list[str]:
    """What queries answer over a topic, in epochs of a size."""
    with Engine(local=True, checkpoint=folder, once=True, epoch_bytes=epoch_bytes) as engine:
        engine.stream("s", topic, **declared)  # type: ignore[arg-type]  # what is declared of a stream
        found = [engine.subscribe(query) for query in queries]
        engine.wait()
        return [each.answer() for each in found]


JOIN = """for $x in stream("s")/*/p|count 2| for $y in stream("s")/*/p|count 2| where %s = %s
          return <j>{ $x/n/text(), $y/n/text() }</j>"""
ITEMS: tuple[Sent, ...] = (
    (b"a", b"<p><n>1</n></p>", [("kind", b"new"), ("by", b"ann"), ("kind", b"odd")]),
    (None, b"<p><n>2</n></p>", []),
    (b"\x00\x00\x00\x05", b"<p><n>3</n></p>", [("kind", b"\xff")]),
    ("ü".encode(), b"<p><n>4</n></p>", [("kind", None)]),
)


@pytest.mark.parametrize("epoch_bytes", [1, 1 << 20])
def test_keys_and_headers(broker: Broker, tmp_path: Path, epoch_bytes: int) -> None:
    """Of the item and of nodes in it; none is nothing, other bytes are hexadecimal digits; no copy shows them."""
    found = answered(
        tmp_path,
        sent(broker, *ITEMS),
        'for $p in stream("s")/*/p return <k>{ key($p) }</k>',
        'for $p in stream("s")/*/p return <k>{ key($p/n/text()), header($p/n, "kind") }</k>',
        'for $p in stream("s")/*/p where key($p) = "a" or header($p, "kind") = "FF" return $p',
        'for $p in stream("s")/*/p[key() = "ü"] return <c>{ $p }</c>',
        'for $p in stream("s")/*/p let $c := <c>{ $p }</c> return <n>{ count(key($c)), key($c/p) }</n>',
        epoch_bytes=epoch_bytes,
        format="xml",
    )
    assert found == [
        "<k>a</k><k/><k>00000005</k><k>ü</k>",
        "<k>a new odd</k><k/><k>00000005 FF</k><k>ü</k>",
        "<p><n>1</n></p><p><n>3</n></p>",
        "<c><p><n>4</n></p></c>",
        "<n>0 a</n><n>0</n><n>0 00000005</n><n>0 ü</n>",
    ]


@pytest.mark.parametrize("epoch_bytes", [1, 1 << 20])
@pytest.mark.parametrize("time", [None, "n"])
def test_they_stay_with_what_is_kept(broker: Broker, tmp_path: Path, epoch_bytes: int, time: str | None) -> None:
    """In windows, joins, groups, displays and looks at the past, over epochs of one message and of all of them."""
    values = ((b"a", 1), (b"b", 2), (b"a", 3), (b"b", 14), (b"c", 25))
    item = b"<p><k>%b</k><n>%d</n></p>"
    topic = sent(broker, *((key, item % (key, n), [("h", key.upper())]) for key, n in values))
    found = answered(
        tmp_path,
        topic,
        'for $w in stream("s")/*/p|count 2| return <w>{ for $p in $w return key($p) }</w>',
        'for $w in stream("s")/*/p|n diff 10| for $p in $w group by $k := key($p) return <g>{ $k, sum($p/n) }</g>',
        JOIN % ("key($x)", "key($y)"),
        JOIN % ("$x/k", "$y/k"),
        'for $p in stream("s")/*/p let $last := stream("s")//p#1 return <l>{ key($p), key($last) }</l>',
        epoch_bytes=epoch_bytes,
        format="xml",
        **({} if time is None else {"time": time}),
    )
    *others, by_key, by_value, recalled = found
    assert by_key == by_value != ""
    assert [*others, recalled] == [
        "<w>a b</w><w>a b</w>",
        "<g>a 4</g><g>b 2</g><g>b 14</g>",
        "<l>a</l><l>b a</l><l>a b</l><l>b a</l><l>c b</l>",
    ]
    (shown,) = answered(
        tmp_path / "display",
        topic,
        'for $p in stream("s")/*/p order by header($p, "h") descending, $p/n return <o>{ key($p), $p/n/text() }</o>',
        epoch_bytes=epoch_bytes,
        format="xml",
    )
    assert shown == "<o>c25</o><o>b2</o><o>b14</o><o>a1</o><o>a3</o>"


def test_lines_have_the_key_of_their_message(broker: Broker, tmp_path: Path) -> None:
    """All of them."""
    topic = sent(broker, (b"a", b'{"n": 1}\n{"n": 2}\n', [("h", b"x")]), (None, b'{"n": 3}', []))
    (found,) = answered(
        tmp_path, topic, 'for $o in stream("s") return [key($o), $o.n, header($o, "h")]', format="lines"
    )
    assert found == '["a", 1, "x"]\n[null, 3, null]\n'.replace('"x"]\n', '"x"]\n["a", 2, "x"]\n')


def test_tombstones_are_items_without_content(broker: Broker, tmp_path: Path) -> None:
    """With a key that can be asked for, below the name that the stream gives its items; lines have none."""
    messages: tuple[Sent, ...] = ((b"a", b"<p>1</p>", []), (b"a", None, []), (b"b", None, [("why", b"gone")]))
    query = 'for $p in stream("s")/*/p return <o>{ key($p), header($p, "why"), $p/node() }</o>'
    topic = sent(broker, *messages)
    assert answered(tmp_path / "xml", topic, query, format="xml", item="p") == ["<o>a1</o><o>a</o><o>b gone</o>"]
    (found,) = answered(
        tmp_path / "json",
        sent(broker, (b"a", b'{"n": 1}', []), (b"a", None, [])),
        'for $o in stream("s") return { "key": key($o), "item": $o, "gone": empty($o/*) }',
        format="json",
    )
    assert found == '{"key": "a", "item": {"n": 1}, "gone": false}\n{"key": "a", "item": {}, "gone": true}\n'
    lines = sent(broker, (b"a", None, []), (b"b", b'{"n": 2}', []))
    assert answered(tmp_path / "lines", lines, 'for $o in stream("s") return $o.n', format="lines") == ["2\n"]


def test_accents_speak_of_no_key(broker: Broker, tmp_path: Path) -> None:
    """A query that asks for keys goes on where every path of its items is altered or dropped; accents are messages."""
    accent = b'<s:accent xmlns:s="urn:anabranch:stream"><s:%s/></s:accent>'
    topic = sent(
        broker,
        (b"a", b"<p><n>1</n><m>1</m></p>", []),
        (None, accent % b'alter path="n" by=". * 2"', []),
        (None, accent % b'drop path="m"', []),
        (b"b", b"<p><n>4</n></p>", []),
    )
    (found,) = answered(
        tmp_path,
        topic,
        'for $p in stream("s")/*/p where key($p) != "c" return <o k="{ key($p) }">{ $p/n }</o>',
        format="xml",
    )
    assert found == (
        '<o k="a"><n>1</n></o><s:accent xmlns:s="urn:anabranch:stream"><s:alter path="n" by=". * 2"/></s:accent>'
        '<o k="b"><n>4</n></o>'
    )


def test_files_have_none(tmp_path: Path) -> None:
    """An item that came in no message has no key and no headers; what is no node is refused."""
    (tmp_path / "in").write_text("<r><p>1</p></r>")
    with Engine(local=True, once=True) as engine:
        engine.stream("s", tmp_path / "in", format="document")
        found = engine.subscribe('for $p in stream("s")/r/p return <k>{ count(key($p)), count(header($p, "a")) }</k>')
        wrong = engine.subscribe('for $p in stream("s")/r/p return <k>{ key(string($p)) }</k>', "wrong")
        engine.wait()
        assert (found.answer(), wrong.answer()) == ("<k>0 0</k>", "")
        (letter,) = engine.log.dead_letters()
        assert (letter.code, letter.subscription) == ("XPTY0004", "wrong")
