"""`median`: the middle value, or the mean of the middle two, exactly and rounded once; empty for no values (LAWS 2.2).

INF and -INF lie beyond all other values, the mean of both is NaN, and NaN among the values makes it NaN.
It needs the values themselves: a partial has all of them, each with its multiplicity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from anabranch.aggregates.exact import exact_numbers, rounded
from anabranch.aggregates.folds import EntryOrder, Fold, NumbersFold
from anabranch.aggregates.function import AggregateFunction
from anabranch.aggregates.partial import NAN, Partial
from anabranch.values.sequences import Values, operands


class Median(AggregateFunction):
    name = "median"
    needs = "cv"

    def law(self, values: Values) -> Values:
        numbers = exact_numbers(operands(values))
        if not numbers:
            return []
        return [math.nan if any(each != each for each in numbers) else _middle(sorted(numbers))]

    def of_partial(self, known: Partial) -> float | None:
        if not known.count or known.special & NAN:
            return math.nan if known.count else None
        return _middle([each for each in sorted(known.values) for _ in range(known.values[each])])

    def fold(self, entries: EntryOrder) -> Fold:
        return NumbersFold(entries, _middle)


def _middle(numbers: Sequence[Fraction | float]) -> float:
    """The median of ascending numbers."""
    a, b = numbers[(len(numbers) - 1) // 2], numbers[len(numbers) // 2]
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return rounded((a + b) / 2)
    return sum(each for each in (a, b) if isinstance(each, float))
