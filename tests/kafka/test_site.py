"""Topics in SITE.toml: how they are declared, what is refused, and that no secret is ever written down."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest

from anabranch import Kafka, KafkaCluster
from anabranch.cli import main
from anabranch.errors import UsageError
from anabranch.kafka.faults import KafkaFault
from anabranch.site import read_site
from anabranch.spark.epoch.trunk import Trunk
from brokers import PATIENCE, Broker, started, stop
from kafka.writing import ALL, Writing

TOP = '[engine]\ncheckpoint = "state"\n[streams.s]\npath = "s"\nformat = "lines"\n'


def write_site(folder: Path, *tables: str) -> Path:
    """A site with one stream and these tables."""
    (folder / "s").touch()
    (folder / "q.xq").write_text(ALL)
    (folder / "SITE.toml").write_text("\n".join((TOP, *tables)))
    return folder / "SITE.toml"


def subscription(*lines: str) -> str:
    return "\n".join(('[subscriptions.q]\nquery = "q.xq"\nsink = "kafka"', *lines))


def test_a_topic_in_a_site(tmp_path: Path) -> None:
    """Brokers, settings and secrets stand in [kafka]; a subscription has a topic, and may have its own."""
    site = write_site(
        tmp_path,
        '[kafka]\nbrokers = "one:9092,two:9092"\nsasl.username = "ann"\nsasl.password = "file:word"',
        subscription('topic = "alerts"', 'key = "."'),
        '[subscriptions.r]\nquery = "q.xq"\nsink = "kafka"\ntopic = "t"\nbrokers = "three:1"\n'
        'kafka = { sasl.username = "ben", linger.ms = 5 }',
    )
    found = {name: each.sink for name, each in read_site(site).subscriptions.items()}
    shared = {"sasl.password": f"file:{tmp_path}/word"}
    assert found == {
        "q": Kafka(KafkaCluster.of("one:9092,two:9092", {**shared, "sasl.username": "ann"}), "alerts", key="."),
        "r": Kafka(KafkaCluster.of("three:1", {**shared, "sasl.username": "ben", "linger.ms": 5}), "t"),
    }


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ((subscription('topic = "t"'),), "'brokers' is missing"),
        ((subscription('brokers = "a:1"'),), "'topic' is missing"),
        ((subscription('brokers = "a"', 'topic = "t"'),), "the broker 'a' is no host with a port"),
        ((subscription('brokers = "a:1"', 'topic = "a b"'),), "'a b' cannot be the name of a topic"),
        ((subscription('brokers = "a:1"', 'topic = "t"', 'path = "x"'),), "the sink 'kafka' takes no 'path'"),
        ((subscription('brokers = "a:1"', 'topic = "t"', 'changes = "all"'),), "the 'changes' of a display are"),
        ((subscription('brokers = "a:1"', 'topic = "t"', 'keys = "x"'),), "'keys' is unknown"),
        (
            ('[kafka]\nsasl.password = "hunter2"', subscription('brokers = "a:1"', 'topic = "t"')),
            "the setting 'sasl.password' of Kafka is a secret",
        ),
        (
            ("[kafka]\nlinger = []", subscription('brokers = "a:1"', 'topic = "t"')),
            "the setting 'linger' of Kafka takes",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path: Path, tables: tuple[str, ...], message: str) -> None:
    """With the file, the table and the reason; a secret that stands there is not repeated."""
    with pytest.raises(UsageError) as caught:
        read_site(write_site(tmp_path, *tables))
    assert message in caught.value.message
    assert "SITE.toml', line" in caught.value.message
    assert "hunter2" not in str(caught.value)


def test_a_run_writes_to_its_topic(broker: Broker, tmp_path: Path) -> None:
    """`anabranch run --once` ends when all is written."""
    topic = broker.topic()
    site = write_site(tmp_path, f'[kafka]\nbrokers = "{broker.address}"', subscription(f'topic = "{topic}"'))
    writing = Writing(tmp_path, broker)
    writing.grow(20)
    assert main(["run", str(site), "--once"]) == 0
    assert writing.values(topic) == writing.law(ALL)


@pytest.mark.spark
def test_a_run_to_the_end_tells_of_a_broker_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker goes away between the plan of an epoch and its reading: the log says so, and reading goes on."""
    own = started(tmp_path / "broker")
    try:
        topic = own.topic()
        own.write(topic, [b'{"n": 1}', b'{"n": 2}'])
        (tmp_path / "q.xq").write_text('for $o in stream("s") return $o.n')
        (tmp_path / "SITE.toml").write_text(
            f'[engine]\ncheckpoint = "state"\nlog = "log"\n[streams.s]\nsource = "kafka"\nbrokers = "{own.address}"\n'
            f'topic = "{topic}"\nformat = "json"\n[subscriptions.q]\nquery = "q.xq"\nsink = "files"\npath = "out"\n'
        )
        log, run_tasks, told = tmp_path / "log", Trunk._run_tasks, Event()

        def without_broker(trunk: Trunk, *given: Any) -> Any:
            own.kill()
            monkeypatch.undo()
            Thread(target=brought_back).start()
            return run_tasks(trunk, *given)

        def brought_back() -> None:
            deadline = monotonic() + PATIENCE
            while not told.is_set() and monotonic() < deadline:
                if f"no broker of '{own.address}' answers" in log.read_text():
                    told.set()
                told.wait(0.05)
            started(own.folder)

        monkeypatch.setattr(Trunk, "_run_tasks", without_broker)
        assert main(["run", str(tmp_path / "SITE.toml"), "--once"]) == 0
        assert told.is_set()
        assert (tmp_path / "out").read_text() == "1\n2\n"
    finally:
        stop(own.folder)


SASL = (
    "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms=PLAIN",
    "sasl.mechanism.inter.broker.protocol=PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin" user_admin="admin" user_site="open-sesame";',
)


@pytest.mark.spark
def test_credentials_are_used_and_never_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that asks for a password gets it from the environment; wrong, the run ends and says why.

    No file of the checkpoint has it, and no message.
    """
    own = started(tmp_path / "broker", *SASL)
    try:
        (tmp_path / "site").mkdir()
        writing = Writing(tmp_path / "site", own)
        settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": "site"}
        cluster = KafkaCluster.of(own.address, {**settings, "sasl.password": "env:WORD"})
        writing.grow(12)
        queries = {"q": (ALL, Kafka(cluster, "answers"))}
        monkeypatch.setenv("WORD", "hunter2")
        with pytest.raises(KafkaFault) as caught:
            writing.run(queries)
        assert caught.value.code == "AUTHENTICATION"
        assert "[kafka]" in (caught.value.hint or "")
        monkeypatch.setenv("WORD", "open-sesame")
        writing.run(queries)
        assert [each.value for each in own.read("answers", **settings, **{"sasl.password": "open-sesame"})] == [
            each.encode() for each in writing.law(ALL)
        ]
        said = "\n".join((*writing.warnings, str(caught.value), repr(queries)))
        for folder, _, names in os.walk(writing.folder):
            said += "".join((Path(folder) / name).read_bytes().decode(errors="replace") for name in names)
        assert "hunter2" not in said
        assert "open-sesame" not in said
    finally:
        stop(own.folder)
