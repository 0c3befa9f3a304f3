"""When the items of a join arrive and where they stand in its windows, as integers of one unit.

All times of both sides are brought to one unit, and all values, sizes and steps to another.
What is too large for that raises OverflowError, and the join is left to the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.ahead import Entries
from anabranch.branch.arrivals import NOWHERE, limit, times_of, unit_of_times
from anabranch.branch.batches import Batch, BatchReader
from anabranch.branch.joins import Side
from anabranch.branch.judging import Judge
from anabranch.branch.merge import Merge, Source
from anabranch.columnar.entries import common_unit, in_unit
from anabranch.columnar.kernels import Bytes, Indices
from anabranch.columnar.kernels_entries import VOID
from anabranch.columnar.merging import merged


@dataclass(frozen=True, slots=True)
class JoinSide:
    """What one side of the join consists of: its input, its `for`, its window; and who reads its entries."""

    source: Source
    judge: Judge
    window: Side
    reader: BatchReader


# --- times ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """The side of each arrival, how many there are of each side, and the time of its last."""

    arrivals: Indices
    taken: list[int]
    now: list[Fraction]
    numbers: list[Indices]
    """By side, for each arrival how many items arrived before it."""
    items: int


def order_of(sides: Sequence[JoinSide], batches: Sequence[Batch], entries: Sequence[Entries], merge: Merge) -> Order:
    """The order in which entries arrive, as far as it is known (LAWS 1.2)."""
    sources = [side.source for side in sides]
    unit = unit_of_times([each.times for each in batches], entries, sources)
    times: list[Indices] = []
    heads: list[Indices] = []
    for source, batch, given in zip(sources, batches, entries, strict=True):
        own = batch.times.in_units(unit)[batch.before :]
        times.append(times_of(own, batch.timed[batch.before :], given, source, unit))
        heads.append(times[-1].copy())
        heads[-1][np.array(batch.bad, np.int64) - batch.before] = NOWHERE  # what is no element holds nothing back
    limits = [
        limit(merge, source, unit) if batch.complete else NOWHERE
        for source, batch in zip(sources, batches, strict=True)
    ]
    arrivals = merged(heads, limits)
    places = [np.flatnonzero(arrivals == side) for side in range(2)]
    taken = [len(each) for each in places]
    now = [
        Fraction(int(mine[count - 1]), unit) if count else source.now
        for source, mine, count in zip(sources, times, taken, strict=True)
    ]
    are_items = np.ones(len(arrivals), np.bool_)
    for batch, mine in zip(batches, places, strict=True):
        are_items[mine[[number - batch.before for number in batch.bad if number - batch.before < len(mine)]]] = False
    before: Indices = np.cumsum(are_items) - are_items
    return Order(arrivals, taken, now, [before[mine] for mine in places], int(are_items.sum()))


# --- values -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A side in units: its window, the values of its items, and what those that arrive show of the stream."""

    size: int
    step: int
    slack: int
    values: Indices
    status: Bytes
    late: Indices
    """The numbers of items that are late."""
    first: Fraction | None
    largest: Fraction | None
    """The first and the largest value that arrive."""


def unit_of(sides: Sequence[JoinSide], batches: Sequence[Batch]) -> int:
    """The unit for all values and sizes of the join."""
    exact: list[Fraction] = []
    for side in sides:
        stream, extent = side.source.stream, side.judge.extent
        exact += [extent.size, extent.step, stream.slack, stream.origin]
        largest = side.judge.progress.largest(0)
        if isinstance(largest, float):
            raise OverflowError  # infinity: a punctuation said that nothing follows at all
        exact += [] if largest is None else [largest]
    return common_unit([each.values for each in batches], exact)


def shown(side: JoinSide, batch: Batch, taken: int, unit: int) -> Shown:
    """Where items stand, and which of those that arrive are late (LAWS 3.2)."""
    stream, extent = side.source.stream, side.judge.extent
    size, step, slack = (in_unit(each, unit) for each in (extent.size, extent.step, stream.slack))
    in_unit(extent.start(side.window.next), unit)  # no position may be too large either
    values = batch.values.in_units(unit)[: batch.before + taken] - in_unit(stream.origin, unit)
    status = batch.status[: len(values)].copy()
    numbers = batch.before + np.flatnonzero(status[batch.before :] != VOID)
    if not len(numbers):
        return Shown(size, step, slack, values, status, numbers, None, None)
    new = values[numbers]
    largest = side.judge.progress.largest(0)
    start = new[0] if largest is None else in_unit(Fraction(largest), unit)
    running = np.maximum.accumulate(np.concatenate([[start], new]))
    late = numbers[new < running[:-1] - slack]
    status[late] = VOID
    first, last = Fraction(int(new[0]), unit), Fraction(int(running[-1]), unit)
    return Shown(size, step, slack, values, status, late, first, last)
