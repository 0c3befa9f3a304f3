"""Which elements a stream accepts: whatever its kind excludes is bad input, wherever the stream is read (LAWS 2.5).

A stream of items has no regions and no updates, neither between its items nor inside them (LAWS 5.1).
A stream that was declared to have no accents has none, nor has any stream where accents are turned off (LAWS 4.5).
In a stream of updates the paths of declared domains and of times do not evolve: what was written there describes and
orders what comes later.
A stream of several partitions without a declared time is read one partition after the other, so none of its elements
can have a time of its own (LAWS 1.3).

These are the only rules, and every reader of a stream applies them to every element.
So an element is set aside at the same place and with the same reason by the reference, by tasks and by branches.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import BadItem
from anabranch.stream.elements import (
    LONGEST_RAW,
    Accent,
    DeadLetter,
    Item,
    Punctuation,
    Region,
    StreamElement,
    StreamToken,
    Update,
)
from anabranch.stream.path import Path
from anabranch.stream.reading.wire import BadAccent, refused, write
from anabranch.stream.tree import STREAM_NAMESPACE, Element, descendants

NOT_DECLARED = "the stream was declared to have no accents"
TURNED_OFF = "accents are turned off here: leave 'accents = false' out of [engine]"
_ITEMS = "stands in a stream of items: one that is edited needs 'updates = true'"
_STAYS = "does not evolve in a stream of updates: it has a declared domain, or the times of elements"
_TIMED = "has a time of its own, and the stream has several partitions and no time: declare a time path"


@dataclass(frozen=True, slots=True)
class Admission:
    """The elements that a stream accepts."""

    updates: bool = True
    """Whether it accepts regions and updates."""
    accents: str = ""
    """Why it accepts no accents; empty where it does."""
    times: bool = True
    """Whether its elements may have times of their own."""
    fixed: tuple[Path, ...] = ()
    """The paths that do not evolve."""

    @staticmethod
    def of(
        *, updates: bool, evolves: bool, merged: bool, accents: bool = True, fixed: tuple[Path, ...] = ()
    ) -> Admission:
        """The admission of a stream by its settings; `merged`: its partitions are merged by time, or there is one.

        `fixed` are the paths that do not evolve where it is one of updates.
        """
        reason = "" if evolves else NOT_DECLARED
        return Admission(updates, reason or ("" if accents else TURNED_OFF), merged, fixed if updates else ())

    def check(self, element: StreamElement) -> None:
        """Check an element; BadItem where the stream does not accept it."""
        if self.accents and isinstance(element, Accent):
            raise refused(element, self.accents)
        if self.fixed and isinstance(element, Accent):
            self._check_fixed(element)
        if not self.updates and (control := _control_in(element)) is not None:
            raise BadItem(f"{control} {_ITEMS}")
        if not self.times and element.at is not None:
            reason = f"{_kind_of(element)} {_TIMED}"
            raise refused(element, reason) if isinstance(element, Accent) else BadItem(reason)

    def _check_fixed(self, accent: Accent) -> None:
        steps = accent.evolution.path.steps
        for path in self.fixed:
            common = min(len(steps), len(path.steps))
            if steps[:common] == path.steps[:common]:
                raise refused(accent, f"'{path}' {_STAYS}")

    def admitted(self, element: StreamElement | DeadLetter) -> StreamElement | DeadLetter:
        """The element, or a dead letter where the stream does not accept it."""
        if isinstance(element, DeadLetter):
            return element
        try:
            self.check(element)
        except BadItem as error:
            doubts = error.doubts if isinstance(error, BadAccent) else ()
            return DeadLetter(element.place, error.message, write(element)[:LONGEST_RAW], doubts=doubts)
        return element


EVERYTHING = Admission()
"""Accepts every element."""


def _control_in(element: StreamElement) -> str | None:
    """The region or update that an element is or contains, in words; None where there is none."""
    match element:
        case Region() | Update() | StreamToken():
            return _kind_of(element)
        case Item(tree):
            for each in descendants(tree):
                if isinstance(each, Element) and each.name.uri == STREAM_NAMESPACE:
                    return "a region inside an item" if each.name.local == "mutable" else "an update inside an item"
    return None


def _kind_of(element: StreamElement) -> str:
    match element:
        case Item():
            return "an item"
        case Accent():
            return "an accent"
        case Punctuation():
            return "a punctuation"
        case Region():
            return "a region"
        case Update():
            return "an update"
        case StreamToken():
            return "a token of a region or an element"
