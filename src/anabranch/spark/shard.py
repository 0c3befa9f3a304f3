"""What a task does that has the branches of a shard: state in, rows in the order of the stream, answers and state out.

An epoch of a branch is a pure function of its state, the rows and the plan; it is run again after a crash with the same
three and gives the same.
State is read where the last manifest says and written to a new file; nothing counts until the driver publishes it.
Only branches for which there are rows are looked at: the others keep their state as it lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from time import process_time

import pyarrow as pa

from anabranch.branch import Branch, InputStream, Member, State, open_branch
from anabranch.branch.entries import origin_of
from anabranch.branch.history.hosted import Displayed, DisplayMember, DisplayQuery, Given
from anabranch.branch.history.keeper import Keeper
from anabranch.branch.pane_states import PaneState, unpack
from anabranch.branch.panes import PaneWindows
from anabranch.branch.past.mixing import Mixed
from anabranch.branch.past.queries import RecalledMember, RecalledQuery
from anabranch.branch.past.recalling import Recalled
from anabranch.branch.plans import PlanMember, Planned
from anabranch.branch.ports import Start
from anabranch.branch.sent.gathering import Gathered, SentMember
from anabranch.branch.sent.making import SentWindows
from anabranch.branch.sent.queries import SentQuery
from anabranch.errors import AnabranchError
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import Input
from anabranch.reference.standing import Standing
from anabranch.spark.counting import Counting
from anabranch.spark.crash import point
from anabranch.spark.faults import Fault
from anabranch.spark.items import beginning
from anabranch.spark.job import Job, Report
from anabranch.spark.manifest import Manifests
from anabranch.spark.pane_branches import PaneBranch, PaneBranches
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.roles import BranchPlan, Role, branches_of, documents_of, keeper_of
from anabranch.spark.rows import DRIVER, Row, read_rows
from anabranch.spark.segments import SegmentWriter, late_line
from anabranch.spark.states import Kept, StateWriter
from anabranch.spark.stream_views import StreamView, borders, view_from
from anabranch.stream.elements import DeadLetter, Place, Punctuation
from anabranch.stream.parse import parse_root
from anabranch.stream.path import Path
from anabranch.stream.reader import ElementReader

_BEHIND = 1 << 40
"""Added to the number of a shard, it orders shards behind all ranges."""


def answer_shards(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that Spark maps over the rows of some shards, usually of one, and over the reports of tasks."""
    rows: dict[int, list[Row]] = {}
    for row in sorted(read_rows(batches), key=lambda row: row.sequence):  # those of one range keep their order
        rows.setdefault(row.shard, []).append(row)
    found = [(row.sequence, row.payload.decode()) for row in rows.pop(DRIVER, ())]
    for number in sorted(rows):
        found.append((_BEHIND + number, work(job, number, rows[number]).to_json()))
    if found:
        sequences, reports = zip(*found, strict=True)
        yield pa.RecordBatch.from_pydict({"sequence": sequences, "report": reports})


def work(job: Job, shard: int, rows: list[Row]) -> Report:
    """Run the branches of a shard over the rows of one epoch."""
    begun = process_time()
    plan = job.plan.load()
    last = Manifests(job.checkpoint.manifests).load(job.before) if job.before is not None else None
    before = last.states if last else {}
    noted = frozenset(last.noted if last else ())
    states: dict[int, Kept | None] = {}
    aborted: dict[int, str] = {}
    fault: Fault | None = None
    segment = SegmentWriter(job.segments, job.epoch, _BEHIND + shard)
    try:
        with segment, StateWriter(job.checkpoint.states, job.epoch, shard) as files:
            running = _Shard(job, plan, shard, before, noted, segment, files, aborted)
            mine = [each for each in branches_of(job.plan, job.functions) if each.shard(plan) == shard]
            states |= running.count([each for each in mine if each.panes], rows)
            fed = [(origin_of(row.payload).stream if row.kind == "feed" else None, row) for row in rows]
            for each in mine:
                if not each.panes and (taken := _rows_for(each, fed)):
                    states[each.number] = running.feed(each, taken)
    except AnabranchError as error:
        fault = Fault.of(error)
    point("states-written", job.epoch)
    return Report(segments=segment.segments, states=states, fault=fault, aborted=aborted, cpu=process_time() - begun)


def _rows_for(branch: BranchPlan, rows: list[tuple[str | None, Row]]) -> list[Row]:
    """The rows that concern a branch: its own, and the feeds of its streams."""
    return [row for stream, row in rows if row.branch == branch.number or stream in branch.streams]


