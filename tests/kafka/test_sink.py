"""Answers in topics of a real broker: every result once, in order, whoever joins, leaves, waits or fails."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from threading import active_count
from time import monotonic, sleep

import pytest
from confluent_kafka.admin import AdminClient

from anabranch import Kafka, KafkaCluster
from anabranch.algebra.display.replay import Replay
from anabranch.errors import StateError, UsageError
from anabranch.kafka.faults import KafkaFault
from anabranch.spark.checkpoint import retention
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.sinks.topics import delivery, flow
from anabranch.spark.sinks.topics.record import identity_of
from anabranch.stream.reading.topic import Topic
from brokers import PATIENCE, Broker, started, stop
from kafka.writing import ALL, COUNT, ODD, Writing
from mass import Mass


@pytest.fixture
def writing(broker: Broker, tmp_path: Path) -> Writing:
    return Writing(tmp_path, broker)


def group_of(writing: Writing) -> str:
    return identity_of(Checkpoint.open(writing.folder / "state"))


def forget(writing: Writing) -> None:
    """Let the broker forget how far the site is, as it does after a week."""
    admin, group = AdminClient({"bootstrap.servers": writing.broker.address}), group_of(writing)
    admin.delete_consumer_groups([group])[group].result()


# --- every result once ------------------------------------------------------------------------------------------------


def test_each_result_is_a_message_once(writing: Writing) -> None:
    """Over three runs a topic has the results that the reference gives, in order, and nothing around them."""
    topic = writing.topic()
    queries = {"all": (ALL, writing.sink(topic))}
    for count in (12, 0, 7):
        writing.grow(count)
        writing.run(queries)
    assert writing.values(topic) == writing.law(ALL)
    assert len(writing.law(ALL)) == 19


def test_several_subscriptions_write_to_one_topic(writing: Writing) -> None:
    """Each in its own order; the header says whose a message is, and of which epoch."""
    topic = writing.topic()
    writing.grow(12)
    writing.run({"all": (ALL, writing.sink(topic)), "odd": (ODD, writing.sink(topic))})
    found: dict[str, list[str]] = {}
    epochs: list[int] = []
    for each in writing.broker.read(topic):
        headers = dict(each.headers)
        found.setdefault(headers["subscription"].decode(), []).append((each.value or b"").decode())
        epochs.append(int(headers["epoch"]))
    assert found == {"all": writing.law(ALL), "odd": writing.law(ODD)}
    assert epochs == sorted(epochs)
    assert len(set(epochs)) > 1


def test_keys_spread_messages_over_partitions(writing: Writing) -> None:
    """Messages of one key are in one partition, in order; all are there."""
    topic = writing.topic(partitions=3)
    writing.grow(30)
    query = '<all>{ for $p in stream("s")/root/p return <n k="{ $p mod 4 }">{ $p/text() }</n> }</all>'
    writing.run({"all": (query, writing.sink(topic, key="@k"))})
    found = writing.broker.read(topic)
    by_key = {key: [each for each in found if each.key == key] for key in (b"0", b"1", b"2", b"3")}
    for key, messages in by_key.items():
        assert len({each.partition for each in messages}) == 1
        assert [each.value for each in messages] == [
            f'<n k="{key.decode()}">{number}</n>'.encode() for number in range(int(key), 30, 4)
        ]
    assert len({each.partition for each in found}) > 1


def test_a_display_is_told_in_updates(writing: Writing) -> None:
    """Its update stream, element by element; replayed, it shows the answer."""
    topic = writing.topic()
    for _ in range(2):
        writing.grow(6)
        writing.run({"count": (COUNT, writing.sink(topic, changes="updates"))})
    replay = Replay()
    shown = [replay.text for each in writing.values(topic) for _ in replay.feed(each)]
    assert shown == [f"<count>{number}</count>" for number in range(1, 13)]


def test_a_display_is_told_in_upserts(writing: Writing) -> None:
    """The newest message of each key is what the display shows, over restarts; what is gone has a tombstone."""
    topic = writing.topic()
    query = """<best>{ (for $p in stream("s")/root/p group by $k := $p mod 4 let $n := sum($p)
        order by $n descending return <g k="{ $k }">{ $n }</g>)[position() <= 2] }</best>"""
    for count in (5, 5, 1):
        writing.grow(count)
        writing.run({"best": (query, writing.sink(topic, key="@k", changes="upserts"))})
    table: dict[bytes | None, bytes] = {}
    gone = 0
    for each in writing.broker.read(topic):
        if each.value is None:
            gone += 1
            del table[each.key]  # nothing is taken out that is not there
        else:
            assert table.get(each.key) != each.value  # nothing is told twice
            table[each.key] = each.value
    assert sorted(table.values()) == sorted(each.encode() for each in writing.law(query))
    assert gone > 0


# --- sinks come and go ------------------------------------------------------------------------------------------------


def test_a_sink_that_is_added_later_gets_all(writing: Writing) -> None:
    """Also into a topic that others write to; they go on, and nobody gets anything twice."""
    topic = writing.topic()
    sink = writing.sink(topic)
    for queries in ({"odd": (ODD, sink), "all": (ALL, None)}, {"odd": (ODD, sink), "all": (ALL, sink)}):
        writing.grow(12)
        writing.run(queries)
    found = writing.values(topic)
    assert [each for each in found if each.startswith("<n>")] == writing.law(ALL)
    assert [each for each in found if each.startswith("<odd>")] == writing.law(ODD)


def test_a_sink_that_was_taken_away_goes_on_where_it_was(writing: Writing) -> None:
    """Others have written to the topic meanwhile; what it missed comes first."""
    topic = writing.topic()
    both = {"odd": (ODD, writing.sink(topic)), "all": (ALL, writing.sink(topic))}
    for queries in (both, {**both, "all": (ALL, None)}, both, both):
        writing.grow(12)
        writing.run(queries)
    found = writing.values(topic)
    assert [each for each in found if each.startswith("<n>")] == writing.law(ALL)
    assert [each for each in found if each.startswith("<odd>")] == writing.law(ODD)


def test_sinks_change_while_an_engine_runs(writing: Writing) -> None:
    """A second topic gets the answer from its beginning, and a third when the first is cancelled."""
    first, second, third = (writing.topic() for _ in range(3))
    writing.grow(12)
    with writing.engine({"all": (ALL, writing.sink(first))}, once=False) as engine:
        engine.start()
        assert engine.trunk.beyond(0)
        odd = engine.subscribe(ODD, "odd", sink=writing.sink(second))
        writing.grow(12)
        engine.trunk.beyond(sys.maxsize, lambda: "<odd>23</odd>" in odd.answer())
    assert "".join(writing.values(second)) == odd.answer().removeprefix("<odd>").removesuffix("</odd>")
    writing.run({"all": (ALL, writing.sink(third))})
    assert writing.values(third) == writing.law(ALL)
    front = writing.values(first)
    assert front == writing.law(ALL)[: len(front)]


def test_a_changed_query_goes_on_in_its_topic(writing: Writing) -> None:
    """The answer of the new query follows that of the old one."""
    topic = writing.topic()
    writing.grow(6)
    writing.run({"q": (ALL, writing.sink(topic))})
    before = writing.law(ALL)
    writing.grow(6)
    writing.run({"q": (ODD, writing.sink(topic))})
    assert writing.values(topic) == [*before, *(f"<odd>{number}</odd>" for number in (7, 9, 11))]


# --- brokers that fail ------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_broker_that_is_down_is_waited_for(tmp_path: Path) -> None:
    """Epochs go on and the log says what is waited for; when it is back, all is written, once."""
    own = started(tmp_path / "broker")
    try:
        (tmp_path / "site").mkdir()
        writing = Writing(tmp_path / "site", own)
        topic = writing.topic()
        queries = {"all": (ALL, writing.sink(topic))}
        writing.grow(12)
        writing.run(queries)
        own.kill()
        writing.grow(12)
        with writing.engine(queries, once=False) as engine:
            engine.start()
            engine.trunk.beyond(sys.maxsize, lambda: bool(writing.warnings))
            before = engine.trunk.last
            writing.grow(12)
            assert engine.trunk.beyond(before + 1)
        assert writing.warnings[0].startswith(f"waiting for Kafka at '{own.address}': ")
        assert writing.warnings[-1] == f"answers for Kafka at '{own.address}' are left to the next run"
        writing.warnings.clear()
        with writing.engine(queries) as engine:
            engine.start()
            engine.trunk.wait(lambda: bool(writing.warnings))
            assert engine.trunk.active
            started(own.folder)
            engine.wait()
        assert writing.warnings[1:] == [f"Kafka at '{own.address}' answers again"]
        assert writing.values(topic) == writing.law(ALL)
    finally:
        stop(own.folder)


@pytest.mark.spark
def test_a_broker_that_is_away_for_a_minute(tmp_path: Path, mass: Mass) -> None:
    """It is the source of one stream and the sink of two subscriptions; the other stream goes on meanwhile.

    Each item of that is answered within a second or two, in the middle of the minute, too.
    The log says once that the broker is waited for, and once that it is back; then both topics have each result once,
    and no client is left of all that were made.
    """
    own, seconds = started(tmp_path / "broker"), mass.amount(60, budget=4)
    try:
        (tmp_path / "site").mkdir()
        writing = Writing(tmp_path / "site", own)
        source, topics = own.topic("in"), [writing.topic(), writing.topic()]
        own.write(source, [b"<p>1</p>", b"<p>2</p>"])
        writing.grow(12)
        with writing.engine({"all": (ALL, writing.sink(topics[0]))}, once=False) as engine:
            engine.stream("k", Topic.of(own.address, source), format="xml")
            engine.subscribe(ALL.replace('"s"', '"k"'), "k", sink=writing.sink(topics[1]))
            engine.start()
            engine.trunk.beyond(0)
            threads = active_count()
            own.kill()
            until, longest = monotonic() + seconds, 0.0
            while monotonic() < until:
                before, begun = engine.trunk.last, monotonic()
                writing.grow(1)
                assert engine.trunk.beyond(before)
                longest = max(longest, monotonic() - begun)
            assert longest < 5, "the stream that is in a file waits for nobody"
            assert active_count() <= threads + 5
            started(own.folder)
            own.write(source, [f"<p>{number}</p>".encode() for number in range(3, 9)])
            due = [f"<n>{number}</n>" for number in range(1, 9)]
            patience = monotonic() + PATIENCE
            while (found := [writing.values(each) for each in topics]) != [writing.law(ALL), due]:
                assert monotonic() < patience, found
                sleep(0.2)
        told = [each for each in writing.warnings if "Kafka" in each]
        assert len([each for each in told if each.startswith(f"waiting for Kafka at '{own.address}'")]) == 1, told
        assert len([each for each in told if each.endswith("answers again")]) == 1, told
        print(f"{seconds} s away, {longest:.2f} s at most to an epoch of the other stream")
    finally:
        stop(own.folder)


@pytest.mark.spark
def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    """Where brokers create none, the run ends with an error that says how to create it, and then goes on."""
    own = started(tmp_path / "broker", "auto.create.topics.enable=false")
    try:
        (tmp_path / "site").mkdir()
        writing = Writing(tmp_path / "site", own)
        writing.grow(6)
        with pytest.raises(KafkaFault) as caught:
            writing.run({"all": (ALL, writing.sink("nowhere"))})
        assert str(caught.value).splitlines() == [
            f"cannot write to the topic 'nowhere' at '{own.address}': unknown topic or partition "
            "[UNKNOWN_TOPIC_OR_PART]",
            f"hint: create it, as in 'kafka-topics.sh --bootstrap-server {own.address} --create --topic NAME', "
            "or let brokers create topics (auto.create.topics.enable)",
        ]
        topic = writing.topic()
        writing.run({"all": (ALL, writing.sink(topic))})
        assert writing.values(topic) == writing.law(ALL)
    finally:
        stop(own.folder)


def test_a_topic_that_brokers_create(writing: Writing) -> None:
    """Where brokers create topics by themselves, there is nothing to be done."""
    topic = f"{writing.topic()}-by-itself"
    writing.grow(6)
    writing.run({"all": (ALL, writing.sink(topic))})
    assert writing.values(topic) == writing.law(ALL)


def test_a_message_that_is_too_large(writing: Writing) -> None:
    """The run ends with the broker's reason and a hint; nothing of that epoch is there for readers."""
    topic = writing.topic(1, **{"max.message.bytes": "2000"})
    writing.grow(6)
    writing.run({"all": (ALL, writing.sink(topic))})
    before = writing.values(topic)
    with (writing.folder / "s").open("a") as file:
        file.write(f"<p>1</p>\n<p>{'9' * 5000}</p>\n")
    with pytest.raises(KafkaFault) as caught:
        writing.run({"all": (ALL, writing.sink(topic))})
    assert caught.value.code == "MSG_SIZE_TOO_LARGE"
    assert "max.message.bytes" in (caught.value.hint or "")
    assert writing.values(topic) == before


