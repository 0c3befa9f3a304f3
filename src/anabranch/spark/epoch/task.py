"""A task that reads ranges: each item is cut out or parsed once, for all subscriptions of its stream.

Queries that need one item at a time are answered at once, into one segment.
Panes and raw items for branches are collected and sent to their shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from time import process_time

from anabranch.columnar.items.answering import StreamAnswers, Taker
from anabranch.columnar.items.coverage import Coverage, ReadCounts
from anabranch.columnar.items.programs import Compile
from anabranch.errors import AnabranchError
from anabranch.law.steps import allow
from anabranch.spark.answers.segments import RANGE_PROGRESS, SegmentWriter
from anabranch.spark.checkpoint.manifest import Carried
from anabranch.spark.epoch.counting import CountedBranch, PaneTaking, RangeCount
from anabranch.spark.epoch.feeding import RawFeed, Unread
from anabranch.spark.epoch.item_queries import StreamQueries, beginning, item_queries
from anabranch.spark.epoch.job import ALL, DRIVER, Job, Outbox, Report, SentReport, ShardRow, Stop
from anabranch.spark.epoch.passage import Passage
from anabranch.spark.evolution.following import RangeFollowing
from anabranch.spark.evolution.log import LoggedEvent
from anabranch.spark.evolution.overruns import RangeOverruns
from anabranch.spark.evolution.progress import ProgressTaker, RangeProgress, progress_columns
from anabranch.spark.faults import Fault
from anabranch.spark.intake.ranges import Position, Range
from anabranch.spark.plan.branches import BranchPlan, branches_of
from anabranch.spark.plan.documents import documents_in, documents_of
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.plan.kinds.kind import Functions
from anabranch.stream.tree import Element


def answer_ranges(job: Job, tasks: Iterable[Sequence[Range]]) -> Iterator[SentReport]:
    """The function that Spark maps over the tasks of an epoch without branches."""
    for found in tasks:
        yield found[0].sequence, work(job, found, Outbox()).to_json()


def send_ranges(job: Job, tasks: Iterable[Sequence[Range]]) -> Iterator[tuple[int, ShardRow]]:
    """The function that Spark maps over the tasks where there are branches: rows go to shards, with the report."""
    for found in tasks:
        outbox = Outbox()
        report = work(job, found, outbox)
        outbox.rows.append(ShardRow(DRIVER, found[0].sequence, "report", ALL, report.to_json().encode()))
        yield from ((row.shard, row) for row in outbox.rows)


def work(job: Job, found: Sequence[Range], outbox: Outbox) -> Report:
    """Read some ranges; rows for branches go to the outbox."""
    begun = process_time()
    allow(job.plan.load().limits.steps)
    reading = _TaskReading(job, outbox)
    fault: Fault | None = None
    segment = SegmentWriter(job.segments, job.epoch, found[0].sequence, job.run)
    try:
        with segment:
            for each in found:
                reading.take(each, segment)
    except AnabranchError as error:
        fault = Fault.of(error)
    return Report(
        reading.read,
        reading.bytes_read,
        segment.segments,
        reading.ends,
        reading.carries,
        fault=fault,
        aborted=reading.aborted,
        changes=reading.changes,
        begins=reading.begins,
        cpu=process_time() - begun,
        coverage=reading.coverage,
        messages=reading.messages,
        overruns=reading.overruns,
        costs=reading.costs,
    )


@dataclass(slots=True)
class _TaskReading:
    """The ranges of one task, one after the other."""

    job: Job
    outbox: Outbox
    read: dict[str, ReadCounts] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    ends: dict[str, Position] = field(default_factory=dict)
    carries: dict[str, Carried | None] = field(default_factory=dict)
    changes: dict[str, list[LoggedEvent]] = field(default_factory=dict)
    begins: dict[str, Position] = field(default_factory=dict)
    aborted: dict[int, str] = field(default_factory=dict)
    messages: dict[str, tuple[int, int]] = field(default_factory=dict)
    overruns: dict[int, list[Stop]] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)
    bytes_read: int = 0

    def take(self, each: Range, segment: SegmentWriter) -> None:
        compiled = compiled_plan_for(self.job)
        if each.mark is not None:
            self._mark(each, compiled)
            return
        if each.stream not in compiled.answers:
            return  # the stream was removed
        sent = each.beat is not None  # a heartbeat of the run, in no file
        if not sent:
            self.ends[each.key] = Position(each.number + 1, 0) if each.last else Position(each.number, each.end)
        plan = compiled.plan
        stream = plan.stream(each.stream)
        view = self.job.known_log(stream).view
        queries = compiled.queries[each.stream]
        follow = partial(RangeFollowing, stream, int(each.partition), queries.alike, queries.members, view)
        passage = Passage(
            self.job, stream, compiled.roots[each.stream], plan.limits, each, follow if queries.alike else None
        )
        passage.overruns = overruns = RangeOverruns(self.job, queries.members, each)
        taking = compiled.counted[each.stream]
        counted = RangeCount(taking, each, passage, view) if taking.members else None
        feed = RawFeed(each, timed=stream.source.is_timed) if compiled.fed[each.stream] else None
        axes = plan.axes(stream.source)
        progress = None if axes is None else ProgressTaker(stream.name, axes, int(each.partition))
        takers: list[Taker] = [taker for taker in (counted, feed, progress) if taker]
        count = passage.show(compiled.answers[each.stream], segment, takers)
        messages, size = passage.reader.read
        if count is not None:
            self.read[each.stream] = self.read.get(each.stream, ReadCounts()) + replace(count, bytes=size)
            self.coverage[each.stream] = compiled.answers[each.stream].coverage
        self.bytes_read += size
        if messages:
            before = self.messages.get(each.stream, (0, 0))
            self.messages[each.stream] = before[0] + messages, before[1] + size
        if progress:
            segment.add(RANGE_PROGRESS, progress.progress().to_json() + "\n")
        if passage.reader.largest is not None and stream.source.beats_by_time:
            segment.add(RANGE_PROGRESS, RangeProgress.stamped(stream.name, passage.reader.largest).to_json() + "\n")
        for query, seconds in overruns.costs.items():
            first, _ = queries.members[query].subscribers[0]
            self.costs[first] = self.costs.get(first, 0.0) + seconds
        for number, stops in overruns.found.items():
            self.overruns.setdefault(number, []).extend(stops)
        if passage.changes:
            self.changes.setdefault(each.stream, []).extend(passage.changes)
        if passage.follows:
            passage.follows.keep()
            for number, reason in passage.follows.aborted.items():
                self.aborted |= {subscriber: reason for subscriber, _ in queries.members[number].subscribers}
        if not sent:
            self.begins[each.key] = passage.reader.start
            after = passage.reader.carry()
            self.carries[each.key] = None if after is None else Carried(each.number, after)
        rows = self.outbox.rows
        for packed in feed.packed() if feed else ():
            rows += [ShardRow(shard, each.sequence, "feed", ALL, packed) for shard in compiled.fed[each.stream]]
        if counted:
            shards = {branch.number: branch.shard(plan) for branch in compiled.branches}
            for result in counted.results():
                packed_panes = result.packed(shards.__getitem__)
                rows += [ShardRow(shard, each.sequence, "panes", ALL, packed) for shard, packed in packed_panes]

    def _mark(self, each: Range, compiled: CompiledPlan) -> None:
        """Tell the branches that a partition has ended, or which time of arrival all inputs have passed."""
        for branch in compiled.branches:
            if each.mark == "ended" and each.stream not in branch.streams:
                continue
            if each.mark == "passed" and (branch.panes or branch.is_braid):
                continue  # its windows go by declared times
            moment = each.key if each.mark == "ended" else str(Fraction(each.arrived or 0, 1_000_000))
            shard = branch.shard(compiled.plan)
            self.outbox.rows.append(
                ShardRow(shard, each.sequence, each.mark or "passed", branch.number, moment.encode())
            )


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A plan compiled for a task; everything is by stream."""

    plan: Plan
    roots: dict[str, Element]
    queries: dict[str, StreamQueries]
    answers: dict[str, StreamAnswers]
    counted: dict[str, PaneTaking]
    """The branches whose windows are counted by panes."""
    fed: dict[str, list[int]]
    """The shards that need raw items."""
    branches: tuple[BranchPlan, ...]
    """All branches of the plan."""