@dataclass(frozen=True, slots=True)
class _Shard:
    """One epoch of a shard."""

    job: Job
    plan: Plan
    number: int
    before: Mapping[int, Kept]
    """Where the states of branches lie."""
    noted: frozenset[str]
    segment: SegmentWriter
    files: StateWriter
    aborted: dict[int, str]
    """By subscription: why it has ended."""

    # --- branches that are fed --------------------------------------------------------------------------------

    def feed(self, branch: BranchPlan, rows: Sequence[Row]) -> Kept | None:
        """Run a branch that takes items; gives what it remembers, None for nothing."""
        kept = self.before.get(branch.number)
        state = None if kept is None else State.from_bytes(self.files.read(kept.state))
        opened = self._opened(branch, state)
        for row in rows:
            _take(opened, row)
        twins = dict(zip(branch.keys, branch.twins, strict=True))
        for key, reason in opened.aborted.items():
            self.aborted.update({role.subscription.id: reason for role in twins[key]})
        left = opened.save()
        if left is None:
            return None
        waiting = {f"{stream}/{partition}": count for (stream, partition), count in opened.waiting.items() if count}
        return Kept(self.number, self.files.write(left.to_bytes()), opened.spilled, opened.held, waiting)

    def _opened(self, branch: BranchPlan, state: State | None) -> Branch:
        given = ((name, self._input(name, branch)) for name in branch.streams)
        inputs = {name: replace(stream, starts=self._starts(name, branch)) for name, stream in given}
        if branch.kept is not None:
            return Keeper(inputs[branch.kept], state, self.plan.limits, self._output(()), self.files)
        role, twins = branch.roles[0], branch.twins[0]
        if isinstance(role.query, DisplayQuery):
            shown = DisplayMember(branch.keys[0], role.subscription.name, role.query, self._output(twins))
            return Displayed(shown, inputs, state, self._given(branch, state), self.files)
        if isinstance(role.query, RecalledQuery):
            name, policy = role.subscription.name, role.subscription.policy
            recalled = RecalledMember(branch.keys[0], name, role.query, self._output(twins), policy)
            hosting = Mixed if role.query.edited else Recalled
            return hosting(recalled, inputs, state, self._given(branch, state), self.files)
        if isinstance(role.query, SentQuery):
            sent = SentMember(branch.keys[0], role.subscription.name, role.query, self._output(twins))
            return Gathered(sent, inputs[role.query.stream], state, *self._known)
        if not isinstance(role.query, Standing):
            name, policy = role.subscription.name, role.subscription.policy
            member = PlanMember(branch.keys[0], name, role.query, self._output(twins), policy)
            return Planned(member, inputs, state, self.files)
        members = [
            Member(key, role.subscription.name, role.standing, self._output(twins), role.subscription.policy)
            for key, role, twins in zip(branch.keys, branch.roles, branch.twins, strict=True)
        ]
        return open_branch(members, inputs, state, *self._known, self.files)

    def _given(self, branch: BranchPlan, state: State | None) -> Given:
        """What a query over updates is given; one that begins late, the documents as they stand (LAWS 3.6)."""
        begun = ((name, self.before.get(keeper_of(name))) for name in branch.late if state is None)
        keepers = {name: State.from_bytes(self.files.read(kept.state)) for name, kept in begun if kept is not None}
        return Given(*self._known, self.plan.limits, keepers)

    @property
    def _known(self) -> tuple[dict[str, PythonFunction], dict[str, Input]]:
        return dict(self.job.functions), documents_of(self.plan.documents)

    def _input(self, name: str, branch: BranchPlan) -> InputStream:
        (stream,) = (each for each in self.plan.streams if each.stream == name)
        return _input(stream, self.plan, late=name in branch.late)

    def _starts(self, name: str, branch: BranchPlan) -> Callable[[], Sequence[Start]] | None:
        """How a branch that begins here sees a late stream (LAWS 3.6): with all that was said before this epoch."""
        logged = self.job.evolution.get(name) if name in branch.late else None
        (stream,) = (each for each in self.plan.streams if each.stream == name)
        if logged is None:
            return None
        return lambda: starts_of(view_from(self.job.checkpoint.evolution, stream, logged, self.job.epoch))

    def _output(self, twins: Sequence[Role]) -> _Output:
        return _Output(self.segment, twins, self.noted)

    # --- branches that are counted ----------------------------------------------------------------------------

    def count(self, branches: Sequence[BranchPlan], rows: Sequence[Row]) -> dict[int, Kept | None]:
        """Run the branches whose windows are counted by panes; what they remember is written together."""
        known = {each.number: each for each in branches}
        parting = self._borders() if branches else {}
        blobs: dict[str, dict[int, PaneState]] = {}
        inputs: dict[tuple[tuple[str, ...], tuple[str, ...]], InputStream] = {}

        def opened(number: int) -> PaneBranch:
            branch, kept, state = known[number], self.before.get(number), None
            (role,), (twins,) = branch.roles, branch.twins
            name, output = role.subscription.name, self._output(twins)
            if kept is not None:
                if kept.state not in blobs:
                    blobs[kept.state] = unpack(State.from_bytes(self.files.read(kept.state)), name)
                state = blobs[kept.state][number]
            sight = branch.streams, branch.late
            if sight not in inputs:
                inputs[sight] = self._input(branch.streams[0], branch)
            assert role.panes is not None, "only such branches are counted"
            made = PaneWindows if role.panes.sending is None else SentWindows
            windows = made(role.panes, name, inputs[sight], state, output, *self._known)
            (stream,) = branch.streams
            counting = Counting(name, role.panes, beginning(role.subscription, stream, parting[stream]))
            return PaneBranch(stream, counting, role.subscription.policy, windows, output, state is None)

        counted = PaneBranches(self.job, opened)
        for row in rows:
            if row.kind == "panes":
                counted.count(row.payload)
            elif row.kind == "ended" and row.branch in known:
                counted.end(row.branch, int(row.payload.decode().rpartition("/")[2]))
        found = counted.save()
        for number, reason in counted.aborted.items():
            self.aborted.update({role.subscription.id: reason for twins in known[number].twins for role in twins})
        states: dict[int, Kept | None] = dict.fromkeys(counted.aborted)
        if found is not None:
            state, held = found
            ref = self.files.write(state.to_bytes())
            states |= {number: Kept(self.number, ref, (), count, {}, len(held)) for number, count in held.items()}
        return states

    def _borders(self) -> dict[str, tuple[int, ...]]:
        """By stream: the epochs that part those who began in them."""
        last = max((each.first for each in self.plan.subscriptions), default=0)
        folder, logged = self.job.checkpoint.evolution, self.job.evolution
        return {each.stream: borders(folder, each, logged.get(each.stream), last) for each in self.plan.streams}


