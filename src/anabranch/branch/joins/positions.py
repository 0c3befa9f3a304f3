"""Where the items of joins stand in their windows: all values, sizes and steps of both sides as integers of one unit.

What is too large for that raises OverflowError, and the join is left to the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.merge import MergeInput
from anabranch.branch.joins.step_join import Side
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.scan.entries import common_unit, in_unit
from anabranch.columnar.scan.kernels import Bytes, Indices
from anabranch.columnar.scan.kernels_entries import VOID


@dataclass(frozen=True, slots=True)
class JoinSide:
    """What one side of the joins consists of: its input, its `for`, its windows; and who reads its entries."""

    source: MergeInput
    judge: WindowSelection
    windows: Sequence[Side]
    """One for each pairing."""
    reader: BatchReader


@dataclass(frozen=True, slots=True)
class Shown:
    """A side in units: the values of its items, and what those that arrive show of the stream."""

    slack: int
    extents: Sequence[tuple[int, int]]
    """The sizes and steps of its windows."""
    values: Indices
    status: Bytes
    late: Indices
    """The numbers of items that are late."""
    first: Fraction | None
    largest: Fraction | None
    """The first and the largest value that arrive."""


def unit_of(sides: Sequence[JoinSide], batches: Sequence[EntryBatch]) -> int:
    """The unit for all values and sizes."""
    exact: list[Fraction] = []
    for side in sides:
        exact += [each for window in side.windows for each in (window.extent.size, window.extent.step)]
        exact += [side.source.stream.slack, side.source.stream.origin]
        largest = side.judge.progress.largest(0)
        if isinstance(largest, float):
            raise OverflowError  # infinity: a punctuation said that nothing follows at all
        exact += [] if largest is None else [largest]
    return common_unit([each.values for each in batches], exact)


def shown(side: JoinSide, batch: EntryBatch, taken: int, unit: int) -> Shown:
    """Where items stand, and which of those that arrive are late (LAWS 3.2)."""
    stream = side.source.stream
    slack = in_unit(stream.slack, unit)
    extents = [(in_unit(each.extent.size, unit), in_unit(each.extent.step, unit)) for each in side.windows]
    for window in side.windows:
        in_unit(window.extent.start(window.next), unit)  # no position may be too large either
    values = batch.values.in_units(unit)[: batch.before + taken] - in_unit(stream.origin, unit)
    status = batch.status[: len(values)].copy()
    numbers = batch.before + np.flatnonzero(status[batch.before :] != VOID)
    if not len(numbers):
        return Shown(slack, extents, values, status, numbers, None, None)
    new = values[numbers]
    largest = side.judge.progress.largest(0)
    start = new[0] if largest is None else in_unit(Fraction(largest), unit)
    running = np.maximum.accumulate(np.concatenate([[start], new]))
    late = numbers[new < running[:-1] - slack]
    status[late] = VOID
    first, last = Fraction(int(new[0]), unit), Fraction(int(running[-1]), unit)
    return Shown(slack, extents, values, status, late, first, last)
