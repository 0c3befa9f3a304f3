"""A query over update streams as a branch: elements in their merged order, the answer as an update stream of its own.

All streams of such a query are documents that are edited (LAWS 5); a stream of items is one to which items are only
added.
Elements come in the order of LAWS 1.2 (`branch/intake/merge.py`), judged by what is known of their partition; the
machine (`continuous.py`) takes them, and what it shows is published as an update stream of its own (`publishing.py`);
or it is one of several strands (`strands.py`), whose findings are sent on to a branch without streams that puts them
together.

Bad elements of a stream are reported by its keeper (`branch/document/keeper.py`), once for all queries; here are the
errors of the query itself.
A late branch begins with the document as it stands there (LAWS 3.6).
Where a stream evolves, values are read in the units of query start; the display changes its units as a whole, at the
moment of the accent with which an alter comes out (LAWS 4.9 e), and an accent that the query cannot survive ends it.
Where it reads items beside updates, it stays in the units of its start.

Its state is that of the machine, in layers (`branch/document/layers.py`), and the text on display, for readers of that
alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Generic, Protocol, TypeVar

from anabranch.algebra.display.publishing import Published
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.publishing import DisplayPublisher
from anabranch.branch.display.shown import DisplayChange
from anabranch.branch.display.strands import Braid, Strand, StrandMoment
from anabranch.branch.document.judging import Replacement
from anabranch.branch.document.keeper import document_of, good_time
from anabranch.branch.document.layers import Resumable, Resumed
from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import rare_gc
from anabranch.branch.evolution.begun import begun_events, begun_inputs
from anabranch.branch.evolution.following import Absorbing, Following, Showing
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Came, CameTogether, Changed, Merged
from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.branch.members import BranchMember
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm, outputs_of
from anabranch.law.calls import PythonFunction
from anabranch.law.history.changed import doubted_time
from anabranch.law.history.evaluate import Around
from anabranch.law.inputs import Input
from anabranch.stream.elements import Accent, Alter, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.path import TimeScale
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class DisplayQuery:
    """A checked query whose answer is a display: it reads streams that are edited."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    """The streams that it reads, in the order in which it names them, which decides ties (LAWS 1.2)."""


@dataclass(frozen=True, slots=True)
class DisplayMember(BranchMember[DisplayQuery]):
    """A query that a branch serves, all of it or one of its strands."""

    strand: tuple[int, int] = (0, 1)
    """Which of its strands is served, and of how many."""


@dataclass(slots=True)
class BranchContext:
    """What a branch is given beside its streams."""

    functions: Mapping[str, PythonFunction] = field(default_factory=dict)
    documents: Mapping[str, Input] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    keepers: Mapping[str, BranchState] = field(default_factory=dict)
    """The states of the keepers of streams that began before the branch did."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """By document, a digest of its content."""

    json: Mapping[str, str] = field(default_factory=dict)
    """The streams of JSON, each with the name of its items."""
    scales: Mapping[str, Callable[[ItemPath | None], TimeScale]] = field(default_factory=dict)
    """By stream, the time scale of the values at a path of its items."""

    def form(self, query: ast.Query) -> AnswerForm:
        """What the answer of a query is (LAWS 7.3)."""
        documents = {name: own for name, each in self.documents.items() if (own := each.json_item) is not None}
        return outputs_of(query).form({**documents, **self.json})

    def around(self, name: str, query: ast.Query, text: str) -> Around:
        """The arguments of an evaluator for a query with this name and text."""
        form = self.form(query)
        given: Around = {"functions": self.functions, "inputs": self.documents, "name": name, "text": text}
        return {**given, "form": form, "scales": self.scales}

    def display(self, query: ast.Query) -> Callable[[], Published]:
        """The function that makes an empty display for the answer of a query."""
        return partial(Published, json=self.form(query) == "json")


class EditedStreamsMachine(Resumable, Protocol):
    """What takes the elements of streams that are edited, and tells what they change."""

    kept: dict[str, KeptDocument]
    """By stream, what is kept of it."""
    is_behind: bool
    """Whether documents behind `doc()` have changed, and there was no moment since."""

    def call(self, functions: Mapping[str, PythonFunction]) -> None: ...

    def consult(self, documents: Mapping[str, Input], *, changed: bool) -> None: ...

    def take(self, stream: str, element: StreamElement, at: Fraction, partition: int = 0) -> Iterable[Any]: ...

    def take_together(self, stream: str, partition: int, replacements: Sequence[Replacement]) -> Iterable[Any]: ...

    def begin(self, documents: Mapping[str, LateStart]) -> Iterable[Any]: ...


M = TypeVar("M", bound=EditedStreamsMachine)


class EditedStreamsBranch(Merged, Generic[M]):
    """A branch that takes the elements of streams that are edited, one after the other."""

    operator: str
    """The kind of branch, as its state names it."""

    def __init__(
        self,
        members: Sequence[DisplayMember],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
    ) -> None:
        self._begun = begun_events(inputs, state, given.keepers)
        inputs = begun_inputs(inputs, self._begun)
        super().__init__(inputs.values(), spill, self)
        self._members = {each.key: each for each in members}
        self._functions = given.functions
        self._inputs = inputs
        if state is not None and state.meta["operator"] != self.operator:
            raise StateError(f"the state of '{members[0].name}' is that of another kind of branch")
        roots = {name: stream.root for name, stream in inputs.items()}
        kept = None if state is None else state.meta["layers"]
        ground = ground_of(members, roots, given), retained(inputs)
        self._resumed = Resumed(lambda: self._fresh(roots, given), ground, kept, spill)
        self._machine = self._resumed.machine
        self._machine.call(given.functions)
        self._versions = dict(given.versions)
        self._seen = self._versions if state is None else state.meta.get("documents", {})
        """The versions of the documents that the display was computed with."""
        self._machine.consult(given.documents, changed=self._seen != self._versions)
        self._ended: dict[str, str] = {} if state is None else self._ended_in(state.meta)
        """By member: why it has ended."""
        self.aborted: dict[str, str] = {}
        self._follow(None if state is None else state.meta)
        self._merge.measure({name: each.admission for name, each in self._machine.kept.items()})
        self._open(None if state is None else state.meta)
        if state is not None:
            self._merge.restore(state.meta["merge"], state.tables["waiting"])
        elif given.keepers and self._goes_on:
            self._begin_late(given.keepers, given.limits, spill)

    @abstractmethod
    def _fresh(self, roots: Mapping[str, Element], given: BranchContext) -> M:
        """The machine at its beginning."""

    @abstractmethod
    def _open(self, meta: dict[str, Any] | None) -> None:
        """Continue with what was saved; None for a new branch."""

    def _begin_late(self, keepers: Mapping[str, BranchState], limits: Limits, spill: Spill) -> None:
        """Begin with the documents as they stand, and with the elements that wait in the merges of their keepers."""
        for kept in keepers.values():
            self._merge.restore(kept.meta["merge"], kept.tables["waiting"])
        late = {name: document_of(kept, self._inputs[name], limits, spill) for name, kept in keepers.items()}
        self._alter_displays()
        self._tell(self._machine.begin(late))

    @abstractmethod
    def _tell(self, news: Iterable[Any]) -> None:
        """Pass on what the machine gives for its moments."""

    @abstractmethod
    def _meta(self) -> dict[str, Any]:
        """The state without the waiting elements; the machine is not used any more."""

    # --- what comes in ------------------------------------------------------------------------------------

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of an element that is to be taken next; None for a bad one."""
        name, partition = key
        return good_time(self._machine.kept[name].admission, self._inputs[name], partition, element, arrived)

    def together(self, key: Key, updates: Sequence[UsualUpdate], first: int) -> Sequence[Replacement]:
        """The next updates of an input that can be taken together."""
        name, partition = key
        return self._machine.kept[name].admission.together(updates, first, partition)

    def reached(self, key: Key) -> Fraction:
        """The time that an input has reached."""
        name, partition = key
        return self._machine.kept[name].admission.reached(partition)

    def _run(self) -> None:
        with rare_gc():
            self._take_released()
        for kept in self._machine.kept.values():
            kept.admission.dead.clear()

    def _take_released(self) -> None:
        for each in self._merge.released():
            if isinstance(each, CameTogether):
                if self._goes_on:
                    self._alter_displays()
                    self._tell(self._machine.take_together(*each))
            elif isinstance(each, Came):
                stream, partition, element, at, _ = each
                if isinstance(element, Accent):
                    self._change(Changed(self._inputs[stream], partition, element))
                if self._goes_on:
                    self._alter_displays()
                    self._tell(self._machine.take(stream, element, at, partition))
            elif isinstance(each, Changed):
                self._change(each)

    @property
    def _goes_on(self) -> bool:
        """Whether there is a member that has not ended."""
        return len(self._ended) < len(self._members)

    @cached_property
    def _following(self) -> Following:
        """The evolution of the streams, for all members; made where a stream evolves."""
        return Following(self._askers, self._merge, lambda: 0)

    @cached_property
    def _askers(self) -> list[Showing] | list[Absorbing]:
        functions, members = self._functions, self._members.values()
        if all(each.source.updates for each in self._inputs.values()):
            return [Showing.of(each, functions) for each in members]
        return [Absorbing.of(each, functions) for each in members]

    def _alter_displays(self) -> None:
        """Change the units of displays, where alters have come out, with the moment that is next."""
        if "_following" in self.__dict__:
            for each in self._askers:
                if isinstance(each, Showing) and each.key not in self._ended:
                    self._alter(each.key, each.answers.take())

    @abstractmethod
    def _alter(self, key: str, alters: Sequence[Alter]) -> None:
        """Change units of the display of a member."""

    def _follow(self, meta: dict[str, Any] | None) -> None:
        """Begin with the accents that are in force at the start, or go on behind those that came since."""
        is_late = any(stream.starts is not None for stream in self._inputs.values())
        self._followed: dict[str, Any] | None = None if meta is None else meta.get("following")
        if meta is None and is_late:
            self._following.begin()
            self._check_following()
        elif self._followed is not None:
            self._following.restore(self._followed)

    def _change(self, changed: Changed) -> None:
        """Follow an accent, or what was left in doubt; it may end members."""
        self._following.take(changed)
        self._check_following()
        if (reason := doubted_time(changed.stream.source, changed.change)) is not None:
            for key in self._members:
                self._abort(key, reason)

    def _check_following(self) -> None:
        for key, reason in self._following.aborted.items():
            self._abort(key, reason)

    def _abort(self, key: str, reason: str) -> None:
        if key not in self._ended:
            self._ended[key] = self.aborted[key] = reason

    def _ended_in(self, meta: dict[str, Any]) -> dict[str, str]:
        """By member: why it has ended, in a state."""
        return {key: meta["ended"] for key in self._members if meta["ended"] is not None}

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The state to save at the end of the epoch."""
        merge, waiting = self._merge.save()
        seen = self._seen if self._machine.is_behind else self._versions
        ended = next(iter(self._ended.values()), None)
        followed = self._following.save() if "_following" in self.__dict__ else self._followed
        evolution = {"begun": self._begun, "following": followed}
        meta = {"ended": ended, **self._meta(), **evolution, "merge": merge, "documents": seen}
        return BranchState(meta, {"waiting": waiting})

    @property
    def held(self) -> int:
        """How many entries it remembers."""
        return sum(len(each.by_number) for each in self._machine.kept.values())

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs: also those of its layers."""
        return (*super().spilled, *self._resumed.refs)


