"""The job of an epoch, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from pyspark import RDD, SparkContext

from anabranch.spark import garbage
from anabranch.spark.answers.segments import late_places, stream_of
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.job import Job, Report, SentReport
from anabranch.spark.epoch.task import answer_ranges, send_ranges
from anabranch.spark.evolution.log import EvolutionLogs
from anabranch.spark.evolution.rerun import lively, log_changes, run_evolving, search, search_ranges
from anabranch.spark.intake import ranges
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.branches import branches_of, keeper_of
from anabranch.spark.state.shard import BEHIND, answer_shards, pass_shards

_AT_HAND = 64 << 20
"""Bytes that one process searches in a few hundredths of a second."""
_SHORT = 0.05
"""Seconds of work in branches that are over sooner than Spark has begun another stage."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_Mapping: TypeAlias = Callable[[Iterable[_Given]], Iterator[_Made]]
_Tasks: TypeAlias = Sequence[Sequence[Range]]
"""The ranges of an epoch, by task."""


class Stages:
    """Runs the jobs of a trunk's epochs, one after the other; it remembers how long the branches took.

    The jobs are plain ones: a batch of Spark's own would be planned anew for each epoch, its ranges would pass through
    a Python process more, and each stage of it costs a multiple of what a small epoch has to do.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._branch_seconds: float | None = None
        """The work of all branches in the latest epoch that had some."""

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        """Run the job of an epoch, as a rule once; where accents come in between, see `spark/evolution/rerun.py`."""
        by_task = list(ranges.tasks(found))
        return run_evolving(job, partial(self._search, by_task), partial(self._run, by_task, shards))

    def _search(self, tasks: _Tasks, job: Job) -> list[Report]:
        """Search an epoch for changes; one that the driver has read sooner than Spark has begun a job, here."""
        found = [each for task in tasks for each in task if each.stream in lively(job)]
        if sum(each.end - each.start for each in found) <= _AT_HAND:
            return [search(job, found)]
        return [report for _, report in _collected(_mapped(self._spread(tasks), partial(search_ranges, job)))]

    def _run(self, tasks: _Tasks, shards: int, job: Job) -> list[Report]:
        """Run the tasks of an epoch.

        Branches need a second stage, in which each shard gets the rows that are its own; and queries in strands a
        third.
        What one task can do alone in less time than a stage takes is done by one.
        """
        branches = branches_of(job.plan, job.functions)
        if not tasks:
            return []
        if not branches:
            return [report for _, report in _collected(_mapped(self._spread(tasks), partial(answer_ranges, job)))]
        strands = any(each.is_braid for each in branches)
        short = self._branch_seconds is not None and self._branch_seconds <= _SHORT
        if len(tasks) == 1 and (short or shards == 1):
            reports = _collected(_mapped(self._spread(tasks), partial(answer_at_once, job, strands)))
        else:
            sent = _mapped(self._spread(tasks), partial(send_ranges, job)).partitionBy(shards, int)
            if strands:
                sent = _mapped(sent, partial(pass_shards, job)).partitionBy(shards, int)
            reports = _collected(_mapped(sent, partial(answer_shards, job)))
        self._branch_seconds = sum(report.cpu for sequence, report in reports if sequence >= BEHIND)
        return [report for _, report in reports]

    def _spread(self, tasks: _Tasks) -> RDD[Sequence[Range]]:
        return self._context.parallelize(tasks, len(tasks))


def answer_at_once(job: Job, strands: bool, tasks: Iterable[Sequence[Range]]) -> Iterator[SentReport]:
    """The function that Spark maps over the only task of a small epoch: it reads the ranges and is all shards, too."""
    sent = send_ranges(job, tasks)
    yield from answer_shards(job, pass_shards(job, sent) if strands else sent)


def _mapped(given: RDD[_Given], function: _Mapping[_Given, _Made]) -> RDD[_Made]:
    """What a function makes of the partitions of some data, in the processes of Spark."""
    return given.mapPartitions(partial(_at_work, function))


def _at_work(function: _Mapping[_Given, _Made], given: Iterable[_Given]) -> Iterator[_Made]:
    garbage.here.begin_task()
    return function(given)


def _collected(found: RDD[SentReport]) -> list[tuple[int, Report]]:
    """The reports of a job, in order."""
    return [(sequence, Report.from_json(text)) for sequence, text in sorted(found.collect())]


def manifest_of(job: Job, run: int, last: Manifest | None, reports: Sequence[Report], logs: EvolutionLogs) -> Manifest:
    """What the tasks report, taken together and added to what was before; or the first of their errors.

    The events of streams are made durable on the way.
    """
    offsets, carries = (dict(last.offsets), dict(last.carries)) if last else ({}, {})
    begun = dict.fromkeys(last.begun if last else ())
    plan = job.plan.load()
    aborted = {number: reason for report in reports for number, reason in report.aborted.items()}
    aborted |= plan.ended
    keepers = {keeper_of(each.name) for each in plan.streams if each.source.updates}
    kept = {
        number: each
        for number, each in (last.states if last else {}).items()
        if number in keepers or not aborted.keys() >= {*plan.served.get(number, ())}
    }
    for report in reports:
        if report.fault is not None:
            raise report.fault.error()
        offsets |= {key: end._asdict() for key, end in report.ends.items()}
        _update(carries, report.carries)
        _update(kept, report.states)
        begun |= dict.fromkeys(report.items)
    segments = tuple(each for report in reports for each in report.segments)
    late = late_places(job.segments, segments)
    behind = {key.rpartition("/")[0] for each in kept.values() for key in each.waiting}
    noted = (line for line in (*(last.noted if last else ()), *late) if stream_of(line) in behind)
    return Manifest(
        job.epoch,
        run,
        job.plan.digest,
        offsets,
        carries,
        segments,
        sum(items for report in reports for items in report.items.values()),
        sum(report.bytes_read for report in reports),
        tuple(begun),
        kept,
        len(late),
        tuple(noted),
        aborted,
        log_changes(job, logs, reports),
    )


def _update(held: dict[_Key, _Value], changes: Mapping[_Key, _Value | None]) -> None:
    """Take changes in, of which None is a removal."""
    for key, value in changes.items():
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value
