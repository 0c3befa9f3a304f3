"""Streams in files: a partition is a directory, whose files are read in the order of their names, or a single file.

A stretch is a file from a byte on, usually its first.
Files are begun in the order of their names; one that turns up later under a smaller name is read next, and so are bytes
that come behind the end of a file, both with a warning.
A file that became shorter or was overwritten is an error.
Where a file may be cut is in `ranges.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from anabranch.errors import StreamError
from anabranch.spark.intake import folders, ranges, storage
from anabranch.spark.intake.folders import PartitionFiles
from anabranch.spark.intake.order import FileStretch, OrderLog
from anabranch.spark.intake.ranges import Move, Offset, Partition, Position, Range, Waiting
from anabranch.spark.intake.sources.connector import Connector, Listing, Reason
from anabranch.spark.intake.sources.file_waits import FileWaits
from anabranch.stream.reading.source import Source, StreamForm

if TYPE_CHECKING:
    from anabranch.spark.checkpoint.manifest import Manifest

_FRONTS = 256
"""How many files are looked into at once before they are begun, where each look is a request."""


class FilesConnector(Connector):
    """A stream in files."""

    def __init__(self, source: Source, log: OrderLog) -> None:
        super().__init__(source, log)
        self._compared: dict[str, tuple[int, Hashable]] = {}
        """By path: size and modification time of an open file when its first bytes were last compared."""

    @property
    def keys(self) -> Iterable[str]:
        return self.source.keys

    def listing(self, *, patient: bool) -> Listing:
        return {key: folders.listing(path) for key, path in self.source.keys.items()}

    def sight(self, there: Listing, before: Listing | None) -> Listing:
        """The files that are not read to their end.

        A new file with a smaller name than one that waits joins the earlier sight: it is read next.
        """
        found: Listing = {}
        for key, files in there.items():
            ends = {each.file: each.end for each in self.log.stretches(key.rpartition("/")[2])}
            if before is not None:
                seen = before.get(key, {})
                last = max(seen, default="")
                files = {name: seen.get(name, size) for name, size in files.items() if name <= last}
            found[key] = {name: size for name, size in files.items() if ends.get(name) != size}
        return found

    def form(self, sight: Listing, *, decide: bool) -> StreamForm | None:
        partitions = [
            PartitionFiles(path, document=False).paths(sight.get(key, {})) for key, path in self.source.keys.items()
        ]
        return folders.form_of(self.source, partitions, decide=decide)

    def views(self, sight: Listing, start: Offset, *, finite: bool) -> Iterator[FileView]:
        for number, key in enumerate(self.source.keys):
            files = self._files(key)
            held = self.log.stretches(str(number))
            there = sight.get(key, {})
            at = Position.of(start, key)
            size = self._size_of_open(held, there, files, at)
            is_copy = bool(self.source.copies)  # which begins and ends no file by itself
            waiting = [] if is_copy else folders.waiting(held, there, files)
            if storage.is_address(files.where):
                storage.read_fronts([(files.path(each.file), each.size) for each in waiting[:_FRONTS]])
            partition = Partition(held, size, waiting, files.document, finite and not is_copy, files)
            if partition.behind(at):
                yield FileView(key, partition, files, max((stretch.file for stretch in held), default=""))

    def _files(self, key: str) -> PartitionFiles:
        assert self.log.form is not None, "nothing is read before the format is known"
        return PartitionFiles(self.source.keys[key], self.log.form.format == "document")

    def _size_of_open(self, held: list[FileStretch], there: dict[str, int], files: PartitionFiles, at: Position) -> int:
        """The size of the last stretch's file; an error if the file was truncated or overwritten."""
        if not held:
            return 0
        stretch = held[-1]
        path = files.path(stretch.file)
        read = at.position if at.file == len(held) - 1 else 0
        if stretch.end is not None:
            return stretch.end
        size = there.get(stretch.file, 0)
        changed = folders.modified(path)
        if changed is None:
            if self._compared.get(path, (0, 0))[0] > max(read, stretch.start):
                raise StreamError(f"'{path}' was taken away before it was read to its end")
            return max(read, stretch.start)
        if size < max(read, stretch.start):
            raise StreamError(
                f"'{path}' has become shorter: {size:,} bytes, of which {read:,} were read",
                hint="a stream's files may only grow",
            )
        stamp = (size, changed)
        if self._compared.get(path) != stamp:
            if not storage.has_head(path, stretch.head):
                raise StreamError(f"'{path}' was overwritten", hint="give new content a new file name")
            self._compared[path] = stamp
        return size

    def ranges(self, key: str, start: Offset, end: Offset, cores: int | None) -> Iterator[Range]:
        stream, _, partition = key.rpartition("/")
        files = self._files(key)
        between = Position.of(start, key), Position.of(end, key)
        for span in ranges.spans(self.log.stretches(partition), *between, files.document):
            name, packed = span.stretch.file, span.stretch.packed
            where = files.path(name)
            whole = ((span.start, span.end, span.last),)
            for first, stop, last in whole if cores is None else ranges.cut_up(span, files.document, cores, files):
                yield Range(stream, partition, span.number, name, where, first, stop, last, packed, 0)

    @cached_property
    def _waits(self) -> FileWaits:
        return FileWaits(self.source, self.log)

    def waits(self, last: Manifest | None) -> Iterator[Reason]:
        return self._waits.reasons(last)


@dataclass(frozen=True, slots=True)
class FileView:
    """A partition with something to read."""

    key: str
    partition: Partition
    files: PartitionFiles
    largest: str
    """The largest file name that was begun."""

    def advance(self, at: Position, budget: int, stretches: int) -> Move:
        return ranges.advance(self.partition, at, budget, stretches, self._begin)

    def _begin(self, waiting: Waiting) -> FileStretch:
        path = self.files.path(waiting.file)
        late = waiting.file < self.largest
        packed, head = storage.beginning(path, waiting.size)
        return FileStretch(
            self.key.rpartition("/")[2],
            waiting.file,
            waiting.start,
            packed,
            head,
            "grown" if waiting.start else "late" if late else None,
        )
