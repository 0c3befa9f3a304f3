"""A task that runs the branches of a shard: state in, rows in the order of the stream, answers and state out.

An epoch of a branch is a pure function of its state, the rows and the plan; after a crash it is run again on the same
three with the same result.
State is read from the last manifest's location and written to a new file; nothing counts until the driver publishes it.
Only branches with rows are opened: the others keep their state file.

Where a query is divided into strands, their results go on to the shard of the braid, which is run after all others in
the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from time import process_time

from anabranch.branch import Branch, BranchState, InputStream
from anabranch.branch.chained import ChainedBranch
from anabranch.branch.display.branch import BraidBranch, BranchContext, StrandBranch
from anabranch.branch.display.strands import packed, unpacked
from anabranch.branch.document.keeper import Keeper
from anabranch.branch.intake.entries import origin_of
from anabranch.branch.intake.merge import Merged
from anabranch.branch.intake.shared_elements import SharedElements
from anabranch.branch.open import FlowingBranch
from anabranch.branch.panes.opening import windows_of
from anabranch.branch.panes.state import PaneState, unpack
from anabranch.branch.ports import Output, Start
from anabranch.branch.remote.making import SentWindows
from anabranch.branch.timeline import Timed
from anabranch.errors import AnabranchError
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.law.steps import allow
from anabranch.spark.answers.segments import SegmentWriter, late_line
from anabranch.spark.checkpoint.crash import point
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch.counting import CountedBranch
from anabranch.spark.epoch.item_queries import beginning
from anabranch.spark.epoch.job import ALL, DRIVER, Job, Outbox, Report, SentReport, ShardRow
from anabranch.spark.faults import Fault
from anabranch.spark.plan.branches import BranchPlan, branches_of, keeper_of, shard_of
from anabranch.spark.plan.documents import documents_for, documents_of
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds.display import DisplayKind
from anabranch.spark.plan.kinds.kind import BranchSetup, Seat
from anabranch.spark.state.files import SavedState, StateWriter
from anabranch.spark.state.pane_branches import PaneBranch, PaneBranches
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import KnownStream

SHARD_SEQUENCE = 1 << 40
"""Added to a shard's number, it orders shards behind all ranges."""


def pass_shards(job: Job, sent: Iterable[tuple[int, ShardRow]]) -> Iterator[tuple[int, ShardRow]]:
    """The function that Spark maps over the rows of shards with strands: their results go on to braids."""
    outbox = Outbox()
    for sequence, report in _reports(job, (row for _, row in sent), SHARD_SEQUENCE, outbox):
        outbox.rows.append(ShardRow(DRIVER, sequence, "report", ALL, report.encode()))
    yield from ((row.shard, row) for row in outbox.rows)


def answer_shards(job: Job, sent: Iterable[tuple[int, ShardRow]]) -> Iterator[SentReport]:
    """The function that Spark maps last over the rows of some shards, usually of one, and over reports."""
    yield from _reports(job, (row for _, row in sent), 2 * SHARD_SEQUENCE, Outbox())


def _reports(job: Job, sent: Iterable[ShardRow], behind: int, outbox: Outbox) -> Iterator[SentReport]:
    """The reports among the rows, and those of shards, which are ordered from `behind` on."""
    rows: dict[int, list[ShardRow]] = {}
    for row in sorted(sent, key=lambda row: row.sequence):  # rows of one range keep their order
        rows.setdefault(row.shard, []).append(row)
    yield from ((row.sequence, row.payload.decode()) for row in rows.pop(DRIVER, ()))
    for number in sorted(rows):
        yield behind + number, work(job, number, rows[number], outbox).to_json()


