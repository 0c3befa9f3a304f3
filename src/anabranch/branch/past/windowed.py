"""Windows of items, or joins of them, in a query about the past of items: their results stand (LAWS 5.5).

The operators of windows take, hold and close them as ever (`branch/windows/`, `branch/joins/step_join.py`).
Only what a window or a tuple gives is evaluated elsewhere: over what is remembered of the past, with the moment at
which it closes as now.
The items that windows hold are remembered, too, as the same trees: so a path that looks back may meet them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from anabranch.branch.display.branch import BranchContext
from anabranch.branch.held_items import HeldItem, Shelf
from anabranch.branch.intake.entries import RawEntry
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.joins.step_join import StepJoin
from anabranch.branch.members import AnswerWriter, Asker, BranchMember
from anabranch.branch.past.queries import RecalledQuery
from anabranch.branch.past.values import ArrivingItem
from anabranch.branch.ports import InputStream
from anabranch.branch.windows.sessions import Sessions
from anabranch.branch.windows.windows import Windows
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.env import Env
from anabranch.law.evaluate import Known, ResultRow
from anabranch.law.inputs import Arrival
from anabranch.law.paths import base_of
from anabranch.runtime.past.recollection import Recollection
from anabranch.runtime.units import Units
from anabranch.stream.affine import Affine
from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.path import Path
from anabranch.values.sequences import Value


class RecallingUnits(Units):
    """Answers windows and tuples over what is remembered."""

    def __init__(self, member: BranchMember[RecalledQuery], given: BranchContext, recollection: Recollection) -> None:
        standing = member.query.standing
        assert standing is not None
        super().__init__(standing, given.functions, given.documents)
        self._recollection = recollection
        self._omitted: Sequence[DynamicError] = ()

    def _rows(self, env: Env, nodes: Sequence[Value], known: Known, *, asked: bool = True) -> list[ResultRow]:
        assert asked, "tuples are not sent to others"
        rows, self._omitted = self._recollection.rows(self._standing.flwor, self._others, env, list(nodes))
        return rows

    @property
    def omitted(self) -> Sequence[DynamicError]:
        return self._omitted


class WindowedAnswer:
    """Results that stand: each window that closes adds a piece, or each tuple of joined windows."""

    def __init__(
        self,
        member: BranchMember[RecalledQuery],
        given: BranchContext,
        inputs: Mapping[str, InputStream],
        recollection: Recollection,
    ) -> None:
        """`inputs` have the roots below which items are put."""
        standing = member.query.standing
        assert standing is not None
        self._out, self._recollection = member.out, recollection
        self._answers = AnswerWriter(member.name, member.out, member.caps)
        units = RecallingUnits(member, given, recollection)
        asker = Asker(member.key, standing, units, self._answers, member.policy, tuple(given.functions))
        self._shelf = Shelf(inputs, units)
        self._operator = _operator(asker, self._shelf)
        bases = [base_of(each.source) for each in standing.fors]
        self._streams = {each.name for each in bases if isinstance(each, ast.Source)}
        self._arrivals: dict[int, Arrival] = {}
        """The items that windows may hold, by their numbers."""
        recollection.pinned = self._held

    def came(self, came: ArrivingItem, arrival: Arrival) -> None:
        """Take an item that has arrived."""
        if arrival.place.stream in self._streams:
            kept = HeldItem(self._shelf, came.number, came.entry, came.item, came.units, time=came.time)
            self._arrivals[came.number] = arrival
            self._operator.item(kept)
        self._bury(self._recollection.drained())

    def signal(self, signal: StreamSignal) -> None:
        """Take a punctuation, or the end of a partition."""
        if signal.stream.name in self._streams:
            self._operator.signal(signal)
        self._bury(self._recollection.drained())

    def finish(self) -> None:
        """All inputs have ended."""
        self._operator.finish()
        self._bury(self._recollection.drained())

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        for each in letters:
            self._out.bury(each)

    def _held(self) -> Iterator[Arrival]:
        """The items that are in open windows."""
        numbers = {each.kept.number for each in self._operator.held()}
        self._arrivals = {number: each for number, each in self._arrivals.items() if number in numbers}
        return iter(self._arrivals.values())

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> tuple[Any, dict[str, pa.Table]]:
        """The state, without the items."""
        memory, tables = self._operator.save()
        return {"answers": self._answers.save(), "memory": memory}, tables

    def hold_again(
        self, number: int, entry: RawEntry, item: Item, units: Mapping[Path, Affine], arrival: Arrival
    ) -> None:
        """Take up a remembered item, before `restore`."""
        self._shelf.hold_again(HeldItem(self._shelf, number, entry, item, units))
        self._arrivals[number] = arrival

    def restore(self, data: Any, tables: Mapping[str, pa.Table]) -> None:
        """Restore from `save`."""
        self._answers.restore(data["answers"])
        self._operator.restore(data["memory"], dict(tables))


def _operator(asker: Asker, shelf: Shelf) -> Windows | Sessions | StepJoin:
    """The operator for the windows of one query."""
    windows = [each.window for each in asker.standing.fors]
    if len(windows) > 1:
        return StepJoin([asker], shelf)
    return Sessions([asker], shelf) if isinstance(windows[0], ast.SessionWindow) else Windows([asker], shelf)
