"""The ways between peers that run in different processes: topics of Kafka, or a folder that all of them reach.

What a super-peer sends to its neighbour is a *channel*; what lies in it are parcels, documents of links with their
names.
A parcel is carried at least once, and those of one partition of a flow in the order of their names; so whoever reads
knows one that comes again.
A parcel that was written is durable, and stays until its reader has said that it is durable there, or for as long as
the topic is kept.

In topics a channel is a topic, and parcels are written in transactions, by a writer whose id belongs to the part: so a
second run of the same super-peers elsewhere fences the first, and nothing that a killed run had under way appears
later.

In a folder, on a disk that is mounted everywhere or in an object store, a channel is a folder and a parcel a file, that
its reader removes.
A run begins by writing down its number, and writes no more when there is a larger one:

    <folder>/orders/<number>
    <folder>/reports/<part>
    <folder>/runs/<part>/<number>
    <folder>/channels/<maker>.<reader>/<flow, by its digest>-<partition>-<name>

Orders are numbered from 1, and of a part's reports only the newest counts (`orders.py`).
What a part does not know yet, since it has not come to the plan, stays until it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from anabranch.errors import StateError
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.documents import DocumentReceiver, TopicDocument, pieces_of
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.transactions import TransactionalWriter
from anabranch.network.description import FolderLinks, TopicLinks
from anabranch.peers.links import is_behind
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location

_PASSING = (Remedy.WAIT, Remedy.RENEW, Remedy.ABORT)
"""What is to be done about errors of Kafka that another attempt may not meet."""
_PERMANENT = (PermissionError, IsADirectoryError, NotADirectoryError)
"""Errors of a folder that no repetition mends."""


class Parcel(NamedTuple):
    """A document of a link on its way."""

    flow: str
    partition: int
    name: str
    data: bytes


class Carrier(Protocol):
    """A way to the other parts of a network; one thread writes, another one reads."""

    def channel(self, maker: str, reader: str) -> str:
        """The name of the channel from a super-peer to another."""

    def begin(self) -> None:
        """Keep earlier runs of this part from writing any more."""

    def publish_order(self, number: int, data: bytes, done: int) -> None:
        """Let all parts know an order; those up to `done` are not needed any more."""

    def orders(self, after: int) -> Iterator[tuple[int, bytes]]:
        """The orders behind a number that have come, without a gap."""

    def report(self, data: bytes) -> None:
        """Replace the report of this part."""

    def reports(self) -> dict[str, bytes]:
        """The newest reports, by part; perhaps only those that were replaced since the last call."""

    def write(self, parcels: Mapping[str, Sequence[Parcel]]) -> None:
        """Write parcels, by channel; they are durable when this returns."""

    def read(self, channel: str, flows: Iterable[tuple[str, int]], plan: int) -> Iterator[Parcel]:
        """What has come in a channel, of flows that are given with their numbers of partitions.

        Of others, what was made under later plans than `plan` stays there, and the rest has lost its reader.
        """

    def release(self, channel: str) -> None:
        """What was read of a channel is durable here, and need not come again."""

    def waits(self, error: Exception, *, for_reader: bool) -> str | None:
        """Why an operation failed, where another attempt may not; None where it would.

        A reader also waits for what others have to make first.
        """

    def answered(self) -> None:
        """An operation went well."""

    def silent(self, reason: str) -> None:
        """An operation is tried again and again."""

    def close(self) -> None:
        """Write no more."""


def carrier_of(
    links: TopicLinks | FolderLinks,
    part: str,
    folder: Path,
    warn: Callable[[str], None],
    wanted: Callable[[], bool],
) -> Carrier:
    """The carrier for links as they are declared; `part` is a name that no other part of the network has."""
    if isinstance(links, TopicLinks):
        return TopicCarrier(links, part, folder / "links-received.json", warn, wanted)
    return FolderCarrier(links, part, warn)


class TopicCarrier:
    """Parcels in topics; how far they were read is noted on the reader's disk."""

    def __init__(
        self, links: TopicLinks, part: str, record: Path, warn: Callable[[str], None], wanted: Callable[[], bool]
    ) -> None:
        """Brokers are waited for as long as `wanted` holds."""
        self._links = links
        self._identity = f"{links.prefix}.{part}"
        self._record = record
        self._log = BrokerLog(links.cluster, warn)
        self._wanted = wanted
        self._writer: TransactionalWriter | None = None
        self._known: set[str] = set()
        """The topics that are known to be there."""
        self._receivers: dict[str, DocumentReceiver] = {}
        self._received: dict[str, int] = _read(record)
        """By topic, the next offset."""
        self._orders: DocumentReceiver | None = None
        self._reports: DocumentReceiver | None = None
        self._part = part

    def channel(self, maker: str, reader: str) -> str:
        return self._links.between(maker, reader)

    def begin(self) -> None:
        self._write({})

    def publish_order(self, number: int, data: bytes, done: int) -> None:
        self._write({self._links.plan: [TopicDocument(f"{number}", data)]})

    def orders(self, after: int) -> Iterator[tuple[int, bytes]]:
        if self._orders is None:
            self._orders = DocumentReceiver(self._links.cluster, self._links.plan, None)
        for each in _present(self._orders):
            number = int(each.name) if each.name.isdigit() else 0  # earlier releases wrote something else
            if number > after + 1:
                raise _lost_orders(self._links.plan, after + 1)
            if number == after + 1:  # one that was published again is known
                yield number, each.data
                after = number

    def report(self, data: bytes) -> None:
        self._write({self._links.reports: [TopicDocument(self._part, data)]})

    def reports(self) -> dict[str, bytes]:
        if self._reports is None:
            self._reports = DocumentReceiver(self._links.cluster, self._links.reports, None)
        return {each.name: each.data for each in _present(self._reports)}

    def write(self, parcels: Mapping[str, Sequence[Parcel]]) -> None:
        self._write(
            {
                topic: [TopicDocument(json.dumps([each.flow, each.partition, each.name]), each.data) for each in some]
                for topic, some in parcels.items()
            }
        )

    def _write(self, documents: Mapping[str, Sequence[TopicDocument]]) -> None:
        """Write documents in one transaction, once their topics are there."""
        try:
            if self._writer is None:
                self._writer = TransactionalWriter(self._links.cluster, self._identity, self._log, self._wanted)
                self._writer.open()
            for topic in documents.keys() - self._known:
                self._writer.partitions(topic)
                self._known.add(topic)
            if documents:
                self._writer.write((each for topic, some in documents.items() for each in pieces_of(topic, some)), {})
        except KafkaFault:
            self.close()
            raise

    def read(self, channel: str, flows: Iterable[tuple[str, int]], plan: int) -> Iterator[Parcel]:
        known = {flow for flow, _ in flows}
        if channel not in self._receivers:
            start = self._received.get(channel, 0)
            self._receivers[channel] = DocumentReceiver(self._links.cluster, channel, start)
        for document in _present(self._receivers[channel]):
            flow, partition, name = json.loads(document.name)
            if flow in known:
                yield Parcel(flow, partition, name, document.data)
            elif is_behind(name, plan):
                return  # all that was received comes again

    def release(self, channel: str) -> None:
        position = self._receivers[channel].position
        if position != self._received.get(channel, 0):
            self._received[channel] = position
            durable.replace(self._record, durable.sealed(self._received))

    def waits(self, error: Exception, *, for_reader: bool) -> str | None:
        passing = (*_PASSING, Remedy.ABSENT) if for_reader else _PASSING
        return error.message if isinstance(error, KafkaFault) and error.remedy in passing else None

    def answered(self) -> None:
        self._log.answered()

    def silent(self, reason: str) -> None:
        self._log.silent(reason)

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.discard()


