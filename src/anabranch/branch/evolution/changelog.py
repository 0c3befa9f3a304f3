"""What the elements of a stream have said of the items behind them, as a branch remembers it.

An evolution follows from what was said, and so does what has come out of a query; so a branch keeps the sayings in its
state, and hears them again when it is opened.
What was in force when it began late (LAWS 3.6) is no row of sayings: that evolution is written down as its layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

from anabranch.algebra.accents.boxes import boxes, inside, thinned
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.layers import Change, Layer
from anabranch.algebra.accents.sets import description_of, items_of
from anabranch.branch.ports import InputStream, Start
from anabranch.errors import StreamError
from anabranch.predicate import and_
from anabranch.stream import description
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Place, Punctuation
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of, write

Event: TypeAlias = Accent | Punctuation | DeadLetter


@dataclass(frozen=True)
class Said:
    """What one element of a partition said, when a branch had taken so many items."""

    stream: str
    partition: int
    taken: int
    event: Event

    @cached_property
    def json(self) -> list[Any]:
        """What is written down of it."""
        place = self.event.place
        said: list[Any]
        if isinstance(self.event, DeadLetter):
            said = [self.event.reason, *([str(each.path), str(each.where)] for each in self.event.doubts)]
        else:
            said = [write(self.event)]
        return [self.stream, self.partition, self.taken, place.partition, place.offset, said]

    @staticmethod
    def from_json(value: list[Any]) -> Said:
        stream, partition, taken, file, offset, (first, *doubts) = value
        place = Place(stream, file, offset)
        if doubts:
            found = tuple(Doubt(Path.parse(path, itself=True), description.parse(where)) for path, where in doubts)
            return Said(stream, partition, taken, DeadLetter(place, first, "", doubts=found))
        event = element_of(parse_item(first.encode(), DOCUMENT), place)
        assert isinstance(event, Accent | Punctuation), "it was written down as one of them"
        return Said(stream, partition, taken, event)


def is_superfluous(before: Said, said: Said) -> bool:
    """Whether a punctuation says no more than one that came later in the same partition."""
    closed, later = _closed(before.event), _closed(said.event)
    same = (before.stream, before.partition) == (said.stream, said.partition)
    return same and bool(closed) and all(any(inside(box, part) for part in later) for box in closed)


def _closed(event: Event) -> Sequence[Box]:
    assert isinstance(event, Punctuation), "nothing else is left out"
    assert event.where is not None, "heartbeats are not remembered"
    return _boxes(event.where)


@lru_cache(maxsize=1_024)
def _boxes(where: description.Description) -> Sequence[Box]:
    """The items that a punctuation closes; what is too much to be told apart covers nothing."""
    try:
        return boxes(items_of(where))
    except StreamError:
        return ()


Key: TypeAlias = tuple[str, int]
"""An input: the name of its stream and the number of the partition."""


def begun(streams: Iterable[InputStream], state: list[Any] | None) -> dict[Key, Start]:
    """Where the partitions of late streams are seen from: as `begun_to_json` wrote it down, or now, without a state."""
    known = {stream.name: stream for stream in streams}
    if state is not None:
        return {(name, number): _start_from_json(known[name], *told) for name, number, *told in state}
    starts = {name: stream.starts() for name, stream in known.items() if stream.starts is not None}
    return {(name, number): each for name, found in starts.items() for number, each in enumerate(found)}


def begun_to_json(begun: Mapping[Key, Start]) -> list[Any]:
    """To be written down when the branch begins: an evolution goes on with the branch."""
    return [[*key, *_start_to_json(key, start)] for key, start in begun.items()]


def _start_to_json(key: Key, start: Start) -> list[Any]:
    return [_evolution_to_json(start.evolution), [Said(*key, 0, each).json for each in start.shown]]


def _start_from_json(stream: InputStream, evolution: dict[str, Any], shown: list[list[Any]]) -> Start:
    events = (Said.from_json(each).event for each in shown)
    changes = tuple(each for each in events if not isinstance(each, Punctuation))
    return Start(_evolution_from_json(stream.evolution(), evolution), changes)


def _evolution_to_json(evolution: Evolution) -> dict[str, Any]:
    """All that is in force, the oldest first, and the paths whose declared domains still hold."""
    rows: list[Any] = []
    for path, layer in evolution.live():
        change = layer.change if isinstance(layer.change, str) else _numbers(layer.change)
        where = str(description_of(and_(*layer.box)))
        rows.append([str(path), where, change, [_numbers(each) for each in layer.steps], layer.type])
    return {"layers": rows, "promised": sorted(map(str, evolution.domains))}


def _evolution_from_json(fresh: Evolution, value: dict[str, Any]) -> Evolution:
    """What `_evolution_to_json` was given; `fresh` is the stream at its beginning."""
    domains = {path: domain for path, domain in fresh.domains.items() if str(path) in value["promised"]}
    evolution = Evolution(fresh.declares, domains)
    for path, where, change, steps, type_ in value["layers"]:
        made: Change = change if change in ("add", "drop", "unknown") else _affine(change)
        for box in boxes(items_of(description.parse(where), evolution.domains)):
            layer = Layer(0, thinned(box), made, tuple(map(_affine, steps)), type_)
            evolution.lay(Path.parse(path, itself=True), layer)
    return evolution


def _numbers(by: Affine) -> list[str]:
    return [str(by.a), str(by.b)]


def _affine(numbers: list[str]) -> Affine:
    a, b = map(Fraction, numbers)
    return Affine(a, b)
