from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from anabranch.errors import UsageError
from anabranch.kafka import KafkaCluster
from anabranch.kafka.clients import producer


def test_settings_are_read_as_toml_writes_them() -> None:
    """Dotted keys are tables in TOML and names here; numbers and flags are texts, as librdkafka takes them."""
    found = KafkaCluster.of(
        "one:9092, [::1]:9093",
        {"sasl": {"username": "ann", "password": "env:WORD"}, "socket.keepalive.enable": True, "linger": {"ms": 5}},
    )
    assert found.brokers == "one:9092,[::1]:9093"
    assert found.settings == (
        ("linger.ms", "5"),
        ("sasl.password", "env:WORD"),
        ("sasl.username", "ann"),
        ("socket.keepalive.enable", "true"),
    )
    assert found == KafkaCluster.of("one:9092,[::1]:9093", dict(reversed(found.settings)))


@pytest.mark.parametrize(
    ("brokers", "settings", "message"),
    [
        ("", {}, "the broker '' is no host with a port"),
        ("localhost", {}, "the broker 'localhost' is no host with a port"),
        ("a:1,b:65536", {}, "the broker 'b:65536' is no host with a port"),
        ("a:1", {"sasl.password": "hunter2"}, "the setting 'sasl.password' of Kafka is a secret"),
        ("a:1", {"ssl": {"key": {"pem": "-----BEGIN"}}}, "the setting 'ssl.key.pem' of Kafka is a secret"),
        ("a:1", {"transactional.id": "mine"}, "the setting 'transactional.id' of Kafka cannot be chosen"),
        ("a:1", {"plugin.library.paths": "/tmp/x.so"}, "the setting 'plugin.library.paths' of Kafka is refused"),
        ("a:1", {"linger.ms": [1]}, "the setting 'linger.ms' of Kafka takes a text, a number, true or false"),
        ("a:1", {"Linger ms": 1}, "'Linger ms' is no setting of Kafka"),
    ],
)
def test_what_cannot_be_declared_is_refused_by_name(brokers: str, settings: dict[str, object], message: str) -> None:
    """The message names the broker or the setting, and never a secret's value."""
    with pytest.raises(UsageError) as caught:
        KafkaCluster.of(brokers, settings)
    assert message in caught.value.message
    assert "hunter2" not in str(caught.value)


def test_secrets_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked up when a client is made; what is declared, printed and kept is the reference."""
    monkeypatch.setenv("WORD", "from the environment")
    (tmp_path / "key").write_text("from a file\n")
    cluster = KafkaCluster.of("a:1", {"sasl.password": "env:WORD", "ssl.key.password": "file:key"}, tmp_path)
    assert cluster.resolved() == {"sasl.password": "from the environment", "ssl.key.password": "from a file"}
    assert "from a" not in repr(cluster)
    assert b"from " not in pickle.dumps(cluster)
    assert cluster.hides("no 'from a file' here") == "no '***' here"


@pytest.mark.parametrize(("reference", "message"), [("env:NO_SUCH_WORD", "NO_SUCH_WORD"), ("file:none", "none'")])
def test_a_secret_that_is_not_there(tmp_path: Path, reference: str, message: str) -> None:
    """The error names the variable or the file, and the setting that it is for."""
    cluster = KafkaCluster.of("a:1", {"sasl.password": reference}, tmp_path)
    with pytest.raises(UsageError) as caught:
        producer(cluster)
    assert message in caught.value.message
    assert "'sasl.password' of Kafka" in caught.value.message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"no.such.setting": "1"}, 'No such configuration property: "no.such.setting"'),
        ({"security.protocol": "ROT13"}, 'Invalid value "ROT13" for configuration property "security.protocol"'),
    ],
)
def test_settings_that_the_library_does_not_know(settings: dict[str, object], message: str) -> None:
    """The library's own words say which setting it is, as an error of ours."""
    with pytest.raises(UsageError) as caught:
        producer(KafkaCluster.of("a:1", settings))
    assert message in caught.value.message


def test_the_librarys_words_hide_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is looked up and that the library quotes in an error is not shown."""
    monkeypatch.setenv("WORD", "hunter2")
    with pytest.raises(UsageError) as caught:
        producer(KafkaCluster.of("a:1", {"security.protocol": "env:WORD"}))
    assert "hunter2" not in str(caught.value)
    assert "***" in str(caught.value)
