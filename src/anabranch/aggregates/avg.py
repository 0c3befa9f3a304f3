"""`avg`: the double nearest to the true average; empty for no values (LAWS 2.1, 2.2)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anabranch.aggregates.exact import exact_sum, rounded
from anabranch.aggregates.folds import EntryOrder, Fold, SumFold
from anabranch.aggregates.function import AggregateFunction, Column, WindowStatistics
from anabranch.aggregates.partial import Partial
from anabranch.stream.affine import Affine
from anabranch.values.sequences import Values, atomize


class Avg(AggregateFunction):
    name = "avg"
    needs = "cs"

    def law(self, values: Values) -> Values:
        return [rounded(exact_sum(atomize(values)) / len(values))] if values else []

    def of_partial(self, known: Partial) -> float | None:
        return _of_sums(known.count, known.sum)

    def fold(self, entries: EntryOrder) -> Fold:
        return SumFold(entries, _of_sums)

    def column(self, windows: WindowStatistics, path: int, by: Affine) -> Column:
        counts = windows.counts(path)
        found = windows.quotients(path, np.maximum(counts, 1), by)
        return Column(found, None if counts.all() else counts > 0)


def _of_sums(count: int, total: Fraction | float, _: Fraction = Fraction(0)) -> float | None:
    return rounded(total / count) if count else None
