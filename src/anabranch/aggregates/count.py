"""`count`: how many values there are; it takes nodes of any kind, and changes with no unit (LAWS 4.2a)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anabranch.aggregates.folds import CountFold, EntryOrder, Fold
from anabranch.aggregates.function import AggregateFunction, Column, WindowStatistics
from anabranch.aggregates.partial import Partial
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.values.numbers import nearest_double
from anabranch.values.sequences import Values


class Count(AggregateFunction):
    name = "count"
    needs = "c"
    takes_numbers = False
    is_total = True
    kind = "integer"

    def law(self, values: Values) -> Values:
        return [len(values)]

    def of_partial(self, known: Partial) -> int:
        return known.count

    def fold(self, entries: EntryOrder) -> Fold:
        return CountFold(lambda count: count)

    def follows(self, by: Affine) -> Affine | None:
        return None

    def column(self, windows: WindowStatistics, path: int, by: Affine) -> Column:
        counts = windows.counts(path)
        if by == IDENTITY:
            return Column(counts)
        return Column(np.array([nearest_double(by(Fraction(each))) for each in counts.tolist()]))
