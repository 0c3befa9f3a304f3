"""The entries of a stream of updates, in their order, and how time changes them.

An *entry* is the unit of evaluation: a node below the root, or a chain there with all its versions, or
a mark at an end of a chain that is opened (`projection.py`).

Time alone changes what an entry shows, or which versions can still be asked for, only a qualifier's number of seconds
after a change in it.
So each entry keeps the times of its changes as long as they can matter, and a heap knows the next due time.

The state of an epoch (`state.py`) holds only changed entries; so all changes are recorded (`Unsaved`).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from anabranch.algebra.display.ordered import Ordered
from anabranch.branch.document.ids import KeptRegister
from anabranch.branch.document.judging import KeptAdmission
from anabranch.law.history.chains import Chain, Content, DocumentContents, DocumentMoment, Lived, Version, bare_element
from anabranch.sharing.retention import Lookbacks, Needs, Visibility, kept
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Element


@dataclass(eq=False, slots=True)
class DocumentEntry:
    """A child of the root, or a chain of children; None is a mark at an end of an opened chain."""

    content: Content | None
    opened: Chain | None = None
    """The chain that a mark belongs to."""
    marks: list[Fraction] = field(default_factory=list)
    """The times of its changes, as long as time may change what it shows because of them."""
    due: Fraction | None = None
    """When time alone may next change it."""


@dataclass(eq=False, slots=True)
class ChainPlace:
    """The place of a chain that is kept."""

    sight: Visibility
    """What the query sees of the element around it."""
    entry: int
    """Its entry; of an opened chain, the mark at its start."""
    inside: tuple[Chain, Version] | None = None
    """The version around it, except where chains around it are opened."""
    top: bool = False
    """Whether it stands among the entries, directly or in an opened chain."""
    end: int | None = None
    """The mark at the end of an opened chain."""
    is_unnamed: bool = False
    """Whether it has lost its last id."""

    @property
    def is_inner(self) -> bool:
        """Whether it stands in an entry and in no other region."""
        return self.inside is None and not self.top and self.end is None


@dataclass(eq=False, slots=True)
class Unsaved:
    """The changes since the state was last written."""

    first: int
    """The number of the next entry at that time."""
    entries: dict[int, None] = field(default_factory=dict)
    """Entries that were changed, added or removed."""
    removed: list[int] = field(default_factory=list)
    """Entries that existed then and were removed."""


@lru_cache(maxsize=256)
def _least_kept(need: Lookbacks) -> tuple[int, bool]:
    """How many versions are kept at any time, and whether more are for some time."""
    return 1 + max(reach.versions for reach in need), any(reach.seconds for reach in need)


class EntriesInOrder(Ordered[int, int]):
    """The entries by their numbers, in document order; mostly each came at the end, so numbers tell their order."""

    __slots__ = ("_greatest", "_is_by_number")

    def __init__(self) -> None:
        self._greatest, self._is_by_number = -1, True
        super().__init__(0)

    def precedes(self, one: int, other: int) -> bool:
        return one < other if self._is_by_number else super().precedes(one, other)

    def append(self, handle: int, value: int) -> None:
        self._came(handle, is_last=True)
        super().append(handle, value)

    def prepend(self, handle: int, value: int) -> None:
        self._came(handle, is_last=not len(self))
        super().prepend(handle, value)

    def insert_before(self, anchor: int, handle: int, value: int) -> None:
        self._came(handle, is_last=False)
        super().insert_before(anchor, handle, value)

    def insert_after(self, anchor: int, handle: int, value: int) -> None:
        self._came(handle, is_last=self._is_by_number and anchor == self.last)
        super().insert_after(anchor, handle, value)

    def _came(self, handle: int, *, is_last: bool) -> None:
        self._is_by_number = self._is_by_number and is_last and handle > self._greatest
        self._greatest = max(self._greatest, handle)


class DocumentEntries:
    """The entries of one stream in their order, the chains in them, and their due times."""

    def __init__(self, root: Element, stream: str, needs: Needs, limits: Limits | None = None) -> None:
        self.root = bare_element(root, dict(root.namespaces))
        """The root element, without content."""
        self.register = KeptRegister()
        self.admission = KeptAdmission(limits, self.register)
        self.now = Fraction(0)
        """The time of the latest element of the stream."""
        self.clock: Fraction | None = None
        """The time of the latest element of all streams of the query, as far as known here."""
        self.order = EntriesInOrder()
        """All entries by number, including marks, in document order."""
        self.by_number: dict[int, DocumentEntry] = {}
        self.changed: dict[int, tuple[Chain, ...] | None] = {}
        """The entries to be evaluated again, some of them removed; the evaluator clears it.

        Where nothing has changed but what some regions hold, these are named.
        """
        self.within: dict[int, tuple[Chain, ...]] = {}
        """Of the entries that are evaluated again now: the regions, where these are all that has changed."""
        self.held: dict[Chain, ChainPlace] = {}
        self.sight = Visibility.of(needs.streams[stream]).into(root.name.local)
        self._seconds = needs.seconds(stream)
        self._due: list[tuple[Fraction, int]] = []
        self._at = Fraction(0)  # the time of the current element; `now` may be later, by another partition
        self.next_number = 0
        self.next_version = 0
        self.moment = 0
        """The number of the moment that comes next; versions note it where the query evaluates something back."""
        self._notes_moments = needs.evaluates_back
        self.begun: DocumentMoment | None = None
        """The first moment, where moments are noted: nothing need have come at it that is kept."""
        self.unsaved = Unsaved(0)

    # --- versions -----------------------------------------------------------------------------------------

    @property
    def _noted(self) -> DocumentMoment | None:
        """The moment that what comes now is noted with; None where the query needs no moments."""
        if not self._notes_moments:
            return None
        return DocumentMoment(self.moment, self.now if self.clock is None else max(self.clock, self.now))

    def _end(self, held: ChainPlace) -> Fraction | None:
        """When the life of everything around a chain ended."""
        found: Fraction | None = None
        while held.inside is not None:
            chain, version = held.inside
            if chain.versions[-1] is not version:
                following = chain.versions[chain.versions.index(version) + 1]
                found = following.start if found is None else min(found, following.start)
            held = self.held[chain]
        return found

    def _trim(self, chain: Chain, held: ChainPlace) -> None:
        """Drop the versions that the query can never ask for again."""
        versions, need = chain.versions, held.sight.chains
        least, is_timed = _least_kept(need)
        extra = len(versions) - least
        if extra > 0 and is_timed:
            now = self.now if self.clock is None else max(self.clock, self.now)
            extra = len(versions) - kept(need, self._ends(chain, held), now)
        if extra == 1:
            self._forget(versions.pop(0).content[:])
        elif extra > 0:
            self._forget([each for version in versions[:extra] for each in version.content])
            del versions[:extra]

    def _free(self, chain: Chain) -> None:
        """Remove an unnamed region that shows nothing which can be asked for."""
        held = self.held.get(chain)
        if held is None:
            return
        held.is_unnamed = True
        if held.end is not None:
            self._leave(held.entry)
            self._leave(held.end)
        elif any(version.content for version in chain.versions):
            return
        elif held.top:
            self._leave(held.entry)
        else:
            chain.host.remove(chain)
            self._let_go(chain)
            self.unsaved.entries[held.entry] = None

    def _ends(self, chain: Chain, held: ChainPlace) -> list[Fraction | None]:
        """When the versions of a chain ended, newest first."""
        end = self._end(held)
        ends = [end]
        for following in reversed(chain.versions[1:]):
            start = following.start if following.moment is None else following.moment.now  # as what is evaluated back
            end = start if end is None else min(end, start)
            ends.append(end)
        return ends

    def _forget(self, content: list[Content]) -> None:
        """Drop content that can never be seen again; its ids stay known."""
        while content:
            each = content.pop()
            if isinstance(each, Lived):
                content += each.content
                continue
            self._let_go(each)
            content += [inner for version in each.versions for inner in version.content]
            each.versions, each.host = [], []

    def _let_go(self, chain: Chain) -> None:
        self.held.pop(chain, None)

    # --- entries ------------------------------------------------------------------------------------------

    def _enter(self, entry: DocumentEntry, *, before: int | None = None, after: int | None = None) -> int:
        """Add an entry, before or after another, or at the end; gives its number."""
        number = self.next_number
        self.next_number += 1
        self.by_number[number] = entry
        self.unsaved.entries[number] = None
        if before is not None:
            self.order.insert_before(before, number, 1)
        elif after is not None:
            self.order.insert_after(after, number, 1)
        else:
            self.order.append(number, 1)
        if entry.content is not None:
            self._touch(number, self._at)
        return number

    def _leave(self, number: int) -> None:
        entry = self.by_number.pop(number)
        self.order.remove(number)
        self.unsaved.entries[number] = None
        if number < self.unsaved.first:
            self.unsaved.removed.append(number)
        if entry.content is not None:
            self._forget([entry.content])
            self.changed[number] = None
        elif entry.opened is not None:
            self._let_go(entry.opened)

    def _touch(self, number: int, at: Fraction) -> None:
        """Record a change of an entry."""
        self.changed[number] = self.unsaved.entries[number] = None
        if not self._seconds:
            return
        entry = self.by_number[number]
        noted = self._noted
        for each in (at,) if noted is None or noted.now == at else (at, noted.now):
            if not entry.marks or entry.marks[-1] != each:
                entry.marks.append(each)
                self._schedule(number, entry, [each])

    # --- time ---------------------------------------------------------------------------------------------

    def moved(self, now: Fraction) -> None:
        """Advance the time: expired versions are dropped, and their entries evaluated again."""
        since, self.clock = self.clock, now
        while self._due and self._due[0][0] <= now:
            due, number = heapq.heappop(self._due)
            entry = self.by_number.get(number)
            if entry is None or entry.due != due:
                continue
            self._fall_due(number, entry.marks, since, now)
            entry.marks = [each for each in entry.marks if each + self._seconds[-1] > now]
            entry.due = None
            self._schedule(number, entry, entry.marks)
            self.changed[number] = self.unsaved.entries[number] = None
            for chain in list(self._chains(entry)):
                if chain in self.held:  # its surroundings may have been removed
                    self._trim(chain, self.held[chain])
                    if self.held[chain].is_unnamed:
                        self._free(chain)

    def _fall_due(self, number: int, marks: Sequence[Fraction], since: Fraction | None, now: Fraction) -> None:
        """Called when time alone has changed an entry, whose latest changes were at these times."""

    def remind(self, number: int, marks: list[Fraction]) -> None:
        """Set the change times of a restored entry."""
        entry = self.by_number[number]
        entry.marks = marks
        self._schedule(number, entry, marks)

    def _schedule(self, number: int, entry: DocumentEntry, marks: Sequence[Fraction]) -> None:
        dues = (mark + seconds for mark in marks for seconds in self._seconds)
        due = min((each for each in dues if self.clock is None or each > self.clock), default=None)
        if due is not None and (entry.due is None or due < entry.due):
            entry.due = due
            heapq.heappush(self._due, (due, number))

    def _chains(self, entry: DocumentEntry) -> Iterator[Chain]:
        """All chains in an entry, inner ones after those around them."""
        pending: list[Content] = [] if entry.content is None else [entry.content]
        while pending:
            match pending.pop():
                case Lived(content=inner):
                    pending += inner
                case Chain() as chain:
                    yield chain
                    pending += [each for version in chain.versions for each in version.content]

    # --- saved state --------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """The number of changes since `settled`."""
        return len(self.unsaved.entries) + self.register.changes

    def settled(self) -> None:
        """All changes are written."""
        self.unsaved = Unsaved(self.next_number)
        self.register.settled()

    def place(self, number: int, previous: int | None) -> None:
        """Place a restored entry behind another, or at the front."""
        if previous is None:
            self.order.prepend(number, 1)
        else:
            self.order.insert_after(previous, number, 1)

    def discard(self, number: int) -> DocumentEntry | None:
        """Remove an entry without its place, as if it had never existed; gives it."""
        entry = self.by_number.pop(number, None)
        for chain in () if entry is None else list(self._chains(entry)):
            self.held.pop(chain, None)
            chain.versions, chain.host = [], []
        return entry

    def take_changed(self) -> list[int]:
        """The entries that are to be evaluated again now, in the order of evaluation."""
        self.within = {number: regions for number, regions in self.changed.items() if regions is not None}
        found = self.in_turn(self.changed) if len(self.changed) > 1 else list(self.changed)
        self.changed.clear()
        return found

    def in_turn(self, numbers: Iterable[int]) -> list[int]:
        """Entries in order of evaluation: first the removed ones, then by number."""
        return sorted(numbers, key=lambda number: (number in self.by_number, number))

    def numbers(self) -> Iterator[int]:
        """All entries without marks, unordered."""
        return (number for number, entry in self.by_number.items() if entry.content is not None)

    # --- for evaluation -----------------------------------------------------------------------------------

    def some(self, numbers: Collection[int]) -> DocumentContents:
        """The document with some entries."""
        return self._contents(sorted(numbers, key=self.order.before) if len(numbers) > 1 else numbers)

    def whole(self) -> DocumentContents:
        """The document with all entries."""
        return self._contents(self.order)

    def _contents(self, numbers: Iterable[int]) -> DocumentContents:
        found = (self.by_number[each].content for each in numbers)
        begun = () if self.begun is None else (self.begun,)
        return DocumentContents(self.root, [each for each in found if each is not None], begun)