class DisplayBranch(EditedStreamsBranch[ContinuousQuery]):
    """A branch whose answer is on display."""

    operator = "display"

    def _fresh(self, roots: Mapping[str, Element], given: BranchContext) -> ContinuousQuery:
        (member,) = self._members.values()
        query = member.query.query
        around = given.around(member.name, query, member.query.text)
        around["retain"] = retained(self._inputs)
        return ContinuousQuery(query, roots, limits=given.limits, display=given.display(query), **around)

    def _open(self, meta: dict[str, Any] | None) -> None:
        (member,) = self._members.values()
        self._showing = DisplayPublisher(self._machine, member.out, meta)

    def _alter(self, key: str, alters: Sequence[Alter]) -> None:
        self._machine.alter(alters)

    def _tell(self, news: Iterable[DisplayChange]) -> None:
        for change in news:
            self._showing.show(change)

    def _finish(self) -> None:
        """A query that fails when all inputs have ended has no answer."""
        if (error := self._machine.failure) is not None:
            (key,) = self._members
            self._abort(key, error.message)

    def _meta(self) -> dict[str, Any]:
        return self._showing.save(self._resumed, self.held)


class StrandBranch(EditedStreamsBranch[Strand]):
    """One of several strands that a query is answered in: it shows nothing, and reports its moments."""

    operator = "strand"

    def _fresh(self, roots: Mapping[str, Element], given: BranchContext) -> Strand:
        (member,) = self._members.values()
        around = given.around(member.name, member.query.query, member.query.text)
        around["retain"] = retained(self._inputs)
        return Strand(member.query.query, roots, *member.strand, limits=given.limits, **around)

    def _open(self, meta: dict[str, Any] | None) -> None:
        self._machine.moments = 0 if meta is None else meta["moments"]
        self.told: list[StrandMoment] = []
        """The moments that are to be sent to the braid."""
        self.finished = False
        """Whether all inputs have ended."""

    def _alter(self, key: str, alters: Sequence[Alter]) -> None:
        self._machine.alter(alters)

    def _tell(self, news: Iterable[StrandMoment]) -> None:
        self.told += news

    def _finish(self) -> None:
        self.finished = True

    def _meta(self) -> dict[str, Any]:
        layers = self._resumed.save(self.held)
        return {"operator": "strand", "layers": layers, "moments": self._machine.moments}


