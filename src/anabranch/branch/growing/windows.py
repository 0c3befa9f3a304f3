"""Loops over windows in a display: the usual operators of windows and joins, whose results go on display.

Each loop has its own operator and shelf; all shelves take all items, so an item has one number in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from anabranch.branch.family import operator_of
from anabranch.branch.growing.items import TakenItem
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf, kept_table
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.joins.step_join import StepJoin
from anabranch.branch.members import AnswerWriter, Asker, BranchMember
from anabranch.branch.ports import InputStream, Output
from anabranch.branch.windows.sessions import Sessions
from anabranch.branch.windows.windows import Windows
from anabranch.errors import DynamicError
from anabranch.law.calls import PythonFunction
from anabranch.law.evaluate import ResultRow
from anabranch.law.inputs import Input
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import NOTHING, AnswerPiece
from anabranch.stream.elements import Item
from anabranch.values.sequences import Value


class _Rows(AnswerWriter):
    """Collects the results of windows and tuples as rows; those that fail are set aside."""

    def __init__(self, name: str, out: Output) -> None:
        super().__init__(name, out)
        self._pending: list[ResultRow] = []
        self.found: list[list[ResultRow]] = []
        """The rows since this was last emptied, window by window."""

    def add(self, rows: Sequence[ResultRow]) -> None:
        """Add rows of the window that is being evaluated."""
        self._pending += rows

    def give(self, named: HeldItem, held: Sequence[HeldNode], *makes: Callable[[], AnswerPiece]) -> None:
        self._pending = []
        try:
            pieces = [make() for make in makes]
        except DynamicError as error:
            self.bury(named, error, held)
            return
        for omission in (each for piece in pieces for each in piece.omitted):
            self.bury(named, omission, held)
        if self._pending:
            self.found.append(self._pending)


class _RowAsker(Asker):
    """Evaluates rows in the place of pieces."""

    def window(self, held: Sequence[HeldNode], nodes: Sequence[Value]) -> AnswerPiece:
        return self._add(self.units.window_rows(nodes))

    def tuple(self, held: Sequence[HeldNode], nodes: Sequence[Value]) -> AnswerPiece:
        return self._add(self.units.tuple_rows(nodes))

    def _add(self, rows: Sequence[ResultRow]) -> AnswerPiece:
        assert isinstance(self.answers, _Rows)
        self.answers.add(rows)
        return replace(NOTHING, omitted=tuple(self.units.omitted))


_OPERATORS: Mapping[str, Callable[[Sequence[Asker], Shelf], Windows | Sessions | StepJoin]] = {
    "windows": Windows,
    "sessions": Sessions,
    "step join": StepJoin,
}


class WindowLoop:
    """One loop over windows, or over the tuples of several."""

    def __init__(
        self,
        standing: Standing,
        member: BranchMember[Any],
        inputs: Mapping[str, InputStream],
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
    ) -> None:
        asker = Asker.of(
            BranchMember(member.key, member.name, standing, member.out, member.policy), functions, documents
        )
        self._rows = _Rows(member.name, member.out)
        rows = _RowAsker(asker.key, standing, asker.units, self._rows, asker.policy, asker.registered)
        self.streams = standing.streams
        """The streams that it reads."""
        self._shelf = Shelf(inputs, rows.units)
        self._operator = _OPERATORS[operator_of(standing, {}, endless=True)]([rows], self._shelf)

    def item(self, came: TakenItem, item: Item) -> None:
        """Take the next item of any stream."""
        kept = self._shelf.put(came.entry, item, came.units)
        if came.entry.origin.stream in self.streams:
            self._operator.item(kept)

    def signal(self, signal: StreamSignal) -> None:
        """Take a punctuation or the end of a partition."""
        if signal.stream.name in self.streams:
            self._operator.signal(signal)

    def finish(self) -> None:
        """Its streams have ended; others may go on."""
        self._operator.finish()

    def drained(self) -> list[list[ResultRow]]:
        """The rows of windows since the last call, window by window."""
        found, self._rows.found = self._rows.found, []
        return found

    # --- between epochs -----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many items open windows hold."""
        return len({each.kept.number for each in self._operator.held()})

    @property
    def load(self) -> int:
        """How many nodes open windows hold."""
        return sum(count for _, count in self._operator.loads())

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state of the open windows."""
        memory, tables = self._operator.save()
        return {"memory": memory, "taken": self._shelf.taken}, {
            **tables,
            "items": kept_table(self._operator.held()),
        }

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Restore from `save`."""
        self._shelf.restore(tables["items"], meta["taken"])
        self._operator.restore(meta["memory"], tables)
