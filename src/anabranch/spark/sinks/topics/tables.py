"""A display whose results have keys, told in upserts: what it showed when the last transaction was committed.

That follows from the answer log, so after a restart it is read again: from a snapshot, and the epochs behind it.
A snapshot is written when the update stream has become long, or old: then it is never further back than the epochs
that retention leaves there (`spark/checkpoint/retention.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from anabranch.kafka.transactions import OutgoingMessage
from anabranch.spark.checkpoint import durable
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks.topics.messages import TopicAddress
from anabranch.spark.sinks.topics.record import UpsertSnapshot
from anabranch.spark.sinks.topics.upserts import ShownKeys, Upserts
from anabranch.storage import Location

SNAPSHOT_EPOCHS = 50
"""The number of epochs with changes after which a snapshot is written."""
_SNAPSHOT_BYTES = 4 << 20
"""The length of the update stream, likewise."""


class KeyedDisplay:
    """What a display shows by key; it lives as long as no transaction fails."""

    def __init__(self, name: str, key: str | None, path: Location, warn: Callable[[str], None]) -> None:
        self._name = name
        self._key = key
        self._path = path
        self._warn = warn
        self._is_warned = False
        self._now: UpsertSnapshot | None = None
        self._length = self._age = 0
        """The length of the stream since the last snapshot, and the number of epochs."""

    def bring(self, asked: Registration, epoch: int, texts: Callable[[int, int, int], Iterable[str]]) -> None:
        """Let it show what the subscription's display showed before an epoch; `texts` gives its answer in epochs."""
        if self._now is None or self._now.owner != asked.id:
            self._now = self._kept(asked, epoch)
        missing = texts(asked.id, self._now.next, epoch - 1)
        for _ in Upserts(self._name, self._key, self._now.shown).messages(self._counted(missing), _NOWHERE):
            pass
        self._now = UpsertSnapshot(asked.id, epoch, self._now.shown)

    def messages(self, texts: Iterable[str], place: TopicAddress) -> Iterator[OutgoingMessage]:
        """The messages of the epoch that it was brought to."""
        assert self._now is not None
        upserts = Upserts(self._name, self._key, self._now.shown)
        yield from upserts.messages(self._counted(texts), place)
        if upserts.keyless and not self._is_warned:
            self._is_warned = True
            self._warn(f"results of '{self._name}' that have no '{self._key}' are not written to '{place.topic}'")
        self._now = UpsertSnapshot(self._now.owner, self._now.next + 1, self._now.shown)
        self._age += 1

    def written(self) -> None:
        """The epoch was committed."""
        if self._now is not None and (self._length > _SNAPSHOT_BYTES or self._age > SNAPSHOT_EPOCHS):
            durable.write_record(self._path, self._now)
            self._length = self._age = 0

    def _kept(self, asked: Registration, epoch: int) -> UpsertSnapshot:
        found = durable.read_record(UpsertSnapshot, self._path) if durable.exists(self._path) else None
        if found is not None and found.owner == asked.id and found.next <= epoch:
            return found
        return UpsertSnapshot(asked.id, asked.first, ShownKeys())

    def _counted(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            self._length += len(text)
            yield text


_NOWHERE = TopicAddress("", 1, 0, ())
