"""What a question answers, by plain Python over records as Python's own reader of JSON reads them.

Written from LAWS 3, 7 and 8; it knows nothing of the evaluators that it judges.
NULL is None, a number of JSON is its digits, an exact number is an int or a Fraction, and a double is a float.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from spellings.questions import (
    Aggregate,
    All,
    Among,
    Applied,
    Bound,
    Choice,
    Compared,
    Computed,
    Condition,
    Constant,
    Either,
    Expression,
    Field,
    FirstOf,
    Groups,
    Joined,
    Like,
    Lookups,
    Missing,
    Negated,
    Pairs,
    Question,
    Rows,
    United,
    Unless,
    Window,
    Within,
)

EPOCH = datetime(2026, 3, 1, 9, tzinfo=UTC)
"""Where times as dateTimes begin."""
_COMPARES: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Digits(str):
    """A number in its spelling."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digits) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class RowError(Exception):
    """A row that JSON cannot say."""


def read(text: str) -> Any:
    """JSON with numbers as they are spelled."""
    return json.loads(text, parse_float=Digits, parse_int=Digits)


@dataclass(frozen=True)
class Answer:
    """The rows of an answer, and how many errors there are, each of a record, window, pair, or moment of a display."""

    rows: list[list[Any]]
    errors: int = 0
    again: int = 0
    """How many more may be told: a display that fails again and again need not say so each time."""


@dataclass(frozen=True)
class Records:
    """The inputs of a question; times are in seconds."""

    s: Sequence[Mapping[str, Any]]
    u: Sequence[Mapping[str, Any]]
    p: Sequence[Mapping[str, Any]]
    dated: bool
    """Whether times are dateTimes."""
    end: int | None
    """How far the streams have come; None where they have ended, and all windows close."""

    def seconds(self, record: Mapping[str, Any]) -> Fraction:
        """The time of a record."""
        if self.dated:
            passed = datetime.fromisoformat(record["t"]) - EPOCH
            return Fraction(passed // timedelta(milliseconds=1), 1000)
        return Fraction(record["t"])

    def shown(self, seconds: Fraction) -> Any:
        """A time as an answer shows it."""
        if not self.dated:
            return seconds
        moment = EPOCH + timedelta(milliseconds=int(seconds * 1000))
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment:%f}".rstrip("0") if moment.microsecond else "") + "Z"


def answer(question: Question, records: Records) -> Answer:
    """The answer to a question."""
    match question:
        case Rows(window=None):
            return _each(question.columns, ({"s": each} for each in records.s if _passes(question.where, {"s": each})))
        case Rows(window=Window() as window):
            return _in_units(windows(window, records), lambda held: _ordered(question, held))
        case Groups(window=None):
            return _display(question, [{"s": each} for each in records.s], records)
        case Groups(window=Window() as window):
            return _in_units(windows(window, records), lambda held: _grouped(question, held))
        case Pairs(columns, where, within):
            sides = records.s, records.u
            s, u = sides if records.end is None else (in_time(each, records) for each in sides)  # LAWS 3.5
            met = [
                {"s": one, "u": two}
                for one in s
                for two in u
                if one.get("k") is not None and one.get("k") == two.get("k")
                if 0 <= records.seconds(two) - records.seconds(one) <= within
            ]
            return _each(columns, (each for each in met if _passes(where, each)))
        case Lookups(columns, where, outer):
            units: list[list[Mapping[str, Any]]] = []
            for one in records.s:
                rows = [row for row in records.p if one.get("k") is not None and row.get("k") == one["k"]]
                found: list[Mapping[str, Any]] = [{"s": one, "p": row} for row in (rows or ([{}] if outer else []))]
                units.append([each for each in found if _passes(where, each)])
            return _in_units(units, lambda unit: [_row(columns, [each]) for each in unit])
        case United(first, second):
            return _united(first, second, records)
    raise AssertionError(question)


