"""Topics as streams of an engine: where reading begins, what messages hold, partitions that come later, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from anabranch import Engine, KafkaCluster, Topic
from anabranch.engine.handles import LiveSubscription
from anabranch.errors import StreamError, UsageError
from anabranch.stream.limits import Limits
from brokers import PATIENCE, Broker, started, stop

ALL = 'for $p in stream("s")/*/* return $p'
NUMBERS = 'for $o in stream("s") return $o.n'


def engine(folder: Path, *, once: bool = True, limits: Limits | None = None) -> Engine:
    return Engine(local=True, checkpoint=folder / "state", once=once, trigger_ms=20, limits=limits)


def read(folder: Path, topic: Topic, query: str = ALL, **declared: str | bool) -> str:
    """What a query answers over all that a topic holds now; goes on where the folder's last reader was."""
    with engine(folder) as at_work:
        at_work.stream("s", topic, **declared)  # type: ignore[arg-type]  # what is declared of a stream
        found = at_work.subscribe(query, "q")
        at_work.wait()
        return found.answer()


def set_aside(folder: Path) -> list[dict[str, object]]:
    """The dead letters so far."""
    with engine(folder) as closed:
        return [json.loads(each.to_json()) for each in closed.log.dead_letters()]


def admin(broker: Broker) -> AdminClient:
    """A client that must outlive what it is asked for."""
    return AdminClient({"bootstrap.servers": broker.address})


def add_partitions(broker: Broker, topic: str, count: int) -> None:
    """Let a topic have so many partitions; returns when it has."""
    asked = admin(broker)
    asked.create_partitions([NewPartitions(topic, count)])[topic].result(PATIENCE)
    until(lambda: len(asked.list_topics(topic).topics[topic].partitions) == count)


def until(true: object, seconds: float = PATIENCE) -> None:
    """Wait until something holds; a test fails where it never does."""
    assert callable(true)
    deadline = monotonic() + seconds
    while not true():
        assert monotonic() < deadline, "it did not come true"
        Event().wait(0.02)


def numbers(*values: int) -> list[bytes]:
    return [b'{"n": %d}' % each for each in values]


# --- where reading begins -------------------------------------------------------------------------------------


def test_reading_begins_where_it_is_told(broker: Broker, tmp_path: Path) -> None:
    """At the first message, behind the last, at offsets, or at the first message of a time or later."""
    topic = broker.topic()
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(4):
        producer.produce(topic, b'{"n": %d}' % number, timestamp=1_767_225_600_000 + number * 1_000)
    producer.flush(PATIENCE)
    found = {}
    for name, start in {
        "earliest": "earliest",
        "latest": "latest",
        "offsets": {0: 3},
        "time": "2026-01-01T00:00:01.500Z",
        "never": "2036-01-01T00:00:00",
    }.items():
        folder = tmp_path / name
        declared = Topic.of(broker.address, topic, start=start)  # type: ignore[arg-type]  # each is a start
        found[name] = [read(folder, declared, NUMBERS, format="json")]
        broker.write(topic, [b'{"n": 7}'])
        found[name].append(read(folder, declared, NUMBERS, format="json"))
    assert found == {
        "earliest": ["0\n1\n2\n3\n", "0\n1\n2\n3\n7\n"],
        "latest": ["", "7\n"],
        "offsets": ["3\n7\n7\n", "3\n7\n7\n7\n"],
        "time": ["2\n3\n7\n7\n7\n", "2\n3\n7\n7\n7\n7\n"],
        "never": ["", "7\n"],
    }


def test_what_is_read_is_not_read_again(broker: Broker, tmp_path: Path) -> None:
    """A later engine on the same checkpoint goes on behind the last message, also with another start."""
    topic = broker.topic()
    broker.write(topic, numbers(1, 2))
    assert read(tmp_path, Topic.of(broker.address, topic), NUMBERS, format="json") == "1\n2\n"
    broker.write(topic, numbers(3))
    assert read(tmp_path, Topic.of(broker.address, topic, start="latest"), NUMBERS, format="json") == "1\n2\n3\n"


# --- what messages hold ---------------------------------------------------------------------------------------


def test_a_message_is_one_item(broker: Broker, tmp_path: Path) -> None:
    """Line ends inside it, blanks around it, a byte order mark and an XML declaration with an encoding do no harm."""
    topic = broker.topic()
    broker.write(
        topic,
        [
            b"<p>\n  <a>1</a>\n</p>",
            b"\r\n <p>2</p>\n",
            b"\xef\xbb\xbf<p>3</p>",
            b"<?xml version='1.0' encoding='ISO-8859-1'?>\n<p>\xe9</p>",
            "<p>ü</p>".encode(),
        ],
    )
    assert read(tmp_path, Topic.of(broker.address, topic), format="xml") == (
        "<p>\n  <a>1</a>\n</p><p>2</p><p>3</p><p>é</p><p>ü</p>"
    )