def work(job: Job, shard: int, rows: list[ShardRow], outbox: Outbox) -> Report:
    """Run the branches of a shard over the rows of one epoch; results of strands go to the outbox."""
    begun = process_time()
    plan = job.plan.load()
    allow(plan.limits.steps)
    last = Manifests(job.checkpoint.manifests).load(job.before) if job.before is not None else None
    before = last.states if last else {}
    noted = frozenset(last.noted if last else ())
    states: dict[int, SavedState | None] = {}
    aborted: dict[int, str] = {}
    costs: dict[int, float] = {}
    fault: Fault | None = None
    segment = SegmentWriter(job.segments, job.epoch, SHARD_SEQUENCE + shard, job.run)
    try:
        with segment, StateWriter(job.checkpoint.states, job.epoch, shard, job.run) as files:
            running = _Shard(job, plan, shard, before, noted, segment, files, aborted, outbox)
            mine = [each for each in branches_of(job.plan, job.functions) if each.shard(plan) == shard]
            states |= running.count([each for each in mine if each.panes], rows)
            fed = [(origin_of(row.payload).stream if row.kind == "feed" else None, row) for row in rows]
            for each in mine:
                if not each.panes and (taken := _rows_for(each, fed)):
                    began = process_time()
                    states[each.number] = (running.braid if each.is_braid else running.feed)(each, taken)
                    costs[each.number] = process_time() - began
    except AnabranchError as error:
        fault = Fault.of(error)
    point("states-written", job.epoch)
    cpu = process_time() - begun
    return Report(segments=segment.segments, states=states, fault=fault, aborted=aborted, cpu=cpu, costs=costs)


def _rows_for(branch: BranchPlan, rows: list[tuple[str | None, ShardRow]]) -> list[ShardRow]:
    """The rows for a branch: its own, and the feeds of its streams."""
    return [row for stream, row in rows if row.branch == branch.number or stream in branch.streams]


