"""The paths of the newest items of a partition.

Without a schema the paths of items are unknown, and an accent on a misspelt path is valid.
So the publisher of an accent is warned of a path that no recent item has: some of the newest data is read for it,
newest files first, and the warning says how much that was.
A long file of lines is read from its end, a document from its front, because of its root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.engine.reports.evolution import StreamCourse
from anabranch.spark.intake import storage
from anabranch.storage import Location
from anabranch.stream import description
from anabranch.stream.elements import Accent, Add, Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.gzip import PACKED_CHUNK, gunzip
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.stream.reading.split import DocumentSplitter, LineSplitter
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
    learner, items, left = Learner(root.name.local), 0, MOST_BYTES
    reader = ElementReader(source.name, form.format, Limits(), root, source.item or "item")
    looked: list[str] = []
    for file in reversed(source.files_of(source.partitions[partition])[-MOST_FILES:]):
        data = _newest(file, left, document=form.format == "document")
        splitter = (DocumentSplitter if form.format == "document" else LineSplitter)(Limits())
        cuts = [*splitter.feed(data), *splitter.finish()]
        for element in reader.elements(cuts[-MOST_ITEMS:], file.name):
            if isinstance(element, Item):
                learner.add(element.tree)
                items += 1
        looked.append(file.name)
        left -= len(data)
        if items >= MOST_ITEMS or left <= 0:
            break
    return ItemSample(items, tuple(looked), learner.schema())


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
