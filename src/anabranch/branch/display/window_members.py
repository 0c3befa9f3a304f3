"""Which windows of a document that is edited hold what, kept up to date (LAWS 5.10).

The nodes that a windowed `for` selects are *members* of windows, each by its entry and its place among the members of
that entry.
When an entry changes, its members are replaced, and the windows that lose or gain one are *touched*; nothing else is
looked at:

* time windows follow from the value of a member alone;
* sessions are runs of neighbouring values, so a change concerns the runs around it;
* count windows follow from the places of members in the document; what changes their number moves all behind it.

A window has a number, which is its identity as long as it is there: that of a session is the number of its first
member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, Protocol, TypeAlias

from anabranch.algebra.display.ordered import Ordered
from anabranch.algebra.window import Extent
from anabranch.law.rounds.windows import SessionKey
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.placing import Moment


class DocumentOrder(Protocol):
    """The order of the entries of a document, which others keep up to date."""

    def precedes(self, one: int, other: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class WindowMember:
    """A node in windows: its place among them, and its part of their aggregates, as plain data."""

    value: Fraction
    """Its reference value, a `Moment` where it is a time."""
    session: SessionKey = None
    group: tuple[Any, ...] = ()
    """The keys of its group, written; nothing where windows are not grouped."""
    shares: tuple[Any, ...] | None = None
    """Its share in each aggregate; None where it has none, and its windows have to be evaluated with their content."""
    is_grouped: bool = True
    """Whether it is in any group: it fulfils the condition in front of the `group by`."""

    def write(self) -> Any:
        """The member as plain data."""
        shares = None if self.shares is None else list(self.shares)
        is_time = isinstance(self.value, Moment)
        return [write_fraction(self.value), is_time, self.session, list(self.group), shares, self.is_grouped]

    @staticmethod
    def read(data: Any) -> WindowMember:
        """The member that `write` has written."""
        value, is_time, session, group, shares, is_grouped = data
        number = read_fraction(value)
        keys = tuple(None if each is None else tuple(each) for each in group)
        told = None if shares is None else tuple(shares)
        return WindowMember(Moment(number) if is_time else number, session, keys, told, is_grouped)


MemberId: TypeAlias = tuple[int, int]
"""A member: its entry, and its number among the members of that entry."""


@dataclass(slots=True, eq=False)
class HeldWindow:
    """A window that holds members."""

    number: int
    start: Fraction
    end: Fraction
    place: tuple[Any, ...]
    """Where it stands among the windows: of a session its end and its first member, of others their number."""
    members: dict[MemberId, WindowMember] = field(default_factory=dict)
    times: int = 0
    """How many of them have a time as their value."""


class WindowListener(Protocol):
    """Is told which members come into windows and leave them."""

    def add(self, window: HeldWindow, id: MemberId, member: WindowMember) -> None: ...

    def drop(self, window: HeldWindow, id: MemberId, member: WindowMember) -> None: ...


class WindowMembers(ABC):
    """The windows of some members; `listener` is told of each change."""

    def __init__(self, order: DocumentOrder, listener: WindowListener) -> None:
        self._order, self._listener = order, listener
        self.by_entry: dict[int, tuple[WindowMember, ...]] = {}
        self.windows: dict[int, HeldWindow] = {}
        self._touched: dict[int, None] = {}

    def replace(self, entry: int, members: tuple[WindowMember, ...], *, again: bool) -> None:
        """Replace the members of an entry; with `again`, its windows are touched also where these are the same."""
        before = self.by_entry.pop(entry, ())
        if members:
            self.by_entry[entry] = members
        if before != members or again:
            self._replace(entry, before, members)

    def touch_all(self) -> None:
        """Touch all windows, whatever they hold."""
        self._touched.update(dict.fromkeys(self.windows))

    @abstractmethod
    def _replace(self, entry: int, before: Sequence[WindowMember], members: Sequence[WindowMember]) -> None: ...

    def settle(self) -> list[int]:
        """End a moment: the windows that were touched; those that are gone are in `windows` no more."""
        self._settle()
        touched, self._touched = list(self._touched), {}
        for number in touched:
            if number in self.windows and not self.windows[number].members:
                del self.windows[number]
        return touched

    def _settle(self) -> None:  # noqa: B027  # most windows follow from each member alone
        """Find the members of windows that do not follow from each member alone."""

    def _add(self, window: HeldWindow, id: MemberId, member: WindowMember) -> None:
        window.members[id] = member
        window.times += isinstance(member.value, Moment)
        self._listener.add(window, id, member)
        self._touched[window.number] = None

    def _drop(self, window: HeldWindow, id: MemberId) -> None:
        member = window.members.pop(id)
        window.times -= isinstance(member.value, Moment)
        self._listener.drop(window, id, member)
        self._touched[window.number] = None

    def _fill(self, window: HeldWindow, members: dict[MemberId, WindowMember]) -> None:
        """Let a window hold these members; a member that is another one now comes anew."""
        for id in [each for each, member in window.members.items() if members.get(each) is not member]:
            self._drop(window, id)
        for id, member in members.items():
            if id not in window.members:
                self._add(window, id, member)
        self._touched[window.number] = None

    # --- order --------------------------------------------------------------------------------------------

    def member_precedes(self, one: MemberId, other: MemberId) -> bool:
        """Whether a member stands in front of another in the document."""
        return one[1] < other[1] if one[0] == other[0] else self._order.precedes(one[0], other[0])

    def first(self, members: Iterable[MemberId]) -> MemberId:
        """The first of some members in the document."""
        found: MemberId | None = None
        for each in members:
            if found is None or self.member_precedes(each, found):
                found = each
        assert found is not None, "there is a member"
        return found

    def in_order(self, members: Collection[MemberId]) -> list[MemberId]:
        """Some members as they stand in the document."""
        return sorted(members, key=cmp_to_key(self._compared))

    def _compared(self, one: MemberId, other: MemberId) -> int:
        return -1 if self.member_precedes(one, other) else 1

    def place_precedes(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        """Whether a place among the windows is before another."""
        return one < other


class TimeMembers(WindowMembers):
    """Time windows: `W_k` holds the members whose values it spans (LAWS 3.1)."""

    def __init__(self, order: DocumentOrder, listener: WindowListener, extent: Extent) -> None:
        super().__init__(order, listener)
        self._extent = extent

    def _replace(self, entry: int, before: Sequence[WindowMember], members: Sequence[WindowMember]) -> None:
        for at, each in enumerate(before):
            for k in self._extent.holding(each.value):
                self._drop(self.windows[_natural(k)], (entry, at))
        for at, each in enumerate(members):
            for k in self._extent.holding(each.value):
                self._add(self._window(k), (entry, at), each)

    def _window(self, k: int) -> HeldWindow:
        number = _natural(k)
        if number not in self.windows:
            self.windows[number] = HeldWindow(number, self._extent.start(k), self._extent.end(k), (k,))
        return self.windows[number]


class CountMembers(WindowMembers):
    """Count windows: full ones, by the places of members in the document (LAWS 3.3)."""

    def __init__(self, order: DocumentOrder, listener: WindowListener, extent: Extent) -> None:
        super().__init__(order, listener)
        self._size, self._step = int(extent.size), int(extent.step)
        self._places: Ordered[int, int] = Ordered(0)
        """The entries with members, with the numbers of these."""
        self._moved: list[range] = []
        """The places whose members have changed since the moment before."""

    def _replace(self, entry: int, before: Sequence[WindowMember], members: Sequence[WindowMember]) -> None:
        total, first = self._places.total, 0
        if before:
            first = self._places.before(entry)
            self._places.remove(entry)
        if members:
            behind = self._places.search(lambda other: self._order.precedes(entry, other))
            if behind is None:
                self._places.append(entry, len(members))
            else:
                self._places.insert_before(behind, entry, len(members))
            first = self._places.before(entry)
        if len(before) == len(members):
            self._moved.append(range(first, first + len(members)))
        else:
            self._moved.append(range(first, max(total, self._places.total)))

    def _settle(self) -> None:
        touched: set[int] = set()
        for places in self._moved:
            touched.update(range(max(0, (places.start - self._size) // self._step + 1), -(-places.stop // self._step)))
        self._moved = []
        for number in sorted(touched):
            start = number * self._step
            window = self.windows.get(number)
            if start + self._size > self._places.total:
                if window is not None:
                    self._fill(window, {})
                continue
            if window is None:
                window = HeldWindow(number, Fraction(start), Fraction(start + self._size), (number,))
                self.windows[number] = window
            self._fill(window, dict(self._between(start, start + self._size)))

    def _between(self, start: int, end: int) -> Iterator[tuple[MemberId, WindowMember]]:
        """The members from a place on, up to another."""
        found = self._places.reaching(start + 1)
        entry = None if found is None else found[0]
        place = start if entry is None else self._places.before(entry)
        while entry is not None and place < end:
            for at, each in enumerate(self.by_entry[entry]):
                if start <= place < end:
                    yield (entry, at), each
                place += 1
            entry = self._places.next(entry)


class SessionMembers(WindowMembers):
    """Sessions: runs of members of one key whose values are less than a gap apart (LAWS 3.9)."""

    def __init__(self, order: DocumentOrder, listener: WindowListener, gap: Fraction) -> None:
        super().__init__(order, listener)
        self._gap = gap
        self._values: dict[SessionKey, list[tuple[Fraction, MemberId]]] = {}
        """By key, the members in the order of their values."""
        self._session: dict[MemberId, int] = {}
        self._changed: dict[tuple[SessionKey, Fraction], None] = {}
        self._left: dict[int, None] = {}
        """The sessions that a member has left since the moment before."""

    def _replace(self, entry: int, before: Sequence[WindowMember], members: Sequence[WindowMember]) -> None:
        if self._stays(entry, before, members):  # only what it adds to its session is another
            for at, each in enumerate(members):
                window = self.windows[self._session[entry, at]]
                self._drop(window, (entry, at))
                self._add(window, (entry, at), each)
            return
        for at, each in enumerate(before):
            values = self._values[each.session]
            del values[bisect_left(values, (each.value, (entry, at)))]
            if not values:
                del self._values[each.session]
            self._changed[each.session, each.value] = None
            if (number := self._session.pop((entry, at), None)) is not None:
                self._left[number] = None
        for at, each in enumerate(members):
            insort(self._values.setdefault(each.session, []), (each.value, (entry, at)))
            self._changed[each.session, each.value] = None

    def _stays(self, entry: int, before: Sequence[WindowMember], members: Sequence[WindowMember]) -> bool:
        """Whether all members of an entry have the values and keys that they had, and are in sessions."""
        pairs = zip(before, members, strict=False)
        return (
            len(before) == len(members)
            and all(one.value == other.value and one.session == other.session for one, other in pairs)
            and all((entry, at) in self._session for at in range(len(members)))
        )

    def _settle(self) -> None:
        runs: dict[MemberId, list[tuple[Fraction, MemberId]]] = {}
        for key, value in self._changed:
            values = self._values.get(key, [])
            at = bisect_left(values, (value,))
            for near in (at - 1, at):
                if 0 <= near < len(values):
                    run = self._run(values, near)
                    runs.setdefault(run[0][1], run)
        old = dict(self._left)
        for run in runs.values():
            old |= dict.fromkeys(self._session[id] for _, id in run if id in self._session)
        self._changed, self._left = {}, {}
        found = {self._number(first := self.first(id for _, id in run)): (first, run) for run in runs.values()}
        for number in old:
            if number not in found:
                self._fill(self.windows[number], {})
        for number, (first, run) in found.items():
            start, end = run[0][0], run[-1][0] + self._gap
            window = self.windows.get(number)
            if window is None:
                window = self.windows[number] = HeldWindow(number, start, end, (end, first))
            window.start, window.end, window.place = start, end, (end, first)
            self._session.update((id, number) for _, id in run)
            self._fill(window, {id: self.by_entry[id[0]][id[1]] for _, id in run})

    def _run(self, values: Sequence[tuple[Fraction, MemberId]], at: int) -> list[tuple[Fraction, MemberId]]:
        """The members around one whose values are less than a gap apart."""
        first = last = at
        while first and values[first][0] - values[first - 1][0] < self._gap:
            first -= 1
        while last + 1 < len(values) and values[last + 1][0] - values[last][0] < self._gap:
            last += 1
        return list(values[first : last + 1])

    def _number(self, first: MemberId) -> int:
        """The number of a session by its first member: each pair of numbers has one of its own."""
        entry, at = first
        return (entry + at) * (entry + at + 1) // 2 + at

    def place_precedes(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        (end, first), (other_end, other_first) = one, other
        return end < other_end if end != other_end else self.member_precedes(first, other_first)


def _natural(k: int) -> int:
    """A number from 0 on for each whole number."""
    return 2 * k if k >= 0 else -2 * k - 1