def test_settings_that_are_wrong_are_refused_at_once(writing: Writing) -> None:
    """A sink with a setting that does not exist is not registered."""
    cluster = KafkaCluster.of(writing.broker.address, {"no.such": "1"})
    with writing.engine({}) as engine, pytest.raises(UsageError, match="No such configuration property"):
        engine.subscribe(ALL, "all", sink=Kafka(cluster, "t"))


# --- who has written what ---------------------------------------------------------------------------------------------


def test_what_brokers_forget_the_checkpoint_knows(writing: Writing) -> None:
    """A site that was stopped goes on where it was, though the broker has forgotten its group."""
    topic = writing.topic()
    writing.grow(12)
    writing.run({"all": (ALL, writing.sink(topic))})
    forget(writing)
    writing.grow(12)
    writing.run({"all": (ALL, writing.sink(topic))})
    assert writing.values(topic) == writing.law(ALL)


def test_what_nobody_knows_is_an_error(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed within a transaction, of which the broker has forgotten what became: it says so."""

    class Killed(Exception):
        pass

    def die(name: str, epoch: int) -> None:
        if name == "topics-written":
            raise Killed

    topic = writing.topic()
    writing.grow(3)
    with monkeypatch.context() as patch:
        patch.setattr(flow, "point", die)
        with pytest.raises(Killed):
            writing.run({"all": (ALL, writing.sink(topic))})
    forget(writing)
    with pytest.raises(StateError, match="it is not known whether epoch 0 was written") as caught:
        writing.run({"all": (ALL, writing.sink(topic))})
    assert group_of(writing) in (caught.value.hint or "")


def test_an_old_copy_of_a_checkpoint_is_refused(writing: Writing) -> None:
    """Its epochs would not be those that the topic has; and a copy with fewer runs belongs to the past."""
    topic = writing.topic()
    queries = {"all": (ALL, writing.sink(topic))}
    writing.grow(6)
    writing.run(queries)
    shutil.copytree(writing.folder / "state", writing.folder / "copy")
    for _ in range(2):
        writing.grow(6)
        writing.run(queries)
    shutil.rmtree(writing.folder / "state")
    (writing.folder / "copy").rename(writing.folder / "state")
    with pytest.raises(StateError, match=f"run 3 of this site writes to the topic '{topic}', and this is run 2"):
        writing.run(queries)
    for _ in range(2):
        with writing.engine({}):
            pass
    with pytest.raises(StateError, match=r"was written up to epoch \d+ of this site, which is not that"):
        writing.run(queries)


def test_retention_leaves_what_a_topic_has_not_got(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    """No epoch is dropped that is still to be written; those that were written are."""
    monkeypatch.setattr(retention, "MIN_EPOCHS", 2)
    monkeypatch.setattr(delivery, "SNAPSHOT_EPOCHS", 0)
    nowhere = Kafka("127.0.0.1:1", "t")
    writing.grow(60)
    with writing.engine({"all": (ALL, nowhere)}, once=False, keep=2) as engine:
        engine.start()
        assert engine.trunk.beyond(7)
        assert engine.log.manifests.epochs()[0] == 0
    topic = writing.topic()
    writing.grow(12)
    writing.run({"all": (ALL, writing.sink(topic))}, keep=2)
    assert writing.values(topic) == writing.law(ALL)
    with writing.engine({"all": (ALL, writing.sink(topic))}, once=False, keep=2) as engine:

        def dropped() -> bool:
            writing.grow(1)
            return engine.log.manifests.epochs()[0] > 8

        engine.start()
        engine.trunk.beyond(sys.maxsize, dropped)
    writing.run({"all": (ALL, writing.sink(topic))}, keep=2)
    assert writing.values(topic) == writing.law(ALL)