def test_json_in_many_lines_is_one_item(broker: Broker, tmp_path: Path) -> None:
    """A record that is laid out prettily is one item; nothing is said of the format, and the first message tells."""
    topic = broker.topic()
    broker.write(topic, [b'{\n  "n": 1,\n  "a": [1,\n 2]\n}\n', b'{"n": 2}'])
    assert read(tmp_path, Topic.of(broker.address, topic), 'for $o in stream("s") return $o') == (
        '{"n": 1, "a": [1, 2]}\n{"n": 2}\n'
    )


def test_lines_of_a_message_are_items(broker: Broker, tmp_path: Path) -> None:
    """With `lines` each line is one, whatever stands behind the last; dead letters name the byte in the message."""
    topic = broker.topic()
    broker.write(topic, [b'{"n": 1}\n{"n": 2}', b'\n{"n": 3}\r\n\n{"n": \n{"n": 4}\n'])
    assert read(tmp_path, Topic.of(broker.address, topic), NUMBERS, format="lines") == "1\n2\n3\n4\n"
    (letter,) = set_aside(tmp_path)
    assert (letter["partition"], letter["offset"], letter["byte"]) == (f"{topic}/0", 1, 12)
    assert letter["raw"] == '{"n": '


def test_what_cannot_be_read_is_set_aside_with_its_offset(broker: Broker, tmp_path: Path) -> None:
    """Poison, nothing at all, a wide encoding, one that is not known, and more than an item may have; others go on."""
    topic = broker.topic(partitions=2)
    broker.write(topic, [b"<p>1</p>", b"\x00\x01poison", b"", b"<p/>", "<p/>".encode("utf-16")], 1)
    broker.write(topic, [b"<?xml version='1.0' encoding='x-odd'?><p/>", b"<p>" + b"x" * 2_000 + b"</p>", b"<p>2</p>"])
    small = Limits(item_bytes=1_000)
    with engine(tmp_path, limits=small) as at_work:
        at_work.stream("s", Topic.of(broker.address, topic, timestamps=False), format="xml")
        found = at_work.subscribe(ALL, "q")
        at_work.wait()
        assert found.answer() == "<p>2</p><p>1</p><p/>"
    assert [(each["partition"], each["offset"], each["reason"]) for each in set_aside(tmp_path)] == [
        (f"{topic}/0", 0, "the encoding 'x-odd' is not supported"),
        (f"{topic}/0", 1, "more than 1,000 bytes"),
        (f"{topic}/1", 4, "the encoding 'UTF-16' is not supported"),
        (f"{topic}/1", 1, "a control character (U+0000) at byte 0"),
        (f"{topic}/1", 2, "the message is empty"),
    ]


@pytest.mark.parametrize("declared", [{}, {"format": "json"}])
def test_the_latest_is_where_the_first_run_began(broker: Broker, tmp_path: Path, declared: dict[str, str]) -> None:
    """What comes while no run is at work belongs to the stream, though the first run has read nothing at all."""
    topic = broker.topic()
    latest = Topic.of(broker.address, topic, start="latest")
    broker.write(topic, numbers(1))
    assert read(tmp_path, latest, NUMBERS, **declared) == ""
    broker.write(topic, numbers(2))
    assert read(tmp_path, latest, NUMBERS, **declared) == "2\n"
    broker.write(topic, numbers(3))
    assert read(tmp_path, latest, NUMBERS, **declared) == "2\n3\n"


# --- partitions that come later -------------------------------------------------------------------------------


def test_new_partitions_are_taken_in_from_their_beginning(broker: Broker, tmp_path: Path) -> None:
    """They come while an engine is at work, and what stood in them before they were noticed is read, whatever the
    start; with a time they are merged with the others from there on.
    """
    topic = broker.topic()
    with engine(tmp_path, once=False) as at_work:
        at_work.stream("s", Topic.of(broker.address, topic, start="latest"), format="json", time="n")
        found = at_work.subscribe(NUMBERS, "q")
        at_work.start()
        until(lambda: at_work.log.manifests.epochs() or _begun(at_work))
        broker.write(topic, numbers(1, 2, 30))
        until(lambda: found.answer() == "1\n2\n30\n")
        add_partitions(broker, topic, 3)
        broker.write(topic, numbers(35, 50), 2)
        broker.write(topic, numbers(31, 40), 1)
        broker.write(topic, numbers(33, 60), 0)
        until(lambda: found.answer() == "1\n2\n30\n31\n33\n35\n40\n")
    assert read(tmp_path, Topic.of(broker.address, topic), NUMBERS, format="json", time="n") == found.answer()


