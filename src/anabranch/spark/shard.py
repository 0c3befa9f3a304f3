"""What a task does that has the branches of a shard: state in, rows in the order of the stream, answers and state out.

An epoch of a branch is a pure function of its state, the rows and the plan; it is run again after a crash with the same
three and gives the same.
State is read where the last manifest says and written to a new file; nothing counts until the driver publishes it.
Only branches for which there are rows are looked at: the others keep their state as it lies there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pyarrow as pa

from anabranch.branch import Branch, InputStream, State, open_branch
from anabranch.branch.entries import origin_of
from anabranch.errors import AnabranchError
from anabranch.spark.counting import PaneBranch, PaneTaking
from anabranch.spark.crash import point
from anabranch.spark.faults import Fault
from anabranch.spark.job import Job, Report
from anabranch.spark.manifest import Manifests
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.roles import Role, documents_of, roles_of
from anabranch.spark.rows import ALL, DRIVER, Row, sorted_rows
from anabranch.spark.segments import SegmentWriter, late_line
from anabranch.spark.states import Kept, StateWriter
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.parse import parse_root
from anabranch.stream.path import Path
from anabranch.stream.reader import ElementReader

_BEHIND = 1 << 40
"""Added to the number of a shard, it orders shards behind all ranges."""


def answer_shard(job: Job, key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    """The function that Spark applies to the rows of one shard."""
    shard = key[0].as_py()
    rows = sorted_rows(table)
    if shard == DRIVER:
        found = [(row.sequence, row.payload.decode()) for row in rows]
    else:
        found = [(_BEHIND + shard, work(job, shard, rows).to_json())]
    return pa.table({"sequence": [each for each, _ in found], "report": [each for _, each in found]})


def work(job: Job, shard: int, rows: list[Row]) -> Report:
    """Run the branches of a shard over the rows of one epoch."""
    plan = job.plan.load()
    last = Manifests(job.checkpoint.manifests).load(job.before) if job.before is not None else None
    before = last.states if last else {}
    noted = frozenset(last.noted if last else ())
    states: dict[int, Kept | None] = {}
    fault: Fault | None = None
    segment = SegmentWriter(job.segments, job.epoch, _BEHIND + shard)
    try:
        with segment, StateWriter(job.checkpoint.states, job.epoch, shard) as files:
            fed = [(origin_of(row.payload).stream if row.branch == ALL else None, row) for row in rows]
            for role in roles_of(job.plan, job.functions):
                if role.is_branch and role.shard(plan) == shard and (mine := _rows_for(role, fed)):
                    number = role.subscription.id
                    kept = before.get(number)
                    state = None if kept is None else State.from_bytes(files.read(kept.state))
                    branch = _opened(job, plan, role, state, _Output(segment, number, noted), files)
                    for row in mine:
                        _take(branch, row)
                    states[number] = _kept(branch, shard, files)
    except AnabranchError as error:
        fault = Fault.of(error)
    point("states-written", job.epoch)
    return Report(chunks=tuple(segment.chunks), states=states, fault=fault)


def _rows_for(role: Role, rows: list[tuple[str | None, Row]]) -> list[Row]:
    """The rows that concern a branch: its own, and the feeds of its streams unless it is counted by panes."""
    streams = () if role.panes is not None else role.standing.streams
    return [row for stream, row in rows if row.branch == role.subscription.id or stream in streams]


def _take(branch: Branch | PaneBranch, row: Row) -> None:
    match row.kind, branch:
        case "panes", PaneBranch():
            branch.count(row.payload)
        case "feed", _:
            branch.feed(row.payload)
        case "ended", _:
            stream, _, partition = row.payload.decode().rpartition("/")
            branch.end(stream, int(partition))
        case "passed", _:
            branch.passed(Fraction(row.payload.decode()))
        case kind, _:
            raise AssertionError(f"no branch takes '{kind}'")


def _kept(branch: Branch | PaneBranch, shard: int, files: StateWriter) -> Kept | None:
    """Write down what a branch remembers, if it does."""
    state = branch.save()
    if state is None:
        return None
    waiting = {f"{stream}/{partition}": count for (stream, partition), count in branch.waiting.items() if count}
    return Kept(shard, files.write(state.to_bytes()), branch.spilled, branch.held, waiting)


def _opened(job: Job, plan: Plan, role: Role, state: State | None, output: _Output, files: StateWriter) -> Branch:
    inputs = {
        stream.stream: _input(stream, plan, late=stream.stream in role.subscription.late)
        for stream in plan.streams
        if stream.stream in role.standing.streams
    }
    functions, documents = dict(job.functions), documents_of(plan.documents)
    name = role.subscription.name
    if role.panes is not None:
        (stream,) = (each for each in plan.streams if each.stream == role.standing.streams[0])
        given = inputs[stream.stream]
        taking = PaneTaking(name, role.panes, stream, given.root, functions, documents)
        return PaneBranch(taking, given, state, output, job, functions, documents)
    return open_branch(role.standing, name, inputs, state, functions, documents, output, files)


def _input(stream: StreamPlan, plan: Plan, *, late: bool) -> InputStream:
    root = parse_root(stream.root.encode())
    reader = partial(
        ElementReader, stream.stream, stream.format, plan.limits, root, item=stream.item, schema=stream.schema
    )
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
    )


class _Output:
    """Puts what a branch gives into the shard's segment."""

    def __init__(self, segment: SegmentWriter, subscription: int, noted: frozenset[str]) -> None:
        self._segment = segment
        self._subscription = subscription
        self._noted = noted
        """Late items that another branch has come to in an earlier epoch."""

    def piece(self, text: str) -> None:
        self._segment.add(self._subscription, text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        self._segment.extend(self._subscription, data, pieces, first)

    def bury(self, letter: DeadLetter) -> None:
        self._segment.bury(letter)

    def late(self, place: Place) -> None:
        if (line := late_line(place)) not in self._noted:
            self._segment.note_late(line)
