"""Metrics of an epoch: for the log, for a display, and for callers of the Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.columnar.items.coverage import ReadCounts
from anabranch.spark.answers.segments import AnswerCounts
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.job import Report
from anabranch.spark.plan.epoch_plan import Plan

MOST_NAMED = 20
"""With more subscriptions than this, only those with the most matches, or the highest costs, are named."""
_SHOWN = 0.0005
"""Lower costs, in seconds, are not named."""


@dataclass(frozen=True, slots=True)
class StreamNumbers:
    """How the items of a stream were read, and answered for subscriptions that need one item at a time."""

    items: int
    by_template: int
    by_scanner: int
    """Items in columns: cut by the template of the usual bytes, and scanned by the learned look."""
    by_parser: int
    """Items of another look, which were parsed and answered by the law."""
    unclear: int
    """How often columns could not decide a subscription's answer to an item, and the law did."""
    in_columns: int
    by_law: int
    """How many subscriptions are answered in columns, and how many by the law throughout."""
    reasons: Mapping[str, int]
    """Why subscriptions are not answered in columns, with their number: the ten most frequent reasons."""
    bytes: int = 0
    """The bytes that the items were read from."""

    @staticmethod
    def of(reports: Sequence[Report]) -> dict[str, StreamNumbers]:
        """The numbers of all tasks, by stream; coverage is that of the task with the most items."""
        found: dict[str, StreamNumbers] = {}
        for name in dict.fromkeys(name for report in reports for name in report.read):
            mine = [report for report in reports if name in report.read]
            read = sum((report.read[name] for report in mine), ReadCounts())
            most = max(mine, key=lambda report: report.read[name].items).coverage[name]
            found[name] = StreamNumbers(
                read.items,
                read.by_template,
                read.by_scanner,
                read.by_parser,
                read.unclear,
                most.in_columns,
                most.by_law,
                most.reasons,
                read.bytes,
            )
        return found


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """When an epoch began, and how long its phases took, in seconds."""

    began: float
    """By the wall clock, in seconds since 1970."""
    plan: float
    job: float
    publish: float
    delivered: float = 0.0
    """From the begin of the epoch to that of its delivery, which may wait for the delivery before it."""
    deliver: float = 0.0

    def moments_ms(self) -> tuple[int, int, int, int, int]:
        """When each phase ended and the delivery began and ended, in milliseconds from the begin of the epoch.

        Moments are rounded and not durations, so that no phase reaches into the next or behind the end.
        """
        worked = self.plan + self.job
        published = worked + self.publish
        delivering = max(published, self.delivered)
        found = (self.plan, worked, published, delivering, delivering + self.deliver)
        planned, worked_ms, published_ms, delivering_ms, delivered_ms = (round(each * 1000) for each in found)
        return planned, worked_ms, published_ms, delivering_ms, delivered_ms


@dataclass(frozen=True, slots=True)
class Metrics:
    """One epoch; times are milliseconds."""

    epoch: int
    run: int
    items: int
    bytes: int
    dead_letters: int
    late_items: int
    """Items too late for time windows (LAWS 3.2)."""
    subscriptions: int
    matched: int
    """The answers to single items, of all subscriptions together."""
    matches: Mapping[str, int]
    """These answers by subscription, for those with the most."""
    held: int
    """Items and panes in the states of all branches."""
    waiting: Mapping[str, int]
    """By partition: items spilled to disk, because another input of a query is behind."""
    plan_ms: int
    job_ms: int
    publish_ms: int
    deliver_ms: int
    streams: Mapping[str, StreamNumbers]
    began: float
    """When the epoch began, in seconds since 1970."""
    deliver_start_ms: int
    """From its begin to that of its delivery."""
    costs_ms: Mapping[str, int] = field(default_factory=dict)
    """By subscription, for the most costly: the processor time of its branch, or in which the law has answered it.

    Of several that share a branch or an evaluation it is with the first.
    """

    @property
    def total_ms(self) -> int:
        """From the begin of the epoch to the end of its delivery."""
        return self.deliver_start_ms + self.deliver_ms

    @staticmethod
    def of(
        manifest: Manifest,
        plan: Plan,
        answers: AnswerCounts,
        times: EpochTimes,
        reports: Sequence[Report],
    ) -> Metrics:
        """The numbers of an epoch."""
        waiting: dict[str, int] = {}
        for kept in manifest.states.values():
            for key, count in kept.waiting.items():
                waiting[key] = max(count, waiting.get(key, 0))
        planned, worked, published, delivering, delivered = times.moments_ms()
        return Metrics(
            manifest.epoch,
            manifest.run,
            manifest.items,
            manifest.bytes_read,
            manifest.dead_letters,
            manifest.late,
            len(plan.subscriptions),
            answers.total,
            {plan.by_id[number].name: count for number, count in answers.most(MOST_NAMED).items()},
            sum(each.held for each in manifest.states.values()),
            waiting,
            planned,
            worked - planned,
            published - worked,
            delivered - delivering,
            StreamNumbers.of(reports),
            times.began,
            delivering,
            _costs(plan, reports),
        )


def _costs(plan: Plan, reports: Sequence[Report]) -> dict[str, int]:
    """The milliseconds of the most costly subscriptions, those with the most first."""
    found: dict[str, float] = {}
    for report in reports:
        for number, seconds in report.costs.items():
            served = plan.served.get(number, (number,))
            if served[0] in plan.by_id:
                name = plan.by_id[served[0]].name
                found[name] = found.get(name, 0.0) + seconds
    most = sorted(found.items(), key=lambda each: (-each[1], each[0]))[:MOST_NAMED]
    return {name: round(seconds * 1000) for name, seconds in most if seconds >= _SHOWN}
