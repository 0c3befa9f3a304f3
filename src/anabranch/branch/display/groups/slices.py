"""Results in an interval of places, kept up to date: which results enter the interval, and which leave it.

A result that comes or goes moves all behind it by one place, so at each border of the interval one result enters and
one leaves, however many there are (`SlicedResults`).

Over entries that are never edited, a result that has left the first k never comes back, so only the first k are kept:
the ten greatest of a stream are ten rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from anabranch.algebra.display.sorting import EntryPlaces, ResultId, SortedResults
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.parts import PlaceInterval
from anabranch.branch.display.stages import EachStage, EntrySource, Finding, ShownResult
from anabranch.branch.document.state import read_rank, write_rank
from anabranch.language import ast
from anabranch.law.evaluate import ResultRow
from anabranch.values.atomic import OrderRank

P = TypeVar("P")


class RankedResult(NamedTuple, Generic[P]):
    """A result, with its ranks in the order that the query asks for."""

    ranks: tuple[OrderRank, ...]
    result: P


@dataclass(slots=True)
class Moves:
    """The changes of an interval, to be applied in this order: results that left it, entered it, or were edited.

    A result that enters comes with the result behind it, which is there already, or None for the end of the interval.
    """

    left: list[ResultId] = field(default_factory=list)
    entered: list[tuple[ResultId, ResultId | None]] = field(default_factory=list)
    edited: list[ResultId] = field(default_factory=list)


class SlicedResults(SortedResults):
    """Results in their order, of which an interval is seen."""

    def __init__(self, entries: EntryPlaces, descending: Sequence[bool], interval: PlaceInterval) -> None:
        super().__init__(entries, descending)
        self._interval = interval

    def seen(self) -> Iterator[ResultId]:
        """The results in the interval, in their order."""
        first, end = self._interval.of(len(self))
        return (self.at(place) for place in range(first, end))

    def enter(self, thing: ResultId, ranks: Sequence[OrderRank]) -> Moves:
        """Add a result."""
        first, end = self._interval.of(len(self))
        self.put(thing, ranks)
        at = self.place(thing)
        return self._moved(first + (at <= first), end + (at < end), at)

    def leave(self, thing: ResultId) -> Moves:
        """Remove a result."""
        first, end = self._interval.of(len(self))
        at = self.place(thing)
        self.remove(thing)
        moves = self._moved(first - (at < first), end - (at < end), None)
        if first <= at < end:
            moves.left.insert(0, thing)
        return moves

    def move(self, thing: ResultId, ranks: Sequence[OrderRank]) -> Moves:
        """Replace a result by one with other ranks."""
        first, end = self._interval.of(len(self))
        before = self.place(thing)
        self.remove(thing)
        self.put(thing, ranks)
        at = self.place(thing)
        was_seen = first <= before < end
        first, end = first - (before < first), end - (before < end)
        moves = self._moved(first + (at <= first), end + (at < end), at)
        if was_seen:
            moves.left.insert(0, thing)
        return moves

    def surplus(self) -> ResultId | None:
        """Remove and return a result beyond the end of the interval, which no later result can bring back into it."""
        assert self._interval.end is not None
        if len(self) <= self._interval.end:
            return None
        thing = self._order.first if self._interval.is_from_back else self._order.last
        assert thing is not None
        self.remove(thing)
        return thing

    def _moved(self, first: int, end: int, new: int | None) -> Moves:
        """The changes, where the interval had the results from `first` to `end`, but for the one at the place `new`."""
        now, until = self._interval.of(len(self))
        if first >= end:
            first = end = now
            coming = list(range(now, until))
        else:
            coming = [*range(now, min(first, until)), *range(max(end, now), until)]
            coming += [new] if new is not None and first <= new < end and now <= new < until else []
        going = [*range(first, min(now, end)), *range(max(until, first), end)]
        moves = Moves([self.at(place) for place in going if place != new])
        for place in sorted(set(coming), reverse=True):
            moves.entered.append((self.at(place), self.at(place + 1) if place + 1 < until else None))
        return moves


class ResultSlice(Generic[P]):
    """The results of entries, of which an interval is seen; `forgets` says that entries are never edited, and
    that nobody else needs those that have left the interval for good."""

    def __init__(
        self, places: EntryPlaces, order: Sequence[ast.OrderKey], interval: PlaceInterval, *, forgets: bool
    ) -> None:
        self._places, self._descending, self._interval = places, tuple(key.descending for key in order), interval
        self._forgets = forgets and interval.end is not None
        self._arranged = SlicedResults(places, self._descending, interval)
        self._results: dict[int, dict[int, RankedResult[P]]] = {}
        self._recalled: dict[int, dict[int, RankedResult[P]]] = {}
        """The results that were restored and are not applied yet."""
        self._seen: set[ResultId] = set()
        self.forgotten: list[int] = []
        """The entries of which nothing is kept any more; the reader empties the list."""

    def __contains__(self, entry: int) -> bool:
        return entry in self._results

    def __getitem__(self, thing: ResultId) -> P:
        """A result."""
        entry, number = thing
        return self._results[entry][number].result

    def seen(self) -> list[P]:
        """The results in the interval, in their order."""
        return [self[thing] for thing in self._arranged.seen()]

    def take(self, entry: int, results: Sequence[RankedResult[P]]) -> Iterator[Moves]:
        """Replace the results of an entry; yields the changes of the interval, step by step."""
        yield from self._replace(entry, dict(enumerate(results)))
        while self._forgets and (surplus := self._arranged.surplus()) is not None:
            other, number = surplus
            del self._results[other][number]
            if not self._results[other]:
                del self._results[other]
                self.forgotten.append(other)

    def _replace(self, entry: int, results: dict[int, RankedResult[P]]) -> Iterator[Moves]:
        before = self._results.get(entry, {})
        self._results[entry] = {**before, **results}  # while some leave, others of the entry may enter
        for number in before.keys() - results.keys():
            yield self._noted(self._arranged.leave((entry, number)))
        if results:
            self._results[entry] = results
        else:
            del self._results[entry]
        for number, each in results.items():
            thing, known = (entry, number), before.get(number)
            if known is None:
                yield self._noted(self._arranged.enter(thing, each.ranks))
            elif known.ranks != each.ranks:
                yield self._noted(self._arranged.move(thing, each.ranks))
            elif known.result != each.result and thing in self._seen:
                yield Moves(edited=[thing])

    def _noted(self, moves: Moves) -> Moves:
        self._seen.difference_update(moves.left)
        self._seen.update(thing for thing, _ in moves.entered)
        return moves

    # --- state --------------------------------------------------------------------------------------------

    def remembered(self, entry: int, write: Callable[[P], Any]) -> Any:
        """What is kept of an entry, as plain data; None for nothing."""
        return [
            [number, [write_rank(rank) for rank in each.ranks], write(each.result)]
            for number, each in self._results.get(entry, {}).items()
        ] or None

    def recall(self, entry: int, data: Any, read: Callable[[Any], P]) -> None:
        """Restore what was kept of an entry; None for nothing."""
        if data or entry in self._results or entry in self._recalled:
            self._recalled[entry] = {
                number: RankedResult(tuple(map(read_rank, ranks)), read(written))
                for number, ranks, written in data or ()
            }

    def recalled(self) -> Iterator[Moves]:
        """Apply what was restored; yields the changes of the interval."""
        found, self._recalled = self._recalled, {}
        if self._results:
            for entry, several in sorted(found.items(), key=lambda each: bool(each[1])):  # removals first
                yield from self._replace(entry, several)
            return
        self._results = {entry: several for entry, several in found.items() if several}
        things = {
            (entry, number): each.ranks for entry, several in self._results.items() for number, each in several.items()
        }
        self._arranged.fill(things)
        yield self._noted(Moves(entered=[(thing, None) for thing in self._arranged.seen()]))


class SlicedStage(EachStage):
    """Some results by their places: a region of the display for each."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        entrywise: EntrySource,
        places: EntryPlaces,
        order: Sequence[ast.OrderKey],
        interval: PlaceInterval,
    ) -> None:
        super().__init__(id, site, scope, entrywise, places, order)
        self._slice: ResultSlice[ShownResult] = ResultSlice(places, order, interval, forgets=entrywise.may_forget)

    def find(self, changed: Changed) -> Iterator[Finding]:
        for entry in self._entrywise.again(changed):
            single = [ResultRow(row.ranks, [value]) for row in self._entrywise.rows(entry) for value in row.values]
            yield Finding(self.id, entry, tuple(self._results_of(entry, single)))

    def take(self, finding: Finding) -> None:
        results = [RankedResult(each.ranks, each) for each in finding.value]
        for moves in self._slice.take(finding.entry, results):
            self._move(moves)

    def _move(self, moves: Moves) -> None:
        display = self.site.display
        for thing in moves.left:
            display.delete(self._name(thing))
        for thing, behind in moves.entered:
            anchor = self.id if behind is None else self._name(behind)
            display.region(self._name(thing), (self._slice[thing].piece,), before=anchor)
        for thing in moves.edited:
            display.rewrite(self._name(thing), (self._slice[thing].piece,))

    def forgotten(self) -> Collection[tuple[str, int]]:
        found, self._slice.forgotten = self._slice.forgotten, []
        return [(self._entrywise.stream, entry) for entry in found]

    def keeps(self, stream: str, entry: int) -> bool:
        return stream == self._entrywise.stream and entry in self._slice

    def remembered(self, stream: str, entry: int) -> Any:
        known = self._entrywise.remembered(stream, entry)
        own = stream == self._entrywise.stream
        results = self._slice.remembered(entry, lambda each: self.write((each,))[0]) if own else None
        return None if known is None and results is None else [known, results]

    def recall(self, stream: str, entry: int, data: Any) -> None:
        known, written = data or (None, None)
        self._entrywise.recall(stream, entry, known)
        if stream == self._entrywise.stream:
            self._slice.recall(entry, written, lambda each: self.read((each,))[0])

    def recalled(self) -> None:
        for moves in self._slice.recalled():
            self._move(moves)