def _each(columns: Sequence[Expression], rows: Iterable[Mapping[str, Any]]) -> Answer:
    found, errors = [], 0
    for row in rows:
        try:
            found.append(_row(columns, [row]))
        except RowError:
            errors += 1
    return Answer(found, errors)


def _united(first: Rows, second: Rows, records: Records) -> Answer:
    """Row by row, where an error in one of them concerns both (LAWS 8.7)."""
    found, errors = [], 0
    for each in records.s:
        row = {"s": each}
        try:
            found += [_row(half.columns, [row]) for half in (first, second) if _passes(half.where, row)]
        except RowError:
            errors += 1
    return Answer(found, errors)


# --- windows ----------------------------------------------------------------------------------------------------------


def in_time(records: Sequence[Mapping[str, Any]], inputs: Records) -> list[Mapping[str, Any]]:
    """The records that are not late (LAWS 3.2)."""
    found: list[Mapping[str, Any]] = []
    largest: Fraction | None = None
    for each in records:
        at = inputs.seconds(each)
        if largest is None or at >= largest:
            found.append(each)
            largest = at
    return found


def windows(window: Window, records: Records) -> list[list[Mapping[str, Any]]]:
    """The rows of each window that has closed, in the order in which they close; rows know its bounds."""
    held = in_time(records.s, records)
    if window.gap:
        return _sessions(window, held, records)
    found: dict[int, list[Mapping[str, Any]]] = {}
    for each in held:
        at = records.seconds(each)
        last = math.floor(at / window.step)
        first = math.floor((at - window.size) / window.step) + 1
        for number in range(first if records.dated else max(first, 0), last + 1):
            found.setdefault(number, []).append(each)
    closed: list[list[Mapping[str, Any]]] = []
    for number in sorted(found):
        start = Fraction(number * window.step)
        end = start + window.size
        if records.end is None or end <= records.end:
            bounds = {"start": records.shown(start), "end": records.shown(end)}
            closed.append([{"s": each, "bounds": bounds} for each in found[number]])
    return closed


def _sessions(window: Window, held: Sequence[Mapping[str, Any]], records: Records) -> list[list[Mapping[str, Any]]]:
    """`null` and a missing key have sessions of their own (LAWS 8.6)."""
    open_: dict[Any, list[Mapping[str, Any]]] = {}
    ended: list[list[Mapping[str, Any]]] = []
    for each in held:
        key = None if window.key is None else (window.key in each, each.get(window.key))
        before = open_.get(key)
        if before is not None and records.seconds(each) - records.seconds(before[-1]) < window.gap:
            before.append(each)
        else:
            open_[key] = [each]
            ended.append(open_[key])  # in the order of their first records
    closed: list[list[Mapping[str, Any]]] = []
    for session in sorted(ended, key=lambda session: records.seconds(session[-1])):
        start, end = records.seconds(session[0]), records.seconds(session[-1]) + window.gap
        if records.end is None or end <= records.end:
            bounds = {"start": records.shown(start), "end": records.shown(end)}
            closed.append([{"s": each, "bounds": bounds} for each in session])
    return closed


def _in_units(
    units: Iterable[list[Mapping[str, Any]]], rows_of: Callable[[list[Mapping[str, Any]]], list[list[Any]]]
) -> Answer:
    """The rows of each unit, a window or what meets one item; an error concerns all of a unit (LAWS 2.4)."""
    found, errors = [], 0
    for held in units:
        try:
            found += rows_of(held)
        except RowError:
            errors += 1
    return Answer(found, errors)


def _ordered(question: Rows, held: list[Mapping[str, Any]]) -> list[list[Any]]:
    kept = [each for each in held if _passes(question.where, each)]
    for key in reversed(question.order):
        kept.sort(key=lambda row: _place(value(key.value, [row])), reverse=key.descending)
        nulls_first = key.descending if key.nulls is None else key.nulls == "first"
        kept.sort(key=lambda row: (value(key.value, [row]) is None) != nulls_first)
    last = None if question.limit is None else question.offset + question.limit
    return [_row(question.columns, [each]) for each in kept[question.offset : last]]