def _begun(at_work: Engine) -> bool:
    """Whether it is settled where an engine begins to read."""
    order = at_work._trunk.checkpoint.gained("s")
    return order.exists() and b"topic" in order.read_bytes()


def test_partitions_that_were_promised(broker: Broker, tmp_path: Path) -> None:
    """A topic that has another number of them is refused by name, at once or when it grows."""
    topic = broker.topic()
    broker.write(topic, numbers(1))
    promised = Topic.of(broker.address, topic, partitions=1)
    assert read(tmp_path, promised, NUMBERS, format="json") == "1\n"
    add_partitions(broker, topic, 2)
    with pytest.raises(StreamError, match=f"the topic '{topic}' has 2 partitions, and 1 were promised"):
        read(tmp_path, promised, NUMBERS, format="json")


# --- errors ---------------------------------------------------------------------------------------------------


def test_messages_that_retention_has_removed(broker: Broker, tmp_path: Path) -> None:
    """They are lost before they were read: the error names the topic, the partition and the offsets, and stays."""
    topic = broker.topic(partitions=2)
    broker.write(topic, numbers(0, 1, 2), 1)
    declared = Topic.of(broker.address, topic, timestamps=False)
    assert read(tmp_path, declared, NUMBERS, format="json") == "0\n1\n2\n"
    broker.write(topic, numbers(3, 4, 5, 6), 1)
    asked = admin(broker)
    for each in asked.delete_records([TopicPartition(topic, 1, 5)]).values():
        each.result(PATIENCE)
    for _ in range(2):
        with pytest.raises(StreamError) as caught:
            read(tmp_path, declared, NUMBERS, format="json")
        assert caught.value.message == (
            f"the topic '{topic}', partition 1, has lost messages before they were read: offsets 3 to 4"
        )


def test_a_topic_that_was_made_anew(broker: Broker, tmp_path: Path) -> None:
    """Its offsets mean other messages: an error, also where it is longer than the old one was, and for good."""
    topic = broker.topic()
    broker.write(topic, numbers(1))
    declared = Topic.of(broker.address, topic)
    assert read(tmp_path, declared, NUMBERS, format="json") == "1\n"
    make_anew(broker, topic)
    broker.write(topic, numbers(5, 6, 7))
    for _ in range(2):
        with pytest.raises(StreamError, match=f"the topic '{topic}' was removed and made anew"):
            read(tmp_path, declared, NUMBERS, format="json")


def make_anew(broker: Broker, topic: str) -> None:
    """Remove a topic, and make one of the same name."""
    asked = admin(broker)
    asked.delete_topics([topic])[topic].result(PATIENCE)

    def made() -> bool:
        try:
            asked.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE)
        except Exception:  # it is still being removed
            return False
        return True

    until(made)


def test_a_topic_that_does_not_exist_yet(broker: Broker, tmp_path: Path) -> None:
    """It is waited for, by name, and read when it is there."""
    topic = f"{broker.topic()}-later"
    with engine(tmp_path, once=False) as at_work:
        at_work.stream("s", Topic.of(broker.address, topic), format="json")
        found = at_work.subscribe(NUMBERS, "q")
        at_work.start()
        wait = next(iter(until_waits(at_work)))
        assert wait == f"there is no topic '{topic}' at '{broker.address}'"
        asked = admin(broker)
        asked.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE)
        broker.write(topic, numbers(1))
        until(lambda: found.answer() == "1\n")


def until_waits(at_work: Engine) -> list[str]:
    """What an engine waits for, once it does."""
    found: list[str] = []

    def waits() -> bool:
        found[:] = [each.message for each in at_work._trunk.waits()]
        return bool(found)

    until(waits)
    return found


@contextmanager
def own_broker(folder: Path) -> Iterator[Broker]:
    """A broker that a test may kill."""
    found = started(folder)
    try:
        yield found
    finally:
        stop(folder)