def compiled_plan_for(job: Job) -> CompiledPlan:
    """The compiled plan of a job."""
    if not job.evolution:
        return compiled_plan_of(job.plan, job.functions, apart=job.apart)
    plan = job.plan.load()
    last = max((each.first for each in plan.subscriptions), default=0)
    found = ((each.name, job.known_log(each).borders(last)) for each in plan.streams)
    return compiled_plan_of(job.plan, job.functions, tuple(found), job.apart)


@lru_cache(maxsize=4)
def compiled_plan_of(
    file: PlanFile,
    functions: Functions,
    evolved: tuple[tuple[str, tuple[int, ...]], ...] = (),
    apart: frozenset[int] = frozenset(),
) -> CompiledPlan:
    """Compile a plan, once per process; `evolved` gives by stream the epochs in which it evolved.

    Subscriptions `apart` share no evaluation with equal ones.
    """
    plan = file.load()
    streams = {stream.name: stream for stream in plan.streams}
    roots = {name: stream.root() for name, stream in streams.items()}
    branches = branches_of(file, functions)
    queries = item_queries(plan, functions, roots, dict(evolved), documents_in(file), apart)
    plans: dict[str, dict[int, CountedBranch]] = {name: {} for name in streams}
    for branch in branches:
        if branch.panes is not None:
            first, name = branch.twins[0][0], branch.streams[0]
            view = beginning(first, name, dict(evolved).get(name, ()))
            plans[name][branch.number] = CountedBranch(first.name, branch.panes, view)
    given = dict(functions), documents_of(file, [text for each in branches if each.panes for text in each.texts])
    counted = {
        name: PaneTaking.of(plans[name], streams[name], roots[name], *given, sharing=plan.sharing) for name in streams
    }
    raw = [branch for branch in branches if not branch.panes]
    fed = {name: sorted({each.shard(plan) for each in raw if name in each.streams}) for name in streams}
    answers: dict[str, StreamAnswers] = {}
    for name, each in streams.items():
        compiles: list[Compile] = [counted[name].compile] if counted[name].members else []
        compiles += [Unread.compile] if fed[name] else []
        axes = plan.axes(each.source)
        compiles += [] if axes is None else [progress_columns(axes)]
        answers[name] = StreamAnswers(
            queries[name].queries,
            each.form.format,
            roots[name],
            plan.limits,
            each.source.checked_schema,
            compiles,
            item=each.source.item_name,
            together=plan.sharing,
        )
    return CompiledPlan(plan, roots, queries, answers, counted, fed, branches)
