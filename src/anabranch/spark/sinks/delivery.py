"""Delivery: each sink of a trunk gets the results of an epoch once it is committed, at its own position.

A sink reads from the answer log and stores its position, so a sink that is added later, or whose trunk was killed,
first gets all that it is missing.
A file holds a prefix of the answer, without the closing part, which an endless answer never reaches; `anabranch answer`
adds it.
Dead letters and late items are such files, too, with one line of JSON each.
Topics have threads of their own, one for each cluster (`topics/delivery.py`), which are not waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol, TextIO, TypeAlias

from anabranch.kafka import KafkaCluster
from anabranch.law.calls import PythonFunction
from anabranch.spark.answers.log import AnswerFrame, AnswerLog
from anabranch.spark.answers.segments import DEAD_LETTERS, LATE_ITEMS, late_places
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import Plans
from anabranch.spark.sinks import Console, Files, Kafka, Parquet, Sink, kind_of_sink
from anabranch.spark.sinks.answer_streams import AnswerStream
from anabranch.spark.sinks.changelog import ChangesForm
from anabranch.spark.sinks.growing import Growing, growing
from anabranch.spark.sinks.pieces import lines_in, take_apart
from anabranch.spark.sinks.topics.delivery import TopicDelivery
from anabranch.spark.sinks.topics.flow import DeliveryHost
from anabranch.storage import Location, Where
from anabranch.stream.reading.source import Source
from anabranch.visible import visible


class Destination(Protocol):
    """A sink that receives epochs."""

    next: int
    """The next epoch to deliver."""

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Deliver the results of an epoch for a subscription."""


