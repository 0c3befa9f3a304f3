"""A branch that serves several queries over one stream of updates, each with a display of its own.

Its members began with the same element, and none joins later: a query that begins late sees the document as it stands
then, and what was there before is no version for it (LAWS 3.6).
A member may leave; then the state is read with the needs of the others, and what only the one has needed goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anabranch.branch.display.branch import BranchContext, DisplayMember, EditedStreamsBranch
from anabranch.branch.display.families.machine import AskedDisplay, DisplayFamily, FamilyNews
from anabranch.branch.display.publishing import DisplayPublisher
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.stream.elements import Alter
from anabranch.stream.tree import Element

_TOLD: Mapping[str, Any] = {"told": [1, True], "buried": [], "open": []}
"""What most queries have told after their first moment, which need not be saved."""


class FamilyBranch(EditedStreamsBranch[DisplayFamily]):
    """A branch of queries that share one history."""

    operator = "displays"

    def __init__(
        self,
        members: Sequence[DisplayMember],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
    ) -> None:
        self._left: dict[str, str] = {}
        """What members showed last that have ended in this epoch."""
        super().__init__(members, inputs, None if state is None else _as_family(state), given, spill)

    def _fresh(self, roots: Mapping[str, Element], given: BranchContext) -> DisplayFamily:
        asked: dict[str, AskedDisplay] = {}
        for key, member in self._members.items():
            query = member.query.query
            around = given.around(member.name, query, member.query.text)
            asked[key] = AskedDisplay(query, given.display(query), around)
        return DisplayFamily(asked, roots, given.limits)

    def _open(self, meta: dict[str, Any] | None) -> None:
        self._showing: dict[str, DisplayPublisher] = {}
        for key, query in self._machine.queries.items():
            told = None if meta is None or meta["is_new"] else {**_TOLD, **meta["members"].get(key, {})}
            self._showing[key] = DisplayPublisher(query, self._members[key].out, told)

    def _alter(self, key: str, alters: Sequence[Alter]) -> None:
        self._machine.queries[key].alter(alters)

    def _tell(self, news: Iterable[FamilyNews]) -> None:
        for key, change in news:
            self._showing[key].show(change)

    def _abort(self, key: str, reason: str) -> None:
        if key in self._machine.queries:
            self._left[key] = self._machine.queries[key].text
            self._machine.leave(key)
        super()._abort(key, reason)

    def _finish(self) -> None:
        """Queries that fail when all inputs have ended have no answer."""
        for key, query in [*self._machine.queries.items()]:
            if (error := query.failure) is not None:
                self._abort(key, error.message)

    def _ended_in(self, meta: dict[str, Any]) -> dict[str, str]:
        return {key: reason for key, reason in meta["ended"].items() if key in self._members}

    def _meta(self) -> dict[str, Any]:
        queries = self._machine.queries
        edits = {key: each.edits for key, each in self._showing.items() if each.edits}
        is_new = self._machine.is_new
        layers = self._resumed.save(
            self.held, edits, lambda: {**self._left, **{key: each.text for key, each in queries.items()}}
        )
        told = {key: self._news_of(each) for key, each in self._showing.items() if key in queries}
        members = {key: each for key, each in told.items() if each}
        return {"operator": self.operator, "layers": layers, "is_new": is_new, "members": members, "ended": self._ended}

    def _news_of(self, publisher: DisplayPublisher) -> dict[str, Any]:
        return {name: value for name, value in publisher.told().items() if value != _TOLD[name]}


def _as_family(state: BranchState) -> BranchState:
    """A state; that of a query which was alone until others joined it, before the stream began, is an empty one."""
    if state.meta["operator"] == FamilyBranch.operator:
        return state
    new: dict[str, Any] = {
        "operator": FamilyBranch.operator,
        "layers": None,
        "is_new": True,
        "members": {},
        "ended": {},
    }
    return BranchState({**state.meta, **new}, state.tables)
