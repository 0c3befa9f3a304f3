"""What an epoch did, in numbers: for the log, for a display, and for callers of the Python API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest

from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.plan.epoch_plan import Plan

SHOWN = 20
"""With more subscriptions than this, only those with the most matches are named."""


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
    """The same by subscription, for those with the most."""
    held: int
    """What all branches remember: items and panes."""
    waiting: Mapping[str, int]
    """By partition: how many items wait on disk, because another input of a query is behind."""
    plan_ms: int
    job_ms: int
    publish_ms: int
    deliver_ms: int

    @staticmethod
    def of(
        manifest: Manifest, plan: Plan, answers: Mapping[int, int], seconds: tuple[float, float, float, float]
    ) -> Metrics:
        """The numbers of an epoch; `answers` are counted by subscription.

        `seconds` are those for planning, the job, publishing and delivering.
        """
        most = dict.fromkeys(nlargest(SHOWN, answers, key=answers.__getitem__))
        names = {each.id: each.name for each in plan.subscriptions if each.id in most}
        waiting: dict[str, int] = {}
        for kept in manifest.states.values():
            for key, count in kept.waiting.items():
                waiting[key] = max(count, waiting.get(key, 0))
        plan_ms, job_ms, publish_ms, deliver_ms = (round(each * 1000) for each in seconds)
        return Metrics(
            manifest.epoch,
            manifest.run,
            manifest.items,
            manifest.bytes_read,
            manifest.dead_letters,
            manifest.late,
            len(plan.subscriptions),
            sum(answers.values()),
            {names[number]: answers[number] for number in most},
            sum(each.held for each in manifest.states.values()),
            waiting,
            plan_ms,
            job_ms,
            publish_ms,
            deliver_ms,
        )
