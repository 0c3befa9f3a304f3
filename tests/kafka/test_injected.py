"""Every error that a broker can answer a writer with, injected into librdkafka's mock: written, or named."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import pytest
from confluent_kafka import KafkaError

from anabranch.kafka import KafkaCluster
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.transactions import Mark, OutgoingMessage, TransactionalWriter
from kafka.mocking import MockCluster, mock_cluster
from mass import Mass, some

CODES = {
    name: code
    for name in dir(KafkaError)
    if not name.startswith("_") and isinstance(code := getattr(KafkaError, name), int) and code > 0
}
TRANSACTION = ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
OPENING = ("InitProducerId", "FindCoordinator", "Metadata", "OffsetFetch")
NEVER = {Remedy.ABSENT, Remedy.UNFIT, Remedy.DENIED, Remedy.WRONG, Remedy.LOST}
"""What no repetition mends."""


@pytest.fixture(scope="module")
def mock() -> Iterator[MockCluster]:
    with mock_cluster() as found:
        yield found


def written(mock: MockCluster, request: str, code: int, times: int = 1) -> Remedy | None:
    """Write one transaction, with an error at one request of it; None if it was written, else what is to be done."""
    cluster = KafkaCluster(mock.bootstrap)
    said: list[str] = []
    writer = TransactionalWriter(cluster, "writer", BrokerLog(cluster, said.append), lambda: True)
    try:
        if request in ("InitProducerId", "FindCoordinator"):
            mock.answer(request, code, times)
        writer.open()
        if request == "Metadata":
            mock.answer(request, code, 3 * times)  # a client asks by itself, too
        writer.partitions("t")
        if request == "OffsetFetch":
            mock.answer(request, code, times)
        writer.marks(["t"])
        if request in TRANSACTION:
            mock.answer(request, code, times)
        writer.write([OutgoingMessage("t", b"value", b"key")], {"t": Mark(1, "note")})
    except KafkaFault as error:
        return error.remedy
    finally:
        mock.calm(request)
        writer.discard()
    return None


@pytest.mark.parametrize(
    ("request_", "error", "expected"),
    some(
        [
            ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS", None),
            ("InitProducerId", "NOT_COORDINATOR", None),
            ("InitProducerId", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Remedy.DENIED),
            ("InitProducerId", "INVALID_TRANSACTION_TIMEOUT", Remedy.WRONG),
            ("InitProducerId", "PRODUCER_FENCED", Remedy.FENCED),
            ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", None),
            ("Metadata", "LEADER_NOT_AVAILABLE", Remedy.WAIT),
            ("Metadata", "TOPIC_AUTHORIZATION_FAILED", Remedy.DENIED),
            ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", None),
            ("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", Remedy.DENIED),
            ("Produce", "NOT_LEADER_FOR_PARTITION", None),
            ("Produce", "NOT_ENOUGH_REPLICAS", None),
            ("Produce", "REQUEST_TIMED_OUT", None),
            ("Produce", "KAFKA_STORAGE_ERROR", None),
            ("Produce", "MSG_SIZE_TOO_LARGE", Remedy.UNFIT),
            ("Produce", "INVALID_RECORD", Remedy.UNFIT),
            ("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", Remedy.RENEW),
            ("Produce", "UNKNOWN_PRODUCER_ID", Remedy.RENEW),
            ("Produce", "INVALID_PRODUCER_EPOCH", Remedy.FENCED),
            ("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS", None),
            ("AddPartitionsToTxn", "TOPIC_AUTHORIZATION_FAILED", Remedy.DENIED),
            ("AddPartitionsToTxn", "PRODUCER_FENCED", Remedy.FENCED),
            ("AddOffsetsToTxn", "COORDINATOR_NOT_AVAILABLE", None),
            ("AddOffsetsToTxn", "GROUP_AUTHORIZATION_FAILED", Remedy.DENIED),
            ("AddOffsetsToTxn", "INVALID_TXN_STATE", Remedy.RENEW),
            ("TxnOffsetCommit", "NOT_COORDINATOR", None),
            ("TxnOffsetCommit", "TOPIC_AUTHORIZATION_FAILED", Remedy.DENIED),
            ("TxnOffsetCommit", "TRANSACTION_ABORTABLE", Remedy.ABORT),
            ("EndTxn", "CONCURRENT_TRANSACTIONS", None),
            ("EndTxn", "COORDINATOR_NOT_AVAILABLE", None),
            ("EndTxn", "INVALID_PRODUCER_EPOCH", Remedy.FENCED),
            ("EndTxn", "PRODUCER_FENCED", Remedy.FENCED),
            ("EndTxn", "INVALID_TXN_STATE", Remedy.RENEW),
            ("EndTxn", "TRANSACTION_ABORTABLE", Remedy.ABORT),
        ]
    ),
)
def test_what_comes_of_an_error(mock: MockCluster, request_: str, error: str, expected: Remedy | None) -> None:
    """What passes is not even noticed; what does not is told apart as Kafka's protocol describes it."""
    assert written(mock, request_, CODES[error]) is expected


@pytest.mark.parametrize("request_", [*OPENING, *TRANSACTION])
def test_every_error_comes_to_an_end(mock: MockCluster, request_: str, mass: Mass) -> None:
    """Whatever a broker answers, all is written or a fault of ours says what to do; nothing escapes, nothing hangs.

    What Kafka calls a matter of permissions is never taken for something that passes.
    """
    names = sorted(CODES)
    for number in mass.cases(len(names)):
        found = written(mock, request_, CODES[names[number]])
        if names[number].endswith("AUTHORIZATION_FAILED") and request_ in TRANSACTION:
            assert found in NEVER, names[number]


def test_errors_that_stay_are_waited_for(mock: MockCluster) -> None:
    """A broker that is not ready again and again is asked again and again."""
    assert written(mock, "Produce", CODES["NOT_LEADER_FOR_PARTITION"], times=5) is None
    assert written(mock, "EndTxn", CODES["COORDINATOR_LOAD_IN_PROGRESS"], times=5) is None


@pytest.mark.parametrize(
    ("request_", "error", "expected"),
    [
        ("Produce", "CLUSTER_AUTHORIZATION_FAILED", Remedy.DENIED),
        ("Produce", "INVALID_PRODUCER_EPOCH", Remedy.FENCED),
        ("AddPartitionsToTxn", "TOPIC_AUTHORIZATION_FAILED", Remedy.DENIED),
        ("AddPartitionsToTxn", "PRODUCER_FENCED", Remedy.FENCED),
        ("AddPartitionsToTxn", "TRANSACTION_ABORTABLE", Remedy.ABORT),
    ],
)
def test_what_ends_a_transaction_while_messages_are_written(
    mock: MockCluster, request_: str, error: str, expected: Remedy
) -> None:
    """An epoch has more messages than are on their way at a time: the reason is told, not that one more cannot go."""
    cluster = KafkaCluster(mock.bootstrap)
    writer = TransactionalWriter(cluster, "writer", BrokerLog(cluster, lambda said: None), lambda: True)
    try:
        writer.open()
        writer.partitions("t")
        mock.answer(request_, CODES[error], 1)
        with pytest.raises(KafkaFault) as caught:
            writer.write(repeat(OutgoingMessage("t", b"value")), {})
        assert caught.value.remedy is expected
    finally:
        mock.calm(request_)
        writer.discard()
