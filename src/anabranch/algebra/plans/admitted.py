"""Judged streams: the elements of one source as operators get to see them, without what is bad (LAWS 4.5).

An accent that is refused leaves its path unknown for the items that it describes, until a drop makes it known again.
That needs no element of its own in the streams between operators: each item that is concerned says so
(`algebra/reactions/readings.py`).
A query aborts where it meets such an item and reads the path, so one that has selected others goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.passing import judged
from anabranch.algebra.accents.sets import UNDECLARED, Domains, items_of
from anabranch.algebra.operators.operator import Flowing, Heartbeat
from anabranch.algebra.reactions.changes import Change, Closing
from anabranch.algebra.reactions.readings import Reading
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree

Element: TypeAlias = Item | Accent | Punctuation
"""What a stream of items has, and what an answer has."""


class Judged:
    """One source; only `take` changes it."""

    def __init__(self, declares: Callable[[Path], bool] | None = None, domains: Domains = UNDECLARED) -> None:
        self.bad: list[DeadLetter] = []
        """What was set aside so far."""
        self._evolution = Evolution(declares, domains)
        self._mistrusted: dict[Path, str] = {}
        """The paths that have been unknown for some items, with the last reason."""

    def take(self, element: Element | DeadLetter) -> Flowing | None:
        """The next element, or None where it is set aside, or was when it was read."""
        match judged(element, self._evolution):
            case Item(tree):
                return self._reading(tree)
            case Accent(where, evolution):
                return Change(items_of(where), evolution)
            case Punctuation(where, _, at):
                if where is not None:
                    return Closing(items_of(where))
                assert at is not None, "a punctuation has a description or a time"
                return Heartbeat(at)
            case DeadLetter() as letter:
                self.bad.append(letter)
                doubtful = [element.evolution.path] if isinstance(element, Accent) else []
                doubtful += [each.path for each in letter.doubts]
                self._mistrusted.update(dict.fromkeys(doubtful, letter.reason))
                return None
            case other:
                raise AssertionError(other)  # updates are not for this algebra

    def _reading(self, tree: Tree) -> Reading:
        reading = Reading(tree)
        for path, reason in self._mistrusted.items():
            if self._evolution.state(path, tree).unit is None:
                reading = reading.mistrusted(path, reason)
        return reading
