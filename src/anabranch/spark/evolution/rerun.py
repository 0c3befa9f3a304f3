"""How the job of an epoch comes to know what was said earlier in the same epoch (LAWS 4.5).

The ranges of a partition are read side by side, and an accent in one holds in those behind it.
A stream that has none must not pay for that, so the job is run as if there were none; what its tasks report tells
whether a range did not know what stands before it.
Then nothing of that attempt counts, and the job is run again, told all changes.
A stream to which that has happened lately is searched for changes first, which costs little (`scanning.py`); then the
job need not be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from anabranch.spark.epoch.job import Job, Met, Report
from anabranch.spark.evolution.late_start import greeting
from anabranch.spark.evolution.log import EvolutionLogs, Logged, LoggedEvent
from anabranch.spark.intake.ranges import Position

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
            greeted = greeting(job)
            return job, [greeted, *reports] if greeted else reports
        for report in reports:
            for segment in report.segments:
                (job.segments / segment.name).unlink(missing_ok=True)
        job = _told(job, found)


def lively(job: Job) -> frozenset[str]:
    """The streams that are searched first."""
    return frozenset(name for name, each in job.evolution.items() if 0 <= each.crossed >= job.epoch - _LATELY)


def log_changes(job: Job, logs: EvolutionLogs, reports: Sequence[Report]) -> Mapping[str, Logged]:
    """Make durable what was said in an epoch; gives the logs of all streams as its manifest names them."""
    found = dict(job.evolution)
    for stream, changes in _changes(reports).items():
        before = job.evolution.get(stream)
        crossed = job.epoch if _is_crossed(stream, changes, reports) else before.crossed if before else -1
        found[stream] = logs.append(stream, job.checkpoint.evolution_name(stream), before, changes, crossed)
    return found


def _changes(reports: Sequence[Report]) -> dict[str, list[LoggedEvent]]:
    """By stream what was said, those of each partition in order."""
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
        each.position < last.get(each.partition, each.position) or int(each.partition) < max(last, default=-1)
        for each in changes
    )


def _told(job: Job, changes: Mapping[str, Sequence[LoggedEvent]]) -> Job:
    """The same job, whose tasks know these changes before they read."""
    return replace(job, met=Met.save(job.checkpoint.evolution, changes)) if changes else job
