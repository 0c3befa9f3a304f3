"""The branch that reads windows of another trunk: they are the panes of its own windows.

Windows come by ascending numbers, each when it is complete, and marks report the progress where none comes
(`lines.py`); so a window of windows is complete when a line or mark has come that is behind its last part.
From there on it is a window query like others (`branch/panes/panes.py`): larger windows are sent on, or a query is
answered with their values in place of its aggregates.
A stream of windows has one partition, so nothing has to be merged.

Events of the stream that the windows are made of come between them (LAWS 4).
Windows that are complete by then are answered before an event is heard, and the follower is that of the query over the
stream itself: so accents come out, and results change their units, as where the stream is read.

A window that fails is set aside like one that was made here, with the same reason and code; the place of its first item
is not sent, so the dead letter shows the line of its first part, or of the first part that failed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from anabranch.aggregates.partial import ItemAt
from anabranch.algebra.accents.events import Announced
from anabranch.branch.evolution.changelog import Changelog
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.entries import EntryReader, FeedOrigin, RawEntry, cuts, unpack
from anabranch.branch.members import BranchMember
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.state import pack
from anabranch.branch.panes.state import unpack as unpack_states
from anabranch.branch.ports import InputStream
from anabranch.branch.remote.lines import (
    EVENT,
    UNKNOWN_ORDER,
    EndedMark,
    EventMark,
    FromMark,
    LineReader,
    Mark,
    NoLine,
    ReachedMark,
    SentWindow,
    read_line,
)
from anabranch.branch.remote.making import SentWindows
from anabranch.branch.remote.queries import SentQuery
from anabranch.branch.state import BranchState
from anabranch.columnar.panes.rows import Pane
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.evolution.follower import Follower
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Item


class SentWindowBranch:
    """A branch over windows, for one epoch."""

    def __init__(
        self,
        member: BranchMember[SentQuery],
        stream: InputStream,
        state: BranchState | None,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
    ) -> None:
        self._member = member
        self._query = member.query
        self._stream = stream
        self._reader = EntryReader(stream)
        self._lines = LineReader(member.query.layout, member.query.places)
        self._begun: bool = state is not None and state.meta["begun"]
        """Whether the first window is known."""
        self._ended: str | None = None
        """Why it ends after the windows so far."""
        self.aborted: dict[str, str] = {}
        plan = member.query.plan
        made = PaneWindows if plan.sending is None else SentWindows
        # windows are reached by their numbers, and `from` tells the first
        counted = replace(stream, source=replace(stream.source, slack=Fraction(0), origin=Fraction(0)), late=True)
        events = None if state is None else state.meta.get("events")
        self._log = Changelog() if events is None else Changelog.from_json(events)
        """The events so far."""
        self._follower: Follower | None = None
        before = None if state is None else unpack_states(state, member.name)[0]
        if before is not None:
            before.rows.orders[before.rows.firsts < 0] = UNKNOWN_ORDER
        self._windows = made(plan, member.name, counted, before, member.out, functions, documents)
        for each in self._log.entries:
            assert isinstance(each, Announced), "windows are reached by their marks"
            self._following().hear(each)

    # --- what comes in ------------------------------------------------------------------------------------

    def feed(self, *feeds: bytes) -> None:
        """Add packed feeds, in stream order."""
        for each in feeds:
            if not self.aborted:
                self._feed(each)

    def _feed(self, data: bytes) -> None:
        origin, table = unpack(data)
        raws: list[bytes] = table.column("raw").to_pylist()
        events = [at for at, raw in enumerate(raws) if raw.startswith(EVENT.encode())]
        for begin, end in pairwise(sorted({0, *events, *(at + 1 for at in events), len(raws)})):
            if self._ended is None and not self.aborted:
                self._take(origin, table.slice(begin, end - begin), raws[begin:end])

    def _take(self, origin: FeedOrigin, table: pa.Table, raws: list[bytes]) -> None:
        """Take windows and marks, or an event alone."""
        plain = self._lines.plain(raws)
        others = np.delete(np.arange(len(raws)), plain.at)
        odd: list[tuple[int, Pane]] = []
        for at, cut in zip(others.tolist(), cuts(table.take(others)), strict=True):
            odd += self._other(self._windows.order + at, RawEntry(origin, cut))
        rows = plain.rows
        if self._query.plan.tells_firsts:
            starts = table.column("start").to_pylist()
            firsts = [ItemAt(origin.file, starts[at], _shown(raws[at])) for at in plain.at]
            rows = plain.told(firsts, [self._windows.order + at for at in plain.at])
        places, panes = self._query.tiling.placed(plain.numbers)
        if len(plain) and self._may_begin(f"{origin.file} at byte {table.column('start')[plain.at[0]]}"):
            self._reach(int(plain.numbers[-1]) + 1)
        self._windows.gather(replace(rows.at(places), panes=panes), odd, len(raws))

    def _other(self, order: int, entry: RawEntry) -> list[tuple[int, Pane]]:
        """Apply an entry that is no window with plain numbers; gives its panes."""
        raw = _shown(entry.cut.raw)
        match self._reader.read(entry):
            case Item(tree, place):
                try:
                    return self._line(
                        read_line(tree, self._query.layout), ItemAt(place.partition, place.offset, raw), order
                    )
                except NoLine as error:
                    self._member.out.bury(DeadLetter(place, f"no window of this flow: {error}", raw))
            case Accent(place=place):
                what = f"stream '{self._stream.name}' carries an accent ({place})"
                self._ended = self._ended or f"{what}, and windows that travel have none"
            case _:
                pass  # marks say what happens in the stream that the windows are made of
        return []

    def _line(self, line: SentWindow | Mark, first: ItemAt, order: int) -> list[tuple[int, Pane]]:
        if self._ended is not None:
            return []
        match line:
            case EndedMark(reason):
                self._ended = reason
            case EventMark(announced):
                self._hear(announced)
            case FromMark(number):
                self._begun = True
                self._windows.begin(self._query.tiling.first(number))
            case ReachedMark(None):
                self._windows.reach(0, math.inf)
            case ReachedMark(int(number)):
                self._reach(number)
            case SentWindow(number, partials) if self._may_begin(f"{first.file} at byte {first.offset}"):
                self._reach(number + 1)
                pane = Pane(order, first, tuple(partials[each] for each in self._query.places))
                _, panes = self._query.tiling.placed(np.array([number]))
                return [(each, pane) for each in panes.tolist()]
            case _:
                pass
        return []

    def _hear(self, announced: Announced) -> None:
        """Follow an event of the stream; the windows before it have been taken in."""
        self._windows.close()
        follower = self._following()
        event = replace(announced, stream=follower.lineage.streams[0][0])
        if isinstance(self._windows, SentWindows):
            self._windows.pass_on((), event)
            if isinstance(event.event, DeadLetter):
                return  # windows that are sent go on when a path is in doubt
        accents = follower.hear(event)
        if follower.aborted is not None:
            self._ended = follower.aborted
            return
        self._windows.tell(accents)
        for each in follower.purges:
            self._windows.forget(each.path)
        if self._log.add(event, let_out=bool(accents)):
            self._log.thin()

    def _following(self) -> Follower:
        """The follower of its query, from its first event on."""
        if self._follower is None:
            lineage = self._query.plan.followed
            streams = {name: self._stream.source for names in lineage.streams for name in names}
            self._follower = Follower(lineage, self._member.policy, streams)
            self._windows.follow(self._follower.outlet)
        return self._follower

    def _may_begin(self, place: str) -> bool:
        """Whether the first window is known; a subscription that missed its mark began too late, and ends."""
        if not self._begun:
            reason = f"the windows of stream '{self._stream.name}' had begun before ({place})"
            self.aborted[self._member.key] = reason
        return self._begun

    def _reach(self, number: int) -> None:
        self._windows.reach(0, Fraction(self._query.tiling.reached(number)))

    def passed(self, time: Fraction) -> None:
        """Ignore the time: windows have none."""

    def end(self, stream: str, partition: int) -> None:
        """End the stream: all windows are complete, but for count windows, which have to be full (LAWS 3.3)."""
        if self._query.plan.query.is_timed:
            self._windows.end_of(partition)

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """Answer complete windows; gives the state after the epoch."""
        if self.aborted:
            return None
        self._windows.close()
        if self._ended is not None:
            if isinstance(self._windows, SentWindows):
                self._windows.end(self._ended)
            self.aborted[self._member.key] = self._ended
            return None
        state = pack({0: self._windows.save()})
        return BranchState({**state.meta, "begun": self._begun, "events": self._log.to_json()}, state.tables)

    @property
    def held(self) -> int:
        """The number of panes in its state."""
        return self._windows.held

    @property
    def waiting(self) -> dict[Key, int]:
        """Nothing waits for another input."""
        return {}

    @property
    def spilled(self) -> tuple[str, ...]:
        return ()


def _shown(raw: bytes) -> str:
    """A line as shown in a dead letter."""
    return raw.decode(errors="replace")[:LONGEST_RAW]
