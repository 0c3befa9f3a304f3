"""Sessions as panes (LAWS 3.9): panes as wide as the gap, each with the least and greatest offset of its items.

Two items of a key whose values are in one interval `[p*G, (p+1)*G)` are less than the gap `G` apart, so they are in one
session whatever else there is, and are merged like the items of any pane.
Beside its aggregates, a pane has the least and the greatest *offset* of its items from its begin.
These and the numbers of the panes decide which panes of a key are one session: neighbours, where the least value of one
is less than the gap behind the greatest of the one before.

An offset is held as the double that is nearest to it.
It is a decimal of few digits, since it is less than the gap; a double stands for exactly one such decimal
(`kernels.py`), and offsets with more digits are left to the law, whose numbers are exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from anabranch.columnar.panes.kernels import MOST_PLACES, best_places, exact_ticks
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers

PLACED: frozenset[str] = frozenset({"min", "max"})
"""The functions that are applied to the offsets of items."""
EARLY = Fraction(-(1 << 62))
"""Sessions have no first pane, so no time is before it."""
_MOST = 1 << 62
_EXACT = 10**15
"""Below this number of units, a double stands for one decimal exactly."""


def decimal_places(*values: Fraction) -> int | None:
    """The number of decimal places by which all of some fractions are whole numbers; None where there are too many."""
    return next((n for n in range(MOST_PLACES + 1) if all((each * 10**n).denominator == 1 for each in values)), None)


def offsets(ticks: Indices, places: int, most: int, gap: Fraction) -> Numbers | None:
    """The offsets of values, in units of `10**-places`, from the begins of their panes; None where columns cannot tell.

    No value is larger than `most`, nor smaller than minus this.
    """
    least = decimal_places(gap)
    if least is None:
        return None
    finest = max(places, least)
    width, power = int(gap * 10**finest), 10 ** (finest - places)
    if width > _EXACT or (most + 1) * power + width >= _MOST:
        return None
    found: Numbers = (ticks * power) % width / float(10**finest)
    return found


class RowBounds(NamedTuple):
    """The least and the greatest values in rows, in units of `10**-places`."""

    places: int
    gap: int
    lows: Indices
    highs: Indices
    known: Flags
    """Where they are exact."""


def row_bounds(rows: Rows, path: int, gap: Fraction, origin: Fraction) -> RowBounds | None:
    """The bounds of rows whose offsets are those of a path; None where they do not fit 64 bits.

    The origin, from which on they count, is a whole number in their unit as well.
    """
    least, greatest = rows.known.least[path], rows.known.greatest[path]
    given = decimal_places(gap, origin)
    if given is None:
        return None
    places = max(given, best_places(least), best_places(greatest))
    width = int(gap * 10**places)
    furthest = max(int(rows.panes.max(initial=0)), -int(rows.panes.min(initial=0))) + 3
    if (furthest * width) + abs(int(origin * 10**places)) >= _MOST:
        return None
    (low, is_known), (high, is_known_too) = exact_ticks(least, places), exact_ticks(greatest, places)
    begins = rows.panes * width
    return RowBounds(places, width, begins + low, begins + high, is_known & is_known_too)


class SessionSpans(NamedTuple):
    """Sessions: the begin and end of their rows, and their starts and stops (exclusive) in values."""

    begins: Indices
    ends: Indices
    starts: Indices
    stops: Indices


def session_spans(keys: Indices, bounds: RowBounds) -> SessionSpans:
    """The sessions of rows by rising key and pane, each pane once."""
    if not len(keys):
        return SessionSpans(*np.empty((4, 0), np.int64))
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (bounds.lows[1:] - bounds.highs[:-1] >= bounds.gap)
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], len(keys))
    return SessionSpans(begins, ends, bounds.lows[begins], bounds.highs[ends - 1] + bounds.gap)
