"""Whether the parts of a workload can be had together: what is read, what is written, and streams that are answers."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.law.calls import PythonFunction
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.wanted import Workload
from anabranch.spark.sinks.answer_streams import check_answers
from anabranch.spark.sinks.claims import check_sinks
from anabranch.stream.files import DEAD_LETTERS, LATE_ITEMS, document_claims


def check_workload(
    wanted: Workload, checkpoint: Checkpoint, functions: Mapping[str, PythonFunction], plan: Plan | None
) -> None:
    """Refuse files that conflict, and streams that cannot be the answers they are declared to be.

    `plan` is that of the newest epoch.
    """
    check_sinks(
        wanted.streams,
        wanted.subscriptions,
        wanted.sinks,
        checkpoint=checkpoint.folder,
        files={DEAD_LETTERS: wanted.dead_letters, LATE_ITEMS: wanted.late_items},
        read=document_claims(wanted.documents),
    )
    streams = wanted.streams.values()
    asked, known = {each.answer for each in streams}, QueryContext.of(streams, functions)
    found = {name: not_begun(name, text, known) for name, text in wanted.subscriptions.items() if name in asked}
    check_answers(wanted.streams, found, plan)
