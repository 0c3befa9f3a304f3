"""`sum`: the double nearest to the true sum; of integers an integer, of durations one (LAWS 2.1, 2.2, 2.7).

It follows a unit change that only scales, since the number of values is not visible in it (LAWS 4.2a).
"""

from __future__ import annotations

from fractions import Fraction

from anabranch.aggregates.exact import durations_in, exact_sum, integers_in, rounded
from anabranch.aggregates.folds import EntryOrder, Fold, SumFold
from anabranch.aggregates.function import AggregateFunction, Column, WindowStatistics
from anabranch.aggregates.partial import Partial
from anabranch.stream.affine import Affine
from anabranch.values.sequences import Values, operands
from anabranch.values.time_arithmetic import duration_sum


class Sum(AggregateFunction):
    name = "sum"
    needs = "s"
    is_total = True

    def law(self, values: Values) -> Values:
        atoms = operands(values)
        if durations := durations_in(atoms):
            return [duration_sum(durations)]
        if (integers := integers_in(atoms)) is not None:
            return [sum(integers)]
        return [rounded(exact_sum(atoms))]

    def of_partial(self, known: Partial) -> int | float:
        return rounded(known.sum) if known.count else 0

    def fold(self, entries: EntryOrder) -> Fold:
        return SumFold(entries, _of_sums, durations=lambda total, _: total, integers=True)

    def follows(self, by: Affine) -> Affine | None:
        return None if by.b else by

    def column(self, windows: WindowStatistics, path: int, by: Affine) -> Column:
        return Column(windows.quotients(path, None, by))


def _of_sums(count: int, total: Fraction | float, _: Fraction) -> int | float:
    return rounded(total) if count else 0
