"""What the tasks of an epoch are told, and what they report.

A job travels in the closure and stays small: plans and states are named by their files.
A task returns one small row, its report; our own errors (a file that cannot be read, a state that is damaged) are part
of it: raised in a task, they would be tried four times and come back wrapped in stack traces.
Everything else that happens in a task is a fault of the machine or of ours, and is Spark's to try again.

Between the stages rows pass from the tasks that read ranges to those that have the branches of a shard, and on from
strands.
Raw items travel once to each shard that needs them, in feeds; so do partial panes, those of all its branches together.
Reports take the same way to the driver, as the rows of a shard that does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from anabranch.columnar.items.coverage import Coverage, ReadCounts
from anabranch.errors import StateError
from anabranch.spark.answers.segments import Segment
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Carried
from anabranch.spark.evolution.log import Logged, LoggedEvent
from anabranch.spark.evolution.views import KnownLog, known_log
from anabranch.spark.faults import Fault
from anabranch.spark.intake.ranges import Position, Range
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.plan.kinds.kind import Functions
from anabranch.spark.state.files import SavedState
from anabranch.stream.plain import from_plain
from anabranch.stream.reading.source import KnownStream


@dataclass(frozen=True, slots=True)
class Met:
    """The events of the epoch itself, in a file: its tasks know them before they read."""

    path: Path
    digest: str

    @staticmethod
    def save(folder: Path, changes: Mapping[str, Sequence[LoggedEvent]]) -> Met:
        data = json.dumps({stream: [each.to_json() for each in found] for stream, found in changes.items()}).encode()
        digest = durable.digest(data)
        path = folder / f"{digest[:32]}.met"
        with durable.writing(path):
            folder.mkdir(exist_ok=True)
        durable.replace(path, data)
        return Met(path, digest)

    def load(self) -> Mapping[str, Sequence[LoggedEvent]]:
        """The events by stream, in order."""
        return _load_met(self)


@lru_cache(maxsize=2)
def _load_met(met: Met) -> Mapping[str, Sequence[LoggedEvent]]:
    try:
        data = met.path.read_bytes()
    except OSError as error:
        raise StateError(f"cannot read '{met.path}': {error.strerror}") from None
    if durable.digest(data) != met.digest:
        raise StateError(f"'{met.path}' is damaged")
    return {stream: list(map(LoggedEvent.from_json, found)) for stream, found in json.loads(data).items()}


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
    evolution: Mapping[str, Logged] = field(default_factory=dict)
    """By stream: the log of the events of earlier epochs."""
    met: Met | None = None
    """The events of this one, if they are known."""

    def known_log(self, stream: KnownStream) -> KnownLog:
        """What the log of a stream says of earlier epochs, as this process has read it."""
        return known_log(self.checkpoint.evolution, stream, self.evolution.get(stream.name))

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

    read: Mapping[str, ReadCounts] = field(default_factory=dict)
    """By stream, for those of which an element was read: its items; punctuations are elements and no items."""
    bytes_read: int = 0
    segments: tuple[Segment, ...] = ()
    ends: Mapping[str, Position] = field(default_factory=dict)
    """By partition: how far its reading came."""
    carries: Mapping[str, Carried | None] = field(default_factory=dict)
    """By partition: where an unfinished file goes on, None where there is nothing to carry."""
    states: Mapping[int, SavedState | None] = field(default_factory=dict)
    """By branch: what it remembers, None for nothing."""
    fault: Fault | None = None
    aborted: Mapping[int, str] = field(default_factory=dict)
    """By subscription: why it has ended (LAWS 4.6)."""
    changes: Mapping[str, Sequence[LoggedEvent]] = field(default_factory=dict)
    """By stream: what its accents and punctuations say."""
    begins: Mapping[str, Position] = field(default_factory=dict)
    """By partition: where the last of its ranges begins."""
    cpu: float = 0.0
    """Seconds of its process."""
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    """By stream: which subscriptions it answers in columns, as far as it knows how items look."""

    @property
    def items(self) -> dict[str, int]:
        """How many items were read, by stream."""
        return {stream: each.items for stream, each in self.read.items()}

    def to_json(self) -> str:
        fields = asdict(self)
        fields["segments"] = [astuple(each) for each in self.segments]
        fields["changes"] = {stream: [each.to_json() for each in found] for stream, found in self.changes.items()}
        return json.dumps(fields)

    @staticmethod
    def from_json(text: str) -> Report:
        fields = json.loads(text)
        return Report(
            {stream: ReadCounts(**each) for stream, each in fields["read"].items()},
            fields["bytes_read"],
            tuple(Segment(*each) for each in fields["segments"]),
            {key: Position(*end) for key, end in fields["ends"].items()},
            {key: None if each is None else Carried(**each) for key, each in fields["carries"].items()},
            {
                int(key): None if each is None else from_plain(SavedState, each)
                for key, each in fields["states"].items()
            },
            None if fields["fault"] is None else Fault(**fields["fault"]),
            {int(key): reason for key, reason in fields["aborted"].items()},
            {stream: list(map(LoggedEvent.from_json, found)) for stream, found in fields["changes"].items()},
            {key: Position(*begin) for key, begin in fields["begins"].items()},
            fields["cpu"],
            {stream: Coverage(**each) for stream, each in fields["coverage"].items()},
        )


# --- rows between the stages of a job ---------------------------------------------------------------------------------

DRIVER = -1
"""The shard of the reports."""
ALL = -1
"""Stands for the branch where a row concerns all branches of a shard."""

Kind: TypeAlias = Literal["report", "feed", "panes", "ended", "passed", "told", "finished"]
SentReport: TypeAlias = tuple[int, str]
"""What comes back: the number of the task's first range, or of a shard behind all ranges, and a `Report` as JSON."""


@dataclass(frozen=True, slots=True)
class ShardRow:
    """One row; `sequence` is the number of the range it comes from."""

    shard: int
    sequence: int
    kind: Kind
    branch: int
    payload: bytes


@dataclass(slots=True)
class Outbox:
    """Rows that are ready to be sent."""

    rows: list[ShardRow] = field(default_factory=list)
