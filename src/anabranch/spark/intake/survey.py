"""The survey: which bytes the streams' files hold now, and where the next epoch ends.

This is the logic of the intake (`source.py` is its interface to Spark), and it runs in a process that Spark keeps for
it.
For each epoch it reads the streams and the size of epochs from a file that the driver writes, so a trunk gains streams
while it runs; it lists the folders, begins files in the order of their names, and logs that order before an offset
refers to it.

A *sight* is a snapshot of the folders; its moment is the time of the elements in it that declare none
(LAWS 1.3).
Epochs read a sight to its end before the next is taken, and in a stream without a time one partition after the other:
so elements come in the order of their times, ties to the partition named first (LAWS 1.2), whatever the size of epochs.
The moment is part of the offset; a sight that an epoch could not finish is kept on disk.
Finite inputs have no clock and no sights, and their partitions have an end, which is part of the offset.

Nothing is lost silently: a file that turns up late or grows after its end is read next and logged as such; a file that
became shorter or was overwritten is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import time_ns

from anabranch.errors import StateError, StreamError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake import folders, ranges, storage
from anabranch.spark.intake.folders import PartitionFiles
from anabranch.spark.intake.heartbeats import Pulse, beat_of, read_reached
from anabranch.spark.intake.order import FileStretch, OrderLog
from anabranch.spark.intake.ranges import Offset, Partition, Position, Range, StretchSpan, Waiting
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.spool import files as spool
from anabranch.stream.reading.source import Source, StreamForm

_EVERYTHING = 1 << 60
_CLOCK = ":clock"
"""Where an offset keeps its sight: `position` is the moment in microseconds, `file` is 1 if it was read to its end."""
_SINCE = ":since"
"""Where it keeps the moment of the sight before, if streams have the time of acceptance."""
_ENDED = ":ended/"
"""The prefix before the key of a partition that has ended."""


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
    """The files of a moment: by partition, their names and sizes."""

    moment: int
    files: dict[str, dict[str, int]]

    @staticmethod
    def load(checkpoint: Checkpoint, moment: int) -> FolderSnapshot:
        found = durable.read_record(FolderSnapshot, checkpoint.sight)
        if found.moment != moment:
            raise StateError(f"'{checkpoint.sight}' does not belong to the checkpoint", hint="restore the whole folder")
        return found


class Survey:
    """Surveys the files for one streaming query; it alone appends to the order logs."""

    def __init__(
        self, checkpoint: Checkpoint, pulse: Pulse | None = None, logs: dict[str, OrderLog] | None = None
    ) -> None:
        """With `logs`, order logs that the caller refreshes, by stream; the survey appends nothing then."""
        self._checkpoint = checkpoint
        self._pulse = pulse or Pulse()
        self._logs = {} if logs is None else logs
        self._frozen: dict[str, dict[str, int]] | None = None
        self._held: dict[str, tuple[int, dict[str, int]]] = {}
        """By partition: its files when the last hold of its stream was first seen."""
        self._sight: FolderSnapshot | None = None
        """The sight that the last epoch did not finish."""
        self._compared: dict[str, tuple[int, int]] = {}
        """By path: size and modification time of an open file when its first bytes were last compared."""

    def freeze(self) -> None:
        """Let the files end at their present sizes, without new files."""
        self._frozen = {}
        settings = IntakeSettings.load(self._checkpoint)
        for stream in settings.reading:
            for key, files in _partitions(stream).items():
                self._listing(key, files, settings.held.get(stream.name))

    def latest(self, start: Offset) -> Offset:
        """The end offset of the epoch that starts at `start`; partitions with something to read share its bytes."""
        settings = IntakeSettings.load(self._checkpoint)
        sight = self._look(settings, start, self._unfinished(start))
        moves = self._moves(settings, start, sight)
        if not moves.to and start.get(_CLOCK, {}).get("position") == sight.moment:
            sight = self._look(settings, start, None)
            moves = self._moves(settings, start, sight)
        ended = self._ended(settings, start, moves)
        beats = self._beats(settings, start, moves, sight)
        if settings.finite or not (moves.to or beats):
            return start | moves.to | ended
        self._sight = sight if moves.unfinished else None
        if moves.unfinished:
            durable.write_record(self._checkpoint.sight, sight)
        clock: Offset = {_CLOCK: {"file": int(not moves.unfinished), "position": sight.moment}}
        if any(each.accepts for each in settings.streams):
            clock[_SINCE] = {"file": 0, "position": _since(start)}
        return start | moves.to | ended | beats | clock

    def ranges(self, start: Offset, end: Offset) -> list[Range]:
        """The ranges between two offsets, in stream order, the ends of partitions, and the time of arrival."""
        settings = IntakeSettings.load(self._checkpoint)
        clock = end.get(_CLOCK)
        moment = clock["position"] if clock else None
        found: list[Range] = []
        former = ((stream, key, True) for stream in settings.former for key in stream.keys)
        wanted = ((stream, key, False) for stream in settings.streams for key in stream.keys)
        for source, key, is_former in (*former, *wanted):
            stream, _, partition = key.rpartition("/")
            for span, files in self._spans(source, key, start, end):
                name, packed = span.stretch.file, span.stretch.packed
                where = files.path(name)
                whole = ((span.start, span.end, span.last),)  # the files of a former stream may be gone
                cut_up = whole if is_former else ranges.cut_up(span, files.continues, settings.cores, files)
                timed = ((*cut, moment) for cut in cut_up)
                for first, stop, last, arrived in _by_acceptance(timed, where, end) if source.accepts else timed:
                    cut = (span.number, name, where, first, stop, last, packed)
                    found.append(Range(stream, partition, *cut, len(found), arrived))
            beat = beat_of(end, key)
            if beat is not None and beat != beat_of(start, key):
                found.append(Range.heartbeat(stream, partition, beat, len(found), moment))
            if f"{_ENDED}{key}" in end and f"{_ENDED}{key}" not in start:
                found.append(Range.ended(stream, partition, len(found)))
        if clock is not None and clock["file"] and clock != start.get(_CLOCK):
            found.append(Range.passed(clock["position"], len(found)))
        return found

    def _spans(
        self, source: Source, key: str, start: Offset, end: Offset
    ) -> Iterator[tuple[StretchSpan, PartitionFiles]]:
        """The spans of a partition between two offsets."""
        if key not in end or end[key] == start.get(key):
            return
        log = self._log(source.name)
        assert log.form is not None, "an offset refers to a stream whose form is known"
        files = _partitions(source, log.form)[key]
        stretches = log.stretches(key.rpartition("/")[2])
        for span in ranges.spans(stretches, Position.of(start, key), Position.of(end, key), files.continues):
            yield span, files

    def _log(self, stream: str) -> OrderLog:
        if stream not in self._logs:
            self._logs[stream] = OrderLog(self._checkpoint.order(stream))
            self._logs[stream].refresh()
        return self._logs[stream]

    # --- sights -------------------------------------------------------------------------------------------

    def _unfinished(self, start: Offset) -> FolderSnapshot | None:
        """The sight that the epochs so far have not finished."""
        clock = start.get(_CLOCK)
        if clock is None or clock["file"]:
            return None
        if self._sight is None or self._sight.moment != clock["position"]:
            self._sight = FolderSnapshot.load(self._checkpoint, clock["position"])
        return self._sight

    def _look(self, settings: IntakeSettings, start: Offset, before: FolderSnapshot | None) -> FolderSnapshot:
        """The present files, or those left of an earlier sight.

        A new file with a smaller name than one that waits joins the earlier sight: it is read next.
        """
        files: dict[str, dict[str, int]] = {}
        for stream in settings.reading:
            for key, partition in _partitions(stream).items():
                ends = {each.file: each.end for each in self._log(stream.name).stretches(key.rpartition("/")[2])}
                there = self._listing(key, partition, settings.held.get(stream.name))
                if before is not None:
                    seen = before.files.get(key, {})
                    last = max(seen, default="")
                    there = {name: seen.get(name, size) for name, size in there.items() if name <= last}
                files[key] = {name: size for name, size in there.items() if ends.get(name) != size}
        if before is not None:
            return FolderSnapshot(before.moment, files)
        return FolderSnapshot(max(time_ns() // 1_000, start.get(_CLOCK, {}).get("position", 0) + 1), files)

    def _listing(self, key: str, partition: PartitionFiles, hold: int | None) -> dict[str, int]:
        """The files of a partition that may be read; `hold` is the number of the stream's hold."""
        if self._frozen is not None and key in self._frozen:
            return self._frozen[key]
        found = self._held[key][1] if hold and self._held.get(key, (0,))[0] == hold else partition.listing()
        if hold:
            self._held[key] = hold, found
        if self._frozen is not None:
            self._frozen[key] = found
        return found

    # --- moves --------------------------------------------------------------------------------------------

    def _moves(self, settings: IntakeSettings, start: Offset, sight: FolderSnapshot) -> _Moves:
        """Advance every partition, and log the files that are begun."""
        groups: list[list[_View]] = []
        for stream in settings.reading:
            views = list(self._views(stream, start, settings.finite or stream.ended, sight))
            # Without a time the partitions are read one after the other; with one they are merged, so all advance.
            groups += [[view] for view in views] if stream.time else [views] if views else []
        share = max(1, settings.epoch_bytes // max(1, len(groups)))
        files = max(1, (settings.epoch_files or _EVERYTHING) // max(1, len(groups)))
        found = _Moves()
        for group in groups:
            left = share
            for view in group:
                if left <= 0:
                    found.unfinished.add(view.key)
                    continue
                at = Position.of(start, view.key)
                move = ranges.advance(view.partition, at, left, files, view.begin)
                if move.to != at:
                    self._log(view.stream).append(move.records)
                    found.to[view.key] = move.to._asdict()
                left -= move.size
                if not move.done:
                    found.unfinished.add(view.key)
                    left = 0  # the partitions behind it wait
        return found

    def _beats(self, settings: IntakeSettings, start: Offset, moves: _Moves, sight: FolderSnapshot) -> Offset:
        """The heartbeats that are due; none in finite inputs, nor before the first element."""
        if settings.finite or self._frozen is not None:
            return {}
        found: Offset = {}
        fresh = moves.to.keys() | moves.unfinished
        for stream in settings.reading:
            if stream.heartbeat is not None and self._log(stream.name).form is not None:
                reached = partial(read_reached, self._checkpoint)
                found |= self._pulse.beats(stream, start, fresh, sight.moment, reached)
        return found

    def _ended(self, settings: IntakeSettings, start: Offset, moves: _Moves) -> Offset:
        """The partitions of finite inputs that are read to their end."""
        streams = [each for each in settings.reading if settings.finite or each.ended]
        keys = [key for stream in streams for key in stream.keys if key not in moves.unfinished]
        return {f"{_ENDED}{key}": {"file": 0, "position": 0} for key in keys if f"{_ENDED}{key}" not in start}

    def _views(self, stream: Source, start: Offset, finite: bool, sight: FolderSnapshot) -> Iterator[_View]:
        """The partitions of a stream that have something to read."""
        log = self._log(stream.name)
        if log.form is None:
            partitions = [files.paths(sight.files.get(key, {})) for key, files in _partitions(stream).items()]
            form = folders.form_of(stream, partitions, decide=finite or self._frozen is not None)
            if form is None:
                return
            log.append((form,))
        assert log.form is not None
        for number, (key, files) in enumerate(_partitions(stream, log.form).items()):
            at = Position.of(start, key)
            there = sight.files.get(key, {})
            held = log.stretches(str(number))
            size = self._size_of_open(held, there, files, at)
            partition = Partition(held, size, folders.waiting(held, there, files), files.continues, finite, files)
            if partition.behind(at):
                largest = max((stretch.file for stretch in held), default="")
                yield _View(stream.name, key, partition, files, largest)

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
        if self._compared.get(path) != stamp and not files.pushed:
            if not storage.has_head(path, stretch.head):
                raise StreamError(f"'{path}' was overwritten", hint="give new content a new file name")
            self._compared[path] = stamp
        return size


def _partitions(stream: Source, form: StreamForm | None = None) -> dict[str, PartitionFiles]:
    """The partitions of a stream by their keys; it has a form once something can be read."""
    document, pushed = form is not None and form.format == "document", stream.http is not None
    return {key: PartitionFiles(path, document, pushed) for key, path in stream.keys.items()}


def _since(start: Offset) -> int:
    """The moment of the last sight that was read to its end; what comes later is behind it."""
    clock = start.get(_CLOCK, {"file": 1, "position": 0})
    return (clock if clock["file"] else start.get(_SINCE, clock))["position"]


def _by_acceptance(
    cuts: Iterable[tuple[int, int, bool, int | None]], folder: str, offset: Offset
) -> Iterator[tuple[int, int, bool, int | None]]:
    """Cuts of a spool as pieces that were accepted at one moment each, as (start, end, last, moment) (LAWS 1.3).

    What was accepted while the survey looked is behind all that was there: else it would come too late.
    """
    for first, stop, last, moment in cuts:
        if moment is None or _SINCE not in offset:
            yield first, stop, last, moment
            continue
        for begin, end, accepted in spool.moments(folder, first, stop):
            yield begin, end, last and end == stop, min(max(accepted, offset[_SINCE]["position"] + 1), moment)


@dataclass(slots=True)
class _Moves:
    """Where an epoch ends; only `_moves` changes it."""

    to: Offset = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)
    """The partitions with something left to read."""


@dataclass(frozen=True, slots=True)
class _View:
    """A partition with something to read, and its stream."""

    stream: str
    key: str
    partition: Partition
    files: PartitionFiles
    largest: str
    """The largest file name that was begun."""

    def begin(self, waiting: Waiting) -> FileStretch:
        path = self.files.path(waiting.file)
        late = waiting.file < self.largest
        return FileStretch(
            self.key.rpartition("/")[2],
            waiting.file,
            waiting.start,
            not self.files.pushed and storage.is_packed(path),
            "" if self.files.pushed else storage.head_of(path, waiting.size),
            "grown" if waiting.start else "late" if late else None,
        )
