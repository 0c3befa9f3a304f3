from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from anabranch.kafka import KafkaCluster, faults
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.faults import Remedy, fault, remedy_of

CLUSTER = KafkaCluster("kafka:9092")
CODES = {
    name: code
    for name in dir(KafkaError)
    if not name.startswith("__") and isinstance(code := getattr(KafkaError, name), int)
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_ALL_BROKERS_DOWN", Remedy.WAIT),
        ("_TIMED_OUT", Remedy.WAIT),
        ("COORDINATOR_LOAD_IN_PROGRESS", Remedy.WAIT),
        ("NOT_ENOUGH_REPLICAS", Remedy.WAIT),
        ("TRANSACTION_ABORTABLE", Remedy.ABORT),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", Remedy.RENEW),
        ("_FENCED", Remedy.FENCED),
        ("INVALID_PRODUCER_EPOCH", Remedy.FENCED),
        ("UNKNOWN_TOPIC_OR_PART", Remedy.ABSENT),
        ("OFFSET_OUT_OF_RANGE", Remedy.LOST),
        ("MSG_SIZE_TOO_LARGE", Remedy.UNFIT),
        ("TOPIC_AUTHORIZATION_FAILED", Remedy.DENIED),
        ("_AUTHENTICATION", Remedy.DENIED),
        ("INVALID_CONFIG", Remedy.WRONG),
    ],
)
def test_codes_say_what_to_do(name: str, expected: Remedy) -> None:
    """Some of each class, as the documentation of Kafka's protocol describes them."""
    assert remedy_of(KafkaError(CODES[name])) is expected


def test_marks_of_the_library_decide_where_the_code_does_not() -> None:
    """Abortable, fatal and retriable errors are such whatever their code, but for codes that never pass."""
    other = CODES["UNKNOWN"]
    assert remedy_of(KafkaError(other)) is Remedy.WRONG
    assert remedy_of(KafkaError(other, txn_requires_abort=True)) is Remedy.ABORT
    assert remedy_of(KafkaError(other, fatal=True)) is Remedy.RENEW
    assert remedy_of(KafkaError(other, retriable=True)) is Remedy.WAIT
    assert remedy_of(KafkaError(CODES["MSG_SIZE_TOO_LARGE"], txn_requires_abort=True)) is Remedy.UNFIT
    assert remedy_of(KafkaError(CODES["_FENCED"], fatal=True)) is Remedy.FENCED


def test_each_code_has_one_class_and_every_name_is_a_code() -> None:
    """The lists name codes of the library only, and none of them twice."""
    named = [name for names in (*faults._BY_NATURE.values(), faults._WAITING, faults._RENEWING) for name in names]
    assert sorted(set(named) - set(CODES)) == []
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", sorted(CODES))
def test_every_error_can_be_told(name: str) -> None:
    """The message is what failed, where and why, and the code is Kafka's name."""
    found = fault(KafkaException(KafkaError(CODES[name])), CLUSTER, "write to the topic 't'")
    assert found.message.startswith("cannot write to the topic 't' at 'kafka:9092': ")
    assert found.code == name.removeprefix("_")


def test_hints_say_what_to_do() -> None:
    """A topic that is not there is to be created, at these brokers."""
    found = str(fault(KafkaError(CODES["UNKNOWN_TOPIC_OR_PART"]), CLUSTER, "write to the topic 't'"))
    assert found.splitlines() == [
        "cannot write to the topic 't' at 'kafka:9092': unknown topic or partition [UNKNOWN_TOPIC_OR_PART]",
        "hint: create it, as in 'kafka-topics.sh --bootstrap-server kafka:9092 --create --topic NAME', "
        "or let brokers create topics (auto.create.topics.enable)",
    ]


def test_silence_is_told_once() -> None:
    """However often brokers do not answer, it is said once, and so is that they answer again."""
    said: list[str] = []
    log = BrokerLog(CLUSTER, said.append)
    log.answered()
    for _ in range(3):
        log.hear(KafkaError(CODES["_ALL_BROKERS_DOWN"]))
        log.hear(KafkaError(CODES["_TRANSPORT"]))
    log.answered()
    log.answered()
    log.silent("timed out")
    assert said == [
        "waiting for Kafka at 'kafka:9092': Local: All broker connections are down",
        "Kafka at 'kafka:9092' answers again",
        "waiting for Kafka at 'kafka:9092': timed out",
    ]
