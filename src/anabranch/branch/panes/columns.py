"""Many windows of one query at once: their aggregates out of columns of panes, and the text that each adds.

What a window holds is the difference of two running sums, or the best of a queue (`columnar/panes/spans.py`).
The double nearest to an exact quotient is the quotient of doubles where both sides are whole numbers below 2**53, and
found in fractions else (LAWS 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import Column
from anabranch.aggregates.partial import Partial, Ranked
from anabranch.branch.panes.bounds import BoundTexts
from anabranch.branch.panes.results import (
    AggregateComparison,
    AggregateValue,
    BoundText,
    CountedGroups,
    GroupClause,
    Inserted,
    JsonLine,
    KeptGroups,
    KeyText,
    NumberLiteral,
    Operand,
    Part,
    SortedGroups,
    Tagged,
    Test,
    WindowResult,
    Written,
)
from anabranch.columnar.expressions.numbers import spelled_doubles, spelled_integers
from anabranch.columnar.expressions.texts import TextColumn, concat
from anabranch.columnar.match.condition import OPERATORS
from anabranch.columnar.panes.kernels import HALF, totals
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.panes.spans import best_of
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.language.windows.aggregates import AggregateCall
from anabranch.logic import fold
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.values.atomic import Atomic, Rounded, compare, spell, to_double
from anabranch.values.numbers import nearest_double
from anabranch.values.sequences import atomize

_LONGEST_NUMBER = 32
"""The bytes that the spelling of a double, or of an integer of 64 bits, takes at most."""
_EXACT = 1 << 53
"""Whole numbers up to here are doubles."""


class ClosedWindows(Protocol):
    """Some windows, none of which has failed."""

    def __len__(self) -> int: ...

    def column(self, aggregate: AggregateValue) -> Column:
        """One aggregate, in its unit."""


class ListedWindows:
    """Windows that were put together one by one."""

    def __init__(self, windows: Sequence[Sequence[Partial]], calls: Sequence[AggregateCall]) -> None:
        """A window is given as its partial aggregates, one for each aggregated path."""
        self._windows = windows
        self._calls = {call.variable: call for call in calls}

    def __len__(self) -> int:
        return len(self._windows)

    def counts(self, path: int) -> Indices:
        """How many values of a path each window has."""
        return np.array([each[path].count for each in self._windows], np.int64)

    def column(self, aggregate: AggregateValue) -> Column:
        """One aggregate, in its unit."""
        call = self._calls[aggregate.variable]
        found = [atomize(AGGREGATES[call.function].value(each[call.path])) for each in self._windows]
        present = np.array([bool(each) for each in found], np.bool_)
        values = [_mapped(each[0], aggregate.by) if each else math.nan for each in found]
        column = np.array(values) if values else np.empty(0)  # integers where all values are
        return Column(column, None if present.all() else present)


def _mapped(value: Atomic, by: Affine) -> int | float:
    """An aggregate in another unit, exactly; a value that is no finite number has no unit."""
    assert isinstance(value, int | float)
    if by == IDENTITY or not math.isfinite(value):
        return value
    return nearest_double(by(value.exact if isinstance(value, Rounded) else Fraction(repr(value))))


class PaneColumns:
    """The aggregates of windows over rows of panes, each computed when it is first read."""

    def __init__(self, rows: Rows, calls: Sequence[AggregateCall], begins: Indices, ends: Indices) -> None:
        """`begins` and `ends` say which rows, all with the same decimal places by path, are in each window."""
        self._rows, self._known = rows, rows.known
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
        return self._summed(self._known.counts[path])

    def sums(self, path: int) -> tuple[list[int], int]:
        """The sums of a path in units of 10**-places, and the places."""
        high, low = self._summed(self._known.high[path]), self._summed(self._known.low[path])
        return totals(high, low), int(self._known.places[path].max(initial=0))

    def quotients(self, path: int, divisors: Indices | None, by: Affine) -> Numbers:
        """The double nearest to each sum divided by some number, in a unit."""
        divisors = np.ones(len(self), np.int64) if divisors is None else divisors
        high, low = self._summed(self._known.high[path]), self._summed(self._known.low[path])
        high, low = high + (low >> HALF), low & ((1 << HALF) - 1)
        unit = 10 ** int(self._known.places[path].max(initial=0))
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
        """The extremes as partials hold them; only a zero has its true place in the stream, the others have 0."""
        values, at = self._extremes(path, greatest)

        def first_zero(window: int) -> int:
            span = slice(self._spans[0][window], self._spans[1][window])
            return int(at[span][values[span] == 0].min())

        best = enumerate(self.extremes(path, greatest=greatest).tolist())
        return [None if each != each else Ranked(each, 0 if each else first_zero(window)) for window, each in best]

    def _extremes(self, path: int, greatest: bool) -> tuple[Numbers, Indices]:
        known = self._known
        if greatest:
            return known.greatest[path], known.greatest_at[path]
        return known.least[path], known.least_at[path]


# --- conditions -------------------------------------------------------------------------------------------


def held(test: Test, windows: ClosedWindows) -> Flags:
    """For which windows a test holds."""

    def compared(each: AggregateComparison) -> Flags:
        match each:
            case AggregateComparison(operator, NumberLiteral(left), NumberLiteral(right)):
                (a,), (b,) = atomize(left), atomize(right)
                return np.full(len(windows), compare(operator, a, b))
            case AggregateComparison(operator, left, right):
                (a_side, a_present), (b_side, b_present) = _side(left, windows), _side(right, windows)
                if isinstance(a_side, np.ndarray) and isinstance(b_side, np.ndarray):
                    found: Flags = OPERATORS[operator](a_side, b_side)
                else:
                    pairs = zip(_listed(a_side), _listed(b_side), strict=True)
                    found = np.array([compare(operator, *pair) for pair in pairs], np.bool_)
                for present in (a_present, b_present):
                    found = found if present is None else found & present
                return found

    def every(parts: Iterator[Flags]) -> Flags:
        return reduce(np.logical_and, parts, np.ones(len(windows), np.bool_))

    def some(parts: Iterator[Flags]) -> Flags:
        return reduce(np.logical_or, parts, np.zeros(len(windows), np.bool_))

    return fold(test, compared, every, some, np.logical_not)


def _listed(values: Numbers | Indices | list[Atomic]) -> list[Atomic]:
    return values if isinstance(values, list) else list(values.tolist())


def _side(operand: Operand, windows: ClosedWindows) -> tuple[Numbers | Indices | list[Atomic], Flags | None]:
    """The values of one side of a comparison; a list where the side is a literal that differs from its double."""
    if isinstance(operand, NumberLiteral):
        (value,) = atomize(operand.value)
        double = to_double(value)
        is_apart = double.is_integer() and double != value
        return [value] * len(windows) if is_apart else np.full(len(windows), double), None
    column = windows.column(operand)
    return column.values, column.present


# --- texts ------------------------------------------------------------------------------------------------


class GroupKeys(Protocol):
    """The keys of some groups."""

    def texts(self, key: KeyText) -> TextColumn:
        """A part of each key as it is written; empty where it is missing."""

    def missing(self, key: KeyText) -> Flags:
        """Where a part is missing, or has nothing that is written."""

    def ranks(self, part: int) -> Indices:
        """The rank of a part of each key in sorting."""


class GroupWindows(ClosedWindows, Protocol):
    """Some groups, which a `count` clause can number."""

    def number(self, variable: str, numbers: Indices) -> None:
        """Let a variable stand for these numbers."""


def arranged(
    behind: Sequence[GroupClause], groups: Indices, places: Indices, windows: GroupWindows, keys: GroupKeys
) -> Indices:
    """Filter, sort and number groups by the clauses behind a `group by`; `places` gives the window of each group."""
    for clause in behind:
        match clause:
            case KeptGroups(test):
                groups = groups[held(test, windows)[groups]]
            case SortedGroups(by):
                ranks = [(-1 if falls else 1) * _ranks(each, windows, keys)[groups] for each, falls in by]
                groups = groups[np.lexsort((*reversed(ranks), places[groups]))]
            case CountedGroups(variable):
                numbers = np.zeros(len(windows), np.int64)
                there = places[groups]
                numbers[groups] = 1 + np.arange(len(groups)) - np.searchsorted(there, there)
                windows.number(variable, numbers)
    return groups


def _ranks(operand: Written, windows: ClosedWindows, keys: GroupKeys) -> Indices:
    """The ranks of values in sorting: what is missing first, then NaN, then numbers (LAWS 2.3)."""
    match operand:
        case KeyText(part):
            return keys.ranks(part)
        case NumberLiteral() | BoundText():  # the same for all groups of a window
            return np.zeros(len(windows), np.int64)
        case AggregateValue():
            column = windows.column(operand)
            _, found = np.unique(column.values, return_inverse=True)
            ranks = np.where(np.isnan(column.values), 1, found.ravel() + 2)
            return ranks if column.present is None else np.where(column.present, ranks, 0)


def texts(result: WindowResult, windows: ClosedWindows, bounds: BoundTexts) -> TextColumn:
    """The texts of all windows that add one, in order, one behind the other."""
    return written(result, windows, np.flatnonzero(held(result.test, windows)), bounds)


_Value: TypeAlias = AggregateValue | KeyText | BoundText
"""What is written that depends on the window or group."""


def written(
    result: WindowResult,
    windows: ClosedWindows,
    chosen: Indices,
    bounds: BoundTexts | None = None,
    keys: GroupKeys | None = None,
) -> TextColumn:
    """The texts of some windows or groups, for all of which the test holds, one behind the other."""
    if not len(chosen):
        return TextColumn.room(0, 0)
    columns: dict[_Value, Column | TextColumn] = {}
    gaps: list[tuple[_Value, str | None, Flags]] = []
    for each in dict.fromkeys(each for each in _fragments(result.element) if not isinstance(each, str)):
        if isinstance(each, BoundText):
            assert bounds is not None, "what asks for bounds is given them"
            columns[each] = _bounds(each, bounds)
            continue
        if isinstance(each, AggregateValue):
            column = columns[each] = windows.column(each)
            if column.present is not None:
                gaps.append((each, None, ~column.present[chosen]))
            continue
        assert keys is not None, "only groups have keys"
        found, missing = keys.texts(each), keys.missing(each)[chosen]
        columns[each] = found
        gaps += [(each, None, missing), (each, "", (found.starts == found.ends)[chosen] & ~missing)]
    gaps = [each for each in gaps if each[2].any()]
    if not gaps:
        return _laid(_fragments(result.element), columns, chosen)
    patterns, which = np.unique(np.stack([flags for _, _, flags in gaps]), axis=1, return_inverse=True)
    made: list[TextColumn] = []
    starts, ends = np.empty((2, len(chosen)), np.int32)
    behind = 0
    for number, pattern in enumerate(patterns.T.tolist()):
        instead = {each: text for (each, text, _), is_there in zip(gaps, pattern, strict=True) if is_there}
        at = np.flatnonzero(which.ravel() == number)
        made.append(_laid(_fragments(result.element, instead), columns, chosen[at]))
        starts[at], ends[at] = made[-1].starts + behind, made[-1].ends + behind
        behind += len(made[-1].data)
    whole = TextColumn(np.concatenate([each.data for each in made]), starts, ends)
    return _one_behind_the_other(whole)


def written_sizes(result: WindowResult, keys: GroupKeys, bounds: BoundTexts, count: int) -> Indices:
    """How many bytes are written for each of `count` groups, at most."""
    fixed, found = 0, np.zeros(count, np.int64)
    for each in _fragments(result.element):
        if isinstance(each, KeyText | BoundText):
            texts = keys.texts(each) if isinstance(each, KeyText) else _bounds(each, bounds)
            found = found + (texts.ends - texts.starts)
        else:
            fixed += len(each.encode()) if isinstance(each, str) else _LONGEST_NUMBER
    return found + fixed


def _bounds(bound: BoundText, bounds: BoundTexts) -> TextColumn:
    """A bound of each, as it is written; in JSON a time is a string."""
    found = bounds.texts(bound.variable)
    if not bound.as_json or not len(found.starts):
        return found
    quotes = TextColumn.of(b"", b'"').take((found.data[found.ends - 1] == _UTC).astype(np.int32))
    made, left_out = concat([quotes, found, quotes])
    assert not left_out.any(), "there is room for what is written at once"
    return made


_UTC = ord("Z")


def _one_behind_the_other(column: TextColumn) -> TextColumn:
    """The same texts, with their bytes in the order of the texts."""
    found, left_out = concat([TextColumn.of(b"").repeated(len(column.starts)), column])
    assert not left_out.any(), "there is room for what is written at once"
    return found


def _laid(
    fragments: Sequence[str | _Value],
    columns: Mapping[_Value, Column | TextColumn],
    chosen: Indices,
) -> TextColumn:
    """The texts of some windows, none of which misses a value that is written."""
    parts = [TextColumn.of(b"").repeated(len(chosen))]
    for each in _joined(fragments):
        if isinstance(each, str):
            parts.append(TextColumn.of(each.encode()))
            continue
        column = columns[each]
        parts.append(column.take(chosen) if isinstance(column, TextColumn) else _spelled(column.values[chosen]))
    made, left_out = concat(parts)
    assert not left_out.any(), "there is room for what is written at once"
    return made


def _spelled(values: NDArray[np.int64] | NDArray[np.float64]) -> TextColumn:
    """Numbers in XQuery's spelling."""
    if values.dtype == np.int64:
        return spelled_integers(values.astype(np.int64))
    return spelled_doubles(values.astype(np.float64))


