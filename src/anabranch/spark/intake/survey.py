"""The survey: what the sources of streams hold now, and where the next epoch ends.

This is the logic of the intake (`source.py` is its interface to Spark), and it runs in a process that Spark keeps for
it.
For each epoch it reads the streams and the size of epochs from a file that the driver writes, so a trunk gains streams
while it runs; it asks the connector of each stream (`sources/`) what is there and how far an epoch would go, and logs
what is begun before an offset refers to it.

A *sight* is a snapshot of the sources; its moment is the time of the elements in it that declare none
(LAWS 1.3).
Epochs read a sight to its end before the next is taken, and in a stream without a time one partition after the other:
so elements come in the order of their times, ties to the partition named first (LAWS 1.2), whatever the size of epochs.
The moment is part of the offset; a sight that an epoch could not finish is kept on disk.
Finite inputs have no clock and no sights, and their partitions have an end, which is part of the offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from time import time_ns

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake.heartbeats import Pulse, beat_of, read_reached
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.ranges import CLOCK, Offset, Position, Range
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.intake.sources import connector_of
from anabranch.spark.intake.sources.connector import Connector, Listing, ReadyPartition
from anabranch.spark.intake.sources.http import SINCE, moment_before
from anabranch.spark.intake.weights import read_weights
from anabranch.stream.reading.source import Source

_EVERYTHING = 1 << 60
_ENDED = ":ended/"
"""The prefix before the key of a partition that has ended."""


def is_unfinished(offset: Offset) -> bool:
    """Whether an offset ends within a sight, which the next epoch then needs."""
    return CLOCK in offset and not offset[CLOCK]["file"]


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """What the sources hold at a moment, as far as epochs may read it."""

    moment: int
    files: Listing

    @staticmethod
    def load(checkpoint: Checkpoint, moment: int) -> SourceSnapshot:
        found = durable.read_record(SourceSnapshot, checkpoint.sight)
        if found.moment != moment:
            raise StateError(f"'{checkpoint.sight}' does not belong to the checkpoint", hint="restore the whole folder")
        return found


class Survey:
    """Surveys the sources for one streaming query; it alone appends to the order logs."""

    def __init__(
        self, checkpoint: Checkpoint, pulse: Pulse | None = None, logs: dict[str, OrderLog] | None = None
    ) -> None:
        """With `logs`, order logs that the caller refreshes, by stream; the survey appends nothing then."""
        self._checkpoint = checkpoint
        self._pulse = pulse or Pulse()
        self._logs = {} if logs is None else logs
        self._connectors: dict[str, Connector] = {}
        self._frozen: dict[str, Listing] | None = None
        """By stream: its listing when it was frozen."""
        self._held: dict[str, tuple[int, Listing]] = {}
        """By stream: its listing when its last hold was first seen."""
        self._sight: SourceSnapshot | None = None
        """The sight that the last epoch did not finish."""

    def freeze(self) -> None:
        """Let the streams end where they end now."""
        self._frozen = {}
        settings = IntakeSettings.load(self._checkpoint)
        for stream in settings.reading:
            self._listing(stream, settings)

    def latest(self, start: Offset) -> Offset:
        """The end offset of the epoch that starts at `start`; partitions with something to read share its bytes."""
        settings = IntakeSettings.load(self._checkpoint)
        sight = self._look(settings, start, self._unfinished(start))
        moves = self._moves(settings, start, sight)
        if not moves.to and start.get(CLOCK, {}).get("position") == sight.moment:
            sight = self._look(settings, start, None)
            moves = self._moves(settings, start, sight)
        ended = self._ended(settings, start, moves)
        beats = self._beats(settings, start, moves, sight)
        begun = {} if settings.finite else self._begun(settings, start)
        if settings.finite or not (moves.to or beats or begun):
            return start | moves.to | ended
        self._sight = sight if moves.unfinished else None
        if moves.unfinished:
            durable.write_record(self._checkpoint.sight, sight)
        clock: Offset = {CLOCK: {"file": int(not moves.unfinished), "position": sight.moment}}
        if any(each.accepts for each in settings.streams):
            clock[SINCE] = {"file": 0, "position": moment_before(start)}
        return start | begun | moves.to | ended | beats | clock

    def ranges(self, start: Offset, end: Offset) -> list[Range]:
        """The ranges between two offsets, in stream order, the ends of partitions, and the time of arrival."""
        settings = IntakeSettings.load(self._checkpoint)
        clock = end.get(CLOCK)
        moment = clock["position"] if clock else None
        found: list[Range] = []
        former = ((stream, None) for stream in settings.former)
        wanted = ((stream, settings.cores) for stream in settings.streams)
        for stream, cores in (*former, *wanted):
            connector = self._connector(stream)
            for key in connector.keys:
                if key in end and end[key] != start.get(key):
                    for each in connector.ranges(key, start, end, cores):
                        arrived = moment if each.arrived is None else each.arrived
                        found.append(replace(each, sequence=len(found), arrived=arrived))
                partition = key.rpartition("/")[2]
                beat = beat_of(end, key)
                if beat is not None and beat != beat_of(start, key):
                    found.append(Range.heartbeat(stream.name, partition, beat, len(found), moment))
                if f"{_ENDED}{key}" in end and f"{_ENDED}{key}" not in start:
                    found.append(Range.ended(stream.name, partition, len(found)))
        if clock is not None and clock["file"] and clock != start.get(CLOCK):
            found.append(Range.passed(clock["position"], len(found)))
        return found

    def _connector(self, stream: Source) -> Connector:
        """The connector of a stream as it is declared now."""
        held = self._connectors.get(stream.name)
        if held is None or held.source != stream:
            held = self._connectors[stream.name] = connector_of(
                stream, self._log(stream.name), partial(read_weights, self._checkpoint)
            )
        return held

    def _log(self, stream: str) -> OrderLog:
        if stream not in self._logs:
            self._logs[stream] = OrderLog.of(self._checkpoint, stream)
            self._logs[stream].refresh()
        return self._logs[stream]

    # --- sights -------------------------------------------------------------------------------------------

    def _unfinished(self, start: Offset) -> SourceSnapshot | None:
        """The sight that the epochs so far have not finished."""
        clock = start.get(CLOCK)
        if clock is None or clock["file"]:
            return None
        if self._sight is None or self._sight.moment != clock["position"]:
            self._sight = SourceSnapshot.load(self._checkpoint, clock["position"])
        return self._sight

    def _look(self, settings: IntakeSettings, start: Offset, before: SourceSnapshot | None) -> SourceSnapshot:
        """What the sources hold now, or what is left of an earlier sight."""
        files: Listing = {}
        for stream in settings.reading:
            there = self._listing(stream, settings)
            files |= self._connector(stream).sight(there, None if before is None else before.files)
        if before is not None:
            return SourceSnapshot(before.moment, files)
        return SourceSnapshot(max(time_ns() // 1_000, start.get(CLOCK, {}).get("position", 0) + 1), files)

    def _listing(self, stream: Source, settings: IntakeSettings) -> Listing:
        """What may be read of a stream; where it ends with that, it is waited for."""
        name = stream.name
        hold = settings.held.get(name)
        if self._frozen is not None and name in self._frozen:
            return self._frozen[name]
        is_held = hold and self._held.get(name, (0,))[0] == hold
        patient = settings.finite or stream.ended or self._frozen is not None
        found = self._held[name][1] if is_held else self._connector(stream).listing(patient=patient)
        if hold:
            self._held[name] = hold, found
        if self._frozen is not None:
            self._frozen[name] = found
        return found

    # --- moves --------------------------------------------------------------------------------------------

    def _moves(self, settings: IntakeSettings, start: Offset, sight: SourceSnapshot) -> _Moves:
        """Advance every partition, and log the stretches that are begun."""
        groups: list[list[tuple[OrderLog, ReadyPartition]]] = []
        for stream in settings.reading:
            log = self._log(stream.name)
            views = [(log, view) for view in self._views(stream, start, settings.finite or stream.ended, sight)]
            # Without a time the partitions are read one after the other; with one they are merged, so all advance.
            groups += [[view] for view in views] if stream.is_timed else [views] if views else []
        share = max(1, settings.epoch_bytes // max(1, len(groups)))
        files = max(1, (settings.epoch_files or _EVERYTHING) // max(1, len(groups)))
        found = _Moves()
        for group in groups:
            left = share
            for log, view in group:
                if left <= 0:
                    found.unfinished.add(view.key)
                    continue
                at = Position.of(start, view.key)
                move = view.advance(at, left, files)
                if move.to != at:
                    log.append(move.records)
                    found.to[view.key] = move.to._asdict()
                left -= move.size
                if not move.done:
                    found.unfinished.add(view.key)
                    left = 0  # the partitions behind it wait
        return found

    def _beats(self, settings: IntakeSettings, start: Offset, moves: _Moves, sight: SourceSnapshot) -> Offset:
        """The heartbeats that are due; none in finite inputs, nor before the first element."""
        if settings.finite or self._frozen is not None:
            return {}
        found: Offset = {}
        fresh = moves.to.keys() | moves.unfinished
        for stream in settings.reading:
            if stream.heartbeat is not None and self._log(stream.name).form is not None:
                reached = partial(read_reached, self._checkpoint)
                keys = tuple(self._connector(stream).keys)
                found |= self._pulse.beats(stream, keys, start, fresh, sight.moment, reached)
        return found

    def _begun(self, settings: IntakeSettings, start: Offset) -> Offset:
        """Where partitions begin that no epoch knows yet.

        A topic is begun before it has messages to read, and where is for good with an epoch: what comes while no run is
        at work belongs to the stream.
        """
        found: Offset = {}
        for stream in settings.reading:
            connector = self._connector(stream)
            for key in connector.keys:
                first = connector.log.stretches(key.rpartition("/")[2])[:1]
                if first and key not in start:
                    found[key] = Position(0, first[0].start)._asdict()
        return found

    def _ended(self, settings: IntakeSettings, start: Offset, moves: _Moves) -> Offset:
        """The partitions of finite inputs that are read to their end."""
        streams = [each for each in settings.reading if settings.finite or each.ended]
        keys = [key for each in streams for key in self._connector(each).keys if key not in moves.unfinished]
        return {f"{_ENDED}{key}": {"file": 0, "position": 0} for key in keys if f"{_ENDED}{key}" not in start}

    def _views(self, stream: Source, start: Offset, finite: bool, sight: SourceSnapshot) -> list[ReadyPartition]:
        """The partitions of a stream that have something to read."""
        connector = self._connector(stream)
        if connector.log.form is None:
            form = connector.form(sight.files, decide=finite or self._frozen is not None)
            if form is None:
                return []
            connector.log.append((form,))
        return list(connector.views(sight.files, start, finite=finite))


@dataclass(slots=True)
class _Moves:
    """Where an epoch ends; only `_moves` changes it."""

    to: Offset = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)
    """The partitions with something left to read."""
