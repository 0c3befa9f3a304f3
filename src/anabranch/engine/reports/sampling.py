"""The newest items of a partition, and their paths.

Without a schema the paths of items are unknown, and an accent on a misspelt path is valid.
So the publisher of an accent is warned of a path that no recent item has: some of the newest data is read for it,
newest files first, and the warning says how much that was.
A long file of lines is read from its end, a document from its front, because of its root; of a topic, the newest
messages of the partition are, and of a pushed stream what its spool still has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from anabranch.engine.reports.evolution import StreamCourse
from anabranch.errors import StateError
from anabranch.kafka.faults import KafkaFault
from anabranch.kafka.topics import TopicWatch
from anabranch.spark.intake import folders, storage
from anabranch.spark.spool.files import PUSHED, names, read_file
from anabranch.storage import Location
from anabranch.stream import description
from anabranch.stream.elements import Accent, Add, DeadLetter, Item, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.gzip import PACKED_CHUNK, gunzip
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.stream.reading.split import Cut, DocumentSplitter, LineSplitter
from anabranch.stream.reading.topic import Topic
from anabranch.stream.schema import Learner, Schema

MOST_ITEMS = 1_000
MOST_BYTES = 4 << 20
MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class ItemSample:
    """The sampled items and files, and their paths."""

    items: int
    files: tuple[str, ...]
    """Newest first."""
    schema: Schema


def unseen_paths(course: StreamCourse, accent: Accent, partition: int, form: StreamForm) -> Iterator[str]:
    """A warning for each path of an accent that no sampled item has, if that means anything.

    A schema declares its paths, and a path that an accent has added need not have come yet.
    """
    if course.source.schema is not None:
        return
    told = {each.path for each in course.now(partition).schema() if each.state.carried}
    evolving = () if isinstance(accent.evolution, Add) else (accent.evolution.path,)
    asked = [each for each in (*evolving, *sorted(description.paths(accent.where))) if each.steps and each not in told]
    sample = sampled(course.source, partition, form) if asked else None
    if sample is None or not sample.items:
        return
    files = f"'{sample.files[0]}'" if len(sample.files) == 1 else f"'{sample.files[-1]}' to '{sample.files[0]}'"
    for path in dict.fromkeys(asked):
        if not sample.schema.declares(path):
            yield f"no item has had '{path}': the newest {sample.items:,} were looked at, in {files}"


def sampled(source: Source, partition: int, form: StreamForm) -> ItemSample:
    """Sample the newest items of a partition."""
    root = parse_root(form.root.encode())
    learner, items = Learner(root.name.local), 0
    looked: list[str] = []
    for part in newest_parts(source, partition, form, MOST_ITEMS):
        for element in part.elements(source, form):
            if isinstance(element, Item):
                learner.add(element.tree)
                items += 1
        looked.append(part.name)
    return ItemSample(items, tuple(looked), learner.schema())


def form_of(course: StreamCourse) -> StreamForm | None:
    """The format of a stream: as a run has found it, or else by its first bytes; None where nothing tells."""
    source = course.source
    if course.form is not None:
        return course.form
    if source.topic is None and source.http is None:
        there = [[str(file) for file in source.files_of(each)] for each in source.partitions if each.exists()]
        found = folders.form_of(source, there, decide=True)
        if found is not None:
            return found
    return None if source.format == "auto" else StreamForm(source.format, f"<{source.implied_root}/>")


@dataclass(frozen=True, slots=True)
class NewestPart:
    """Some of the newest elements of a partition, as they are written in one file, or in a partition of a topic."""

    name: str
    cuts: Sequence[Cut]

    def elements(self, source: Source, form: StreamForm) -> Iterator[StreamElement | DeadLetter]:
        """Its elements; a bad one is a dead letter."""
        root = parse_root(form.root.encode())
        return ElementReader(source.name, form.format, Limits(), root, source.item_name).elements(self.cuts, self.name)


def newest_parts(source: Source, partition: int, form: StreamForm, most: int) -> Iterator[NewestPart]:
    """The newest elements of a partition, about `most` or `MOST_BYTES` of them; those of the newest file first."""
    elements, left, is_document = 0, MOST_BYTES, form.format == "document"
    for name, read in _newest_files(source, partition, document=is_document):
        data = read(left)
        splitter = (DocumentSplitter if is_document else LineSplitter)(Limits())
        cuts = [*splitter.feed(data), *splitter.finish()][-(most - elements) :]
        yield NewestPart(name, cuts)
        elements += len(cuts)
        left -= len(data)
        if elements >= most or left <= 0:
            return


def _newest_files(source: Source, partition: int, *, document: bool) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    """The files of a partition, newest first, or a partition of a topic, by name; each can be read for some bytes."""
    if source.topic is not None:
        yield source.topic.label(partition), partial(_newest_messages, source.topic, partition)
        return
    where = source.partitions[partition]
    if source.http is not None:
        yield PUSHED, partial(_newest_pushed, where)
        return
    for file in reversed(source.files_of(where)[-MOST_FILES:]):
        yield file.name, partial(_newest, file, document=document)


def _newest_pushed(spool: Location, most: int) -> bytes:
    """What a spool still has, in whole bodies."""
    found: list[bytes] = []
    for name in reversed(names(spool)[-MOST_FILES:]):
        if sum(map(len, found)) >= most:
            break
        with suppress(StateError):  # a run at work has removed it meanwhile
            found.append(read_file(spool / str(name))[1])
    return b"".join(reversed(found))


def _newest_messages(topic: Topic, partition: int, most: int) -> bytes:
    """The newest messages of a partition, each on a line unless it holds lines; none where brokers do not answer."""
    watch = TopicWatch(topic.cluster, topic.name)
    try:
        first, end = (watch.offsets([partition], each)[partition] for each in ("earliest", "latest"))
        read = topic.range(partition, max(first, end - MOST_ITEMS), end).batches(most)
        found = [value for batch in read for value in batch.values if value is not None]
    except KafkaFault:
        return b""
    return b"".join(value + b"\n" if topic.lines else value.replace(b"\n", b" ") + b"\n" for value in found)


def _newest(file: Location, most: int, *, document: bool) -> bytes:
    """Some bytes of a file: whole lines at its end, or the front of a document or of a gzip file."""
    if storage.is_packed(str(file)):
        found = bytearray()
        with file.open() as packed:
            for piece in gunzip(iter(lambda: packed.read(PACKED_CHUNK), b"")):
                if isinstance(piece, bytes):
                    found += piece
                if len(found) >= most:
                    break
        return bytes(found[:most])
    with file.open() as plain:
        size = plain.seek(0, 2)
        start = 0 if document else max(0, size - most)
        plain.seek(start)
        data = plain.read(most)
    return data[data.find(b"\n") + 1 :] if start else data