def retained(inputs: Mapping[str, InputStream]) -> Fraction | None:
    """The shortest time, in seconds, that a stream of a query is retained for; None where all are for good."""
    found = [each.source.retain for each in inputs.values()]
    return min((each for each in found if each is not None), default=None)


def ground_of(members: Iterable[DisplayMember], roots: Mapping[str, Element], given: BranchContext) -> Any:
    """What a machine depends on beside its state, but for functions and documents, which it is given anew."""
    written = [(name, serialize(root)) for name, root in roots.items()]
    documents = [(name, each.json_item) for name, each in given.documents.items()]
    asked = [(each.name, each.strand, each.query.text) for each in members]
    return asked, written, documents, list(given.json.items()), given.limits


class BraidBranch:
    """A branch whose answer is on display, behind its strands."""

    def __init__(
        self,
        member: DisplayMember,
        roots: Mapping[str, Element],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
    ) -> None:
        if state is not None and state.meta["operator"] != "display":
            raise StateError(f"the state of '{member.name}' is that of another kind of branch")
        self._member = member
        meta = None if state is None else state.meta
        query = member.query.query
        around = given.around(member.name, query, member.query.text)
        self._resumed = Resumed(
            lambda: Braid(query, roots, limits=given.limits, display=given.display(query), **around),
            ("braid", ground_of([member], roots, given)),
            None if meta is None else meta["layers"],
            spill,
        )
        self._machine = self._resumed.machine
        self._machine.call(given.functions)
        self._showing = DisplayPublisher(self._machine, member.out, meta)
        self.aborted: dict[str, str] = {}

    def take(self, told: Iterable[StrandMoment], *, finished: bool) -> None:
        """Take what all strands report of some moments; `finished` says that none will follow."""
        moments: dict[int, list[StrandMoment]] = {}
        for each in told:
            moments.setdefault(each.moment, []).append(each)
        for moment in sorted(moments):
            self._showing.show(self._machine.put_together(moments[moment]))
        if finished and (error := self._machine.failure) is not None:
            self.aborted[self._member.key] = error.message

    def save(self) -> BranchState:
        """The state to save at the end of the epoch."""
        return BranchState(self._showing.save(self._resumed, self.held), {})

    @property
    def held(self) -> int:
        """How many entries it keeps the places of."""
        return sum(len(each.by_number) for each in self._machine.kept.values())

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs."""
        return self._resumed.refs
