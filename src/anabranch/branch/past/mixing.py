"""Queries about the past that read streams of items and of updates together, as branches (LAWS 5.5).

As with items alone (`recalling.py`), there are two kinds.
Where one `for` runs over a stream of items, its rounds look at the documents as they are when the item arrives, and
their results stand.
Where items are read by asking for their past only, all is evaluated at the latest element, and corrected.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from anabranch.branch.display.branch import Given, begun_behind
from anabranch.branch.document.keeper import document_of, good_time
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Came, Changed
from anabranch.branch.past.answers import Memory
from anabranch.branch.past.mixture import NOWHERE, Mixture
from anabranch.branch.past.queries import RecalledMember
from anabranch.branch.past.recalling import REACHES_ROOT, Recalled
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.law.history.changed import Dependence
from anabranch.law.history.settings import Around
from anabranch.law.inputs import Arrival, element_time
from anabranch.law.slices import WholeNeeded
from anabranch.sharing.retention import beyond_entries
from anabranch.stream.elements import Accent, Item, Place, Punctuation, StreamElement


class Mixed(Recalled):
    """A branch that remembers items, and keeps documents."""

    def __init__(
        self,
        member: RecalledMember,
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        given: Given,
        spill: Spill,
    ) -> None:
        super().__init__(member, inputs, state, given, spill, self)
        self._depends = Dependence.of(member.query.query, {name: stream.time for name, stream in inputs.items()})
        for name, stream in inputs.items() if state is None else ():
            if not stream.updates and beyond_entries(self._depends.needs.streams[name], stream.root.name.local):
                self._abort(REACHES_ROOT)
        if state is None and (reason := begun_behind(self._depends, inputs)) is not None:
            self._abort(reason)
        if state is None and given.keepers and self._ended is None:
            for kept in given.keepers.values():
                self._merge.restore(kept.meta["merge"], kept.tables["waiting"])
            late = given.keepers.items()
            self._mixture.begin({name: document_of(kept, inputs[name], given.limits, spill) for name, kept in late})
            self._show(NOWHERE, None)

    def _remembering(self, given: Given) -> None:
        super()._remembering(given)
        asked = self._member.query
        around: Around = {
            "functions": given.functions,
            "inputs": given.documents,
            "name": self._member.name,
            "text": asked.text,
        }
        self._mixture = Mixture(asked, self._recollection, self._roots, given.limits, around)

    @property
    def _memory(self) -> Memory:
        return self._mixture

    # --- what comes in ------------------------------------------------------------------------------------

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of an element that is to be taken next; None for a bad one."""
        name, partition = key
        if name in self._mixture.edited:
            return good_time(self._mixture.edited[name], self._inputs[name], partition, element, arrived)
        assert isinstance(element, Item | Accent | Punctuation), "a stream of items has no others"
        now = self._merge.sources[key].now  # time does not run back with items that come out of order
        return max(now, element_time(element, self._inputs[name].time, now if arrived is None else arrived))

    def reached(self, key: Key) -> Fraction:
        """The time that an input has reached."""
        name, partition = key
        edited = self._mixture.edited.get(name)
        return self._merge.sources[key].now if edited is None else edited.reached(partition)

    def _run(self) -> None:
        for each in self._merge.released():
            match each:
                case _ if self._ended is not None:
                    pass
                case Came(stream, element=Accent() as accent) if reason := self._depends.ended_by(stream, accent):
                    self._abort(reason)
                case Came():
                    try:
                        self._come(each)
                    except WholeNeeded:
                        self._abort(REACHES_ROOT)
                case Changed(stream, change=change) if reason := self._depends.ended_by(stream.name, change):
                    self._abort(reason)
                case _:
                    pass
        for kept in self._mixture.edited.values():
            kept.dead.clear()  # they are told by whoever keeps the document

    def _come(self, came: Came) -> None:
        place = came.element.place
        if came.stream in self._mixture.edited:
            for _ in self._mixture.edit(came.stream, came.element, came.at, came.partition):
                self._show(place, None)
        elif isinstance(came.element, Item):
            arrival = self._arrival(came.entry, came.element, came.at, {})
            self._mixture.arrive(arrival)
            self._show(place, arrival)
        else:
            self._mixture.move(came.stream, came.element, came.at)
            self._show(place, None)

    def _show(self, place: Place, item: Arrival | None) -> None:
        self._merge.moved(self._mixture.now)
        self._answer.take(self._mixture, place, item)

    # --- between epochs -----------------------------------------------------------------------------------

    def _put_away(self) -> dict[str, Any]:
        return {**super()._put_away(), "edited": self._mixture.encode()}

    def _restore(self, state: BranchState) -> None:
        super()._restore(state)
        self._mixture.decode(state.meta["edited"])
        for arrival in self._recollection.arrivals:
            self._mixture.put(arrival)
