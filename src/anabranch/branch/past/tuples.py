"""The tuples of a loop over items of the past, of which each is evaluated once (`loops.py` says why that is enough).

An item takes part on its side from its arrival until it is too old.
When one comes, it is put together with those items of the other sides that it can meet by the loop's condition
(`branch/display/joins/`), and each tuple is evaluated by the law over just these items.
Tuples stand in the order in which the loop runs: the newest items of its first `for` first, then those of the next.
A tuple that gives nothing is forgotten at once.

A dead letter is written when it was not there at the moment before, as one of the whole query would be.
An item in which a path fails has one as long as the loop comes to look at it, which takes an item on each side before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any, TypeAlias

from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.joins.keys import Keyed
from anabranch.branch.display.joins.ranges import SortedKeys, keys_by, meeting_by
from anabranch.branch.display.stages import Stage
from anabranch.branch.growing.stages import TriedSource
from anabranch.branch.past.loops import PastLoop, PastSide, SideCondition
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.evaluate import ResultRow
from anabranch.law.inputs import Arrival
from anabranch.runtime.past.recollection import ItemResults, Recollection
from anabranch.stream.elements import DeadLetter, Place
from anabranch.values.atomic import Atomic
from anabranch.values.sequences import Values

ChosenItems: TypeAlias = tuple[ast.Expression, Mapping[Arrival, ItemResults]]
"""A path, and what it gives in those items over which a tuple is evaluated."""


class PresentLetters:
    """The dead letters that a query has now, and how often."""

    def __init__(self) -> None:
        self._counts: dict[DeadLetter, int] = {}
        self._touched: dict[DeadLetter, bool] = {}
        """Those that came or went in this moment, each with whether it was there before."""

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Note that these are there once more."""
        for each in letters:
            count = self._counts.get(each, 0)
            self._touched.setdefault(each, count > 0)
            self._counts[each] = count + 1

    def remove(self, letters: Iterable[DeadLetter]) -> None:
        """Note that these are there once less."""
        for each in letters:
            self._touched.setdefault(each, True)
            self._counts[each] -= 1
            if not self._counts[each]:
                del self._counts[each]

    def drained(self) -> list[DeadLetter]:
        """End a moment; the letters that were not there before it."""
        found = [each for each, was_there in self._touched.items() if not was_there and each in self._counts]
        self._touched.clear()
        return found


_Filed: TypeAlias = Sequence[Collection[str | None]]
"""What something is filed under, for each meeting of its side with another."""
_Rank: TypeAlias = tuple[int, int]
"""The place of an item's value in the order of a side: minus the number of the item, and its own among its values."""


@dataclass(slots=True)
class _SideItem:
    """What takes part on a side: a value of an item or, on the last side, all its values together."""

    arrival: Arrival
    results: Values
    rank: _Rank
    tuples: set[int] = field(default_factory=set)
    """The tuples that it is in."""


class _LiveSide:
    """The items that take part on one side now."""

    def __init__(self, side: PastSide) -> None:
        self.side = side
        self.items: dict[int, _SideItem] = {}
        self.failing: dict[int, DeadLetter] = {}
        """Items in which the path of the side fails."""
        self.is_looked_at = False
        """Whether the loop comes to look at them."""
        self._by_time: list[tuple[Fraction, int]] = []
        self._entered = 0

    def number(self, arrival: Arrival) -> int:
        """The number of what enters next."""
        self._entered += 1
        heappush(self._by_time, (arrival.time, self._entered))
        return self._entered

    def expired(self, now: Fraction) -> Iterator[int]:
        """The numbers of what is too old by now, which is forgotten."""
        while self._by_time and self._by_time[0][0] < now - self.side.seconds:
            yield heappop(self._by_time)[1]


@dataclass(slots=True)
class _PastTuple:
    """Items that were put together, one of each side."""

    members: tuple[int, ...]
    rank: tuple[_Rank, ...]
    letters: Sequence[DeadLetter] = ()