@dataclass(frozen=True, slots=True)
class _Shard:
    """One epoch of a shard."""

    job: Job
    plan: Plan
    number: int
    before: Mapping[int, SavedState]
    """By branch: the location of its state."""
    noted: frozenset[str]
    segment: SegmentWriter
    files: StateWriter
    aborted: dict[int, str]
    """By subscription: why it has ended."""
    outbox: Outbox
    """For the results of strands."""
    shared: dict[str, SharedElements] = field(default_factory=dict)
    """By stream of updates: the elements that were read for all its branches."""

    # --- branches that take items -----------------------------------------------------------------------------

    def feed(self, branch: BranchPlan, rows: Sequence[ShardRow]) -> SavedState | None:
        """Run a branch that takes items; gives its new state, None for an empty one."""
        outputs = [self._output(twins) for twins in branch.twins]
        opened = self._opened(branch, outputs)
        if isinstance(opened, Merged):
            opened.tell([each for each in outputs if isinstance(each, Timed)])
        for kind, alike in groupby(rows, lambda row: row.kind):
            if kind == "feed":
                opened.feed(*(row.payload for row in alike))
            else:
                for row in alike:
                    _take(opened, row)
        if isinstance(opened, StrandBranch):
            self._send_on(branch, opened)
        state = opened.save()
        twins = dict(zip(branch.keys, branch.twins, strict=True))
        for key, reason in opened.aborted.items():  # some end only when the epoch is complete
            self.aborted.update({each.id: reason for each in twins[key]})
        if state is None:
            return None
        waiting = {f"{stream}/{partition}": count for (stream, partition), count in opened.waiting.items() if count}
        comparable = opened if isinstance(opened, FlowingBranch | ChainedBranch) and branch.compared else None
        futures = comparable.futures(branch.compared) if comparable is not None else {}
        ref = self.files.write(state.to_bytes())
        return SavedState(self.number, ref, opened.spilled, opened.held, waiting, futures=futures)

    def _send_on(self, branch: BranchPlan, strand: StrandBranch) -> None:
        """Send the results of a strand to its braid."""
        number = branch.twins[0][0].branch
        to = shard_of(number, self.plan)
        for told in packed(strand.told):
            self.outbox.rows.append(ShardRow(to, self.number, "told", number, told))
        if strand.finished:
            self.outbox.rows.append(ShardRow(to, self.number, "finished", number, b""))

    def braid(self, branch: BranchPlan, rows: Sequence[ShardRow]) -> SavedState:
        """Merge the results of the strands of a query."""
        ((*twins,),) = branch.twins
        (query,) = branch.queries
        assert isinstance(query, DisplayKind), "others have no strands"
        roots = {each: self.plan.stream(each).root() for each in query.streams}
        shown = query.member(Seat(branch.keys[0], twins[0], query, self._output(twins)))
        given = self._context(branch, {}, {})
        opened = BraidBranch(shown, roots, self._state(branch.number), given, self.files)
        told = (each for row in rows if row.kind == "told" for each in unpacked(row.payload))
        opened.take(told, finished=any(row.kind == "finished" for row in rows))
        for reason in opened.aborted.values():
            self.aborted.update({each.id: reason for each in twins})
        return SavedState(self.number, self.files.write(opened.save().to_bytes()), opened.spilled, opened.held, {})

    def _output(self, twins: Sequence[Registration]) -> _Output | Timed:
        plain = _Output(self.segment, twins, self.noted)
        return Timed(plain) if twins and twins[0].timed else plain

    def _state(self, number: int) -> BranchState | None:
        """The state of a branch; None for an empty one."""
        kept = self.before.get(number)
        return None if kept is None else BranchState.from_bytes(self.files.read(kept.state))

    def _opened(self, branch: BranchPlan, outputs: Sequence[Output]) -> Branch:
        """Open a branch; `outputs` are those of its queries."""
        state = self._state(branch.number)
        inputs = {name: self._input(name, branch) for name in branch.streams}
        if branch.kept is not None:
            return Keeper(inputs[branch.kept], state, self.plan.limits, self._output(()), self.files)
        strand = None if branch.strand is None else (branch.strand, branch.strands)
        setup = BranchSetup(inputs, state, self._given(branch, state), self.files, strand)
        seats = [
            Seat(key, twins[0], query, out)
            for key, twins, query, out in zip(branch.keys, branch.twins, branch.queries, outputs, strict=True)
        ]
        return seats[0].query.open(seats, setup)

    def _given(self, branch: BranchPlan, state: BranchState | None) -> BranchContext:
        """The context of a query over updates; if it begins late, with the present documents (LAWS 3.6)."""
        begun = {name: self._state(keeper_of(name)) for name in branch.late if state is None}
        keepers = {name: kept for name, kept in begun.items() if kept is not None}
        versions = {each.document.name: each.version for each in documents_for(self.job.plan, branch.texts)}
        return self._context(branch, keepers, versions)

    def _context(
        self, branch: BranchPlan, keepers: Mapping[str, BranchState], versions: Mapping[str, str]
    ) -> BranchContext:
        scales = {each: self.plan.stream(each).source.scale for each in branch.streams}
        known = self._known(branch)
        return BranchContext(*known, self.plan.limits, keepers, versions, self._json(branch.streams), scales)

    def _json(self, streams: Iterable[str]) -> dict[str, str]:
        """The streams of JSON among some, each with the name of its items."""
        return {name: item for each in streams for name, item in self.plan.stream(each).json_items.items()}

    def _known(self, branch: BranchPlan) -> tuple[dict[str, PythonFunction], dict[str, Input]]:
        """The functions and documents that the queries of a branch use."""
        return dict(self.job.functions), documents_of(self.job.plan, branch.texts)

    def _input(self, name: str, branch: BranchPlan) -> InputStream:
        stream = self.plan.stream(name)
        source, root = stream.source, stream.root()
        # Elements of feeds were checked where they were read, by the schema and the accents before them.
        given = name, stream.form.format, self.plan.limits, root, source.item_name
        admission = source.admission(accents=self.plan.accents)
        reader = partial(ElementReader, *given, admission=admission, upserts=source.is_upserted)
        return InputStream(
            source,
            root,
            reader,
            late=name in branch.late,
            endless=not self.plan.finite,
            starts=self._starts(stream, branch),
            is_json=bool(stream.json_items),
            shared=self.shared.setdefault(name, SharedElements()) if source.updates else None,
        )

    def _starts(self, stream: KnownStream, branch: BranchPlan) -> Callable[[], Sequence[Start]] | None:
        """How a branch that begins late sees its stream (LAWS 3.6): behind all events before its first epoch.

        One of updates begins behind what its keeper has taken (`branch/evolution/begun.py`).
        """
        if stream.name not in branch.late or stream.name not in self.job.evolution or stream.source.updates:
            return None
        known, first = self.job.known_log(stream), branch.twins[0][0].opened
        return lambda: known.starts(first)

    # --- pane branches ----------------------------------------------------------------------------------------

    def count(self, branches: Sequence[BranchPlan], rows: Sequence[ShardRow]) -> dict[int, SavedState | None]:
        """Run the branches whose windows are counted by panes; they share one state blob."""
        known = {each.number: each for each in branches}
        borders = self._borders() if branches else {}
        blobs: dict[str, dict[int, PaneState]] = {}
        inputs: dict[tuple[tuple[str, ...], tuple[str, ...]], InputStream] = {}

        def opened(number: int) -> PaneBranch:
            branch, kept, state = known[number], self.before.get(number), None
            (twins,) = branch.twins
            name, output = twins[0].name, self._output(twins)
            if kept is not None:
                if kept.state not in blobs:
                    blobs[kept.state] = unpack(BranchState.from_bytes(self.files.read(kept.state)), name)
                state = blobs[kept.state][number]
            key = branch.streams, branch.late
            if key not in inputs:
                inputs[key] = self._input(branch.streams[0], branch)
            assert branch.panes is not None, "only such branches are counted"
            given = branch.panes, name, inputs[key], state, output, *self._known(branch)
            windows = SentWindows(*given) if branch.panes.sending else windows_of(branch.panes)(*given, twins[0].caps)
            (stream,) = branch.streams
            counting = CountedBranch(name, branch.panes, beginning(twins[0], stream, borders[stream]))
            return PaneBranch(stream, counting, twins[0].policy, windows, output, state is None)

        counted = PaneBranches(self.job, opened)
        for row in rows:
            if row.kind == "panes":
                counted.count(row.payload)
            elif row.kind == "ended" and row.branch in known:
                counted.end(row.branch, int(row.payload.decode().rpartition("/")[2]))
        found = counted.save({each.number for each in branches if each.compared})
        for number, reason in counted.aborted.items():
            self.aborted.update({each.id: reason for twins in known[number].twins for each in twins})
        states: dict[int, SavedState | None] = dict.fromkeys(counted.aborted)
        if found is not None:
            state, held, futures = found
            ref = self.files.write(state.to_bytes())
            for number, count in held.items():
                mine = {key: futures[number] for key in known[number].keys if number in futures}
                states[number] = SavedState(self.number, ref, (), count, {}, len(held), mine)
        return states

    def _borders(self) -> dict[str, tuple[int, ...]]:
        """By stream: the epochs in which it evolved."""
        last = max((each.first for each in self.plan.subscriptions), default=0)
        return {each.name: self.job.known_log(each).borders(last) for each in self.plan.streams}


def _take(branch: Branch, row: ShardRow) -> None:
    match row.kind:
        case "ended":
            stream, _, partition = row.payload.decode().rpartition("/")
            branch.end(stream, int(partition))
        case "passed":
            branch.passed(Fraction(row.payload.decode()))
        case kind:
            raise AssertionError(f"no branch takes '{kind}'")


class _Output:
    """Writes a branch's answers to a query into the shard's segment, for all subscriptions with this query."""

    def __init__(self, segment: SegmentWriter, twins: Sequence[Registration], noted: frozenset[str]) -> None:
        self._segment = segment
        self._numbers = tuple(each.id for each in twins)
        self._names: list[str] | list[None] = [each.name for each in twins] or [None]
        """Empty where the output belongs to no subscription."""
        self._noted = noted
        """Late items that another branch logged in an earlier epoch."""

    def piece(self, text: str) -> None:
        self._segment.add(self._numbers, text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        self._segment.extend(self._numbers, data, pieces, first)

    def bury(self, letter: DeadLetter) -> None:
        for name in self._names:
            self._segment.bury(replace(letter, subscription=name))

    def late(self, place: Place) -> None:
        if (line := late_line(place)) not in self._noted:
            self._segment.note_late(line)
