"""The messages of a range of a topic, for the task that reads it.

Values are joined to bytes that the scanners take, thousands of messages at a time (`columnar/messages.py`).
Most begin and end as an item does, which is seen at once for all of them; around others there may be white space, a
byte order mark or an XML declaration, which are no part of the item.

What makes a message unreadable makes it a dead letter: an encoding that is not supported, more bytes than an item may
have.
What keeps all of them from being read is an error: messages that retention has removed, a topic that was made anew.
Brokers that do not answer are neither: `SourceUnavailable` lets the driver wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from typing import TypeVar

import numpy as np

from anabranch.columnar.messages import Messages, MessageShredder
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.shred import Shredder
from anabranch.errors import BadItem, SourceUnavailable, StreamError
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.reading import MessageBatch
from anabranch.kafka.topics import TopicWatch
from anabranch.spark.intake.ranges import Range
from anabranch.spark.intake.sources.kafka import made_anew
from anabranch.spark.intake.storage import PIECE
from anabranch.stream.elements import LONGEST_RAW, MESSAGE_BITS, DeadLetter, Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut, too_long
from anabranch.stream.reading.markup import BOM, check_width, declared_encoding
from anabranch.stream.reading.messages import TOMBSTONE, pack_headers, unwrapped, upserted_key
from anabranch.stream.reading.reader import ElementReader, Format
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.topic import Topic
from anabranch.stream.tree import Element, Name

_SPACE = b" \t\r\n"
_OPEN, _CLOSE, _QUESTION, _OBJECT, _OBJECT_END = b"<>?{}"
_LARGEST_OF_LINES = (1 << MESSAGE_BITS) - 1
"""The largest message that holds lines, in bytes: a position has the byte in its message."""


class MessageBytes:
    """A range of a partition, read once from its first message to its last."""

    def __init__(self, source: Source, form: Format, limits: Limits, reach: Range) -> None:
        topic = source.topic
        assert topic is not None
        self.lines = False
        self.start = self._position(topic, reach.start)
        self.shredder: Shredder = MessageShredder(limits)
        self.messages = self.size = 0
        self.largest: int | None = None
        self._stamped = source.is_stamped
        self._topic = topic
        self._form = form
        self._tombstone = _tombstone(source, form)
        self._limits = limits
        self._range = reach
        self._replays = bool(source.replays)

    @staticmethod
    def _position(topic: Topic, offset: int) -> int:
        return offset << MESSAGE_BITS if topic.lines else offset

    def carry(self) -> str | None:
        return None

    def parts(self, size: int = PIECE) -> Iterator[Messages | DeadLetter]:
        try:
            yield from self._held(self._range.start, size)
            self._check_topic()
        except KafkaFault as error:
            raise self._error(error) from None

    def _held(self, start: int, size: int) -> Iterator[Messages | DeadLetter]:
        """The messages from an offset on; a replay passes over those that retention has removed, and names them."""
        partition = int(self._range.partition)
        while start < self._range.end:
            try:
                for batch in self._topic.range(partition, start, self._range.end).batches(size):
                    yield from self._messages(batch)
                    start = batch.offsets[-1] + 1
                return
            except KafkaFault as error:
                if error.remedy is not Remedy.LOST or not self._replays:
                    raise
            self._check_topic()
            first = min(max(start + 1, self._earliest()), self._range.end)
            place = Place(self._range.stream, self._range.file, self._position(self._topic, start))
            yield DeadLetter(place, f"retention has removed the offsets {start} to {first - 1}", "")
            start = first

    # --- errors -------------------------------------------------------------------------------------------

    def _check_topic(self) -> None:
        """Refuse what was read if it is from another topic than the one that was begun: names are used again."""
        found = TopicWatch(self._topic.cluster, self._topic.name).id()
        if found != self._range.path:
            raise made_anew(self._topic)

    def _earliest(self) -> int:
        """The first offset that the partition still has."""
        watch, partition = TopicWatch(self._topic.cluster, self._topic.name), int(self._range.partition)
        return watch.offsets([partition], "earliest")[partition]

    def _error(self, error: KafkaFault) -> StreamError:
        topic, partition = self._topic, int(self._range.partition)
        if error.remedy in (Remedy.WAIT, Remedy.ABSENT):
            return SourceUnavailable(error.message, code=error.code, hint=error.hint)
        if error.remedy is Remedy.LOST:
            try:
                self._check_topic()
                first = self._earliest()
            except StreamError as anew:
                return anew
            except KafkaFault as other:
                return self._error(other)
            where = f"the topic '{topic.name}', partition {partition}"
            return StreamError(
                f"{where}, has lost messages before they were read: offsets {self._range.start} to {first - 1}",
                code=error.code,
                hint="retention has removed them: to go on without, give the stream another name, with a 'start'",
            )
        return StreamError(error.message, code=error.code, hint=error.hint)

    # --- messages -----------------------------------------------------------------------------------------

    def _messages(self, batch: MessageBatch) -> Iterator[Messages | DeadLetter]:
        """A batch as joined values; what cannot be read of it comes first."""
        values = [self._tombstone if each is None else each for each in batch.values]
        offsets = np.array(batch.offsets, np.int64)
        stamps = np.array(batch.stamps(), np.int64) if self._stamped else None
        keys, noted = batch.keys(), batch.headers()
        headers = None if noted is None else [None if each is None else pack_headers(each) for each in noted]
        if stamps is not None:
            self.largest = max(int(stamps.max()), self.largest or 0)
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        self.messages += len(values)
        self.size += int(lengths.sum())
        data = b"".join(values)
        if self._topic.lines or self._topic.upserts or not self._are_plain(data, np.cumsum(lengths), lengths):
            bad: list[DeadLetter] = []
            given = zip(batch.values, offsets.tolist(), keys or repeat(None, len(values)), strict=True)
            read = [self._read(*each, bad) for each in given]
            yield from bad
            good = np.array([each is not None for each in read], np.bool_)
            values, offsets = [each for each in read if each is not None], offsets[good]
            stamps = None if stamps is None else stamps[good]
            keys, headers = _chosen(keys, good), _chosen(headers, good)
            lengths = np.fromiter(map(len, values), np.int64, len(values))
            data = b"".join(values)
        if values:
            yield Messages(data, np.cumsum(lengths), offsets, stamps, keys, headers, self._topic.lines)

    def _are_plain(self, data: bytes, ends: Indices, lengths: Indices) -> bool:
        """Whether all values begin and end as items do."""
        if not (lengths >= 2).all():
            return False
        seen = np.frombuffer(data, np.uint8)
        begins = ends - lengths
        if self._form == "json":
            return bool((seen[begins] == _OBJECT).all() and (seen[ends - 1] == _OBJECT_END).all())
        opened = (seen[begins] == _OPEN) & (seen[begins + 1] != _QUESTION)
        return bool(opened.all() and (seen[ends - 1] == _CLOSE).all())

    def _read(self, value: bytes | None, offset: int, key: bytes | None, bad: list[DeadLetter]) -> bytes | None:
        """The item or the lines of a message; None for one that cannot be read."""
        try:
            if self._topic.upserts:
                return self._upsert(value, key)
            return self._tombstone if value is None else self._plain(value)
        except (StreamError, BadItem) as error:
            place = Place(self._range.stream, self._range.file, self._position(self._topic, offset))
            raw = b"" if value is None else value[:LONGEST_RAW]
            bad.append(DeadLetter(place, error.message, raw.decode("utf-8", "replace")[:LONGEST_RAW]))
            return None

    def _plain(self, value: bytes) -> bytes:
        """The item or the lines of a message, without what may stand around them."""
        if self._topic.lines and len(value) > _LARGEST_OF_LINES:
            raise StreamError(too_long(Limits(item_bytes=_LARGEST_OF_LINES)))
        check_width(value[:4])
        value = value.removeprefix(BOM)
        if self._topic.lines:
            return value if value.endswith(b"\n") else value + b"\n"
        value = value.strip(_SPACE)
        return _without_declaration(value) if self._form != "json" and value.startswith(b"<?xml") else value

    def _upsert(self, value: bytes | None, key: bytes | None) -> bytes:
        """The item of an upsert, or a tombstone; BadItem where it needs a key and has none (LAWS 5.9)."""
        plain = TOMBSTONE if value is None else self._plain(value)
        if value is not None:
            if not (key or b"").strip() and not self._is_item(plain):
                return plain  # a control element, or what its reader sets aside
            if self._topic.upserts == "debezium":
                plain = unwrapped(plain, self._limits) or TOMBSTONE
            elif plain == TOMBSTONE:
                raise BadItem("the message is a zero byte")
        upserted_key(key)
        return plain

    def _is_item(self, value: bytes) -> bool:
        reader = ElementReader(self._range.stream, self._form, self._limits, Element(Name("root")))
        (found,) = reader.elements([Cut(0, len(value), value)], self._range.file)
        return isinstance(found, Item)


T = TypeVar("T")


def _tombstone(source: Source, form: Format) -> bytes:
    """The bytes in the place of a value that is not there (LAWS 1.6, 5.9)."""
    assert source.topic is not None
    if source.topic.upserts:
        return TOMBSTONE
    if source.topic.lines:
        return b"\n"
    return b"{}" if form == "json" else f"<{source.item_name}/>".encode()


def _chosen(values: Sequence[T] | None, good: Flags) -> list[T] | None:
    return None if values is None else list(compress(values, good.tolist()))


def _without_declaration(value: bytes) -> bytes:
    """An item in UTF-8, without the XML declaration before it."""
    head, ended, rest = value.partition(b"?>")
    encoding = declared_encoding(head + ended)
    if not ended:
        return value
    if encoding != "utf-8":
        try:
            rest = rest.decode(encoding).encode()
        except UnicodeDecodeError:
            raise StreamError(f"the message is not in '{encoding}', the encoding that it declares") from None
    return rest.strip(_SPACE)
