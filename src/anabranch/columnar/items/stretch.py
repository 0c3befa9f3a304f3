"""Stretches: consecutive entries of a batch between which nothing changes for the queries of their stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.columnar.items.evolution import PartitionCourse
from anabranch.columnar.scan.kernels import Flags
from anabranch.columnar.scan.shred import Shredded
from anabranch.stream.elements import DeadLetter, Punctuation, StreamElement

_Controls: TypeAlias = Mapping[int, StreamElement | DeadLetter]
"""Accents and punctuations, also bad ones, by entry."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive entries between which no unit or path changes: which are good items for certain, which controls."""

    shredded: Shredded
    known: Flags
    controls: _Controls

    @property
    def has_no_item(self) -> bool:
        """Whether all entries are control elements."""
        return len(self.controls) == len(self.known)

    def part(self, first: int, last: int) -> Stretch:
        return self._cut(first, last, {entry: each for entry, each in self.controls.items() if first <= entry < last})

    def _cut(self, first: int, last: int, controls: _Controls) -> Stretch:
        """A part with these control elements."""
        moved = {entry - first: each for entry, each in controls.items()}
        return Stretch(self.shredded.part(first, last), self.known[first:last], moved)

    def without(self, doubtful: Flags) -> Stretch:
        """The stretch with some entries that are not known to be good items after all."""
        return replace(self, shredded=self.shredded.unfit(doubtful), known=self.known & ~doubtful)

    def between_accents(self, course: PartitionCourse | None = None) -> Iterator[Stretch]:
        """The stretches between which the state of paths changes; an accent, also a bad one, is a stretch of its own.

        The elements of each must be read before the next stretch is taken.
        """
        begin = 0
        passed: dict[int, StreamElement | DeadLetter] = {}
        for entry, each in self.controls.items():
            if isinstance(each, Punctuation) and not (course and course.splits_at_punctuations):
                passed[entry] = each
                continue
            if begin < entry:
                yield self._cut(begin, entry, passed)
            yield self._cut(entry, entry + 1, {entry: each})
            begin, passed = entry + 1, {}
        if begin < len(self.known):
            yield self._cut(begin, len(self.known), passed) if begin else self
