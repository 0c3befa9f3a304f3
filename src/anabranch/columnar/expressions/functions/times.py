"""Functions of times and durations over columns.

Usual dateTimes and dates are read by compiled loops (`columnar/moments.py`), and their parts stand at fixed places of
their texts; everything else is the law's, value by value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from anabranch.columnar.expressions.functions.by_law import by_law
from anabranch.columnar.expressions.functions.function import NUMERIC, TEXTUAL, Body, ColumnFunction, taking
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import INSTANTS, LENGTHS, TIMES, Expression, FunctionCall, Kind
from anabranch.columnar.expressions.values import UNCLEAR, ColumnValue, state_of, ticks_of, worst
from anabranch.columnar.moments import read_dates, read_zones, spell_moments
from anabranch.columnar.scan.kernels import Indices
from anabranch.law.library.time_pictures import FORMATTED_TIMES
from anabranch.law.time_functions import TIME_FUNCTIONS
from anabranch.values.arithmetic import calculate
from anabranch.values.operators import ArithmeticOperator
from anabranch.values.sequences import Values, at_most_one

_HALF_RANGE = 1 << 62
"""The difference of two integers below this fits 64 bits."""


def _moment(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    ticks, state = ticks_of(values[0])
    return ColumnValue(kind, state, texts=values[0].texts, ticks=ticks)


def _date(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """Texts as dates; those with a zone are the law's."""
    (value,) = values
    assert value.texts is not None
    ticks, known = read_dates(value.texts.data, value.texts.starts, value.texts.ends)
    state = worst(value.state, state_of(~known, UNCLEAR, value.state))
    return ColumnValue(kind, state, texts=value.texts, ticks=ticks)


# --- parts ----------------------------------------------------------------------------------------------------

_PLACES: Mapping[str, tuple[int, int]] = {
    "year": (0, 4),
    "month": (5, 2),
    "day": (8, 2),
    "hours": (11, 2),
    "minutes": (14, 2),
}
"""By part of a dateTime whose ticks are known: where its digits stand in the text, and how many."""


def _part(name: str) -> Body:
    place, digits = _PLACES[name]

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        (value,) = values
        text = value.texts
        assert text is not None
        known = text.ends - text.starts >= place + digits
        starts = np.where(known, text.starts, 0)
        found = np.zeros(len(starts), np.int64)
        if known.any():
            for each in range(place, place + digits):
                found = found * 10 + text.data[np.where(known, starts + each, 0)].astype(np.int64) - ord("0")
        found[~known] = 0
        return ColumnValue(kind, value.state, found.astype(np.float64))

    return body


# --- arithmetic -----------------------------------------------------------------------------------------------


def arithmetic(operator: ArithmeticOperator, left: Expression, right: Expression) -> Expression | None:
    """Arithmetic of times, durations and exact decimals; None where there is none."""
    kind = _kind_of_result(operator, left.kind, right.kind)
    if kind is None:
        return None
    is_difference = operator == "-" and left.kind is right.kind is Kind.MOMENT
    return FunctionCall("difference" if is_difference else f"op:{operator}", (left, right), kind)


def _kind_of_result(operator: ArithmeticOperator, left: Kind, right: Kind) -> Kind | None:
    exact = (Kind.INTEGER, Kind.DECIMAL)
    match left, right:
        case (one, other) if one in exact and other in exact:
            both = one is other is Kind.INTEGER and operator != "div"
            return Kind.INTEGER if both else Kind.DECIMAL
        case (one, other) if one is other and one in INSTANTS:
            return Kind.DAY_TIME if operator == "-" else None
        case (one, other) if one is other and one in LENGTHS:
            return one if operator in ("+", "-") else Kind.DECIMAL if operator == "div" else None
        case (one, other) if one in INSTANTS and other in LENGTHS:
            return one if operator in ("+", "-") else None
        case (one, other) if one in LENGTHS and other in INSTANTS:
            return other if operator == "+" else None
        case (one, other) if one in LENGTHS and other in NUMERIC:
            return one if operator in ("*", "div") else None
        case (one, other) if one in NUMERIC and other in LENGTHS:
            return other if operator == "*" else None
        case _:
            return None


def _moved(moment: ColumnValue, by: ColumnValue, sign: int, count: int) -> ColumnValue:
    """Moments later by durations in seconds, or earlier."""
    (ticks, one), (length, other) = ticks_of(moment), ticks_of(by)
    assert moment.texts is not None
    far = (np.abs(ticks) >= _HALF_RANGE) | (np.abs(length) >= _HALF_RANGE)
    found = np.where(far, 0, ticks + sign * length)
    zones = np.empty(len(moment.texts.starts), np.int64)
    read_zones(*moment.texts, zones)
    state = worst(one, other, state_of(np.broadcast_to(far, count), UNCLEAR))
    spelling = TextColumn(*spell_moments(found, np.broadcast_to(zones, len(found)).copy()))
    return ColumnValue(Kind.MOMENT, state, texts=spelling, ticks=found)


