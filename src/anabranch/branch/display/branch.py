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

Its state is that of the machine, in layers (`branch/document/layers.py`), and the text on display, for readers of that
alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Generic, TypeVar

from anabranch.algebra.display.publishing import Published
from anabranch.branch.display.continuous import ContinuousQuery, Machine
from anabranch.branch.display.publishing import DisplayPublisher
from anabranch.branch.display.shown import DisplayChange
from anabranch.branch.display.strands import Braid, Strand, StrandMoment
from anabranch.branch.document.keeper import document_of, good_time
from anabranch.branch.document.layers import Resumed
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Came, Changed, Merged
from anabranch.branch.members import BranchMember
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm, outputs_of
from anabranch.law.calls import PythonFunction
from anabranch.law.history.changed import Dependence
from anabranch.law.history.evaluate import Around
from anabranch.law.inputs import Input
from anabranch.stream.elements import Accent, StreamElement
from anabranch.stream.limits import Limits
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

    def form(self, query: ast.Query) -> AnswerForm:
        """What the answer of a query is (LAWS 7.3)."""
        documents = {name: own for name, each in self.documents.items() if (own := each.json_item) is not None}
        return outputs_of(query).form({**documents, **self.json})

    def around(self, name: str, query: ast.Query, text: str) -> Around:
        """The arguments of an evaluator for a query with this name and text."""
        form = self.form(query)
        return {"functions": self.functions, "inputs": self.documents, "name": name, "text": text, "form": form}

    def display(self, query: ast.Query) -> Callable[[], Published]:
        """The function that makes an empty display for the answer of a query."""
        return partial(Published, json=self.form(query) == "json")


M = TypeVar("M", bound=Machine[Any])


class EditedStreamsBranch(Merged, Generic[M]):
    """A branch that takes the elements of streams that are edited, one after the other."""

    operator: str
    """The kind of branch, as its state names it."""

    def __init__(
        self,
        member: DisplayMember,
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
    ) -> None:
        super().__init__(inputs.values(), spill, self)
        self._member = member
        self._inputs = inputs
        if state is not None and state.meta["operator"] != self.operator:
            raise StateError(f"the state of '{member.name}' is that of another kind of branch")
        roots = {name: stream.root for name, stream in inputs.items()}
        kept = None if state is None else state.meta["layers"]
        self._resumed = Resumed(lambda: self._fresh(roots, given), ground_of(member, roots, given), kept, spill)
        self._machine = self._resumed.machine
        self._machine.call(given.functions)
        self._versions = dict(given.versions)
        self._seen = self._versions if state is None else state.meta.get("documents", {})
        """The versions of the documents that the display was computed with."""
        self._machine.consult(given.documents, changed=self._seen != self._versions)
        self._ended: str | None = None if state is None else state.meta["ended"]
        self.aborted: dict[str, str] = {}
        self._depends = Dependence.of(member.query.query, {name: stream.source.time for name, stream in inputs.items()})
        if state is None and (reason := begun_behind(self._depends, inputs)) is not None:
            self._abort(reason)
        self._open(None if state is None else state.meta)
        if state is not None:
            self._merge.restore(state.meta["merge"], state.tables["waiting"])
        elif given.keepers and self._ended is None:
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

    def reached(self, key: Key) -> Fraction:
        """The time that an input has reached."""
        name, partition = key
        return self._machine.kept[name].admission.reached(partition)

    def _run(self) -> None:
        for each in self._merge.released():
            match each:
                case _ if self._ended is not None:
                    pass
                case Came(stream, element=Accent() as accent) if reason := self._depends.ended_by(stream, accent):
                    self._abort(reason)
                case Came(stream, partition, element, at):
                    self._tell(self._machine.take(stream, element, at, partition))
                case Changed(stream, change=change) if reason := self._depends.ended_by(stream.name, change):
                    self._abort(reason)
                case _:
                    pass
        for kept in self._machine.kept.values():
            kept.admission.dead.clear()

    def _abort(self, reason: str) -> None:
        if self._ended is None:
            self._ended = self.aborted[self._member.key] = reason

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The state to save at the end of the epoch."""
        merge, waiting = self._merge.save()
        seen = self._seen if self._machine.is_behind else self._versions
        meta = {**self._meta(), "merge": merge, "ended": self._ended, "documents": seen}
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
        member = self._member
        query = member.query.query
        around = given.around(member.name, query, member.query.text)
        return ContinuousQuery(query, roots, limits=given.limits, display=given.display(query), **around)

    def _open(self, meta: dict[str, Any] | None) -> None:
        self._showing = DisplayPublisher(self._machine, self._member.out, meta)

    def _tell(self, news: Iterable[DisplayChange]) -> None:
        for change in news:
            self._showing.show(change)

    def _finish(self) -> None:
        """A query that fails when all inputs have ended has no answer."""
        if (error := self._machine.failure) is not None:
            self._abort(error.message)

    def _meta(self) -> dict[str, Any]:
        return self._showing.save(self._resumed, self.held)


class StrandBranch(EditedStreamsBranch[Strand]):
    """One of several strands that a query is answered in: it shows nothing, and reports its moments."""

    operator = "strand"

    def _fresh(self, roots: Mapping[str, Element], given: BranchContext) -> Strand:
        member = self._member
        around = given.around(member.name, member.query.query, member.query.text)
        return Strand(member.query.query, roots, *member.strand, limits=given.limits, **around)

    def _open(self, meta: dict[str, Any] | None) -> None:
        self._machine.moments = 0 if meta is None else meta["moments"]
        self.told: list[StrandMoment] = []
        """The moments that are to be sent to the braid."""
        self.finished = False
        """Whether all inputs have ended."""

    def _tell(self, news: Iterable[StrandMoment]) -> None:
        self.told += news

    def _finish(self) -> None:
        self.finished = True

    def _meta(self) -> dict[str, Any]:
        layers = self._resumed.save(self.held)
        return {"operator": "strand", "layers": layers, "moments": self._machine.moments}


def begun_behind(depends: Dependence, inputs: Mapping[str, InputStream]) -> str | None:
    """Why a query ends as it begins: an earlier change of a late stream is still in force there (LAWS 3.6)."""
    shown = ((name, stream.starts() if stream.starts is not None else ()) for name, stream in inputs.items())
    changes = ((name, change) for name, starts in shown for start in starts for change in start.shown)
    return next((reason for name, change in changes if (reason := depends.ended_by(name, change))), None)


def ground_of(member: DisplayMember, roots: Mapping[str, Element], given: BranchContext) -> Any:
    """What a machine depends on beside its state, but for functions and documents, which it is given anew."""
    written = [(name, serialize(root)) for name, root in roots.items()]
    return member.name, member.strand, member.query.text, written, given.form(member.query.query), given.limits


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
            ("braid", ground_of(member, roots, given)),
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
