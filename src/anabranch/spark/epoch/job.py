"""What the driver tells the tasks of an epoch, and what they report.

A job travels in Spark's closure and must stay small: plans and states are named by their files.
A task returns one small row, its report, which also carries our own errors (an unreadable file, a damaged state):
raised in a task, they would be retried four times and come back wrapped in stack traces.
Every other exception is a fault of the machine or a bug, and Spark retries the task.

Between the stages, rows pass from the tasks that read ranges to the tasks of shards, and from strands to braids.
Raw items are sent once to each shard that needs them, as feeds; partial panes, once for all branches of the shard.
Reports reach the driver the same way, as rows of a shard that does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from anabranch.columnar.items.coverage import Coverage, ReadCounts
from anabranch.errors import StateError
from anabranch.spark.answers.segments import Segment
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Carried, Manifest
from anabranch.spark.checkpoint.parts import unique_name
from anabranch.spark.evolution.log import Logged, LoggedEvent
from anabranch.spark.evolution.views import KnownLog, known_log
from anabranch.spark.faults import Fault
from anabranch.spark.intake.ranges import Position, Range
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.plan.kinds.kind import Functions
from anabranch.spark.state.files import SavedState
from anabranch.storage import Location
from anabranch.stream.plain import from_plain
from anabranch.stream.reading.source import KnownStream


class Stop(NamedTuple):
    """A place in a stream, whose partitions are read one after the other."""

    partition: int
    position: Position


@dataclass(frozen=True, slots=True)
class EpochEvents:
    """The events of the epoch itself, in a file that its tasks read before their ranges."""

    path: Location
    digest: str

    @staticmethod
    def save(folder: Location, changes: Mapping[str, Sequence[LoggedEvent]], run: int) -> EpochEvents:
        data = json.dumps({stream: [each.to_json() for each in found] for stream, found in changes.items()}).encode()
        digest = durable.digest(data)
        path = folder / unique_name(run)
        durable.replace(path, data)
        return EpochEvents(path, digest)

    def remove(self) -> None:
        """Remove the file, when the tasks have ended."""
        durable.delete(self.path.parent, [self.path.name])

    def load(self) -> Mapping[str, Sequence[LoggedEvent]]:
        """The events by stream, in order."""
        return _load_events(self)


@lru_cache(maxsize=2)
def _load_events(events: EpochEvents) -> Mapping[str, Sequence[LoggedEvent]]:
    data = durable.read(events.path)
    if durable.digest(data) != events.digest:
        raise StateError(f"'{events.path}' is damaged")
    return {stream: list(map(LoggedEvent.from_json, found)) for stream, found in json.loads(data).items()}


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of an epoch need to know."""

    plan: PlanFile
    checkpoint: Checkpoint
    epoch: int
    carries: Mapping[str, Carried]
    """By partition: where an unfinished file is read on."""
    functions: Functions = ()
    before: int | None = None
    """The epoch whose manifest locates the states of branches."""
    evolution: Mapping[str, Logged] = field(default_factory=dict)
    """By stream: the log of the events of earlier epochs."""
    epoch_events: EpochEvents | None = None
    """The events of this epoch, if they are known."""
    run: int = 1
    """The run at work, after which objects are named."""
    overruns: Mapping[int, int] = field(default_factory=dict)
    """By subscription: its evaluations of earlier epochs that took too many steps (`spark/evolution/overruns.py`)."""
    stops: Mapping[int, Stop] = field(default_factory=dict)
    """By subscription that is known to end in this epoch because of these: where."""

    @staticmethod
    def behind(
        last: Manifest | None, plan: PlanFile, checkpoint: Checkpoint, epoch: int, functions: Functions, run: int
    ) -> Job:
        """The job of the epoch behind the last one."""
        if last is None:
            return Job(plan, checkpoint, epoch, {}, functions, run=run)
        known = last.carries, functions, last.epoch, last.evolution
        return Job(plan, checkpoint, epoch, *known, run=run, overruns=last.overruns)

    @property
    def apart(self) -> frozenset[int]:
        """The subscriptions that are evaluated apart from equal ones."""
        return frozenset((*self.overruns, *self.stops))

    def known_log(self, stream: KnownStream) -> KnownLog:
        """The events of a stream in earlier epochs, cached by this process."""
        return known_log(self.checkpoint.evolution, stream, self.evolution.get(stream.name))

    @property
    def segments(self) -> Location:
        return self.checkpoint.segments

    def carry(self, reach: Range) -> str | None:
        """The carry that the range before left for this range."""
        before = self.carries.get(reach.key)
        return before.carry if before and before.number == reach.number else None


@dataclass(frozen=True, slots=True)
class Report:
    """What a task tells the driver; a task reads ranges or runs the branches of a shard."""

    read: Mapping[str, ReadCounts] = field(default_factory=dict)
    """By stream with at least one element: its items; punctuations are elements and no items."""
    bytes_read: int = 0
    segments: tuple[Segment, ...] = ()
    ends: Mapping[str, Position] = field(default_factory=dict)
    """By partition: the position up to which it was read."""
    carries: Mapping[str, Carried | None] = field(default_factory=dict)
    """By partition: where an unfinished file is read on; None removes the carry."""
    states: Mapping[int, SavedState | None] = field(default_factory=dict)
    """By branch: its new state; None removes it."""
    fault: Fault | None = None
    aborted: Mapping[int, str] = field(default_factory=dict)
    """By subscription: why it has ended (LAWS 4.6)."""
    changes: Mapping[str, Sequence[LoggedEvent]] = field(default_factory=dict)
    """By stream: the events of its accents and punctuations."""
    begins: Mapping[str, Position] = field(default_factory=dict)
    """By partition: where the last of its ranges begins."""
    cpu: float = 0.0
    """Processor seconds of the task."""
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    """By stream: which subscriptions are answered in columns, once the look of items is known."""
    messages: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By stream of messages: how many were read, and their bytes."""
    overruns: Mapping[int, Sequence[Stop]] = field(default_factory=dict)
    """By subscription: the items for which its evaluation took too many steps."""
    costs: Mapping[int, float] = field(default_factory=dict)
    """By subscription, or by branch, as by its first one: the processor seconds of its branch, or of the law for it."""

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
            {stream: (messages, size) for stream, (messages, size) in fields["messages"].items()},
            {int(key): [Stop(each, Position(*at)) for each, at in found] for key, found in fields["overruns"].items()},
            {int(key): seconds for key, seconds in fields["costs"].items()},
        )


# --- rows between the stages of a job ---------------------------------------------------------------------------------

DRIVER = -1
"""The shard number of rows for the driver."""
ALL = -1
"""The branch number of rows for all branches of a shard."""

Kind: TypeAlias = Literal["report", "feed", "panes", "ended", "passed", "told", "finished"]
SentReport: TypeAlias = tuple[int, str]
"""The number of the task's first range, or of a shard behind all ranges, and a `Report` as JSON."""


@dataclass(frozen=True, slots=True)
class ShardRow:
    """One row between stages; `sequence` is the number of its range."""

    shard: int
    sequence: int
    kind: Kind
    branch: int
    payload: bytes


@dataclass(slots=True)
class Outbox:
    """Rows that are ready to be sent."""

    rows: list[ShardRow] = field(default_factory=list)
