"""Running the tasks of an epoch so that each knows the events before its range, of the same epoch too (LAWS 4.5).

The ranges of a partition are read side by side, and an accent in one holds in those behind it.
A stream that has none must not pay for that, so the job is run as if there were none; what its tasks report shows
whether a range did not know an event before it.
Then nothing of that attempt counts, and the job is run again, told all events.

A stream to which that has happened lately is searched for events first; then the job need not be run again.
Control elements carry their name in plain bytes, and in a line of XML also the declaration of its namespace.
So a file of lines is searched at the speed of memory, and only lines that hold such a word are read; of documents and
packed files all items are cut out, and those with such a word read.

A subscription that begins late is shown the accents in force for a part of the items (LAWS 3.6): they stand first in
its answer, as far as they come out of it, and the driver writes them when the epoch has run.
Branches that remember are shown the same by themselves, when they are first opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from anabranch.columnar.items.evolution import ESCAPE, WORDS, may_hold
from anabranch.columnar.scan.kernels import find_word
from anabranch.errors import AnabranchError
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.spark.answers.segments import SegmentWriter
from anabranch.spark.epoch.job import Job, Met, Report, SentReport
from anabranch.spark.epoch.task import programme_for
from anabranch.spark.evolution.following import fresh_follower
from anabranch.spark.evolution.log import EvolutionLogs, Logged, LoggedEvent, logged_events
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Position, Range
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry, Cut, LineSplitter, line_cut
from anabranch.stream.reading.markup import BOM
from anabranch.stream.reading.reader import Format

_LATELY = 20
"""For so many epochs a stream is searched first."""

Run: TypeAlias = Callable[[Job], Sequence[Report]]
"""Runs the tasks of an epoch."""


def run_evolving(job: Job, search: Run, run: Run) -> tuple[Job, Sequence[Report]]:
    """Run the job of an epoch so that every range knows what stands before it; gives the job as it was run last."""
    if lively(job):
        job = _told(job, _changes(search(job)))
    while True:
        reports = run(job)
        found = _changes(reports)
        met = job.met.load() if job.met else {}
        known = {stream: frozenset(changes) for stream, changes in met.items()}
        fresh = {
            stream: [each for each in changes if each not in known.get(stream, ())] for stream, changes in found.items()
        }
        if not any(_is_crossed(stream, changes, reports) for stream, changes in fresh.items()):
            shown = shown_first(job)
            return job, [shown, *reports] if shown else reports
        for report in reports:
            for segment in report.segments:
                (job.segments / segment.name).unlink(missing_ok=True)
        job = _told(job, found)


def lively(job: Job) -> frozenset[str]:
    """The streams that are searched first."""
    return frozenset(name for name, each in job.evolution.items() if 0 <= each.crossed >= job.epoch - _LATELY)


def log_changes(job: Job, logs: EvolutionLogs, reports: Sequence[Report]) -> Mapping[str, Logged]:
    """Make the events of an epoch durable; gives the logs of all streams as its manifest names them."""
    found = dict(job.evolution)
    for stream, changes in _changes(reports).items():
        before = job.evolution.get(stream)
        crossed = job.epoch if _is_crossed(stream, changes, reports) else before.crossed if before else -1
        found[stream] = logs.append(stream, job.checkpoint.evolution_name(stream), before, changes, crossed)
    return found


def _changes(reports: Sequence[Report]) -> dict[str, list[LoggedEvent]]:
    """The events by stream, those of each partition in order."""
    found: dict[str, list[LoggedEvent]] = {}
    for report in reports:
        for stream, changes in report.changes.items():
            found.setdefault(stream, []).extend(changes)
    return {
        stream: sorted(changes, key=lambda each: (each.partition, each.position)) for stream, changes in found.items()
    }


def _is_crossed(stream: str, changes: Sequence[LoggedEvent], reports: Sequence[Report]) -> bool:
    """Whether a range of the epoch begins behind one of these changes; partitions are read one after the other."""
    last: dict[int, Position] = {}
    for report in reports:
        for key, begin in report.begins.items():
            name, _, partition = key.rpartition("/")
            if name == stream:
                last[int(partition)] = max(begin, last.get(int(partition), begin))
    return any(
        each.position < last.get(each.partition, each.position) or each.partition < max(last, default=-1)
        for each in changes
    )


def _told(job: Job, changes: Mapping[str, Sequence[LoggedEvent]]) -> Job:
    """The same job, whose tasks know these changes before they read."""
    return replace(job, met=Met.save(job.checkpoint.evolution, changes)) if changes else job


_SMALL = 1 << 20
"""Bytes that are searched at a time: so few that they are still at hand when they have been read."""
_NEEDLES: dict[Format, Sequence[bytes]] = {"lines": (b"xmlns",), "json": (*WORDS, ESCAPE), "document": WORDS}


def search_ranges(job: Job, tasks: Iterable[Sequence[Range]]) -> Iterator[SentReport]:
    """The function that Spark maps over the tasks of an epoch."""
    for found in tasks:
        yield found[0].sequence, search(job, found).to_json()


def search(job: Job, found: Iterable[Range]) -> Report:
    """The events in some ranges of streams that have had such lately."""
    plan, searched = job.plan.load(), lively(job)
    streams = {each.name: each for each in plan.streams if each.name in searched}
    changes: dict[str, list[LoggedEvent]] = {}
    with suppress(AnabranchError):  # the job proper comes to the same, and says so
        for reach in found:
            if reach.mark is None and reach.stream in streams:
                stream = streams[reach.stream]
                root, carry = stream.root(), job.carry(reach)
                reader = RangeReader(stream, root, plan.limits, reach, carry, accents=plan.accents)
                for element in reader.elements(_cuts(reader, plan.limits, _NEEDLES[stream.form.format])):
                    if events := logged_events(element, reach, job.epoch):
                        changes.setdefault(reach.stream, []).extend(events)
    return Report(changes=changes)


def _cuts(reader: RangeReader, limits: Limits, needles: Sequence[bytes]) -> Iterator[Cut]:
    """The pieces of a range that may be control elements; lines without one of the needles are not."""
    position = reader.start.position
    splitter: LineSplitter | None = None
    for part in reader.parts(_SMALL):
        if isinstance(part, DeadLetter):
            continue
        if reader.lines and splitter is None and (part is None or part.endswith(b"\n")):
            yield from _lines(part or b"", position, limits, needles)
            position += len(part or b"")
            continue
        if reader.lines:  # a line longer than what is read at a time, or the last one, without its newline
            splitter = splitter or LineSplitter(limits, Carry(position))
            cuts = splitter.finish() if part is None else splitter.feed(part)
        else:
            shredded = reader.shredder.finish() if part is None else reader.shredder.feed(part, None)
            cuts = [cut for each in shredded for cut in each.cuts.values()]
        yield from (cut for cut in cuts if any(may_hold(word, cut.raw) for word in WORDS))


def _lines(data: bytes, position: int, limits: Limits, needles: Sequence[bytes]) -> Iterator[Cut]:
    """The lines that hold one of the needles, in order, of data that holds whole lines."""
    starts: set[int] = set()
    searched = np.frombuffer(data, np.uint8)
    for word in needles:
        needle = np.frombuffer(word, np.uint8)
        at = find_word(searched, 0, needle)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at) + 1)
            at = find_word(searched, data.find(b"\n", at) + 1, needle)
    for start in sorted(starts):
        first = start + len(BOM) * (position + start == 0 and data.startswith(BOM))
        cut = line_cut(position + first, data[first : data.find(b"\n", start)], limits)
        if cut is not None and any(may_hold(word, cut.raw) for word in WORDS):
            yield cut


_FRONT = 1 << 41
"""Names the segment of what is shown first, among those of tasks and shards."""


def shown_first(job: Job) -> Report | None:
    """What those are shown who begin in an epoch; None if that is nothing."""
    if not job.evolution:
        return None
    plan = job.plan.load()
    fresh = {each.id for each in plan.subscriptions if each.first == job.epoch and {*each.late} & job.evolution.keys()}
    if not fresh:
        return None
    programme = programme_for(job)
    aborted: dict[int, str] = {}
    segment = SegmentWriter(job.segments, job.epoch, _FRONT)
    with segment:
        for stream in plan.streams:
            asked = programme.asked[stream.name]
            for group in asked.alike:
                numbers = [
                    number
                    for member in asked.members[group.numbers.start : group.numbers.stop]
                    for number, _ in member.subscribers
                    if number in fresh
                ]
                view = job.known_log(stream).view(group.first) if numbers else None
                if view is None or not view.shown:
                    continue
                follower = fresh_follower(stream, group.kind)
                json = follower.lineage.gives_items and stream.form.format == "json"
                heard = (each for event in view.told[: view.shown] for each in follower.hear(event))
                text = "".join(accent_text(each, json=json) for each in heard)
                if text:
                    segment.add(tuple(numbers), text)
                if follower.aborted is not None:
                    aborted |= dict.fromkeys(numbers, follower.aborted)
    return Report(segments=segment.segments, aborted=aborted)
