"""Links between peers that run in different processes, on different machines: documents travel in topics.

A document is appended to the log of its link on the maker's disk, as always (`links.py`), and lies there until it has
been sent; the receiver appends it to the log of the same link on its own disk, where it is read as always.
So peers, plans and recovery know nothing of the way in between, and brokers that do not answer hold up no epoch.

What a super-peer sends to its neighbour is one topic, `<prefix>.<maker>.<reader>`.
Documents are written in transactions, by a writer whose id belongs to the part: so a second run of the same super-peers
elsewhere fences the first, and nothing that a killed run had under way appears later.
A document is sent at least once; names in a link ascend, so one that comes again is found to be there, or to have been.

What the parts of a network have to agree on is the plan: the part with the first super-peer makes it, and publishes it
in the topic `<prefix>.plan`; the others begin when it is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias, TypeVar

from anabranch.errors import UsageError
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.documents import DocumentReceiver, TopicDocument, pieces_of
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.transactions import OutgoingMessage, TransactionalWriter
from anabranch.network.description import TopicLinks
from anabranch.peers.links import Link
from anabranch.spark.checkpoint import durable

_POLL_SECONDS = 0.1
_PAUSE_SECONDS = 1.0
_PLAN = "plan"
_AT_ONCE = 50
"""The most documents of a link that are sent before it is noted that they were."""
_PASSING = (Remedy.WAIT, Remedy.RENEW, Remedy.ABORT)
"""What is to be done about errors that another attempt may not meet."""

Leaving: TypeAlias = Mapping[str, tuple[Link, str]]
"""Links to peers elsewhere, by flow, with their topics."""
Coming: TypeAlias = Mapping[str, Mapping[str, Link]]
"""Links from peers elsewhere, by their topics and by flow."""


_Links = TypeVar("_Links", Leaving, Coming)


class Transport:
    """Sends and receives the documents of links, on two threads; each keeps its own position on disk."""

    def __init__(
        self,
        links: TopicLinks,
        part: str,
        folder: Path,
        warn: Callable[[str], None],
        fail: Callable[[Exception], None],
        wanted: Callable[[], bool],
    ) -> None:
        """`part` is a name that no other part of the network has; `fail` hears of what ends a thread.

        Brokers are waited for as long as `wanted` holds.
        """
        self._links = links
        self._part = part
        self._sent_record, self._received_record = folder / "links-sent.json", folder / "links-received.json"
        self._log = BrokerLog(links.cluster, warn)
        self._fail = fail
        self._wanted = wanted
        self._stopping = Event()
        self._threads: list[Thread] = []
        self._sent: dict[str, str] = _read(self._sent_record)
        """By link and partition, the newest document that was sent."""
        self._received: dict[str, int] = _read(self._received_record)
        """By topic, the next offset."""

    # --- the plan ---------------------------------------------------------------------------------------------

    def publish_plan(self, data: bytes) -> None:
        """Let the other parts know the plan; waits for brokers."""
        while True:
            try:
                with self._writer([self._links.plan]) as writer:
                    writer.write(TopicDocument(_PLAN, data).messages(self._links.plan), {})
                return
            except KafkaFault as error:
                self._wait_after(error)

    def await_plan(self) -> bytes:
        """The plan that another part has published, as soon as it is there."""
        receiver = DocumentReceiver(self._links.cluster, self._links.plan, None)
        while True:
            try:
                found = list(receiver.receive())
                if found:
                    self._log.answered()
                    return found[-1].data
                self._log.silent("the part with the first super-peer has published no plan yet")
            except KafkaFault as error:
                self._wait_after(error, Remedy.ABSENT)
            self._stopping.wait(_POLL_SECONDS)
            if not self._is_wanted():
                raise UsageError("stopped before there was a plan")

    # --- links ------------------------------------------------------------------------------------------------

    def start(self, leaving: Leaving, coming: Coming) -> None:
        """Carry documents, until it is stopped."""
        self._threads = [
            Thread(target=self._work, args=(self._send, leaving), name="links out", daemon=True),
            Thread(target=self._work, args=(self._receive, coming), name="links in", daemon=True),
        ]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Carry no more; what was not carried is, when it is started again."""
        self._stopping.set()
        for each in self._threads:
            each.join()

    def _is_wanted(self) -> bool:
        return not self._stopping.is_set() and self._wanted()

    def _wait_after(self, error: KafkaFault, *also: Remedy) -> None:
        """Wait after an error that may pass; others are raised."""
        if error.remedy not in (*_PASSING, *also) or not self._is_wanted():
            raise error
        self._log.silent(error.message)
        self._stopping.wait(_PAUSE_SECONDS)

    def _work(self, carry: Callable[[_Links], None], links: _Links) -> None:
        """Carry documents one way, again and again after what may pass."""
        try:
            while links and self._is_wanted():
                carry(links)
        except Exception as error:
            if self._is_wanted():
                self._fail(error)

    @contextmanager
    def _writer(self, topics: Iterable[str]) -> Iterator[TransactionalWriter]:
        """A writer that has fenced those before it, once the topics are there."""
        identity = f"{self._links.prefix}.{self._part}"
        writer = TransactionalWriter(self._links.cluster, identity, self._log, self._is_wanted)
        try:
            writer.open()
            for topic in topics:
                writer.partitions(topic)
            yield writer
        finally:
            writer.discard()

    def _send(self, leaving: Leaving) -> None:
        """Send documents as they are made, until something fails."""
        try:
            with self._writer({topic for _, topic in leaving.values()}) as writer:
                while self._is_wanted():
                    found = {flow: self._unsent(flow, link) for flow, (link, _) in leaving.items()}
                    if any(map(any, found.values())):
                        self._send_all(writer, leaving, found)
                    else:
                        self._stopping.wait(_POLL_SECONDS)
        except KafkaFault as error:
            self._wait_after(error)

    def _unsent(self, flow: str, link: Link) -> list[list[tuple[str, bytes]]]:
        """By partition of a link: the next documents to be sent, with their names."""
        return [
            link.documents(partition, self._sent.get(_key(flow, partition), ""), _AT_ONCE)
            for partition in range(link.partitions)
        ]

    def _send_all(
        self, writer: TransactionalWriter, leaving: Leaving, found: Mapping[str, list[list[tuple[str, bytes]]]]
    ) -> None:
        """Send documents in one transaction, then note that they were, then forget them."""
        messages: list[Iterator[OutgoingMessage]] = []
        sent = dict(self._sent)
        for flow, partitions in found.items():
            for partition, documents in enumerate(partitions):
                named = (TopicDocument(json.dumps([flow, partition, name]), data) for name, data in documents)
                messages.append(pieces_of(leaving[flow][1], named))
                if documents:
                    sent[_key(flow, partition)] = documents[-1][0]
        writer.write(chain.from_iterable(messages), {})
        durable.replace(self._sent_record, durable.sealed(sent))
        self._sent = sent
        for flow, (link, _) in leaving.items():
            link.forget([sent.get(_key(flow, partition), "") for partition in range(link.partitions)])

    def _receive(self, coming: Coming) -> None:
        """Receive documents as they come, until something fails."""
        receivers = {
            topic: DocumentReceiver(self._links.cluster, topic, self._received.get(topic, 0)) for topic in coming
        }
        while self._is_wanted():
            try:
                count = sum(self._receive_all(receiver, coming[topic], topic) for topic, receiver in receivers.items())
                self._log.answered()
                if not count:
                    self._stopping.wait(_POLL_SECONDS)
            except KafkaFault as error:
                self._wait_after(error, Remedy.ABSENT)

    def _receive_all(self, receiver: DocumentReceiver, links: Mapping[str, Link], topic: str) -> int:
        """Append the documents of a topic to their links, then note how far it was read; gives their number."""
        count = 0
        for document in receiver.receive():
            flow, partition, name = json.loads(document.name)
            if flow in links:
                links[flow].take(partition, name, document.data)
            count += 1
        if receiver.position != self._received.get(topic, 0):
            self._received[topic] = receiver.position
            durable.replace(self._received_record, durable.sealed(self._received))
        return count


def _key(flow: str, partition: int) -> str:
    return json.dumps([flow, partition])


def _read(path: Path) -> Any:
    return durable.unsealed(path) if path.exists() else {}
