"""`min` and `max`: the least and the greatest value; empty for no values (LAWS 2.1).

Of numbers it is a double (LAWS 2.1), of others one of their type, and of texts that are all dateTimes a dateTime
(LAWS 2.3); of equal values, such as -0 and 0 or moments by different clocks, it is the earlier one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from anabranch.aggregates.exact import extreme, of_several_kinds
from anabranch.aggregates.extreme_fold import ExtremeFold
from anabranch.aggregates.folds import EntryOrder, Fold
from anabranch.aggregates.function import AggregateFunction, Column, WindowStatistics
from anabranch.aggregates.partial import NAN, Partial
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.values.atomic import Rounded
from anabranch.values.numbers import nearest_double
from anabranch.values.sequences import Values, operands
from anabranch.values.times import DateTime


class Extreme(AggregateFunction):
    """The least or greatest value; empty for no values."""

    greatest: ClassVar[bool]
    kind = "extreme"

    def law(self, values: Values) -> Values:
        return extreme(operands(values), self.greatest)

    def of_partial(self, known: Partial) -> float | None:
        if known.special & NAN:
            return math.nan
        found = known.greatest if self.greatest else known.least
        return found and (Rounded(found.value, found.number) if math.isfinite(found.value) else found.value)

    def value(self, known: Partial) -> Values:
        moments, typed, failure = known.moments, known.typed, known.failure
        if typed and failure and failure.stage:
            value = typed.greatest if self.greatest else typed.least
            if value is None or typed.values < known.count:
                raise of_several_kinds().given((failure,))
            return [value]
        if moments and moments.values == known.count and failure and failure.stage:
            found = DateTime.read((moments.last if self.greatest else moments.first).text)
            assert found is not None, "it was read before"
            return [found]
        return super().value(known)

    def fold(self, entries: EntryOrder) -> Fold:
        return ExtremeFold(entries, self.greatest)

    def column(self, windows: WindowStatistics, path: int, by: Affine) -> Column:
        counts, found = windows.counts(path), windows.extremes(path, greatest=self.greatest)
        if by != IDENTITY:
            exact = [math.nan if math.isnan(each) else by(Fraction(repr(each))) for each in found.tolist()]
            found = np.array(list(map(nearest_double, exact)))
        return Column(found, None if counts.all() else counts > 0)


class Min(Extreme):
    name = "min"
    needs = "l"
    greatest = False


class Max(Extreme):
    name = "max"
    needs = "g"
    greatest = True
