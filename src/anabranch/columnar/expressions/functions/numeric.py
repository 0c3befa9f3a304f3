"""Functions of numbers over columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from anabranch.columnar.expressions.functions.by_law import by_law
from anabranch.columnar.expressions.functions.function import NUMERIC, TEXTUAL, ColumnFunction, taking
from anabranch.columnar.expressions.numbers import NO_NUMBER, read_doubles
from anabranch.columnar.expressions.numbers import UNCLEAR as UNCLEAR_NUMBER
from anabranch.columnar.expressions.rounding import ROUNDINGS, rounded_to
from anabranch.columnar.expressions.tree import Expression, Kind
from anabranch.columnar.expressions.values import ABSENT, CLEAR, UNCLEAR, ColumnValue, doubles_of, state_of, worst
from anabranch.columnar.scan.kernels import Numbers
from anabranch.language.signatures import MATH
from anabranch.law.functions import BUILTINS

_DOUBLES = (Kind.UNTYPED, Kind.NUMBER, Kind.DOUBLE)
_NUMBERS = (*_DOUBLES, Kind.INTEGER, Kind.DECIMAL)


def _rounded_kind(values: Sequence[Expression]) -> Kind:
    kind = values[0].kind
    return Kind.DOUBLE if kind in _DOUBLES else kind


def _of_doubles(name: str, change: Callable[[Numbers], Numbers]) -> ColumnFunction:
    """A function that makes one number of another: a loop for doubles, and for integers, which stay integers."""
    law = by_law(BUILTINS[name], _NUMBERS, result=_rounded_kind)

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        if kind is Kind.DECIMAL:
            return law.evaluate(kind, values, count)
        numbers, state = doubles_of(values[0])
        return ColumnValue(kind, state, change(numbers))

    return replace(law, evaluate=body)


def _to_digits(name: str) -> ColumnFunction:
    """`round` and `round-half-to-even`, to a number of digits."""
    function = BUILTINS[name]
    law = by_law(function, _NUMBERS, (Kind.INTEGER,), least=1, result=_rounded_kind)

    def exact(value: float, digits: int) -> float:
        (found,) = function([value], [digits])
        assert isinstance(found, float), "the type is that of what is rounded"
        return found

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        if kind is not Kind.DOUBLE:
            return law.evaluate(kind, values, count)
        numbers, state = doubles_of(values[0])
        digits = values[1].numbers if len(values) > 1 else np.zeros(1)
        assert digits is not None
        needed = None if len(values) == 1 or values[1].state is None else state_of(values[1].state != CLEAR, UNCLEAR)
        return ColumnValue(kind, worst(state, needed), rounded_to(numbers, digits, exact))

    return replace(law, evaluate=body)


def _number(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """Values as numbers; text that is no number, and an absent value, is NaN."""
    (value,) = values
    if value.kind not in TEXTUAL:
        assert value.numbers is not None
        numbers, unclear = value.numbers, np.zeros(len(value.numbers), np.bool_)
    else:
        assert value.texts is not None
        numbers, found = np.empty(len(value.texts.starts)), np.empty(len(value.texts.starts), np.uint8)
        read_doubles(value.texts, numbers, found)
        numbers[found == NO_NUMBER] = np.nan
        unclear = found == UNCLEAR_NUMBER
    if value.state is not None:
        numbers = np.where(value.state == ABSENT, np.nan, numbers)
        unclear = (unclear & (value.state == CLEAR)) | (value.state == UNCLEAR)
    return ColumnValue(kind, state_of(unclear, UNCLEAR), numbers)


def _root(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    numbers, state = doubles_of(values[0])
    with np.errstate(invalid="ignore"):
        return ColumnValue(kind, state, np.sqrt(numbers))


NUMERIC_FUNCTIONS: Mapping[str, ColumnFunction] = {
    "number": ColumnFunction(taking((*NUMERIC, Kind.STRING), (1,), Kind.DOUBLE), _number, context=True),
    **{name: _of_doubles(name, change) for name, change in ROUNDINGS.items()},
    "round": _to_digits("round"),
    "round-half-to-even": _to_digits("round-half-to-even"),
    **{f"math:{name}": by_law(BUILTINS[f"math:{name}"], _NUMBERS, result=Kind.DOUBLE) for name in MATH},
    "math:sqrt": ColumnFunction(taking((Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER), (1,), Kind.DOUBLE), _root),
    "math:pow": by_law(BUILTINS["math:pow"], _NUMBERS, _NUMBERS, result=Kind.DOUBLE),
    "math:atan2": by_law(BUILTINS["math:atan2"], _NUMBERS, _NUMBERS, result=Kind.DOUBLE),
    "format-number": by_law(BUILTINS["format-number"], _NUMBERS, (Kind.STRING,), result=Kind.STRING),
    "format-integer": by_law(
        BUILTINS["format-integer"], (Kind.INTEGER,), (Kind.STRING,), (Kind.STRING,), least=2, result=Kind.STRING
    ),
}
