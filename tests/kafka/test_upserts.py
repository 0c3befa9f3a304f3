"""Keyed and compacted topics as streams of upserts (LAWS 5.9), also in Debezium's envelope."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from anabranch import Engine, Topic
from anabranch.errors import UsageError
from anabranch.stream.reading.source import NO_PATH, Source
from anabranch.stream.reading.topic import message_format, upserted
from brokers import Broker
from mass import Mass
from spark.bare import BareTrunk

QUERIES = {
    "all": 'for $o in stream("s") return { "k": $o.k, "v": $o.v }',
    "keys": 'for $o in stream("s") where $o.v > 4 return key($o)',
    "sum": '<t>{ sum(stream("s")/root/item/v), count(stream("s")/root/item) }</t>',
    "before": 'for $o in stream("s") return { "is": $o.v, "was": array { for $p in $o#1 return $p.v } }',
}


def answered(folder: Path, topic: Topic, query: str, envelope: str | None = None) -> tuple[str, list[tuple[int, str]]]:
    """What is shown of a topic of upserts, and what was set aside: offsets and reasons."""
    with Engine(local=True, checkpoint=folder, once=True) as engine:
        engine.stream("s", topic, format="json", updates="upsert", envelope=envelope)
        found = engine.subscribe(query)
        engine.wait()
        return found.answer(), sorted((each.place.offset, each.reason) for each in engine.log.dead_letters())


def test_values_replace_and_tombstones_delete(broker: Broker, tmp_path: Path) -> None:
    """A key's value stands where it first came; a tombstone of a key that is not there is nothing; keys can be asked
    for; a message without a key is set aside, unless it is a control element.
    """
    topic = broker.topic()
    broker.write(
        topic,
        [
            (b"a", b'{"v": 1}'),
            (b"b", b'{"v": 2.0}'),
            (b"c", None),
            (b"a", b'{"v": 3}'),
            b'{"v": 9}',
            b'{"$punctuation": {"at": 4000000000}}',
            (b"\x00\x01", b'{"v": 4}'),
            (b"b", None),
            (b"b", b'{"v": [5]}'),
            (b"d", b"poison"),
            (b"", b'{"v": 9}'),
            b'{"v": "$at"}',
            (b"a", b"\0"),
            (None, None),
        ],
    )
    found = answered(tmp_path, Topic.of(broker.address, topic), 'for $o in stream("s") return [key($o), $o.v]')
    assert found == (
        '["a", 3]\n["0001", 4]\n["b", [5]]\n',
        [
            (4, "a message without a key in a stream of upserts"),
            (9, "not JSON: expecting value at character 1"),
            (10, "a message without a key in a stream of upserts"),
            (11, "a message without a key in a stream of upserts"),
            (12, "the message is a zero byte"),
            (13, "a message without a key in a stream of upserts"),
        ],
    )


def test_case_93(broker: Broker, tmp_path: Path) -> None:
    """A key's value comes, goes and comes again; without upserts, each message is an item with its key."""
    topic = broker.topic()
    broker.write(topic, [(b"k", b"<p>1</p>"), (b"k", None), (b"k", b"<p>2</p>")])
    asked = 'for $p in stream("s")/root/* return <o k="{ key($p) }">{ name($p), $p/text() }</o>'
    found: list[str] = []
    for name, kind in ("upserts", "upsert"), ("items", False):
        with Engine(local=True, checkpoint=tmp_path / name, once=True) as engine:
            engine.stream("s", Topic.of(broker.address, topic), format="xml", updates=kind)  # type: ignore[arg-type]
            answer = engine.subscribe(asked)
            engine.wait()
            found.append(answer.answer())
    assert found == ['<o k="k">p2</o>', '<o k="k">p1</o><o k="k">item</o><o k="k">p2</o>']


