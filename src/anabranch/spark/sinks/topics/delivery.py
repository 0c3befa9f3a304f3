"""Answers into the topics of one cluster, on a thread of its own.

The thread reads committed epochs from the answer log and remembers none: what it has not written yet stands there, and
retention leaves it there.
So brokers that do not answer hold up nothing else: epochs go on, the log says what is waited for, and what has come
meanwhile is written when they are back.

A transaction has the messages of all subscriptions that write to this cluster, and moves the marks of their topics
behind its epoch (`kafka/transactions.py`).
After any error the writer is discarded; a new one fences it, and its marks say whether the epoch was written.
So every result is in its topic once, whoever is killed when: this process, its JVM, tasks, brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition, Thread

from anabranch.kafka import KafkaCluster
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.transactions import TransactionalWriter
from anabranch.spark.sinks import Kafka
from anabranch.spark.sinks.topics.flow import DeliveryHost, TopicFlow
from anabranch.spark.sinks.topics.record import identity_of
from anabranch.spark.sinks.topics.tables import SNAPSHOT_EPOCHS

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two attempts: each pause is twice the one before."""
_AGAIN = (Remedy.WAIT, Remedy.ABORT, Remedy.RENEW, Remedy.FENCED)


class TopicDelivery:
    """Writes to the topics of a cluster; callers say what is wanted and how far epochs are, the thread does it."""

    def __init__(self, cluster: KafkaCluster, host: DeliveryHost, last: int) -> None:
        self._cluster = cluster
        self._host = host
        self._identity = identity_of(host.checkpoint)
        self._brokers = BrokerLog(cluster, host.warn)
        self._changed = Condition()
        """Held by whoever looks at or changes what follows."""
        self._sinks: Mapping[str, Kafka] = {}
        self._asked = self._joined = 0
        """How often the sinks have changed, and at which of these changes the thread is; 0 before the first."""
        self._last = last
        """The newest committed epoch."""
        self._begun = last + 1
        """The first epoch that is committed under its eyes."""
        self._next = 0
        """The next epoch to write."""
        self._ending = self._hurry = self._failed = False
        self._writer().discard()  # so that wrong settings are refused at once
        self._thread = Thread(target=self._work, name=f"answers to {cluster.brokers}", daemon=True)
        self._thread.start()

    # --- for callers ------------------------------------------------------------------------------------------

    def set(self, sinks: Mapping[str, Kafka]) -> None:
        """Replace the sinks, by subscription."""
        with self._changed:
            if sinks != self._sinks:
                self._sinks, self._asked = dict(sinks), self._asked + 1
                self._changed.notify_all()

    def committed(self, epoch: int) -> None:
        """Note that an epoch has been committed."""
        with self._changed:
            self._last = max(self._last, epoch)
            self._changed.notify_all()

    @property
    def behind(self) -> bool:
        """Whether there is something to be written."""
        with self._changed:
            return not self._failed and self._has_work()

    @property
    def epochs_behind(self) -> int:
        """How many committed epochs are not written yet; of those before it began only what it has found out."""
        with self._changed:
            return max(0, self._last + 1 - (self._next or self._begun))

    @property
    def needed(self) -> int:
        """The oldest epoch that may still be read."""
        with self._changed:
            return self._next - SNAPSHOT_EPOCHS

    def end(self, hurry: Callable[[], bool]) -> None:
        """Write what there is and end; where brokers do not answer, or in a `hurry`, leave it to the next run."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        while self._thread.is_alive():
            self._hurry = self._hurry or hurry()
            self._thread.join(0.05)
        if self.behind:
            self._host.warn(f"answers for Kafka at '{self._cluster.brokers}' are left to the next run")

    def _has_work(self) -> bool:
        return self._joined != self._asked or (self._joined > 0 and self._next <= self._last)

    # --- the thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        pause, flow = _FIRST_PAUSE, None
        try:
            while self._awaited():
                try:
                    flow = flow or self._flow()
                    self._advance(flow)
                    pause = _FIRST_PAUSE
                except KafkaFault as error:
                    if flow is not None:
                        flow.discard()
                        flow = None
                    if error.remedy not in _AGAIN:
                        raise
                    if pause > _FIRST_PAUSE:  # that a transaction is begun anew once is nothing to tell
                        self._brokers.silent(error.message)
                    if not self._again(pause):
                        break
                    pause = min(2 * pause, _LONGEST_PAUSE)
            if flow is not None:
                flow.close()
        except Exception as error:
            self._failed = True
            self._host.fail(error)

    def _awaited(self) -> bool:
        """Wait for something to do; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._has_work())
            return self._has_work() and self._is_wanted()

    def _again(self, pause: float) -> bool:
        """Wait before another attempt; False where there is to be none."""
        with self._changed:
            self._joined = 0
            self._changed.wait_for(lambda: self._ending, pause)
            return self._is_wanted()

    def _is_wanted(self) -> bool:
        """Whether brokers are to be waited for."""
        return not self._hurry and not (self._ending and self._brokers.down)

    def _writer(self) -> TransactionalWriter:
        return TransactionalWriter(self._cluster, self._identity, self._brokers, self._is_wanted)

    def _flow(self) -> TopicFlow:
        return TopicFlow(self._host, self._cluster, self._writer())

    def _advance(self, flow: TopicFlow) -> None:
        """Write what there is to write now."""
        with self._changed:
            sinks, asked, last = self._sinks, self._asked, self._last
        if self._joined != asked:
            flow.join(sinks, last)
            flow.catch_up()
            with self._changed:
                self._next, self._joined = flow.start, asked
        for epoch in flow.epochs(self._next, last):
            if self._hurry:
                return
            flow.write(epoch)
            with self._changed:
                self._next = epoch + 1
                if self._asked != asked:
                    return
        with self._changed:
            self._next = max(self._next, last + 1)
