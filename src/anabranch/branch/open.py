"""Opening a branch: the operator that a standing query needs, behind the merge of its inputs.

A branch lives for one epoch: it is opened with the state that the epoch before has left, fed, and saved.
It serves one query or several of one family (`family.py`); those that are gone leave nothing in the next state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from anabranch.branch.blocking import Whole
from anabranch.branch.evolution.following import Following
from anabranch.branch.family import operator_of
from anabranch.branch.held_items import Held, Kept, Shelf, kept_table
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.lookahead import Pause
from anabranch.branch.intake.merge import Changed, Released, Signal
from anabranch.branch.intake.merged import Merged
from anabranch.branch.items.columns import PassingColumns
from anabranch.branch.items.items import Passing
from anabranch.branch.joins.columns import JoinColumns
from anabranch.branch.joins.interval import IntervalJoin
from anabranch.branch.joins.step_join import StepJoin
from anabranch.branch.members import Asker, Member
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import State
from anabranch.branch.timeline import Timed
from anabranch.branch.windows.columns import WindowColumns
from anabranch.branch.windows.items import Windows
from anabranch.errors import StateError
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input


class Branch(Protocol):
    """What remembers for one subscription or several, for one epoch."""

    def feed(self, data: bytes) -> None:
        """Take in a packed feed; those of one partition come in stream order."""

    def passed(self, time: Fraction) -> None:
        """No input whose elements have the times of their arrival brings anything at or before `time` any more."""

    def end(self, stream: str, partition: int) -> None:
        """An input has ended; the last one to end closes what is open."""

    def save(self) -> State | None:
        """What to remember after the epoch, None for nothing; the branch is not used any more."""

    @property
    def held(self) -> int:
        """How many items it remembers."""

    @property
    def waiting(self) -> dict[Key, int]:
        """How many elements of each input it holds back, because another input is behind."""

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that its state needs."""

    @property
    def aborted(self) -> dict[str, str]:
        """By key: the members that have ended in this epoch, because they could not survive an accent, and why."""


def open_branch(
    members: Sequence[Member],
    inputs: Mapping[str, InputStream],
    state: State | None,
    functions: Mapping[str, PythonFunction] | None,
    documents: Mapping[str, Input] | None,
    spill: Spill,
) -> Branch:
    """Open a branch for queries of one family; `inputs` are in the order in which the streams are registered."""
    first = members[0]
    times = {name: stream.time for name, stream in inputs.items()}
    operator = operator_of(first.standing, times, endless=all(stream.endless for stream in inputs.values()))
    if state is not None and state.meta["operator"] != operator:
        raise StateError(
            f"the state of '{first.name}' is one of '{state.meta['operator']}', and the query needs '{operator}'"
        )
    if operator == "whole":
        assert len(members) == 1, "what waits for the end is shared by twins only"
        return Whole(first, inputs, state, functions, documents, spill)
    askers = [Asker.of(each, functions, documents) for each in members]
    return _Flowing(operator, askers, inputs, state, spill)


class _Operator(Protocol):
    """What the merge is in front of."""

    def item(self, kept: Kept) -> None: ...

    def signal(self, signal: Signal) -> None: ...

    def finish(self) -> None: ...

    def held(self) -> list[Held]: ...

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]: ...

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None: ...


class _Columns(Protocol):
    """A faster way for what the operator does, which takes all it can of what may be taken and leaves it the rest."""

    def take(self) -> bool:
        """Take some of it; False where there is nothing, or nothing for columns."""

    def finish(self) -> None:
        """All inputs have ended, and what they brought was taken."""


class _Flowing(Merged):
    """A branch that takes its inputs element by element, in the order of LAWS 1.2."""

    def __init__(
        self,
        kind: str,
        askers: Sequence[Asker],
        inputs: Mapping[str, InputStream],
        state: State | None,
        spill: Spill,
    ) -> None:
        self._kind = kind
        self._askers = askers
        super().__init__((inputs[each] for each in askers[0].standing.streams), spill)
        self._shelf = Shelf(inputs, askers[0].units)
        self._operator = self._operator_for(askers)
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
        self._columns = self._columns_for()
        self._pause = Pause()

    def _operator_for(self, askers: Sequence[Asker]) -> _Operator:
        match self._kind:
            case "windows":
                return Windows(askers, self._shelf)
            case "step join":
                return StepJoin(askers, self._shelf)
            case "interval join":
                return IntervalJoin(askers, self._shelf)
            case _:
                return Passing(askers)

    def _columns_for(self) -> _Columns | None:
        match self._operator:
            case StepJoin() as operator:
                return JoinColumns(self._merge, operator, self._shelf)
            case Windows() as operator:
                return WindowColumns(self._merge, operator, self._shelf, self._following)
            case Passing() as operator:
                return PassingColumns(self._merge, operator, self._shelf, self._following)
            case _:
                return None

    def _finish(self) -> None:
        if self._columns is not None and self._following.quiet:
            self._columns.finish()
        self._operator.finish()

    def _run(self) -> None:
        """Take what may be taken: many at a time if that can be, and one by one what is left."""
        self._run_columns()
        for each in self._merge.released():
            match each:
                case Released(entry, item, units, _):
                    self._operator.item(self._shelf.put(entry, item, units))
                case Signal():
                    self._operator.signal(each)
                    self._following.signal(each)
                case Changed():
                    self._following.take(each)
            if self._pause.is_over():
                before = self._shelf.taken
                self._run_columns()
                self._pause.after(self._shelf.taken - before)

    def tell(self, timed: Sequence[Timed]) -> None:
        super().tell(timed)
        if timed:
            self._columns = None  # they take many elements at a time

    def _run_columns(self) -> None:
        while self._columns is not None and self._following.quiet and self._columns.take():
            pass

    def save(self) -> State | None:
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
        return State(meta, {**tables, "items": kept_table(self._operator.held()), "waiting": waiting})

    @property
    def held(self) -> int:
        return len({each.kept.number for each in self._operator.held()})

    @property
    def aborted(self) -> dict[str, str]:
        return self._following.aborted
