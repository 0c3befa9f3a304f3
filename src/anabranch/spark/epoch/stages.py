"""The work of an epoch in one task, and the manifest from the reports of all tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from anabranch.spark.answers.segments import late_places, stream_of
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.job import Job, Report, SentReport
from anabranch.spark.epoch.task import send_ranges
from anabranch.spark.evolution.log import EvolutionLogs
from anabranch.spark.evolution.overruns import capped, why_stopped
from anabranch.spark.evolution.rerun import log_changes
from anabranch.spark.intake.order_logs import OrderLogs
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.branches import keeper_of
from anabranch.spark.state.shard import answer_shards, pass_shards

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def answer_at_once(job: Job, strands: bool, tasks: Iterable[Sequence[Range]]) -> Iterator[SentReport]:
    """The function that a host maps over the only task of a small epoch, which also runs all shards."""
    sent = send_ranges(job, tasks)
    yield from answer_shards(job, pass_shards(job, sent) if strands else sent)


def manifest_of(
    job: Job, last: Manifest | None, reports: Sequence[Report], logs: EvolutionLogs, orders: OrderLogs
) -> Manifest:
    """Combine the reports with the manifest before; raises the first of their errors.

    The events of streams, and what the intake needs to go on, are written on the way.
    """
    offsets, carries = (dict(last.offsets), dict(last.carries)) if last else ({}, {})
    begun = dict.fromkeys(last.begun if last else ())
    plan = job.plan.load()
    aborted = {number: reason for report in reports for number, reason in report.aborted.items()}
    aborted |= {**why_stopped(job), **plan.ended}
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
        job.run,
        job.plan.name,
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
        orders.record(job.epoch, last, plan, segments),
        capped(job, reports).counts,
    )


def _update(held: dict[_Key, _Value], changes: Mapping[_Key, _Value | None]) -> None:
    """Apply changes, of which None is a removal."""
    for key, value in changes.items():
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value
