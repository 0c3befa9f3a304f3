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

from anabranch.branch.backlog import Key
from anabranch.branch.history.hosted import Given
from anabranch.branch.history.keeper import document_of, good_time
from anabranch.branch.merge import Came
from anabranch.branch.past.answers import Memory
from anabranch.branch.past.mixture import NOWHERE, Mixture
from anabranch.branch.past.queries import RecalledMember
from anabranch.branch.past.recalling import REACHES_ROOT, Recalled
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import State
from anabranch.reference.history.around import Around
from anabranch.reference.inputs import Arrival, element_time, refuse_control, refuse_regions
from anabranch.reference.slices import WholeNeeded
from anabranch.sharing.retention import beyond_entries, needs_of
from anabranch.stream.elements import Accent, Item, Place, Punctuation, StreamElement


class Mixed(Recalled):
    """A branch that remembers items, and keeps documents."""

    def __init__(
        self,
        member: RecalledMember,
        inputs: Mapping[str, InputStream],
        state: State | None,
        given: Given,
        spill: Spill,
    ) -> None:
        super().__init__(member, inputs, state, given, spill, self)
        needs = needs_of(member.query.query)
        for name, stream in inputs.items() if state is None else ():
            if not stream.updates and beyond_entries(needs.streams[name], stream.root.name.local):
                self._abort(REACHES_ROOT)
            if stream.starts is not None and any(each.shown for each in stream.starts()):
                self._abort(f"stream '{name}' has changed, and the past cannot follow beside a stream of updates yet")
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
        if isinstance(element, Accent):
            what = f"stream '{name}' has changed ({element.place})"
            self._abort(f"{what}, and the past cannot follow beside a stream of updates yet")
            return None
        if name in self._mixture.edited:
            return good_time(self._mixture.edited[name], self._inputs[name], partition, element, arrived)
        match element:
            case Item(tree, place):
                refuse_regions(tree, place)
            case Punctuation():
                pass
            case _:
                raise refuse_control(element)
        now = self._merge.sources[key].now  # time does not run back with items that come out of order
        return max(now, element_time(element, self._inputs[name].time, now if arrived is None else arrived))

    def _run(self) -> None:
        for each in self._merge.released():
            if isinstance(each, Came) and self._ended is None:
                try:
                    self._come(each)
                except WholeNeeded:
                    self._abort(REACHES_ROOT)
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

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self._mixture.decode(state.meta["edited"])
        for arrival in self._recollection.arrivals:
            self._mixture.put(arrival)