def _fragments(part: Part, instead: Mapping[_Value, str | None] = MappingProxyType({})) -> list[str | _Value]:
    """The fragments of a part; `instead` has a text for some of its values, or None for those that are missing."""
    match part:
        case str():
            return [part]
        case Inserted(operands):
            spelled = map(_operand, operands)
            given = [each if isinstance(each, str) else instead.get(each, each) for each in spelled]
            there = [each for each in given if each is not None]
            return [each for number, one in enumerate(there) for each in ((" ", one) if number else (one,))]
        case JsonLine(pieces):
            spelled = map(_operand, pieces)
            given = [each if isinstance(each, str) else instead.get(each, each) for each in spelled]
            return ["null" if each is None else each for each in given]
        case Tagged(name, attributes, content):
            start: list[str | _Value] = [f"<{name}"]
            for each, value in attributes:
                start += [f' {each}="', *(inner for piece in value for inner in _fragments(piece, instead)), '"']
            inside = [inner for piece in content for inner in _fragments(piece, instead)]
            return [*start, ">", *inside, f"</{name}>"] if any(inside) else [*start, "/>"]


def _operand(operand: str | Written) -> str | _Value:
    return " ".join(map(spell, atomize(operand.value))) if isinstance(operand, NumberLiteral) else operand


def _joined(fragments: Sequence[str | _Value]) -> list[str | _Value]:
    """Fragments in which neighbouring fixed texts are joined."""
    found: list[str | _Value] = []
    for each in fragments:
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        else:
            found.append(each)
    return found
