"""What a task does: read its ranges, parse each item once, show it to every subscription of its stream.

A task is told by its rows what to read and by its job how; it writes one segment and returns one small report.
Our own errors (a file that cannot be read, a control element that queries cannot follow yet) are part of the report:
raised in a task, they would be tried four times and come back wrapped in stack traces.
Everything else that happens here is a fault of the machine or of ours, and is Spark's to try again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import lru_cache, partial
from pathlib import Path

import pyarrow as pa

from anabranch.columnar.answering import StreamAnswers, Subscription
from anabranch.errors import AnabranchError
from anabranch.language import parse
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import refuse_control, refuse_regions
from anabranch.reference.per_item import per_item
from anabranch.spark.faults import Fault
from anabranch.spark.manifest import Carried
from anabranch.spark.plan import PlanFile
from anabranch.spark.ranges import Position, Range
from anabranch.spark.reading import RangeReader
from anabranch.spark.segments import Chunk, SegmentWriter
from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.lines import Cut
from anabranch.stream.parse import parse_root

REPORTS = "sequence long, report string"
"""The rows that tasks return: the number of the task's first range, and a `Report` as JSON."""


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of an epoch are told; it travels in the closure and stays small."""

    plan: PlanFile
    segments: Path
    epoch: int
    carries: Mapping[str, Carried]
    """Where the reading of unfinished files goes on, by partition."""
    functions: tuple[tuple[str, PythonFunction], ...] = ()
    """What the user registered, by name; code travels as Spark sends code."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a task tells the driver."""

    items: int
    bytes_read: int
    chunks: tuple[Chunk, ...]
    ends: Mapping[str, Position]
    """By partition: how far its reading came."""
    carries: Mapping[str, Carried | None]
    """By partition: where an unfinished file goes on, None where there is nothing to carry."""
    fault: Fault | None = None

    def to_json(self) -> str:
        fields = asdict(self)
        fields["chunks"] = [astuple(chunk) for chunk in self.chunks]
        return json.dumps(fields)

    @staticmethod
    def from_json(text: str) -> Report:
        fields = json.loads(text)
        return Report(
            fields["items"],
            fields["bytes_read"],
            tuple(Chunk(*chunk) for chunk in fields["chunks"]),
            {key: Position(*end) for key, end in fields["ends"].items()},
            {key: None if each is None else Carried(**each) for key, each in fields["carries"].items()},
            None if fields["fault"] is None else Fault(**fields["fault"]),
        )


def answer_ranges(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that Spark maps over the rows of an epoch, for one task."""
    found = [Range(**row) for batch in batches for row in batch.to_pylist()]
    if found:
        report = work(job, found).to_json()
        yield pa.RecordBatch.from_pydict({"sequence": [found[0].sequence], "report": [report]})


def work(job: Job, found: Sequence[Range]) -> Report:
    """Answer the items in some ranges."""
    plan = job.plan.load()
    answers = _answers(job.plan, job.functions)
    streams = {stream.stream: stream for stream in plan.streams}
    items = 0
    ends: dict[str, Position] = {}
    carries: dict[str, Carried | None] = {}
    fault: Fault | None = None
    segment = SegmentWriter(job.segments, job.epoch, found[0].sequence)
    try:
        with segment:
            for each in found:
                ends[each.key] = Position(each.number + 1, 0) if each.last else Position(each.number, each.end)
                if each.stream not in streams:
                    continue  # it is wanted no more
                stream = streams[each.stream]
                root = parse_root(stream.root.encode())
                before = job.carries.get(each.key)
                carry = before.carry if before and before.number == each.number else None
                reader = RangeReader(stream, root, plan.limits, each, carry)
                items += _answer(reader, answers[each.stream], segment)
                after = reader.carry()
                carries[each.key] = None if after is None else Carried(each.number, after)
    except AnabranchError as error:
        fault = Fault.of(error)
    bytes_read = sum(each.end - each.start for each in found)
    return Report(items, bytes_read, tuple(segment.chunks), ends, carries, fault)


def _answer(reader: RangeReader, answers: StreamAnswers, segment: SegmentWriter) -> int:
    """Show every item of a range to every subscription of its stream; how many there were."""

    def read(cut: Cut) -> Item | None:
        (element,) = reader.elements([cut])
        match element:
            case Item(tree, place):
                refuse_regions(tree, place)
                return element
            case DeadLetter():
                segment.bury(element)
                return None
            case _:
                raise refuse_control(element)

    items = 0
    for part in reader.parts():
        if isinstance(part, DeadLetter):
            segment.bury(part)
        else:
            items += answers.answer(reader.shredder, part, read, segment)
    return items


@lru_cache(maxsize=4)
def _answers(file: PlanFile, functions: tuple[tuple[str, PythonFunction], ...]) -> dict[str, StreamAnswers]:
    """The subscriptions of each stream, compiled once per worker."""
    plan = file.load()
    roots = {stream.stream: parse_root(stream.root.encode()) for stream in plan.streams}
    found: dict[str, list[Subscription]] = {stream: [] for stream in roots}
    for each in plan.subscriptions:
        query = per_item(parse(each.text, each.name), dict(functions))
        if query.stream in roots:  # a stream without a byte yet has no root either
            slow = partial(query.answer, roots[query.stream])
            found[query.stream].append(Subscription(each.id, each.name, query.plain_hole, slow))
    return {
        stream.stream: StreamAnswers(found[stream.stream], roots[stream.stream], plan.limits, stream.schema)
        for stream in plan.streams
    }
