"""Functions that the law's own functions compute, one value after the other.

A batch repeats most of its values, so each of the different arguments is computed with once; the work that is left for
a row is to find its arguments among them.
An argument for which the law raises an error is unclear, and its rows are the law's; so is a result that columns do not
hold, such as an integer beyond 2^53.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.functions.function import Body, ColumnFunction
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import INSTANTS, LENGTHS, Expression, Kind
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    TICKS_IN_SECOND,
    TOO_LARGE_INTEGER,
    UNCLEAR,
    ColumnValue,
    spelled,
    state_of,
)
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.errors import DynamicError
from anabranch.values.atomic import JsonNumber, Untyped, spell, to_double
from anabranch.values.sequences import Value, Values
from anabranch.values.times import Date, DateTime, DayTimeDuration, Time, TimeValue, YearMonthDuration

LawFunction: TypeAlias = Callable[..., Values]
ResultOf: TypeAlias = Kind | Callable[[Sequence[Expression]], Kind | None]
_Key: TypeAlias = Hashable
_Reader: TypeAlias = Callable[[Any], Value]


class _UnclearArgument:
    """The key of an argument that is unclear; `None` is that of one that is absent."""


_UNCLEAR_KEY: Final = _UnclearArgument()
_FARTHEST = 1 << 63
_TIMES: Mapping[Kind, type[TimeValue]] = {
    Kind.MOMENT: DateTime,
    Kind.DATE: Date,
    Kind.TIME: Time,
    Kind.DAY_TIME: DayTimeDuration,
    Kind.YEAR_MONTH: YearMonthDuration,
}


def by_law(law: LawFunction, *arguments: Sequence[Kind], least: int | None = None, result: ResultOf) -> ColumnFunction:
    """A function of the law over columns.

    `arguments` are the types that each may have; the first `least` are needed, or all of them.
    """
    needed = len(arguments) if least is None else least

    def kind_of(values: Sequence[Expression]) -> Kind | None:
        if not needed <= len(values) <= len(arguments):
            return None
        if any(value.kind not in kinds for value, kinds in zip(values, arguments, strict=False)):
            return None
        return result if isinstance(result, Kind) else result(values)

    return ColumnFunction(kind_of, law_values(law), typed=True)


def law_values(law: LawFunction) -> Body:
    """The values of a function of the law in many rows."""

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        columns = [_keys(each, count) for each in values]
        rows = next((len(keys) for keys, _ in columns if len(keys) != 1), 1)
        readers = [reader for _, reader in columns]
        keys = list(zip(*(keys * rows if len(keys) == 1 else keys for keys, _ in columns), strict=True))
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        found = column_of(kind, (_computed(law, key, readers) for key in places))
        return found.take(np.fromiter(map(places.__getitem__, keys), np.int64, rows))

    return body


def _computed(law: LawFunction, keys: Sequence[_Key], readers: Sequence[_Reader]) -> Value | _UnclearArgument | None:
    """The value for some arguments, None for nothing."""
    if _UNCLEAR_KEY in keys:
        return _UNCLEAR_KEY
    try:
        given = [[] if key is None else [reader(key)] for key, reader in zip(keys, readers, strict=True)]
        found = law(*given)
    except DynamicError:
        return _UNCLEAR_KEY
    if len(found) > 1:
        return _UNCLEAR_KEY
    return found[0] if found else None


# --- arguments ------------------------------------------------------------------------------------------------


def _keys(value: ColumnValue, count: int) -> tuple[list[_Key], _Reader]:
    """By row: what tells its value from others; and how that is read as a value of the law."""
    found: list[_Key]
    reader: _Reader
    match value.kind:
        case Kind.DOUBLE:
            assert value.numbers is not None
            found, reader = [*value.numbers.view(np.int64).tolist()], _double
        case Kind.INTEGER:
            assert value.numbers is not None
            found, reader = [*np.nan_to_num(value.numbers).astype(np.int64).tolist()], int
        case Kind.BOOLEAN:
            assert value.verdicts is not None
            words: dict[int, _Key] = {YES: True, NO: False, UNCLEAR_VERDICT: _UNCLEAR_KEY}
            found, reader = [words[each] for each in value.verdicts.tolist()], bool
        case Kind.DAY_TIME | Kind.YEAR_MONTH:
            assert value.ticks is not None
            found, reader = [*value.ticks.tolist()], _LENGTH_READERS[value.kind]
        case _:
            column = spelled(value, count).texts
            assert column is not None
            found, reader = [*texts_of(column)], _TEXT_READERS[value.kind]
    if value.state is not None:
        if len(found) == 1:
            found *= len(value.state)
        for place in np.flatnonzero(value.state).tolist():
            found[place] = None if value.state[place] == ABSENT else _UNCLEAR_KEY
    return found, reader


def texts_of(column: TextColumn) -> list[bytes]:
    """The texts of a column, each by itself."""
    whole, _ = texts.concat([column])
    raw = whole.data.tobytes()
    return [raw[start:end] for start, end in zip(whole.starts.tolist(), whole.ends.tolist(), strict=True)]


def _double(bits: int) -> float:
    return float(np.int64(bits).view(np.float64))


def _time_reader(kind: type[TimeValue]) -> _Reader:
    def reader(text: bytes) -> TimeValue:
        found = kind.read(text.decode())
        assert found is not None, "it was read before"
        return found

    return reader


_TEXT_READERS: Mapping[Kind, _Reader] = {
    Kind.UNTYPED: lambda text: Untyped(text.decode()),
    Kind.STRING: lambda text: text.decode(),
    Kind.NUMBER: lambda text: JsonNumber(text.decode()),
    Kind.FLAG: lambda text: text == b"true",
    Kind.DECIMAL: lambda text: Decimal(text.decode()),
    **{kind: _time_reader(_TIMES[kind]) for kind in INSTANTS},
}
_LENGTH_READERS: Mapping[Kind, _Reader] = {
    Kind.DAY_TIME: lambda ticks: DayTimeDuration(Fraction(ticks, TICKS_IN_SECOND)),
    Kind.YEAR_MONTH: YearMonthDuration,
}


# --- results --------------------------------------------------------------------------------------------------


def column_of(kind: Kind, results: Iterable[Value | _UnclearArgument | None]) -> ColumnValue:
    """Values of one type, one row for each: None for nothing."""
    read = _RESULTS[kind]
    states: list[int] = []
    found: list[tuple[bytes, float, int]] = []
    size = 0
    for each in results:
        made = None if each is None or isinstance(each, _UnclearArgument) else read(each)
        size += 0 if made is None else len(made[0])
        if made is None or size > texts.MOST_BYTES:
            found.append((b"", 0.0, 0))
            states.append(ABSENT if each is None else UNCLEAR)
        else:
            found.append(made)
            states.append(CLEAR)
    spelling, numbers, ticks = zip(*found, strict=True) if found else ((), (), ())
    state = state_of(np.array(states, np.uint8) == UNCLEAR, UNCLEAR)
    if ABSENT in states:
        state = np.array(states, np.uint8)
    if kind is Kind.BOOLEAN:
        verdicts = np.where(np.array(numbers) != 0, np.uint8(YES), np.uint8(NO))
        verdicts[np.array(states) != CLEAR] = UNCLEAR_VERDICT
        return ColumnValue.truth(verdicts)
    return ColumnValue(
        kind,
        state,
        np.array(numbers) if kind in (Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL) else None,
        None if kind in (Kind.DOUBLE, Kind.INTEGER, *LENGTHS) else TextColumn.of(*spelling),
        ticks=np.array(ticks, np.int64) if kind in _TIMES else None,
    )


def _time_result(kind: type[TimeValue]) -> Callable[[Value], tuple[bytes, float, int] | None]:
    def result(value: Value) -> tuple[bytes, float, int] | None:
        if not isinstance(value, kind):
            return None
        ticks = value.number * (1 if kind is YearMonthDuration else TICKS_IN_SECOND)
        if ticks.denominator != 1 or abs(ticks) >= _FARTHEST:
            return None
        return str(value).encode(), 0.0, int(ticks)

    return result


def _text_result(value: Value) -> tuple[bytes, float, int] | None:
    return (value.encode(), 0.0, 0) if isinstance(value, str) and not isinstance(value, Untyped) else None


def _whole_result(value: Value) -> tuple[bytes, float, int] | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < TOO_LARGE_INTEGER
    return (b"", float(value), 0) if fits else None  # type: ignore[arg-type]  # it is a number


def _double_result(value: Value) -> tuple[bytes, float, int] | None:
    return (b"", float(value), 0) if isinstance(value, float) else None


def _decimal_result(value: Value) -> tuple[bytes, float, int] | None:
    return (spell(value).encode(), to_double(value), 0) if isinstance(value, Decimal) else None


def _truth_result(value: Value) -> tuple[bytes, float, int] | None:
    return (spell(value).encode(), float(value), 0) if isinstance(value, bool) else None


_RESULTS: Mapping[Kind, Callable[[Value], tuple[bytes, float, int] | None]] = {
    Kind.STRING: _text_result,
    Kind.INTEGER: _whole_result,
    Kind.DOUBLE: _double_result,
    Kind.DECIMAL: _decimal_result,
    Kind.BOOLEAN: _truth_result,
    Kind.FLAG: _truth_result,
    **{kind: _time_result(of) for kind, of in _TIMES.items()},
}
"""By type: the spelling, number and ticks of a value; None for one that columns do not hold."""