def _calculated(operator: ArithmeticOperator) -> ColumnFunction:
    def law(left: Values, right: Values) -> Values:
        one, other = at_most_one(left, f"'{operator}'"), at_most_one(right, f"'{operator}'")
        return [] if one is None or other is None else [calculate(operator, one, other)]

    kinds = (*NUMERIC, *TIMES)
    found = by_law(law, kinds, kinds, result=lambda values: _kind_of_result(operator, values[0].kind, values[1].kind))

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        match [each.kind for each in values]:
            case [Kind.MOMENT, Kind.DAY_TIME] if operator in ("+", "-"):
                return _moved(values[0], values[1], 1 if operator == "+" else -1, count)
            case [Kind.DAY_TIME, Kind.MOMENT] if operator == "+":
                return _moved(values[1], values[0], 1, count)
            case _:
                return found.evaluate(kind, values, count)

    return replace(found, evaluate=body)


def _difference(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """The time between two moments."""
    (left, one), (right, other) = (ticks_of(each) for each in values)
    far = (np.abs(left) >= _HALF_RANGE) | (np.abs(right) >= _HALF_RANGE)
    found: Indices = left - right
    return ColumnValue(kind, worst(one, other, state_of(np.broadcast_to(far, count), UNCLEAR)), ticks=found)


_PARTS = {
    **{f"{part}-from-dateTime": Kind.MOMENT for part in _PLACES},
    **{f"{part}-from-date": Kind.DATE for part in ("year", "month", "day")},
}
"""By function that gives a part of a time: the type of what it takes."""


def _cast(kind: Kind, *others: Kind) -> ColumnFunction:
    name = f"xs:{kind.value}"
    return by_law(TIME_FUNCTIONS[name], (*TEXTUAL, kind, *others), result=kind)


def _read(read: Body, kind: Kind, *others: Kind) -> ColumnFunction:
    """A cast of texts that are read by a loop, and of other times by the law."""
    cast = _cast(kind, *others)

    def body(result: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        chosen = read if values[0].kind in TEXTUAL else cast.evaluate
        return chosen(result, values, count)

    return replace(cast, evaluate=body)


TIME_COLUMNS: Mapping[str, ColumnFunction] = {
    "xs:dateTime": _read(_moment, Kind.MOMENT, Kind.DATE),
    "xs:date": _read(_date, Kind.DATE, Kind.MOMENT),
    "xs:time": _cast(Kind.TIME, Kind.MOMENT),
    "xs:dayTimeDuration": _cast(Kind.DAY_TIME),
    "xs:yearMonthDuration": _cast(Kind.YEAR_MONTH),
    **{
        name: ColumnFunction(taking((kind,), (1,), Kind.INTEGER), _part(name.partition("-")[0]))
        for name, kind in _PARTS.items()
    },
    "seconds-from-dateTime": by_law(
        TIME_FUNCTIONS["seconds-from-dateTime"], (Kind.UNTYPED, Kind.MOMENT), result=Kind.DECIMAL
    ),
    **{
        f"{part}-from-time": by_law(TIME_FUNCTIONS[f"{part}-from-time"], (Kind.UNTYPED, Kind.TIME), result=result)
        for part, result in (("hours", Kind.INTEGER), ("minutes", Kind.INTEGER), ("seconds", Kind.DECIMAL))
    },
    **{
        f"{part}-from-duration": by_law(
            TIME_FUNCTIONS[f"{part}-from-duration"],
            (Kind.UNTYPED, *LENGTHS),
            result=Kind.DECIMAL if part == "seconds" else Kind.INTEGER,
        )
        for part in ("years", "months", "days", "hours", "minutes", "seconds")
    },
    **{
        f"timezone-from-{kind.value}": by_law(
            TIME_FUNCTIONS[f"timezone-from-{kind.value}"], (Kind.UNTYPED, kind), result=Kind.DAY_TIME
        )
        for kind in INSTANTS
    },
    **{
        f"adjust-{kind.value}-to-timezone": by_law(
            TIME_FUNCTIONS[f"adjust-{kind.value}-to-timezone"],
            (Kind.UNTYPED, kind),
            (Kind.DAY_TIME,),
            least=1,
            result=kind,
        )
        for kind in INSTANTS
    },
    "dateTime": by_law(
        TIME_FUNCTIONS["dateTime"], (Kind.UNTYPED, Kind.DATE), (Kind.UNTYPED, Kind.TIME), result=Kind.MOMENT
    ),
    **{
        f"format-{kind.value}": by_law(
            FORMATTED_TIMES[f"format-{kind.value}"], (Kind.UNTYPED, kind), (Kind.STRING,), result=Kind.STRING
        )
        for kind in INSTANTS
    },
    "difference": ColumnFunction(taking((Kind.MOMENT,), (2,), Kind.DAY_TIME), _difference),
    **{f"op:{operator}": _calculated(operator) for operator in ("+", "-", "*", "div", "mod")},
}


def as_time(name: str, argument: Expression) -> Expression:
    """An argument of a function that gives a part of a time: text from an item is read as one."""
    kind = _PARTS.get(name)
    if kind is None or argument.kind is not Kind.UNTYPED:
        return argument
    return FunctionCall(f"xs:{kind.value}", (argument,), kind)
