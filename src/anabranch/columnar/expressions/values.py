"""The values of an expression in many rows: numbers, texts or outcomes, and where there are none.

A dateTime is nanoseconds since 1970 where it is written as nearly all items write it (`columnar/moments.py`), in a year
in which these fit 64 bits; any other text is left to the law, be it a dateTime or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.numbers import read_doubles, spelled_doubles, spelled_integers
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Kind, Taken
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.columnar.moments import read_ticks
from anabranch.columnar.scan.json_scan import write_lines
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.words import WORD
from anabranch.values.atomic import spell, to_double
from anabranch.values.operators import ArithmeticOperator
from anabranch.values.times import DateTime, DayTimeDuration, YearMonthDuration

States: TypeAlias = NDArray[np.uint8]
CLEAR, ABSENT, UNCLEAR = 0, 1, 2
TICKS_IN_SECOND = 10**9
TOO_LARGE_INTEGER = float(1 << 53)
"""Below this, a double that was computed from integers is exact."""


SHORTEST_MOMENT = len("2026-01-01T00:00:00")
_SMALL, _LARGE = 1e-6, 1e6
"""Doubles between these are spelled like decimals."""


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """Values by row, of which a single one stands in every row.

    A text may also have its number read already, and a number its spelling.
    """

    kind: Kind
    state: States | None = None
    """None where all are clear."""
    numbers: Numbers | None = None
    texts: TextColumn | None = None
    verdicts: NDArray[np.uint8] | None = None
    ticks: Indices | None = None
    """By type of time: nanoseconds since 1970, or since midnight; the length in nanoseconds, or in months."""

    @staticmethod
    def literal(value: str | int | Decimal | float) -> ColumnValue:
        """The same value in every row."""
        match value:
            case bool():
                return ColumnValue.truth(np.array([YES if value else NO], np.uint8))
            case str():
                return ColumnValue(Kind.STRING, texts=TextColumn.of(value.encode()))
            case int() | Decimal() | float():
                kind = Kind.INTEGER if isinstance(value, int) else Kind.DOUBLE
                kind = Kind.DECIMAL if isinstance(value, Decimal) else kind
                return ColumnValue(kind, None, np.array([to_double(value)]), TextColumn.of(spell(value).encode()))

    @staticmethod
    def truth(verdicts: NDArray[np.uint8]) -> ColumnValue:
        """Outcomes, which are their own state."""
        return ColumnValue(Kind.BOOLEAN, verdicts=verdicts)

    def with_state(self, state: States | None) -> ColumnValue:
        """The values with another state."""
        return replace(self, state=state)

    def unclear_where(self, unclear: Flags) -> ColumnValue:
        """The values, unclear in some rows."""
        if not unclear.any():
            return self
        if self.verdicts is not None:
            return ColumnValue.truth(np.where(unclear, np.uint8(UNCLEAR_VERDICT), self.verdicts))
        return self.with_state(worst(self.state, state_of(unclear, UNCLEAR)))

    @property
    def unclear(self) -> Flags:
        """Which values are unclear; a single one stands for all."""
        found: Flags = np.zeros(1, np.bool_)
        if self.verdicts is not None:
            found = self.verdicts == UNCLEAR_VERDICT
        elif self.state is not None:
            found = self.state == UNCLEAR
        return found

    def take(self, rows: Indices) -> ColumnValue:
        """The values of some rows."""

        def taken(values: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
            return values if values is None or len(values) == 1 else values.take(rows)

        return ColumnValue(
            self.kind,
            None if self.state is None else self.state.take(rows),
            taken(self.numbers),  # type: ignore[arg-type]
            None if self.texts is None else self.texts.take(rows),
            taken(self.verdicts),  # type: ignore[arg-type]
            taken(self.ticks),  # type: ignore[arg-type]
        )

    def where(self, holds: Flags, other: ColumnValue, count: int) -> ColumnValue:
        """These values where `holds`, and those of `other` elsewhere."""
        state: States | None = None
        if self.state is not None or other.state is not None:
            one, two = (np.zeros(count, np.uint8) if each is None else each for each in (self.state, other.state))
            state = np.where(holds, one, two)
        numbers = None
        if self.numbers is not None and other.numbers is not None:
            numbers = np.where(holds, self.numbers, other.numbers)
        found = None
        if self.texts is not None and other.texts is not None:
            found = self.texts.where(holds, other.texts, count)
        verdicts = None
        if self.verdicts is not None and other.verdicts is not None:
            verdicts = np.where(holds, self.verdicts, other.verdicts)
        ticks = None
        if self.ticks is not None and other.ticks is not None:
            ticks = np.where(holds, self.ticks, other.ticks)
        return ColumnValue(self.kind, state, numbers, found, verdicts, ticks)


_COMPUTE: Mapping[ArithmeticOperator, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "div": np.divide,
    "mod": np.fmod,
}


def doubles_of(value: ColumnValue) -> tuple[Numbers, States | None]:
    """The doubles that values are as numbers; text that is no number is unclear."""
    if value.kind not in (Kind.UNTYPED, Kind.NUMBER):
        assert value.numbers is not None, "a number has a number"
        return value.numbers, value.state
    numbers, found = value.numbers, value.texts
    assert found is not None
    if numbers is not None and not np.isnan(numbers).any():
        return numbers, value.state
    read, wrong = np.empty(len(found.starts)), np.empty(len(found.starts), np.uint8)
    read_doubles(found, read, wrong)
    return read, worst(value.state, state_of(wrong != 0, UNCLEAR, value.state))


def calculated(
    kind: Kind,
    operator: ArithmeticOperator,
    left: tuple[Numbers, States | None],
    right: tuple[Numbers, States | None],
) -> ColumnValue:
    """Arithmetic of numbers, in integers or in doubles."""
    (a, one), (b, other) = left, right
    found = _COMPUTE[operator](a, b)
    state = worst(one, other)
    if kind is Kind.INTEGER:
        found = found + 0.0  # integers know no -0
        largest = np.maximum(np.abs(found), np.maximum(np.abs(a), np.abs(b)))
        inexact = ~(largest < TOO_LARGE_INTEGER)  # also where it is divided by zero
        if inexact.any():
            state = worst(state, state_of(inexact, UNCLEAR))
    return ColumnValue(kind, state, found)


def truth_of(value: ColumnValue, count: int) -> NDArray[np.uint8]:
    """The effective boolean values."""
    match value.kind:
        case Kind.BOOLEAN:
            assert value.verdicts is not None
            return value.verdicts
        case Kind.UNTYPED | Kind.STRING:
            assert value.texts is not None
            holds = value.texts.ends > value.texts.starts
        case _:
            assert value.numbers is not None
            holds = (value.numbers != 0) & ~np.isnan(value.numbers)
    verdicts = np.broadcast_to(holds, count).astype(np.uint8) * np.uint8(YES)
    if value.state is not None:
        verdicts[value.state == ABSENT] = NO
        verdicts[value.state == UNCLEAR] = UNCLEAR_VERDICT
    return verdicts


def worst(*states: States | None) -> States | None:
    """The state that is unclear where one of the states is, else absent where one is."""
    found: States | None = None
    for each in states:
        if each is not None:
            found = each if found is None else np.maximum(found, each)
    return found


def state_of(flags: Flags, state: int, but: States | None = None) -> States | None:
    """A state for some rows; not for those that are absent by another."""
    if but is not None:
        flags = flags & (but != ABSENT)
    return flags.astype(np.uint8) * np.uint8(state) if flags.any() else None


def spelled(value: ColumnValue, count: int) -> ColumnValue:
    """Values as texts, in XQuery's spelling (LAWS 2.1); an absent value is an empty text."""
    match value.kind:
        case Kind.UNTYPED | Kind.STRING | Kind.CONTENT | Kind.NUMBER | Kind.FLAG:
            found = value.texts
        case Kind.DOUBLE | Kind.INTEGER | Kind.DECIMAL if value.texts is not None:
            found = value.texts
        case Kind.DOUBLE:
            assert value.numbers is not None
            found = spelled_doubles(value.numbers)
        case Kind.INTEGER:
            assert value.numbers is not None
            known = np.abs(value.numbers) < TOO_LARGE_INTEGER
            found = spelled_integers(np.where(known, value.numbers, 0).astype(np.int64))
            value = value.unclear_where(np.broadcast_to(~known, count))
        case Kind.BOOLEAN:
            assert value.verdicts is not None
            found = TextColumn.of(b"false", b"", b"true").take(value.verdicts)
            value = replace(value, state=worst(value.state, state_of(value.verdicts == UNCLEAR_VERDICT, UNCLEAR)))
        case Kind.DECIMAL:
            assert value.numbers is not None
            found = spelled_doubles(np.abs(value.numbers) * np.where(value.numbers < 0, -1.0, 1.0))  # there is no -0
            without_exponent = (np.abs(value.numbers) >= _SMALL) & (np.abs(value.numbers) < _LARGE)
            value = value.unclear_where(np.broadcast_to(~without_exponent & (value.numbers != 0), count))
        case Kind.MOMENT | Kind.DATE | Kind.TIME:
            assert value.texts is not None
            found = _respelled(value.texts, value.state) if value.kind is Kind.MOMENT else value.texts
        case Kind.DAY_TIME | Kind.YEAR_MONTH:
            assert value.ticks is not None
            found = _spelled_lengths(value.kind, value.ticks)
    assert found is not None
    if value.state is not None and (value.state == ABSENT).any():
        gone = np.broadcast_to(value.state == ABSENT, count)
        spans = np.broadcast_to(found.starts, count).copy(), np.broadcast_to(found.ends, count).copy()
        spans[1][gone] = spans[0][gone]
        found = TextColumn(found.data, *spans)
    return replace(value, texts=found)