def _place(found: Any) -> Any:
    """A key for Python's sort, which is stable; where NULL stands is settled behind it."""
    if found is None:
        return (0, 0)
    return (1, exact(found) if isinstance(found, Digits | float) else found)


def _grouped(question: Groups, held: list[Mapping[str, Any]]) -> list[list[Any]]:
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for each in held:
        if _passes(question.where, each):
            groups.setdefault(tuple(_key(value(key, [each])) for key in question.keys), []).append(each)
    kept = [rows for rows in groups.values() if question.having is None or value(question.having, rows) is True]
    return [_row(question.columns, rows) for rows in kept]


def _display(question: Groups, held: list[Mapping[str, Any]], records: Records) -> Answer:
    """Of a whole stream; where that goes on, the display may also have failed behind an earlier record."""
    shown = _displayed(question, held)
    before = range(1, len(held)) if records.end is not None else ()
    failures = (shown is None) + sum(_displayed(question, held[:count]) is None for count in before)
    return Answer(shown or [], min(failures, 1), max(failures - 1, 0))


def _displayed(question: Groups, held: list[Mapping[str, Any]]) -> list[list[Any]] | None:
    """The rows of a display, None where it fails; without keys it is one group, also of nothing."""
    try:
        if question.keys:
            return _grouped(question, held)
        return [_row(question.columns, [each for each in held if _passes(question.where, each)])]
    except RowError:
        return None


def _key(found: Any) -> Any:
    """What rows of one group have in common: numbers by their values."""
    return (type(found) is bool, exact(found) if isinstance(found, Digits) else found)


# --- values -----------------------------------------------------------------------------------------------------------


