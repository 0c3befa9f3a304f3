"""Where the strands of a query come together: a branch without streams, which is told what they have found.

Strands tell the same moments, each of its own entries (`strands.py`), so a moment is what all of them tell of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anabranch.algebra.history.publishing import Published
from anabranch.branch.display.branch import DisplayMember, Given, ground_of
from anabranch.branch.display.findings import Told
from anabranch.branch.display.publishing import Showing
from anabranch.branch.display.strands import Braid
from anabranch.branch.document.resumed import Resumed
from anabranch.branch.ports import Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from anabranch.stream.tree import Element


class Braided:
    """A branch whose answer is on display, behind its strands."""

    def __init__(
        self, member: DisplayMember, roots: Mapping[str, Element], state: BranchState | None, given: Given, spill: Spill
    ) -> None:
        if state is not None and state.meta["operator"] != "display":
            raise StateError(f"the state of '{member.name}' is that of another kind of branch")
        self._member = member
        meta = None if state is None else state.meta
        ground = "braid", ground_of(member, roots, given)
        self._resumed = Resumed(
            lambda: Braid(member.query.query, roots, **member.settings(given), display=Published),
            ground,
            None if meta is None else meta["layers"],
            spill,
        )
        self._machine = self._resumed.machine
        self._machine.call(given.functions)
        self._showing = Showing(self._machine, member.out, meta)
        self.aborted: dict[str, str] = {}

    def take(self, told: Iterable[Told], *, finished: bool) -> None:
        """What all strands tell of some moments; `finished` says that none will follow."""
        moments: dict[int, list[Told]] = {}
        for each in told:
            moments.setdefault(each.moment, []).append(each)
        for moment in sorted(moments):
            self._showing.show(self._machine.put_together(moments[moment]))
        if finished and (error := self._machine.failure) is not None:
            self.aborted[self._member.key] = error.message

    def save(self) -> BranchState:
        """What must be remembered; the epoch is over."""
        return BranchState(self._showing.save(self._resumed, self.held), {})

    @property
    def held(self) -> int:
        """How many entries it knows the places of."""
        return sum(len(each.by_number) for each in self._machine.kept.values())

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs."""
        return self._resumed.refs
