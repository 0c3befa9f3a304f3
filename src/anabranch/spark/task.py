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
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from anabranch.errors import AnabranchError, DynamicError
from anabranch.language import parse
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import refuse_control, refuse_regions
from anabranch.reference.per_item import ItemQuery, per_item
from anabranch.spark.faults import Fault
from anabranch.spark.plan import PlanFile
from anabranch.spark.ranges import Range
from anabranch.spark.reading import RangeReader
from anabranch.spark.segments import Chunk, SegmentWriter
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item
from anabranch.stream.parse import parse_root
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element

REPORTS = "sequence long, report string"
"""The rows that tasks return: the number of the task's first range, and a `Report` as JSON."""


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of an epoch are told; it travels in the closure and stays small."""

    plan: PlanFile
    segments: Path
    epoch: int
    carries: Mapping[str, str]
    """Where the splitter of an unfinished document stands, by path, as JSON."""
    functions: tuple[tuple[str, PythonFunction], ...] = ()
    """What the user registered, by name; code travels as Spark sends code."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a task tells the driver."""

    items: int
    bytes_read: int
    chunks: tuple[Chunk, ...]
    carries: Mapping[str, str | None]
    """By path: the carry of a document that goes on, None for one that has ended."""
    fault: Fault | None = None

    def to_json(self) -> str:
        fault = None if self.fault is None else asdict(self.fault)
        chunks = [astuple(chunk) for chunk in self.chunks]
        return json.dumps([self.items, self.bytes_read, chunks, dict(self.carries), fault])

    @staticmethod
    def from_json(text: str) -> Report:
        items, bytes_read, chunks, carries, fault = json.loads(text)
        held = tuple(Chunk(*chunk) for chunk in chunks)
        return Report(items, bytes_read, held, carries, None if fault is None else Fault(**fault))


def answer_ranges(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that Spark maps over the rows of an epoch, for one task."""
    found = [Range(**row) for batch in batches for row in batch.to_pylist()]
    if found:
        report = work(job, found).to_json()
        yield pa.RecordBatch.from_pydict({"sequence": [found[0].sequence], "report": [report]})


def work(job: Job, found: Sequence[Range]) -> Report:
    """Answer the items in some ranges."""
    plan = job.plan.load()
    queries = _queries(job.plan, job.functions)
    streams = {stream.partition.stream: stream for stream in plan.streams}
    items = 0
    carries: dict[str, str | None] = {}
    fault: Fault | None = None
    with SegmentWriter(job.segments, job.epoch, found[0].sequence) as segment:
        try:
            for each in found:
                stream = streams[each.stream]
                root = parse_root(stream.root.encode())
                reader = RangeReader(stream, root, plan.limits, each, job.carries.get(each.path))
                items += _answer(reader, queries[each.stream], root, segment)
                if stream.format == "document":
                    carries[each.path] = None if each.last else reader.carry()
        except AnabranchError as error:
            fault = Fault.of(error)
    return Report(items, sum(each.end - each.start for each in found), tuple(segment.chunks), carries, fault)


def _answer(
    reader: RangeReader, queries: Sequence[tuple[int, str, ItemQuery]], root: Element, segment: SegmentWriter
) -> int:
    """Show every item to every query; how many there were."""
    items = 0
    for element in reader:
        match element:
            case Item(tree, place):
                items += 1
                refuse_regions(tree, place)
                for number, name, query in queries:
                    try:
                        piece = query.answer(root, tree)
                    except DynamicError as error:  # LAWS 2.4: it concerns this subscription and this item only
                        raw = serialize(tree)[:LONGEST_RAW]
                        segment.bury(DeadLetter(place, error.message, raw, error.code, name))
                    else:
                        if piece:
                            segment.add(number, piece)
            case DeadLetter():
                segment.bury(element)
            case _:
                raise refuse_control(element)
    return items


@lru_cache(maxsize=4)
def _queries(
    file: PlanFile, functions: tuple[tuple[str, PythonFunction], ...]
) -> dict[str, list[tuple[int, str, ItemQuery]]]:
    """The subscriptions of each stream, with number and name, compiled once per worker."""
    plan = file.load()
    found: dict[str, list[tuple[int, str, ItemQuery]]] = {stream.partition.stream: [] for stream in plan.streams}
    for number, (name, text) in enumerate(plan.subscriptions):
        query = per_item(parse(text, name), dict(functions))
        found[query.stream].append((number, name, query))
    return found
