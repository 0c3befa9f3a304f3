"""The largest times of items, which the driver writes down behind each epoch for heartbeats (`heartbeats.py`).

It stands apart from what the survey needs, because Spark runs the survey in a process of its own, which has to load
neither answers nor plans.
"""

from __future__ import annotations

from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import RANGE_PROGRESS
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.evolution.progress import RangeProgress
from anabranch.spark.intake.heartbeats import read_reached
from anabranch.spark.plan.epoch_plan import Plan


def write_reached(checkpoint: Checkpoint, manifest: Manifest, plan: Plan) -> None:
    """Write down the largest item times after an epoch, for streams with heartbeats."""
    names = {each.name for each in plan.streams if each.source.beats_by_time}
    if not names:
        return
    log, before = AnswerLog(checkpoint), read_reached(checkpoint)
    found = dict(before)
    for chunk in log.chunks(manifest, RANGE_PROGRESS):
        for progress in map(RangeProgress.from_json, log.text(chunk).splitlines()):
            for top in progress.tops if progress.stream in names else ():
                if top is not None:
                    found[progress.stream] = max(top.value, found.get(progress.stream, top.value))
    if found != before:
        durable.replace(checkpoint.reached, durable.sealed(found))