@dataclass(slots=True)
class _FolderLog:
    """Says once that a folder cannot be reached, and once that it can again."""

    where: str
    say: Callable[[str], None]
    down: bool = False

    def silent(self, reason: str) -> None:
        if not self.down:
            self.down = True
            self.say(f"waiting for '{self.where}': {reason}")

    def answered(self) -> None:
        if self.down:
            self.down = False
            self.say(f"'{self.where}' answers again")


class FolderCarrier:
    """Parcels as files in a folder that all parts reach."""

    def __init__(self, links: FolderLinks, part: str, warn: Callable[[str], None]) -> None:
        self._folder = links.folder
        self._runs = links.folder / "runs" / _quoted(part)
        self._part = part
        self._run: str | None = None
        """The number of this run, once it is written down."""
        self._read: dict[str, list[str]] = {}
        """By channel: the files that were read and not removed yet."""
        self._log = _FolderLog(str(links.folder), warn)

    def channel(self, maker: str, reader: str) -> str:
        return f"{_quoted(maker)}.{_quoted(reader)}"

    def publish_order(self, number: int, data: bytes, done: int) -> None:
        self.begin()
        self._create(self._folder / "orders" / _numbered(number), data)
        old = [each for each in (self._folder / "orders").names() if each <= _numbered(done)]
        if old:
            (self._folder / "orders").delete_all(old)

    def orders(self, after: int) -> Iterator[tuple[int, bytes]]:
        orders = self._folder / "orders"
        for name in orders.names(after=_numbered(after)):
            # A list may miss a file that comes while it is made, and have a later one.
            for number in range(after + 1, int(name) + 1):
                try:
                    yield number, (orders / _numbered(number)).read()
                except FileNotFoundError:
                    raise _lost_orders(str(orders), number) from None
                after = number

    def report(self, data: bytes) -> None:
        self.begin()
        (self._folder / "reports" / _quoted(self._part)).put(data)

    def reports(self) -> dict[str, bytes]:
        folder = self._folder / "reports"
        return {name: (folder / name).read() for name in folder.names() if not _is_hidden(name)}

    def write(self, parcels: Mapping[str, Sequence[Parcel]]) -> None:
        self.begin()
        for channel, some in parcels.items():
            for each in some:
                self._create(self._channel(channel) / _file(each.flow, each.partition, each.name), each.data)

    def _create(self, file: Location, data: bytes) -> None:
        """Write a file, unless an earlier attempt has."""
        try:
            file.create(data)
        except FileExistsError:
            if file.read() != data:
                raise self._taken_over() from None

    def begin(self) -> None:
        """Write this run down as the newest of its part; fail if there is a newer one."""
        runs = self._runs.names()
        if self._run is None:
            number = f"{int(runs[-1]) + 1 if runs else 1:06}"
            try:
                (self._runs / number).create(b"")
            except FileExistsError:
                raise self._taken_over() from None
            self._run = number
        elif runs and runs[-1] != self._run:
            raise self._taken_over()

    def _taken_over(self) -> StateError:
        return StateError(
            f"another run of the super-peer '{self._part}' has taken over at '{self._folder}'",
            hint="run each super-peer once",
        )

    def read(self, channel: str, flows: Iterable[tuple[str, int]], plan: int) -> Iterator[Parcel]:
        folder = self._channel(channel)
        known = {_file(flow, number, ""): (flow, number) for flow, count in flows for number in range(count)}
        newest = {_front(file): file for file in folder.names()}
        self._read[channel] = []
        # A list may miss a file that comes while it is made, and have a later one: what was before that is in another.
        for file in folder.names() if newest else ():
            front = _front(file)
            if front in known and file <= newest.get(front, ""):
                data = (folder / file).read()
                self._read[channel].append(file)
                yield Parcel(*known[front], file[len(front) :], data)
            elif front not in known and not is_behind(file[len(front) :], plan) and not _is_hidden(file):
                self._read[channel].append(file)

    def release(self, channel: str) -> None:
        if done := self._read.pop(channel, None):
            self._channel(channel).delete_all(done)

    def waits(self, error: Exception, *, for_reader: bool) -> str | None:
        passes = isinstance(error, OSError) and not isinstance(error, _PERMANENT)
        return str(error) if passes else None

    def answered(self) -> None:
        self._log.answered()

    def silent(self, reason: str) -> None:
        self._log.silent(reason)

    def close(self) -> None:
        """Nothing is open."""

    def _channel(self, channel: str) -> Location:
        return self._folder / "channels" / channel


def _present(receiver: DocumentReceiver) -> Iterator[TopicDocument]:
    """The documents that have come in a topic; nothing as long as there is no such topic."""
    try:
        yield from receiver.receive()
    except KafkaFault:
        if receiver.exists():
            raise


def _lost_orders(where: str, number: int) -> StateError:
    return StateError(
        f"the order {number} of the network's plan is no longer in '{where}'",
        hint="begin with a new checkpoint for each super-peer, and with other topics or another folder",
    )


def _numbered(number: int) -> str:
    return f"{number:08}"


def _file(flow: str, partition: int, name: str) -> str:
    """The file of a parcel, or with an empty name what the files of a partition of a flow begin with."""
    return f"{durable.digest(flow.encode())[:32]}-{partition}-{name}"


def _front(file: str) -> str:
    """What the files of the same partition of the same flow begin with."""
    return "-".join((*file.split("-", 2)[:2], ""))


def _is_hidden(name: str) -> bool:
    """Whether a file is being written, or was when its writer was killed."""
    return name.startswith(".")


def _quoted(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def _read(path: Path) -> Any:
    return durable.unsealed(path) if path.exists() else {}
