"""Opening the branches of a shard: the operator that each needs, with its streams as it sees them, and its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from anabranch.branch import Branch, InputStream, Member, State, open_branch
from anabranch.branch.display.branch import (
    BraidBranch,
    BranchContext,
    DisplayBranch,
    DisplayMember,
    DisplayQuery,
    StrandBranch,
)
from anabranch.branch.document.keeper import Keeper
from anabranch.branch.document.shared_reader import SharedReader
from anabranch.branch.past.mixing import MixedPastBranch
from anabranch.branch.past.queries import RecalledMember, RecalledQuery
from anabranch.branch.past.recalling import PastBranch
from anabranch.branch.plans.plans import PlanMember, Planned
from anabranch.branch.ports import Output, Start
from anabranch.branch.remote.gathering import Gathered, SentMember
from anabranch.branch.remote.queries import SentQuery
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.standing import Standing
from anabranch.spark.epoch.job import Job
from anabranch.spark.evolution.changes import Change
from anabranch.spark.evolution.log import logged_changes
from anabranch.spark.evolution.stream_views import StreamView, view_from
from anabranch.spark.plan.epoch_plan import Plan, StreamPlan
from anabranch.spark.plan.roles import BranchPlan, documents_of, keeper_of
from anabranch.spark.state.files import Kept, StateWriter
from anabranch.stream.elements import DeadLetter, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader


@dataclass(frozen=True, slots=True)
class Opening:
    """Opens branches for one epoch of a shard."""

    job: Job
    plan: Plan
    before: Mapping[int, Kept]
    """Where the states of branches lie."""
    files: StateWriter
    nobody: Output
    """Takes what is for nobody in particular."""
    shared: dict[str, SharedReader] = field(default_factory=dict)
    """Of each stream of updates, what its branches have parsed."""

    def state(self, number: int) -> State | None:
        """What a branch has left; None for nothing."""
        kept = self.before.get(number)
        return None if kept is None else State.from_bytes(self.files.read(kept.state))

    def branch(self, branch: BranchPlan, state: State | None, outputs: Sequence[Output]) -> Branch:
        """A branch at work; `outputs` are those of its queries."""
        sights = ((name, self.input(name, branch)) for name in branch.streams)
        inputs = {name: replace(stream, starts=self._starts(name, branch)) for name, stream in sights}
        if branch.kept is not None:
            return Keeper(inputs[branch.kept], state, self.plan.limits, self.nobody, self.files)
        role, out = branch.roles[0], outputs[0]
        if isinstance(role.query, DisplayQuery):
            shown = DisplayMember(branch.keys[0], role.subscription.name, role.query, out)
            given = self._given(branch, state)
            if branch.strand is None:
                return DisplayBranch(shown, inputs, state, given, self.files)
            strand = replace(shown, strand=(branch.strand, branch.strands))
            return StrandBranch(strand, inputs, state, given, self.files)
        if isinstance(role.query, RecalledQuery):
            name, policy = role.subscription.name, role.subscription.policy
            recalled = RecalledMember(branch.keys[0], name, role.query, out, policy)
            hosting = MixedPastBranch if role.query.edited else PastBranch
            return hosting(recalled, inputs, state, self._given(branch, state), self.files)
        if isinstance(role.query, SentQuery):
            sent = SentMember(branch.keys[0], role.subscription.name, role.query, out)
            return Gathered(sent, inputs[role.query.stream], state, *self.known)
        if not isinstance(role.query, Standing):
            name, policy = role.subscription.name, role.subscription.policy
            member = PlanMember(branch.keys[0], name, role.query, out, policy)
            return Planned(member, inputs, state, self.files)
        members = [
            Member(key, role.subscription.name, role.standing, out, role.subscription.policy, role.sends)
            for key, role, out in zip(branch.keys, branch.roles, outputs, strict=True)
        ]
        return open_branch(members, inputs, state, *self.known, self.files)

    def _given(self, branch: BranchPlan, state: State | None) -> BranchContext:
        """What a query over updates is given; one that begins late, the documents as they stand (LAWS 3.6)."""
        begun = ((name, self.before.get(keeper_of(name))) for name in branch.late if state is None)
        keepers = {name: State.from_bytes(self.files.read(kept.state)) for name, kept in begun if kept is not None}
        return BranchContext(*self.known, self.plan.limits, keepers)

    @property
    def known(self) -> tuple[dict[str, PythonFunction], dict[str, Input]]:
        return dict(self.job.functions), documents_of(self.plan.documents)

    def input(self, name: str, branch: BranchPlan) -> InputStream:
        (stream,) = (each for each in self.plan.streams if each.stream == name)
        found = _input(stream, self.plan, late=name in branch.late)
        if not stream.updates:
            return found
        shared = self.shared.setdefault(name, SharedReader(found.reader()))
        return replace(found, reader=lambda: shared)

    def _starts(self, name: str, branch: BranchPlan) -> Callable[[], Sequence[Start]] | None:
        """How a branch that begins here sees a late stream (LAWS 3.6): with all that was said before this epoch."""
        logged = self.job.evolution.get(name) if name in branch.late else None
        (stream,) = (each for each in self.plan.streams if each.stream == name)
        if logged is None:
            return None
        folder = self.job.checkpoint.evolution
        if stream.updates:
            return lambda: doubted_starts(stream, logged_changes(folder, stream, logged))
        return lambda: starts_of(view_from(folder, stream, logged, self.job.epoch))

    def braid(self, branch: BranchPlan, out: Output) -> BraidBranch:
        """Where the strands of a query come together."""
        (role,) = branch.roles
        assert isinstance(role.query, DisplayQuery)
        read = (each for each in self.plan.streams if each.stream in role.streams)
        roots = {each.stream: parse_root(each.root.encode()) for each in read}
        shown = DisplayMember(branch.keys[0], role.subscription.name, role.query, out)
        given = BranchContext(*self.known, self.plan.limits)
        return BraidBranch(shown, roots, self.state(branch.number), given, self.files)


def _input(stream: StreamPlan, plan: Plan, *, late: bool) -> InputStream:
    root = parse_root(stream.root.encode())
    # What comes in feeds was found good where it was cut out, by the schema and by accents that have announced more.
    given = stream.stream, stream.format, plan.limits, root, stream.item
    reader = partial(ElementReader, *given, admission=stream.admission(accents=plan.accents))
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


def doubted_starts(stream: StreamPlan, changes: Sequence[Change]) -> list[Start]:
    """The partitions of a stream of updates: what was in doubt stays so, for the document holds values of all times."""
    elements = ((int(each.partition), each.element(stream.stream)) for each in changes)
    doubts = [(number, each) for number, each in elements if isinstance(each, DeadLetter)]
    numbers = range(stream.partitions)
    return [Start(stream.evolution(), tuple(each for mine, each in doubts if mine == number)) for number in numbers]


def starts_of(view: StreamView) -> list[Start]:
    """The partitions of a stream as those see them who begin with it."""
    shown = [
        tuple(each.event for each in view.said if each.partition == number and not isinstance(each.event, Punctuation))
        for number in range(len(view.evolutions))
    ]
    return [Start(evolution.copy(), each) for evolution, each in zip(view.evolutions, shown, strict=True)]
