"""Groups of the items of a stream that only grows, kept up to date (LAWS 3.8).

A group is an entry: it comes with its first item, and each further one edits it.
The law's own evaluator finds to which groups an item belongs, and which values it gives to each aggregate of these
groups; a few shares stand for all values (`aggregates/folds.py`), and the item is dropped.
The result of a group is evaluated again only for the groups of an item that comes.
An error behind a `group by` makes the whole answer fail (LAWS 2.4) until a later item changes its group.

Groups that need more than aggregates hold the values of their variables, and so their items (`grouping.py` decides).

`NumberedGroups` are those with a `count` behind them: which group has a number depends on the order of all groups, so
the entries are the numbers, and those numbers are evaluated again that stand for another group than before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from anabranch.aggregates.folds import EntryShare, Fold
from anabranch.algebra.display.sorting import ResultId, SortedResults
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.folds import fold
from anabranch.branch.display.parts import GroupCount, GroupFold, GroupPart
from anabranch.branch.document.state import read_rank, write_rank
from anabranch.branch.growing.arrivals import ARRIVALS
from anabranch.branch.growing.items import Entries
from anabranch.branch.growing.stages import TriedSource, fail_for_good
from anabranch.errors import DynamicError
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator, Known, ResultRow
from anabranch.law.inputs import Input
from anabranch.values.atomic import Atomic, OrderRank, group_identity
from anabranch.values.sequences import Values, key_of
from anabranch.values.written import read_atom, write_atom

T = TypeVar("T")


class _GroupAggregate:
    """One aggregate of one group: the shares that stand for all its values, or the error of an argument."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._grows = not fold(function, ARRIVALS).is_small
        self._shares: list[EntryShare] = []
        self._kept: Fold | None = None
        """The fold of all shares, where they cannot be reduced to a few."""
        self._failed: tuple[str, str | None] | None = None
        self._value: Values | DynamicError | None = None

    @property
    def kept(self) -> int:
        """How many shares it keeps, where each value adds one."""
        return len(self._shares) if self._grows else 0

    def put(self, item: int, values: Values) -> None:
        """Add the values of an item, which comes behind all others."""
        state = fold(self._function, ARRIVALS)
        if not values:
            return
        share = state.share(values)
        if share is None:
            return
        self._value = None
        if state.is_small:
            self._shares = list(state.reduced([*self._shares, (item, share)]))
        else:
            self._state(state).put(item, share)
            self._shares.append((item, share))

    def _state(self, empty: Fold) -> Fold:
        if self._kept is None:
            self._kept = empty
            for each in self._shares:
                empty.put(*each)
        return self._kept

    def fail(self, error: DynamicError) -> None:
        """An argument has failed, which cannot be undone; the first error is the one that is reported."""
        self._failed = self._failed or (error.message, error.code)

    def value(self) -> Values:
        """The aggregate now."""
        if self._failed is not None:
            message, code = self._failed
            raise DynamicError(message, code=code)
        if self._value is None:
            self._value = self._found()
        if isinstance(self._value, DynamicError):
            raise self._value
        return self._value

    def _found(self) -> Values | DynamicError:
        state = fold(self._function, ARRIVALS)
        if not state.is_small:
            state = self._state(state)
        else:
            for each in self._shares:
                state.put(*each)
        try:
            return state.value()
        except DynamicError as error:
            return error

    def save(self) -> Any:
        """The state as plain data."""
        return [self._shares, self._failed]

    def restore(self, data: Any) -> None:
        """Restore from `save`."""
        shares, failed = data
        self._shares = [(item, share) for item, share in shares]
        self._failed = None if failed is None else (failed[0], failed[1])
        self._kept = self._value = None


@dataclass(slots=True)
class _ItemGroup:
    keys: tuple[Atomic | None, ...]
    aggregates: list[_GroupAggregate]
    held: dict[str, Values]
    """The values of the variables that the result needs as they are."""
    items: int = 0

    @property
    def kept(self) -> int:
        """How many values it keeps for aggregates that need all of them."""
        return sum(each.kept for each in self.aggregates)


