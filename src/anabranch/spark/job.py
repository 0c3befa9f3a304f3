"""What the tasks of an epoch are told, and what they report.

A job travels in the closure and stays small: plans and states are named by their files.
A task returns one small row, its report; our own errors (a file that cannot be read, a control element that queries
cannot follow yet) are part of it: raised in a task, they would be tried four times and come back wrapped in stack
traces.
Everything else that happens in a task is a fault of the machine or of ours, and is Spark's to try again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.faults import Fault
from anabranch.spark.manifest import Carried
from anabranch.spark.plans import PlanFile
from anabranch.spark.ranges import Position, Range
from anabranch.spark.roles import Functions
from anabranch.spark.segments import Segment
from anabranch.spark.states import Kept, kept_from_json


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of an epoch are told."""

    plan: PlanFile
    checkpoint: Checkpoint
    epoch: int
    carries: Mapping[str, Carried]
    """Where the reading of unfinished files goes on, by partition."""
    functions: Functions = ()
    before: int | None = None
    """The epoch whose manifest names the states of the branches."""

    @property
    def segments(self) -> Path:
        return self.checkpoint.segments

    def carry(self, reach: Range) -> str | None:
        """What the reader of a range is handed by that of the range before it."""
        before = self.carries.get(reach.key)
        return before.carry if before and before.number == reach.number else None


@dataclass(frozen=True, slots=True)
class Report:
    """What a task tells the driver: one that reads ranges, or one that has a shard's branches."""

    items: Mapping[str, int] = field(default_factory=dict)
    """By stream, for those of which an element was read; punctuations are elements and no items."""
    bytes_read: int = 0
    segments: tuple[Segment, ...] = ()
    ends: Mapping[str, Position] = field(default_factory=dict)
    """By partition: how far its reading came."""
    carries: Mapping[str, Carried | None] = field(default_factory=dict)
    """By partition: where an unfinished file goes on, None where there is nothing to carry."""
    states: Mapping[int, Kept | None] = field(default_factory=dict)
    """By branch: what it remembers, None for nothing."""
    fault: Fault | None = None

    def to_json(self) -> str:
        fields = asdict(self)
        fields["segments"] = [astuple(each) for each in self.segments]
        return json.dumps(fields)

    @staticmethod
    def from_json(text: str) -> Report:
        fields = json.loads(text)
        return Report(
            fields["items"],
            fields["bytes_read"],
            tuple(Segment(*each) for each in fields["segments"]),
            {key: Position(*end) for key, end in fields["ends"].items()},
            {key: None if each is None else Carried(**each) for key, each in fields["carries"].items()},
            {int(key): None if each is None else kept_from_json(each) for key, each in fields["states"].items()},
            None if fields["fault"] is None else Fault(**fields["fault"]),
        )
