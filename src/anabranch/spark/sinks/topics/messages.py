"""The messages of an epoch for one subscription: one for each result, without what stands around all of them.

A result is an element, a value or a text, or a line of JSON; a message has its text, and can be read by itself, so an
element declares the namespaces that it needs of the constructor around it.
Results with a key are spread over the partitions of the topic by it.
All others of a subscription go to one partition, which its name decides, so that their order is kept.
An accent holds for what follows it, so it is a message in every partition (LAWS 4.1).
The elements of a display's update stream have an order that must be kept, and so have no keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

from anabranch.kafka.transactions import OutgoingMessage
from anabranch.law.calls import PythonFunction
from anabranch.spark.answers.log import AnswerFrame
from anabranch.spark.answers.segments import Chunk
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks import Kafka
from anabranch.spark.sinks.answer_streams import around
from anabranch.spark.sinks.topics.keys import MessageKey
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import STREAM_NAMESPACE, Element

_ACCENT = re.compile(r"<[^\s<>/:]+:accent[\s/>]")
_JSON_ACCENT = '{"$accent":'


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """Where the messages of a subscription go."""

    topic: str
    partitions: int
    partition: int
    """That of messages without a key."""
    headers: tuple[tuple[str, bytes], ...]

    @staticmethod
    def of(subscription: str, epoch: int, topic: str, partitions: int) -> TopicAddress:
        headers = (("subscription", subscription.encode()), ("epoch", str(epoch).encode()))
        return TopicAddress(topic, partitions, crc32(subscription.encode()) % partitions, headers)

    def message(self, value: bytes | None, key: bytes | None = None) -> OutgoingMessage:
        """A message; without a key it goes to the partition of the subscription."""
        return OutgoingMessage(self.topic, value, key, self.partition if key is None else None, self.headers)

    def everywhere(self, value: bytes) -> Iterator[OutgoingMessage]:
        """A message for each partition."""
        return (OutgoingMessage(self.topic, value, None, each, self.headers) for each in range(self.partitions))


def result_messages(
    subscription: Registration,
    sink: Kafka,
    place: TopicAddress,
    chunks: Iterable[tuple[Chunk, str]],
    functions: Mapping[str, PythonFunction],
) -> Iterator[OutgoingMessage]:
    """A message for each result in some chunks of an answer, each with its text; for a display, each element."""
    frame = AnswerFrame.of(subscription, functions)
    alone = _standing_alone(frame) if not subscription.shows else str.strip
    key = MessageKey(sink.key) if sink.key is not None else None
    for chunk, text in chunks:
        json = frame.is_json(text)
        for result in map(str.strip, frame.results(chunk, text)):
            if _is_accent(result, json=json):
                yield from place.everywhere(result.encode())
            elif json:
                yield place.message(result.encode(), None if key is None else key.of_json(result))
            else:
                found = alone(result)
                yield place.message(found.encode(), None if key is None else key.of_element(found))


def _is_accent(result: str, *, json: bool) -> bool:
    if json:
        return result.startswith(_JSON_ACCENT)
    return _ACCENT.match(result) is not None and STREAM_NAMESPACE in result


def _standing_alone(frame: AnswerFrame) -> Callable[[str], str]:
    """A function that lets a result declare the namespaces that the constructors around it declare."""
    if "xmlns" not in frame.opening:
        return str.strip
    root = serialize(around(frame)).removesuffix("/>")

    def alone(result: str) -> str:
        if not result.startswith("<"):
            return result
        top = parse_item(f"{root}>{result}</{root[1:].split()[0]}>".encode(), DOCUMENT)
        return "".join(serialize(each) for each in top.children if isinstance(each, Element))

    return alone