@pytest.mark.spark
def test_a_broker_that_is_down(tmp_path: Path) -> None:
    """It is waited for, by name, before the first message and between others, and reading goes on when it is back."""
    with own_broker(tmp_path / "broker") as broker:
        topic = broker.topic()
        broker.kill()
        with engine(tmp_path, once=False) as at_work:
            at_work.stream("s", Topic.of(broker.address, topic), format="json")
            found = at_work.subscribe(NUMBERS, "q")
            at_work.start()
            assert until_waits(at_work) == [f"no broker of '{broker.address}' answers"]
            started(broker.folder)
            broker.write(topic, numbers(1))
            until(lambda: found.answer() == "1\n")
            broker.kill()
            assert until_waits(at_work) == [f"no broker of '{broker.address}' answers"]
            started(broker.folder)
            broker.write(topic, numbers(2))
            until(lambda: found.answer() == "1\n2\n")


@pytest.mark.spark
def test_an_epoch_that_is_begun_waits_for_its_broker(tmp_path: Path) -> None:
    """Where the broker goes away between the plan of an epoch and its reading, the epoch is read when it is back; an
    engine that is closed meanwhile does not wait.
    """
    with own_broker(tmp_path / "broker") as broker:
        topic = broker.topic()
        broker.write(topic, numbers(1, 2))
        declared = Topic.of(broker.address, topic)
        with engine(tmp_path, once=False) as at_work:
            at_work.stream("s", declared, format="json")
            at_work.subscribe(NUMBERS, "q")
            begin, run = Event(), at_work._trunk._stages.run
            at_work._trunk._stages.run = lambda *given: (broker.kill(), begin.set(), run(*given))[-1]  # type: ignore[method-assign,func-returns-value]
            at_work.start()
            assert begin.wait(PATIENCE)
        started(broker.folder)
        assert read(tmp_path, declared, NUMBERS, format="json") == "1\n2\n"


def test_what_cannot_be_declared(broker: Broker, tmp_path: Path) -> None:
    """Names, starts, formats and promises that cannot be, and a stream that was another one, are refused by name."""
    with pytest.raises(UsageError, match="'a/b' cannot be the name of a topic"):
        Topic.of(broker.address, "a/b")
    with pytest.raises(UsageError, match=r"'start' takes 'earliest', 'latest', a time such as .*, not 'soon'"):
        Topic.of(broker.address, "a", start="soon")
    with pytest.raises(UsageError, match="not '0 = -1'"):
        Topic.of(broker.address, "a", start={0: -1})
    with pytest.raises(UsageError, match="a topic has one partition at least"):
        Topic.of(broker.address, "a", partitions=0)
    topic, other = broker.topic(), broker.topic()
    broker.write(topic, numbers(1))
    with engine(tmp_path) as at_work, pytest.raises(UsageError, match="the format 'document' is unknown"):
        at_work.stream("s", Topic.of(broker.address, topic), format="document")
    assert read(tmp_path, Topic.of(broker.address, topic), NUMBERS, format="json") == "1\n"
    with pytest.raises(UsageError, match=f"the stream 's' came from the topic '{topic}' until now, not from the topic"):
        read(tmp_path, Topic.of(broker.address, other), NUMBERS, format="json")
    with pytest.raises(UsageError, match="the messages of the stream 's' were read another way until now"):
        read(tmp_path, Topic.of(broker.address, topic), NUMBERS, format="lines")


def test_settings_and_secrets(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings reach the client; what is secret stands in no file of the checkpoint."""
    monkeypatch.setenv("ORDERS_PASSWORD", "open sesame")
    topic = broker.topic()
    broker.write(topic, numbers(1))
    settings = {"security.protocol": "plaintext", "sasl.username": "ann", "sasl.password": "env:ORDERS_PASSWORD"}
    cluster = KafkaCluster.of(broker.address, settings)
    assert read(tmp_path, Topic.of(cluster, topic), NUMBERS, format="json") == "1\n"
    kept = [each for each in (tmp_path / "state").rglob("*") if each.is_file()]
    assert any(b"env:ORDERS_PASSWORD" in each.read_bytes() for each in kept)
    assert not any(b"open sesame" in each.read_bytes() for each in kept)


def test_no_message_yet_tells_the_format(broker: Broker, tmp_path: Path) -> None:
    """Where nothing is declared, an empty topic is waited for by name, and tombstones tell nothing."""
    topic = broker.topic()
    with engine(tmp_path, once=False) as at_work:
        at_work.stream("s", Topic.of(broker.address, topic))
        found: LiveSubscription = at_work.subscribe('for $p in stream("s")/*/* where $p/a return $p', "q")
        at_work.start()
        assert until_waits(at_work) == [f"the topic '{topic}' is empty"]
        broker.write(topic, [(b"k", None), b"<p><a>1</a></p>"])
        until(lambda: found.answer() == "<p><a>1</a></p>")
