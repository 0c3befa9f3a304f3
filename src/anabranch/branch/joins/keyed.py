"""The keyed join of endless streams: an item meets, when it comes, the items before it that have its keys (LAWS 3.5).

Law: `_as_they_come` in `law/rounds/rounds.py`.
Items: held in the order in which they came, and filed by their keys, so an item is compared with those only that may
have a key in common with it; whether keys are equal is decided by the law's own comparison.
Accents: keys are compared in the units of query start, in which items are read; a key that a change of unit has made a
number is filed by its number.
Punctuations: an item that can meet nothing new is dropped: where punctuations have closed its keys on another stream,
and where its stream is retained for a time only, when that is over.
With more than two streams, an item that another one holds may still be part of a new tuple: then it waits for that.

Several queries with the same sources and keys are one operator: items are filed and held once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import groupby, product
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from anabranch.branch.evolution.changelog import closes_all
from anabranch.branch.futures import NEVER, digest, node_since
from anabranch.branch.held_items import HELD, HeldItem, HeldNode, Shelf
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.joins.interval import streams_of
from anabranch.branch.members import Asker, Everyone
from anabranch.errors import DynamicError
from anabranch.language.equalities import KeyTerm
from anabranch.language.intervals import path_term
from anabranch.law.rounds.joins import Met, keys_meet
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.logic import EVERYTHING
from anabranch.runtime.standing import keys_of
from anabranch.stream import description
from anabranch.stream.cover import KnownValue, covers_values
from anabranch.stream.description import Comparison, Description
from anabranch.stream.path import Path
from anabranch.values.atomic import Atomic, JsonNull, Measured, Untyped, exact_value
from anabranch.values.sequences import operands

_SCHEMA = pa.schema([*HELD, ("keys", pa.string())])
_FEW = 16
"""So many punctuations of a partition are kept before those that later ones cover are left out."""
_MOST_COMPARED = 64
"""With more punctuations of a partition, futures are not compared."""
_MOST_COMBINED = 64
"""An item with more combinations of keys is not looked for in punctuations."""


class _KeyValue(NamedTuple):
    """One key of an item: what it may be equal to."""

    text: str | None
    number: str | None
    """The exact number, where it is one."""
    measured: bool = False
    """Whether a change of unit has made it a number."""

    @staticmethod
    def of(atom: Atomic) -> _KeyValue:
        if not isinstance(atom, str):
            return _ANY
        number = exact_value(atom) if isinstance(atom, Untyped) else None
        if isinstance(number, Decimal) and number.is_finite():
            number = Fraction(number)
        return _KeyValue(str(atom), None if number is None else str(number), isinstance(atom, Measured))

    @property
    def labels(self) -> Iterator[str]:
        """What it is filed under: equal keys have a label in common, or one of them is filed under anything."""
        if self == _ANY:
            yield _ANYTHING
        if self.text is not None:
            yield f"t{self.text}"
        if self.number is not None:
            yield f"n{self.number}"

    @property
    def known(self) -> KnownValue | None:
        """What is known of the values that equal it; None where that is nothing."""
        if self == _ANY or (self.number is not None and not _is_finite(self.number)):
            return None
        return KnownValue(text=self.text) if self.number is None else KnownValue(Fraction(self.number))


_ANY = _KeyValue(None, None)
"""A key that is no text, and may be equal to texts that are spelled otherwise."""
_ANYTHING = "*"

_KeyValues: TypeAlias = tuple[tuple[_KeyValue, ...], ...]
"""The keys of a node, for each term of its `for`."""


def _is_finite(number: str) -> bool:
    return number[-1].isdigit()


@dataclass(frozen=True, slots=True)
class _Tie:
    """A key of one `for`, and the key of another that it must equal."""

    term: int
    """The number of the key among those of its `for`."""
    other: int
    """The number of the other `for`."""
    other_term: int


@dataclass(slots=True)
class _HeldKeys:
    """A node that a `for` holds."""

    node: HeldNode
    """Its value is the time at which it came."""
    filed: _KeyValues
    values: tuple[list[Atomic], ...] | None = None
    """The keys as values, for each term; None until they are needed."""


@dataclass(slots=True)
class _KeyedSide:
    """What one `for` holds, in the order in which it came, filed by key."""

    terms: tuple[KeyTerm, ...]
    paths: tuple[Path | None, ...]
    """Where the keys stand in an item, for each term; None where the text does not say."""
    ties: tuple[_Tie, ...]
    retained: Fraction | None
    held: dict[int, _HeldKeys] = field(default_factory=dict)
    """By number, in the order in which they came."""
    labels: dict[tuple[int, str], dict[int, None]] = field(default_factory=dict)
    """By term and label, the numbers of the nodes that are filed there."""
    ends: list[tuple[Fraction, int]] = field(default_factory=list)
    """A heap: when which nodes are forgotten."""
    taken: int = 0

    def hold(self, found: _HeldKeys) -> None:
        """Hold and file a node."""
        self.held[self.taken] = found
        for place in _places(found.filed):
            self.labels.setdefault(place, {})[self.taken] = None
        if self.retained is not None:
            heappush(self.ends, (found.node.value + self.retained, self.taken))
        self.taken += 1

    def drop(self, number: int) -> None:
        """Drop a node."""
        for place in _places(self.held.pop(number).filed):
            filed = self.labels[place]
            del filed[number]
            if not filed:
                del self.labels[place]

    def forget(self, now: Fraction) -> None:
        """Drop the nodes that are retained no longer."""
        while self.ends and self.ends[0][0] < now:
            _, number = heappop(self.ends)
            found = self.held.get(number)
            if found is not None and not Met(found, found.node.value, self.retained).is_held(now):
                self.drop(number)

    def like(self, term: int, keys: Iterable[_KeyValue]) -> set[int]:
        """The numbers of the nodes that may have one of these keys."""
        wanted = {_ANYTHING, *(label for each in keys for label in each.labels)}
        if any(each == _ANY for each in keys):
            return set(self.held)
        return {number for label in wanted for number in self.labels.get((term, label), ())}

    def rows(self) -> Iterator[dict[str, Any]]:
        for each in self.held.values():
            yield {**each.node.row(), "keys": json.dumps(each.filed)}


def _places(keys: _KeyValues) -> set[tuple[int, str]]:
    return {(term, label) for term, values in enumerate(keys) for each in values for label in each.labels}


class KeyedJoin:
    """The operator for several `for`s without windows, whose items meet by their keys."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self._askers = askers
        self._everyone = Everyone(askers)
        self._shelf = shelf
        standing = askers[0].standing
        self._streams = [shelf.inputs[name] for name in streams_of(standing)]
        self._sides = [self._side(number) for number in range(len(self._streams))]
        self._closed: dict[Key, list[Description]] = {}
        """By partition, what its punctuations have closed, as far as it may be keys; all of it when it has ended."""
        self._now = Fraction(0)

    def _side(self, number: int) -> _KeyedSide:
        standing = self._askers[0].standing
        names = [clause.variable for clause in standing.fors]
        pairs = keys_of(standing)
        terms = {name: tuple(_terms_of(name, pairs)) for name in names}
        ties = (
            _Tie(terms[mine.variable].index(mine), names.index(other.variable), terms[other.variable].index(other))
            for pair in pairs
            for mine, other in ((pair.left, pair.right), (pair.right, pair.left))
            if mine.variable == names[number]
        )
        stream = self._streams[number]
        spelling = Spelling(standing.env.namespaces, stream.root.namespaces)
        paths = []
        for term in terms[names[number]]:
            found = path_term(term.value)
            source = standing.fors[number].source
            paths.append(None if found is None else path_in_item(source, found.path, spelling))
        return _KeyedSide(terms[names[number]], tuple(paths), tuple(ties), stream.source.retain)

    # --- what comes -------------------------------------------------------------------------------------------

    def item(self, kept: HeldItem) -> None:
        """Take the next item: it goes to each `for` over its stream, in order."""
        self._reach(kept.time)
        for number, stream in enumerate(self._streams):
            if stream.name == kept.entry.origin.stream:
                entering = self._judged(number, kept)
                self._meet(number, entering)
                for each in entering:
                    if not self._is_closed(number, each):
                        self._sides[number].hold(each)

    def signal(self, signal: StreamSignal) -> None:
        """Take a punctuation or the end of a partition, and drop what can meet nothing new."""
        self._reach(signal.time)
        where = EVERYTHING if signal.punctuation is None else signal.punctuation.where
        paths = {
            path
            for side, stream in zip(self._sides, self._streams, strict=True)
            for path in side.paths
            if stream.name == signal.stream.name
        }
        if where is None or (where != EVERYTHING and paths.isdisjoint(description.paths(where))):
            return
        closed = self._closed.setdefault((signal.stream.name, signal.partition), [])
        closed.append(where)
        if len(closed) > _FEW:
            closed[:] = _uncovered(closed)
        for number, side in enumerate(self._sides):
            for each in self._possibly_closed(number, side, signal.stream.name, where):
                if self._is_closed(number, side.held[each]):
                    side.drop(each)

    def finish(self) -> None:
        """The inputs have ended: all pairs have come."""

    def _reach(self, time: Fraction) -> None:
        self._now = max(self._now, time)
        for side in self._sides:
            side.forget(self._now)

    def _judged(self, number: int, kept: HeldItem) -> list[_HeldKeys]:
        """The nodes that one `for` selects of an item, with their keys; none without a key is ever met."""
        found = kept.candidates(number)
        if found.error is not None:
            self._everyone.bury(kept, found.error)
        judged: list[_HeldKeys] = []
        for index, each in enumerate(found.nodes):
            if not each.selected:
                continue
            held = HeldNode(kept.time, kept, number, index)
            try:
                values = self._values(held)
            except DynamicError as error:
                self._everyone.bury(kept, error)
                return []
            filed = tuple(tuple(map(_KeyValue.of, _comparable(each))) for each in values)
            if all(filed):
                judged.append(_HeldKeys(held, filed, values))
        return judged

    def _values(self, held: HeldNode) -> tuple[list[Atomic], ...]:
        units, node = self._shelf.units, held.node
        return tuple(operands(units.value(held.clause, node, term.value)) for term in self._sides[held.clause].terms)

    # --- what meets ---------------------------------------------------------------------------------------------

    def _meet(self, number: int, entering: Sequence[_HeldKeys]) -> None:
        """Answer the tuples that the nodes of an item complete."""
        found = [tuple(each.node for each in tuple_) for tuple_ in self._tuples(number, entering)]
        # the tuples of the same items are answered all or none
        for _, unit in groupby(found, key=lambda tuple_: [each.kept.number for each in tuple_]):
            tuples = list(unit)
            for asker in self._askers:
                makes = [partial(asker.tuple, each, [held.node for held in each]) for each in tuples]
                asker.answers.give(tuples[0][-1].kept, [held for each in tuples for held in each], *makes)

    def _tuples(self, number: int, entering: Sequence[_HeldKeys]) -> Iterator[tuple[_HeldKeys, ...]]:
        """One node for each `for`, the outer ones first; those of one `for` are the `entering` ones."""
        return self._extended({}, 0, number, entering)

    def _extended(
        self, chosen: Mapping[int, _HeldKeys], place: int, number: int, entering: Sequence[_HeldKeys]
    ) -> Iterator[tuple[_HeldKeys, ...]]:
        if place == len(self._sides):
            yield tuple(chosen[each] for each in range(place))
            return
        if place == number:
            possible: Iterable[_HeldKeys] = entering
        else:
            possible = self._like(place, chosen, {} if number in chosen else {number: entering})
        for each in possible:
            if all(self._equal(each, tie, chosen[tie.other]) for tie in self._sides[place].ties if tie.other in chosen):
                yield from self._extended({**chosen, place: each}, place + 1, number, entering)

    def _like(
        self, place: int, chosen: Mapping[int, _HeldKeys], entering: Mapping[int, Sequence[_HeldKeys]]
    ) -> list[_HeldKeys]:
        """The nodes of a `for` that may meet those that are `chosen`, and some of those that are `entering`."""
        side = self._sides[place]
        found: set[int] | None = None
        for tie in side.ties:
            others = [chosen[tie.other]] if tie.other in chosen else entering.get(tie.other)
            if others is not None:
                like = side.like(tie.term, [key for other in others for key in other.filed[tie.other_term]])
                found = like if found is None else found & like
        return [side.held[each] for each in (side.held if found is None else sorted(found))]

    def _equal(self, one: _HeldKeys, tie: _Tie, other: _HeldKeys) -> bool:
        for each in (one, other):
            if each.values is None:
                each.values = self._values(each.node)
        assert one.values is not None
        assert other.values is not None
        return keys_meet(one.values[tie.term], other.values[tie.other_term])

    # --- what is over -------------------------------------------------------------------------------------------

    def _possibly_closed(self, number: int, side: _KeyedSide, stream: str, where: Description) -> list[int]:
        """The nodes of a `for` that a punctuation of a stream may concern: all, or those with the key that it names."""
        others = [tie for tie in side.ties if self._streams[tie.other].name == stream]
        match where:
            case Comparison(path, "=", constant):
                text, value = (constant, None) if isinstance(constant, str) else (None, str(Fraction(constant)))
                named = (tie for tie in others if self._sides[tie.other].paths[tie.other_term] == path)
                return sorted({each for tie in named for each in side.like(tie.term, [_KeyValue(text, value)])})
            case _:
                return list(side.held) if others else []

    def _is_closed(self, number: int, found: _HeldKeys) -> bool:
        """Whether a node can be part of no tuple that is still to come."""
        return any(
            self._has_ended(number, other, found) and (len(self._sides) == 2 or not self._is_met(number, other, found))
            for other in {tie.other for tie in self._sides[number].ties}
        )

    def _has_ended(self, number: int, other: int, found: _HeldKeys) -> bool:
        """Whether no item comes for another `for` whose keys are those of a node."""
        stream, ties = self._streams[other], [tie for tie in self._sides[number].ties if tie.other == other]
        closed = [self._closed.get((stream.name, each), []) for each in range(len(stream.source.partitions))]
        if not all(closed):
            return False
        keys = [[each.known for each in found.filed[tie.term]] for tie in ties]
        paths = [self._sides[other].paths[tie.other_term] for tie in ties]
        combined = 1
        for each in keys:
            combined *= len(each)
        if combined > _MOST_COMBINED:
            return False
        for values in product(*keys):
            known = {path: each for path, each in zip(paths, values, strict=True) if path and each}
            if not all(any(covers_values(each, known) for each in part) for part in closed):
                return False
        return True

    def _is_met(self, number: int, other: int, found: _HeldKeys) -> bool:
        """Whether another `for` holds a node that may meet this one."""
        side = self._sides[other]
        return any(
            side.like(tie.other_term, found.filed[tie.term]) for tie in self._sides[number].ties if tie.other == other
        )

    # --- between epochs -----------------------------------------------------------------------------------------

    def future(self, asker: Asker) -> str:
        """The future of each of its queries (`branch/futures.py`): they hold the same."""
        closed: list[Any] = []
        for key, found in sorted(self._closed.items()):
            if len(found) > _MOST_COMPARED:
                return NEVER
            closed.append([*key, sorted(map(str, _uncovered(found)))])
        now = str(self._now) if any(side.retained is not None for side in self._sides) else None
        return digest(now, closed, [node_since(each, self._shelf.taken) for each in self.held()])

    def held(self) -> list[HeldNode]:
        """All nodes that the branch holds."""
        return [each.node for side in self._sides for each in side.held.values()]

    def loads(self) -> Iterator[tuple[Sequence[Asker], int]]:
        """How many nodes queries hold."""
        yield self._askers, sum(len(side.held) for side in self._sides)

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rest of the state."""
        table = pa.Table.from_pylist([row for side in self._sides for row in side.rows()], schema=_SCHEMA)
        closed = [[*key, [str(each) for each in found]] for key, found in self._closed.items()]
        return {"now": str(self._now), "closed": closed}, {"held": table}

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Restore from `save`."""
        self._now = Fraction(meta["now"])
        self._closed = {(name, part): list(map(description.parse, found)) for name, part, found in meta["closed"]}
        for row in tables["held"].to_pylist():
            keys = tuple(tuple(_KeyValue(*each) for each in values) for values in json.loads(row["keys"]))
            self._sides[row["clause"]].hold(_HeldKeys(self._shelf.held(row), keys))
        for side in self._sides:
            heapify(side.ends)


def _uncovered(closed: Sequence[Description]) -> list[Description]:
    """The punctuations that no later one covers."""
    later = enumerate(closed, 1)
    return [each for at, each in later if not any(closes_all(other, each) for other in closed[at:])]


def _terms_of(name: str, pairs: Iterable[Any]) -> dict[KeyTerm, None]:
    """The keys of a variable, each once."""
    return {term: None for each in pairs for term in (each.left, each.right) if term.variable == name}


def _comparable(values: Iterable[Atomic]) -> list[Atomic]:
    """The values that may be equal to others."""
    return [each for each in values if not isinstance(each, JsonNull)]
