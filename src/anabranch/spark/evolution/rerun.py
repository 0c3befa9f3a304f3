"""Running the tasks of an epoch so that each knows the events before its range, also those of the same epoch (LAWS
4.5).

The ranges of a partition are read in parallel, and an accent in one holds in those behind it.
A stream without accents must not pay for that, so the job is run as if there were none; the reports of its tasks show
whether a range missed an event before it.
Then the attempt is dropped, and the job is run again with all events.

A stream to which that happened lately is searched for events first, so the job need not be run again.
Control elements carry their name in plain bytes, and in a line of XML also the declaration of its namespace.
So a file of lines is searched at the speed of memory, and only lines that hold such a word are read; of documents and
packed files all items are cut out, and those with such a word read.

In the same way a job is run again where a subscription turns out to end in it because it takes too much (LAWS 2.9).

A subscription that begins late is shown the accents in force for a part of the items (LAWS 3.6): those that come out
stand first in its answer, and the driver writes them when the epoch has run.
Branches emit them themselves, when they are first opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias, TypeGuard

import numpy as np

from anabranch.columnar.items.evolution import ESCAPE, WORDS, may_hold
from anabranch.columnar.messages import Messages
from anabranch.columnar.scan.kernels import find_word
from anabranch.errors import AnabranchError
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.spark.answers.segments import SegmentWriter
from anabranch.spark.checkpoint import durable
from anabranch.spark.epoch.job import EpochEvents, Job, Report, SentReport
from anabranch.spark.epoch.task import compiled_plan_for
from anabranch.spark.evolution.following import fresh_follower
from anabranch.spark.evolution.log import EvolutionLogs, Logged, LoggedEvent, logged_events
from anabranch.spark.evolution.overruns import capped
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Position, Range
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry, Cut, LineSplitter, line_cut
from anabranch.stream.reading.markup import BOM
from anabranch.stream.reading.reader import Format

_SEARCHED_EPOCHS = 20
"""The number of epochs for which a stream is searched before its job."""

Run: TypeAlias = Callable[[Job], Sequence[Report]]
"""Runs the tasks of an epoch."""


def run_evolving(job: Job, search: Run, run: Run) -> tuple[Job, Sequence[Report]]:
    """Run the job of an epoch so that every range knows the events before it; gives the job as it was run last."""
    if searched_first(job):
        job = _with_events(job, _changes(search(job)))
    while True:
        reports = run(job)
        found = _changes(reports)
        given = job.epoch_events.load() if job.epoch_events else {}
        known = {stream: frozenset(changes) for stream, changes in given.items()}
        fresh = {
            stream: [each for each in changes if each not in known.get(stream, ())] for stream, changes in found.items()
        }
        if any(_is_crossed(stream, changes, reports) for stream, changes in fresh.items()):
            drop_attempt(job, reports)
            job = replace(_with_events(job, found), stops={})
        elif (stops := capped(job, reports).stops) != job.stops:
            drop_attempt(job, reports)
            job = replace(job, stops=stops)
        else:
            shown = shown_first(job)
            return job, [shown, *reports] if shown else reports


def searched_first(job: Job) -> frozenset[str]:
    """The streams that are searched first."""
    return frozenset(name for name, each in job.evolution.items() if 0 <= each.crossed >= job.epoch - _SEARCHED_EPOCHS)


def log_changes(job: Job, logs: EvolutionLogs, reports: Sequence[Report]) -> Mapping[str, Logged]:
    """Make the events of an epoch durable; gives the logs of all streams for its manifest."""
    found = dict(job.evolution)
    for stream, changes in _changes(reports).items():
        before = job.evolution.get(stream)
        crossed = job.epoch if _is_crossed(stream, changes, reports) else before.crossed if before else -1
        found[stream] = logs.append(stream, before, changes, crossed)
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


def _with_events(job: Job, changes: Mapping[str, Sequence[LoggedEvent]]) -> Job:
    """The job, with these events known to its tasks."""
    if not changes:
        return job
    if job.epoch_events is not None:
        job.epoch_events.remove()
    return replace(job, epoch_events=EpochEvents.save(job.checkpoint.evolution, changes, job.run))


def drop_attempt(job: Job, reports: Sequence[Report]) -> None:
    """Remove what the tasks of an attempt have written."""
    durable.delete(job.segments, [segment.name for report in reports for segment in report.segments])
    states = (each for report in reports for each in report.states.values() if each is not None)
    written = {file for each in states for file in each.files if file.startswith(f"{job.epoch:08}/")}
    durable.delete(job.checkpoint.states, written)


_SEARCH_BYTES = 1 << 20
"""Bytes that are searched at a time: few enough to stay in the processor's cache."""
_NEEDLES: dict[Format, Sequence[bytes]] = {"lines": (b"xmlns",), "json": (*WORDS, ESCAPE), "document": WORDS}


