"""The interface of a branch: its streams, where answers go, and where entries may wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.intake.shared_elements import SharedElements
from anabranch.law.evolution.vantage import Change
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import Element


class Reader(Protocol):
    """Parses cuts into elements."""

    def elements(self, cuts: Iterable[Cut], partition: str) -> Iterator[StreamElement | DeadLetter]: ...


@dataclass(frozen=True, slots=True)
class Start:
    """A partition as a branch that began late sees it (LAWS 3.6): the accents shown first, and its evolution."""

    evolution: Evolution
    """Read only."""
    shown: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class InputStream:
    """A stream as a branch reads it: its description, its reader, and the branch's starting point in it (LAWS 3.6)."""

    source: Source
    root: Element
    """The stream's root element, without items."""
    reader: Callable[[], Reader]
    late: bool = False
    """Whether the subscription came after the stream had begun."""
    endless: bool = False
    """Whether its end is not waited for, as in a trunk that runs."""
    starts: Callable[[], Sequence[Start]] | None = None
    """The starts of its partitions for this branch; None at the beginning of the stream."""
    is_json: bool = False
    """Whether its items are lines of JSON."""
    shared: SharedElements | None = None
    """The elements that were read for all branches of a shard, where it is a stream of updates."""

    @property
    def name(self) -> str:
        return self.source.name


def json_items(streams: Iterable[InputStream]) -> dict[str, str]:
    """The streams of JSON among some, each with the name of its items (LAWS 7.3)."""
    return {each.name: each.source.item_name for each in streams if each.is_json}


class Output(Protocol):
    """Receives the results of a branch, in the order of the answer."""

    def piece(self, text: str) -> None: ...

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        """Several concatenated pieces; the first has `first` bytes."""

    def bury(self, letter: DeadLetter) -> None: ...

    def late(self, place: Place) -> None: ...


class Spill(Protocol):
    """Stores bytes on disk, for entries that have to wait."""

    def write(self, data: bytes) -> str:
        """Store some bytes; gives the name to read them by."""

    def read(self, ref: str) -> bytes: ...