class GroupSource(TriedSource):
    """The groups of a stream as entries; `item` gives the stream with one item, and `entries` numbers the groups."""

    is_lasting = may_forget = False

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        part: GroupPart,
        item: Callable[[int], Input],
        entries: Entries,
    ) -> None:
        self.stream = id
        self._site, self._scope, self._part = site, scope, part
        self._item, self._entries = item, entries
        self._groups: dict[int, _ItemGroup] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._touched: dict[int, None] = {}
        self._taken = -1
        """The last item that was taken."""
        self.values = 0
        """How many values it keeps for aggregates that need all of them."""

    def again(self, changed: Changed) -> Collection[int]:
        """The groups of the items that have come."""
        for number in changed[self._part.stream]:
            try:
                self._take(number)
            except DynamicError as error:
                fail_for_good(self._site, f"{self.stream}.items", error)
        touched, self._touched = self._touched, {}
        for each in touched:
            self._entries.keep(each)
        return touched

    def _take(self, number: int) -> None:
        part, evaluation = self._part, self._site.evaluation
        evaluator = evaluation.over({part.stream: self._item(number)}, {})
        self._taken = number
        found = evaluator.apart(lambda: evaluator.grouped(part.ahead, part.keys, self._scope.env))
        self._site.dead += dict.fromkeys(evaluator.dead)
        for env in found:
            group = self._group(tuple(key_of(env.variables[key.variable], "a key") for key in part.keys))
            group.items += 1
            for name, values in group.held.items():
                values += env.variables[name]
            for each, aggregate in zip(part.folds, group.aggregates, strict=True):
                self._give(evaluator, each, aggregate, env, number)

    def _give(self, evaluator: Evaluator, each: GroupFold, aggregate: _GroupAggregate, env: Env, number: int) -> None:
        before = aggregate.kept
        try:
            aggregate.put(number, evaluator.apart(lambda: evaluator.value(each.argument, env)))
        except DynamicError as error:
            aggregate.fail(error)
        self.values += aggregate.kept - before

    def _group(self, keys: tuple[Atomic | None, ...]) -> _ItemGroup:
        identity = tuple(map(group_identity, keys))
        number = self._numbers.get(identity)
        if number is None:
            number = self._entries.enter()
            self._numbers[identity] = number
            self._groups[number] = self._fresh(keys)
        self._touched[number] = None
        return self._groups[number]

    def _fresh(self, keys: tuple[Atomic | None, ...]) -> _ItemGroup:
        aggregates = [_GroupAggregate(each.function) for each in self._part.folds]
        return _ItemGroup(keys, aggregates, {name: [] for name in self._part.held})

    def renew(self) -> None:
        """Evaluate all groups again at the next moment: their results may have changed without an item."""
        self._touched |= dict.fromkeys(self._groups)

    # --- results of a group -------------------------------------------------------------------------------

    def tried(self, entry: int) -> Sequence[ResultRow]:
        """The results of a group."""
        self._site.failing.pop((self.stream, entry), None)

        def said(evaluator: Evaluator, env: Env) -> list[ResultRow]:
            found = evaluator.ranked(self._part.behind, env)
            return [ResultRow(ranks, evaluator.value(self._part.result, each)) for ranks, each in found]

        return self._asked(entry, said)

    def tuples(self, entry: int) -> list[tuple[OrderRank, ...]]:
        """The ranks of the tuples that come of a group, in front of a `count`."""
        self._site.failing.pop((self.stream, entry), None)
        return self._asked(
            entry, lambda evaluator, env: [ranks for ranks, _ in evaluator.ranked(self._part.behind, env)]
        )

    def numbered(self, entry: int, at: int, count: GroupCount, number: int) -> Values:
        """The values that one tuple of a group gives, which `count` has given a number."""

        def said(evaluator: Evaluator, env: Env) -> Values:
            _, found = evaluator.ranked(self._part.behind, env)[at]
            behind = evaluator.ranked(count.behind, found.bind(count.variable, [number]))
            return [value for _, each in behind for value in evaluator.value(self._part.result, each)]

        return self._asked(entry, said)

    def _asked(self, entry: int, body: Callable[[Evaluator, Env], T]) -> T:
        group, part = self._groups[entry], self._part
        known: Known = {
            each.variable: aggregate.value for each, aggregate in zip(part.folds, group.aggregates, strict=True)
        }
        env = self._scope.env
        for key, value in zip(part.keys, group.keys, strict=True):
            env = env.bind(key.variable, [] if value is None else [value])
        for name, values in group.held.items():
            env = env.bind(name, values)
        evaluator = self._site.evaluation.over({}, known)
        return evaluator.apart(partial(body, evaluator, env), group.items)

    # --- state --------------------------------------------------------------------------------------------

    def remembered(self, stream: str, entry: int) -> Any:
        """A group as plain data; None where it holds items, from which it is restored."""
        if stream != self.stream or self._part.held:
            return None
        group = self._groups[entry]
        keys = [None if each is None else write_atom(each) for each in group.keys]
        return [keys, group.items, [each.save() for each in group.aggregates]]

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Restore a group, or an item that groups hold."""
        if stream == self._part.stream and self._part.held and entry > self._taken:
            before, self._touched = self._touched, {}
            dead = len(self._site.dead)
            self._take(entry)
            del self._site.dead[dead:]
            self._touched = before
        if stream == self.stream and data is not None:
            keys, items, aggregates = data
            group = self._fresh(tuple(None if each is None else read_atom(each) for each in keys))
            group.items = items
            for each, saved in zip(group.aggregates, aggregates, strict=True):
                each.restore(saved)
            self.values += group.kept - (self._groups[entry].kept if entry in self._groups else 0)
            self._groups[entry] = group
            self._numbers[tuple(map(group_identity, group.keys))] = entry


class NumberedGroups(TriedSource):
    """The results of groups with a `count` behind them: entries are the numbers, from 0 on."""

    is_lasting = may_forget = False

    def __init__(self, id: str, site: QuerySite, groups: GroupSource, part: GroupPart, entries: Entries) -> None:
        """`entries` has an entry for each number."""
        assert part.count is not None
        self.stream = id
        self._site, self._groups, self._count, self._entries = site, groups, part.count, entries
        self._descending = tuple(key.descending for key in part.order)
        self._ranks: dict[int, list[tuple[OrderRank, ...]]] = {}
        """The ranks of the tuples of each group."""
        self._arranged: SortedResults | None = None
        """The tuples in their order; None where ranks were restored and it has to be built."""

    def again(self, changed: Changed) -> Collection[int]:
        """The numbers that stand for another tuple than before, or for one of a group that has changed."""
        arranged = self._order()
        length = len(arranged)
        first, last, steps = length, -1, 0
        touched: list[ResultId] = []
        for group in self._groups.again(changed):
            before, ranks = self._ranks.pop(group, []), self._tried(group)
            if ranks:
                self._ranks[group] = ranks
            touched += [(group, at) for at in range(len(ranks))]
            if before == ranks:
                continue
            for at in range(len(before)):
                place = arranged.place((group, at))
                arranged.remove((group, at))
                first, last, steps = min(first, place), max(last, place), steps + 1
            for at, each in enumerate(ranks):
                arranged.put((group, at), each)
                place = arranged.place((group, at))
                first, last, steps = min(first, place), max(last, place), steps + 1
        end = last + steps + 1 if length == len(arranged) else max(length, len(arranged))
        moved = range(first, end) if steps else range(0)
        found = sorted({*moved, *map(arranged.place, touched)})
        limit = self._count.limit
        numbers = [each for each in found if (limit is None or each < limit)]
        for each in numbers:
            self._entries.order.count = max(self._entries.order.count, each + 1)
            self._entries.keep(each)
        return numbers

    def _tried(self, group: int) -> list[tuple[OrderRank, ...]]:
        try:
            return self._groups.tuples(group)
        except DynamicError as error:
            self._groups.fails(group, error)
            return []

    def _order(self) -> SortedResults:
        if self._arranged is None:
            self._arranged = SortedResults(ARRIVALS, self._descending)
            things = {(group, at): each for group, ranks in self._ranks.items() for at, each in enumerate(ranks)}
            self._arranged.fill(things)
        return self._arranged

    def renew(self) -> None:
        """Evaluate all groups again at the next moment."""
        self._groups.renew()

    def tried(self, entry: int) -> Sequence[ResultRow]:
        """The results of the tuple with a number; none where there is no such tuple."""
        self._site.failing.pop((self.stream, entry), None)
        arranged = self._order()
        if entry >= len(arranged):
            return ()
        group, at = arranged.at(entry)
        return [ResultRow((), self._groups.numbered(group, at, self._count, entry + 1))]

    def remembered(self, stream: str, entry: int) -> Any:
        """A group, and the ranks of its tuples, as plain data."""
        if stream != self._groups.stream:
            return None
        ranks = [[write_rank(rank) for rank in each] for each in self._ranks.get(entry, ())]
        return [self._groups.remembered(stream, entry), ranks]

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Restore a group, or an item that groups hold."""
        known, ranks = data if stream == self._groups.stream and data is not None else (None, None)
        self._groups.recall(stream, entry, known)
        if ranks is not None:
            self._arranged = None
            self._ranks.pop(entry, None)
            if ranks:
                self._ranks[entry] = [tuple(map(read_rank, each)) for each in ranks]
