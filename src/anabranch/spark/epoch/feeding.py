"""Feeds: the raw elements of a range, packed for the branches that read their stream.

Bad elements are left out, except accents that leave paths in doubt (LAWS 4.5), which are packed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anabranch.branch.intake.entries import FeedOrigin, pack, pack_columns
from anabranch.columnar.expressions.tree import Column
from anabranch.columnar.items.answering import Shown
from anabranch.columnar.match.condition import Condition
from anabranch.columnar.match.index import Matches
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.kernels import Flags
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded
from anabranch.spark.intake.ranges import Range
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.lines import Cut

_MOST_RUNS = 16
"""The number of feeds up to which items of the usual look are packed apart from others."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A compiled query that reads no column: raw items need only be known as good."""

    columns: set[Column] = field(default_factory=set)
    numbers: set[Column] = field(default_factory=set)
    conditions: tuple[Condition, ...] = ()
    missing: int = 0

    @staticmethod
    def compile(root: str, look: Look) -> Unread:
        return Unread()


class RawFeed:
    """Packs all good elements of one range, in order."""

    def __init__(self, reach: Range, *, timed: bool) -> None:
        """`timed` says that the stream declares a time path; the time of arrival is then not packed (LAWS 1.3)."""
        arrived = None if reach.arrived is None or timed else Fraction(reach.arrived, 1_000_000)
        self._origin = FeedOrigin(reach.stream, int(reach.partition), reach.file, arrived)
        self._packed: list[bytes] = []

    def judge(self, compiled: Unread | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        self._shredded = shredded
        self._good = known.copy()
        self._reasons: dict[int, str] = {}
        return ~known

    def show(self, entry: int, element: Shown) -> None:
        self._good[entry] = True
        if isinstance(element, DeadLetter):
            self._reasons[entry] = element.reason

    def take(self) -> None:
        picks = np.flatnonzero(self._good)
        fits = self._shredded.fits[picks]
        borders = np.flatnonzero(fits[1:] != fits[:-1]) + 1
        runs = np.split(picks, borders) if len(borders) < _MOST_RUNS else [picks]
        for each in runs:
            if len(each):
                self._pack(each)

    def _pack(self, picks: NDArray[np.int64]) -> None:
        """Pack entries as one feed."""
        shredded = self._shredded
        if not shredded.fits[picks].all():
            self._packed.append(pack(self._origin, [self._cut(int(entry)) for entry in picks]))
            return
        begins, finishes = shredded.begins, shredded.finishes
        offsets = np.zeros(len(picks) + 1, np.int32)
        np.cumsum(finishes[picks] - begins[picks], out=offsets[1:])
        raw = np.empty(offsets[-1], np.uint8)
        kernels.gather(shredded.raw, begins, finishes, picks, offsets, raw)
        around = shredded.around
        root = None if around.root is None else around.root.encode("latin-1")
        starts = shredded.positions(picks)
        ends = starts + (finishes[picks] - begins[picks])
        origins = shredded.origins
        messages = None if origins is None else origins.messages.packed(origins.numbers[picks])
        self._packed.append(pack_columns(self._origin, starts, ends, offsets, raw, root, around.encoding, messages))

    def _cut(self, entry: int) -> Cut:
        cut = self._shredded.cut(entry)
        return cut._replace(reason=self._reasons[entry]) if entry in self._reasons else cut

    def packed(self) -> Iterator[bytes]:
        """The feeds, one behind the other."""
        return iter(self._packed)
