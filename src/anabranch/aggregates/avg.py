"""`avg`: the double nearest to the true average; empty for no values; of durations one (LAWS 2.1, 2.2, 2.7)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anabranch.aggregates.exact import durations_in, exact_sum, rounded
from anabranch.aggregates.folds import EntryOrder, Fold, SumFold
from anabranch.aggregates.function import AggregateFunction, Column, WindowStatistics
from anabranch.aggregates.partial import Partial
from anabranch.stream.affine import Affine
from anabranch.values.sequences import Values, operands
from anabranch.values.time_arithmetic import duration_average, duration_sum


class Avg(AggregateFunction):
    name = "avg"
    needs = "cs"

    def law(self, values: Values) -> Values:
        atoms = operands(values)
        if durations := durations_in(atoms):
            return [duration_average(duration_sum(durations), len(durations))]
        return [rounded(exact_sum(atoms) / len(atoms))] if atoms else []

    def of_partial(self, known: Partial) -> float | None:
        return _of_sums(known.count, known.sum)

    def fold(self, entries: EntryOrder) -> Fold:
        return SumFold(entries, _of_sums, durations=duration_average)

    def column(self, windows: WindowStatistics, path: int, by: Affine) -> Column:
        counts = windows.counts(path)
        found = windows.quotients(path, np.maximum(counts, 1), by)
        return Column(found, None if counts.all() else counts > 0)


def _of_sums(count: int, total: Fraction | float, _: Fraction = Fraction(0)) -> float | None:
    return rounded(total / count) if count else None
