"""Changes: what elements have said of the items behind them, as tasks report it and as it is kept.

An accent is kept as its text on the wire, valid or not: whether it holds follows from those before it.
Of a punctuation the description matters, of an accent that could not be read the paths that are in doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any, Literal, TypeAlias

from anabranch.algebra.accents.evolution import Evolution, Refusal
from anabranch.spark.intake.ranges import Position, Range
from anabranch.stream import description
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Place, Punctuation, StreamElement
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of, write

Kind: TypeAlias = Literal["accent", "closed", "doubt"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one element said, and where it stands in its stream."""

    partition: str
    number: int
    """The number of the stretch in its partition."""
    offset: int
    file: str
    kind: Kind
    text: str
    """The accent, or the description of the items that are closed or in doubt."""
    path: str = ""
    """The path that is in doubt."""
    reason: str = ""
    """Why an accent could not be read."""
    epoch: int = -1
    """The epoch that read it."""

    @property
    def position(self) -> Position:
        return Position(self.number, self.offset)

    def accent(self, stream: str) -> Accent:
        """The accent that it is."""
        found = element_of(parse_item(self.text.encode(), DOCUMENT), Place(stream, self.file, self.offset))
        assert isinstance(found, Accent), "it was written down as an accent"
        return found

    def element(self, stream: str) -> Accent | Punctuation | DeadLetter:
        """The element that said it, as far as it concerns those behind it."""
        place = Place(stream, self.file, self.offset)
        match self.kind:
            case "accent":
                return self.accent(stream)
            case "closed":
                return Punctuation(description.parse(self.text), place)
            case "doubt":
                doubt = Doubt(Path.parse(self.path, itself=True), description.parse(self.text))
                return DeadLetter(place, self.reason, "", doubts=(doubt,))

    def apply(self, evolution: Evolution, stream: str) -> Refusal | None:
        """Have an evolution go on behind it; the refusal of an accent that is not valid there."""
        match self.kind:
            case "accent":
                return evolution.apply(self.accent(stream))
            case "closed":
                evolution.close(description.parse(self.text))
            case "doubt":
                evolution.mistrust(Path.parse(self.path, itself=True), description.parse(self.text))
        return None

    def to_json(self) -> list[Any]:
        return list(astuple(self))

    @staticmethod
    def from_json(value: list[Any]) -> Change:
        return Change(*value)


def changes_of(element: StreamElement | DeadLetter, reach: Range, epoch: int) -> Iterator[Change]:
    """What an element of a range says of the items behind it."""

    def change(kind: Kind, text: str, path: str = "", reason: str = "") -> Change:
        return Change(reach.partition, reach.number, element.place.offset, reach.file, kind, text, path, reason, epoch)

    match element:
        case Accent():
            yield change("accent", write(element))
        case Punctuation(where) if where is not None:
            yield change("closed", str(where))
        case DeadLetter():
            yield from (change("doubt", str(each.where), str(each.path), element.reason) for each in element.doubts)
        case _:
            pass