def _respelled(moments: TextColumn, state: States | None) -> TextColumn:
    """DateTimes in XQuery's spelling, without zeros at the end of a fraction, and with Z for UTC."""
    length = moments.ends - moments.starts
    last = moments.data[np.maximum(moments.ends - 1, 0)] if len(moments.data) else np.zeros(len(length), np.uint8)
    plain = (length == SHORTEST_MOMENT) | ((length == SHORTEST_MOMENT + 1) & (last == ord("Z")))
    others = ~plain if state is None else ~plain & (state == CLEAR)
    if not others.any():
        return moments
    others = np.broadcast_to(others, len(others))
    changed = texts.changed(moments, others, lambda each: str(DateTime.read(each)))
    return changed.where(others, moments, len(others))


def _spelled_lengths(kind: Kind, ticks: Indices) -> TextColumn:
    """Durations as XQuery writes them; equal ones are written once."""
    different, places = np.unique(ticks, return_inverse=True)
    is_months = kind is Kind.YEAR_MONTH
    spelling = [
        str(YearMonthDuration(each) if is_months else DayTimeDuration(Fraction(each, TICKS_IN_SECOND)))
        for each in different.tolist()
    ]
    return TextColumn.of(*(each.encode() for each in spelling)).take(places)


def spans_of_owners(joined: TextColumn, bounds: Indices) -> TextColumn:
    """The texts of each owner as one, given consecutive texts and the bounds of each owner's."""
    edges = np.concatenate([joined.starts, joined.ends[-1:]]) if len(joined.starts) else np.zeros(1, np.int32)
    return TextColumn(joined.data, edges[bounds[:-1]], edges[bounds[1:]])


