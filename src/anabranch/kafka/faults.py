"""Every error of Kafka as one of ours: what went wrong, where, and what is to be done about it.

librdkafka has some 200 codes, of its own and of brokers, and marks on errors: retriable, fatal, or that the transaction
has to be aborted.
Here each falls into one of few classes, by what the caller does next:

    WAIT      brokers are down or busy with themselves: try again, and say so
    ABORT     the transaction has failed: abort it, and begin it anew
    RENEW     the producer can do no more, and what became of its commit is not known: discard it, make a new one
    FENCED    another producer has taken over the transactional id, or the broker has given the transaction up
    ABSENT    there is no such topic or partition, or it was made anew under its name
    LOST      messages that were to be read are gone
    UNFIT     a message that brokers do not take, or that cannot be read
    DENIED    the cluster does not let us: credentials, permissions, TLS
    WRONG     everything else, which no repetition would mend: settings, versions, calls at a wrong time

A code that is permanent by nature stays so where the library marks it abortable: an answer that is too large for its
topic would else be aborted and begun anew for good.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from anabranch.errors import AnabranchError
from anabranch.kafka.cluster import KafkaCluster

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException


class Remedy(Enum):
    """What is to be done about an error."""

    WAIT = "wait"
    ABORT = "abort"
    RENEW = "renew"
    FENCED = "fenced"
    ABSENT = "absent"
    LOST = "lost"
    UNFIT = "unfit"
    DENIED = "denied"
    WRONG = "wrong"


class KafkaFault(AnabranchError):
    """An error of Kafka; its code is Kafka's name for it."""

    def __init__(self, message: str, *, code: str | None, hint: str | None, remedy: Remedy) -> None:
        super().__init__(message, code=code, hint=hint)
        self.remedy = remedy


_BY_NATURE: dict[Remedy, tuple[str, ...]] = {
    Remedy.FENCED: ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED"),
    Remedy.ABSENT: (
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
    ),
    Remedy.LOST: ("OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "_NO_OFFSET"),
    Remedy.UNFIT: (
        "_BAD_MSG",
        "_BAD_COMPRESSION",
        "_INVALID_DIFFERENT_RECORD",
        "_KEY_SERIALIZATION",
        "_VALUE_SERIALIZATION",
        "_KEY_DESERIALIZATION",
        "_VALUE_DESERIALIZATION",
        "INVALID_MSG",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    ),
    Remedy.DENIED: (
        "_AUTHENTICATION",
        "_SSL",
        "CLUSTER_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_AUTH_DISABLED",
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_EXPIRED",
        "DELEGATION_TOKEN_NOT_FOUND",
        "DELEGATION_TOKEN_OWNER_MISMATCH",
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        "GROUP_AUTHORIZATION_FAILED",
        "ILLEGAL_SASL_STATE",
        "INVALID_PRINCIPAL_TYPE",
        "POLICY_VIOLATION",
        "PRINCIPAL_DESERIALIZATION_FAILURE",
        "SASL_AUTHENTICATION_FAILED",
        "SECURITY_DISABLED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNACCEPTABLE_CREDENTIAL",
        "UNSUPPORTED_SASL_MECHANISM",
    ),
    Remedy.WRONG: (
        "_CONFLICT",
        "_INVALID_ARG",
        "_NOT_CONFIGURED",
        "_NOT_IMPLEMENTED",
        "_UNSUPPORTED_FEATURE",
        "INVALID_COMMIT_OFFSET_SIZE",
        "INVALID_CONFIG",
        "INVALID_GROUP_ID",
        "INVALID_REQUEST",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TRANSACTION_TIMEOUT",
        "OFFSET_METADATA_TOO_LARGE",
        "TOPIC_EXCEPTION",
        "UNSUPPORTED_VERSION",
    ),
}
"""Codes that mean the same whatever marks an error has."""
_WAITING = (
    "_ALL_BROKERS_DOWN",
    "_DESTROY_BROKER",
    "_FAIL",
    "_INTR",
    "_IN_PROGRESS",
    "_ISR_INSUFF",
    "_MSG_TIMED_OUT",
    "_NOENT",
    "_NODE_UPDATE",
    "_OUTDATED",
    "_PARTIAL",
    "_PREV_IN_PROGRESS",
    "_QUEUE_FULL",
    "_RESOLVE",
    "_RETRY",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_TRANSPORT",
    "_UNKNOWN_BROKER",
    "_WAIT_CACHE",
    "_WAIT_COORD",
    "BROKER_NOT_AVAILABLE",
    "CONCURRENT_TRANSACTIONS",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "KAFKA_STORAGE_ERROR",
    "LEADER_NOT_AVAILABLE",
    "LISTENER_NOT_FOUND",
    "NETWORK_EXCEPTION",
    "NOT_CONTROLLER",
    "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_LEADER_FOR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "REASSIGNMENT_IN_PROGRESS",
    "REBALANCE_IN_PROGRESS",
    "REBOOTSTRAP_REQUIRED",
    "REPLICA_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
    "STALE_BROKER_EPOCH",
    "STALE_CTRL_EPOCH",
    "THROTTLING_QUOTA_EXCEEDED",
    "UNKNOWN_LEADER_EPOCH",
    "UNSTABLE_OFFSET_COMMIT",
)
_RENEWING = (
    "_FATAL",
    "_GAPLESS_GUARANTEE",
    "_INCONSISTENT",
    "_PURGE_INFLIGHT",
    "_PURGE_QUEUE",
    "DUPLICATE_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TXN_STATE",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID",
)
_HINTS = {
    Remedy.ABSENT: "create it, as in 'kafka-topics.sh --bootstrap-server {brokers} --create --topic NAME', "
    "or let brokers create topics (auto.create.topics.enable)",
    Remedy.DENIED: "look at the settings of [kafka] (security.protocol, sasl.*, ssl.*) and at the permissions there",
    Remedy.FENCED: "another run works with the same checkpoint, or a transaction took too long",
    Remedy.UNFIT: "the topic's 'max.message.bytes' and the setting 'message.max.bytes' say how large messages may be",
}
_TOO_LONG = "the broker's transaction.max.timeout.ms is less; set 'transaction.timeout.ms' in [kafka]"


def remedy_of(error: KafkaError) -> Remedy:
    """What is to be done about an error."""
    name = error.name()
    for remedy, names in _BY_NATURE.items():
        if name in names:
            return remedy
    if error.txn_requires_abort() or name == "TRANSACTION_ABORTABLE":
        return Remedy.ABORT
    if error.fatal() or name in _RENEWING:
        return Remedy.RENEW
    return Remedy.WAIT if error.retriable() or name in _WAITING else Remedy.WRONG


def fault(error: KafkaError | KafkaException, cluster: KafkaCluster, doing: str) -> KafkaFault:
    """An error as one of ours; `doing` is what failed, as in "write to the topic 'alerts'"."""
    found: KafkaError = error.args[0] if isinstance(error, Exception) else error
    remedy = remedy_of(found)
    reason = found.str().removeprefix("Broker: ").removeprefix("Local: ")
    hint = _TOO_LONG if found.name() == "INVALID_TRANSACTION_TIMEOUT" else _HINTS.get(remedy)
    return KafkaFault(
        f"cannot {doing} at '{cluster.brokers}': {cluster.hides(reason[:1].lower() + reason[1:])}",
        code=found.name().removeprefix("_"),
        hint=hint.format(brokers=cluster.brokers) if hint else None,
        remedy=remedy,
    )