class AnswerFile:
    """A prefix of an answer, in a file or in parts."""

    def __init__(self, file: Growing, functions: Mapping[str, PythonFunction]) -> None:
        self._file = file
        self._functions = functions
        self.next = file.next

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Append the results of an epoch for a subscription."""
        if not self._file.begins(subscription.id):
            self._file.append(subscription.id, epoch, texts)
            return
        first, *rest = texts
        opening = AnswerFrame.of(subscription, self._functions).told(first).opening
        self._file.append(subscription.id, epoch, (opening, first, *rest))


_Key: TypeAlias = tuple[str, Sink]


class Sinks:
    """The sinks of a trunk, by subscription name; only the trunk calls `deliver`."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        functions: Mapping[str, PythonFunction],
        warn: Callable[[str], None] = lambda message: None,
        fail: Callable[[Exception], None] = lambda error: None,
        run: int = 1,
    ) -> None:
        self._checkpoint = checkpoint
        self._functions = functions
        self._warn = warn
        self._log = AnswerLog(checkpoint)
        self._plans = Plans(checkpoint)
        self._sinks: dict[_Key, Destination] = {}
        self._lines: dict[int, Growing] = {}
        """Files for dead letters and late items, by their numbers in chunks."""
        self._answers: dict[tuple[str, str, str], AnswerStream] = {}
        """Streams that are answers: by name, the subscription and the name of their items."""
        self._host = DeliveryHost(checkpoint, run, functions, warn, fail)
        self._topics: dict[KafkaCluster, TopicDelivery] = {}

    def set(
        self,
        sinks: Mapping[str, Sink],
        dead_letters: Where | None,
        late_items: Where | None = None,
        streams: Collection[Source] = (),
    ) -> None:
        """Replace the sinks, including streams that are answers; each first gets what it is missing."""
        paths = {number: path for number, path in ((DEAD_LETTERS, dead_letters), (LATE_ITEMS, late_items)) if path}
        lines = {number: self._held(number, Location.of(path)) for number, path in paths.items()}
        topics = {name: sink for name, sink in sinks.items() if isinstance(sink, Kafka)}
        others = [key for key in sinks.items() if key[0] not in topics]
        self._sinks = {key: self._sinks.get(key) or self._destination(*key) for key in others}
        self._lines = lines
        given = {(each.name, each.answer, each.item_name): each for each in streams if each.answer}
        self._answers = {key: self._answers.get(key) or self._answer_stream(each) for key, each in given.items()}
        missed = min((each.next for each in self._all()), default=None)
        for epoch in () if missed is None else self._log.manifests.epochs():
            if epoch >= (missed or 0):
                self.deliver(self._log.manifests.load(epoch), self._plans.ran(epoch))
        self._set_topics(topics)

    def _set_topics(self, sinks: Mapping[str, Kafka]) -> None:
        clusters = {each.cluster for each in sinks.values()}
        for cluster in self._topics.keys() - clusters:
            self._topics.pop(cluster).end(lambda: True)
        kept = self._log.manifests.epochs()
        for cluster in clusters:
            if cluster not in self._topics:
                self._topics[cluster] = TopicDelivery(cluster, self._host, kept[-1] if kept else -1)
            self._topics[cluster].set({name: each for name, each in sinks.items() if each.cluster == cluster})

    def __bool__(self) -> bool:
        """Whether there are sinks."""
        return bool(self._sinks or self._lines or self._answers)

    def deliver(self, manifest: Manifest, plan: Plan) -> None:
        """Deliver an epoch to each sink that has not got it yet."""
        found = self._log.index(manifest)
        named: list[tuple[str, Destination]] = [(name, sink) for (name, _), sink in self._sinks.items()]
        for name, sink in (*named, *((answer, stream) for (_, answer, _), stream in self._answers.items())):
            each = plan.by_name.get(name)
            if each is not None and sink.next <= manifest.epoch and (chunks := found.of(each.id)):
                sink.take(each, manifest.epoch, map(self._log.text, chunks))
        for number, file in self._lines.items():
            if file.next <= manifest.epoch and found.of(number):
                file.append(number, manifest.epoch, self._other_lines(manifest, number))
        for held in self._all():
            held.next = max(held.next, manifest.epoch + 1)
        for topics in self._topics.values():
            topics.committed(manifest.epoch)

    @property
    def behind(self) -> bool:
        """Whether topics have not got all committed epochs."""
        return any(each.behind for each in self._topics.values())

    def epochs_behind(self, committed: int, delivered: int) -> Mapping[str, int]:
        """By kind of sink, where there are some: the committed epochs that one of them has not got yet.

        Those but topics get an epoch together, and `delivered` is the newest that they have.
        """
        found: dict[str, int] = {kind_of_sink(sink): max(0, committed - delivered) for _, sink in self._sinks}
        if self._topics:
            found["kafka"] = max(each.epochs_behind for each in self._topics.values())
        return found

    @property
    def needed(self) -> int:
        """The oldest epoch that a topic may still need; the next one where there are none."""
        return min((each.needed for each in self._topics.values()), default=sys.maxsize)

    def end(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Let topics have what they have not got; in a `hurry`, or where brokers do not answer, the next run does."""
        while self._topics:
            self._topics.popitem()[1].end(hurry)

    @property
    def streamed(self) -> int:
        """The number of documents written for streams that are answers."""
        return sum(each.written for each in self._answers.values())

    def forget(self, read: Callable[[str], str]) -> None:
        """Remove the documents that answer streams have read; `read` gives the document that a stream reads next."""
        for (name, _, _), stream in self._answers.items():
            stream.forget(read(name))

    def _answer_stream(self, source: Source) -> AnswerStream:
        found, kept = AnswerStream(source, self._functions), self._log.manifests.epochs()
        asked = self._log.subscription(source.answer)
        if asked is not None and kept and max(found.next, asked.first) < kept[0]:
            if asked.shows:
                self._log.check_followed(asked)
            self._warn(f"a part of '{source.answer}' is no longer kept, so the stream '{source.name}' lacks it")
        return found

    def _other_lines(self, manifest: Manifest, number: int) -> Iterable[str]:
        if number == DEAD_LETTERS:
            return (f"{letter.to_json()}\n" for letter in self._log.buried(manifest))
        return (f"{line}\n" for line in late_places(self._checkpoint.segments, manifest.segments))

    def _held(self, number: int, path: Location) -> Growing:
        before = self._lines.get(number)
        return before if before and before.path == path else growing(path, self._checkpoint.sink(path))

    def _destination(self, name: str, sink: Sink) -> Destination:
        match sink:
            case Files():
                return AnswerFile(growing(sink.at, self._checkpoint.sink(sink.at)), self._functions)
            case Parquet():
                from anabranch.spark.sinks.parquet import ParquetFolder  # loads Arrow's Parquet only where needed

                asked = self._log.subscription(name)
                form: ChangesForm = "upserts" if sink.changes == "upserts" else "updates"
                folder = ParquetFolder(sink.at, self._checkpoint, self._warn, asked, form)
                kept = self._log.manifests.epochs()
                if asked is not None and asked.shows and kept and max(folder.next, asked.first) < kept[0]:
                    self._log.check_followed(asked)
                return folder
            case Kafka():
                raise AssertionError("topics are delivered elsewhere")
            case Console(out):
                kept = self._log.manifests.epochs()
                return ConsoleLines(out, kept[-1] + 1 if kept else 0, self._functions)

    def _all(self) -> Iterator[Destination | Growing]:
        yield from self._sinks.values()
        yield from self._lines.values()
        yield from self._answers.values()


# --- answers on standard output ---------------------------------------------------------------------------------------


class ConsoleLines:
    """Prints the answers of the epochs from `next` on."""

    def __init__(self, out: TextIO | None, next: int, functions: Mapping[str, PythonFunction] | None = None) -> None:
        self._out = out
        self.next = next
        self._functions = functions

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Print the results of an epoch for a subscription."""
        out = self._out or sys.stdout
        encoding = out.encoding or "utf-8"
        frame = AnswerFrame.of(subscription, self._functions) if subscription.text else AnswerFrame("", "", "")
        for text in texts:
            found = lines_in(text) if frame.is_json(text) else [piece.text for piece in take_apart(text)]
            for piece in found:
                line = f"{visible(subscription.name)}: {visible(piece.strip())}\n"
                out.write(line.encode(encoding, "xmlcharrefreplace").decode(encoding))
        out.flush()
