"""The changelog of a branch: the events that its queries were told, as it remembers them.

An evolution follows from the events of its partition, and so does what has come out of a query; so a branch keeps the
events in its state, and tells them again when it is opened.
A punctuation that a later one covers can be left out, unless an accent came between the two, or out of one of them: so
a stream that closes window after window for years leaves a short log, which is thinned when it has doubled.
What was in force when a branch began late (LAWS 3.6) is in the logs of its streams, and not in its state.
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


def starts_of(streams: Iterable[InputStream]) -> dict[Key, Start]:
    """Where the partitions of late streams are seen from; that follows from the logs of the streams, in every epoch."""
    late = [(stream.name, stream.starts()) for stream in streams if stream.starts is not None]
    return {(name, number): each for name, found in late for number, each in enumerate(found)}


def shown_at(starts: Mapping[Key, Start]) -> list[Announced]:
    """What is shown to a branch first, as events of its beginning."""
    return [Announced(*key, each) for key, start in starts.items() for each in start.shown]
