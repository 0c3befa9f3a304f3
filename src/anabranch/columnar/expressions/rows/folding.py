"""Functions of sequences over columns: one entry of a table each.

The aggregates of `aggregates/` are computed here for many sequences at once, each of which is the rows of one owner.

Sums are exact (LAWS 2.2): decimals of few digits are added as whole numbers of a common unit, and divided once; so are
computed doubles that are binary fractions of few places, and others are added by `math.fsum`, which rounds once.
A sum that cannot be computed so is *unclear*, and left to the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates.exact import root, rounded
from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.rows.ordering import ordered, text_places
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import TIMES, ConstantValue, Expression, Kind, RowSource
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    TOO_LARGE_INTEGER,
    UNCLEAR,
    ColumnValue,
    States,
    spelled,
    state_of,
    worst,
)
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.columnar.panes.doubles import binary_ticks
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.values.numbers import nearest_double

_MOST_PLACES = 9
_FEW_DIGITS = 1e15
"""Below this, a double stands for one decimal of at most 15 digits."""
_LARGEST_SUMMAND = 1e290
_MOST = 1 << 62
_MOST_BINARY = 6
"""So many decimal places are tried for doubles that were computed, which are exact binary fractions."""
DECIMAL = (Kind.UNTYPED, Kind.NUMBER, Kind.INTEGER, Kind.DECIMAL)
"""Types whose numbers are known where they have few digits."""
_NO_NUMBERS = np.empty(0)
_SPELLED = (*DECIMAL, Kind.STRING, Kind.DOUBLE, Kind.BOOLEAN, Kind.FLAG, *TIMES)


@dataclass(frozen=True, slots=True)
class Sequences:
    """The values of many sequences, in the order of their owners: each value's owner, numbers and text."""

    owners: Indices
    doubles: Numbers
    """The double nearest to each."""
    exact: Numbers
    """That double where the value has few digits, so that it stands for one decimal exactly; else NaN."""
    texts: TextColumn
    ticks: Indices

    def in_order(self) -> Sequences:
        """The sequences with the values of each owner together."""
        order = np.argsort(self.owners, kind="stable")
        doubles, exact = (each.take(order) if len(each) else each for each in (self.doubles, self.exact))
        ticks = self.ticks.take(order) if len(self.ticks) else self.ticks
        spans = (each.take(order) if len(each) else each for each in (self.texts.starts, self.texts.ends))
        return Sequences(self.owners.take(order), doubles, exact, self.texts.spans(*spans), ticks)

    @property
    def is_decimal(self) -> bool:
        """Whether the values are decimals read from items, and not computed doubles."""
        return bool(len(self.exact)) or not len(self.owners)

    def counts(self, owners: int) -> Indices:
        """The number of values of each owner."""
        return np.bincount(self.owners, minlength=owners)

    def bounds(self, owners: int) -> Indices:
        """By owner: the place of its first value; then the number of all values."""
        return np.concatenate([[0], np.cumsum(self.counts(owners))])


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The rows of one source of sequences: by row its owner, whether it is taken, and its value."""

    owners: Indices
    verdicts: NDArray[np.uint8] | None
    value: ColumnValue | None
    numbers: tuple[Numbers, States | None] | None
    """The double nearest to each value, where they are wanted."""

    def taken(self, owners: int) -> tuple[Indices, Flags]:
        """The rows whose value is taken, and the owners for which that is unclear."""
        count = len(self.owners)
        known = worst(
            None if self.value is None else self.value.state, None if self.numbers is None else self.numbers[1]
        )
        state = np.zeros(count, np.uint8) if known is None else np.broadcast_to(known, count)
        if self.value is not None and self.value.verdicts is not None:
            unclear = np.broadcast_to(self.value.verdicts == UNCLEAR_VERDICT, count)
            state = np.where(unclear, np.uint8(UNCLEAR), state)
        if self.verdicts is not None:
            state = np.where(self.verdicts == NO, np.uint8(ABSENT), state)
            state = np.where(self.verdicts == UNCLEAR_VERDICT, np.uint8(UNCLEAR), state)
        doubtful = np.zeros(owners, np.bool_)
        doubtful[self.owners[state == UNCLEAR]] = True
        return np.flatnonzero(state == CLEAR), doubtful

    def sorted_by(self, keys: Sequence[tuple[ColumnValue, bool]]) -> SourceRows:
        """The rows of each owner in the order of keys; where that is unclear, so is whether a row is taken."""
        order, unclear = ordered(keys, self.owners)
        verdicts = np.full(len(order), YES, np.uint8) if self.verdicts is None else self.verdicts
        verdicts = np.where(unclear & (verdicts == YES), np.uint8(UNCLEAR_VERDICT), verdicts)
        numbers = None
        if self.numbers is not None:
            doubles, state = self.numbers
            numbers = row_values(doubles, order), None if state is None else state.take(order)
        value = None if self.value is None else self.value.take(order)
        return SourceRows(self.owners.take(order), verdicts.take(order), value, numbers)


def folded(name: str, sources: Sequence[SourceRows], count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    """The results of a function over the sequences of `count` owners, each given in the order of its values."""
    function = FOLDS[name]
    unclear = np.zeros(count, np.bool_)
    owners, doubles, exact = ([_NO_NUMBERS.astype(np.int64)], [_NO_NUMBERS], [_NO_NUMBERS])
    ticks = [_NO_NUMBERS.astype(np.int64)]
    written: list[TextColumn] = []
    for each in sources:
        rows, doubtful = each.taken(count)
        unclear |= doubtful
        owners.append(each.owners[rows])
        if each.numbers is not None:
            doubles.append(row_values(each.numbers[0], rows))
        if each.value is not None and "exact" in function.reads and each.value.kind in DECIMAL:
            numbers = each.value.numbers
            exact.append(np.full(len(rows), np.nan) if numbers is None else row_values(numbers, rows))
        if each.value is not None and each.value.ticks is not None and "ticks" in function.reads:
            ticks.append(np.broadcast_to(each.value.ticks, len(each.owners))[rows])
        if each.value is not None and "texts" in function.reads:
            made = spelled(each.value, len(each.owners))
            assert made.texts is not None
            written.append(made.texts.take(rows) if len(made.texts.starts) > 1 else made.texts.repeated(len(rows)))
            if made.state is not None:
                unclear[each.owners[np.broadcast_to(made.state == UNCLEAR, len(each.owners))]] = True
    values = Sequences(
        np.concatenate(owners), np.concatenate(doubles), np.concatenate(exact), together(written), np.concatenate(ticks)
    )
    if len(sources) > 1:
        values = values.in_order()
    return function.evaluate(values, count, others).unclear_where(unclear)


def row_values(values: Numbers, rows: Indices) -> Numbers:
    """The numbers of some rows, where one alone stands for all rows."""
    return values.take(rows) if len(values) > 1 else np.repeat(values, len(rows))


def together(columns: Sequence[TextColumn]) -> TextColumn:
    """Columns one below the other."""
    if len(columns) == 1:
        return columns[0]
    moved = np.cumsum([0, *(len(each.data) for each in columns)])
    starts, ends = (
        np.concatenate(
            [
                np.empty(0, np.int32),
                *(getattr(each, side) + np.int32(by) for each, by in zip(columns, moved, strict=False)),
            ]
        )
        for side in ("starts", "ends")
    )
    return TextColumn(np.concatenate([np.empty(0, np.uint8), *(each.data for each in columns)]), starts, ends)


KindOf: TypeAlias = Callable[[Sequence[RowSource], Sequence[Expression]], Kind | None]
Fold: TypeAlias = Callable[[Sequences, int, Sequence[ColumnValue]], ColumnValue]


@dataclass(frozen=True, slots=True)
class ColumnFold:
    """A function of sequences."""

    kind_of: KindOf
    """The type of its value for some sources and further arguments; None where it does not compile to columns."""
    evaluate: Fold
    """Computes its values from the sequences, the number of owners, and the further arguments."""
    reads: frozenset[str] = frozenset()
    """The columns of `Sequences` that it reads: doubles, exact numbers, texts; without any, only the counts."""


def _kinds(sources: Sequence[RowSource]) -> set[Kind]:
    return {each.value.kind for each in sources if each.value is not None}


def _of_numbers(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    """The type of numbers that are all decimals or all doubles; None for a mixture."""
    kinds = _kinds(sources)
    return Kind.DOUBLE if not others and (kinds <= set(DECIMAL) or kinds == {Kind.DOUBLE}) else None


def _sum_kind(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    """The type of a sum, that of integers for integers (LAWS 2.1); None where there may be both."""
    kinds = _kinds(sources)
    if kinds == {Kind.INTEGER} and not others:
        return Kind.INTEGER
    return None if Kind.INTEGER in kinds else _of_numbers(sources, others)


def _extreme_kind(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    return Kind.DOUBLE if not others and _kinds(sources) <= {*DECIMAL, Kind.DOUBLE} else None


def _other_kind(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    """The type of the greatest of several times or texts that are all of one type."""
    kinds = _kinds(sources)
    return next(iter(kinds)) if not others and len(kinds) == 1 and kinds <= {Kind.STRING, *TIMES} else None


def _members_kind(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    return Kind.CONTENT if not others and _kinds(sources) <= {Kind.CONTENT} else None


def _count_kind(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    return Kind.INTEGER if not others else None


def _join_kind(sources: Sequence[RowSource], others: Sequence[Expression]) -> Kind | None:
    fits = _kinds(sources) <= set(_SPELLED) and all(isinstance(each, ConstantValue) for each in others)
    return Kind.STRING if fits and len(others) <= 1 and all(each.kind is Kind.STRING for each in others) else None


# --- sums -------------------------------------------------------------------------------------------------


def _decimal_ticks(exact: Numbers) -> tuple[Indices, int, Flags]:
    """Decimals as whole numbers, the number of their units in one, and the decimals that cannot be written so."""
    places = np.zeros(len(exact), np.int64)
    left = np.flatnonzero(exact != np.rint(exact))
    for place in range(1, _MOST_PLACES + 1):
        if not len(left):
            break
        numbers, power = exact[left], 10.0**place
        ticks = np.rint(numbers * power)
        same = (ticks / power == numbers) & (np.abs(ticks) < _FEW_DIGITS)
        places[left[same]] = place
        left = left[~same]
    most = int(places.max(initial=0))
    found = np.rint(exact * 10.0**places) * 10.0 ** (most - places)
    wrong = ~((np.abs(exact) < _FEW_DIGITS) & (np.abs(found) < TOO_LARGE_INTEGER))
    wrong[left] = True
    return np.where(wrong, 0.0, found).astype(np.int64), 10**most, wrong


def _ticks(values: Sequences) -> tuple[Indices, int, Flags] | None:
    """Numbers as whole numbers of a unit; None for computed doubles that are not all binary fractions of few places."""
    if values.is_decimal:
        return _decimal_ticks(values.exact)
    for places in range(_MOST_BINARY + 1):
        ticks, exact = binary_ticks(values.doubles, places)
        if exact.all():
            return ticks, 10**places, ~exact
    return None


def _quotients(totals: Indices, divisors: Indices, unit: int) -> Numbers:
    """The doubles nearest to totals, in units, divided by divisors."""
    small = (np.abs(totals) < TOO_LARGE_INTEGER) & (divisors < TOO_LARGE_INTEGER // unit)
    found: Numbers = totals / (np.where(small, divisors, 1) * float(unit))
    for owner in np.flatnonzero(~small).tolist():
        found[owner] = nearest_double(Fraction(int(totals[owner]), unit * int(divisors[owner])))
    return found


def _divided_sums(values: Sequences, divisors: Indices) -> tuple[Numbers, Flags]:
    """The sum of each owner divided by a whole number, rounded once, and which sums are unclear."""
    found = _ticks(values)
    if found is None:
        totals, exact, unclear = _totals_of_doubles(values, len(divisors))
        return totals / divisors, unclear | (~exact & (divisors > 1))
    ticks, unit, wrong = found
    unclear = values.counts(len(divisors)) > _MOST // (1 + int(np.abs(ticks).max(initial=0)))
    unclear[values.owners[wrong]] = True
    running = np.concatenate([[0], np.cumsum(ticks)])  # may wrap around, but the differences do not
    bounds = values.bounds(len(divisors))
    return _quotients(running[bounds[1:]] - running[bounds[:-1]], divisors, unit), unclear


def _totals_of_doubles(values: Sequences, count: int) -> tuple[Numbers, Flags, Flags]:
    """Totals rounded once, which of them are exact, and which are unclear."""
    found, exact, unclear = np.zeros(count), np.ones(count, np.bool_), np.zeros(count, np.bool_)
    unclear[values.owners[~(np.abs(values.doubles) < _LARGEST_SUMMAND)]] = True
    bounds = values.bounds(count).tolist()
    numbers = values.doubles.tolist()
    for owner in np.flatnonzero(~unclear).tolist():
        first, last = bounds[owner], bounds[owner + 1]
        if last - first > 1:
            mine = numbers[first:last]
            found[owner] = total = math.fsum(mine)
            exact[owner] = math.fsum((*mine, -total)) == 0
        elif last > first:
            found[owner] = numbers[first]
    return found + 0.0, exact, unclear


def _sum(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    totals, unclear = _divided_sums(values, np.ones(count, np.int64))
    return ColumnValue(Kind.DOUBLE, state_of(unclear, UNCLEAR), totals)


def _sum_of_some(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    """The sums; that of an empty sequence is an integer, and unclear here."""
    return _sum(values, count, others).unclear_where(values.counts(count) == 0)


def _avg(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    counts = values.counts(count)
    found, unclear = _divided_sums(values, np.maximum(counts, 1))
    return ColumnValue(Kind.DOUBLE, worst(state_of(unclear, UNCLEAR), state_of(counts == 0, ABSENT)), found)


def _median(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    """The middle value, or half the sum of the middle two; of computed doubles it is that of their rounded sum."""
    counts, unclear = values.counts(count), np.zeros(count, np.bool_)
    numbers: Numbers | Indices
    if values.is_decimal:
        numbers, unit, wrong = _decimal_ticks(values.exact)
    else:
        numbers, unit, wrong = values.doubles, 1, ~(np.abs(values.doubles) < _LARGEST_SUMMAND)
    unclear[values.owners[wrong]] = True
    order = np.lexsort((numbers, values.owners))
    filled = np.flatnonzero(counts)
    begins, many = values.bounds(count)[filled], counts[filled]
    both = numbers[order[begins + (many - 1) // 2]] + numbers[order[begins + many // 2]]
    found = np.zeros(count)
    found[filled] = _quotients(both, np.full(len(filled), 2), unit) if values.is_decimal else both / 2 + 0.0
    return ColumnValue(Kind.DOUBLE, worst(state_of(unclear, UNCLEAR), state_of(counts == 0, ABSENT)), found)


def _stddev(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    """From whole numbers, as sums are made; unclear where doubles were computed that are none."""
    counts, unclear, found = values.counts(count), np.zeros(count, np.bool_), np.zeros(count)
    known = _ticks(values)
    ticks, unit, wrong = known or (np.zeros(len(values.owners), np.int64), 1, np.ones(len(values.owners), np.bool_))
    unclear[values.owners[wrong]] = True
    bounds = values.bounds(count).tolist()
    for owner in np.flatnonzero((counts > 1) & ~unclear).tolist():
        mine = ticks[bounds[owner] : bounds[owner + 1]].tolist()
        spread = len(mine) * sum(each * each for each in mine) - sum(mine) ** 2
        found[owner] = rounded(root(Fraction(spread, len(mine) * (len(mine) - 1) * unit**2)))
    return ColumnValue(Kind.DOUBLE, worst(state_of(unclear, UNCLEAR), state_of(counts < 2, ABSENT)), found)


# --- others -----------------------------------------------------------------------------------------------


def _extreme(*, greatest: bool) -> Fold:
    def fold(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
        """The greatest or least value; of 0 and -0 the law takes the earlier one, so both together are unclear."""
        found = np.full(count, -np.inf if greatest else np.inf)
        (np.maximum if greatest else np.minimum).at(found, values.owners, values.doubles)
        zeros = values.doubles == 0
        below, above = (
            np.bincount(values.owners[zeros & (np.signbit(values.doubles) == sign)], minlength=count)
            for sign in (True, False)
        )
        found = np.where((found == 0) & (below > 0), -0.0, found)
        state = worst(
            state_of((found == 0) & (below > 0) & (above > 0), UNCLEAR), state_of(values.counts(count) == 0, ABSENT)
        )
        return ColumnValue(Kind.DOUBLE, state, found)

    return fold


def _first_in_order(*, greatest: bool) -> Fold:
    def fold(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
        """The greatest or least of times or texts, the first of those that are equal."""
        counts = values.counts(count)
        is_time = len(values.ticks) > 0
        ranks = np.array(text_places(values.texts), np.int64)
        if is_time:
            ranks = np.unique(values.ticks, return_inverse=True)[1]
        order = np.lexsort((-ranks if greatest else ranks, values.owners))
        if not len(order):
            nothing = np.zeros(count, np.int64)
            absent = np.full(count, ABSENT, np.uint8)
            return ColumnValue(Kind.STRING, absent, texts=TextColumn.of(b"").repeated(count), ticks=nothing)
        chosen = order[np.minimum(values.bounds(count)[:-1], len(order) - 1)]
        ticks = values.ticks[chosen] if is_time else None
        return ColumnValue(Kind.STRING, state_of(counts == 0, ABSENT), texts=values.texts.take(chosen), ticks=ticks)

    return fold


def _counted(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    return ColumnValue(Kind.INTEGER, None, values.counts(count).astype(np.float64))


def _joined(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    separator = others[0].texts if others else None
    bounds = values.bounds(count)
    parts = [
        values.texts if len(values.texts.starts) == len(values.owners) else values.texts.repeated(len(values.owners))
    ]
    if separator is not None:
        first = np.ones(len(values.owners), np.bool_)
        first[1:] = values.owners[1:] != values.owners[:-1]
        parts.insert(0, TextColumn.of(b"").where(first, separator, len(values.owners)))
    made, full = texts.concat(parts)
    edges = np.concatenate([made.starts, made.ends[-1:]]) if len(values.owners) else np.zeros(1, np.int32)
    spans = TextColumn(made.data, edges[bounds[:-1]], edges[bounds[1:]])
    unclear = np.bincount(values.owners[np.broadcast_to(full, len(values.owners))], minlength=count) > 0
    return ColumnValue(Kind.STRING, state_of(unclear, UNCLEAR), texts=spans)


def _members_joined(values: Sequences, count: int, others: Sequence[ColumnValue]) -> ColumnValue:
    return _joined(values, count, [ColumnValue(Kind.STRING, texts=TextColumn.of(b", "))])


MEMBERS_JOINED = "members"
"""The members of an array as JSON, with commas between them."""
_DOUBLES, _EXACT = frozenset({"doubles"}), frozenset({"doubles", "exact"})

FOLDS: Mapping[str, ColumnFold] = {
    "count": ColumnFold(_count_kind, _counted),
    "sum": ColumnFold(_sum_kind, _sum, _EXACT),
    "sum of some": ColumnFold(_sum_kind, _sum_of_some, _EXACT),
    "avg": ColumnFold(_of_numbers, _avg, _EXACT),
    "median": ColumnFold(_of_numbers, _median, _EXACT),
    "stddev": ColumnFold(_of_numbers, _stddev, _EXACT),
    "min": ColumnFold(_extreme_kind, _extreme(greatest=False), _DOUBLES),
    "max": ColumnFold(_extreme_kind, _extreme(greatest=True), _DOUBLES),
    "min of others": ColumnFold(_other_kind, _first_in_order(greatest=False), frozenset({"ticks", "texts"})),
    "max of others": ColumnFold(_other_kind, _first_in_order(greatest=True), frozenset({"ticks", "texts"})),
    MEMBERS_JOINED: ColumnFold(_members_kind, _members_joined, frozenset({"texts"})),
    "string-join": ColumnFold(_join_kind, _joined, frozenset({"texts"})),
}
