"""What a subscription is shown when it begins late: the accents in force for a part of the items (LAWS 3.6).

They stand first in its answer, as far as they come out of it; the driver writes them when the epoch has run.
Branches that remember are shown the same by themselves, when they are first opened.
"""

from __future__ import annotations

from anabranch.runtime.evolution.outlet import accent_text
from anabranch.spark.answers.segments import SegmentWriter
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.epoch.task import programme_for
from anabranch.spark.evolution.following import fresh_follower

_FRONT = 1 << 41
"""Names the segment of greetings among those of tasks and shards."""


def greeting(job: Job) -> Report | None:
    """What those are shown who begin in an epoch; None if that is nothing."""
    plan = job.plan.load()
    fresh = {each.id for each in plan.subscriptions if each.first == job.epoch and {*each.late} & job.evolution.keys()}
    if not fresh:
        return None
    programme = programme_for(job)
    aborted: dict[int, str] = {}
    segment = SegmentWriter(job.segments, job.epoch, _FRONT)
    with segment:
        for stream in plan.streams:
            asked = programme.asked[stream.stream]
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
                text = "".join(accent_text(each) for shown in view.told[: view.shown] for each in follower.hear(shown))
                if text:
                    segment.add(tuple(numbers), text)
                if follower.aborted is not None:
                    aborted |= dict.fromkeys(numbers, follower.aborted)
    return Report(segments=segment.segments, aborted=aborted)
