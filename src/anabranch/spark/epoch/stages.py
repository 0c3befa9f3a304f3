"""The job of an epoch, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame

from anabranch.spark.answers.segments import late_places, stream_of
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.job import REPORTS, ROWS, Job, Report
from anabranch.spark.epoch.task import answer_ranges, send_ranges
from anabranch.spark.evolution.log import EvolutionLogs
from anabranch.spark.evolution.rerun import lively, log_changes, run_evolving, search, search_ranges
from anabranch.spark.intake.order_logs import epoch_ranges
from anabranch.spark.plan.branches import branches_of, keeper_of, numbers_of
from anabranch.spark.state.shard import answer_shards, pass_shards

_AT_HAND = 64 << 20
"""Bytes that one process searches in a few hundredths of a second."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def run_epoch(batch: DataFrame, job: Job, shards: int) -> tuple[Job, Sequence[Report]]:
    """Run the job of an epoch, as a rule once; where accents come in between, see `spark/evolution/rerun.py`."""
    return run_evolving(job, partial(_search, batch), partial(_run, batch, shards))


def _search(batch: DataFrame, job: Job) -> list[Report]:
    """Search an epoch for changes; one that the driver has read sooner than Spark has begun a job, here."""
    found = [each for each in epoch_ranges(job.checkpoint, job.epoch) if each.stream in lively(job)]
    if sum(each.end - each.start for each in found) <= _AT_HAND:
        return [search(job, found)]
    return _reports(batch.mapInArrow(partial(search_ranges, job), REPORTS))


def _run(batch: DataFrame, shards: int, job: Job) -> list[Report]:
    """Run the tasks of an epoch.

    Branches need a second stage, in which each shard gets the rows that are its own; and queries in strands a third.
    """
    branches = branches_of(job.plan, job.functions)
    if branches:
        sent = batch.mapInArrow(partial(send_ranges, job), ROWS).repartitionById(shards, "shard")
        if any(each.is_braid for each in branches):
            sent = sent.mapInArrow(partial(pass_shards, job), ROWS).repartitionById(shards, "shard")
        found = sent.mapInArrow(partial(answer_shards, job), REPORTS)
    else:
        found = batch.mapInArrow(partial(answer_ranges, job), REPORTS)
    return _reports(found)


def _reports(found: DataFrame) -> list[Report]:
    rows = sorted(found.collect(), key=lambda row: row["sequence"])
    return [Report.from_json(row["report"]) for row in rows]


def manifest_of(job: Job, run: int, last: Manifest | None, reports: Sequence[Report], logs: EvolutionLogs) -> Manifest:
    """What the tasks report, taken together and added to what was before; or the first of their errors.

    The events of streams are made durable on the way.
    """
    offsets, carries = (dict(last.offsets), dict(last.carries)) if last else ({}, {})
    begun = dict.fromkeys(last.begun if last else ())
    subscriptions = job.plan.load().subscriptions
    aborted = {number: reason for report in reports for number, reason in report.aborted.items()}
    aborted |= {each.id: each.aborted for each in subscriptions if each.aborted}
    present = {number for each in subscriptions if each.id not in aborted for number in numbers_of(each)}
    present |= {keeper_of(each.name) for each in job.plan.load().streams if each.source.updates}
    kept = {number: each for number, each in last.states.items() if number in present} if last else {}
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
