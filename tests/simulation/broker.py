"""The simulated broker: partitions, transactions with their markers, identities that are fenced, and marks of groups.

What a cluster of Kafka promises, and no more:

- An identity (a transactional id) has an epoch.
  Who begins with it gets the next one: what its holder before had open is aborted, what that one had committed is
  completed, and whatever it still sends is refused.
- A transaction ends by a decision, which is made once.
  Its markers come to the partitions and to the group of its marks later, one by one and in any order; until then a
  partition ends in front of its messages for those who read what is committed, and who asks for the marks of the group
  is told to ask again.
- Messages that come twice are known by their numbers, within an epoch of an identity; a request that is late counts in
  its own transaction only (KIP-890), and one that is repeated is answered as before.
- A transaction that takes too long is aborted, and its identity has another epoch.

Markers and messages of aborted transactions take offsets, so offsets have gaps for readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException


class Sent(NamedTuple):
    """A message as a producer sends it."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(eq=False)
class Transaction:
    """Messages and marks that become visible together, or never."""

    number: int = 0
    """The number among those of its producer."""
    outcome: bool | None = None
    """Whether it is committed; None while it is open."""
    unmarked: list[Log | str] = field(default_factory=list)
    """The partitions, and the groups, that it has written to and that have no marker yet."""
    marks: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)
    """By group, and by topic: a number and a note."""

    def touch(self, where: Log | str) -> None:
        """Note that it has written somewhere."""
        if where not in self.unmarked:
            self.unmarked.append(where)


@dataclass(frozen=True, eq=False)
class Record:
    """What stands at an offset: a message, or a marker, which has none."""

    message: Sent | None
    transaction: Transaction | None


@dataclass(eq=False)
class Log:
    """A partition of a topic."""

    topic: str
    partition: int
    records: list[Record] = field(default_factory=list)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    """By identity and epoch: the number of the next message."""

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"

    def _is_open(self, record: Record) -> bool:
        return record.transaction is not None and self in record.transaction.unmarked

    @property
    def stable(self) -> int:
        """The offset behind what is settled: that of the first message of which it is not known what becomes of it."""
        return next((at for at, each in enumerate(self.records) if self._is_open(each)), len(self.records))

    def end(self, *, committed: bool) -> int:
        """The offset behind what a reader may see."""
        return self.stable if committed else len(self.records)

    def messages(self, start: int, *, committed: bool) -> Iterator[tuple[int, Sent]]:
        """What a reader sees from an offset on."""
        for at in range(start, self.end(committed=committed)):
            each = self.records[at]
            if each.message is not None and not (committed and each.transaction and not each.transaction.outcome):
                yield at, each.message


@dataclass(eq=False)
class Identity:
    """A transactional id."""

    epoch: int = -1
    transaction: Transaction | None = None
    """The open one, or one whose markers have not all been written."""
    ended: tuple[int, bool] = (0, False)
    """The number and the outcome of the last transaction of this epoch that was ended."""