def test_debezium(broker: Broker, tmp_path: Path) -> None:
    """Rows as they are after each change, with and without a schema around them; a deletion has a tombstone behind it,
    and what is no row, as a truncation, is set aside.
    """
    topic = broker.topic()

    def change(key: int, before: object, after: object, op: str, *, schema: bool) -> tuple[bytes, bytes]:
        value: object = {"before": before, "after": after, "op": op, "source": {"db": "shop"}, "ts_ms": 1}
        if schema:
            value = {"schema": {"type": "struct"}, "payload": value}
        return b'{"id": %d}' % key, json.dumps(value).replace('"1.50"', "1.50").encode()

    broker.write(
        topic,
        [
            change(1, None, {"id": 1, "n": "1.50"}, "r", schema=True),
            change(2, None, {"id": 2, "n": None, "tags": ["a", "b"]}, "c", schema=False),
            change(1, {"id": 1}, {"id": 1, "n": 7}, "u", schema=True),
            change(3, None, {"id": 3, "n": 3}, "c", schema=False),
            change(3, {"id": 3, "n": 3}, None, "d", schema=True),
            (b'{"id": 3}', None),
            (None, change(2, None, None, "t", schema=False)[1]),
            (b'{"id": 2}', b'{"id": 2}'),
            (b'{"id": 4}', b"[]"),
            change(4, None, None, "u", schema=True),
            change(4, None, {"id": 4}, "m", schema=True),
            (None, change(4, None, {"id": 4}, "c", schema=True)[1]),
            (b'{"id": 4}', b'{"after": {"id": "\\ud800"}, "op": "c"}'),
            b'{"$punctuation": {"at": 4000000000}}',
        ],
    )
    found = answered(tmp_path, Topic.of(broker.address, topic), 'for $o in stream("s") return $o', "debezium")
    assert found == (
        '{"id": 1, "n": 7}\n{"id": 2, "n": null, "tags": ["a", "b"]}\n',
        [
            (6, "the table was truncated, which no upsert can say"),
            (7, "no envelope of Debezium: it has no 'op'"),
            (8, "no envelope of Debezium: it has no 'op'"),
            (9, "no envelope of Debezium: what the row is after it was written is no object"),
            (10, 'no upsert: the operation is "m"'),
            (11, "a message without a key in a stream of upserts"),
            (12, "half of a surrogate pair is no character"),
        ],
    )
    (first,) = answered(
        tmp_path / "was", Topic.of(broker.address, topic), 'for $o in stream("s")[id = 1]#1 return $o.n', "debezium"
    )[:1]
    assert first == "1.50\n"


def test_upserts_against_a_table(broker: Broker, tmp_path: Path, mass: Mass) -> None:
    """Random keys in one partition or several, in epochs of chance, of which some are run twice, and in runs that go
    on where others ended: each partition shows what a table of its keys holds.
    """
    for number in mass.cases(10):
        random = Random(f"upserts {number}")
        count = random.choice((1, 1, 3))
        topic = broker.topic("upserts", count)
        tables: list[dict[str, int]] = [{} for _ in range(count)]
        known, form = message_format(Topic.of(broker.address, topic, timestamps=count > 1), "json")
        source = Source("s", NO_PATH, form, updates=True, topic=upserted(known, None, form))
        for _ in range(1 if count > 1 else 3):  # another run goes on where the last one was ended
            for partition, table in enumerate(tables):
                broker.write(topic, messages(random, table), partition)
            trunk = BareTrunk(tmp_path / str(number), [source], random, finite=count > 1)
            trunk.resume()
            trunk.run(QUERIES, (1, 20_000, 1 << 20), (1, 2, 5))
        values = [value for table in tables for value in table.values()]
        assert trunk.answer("sum") == f"<t>{sum(values)} {len(values)}</t>", number
        rows = [f'{{"k": "{key}", "v": {value}}}' for table in tables for key, value in table.items()]
        keys = [key for table in tables for key, value in table.items() if value > 4]
        if count == 1:
            assert trunk.answer("all").splitlines() == rows, number
            assert trunk.answer("keys").split() == keys, number
        assert sorted(trunk.answer("all").splitlines()) == sorted(rows), number
        assert sorted(trunk.answer("keys").split()) == sorted(keys), number


def messages(random: Random, table: dict[str, int]) -> list[bytes | tuple[bytes | None, bytes | None]]:
    """Some messages, which a table of the latest values is changed by."""
    found: list[bytes | tuple[bytes | None, bytes | None]] = []
    for _ in range(random.choice((10, 120))):
        key, value = random.choice("abcdefgh"), random.randint(0, 9)
        if random.random() < 0.3:
            found.append((key.encode(), None))
            table.pop(key, None)
        else:
            found.append((key.encode(), b'{"k": "%b", "v": %d}' % (key.encode(), value)))
            table[key] = value
    return found


@pytest.mark.parametrize(
    ("form", "updates", "envelope", "message"),
    [
        ("lines", "upsert", None, "messages that hold lines cannot be upserts"),
        ("json", "upsert", "avro", "the envelope 'avro' is unknown"),
        ("xml", "upsert", "debezium", "Debezium's envelope is JSON"),
        ("json", True, "debezium", "an 'envelope' needs updates='upsert'"),
    ],
)
def test_what_cannot_be_upserts(tmp_path: Path, form: str, updates: bool, envelope: str | None, message: str) -> None:
    """It is refused by name when the stream is registered."""
    with Engine(local=True) as engine, pytest.raises(UsageError, match=message):
        engine.stream("s", Topic.of("127.0.0.1:1", "t"), format=form, updates=updates, envelope=envelope)
    (tmp_path / "in").touch()
    with Engine(local=True) as engine, pytest.raises(UsageError, match="only a topic can be a stream of upserts"):
        engine.stream("s", tmp_path / "in", updates="upsert")