def _take(branch: Branch, row: Row) -> None:
    match row.kind:
        case "feed":
            branch.feed(row.payload)
        case "ended":
            stream, _, partition = row.payload.decode().rpartition("/")
            branch.end(stream, int(partition))
        case "passed":
            branch.passed(Fraction(row.payload.decode()))
        case kind:
            raise AssertionError(f"no branch takes '{kind}'")


def _input(stream: StreamPlan, plan: Plan, *, late: bool) -> InputStream:
    root = parse_root(stream.root.encode())
    # What comes in feeds was found good where it was cut out, by the schema and by accents that have announced more.
    reader = partial(ElementReader, stream.stream, stream.format, plan.limits, root, item=stream.item)
    return InputStream(
        stream.stream,
        stream.partitions,
        root,
        reader,
        None if stream.time is None else Path.parse(stream.time),
        Fraction(stream.slack),
        Fraction(stream.origin),
        late,
        not plan.finite,
        stream.evolution,
        updates=stream.updates,
        retain=None if stream.retain is None else Fraction(stream.retain),
    )


def starts_of(view: StreamView) -> list[Start]:
    """The partitions of a stream as those see them who begin with it."""
    shown = [
        tuple(each.event for each in view.said if each.partition == number and not isinstance(each.event, Punctuation))
        for number in range(len(view.evolutions))
    ]
    return [Start(evolution.copy(), each) for evolution, each in zip(view.evolutions, shown, strict=True)]


class _Output:
    """Puts what a branch gives to a query into the shard's segment, for all who have asked it."""

    def __init__(self, segment: SegmentWriter, twins: Sequence[Role], noted: frozenset[str]) -> None:
        self._segment = segment
        self._numbers = tuple(each.subscription.id for each in twins)
        self._names: list[str] | list[None] = [each.subscription.name for each in twins] or [None]
        """Without any, it is for nobody in particular."""
        self._noted = noted
        """Late items that another branch has come to in an earlier epoch."""

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
