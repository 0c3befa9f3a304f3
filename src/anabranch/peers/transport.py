"""Links between peers that run in different processes, on different machines: documents travel in topics.

A document is appended to the log of its link on the maker's disk, as always (`links.py`), and lies there until it has
been sent; the receiver appends it to the log of the same link on its own disk, where it is read as always.
So peers, plans and recovery know nothing of the way in between, and brokers that do not answer hold up no epoch.

Each super-peer has a topic for all that reaches it, `<prefix>.to.<peer>`.
A document is sent at least once; names in a link ascend, so one that comes again is found to be there, or to have been.

What the parts of a network have to agree on is the plan: the part with the first super-peer makes it, and publishes it
in the topic `<prefix>.plan`; the others begin when it is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

from anabranch.errors import UsageError
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.documents import DocumentReceiver, DocumentSender, TopicDocument
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.network.description import TopicLinks
from anabranch.peers.links import Link
from anabranch.spark.checkpoint import durable

_POLL_SECONDS = 0.1
_PAUSE_SECONDS = 1.0
_PLAN = "plan"
_AT_ONCE = 50
"""The most documents of a link that are sent before it is noted that they were."""


class Transport:
    """Sends and receives the documents of links, on two threads; each keeps its own position on disk."""

    def __init__(
        self, links: TopicLinks, folder: Path, warn: Callable[[str], None], fail: Callable[[Exception], None]
    ) -> None:
        self._links = links
        self._sent_record, self._received_record = folder / "links-sent.json", folder / "links-received.json"
        self._log = BrokerLog(links.cluster, warn)
        self._fail = fail
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
            sender = DocumentSender(self._links.cluster, self._log, self._is_wanted)
            try:
                sender.send(self._links.plan, [TopicDocument(_PLAN, data)])
                return
            except KafkaFault as error:
                self._wait_after(error)
            finally:
                sender.discard()

    def await_plan(self) -> bytes:
        """The plan that another part has published, as soon as it is there."""
        while True:
            try:
                found = list(DocumentReceiver(self._links.cluster, self._links.plan, 0).receive())
                self._log.answered()
                if found:
                    return found[-1].data
                self._log.silent("the part with the first super-peer has published no plan yet")
            except KafkaFault as error:
                self._wait_after(error)
            if self._stopping.wait(_POLL_SECONDS):
                raise UsageError("stopped before there was a plan")

    # --- links ------------------------------------------------------------------------------------------------

    def start(self, leaving: Mapping[str, tuple[Link, str]], coming: Mapping[str, Mapping[str, Link]]) -> None:
        """Carry documents: `leaving` are links by flow with the peers that read them elsewhere, `coming` are, by peer
        that is here, the links that are filled elsewhere."""
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
        return not self._stopping.is_set()

    def _wait_after(self, error: KafkaFault) -> None:
        """Wait after an error that may pass; others are raised."""
        if error.remedy not in (Remedy.WAIT, Remedy.RENEW, Remedy.ABSENT) or not self._is_wanted():
            raise error
        self._log.silent(error.message)
        self._stopping.wait(_PAUSE_SECONDS)

    def _work(self, carry: Callable[..., None], links: object) -> None:
        try:
            while self._is_wanted():
                try:
                    carry(links)
                except KafkaFault as error:
                    if self._is_wanted():
                        self._wait_after(error)
        except Exception as error:
            self._fail(error)

    def _send(self, leaving: Mapping[str, tuple[Link, str]]) -> None:
        """Send documents as they are made, until something fails."""
        sender = DocumentSender(self._links.cluster, self._log, self._is_wanted)
        try:
            while self._is_wanted():
                if not sum(self._send_link(sender, flow, link, peer) for flow, (link, peer) in leaving.items()):
                    self._stopping.wait(_POLL_SECONDS)
        finally:
            sender.discard()

    def _send_link(self, sender: DocumentSender, flow: str, link: Link, peer: str) -> int:
        count = 0
        for partition in range(link.partitions):
            key = json.dumps([flow, partition])
            found = link.documents(partition, self._sent.get(key, ""), _AT_ONCE)
            if found:
                documents = (TopicDocument(json.dumps([flow, partition, name]), data) for name, data in found)
                sender.send(self._links.to(peer), documents)
                self._sent[key] = found[-1][0]
                durable.replace(self._sent_record, durable.sealed(self._sent))
                link.forget([found[-1][0] if each == partition else "" for each in range(link.partitions)])
                count += len(found)
        return count

    def _receive(self, coming: Mapping[str, Mapping[str, Link]]) -> None:
        """Receive documents as they come, until something fails."""
        topics = {peer: self._links.to(peer) for peer in coming}
        receivers = {
            peer: DocumentReceiver(self._links.cluster, topic, self._received.get(topic, 0))
            for peer, topic in topics.items()
        }
        while self._is_wanted():
            count = 0
            for peer, receiver in receivers.items():
                for document in receiver.receive():
                    flow, partition, name = json.loads(document.name)
                    if flow in coming[peer]:
                        coming[peer][flow].take(partition, name, document.data)
                    count += 1
                if self._received.get(topics[peer], 0) != receiver.position:
                    self._received[topics[peer]] = receiver.position
                    durable.replace(self._received_record, durable.sealed(self._received))
            self._log.answered()
            if not count:
                self._stopping.wait(_POLL_SECONDS)


def _read(path: Path) -> Any:
    return durable.unsealed(path) if path.exists() else {}