def _row(columns: Sequence[Expression], rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    found = [value(each, rows) for each in columns]
    if any(isinstance(each, float) and not math.isfinite(each) for each in found):
        raise RowError
    return found


def _passes(condition: Condition | None, row: Mapping[str, Any]) -> bool:
    return condition is None or value(condition, [row]) is True


def exact(number: Any) -> Any:
    """The exact value of a number; INF and NaN stay doubles."""
    if isinstance(number, float):
        return Fraction(number) if math.isfinite(number) else number
    return Fraction(str(number)) if isinstance(number, Digits) else number


def double(number: Any) -> float:
    """The nearest double."""
    if isinstance(number, Digits):
        return float(str(number))
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def value(expression: Expression, rows: Sequence[Mapping[str, Any]]) -> Any:
    """The value of an expression for a row; for several, those of a group, columns are those of the first."""
    row = rows[0] if rows else {}
    match expression:
        case Field(names, _, member, table):
            found: Any = row.get(table, {})
            for name in names:
                found = found.get(name) if isinstance(found, dict) else None
            if member is None:
                return found
            return found[member - 1] if isinstance(found, list) and member <= len(found) else None
        case Constant(text, "number"):
            return Fraction(text)
        case Constant(text):
            return text
        case Bound(which):
            return row["bounds"][which]
        case Computed(operator, left, right):
            return _computed(operator, value(left, rows), value(right, rows))
        case Applied(function, argument, others):
            found = value(argument, rows)
            return None if found is None else _applied(function, found, [each.value for each in others])
        case Joined(texts):
            found = [value(each, rows) for each in texts]
            return None if None in found else "".join(found)
        case Choice(condition, then, other):
            if value(condition, rows) is True:
                return value(then, rows)
            return None if other is None else value(other, rows)
        case FirstOf(values):
            return next((found for each in values if (found := value(each, rows)) is not None), None)
        case Unless(tested, other):
            found = value(tested, rows)
            return None if compared("=", found, value(other, rows)) is True else found
        case Aggregate():
            return _aggregated(expression, rows)
        case _:
            return _condition(expression, rows)


def _condition(condition: Condition, rows: Sequence[Mapping[str, Any]]) -> bool | None:
    """True, False, or None for what is unknown."""
    match condition:
        case Compared(operator, left, right):
            return compared(operator, value(left, rows), value(right, rows))
        case All(conditions):
            return _all([value(each, rows) for each in conditions])
        case Either(conditions):
            return _not(_all([_not(value(each, rows)) for each in conditions]))
        case Negated(inner):
            return _not(value(inner, rows))
        case Missing(tested):
            return value(tested, rows) is None
        case Within(tested, low, high):
            found = value(tested, rows)
            return _all([compared(">=", found, value(low, rows)), compared("<=", found, value(high, rows))])
        case Among(tested, constants):
            found = value(tested, rows)
            return _not(_all([compared("!=", found, value(each, rows)) for each in constants]))
        case Like(tested, pattern):
            found = value(tested, rows)
            written = "".join(".*" if each is None else "." if each == "" else re.escape(each) for each in pattern)
            return None if found is None else re.fullmatch(written, found, re.DOTALL) is not None
        case Field():
            found = value(condition, rows)
            assert found is None or isinstance(found, bool)
            return found


def _all(truths: Sequence[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def compared(operator: str, left: Any, right: Any) -> bool | None:
    """Numbers by their exact values, and as doubles where one of them is one."""
    if left is None or right is None:
        return None
    if isinstance(left, bool | str) and not isinstance(left, Digits):
        return _COMPARES[operator](left, right)
    if isinstance(left, float) or isinstance(right, float):
        return _COMPARES[operator](double(left), double(right))
    return _COMPARES[operator](exact(left), exact(right))


def _computed(operator: str, left: Any, right: Any) -> Any:
    """In doubles, where a number of JSON or a double takes part, and exact where both are whole."""
    if left is None or right is None:
        return None
    if not isinstance(left, Digits | float) and not isinstance(right, Digits | float):
        a, b = left, right
    else:
        a, b = double(left), double(right)
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case _:
            return _quotient(a, b)


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _applied(function: str, found: Any, others: list[str]) -> Any:
    match function:
        case "abs":
            return abs(double(found) if isinstance(found, Digits) else found)
        case "upper":
            return found.upper()
        case "lower":
            return found.lower()
        case "length":
            return len(found)
        case "substring":
            start, length = map(int, others)
            return found[max(start - 1, 0) : max(start - 1 + length, 0)]
        case "replace":
            return found.replace(*others)
        case "trim":
            return found.strip(" ")
        case _:
            return found.find(others[0]) + 1


def _aggregated(aggregate: Aggregate, rows: Sequence[Mapping[str, Any]]) -> Any:
    taken = [each for each in rows if _passes(aggregate.where, each)]
    if aggregate.argument is None:
        return len(taken)
    values = [found for each in taken if (found := value(aggregate.argument, [each])) is not None]
    match aggregate.function:
        case "count":
            return len({_key(each) for each in values}) if aggregate.distinct else len(values)
        case _ if not values:
            return None
        case "min" | "max" as function:
            return _extreme(function, values)
    exactly = [exact(each) for each in values]
    if any(isinstance(each, float) for each in exactly):
        return math.nan if _mixed(exactly) else math.fsum(each for each in exactly if isinstance(each, float))
    total = sum(exactly, Fraction(0))
    return double(total if aggregate.function == "sum" else total / len(values))


def _mixed(values: Sequence[Any]) -> bool:
    """Whether a sum is none: NaN is in it, or INF and -INF."""
    return math.nan in values or any(each != each for each in values) or {math.inf, -math.inf} <= set(values)


def _extreme(function: str, values: list[Any]) -> Any:
    if isinstance(values[0], str) and not isinstance(values[0], Digits):
        return min(values) if function == "min" else max(values)
    doubles = [double(each) for each in values]
    if any(math.isnan(each) for each in doubles):
        return math.nan
    return min(doubles) if function == "min" else max(doubles)
