"""The present document of an update stream, kept once for all queries, including late ones (LAWS 3.6).

A keeper is a branch without a subscription.
It takes the elements of its stream in their order (LAWS 1.2) and applies the updates; it keeps the newest version of
every region, and the known ids.
It alone sets bad elements aside, once for all queries: updates of unknown regions, ids taken against LAWS 5.3, times
that run backwards.
Other readers of the stream judge by the same rules over the same elements, with the same result.

A late subscription starts from the keeper's document and backlog, and from the accents that the keeper has taken; its
document is in the units of the stream's beginning, and each value knows the map that has led there.
Where the stream is retained for a time only, an entry leaves the document with the element that shows that it has not
changed for so long; its ids stay known as if it were there.
Running queries have documents of their own, which this does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from anabranch.algebra.accents.events import Announced
from anabranch.branch.document.judging import PlainReplacement, Replacement, exact_time
from anabranch.branch.document.layers import Resumed, read_layers
from anabranch.branch.document.projection import KeptDocument, LateStart
from anabranch.branch.document.state import Data, decode, encode, rare_gc, without_gc
from anabranch.branch.evolution.begun import EditedStart, events_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Came, CameTogether, Changed, Merged
from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.branch.ports import InputStream, Output, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from anabranch.language import ast, parse
from anabranch.law.evolution.canonical import canonical
from anabranch.law.history.admission import UpdateAdmission
from anabranch.law.history.chains import Chain
from anabranch.law.history.timeline import time_of
from anabranch.law.history.units import bring
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import Needs
from anabranch.stream.elements import Accent, Item, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.serialize import serialize


class Keeper(Merged):
    """Keeps the document of one stream."""

    def __init__(
        self, stream: InputStream, state: BranchState | None, limits: Limits, out: Output, spill: Spill
    ) -> None:
        super().__init__([stream], spill, self)
        self._stream = stream
        self._out = out
        self.aborted: dict[str, str] = {}
        self._events: list[Announced] = []
        """The accents that it has taken, and what was left in doubt."""
        if state is not None:
            self._merge.restore(state.meta["merge"], state.tables["waiting"])
            self._events = events_of(state.meta.get("events", []))
            for each in self._events:
                self._merge.sources[each.stream, each.partition].vantage.take(each.event)
        kept = None if state is None else _layers(state, stream)
        ground = stream.name, serialize(stream.root), stream.source.retain, limits
        self._resumed = Resumed(lambda: _WholeStream(stream, limits), ground, kept, spill)
        self._kept = self._resumed.machine
        self._merge.measure({stream.name: self._kept.admission})

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of the next element; a bad one is set aside, for all."""
        admission = self._kept.admission
        at = good_time(admission, self._stream, key[1], element, arrived)
        if admission.dead:
            for letter in admission.dead:
                self._out.bury(letter)
            admission.dead.clear()
        return at

    def together(self, key: Key, updates: Sequence[UsualUpdate], first: int) -> Sequence[Replacement]:
        """The next updates that can be taken together; none are bad."""
        return self._kept.admission.together(updates, first, key[1])

    def reached(self, key: Key) -> Fraction:
        """The time that a partition has reached."""
        return self._kept.admission.reached(key[1])

    def _run(self) -> None:
        with rare_gc():
            for each in self._merge.released():
                if isinstance(each, CameTogether):
                    self._kept.accept_together(each.replacements, each.partition)
                elif isinstance(each, Came):
                    stream, partition, element, at, _ = each
                    if isinstance(element, Accent):
                        self._events.append(Announced(stream, partition, element))
                    self._kept.accept(element, at, partition)
                elif isinstance(each, Changed):
                    self._events.append(Announced(each.stream.name, each.partition, each.change))
            self._kept.catch_up()

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The state at the end of the epoch."""
        merge, waiting = self._merge.save()
        layers = self._resumed.save(self.held)
        events = [each.json for each in self._events]
        meta = {"operator": "keeper", "merge": merge, "layers": layers, "events": events}
        return BranchState(meta, {"waiting": waiting})

    @property
    def held(self) -> int:
        """The number of entries in the document."""
        return len(self._kept.by_number)

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state refers to, including its layers."""
        return (*super().spilled, *self._resumed.refs)


def document_of(state: BranchState, stream: InputStream, limits: Limits, spill: Spill) -> LateStart:
    """The document in a keeper's state, for a late subscription: in the units that hold for all items there."""
    kept = _WholeStream(stream, limits)
    with without_gc():
        kept.decode(*(each.data() for each in read_layers(_layers(state, stream), spill.read)))
    contents = kept.whole()
    if events := state.meta.get("events"):
        bring(contents.entries, EditedStart.behind(stream.source, events_of(events)).units)
    return LateStart(contents, kept.admission, kept.now)


