"""Events: what elements of a partition announce about the items behind them, and which elements are bad.

An accent, a punctuation that describes items, and a dead letter that leaves paths in doubt concern the items behind
them (LAWS 4.5, 4.8).
With its partition such an element is an *announced* event; tasks, panes, branches and plans all follow a stream's
evolution by these events, and all logs hold them, in one written form.

Bad elements, besides unreadable ones (LAWS 4.5), are: an accent that is not valid at its place, an item with a path
that was dropped for it, an item that a punctuation has closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from anabranch.algebra.accents.evolution import Evolution, RefusedAccent
from anabranch.algebra.accents.sets import description_of
from anabranch.predicate import NOTHING
from anabranch.stream import description
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Doubt, Item, Place, Punctuation, StreamElement
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.path import Path
from anabranch.stream.reading.json_items import item_text
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of, write

Event: TypeAlias = Accent | Punctuation | DeadLetter


@dataclass(frozen=True)
class Announced:
    """What one element of a partition announces about the items behind it."""

    stream: str
    partition: int
    event: Event
    taken: int = 0
    """The number of items that the receiving branch had taken before, where that matters."""

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The paths that change, or are in doubt from here on; none for a punctuation."""
        match self.event:
            case Accent(_, evolution):
                return (evolution.path,)
            case DeadLetter(doubts=doubts):
                return tuple(each.path for each in doubts)
            case _:
                return ()

    @cached_property
    def json(self) -> list[Any]:
        """The event as written in logs; of a dead letter only its doubts and the reason."""
        event, place = self.event, self.event.place
        if isinstance(event, DeadLetter):
            text: list[Any] = [event.reason, *([str(each.path), str(each.where)] for each in event.doubts)]
        else:
            text = [write(event)]
        return [self.stream, self.partition, self.taken, place.partition, place.offset, text]

    @staticmethod
    def from_json(value: list[Any]) -> Announced:
        """The event from its written form."""
        stream, partition, taken, file, offset, (first, *doubts) = value
        place = Place(stream, file, offset)
        if doubts:
            found = tuple(Doubt(Path.parse(path, itself=True), description.parse(where)) for path, where in doubts)
            return Announced(stream, partition, DeadLetter(place, first, "", doubts=found), taken)
        event = element_of(parse_item(first.encode(), DOCUMENT), place)
        assert isinstance(event, Accent | Punctuation), "it was written down as one of them"
        return Announced(stream, partition, event, taken)


def is_change(element: StreamElement | DeadLetter) -> bool:
    """Whether an element announces anything about the items behind it; a heartbeat does not."""
    match element:
        case Accent():
            return True
        case Punctuation(where):
            return where is not None
        case DeadLetter():
            return bool(element.doubts)
        case _:
            return False


def judged(element: StreamElement | DeadLetter, evolution: Evolution) -> StreamElement | DeadLetter:
    """The element, if it is good at its place, else a dead letter; updates the evolution."""
    match element:
        case Item(tree, place):
            reason = evolution.bad(tree)
            return element if reason is None else DeadLetter(place, reason, item_text(tree))
        case Accent():
            refused = evolution.apply(element)
            return element if refused is None else _letter(refused)
        case Punctuation(where):
            if where is not None:
                evolution.close(where)
        case DeadLetter():
            for doubt in element.doubts:
                evolution.mistrust(doubt.path, doubt.where)
        case _:
            pass
    return element


def _letter(refused: RefusedAccent) -> DeadLetter:
    accent, unknown = refused.accent, refused.unknown
    doubts = () if unknown == NOTHING else (Doubt(accent.evolution.path, description_of(unknown)),)
    return DeadLetter(accent.place, refused.reason, write(accent)[:LONGEST_RAW], doubts=doubts)
