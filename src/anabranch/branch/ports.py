"""What a branch is told and what it is given: its streams, where answers go, and where entries may wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from anabranch.algebra.accents.evolution import Evolution
from anabranch.law.evolution.vantage import Change
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import Element


class Reader(Protocol):
    """Makes elements of cuts."""

    def elements(self, cuts: Iterable[Cut], partition: str) -> Iterator[StreamElement | DeadLetter]: ...


@dataclass(frozen=True, slots=True)
class Start:
    """A partition as it was when a branch began late (LAWS 3.6): what is shown first, and what values mean since."""

    evolution: Evolution
    """Not to be changed."""
    shown: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class InputStream:
    """A stream as a branch reads it: its description, its reader, and where the branch began in it (LAWS 3.6)."""

    source: Source
    root: Element
    """The stream's root element, without items."""
    reader: Callable[[], Reader]
    late: bool = False
    """Whether the subscription came after the stream had begun."""
    endless: bool = False
    """Whether nobody waits for its end, as in a trunk that runs."""
    starts: Callable[[], Sequence[Start]] | None = None
    """Its partitions where the branch began; None at the beginning of the stream."""
    is_json: bool = False
    """Whether its items are lines of JSON."""

    @property
    def name(self) -> str:
        return self.source.name


class Output(Protocol):
    """Takes what a branch gives, in the order of the answer."""

    def piece(self, text: str) -> None: ...

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        """Several one behind the other; the first is `first` bytes long."""

    def bury(self, letter: DeadLetter) -> None: ...

    def late(self, place: Place) -> None: ...


class Spill(Protocol):
    """Keeps bytes on disk, for entries that have to wait."""

    def write(self, data: bytes) -> str:
        """Keep some bytes; gives the name they can be read by."""

    def read(self, ref: str) -> bytes: ...
