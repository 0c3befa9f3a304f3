"""When the entries of inputs arrive, as integers of one unit.

What is too large for that raises OverflowError, and is left to the operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anabranch.branch.ahead import Entries
from anabranch.branch.merge import Merge, Source
from anabranch.columnar.entries import Decimals, common_unit, in_unit
from anabranch.columnar.kernels import Flags, Indices
from anabranch.reference.inputs import element_time
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.path import Path

NOWHERE, FOREVER = -(1 << 62), 1 << 62
_NO_TIME = Fraction(-1)  # known by identity


def own_time(element: Item | Punctuation, path: Path | None) -> Fraction | None:
    """The time that an element has itself, where `path` is the declared one."""
    time = element_time(element, path, _NO_TIME)
    return None if time is _NO_TIME else time


def unit_of_times(times: Sequence[Decimals], entries: Sequence[Entries], sources: Sequence[Source]) -> int:
    """The unit in which all these times are integers."""
    moments = [origin.arrived for each in entries for origin, _ in each.origins if origin.arrived is not None]
    return common_unit(times, [*moments, *(source.now for source in sources)])


def times_of(own: Indices, timed: Flags, entries: Entries, source: Source, unit: int) -> Indices:
    """The times of the next entries: their own, else that of their arrival, else that of the element before (LAWS 1.3).

    `own` are those that they have themselves, where `timed` says that they do.
    """
    times, known = own.copy(), timed.copy()
    first = 0
    for origin, rows in entries.origins:
        span = slice(first, first + rows)
        if origin.arrived is not None:
            times[span][~known[span]] = in_unit(origin.arrived, unit)
            known[span] = True
        first += rows
    last = np.maximum.accumulate(np.where(known, np.arange(len(times)), -1))
    return np.where(last >= 0, times[last], in_unit(source.now, unit))


def limit(merge: Merge, source: Source, unit: int) -> int:
    """Up to which time an input brings nothing behind what is there."""
    known = merge.known_until(source.key)
    if known is None:
        return NOWHERE
    return FOREVER if known == math.inf else in_unit(Fraction(known), unit)
