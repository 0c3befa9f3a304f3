"""`stddev`: the standard deviation of a sample, the root of `sum((x - avg) ** 2) / (n - 1)`; empty below two values.

The variance is an exact fraction, and its root is rounded once (LAWS 2.2); INF or NaN among the values makes it NaN.
A unit change `a*x + b` leaves it as `. * a`: adding to all values does not spread them (LAWS 4.2a).
"""

from __future__ import annotations

import math
from fractions import Fraction

from anabranch.aggregates.exact import exact_numbers, exact_sum, root, rounded
from anabranch.aggregates.folds import EntryOrder, Fold, SumFold
from anabranch.aggregates.function import AggregateFunction
from anabranch.aggregates.partial import Partial
from anabranch.stream.affine import Affine
from anabranch.values.sequences import Values, operands


class Stddev(AggregateFunction):
    name = "stddev"
    needs = "csq"

    def law(self, values: Values) -> Values:
        numbers = exact_numbers(operands(values))
        if len(numbers) < 2:
            return []
        total = exact_sum(numbers)
        if isinstance(total, float):
            return [math.nan]
        mean = total / len(numbers)
        distances = [Fraction(each) - mean for each in numbers]
        return [rounded(root(sum((each * each for each in distances), Fraction(0)) / (len(numbers) - 1)))]

    def of_partial(self, known: Partial) -> float | None:
        return _of_sums(known.count, known.sum, known.squares)

    def fold(self, entries: EntryOrder) -> Fold:
        return SumFold(entries, _of_sums, squares=True)

    def follows(self, by: Affine) -> Affine | None:
        return Affine(by.a, Fraction(0))


def _of_sums(count: int, total: Fraction | float, squares: Fraction) -> float | None:
    if count < 2:
        return None
    if isinstance(total, float):
        return math.nan
    return rounded(root((squares - total * total / count) / (count - 1)))
