"""The largest times of items, which each epoch's manifest has for heartbeats (`heartbeats.py`).

It stands apart from what the survey needs, because Spark runs the survey in a process of its own, which has to load
neither answers nor plans: the driver writes it down for the survey, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.spark.answers.segments import RANGE_PROGRESS, Segment, read_chunk, read_index
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.evolution.progress import RangeProgress
from anabranch.spark.plan.epoch_plan import Plan


def reached_by(
    checkpoint: Checkpoint, segments: tuple[Segment, ...], plan: Plan, before: Mapping[str, float]
) -> Mapping[str, float]:
    """The largest item times after an epoch with these segments, for streams with heartbeats."""
    names = {each.name for each in plan.streams if each.source.beats_by_time}
    if not names:
        return before
    found = dict(before)
    for chunk in read_index(checkpoint.segments, segments).of(RANGE_PROGRESS):
        for progress in map(RangeProgress.from_json, read_chunk(checkpoint.segments, chunk).splitlines()):
            for top in progress.tops if progress.stream in names else ():
                if top is not None:
                    found[progress.stream] = max(top.value, found.get(progress.stream, top.value))
    return found


def write_reached(checkpoint: Checkpoint, reached: Mapping[str, float]) -> None:
    """Write the largest item times down for the survey."""
    durable.replace(checkpoint.reached, durable.sealed(dict(reached)))
