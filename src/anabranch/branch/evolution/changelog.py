"""The changelog of a branch: the events for its queries, as its state keeps them.

The evolution of a partition follows from its events, and so do the accents that came out of a query; so a branch keeps
the events in its state, and replays them when it is opened.
A punctuation that a later one covers can be left out, unless an accent came between the two, or out of one of them: so
a stream that closes window after window for years has a short log, which is compacted when it has doubled.
Accents in force when a branch began late (LAWS 3.6) are in the logs of its streams, and not in its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from anabranch.algebra.accents.boxes import boxes, inside
from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.sets import items_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.ports import InputStream, Start
from anabranch.errors import StreamError
from anabranch.stream import description
from anabranch.stream.elements import Punctuation
from anabranch.stream.path import Path

_COMPARED = 64
"""The number of later punctuations that a punctuation is compared with."""
_SHORT_LOG = 64
"""A shorter log is not compacted."""


@dataclass(frozen=True)
class WindowsReached:
    """All items of a stream below a value at a path have come; values are in the units of query start."""

    stream: str
    path: Path
    value: Fraction

    @property
    def json(self) -> list[Any]:
        """The entry as written."""
        return [self.stream, list(self.path.steps), str(self.value)]


Entry: TypeAlias = Announced | WindowsReached


@dataclass(slots=True)
class Changelog:
    """All events to be replayed, in order."""

    entries: list[Entry] = field(default_factory=list)
    lasting: list[bool] = field(default_factory=list)
    """By entry: whether it is never left out."""
    full: int = _SHORT_LOG
    """The length at which the log is compacted."""

    def add(self, entry: Entry, *, let_out: bool) -> bool:
        """Append an entry; `let_out` says that an accent came out of it.  Whether to compact the log now."""
        closes = isinstance(entry, WindowsReached) or isinstance(entry.event, Punctuation)
        self.entries.append(entry)
        self.lasting.append(let_out or not closes)
        return len(self.entries) >= self.full

    def thin(self) -> None:
        """Leave out entries that later ones cover."""
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
        self.full = max(_SHORT_LOG, 2 * len(kept))

    def to_json(self) -> dict[str, Any]:
        """The log as written."""
        return {"entries": [each.json for each in self.entries], "lasting": self.lasting, "full": self.full}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Changelog:
        """The log from its written form."""
        return Changelog(list(map(_entry, value["entries"])), list(value["lasting"]), value["full"])


def _entry(value: list[Any]) -> Entry:
    if len(value) != 3:
        return Announced.from_json(value)
    stream, steps, text = value
    return WindowsReached(stream, Path(tuple(steps)), Fraction(text))


def _covers(later: Entry, earlier: Entry) -> bool:
    """Whether an entry that closes items says all that an earlier one says."""
    match later, earlier:
        case WindowsReached(), WindowsReached():
            return (later.stream, later.path) == (earlier.stream, earlier.path)
        case Announced(stream, partition, Punctuation(where)), Announced(of, number, Punctuation(before)):
            return (stream, partition) == (of, number) and closes_all(where, before)
        case _:
            return False


def closes_all(later: description.Description | None, earlier: description.Description | None) -> bool:
    """Whether a punctuation closes all items that an earlier one closes."""
    closed = _boxes(earlier)
    return bool(closed) and all(any(inside(box, part) for part in _boxes(later)) for box in closed)


@lru_cache(maxsize=1_024)
def _boxes(where: description.Description | None) -> Sequence[Box]:
    """The items that a punctuation closes, as boxes; none where there are too many."""
    assert where is not None, "heartbeats are not remembered"
    try:
        return boxes(items_of(where))
    except StreamError:
        return ()


# --- where a branch began -----------------------------------------------------------------------------------------


def starts_of(streams: Iterable[InputStream]) -> dict[Key, Start]:
    """The starts of late streams' partitions, which follow from the streams' logs in every epoch."""
    late = [(stream.name, stream.starts()) for stream in streams if stream.starts is not None]
    return {(name, number): each for name, found in late for number, each in enumerate(found)}


def shown_at(starts: Mapping[Key, Start]) -> list[Announced]:
    """The accents shown to a branch first, as events at its beginning."""
    return [Announced(*key, each) for key, start in starts.items() for each in start.shown]
