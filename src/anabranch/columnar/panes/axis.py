"""An axis: the reference values of all items of a range, for all time windows over the same reference.

Whether an item is late, and how far the stream has come, is decided here, in the order of the stream (LAWS 3.2): for
runs of clear entries in columns, and for single items in between by the law.
All values are exact and counted from the stream's origin: integers in columns, fractions else.

A range is counted without knowing the ranges before it.
An item that it finds late is late whatever came before; if an item that it did not find late is below what the stream
had reached before (`Reached.low`), the count is void, and the range is counted again from there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.moments import read_moments
from anabranch.columnar.panes.counted import ItemLaw, Reach, Reached, Seen
from anabranch.columnar.panes.kernels import (
    MOST_PLACES,
    MOST_TICKS,
    best_places,
    exact_ticks,
    read_decimals,
    text_ticks,
)
from anabranch.columnar.panes.query import PaneQuery
from anabranch.columnar.panes.units import Sight
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.path import TimeScale

_FAR = 1 << 62


@dataclass(frozen=True, slots=True)
class AxisBatch:
    """The values of some entries in order."""

    unclear: Flags
    """The entries that are left to the law."""
    ticks: Indices | None = None
    """The values of the others from the origin on, in units of `10**-places`; None where they have none."""
    places: int = 0
    most: int = 0
    """No value is larger, nor smaller than minus this."""
    are_times: Flags | None = None
    """Which of the values are times; None for none."""


class ReferenceAxis:
    """Judges the values of one range, batch after batch."""

    def __init__(
        self,
        query: PaneQuery,
        law: ItemLaw,
        largest: Reach | None = None,
        evolution: Evolution | None = None,
        early: Fraction = Fraction(0),
    ) -> None:
        """`query` and `law` are those of any member; `largest` is the largest value before the range, if known.

        `evolution` is given where values are not in the units of the start; times below `early` are left to the law.
        """
        self._scale, self._early = query.scale, early
        self._slack, self._origin = query.scale.slack, query.scale.origin
        self._least_places = _places(self._slack, self._origin)
        self._law = law
        self._evolution = evolution
        self._largest = largest
        self._low: Fraction | None = None
        self._first: Fraction | None = None
        self._late: dict[int, None] = {}

    @property
    def largest(self) -> Reach | None:
        """The largest value so far."""
        return self._largest

    def batch(self, sight: Sight, column: PartColumn, known: Flags) -> AxisBatch:
        """The values of some entries that stand in a column; `known` are the good items for certain."""
        if self._least_places > MOST_PLACES:
            return AxisBatch(np.ones(len(known), np.bool_))
        ticks, exact, places, are_times = _references(sight, column, self._least_places, self._scale)
        origin, slack = self._origin * 10**places, self._slack * 10**places
        if max(abs(origin), slack) >= MOST_TICKS:
            return AxisBatch(np.ones(len(known), np.bool_))
        ticks -= int(origin)
        if are_times.any():
            exact &= ~are_times | (ticks >= math.ceil(self._early * 10**places))
        times = are_times if are_times.any() else None
        return AxisBatch(~exact | ~known, ticks, places, int(np.abs(ticks).max(initial=0)), times)

    def take(
        self, batch: AxisBatch, shredded: Shredded, shown: Mapping[int, tuple[Item, Sequence[Seen]] | Punctuation]
    ) -> tuple[Bytes, dict[int, list[bool]]]:
        """Judge a batch whose unclear entries have been shown.

        Returns a state for each entry, 0 for those that are clear and not late, and by entry that was shown as an item
        which of its nodes are late.
        """
        states = np.ones(len(batch.unclear), np.uint8)
        nodes: dict[int, list[bool]] = {}
        begin = 0
        for entry in (*np.flatnonzero(batch.unclear).tolist(), len(states)):
            if begin < entry and batch.ticks is not None:
                states[begin:entry] = self._take_clear(batch, slice(begin, entry), shredded)
            match shown.get(entry):
                case None:
                    pass
                case Punctuation() as punctuation:
                    value = self._law.punctuation(punctuation, self._evolution)
                    if value is not None:
                        self._largest = value if self._largest is None else max(self._largest, value)
                case item, seen:
                    nodes[entry] = [self._take_shown(item.place.offset, node) for node in seen]
            begin = entry + 1
        return states, nodes

    def _take_clear(self, batch: AxisBatch, part: slice, shredded: Shredded) -> Flags:
        """Which of some clear entries are late."""
        assert batch.ticks is not None
        unit = 10**batch.places
        ticks = batch.ticks[part]
        tops = np.maximum.accumulate(ticks)
        bounds = np.full(len(ticks), self._bound(unit))
        bounds[1:] = np.maximum(bounds[1:], tops[:-1] - int(self._slack * unit))
        late = ticks < bounds
        for entry in np.flatnonzero(late).tolist():
            self._late[shredded.position(part.start + entry)] = None
        self._note(Fraction(int(ticks[0]), unit), Fraction(int(tops[-1]), unit))
        if not late.all():
            self._note_low(Fraction(int(ticks[~late].min()), unit))
        return late

    def _take_shown(self, offset: int, node: Seen) -> bool:
        if node.value is None:
            return False
        is_late = self._largest is not None and node.value < self._largest - self._slack
        self._note(node.value, node.value)
        if is_late:
            self._late[offset] = None
        else:
            self._note_low(node.value)
        return is_late

    def _bound(self, unit: int) -> int:
        """The least integer that is not late; beyond all values of columns where nothing or everything is late."""
        if self._largest is None:
            return -_FAR
        if isinstance(self._largest, float):
            return _FAR
        return max(-_FAR, min(_FAR, math.ceil((self._largest - self._slack) * unit)))

    def _note(self, first: Fraction, top: Fraction) -> None:
        if self._first is None:
            self._first = first
        self._largest = top if self._largest is None else max(self._largest, top)

    def _note_low(self, low: Fraction) -> None:
        self._low = low if self._low is None else min(self._low, low)

    def reached(self) -> Reached:
        """What the range has shown of this axis."""
        return Reached(self._largest, self._low, self._first, tuple(self._late))


def _places(*values: Fraction) -> int:
    """The number of decimal places by which decimals are whole numbers."""
    return next(n for n in range(10_000) if all((each * 10**n).denominator == 1 for each in values))


def _references(sight: Sight, column: PartColumn, least: int, scale: TimeScale) -> tuple[Indices, Flags, int, Flags]:
    """The values of entries as integers, which of them are exact, their decimal places, `least` or more, and the times.

    Times have many digits; so texts are read where they are known and in the units of the query: in items that fit.
    """
    shredded = sight.shredded
    assert shredded.wanted is not None, "only what was shredded is counted"
    row = shredded.row(column)
    if column in sight.mapped or not shredded.fits.any():
        places = max(least, best_places(shredded.values[row]))
        return *exact_ticks(shredded.values[row], places), places, np.full(len(shredded.fits), scale.is_time)
    mantissas, given = np.empty((2, len(shredded.fits)), np.int64)
    read_decimals(shredded.data, shredded.starts[row], shredded.ends[row], mantissas, given)
    are_times = _moments(shredded, row, mantissas, given, scale)
    tried = [least, *(each for each in (np.flatnonzero(np.bincount(given + 1)) - 1).tolist() if each > least)]
    places = max(tried, key=lambda each: int(np.count_nonzero(text_ticks(mantissas, given, each)[1])))
    ticks, exact = text_ticks(mantissas, given, places)
    others, known = exact_ticks(shredded.values[row], places)
    known &= ~shredded.fits
    if not scale.is_time:
        are_times &= ~known
    return np.where(known, others, ticks), exact | known, places, are_times


def _moments(shredded: Shredded, row: int, mantissas: Indices, given: Indices, scale: TimeScale) -> Flags:
    """Read dateTimes among texts that are no decimals, in units of a scale; returns which values are times."""
    others = given < 0
    if not others.any():
        return np.full(len(given), scale.is_time)
    read_moments(shredded.data, shredded.starts[row], shredded.ends[row], mantissas, given)
    found = others & (given >= 0)
    shift = len(str(scale.per_second)) - 1 - given[found]  # a power of ten
    power = 10 ** np.maximum(shift, 0)
    far = np.abs(mantissas[found]) > MOST_TICKS // power
    mantissas[found] *= np.where(far, 1, power)
    given[found] = np.where(far, -1, np.maximum(-shift, 0))
    return found | scale.is_time