def lines_of_records(shredded: Shredded, picks: Indices | None, *, is_ended: bool = True) -> ColumnValue:
    """Items of JSON as lines, each written once for all queries; unclear where the law may spell one otherwise."""
    asked = shredded.fits
    if picks is not None:
        asked = np.zeros(len(shredded.fits), np.bool_)
        asked[picks] = True
        asked &= shredded.fits
    size = int((shredded.finishes - shredded.begins)[asked].sum(dtype=np.int64))
    lines = TextColumn.room(len(asked), min(2 * size + len(asked) + WORD, texts.MOST_BYTES))
    unclear = np.empty(len(asked), np.bool_)
    written = write_lines(shredded.raw, shredded.begins, shredded.finishes, asked, *lines, unclear)
    found = lines._replace(data=lines.data[:written])
    if not is_ended:
        found = found._replace(ends=found.ends - (found.ends > found.starts).astype(np.int32))
    value = ColumnValue(Kind.CONTENT, state_of(unclear, UNCLEAR), texts=found)
    return value if picks is None else value.take(picks)


def only_unclear(state: States | None) -> States | None:
    """The state with absent values as clear ones."""
    return None if state is None or not (state == UNCLEAR).any() else np.where(state == UNCLEAR, state, np.uint8(CLEAR))


def with_front(found: TextColumn, taken: Taken) -> list[TextColumn]:
    """Texts with their first bytes replaced; absent ones stay empty."""
    if not taken.front:
        return [found]
    there = (found.ends > found.starts).astype(np.int32)
    rest = TextColumn(found.data, found.starts + there * np.int32(taken.replaced), found.ends)
    return [TextColumn.of(b"", taken.front).take(there), rest]


def exact_numbers(value: ColumnValue) -> tuple[Numbers, States | None]:
    """Numbers of so few digits that doubles compare as they do (LAWS 2.3); others are unclear."""
    assert value.numbers is not None
    nothing = np.isnan(value.numbers)
    return value.numbers, worst(value.state, state_of(nothing, UNCLEAR, value.state))


def ticks_of(value: ColumnValue) -> tuple[Indices, States | None]:
    """The nanoseconds since 1970 of dateTimes, or of texts that are; what columns do not read as such is unclear."""
    if value.ticks is not None:
        return value.ticks, value.state
    assert value.texts is not None
    ticks, known = read_ticks(value.texts.data, value.texts.starts, value.texts.ends)
    return ticks, worst(value.state, state_of(~known, UNCLEAR, value.state))