class RecalledTuples(TriedSource):
    """The tuples of one loop as entries of a stage (`EntrySource`), under its id as the name of their stream."""

    is_lasting = may_forget = False

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        loop: PastLoop,
        memory: Recollection,
        letters: PresentLetters,
    ) -> None:
        self.stream = id
        self._site, self._scope, self._loop = site, scope, loop
        self._memory, self._letters = memory, letters
        self._sides = [_LiveSide(each) for each in loop.sides]
        self._meetings = [(each, meeting_by(each.key)) for each in loop.meetings]
        self._tuples: dict[int, _PastTuple] = {}
        self._count = 0
        self._new: list[int] = []

    # --- moments ------------------------------------------------------------------------------------------

    def moment(self, now: Fraction, came: Arrival | None) -> list[int]:
        """The tuples that are gone, or have come, in the order of the loop."""
        gone: list[int] = []
        for place, side in enumerate(self._sides):
            for number in side.expired(now):
                gone += self._leave(place, number)
        self._new = [] if came is None else self.in_order([*self._arrive(now, came)])
        self._look_at_failing()
        return [*gone, *self._new]

    def _arrive(self, now: Fraction, came: Arrival) -> Iterator[int]:
        """Let an item take part that has come; the tuples that it is in."""
        for place, side in enumerate(self._sides):
            if side.side.stream == came.place.stream:
                results = self._memory.results(side.side.path).get(came)
                if results is not None and came.time >= now - side.side.seconds:
                    for number in self._enter(place, came, results):
                        yield from map(self._put_together, self._met(place, number))

    def settle(self, stage: Stage) -> None:
        """Forget the new tuples that have given nothing to their stage."""
        for number in self._new:
            is_failing = (self.stream, number) in self._site.failing
            if not (is_failing or self._tuples[number].letters or stage.keeps(self.stream, number)):
                self._forget(number)
        self._new = []

    def _enter(
        self, place: int, arrival: Arrival, results: ItemResults, filed: Sequence[_Filed] | None = None
    ) -> list[int]:
        """Let an item take part on a side; the numbers of what takes part.

        `filed` is what that is filed under, one after the other, where it is known.
        """
        side = self._sides[place]
        if isinstance(results, DynamicError):
            number = side.number(arrival)
            side.failing[number] = letter = self._letter(side.side, arrival, results)
            if side.is_looked_at:
                self._letters.add((letter,))
            return []
        several = [results] if place == len(self._sides) - 1 else [[each] for each in results]
        found: list[int] = []
        for own, values in enumerate(several):
            number = side.number(arrival)
            first = found[0] if found else number
            side.items[number] = _SideItem(arrival, values, (-first, own))
            self._file(place, number, self._keys(place, {arrival: values}) if filed is None else filed[own])
            found.append(number)
        return found

    def _keys(self, place: int, chosen: Mapping[Arrival, ItemResults]) -> _Filed:
        """What others may meet an item by."""
        side, known = self._sides[place].side, dict[ast.Expression, list[Atomic] | None]()

        def atoms(expression: ast.Expression) -> list[Atomic] | None:
            if expression not in known:
                given = {side.stream: (side.path, chosen)}
                known[expression] = self._site.evaluation.atoms(expression, self._scope, given)
            return known[expression]

        sides = ((each.key, each.one == place) for each, _ in self._meetings if place in (each.one, each.other))
        return [keys_by(key, atoms, is_own=is_own) for key, is_own in sides]

    def _files(self, place: int) -> list[Keyed | SortedKeys]:
        """Where the items of a side are filed, one for each meeting with another."""
        found = ((each, meeting) for each, meeting in self._meetings if place in (each.one, each.other))
        return [meeting.own if each.one == place else meeting.other for each, meeting in found]

    def _file(self, place: int, number: int, filed: _Filed) -> None:
        for file, keys in zip(self._files(place), filed, strict=True):
            file.put(number, keys)

    def _leave(self, place: int, number: int) -> list[int]:
        """Let an item take part no more; the tuples that are gone with it."""
        side = self._sides[place]
        if number in side.failing:
            letter = side.failing.pop(number)
            if side.is_looked_at:
                self._letters.remove((letter,))
            return []
        for file in self._files(place):
            file.put(number, ())
        gone = sorted(side.items[number].tuples)
        for known in gone:
            self._letters.remove(self._tuples[known].letters)
            self._forget(known)
        del side.items[number]
        return gone

    def _look_at_failing(self) -> None:
        """Note which sides the loop comes to look at: those behind sides on which there are items."""
        looks = True
        for side in self._sides:
            if side.is_looked_at != looks:
                side.is_looked_at = looks
                change = self._letters.add if looks else self._letters.remove
                change(side.failing.values())
            looks = looks and bool(side.items)

    # --- tuples -------------------------------------------------------------------------------------------

    def _met(self, place: int, number: int) -> list[tuple[int, ...]]:
        """The items of the other sides that may meet an item, put together with it; each has its number at its side."""
        found = [known for known in ({place: number},) if self._may_hold(known, place)]
        for other in self._way(place):
            several = ({**known, other: each} for known in found for each in self._candidates(known, other))
            found = [known for known in several if self._may_hold(known, other)]
        return [tuple(known[each] for each in range(len(self._sides))) for known in found]

    def _way(self, place: int) -> Iterator[int]:
        """The other sides, one after the other; those that are tied to sides before them come first."""
        known, rest = {place}, [each for each in range(len(self._sides)) if each != place]
        while rest:
            tied = (each for each in rest if any(self._is_tied(one, each) for one in known))
            following = next(tied, rest[0])
            rest.remove(following)
            known.add(following)
            yield following

    def _candidates(self, known: Mapping[int, int], other: int) -> Collection[int]:
        """The items of a side that may meet those that are known of other sides."""
        found: set[int] | None = None
        for each, meeting in self._meetings:
            if each.other == other and each.one in known:
                met = meeting.met_by_own(known[each.one])
            elif each.one == other and each.other in known:
                met = meeting.met_by_other(known[each.other])
            else:
                continue
            found = met if found is None else found & met
        return list(self._sides[other].items) if found is None else found

    def _may_hold(self, known: Mapping[int, int], last: int) -> bool:
        """Whether items may give something with others, by the conditions on just them and on the last of them."""
        return all(
            self._holds(each, known)
            for each in self._loop.conditions
            if last in each.sides and each.sides <= known.keys() and len(known) < len(self._sides)
        )

    def _holds(self, condition: SideCondition, known: Mapping[int, int]) -> bool:
        """Whether a condition holds for some items, or fails."""
        chosen = self._chosen({place: known[place] for place in condition.sides})
        return self._site.evaluation.atoms(condition.test, self._scope, chosen) != []

    def _is_tied(self, one: int, other: int) -> bool:
        """Whether a condition ties two sides."""
        sides = {one, other}
        is_met = any(sides == {each.one, each.other} for each in self._loop.meetings)
        return is_met or any(sides == each.sides for each in self._loop.conditions)

    def _put_together(self, members: tuple[int, ...]) -> int:
        self._count += 1
        self._restore_tuple(self._count, members)
        return self._count

    def _restore_tuple(self, number: int, members: tuple[int, ...]) -> None:
        items = [side.items[member] for side, member in zip(self._sides, members, strict=True)]
        self._tuples[number] = _PastTuple(members, tuple(each.rank for each in items))
        for each in items:
            each.tuples.add(number)

    def _forget(self, number: int) -> None:
        for side, member in zip(self._sides, self._tuples.pop(number).members, strict=True):
            side.items[member].tuples.discard(number)

    def precedes(self, one: int, other: int) -> bool:
        """Whether a tuple stands before another."""
        return self._tuples[one].rank < self._tuples[other].rank

    def in_order(self, some: Collection[int]) -> list[int]:
        """Some tuples in their order."""
        return sorted(some, key=lambda number: self._tuples[number].rank)

    # --- evaluation ---------------------------------------------------------------------------------------

    def again(self, changed: Changed) -> Collection[int]:
        """The tuples of this moment."""
        return changed[self.stream]

    def tried(self, entry: int) -> Sequence[ResultRow]:
        """The results of a tuple; none where it is gone, and an error where it fails."""
        self._site.failing.pop((self.stream, entry), None)
        known = self._tuples.get(entry)
        if known is None:
            return ()
        chosen = self._chosen(dict(enumerate(known.members)))
        rows = self._site.evaluation.rows(self._loop.expression, self._scope, chosen)
        known.letters = self._site.evaluation.aside
        self._letters.add(known.letters)
        return rows

    def _chosen(self, members: Mapping[int, int]) -> dict[str, ChosenItems]:
        """The streams of some sides, each with one of its items."""
        found: dict[str, ChosenItems] = {}
        for place, number in members.items():
            side, item = self._sides[place].side, self._sides[place].items[number]
            found[side.stream] = side.path, {item.arrival: item.results}
        return found

    def _letter(self, side: PastSide, arrival: Arrival, error: DynamicError) -> DeadLetter:
        """The dead letter of an item in which the path of a side fails."""
        failing: ChosenItems = side.path, {arrival: error}
        self._site.evaluation.rows(side.source, self._scope, {side.stream: failing})
        (letter,) = self._site.evaluation.aside
        return letter

    # --- state --------------------------------------------------------------------------------------------

    def encode(self) -> list[Any]:
        """All tuples as plain data, in the form in which displays keep their entries."""
        numbers = {each: number for number, each in enumerate(self._memory.arrivals)}

        def written(known: _PastTuple) -> list[Any]:
            items = [side.items[each] for side, each in zip(self._sides, known.members, strict=True)]
            return [[[numbers[each.arrival], each.rank[1]] for each in items], [*map(write_letter, known.letters)]]

        def filed(place: int) -> list[Any]:
            """What the items of a side are filed under: of each its number, and one for each of its values."""
            found: dict[int, list[Any]] = {}
            for number, item in self._sides[place].items.items():
                keys = [list(file.keys.get(number, ())) for file in self._files(place)]
                found.setdefault(numbers[item.arrival], []).append(keys)
            return [[*each] for each in found.items()]

        tuples = [[number, *written(known)] for number, known in self._tuples.items()]
        return [self._count, [filed(place) for place in range(len(self._sides))], tuples]

    def decode(self, now: Fraction, data: Any, name: str | None) -> None:
        """Restore from `encode`, where the same items are remembered; `name` is that of the query."""
        numbers = {each: number for number, each in enumerate(self._memory.arrivals)}
        entered: list[dict[tuple[int, int], int]] = []
        self._count, several, tuples = data
        for place, (side, filed) in enumerate(zip(self._sides, several, strict=True)):
            known, keys = dict[tuple[int, int], int](), dict(filed)
            for arrival, results in self._memory.results(side.side.path).items():
                if arrival.time >= now - side.side.seconds:
                    found = self._enter(place, arrival, results, keys.get(numbers[arrival]))
                    known |= {(numbers[arrival], own): number for own, number in enumerate(found)}
            entered.append(known)
        for number, items, letters, *_ in tuples:
            members = tuple(known[item, own] for known, (item, own) in zip(entered, items, strict=True))
            self._restore_tuple(number, members)
            self._tuples[number].letters = [read_letter(each, name) for each in letters]
            self._letters.add(self._tuples[number].letters)
        self._look_at_failing()

    def remembered(self, stream: str, entry: int) -> Any:
        """Nothing is kept of a tuple beside what it gave."""
        return None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """There is nothing to restore."""


def write_letter(letter: DeadLetter) -> list[Any]:
    """A dead letter of a query as plain data."""
    place = letter.place
    return [place.stream, place.partition, place.offset, letter.reason, letter.raw, letter.code]


def read_letter(data: Sequence[Any], name: str | None) -> DeadLetter:
    """A dead letter of the query called so, from what `write_letter` gave."""
    stream, partition, offset, reason, raw, code = data
    return DeadLetter(Place(stream, partition, offset), reason, raw, code, name)
