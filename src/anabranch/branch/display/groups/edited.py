"""Groups and different values of a document that is edited, kept up to date entry by entry.

What stands first in the document decides where a group is, and which of equal values is given (LAWS 3.8).
So a group belongs to the entry that it begins in, and is a result of that entry; so does each of the different values.
An update takes the entry's share out of its groups and puts the new one in (`aggregates/folds.py`), and those entries
are looked at again in which a group begins that has changed, or began before.
Of groups more than aggregates is never asked here (`grouping.py`), so an entry is not evaluated again for another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from anabranch.aggregates.folds import FailingEntries, Fold, Share
from anabranch.algebra.display.sorting import EntryPlaces, ResultId, SortedResults
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.folds import ATOMS, fold
from anabranch.branch.display.parts import GroupPart
from anabranch.branch.display.stages import EntrySource
from anabranch.branch.document.projection import KeptDocument, seen_of
from anabranch.errors import DynamicError
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator, Known, ResultRow
from anabranch.law.functions import DistinctAtoms
from anabranch.values.atomic import Atomic, Untyped, finite_value, group_identity, identity
from anabranch.values.sequences import Values, atomize, key_of
from anabranch.values.written import read_atom, write_atom


class _EditedSource:
    """Entries of a document that is edited, whose results may change with other entries."""

    is_lasting = may_forget = False

    def __init__(self, stream: str, kept: KeptDocument) -> None:
        self.stream = stream
        self._kept = kept

    def _with_met(self, own: Collection[int], met: Iterable[int]) -> Collection[int]:
        """Changed entries, and behind them others whose results have changed, which are saved again."""
        others = dict.fromkeys(each for each in sorted(met) if each in self._kept.by_number)
        self._kept.unsaved.entries.update(others)
        return dict.fromkeys((*own, *others))


# --- groups -----------------------------------------------------------------------------------------------

_Identity: TypeAlias = tuple[object, ...]
_Failure: TypeAlias = tuple[str, str | None]


class _Given(NamedTuple):
    """What an entry gives to an aggregate of a group: its share, or the error of the argument."""

    share: Share
    failure: _Failure | None = None


class _EntryTuple(NamedTuple):
    """What an entry gives to one group."""

    keys: tuple[Atomic | None, ...]
    given: tuple[_Given, ...]

    @property
    def identity(self) -> _Identity:
        return tuple(map(group_identity, self.keys))


@dataclass(slots=True)
class _Aggregate:
    """An aggregate of a group."""

    state: Fold
    failing: FailingEntries
    """The entries whose arguments fail."""

    def put(self, entry: int, given: _Given) -> None:
        """Add what an entry gives."""
        if given.failure is not None:
            self.failing.put(entry, *given.failure)
        elif given.share is not None:
            self.state.put(entry, given.share)

    def remove(self, entry: int, given: _Given) -> None:
        """Take it out again."""
        if given.failure is not None:
            self.failing.remove(entry)
        elif given.share is not None:
            self.state.remove(entry, given.share)

    def value(self) -> Values:
        """The aggregate now."""
        self.failing.tell()
        return self.state.value()


@dataclass(slots=True)
class _EntryGroup:
    """A group, by the entries that give something to it, each with the number of its tuple."""

    members: SortedResults
    aggregates: list[_Aggregate]

    @property
    def begins(self) -> ResultId:
        return self.members.at(0)


class EditedGroups(_EditedSource):
    """The groups of one part of a query, as results of the entries that they begin in; `id` identifies the part."""

    def __init__(self, id: str, site: QuerySite, scope: AnswerScope, part: GroupPart, kept: KeptDocument) -> None:
        super().__init__(part.stream, kept)
        self._id, self._site, self._scope, self._part = id, site, scope, part
        self._tuples: dict[int, tuple[_EntryTuple, ...]] = {}
        self._groups: dict[_Identity, _EntryGroup] = {}

    def again(self, changed: Changed) -> Collection[int]:
        """The entries that have changed, and those that the groups begin in which they belong to, or did."""
        own = changed[self.stream]
        met: set[int] = set()
        touched: dict[_Identity, None] = {}
        for entry in own:
            before, now = self._tuples.get(entry, ()), self._found(entry)
            for each in (*before, *now):
                touched[each.identity] = None
                if (group := self._groups.get(each.identity)) is not None:
                    met.add(group.begins[0])
            self._replace(entry, now)
        met.update(self._groups[each].begins[0] for each in touched if each in self._groups)
        return self._with_met(own, met)

    def _found(self, entry: int) -> tuple[_EntryTuple, ...]:
        """What an entry gives to groups; nothing where it is gone, or makes the whole answer fail."""
        part, site, kept = self._part, self._site, self._kept
        site.failing.pop((self._id, entry), None)
        if entry not in kept.by_number:
            site.told.pop((self._id, entry), None)
            return ()
        contents = kept.some((entry,))
        contents = replace(contents, entries=seen_of(contents.entries, kept.sight))
        evaluator = site.evaluation.over({self.stream: contents}, {})
        try:
            found = evaluator.apart(lambda: evaluator.grouped(part.ahead, part.keys, self._scope.env))
        except DynamicError as error:
            site.failing[self._id, entry] = error
            return ()
        tuples = tuple(self._tuple(evaluator, each) for each in found)
        site.evaluation.aside = list(dict.fromkeys(evaluator.dead))
        site.tell(self._id, entry)
        return tuples

    def _tuple(self, evaluator: Evaluator, env: Env) -> _EntryTuple:
        keys = tuple(key_of(env.variables[each.variable], "a key") for each in self._part.keys)
        return _EntryTuple(keys, tuple(self._given(evaluator, place, env) for place in range(len(self._part.folds))))

    def _given(self, evaluator: Evaluator, place: int, env: Env) -> _Given:
        asked = self._part.folds[place]
        try:
            values = evaluator.apart(lambda: evaluator.value(asked.argument, env))
            return _Given(self._fold(asked.function).share(values) if values else None)
        except DynamicError as error:
            return _Given(None, (error.message, error.code))

    def _fold(self, function: str) -> Fold:
        order = self._kept.order
        return _OrderedAtoms(order) if function == ATOMS else fold(function, order)

    def _replace(self, entry: int, tuples: tuple[_EntryTuple, ...]) -> None:
        for number, each in enumerate(self._tuples.pop(entry, ())):
            group = self._groups[each.identity]
            group.members.remove((entry, number))
            for aggregate, given in zip(group.aggregates, each.given, strict=True):
                aggregate.remove(entry, given)
            if not len(group.members):
                del self._groups[each.identity]
        for number, each in enumerate(tuples):
            group = self._groups.setdefault(each.identity, self._fresh())
            group.members.put((entry, number), ())
            for aggregate, given in zip(group.aggregates, each.given, strict=True):
                aggregate.put(entry, given)
        if tuples:
            self._tuples[entry] = tuples

    def _fresh(self) -> _EntryGroup:
        order = self._kept.order
        aggregates = [_Aggregate(self._fold(each.function), FailingEntries(order)) for each in self._part.folds]
        return _EntryGroup(SortedResults(order, ()), aggregates)

    # --- results ------------------------------------------------------------------------------------------

    def tried(self, entry: int) -> list[ResultRow]:
        """The results of the groups that begin in an entry."""
        self._site.failing.pop((self._id + _GROUPS, entry), None)
        rows: list[ResultRow] = []
        for number, each in enumerate(self._tuples.get(entry, ())):
            group = self._groups[each.identity]
            if group.begins == (entry, number):
                rows += self._said(group, each.keys)
        return rows

    def rows(self, entry: int) -> list[ResultRow]:
        """The same; none where a group makes the whole answer fail."""
        try:
            return self.tried(entry)
        except DynamicError as error:
            self.fails(entry, error)
            return []

    shown = rows

    def fails(self, entry: int, error: DynamicError) -> None:
        """Let the whole answer fail because of a group that begins in an entry."""
        self._site.failing[self._id + _GROUPS, entry] = error

    def _said(self, group: _EntryGroup, keys: Sequence[Atomic | None]) -> list[ResultRow]:
        """What is said of a group."""
        part, env = self._part, self._scope.env
        known: Known = {each.variable: kept.value for each, kept in zip(part.folds, group.aggregates, strict=True)}
        for key, value in zip(part.keys, keys, strict=True):
            env = env.bind(key.variable, [] if value is None else [value])
        evaluator = self._site.evaluation.over({}, known)
        return evaluator.apart(partial(self._rows, evaluator, env), len(group.members))

    def _rows(self, evaluator: Evaluator, env: Env) -> list[ResultRow]:
        found = evaluator.ranked(self._part.behind, env)
        return [ResultRow(ranks, evaluator.value(self._part.result, each)) for ranks, each in found]

    # --- state --------------------------------------------------------------------------------------------

    def remembered(self, stream: str, entry: int) -> Any:
        """What an entry gives to groups, and its digests, as plain data; None for nothing."""
        if stream != self.stream:
            return None
        told, tuples = self._site.told.get((self._id, entry)), self._tuples.get(entry, ())
        written = [[[*map(_write_key, each.keys)], [list(given) for given in each.given]] for each in tuples]
        return [told, written] if told or written else None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Replace what is known of an entry by what was saved of it; None for nothing."""
        if stream != self.stream:
            return
        told, written = data or (None, ())
        self._site.told.pop((self._id, entry), None)
        if told:
            self._site.told[self._id, entry] = told
        self._replace(entry, tuple(_read_tuple(*each) for each in written))


