"""The changelog of a branch: the events that its queries were told, as it remembers them.

An evolution follows from the events of its partition, and so does what has come out of a query; so a branch keeps the
events in its state, and tells them again when it is opened.
A punctuation that a later one covers can be left out, unless an accent came between the two, or out of one of them: so
a stream that closes window after window for years leaves a short log, which is thinned when it has doubled.
What was in force when a branch began late (LAWS 3.6) is not told by events: that evolution is written as its layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from anabranch.algebra.accents.boxes import boxes, inside, thinned
from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.layers import Layer, LayerChange
from anabranch.algebra.accents.sets import description_of, items_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.ports import InputStream, Start
from anabranch.errors import StreamError
from anabranch.predicate import and_
from anabranch.stream import description
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Punctuation
from anabranch.stream.path import Path

_COMPARED = 64
"""The punctuations behind an earlier one that it is compared with."""
_SHORT = 64
"""A log of so few entries is not thinned."""


@dataclass(frozen=True)
class WindowsReached:
    """All items of a stream with less than a value at a path have come; values are those of query start."""

    stream: str
    path: Path
    value: Fraction

    @property
    def json(self) -> list[Any]:
        """The entry as it is written down."""
        return [self.stream, list(self.path.steps), str(self.value)]


Entry: TypeAlias = Announced | WindowsReached


@dataclass(slots=True)
class Changelog:
    """All that has to be told again, in order."""

    entries: list[Entry] = field(default_factory=list)
    lasting: list[bool] = field(default_factory=list)
    """By entry: whether it is there for good."""
    full: int = _SHORT
    """How long the log may be until it is thinned."""

    def add(self, entry: Entry, *, came: bool) -> bool:
        """Remember an entry; `came` says that an accent came of it.  Gives whether the log is to be thinned now."""
        closes = isinstance(entry, WindowsReached) or isinstance(entry.event, Punctuation)
        self.entries.append(entry)
        self.lasting.append(came or not closes)
        return len(self.entries) >= self.full

    def thin(self) -> None:
        """Leave out what later entries cover."""
        kept: list[tuple[Entry, bool]] = []
        later: list[Entry] = []
        for entry, lasting in zip(reversed(self.entries), reversed(self.lasting), strict=True):
            if lasting:
                later.clear()
            elif any(_covers(each, entry) for each in later[-_COMPARED:]):
                continue
            else:
                later.append(entry)
            kept.append((entry, lasting))
        self.entries = [entry for entry, _ in reversed(kept)]
        self.lasting = [lasting for _, lasting in reversed(kept)]
        self.full = max(_SHORT, 2 * len(kept))

    def to_json(self) -> dict[str, Any]:
        """What is written down of it."""
        return {"entries": [each.json for each in self.entries], "lasting": self.lasting, "full": self.full}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Changelog:
        """The log that was written so."""
        return Changelog(list(map(_entry, value["entries"])), list(value["lasting"]), value["full"])


def _entry(value: list[Any]) -> Entry:
    if len(value) != 3:
        return Announced.from_json(value)
    stream, steps, text = value
    return WindowsReached(stream, Path(tuple(steps)), Fraction(text))


def _covers(later: Entry, earlier: Entry) -> bool:
    """Whether an entry that closes items says all that an earlier one said."""
    match later, earlier:
        case WindowsReached(), WindowsReached():
            return (later.stream, later.path) == (earlier.stream, earlier.path)
        case Announced(stream, partition, Punctuation(where)), Announced(of, number, Punctuation(before)):
            closed = _boxes(before) if (stream, partition) == (of, number) else ()
            return bool(closed) and all(any(inside(box, part) for part in _boxes(where)) for box in closed)
        case _:
            return False


@lru_cache(maxsize=1_024)
def _boxes(where: description.Description | None) -> Sequence[Box]:
    """The items that a punctuation closes; what is too much to be told apart covers nothing."""
    assert where is not None, "heartbeats are not remembered"
    try:
        return boxes(items_of(where))
    except StreamError:
        return ()


# --- where a branch began -----------------------------------------------------------------------------------------


def begun(streams: Iterable[InputStream], state: list[Any] | None) -> dict[Key, Start]:
    """Where the partitions of late streams are seen from: as `begun_to_json` wrote it down, or now, without a state."""
    known = {stream.name: stream for stream in streams}
    if state is not None:
        return {(name, number): _start_from_json(known[name], *told) for name, number, *told in state}
    starts = {name: stream.starts() for name, stream in known.items() if stream.starts is not None}
    return {(name, number): each for name, found in starts.items() for number, each in enumerate(found)}


def begun_to_json(begun: Mapping[Key, Start]) -> list[Any]:
    """To be written down when the branch begins: an evolution goes on with the branch."""
    return [
        [*key, _evolution_to_json(start.evolution), [each.json for each in shown_at({key: start})]]
        for key, start in begun.items()
    ]


def shown_at(begun: Mapping[Key, Start]) -> list[Announced]:
    """What is shown to a branch first, as events of its beginning."""
    return [Announced(*key, each) for key, start in begun.items() for each in start.shown]


def _start_from_json(stream: InputStream, evolution: dict[str, Any], shown: list[list[Any]]) -> Start:
    events = (Announced.from_json(each).event for each in shown)
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
        made: LayerChange = change if change in ("add", "drop", "unknown") else _affine(change)
        for box in boxes(items_of(description.parse(where), evolution.domains)):
            layer = Layer(0, thinned(box), made, tuple(map(_affine, steps)), type_)
            evolution.lay(Path.parse(path, itself=True), layer)
    return evolution


def _numbers(by: Affine) -> list[str]:
    return [str(by.a), str(by.b)]


def _affine(numbers: list[str]) -> Affine:
    a, b = map(Fraction, numbers)
    return Affine(a, b)