def search_ranges(job: Job, tasks: Iterable[Sequence[Range]]) -> Iterator[SentReport]:
    """The function that Spark maps over the tasks of an epoch."""
    for found in tasks:
        yield found[0].sequence, search(job, found).to_json()


def search(job: Job, found: Iterable[Range]) -> Report:
    """The events in some ranges of streams that had events lately."""
    plan, searched = job.plan.load(), searched_first(job)
    streams = {each.name: each for each in plan.streams if each.name in searched}
    changes: dict[str, list[LoggedEvent]] = {}
    with suppress(AnabranchError):  # the job will meet the same error and report it
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
    """The pieces of a range that may be control elements; lines without one of the needles are none."""
    position = reader.start.position
    splitter: LineSplitter | None = None
    for part in reader.parts(_SEARCH_BYTES):
        if isinstance(part, DeadLetter):
            continue
        if reader.lines and splitter is None and _holds_lines(part):
            yield from _lines(part or b"", position, limits, needles)
            position += len(part or b"")
            continue
        if reader.lines and not isinstance(part, Messages):  # a line longer than a piece, or the last, without its end
            splitter = splitter or LineSplitter(limits, Carry(position))
            cuts = splitter.finish() if part is None else splitter.feed(part)
        else:
            shredded = reader.shredder.finish() if part is None else reader.shredder.feed(part, None)
            cuts = [cut for each in shredded for cut in each.cuts.values()]
        yield from (cut for cut in cuts if any(may_hold(word, cut.raw) for word in WORDS))


def _holds_lines(part: bytes | Messages | None) -> TypeGuard[bytes | None]:
    """Whether a part holds whole lines, and nothing else."""
    return part is None or (isinstance(part, bytes) and part.endswith(b"\n"))


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


_FIRST_SEQUENCE = 1 << 41
"""The number of the segment with accents shown first, beside those of tasks and shards."""


def shown_first(job: Job) -> Report | None:
    """The accents in force for subscriptions that begin in this epoch; None if there are none."""
    if not job.evolution:
        return None
    plan = job.plan.load()
    fresh = {each.id for each in plan.subscriptions if each.first == job.epoch and {*each.late} & job.evolution.keys()}
    if not fresh:
        return None
    compiled = compiled_plan_for(job)
    aborted: dict[int, str] = {}
    segment = SegmentWriter(job.segments, job.epoch, _FIRST_SEQUENCE, job.run)
    with segment:
        for stream in plan.streams:
            queries = compiled.queries[stream.name]
            for group in queries.alike:
                numbers = [
                    number
                    for member in queries.members[group.numbers.start : group.numbers.stop]
                    for number, _ in member.subscribers
                    if number in fresh
                ]
                view = job.known_log(stream).view(group.first) if numbers else None
                if view is None or not view.initial:
                    continue
                follower = fresh_follower(stream, group.kind)
                json = follower.lineage.outputs.form(stream.json_items) == "json"
                heard = (each for event in view.events[: view.initial] for each in follower.hear(event))
                text = "".join(accent_text(each, json=json) for each in heard)
                if text:
                    segment.add(tuple(numbers), text)
                if follower.aborted is not None:
                    aborted |= dict.fromkeys(numbers, follower.aborted)
    return Report(segments=segment.segments, aborted=aborted)