_GROUPS = ".groups"
"""Behind the id of a part: the id under which groups note their errors, where entries have the id itself."""


def _write_key(key: Atomic | None) -> Any:
    return None if key is None else write_atom(key)


def _read_tuple(keys: Sequence[Any], given: Sequence[Any]) -> _EntryTuple:
    return _EntryTuple(
        tuple(None if each is None else read_atom(each) for each in keys),
        tuple(_Given(share, None if failure is None else (failure[0], failure[1])) for share, failure in given),
    )


class _OrderedAtoms(Fold):
    """The different values of a group, atomized, in the order of their first entries."""

    def __init__(self, places: EntryPlaces) -> None:
        self._places = places
        self._atoms: dict[tuple[str, ...], SortedResults] = {}
        """By value, as plain data: the entries that have it, each with its number among the values of that entry."""

    def share(self, values: Values) -> Share:
        return [list(each) for each in dict.fromkeys(tuple(write_atom(each)) for each in atomize(values))]

    def put(self, entry: int, share: Share) -> None:
        for number, each in enumerate(share):
            self._atoms.setdefault(tuple(each), SortedResults(self._places, ())).put((entry, number), ())

    def remove(self, entry: int, share: Share) -> None:
        for number, each in enumerate(share):
            held = self._atoms[tuple(each)]
            held.remove((entry, number))
            if not len(held):
                del self._atoms[tuple(each)]

    def value(self) -> Values:
        first = {held.at(0): each for each, held in self._atoms.items()}
        return [read_atom(first[each]) for each in _in_order(self._places, first)]


