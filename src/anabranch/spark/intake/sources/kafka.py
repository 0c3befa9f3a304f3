"""Streams in topics of Kafka: one partition of the topic is one partition of the stream (LAWS 1.1).

A partition has one stretch, which begins at the offset where reading begins and never ends; positions are offsets.
The order log has the stretch, with the topic's id, before anything is read: so `latest` and a moment mean one offset
for good, and a topic that was made anew under its name is noticed, at whatever offsets it is.
All partitions that are there are begun together, in the order of their numbers; those that come later begin at their
first message, wherever the others did.

An epoch goes as far as messages are committed, and no further than its bytes allow.
How many bytes a message has shows only when it is read; so tasks report it, and the driver writes it down for the next
epochs (`weights.py`).
To cut ranges, which must not depend on that, each message counts alike.

Brokers that do not answer hold nothing up: as long as they are silent there is nothing new to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from anabranch.errors import StreamError
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.topics import TopicLook, TopicWatch
from anabranch.spark.intake.order import FileStretch, OrderLog
from anabranch.spark.intake.ranges import LARGEST_RANGE, SMALLEST_RANGE, Move, Offset, Position, Range
from anabranch.spark.intake.sources.connector import Connector, Listing, Reason, Weights
from anabranch.stream.reading.markup import BOM
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.stream.reading.topic import Topic
from anabranch.stream.serialize import serialize

if TYPE_CHECKING:
    from anabranch.spark.checkpoint.manifest import Manifest

_LOOK_SECONDS = 0.5
"""How long a look waits for brokers, while other streams wait for it."""
_FIRST_LOOK_SECONDS = 5.0
_PATIENT_SECONDS = 60.0
"""More than brokers have for an answer."""
_USUAL_WEIGHT = 4 << 10
"""The bytes of a message, as long as none was read."""
CUT_WEIGHT = 2 << 10
"""The bytes that a message counts where ranges are cut."""
_LOOKED_AT = 10_000
"""The number of offsets of a partition that are searched for a first value, to tell the format by it."""


class KafkaConnector(Connector):
    """A stream in a topic."""

    def __init__(self, source: Source, log: OrderLog, weights: Weights) -> None:
        super().__init__(source, log)
        assert source.topic is not None
        self._topic: Topic = source.topic
        self._weights = weights
        self._last: TopicLook | None = None

    @cached_property
    def _watch(self) -> TopicWatch:
        return TopicWatch(self._topic.cluster, self._topic.name)

    @property
    def keys(self) -> Iterable[str]:
        return [self._key(number) for number in range(self.log.count)]

    def _key(self, partition: int) -> str:
        return f"{self.source.name}/{partition}"

    # --- planning -----------------------------------------------------------------------------------------

    def listing(self, *, patient: bool) -> Listing:
        """Brokers that stay silent are told of by `waits`, unless somebody needs to know what is there."""
        usual = _FIRST_LOOK_SECONDS if self._last is None else _LOOK_SECONDS
        try:
            found = self._watch.look(_PATIENT_SECONDS if patient else usual)
        except KafkaFault as error:
            if error.remedy is not Remedy.ABSENT and (patient or error.remedy is not Remedy.WAIT):
                raise StreamError(error.message, code=error.code, hint=error.hint) from None
            found = None
        if found is None:
            return {}
        self._check(found)
        self._last = found
        return {
            self._key(partition): {self._topic.label(partition): end} for partition, end in sorted(found.ends.items())
        }

    def _check(self, found: TopicLook) -> None:
        """Refuse a topic that is not the one that was begun, or has more partitions than was promised."""
        topic = self._topic
        begun = self.log.stretches("0")
        if begun and begun[0].head != found.id:
            raise made_anew(topic)
        if topic.only is not None and len(found.ends) != topic.only:
            raise StreamError(
                f"the topic '{topic.name}' has {len(found.ends)} partitions, and {topic.only} were promised",
                hint=f"'partitions' of the stream '{self.source.name}' is only for topics that keep their number",
            )

    def sight(self, there: Listing, before: Listing | None) -> Listing:
        return there if before is None else self._mine(before)

    def _mine(self, sight: Listing) -> Listing:
        """What a sight has of this stream, in the order of its partitions."""
        return {key: ends for key, ends in sight.items() if key.rpartition("/")[0] == self.source.name}

    def form(self, sight: Listing, *, decide: bool) -> StreamForm | None:
        known = None if self.source.format == "auto" else self.source.format
        mine = self._mine(sight)
        if known is None and self._begin(len(mine)):
            known = self._detected(mine)
        return None if known is None else StreamForm(known, serialize(implied_root(self.source.implied_root)))

    def _detected(self, sight: Listing) -> Format | None:
        """The format of the first value among the messages; None where there is none yet."""
        for key, ends in sight.items():
            partition, (end,) = key.rpartition("/")[2], ends.values()
            start = self.log.stretches(partition)[0].start
            try:
                for batch in self._topic.range(int(partition), start, min(end, start + _LOOKED_AT)).batches(1 << 16):
                    for value in filter(None, batch.values):
                        if text := value.removeprefix(BOM).strip():
                            return "json" if text.startswith(b"{") else "lines"
            except KafkaFault as error:
                if error.remedy is not Remedy.WAIT:
                    raise StreamError(error.message, code=error.code, hint=error.hint) from None
        return None

    def views(self, sight: Listing, start: Offset, *, finite: bool) -> Iterator[TopicView]:
        mine = self._mine(sight)
        if self.source.copies:
            mine = {key: ends for key, ends in mine.items() if int(key.rpartition("/")[2]) < self.log.count}
        elif not self._begin(len(mine)):
            return
        weight = max(1, round(self._weights().get(self.source.name, _USUAL_WEIGHT)))
        for key, ends in mine.items():
            partition, (end,) = key.rpartition("/")[2], ends.values()
            at = max(Position.of(start, key).position, self.log.stretches(partition)[0].start)
            if end < at:
                raise StreamError(
                    f"the topic '{self._topic.name}', partition {partition}, ends at offset {end}, "
                    f"and was read to {at} before",
                    hint="its broker has lost messages: give the stream another name to begin anew",
                )
            if end > at:
                yield TopicView(key, at, end, weight)

    def _begin(self, count: int) -> bool:
        """Write down where reading begins in new partitions, up to a number of them; False if brokers do not tell."""
        new = range(self.log.count, count)
        if not new:
            return True
        assert self._last is not None, "partitions are seen before they are begun"
        topic = self._topic
        given = {} if new.start else dict(topic.offsets)
        try:
            firsts = self._watch.offsets(new, "earliest" if new.start else topic.start)
        except KafkaFault as error:
            if error.remedy is Remedy.WAIT:
                return False
            raise StreamError(error.message, code=error.code, hint=error.hint) from None
        starts = {each: given.get(each, firsts[each]) for each in new}
        self.log.append(FileStretch(str(each), topic.label(each), starts[each], False, self._last.id) for each in new)
        return True

    def ranges(self, key: str, start: Offset, end: Offset, cores: int | None) -> Iterator[Range]:
        stream, _, partition = key.rpartition("/")
        stretch = self.log.stretches(partition)[0]
        first, last = max(Position.of(start, key).position, stretch.start), Position.of(end, key).position
        parts = 1 if cores is None else _parts((last - first) * CUT_WEIGHT, cores)
        for number in range(parts):
            begin, stop = (first + (last - first) * each // parts for each in (number, number + 1))
            if begin < stop:
                yield Range(
                    stream, partition, 0, stretch.file, stretch.head, begin, stop, False, False, 0, weight=CUT_WEIGHT
                )

    # --- for people ---------------------------------------------------------------------------------------

    def waits(self, last: Manifest | None) -> Iterator[Reason]:
        topic, brokers = self._topic, self._topic.cluster.brokers
        try:
            found = self._watch.look(_LOOK_SECONDS)
        except KafkaFault as error:
            match error.remedy:
                case Remedy.ABSENT:
                    yield f"there is no topic '{topic.name}' at '{brokers}'", "it is read when it is there: create it"
                case Remedy.WAIT:
                    yield f"no broker of '{brokers}' answers", "the stream goes on when one does"
            return
        if found is None:
            yield f"no broker of '{brokers}' answers", "the stream goes on when one does"
        elif not self.log.count and not any(found.ends.values()):
            yield f"the topic '{topic.name}' is empty", "write messages into it"


def _parts(size: int, cores: int) -> int:
    """Into how many ranges so many bytes are cut."""
    rounds = -(-size // (cores * LARGEST_RANGE))
    target = max(SMALLEST_RANGE, -(-size // (cores * max(1, rounds))))
    return max(1, -(-size // target))


def made_anew(topic: Topic) -> StreamError:
    """The error for a topic that is not the one that was begun."""
    return StreamError(
        f"the topic '{topic.name}' was removed and made anew since it was first read",
        hint="its offsets mean other messages now: give the stream another name to read the new one",
    )


@dataclass(frozen=True, slots=True)
class TopicView:
    """A partition with messages to read, from an offset to its end."""

    key: str
    start: int
    end: int
    weight: int
    """The bytes of a message."""

    def advance(self, at: Position, budget: int, stretches: int) -> Move:
        to = min(self.end, self.start + max(1, budget // self.weight))
        return Move(Position(0, to), (), (to - self.start) * self.weight, to == self.end)
