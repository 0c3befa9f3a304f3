"""Many windows of one query at once: their aggregates out of columns of panes, and the text that each adds.

What a window holds is the difference of two running sums, or the best of a queue (`kernels_windows.py`); the double
nearest to an exact quotient is the quotient of doubles where both sides are whole numbers below 2**53, and found in
fractions else (LAWS 2.2).

Guarantees: the texts are those of `WindowResult.text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import Column
from anabranch.aggregates.partial import Ranked
from anabranch.branch.panes.results import (
    AggregateComparison,
    AggregateValue,
    AllOf,
    AnyOf,
    Inserted,
    Known,
    NumberLiteral,
    Operand,
    Part,
    Tagged,
    Test,
    WindowResult,
)
from anabranch.columnar.match.condition import OPERATORS
from anabranch.columnar.panes.kernels import HALF, totals
from anabranch.columnar.panes.kernels_windows import best_of
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.language.aggregates import AggregateCall
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.values.atomic import compare, spell, to_double
from anabranch.values.numbers import nearest_double
from anabranch.values.sequences import atomize

_EXACT = 1 << 53
"""Whole numbers up to here are doubles."""
_PLAIN = (1e-6, 1e6)
"""Between these a double is spelled without an exponent."""


def is_made_for(result: WindowResult, calls: Sequence[AggregateCall]) -> bool:
    """Whether the comparisons of a result are the same between doubles, and only sums are written in other units."""
    extremes = {call.variable for call in calls if AGGREGATES[call.function].kind == "extreme"}
    aggregates = (each for each in _fragments(result.element) if isinstance(each, AggregateValue))
    is_plain = all(each.by == IDENTITY or each.variable not in extremes for each in aggregates)
    return is_plain and is_of_doubles(result.test)


def is_of_doubles(test: Test) -> bool:
    """Whether the comparisons of a test are the same between doubles."""
    return all(_is_double(each) for each in _literals(test))


def _literals(test: Test) -> list[NumberLiteral]:
    if isinstance(test, AggregateComparison):
        return [each for each in (test.left, test.right) if isinstance(each, NumberLiteral)]
    return [each for inner in test.tests for each in _literals(inner)]


def _is_double(literal: NumberLiteral) -> bool:
    """Whether a number lies on the same side of every integer as the double nearest to it."""
    (value,) = atomize(literal.value)
    double = to_double(value)
    return not double.is_integer() or double == value


class PaneColumns:
    """The aggregates of windows over rows of panes, each found when it is asked for."""

    def __init__(self, rows: Rows, calls: Sequence[AggregateCall], begins: Indices, ends: Indices) -> None:
        """`begins` and `ends` say which rows, all with the same decimal places by path, are in each window."""
        self._rows = rows
        self._calls = {call.variable: call for call in calls}
        self._spans = begins, ends
        self._found: dict[AggregateValue, Column] = {}

    def __len__(self) -> int:
        return len(self._spans[0])

    def at(self, chosen: Indices) -> PaneColumns:
        """Some of the windows, by their places."""
        begins, ends = self._spans
        return PaneColumns(self._rows, tuple(self._calls.values()), begins[chosen], ends[chosen])

    def column(self, aggregate: AggregateValue) -> Column:
        """One aggregate, in its unit."""
        if aggregate not in self._found:
            call = self._calls[aggregate.variable]
            self._found[aggregate] = AGGREGATES[call.function].column(self, call.path, aggregate.by)
        return self._found[aggregate]

    def known(self, window: int) -> Known:
        """The aggregates of one window."""
        return lambda aggregate: self.column(aggregate).at(window)

    def _summed(self, values: Indices) -> Indices:
        """The sum of the rows in each window; running sums may wrap around, their differences do not."""
        running = np.zeros(len(values) + 1, np.int64)
        np.cumsum(values, out=running[1:])
        begins, ends = self._spans
        found: Indices = running[ends] - running[begins]
        return found

    # --- statistics by window -------------------------------------------------------------------------------------

    def counts(self, path: int) -> Indices:
        """How many values of a path each window has."""
        return self._summed(self._rows.counts[path])

    def sums(self, path: int) -> tuple[list[int], int]:
        """The sums of a path in units of 10**-places, and the places."""
        high, low = self._summed(self._rows.high[path]), self._summed(self._rows.low[path])
        return totals(high, low), int(self._rows.places[path].max(initial=0))

    def quotients(self, path: int, divisors: Indices | None, by: Affine) -> Numbers:
        """The double nearest to each sum divided by some number, in a unit."""
        divisors = np.ones(len(self), np.int64) if divisors is None else divisors
        high, low = self._summed(self._rows.high[path]), self._summed(self._rows.low[path])
        high, low = high + (low >> HALF), low & ((1 << HALF) - 1)
        unit = 10 ** int(self._rows.places[path].max(initial=0))
        # a * x / d + b is a quotient of whole numbers again
        times, plus = by.a.numerator * by.b.denominator, by.b.numerator * by.a.denominator
        under = by.a.denominator * by.b.denominator
        most = _EXACT // (2 * max(times, abs(plus), under))
        if not most:
            times, plus, under = 1, 0, 1  # nothing is small
        small = (np.abs(high) < most >> HALF) & (divisors <= most // unit)
        sums = np.where(small, high, 0) << HALF | np.where(small, low, 0)
        wholes = np.where(small, divisors, 1) * float(unit)
        found: Numbers = (sums * times + wholes * plus) / (wholes * under)
        for window in np.flatnonzero(~small).tolist():
            (total,) = totals(high[window : window + 1], low[window : window + 1])
            found[window] = nearest_double(by(Fraction(total, unit * int(divisors[window]))))
        return found

    def extremes(self, path: int, *, greatest: bool) -> Numbers:
        """The least or greatest value of a path in each window; NaN where there is none."""
        found = np.empty(len(self))
        best_of(*self._spans, *self._extremes(path, greatest), -1 if greatest else 1, found)
        return found

    def ranked(self, path: int, *, greatest: bool) -> list[Ranked | None]:
        """The same as partials have them; only that of a zero has its true place."""
        values, at = self._extremes(path, greatest)

        def first_zero(window: int) -> int:
            span = slice(self._spans[0][window], self._spans[1][window])
            return int(at[span][values[span] == 0].min())

        best = enumerate(self.extremes(path, greatest=greatest).tolist())
        return [None if each != each else Ranked(each, 0 if each else first_zero(window)) for window, each in best]

    def _extremes(self, path: int, greatest: bool) -> tuple[Numbers, Indices]:
        rows = self._rows
        return (rows.greatest[path], rows.greatest_at[path]) if greatest else (rows.least[path], rows.least_at[path])


# --- conditions -------------------------------------------------------------------------------------------


def held(test: Test, windows: PaneColumns) -> Flags:
    """For which windows a test holds."""
    match test:
        case AllOf(tests):
            return reduce(np.logical_and, (held(each, windows) for each in tests), np.ones(len(windows), np.bool_))
        case AnyOf(tests):
            return reduce(np.logical_or, (held(each, windows) for each in tests), np.zeros(len(windows), np.bool_))
        case AggregateComparison(operator, NumberLiteral(left), NumberLiteral(right)):
            (a,), (b,) = atomize(left), atomize(right)
            return np.full(len(windows), compare(operator, a, b))
        case AggregateComparison(operator, left, right):
            (a_values, a_present), (b_values, b_present) = _side(left, windows), _side(right, windows)
            found: Flags = OPERATORS[operator](a_values, b_values)
            for present in (a_present, b_present):
                found = found if present is None else found & present
            return found


def _side(operand: Operand, windows: PaneColumns) -> tuple[Numbers | Indices | float, Flags | None]:
    if isinstance(operand, NumberLiteral):
        (value,) = atomize(operand.value)
        return to_double(value), None
    column = windows.column(operand)
    return column.values, column.present


# --- texts ------------------------------------------------------------------------------------------------


def texts(result: WindowResult, windows: PaneColumns) -> pa.Array:
    """The texts of all windows that add one, in order."""
    chosen = np.flatnonzero(held(result.test, windows))
    if not len(chosen):
        return pa.array([], pa.string())
    fragments = _joined(_fragments(result.element))
    absent = np.zeros(len(windows), np.bool_)
    parts: list[pa.Array | pa.Scalar] = []
    for each in fragments:
        if isinstance(each, str):
            parts.append(pa.scalar(each))
        else:
            column = windows.column(each)
            parts.append(_spelled(column.values[chosen]))
            if column.present is not None:
                absent |= ~column.present
    if not any(isinstance(each, AggregateValue) for each in fragments):
        return pa.repeat(parts[0], len(chosen))
    found = pc.binary_join_element_wise(*parts, "")
    if absent[chosen].any():
        others = [result.text(windows.known(window)) for window in chosen[absent[chosen]].tolist()]
        found = pc.replace_with_mask(found, pa.array(absent[chosen]), pa.array(others, pa.string()))
    return found


def _spelled(values: NDArray[np.int64] | NDArray[np.float64]) -> pa.Array:
    """Numbers in XQuery's spelling; Arrow has the same for doubles that need no exponent."""
    found = pa.array(values).cast(pa.string())
    if values.dtype == np.int64:
        return found
    sizes = np.abs(values)
    others = ~((sizes >= _PLAIN[0]) & (sizes < _PLAIN[1])) & (values != 0)
    if others.any():
        spelled = pa.array(list(map(spell, values[others].tolist())), pa.string())
        found = pc.replace_with_mask(found, pa.array(others), spelled)
    return found


def _fragments(part: Part) -> list[str | AggregateValue]:
    """What a part is written as where all aggregates have values."""
    match part:
        case str():
            return [part]
        case Inserted(operands):
            spelled = [_operand(each) for each in operands]
            return [each for number, one in enumerate(spelled) for each in ((" ", one) if number else (one,))]
        case Tagged(name, attributes, content):
            start: list[str | AggregateValue] = [f"<{name}"]
            for each, value in attributes:
                start += [f' {each}="', *(inner for piece in value for inner in _fragments(piece)), '"']
            inside = [inner for piece in content for inner in _fragments(piece)]
            return [*start, ">", *inside, f"</{name}>"] if any(inside) else [*start, "/>"]


def _operand(operand: Operand) -> str | AggregateValue:
    return operand if isinstance(operand, AggregateValue) else " ".join(map(spell, atomize(operand.value)))


def _joined(fragments: Sequence[str | AggregateValue]) -> list[str | AggregateValue]:
    """With neighbours that are fixed made one."""
    found: list[str | AggregateValue] = []
    for each in fragments:
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        else:
            found.append(each)
    return found