def _in_order(places: EntryPlaces, things: Iterable[ResultId]) -> list[ResultId]:
    """Some results as they stand in the document."""
    return SortedResults(places, ()).fill(dict.fromkeys(things, ()))


# --- different values -------------------------------------------------------------------------------------

_Class: TypeAlias = object
"""Identifies values of which some may equal others."""
_Kind: TypeAlias = object
"""Identifies values of which each equals the first one."""


@dataclass(slots=True)
class _LikeValues:
    """Values of which some may equal others: where they stand, by their kinds, and which of them are given."""

    kinds: dict[_Kind, SortedResults] = field(default_factory=dict)
    given: set[ResultId] = field(default_factory=set)


class EditedDistinct(_EditedSource):
    """The different values that the entries of `over` give, as results of the first entries that have them."""

    def __init__(self, over: EntrySource, kept: KeptDocument) -> None:
        super().__init__(over.stream, kept)
        self._over = over
        self._values: dict[int, tuple[Atomic, ...]] = {}
        """The values of each entry, one of each kind."""
        self._classes: dict[_Class, _LikeValues] = {}

    def again(self, changed: Changed) -> Collection[int]:
        """The entries to be evaluated again, and those that give other values because of these."""
        own = self._over.again(changed)
        touched: dict[_Class, set[ResultId]] = {}
        """What was given before."""
        for entry in own:
            values = self._found(entry)
            for each in (*self._values.get(entry, ()), *values):
                name, known = _class(each), self._classes.get(_class(each))
                touched.setdefault(name, set() if known is None else known.given)
            self._replace(entry, values)
        met: set[int] = set()
        for name, before in touched.items():
            if (known := self._classes.get(name)) is None:
                met.update(entry for entry, _ in before)
                continue
            known.given = self._first(known)
            met.update(entry for entry, _ in before ^ known.given)
        return self._with_met(own, met)

    def _found(self, entry: int) -> tuple[Atomic, ...]:
        """The values of an entry; none where it makes the whole answer fail."""
        values = [value for row in self._over.rows(entry) for value in row.values]
        found: dict[tuple[_Class, _Kind], Atomic] = {}
        try:
            for each in atomize(values):
                found.setdefault((_class(each), _kind(each)), each)
        except DynamicError as error:
            self._over.fails(entry, error)
            return ()
        return tuple(found.values())

    def _replace(self, entry: int, values: tuple[Atomic, ...]) -> None:
        for number, each in enumerate(self._values.pop(entry, ())):
            known, kind = self._classes[_class(each)], _kind(each)
            known.kinds[kind].remove((entry, number))
            if not len(known.kinds[kind]):
                del known.kinds[kind]
            if not known.kinds:
                del self._classes[_class(each)]
        for number, each in enumerate(values):
            known = self._classes.setdefault(_class(each), _LikeValues())
            known.kinds.setdefault(_kind(each), SortedResults(self._kept.order, ())).put((entry, number), ())
        if values:
            self._values[entry] = values

    def _first(self, known: _LikeValues) -> set[ResultId]:
        """Those of some values that equal none before them: of each kind, at most the first one."""
        places = [each.at(0) for each in known.kinds.values()]
        if len(places) > 1:
            places = _in_order(self._kept.order, places)
        seen = DistinctAtoms()
        return {(entry, number) for entry, number in places if seen.add(self._values[entry][number])}

    def tried(self, entry: int) -> list[ResultRow]:
        """The values that stand first in an entry."""
        values = [
            value
            for number, value in enumerate(self._values.get(entry, ()))
            if (entry, number) in self._classes[_class(value)].given
        ]
        return [ResultRow((), list(values))] if values else []

    rows = shown = tried

    def fails(self, entry: int, error: DynamicError) -> None:
        """Let the whole answer fail because of an entry."""
        self._over.fails(entry, error)

    def remembered(self, stream: str, entry: int) -> Any:
        """The values of an entry, each with whether it is given, and what is kept below, as plain data."""
        below = self._over.remembered(stream, entry)
        values = self._values.get(entry, ()) if stream == self.stream else ()
        written = [
            [write_atom(each), (entry, number) in self._classes[_class(each)].given]
            for number, each in enumerate(values)
        ]
        return [below, written] if below is not None or written else None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Replace what is known of an entry by what was saved of it; None for nothing."""
        below, written = data or (None, ())
        self._over.recall(stream, entry, below)
        if stream != self.stream:
            return
        for number, each in enumerate(self._values.get(entry, ())):
            self._classes[_class(each)].given.discard((entry, number))
        self._replace(entry, tuple(read_atom(each) for each, _ in written))
        for number, (atom, is_given) in enumerate(written):
            if is_given:
                self._classes[_class(read_atom(atom))].given.add((entry, number))


def _class(value: Atomic) -> _Class:
    """Equal for values that may equal each other: a number that a change of unit has made also meets its text."""
    number = finite_value(value) if isinstance(value, Untyped) else None
    return identity(value) if number is None else ("number", number)


def _kind(value: Atomic) -> _Kind:
    return identity(value)