def refusal(code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaException:
    """An error as the library raises it."""
    return KafkaException(KafkaError(code, "simulated", fatal, retriable, abort))


class Broker:
    """A cluster, as far as its answers show; requests are carried out at once."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.topics = {name: [Log(name, number) for number in range(count)] for name, count in topics.items()}
        self._identities: dict[str, Identity] = {}
        self._groups: dict[str, dict[str, tuple[int, str]]] = {}
        self._laid: list[Transaction] = []
        """Transactions of those who write the streams that are read here."""

    # --- requests -----------------------------------------------------------------------------------------

    def begin(self, identity: str) -> int:
        """A new holder of an identity; gives its epoch."""
        known = self._identities.setdefault(identity, Identity())
        self._settle_of(known)
        known.epoch, known.ended = known.epoch + 1, (0, False)
        return known.epoch

    def append(self, identity: str, epoch: int, number: int, log: Log, first: int, messages: Sequence[Sent]) -> None:
        """Append messages in a transaction, unless they were; `first` is the number of the first among those of its
        producer in this partition."""
        expected = log.numbers.get((identity, epoch), 0)
        transaction = self._open(identity, epoch, number)
        if transaction is None or first < expected:
            return
        if first > expected:
            raise refusal(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, abort=True)
        transaction.touch(log)
        log.records += [Record(each, transaction) for each in messages]
        log.numbers[identity, epoch] = first + len(messages)

    def mark(self, identity: str, epoch: int, number: int, group: str, marks: Mapping[str, tuple[int, str]]) -> None:
        """Add marks to a transaction."""
        transaction = self._open(identity, epoch, number)
        if transaction is not None:
            transaction.touch(group)
            transaction.marks.setdefault(group, {}).update(marks)

    def commit(self, identity: str, epoch: int, number: int) -> None:
        """Decide that a transaction is committed."""
        known = self._held(identity, epoch)
        if known.ended[0] >= number:
            if known.ended == (number, False):
                raise refusal(KafkaError.INVALID_TXN_STATE, abort=True)
            return
        if known.transaction is not None and known.transaction.outcome is None:
            known.transaction.outcome = True
        known.ended = number, True

    def marks(self, group: str, *, stable: bool) -> dict[str, tuple[int, str]]:
        """The marks of a group; who wants them `stable` is refused while more may come."""
        if stable and any(group in each.unmarked for each in self._transactions()):
            raise refusal(KafkaError.UNSTABLE_OFFSET_COMMIT, retriable=True)
        return self._groups.get(group, {})

    def _held(self, identity: str, epoch: int) -> Identity:
        known = self._identities[identity]
        if known.epoch != epoch:
            raise refusal(KafkaError._FENCED, fatal=True)
        return known

    def _open(self, identity: str, epoch: int, number: int) -> Transaction | None:
        """The transaction with a number; None where it has ended, or been followed by another."""
        known = self._held(identity, epoch)
        if known.ended[0] >= number or (known.transaction is not None and known.transaction.number > number):
            return None
        if known.transaction is None or known.transaction.number < number:
            self._settle_of(known)
            known.transaction = Transaction(number)
        return known.transaction

    # --- what happens by itself ---------------------------------------------------------------------------

    def _transactions(self) -> Iterable[Transaction]:
        yield from (each.transaction for each in self._identities.values() if each.transaction is not None)
        yield from self._laid

    def _settle_of(self, known: Identity) -> None:
        """Complete the last transaction of an identity; one that is open is aborted."""
        if (transaction := known.transaction) is not None:
            transaction.outcome = bool(transaction.outcome)
            while transaction.unmarked:
                self._write_marker(transaction, transaction.unmarked[0])
            known.transaction = None

    def _write_marker(self, transaction: Transaction, where: Log | str) -> None:
        transaction.unmarked.remove(where)
        if isinstance(where, Log):
            if transaction not in self._laid:
                where.records.append(Record(None, transaction))
        elif transaction.outcome:
            self._groups.setdefault(where, {}).update(transaction.marks[where])

    def move(self, random: Random) -> None:
        """Write one marker that is due, or decide one transaction of those who write streams."""
        due = [each for each in self._transactions() if each.unmarked and (each.outcome is not None)]
        if due:
            transaction = random.choice(due)
            self._write_marker(transaction, random.choice(transaction.unmarked))
        self._laid = [each for each in self._laid if each.unmarked]

    def expire(self, random: Random) -> None:
        """Abort an open transaction, as one that takes too long."""
        found = [each for each in self._identities.values() if each.transaction and each.transaction.outcome is None]
        if found:
            expired = random.choice(found)
            self._settle_of(expired)
            expired.epoch += 1

    def settle(self) -> None:
        """Write all markers that are due."""
        for transaction in self._transactions():
            for where in list(transaction.unmarked) if transaction.outcome is not None else ():
                self._write_marker(transaction, where)
        self._laid.clear()

    def lay(self, topic: str, partition: int, messages: Sequence[Sent], *, committed: bool) -> None:
        """Somebody else writes a transaction; its marker has a place, so that offsets are always alike, and is late."""
        log, transaction = self.topics[topic][partition], Transaction(outcome=committed)
        transaction.touch(log)
        log.records += [*(Record(each, transaction) for each in messages), Record(None, transaction)]
        self._laid.append(transaction)

    # --- for judges ---------------------------------------------------------------------------------------

    def written(self) -> dict[Any, list[tuple[bytes | None, bytes | None]]]:
        """By topic, partition and subscription: the keys and values of its messages, in order."""
        found: dict[Any, list[tuple[bytes | None, bytes | None]]] = {}
        for log in (each for logs in self.topics.values() for each in logs):
            for _, each in log.messages(0, committed=True):
                if name := dict(each.headers).get("subscription"):
                    found.setdefault((log.topic, log.partition, name.decode()), []).append((each.key, each.value))
        return found
