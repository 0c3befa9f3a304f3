"""Links between peers that run in different processes, on different machines: their documents are carried.

A document is appended to the log of its link on the maker's disk, as always (`links.py`), and lies there until it has
been sent; the receiver appends it to the log of the same link on its own disk, where it is read as always.
So peers, plans and recovery know nothing of the way in between (`carriers.py`), and a way that is blocked holds up no
epoch.
A document is sent at least once; names in a link ascend, so one that comes again is found to be there, or to have been.

What the parts of a network have to agree on are its plans: the part with the first super-peer, the *leader*, makes them
and publishes orders, and all parts report to it (`orders.py`, `parts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from anabranch.network.description import FolderLinks, TopicLinks
from anabranch.peers.carriers import Parcel, carrier_of
from anabranch.peers.links import Link
from anabranch.peers.orders import link_key
from anabranch.spark.checkpoint import durable

_POLL_SECONDS = 0.1
_PAUSE_SECONDS = 1.0
_AT_ONCE = 50
"""The most documents of a link that are sent before it is noted that they were."""


class OutgoingLink(NamedTuple):
    """A link whose documents are sent to a peer elsewhere."""

    flow: str
    link: Link
    channel: str
    is_told: bool = False
    """Whether it is what a new reader has missed, and comes from where the stream does."""

    def key(self, partition: int) -> str:
        """Its name in the record of what was sent."""
        known = link_key(self.flow, partition)
        return f"told {known}" if self.is_told else known


@dataclass(frozen=True, slots=True)
class CarriedLinks:
    """All links to peers elsewhere, and from there."""

    plan: int = 0
    """The number of the newest plan that these links are of."""
    leaving: tuple[OutgoingLink, ...] = ()
    coming: Mapping[str, Mapping[str, Link]] = field(default_factory=dict)
    """By channel, and by flow."""

    def taken(self) -> dict[str, str]:
        """The newest documents that have come, by link and partition."""
        links = [pair for each in self.coming.values() for pair in each.items()]
        return {link_key(flow, number): name for flow, link in links for number, name in enumerate(link.newest())}


class Transport:
    """Sends and receives the documents of links, orders and reports, on two threads."""

    def __init__(
        self,
        links: TopicLinks | FolderLinks,
        part: str,
        folder: Path,
        warn: Callable[[str], None],
        fail: Callable[[Exception], None],
        wanted: Callable[[], bool],
    ) -> None:
        """`part` is a name that no other part of the network has; `fail` hears of what ends a thread.

        The others, and what carries documents to them, are waited for as long as `wanted` holds.
        """
        self._record = folder / "links-sent.json"
        self._fail = fail
        self._wanted = wanted
        self._stopping = Event()
        self._carrier = carrier_of(links, part, folder, warn, self._is_wanted)
        self._threads: list[Thread] = []
        self._sent: dict[str, str] = durable.unsealed(self._record) if self._record.exists() else {}
        """By link and partition, the newest document that was sent."""
        self.carried = CarriedLinks()
        """The links at work; the network sets it with each plan."""
        self._to_publish: tuple[int, bytes, int] | None = None
        self._to_report: bytes | None = None
        self._reported: bytes | None = None
        self._followed: int | None = None
        """For a part that follows: the number of the last order that it knows."""
        self._orders: dict[int, bytes] = {}
        self.listens = False
        """Whether reports are waited for."""
        self._reports: dict[str, bytes] = {}

    # --- orders and reports -----------------------------------------------------------------------------------

    def published(self, after: int) -> dict[int, bytes]:
        """The orders behind a number that earlier runs of this part have published; they publish no more."""
        while True:
            try:
                self._carrier.begin()
                return dict(self._carrier.orders(after))
            except Exception as error:
                self._wait_after(error)

    def publish(self, number: int, order: bytes, done: int) -> None:
        """Let all parts know an order, in the background; all of them have carried out those up to `done`."""
        self._to_publish = number, order, done

    @property
    def is_published(self) -> bool:
        """Whether the last order is durable where all parts find it."""
        return self._to_publish is None

    def follow(self, number: int) -> None:
        """Receive the orders behind a number from now on."""
        self._followed = number

    def order(self, number: int) -> bytes | None:
        """An order with a number, if it has come."""
        for each in list(self._orders):
            if each < number:
                del self._orders[each]
        return self._orders.get(number)

    def await_order(self) -> None:
        """Say that the first order is waited for."""
        self._carrier.silent("the part with the first super-peer has published no plan yet")

    def report(self, data: bytes) -> None:
        """Let the leader know how this part is, in the background."""
        self._to_report = data

    @property
    def reports(self) -> dict[str, bytes]:
        """The newest reports of the other parts, by their names."""
        return dict(self._reports)

    # --- links ------------------------------------------------------------------------------------------------

    def channel(self, maker: str, reader: str) -> str:
        """The channel from a super-peer to another."""
        return self._carrier.channel(maker, reader)

    def sent(self) -> dict[str, str] | None:
        """The newest documents that were sent, by link and partition; None as long as there are others."""
        found: dict[str, str] = {}
        known = self._sent
        for each in self.carried.leaving:
            for number, newest in enumerate(each.link.newest()):
                sent, key = known.get(each.key(number), ""), link_key(each.flow, number)
                if newest > sent:
                    return None
                found[key] = max(found.get(key, ""), sent)
        return found

    def start(self) -> None:
        """Carry documents, until it is stopped."""
        self._threads = [
            Thread(target=self._work, args=(self._send,), name="links out", daemon=True),
            Thread(target=self._work, args=(self._receive,), name="links in", daemon=True),
        ]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Carry no more; what was not carried is, when it is started again."""
        self._stopping.set()
        for each in self._threads:
            each.join()
        self._carrier.close()

    def _is_wanted(self) -> bool:
        return not self._stopping.is_set() and self._wanted()

    def _wait_after(self, error: Exception, *, for_reader: bool = False) -> None:
        """Wait after an error that may pass; others are raised."""
        reason = self._carrier.waits(error, for_reader=for_reader)
        if reason is None or not self._is_wanted():
            raise error
        self._carrier.silent(reason)
        self._stopping.wait(_PAUSE_SECONDS)

    def _work(self, carry: Callable[[], bool]) -> None:
        """Carry documents one way, again and again after what may pass."""
        try:
            while self._is_wanted():
                try:
                    found = carry()
                except Exception as error:
                    self._wait_after(error, for_reader=carry == self._receive)
                    continue
                if not found:
                    self._stopping.wait(_POLL_SECONDS)
        except Exception as error:
            if self._is_wanted():
                self._fail(error)

    def _send(self) -> bool:
        """Send what is to be sent; whether there was anything."""
        order, report = self._to_publish, self._to_report
        if order is not None:
            self._carrier.publish_order(*order)
            self._to_publish = None
        if report is not self._reported and report is not None:
            self._carrier.report(report)
            self._reported = report
        is_sent = self._send_documents(self.carried.leaving)
        if order is not None or is_sent:
            self._carrier.answered()
        return is_sent

    def _send_documents(self, leaving: tuple[OutgoingLink, ...]) -> bool:
        """Send the next documents, then note that they were, then forget them."""
        parcels: dict[str, list[Parcel]] = {}
        known = {each.key(number) for each in leaving for number in range(each.link.partitions)}
        sent = {key: name for key, name in self._sent.items() if key in known}
        before = dict(sent)
        for each in leaving:
            for partition in range(each.link.partitions):
                key = each.key(partition)
                documents = each.link.documents(partition, sent.get(key, ""), _AT_ONCE)
                parcels.setdefault(each.channel, []).extend(Parcel(each.flow, partition, *one) for one in documents)
                if documents:
                    sent[key] = documents[-1][0]
        if sent == before:
            return False
        self._carrier.write({channel: some for channel, some in parcels.items() if some})
        durable.replace(self._record, durable.sealed(sent))
        self._sent = sent
        for each in leaving:
            each.link.forget([sent.get(each.key(number), "") for number in range(each.link.partitions)])
        return True

    def _receive(self) -> bool:
        """Receive orders and reports, and append documents that have come to their links; whether there was any."""
        count = 0
        if self._followed is not None:
            for number, order in self._carrier.orders(self._followed):
                self._orders[number], self._followed = order, number
                count += 1
        if self.listens:
            self._reports |= self._carrier.reports()
        carried = self.carried
        for channel, links in carried.coming.items():
            flows = [(flow, each.partitions) for flow, each in links.items()]
            for parcel in self._carrier.read(channel, flows, carried.plan):
                links[parcel.flow].take(parcel.partition, parcel.name, parcel.data)
                count += 1
            self._carrier.release(channel)
        if count or carried.coming:
            self._carrier.answered()
        return count > 0