def _layers(state: BranchState, stream: InputStream) -> Data:
    if state.meta["operator"] != "keeper":
        raise StateError(f"the state of the stream '{stream.name}' is that of another kind of branch")
    return state.meta["layers"]


def good_time(
    admission: UpdateAdmission, stream: InputStream, partition: int, element: StreamElement, arrived: Fraction | None
) -> Fraction | None:
    """The time of an element that is good after all those taken of its partition (LAWS 1.3); None for a bad one."""
    if element.at is not None and stream.source.updates:
        at = exact_time(element.at)
        return at if admission.judge(element, at, partition) is not None else None
    reached = admission.reached(partition)
    if element.at is not None:
        at = exact_time(element.at)
    else:
        evolution = admission.evolutions.get(partition)
        meant: StreamElement = element  # in a stream of updates times do not evolve
        if isinstance(element, Item) and evolution is not None and not stream.source.updates:
            meant = replace(element, tree=canonical(element.tree, evolution))
        at = time_of(meant, stream.source.time, reached if arrived is None else arrived)
    if not stream.source.updates:  # items may come out of order, without turning time back
        at = max(at, reached)
    return at if admission.judge(element, at, partition) is not None else None


class _WholeStream(KeptDocument):
    """The whole present stream, chain by chain."""

    def __init__(self, stream: InputStream, limits: Limits) -> None:
        super().__init__(stream.root, stream.name, _needs(stream.name), limits)
        self._opens = False
        self._stream = stream.name
        if stream.source.retain is not None:
            self._seconds = (stream.source.retain,)
        self._newest: dict[Chain, tuple[Replacement, int]] = {}
        """By region: the newest replacement that is not in the document yet, and the number of its version."""

    def accept(self, element: StreamElement, at: Fraction, partition: int) -> None:
        """Take an element; `catch_up` is to be called before the document is looked at.

        Only the newest version of a region is kept, so of its plain replacements only the last one is applied, unless
        the times of changes count, too.
        """
        admitted = self.admission.judge(element, at, partition)
        if not isinstance(admitted, PlainReplacement) or self._seconds:
            self.catch_up()
            for moment in self.take(element, at, partition):
                self.moved(moment)
            self.changed.clear()
            return
        self._move(at)
        self._newest[admitted.chain] = Replacement(admitted.chain, admitted.update, at), self.next_version
        self.next_version += 1
        self.admission.take(admitted, partition)
        self.clock = self._reached()

    def accept_together(self, replacements: Sequence[Replacement], partition: int) -> None:
        """Take updates that were judged together, as `accept` takes one."""
        if self._seconds:
            for each in replacements:
                self.accept(each.update, each.at, partition)
            return
        newest, number = self._newest, self.next_version
        for each in replacements:
            newest[each.chain] = each, number
            number += 1
        self.next_version = number
        self._move(each.at)  # times do not fall, so the last is the latest
        self.admission.times[partition] = each.at
        self.moment += len(replacements) - 1
        self.clock = self._reached()

    def catch_up(self) -> None:
        """Apply the newest replacements, each with the time and the number that it came with."""
        at, following = self._at, self.next_version
        for replacement, number in self._newest.values():
            self._at, self.next_version = replacement.at, number
            self._replace(replacement.chain, replacement.update, replacement.at)
        self._newest.clear()
        self.changed.clear()
        self._at, self.next_version = at, following

    def _touch(self, number: int, at: Fraction) -> None:
        self.by_number[number].marks.clear()  # only the latest change counts
        super()._touch(number, at)

    def moved(self, now: Fraction) -> None:
        """Advance the time: entries without a change for too long leave."""
        super().moved(now)
        for number in list(self.changed) if self._seconds else ():
            entry = self.by_number.get(number)
            if entry is not None and not entry.marks:
                self._leave(number)

    def encode(self, *, whole: bool) -> Data:
        """All of it, or the changes since `settled`."""
        return {"streams": {self._stream: encode(self, whole=whole)}}

    def decode(self, *several: Data) -> None:
        """Restore from `encode`."""
        for data in several:
            decode(self, self._stream, data["streams"][self._stream])


@lru_cache(maxsize=64)
def _needs(stream: str) -> Needs:
    """The needs of a query that copies the whole present stream."""
    return needs_of(replace(parse('stream("any")'), body=ast.Source("stream", stream)))
