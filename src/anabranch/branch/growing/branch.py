"""A query over streams that only grow as a branch whose answer is on display (LAWS 3.11).

Elements come in the order of LAWS 1.2 (`intake/merge.py`); behind each of them the display is what the query would
answer if the input ended there, except that windows close only as they would in the stream.
Where a stream evolves, items are read in the units of query start, and the answer stays in them, as does that of a
query that waits for the end (`branch/blocking.py`); an accent that the query cannot survive ends it.
A late branch sees the stream as if it began with its first element (LAWS 3.6).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

from anabranch.branch.display.branch import BranchContext
from anabranch.branch.display.publishing import DisplayPublisher
from anabranch.branch.document.layers import Resumed
from anabranch.branch.evolution.following import Absorbing, Following
from anabranch.branch.growing.items import TakenItem
from anabranch.branch.growing.machine import GrowingDisplay
from anabranch.branch.growing.split import GrowingQuery
from anabranch.branch.growing.windows import WindowLoop
from anabranch.branch.intake.merge import Changed, Merged, Released, StreamSignal
from anabranch.branch.members import BranchMember
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from anabranch.law.answer import reason_of
from anabranch.stream.elements import Place
from anabranch.stream.serialize import serialize


class GrowingBranch(Merged):
    """A branch that shows the answer to the items that have come so far."""

    def __init__(
        self,
        member: BranchMember[GrowingQuery],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: BranchContext,
        spill: Spill,
    ) -> None:
        self._member = member
        super().__init__((inputs[name] for name in member.query.streams), spill)
        if state is not None and "loops" not in state.meta:
            raise StateError(f"the state of '{member.name}' is that of another kind of branch")
        meta = None if state is None else state.meta
        self._resumed = Resumed(
            lambda: self._fresh(inputs, given),
            self._ground(inputs, given),
            None if meta is None else meta["layers"],
            spill,
        )
        self._machine = self._resumed.machine
        self._machine.call(given.functions)
        self._versions = dict(given.versions)
        self._seen = self._versions if meta is None else meta.get("documents", {})
        """The versions of the documents that the display was computed with."""
        self._machine.consult(given.documents, changed=self._seen != self._versions)
        self._loops = {
            id: WindowLoop(standing, member, inputs, given.functions, given.documents)
            for id, standing in self._machine.loops.items()
        }
        self._showing = DisplayPublisher(self._machine, member.out, meta)
        self._may_end = bool(self._loops) and not all(each.endless for each in inputs.values())
        """Whether windows may close because inputs end; what they give belongs to the moment of the last element."""
        self._following = Following([Absorbing.of(member, given.functions)], self._merge, lambda: self._taken)
        self._taken = 0
        self._now = Fraction(0)
        self._ended: str | None = None
        self.aborted: dict[str, str] = {}
        if state is None:
            self._following.begin()
            self._check_following()
        else:
            self._restore(state)

    def _fresh(self, inputs: Mapping[str, InputStream], given: BranchContext) -> GrowingDisplay:
        member = self._member
        query = member.query.query
        around = given.around(member.name, query, member.query.text)
        return GrowingDisplay(query, inputs, display=given.display(query), **around)

    def _ground(self, inputs: Mapping[str, InputStream], given: BranchContext) -> Any:
        """What the machine depends on beside its state, but for functions and documents, which it is given anew."""
        written = [(name, serialize(each.root)) for name, each in inputs.items()]
        query = self._member.query
        return "growing", self._member.name, query.text, written, given.form(query.query), given.limits

    # --- what comes in ------------------------------------------------------------------------------------

    def _run(self) -> None:
        for each in self._merge.released():
            if self._ended is not None:
                continue
            if not isinstance(each, StreamSignal) or each.punctuation is not None:
                self._showing.over(self._now)
            match each:
                case Released(entry, item, units):
                    origin = entry.origin
                    self._now = max(self._now, self._merge.sources[origin.stream, origin.partition].now)
                    time = self._merge.sources[origin.stream, origin.partition].now
                    came = self._machine.stream(origin.stream).came(entry, item, units, time, self._taken)
                    for loop in self._loops.values():
                        loop.item(came, item)
                    self._taken += 1
                    self._moment(item.place, (origin.stream, came))
                case StreamSignal(stream, partition, punctuation):
                    for loop in self._loops.values():
                        loop.signal(each)
                        if punctuation is None and self._has_ended(loop.streams):
                            loop.finish()
                    self._following.signal(each)
                    self._pass(stream.name, partition, Place("", "", 0) if punctuation is None else punctuation.place)
                case Changed(stream, partition, change):
                    self._following.take(each)
                    self._pass(stream.name, partition, change.place)
                case _:
                    raise AssertionError(each)

    def _has_ended(self, streams: Collection[str]) -> bool:
        return all(source.ended for (name, _), source in self._merge.sources.items() if name in streams)

    def _pass(self, stream: str, partition: int, place: Place) -> None:
        """Handle an element that is no item: time moves, windows may close, and an accent may have ended the query."""
        self._check_following()
        if self._ended is None:
            self._now = max(self._now, self._merge.sources[stream, partition].now)
            self._moment(place)

    def _check_following(self) -> None:
        reason = self._following.aborted.get(self._member.key)
        if reason is not None and self._ended is None:
            self._ended = self.aborted[self._member.key] = reason

    def _moment(self, place: Place, came: tuple[str, TakenItem] | None = None) -> None:
        found = {id: loop.drained() for id, loop in self._loops.items()}
        self._showing.show(self._machine.moment(self._now, place, came, found), goes_on=self._may_end)
        self._check_load()

    def _check_load(self) -> None:
        """End the query behind a moment with which it holds too much (LAWS 2.9); that moment is shown."""
        caps = self._member.caps
        if caps.held is None or self._machine.load + sum(each.load for each in self._loops.values()) <= caps.held:
            return
        self._showing.over(self._now)
        self._ended = caps.why_held("nodes and entries of its display")
        if self._ended is not None:
            self.aborted[self._member.key] = self._ended

    def _finish(self) -> None:
        """A query that fails when all inputs have ended has no answer."""
        if self._ended is not None:
            return
        self._showing.over(self._now)
        if (error := self._machine.failure) is not None:
            self._ended = self.aborted[self._member.key] = reason_of(error)

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The state to save at the end of the epoch."""
        merge, waiting = self._merge.save()
        loops: dict[str, Any] = {}
        tables = {"waiting": waiting}
        for id, loop in self._loops.items():
            loops[id], found = loop.save()
            tables |= {f"{id} {name}": table for name, table in found.items()}
        meta = {
            **self._showing.save(self._resumed, self._machine.held),
            "merge": merge,
            "loops": loops,
            "following": self._following.save(),
            "taken": self._taken,
            "now": str(self._now),
            "ended": self._ended,
            "documents": self._seen if self._machine.is_behind else self._versions,
        }
        return BranchState(meta, tables)

    def _restore(self, state: BranchState) -> None:
        meta = state.meta
        self._merge.restore(meta["merge"], state.tables["waiting"])
        self._following.restore(meta["following"])
        self._taken, self._now, self._ended = meta["taken"], Fraction(meta["now"]), meta["ended"]
        for id, loop in self._loops.items():
            mine = {
                name.removeprefix(f"{id} "): table for name, table in state.tables.items() if name.startswith(f"{id} ")
            }
            loop.restore(meta["loops"][id], mine)

    @property
    def held(self) -> int:
        """How many items and windows it keeps something of, and how many items open windows hold."""
        return self._machine.held + sum(each.held for each in self._loops.values())

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs: also those of its layers."""
        return (*super().spilled, *self._resumed.refs)
