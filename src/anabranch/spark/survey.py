"""The survey: what lies in the streams' files now, and how far the next epoch goes.

This is the thinking half of the intake (`intake.py` is its face towards Spark), and it runs in a process of its own
that Spark keeps for the purpose.
It reads the streams and the size of epochs anew for each epoch from a file that the driver writes, so a trunk gains
streams while it runs; it looks into the folders, begins files in the order of their names, and writes that order down
before an offset refers to it.

Nothing is lost silently: a file that turns up late or grows after its end is read next and noted, one that has become
shorter or was overwritten is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from anabranch.errors import StreamError
from anabranch.spark import durable, ranges, storage
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.order import Form, OrderLog, Stretch
from anabranch.spark.ranges import Offset, Partition, Position, Range, Waiting
from anabranch.stream.limits import Limits
from anabranch.stream.packed import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.parse import implied_root, parse_root
from anabranch.stream.reader import Format
from anabranch.stream.serialize import serialize
from anabranch.stream.source import Source, detect
from anabranch.stream.split import DocumentSplitter

_FRONT = 1 << 16
"""How much of a stream is looked at to see how it is written."""
_EVERYTHING = 1 << 60


@dataclass(frozen=True, slots=True)
class IntakeStream:
    """A stream as the survey needs it; its partitions are its paths, by number."""

    name: str
    paths: tuple[str, ...]
    format: Format | None
    """None: to be told from its first bytes."""
    implied_root: str
    schema_root: str | None

    @staticmethod
    def of(source: Source) -> IntakeStream:
        form = None if source.format == "auto" else source.format
        schema_root = source.schema.root if source.schema else None
        paths = tuple(str(path.absolute()) for path in source.partitions)
        return IntakeStream(source.name, paths, form, source.implied_root, schema_root)


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """What the driver tells the survey, by way of a file."""

    streams: tuple[IntakeStream, ...]
    epoch_bytes: int
    epoch_files: int | None
    cores: int
    finite: bool
    """The files are complete: what is there now is all, to the last byte."""
    former: tuple[IntakeStream, ...] = ()
    """Streams that are wanted no more; an epoch that was begun with one of them may still come again."""

    def save(self, checkpoint: Checkpoint) -> None:
        durable.replace(checkpoint.intake, durable.sealed(asdict(self)))

    @staticmethod
    def load(checkpoint: Checkpoint) -> IntakeSettings:
        fields = durable.unsealed(checkpoint.intake)
        for key in ("streams", "former"):
            fields[key] = tuple(IntakeStream(**{**each, "paths": tuple(each["paths"])}) for each in fields[key])
        return IntakeSettings(**fields)

    def followed_by(self, streams: tuple[IntakeStream, ...]) -> tuple[IntakeStream, ...]:
        """The streams that will be former ones when these are wanted."""
        wanted = {each.name for each in streams}
        return tuple(each for each in (*self.former, *self.streams) if each.name not in wanted)


class Survey:
    """Looks at the files for one streaming query; it alone appends to the order logs."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._logs: dict[str, OrderLog] = {}
        self._frozen: dict[str, dict[str, int]] | None = None
        self._seen: dict[str, tuple[int, int]] = {}
        """By path: size and modification time of an open file when its front was last compared."""

    def freeze(self) -> None:
        """From now on the files end where they end now; files that are not there yet do not come."""
        self._frozen = {}
        for stream in IntakeSettings.load(self._checkpoint).streams:
            for number, path in enumerate(stream.paths):
                self._listing(f"{stream.name}/{number}", path)

    def latest(self, start: Offset) -> Offset:
        """How far the epoch that begins at `start` goes; all partitions with something to read share its bytes."""
        settings = IntakeSettings.load(self._checkpoint)
        found = [each for stream in settings.streams for each in self._partitions(stream, start, settings.finite)]
        share = max(1, settings.epoch_bytes // max(1, len(found)))
        files = max(1, (settings.epoch_files or _EVERYTHING) // max(1, len(found)))
        moved: Offset = {}
        for view in found:
            at = Position.of(start, view.key)
            move = ranges.advance(view.partition, at, share, files, view.begin)
            if move.to != at:
                self._log(view.stream).append(move.records)
                moved[view.key] = move.to._asdict()
        return start | moved

    def ranges(self, start: Offset, end: Offset) -> list[Range]:
        """The pieces between two offsets, in stream order."""
        settings = IntakeSettings.load(self._checkpoint)
        known = (*settings.former, *settings.streams)
        paths = {f"{each.name}/{number}": path for each in known for number, path in enumerate(each.paths)}
        found: list[Range] = []
        for key, path in paths.items():
            if key not in end or end[key] == start.get(key):
                continue
            stream, _, partition = key.rpartition("/")
            log = self._log(stream)
            assert log.form is not None, "an offset refers to a stream whose form is known"
            files = _Files(path, log.form.format == "document")
            for span in ranges.spans(
                log.stretches(partition), Position.of(start, key), Position.of(end, key), files.document
            ):
                name, packed = span.stretch.file, span.stretch.packed
                for first, stop, last in ranges.cut_up(span, files.document, settings.cores, files):
                    where = files.path(name)
                    found.append(
                        Range(stream, partition, span.number, name, where, first, stop, last, packed, len(found))
                    )
        return found

    def _log(self, stream: str) -> OrderLog:
        if stream not in self._logs:
            self._logs[stream] = OrderLog(self._checkpoint.order(stream))
            self._logs[stream].refresh()
        return self._logs[stream]

    # --- one stream ---------------------------------------------------------------------------------------

    def _partitions(self, stream: IntakeStream, start: Offset, finite: bool) -> Iterator[_View]:
        """The partitions of a stream that have something to read.

        They are merged by time (LAWS 1.2), which is that of arrival: by epoch, and in an epoch as they are named.
        Where there is no clock, as in finite inputs, all of the first comes before all of the second.
        """
        log = self._log(stream.name)
        for number, path in enumerate(stream.paths):
            key = f"{stream.name}/{number}"
            at = Position.of(start, key)
            listing = self._listing(key, path)
            files = _Files(path, document=False)
            if log.form is None:
                form = _form(stream, files, listing, decide=finite or self._frozen is not None)
                if form is None:
                    continue
                log.append((form,))
            assert log.form is not None
            files = _Files(path, log.form.format == "document")
            held = log.stretches(str(number))
            size = self._size_of_open(held, listing, files, at)
            partition = Partition(held, size, _waiting(held, listing, files), files.document, finite, files)
            if partition.behind(at):
                largest = max((stretch.file for stretch in held), default="")
                yield _View(stream.name, key, partition, files, largest)
                if finite:
                    return

    def _listing(self, key: str, path: str) -> dict[str, int]:
        """The files of a partition that are not empty, by name, with their sizes."""
        if self._frozen is None:
            return _listing(path)
        return self._frozen.setdefault(key, _listing(path))

    def _size_of_open(self, held: list[Stretch], listing: dict[str, int], files: _Files, at: Position) -> int:
        """How long the file of the last stretch is now; an error if it is not what it was."""
        if not held:
            return 0
        stretch = held[-1]
        path = files.path(stretch.file)
        size = listing.get(stretch.file, 0)
        read = at.position if at.file == len(held) - 1 else 0
        modified = _modified(path)
        if modified is None:
            if self._seen.get(path, (0, 0))[0] > max(read, stretch.start):
                raise StreamError(f"'{path}' was taken away before it was read to its end")
            return max(read, stretch.start)
        if size < max(read, stretch.start):
            raise StreamError(
                f"'{path}' has become shorter: {size:,} bytes, of which {read:,} were read",
                hint="a stream's files may only grow",
            )
        looks = (size, modified)
        if self._seen.get(path) != looks:
            if not storage.has_head(path, stretch.head):
                raise StreamError(f"'{path}' was overwritten", hint="give new content a new file name")
            self._seen[path] = looks
        return size


@dataclass(frozen=True, slots=True)
class _View:
    """A partition with something to read, and who reads it."""

    stream: str
    key: str
    partition: Partition
    files: _Files
    largest: str
    """The largest name of a file that was begun."""

    def begin(self, waiting: Waiting) -> Stretch:
        path = self.files.path(waiting.file)
        late = waiting.file < self.largest
        return Stretch(
            self.key.rpartition("/")[2],
            waiting.file,
            waiting.start,
            storage.is_packed(path),
            storage.head_of(path, waiting.size),
            "grown" if waiting.start else "late" if late else None,
        )


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of one partition, which is a directory or a single file."""

    where: str
    document: bool

    def path(self, file: str) -> str:
        """A file's path; a partition that is a file has this one only."""
        return os.path.join(self.where, file) if os.path.isdir(self.where) else self.where

    def line_end(self, file: str, position: int, limit: int) -> int:
        return storage.line_end(self.path(file), position, limit)

    def last_line_end(self, file: str, position: int, limit: int) -> int:
        return storage.last_line_end(self.path(file), position, limit)


def _listing(path: str) -> dict[str, int]:
    try:
        if not os.path.isdir(path):
            size = os.path.getsize(path)
            return {os.path.basename(path): size} if size else {}
        with os.scandir(path) as entries:
            found = {each.name: each.stat().st_size for each in entries if each.is_file()}
    except FileNotFoundError:
        return {}  # not there yet, or taken away while we looked
    except OSError as error:
        raise StreamError(f"cannot read '{path}': {error.strerror}") from None
    return {name: found[name] for name in sorted(found) if found[name] and not name.startswith(".")}


def _modified(path: str) -> int | None:
    """When a file was changed, None if it is not there."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def _waiting(held: list[Stretch], listing: dict[str, int], files: _Files) -> list[Waiting]:
    """What is to be begun next: files that are new, and new bytes of files that have ended."""
    ends = {stretch.file: stretch.end for stretch in held}
    found: list[Waiting] = []
    for name, size in listing.items():
        if name not in ends:
            found.append(Waiting(name, 0, size))
        elif (end := ends[name]) is not None and size != end:
            if size < end:
                raise StreamError(
                    f"'{files.path(name)}' has become shorter: {size:,} bytes, of which {end:,} were read",
                    hint="a stream's files may only grow",
                )
            found.append(Waiting(name, end, size))
    return found


def _form(stream: IntakeStream, files: _Files, listing: dict[str, int], decide: bool) -> Form | None:
    """How a stream is written, from the front of its first file; None while more bytes could say otherwise."""
    if not listing:
        return None
    fronts = (_front(files.path(name)) for name in listing)
    front = next((each for each in fronts if each.strip()), b"")  # the first file that holds something decides for all
    decide = decide or len(listing) > 1 or len(front) >= _FRONT
    form = stream.format or _told(front, stream.schema_root, decide)
    if form is None:
        return None
    if form != "document":
        return Form(form, serialize(implied_root(stream.implied_root)))
    splitter = DocumentSplitter(Limits())
    splitter.feed(front)
    if splitter.root is None:
        return Form(form, serialize(implied_root(stream.implied_root))) if decide else None
    return Form(form, serialize(parse_root(splitter.root, splitter.carry.encoding)))


def _told(front: bytes, schema_root: str | None, decide: bool) -> Format | None:
    """The format that the front tells; a single line could still be a short document or the first of many lines."""
    form = detect(front, schema_root)
    if decide or form != "document" or schema_root is not None:
        return form if front.strip() else None
    return form if b"\n" in front.strip() else None


def _front(path: str) -> bytes:
    limit = os.path.getsize(path)
    if not storage.is_packed(path):
        return b"".join(storage.pieces(path, 0, min(limit, _FRONT)))
    unpacked = gunzip(storage.pieces(path, 0, limit, PACKED_CHUNK))
    return next((piece for piece in unpacked if not isinstance(piece, Damage)), b"")[:_FRONT]
