"""Stretches: entries of a batch between which nothing changes, so that all of one are answered in one state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.columnar.items.course import Course
from anabranch.columnar.scan.kernels import Flags
from anabranch.columnar.scan.shred import Shredded
from anabranch.stream.elements import DeadLetter, Punctuation, StreamElement

_Sayings: TypeAlias = Mapping[int, StreamElement | DeadLetter]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries in a row, which of them are good items for certain, and what they say of those behind them."""

    shredded: Shredded
    known: Flags
    said: _Sayings

    @property
    def is_said(self) -> bool:
        """Whether there is nothing but what is said, and no item."""
        return len(self.said) == len(self.known)

    def part(self, first: int, last: int) -> Stretch:
        return self._cut(first, last, {entry: each for entry, each in self.said.items() if first <= entry < last})

    def _cut(self, first: int, last: int, said: _Sayings) -> Stretch:
        """A part in which this is said."""
        moved = {entry - first: each for entry, each in said.items()}
        return Stretch(self.shredded.part(first, last), self.known[first:last], moved)

    def without(self, doubtful: Flags) -> Stretch:
        """The same, with entries that are not known after all."""
        return replace(self, shredded=self.shredded.unfit(doubtful), known=self.known & ~doubtful)

    def between_accents(self, course: Course | None) -> Iterator[Stretch]:
        """The stretches between which the state of paths changes; an accent, also a bad one, is one of its own.

        Each is taken in by the course before the next is asked for.
        """
        begin = 0
        passed: dict[int, StreamElement | DeadLetter] = {}
        for entry, each in self.said.items():
            if isinstance(each, Punctuation) and not (course and course.parted):
                passed[entry] = each
                continue
            if begin < entry:
                yield self._cut(begin, entry, passed)
            yield self._cut(entry, entry + 1, {entry: each})
            begin, passed = entry + 1, {}
        if begin < len(self.known):
            yield self._cut(begin, len(self.known), passed) if begin else self
