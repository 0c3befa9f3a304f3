"""When the entries of inputs arrive, and in which order (LAWS 1.2), as far as that is known.

Times are integers of one unit; what is too large for that raises OverflowError, and is left to the operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anabranch.branch.intake.lookahead import Entries
from anabranch.branch.intake.merge import Merge, Source
from anabranch.columnar.joins.kernels import merged
from anabranch.columnar.scan.entries import Decimals, common_unit, in_unit
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.law.inputs import element_time
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.path import Path

T = TypeVar("T", bound=np.generic)
NOWHERE, FOREVER = -(1 << 62), 1 << 62
_NO_TIME = Fraction(-1)  # known by identity


def own_time(element: Item | Punctuation, path: Path | None) -> Fraction | None:
    """The time that an element has itself, where `path` is the declared one."""
    time = element_time(element, path, _NO_TIME)
    return None if time is _NO_TIME else time


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known of the times of an input's next entries."""

    entries: Entries
    times: Decimals
    """Those that they have themselves."""
    timed: Flags
    """Which do."""
    bad: Sequence[int]
    """Those that are no elements at all."""
    complete: bool
    """Whether there are no others yet."""


@dataclass(frozen=True, slots=True)
class Order:
    """The input of each arrival; by input, which of the arrivals are its entries, and the time of the last."""

    inputs: Indices
    places: list[Indices]
    now: list[Fraction]

    def spread(self, known: Sequence[NDArray[T]]) -> NDArray[T]:
        """What is known of entries, by input, in the order in which they arrive."""
        found = np.empty(len(self.inputs), known[0].dtype)
        for mine, each in zip(self.places, known, strict=True):
            found[mine] = each[: len(mine)]
        return found


def order_of(merge: Merge, sources: Sequence[Source], inputs: Sequence[Moments]) -> Order:
    """The order in which entries arrive."""
    arrived = [origin.arrived for each in inputs for origin, _ in each.entries.origins if origin.arrived is not None]
    unit = common_unit([each.times for each in inputs], [*arrived, *(source.now for source in sources)])
    times = [_times(each, source, unit) for each, source in zip(inputs, sources, strict=True)]
    heads = [each.copy() for each in times]
    for mine, each in zip(heads, inputs, strict=True):
        mine[np.array(each.bad, np.int64)] = NOWHERE  # what is no element holds nothing back
    limits = [
        limit(merge, source, unit) if each.complete else NOWHERE for source, each in zip(sources, inputs, strict=True)
    ]
    found = merged(heads, limits)
    places = [np.flatnonzero(found == number) for number in range(len(inputs))]
    now = [
        Fraction(int(mine[len(taken) - 1]), unit) if len(taken) else source.now
        for source, mine, taken in zip(sources, times, places, strict=True)
    ]
    return Order(found, places, now)


def limit(merge: Merge, source: Source, unit: int) -> int:
    """Up to which time an input brings nothing behind what is there."""
    known = merge.known_until(source.key)
    if known is None:
        return NOWHERE
    return FOREVER if known == math.inf else in_unit(Fraction(known), unit)


def _times(moments: Moments, source: Source, unit: int) -> Indices:
    """The times of entries: their own, else that of their arrival, else that of the element before (LAWS 1.3)."""
    times, known = moments.times.in_units(unit), moments.timed.copy()
    first = 0
    for origin, rows in moments.entries.origins:
        span = slice(first, first + rows)
        if origin.arrived is not None:
            times[span][~known[span]] = in_unit(origin.arrived, unit)
            known[span] = True
        first += rows
    last = np.maximum.accumulate(np.where(known, np.arange(len(times)), -1))
    return np.where(last >= 0, times[last], in_unit(source.now, unit))
