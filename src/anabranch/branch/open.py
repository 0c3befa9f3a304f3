"""Opening a branch: the operator of a standing query, behind the merge of its inputs.

A branch lives for one epoch: it is restored from the state of the epoch before, fed, and saved.
It serves one query or several of one family (`family.py`); queries that were removed leave nothing in the next state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Protocol, TypeAlias

from anabranch.branch.blocking import BlockingBranch
from anabranch.branch.evolution.following import Following
from anabranch.branch.futures import NEVER, digest
from anabranch.branch.held_items import Shelf, kept_table
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.lookahead import Pause
from anabranch.branch.intake.merge import Changed, Merged, Released, StreamSignal
from anabranch.branch.items import ItemOperator, PassingColumns
from anabranch.branch.joins.interval import IntervalJoin
from anabranch.branch.joins.interval_columns import IntervalJoinColumns
from anabranch.branch.joins.keyed import KeyedJoin
from anabranch.branch.joins.step_columns import StepJoinColumns
from anabranch.branch.joins.step_join import StepJoin
from anabranch.branch.members import Asker, BranchMember
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.branch.timeline import Timed
from anabranch.branch.windows.columns import HeldWindowColumns
from anabranch.branch.windows.sessions import Sessions
from anabranch.branch.windows.windows import Windows
from anabranch.errors import StateError
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.standing import Standing


class Branch(Protocol):
    """The state and work of one subscription or several, for one epoch (`Merged` says what the methods do)."""

    def feed(self, *feeds: bytes) -> None: ...

    def passed(self, time: Fraction) -> None: ...

    def end(self, stream: str, partition: int) -> None: ...

    def save(self) -> BranchState | None:
        """The state after the epoch, None for an empty one; the branch is not used any more."""

    @property
    def held(self) -> int:
        """The number of items in its state."""

    @property
    def waiting(self) -> dict[Key, int]: ...

    @property
    def spilled(self) -> tuple[str, ...]: ...

    @property
    def aborted(self) -> dict[str, str]:
        """By key: the members that ended, because they could not survive an accent or took too much, and why."""


def open_branch(
    operator: str,
    members: Sequence[BranchMember[Standing]],
    inputs: Mapping[str, InputStream],
    state: BranchState | None,
    functions: Mapping[str, PythonFunction] | None,
    documents: Mapping[str, Input] | None,
    spill: Spill,
) -> Branch:
    """Open a branch for queries of one family, which need this operator (`family.py`).

    `inputs` are in the order in which the streams are registered.
    """
    first = members[0]
    if state is not None and state.meta["operator"] != operator:
        raise StateError(
            f"the state of '{first.name}' is one of '{state.meta['operator']}', and the query needs '{operator}'"
        )
    if operator == "whole":
        assert len(members) == 1, "what waits for the end is shared by twins only"
        return BlockingBranch(first, inputs, state, functions, documents, spill)
    askers = [Asker.of(each, functions, documents) for each in members]
    return FlowingBranch(operator, askers, inputs, state, spill)


_Operator: TypeAlias = ItemOperator | Windows | Sessions | StepJoin | IntervalJoin | KeyedJoin
"""The operator behind the merge."""
_ColumnPath: TypeAlias = PassingColumns | HeldWindowColumns | StepJoinColumns | IntervalJoinColumns
"""The column path of an operator, which takes as many elements as it can and leaves it the rest."""
_OPERATORS: Mapping[str, Callable[[Sequence[Asker], Shelf], _Operator]] = {
    "items": ItemOperator,
    "windows": Windows,
    "sessions": Sessions,
    "step join": StepJoin,
    "interval join": IntervalJoin,
    "keyed join": KeyedJoin,
}


class FlowingBranch(Merged):
    """A branch that takes its inputs element by element, in the order of LAWS 1.2."""

    def __init__(
        self,
        kind: str,
        askers: Sequence[Asker],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        spill: Spill,
    ) -> None:
        self._kind = kind
        self._askers = askers
        super().__init__((inputs[each] for each in askers[0].standing.streams), spill)
        self._shelf = Shelf(inputs, askers[0].units)
        self._operator = _OPERATORS[kind](askers, self._shelf)
        self._following = Following(askers, self._merge, lambda: self._shelf.taken)
        if state is None:
            self._following.begin()
        else:
            self._shelf.restore(state.tables["items"], state.meta["taken"])
            for asker in askers:
                if (saved := state.meta["answers"].get(asker.key)) is not None:
                    asker.answers.restore(saved)
            self._merge.restore(state.meta["merge"], state.tables["waiting"])
            self._operator.restore(state.meta["memory"], state.tables)
            self._following.restore(state.meta["following"])
        self._room = askers[0].answers.room  # members of a branch have the same caps
        self._columns = self._columns_for()
        self._pause = Pause()

    def _columns_for(self) -> _ColumnPath | None:
        match self._operator:
            case StepJoin() as operator:
                return StepJoinColumns(self._merge, operator, self._shelf)
            case IntervalJoin() as operator:
                return IntervalJoinColumns(self._merge, operator, self._shelf)
            case Windows() as operator:
                return HeldWindowColumns(self._merge, operator, self._shelf, self._following)
            case ItemOperator() as operator:
                return PassingColumns(self._merge, operator, self._shelf, self._following)
            case _:
                return None

    def _finish(self) -> None:
        if isinstance(self._columns, StepJoinColumns) and self._following.quiet:
            self._columns.finish()
        self._operator.finish()

    def _run(self) -> None:
        """Take the released elements: many at a time where possible, and singly what is left."""
        self._run_columns()
        for each in self._merge.released():
            match each:
                case Released(entry, item, units, _, time):
                    self._operator.item(self._shelf.put(entry, item, units, time))
                case StreamSignal():
                    self._operator.signal(each)
                    self._following.signal(each)
                case Changed():
                    self._following.take(each)
            self._check_loads()
            if self._pause.is_over():
                before = self._shelf.taken
                self._run_columns()
                self._pause.after(self._shelf.taken - before)

    def tell(self, timed: Sequence[Timed]) -> None:
        super().tell(timed)
        if timed:
            self._columns = None  # columns take many elements at a time, and moments are single
            if isinstance(self._operator, Windows):
                self._operator.front = None

    def _run_columns(self) -> None:
        while self._columns is not None and self._following.quiet and self._has_room() and self._columns.take():
            pass

    def _check_loads(self) -> None:
        """End the queries that hold too much behind an element (LAWS 2.9)."""
        for askers, count in self._operator.loads() if self._room < math.inf else ():
            if count > self._room:
                for asker in askers:
                    asker.answers.holds(count)

    def _has_room(self) -> bool:
        """Whether no query could hold too much before all that waits is taken; columns take items of one node each."""
        loads = [] if self._room == math.inf else [count for _, count in self._operator.loads()]
        if not loads:
            return True
        coming = sum(len(each.backlog) for each in self._merge.sources.values())
        return max(loads) + coming * len(self._askers[0].standing.fors) <= self._room

    def save(self) -> BranchState | None:
        memory, tables = self._operator.save()
        merge, waiting = self._merge.save()
        meta = {
            "operator": self._kind,
            "taken": self._shelf.taken,
            "answers": {asker.key: asker.answers.save() for asker in self._askers},
            "merge": merge,
            "memory": memory,
            "following": self._following.save(),
        }
        return BranchState(meta, {**tables, "items": kept_table(self._operator.held()), "waiting": waiting})

    def futures(self, keys: Collection[str], ends: Mapping[str, int] = MappingProxyType({})) -> dict[str, str]:
        """The futures of some members, by key (`futures.py`); those that cannot be compared are left out.

        Of streams that began with the branch, `ends` are the places where they end by now.
        """
        found: dict[str, str] = {}
        self._shelf.ends = ends
        loads = self._operator.loads() if self._room < math.inf else ()
        held = {asker.key: count for askers, count in loads for asker in askers}
        oldest = min((each.kept.number for each in self._operator.held()), default=math.inf)
        for asker in self._askers:
            if asker.latest is not None and oldest < asker.latest:
                continue  # what it sends tells which items came before an event, by numbers of this branch alone
            if asker.key in keys and (future := self._operator.future(asker)) != NEVER:
                taken = asker.answers.save(), held.get(asker.key)  # what caps count (LAWS 2.9)
                found[asker.key] = digest(asker.key, future, taken, self._merge.now)
        return found

    @property
    def held(self) -> int:
        return len({each.kept.number for each in self._operator.held()})

    @property
    def aborted(self) -> dict[str, str]:
        capped = {each.key: each.answers.capped for each in self._askers}
        return {**self._following.aborted, **{key: reason for key, reason in capped.items() if reason is not None}}
